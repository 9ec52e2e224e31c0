"""router: an orchestrator calls specialists by name, step by step, until it is done."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from flexmg.agents import Profile, role_of
from flexmg.problem import Domain, Problem
from flexmg.transcript import Turn
from flexmg.workflow import (
    Call,
    Finish,
    History,
    Parsed,
    Round,
    Workflow,
    positive,
)

from .chain import ANSWER, true_verdict
from .demonstration import Solution

SPECIALISTS = ("analyst_0", "solver_0", "critic_0")
_CALL = re.compile(r"\bcall\s*:([^\n]*)", re.IGNORECASE)
# DONE anywhere, or "done" at the start of a line: "well done" in the middle is praise.
_DONE = re.compile(r"\bDONE\b|^[^\w\n]*(?i:done)\b", re.MULTILINE)
# What a program holds is no instruction.
_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_NAME = re.compile(r"\b(analyst|solver|critic)(?:_0)?\b", re.IGNORECASE)
_ARROW = re.compile(r"[-=]+>|→|\bthen\b", re.IGNORECASE)
_WORD = re.compile(r"\b(?!(?:and|then)\b)\w+", re.IGNORECASE)


class Router(Workflow):
    """One env step per call: the orchestrator chooses who acts next, and so D.

    ``CALL: solver_0`` calls one specialist, ``CALL: analyst_0, solver_0`` two that are
    blind to each other, ``CALL: analyst_0 -> solver_0`` two in a row, the second seeing
    the first (edges of D chosen by an action). ``DONE`` ends the episode, and so does the
    cap. Case and the ``_0`` do not matter; the first CALL counts, also beside a DONE, an
    agent called twice acts once, and words that are no names are left out: all flagged. A
    CALL that names nobody is read as done, flagged. A text with neither CALL nor DONE calls
    the specialists it names, or is read as done when it names nobody, flagged.

    Graded is what stands beside the DONE, if that holds an answer. Otherwise, flagged, the
    solver's last text that holds one, else the last text.

    All recall the specialists' earlier turns; the orchestrator its own as well.

    Local truth: solver, its own answer each time; orchestrator, analyst and critic, the
    team's outcome.

    Args:
        cap: the most calls of the orchestrator.
        **options: those of :class:`flexmg.workflow.Workflow`.
    """

    name = "router"
    roles = {
        "orchestrator": Profile(
            "You are the orchestrator. Decide who works next, until the problem is solved.",
            "Write CALL: and one of " + ", ".join(SPECIALISTS) + ". When the problem is solved "
            "write DONE and the final answer. " + ANSWER,
        ),
        "analyst": Profile(
            "You are the analyst. Break the problem into short steps. Do not solve it.",
            "Write one step per line.",
        ),
        "solver": Profile("You are the solver. Solve the problem.", ANSWER),
        "critic": Profile(
            "You are the critic. Look for mistakes in the work so far.",
            "Start with the word Correct or Incorrect, then give a short reason.",
        ),
    }
    limits = {"orchestrator": 256, "analyst": 512, "solver": 1024, "critic": 512}

    def __init__(self, domain: Domain, *, cap: int = 10, **options: Any) -> None:
        self.cap = positive("cap", cap)
        super().__init__(domain, **options)

    def team(self) -> Sequence[str]:
        """The orchestrator and the specialists."""
        return ["orchestrator_0", *SPECIALISTS]

    def recall(self) -> Sequence[tuple[str, str]]:
        """A blackboard of the specialists' turns; routing texts stay the orchestrator's own."""
        board = [(i, j) for i in SPECIALISTS for j in self.agents]
        return [*board, ("orchestrator_0", "orchestrator_0")]

    def plan(self, history: History) -> Round | Finish:
        """The orchestrator, then whom it called, and so on."""
        turns = history.turns
        if not turns:
            return Round((Call("orchestrator_0"),), new_step=True)
        routing = history.last("orchestrator_0")
        if turns[-1] is routing:
            if routing.value:
                return Round(_calls(routing.value))
            return self._finish(history)
        if len(history.of_role("orchestrator")) == self.cap:
            return self._finish(history)
        return Round((Call("orchestrator_0"),), new_step=True)

    def _finish(self, history: History) -> Finish:
        last = history.turns[-1]
        if last.agent == "orchestrator_0":
            # Its own words are no answer: an extractor could take "DONE" for one.
            said = _without_marks(last.text)
            if said.strip("*_`.,:!") and history.answer_key(said) is not None:
                return Finish(said, (last.agent,))
        for turn in reversed(history.of_role("solver")):
            if history.answer_key(turn.text) is not None:
                return Finish(turn.text, (turn.agent,), "the solver's last answer counts")
        return Finish(last.text, (last.agent,), "no answer: the last text counts")

    def parse(self, agent: str, text: str) -> Parsed:
        """Whom the orchestrator calls: a list of groups, one after the other; [] when done."""
        if role_of(agent) != "orchestrator":
            return Parsed()
        text = _BLOCK.sub("", text)
        done = _DONE.search(text)
        if calls := _CALL.findall(text):
            plan, fallback = _read_call(calls[0])
            flags = [fallback] if fallback else []
            if len(calls) > 1 or (done and plan):
                flags.append("more than one CALL or DONE: the first CALL counts")
            return Parsed(plan, "; ".join(flags))
        if done:
            return Parsed([])
        if plan := _once_each([_names(text)]):
            return Parsed(plan, "neither CALL nor DONE: the specialists named are called")
        return Parsed([], "neither CALL nor DONE: read as done")

    def truth(
        self, history: History, score: Callable[[str], float], answer: Finish
    ) -> dict[int, float]:
        """See the class."""
        return {turn.position: score(turn.text) for turn in history.of_role("solver")}

    def demonstrate(
        self, agent: str, problem: Problem, visible: Sequence[Turn], statement: str
    ) -> str:
        """Call the solver, then be done with its answer."""
        solution = Solution.of(problem)
        match role_of(agent):
            case "orchestrator":
                solved = any(self.domain.grade(problem, t.text).correct for t in visible)
                return f"DONE {solution.answer}" if solved else "CALL: solver_0"
            case "analyst":
                return solution.numbered_plan
            case "critic":
                work = [t for t in visible if role_of(t.agent) == "solver"]
                return true_verdict(
                    bool(work) and self.domain.grade(problem, work[-1].text).correct
                )
            case _:
                return solution.reply


def _without_marks(text: str) -> str:
    """What is said besides DONE and CALL; blocks of code stay as they are."""
    blocks = _BLOCK.findall(text)
    plain = [_CALL.sub("", _DONE.sub("", part)) for part in _BLOCK.split(text)]
    said = "".join(part for pair in zip_longest(plain, blocks, fillvalue="") for part in pair)
    return said.lstrip(" \t\r\n*_.,:!").rstrip()


def _names(text: str) -> list[str]:
    return [f"{name.lower()}_0" for name in _NAME.findall(text)]


def _read_call(line: str) -> tuple[list[list[str]], str]:
    """The groups that a CALL line names, and what had to be left out of it."""
    groups = [_names(part) for part in _ARROW.split(line)]
    plan = _once_each(groups)
    if not plan:
        return [], "CALL names no specialist: read as done"
    flags = []
    if sum(map(len, groups)) > sum(map(len, plan)):
        flags.append("an agent called twice acts once")
    if strangers := _WORD.findall(_NAME.sub(" ", line)):
        flags.append(f"not specialists: {' '.join(strangers):.80}")
    return plan, "; ".join(flags)


def _once_each(groups: Sequence[Sequence[str]]) -> list[list[str]]:
    """Groups without repeats (an agent acts once per step) and without empty ones."""
    seen: set[str] = set()
    plan = []
    for group in groups:
        fresh = [name for name in dict.fromkeys(group) if name not in seen]
        seen.update(fresh)
        if fresh:
            plan.append(fresh)
    return plan


def _calls(groups: Sequence[Sequence[str]]) -> tuple[Call, ...]:
    calls: list[Call] = []
    before: list[str] = ["orchestrator_0"]
    for group in groups:
        calls += [Call(name, tuple(before)) for name in group]
        before = [*before, *group]
    return tuple(calls)
