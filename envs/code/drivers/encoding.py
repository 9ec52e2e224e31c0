"""Values as JSON and back: exact builtin types only, by tags where JSON has no word.

Used on both sides. In the sandbox it writes what a program returned; outside it reads that
again, which is safe for any text: nothing is ever unpickled, evaluated or looked up by name,
and reading costs no more than in proportion to the length of the text.
A subclass of a builtin type (an ``int`` that says it equals everything) is not written as
that type but as refused: what made it a subclass would be lost, or be believed.
"""

from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Hashable, Iterable
from typing import Any

# JSON's own types stand for themselves; everything else is an object with one key.
TUPLE, SET, FROZENSET, DEQUE = "tuple", "set", "frozenset", "deque"
DICT, BYTES = "dict", "bytes"
COMPLEX, FLOAT, INT, RANGE, REFUSED = "complex", "float", "int", "range", "refused"
_SEQUENCES: dict[str, Any] = {TUPLE: tuple, SET: set, FROZENSET: frozenset, DEQUE: deque}
_TAGS: dict[Any, str] = {kind: tag for tag, kind in _SEQUENCES.items()}
# Python's own kinds of dict count as dicts; their equality is a dict's but for details.
_DICTS = (dict, Counter, OrderedDict, defaultdict)
# Longer whole numbers travel in base 16: decimal digits take time that grows with the square.
MOST_DIGITS = 4000
_LARGEST_DECIMAL = 10**MOST_DIGITS
# A range is short to write and may be endless to read.
LONGEST_RANGE = 1_000_000
LARGEST_IN_RANGE = 1 << 64
# Whole numbers that agree modulo 2**61 - 1 share a hash; a set of them takes time that grows
# with the square.
MOST_OF_ONE_HASH = 50
LONGEST_NAME = 80


class Refused:
    """Stands for a value that is no builtin value. Equal to nothing, itself included."""

    def __init__(self, name: str) -> None:
        self.name = name[:LONGEST_NAME]

    def __eq__(self, other: object) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<an object of class {self.name}>"


def encode(value: Any) -> Any:
    """A value as JSON-serialisable data.

    Raises:
        RecursionError: it nests too deep, or contains itself.
    """
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -_LARGEST_DECIMAL < value < _LARGEST_DECIMAL else {INT: hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {FLOAT: repr(value)}
    if kind is list:
        return [encode(item) for item in value]
    if kind in _TAGS:
        return {_TAGS[kind]: [encode(item) for item in value]}
    if kind in _DICTS:
        return {DICT: [[encode(key), encode(item)] for key, item in value.items()]}
    if kind is bytes:
        return {BYTES: value.hex()}
    if kind is complex:
        return {COMPLEX: [encode(value.real), encode(value.imag)]}
    if kind is range:
        return {RANGE: [encode(part) for part in (value.start, value.stop, value.step)]}
    return {REFUSED: str(getattr(kind, "__name__", "?"))[:LONGEST_NAME]}


def decode(data: Any) -> Any:
    """The value that :func:`encode` wrote; a :class:`Refused` for what it refused.

    Raises:
        ValueError: the data were not written by ``encode``, or are made to take long to read.
        RecursionError: they nest too deep.
    """
    if data is None or isinstance(data, bool | int | float | str):
        return data
    if isinstance(data, list):
        return [decode(item) for item in data]
    if isinstance(data, dict) and len(data) == 1:
        ((tag, body),) = data.items()
        try:
            return _decode_tagged(tag, body)
        except (TypeError, OverflowError) as error:
            raise ValueError(f"a value of type {tag!r:.40} makes no sense: {error}") from None
    raise ValueError("not an encoded value")


def spread(items: Iterable[Hashable]) -> list[Any]:
    """The items as a list, which a set or dict can hold in reasonable time.

    Raises:
        ValueError: too many of them share a hash; no honest program returns such.
        TypeError: one of them has no hash.
    """
    found = list(items)
    if len(found) > MOST_OF_ONE_HASH:
        of_hash: dict[int, list[Any]] = {}
        for item in found:
            same = of_hash.setdefault(hash(item), [])
            if item not in same:
                same.append(item)
            if len(same) > MOST_OF_ONE_HASH:
                raise ValueError("too many different items share a hash")
    return found


def _decode_tagged(tag: str, body: Any) -> Any:
    if tag in (SET, FROZENSET) and isinstance(body, list):
        return _SEQUENCES[tag](spread(decode(item) for item in body))
    if tag in _SEQUENCES and isinstance(body, list):
        return _SEQUENCES[tag](decode(item) for item in body)
    if tag == DICT and isinstance(body, list):
        keys = spread(decode(key) for key, _ in body)
        return dict(zip(keys, [decode(item) for _, item in body], strict=True))
    if tag == BYTES:
        return bytes.fromhex(body)
    if tag == COMPLEX:
        real, imaginary = map(decode, body)
        return complex(real, imaginary)
    if tag == FLOAT and body in ("nan", "inf", "-inf"):
        return float(body)
    if tag == INT:
        return int(body, 16)
    if tag == RANGE:
        parts = [decode(part) for part in body]
        found = range(*parts)
        if len(found) > LONGEST_RANGE or max(map(abs, parts)) >= LARGEST_IN_RANGE:
            raise ValueError("the range is too long")
        return found
    if tag == REFUSED:
        return Refused(str(body))
    raise ValueError(f"unknown tag {tag!r:.40}")


def to_json(value: Any) -> str:
    """One line of ASCII. Raises RecursionError when the value nests too deep."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
