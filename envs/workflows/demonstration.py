"""Scripted correct actions, from the solution that a synthetic problem carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flexmg.errors import InvalidArgument
from flexmg.problem import Problem
from flexmg.transcript import Turn

MISSING_FACTS = "Some facts are missing."
NO_FACTS = "I know no facts."


@dataclass(frozen=True)
class Solution:
    """The solution in a problem's payload: what to do, the worked steps, the formatted answer.

    ``whole`` is a whole reply, where it is not the steps and then the answer.
    """

    plan: tuple[str, ...]
    steps: tuple[str, ...]
    answer: str
    whole: str = ""

    @classmethod
    def of(cls, problem: Problem) -> Solution:
        """The solution of a problem.

        Raises:
            InvalidArgument: the problem carries none.
        """
        try:
            solution = problem.payload["solution"]
        except KeyError:
            raise InvalidArgument(
                f"problem {problem.id!r} carries no solution to demonstrate; "
                "source='synthetic' has some that do"
            ) from None
        return cls(
            tuple(solution["plan"]),
            tuple(solution["steps"]),
            solution["answer"],
            solution.get("reply", ""),
        )

    @property
    def reply(self) -> str:
        """A whole correct reply: by default the steps, then the answer."""
        return self.whole or f"{', '.join(self.steps)}. {self.answer}"

    @property
    def numbered_plan(self) -> str:
        """The plan, one numbered step per line."""
        return numbered(self.plan)


def numbered(lines: Sequence[str]) -> str:
    """``1. ...`` and so on, one per line."""
    return "\n".join(f"{i}. {line}" for i, line in enumerate(lines, start=1))


def own_facts(problem: Problem, statement: str) -> str:
    """The facts of a problem that stand in the statement as one agent sees it."""
    return " ".join(fact for fact in problem.facts if fact in statement) or NO_FACTS


def solve_if_informed(problem: Problem, statement: str, visible: Sequence[Turn]) -> str:
    """The correct reply if every fact stands in what the agent sees, else an admission."""
    seen = "\n".join([statement, *(turn.text for turn in visible)])
    if all(fact in seen for fact in problem.facts):
        return Solution.of(problem).reply
    return MISSING_FACTS
