"""What a PPO over a team adds to :class:`Learner`: critics, and advantages at two levels.

:class:`flexmg.baselines.algorithms.marft.MARFT` and
:class:`flexmg.baselines.algorithms.ippo.IPPO` put these steps in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from flexmg.baselines.algorithms.advantages import (
    Standardised,
    action_advantages,
    standardise,
    token_advantages,
)
from flexmg.baselines.algorithms.learner import Floats, Learner
from flexmg.baselines.algorithms.optimisation import adamw, explained_variance, update_critic
from flexmg.baselines.algorithms.protocol import Metrics, Reading, Team
from flexmg.baselines.algorithms.settings import PPOConfig
from flexmg.baselines.algorithms.streams import Indices, Stream
from flexmg.baselines.rollout.turns import SampledTurn
from flexmg.seeding import stream


class TeamPPO(Learner):
    """The steps of a PPO iteration over a team of policies with disjoint parameters.

    Args:
        team: the policies and critics.
        config: the settings.
        temperature: that actions are sampled at.
    """

    config: PPOConfig

    def __init__(self, team: Team, config: PPOConfig, *, temperature: float) -> None:
        super().__init__(team, config, temperature=temperature)
        self.critic_optimizers = {
            critic: adamw(team.critic_parameters(critic), config.critic_lr)
            for critic in team.critics
        }

    def lengths(self, turns: Sequence[SampledTurn]) -> Indices:
        """Values and advantages per turn: 1 at the action level, its tokens at the token level."""
        if self.config.level == "action":
            return np.ones(len(turns), dtype=np.int64)
        return np.array([len(turn.action_ids) for turn in turns], dtype=np.int64)

    def read(
        self, critic: str, turns: Sequence[SampledTurn], inputs: Sequence[NDArray[np.int32]]
    ) -> Reading:
        """A critic's inputs before some turns, with the turns' tokens at the token level."""
        return self.team.read(
            critic,
            inputs,
            policies=[turn.policy for turn in turns],
            actions=[turn.action_ids for turn in turns] if self.config.level == "token" else None,
        )

    @torch.no_grad()
    def value(self, critic: str, reading: Reading) -> Floats:
        """Values before the update, float64, at every position of the reading."""
        values: Floats = self.team.values(critic, reading).double().cpu().numpy()
        return values

    def advantages(self, streams: Stream, values: Floats, lengths: Indices) -> Floats:
        """Of every turn, or of every token, in the order of the batch."""
        if self.config.level == "action":
            return action_advantages(streams, values)
        return token_advantages(
            streams, values, lengths, gamma_w=self.config.gamma_w, lam_w=self.config.lam_w
        )

    def standardise(
        self, turns: Sequence[SampledTurn], advantages: Floats, lengths: Indices
    ) -> Standardised:
        """Standardise per policy and role, or over everything (the global ablation)."""
        groups: list[Any] = [(turn.policy, turn.role) for turn in turns]
        if self.config.standardise == "global":
            groups = ["all"] * len(turns)
        return standardise(advantages, groups, lengths)

    def fit(
        self, critic: str, reading: Reading, values: Floats, targets: Floats, key: tuple[int, ...]
    ) -> Metrics:
        """Fit one critic; returns ``value_loss`` and ``explained_variance`` (before the fit)."""
        loss = update_critic(
            self.team,
            critic,
            self.critic_optimizers[critic],
            reading,
            values,
            targets,
            self.config,
            rng=stream(*key, "critic", critic),
        )
        return {"value_loss": loss, "explained_variance": explained_variance(values, targets)}

    def state(self) -> dict[str, Any]:
        """State of all optimisers."""
        critics = {name: opt.state_dict() for name, opt in self.critic_optimizers.items()}
        return {**super().state(), "critics": critics}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a :meth:`state`."""
        super().load_state(state)
        for name, saved in state["critics"].items():
            self.critic_optimizers[name].load_state_dict(saved)
