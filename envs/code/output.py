"""Standard output against what was expected."""

from __future__ import annotations

import math
import re
from collections import Counter

# A decimal in ASCII digits; not nan, inf, 4_2 or other scripts' digits, and no integer.
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]{1,4})?\Z")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?\Z")
_ZERO = re.compile(r"[+-]?(?:0+\.?0*|\.0+)(?:[eE][+-]?[0-9]{1,4})?\Z")
LONGEST_NUMBER = 400  # characters; a longer token is a text


def difference(
    expected: str,
    output: bytes,
    *,
    tolerance: float = 1e-6,
    any_order: bool = False,
    any_case: bool = False,
) -> str:
    """What is wrong with an output, in a few words that do not tell the right one.

    White space separates tokens and does not count otherwise; the numbers of tokens must be
    equal. Tokens must be the same text, or, where the expected one is a decimal, close
    numbers. Whole numbers are never compared as floats, except that a zero has no sign.

    Args:
        expected: the right output.
        output: what the program wrote.
        tolerance: absolute and relative.
        any_order: lines may come in any order.
        any_case: letter case does not count.

    Returns:
        Empty when nothing is wrong.
    """
    try:
        text = output.decode("utf-8")
    except UnicodeDecodeError:
        return "the output is not UTF-8"
    if any_case:
        expected, text = expected.casefold(), text.casefold()
    if any_order:
        lines, written = _lines(expected), _lines(text)
        if len(lines) != len(written):
            return f"{len(written)} lines instead of {len(lines)}"
        lacking, extra = Counter(lines) - Counter(written), Counter(written) - Counter(lines)
        # Numbers may differ in their last digits: what is left is compared in one order.
        pairs = zip(
            sorted(lacking.elements(), key=_order),
            sorted(extra.elements(), key=_order),
            strict=True,
        )
        same = all(len(one) == len(two) and not _wrong(one, two, tolerance) for one, two in pairs)
        return "" if same else "the lines are not the expected ones in any order"
    tokens, got = expected.split(), text.split()
    if len(tokens) != len(got):
        return f"{len(got)} tokens instead of {len(tokens)}" if got else "no output"
    place = _wrong(tokens, got, tolerance)
    return f"token {place} is wrong" if place else ""


def _lines(text: str) -> list[tuple[str, ...]]:
    return [tuple(tokens) for line in text.splitlines() if (tokens := line.split())]


def _order(line: tuple[str, ...]) -> list[tuple[int, float, str]]:
    """Sorts lines so that close numbers stand in the same places of two sorted lists."""
    return [
        (0, float(token), "")
        if len(token) <= LONGEST_NUMBER and _NUMBER.match(token)
        else (1, 0.0, token)
        for token in line
    ]


def _wrong(
    expected: list[str] | tuple[str, ...], got: list[str] | tuple[str, ...], tolerance: float
) -> int:
    """Number of the first wrong token, from 1; 0 when all are right."""
    for place, (right, token) in enumerate(zip(expected, got, strict=True), start=1):
        if right != token and not _close(right, token, tolerance):
            return place
    return 0


def _close(right: str, token: str, tolerance: float) -> bool:
    if max(len(right), len(token)) > LONGEST_NUMBER or not _NUMBER.match(token):
        return False
    if not _DECIMAL.match(right):
        # -0.0 and 0.0 are ways to write 0; any other whole number is exact.
        return right in ("0", "-0", "+0") and _ZERO.match(token) is not None
    one, other = float(right), float(token)
    if not (math.isfinite(one) and math.isfinite(other)):
        return False
    return abs(one - other) <= tolerance * max(1.0, abs(one))
