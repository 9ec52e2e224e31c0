from __future__ import annotations

import pytest
from sums import played, team

import flexmg
from flexmg.errors import InvalidArgument
from flexmg.wrappers import RewardMode

MODES = ["team", "designated", "local", {"team": 0.25, "local": 0.5, "format": -1.0}]


def one_is_wrong(agent, observation):
    """Voter 0 is wrong, the others do not answer at all, the aggregator takes the third."""
    return {"voter_0": "Answer: 0", "aggregator_0": "Best: 1"}.get(agent, "no answer")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("workflow", ["voting", "orch-workers", "eval-opt", "router"])
@pytest.mark.parametrize("policy", [None, one_is_wrong])
def test_it_pays_what_a_game_made_with_that_reward_pays(workflow, mode, policy):
    wrapped, made = RewardMode(team(workflow), mode), team(workflow, reward=mode)
    assert played(wrapped, policy) == played(made, policy)


def test_the_game_inside_keeps_its_reward():
    game = team("voting")
    played(RewardMode(game, "designated"))
    assert set(game.outcome.rewards.values()) == {1.0}


def test_designated_pays_the_answering_agents_alone():
    env = RewardMode(team("voting"), "designated")
    collected = played(env)
    assert collected == {"voter_0": 1.0, "voter_1": 0.0, "voter_2": 0.0, "aggregator_0": 1.0}


def test_several_stand_over_each_other_and_the_outer_one_counts():
    env = RewardMode(RewardMode(team("voting"), "local"), "designated")
    assert played(env)["voter_1"] == 0.0


def test_rewards_are_zero_until_the_end():
    env = RewardMode(team("duo"), "team")
    env.reset(seed=0)
    env.step("a plan")
    assert env.rewards == {"planner_0": 0.0, "solver_0": 0.0}


def test_the_record_replays_as_a_game_with_that_reward():
    env = RewardMode(flexmg.make("math-voting-v0"), {"designated": 2.0})
    played(env)
    record = env.transcript()
    assert record.kwargs == {"reward": {"designated": 2.0}}
    assert flexmg.replay(flexmg.Transcript.from_json(record.to_json())).ok


def test_an_unfinished_record_has_no_rewards():
    env = RewardMode(team("duo"), "local")
    env.reset(seed=0)
    assert env.transcript().rewards == {}


def test_a_snapshot_brings_back_what_is_to_be_collected():
    env = RewardMode(team("duo"), {"team": 3.0})
    env.reset(seed=0)
    env.step("a plan")
    env.step(env.unwrapped.demonstrate("solver_0"))
    snapshot = env.snapshot()
    for _ in env.agents.copy():
        env.step(None)
    env.restore(snapshot)
    assert env.last()[1] == 3.0


def test_an_unknown_mode_is_refused():
    with pytest.raises(InvalidArgument, match="reward='fair'"):
        RewardMode(team("duo"), "fair")
