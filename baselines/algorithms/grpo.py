"""GRPO on teams: no critic, an episode is compared with the others of its group.

One iteration, on n episodes of each problem:

1. Turns are put into **groups**. A turn's reward is its agent's total for the episode (the
   team's outcome R, in the reward mode ``team``).
2. ``A = (reward - mean) / std`` within the group, population std, with statistics over
   *episodes*: an episode counts once in a group, however many turns it has there.
3. Every policy is updated on its turns from the same data; each has one advantage for the
   whole turn, at the action level or for every token of it.

The group key is a setting, since none is right for every workflow. GRPO assumes that a
group shares its prompt. That holds for agents who act first; whoever reads another agent's
text sees another prompt in every rollout. ``task-role`` puts all turns of a role on a
problem together, ``task-slot`` all of an agent, ``task-role-turn`` separates first, second
... calls, ``prompt`` groups equal prompts only, and so leaves agents further down in groups
of one, which give no gradient. ``study`` is the workflow study's (arXiv 2605.24202): voters
by slot, every other role as a whole; with ``stats="turns"`` it is also weighted as in its
code, which is biased where the number of turns depends on the outcome.

A group whose episodes all have the same reward, or that has only one, is *degenerate* and
left out. Degenerate groups and groups of mixed prompts are counted.

Not covered here: branching of rollouts (continuing one state several times), which would
give agents further down groups that share a prompt.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from flexmg.baselines.algorithms.advantages import SMALLEST_SIGMA, Standardised
from flexmg.baselines.algorithms.learner import NO_TURNS, Learner, summarise
from flexmg.baselines.algorithms.losses import Aggregation
from flexmg.baselines.algorithms.protocol import Collect, Metrics
from flexmg.baselines.algorithms.settings import Level, PolicyConfig, require_one_of
from flexmg.baselines.algorithms.streams import agent_rewards, check_episode
from flexmg.baselines.rollout.turns import Batch, Episode, SampledTurn

GROUPS = ("task-role", "task-slot", "task-role-turn", "prompt", "study")
# The roles whose copies have trajectory names of their own in the workflow study's code.
STUDY_SLOTS = ("voter",)
ALONE, EQUAL = "its groups have one episode each", "the rewards within its groups are equal"


@dataclass(frozen=True, kw_only=True)
class GRPOConfig(PolicyConfig):
    """Settings of GRPO; everything not listed here is :class:`PolicyConfig`'s.

    Args:
        level: ``token``, as in its public codes, or ``action``.
        group: ``task-role``, ``task-slot``, ``task-role-turn``, ``prompt`` or ``study``.
        stats: mean and deviation over ``episodes``, or over ``turns`` (a weighting by the
            number of turns).
    """

    default_aggregation: ClassVar[Aggregation] = "turn-mean"
    # The study's clip-high: 0.28 beside 0.2.
    high_share: ClassVar[float] = 1.4

    level: Level = "token"
    group: Literal["task-role", "task-slot", "task-role-turn", "prompt", "study"] = "task-role"
    stats: Literal["episodes", "turns"] = "episodes"

    def __post_init__(self) -> None:
        PolicyConfig.__post_init__(self)
        require_one_of(self, "group", GROUPS)
        require_one_of(self, "stats", ("episodes", "turns"))


class GRPO(Learner):
    """Group-relative updates of a team, without critics.

    Args:
        team: the policies.
        config: the settings.
        temperature: that actions are sampled at.
    """

    Config: ClassVar[type] = GRPOConfig
    config: GRPOConfig

    @staticmethod
    def critics(policies: Sequence[str]) -> tuple[str, ...]:
        """None."""
        return ()

    def update(self, batch: Batch, key: tuple[int, ...], collect: Collect) -> Metrics:
        """One iteration; see the module's docstring for the steps.

        Raises:
            InvalidArgument: a malformed episode.
            DivergenceError: a loss or gradient is not finite.
        """
        # What an episode that was cut would have earned is unknown, and there is no critic.
        episodes = [episode for episode in batch.trainable if episode.terminated]
        if not episodes:
            return {"skipped": "no episode to learn from"}
        members = [
            Member(turn, number, _reward(episode, turn), label)
            for number, episode in enumerate(episodes)
            for turn, label in zip(
                episode.turns, group_labels(episode, self.config.group), strict=True
            )
        ]
        turns = [member.turn for member in members]
        standard, groups = compare(members, per_turn=self.config.stats == "turns")
        old = self.record(turns)
        self.show(episodes, standard)
        blocks: dict[str, Metrics] = {}
        for policy in self.team.policies:
            if policy not in old:
                blocks[policy] = NO_TURNS
                continue
            blocks[policy], _ = self.improve(policy, old[policy], standard, key)
        left_out = len(batch.trainable) - len(episodes)
        return {**summarise(blocks), "groups": groups, "left_out": left_out}


@dataclass(frozen=True, slots=True)
class Member:
    """A turn in its group.

    Args:
        turn: the turn.
        episode: number of its episode in the batch.
        reward: its agent's total for the episode.
        label: of the group: starts with (policy, role) of the turn.
    """

    turn: SampledTurn
    episode: int
    reward: float
    label: tuple[Hashable, ...]


def group_labels(episode: Episode, group: str) -> list[tuple[Hashable, ...]]:
    """The group of each turn of an episode.

    Policies never share a group: what one of them earned is no baseline for another.
    """
    labels: list[tuple[Hashable, ...]] = []
    calls: dict[str, int] = {}
    for turn in episode.turns:
        own: tuple[Hashable, ...] = (turn.policy, turn.role, episode.problem)
        call = calls.get(turn.agent, 0)
        calls[turn.agent] = call + 1
        if group == "task-slot" or (group == "study" and turn.role in STUDY_SLOTS):
            own += (turn.slot,)
        elif group == "task-role-turn":
            own += (call,)
        elif group == "prompt":
            own += (turn.prompt_ids.tobytes(),)
        labels.append(own)
    return labels


def compare(members: Sequence[Member], *, per_turn: bool = False) -> tuple[Standardised, Metrics]:
    """Advantages within groups, and what the groups look like.

    Args:
        members: the turns of the batch.
        per_turn: mean and deviation over turns, not over episodes.

    Returns:
        One advantage per turn; and ``count``, ``degenerate``, ``alone`` (degenerate with one
        episode), ``mixed_prompts`` (numbers of groups), ``episodes`` (mean per group),
        ``smallest`` and ``largest`` (in episodes).
    """
    groups: dict[tuple[Hashable, ...], list[int]] = {}
    for k, member in enumerate(members):
        groups.setdefault(member.label, []).append(k)
    advantages = np.zeros(len(members))
    used = np.zeros(len(members), dtype=bool)
    skipped: dict[Hashable, str] = {}
    mixed = 0
    sizes = []
    for label, places in groups.items():
        own = np.array([members[k].reward for k in places])
        by_episode: dict[int, list[float]] = {}
        for k in places:
            by_episode.setdefault(members[k].episode, []).append(members[k].reward)
        sizes.append(len(by_episode))
        mixed += len({members[k].turn.prompt_ids.tobytes() for k in places}) > 1
        sample = own if per_turn else np.array([np.mean(r) for r in by_episode.values()])
        spread = sample.std()
        if spread < SMALLEST_SIGMA:
            skipped[label] = ALONE if len(by_episode) == 1 else EQUAL
            continue
        advantages[places] = (own - sample.mean()) / spread
        used[places] = True
    standard = Standardised(advantages, np.ones(len(members), dtype=np.int64), used, skipped)
    return standard, {
        "count": len(groups),
        "degenerate": len(skipped),
        "alone": sum(why == ALONE for why in skipped.values()),
        "mixed_prompts": mixed,
        "episodes": float(np.mean(sizes)),
        "smallest": min(sizes),
        "largest": max(sizes),
    }


def _reward(episode: Episode, turn: SampledTurn) -> float:
    check_episode(episode)
    return float(agent_rewards(episode, turn.agent).sum())
