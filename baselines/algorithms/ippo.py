"""Independent PPO: every agent learns as if it were alone.

One iteration, on a batch of episodes:

1. Each policy's own critic values its own observation before each of its turns.
2. Advantages per *agent name*, on that agent's own turns and its own reward stream
   (:func:`agent_advantages`), standardised once, per policy and role. Two agents that
   share a policy share its critic, never a trajectory.
3. All policies are updated from the same data: simultaneously, without any factor. Their
   parameters are disjoint, so running one after the other changes nothing.
4. Each critic is fitted to its own ``A + V``.

The settings and their defaults are MARFT's, so that a comparison compares the two ideas
(a published comparison gave IPPO a clip twice as wide).

Not covered here: token-level advantages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from flexmg.baselines.algorithms.advantages import agent_advantages, flatten
from flexmg.baselines.algorithms.optimisation import PPOConfig
from flexmg.baselines.algorithms.ppo import TeamPPO, summarise
from flexmg.baselines.algorithms.protocol import Metrics
from flexmg.baselines.rollout.turns import Batch, Episode


@dataclass(frozen=True, kw_only=True)
class IPPOConfig(PPOConfig):
    """Settings of Independent PPO: exactly :class:`PPOConfig`'s."""


class IPPO(TeamPPO):
    """Simultaneous, independent updates; one critic per policy, named like it.

    Args:
        team: the policies, and a critic for each.
        config: the settings.
        temperature: that actions are sampled at.
    """

    Config: ClassVar[type] = IPPOConfig

    @staticmethod
    def critics(policies: Sequence[str]) -> tuple[str, ...]:
        """One critic per policy."""
        return tuple(policies)

    def update(self, batch: Batch, key: tuple[int, ...]) -> Metrics:
        """One iteration; see the module's docstring for the steps.

        Raises:
            InvalidArgument: a malformed episode, or a truncated one that lacks an agent's
                final observation.
            DivergenceError: a loss or gradient is not finite.
        """
        episodes = batch.trainable
        if not episodes:
            return {"skipped": "no episode to learn from"}
        turns = flatten(episodes)
        features = self.team.features([turn.prompt_ids for turn in turns])
        old = self.record(turns)
        values = np.zeros(len(turns))
        for policy, recorded in old.items():
            values[recorded.index] = self.value(policy, features[recorded.index])
        advantages = agent_advantages(
            episodes,
            values,
            [self._final_values(episode) for episode in episodes],
            gamma=self.settings.gamma,
            lam=self.settings.lam,
        )
        targets = advantages + values
        standard = self.standardise(turns, advantages)

        ones = np.ones(len(turns))
        blocks: dict[str, Metrics] = {}
        for policy in self.team.policies:
            if policy not in old:
                blocks[policy] = {"turns": 0, "skipped": "it has no turns in this batch"}
                continue
            metrics, _ = self.improve(policy, old[policy], standard, ones, key)
            own = old[policy].index
            fitted = self.fit(policy, features[own], values[own], targets[own], key)
            blocks[policy] = {**metrics, **fitted}
        return {**summarise(blocks), "skipped_groups": len(standard.skipped)}

    def _final_values(self, episode: Episode) -> dict[str, float]:
        """V_i of a truncated episode's final observations, by agent name."""
        if episode.terminated:
            return {}
        policy = {turn.agent: turn.policy for turn in episode.turns}
        return {
            agent: float(self.value(policy[agent], self.team.features([ids]))[0])
            for agent, ids in episode.final_prompt_ids.items()
            if agent in policy
        }
