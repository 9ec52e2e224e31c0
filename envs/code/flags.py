"""What a statement says about which outputs are right: several, in any order, in any case."""

from __future__ import annotations

import re

from flexmg.envs.code.suite import Flag

_ANY_CASE = re.compile(
    r"\b(?:any|either|arbitrary)\s+(?:\w+\s+)?(?:letter\s+)?(?:case|register)\b"
    r"|\bcase[- ]insensitive\b|\bin any case\b|\b(?:upper|lower)\s*(?:case)?\s*(?:or|and)\s+"
    r"(?:lower|upper)[- ]?case\b.{0,40}\bany\b",
    re.IGNORECASE,
)
_ANY_ORDER = re.compile(
    r"\b(?:print|output|return|write)\b[^.]{0,80}\bin (?:any|arbitrary) order\b", re.IGNORECASE
)
_ANY_VALID = re.compile(
    r"\b(?:if|when|in case)\b[^.]{0,60}\b(?:multiple|several|many|more than one)\b[^.]{0,40}"
    r"\b(?:answers?|solutions?|ways?|outputs?|arrays?|sequences?|permutations?|strings?|options?)\b"
    r"[^.]{0,80}\bany\b"
    r"|\b(?:print|output|find|return)\s+any\b(?!\s+(?:letter|case|order))"
    r"|\bany (?:of them|valid|correct|suitable|such|possible)\b",
    re.IGNORECASE,
)


def flags_of(statement: str) -> frozenset[Flag]:
    """The flags that a statement's sentences ask for."""
    found: list[Flag] = []
    if _ANY_CASE.search(statement):
        found.append("any_case")
    if _ANY_ORDER.search(statement):
        found.append("any_order")
    if _ANY_VALID.search(statement):
        found.append("any_valid")
    return frozenset(found)
