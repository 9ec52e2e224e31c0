"""The judge of functions: values in, values out. One run makes all calls of a problem."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from flexmg.envs.code.sandbox import Execution, Job
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.code.values import Unreadable, decode, equal, read, shown, value_of

from .findings import Finding
from .runs import PoolOf, once_more

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
    """
    calls = [{"entry": suite.entry, "args": case.input} for case in cases]
    execution = run_calls(suite, program, pool_of, calls)
    findings = []
    for case, answer in zip(cases, answers(execution, len(cases)), strict=True):
        findings.append(_finding(suite, case, answer, execution))
        if fail_fast and not findings[-1].passed:
            break
    return findings


def run_calls(
    suite: Suite, program: str, pool_of: PoolOf, calls: Sequence[dict[str, Any]]
) -> Execution:
    """Run a program once and have it make calls (:mod:`flexmg.envs.code.drivers.calls`)."""
    request = {"prelude": suite.prelude, "setup": suite.setup, "calls": list(calls)}
    job = Job(
        program,
        driver="calls",
        request=json.dumps(request).encode(),
        limits=suite.limits,
        calls=len(calls),
    )
    pool = pool_of("candidates")
    return once_more(pool, job, pool.run(job))


def answers(execution: Execution, count: int) -> Iterator[Answer | None]:
    """What came of each call, in order; None for one that was never answered."""
    lines = execution.result.split(b"\n")[:-1]
    for number in range(count):
        if number >= len(lines):
            yield None
            continue
        try:
            data = read(lines[number])
            if isinstance(data, dict) and "value" in data:
                yield "value", data["value"]
            elif isinstance(data, dict) and isinstance(data.get("error"), str):
                yield "error", data["error"]
            else:
                yield "error", "the result cannot be read"
        except Unreadable as error:
            yield "error", str(error)


def unanswered(execution: Execution) -> Finding:
    """The finding on a call that was never answered."""
    if execution.ok:
        return Finding(False, "runtime_error", "the program ended before the call")
    return Finding(False, execution.status, execution.detail)


def _finding(suite: Suite, case: Case, answer: Answer | None, execution: Execution) -> Finding:
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
        decode(case.output),
        got,
        exact=suite.exact,
        any_order="any_order" in suite.flags,
        any_case="any_case" in suite.flags,
        tolerance=suite.tolerance if not suite.exact else None,
    )
    return Finding(right, "ok", "" if right else "another value is expected", shown(got))
