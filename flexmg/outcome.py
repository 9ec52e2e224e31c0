"""The end of an episode: the designated answer is graded and everybody is paid, once."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flexmg.errors import InfraError, WorkflowError
from flexmg.problem import Domain, Problem, Verdict
from flexmg.reward import Reward
from flexmg.transcript import Turn
from flexmg.workflow import Finish, History, Workflow


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an episode.

    Args:
        verdict: of the designated answer.
        answer: the graded reply; ``designated``: whose it is; ``fallback``: the rule that
            chose it when the agents' texts did not say.
        rewards: agent streams, one number per agent that was in the game.
        step_rewards: central stream, one number per env step.
        terms: ``terms[agent][term]``, before weighting.
        truth: each turn's own truth by position, for turns that have one.
        infra_error: our own machinery failed: leave the episode out of training and
            scores. All rewards are 0 then, and mean nothing.
    """

    verdict: Verdict
    answer: str
    designated: tuple[str, ...]
    fallback: str
    rewards: dict[str, float]
    step_rewards: tuple[float, ...]
    terms: dict[str, dict[str, float]]
    truth: dict[int, float]
    infra_error: bool

    def info(self, agent: str, turns: Sequence[Turn]) -> dict[str, Any]:
        """What an agent is told in the end, its own turns' truth included."""
        return {
            "fallback": "; ".join(turn.fallback for turn in turns if turn.fallback),
            "answer_fallback": self.fallback,
            "verdict": self.verdict.status,
            "reward_terms": dict(self.terms[agent]),
            "truth": [self.truth.get(turn.position) for turn in turns],
            "infra_error": self.infra_error,
        }


class Grading:
    """Grades replies to one problem, each different reply once, and notes our own failures.

    Args:
        domain: what grades.
        problem: what is graded against.
        failures: messages of infra errors; appended to.
    """

    def __init__(self, domain: Domain, problem: Problem, failures: list[str]) -> None:
        self.domain = domain
        self.problem = problem
        self.failures = failures
        self._verdicts: dict[str, Verdict] = {}

    def verdict(self, reply: str) -> Verdict:
        """The verdict on a reply; ``infra_error`` where the grader failed."""
        if reply not in self._verdicts:
            try:
                verdict = self.domain.grade(self.problem, reply)
            except InfraError as error:
                verdict = Verdict(0.0, "infra_error", str(error))
            if verdict.status == "infra_error":
                self.failures.append(verdict.detail)
            self._verdicts[reply] = verdict
        return self._verdicts[reply]

    def score(self, reply: str) -> float:
        """The score of a reply."""
        return self.verdict(reply).score

    def answer_key(self, reply: str) -> Hashable | None:
        """The domain's answer key; None, and noted as a failure, where it failed."""
        try:
            return self.domain.answer_key(self.problem, reply)
        except InfraError as error:
            self.failures.append(str(error))
            return None


def conclude(
    finish: Finish,
    history: History,
    agents: Sequence[str],
    steps: int,
    *,
    workflow: Workflow,
    grading: Grading,
    reward: Reward,
) -> Outcome:
    """Grade the designated answer, and every turn's own truth, and pay.

    Args:
        finish: the workflow's end of the episode.
        history: all turns.
        agents: those in the game.
        steps: number of env steps; the central stream pays on the last one.
        workflow: says what each turn's truth is.
        grading: grades; its failures make the outcome an infra error.
        reward: who is paid what.

    Raises:
        WorkflowError: nobody has acted, or the workflow designates an agent that is not in
            the game, an answer that is not a text, or a truth that is not in [0, 1].
    """
    if not history.turns:
        raise WorkflowError(f"workflow {workflow.name!r} finished before anybody acted")
    if not isinstance(finish.answer, str):
        raise WorkflowError(
            f"workflow {workflow.name!r} finished with {finish.answer!r} instead of a text"
        )
    if strangers := set(finish.designated) - set(agents):
        raise WorkflowError(
            f"workflow {workflow.name!r} designates {sorted(strangers)}, which did not act"
        )
    verdict = grading.verdict(finish.answer)
    truth = dict(workflow.truth(history, grading.score, finish))
    _check_truth(truth, len(history.turns), workflow.name)
    terms = reward.terms(verdict.score, agents, finish.designated, history.turns, truth)
    rewards = reward.agent_rewards(terms)
    central = reward.central(verdict.score, terms)
    infra_error = bool(grading.failures)
    if infra_error:
        rewards, central = dict.fromkeys(rewards, 0.0), 0.0
    return Outcome(
        verdict=verdict,
        answer=finish.answer,
        designated=finish.designated,
        fallback=finish.fallback,
        rewards=rewards,
        step_rewards=(*[0.0] * (steps - 1), central),
        terms=terms,
        truth=truth,
        infra_error=infra_error,
    )


def _check_truth(truth: Mapping[int, float], turns: int, name: str) -> None:
    for position, value in truth.items():
        if not (0 <= position < turns and math.isfinite(value) and 0.0 <= value <= 1.0):
            raise WorkflowError(
                f"workflow {name!r} gives turn {position} of {turns} the truth {value!r}, which "
                "is not a number in [0, 1]"
            )
