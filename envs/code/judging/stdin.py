"""The judge of whole programs: texts in, texts out."""

from __future__ import annotations

from collections.abc import Sequence

from flexmg.envs.code.checkers import accepted
from flexmg.envs.code.output import difference
from flexmg.envs.code.sandbox import Execution, Job
from flexmg.envs.code.suite import Case, Suite

from .findings import Finding
from .runs import PoolOf, run_cases

LONGEST_SHOWN = 200  # characters of output in a finding


def judge(
    suite: Suite, program: str, pool_of: PoolOf, cases: Sequence[Case], *, fail_fast: bool
) -> list[Finding]:
    """One run per case; its output is compared here, in the parent.

    Args:
        suite: how outputs are compared.
        program: the candidate.
        pool_of: pools by purpose.
        cases: which of the suite's cases.
        fail_fast: stop after the first case that is not passed.
    """
    source = f"{suite.prelude}\n{program}" if suite.prelude else program
    jobs = [Job(source, case.input, limits=suite.limits) for case in cases]
    findings: dict[int, Finding] = {}

    def enough(execution: Execution) -> bool:
        number = len(findings)
        findings[number] = _finding(suite, cases[number], execution, pool_of)
        return fail_fast and not findings[number].passed

    executions = run_cases(pool_of("candidates"), jobs, enough=enough if fail_fast else None)
    for number in range(len(findings), len(executions)):
        findings[number] = _finding(suite, cases[number], executions[number], pool_of)
    return list(findings.values())


def _finding(suite: Suite, case: Case, execution: Execution, pool_of: PoolOf) -> Finding:
    output = execution.stdout[: 4 * LONGEST_SHOWN].decode(errors="replace")[:LONGEST_SHOWN]
    if not execution.ok:
        return Finding(False, execution.status, execution.detail, output)
    if suite.checker:
        passed, detail = accepted(
            suite.checker, case.input, execution.stdout, str(case.output), pool_of("referees")
        )
        if passed is None:
            return Finding(False, "infra_error", detail, output)
        return Finding(passed, "ok", detail, output)
    wrong = difference(
        str(case.output),
        execution.stdout,
        tolerance=suite.tolerance,
        any_order="any_order" in suite.flags,
        any_case="any_case" in suite.flags,
    )
    if wrong and "any_valid" in suite.flags:
        wrong += "; the problem accepts any valid answer and has no checker to tell"
    return Finding(not wrong, "ok", wrong, output)
