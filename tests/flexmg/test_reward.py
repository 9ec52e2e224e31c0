"""Rewards against hand-computed tables."""

from __future__ import annotations

import pytest

from flexmg import Reward, Turn
from flexmg.errors import InvalidArgument

AGENTS = ("planner_0", "solver_0", "judge_0")


def turn(agent, position, fallback=""):
    return Turn(agent, "", 0, 0, 0, position, (), fallback=fallback)


TURNS = [turn("planner_0", 0), turn("solver_0", 1), turn("judge_0", 2, "x"), turn("solver_0", 3)]
TRUTH = {1: 0.0, 3: 1.0, 2: 0.0}  # solver wrong, then right; judge wrong; planner has none


def rewards(mode, score=1.0):
    reward = Reward.of(mode)
    terms = reward.terms(score, AGENTS, ("solver_0",), TURNS, TRUTH)
    return reward.agent_rewards(terms), reward.central(score, terms)


@pytest.mark.parametrize(
    ("mode", "score", "agents", "central"),
    [
        ("team", 1.0, (1.0, 1.0, 1.0), 1.0),
        ("team", 0.0, (0.0, 0.0, 0.0), 0.0),
        ("designated", 1.0, (0.0, 1.0, 0.0), 1.0),
        ("local", 1.0, (1.0, 0.5, 0.0), 0.5),
        ("local", 0.0, (0.0, 0.5, 0.0), 1 / 6),
        ({"format": 1.0}, 1.0, (1.0, 1.0, 0.0), 2 / 3),
        ({"team": 0.5, "local": 2.0}, 1.0, (2.5, 1.5, 0.5), 1.5),
        ({"team": 1.0, "designated": 1.0}, 1.0, (1.0, 2.0, 1.0), 2.0),
        ({"team": -1.0}, 1.0, (-1.0, -1.0, -1.0), -1.0),
    ],
)
def test_rewards_by_hand(mode, score, agents, central):
    paid, stream = rewards(mode, score)
    assert tuple(paid.values()) == pytest.approx(agents)
    assert stream == pytest.approx(central)


def test_an_agent_that_did_not_act_is_paid_the_teams_score_locally():
    reward = Reward.of("local")
    terms = reward.terms(0.75, ("idle_0",), (), [], {})
    assert reward.agent_rewards(terms) == {"idle_0": 0.75}


def test_a_reward_is_taken_as_it_is():
    reward = Reward({"team": 2.0})
    assert Reward.of(reward) is reward


@pytest.mark.parametrize(
    "mode",
    [
        "mix",
        "Team",
        None,
        ["team"],
        {},
        {"speed": 1.0},
        {"team": float("nan")},
        {"team": float("inf")},
        {"team": "1"},
    ],
)
def test_anything_else_is_refused(mode):
    with pytest.raises(InvalidArgument, match="reward"):
        Reward.of(mode)


def test_later_changes_of_the_weights_do_not_matter():
    weights = {"team": 1.0}
    reward = Reward.of(weights)
    weights["team"] = 5.0
    assert reward.weights == {"team": 1.0}


def test_mixed_by_name_is_half_team_half_local():
    assert Reward.of("mixed") == Reward.of({"team": 0.5, "local": 0.5})
