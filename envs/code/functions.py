"""Tests that call a function: how data sets write arguments, values and names."""

from __future__ import annotations

from typing import Any

from flexmg.envs.code.cells import pairs_of, parsed
from flexmg.envs.code.sandbox.limits import Limits
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.code.values import encode

# Contest limits are for compiled languages and quiet machines.
LIMITS = Limits(cpu_s=6.0, memory_mb=1024, output_kb=4096)
# What LeetCode puts before every program.
LEETCODE = """\
import collections, functools, heapq, itertools, math, bisect, string, re, random
from typing import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from math import *
from bisect import *
class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next
class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right
"""


def function_suite(name: str, tests: Any, starter: str, *, testtype_lines: bool) -> Suite:
    """Calls of a function with arguments and values as JSON has them."""
    cases = []
    pairs = pairs_of(tests, texts=False)
    # APPS wraps the values of some functions in a list of one each, and takes either for right.
    wrapped = not testtype_lines and all(
        isinstance(wanted, list) and len(wanted) == 1 for _, wanted in pairs
    )
    for given, wanted in pairs:
        if testtype_lines and isinstance(given, str):
            arguments = [parsed(line) for line in given.splitlines() if line.strip()]
        else:
            arguments = list(given) if isinstance(given, list | tuple) else [given]
        value = parsed(wanted) if testtype_lines and isinstance(wanted, str) else wanted
        value = value[0] if wrapped else value
        cases.append(Case([encode(one) for one in arguments], encode(value)))
    in_class = "class Solution" in starter
    return Suite(
        "calls",
        hidden=tuple(cases),
        entry=f"Solution.{name}" if in_class else name,
        prelude=LEETCODE if in_class else "",
        exact=False,
        limits=LIMITS,
    )
