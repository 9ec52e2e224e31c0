"""The judge of assert tests: they are never run where the candidate could see them.

Three ways, tried in this order:

1. Plain asserts are taken apart (:mod:`.rewriting`): the candidate's process evaluates
   ``f(2)``, and whether that is 4 is looked at here.
2. Tests that loop or compute run in a second sandbox, where the candidate's functions are
   proxies that send their calls (:mod:`flexmg.envs.code.drivers.referee`).
3. Tests that pass objects which cannot be sent run beside the candidate, in its own process. That
   is weak, and counted.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flexmg.envs.code.sandbox import Execution, Job
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.code.values import Refused, Unreadable, read, shown, value_of

from .calls import Answer, answers, run_calls, unanswered
from .findings import Finding
from .rewriting import Check, candidate_names, check_function, checks, evaluate
from .runs import PoolOf

MOST_CALLS = 1000  # of one dialogue, for its limits on time
_pairing = threading.Lock()


def judge(
    suite: Suite, program: str, pool_of: PoolOf, cases: Sequence[Case], *, fail_fast: bool
) -> list[Finding]:
    """Judge each case (a piece of test code).

    Args:
        suite: set-up, entry and limits.
        program: the candidate.
        pool_of: pools by purpose.
        cases: which of the suite's cases.
        fail_fast: stop after the first case that is not passed.
    """
    apart = [checks(case.input, suite.entry) for case in cases]
    together = _by_expressions(suite, program, pool_of, [one for one in apart if one is not None])
    findings = []
    for case, known in zip(cases, apart, strict=True):
        if known is not None:
            findings.append(next(together))
        else:
            findings.append(_by_dialogue(suite, program, pool_of, case))
        if fail_fast and not findings[-1].passed:
            break
    return findings


def _by_expressions(
    suite: Suite, program: str, pool_of: PoolOf, cases: Sequence[tuple[Check, ...]]
) -> Any:
    """Findings on cases that were taken apart, from one run of all their expressions."""
    if not cases:
        return
    calls = [{"expression": source} for case in cases for one in case for source in one.expressions]
    execution = run_calls(suite, program, pool_of, calls)
    coming = answers(execution, len(calls))
    for case in cases:
        found = [_check(one, [next(coming) for _ in one.expressions], execution) for one in case]
        yield next((one for one in found if not one.passed), found[-1])


def _check(check: Check, given: Sequence[Answer | None], execution: Execution) -> Finding:
    values: dict[str, Any] = {}
    for number, answer in enumerate(given):
        if answer is None:
            return unanswered(execution)
        kind, data = answer
        if kind == "error":
            return Finding(False, "runtime_error", data)
        try:
            values[f"_{number}"] = value_of(data)
        except Unreadable as error:
            return Finding(False, "runtime_error", str(error))
    output = ", ".join(map(shown, values.values()))
    if refused := [one for one in values.values() if isinstance(one, Refused)]:
        return Finding(False, "ok", f"{refused[0]!r} is no builtin value", output)
    try:
        holds = bool(evaluate(check.condition, values))
    except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
        return Finding(False, "ok", f"the test fails: {type(error).__name__}", output)
    return Finding(holds, "ok", "" if holds else "another value is expected", output)


def _by_dialogue(suite: Suite, program: str, pool_of: PoolOf, case: Case) -> Finding:
    """Test code in a sandbox, candidate in another, a socket between them."""
    nonce = secrets.token_hex(16)
    ours, theirs = socket.socketpair()
    request = {
        "names": candidate_names(case.input, suite.entry),
        "entry": suite.entry,
        "call": check_function(case.input),
        "nonce": nonce,
    }
    patient = replace(suite.limits, wall_s=10 * suite.limits.wall)
    tests_job = Job(
        case.input,
        driver="referee",
        request=json.dumps(request).encode(),
        channel=ours.fileno(),
        limits=replace(patient, cpu_s=10 * suite.limits.cpu_s),
    )
    candidate_job = Job(
        program,
        driver="dialogue",
        request=_request(suite, entry=suite.entry),
        channel=theirs.fileno(),
        limits=patient,
        calls=MOST_CALLS,
    )
    # One order in both queues: else two pairs could hold one worker each and wait for ever.
    with _pairing:
        referee = pool_of("referees").submit(tests_job)
        referee.add_done_callback(lambda _: ours.close())
        answer = pool_of("candidates").submit(candidate_job)
        # As long as this end is open here, nobody learns that the candidate is gone.
        answer.add_done_callback(lambda _: theirs.close())
    tests, run = referee.result(), answer.result()
    for one in (tests, run):
        if one.status == "infra_error":
            return Finding(False, "infra_error", one.detail)
    verdict = _verdict(tests, nonce)
    if verdict is None:
        # The tests are trusted code: only a partner that hangs or floods them brings them down.
        guilty = tests if run.ok else run
        return Finding(False, guilty.status, guilty.detail)
    if verdict["verdict"] == "objects":
        return _in_one_process(suite, program, pool_of, case)
    if verdict["verdict"] == "passed":
        return Finding(True)
    if verdict["verdict"] == "gone":
        status = "runtime_error" if run.ok else run.status
        return Finding(False, status, run.detail or "the program ended in the middle of its tests")
    return Finding(False, "ok", f"the test fails: {verdict['detail']}")


def _verdict(tests: Execution, nonce: str) -> dict[str, str] | None:
    """What the referee wrote; None when it wrote nothing of the kind."""
    try:
        data = read(tests.result)
    except Unreadable:
        return None
    return data if isinstance(data, dict) and data.get("nonce") == nonce else None


def _in_one_process(suite: Suite, program: str, pool_of: PoolOf, case: Case) -> Finding:
    nonce = secrets.token_hex(16)
    request = _request(
        suite,
        tests=case.input,
        call=check_function(case.input),
        entry=suite.entry,
        nonce=nonce,
    )
    job = Job(program, driver="colocated", request=request, limits=suite.limits)
    run = pool_of("candidates").run(job)
    passed = run.ok and run.result == nonce.encode()
    if run.ok and not passed:
        return Finding(False, "runtime_error", "the program ended before its tests", weak=True)
    failed = run.status == "runtime_error" and "AssertionError" in run.detail
    return Finding(passed, "ok" if failed else run.status, run.detail, weak=True)


def _request(suite: Suite, **rest: str) -> bytes:
    return json.dumps({"prelude": suite.prelude, "setup": suite.setup, **rest}).encode()
