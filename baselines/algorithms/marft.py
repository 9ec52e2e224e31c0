"""MARFT at the action level (arXiv 2504.16129): agent-by-agent PPO with a central critic.

One iteration, on a batch of episodes:

1. The central critic values the state before every turn, which holds the problem and all
   turns so far, also those that D hides from the actor.
2. Advantages on the central stream (:func:`central_advantages`), standardised once, per
   policy and role.
3. Policies are updated one after another. With ``importance="happo"`` (as in HAPPO) every
   turn has a factor M, 1 at first. After policy p's update the turns of the policies still
   to come are multiplied by ``pi_new / pi_old`` of p's turns of the same env step, so
   that later policies learn against what p has become:

       maximise min(rho M A, clip(rho) M A);   M_k <- clamp(M_k prod_j pi_new_j / pi_old_j)

   Without a factor, with one set of advantages and disjoint adapters, the order means
   nothing: ``importance="none"`` *is* a simultaneous update (MAPPO).
4. The critic is fitted to ``A + V``.

Several turns of one policy in one env step (slots of a role, a shared policy) move
together, and no monotonic-improvement claim is made for them. The public MARFT codes have
no importance factor, discount every hop between agents like an env step, and standardise
over all agents; the defaults here differ on purpose: a factor is what gives the sequence a
meaning, discounts per hop make an outcome fade with the size of the team, and one global
baseline across roles inflates gradients.

Not covered here: token-level advantages, fresh batches between the policies of one
iteration, value heads per agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from flexmg.baselines.algorithms.advantages import central_advantages, flatten
from flexmg.baselines.algorithms.optimisation import PPOConfig, Recorded, require_fraction
from flexmg.baselines.algorithms.ppo import TeamPPO, summarise
from flexmg.baselines.algorithms.protocol import Metrics, Team
from flexmg.baselines.rollout.turns import Batch, SampledTurn
from flexmg.errors import InvalidArgument
from flexmg.seeding import stream

CRITIC = "central"
SMALLEST_FACTOR, LARGEST_FACTOR = 0.1, 10.0


@dataclass(frozen=True, kw_only=True)
class MARFTConfig(PPOConfig):
    """Settings of MARFT; everything not listed here is :class:`PPOConfig`'s.

    Args:
        importance: ``happo``, or ``none`` for a simultaneous update.
        order: of the policies within an iteration: ``permute`` (a fresh random order),
            ``topological`` (by the mean layer of D of a policy's turns in the batch), or
            ``round-robin`` (one policy per iteration, the next every ``interval``).
        interval: iterations before round-robin passes to the next policy.
        gamma_a: discount to the next layer of D.
        lam_a: GAE lambda to the next layer.
    """

    importance: Literal["happo", "none"] = "happo"
    order: Literal["permute", "topological", "round-robin"] = "permute"
    interval: int = 1
    gamma_a: float = 1.0
    lam_a: float = 0.95

    def __post_init__(self) -> None:
        PPOConfig.__post_init__(self)
        require_fraction("gamma_a", self.gamma_a)
        require_fraction("lam_a", self.lam_a)
        if self.importance not in ("happo", "none"):
            raise InvalidArgument(f"importance {self.importance!r} is not 'happo' or 'none'")
        if self.order not in ("permute", "topological", "round-robin"):
            raise InvalidArgument(
                f"order {self.order!r} is not 'permute', 'topological' or 'round-robin'"
            )
        if self.interval < 1:
            raise InvalidArgument(f"interval must be at least 1, not {self.interval}")


class MARFT(TeamPPO):
    """Agent-by-agent updates of a team with one central critic.

    Args:
        team: the policies and the critic ``central``.
        config: the settings.
        temperature: that actions are sampled at.
    """

    Config: ClassVar[type] = MARFTConfig

    def __init__(self, team: Team, config: MARFTConfig, *, temperature: float) -> None:
        super().__init__(team, config, temperature=temperature)
        self.config = config
        self.iterations = 0

    @staticmethod
    def critics(policies: Sequence[str]) -> tuple[str, ...]:
        """One central critic, whatever the policies."""
        return (CRITIC,)

    def update(self, batch: Batch, key: tuple[int, ...]) -> Metrics:
        """One iteration; see the module's docstring for the steps.

        Raises:
            InvalidArgument: a malformed episode.
            DivergenceError: a loss or gradient is not finite.
        """
        episodes = batch.trainable
        self.iterations += 1
        if not episodes:
            return {"skipped": "no episode to learn from"}
        turns = flatten(episodes)
        features = self.team.features([turn.state_ids for turn in turns])
        values = self.value(CRITIC, features)
        advantages = central_advantages(
            episodes,
            values,
            self._final_values(batch),
            gamma=self.config.gamma,
            gamma_a=self.config.gamma_a,
            lam=self.config.lam,
            lam_a=self.config.lam_a,
        )
        standard = self.standardise(turns, advantages)
        old = self.record(turns)

        joint = joint_steps([len(episode.turns) for episode in episodes], turns)
        factors = np.ones(len(turns))
        waiting = np.ones(len(turns), dtype=bool)
        capped: list[float] = []
        blocks: dict[str, Metrics] = {}
        for policy in self._order(old, turns, key):
            if policy not in old:
                blocks[policy] = {"turns": 0, "skipped": "it has no turns in this batch"}
                continue
            own = old[policy].index
            waiting[own] = False
            capped += at_cap(factors[own]).tolist() if blocks else []
            metrics, log_ratio = self.improve(policy, old[policy], standard, factors, key)
            blocks[policy] = {**metrics, "importance": float(factors[own].mean())}
            if self.config.importance == "happo":
                factors = carry_over(factors, joint, own, log_ratio.double().numpy(), waiting)
        fitted = self.fit(CRITIC, features, values, advantages + values, key)
        return {
            **summarise(blocks),
            **fitted,
            "order": list(blocks),
            "importance_cap_rate": float(np.mean(capped)) if capped else 0.0,
            "skipped_groups": len(standard.skipped),
        }

    def _final_values(self, batch: Batch) -> NDArray[np.float64]:
        """V(final state) of truncated episodes, 0 for terminated ones."""
        episodes = batch.trainable
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
            values[cut] = self.value(CRITIC, self.team.features(known))
        return values

    def _order(
        self, old: Mapping[str, Recorded], turns: Sequence[SampledTurn], key: tuple[int, ...]
    ) -> list[str]:
        """The policies in the order of their updates this iteration."""
        policies = list(self.team.policies)
        if self.config.order == "round-robin":
            turn = (self.iterations - 1) // self.config.interval
            return [policies[turn % len(policies)]]
        if self.config.order == "topological":
            depth = {
                policy: np.mean([turns[k].layer for k in recorded.index])
                for policy, recorded in old.items()
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


def joint_steps(lengths: Sequence[int], turns: Sequence[SampledTurn]) -> NDArray[np.int64]:
    """For each turn the number of its (episode, env step), counted over the batch, from 0."""
    episode = np.repeat(np.arange(len(lengths)), lengths)
    steps = np.array([turn.step for turn in turns])
    _, numbers = np.unique(np.stack([episode, steps]), axis=1, return_inverse=True)
    return numbers.reshape(-1)


def carry_over(
    factors: NDArray[np.float64],
    joint: NDArray[np.int64],
    own: NDArray[np.int64],
    log_ratio: NDArray[np.float64],
    waiting: NDArray[np.bool_],
) -> NDArray[np.float64]:
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


def at_cap(factors: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which factors sit at one of the two caps."""
    return np.isclose(factors, SMALLEST_FACTOR) | np.isclose(factors, LARGEST_FACTOR)
