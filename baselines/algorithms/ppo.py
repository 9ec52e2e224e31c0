"""What any PPO over a team needs: optimisers, old log-probs, one policy's update, critics.

:class:`TeamPPO` holds the steps; :class:`flexmg.baselines.algorithms.marft.MARFT` and
:class:`flexmg.baselines.algorithms.ippo.IPPO` put them in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from flexmg.baselines.algorithms.advantages import Standardised, standardise
from flexmg.baselines.algorithms.losses import k3, masked_sum
from flexmg.baselines.algorithms.optimisation import (
    PPOConfig,
    Recorded,
    adamw,
    explained_variance,
    score,
    update_critic,
    update_policy,
)
from flexmg.baselines.algorithms.protocol import Metrics, Team
from flexmg.baselines.rollout.turns import SampledTurn
from flexmg.seeding import stream

Floats = NDArray[np.float64]


class TeamPPO:
    """The steps of a PPO iteration over a team of policies with disjoint parameters.

    Args:
        team: the policies and critics.
        config: the settings.
        temperature: that actions are sampled at.
    """

    def __init__(self, team: Team, config: PPOConfig, *, temperature: float) -> None:
        self.team = team
        self.settings = config
        self.temperature = temperature
        self.policy_optimizers = {
            policy: adamw(team.policy_parameters(policy), config.lr) for policy in team.policies
        }
        self.critic_optimizers = {
            critic: adamw(team.critic_parameters(critic), config.critic_lr)
            for critic in team.critics
        }

    def record(self, turns: Sequence[SampledTurn]) -> dict[str, Recorded]:
        """pi_old of every turn, per policy that has turns, before anything is updated."""
        recorded = {}
        for policy in self.team.policies:
            index = np.array([k for k, turn in enumerate(turns) if turn.policy == policy], int)
            if len(index):
                own = [turns[k] for k in index]
                recorded[policy] = score(
                    self.team, policy, own, index, self.settings, self.temperature
                )
        return recorded

    def standardise(self, turns: Sequence[SampledTurn], advantages: Floats) -> Standardised:
        """Standardise per policy and role, or over everything (the global ablation)."""
        if self.settings.standardise == "global":
            return standardise(advantages, ["all"] * len(turns))
        return standardise(advantages, [(turn.policy, turn.role) for turn in turns])

    def improve(
        self,
        policy: str,
        old: Recorded,
        standard: Standardised,
        factors: Floats,
        key: tuple[int, ...],
    ) -> tuple[Metrics, Tensor]:
        """Update one policy on its own turns.

        Args:
            policy: its name.
            old: its turns with pi_old.
            standard: the batch's advantages.
            factors: M, one per turn of the batch.
            key: of the iteration; the policy's own random stream is derived from it.

        Returns:
            Metrics of the policy, and per turn of it log pi_new - log pi_old (summed over
            tokens, whatever the normalisation), float32 [B].
        """
        rows = np.flatnonzero(standard.used[old.index])
        engine = old.engine_ratio()
        metrics: Metrics = {"turns": len(old.turns), "used": len(rows)}
        if len(rows) == 0:
            metrics["skipped"] = "all advantages of each of its roles are equal"
            return metrics, torch.zeros(len(old.turns))
        weights = torch.from_numpy((standard.advantages * factors)[old.index]).float()
        weights = weights * engine.clamp(max=self.settings.engine_cap)
        metrics |= update_policy(
            self.team,
            policy,
            self.policy_optimizers[policy],
            old,
            weights,
            rows,
            self.settings,
            temperature=self.temperature,
            rng=stream(*key, "policy", policy),
        )
        new = score(
            self.team, policy, old.turns, old.index, self.settings, self.temperature
        ).log_probs
        tokens = old.mask.sum().clamp(min=1)
        metrics["kl"] = (masked_sum(k3(old.log_probs, new), old.mask).sum() / tokens).item()
        metrics["engine_gap"] = engine.log().abs().max().item()
        return metrics, masked_sum(new - old.log_probs, old.mask)

    @torch.no_grad()
    def value(self, critic: str, features: Tensor) -> Floats:
        """Values before the update, float64 [B]."""
        values: Floats = self.team.values(critic, features).double().cpu().numpy()
        return values

    def fit(
        self,
        critic: str,
        features: Tensor,
        values: Floats,
        targets: Floats,
        key: tuple[int, ...],
    ) -> Metrics:
        """Fit one critic; returns ``value_loss`` and ``explained_variance`` (before the fit)."""
        loss = update_critic(
            self.team,
            critic,
            self.critic_optimizers[critic],
            features,
            values,
            targets,
            self.settings,
            rng=stream(*key, "critic", critic),
        )
        return {"value_loss": loss, "explained_variance": explained_variance(values, targets)}

    def state(self) -> dict[str, Any]:
        """State of all optimisers."""
        return {
            "policies": {name: opt.state_dict() for name, opt in self.policy_optimizers.items()},
            "critics": {name: opt.state_dict() for name, opt in self.critic_optimizers.items()},
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a :meth:`state`."""
        for name, saved in state["policies"].items():
            self.policy_optimizers[name].load_state_dict(saved)
        for name, saved in state["critics"].items():
            self.critic_optimizers[name].load_state_dict(saved)


def summarise(policies: Mapping[str, Metrics]) -> Metrics:
    """The metrics of all policies, and their means over the policies that were updated."""
    summary: Metrics = {"policies": dict(policies)}
    for name in ("kl", "clip_fraction", "grad_norm", "value_loss", "explained_variance"):
        known = [own[name] for own in policies.values() if own.get(name) is not None]
        summary[name] = float(np.mean(known)) if known else None
    return summary
