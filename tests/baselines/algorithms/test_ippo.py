"""Independent PPO: own critics, own streams, a bandit solved by both algorithms."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tabular_team import episode, no_fresh_batch, sample_actions, turn

from flexmg.baselines.algorithms.ippo import IPPO, IPPOConfig
from flexmg.baselines.algorithms.marft import MARFT, MARFTConfig
from flexmg.baselines.exact.team import TabularTeam
from flexmg.baselines.rollout.turns import Batch
from flexmg.errors import InvalidArgument


def test_defaults_are_marfts_wherever_both_have_them():
    marft = {f.name: f.default for f in dataclasses.fields(MARFTConfig)}
    ippo = {f.name: f.default for f in dataclasses.fields(IPPOConfig)}
    shared = marft.keys() & ippo.keys()
    assert {name: ippo[name] for name in shared} == {name: marft[name] for name in shared}
    assert shared >= {"lr", "clip", "epochs", "minibatches", "gamma", "lam", "target_kl"}


def bandit_batch(team: TabularTeam, rng, episodes: int = 48) -> Batch:
    """The planner picks an arm, the solver must name the same one; arm 2 pays most."""
    arm, arm_logs = sample_actions(team, "planner", episodes, rng)
    made = []
    for sample in range(episodes):
        reply, reply_logs = sample_actions(team, "solver", 1, rng, state=1 + int(arm[sample]))
        paid = [0.1, 0.3, 1.0][arm[sample]] * float(reply[0] == arm[sample])
        plan = turn("planner_0", [arm[sample]], log_probs=[arm_logs[sample]])
        answer = turn("solver_0", reply, layer=1, state=1 + int(arm[sample]), log_probs=reply_logs)
        made.append(episode([plan, answer], [paid], sample=sample))
    return Batch(made)


@pytest.mark.parametrize(
    ("algorithm", "config", "critics"),
    [
        (MARFT, MARFTConfig(lr=0.1, critic_lr=0.05), ["central"]),
        (MARFT, MARFTConfig(lr=0.1, critic_lr=0.05, importance="none"), ["central"]),
        (IPPO, IPPOConfig(lr=0.1, critic_lr=0.05), ["planner", "solver"]),
    ],
)
def test_bandit_of_two_agents_is_solved(algorithm, config, critics):
    """Fact 6: from 1/9 at the start to the known optimum."""
    team = TabularTeam(["planner", "solver"], critics, states=4, actions=3)
    learner = algorithm(team, config, temperature=1.0)
    rng = np.random.default_rng(0)
    for iteration in range(40):
        learner.update(bandit_batch(team, rng), (iteration,), no_fresh_batch)
    assert team.probability("planner", 2) > 0.9
    assert team.probability("solver", 2, state=3) > 0.9


def test_each_critic_learns_from_its_own_agents_rewards():
    team = TabularTeam(["voter", "judge"], ["voter", "judge"])
    learner = IPPO(team, IPPOConfig(critic_lr=0.1, critic_epochs=50), temperature=1.0)
    batch = [
        episode(
            [turn("voter_0", [k % 2]), turn("judge_0", [1], layer=1)],
            [1.0],
            sample=k,
            agent_rewards={"voter_0": 0.0, "judge_0": -1.0},
        )
        for k in range(8)
    ]
    learner.update(Batch(batch), (0,), no_fresh_batch)
    assert team.heads["voter"][0].item() == pytest.approx(0.0, abs=1e-6)
    assert team.heads["judge"][0].item() < -0.15


def test_agents_that_share_a_policy_keep_trajectories_of_their_own():
    """Two voters of one policy, V = 0: each return is the own reward, not their sum."""
    team = TabularTeam(["team"], ["team"], states=2)
    learner = IPPO(team, IPPOConfig(gamma=1.0, lam=1.0), temperature=1.0)
    seen = []
    learner.standardise = lambda turns, advantages, lengths: (
        seen.append(advantages.copy()) or IPPO.standardise(learner, turns, advantages, lengths)
    )
    turns = [
        turn("voter_0", [0], policy="team"),
        turn("voter_1", [1], policy="team"),
        turn("voter_0", [0], policy="team", step=1),
    ]
    paid = {"voter_0": 1.0, "voter_1": 0.25}
    learner.update(Batch([episode(turns, [0.0, 0.0], agent_rewards=paid)]), (0,), no_fresh_batch)
    assert seen[0].tolist() == [1.0, 0.25, 1.0]


def test_truncated_episode_bootstraps_from_the_agents_own_observation():
    team = TabularTeam(["solver"], ["solver"], states=2)
    team.heads["solver"].data[1] = 4.0
    ep = episode(
        [turn("solver_0", [1])],
        [0.0],
        terminated=False,
        final_prompt_ids={"solver_0": np.array([1], dtype=np.int32)},
    )
    learner = IPPO(team, IPPOConfig(), temperature=1.0)
    assert learner._final_values(ep) == {"solver_0": 4.0}


def test_truncated_episode_without_that_observation_is_refused():
    team = TabularTeam(["solver"], ["solver"])
    ep = episode([turn("solver_0", [1])], [0.0], terminated=False)
    with pytest.raises(InvalidArgument, match="final observation"):
        IPPO(team, IPPOConfig(), temperature=1.0).update(Batch([ep]), (0,), no_fresh_batch)
