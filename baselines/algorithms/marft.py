"""MARFT (arXiv 2504.16129): agent-by-agent PPO with a central critic.

One iteration, on a batch of episodes:

1. The central critic values the state before every turn, which holds the problem and all
   turns so far, also those that D hides from the actor. At the token level (MARFT-T) it
   values every position of the turn's own action as well.
2. Advantages on the central stream (:func:`central_stream`), standardised once, per
   policy and role.
3. Policies are updated one after another. With ``importance="happo"`` (as in HAPPO) every
   turn has a factor M, 1 at first. After policy p's update the turns of the policies still
   to come are multiplied by ``pi_new / pi_old`` of p's turns of the same env step, so
   that later policies learn against what p has become:

       maximise min(rho M A, clip(rho) M A);   M_k <- clamp(M_k prod_j pi_new_j / pi_old_j)

   With ``"recollect"`` every policy after the first learns from a fresh batch, played by
   the team as it has become, instead. With ``"none"``, one set of advantages and disjoint
   adapters, the order means nothing: that *is* a simultaneous update (MAPPO).
4. The critic is fitted to ``A + V``.

Several turns of one policy in one env step (slots of a role, a shared policy) move
together, and no monotonic-improvement claim is made for them. The public MARFT codes have
no importance factor, discount every hop between agents like an env step, and standardise
over all agents; the defaults here differ on purpose: a factor is what gives the sequence a
meaning, discounts per hop make an outcome fade with the size of the team, and one global
baseline across roles inflates gradients.

The reward modes ``local`` and ``mixed`` reach MARFT as the central stream that the
environment declares (a weighted sum of terms), not as value heads per agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from flexmg.baselines.algorithms.advantages import Standardised
from flexmg.baselines.algorithms.learner import NO_TURNS, Floats, summarise
from flexmg.baselines.algorithms.optimisation import Recorded
from flexmg.baselines.algorithms.ppo import TeamPPO
from flexmg.baselines.algorithms.protocol import Collect, Metrics, Reading, Team
from flexmg.baselines.algorithms.settings import PPOConfig, require_fraction, require_one_of
from flexmg.baselines.algorithms.streams import Indices, central_stream, flatten
from flexmg.baselines.rollout.turns import Batch, Episode, SampledTurn
from flexmg.errors import InvalidArgument
from flexmg.seeding import stream

CRITIC = "central"
SMALLEST_FACTOR, LARGEST_FACTOR = 0.1, 10.0


@dataclass(frozen=True, kw_only=True)
class MARFTConfig(PPOConfig):
    """Settings of MARFT; everything not listed here is :class:`PPOConfig`'s.

    Args:
        importance: ``happo``; ``recollect``, a fresh batch before each policy's update but
            the first (its tokens count against the budget); or ``none``, a simultaneous
            update.
        order: of the policies within an iteration: ``permute`` (a fresh random order),
            ``topological`` (by the mean layer of D of a policy's turns in the batch), or
            ``round-robin`` (one policy per iteration, the next every ``interval``).
        interval: iterations before round-robin passes to the next policy.
        gamma_a: discount to the next layer of D.
        lam_a: GAE lambda to the next layer.
    """

    importance: Literal["happo", "recollect", "none"] = "happo"
    order: Literal["permute", "topological", "round-robin"] = "permute"
    interval: int = 1
    gamma_a: float = 1.0
    lam_a: float = 0.95

    def __post_init__(self) -> None:
        PPOConfig.__post_init__(self)
        require_fraction(self, "gamma_a", "lam_a")
        require_one_of(self, "importance", ("happo", "recollect", "none"))
        require_one_of(self, "order", ("permute", "topological", "round-robin"))
        if self.interval < 1:
            raise InvalidArgument(f"interval must be at least 1, not {self.interval}")


@dataclass(frozen=True)
class Assessed:
    """A batch with everything that the updates need, before any of them.

    Args:
        turns: of all episodes, end to end.
        reading: the critic's inputs before them; ``values`` there; ``advantages``.
        standard: the advantages as the policies learn from them.
        old: pi_old per policy.
        joint: see :func:`joint_steps`.
    """

    turns: list[SampledTurn]
    reading: Reading
    values: Floats
    advantages: Floats
    standard: Standardised
    old: dict[str, Recorded]
    joint: Indices


class MARFT(TeamPPO):
    """Agent-by-agent updates of a team with one central critic.

    Args:
        team: the policies and the critic ``central``.
        config: the settings.
        temperature: that actions are sampled at.
    """

    Config: ClassVar[type] = MARFTConfig
    config: MARFTConfig

    def __init__(self, team: Team, config: MARFTConfig, *, temperature: float) -> None:
        super().__init__(team, config, temperature=temperature)
        self.iterations = 0

    @staticmethod
    def critics(policies: Sequence[str]) -> tuple[str, ...]:
        """One central critic, whatever the policies."""
        return (CRITIC,)

    def update(self, batch: Batch, key: tuple[int, ...], collect: Collect) -> Metrics:
        """One iteration; see the module's docstring for the steps.

        Raises:
            InvalidArgument: a malformed episode.
            DivergenceError: a loss or gradient is not finite.
        """
        self.iterations += 1
        if not batch.trainable:
            return {"skipped": "no episode to learn from"}
        data = self._assess(batch.trainable)
        self.show(batch.trainable, data.standard)
        factors = np.ones(len(data.turns))
        waiting = np.ones(len(data.turns), dtype=bool)
        capped: list[float] = []
        blocks: dict[str, Metrics] = {}
        for place, policy in enumerate(self._order(data, key)):
            if self.config.importance == "recollect" and place:
                self._fit(data, (*key, place))
                fresh = collect(place).trainable
                if not fresh:
                    blocks[policy] = {"turns": 0, "skipped": "its fresh batch has no episode"}
                    continue
                data = self._assess(fresh)
                factors = np.ones(len(data.turns))
            if policy not in data.old:
                blocks[policy] = NO_TURNS
                continue
            own = data.old[policy].index
            metrics, log_ratio = self.improve(policy, data.old[policy], data.standard, key, factors)
            blocks[policy] = {**metrics, "importance": float(factors[own].mean())}
            if self.config.importance == "happo":
                waiting[own] = False
                capped += at_cap(factors[own]).tolist() if place else []
                moved = log_ratio.double().numpy()
                factors = carry_over(factors, data.joint, own, moved, waiting)
        fitted = self._fit(data, key)
        return {
            **summarise(blocks),
            **fitted,
            "order": list(blocks),
            "importance_cap_rate": float(np.mean(capped)) if capped else 0.0,
            "skipped_groups": len(data.standard.skipped),
        }

    def _assess(self, episodes: list[Episode]) -> Assessed:
        """Values, advantages and pi_old of a batch."""
        turns = flatten(episodes)
        lengths = self.lengths(turns)
        reading = self.read(CRITIC, turns, [turn.state_ids for turn in turns])
        values = self.value(CRITIC, reading)
        central = central_stream(
            episodes,
            self._final_values(episodes),
            gamma=self.config.gamma,
            gamma_a=self.config.gamma_a,
            lam=self.config.lam,
            lam_a=self.config.lam_a,
        )
        advantages = self.advantages(central, values, lengths)
        return Assessed(
            turns=turns,
            reading=reading,
            values=values,
            advantages=advantages,
            standard=self.standardise(turns, advantages, lengths),
            old=self.record(turns),
            joint=joint_steps([len(episode.turns) for episode in episodes], turns),
        )

    def _fit(self, data: Assessed, key: tuple[int, ...]) -> Metrics:
        targets = data.advantages + data.values
        return self.fit(CRITIC, data.reading, data.values, targets, key)

    def _final_values(self, episodes: Sequence[Episode]) -> Floats:
        """V(final state) of truncated episodes, 0 for terminated ones."""
        values = np.zeros(len(episodes))
        cut = [e for e, episode in enumerate(episodes) if not episode.terminated]
        states = [episodes[e].final_state_ids for e in cut]
        known = [state for state in states if state is not None]
        if len(known) < len(cut):
            raise InvalidArgument(
                "a truncated episode has no final state to bootstrap from; record "
                "final_state_ids in the collector"
            )
        if cut:
            readers = [episodes[e].turns[-1].policy for e in cut]
            values[cut] = self.value(CRITIC, self.team.read(CRITIC, known, policies=readers))
        return values

    def _order(self, data: Assessed, key: tuple[int, ...]) -> list[str]:
        """The policies in the order of their updates this iteration."""
        policies = list(self.team.policies)
        if self.config.order == "round-robin":
            turn = (self.iterations - 1) // self.config.interval
            return [policies[turn % len(policies)]]
        if self.config.order == "topological":
            depth = {
                policy: np.mean([turn.layer for turn in recorded.turns])
                for policy, recorded in data.old.items()
            }
            return sorted(policies, key=lambda policy: depth.get(policy, np.inf))
        return [policies[k] for k in stream(*key, "order").permutation(len(policies))]

    def state(self) -> dict[str, Any]:
        """State of the optimisers and the iteration count (round-robin continues from it)."""
        return {**super().state(), "iterations": self.iterations}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a :meth:`state`."""
        super().load_state(state)
        self.iterations = state["iterations"]


def joint_steps(lengths: Sequence[int], turns: Sequence[SampledTurn]) -> Indices:
    """For each turn the number of its (episode, env step), counted over the batch, from 0."""
    episode = np.repeat(np.arange(len(lengths)), lengths)
    steps = np.array([turn.step for turn in turns])
    _, numbers = np.unique(np.stack([episode, steps]), axis=1, return_inverse=True)
    return numbers.reshape(-1)


def carry_over(
    factors: Floats, joint: Indices, own: Indices, log_ratio: Floats, waiting: NDArray[np.bool_]
) -> Floats:
    """Multiply the factors of waiting turns by the ratios of an updated policy's turns.

    Args:
        factors: M, one per turn of the batch.
        joint: number of each turn's (episode, env step).
        own: the updated policy's turns.
        log_ratio: log pi_new - log pi_old of each of them.
        waiting: the turns of policies still to come.

    Returns:
        The new factors, in [0.1, 10].
    """
    moved = np.zeros(joint.max() + 1)
    np.add.at(moved, joint[own], log_ratio)
    # Clipping in log space: exp of a large move would overflow before it is capped.
    log_factors = np.log(factors) + moved[joint]
    low, high = np.log(SMALLEST_FACTOR), np.log(LARGEST_FACTOR)
    return np.where(waiting, np.exp(log_factors.clip(low, high)), factors)


def at_cap(factors: Floats) -> NDArray[np.bool_]:
    """Which factors sit at one of the two caps."""
    return np.isclose(factors, SMALLEST_FACTOR) | np.isclose(factors, LARGEST_FACTOR)
