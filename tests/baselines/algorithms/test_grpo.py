"""GRPO: groups, their statistics, and a bandit solved without a critic."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tabular_team import episode, no_fresh_batch, sample_actions, turn

from flexmg.baselines.algorithms.grpo import GRPO, GRPOConfig, Member, compare, group_labels
from flexmg.baselines.exact.team import TabularTeam
from flexmg.baselines.rollout.turns import Batch
from flexmg.errors import InvalidArgument

THIRD = [math.log(1 / 3)]


def voting(problem: str, sample: int, reward: float):
    """Two voters on one prompt, then an aggregator on a prompt of its own rollout."""
    turns = [
        turn("voter_0", [0], state=0, log_probs=THIRD),
        turn("voter_1", [1], state=0, log_probs=THIRD),
        turn("aggregator_0", [2], layer=1, state=1 + sample % 2, log_probs=THIRD),
    ]
    made = episode(turns, [reward], sample=sample)
    made.problem = problem
    return made


def members(episodes, group):
    return [
        Member(t, number, ep.step_rewards.sum(), label)
        for number, ep in enumerate(episodes)
        for t, label in zip(ep.turns, group_labels(ep, group), strict=True)
    ]


def test_advantages_within_a_group_hand_computed():
    """Rewards 1, 0, 0, 1 of one problem, 0, 0, 0, 0 of another: the second is degenerate."""
    episodes = [voting("p", s, r) for s, r in enumerate([1.0, 0.0, 0.0, 1.0])]
    episodes += [voting("q", s, 0.0) for s in range(4)]
    standard, groups = compare(members(episodes, "task-role"))
    assert standard.advantages[:12].tolist() == [1.0] * 3 + [-1.0] * 6 + [1.0] * 3
    assert standard.advantages[12:].tolist() == [0.0] * 12
    assert standard.used.tolist() == [True] * 12 + [False] * 12
    # Voters share their prompt; aggregators read their own rollout.
    assert groups == {
        "count": 4,
        "degenerate": 2,
        "alone": 0,
        "mixed_prompts": 2,
        "episodes": 4.0,
        "smallest": 4,
        "largest": 4,
    }


@pytest.mark.parametrize(
    ("group", "voters", "aggregators"),
    [
        ("task-role", 1, 1),
        ("task-slot", 2, 1),
        ("task-role-turn", 1, 1),
        ("prompt", 1, 2),
        ("study", 2, 1),
    ],
)
def test_number_of_groups_by_key(group, voters, aggregators):
    """Four rollouts of one problem; the aggregators saw two different prompts."""
    labels = {
        (label[1], label) for s in range(4) for label in group_labels(voting("p", s, 0.0), group)
    }
    assert sum(role == "voter" for role, _ in labels) == voters
    assert sum(role == "aggregator" for role, _ in labels) == aggregators


def test_task_role_turn_separates_first_and_later_calls():
    loop = episode(
        [turn("generator_0", [0]), turn("generator_0", [1], step=1), turn("worker_1", [1], step=1)],
        [0.0, 1.0],
    )
    first, second, worker = group_labels(loop, "task-role-turn")
    assert first != second
    assert worker[-1] == 0


def test_policies_of_their_own_never_share_a_group():
    turns = [turn("voter_0", [0], policy="a"), turn("voter_1", [0], policy="b")]
    one, other = group_labels(episode(turns, [1.0]), "task-role")
    assert one != other


def test_an_episode_with_many_turns_counts_once_in_its_group():
    """A loop that runs longer when it fails: statistics over turns are pulled to its side."""
    long = episode([turn("generator_0", [0], step=k) for k in range(3)], [0.0, 0.0, 0.0])
    short = episode([turn("generator_0", [0])], [1.0], sample=1)
    by_episode, _ = compare(members([long, short], "task-role"))
    assert by_episode.advantages.tolist() == [-1.0, -1.0, -1.0, 1.0]
    by_turn, _ = compare(members([long, short], "task-role"), per_turn=True)
    mean, std = 0.25, math.sqrt(3) / 4
    assert by_turn.advantages == pytest.approx([-mean / std] * 3 + [(1 - mean) / std])


def test_groups_of_one_episode_give_no_gradient_and_are_counted():
    episodes = [voting("p", s, float(s)) for s in range(2)]
    standard, groups = compare(members(episodes, "prompt"))
    assert standard.used.tolist() == [True, True, False] * 2
    assert (groups["alone"], groups["degenerate"], groups["smallest"]) == (2, 2, 1)


def test_an_iteration_without_gradient_says_why_by_role():
    team = TabularTeam(["voter", "aggregator"], [], states=3, actions=3)
    batch = Batch([voting("p", s, 1.0) for s in range(4)])
    got = GRPO(team, GRPOConfig(), temperature=1.0).update(batch, (0,), no_fresh_batch)
    assert got["policies"]["voter"]["skipped"] == "voter: the rewards within its groups are equal"
    assert team.versions == {"voter": 0, "aggregator": 0}


def test_every_turns_return_is_the_teams_outcome():
    """Fact 8 for GRPO: one R, whatever the number of agents and turns."""
    batch = [voting("p", s, r) for s, r in enumerate([1.0, 0.0])]
    standard, _ = compare(members(batch, "task-role"))
    assert standard.advantages.tolist() == [1.0] * 3 + [-1.0] * 3


def test_local_rewards_are_compared_with_local_rewards():
    team = TabularTeam(["voter", "aggregator"], [], states=3, actions=3)
    batch = [voting("p", s, 1.0) for s in range(4)]
    for s, ep in enumerate(batch):
        ep.agent_rewards = {"voter_0": float(s % 2), "voter_1": 1.0, "aggregator_0": 1.0}
    got = GRPO(team, GRPOConfig(group="task-slot"), temperature=1.0).update(
        Batch(batch), (0,), no_fresh_batch
    )
    assert got["policies"]["voter"]["used"] == 4
    assert "skipped" in got["policies"]["aggregator"]


def test_episodes_that_were_cut_are_left_out_and_counted():
    batch = [voting("p", s, float(s % 2)) for s in range(4)]
    batch[0].terminated = False
    team = TabularTeam(["voter", "aggregator"], [], states=3, actions=3)
    got = GRPO(team, GRPOConfig(), temperature=1.0).update(Batch(batch), (0,), no_fresh_batch)
    assert got["left_out"] == 1
    assert got["policies"]["voter"]["turns"] == 6


@pytest.mark.parametrize("level", ["action", "token"])
def test_first_gradient_is_the_mean_over_turns(level):
    """At rho = 1, one token per action: -mean of A grad log pi over the policy's turns."""
    team = TabularTeam(["voter", "aggregator"], [], states=3, actions=3)
    config = GRPOConfig(level=level, epochs=1, minibatches=1, max_grad_norm=1e9, target_kl=None)
    learner = GRPO(team, config, temperature=1.0)
    learner.policy_optimizers["voter"] = torch.optim.SGD(team.policy_parameters("voter"), lr=1.0)
    batch = Batch([voting("p", s, r) for s, r in enumerate([1.0, 0.0])])
    batch.episodes[1].turns[0].action_ids = np.array([2], dtype=np.int32)
    learner.update(batch, (0,), no_fresh_batch)
    # Good: 0 and 1. Bad: 2 and 1. Over four turns.
    step = [(torch.eye(3)[good] - torch.eye(3)[bad]) / 4 for good, bad in ((0, 2), (1, 1))]
    assert torch.allclose(team.tables["voter"].detach()[0], sum(step), atol=1e-6)


@pytest.mark.parametrize("level", ["action", "token"])
def test_bandit_is_solved(level):
    """Fact 6: one agent, three arms, groups of eight."""
    team = TabularTeam(["solver"], [], actions=3)
    learner = GRPO(team, GRPOConfig(level=level, lr=0.1), temperature=1.0)
    rng = np.random.default_rng(0)
    for iteration in range(40):
        arms, logs = sample_actions(team, "solver", 64, rng)
        made = []
        for k in range(64):
            ep = episode(
                [turn("solver_0", [arms[k]], log_probs=[logs[k]])], [[0.1, 0.3, 1.0][arms[k]]]
            )
            ep.problem, ep.sample = f"p{k // 8}", k % 8
            made.append(ep)
        learner.update(Batch(made), (iteration,), no_fresh_batch)
    assert team.probability("solver", 2) > 0.9


def test_defaults_are_those_of_its_public_codes():
    config = GRPOConfig()
    assert (config.level, config.token_aggregation, config.ratio_clip) == (
        "token",
        "turn-mean",
        (0.2, 0.28),
    )
    assert config.kl_coefficient == 0.0
    assert GRPOConfig(level="action", normalisation="token").ratio_clip == (0.03, 0.042)
    assert GRPOConfig(clip_high=0.5).ratio_clip == (0.2, 0.5)
    assert GRPO.critics(["a", "b"]) == ()


def test_unknown_group_is_refused():
    with pytest.raises(InvalidArgument, match="task-slot"):
        GRPOConfig(group="task")
