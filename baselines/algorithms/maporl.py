"""MAPoRL (arXiv 2502.18439): Independent PPO on a debate, each answer scored on its own.

Let v(t, a) be the score of debater a's answer in round t, T rounds in all. The answer of
debater i in round t is paid (the published rule "discounted sum, shared by all")::

    R(t, i) = [ v(t, i) + sum_{t' > t} d^(t' - t) mean_a v(t', a) ] / sum_{k=0}^{T-1-t} d^k

R(t, i) is a return already, so every (round, debater) is a trajectory of its own: nothing
is discounted or added from one round to the next, and A = R - V_i(o).

Optional **influence bonuses** (alpha_0 ... alpha_3), from how "right" (v > 1/2) flips from
one round to the next; the others count as right when more than half of them are:

* the debater's own flip, paid on the later answer: wrong to right ``+alpha_0`` if the
  others were right, ``+alpha_1`` if they were wrong; right to wrong ``-alpha_0`` if the
  others were wrong, ``-alpha_1`` if they were right;
* the others' flip, paid on the debater's earlier answer: wrong to right ``alpha_3`` if the
  debater was right, ``alpha_2`` if it was wrong; right to wrong ``-alpha_3`` if it was
  wrong, ``-alpha_2`` if it was right.

The public code has the second half with the opposite signs, which pays for misleading
others: ``influence_sign="published"`` reproduces it, ``"intended"`` (default) is as above.

What the public code adds and this does not: penalties for short, repetitive or unboxed
answers, a KL term in the reward, a learned verifier in place of the grader, and training
one round after another with the others frozen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from flexmg.baselines.algorithms.ippo import IPPO, IPPOConfig
from flexmg.baselines.algorithms.settings import require_fraction, require_one_of
from flexmg.baselines.algorithms.streams import Floats, Stream, check_episode, where
from flexmg.baselines.rollout.turns import Episode
from flexmg.errors import InvalidArgument


@dataclass(frozen=True, kw_only=True)
class MAPoRLConfig(IPPOConfig):
    """Settings of MAPoRL; everything not listed here is Independent PPO's.

    Args:
        discount: d, the weight of later rounds.
        bonuses: alpha_0 ... alpha_3; all 0 for none. The paper tries 0, 0.5, 1 and 2.
        influence_sign: ``intended`` rewards making others right, ``published`` is as in the
            public code.
    """

    discount: float = 0.3
    bonuses: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    influence_sign: Literal["intended", "published"] = "intended"

    def __post_init__(self) -> None:
        IPPOConfig.__post_init__(self)
        require_fraction(self, "discount")
        require_one_of(self, "influence_sign", ("intended", "published"))
        if not np.isfinite(self.bonuses).all():
            raise InvalidArgument(f"bonuses must be finite, not {self.bonuses}")


class MAPoRL(IPPO):
    """Independent PPO with the rewards of the module's docstring.

    Args:
        team: the policies, and a critic for each.
        config: the settings.
        temperature: that actions are sampled at.
    """

    Config: ClassVar[type] = MAPoRLConfig
    config: MAPoRLConfig

    def usable(self, episodes: list[Episode]) -> list[Episode]:
        """Episodes that were played to their end: the rule looks forward."""
        return [episode for episode in episodes if episode.terminated]

    def streams(self, episodes: Sequence[Episode]) -> Stream:
        """Every turn is a trajectory of its own, paid R(t, i) and its bonuses.

        Raises:
            InvalidArgument: an environment that does not score every turn.
        """
        paid = np.concatenate([self._paid(episode) for episode in episodes])
        zeros = np.zeros(len(paid))
        ends = np.ones(len(paid), dtype=bool)
        return Stream(np.arange(len(paid)), paid, zeros, zeros, ends, zeros)

    def _paid(self, episode: Episode) -> Floats:
        check_episode(episode)
        scores = score_table(episode)
        rounds = {step: t for t, step in enumerate(sorted({t.step for t in episode.turns}))}
        column = {agent: a for a, agent in enumerate(_agents(episode))}
        total = discounted_scores(scores, self.config.discount)
        sign = 1.0 if self.config.influence_sign == "intended" else -1.0
        total = total + influence_bonuses(scores, self.config.bonuses, sign)
        return np.array([total[rounds[t.step], column[t.agent]] for t in episode.turns])


def score_table(episode: Episode) -> Floats:
    """v(t, a): one row per round, one column per agent in the order of first turns.

    Raises:
        InvalidArgument: an agent did not act exactly once in a round, or a turn has no score.
    """
    agents = _agents(episode)
    steps = sorted({turn.step for turn in episode.turns})
    found = {(turn.step, turn.agent): turn.truth for turn in episode.turns}
    complete = len(episode.turns) == len(found) == len(steps) * len(agents)
    if not complete or any(truth is None for truth in found.values()):
        raise InvalidArgument(
            f"{where(episode)} is no debate in which every agent answers once per round and every "
            "answer is scored; train 'maporl' on math-debate-v0 or code-debate-v0, or use 'ippo'"
        )
    return np.array([[found[step, agent] for agent in agents] for step in steps], dtype=np.float64)


def discounted_scores(scores: Floats, discount: float) -> Floats:
    """R(t, i) of a table v(t, a) of T rounds and n agents; same shape."""
    rounds = len(scores)
    shared = scores.mean(axis=1)
    result = np.empty_like(scores)
    for t in range(rounds):
        weights = discount ** np.arange(rounds - t)
        result[t] = (scores[t] + weights[1:] @ shared[t + 1 :]) / weights.sum()
    return result


def influence_bonuses(
    scores: Floats, bonuses: tuple[float, float, float, float], sign: float = 1.0
) -> Floats:
    """The bonuses of a table v(t, a); ``sign`` is that of the half about others."""
    a0, a1, a2, a3 = bonuses
    right = scores > 0.5
    rounds, agents = right.shape
    result = np.zeros_like(scores)
    if agents < 2:
        return result
    others = 2 * (right.sum(axis=1, keepdims=True) - right) > agents - 1
    for t in range(1, rounds):
        before, after, company = right[t - 1], right[t], others[t - 1]
        result[t] += np.where(~before & after, np.where(company, a0, a1), 0.0)
        result[t] -= np.where(before & ~after, np.where(company, a1, a0), 0.0)
        gained, lost = ~others[t - 1] & others[t], others[t - 1] & ~others[t]
        result[t - 1] += sign * np.where(gained, np.where(before, a3, a2), 0.0)
        result[t - 1] -= sign * np.where(lost, np.where(before, a2, a3), 0.0)
    return result


def _agents(episode: Episode) -> list[str]:
    return list(dict.fromkeys(turn.agent for turn in episode.turns))
