"""The grader of programs: ``grade(problem, program)``, and the code domain.

A program is run on every test of the problem in a sandbox; what it wrote or returned is
compared out here, where alone the expected output is known.
"""

from __future__ import annotations

import ast
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from flexmg.agents import Profile
from flexmg.envs.code.extraction import extract, parsed
from flexmg.envs.code.judging import asserts, calls, stdin
from flexmg.envs.code.judging.findings import Finding
from flexmg.envs.code.prompts import PROMPTS
from flexmg.envs.code.sandbox import Isolation, Pool, shared_pool
from flexmg.envs.code.sandbox.limits import ExecutionStatus
from flexmg.envs.code.sandbox.pool import Purpose
from flexmg.envs.code.sandbox.probe import require
from flexmg.envs.code.suite import Case, Kind, Suite
from flexmg.envs.code.trial import describe, without_tests
from flexmg.errors import InfraError, InvalidArgument
from flexmg.problem import Problem, Status, Verdict

Score = Literal["all", "fraction"]
MOST_REMEMBERED = 1024  # verdicts
LONGEST_REMEMBERED = 50_000  # characters of a program

JUDGES: dict[Kind, Callable[..., list[Finding]]] = {
    "stdin": stdin.judge,
    "calls": calls.judge,
    "asserts": asserts.judge,
}
STATUS_OF: dict[ExecutionStatus, Status] = {
    "ok": "wrong",
    "runtime_error": "crash",
    "syntax_error": "crash",
    "memory_limit": "crash",
    "output_limit": "crash",
    "time_limit": "timeout",
    "idle_limit": "timeout",
    "infra_error": "infra_error",
}


def grade(
    problem: Problem, program: str, *, sandbox: Isolation = "strict", score: Score = "all"
) -> Verdict:
    """Judge a bare program by all tests of a problem, public and hidden.

    Args:
        problem: carries its tests, see :class:`flexmg.envs.code.suite.Suite`.
        program: Python source.
        sandbox: ``"strict"``, or ``"unsafe"`` to run it without isolation.
        score: ``"all"``: 1 if every test is passed, else 0. ``"fraction"``: the share passed.

    Returns:
        ``correct``; ``wrong``; ``timeout`` (a limit on time); ``crash`` (an error, a limit on
        memory or output, no Python); ``infra_error`` (our own failure, never a 0). The
        detail names the first test that failed, and never what a hidden one expects.

    Raises:
        ProblemError: the problem has no tests, or broken ones.
        SandboxUnavailable: programs cannot be run safely on this machine.
        InvalidArgument: ``program`` is no text, or a setting makes no sense.
    """
    if not isinstance(program, str):
        raise InvalidArgument(f"program must be a text, not {program!r:.80}")
    if score not in ("all", "fraction"):
        raise InvalidArgument(f"score={score!r} is neither 'all' nor 'fraction'")
    suite = Suite.of(problem)
    findings = judge(suite, program, suite.cases, sandbox, fail_fast=score == "all")
    return _verdict(suite, program, findings, score)


def judge(
    suite: Suite, program: str, cases: Sequence[Case], sandbox: Isolation, *, fail_fast: bool
) -> list[Finding]:
    """What comes of each case, up to the first failure if ``fail_fast``."""

    def pool_of(purpose: Purpose) -> Pool:
        return shared_pool(sandbox, purpose)

    return JUDGES[suite.kind](suite, program, pool_of, cases, fail_fast=fail_fast)


def _verdict(suite: Suite, program: str, findings: Sequence[Finding], score: Score) -> Verdict:
    total = len(suite.cases)
    passed = sum(one.passed for one in findings)
    weak = "; weak: judged in the program's own process" if any(f.weak for f in findings) else ""
    broken = [one for one in findings if one.status == "infra_error"]
    if broken:
        return Verdict(0.0, "infra_error", broken[0].detail, program)
    if passed == total:
        return Verdict(1.0, "correct", f"passed {total} of {total} tests{weak}", program)
    place = next(number for number, one in enumerate(findings) if not one.passed)
    kind = "public" if place < len(suite.public) else "hidden"
    first = findings[place]
    detail = (
        f"passed {passed} of {total} tests, stopped at the first failure"
        if score == "all"
        else f"passed {passed} of {total} tests"
    )
    detail += f"; test {place + 1} ({kind}): {first.detail or 'wrong answer'}{weak}"
    share = passed / total if score == "fraction" else 0.0
    return Verdict(share, STATUS_OF[first.status], detail, program)


class CodeDomain:
    """Programming, as workflows and games see it (:class:`flexmg.problem.Domain`).

    Args:
        sandbox: ``"strict"``, or ``"unsafe"`` to run programs without isolation.
        score: ``"all"`` or ``"fraction"``, see :func:`grade`.

    Raises:
        SandboxUnavailable: programs cannot be run safely on this machine.
        InvalidArgument: a setting that makes no sense.
    """

    name = "code"
    answer_format = "End with the whole program in one ```python block."

    def __init__(self, *, sandbox: Isolation = "strict", score: Score = "all") -> None:
        if sandbox not in ("strict", "unsafe"):
            raise InvalidArgument(f"sandbox={sandbox!r} is neither 'strict' nor 'unsafe'")
        if score not in ("all", "fraction"):
            raise InvalidArgument(f"score={score!r} is neither 'all' nor 'fraction'")
        require(sandbox)
        self.sandbox: Isolation = sandbox
        self.score: Score = score
        self._lock = threading.Lock()
        self._verdicts: OrderedDict[tuple[str, str], Verdict] = OrderedDict()

    def grade(self, problem: Problem, reply: str) -> Verdict:
        """Judge the program in a reply."""
        found = extract(reply)
        if found is None:
            return Verdict(0.0, "unparseable", "the reply holds no program")
        verdict = self._remembered(problem, found.program)
        return Verdict(verdict.score, verdict.status, verdict.detail, verdict.answer, found.rule)

    def _remembered(self, problem: Problem, program: str) -> Verdict:
        """The verdict, from memory if the same program was judged a short while ago."""
        key = (problem.payload_hash, program)
        with self._lock:
            if key in self._verdicts:
                self._verdicts.move_to_end(key)
                return self._verdicts[key]
        verdict = grade(problem, program, sandbox=self.sandbox, score=self.score)
        if verdict.status != "infra_error" and len(program) <= LONGEST_REMEMBERED:
            with self._lock:
                self._verdicts[key] = verdict
                if len(self._verdicts) > MOST_REMEMBERED:
                    self._verdicts.popitem(last=False)
        return verdict

    def __reduce__(self) -> tuple[Callable[[], CodeDomain], tuple[()]]:
        # A copy starts with no memory: neither it nor its lock can be copied.
        return partial(CodeDomain, sandbox=self.sandbox, score=self.score), ()

    def answer_key(self, problem: Problem, reply: str) -> str | None:
        """A hash that equal programs share, layout and comments apart; None without one."""
        del problem
        found = extract(reply)
        if found is None:
            return None
        tree = parsed(found.program)
        try:
            text = found.program.strip() if tree is None else ast.dump(tree)
        except RecursionError:
            text = found.program.strip()
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def profile(self, prompts: str, role: str, designed: Profile) -> Profile:
        """What a role is told when the answer is a program."""
        own = PROMPTS.get(prompts, {}).get(role, designed)
        return own if isinstance(own, Profile) else Profile(own, designed.output_format)

    def trial(self, problem: Problem, reply: str) -> str:
        """What comes of running the reply's program on the public tests.

        Raises:
            InfraError: it could not be run, by our own fault.
        """
        found = extract(reply)
        if found is None:
            return "No program was found in the reply."
        suite = Suite.of(problem)
        if not suite.public:
            return without_tests(found.program)
        findings = judge(suite, found.program, suite.public, self.sandbox, fail_fast=False)
        if broken := [one for one in findings if one.status == "infra_error"]:
            raise InfraError(broken[0].detail)
        return describe(suite, findings)
