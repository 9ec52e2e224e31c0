"""What every algorithm here needs: optimisers, old log-probs, and one policy's update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from flexmg.baselines.algorithms.advantages import Standardised
from flexmg.baselines.algorithms.losses import k3, masked_sum
from flexmg.baselines.algorithms.optimisation import Recorded, adamw, score, update_policy
from flexmg.baselines.algorithms.protocol import Metrics, Observer, Team
from flexmg.baselines.algorithms.settings import PolicyConfig
from flexmg.baselines.ragged import places
from flexmg.baselines.rollout.turns import Episode, SampledTurn
from flexmg.seeding import stream

Floats = NDArray[np.float64]


class Learner:
    """Improves the policies of a team, whose parameters are disjoint, on given advantages.

    Attributes:
        observer: is shown what the policies are about to learn from; None for nobody. The
            trainer's diagnostics set it.

    Args:
        team: the policies.
        config: the settings.
        temperature: that actions are sampled at.
    """

    def __init__(self, team: Team, config: PolicyConfig, *, temperature: float) -> None:
        self.team = team
        self.config = config
        self.temperature = temperature
        self.policy_optimizers = {
            policy: adamw(team.policy_parameters(policy), config.lr) for policy in team.policies
        }
        self.observer: Observer | None = None

    def show(self, episodes: Sequence[Episode], standard: Standardised) -> None:
        """Let the observer look, before any policy is updated."""
        if self.observer is not None:
            self.observer(episodes, standard)

    def record(self, turns: Sequence[SampledTurn]) -> dict[str, Recorded]:
        """pi_old of every turn, per policy that has turns, before anything is updated."""
        recorded = {}
        for policy in self.team.policies:
            index = np.array([k for k, turn in enumerate(turns) if turn.policy == policy], int)
            if len(index):
                own = [turns[k] for k in index]
                recorded[policy] = score(
                    self.team, policy, own, index, self.config, self.temperature
                )
        return recorded

    def improve(
        self,
        policy: str,
        old: Recorded,
        standard: Standardised,
        key: tuple[int, ...],
        factors: Floats | None = None,
    ) -> tuple[Metrics, Tensor]:
        """Update one policy on its own turns.

        Args:
            policy: its name.
            old: its turns with pi_old.
            standard: the batch's advantages, one per turn or per token.
            key: of the iteration; the policy's own random stream is derived from it.
            factors: M, one per turn of the batch; 1 everywhere when not given.

        Returns:
            Metrics of the policy, and per turn of it log pi_new - log pi_old (summed over
            tokens, whatever the level and normalisation), float32 [B].
        """
        rows = np.flatnonzero(standard.used[old.index])
        metrics: Metrics = {"turns": len(old.turns), "used": len(rows)}
        idle = idle_roles(old.turns, standard, old.index)
        if idle:
            metrics["idle_roles"] = idle
        if len(rows) == 0:
            metrics["skipped"] = "; ".join(f"{role}: {why}" for role, why in idle.items())
            return metrics, torch.zeros(len(old.turns))
        engine = old.engine_ratio(self.config.level)
        weights = self.weights(old, standard)
        if factors is not None:
            own = torch.from_numpy(factors[old.index]).float()
            weights = weights * (own if weights.ndim == 1 else own[:, None])
        metrics |= update_policy(
            self.team,
            policy,
            self.policy_optimizers[policy],
            old,
            weights * engine.clamp(max=self.config.engine_cap),
            rows,
            self.config,
            temperature=self.temperature,
            rng=stream(*key, "policy", policy),
        )
        new = score(
            self.team, policy, old.turns, old.index, self.config, self.temperature
        ).log_probs
        tokens = old.mask.sum().clamp(min=1)
        metrics["kl"] = (masked_sum(k3(old.log_probs, new), old.mask).sum() / tokens).item()
        metrics["engine_gap"] = engine.log().abs().max().item()
        return metrics, masked_sum(new - old.log_probs, old.mask)

    def weights(self, old: Recorded, standard: Standardised) -> Tensor:
        """The advantages of a policy's turns, [B], or [B, L] of their tokens."""
        place = places(old.index, standard.lengths)
        own = torch.from_numpy(standard.advantages[place]).float()
        if self.config.level == "action":
            return own
        grid = torch.zeros(old.mask.shape)
        if len(own) == len(old.turns):
            return own[:, None].expand_as(grid)
        grid[old.mask] = own
        return grid

    def state(self) -> dict[str, Any]:
        """State of the policies' optimisers."""
        return {
            "policies": {name: opt.state_dict() for name, opt in self.policy_optimizers.items()}
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a :meth:`state`."""
        for name, saved in state["policies"].items():
            self.policy_optimizers[name].load_state_dict(saved)


def idle_roles(
    turns: Sequence[SampledTurn], standard: Standardised, index: NDArray[np.int64]
) -> dict[str, str]:
    """The roles among a policy's turns that give no gradient in this batch, and why."""
    active = {turn.role for turn, k in zip(turns, index, strict=True) if standard.used[k]}
    idle = dict.fromkeys(turn.role for turn in turns if turn.role not in active)
    return {role: _why(role, standard) for role in idle}


def _why(role: str, standard: Standardised) -> str:
    reasons = dict.fromkeys(
        why
        for group, why in standard.skipped.items()
        if group == "all" or (isinstance(group, tuple) and role in group)
    )
    return ", ".join(reasons) or "none of its turns was used"


def summarise(policies: Mapping[str, Metrics]) -> Metrics:
    """The metrics of all policies, and their means over the policies that were updated."""
    summary: Metrics = {"policies": dict(policies)}
    for name in ("kl", "clip_fraction", "grad_norm", "value_loss", "explained_variance"):
        known = [own[name] for own in policies.values() if own.get(name) is not None]
        summary[name] = float(np.mean(known)) if known else None
    return summary


NO_TURNS: Metrics = {"turns": 0, "skipped": "it has no turns in this batch"}
