"""Tests of whole programs: texts in, texts out, and how long a program may take."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from flexmg.envs.code.flags import flags_of
from flexmg.envs.code.sandbox.limits import Limits
from flexmg.envs.code.suite import Case, Suite

# Contest limits are for compiled languages and quiet machines.
LIMITS = Limits(cpu_s=6.0, memory_mb=1024, output_kb=4096)
# MBPP and HumanEval state no limit. The slowest reference of theirs (MBPP 123) takes 5 s of CPU on
# a quiet machine, and up to twice that beside another program on the same core.
UNTIMED_LIMITS = replace(LIMITS, cpu_s=15.0)
LONGEST_LIMIT = 60.0  # seconds; a row that gives its program more is not believed

Pairs = Iterable[tuple[Any, Any]]


def program_suite(
    statement: str,
    *,
    public: Pairs = (),
    hidden: Pairs = (),
    checker: str = "",
    limits: Limits = LIMITS,
) -> Suite:
    """Programs that read standard input and write standard output.

    Args:
        statement: says whether several outputs are right.
        public: (input, output) of the tests that agents may be told of.
        hidden: those of the others.
        checker: see :class:`flexmg.envs.code.suite.Suite`.
        limits: of each run.
    """
    return Suite(
        "stdin",
        public=tuple(Case(given, wanted) for given, wanted in public),
        hidden=tuple(Case(given, wanted) for given, wanted in hidden),
        flags=flags_of(statement),
        checker=checker,
        limits=limits,
    )


def limits_of(seconds: Any) -> Limits:
    """The usual limits, or a contest's own time limit where that is longer."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return LIMITS
    if not math.isfinite(seconds) or seconds > LONGEST_LIMIT:
        return LIMITS
    return replace(LIMITS, cpu_s=max(LIMITS.cpu_s, float(seconds)))
