"""Returned values: read safely, and compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from flexmg.envs.code.drivers.encoding import Refused, decode, encode

__all__ = ["Refused", "decode", "encode", "equal", "read"]

DEEPEST = 200
LONGEST_SHOWN = 200  # characters of a value in a sentence


class Unreadable(ValueError):
    """A result that no driver can have written; its program has tampered with it."""


def read(line: bytes) -> Any:
    """The JSON of a result line. Costs no more than in proportion to its length.

    Raises:
        Unreadable: it is none, or nests too deep, or holds numbers beyond all bounds.
    """
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"a result line cannot be read: {error}"[:LONGEST_SHOWN]) from None


def value_of(data: Any) -> Any:
    """The value in a read result.

    Raises:
        Unreadable: it is none, or nests too deep.
    """
    try:
        value = decode(data)
        if _depth(data) > DEEPEST:
            raise Unreadable(f"a result nests deeper than {DEEPEST}")
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"a result cannot be read: {error}"[:LONGEST_SHOWN]) from None
    return value


def equal(
    expected: Any,
    got: Any,
    *,
    exact: bool = True,
    any_order: bool = False,
    any_case: bool = False,
    tolerance: float | None = None,
) -> bool:
    """Whether a returned value is the expected one.

    Args:
        expected: a builtin value.
        got: the value that came back, or a :class:`Refused` (never equal).
        exact: by Python's ``==``: a tuple is no list, and ``1 == 1.0 == True``. Otherwise
            tuples equal lists of the same items, as JSON cannot tell them apart.
        any_order: the items of the outermost collection in any order.
        any_case: letter case ignored in texts.
        tolerance: absolute and relative, where the expected number is a float.
    """
    try:
        if any_order and _is_collection(expected) and _is_collection(got):
            return _equal_in_any_order(list(expected), list(got), exact, any_case, tolerance)
        return _equal(expected, got, exact, any_case, tolerance)
    except RecursionError:
        return False


def _equal(expected: Any, got: Any, exact: bool, any_case: bool, tolerance: float | None) -> bool:
    if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        if exact and type(expected) is not type(got):
            return False
        return len(expected) == len(got) and all(
            _equal(one, other, exact, any_case, tolerance)
            for one, other in zip(expected, got, strict=True)
        )
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(
            _equal(value, got[key], exact, any_case, tolerance) for key, value in expected.items()
        )
    if any_case and isinstance(expected, str) and isinstance(got, str):
        return expected.casefold() == got.casefold()
    if tolerance is not None and isinstance(expected, float) and isinstance(got, int | float):
        return _close(expected, got, tolerance)
    return bool(expected == got)


def _close(expected: float, got: float, tolerance: float) -> bool:
    if expected == got:
        return True
    try:
        difference = abs(expected - got)
    except OverflowError:
        return False
    return difference <= tolerance * max(1.0, abs(expected))


def _equal_in_any_order(
    expected: list[Any], got: list[Any], exact: bool, any_case: bool, tolerance: float | None
) -> bool:
    if len(expected) != len(got):
        return False
    try:
        keys = [_sorting_key(item, any_case) for item in (*expected, *got)]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        half = len(expected)
        one = [expected[i] for i in order if i < half]
        other = [got[i - half] for i in order if i >= half]
    except TypeError:
        return False
    return all(_equal(a, b, exact, any_case, tolerance) for a, b in zip(one, other, strict=True))


def _sorting_key(item: Any, any_case: bool) -> tuple[str, Any]:
    """Orders items of different types, too; equal items have equal keys."""
    if isinstance(item, bool | int | float):
        return "number", item
    if isinstance(item, str):
        return "text", item.casefold() if any_case else item
    if isinstance(item, list | tuple):
        return "sequence", tuple(_sorting_key(part, any_case) for part in item)
    return type(item).__name__, repr(item)


def _is_collection(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset)


def _depth(data: Any) -> int:
    """How deep JSON data nest; without recursion."""
    deepest, layer = 0, [data]
    while layer and deepest <= DEEPEST:
        layer = [part for one in layer for part in _parts(one)]
        deepest += 1
    return deepest


def _parts(data: Any) -> Iterator[Any]:
    if isinstance(data, list):
        yield from data
    elif isinstance(data, dict):
        yield from data.values()


def shown(value: Any) -> str:
    """A value in a sentence, shortened; never quadratic in its size."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 4000:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, str | bytes | list | tuple | set | frozenset | dict) and len(value) > 50:
        head = _head(value)
        return f"{head}... ({len(value)} {'characters' if isinstance(value, str) else 'items'})"
    try:
        text = repr(value)
    except (RecursionError, ValueError):
        return f"a {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."


def _head(value: Any) -> str:
    items: Iterable[Any] = value
    if isinstance(value, str | bytes):
        return repr(value[:50])
    return ", ".join(shown(item) for _, item in zip(range(5), items, strict=False))[:LONGEST_SHOWN]
