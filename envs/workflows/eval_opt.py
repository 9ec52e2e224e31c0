"""eval-opt: a generator refines its answer until an evaluator accepts it, or a cap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

from flexmg.agents import Profile, role_of
from flexmg.errors import InvalidArgument
from flexmg.problem import Domain, ExecutingDomain, Problem
from flexmg.transcript import Turn
from flexmg.workflow import (
    Call,
    Finish,
    History,
    Message,
    Parsed,
    Round,
    Workflow,
    assistant,
    positive,
    problem_text,
    user,
)

from .chain import ANSWER, VERDICT, parse_verdict, true_verdict
from .demonstration import Solution


class EvalOpt(Workflow):
    """One env step per pair: generator, then evaluator, which sees that generation only.

    The generator recalls its own attempts and the feedback on them. The episode ends when
    the evaluator accepts or after ``cap`` generations, the last one evaluated too; the
    last generation is graded, accepted or not.

    Local truth: generator, its own answer each time; evaluator, 1 if its verdict is right
    and its feedback on a wrong attempt does not hold the right answer.

    Args:
        cap: the most generations.
        feedback: ``"evaluator"``: the evaluator's words alone. ``"execution"``: the
            generation is tried out first (a program is run on the problem's public
            tests), and both agents read what came of it.
        **options: those of :class:`flexmg.workflow.Workflow`.
    """

    name = "eval-opt"
    roles = {
        "generator": Profile(
            "You are the generator. Solve the problem; mend your solution by the feedback.", ANSWER
        ),
        "evaluator": Profile(
            "You are the evaluator. Judge the solution. Do not reveal the answer.", VERDICT
        ),
    }
    limits = {"generator": 1024, "evaluator": 512}

    def __init__(
        self,
        domain: Domain,
        *,
        cap: int = 3,
        feedback: Literal["evaluator", "execution"] = "evaluator",
        **options: Any,
    ) -> None:
        self.cap = positive("cap", cap)
        if feedback not in ("evaluator", "execution"):
            raise InvalidArgument(f"feedback={feedback!r} is neither 'evaluator' nor 'execution'")
        if feedback == "execution" and not isinstance(domain, ExecutingDomain):
            raise InvalidArgument(
                f"feedback='execution' needs answers that can be run; those of the domain "
                f"{domain.name!r} cannot"
            )
        self.feedback = feedback
        super().__init__(domain, **options)

    def team(self) -> Sequence[str]:
        """Generator and evaluator."""
        return ["generator_0", "evaluator_0"]

    def recall(self) -> Sequence[tuple[str, str]]:
        """The generator recalls its attempts and the feedback; the evaluator judges afresh."""
        return [("generator_0", "generator_0"), ("evaluator_0", "generator_0")]

    def plan(self, history: History) -> Round | Finish:
        """Another pair until accepted or capped."""
        attempts = history.of_role("generator")
        if attempts and (history.last("evaluator_0").value or len(attempts) == self.cap):
            return Finish(attempts[-1].text, ("generator_0",))
        return Round((Call("generator_0"), Call("evaluator_0", ("generator_0",))), new_step=True)

    def parse(self, agent: str, text: str) -> Parsed:
        """The evaluator's verdict."""
        return parse_verdict(text) if role_of(agent) == "evaluator" else Parsed()

    def report(self, agent: str, text: str, problem: Problem) -> str:
        """With ``feedback="execution"``, what comes of trying out a generation."""
        if self.feedback == "evaluator" or role_of(agent) == "evaluator":
            return ""
        return cast(ExecutingDomain, self.domain).trial(problem, text)

    def observe(self, agent: str, statement: str, visible: Sequence[Turn]) -> tuple[Message, ...]:
        """For the generator a chat: its attempts are its own, the feedback is the user's."""
        if role_of(agent) == "evaluator":
            return super().observe(agent, statement, visible)
        chat = [user(problem_text(statement))]
        report = ""
        for turn in visible:
            if turn.agent == agent:
                chat.append(assistant(turn.text))
                report = turn.report
            else:
                chat.append(user("\n\n".join(filter(None, [report, self.quote(turn)]))))
        return tuple(chat)

    def truth(
        self, history: History, score: Callable[[str], float], answer: Finish
    ) -> dict[int, float]:
        """See the class."""
        truth = {}
        right = False
        for turn in history.turns:
            if role_of(turn.agent) == "generator":
                truth[turn.position] = score(turn.text)
                right = truth[turn.position] == 1.0
            else:
                revealed = not right and score(turn.text) == 1.0
                truth[turn.position] = float(turn.value == right and not revealed)
        return truth

    def demonstrate(
        self, agent: str, problem: Problem, visible: Sequence[Turn], statement: str
    ) -> str:
        """The solution; a true verdict."""
        if role_of(agent) == "generator":
            return Solution.of(problem).reply
        return true_verdict(bool(visible) and self.domain.grade(problem, visible[-1].text).correct)
