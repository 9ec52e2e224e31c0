"""The judge of functions: values in, values out. One run makes all calls of a problem."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from flexmg.envs.code.drivers.calls import LONGEST_FAILURE
from flexmg.envs.code.sandbox import Execution, Job
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.code.values import Unreadable, decode, equal, read, shown, value_of
from flexmg.errors import ProblemError

from .findings import Finding
from .runs import PoolOf, once_more

Call = dict[str, Any]
Answer = tuple[str, Any]  # ("value", encoded) or ("error", text)


def judge(
    suite: Suite, program: str, pool_of: PoolOf, cases: Sequence[Case], *, fail_fast: bool
) -> list[Finding]:
    """Call the entry function with each case's arguments and compare what comes back.

    Args:
        suite: what to call, and how values are compared.
        program: the candidate.
        pool_of: pools by purpose.
        cases: which of the suite's cases.
        fail_fast: stop after the first case that is not passed.

    Raises:
        ProblemError: a case's expected value is not an encoded one.
    """
    expected = [_expected(case) for case in cases]
    groups = [[{"args": case.input}] for case in cases]
    findings = []
    for value, (given, execution) in zip(
        expected, run_calls(suite, program, pool_of, groups), strict=True
    ):
        findings.append(_finding(suite, value, given[0], execution))
        if fail_fast and not findings[-1].passed:
            break
    return findings


def run_calls(
    suite: Suite, program: str, pool_of: PoolOf, groups: Sequence[Sequence[Call]]
) -> Iterator[tuple[list[Answer | None], Execution]]:
    """Run a program and have it make calls (:mod:`flexmg.envs.code.drivers.calls`).

    One run makes them all, unless the program ends in the middle; then the next group begins
    a run of its own. Lazy: what is not asked for is not run again.

    Args:
        suite: prelude, set-up, entry and limits.
        program: the candidate.
        pool_of: pools by purpose.
        groups: the calls of each case.

    Yields:
        per group what came of its calls, None for one that was never answered, and the run
        that they were part of.
    """
    start = 0
    while start < len(groups):
        rest = groups[start:]
        execution = _run(suite, program, pool_of, [call for group in rest for call in group])
        lines = execution.result.split(b"\n")[:-1]
        loaded, place = bool(lines), 1
        for number, group in enumerate(rest):
            given = [_answer(line) for line in lines[place : place + len(group)]]
            place += len(group)
            complete = len(given) == len(group)
            if not complete and execution.status == "output_limit" and number > 0:
                # All results share one file; these may fit into a fresh one.
                break
            start += 1
            yield [*given, *[None] * (len(group) - len(given))], execution
            if not complete and loaded and execution.status != "infra_error":
                break


def unanswered(execution: Execution) -> Finding:
    """The finding on a call that was never answered."""
    if execution.ok:
        return Finding(False, "runtime_error", "the program ended before the call")
    return Finding(False, execution.status, execution.detail)


def _run(suite: Suite, program: str, pool_of: PoolOf, calls: Sequence[Call]) -> Execution:
    request = {
        "prelude": suite.prelude,
        "setup": suite.setup,
        "entry": suite.entry,
        "calls": calls,
    }
    job = Job(
        program,
        driver="calls",
        request=json.dumps(request).encode(),
        limits=suite.limits,
        # Loading the program counts as one.
        calls=len(calls) + 1,
    )
    pool = pool_of("candidates")
    return once_more(pool, job, pool.run(job))


def _answer(line: bytes) -> Answer:
    try:
        match read(line):
            case {"value": data}:
                return "value", data
            case {"error": str(text)}:
                return "error", text[:LONGEST_FAILURE]
    except Unreadable as error:
        return "error", str(error)
    return "error", "the result cannot be read"


def _expected(case: Case) -> Any:
    try:
        return decode(case.output)
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"an expected value is not encoded as it must be: {error}") from error


def _finding(suite: Suite, expected: Any, answer: Answer | None, execution: Execution) -> Finding:
    if answer is None:
        return unanswered(execution)
    kind, data = answer
    if kind == "error":
        return Finding(False, "runtime_error", data)
    try:
        got = value_of(data)
    except Unreadable as error:
        return Finding(False, "runtime_error", str(error))
    right = equal(
        expected,
        got,
        exact=suite.exact,
        any_order="any_order" in suite.flags,
        any_case="any_case" in suite.flags,
        tolerance=None if suite.exact else suite.tolerance,
    )
    return Finding(right, "ok", "" if right else "another value is expected", shown(got))
