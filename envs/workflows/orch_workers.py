"""orch-workers: an orchestrator decides how many workers do what; a synthesizer answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from flexmg.agents import Profile, role_of
from flexmg.errors import InvalidArgument
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
from .demonstration import Solution, numbered, own_facts, solve_if_informed

# "1. x", "2) x", "Strategy 3: x", "**Subtask 4:** x", but not "3.5 is the ratio".
_ITEM = re.compile(
    r"[\W_]*(?:(?:strategy|subtask|task)\s*)?\d+\s*[.:)](?!\d)[*_]*\s*(\S.*)", re.IGNORECASE
)
STRATEGIES = ("Work step by step.", "Compute each part first.")


class OrchWorkers(Workflow):
    """One env step of two rounds: the orchestrator's list decides who joins the second.

    The orchestrator writes up to ``n`` numbered lines, one per worker; whatever is not
    numbered is left out. Workers act in parallel on their own line (D among them 0); the
    synthesizer sees all. Without numbered lines every line that is not empty counts,
    flagged; lines beyond ``n`` are left out, flagged; an empty text calls one worker without
    a line, flagged.

    Local truth: synthesizer, its own answer; worker with a strategy and the whole problem,
    its own answer. Other workers and the orchestrator are paid the team's outcome.

    Args:
        n: the most workers.
        mode: ``"strategies"`` (each worker solves the whole problem in its own way) or
            ``"subtasks"`` (each does a part).
        **options: those of :class:`flexmg.workflow.Workflow`.
    """

    name = "orch-workers"
    limits = {"orchestrator": 512, "worker": 1024, "synthesizer": 1024}
    informed = ("worker",)
    roles = {
        "orchestrator": Profile(
            "You are the orchestrator. List different strategies for this problem, one for "
            "each worker. Do not solve it.",
            "Write up to {n} numbered lines.",
        ),
        "worker": Profile("You are a worker. Solve the problem by your strategy.", ANSWER),
        "synthesizer": Profile(
            "You are the synthesizer. Compare the workers' solutions and give the final answer.",
            ANSWER,
        ),
    }
    subtask_roles = {
        "orchestrator": Profile(
            "You are the orchestrator. Split this problem into subtasks, one for each worker. "
            "Do not solve it.",
            "Write up to {n} numbered lines.",
        ),
        "worker": Profile("You are a worker. Do your subtask only.", "End with its result."),
        "synthesizer": Profile(
            "You are the synthesizer. Combine the workers' results and give the final answer.",
            ANSWER,
        ),
    }

    def __init__(
        self,
        domain: Domain,
        *,
        n: int = 3,
        mode: Literal["strategies", "subtasks"] = "strategies",
        **options: Any,
    ) -> None:
        if mode not in ("strategies", "subtasks"):
            raise InvalidArgument(f"mode={mode!r} is neither 'strategies' nor 'subtasks'")
        self.n = positive("n", n)
        self.mode = mode
        designed = self.roles if mode == "strategies" else self.subtask_roles
        self.roles = {
            role: Profile(p.text, p.output_format.replace("{n}", str(n)))
            for role, p in designed.items()
        }
        super().__init__(domain, **options)

    @property
    def prompts(self) -> str:
        """One set per mode."""
        return f"{self.name}/{self.mode}"

    def team(self) -> Sequence[str]:
        """The orchestrator, ``n`` workers, the synthesizer."""
        return ["orchestrator_0", *(f"worker_{i}" for i in range(self.n)), "synthesizer_0"]

    def plan(self, history: History) -> Round | Finish:
        """The orchestrator; then as many workers as it listed, and the synthesizer."""
        if not history.turns:
            return Round((Call("orchestrator_0"),))
        if len(history.turns) == 1:
            workers = tuple(f"worker_{i}" for i in range(len(history.turns[0].value)))
            return Round(
                (
                    *(Call(worker, ("orchestrator_0",)) for worker in workers),
                    Call("synthesizer_0", ("orchestrator_0", *workers)),
                )
            )
        return Finish(history.last("synthesizer_0").text, ("synthesizer_0",))

    def parse(self, agent: str, text: str) -> Parsed:
        """The orchestrator's lines."""
        if role_of(agent) != "orchestrator":
            return Parsed()
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        items = [found[1] for line in lines if (found := _ITEM.match(line))]
        flags = []
        if not items:
            items = lines
            flags = ["no numbered lines: every line taken" if lines else "empty: one worker called"]
        if len(items) > self.n:
            flags.append(f"{len(items)} lines: the first {self.n} taken")
        return Parsed(items[: self.n] or [""], "; ".join(flags))

    def observe(self, agent: str, statement: str, visible: Sequence[Turn]) -> tuple[Message, ...]:
        """A worker reads its own line; the synthesizer each worker's line and reply."""
        word = "strategy" if self.mode == "strategies" else "subtask"
        lines: list[str] = []
        if visible and role_of(visible[0].agent) == "orchestrator":
            lines = visible[0].value
        parts = [problem_text(statement)]
        if role_of(agent) == "worker":
            slot = self.specs[agent].slot
            if slot < len(lines) and lines[slot]:
                parts.append(f"Your {word}: {lines[slot]}")
            parts += [self.quote(t) for t in visible if role_of(t.agent) != "orchestrator"]
        else:
            for turn in visible:
                if role_of(turn.agent) != "worker":
                    continue
                slot = self.specs[turn.agent].slot
                line = f" ({lines[slot]})" if slot < len(lines) and lines[slot] else ""
                parts.append(f"{self.title(turn.agent)}{line}:\n{turn.text}")
        return (user("\n\n".join(parts)),)

    def truth(
        self, history: History, score: Callable[[str], float], answer: Finish
    ) -> dict[int, float]:
        """See the class."""
        alone = self.mode == "strategies" and self.information == "full"
        own = ("worker", "synthesizer") if alone else ("synthesizer",)
        return {t.position: score(t.text) for t in history.turns if role_of(t.agent) in own}

    def demonstrate(
        self, agent: str, problem: Problem, visible: Sequence[Turn], statement: str
    ) -> str:
        """Good strategies or the real subtasks; correct work; the right worker's answer."""
        solution = Solution.of(problem)
        role = role_of(agent)
        split = self.information == "split"
        if role == "orchestrator":
            if split:
                return numbered(["Say what you know."] * self.n)
            if self.mode == "subtasks":
                return numbered(solution.plan[: self.n])
            return numbered(STRATEGIES[: self.n])
        if role == "worker":
            if split:
                return own_facts(problem, statement)
            if self.mode == "subtasks":
                slot = self.specs[agent].slot
                return solution.steps[min(slot, len(solution.steps) - 1)]
            return solution.reply
        if split:
            return solve_if_informed(problem, statement, visible)
        for turn in visible:
            if role_of(turn.agent) == "worker" and self.domain.grade(problem, turn.text).correct:
                return f"{self.title(turn.agent)} is right. {solution.answer}"
        return solution.reply
