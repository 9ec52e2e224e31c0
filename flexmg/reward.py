"""From a graded episode to rewards: who is paid what, by named terms.

There are two kinds of stream (algorithms.md, "Rewards"). The *agent streams* are
PettingZoo's ``rewards``: one per agent name, paid once when the episode ends. The
*central stream* is one scalar per env step, paid once; MARFT learns from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flexmg.errors import InvalidArgument
from flexmg.transcript import Turn

TERMS = ("team", "designated", "local", "format")
# Names for weights; `mixed` by name is half the team's score, half the agent's own truth.
MODES: dict[str, dict[str, float]] = {
    "team": {"team": 1.0},
    "designated": {"designated": 1.0},
    "local": {"local": 1.0},
    "mixed": {"team": 0.5, "local": 0.5},
}


@dataclass(frozen=True, slots=True)
class Reward:
    """A weighted sum of named terms, per agent.

    * ``team``: the score of the graded answer, to every agent.
    * ``designated``: that score to the agents whose answer was graded, 0 to the others.
    * ``local``: the mean of the agent's own turns' truths; the team's score for a turn
      that has no truth of its own (a plan is as good as what comes of it).
    * ``format``: the share of the agent's turns that parsed without a fallback.

    The central stream gets ``team`` and ``designated`` at the score itself, and the
    others at their mean over agents, on the last env step: each is paid once.

    Args:
        weights: weight per term.
    """

    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Mapping) or not self.weights:
            raise InvalidArgument(f"a reward needs at least one term of {TERMS}")
        for term, weight in self.weights.items():
            if term not in TERMS:
                raise InvalidArgument(f"reward term {term!r} is not one of {TERMS}")
            if not isinstance(weight, int | float) or not math.isfinite(weight):
                raise InvalidArgument(
                    f"the weight of reward term {term!r} must be a finite number, not {weight!r}"
                )

    @classmethod
    def of(cls, mode: str | Mapping[str, float] | Reward) -> Reward:
        """A reward from a mode of :data:`MODES` or from weights of one's own.

        Raises:
            InvalidArgument: an unknown mode or term, or a weight that is not finite.
        """
        if isinstance(mode, Reward):
            return mode
        if isinstance(mode, Mapping):
            return cls(dict(mode))
        if not isinstance(mode, str) or mode not in MODES:
            raise InvalidArgument(
                f"reward={mode!r} is not one of {tuple(MODES)}, nor a mapping from terms {TERMS} "
                "to weights, such as {'team': 0.7, 'local': 0.3}"
            )
        return cls(MODES[mode])

    def terms(
        self,
        score: float,
        agents: Sequence[str],
        designated: Sequence[str],
        turns: Sequence[Turn],
        truth: Mapping[int, float],
    ) -> dict[str, dict[str, float]]:
        """All terms of every agent, weighted or not: ``terms[agent][term]``."""
        paid: dict[str, list[float]] = {agent: [] for agent in agents}
        clean: dict[str, list[float]] = {agent: [] for agent in agents}
        for turn in turns:
            paid[turn.agent].append(truth.get(turn.position, score))
            clean[turn.agent].append(0.0 if turn.fallback else 1.0)
        return {
            agent: {
                "team": score,
                "designated": score if agent in designated else 0.0,
                "local": _mean(paid[agent], score),
                "format": _mean(clean[agent], 1.0),
            }
            for agent in agents
        }

    def agent_rewards(self, terms: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
        """One reward per agent."""
        return {
            agent: sum(weight * mine[term] for term, weight in self.weights.items())
            for agent, mine in terms.items()
        }

    def central(self, score: float, terms: Mapping[str, Mapping[str, float]]) -> float:
        """The central stream's one payment."""
        return sum(
            weight
            * (
                score
                if term in ("team", "designated")
                else _mean([mine[term] for mine in terms.values()], score)
            )
            for term, weight in self.weights.items()
        )


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default
