"""Test code in a sandbox, the candidate in another one, a socket between them."""

from __future__ import annotations

import json
import secrets
import select
import signal
import socket
from contextlib import closing
from dataclasses import replace
from typing import Any

from flexmg.envs.code.sandbox import Execution, Job, Limits, Pool
from flexmg.envs.code.suite import Suite
from flexmg.envs.code.values import Unreadable, read

from .findings import Finding
from .names import Names
from .rewriting import check_function
from .runs import ALONE, PoolOf, is_near_a_limit

# Limits on time hold per call, and for the whole dialogue this many times.
CALLS = 10
# The tests get more than their candidate, so that of two that wait for each other the
# candidate is found first.
PATIENCE = 3


def judge_in_dialogue(
    suite: Suite, program: str, pool_of: PoolOf, tests: str, names: Names
) -> Finding:
    """Run test code that calls the candidate's functions from afar.

    The candidate's process never sees the tests. The verdict comes out of the other
    process, with a word that the candidate cannot know.

    Args:
        suite: prelude, set-up, entry and limits.
        program: the candidate.
        pool_of: pools by purpose.
        tests: the test code.
        names: whose names it uses.
    """
    nonce = secrets.token_hex(16)
    run, referee = _converse(suite, program, pool_of, tests, names, nonce)
    # A pool repeats no half of a dialogue; the whole is repeated here.
    if any(_deserves_another(one, suite.limits) for one in (run, referee) if one is not None):
        with ALONE:
            run, referee = _converse(suite, program, pool_of, tests, names, nonce)
    for one in (run, referee):
        if one is not None and one.status == "infra_error":
            return Finding(False, "infra_error", one.detail)
    if referee is None:
        return _left(run, "the program ended before its tests")
    verdict = _verdict(referee, nonce)
    detail = verdict.get("detail", "")
    match verdict.get("verdict"):
        case "passed":
            return Finding(True)
        case "failed":
            return Finding(False, "ok", f"the test fails: {detail}" if detail else "the test fails")
        case "objects":
            return judge_in_one_process(suite, program, pool_of("candidates"), tests)
        case "idle":
            return Finding(False, "infra_error", "the test never calls the program")
        case "unfit":
            return Finding(False, "infra_error", f"the tests cannot run: {detail}")
        case "gone":
            return _left(run, f"the program left its tests: {detail}")
    # The tests are trusted code: only what the candidate told them brings them down.
    return _left(referee if run.ok else run, "the tests do not end")


def _deserves_another(run: Execution, limits: Limits) -> bool:
    return run.status == "infra_error" or is_near_a_limit(run, limits)


def _left(run: Execution, otherwise: str) -> Finding:
    """The finding on a run that should not have ended as it did."""
    if run.status in ("ok", "runtime_error") and run.signal in (None, signal.SIGPIPE):
        return Finding(False, "runtime_error", run.detail if run.exit_code else otherwise)
    return Finding(False, run.status, run.detail)


def judge_in_one_process(suite: Suite, program: str, pool: Pool, tests: str) -> Finding:
    """Run program and tests together. Weak: a program that sets out to cheat can.

    Args:
        suite: prelude, set-up, entry and limits.
        program: the candidate.
        pool: where.
        tests: the test code.
    """
    nonce = secrets.token_hex(16)
    request = _request(suite, tests=tests, call=check_function(tests), nonce=nonce)
    job = Job(program, driver="colocated", request=request, limits=suite.limits)
    run = pool.run(job)
    if run.ok and run.result != nonce.encode():
        return Finding(False, "runtime_error", "the program ended before its tests", weak=True)
    if run.status == "runtime_error" and run.detail.startswith("AssertionError"):
        return Finding(False, "ok", "the test fails", weak=True)
    return Finding(run.ok, run.status, run.detail, weak=True)


def _converse(
    suite: Suite, program: str, pool_of: PoolOf, tests: str, names: Names, nonce: str
) -> tuple[Execution, Execution | None]:
    """The runs of the candidate and of the tests; the latter None if the former never began."""
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        candidate = pool_of("candidates").submit(
            Job(
                program,
                driver="dialogue",
                request=_request(suite),
                channel=theirs.fileno(),
                limits=suite.limits,
                calls=CALLS,
            )
        )
        # While this end is open here, nobody can learn that the candidate is gone.
        candidate.add_done_callback(lambda _: theirs.close())
        # Wherever the candidate had to queue, the tests do not wait for it: they start only
        # now, and so take no time out of each other's limits.
        select.select([ours], [], [])
        if not ours.recv(1, socket.MSG_PEEK):
            return candidate.result(), None
        referee = pool_of("referees").submit(
            Job(
                tests,
                driver="referee",
                request=_tests_request(suite, tests, names, nonce),
                channel=ours.fileno(),
                limits=_patient(suite.limits),
                calls=CALLS,
            )
        )
        outcome = referee.result()
        ours.close()
        return candidate.result(), outcome


def _patient(limits: Limits) -> Limits:
    return replace(limits, cpu_s=PATIENCE * limits.cpu_s, wall_s=PATIENCE * limits.wall)


def _tests_request(suite: Suite, tests: str, names: Names, nonce: str) -> bytes:
    return json.dumps(
        {
            "before": [*names.imports, suite.prelude],
            "setup": suite.setup,
            "names": sorted(names.candidate),
            "call": check_function(tests),
            "nonce": nonce,
        }
    ).encode()


def _verdict(referee: Execution, nonce: str) -> dict[str, Any]:
    """What the tests' process said; nothing when it did not come to that."""
    try:
        data = read(referee.result.rpartition(b"\n")[2])
    except Unreadable:
        return {}
    return data if isinstance(data, dict) and data.get("nonce") == nonce else {}


def _request(suite: Suite, **rest: str) -> bytes:
    shared = {"prelude": suite.prelude, "setup": suite.setup, "entry": suite.entry}
    return json.dumps({**shared, **rest}).encode()
