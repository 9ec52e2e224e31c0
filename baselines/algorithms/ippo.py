"""Independent PPO: every agent learns as if it were alone.

One iteration, on a batch of episodes:

1. Each policy's own critic values its own observation before each of its turns (at the
   token level: before each of its tokens).
2. Advantages per *agent name*, on that agent's own turns and its own reward stream
   (:func:`agent_streams`), standardised once, per policy and role. Two agents that
   share a policy share its critic, never a trajectory.
3. All policies are updated from the same data: simultaneously, without any factor. Their
   parameters are disjoint, so running one after the other changes nothing.
4. Each critic is fitted to its own ``A + V``.

The settings and their defaults are MARFT's, so that a comparison compares the two ideas
(a published comparison gave IPPO a clip twice as wide).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from flexmg.baselines.algorithms.learner import NO_TURNS, summarise
from flexmg.baselines.algorithms.ppo import TeamPPO
from flexmg.baselines.algorithms.protocol import Collect, Metrics
from flexmg.baselines.algorithms.settings import PPOConfig
from flexmg.baselines.algorithms.streams import Stream, agent_streams, flatten
from flexmg.baselines.ragged import places
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

    def update(self, batch: Batch, key: tuple[int, ...], collect: Collect) -> Metrics:
        """One iteration; see the module's docstring for the steps.

        Raises:
            InvalidArgument: a malformed episode, or a truncated one that lacks an agent's
                final observation.
            DivergenceError: a loss or gradient is not finite.
        """
        episodes = self.usable(batch.trainable)
        if not episodes:
            return {"skipped": "no episode to learn from"}
        turns = flatten(episodes)
        lengths = self.lengths(turns)
        old = self.record(turns)
        values = np.zeros(lengths.sum())
        readings = {}
        for policy, recorded in old.items():
            prompts = [turn.prompt_ids for turn in recorded.turns]
            readings[policy] = self.read(policy, recorded.turns, prompts)
            own = places(recorded.index, lengths)
            values[own] = self.value(policy, readings[policy])
        advantages = self.advantages(self.streams(episodes), values, lengths)
        standard = self.standardise(turns, advantages, lengths)
        self.show(episodes, standard)

        blocks: dict[str, Metrics] = {}
        for policy in self.team.policies:
            if policy not in old:
                blocks[policy] = NO_TURNS
                continue
            metrics, _ = self.improve(policy, old[policy], standard, key)
            own = places(old[policy].index, lengths)
            targets = advantages[own] + values[own]
            fitted = self.fit(policy, readings[policy], values[own], targets, key)
            blocks[policy] = {**metrics, **fitted}
        return {
            **summarise(blocks),
            "skipped_groups": len(standard.skipped),
            "left_out": len(batch.trainable) - len(episodes),
        }

    def usable(self, episodes: list[Episode]) -> list[Episode]:
        """The episodes that :meth:`streams` can be made of: here, all."""
        return episodes

    def streams(self, episodes: Sequence[Episode]) -> Stream:
        """One trajectory per agent name, on its own reward stream."""
        finals = [self._final_values(episode) for episode in episodes]
        return agent_streams(episodes, finals, gamma=self.config.gamma, lam=self.config.lam)

    def _final_values(self, episode: Episode) -> dict[str, float]:
        """V_i of a truncated episode's final observations, by agent name."""
        if episode.terminated:
            return {}
        policy = {turn.agent: turn.policy for turn in episode.turns}
        values = {}
        for agent, ids in episode.final_prompt_ids.items():
            # An agent that has not acted, or that does not learn, has no critic to ask.
            name = policy.get(agent)
            if name in self.team.policies:
                reading = self.team.read(name, [ids], policies=[name])
                values[agent] = float(self.value(name, reading)[0])
            elif name is not None:
                values[agent] = 0.0
        return values
