"""The judge of assert tests: they are never run where the candidate could see them.

Three ways, tried in this order:

1. Plain asserts are taken apart (:mod:`.rewriting`): the candidate's process evaluates
   ``f(2)``, and whether that is 4 is looked at here.
2. Tests that loop or compute run in a second sandbox (:mod:`.dialogue`), where the candidate's
   functions are proxies that send their calls.
3. Tests that pass objects which cannot be sent run beside the candidate, in its own process. That
   is weak, and counted.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from flexmg.envs.code.sandbox import Execution
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.code.values import Refused, Unreadable, shown, value_of
from flexmg.errors import ProblemError

from .calls import Answer, run_calls, unanswered
from .conditions import evaluate, placeholder
from .dialogue import judge_in_dialogue
from .findings import Finding
from .names import Names, names_of
from .rewriting import Check, check_function, checks
from .runs import PoolOf

LONGEST_KEPT = 10_000  # characters of test code of which the reading is remembered


def judge(
    suite: Suite, program: str, pool_of: PoolOf, cases: Sequence[Case], *, fail_fast: bool
) -> list[Finding]:
    """Judge each case (a piece of test code).

    Args:
        suite: prelude, set-up, entry and limits.
        program: the candidate.
        pool_of: pools by purpose.
        cases: which of the suite's cases.
        fail_fast: stop after the first case that is not passed.

    Raises:
        ProblemError: prelude, set-up or tests are no Python, or never call the program.
    """
    read = [_read(str(case.input), suite.entry, suite.prelude, suite.setup) for case in cases]
    if cases and not any(map(_calls_program, cases, read)):
        raise ProblemError("the tests of the problem never call the program")
    together = _by_expressions(suite, program, pool_of, [found for _, found in read if found])
    findings = []
    for case, (names, apart) in zip(cases, read, strict=True):
        if apart:
            findings.append(next(together))
        else:
            findings.append(judge_in_dialogue(suite, program, pool_of, case.input, names))
        if fail_fast and not findings[-1].passed:
            break
    return findings


def _read(
    tests: str, entry: str, prelude: str, setup: str
) -> tuple[Names, tuple[Check, ...] | None]:
    reading = _kept if len(tests) + len(prelude) <= LONGEST_KEPT else _kept.__wrapped__
    return reading(tests, entry, prelude, setup)


@functools.lru_cache(maxsize=4096)
def _kept(
    tests: str, entry: str, prelude: str, setup: str
) -> tuple[Names, tuple[Check, ...] | None]:
    names = names_of(tests, entry=entry, prelude=prelude, setup=setup)
    return names, checks(tests, entry, names)


def _calls_program(case: Case, read: tuple[Names, tuple[Check, ...] | None]) -> bool:
    return bool(read[0].candidate or read[0].from_setup or check_function(case.input))


def _by_expressions(
    suite: Suite, program: str, pool_of: PoolOf, cases: Sequence[tuple[Check, ...]]
) -> Iterator[Finding]:
    """Findings on cases that were taken apart, from one run of all their expressions."""
    groups = [[call for one in case for call in one.calls] for case in cases]
    for case, (given, execution) in zip(
        cases, run_calls(suite, program, pool_of, groups), strict=True
    ):
        coming = iter(given)
        found = [_check(one, [next(coming) for _ in one.calls], execution) for one in case]
        yield next((one for one in found if not one.passed), found[-1])


def _check(check: Check, given: Sequence[Answer | None], execution: Execution) -> Finding:
    values: dict[str, Any] = {}
    for call, answer in zip(check.calls, given, strict=True):
        if answer is None:
            return unanswered(execution)
        kind, data = answer
        if kind == "error":
            return Finding(False, "runtime_error", data)
        if "expression" in call:
            try:
                values[placeholder(len(values))] = value_of(data)
            except Unreadable as error:
                return Finding(False, "runtime_error", str(error))
    if check.condition is None:
        return Finding(True)
    output = ", ".join(map(shown, values.values()))
    if refused := [one for one in values.values() if isinstance(one, Refused)]:
        return Finding(False, "ok", f"{refused[0]!r} is no builtin value", output)
    try:
        holds = bool(evaluate(check.condition, values))
    except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
        return Finding(False, "ok", f"the test fails: {type(error).__name__}", output)
    return Finding(holds, "ok", "" if holds else "another value is expected", output)
