"""Tests that call a function: how data sets write arguments, values and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flexmg.envs.code.cells import mapping_of, pairs_of, parsed
from flexmg.envs.code.flags import flags_of
from flexmg.envs.code.programs import LIMITS
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.code.values import encode
from flexmg.envs.rows import Row, RowError

# What LeetCode puts before every program. The builtins come again after ``math``, whose
# ``pow`` knows no modulus.
LEETCODE = """\
import collections, copy, datetime, functools, heapq, itertools, math, bisect, string, re
import operator, random, statistics, sys
from typing import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from math import *
from bisect import *
from builtins import *
class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next
class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right
"""


def function_name(row: Row, tests: Any) -> str:
    """The function that the tests call; empty for tests of whole programs.

    It stands in the row's metadata (LiveCodeBench), beside the lists of inputs and outputs
    (APPS, TACO), or in each test (PrimeIntellect).
    """
    places = [mapping_of(row.get("metadata")).get("func_name")]
    if isinstance(tests, Mapping):
        places.append(tests.get("fn_name"))
    elif isinstance(tests, list):
        for one in tests:
            if isinstance(one, Mapping):
                places += [one.get("fn_name"), mapping_of(one.get("metadata")).get("func_name")]
    return next((name for name in places if isinstance(name, str) and name), "")


def function_suite(
    name: str, starter: str, statement: str, *, public: Any = (), hidden: Any = (), texts: bool
) -> Suite:
    """Calls of a function with arguments and values as JSON has them.

    Args:
        name: of the function.
        starter: the code that the solver is given to begin with.
        statement: says whether the items of a value may come in any order.
        public: tests that agents may be told of, in either way of writing them.
        hidden: the others.
        texts: arguments are one JSON text per line, and the value is one; otherwise they are
            data: a list of arguments, and a value.

    Raises:
        RowError: the tests cannot be read.
    """
    in_class = "class Solution" in starter
    read = _from_texts if texts else _from_data
    return Suite(
        "calls",
        public=tuple(read(public)),
        hidden=tuple(read(hidden)),
        entry=f"Solution.{name}" if in_class else name,
        prelude=LEETCODE if in_class else "",
        exact=False,
        flags=flags_of(statement),
        limits=LIMITS,
    )


def asks_for(statement: str, starter: str, name: str) -> str:
    """A statement that says what function to write."""
    return f"{statement}\n\n{starter}" if starter.strip() else f"{statement}\n\nWrite {name}."


def _from_texts(tests: Any) -> list[Case]:
    cases = []
    for given, wanted in pairs_of(tests, texts=False) if tests else ():
        if not isinstance(given, str) or not isinstance(wanted, str):
            raise RowError("holds a call whose input or output is no text", "tests")
        arguments = [parsed(line) for line in given.splitlines() if line.strip()]
        cases.append(_case(arguments, parsed(wanted)))
    return cases


def _from_data(tests: Any) -> list[Case]:
    pairs = pairs_of(tests, texts=False) if tests else []
    # APPS wraps the values of some functions in a list of one each, and takes either for right.
    wrapped = all(isinstance(wanted, list) and len(wanted) == 1 for _, wanted in pairs)
    return [
        _case(given if isinstance(given, list) else [given], wanted[0] if wrapped else wanted)
        for given, wanted in pairs
    ]


def _case(arguments: list[Any], value: Any) -> Case:
    try:
        return Case([encode(one) for one in arguments], encode(value))
    except RecursionError as error:
        raise RowError("holds a value that nests too deep", "tests") from error
