"""debate: every round all debaters answer, having seen the others' last answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from flexmg.agents import Profile
from flexmg.problem import Domain, Problem
from flexmg.transcript import Turn
from flexmg.workflow import (
    Call,
    Finish,
    History,
    Message,
    Round,
    Workflow,
    assistant,
    positive,
    problem_text,
    user,
)

from .chain import ANSWER
from .demonstration import Solution


class Debate(Workflow):
    """One env step per round, D = 0 within it; recall is everybody to everybody.

    From the second round on a debater sees its own last answer and the others'. After
    the last round the answer that most debaters hold is graded (equal by the domain's
    ``answer_key``). A tie goes to the answer of the first debater among the tied, and where
    nobody holds an answer the first debater's reply counts, both flagged.

    Local truth: every turn's own answer.

    Args:
        n: number of debaters.
        rounds: number of rounds.
        **options: those of :class:`flexmg.workflow.Workflow`.
    """

    name = "debate"
    roles = {
        "debater": Profile(
            "You are a debater. Solve the problem; weigh the others' answers if you see any.",
            ANSWER,
        )
    }
    limits = {"debater": 1024}

    def __init__(self, domain: Domain, *, n: int = 2, rounds: int = 2, **options: Any) -> None:
        self.n = positive("n", n)
        self.rounds = positive("rounds", rounds)
        super().__init__(domain, **options)

    def team(self) -> Sequence[str]:
        """The debaters."""
        return [f"debater_{i}" for i in range(self.n)]

    def recall(self) -> Sequence[tuple[str, str]]:
        """Everybody sees what everybody said in earlier rounds."""
        return [(i, j) for i in self.agents for j in self.agents]

    def plan(self, history: History) -> Round | Finish:
        """Another round, or the majority of the last one."""
        if len(history.turns) < self.n * self.rounds:
            return Round(tuple(map(Call, self.agents)), new_step=True)
        last = history.turns[-self.n :]
        keys = [history.answer_key(turn.text) for turn in last]
        held = [key for key in keys if key is not None]
        if not held:
            return Finish(last[0].text, (last[0].agent,), "no debater holds an answer: the first")
        votes = Counter(held)
        # Counter keeps the debaters' order, and max() the first of equals.
        winner = max(votes, key=votes.__getitem__)
        tie = sum(count == votes[winner] for count in votes.values()) > 1
        camp = [turn for turn, key in zip(last, keys, strict=True) if key == winner]
        fallback = "a tie: the answer of the first debater among the tied" if tie else ""
        return Finish(camp[0].text, tuple(turn.agent for turn in camp), fallback)

    def observe(self, agent: str, statement: str, visible: Sequence[Turn]) -> tuple[Message, ...]:
        """The problem, the own last answer, the others' last answers."""
        chat = [user(problem_text(statement))]
        latest = {turn.agent: turn for turn in visible}
        if agent in latest:
            chat.append(assistant(latest.pop(agent).text))
        others = [self.quote(turn) for turn in latest.values()]
        if others:
            chat.append(user("\n\n".join(others)))
        return tuple(chat)

    def truth(
        self, history: History, score: Callable[[str], float], answer: Finish
    ) -> dict[int, float]:
        """See the class."""
        return {turn.position: score(turn.text) for turn in history.turns}

    def demonstrate(
        self, agent: str, problem: Problem, visible: Sequence[Turn], statement: str
    ) -> str:
        """The solution, every round."""
        return Solution.of(problem).reply
