"""Checks of the numbers that workflows take."""

from __future__ import annotations

from flexmg.errors import InvalidArgument


def positive(name: str, value: int) -> int:
    """``value`` if it is a whole number from 1 on.

    Raises:
        InvalidArgument: it is not; the message names the argument.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArgument(f"{name}={value!r} is not a whole number from 1 on")
    return value
