"""What the judges of the three kinds of tests say of one case."""

from __future__ import annotations

from dataclasses import dataclass

from flexmg.envs.code.sandbox.limits import ExecutionStatus


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one case.

    Args:
        passed: whether the case is passed.
        status: how the run ended; ``ok`` and not passed is a wrong answer.
        detail: a sentence for people. It may name the input and what came out of a public
            case, never the expected output of a hidden one.
        output: what the program wrote or returned, shortened, for reports.
        weak: the case was judged in the candidate's own process, because objects had to
            be passed: a program that sets out to cheat could.
    """

    passed: bool
    status: ExecutionStatus = "ok"
    detail: str = ""
    output: str = ""
    weak: bool = False
