"""Returned values: read safely, and compared."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from flexmg.envs.code.drivers.encoding import MOST_DIGITS, Refused, decode, encode
from flexmg.errors import FlexMGError

__all__ = ["Refused", "Unreadable", "decode", "encode", "equal", "read", "shown", "value_of"]

DEEPEST = 200
LONGEST_SHOWN = 200  # characters of a value in a sentence
MOST_BITS_SHOWN = 4000
# Items in any order are matched one by one only where a sort cannot match them.
MOST_MATCHED = 500


class Unreadable(FlexMGError, ValueError):
    """A result that no driver can have written; its program has tampered with it."""


def read(line: bytes) -> Any:
    """The JSON of a result line. Costs no more than in proportion to its length.

    Raises:
        Unreadable: it is none, or nests too deep, or holds numbers beyond all bounds.
    """
    try:
        return json.loads(line, parse_int=_whole, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"a result line cannot be read: {error}"[:LONGEST_SHOWN]) from None


def value_of(data: Any) -> Any:
    """The value in a read result.

    Raises:
        Unreadable: it is none, or nests too deep, or would take long to build.
    """
    try:
        if _depth(data) > DEEPEST:
            raise ValueError(f"it nests deeper than {DEEPEST}")
        return decode(data)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"a result cannot be read: {error}"[:LONGEST_SHOWN]) from None


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
        any_order: the items of the outermost collection in any order, each as often as
            expected.
        any_case: letter case ignored in texts.
        tolerance: absolute and relative, where the expected number is a float.
    """
    by = _Comparison(exact, any_case, tolerance)
    try:
        if any_order and _is_collection(expected) and _is_collection(got):
            return by.equal_in_any_order(list(expected), list(got))
        return by.equal(expected, got)
    except RecursionError:
        return False


@dataclass(frozen=True, slots=True)
class _Comparison:
    exact: bool
    any_case: bool
    tolerance: float | None

    def equal(self, expected: Any, got: Any) -> bool:
        if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
            if self.exact and type(expected) is not type(got):
                return False
            return len(expected) == len(got) and all(map(self.equal, expected, got))
        if isinstance(expected, dict) and isinstance(got, dict):
            return expected.keys() == got.keys() and all(
                self.equal(value, got[key]) for key, value in expected.items()
            )
        if self.any_case and isinstance(expected, str) and isinstance(got, str):
            return expected.casefold() == got.casefold()
        if isinstance(expected, float) and isinstance(got, int | float):
            return self.close(expected, got)
        return bool(expected == got)

    def close(self, expected: float, got: float) -> bool:
        if expected == got or self.tolerance is None:
            return expected == got
        try:
            # An infinite or undefined difference is never within a tolerance.
            return abs(expected - got) <= self.tolerance * max(1.0, min(abs(expected), 1e308))
        except OverflowError:
            return False

    def equal_in_any_order(self, expected: list[Any], got: list[Any]) -> bool:
        if len(expected) != len(got):
            return False
        pairs = zip(
            sorted(expected, key=self.sorting_key), sorted(got, key=self.sorting_key), strict=True
        )
        if all(self.equal(one, other) for one, other in pairs):
            return True
        if len(expected) > MOST_MATCHED:
            return False
        # What equals by tolerance, or whatever its own order, need not sort alike.
        rest = list(got)
        for one in expected:
            place = next((n for n, other in enumerate(rest) if self.equal(one, other)), None)
            if place is None:
                return False
            del rest[place]
        return True

    def sorting_key(self, item: Any) -> tuple[str, Any]:
        """Orders items of different types, too; most equal items have equal keys."""
        if isinstance(item, bool | int | float):
            return "number", item
        if isinstance(item, str):
            return "text", item.casefold() if self.any_case else item
        if isinstance(item, bytes):
            return "bytes", item
        if isinstance(item, list | tuple):
            return "sequence", tuple(map(self.sorting_key, item))
        size = len(item) if isinstance(item, dict | set | frozenset) else 0
        return f"other {type(item).__name__}", size


def shown(value: Any) -> str:
    """A value in a sentence, shortened; costs little for any value."""
    try:
        text = "".join(_pieces(value))
    except RecursionError:
        return f"a {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, int) and value.bit_length() > MOST_BITS_SHOWN:
        yield f"a whole number of {value.bit_length()} bits"
    elif isinstance(value, str | bytes):
        tail = f"... ({len(value)} characters)" if len(value) > LONGEST_SHOWN else ""
        yield repr(value[:LONGEST_SHOWN])[: LONGEST_SHOWN - len(tail)] + tail
    elif type(value) is tuple:
        yield from _listed("(", value, ",)" if len(value) == 1 else ")")
    elif type(value) is list:
        yield from _listed("[", value, "]")
    elif isinstance(value, set | frozenset) and value:
        yield from _listed("{", value, "}")
    elif isinstance(value, deque):
        yield from _listed("deque([", value, "])")
    elif isinstance(value, dict):
        yield from _listed("{", value, "}", value)
    else:
        yield repr(value)


def _listed(
    opening: str, items: Iterable[Any], closing: str, values: dict[Any, Any] | None = None
) -> Iterator[str]:
    yield opening
    length = 0
    for number, item in enumerate(items):
        if length > LONGEST_SHOWN:
            yield "..."
            break
        text = "".join(_pieces(item))
        if values is not None:
            text += ": " + "".join(_pieces(values[item]))
        yield (", " if number else "") + text
        length += len(text) + 2
    yield closing


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS + 1:
        raise ValueError(f"a whole number of {len(digits)} digits")
    return int(digits)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _is_collection(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset)


def _depth(data: Any) -> int:
    """How deep JSON data nest; without recursion."""
    deepest, layer = 0, [data]
    while layer and deepest <= DEEPEST:
        layer = [part for one in layer for part in _parts(one)]
        deepest += 1
    return deepest


def _parts(data: Any) -> Iterable[Any]:
    if isinstance(data, list):
        return data
    return data.values() if isinstance(data, dict) else ()
