"""What a statement says about which outputs are right: several, in any order, in any case."""

from __future__ import annotations

import re

from flexmg.envs.code.suite import Flag

_ANY_CASE = re.compile(
    r"\b(?:any|either|arbitrary)\s+letter\s+case\b|\bcase[- ]insensitive\b"
    r"|\b(?:print|output|display|write|answer|letter)\b[^.]{0,120}"
    r"\bin (?:any|either|arbitrary) (?:case|register)\b",
    re.IGNORECASE,
)
_ANY_ORDER = re.compile(
    r"\b(?:print|output|return|write)\b[^.]{0,80}\bin (?:any|arbitrary) order\b", re.IGNORECASE
)
# Sentences that speak of the answer. "There are several minima, choose any of them" is about a
# step of the problem, and "any other number" about how an answer is read.
_ANY_VALID = re.compile(
    r"\b(?:if|when|in case)\b[^.]{0,60}\b(?:multiple|several|many|more than one)\b[^.]{0,90}"
    r"\b(?:print|output|return|find|report|accept|construct)\w*\s+any\b"
    r"|\b(?:multiple|several|many) (?:\w+ )?(?:answers|solutions|outputs)\b[^.]{0,60}\bany\b"
    r"|\b(?:print|output|find|return|construct|reconstruct|containing)\s+any\b"
    r"(?!\s+(?:other|letter|case|order)\b)"
    r"|\b(?:print|output)\b[^.]{0,120}\bany suitable\b",
    re.IGNORECASE,
)


def flags_of(statement: str) -> frozenset[Flag]:
    """The flags that a statement's sentences ask for.

    Where several answers are right and in any order, the stored lines in another order are
    only one more of them; but an answer that has a line of another test's would pass. So
    ``any_valid`` takes the place of ``any_order``.
    """
    found: set[Flag] = set()
    if _ANY_CASE.search(statement):
        found.add("any_case")
    if _ANY_VALID.search(statement):
        found.add("any_valid")
    elif _ANY_ORDER.search(statement):
        found.add("any_order")
    return frozenset(found)
