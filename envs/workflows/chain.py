"""single, duo, trio, quad: agents in a row, each sees all before it, the last one answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from flexmg.agents import Profile, role_of
from flexmg.problem import Problem
from flexmg.transcript import Turn
from flexmg.workflow import Call, Finish, History, Parsed, Round, Workflow

from .demonstration import Solution, own_facts, solve_if_informed

ANSWER = "{answer_format}"
VERDICT = "Start with the word Correct or Incorrect, then give a short reason."

PLANNER = Profile(
    "You are the planner. Break the problem into short steps. Do not solve it.",
    "Write one step per line.",
)
SOLVER = Profile("You are the solver. Solve the problem; use the plan if there is one.", ANSWER)
REFLECTOR = Profile(
    "You are the reflector. Look for mistakes in the solver's work. Do not give the answer.",
    VERDICT,
)
VERIFIER = Profile(
    "You are the verifier. Check the team's work, mend it, and give the final answer.", ANSWER
)


class Chain(Workflow):
    """Agents act in a row; D is the full lower triangle; the last agent's reply is graded.

    Local truth: solver and verifier, their own answer; reflector, whether its verdict on
    the solver is right; planner, the team's outcome.
    """

    def team(self) -> Sequence[str]:
        """One agent per role."""
        return [f"{role}_0" for role in self.roles]

    def plan(self, history: History) -> Round | Finish:
        """One round of all, then the last one's reply."""
        if not history.turns:
            return Round(tuple(Call(a, self.agents[:k]) for k, a in enumerate(self.agents)))
        last = history.last(self.agents[-1])
        return Finish(last.text, (last.agent,))

    def parse(self, agent: str, text: str) -> Parsed:
        """A reflector's verdict."""
        return parse_verdict(text) if role_of(agent) == "reflector" else Parsed()

    def truth(
        self, history: History, score: Callable[[str], float], answer: Finish
    ) -> dict[int, float]:
        """See the class."""
        truth = {}
        for turn in history.turns:
            role = role_of(turn.agent)
            if role in ("solver", "verifier"):
                truth[turn.position] = score(turn.text)
            elif role == "reflector":
                right = score(history.last("solver_0").text) == 1.0
                truth[turn.position] = float(turn.value == right)
        return truth

    def demonstrate(
        self, agent: str, problem: Problem, visible: Sequence[Turn], statement: str
    ) -> str:
        """A plan, the solution, a true verdict, the solution again."""
        match role_of(agent):
            case "planner" if self.information == "split":
                return own_facts(problem, statement)
            case "planner":
                return Solution.of(problem).numbered_plan
            case "reflector":
                work = [t.text for t in visible if role_of(t.agent) == "solver"]
                return true_verdict(bool(work) and self.domain.grade(problem, work[-1]).correct)
            case _ if self.information == "split":
                return solve_if_informed(problem, statement, visible)
            case _:
                return Solution.of(problem).reply


class Single(Chain):
    """One call: the baseline every claim is compared with."""

    name = "single"
    roles = {"solver": SOLVER}
    limits = {"solver": 1024}


class Duo(Chain):
    """Planner, then solver."""

    name = "duo"
    roles = {"planner": PLANNER, "solver": SOLVER}
    limits = {"planner": 512, "solver": 1024}
    informed = ("planner", "solver")


class Trio(Chain):
    """Planner, solver, verifier; the verifier's answer counts."""

    name = "trio"
    roles = {"planner": PLANNER, "solver": SOLVER, "verifier": VERIFIER}
    limits = {"planner": 512, "solver": 1024, "verifier": 1024}


class Quad(Chain):
    """Planner, solver, reflector, verifier; the verifier's answer counts."""

    name = "quad"
    roles = {"planner": PLANNER, "solver": SOLVER, "reflector": REFLECTOR, "verifier": VERIFIER}
    limits = {"planner": 512, "solver": 1024, "reflector": 512, "verifier": 1024}


# "not (quite) correct", "isn't correct", "incorrect"; what is denied twice is affirmed.
_VERDICT = re.compile(
    r"(?P<denied>(?:\b(?:not|never|hardly|cannot)|n['’]t)(?:\s+\w+){0,3}?\s+)?"
    r"\b(?P<prefix>in)?correct\b",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"\W*(?:(?:verdict|judge?ment)\W+)?(?:boxed\W+|text\W+)*(?=(?:not\s+|in)?correct\b)",
    re.IGNORECASE,
)


def parse_verdict(text: str) -> Parsed:
    r"""True for Correct, False for Incorrect.

    A text that starts with the verdict (``Verdict:``, ``\boxed{`` and marks apart) means
    it; elsewhere the word counts when all such words in the text agree. Fallback: without a
    verdict, or with two different ones, the work is not accepted (False), flagged.
    """
    first = _FIRST.match(text)
    found = [
        (match["denied"] is None) == (match["prefix"] is None)
        for match in _VERDICT.finditer(text, first.end() if first else 0)
    ]
    if not found:
        return Parsed(False, "no verdict: read as Incorrect")
    if first is None and len(set(found)) > 1:
        return Parsed(False, "verdicts that differ: read as Incorrect")
    return Parsed(found[0])


def true_verdict(right: bool) -> str:
    """What a perfect judge writes."""
    return "Correct. Every step holds." if right else "Incorrect. The result does not hold."
