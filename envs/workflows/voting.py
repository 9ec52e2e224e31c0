"""voting: n voters on one prompt, blind to each other; an aggregator names the best."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from flexmg.agents import Profile, role_of
from flexmg.problem import Domain, Problem
from flexmg.transcript import Turn
from flexmg.workflow import (
    Call,
    Finish,
    History,
    Message,
    Parsed,
    Round,
    Workflow,
    positive,
    problem_text,
    user,
)

from .chain import ANSWER
from .demonstration import Solution

_WHOLE = r"(?<![\d.,+−-])(\d+)(?![.,]?\d)"
_BEST = re.compile(
    r"\bbest\b(?:\s+(?:one|candidate|is))*[\s:*_]*(?:is\s+)?(?:candidate\s*)?(?:number\s*)?[#*_]*"
    + _WHOLE,
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\boxed\s*\{\s*(?:candidate\s*)?" + _WHOLE + r"\s*\}", re.IGNORECASE)
_NUMBER = re.compile(_WHOLE)


class Voting(Workflow):
    """Voters in parallel (D among them 0), then an aggregator that names an index.

    The named voter's reply is graded. When the aggregator names no candidate, the first
    one that holds an answer counts, flagged.

    Local truth: voter, its own answer; aggregator, whether it picked a right candidate
    when there was one (without one, the team's outcome).

    Args:
        n: number of voters.
        **options: those of :class:`flexmg.workflow.Workflow`.
    """

    name = "voting"
    roles = {
        "voter": Profile("You are a voter. Solve the problem by yourself.", ANSWER),
        "aggregator": Profile(
            "You are the aggregator. Decide which of the numbered candidates is right.",
            "End with the number of the best candidate, as in: Best: 2",
        ),
    }
    limits = {"voter": 1024, "aggregator": 512}

    def __init__(self, domain: Domain, *, n: int = 3, **options: Any) -> None:
        self.n = positive("n", n)
        super().__init__(domain, **options)

    def team(self) -> Sequence[str]:
        """The voters, then the aggregator."""
        return [*(f"voter_{i}" for i in range(self.n)), "aggregator_0"]

    def plan(self, history: History) -> Round | Finish:
        """One round of all, then the named candidate's reply."""
        voters = self.agents[:-1]
        if not history.turns:
            return Round((*map(Call, voters), Call("aggregator_0", voters)))
        named = history.last("aggregator_0").value
        candidates = history.of_role("voter")
        if named is not None:
            chosen, fallback = candidates[named - 1], ""
        else:
            valid = (c for c in candidates if history.answer_key(c.text) is not None)
            chosen = next(valid, candidates[0])
            fallback = "the aggregator named no candidate: the first with an answer counts"
        return Finish(chosen.text, (chosen.agent, "aggregator_0"), fallback)

    def parse(self, agent: str, text: str) -> Parsed:
        r"""The index that an aggregator names, from 1.

        The last ``Best: k``, else the last ``\boxed{k}``, else the only number in the text.
        """
        if role_of(agent) != "aggregator":
            return Parsed()
        named = _BEST.findall(text) or _BOXED.findall(text)
        numbers = set(_NUMBER.findall(text))
        if not named and len(numbers) == 1:
            named = [*numbers]
        if not named:
            return Parsed(None, "no candidate named: first valid one taken")
        if len(named[-1]) < 10 and 1 <= int(named[-1]) <= self.n:
            return Parsed(int(named[-1]))
        return Parsed(None, f"candidate {named[-1]:.9} of {self.n} named: first valid one taken")

    def observe(self, agent: str, statement: str, visible: Sequence[Turn]) -> tuple[Message, ...]:
        """The aggregator reads numbered candidates; the number is the voter's own."""
        if role_of(agent) != "aggregator":
            return super().observe(agent, statement, visible)
        listed = [
            f"Candidate {self.agents.index(turn.agent) + 1}:\n{turn.text}" for turn in visible
        ]
        return (user("\n\n".join([problem_text(statement), *listed])),)

    def truth(
        self, history: History, score: Callable[[str], float], answer: Finish
    ) -> dict[int, float]:
        """See the class."""
        truth = {turn.position: score(turn.text) for turn in history.of_role("voter")}
        if any(value == 1.0 for value in truth.values()):
            truth[history.last("aggregator_0").position] = score(answer.answer)
        return truth

    def demonstrate(
        self, agent: str, problem: Problem, visible: Sequence[Turn], statement: str
    ) -> str:
        """The solution; the aggregator names the first right candidate."""
        if role_of(agent) == "voter":
            return Solution.of(problem).reply
        right = (
            self.agents.index(turn.agent) + 1
            for turn in visible
            if self.domain.grade(problem, turn.text).correct
        )
        return f"Best: {next(right, 1)}"
