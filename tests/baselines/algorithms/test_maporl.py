"""MAPoRL: the published score rule and its bonuses, by hand; a debate learnt."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tabular_team import episode, no_fresh_batch, sample_actions, turn

from flexmg.baselines.algorithms.maporl import (
    MAPoRL,
    MAPoRLConfig,
    discounted_scores,
    influence_bonuses,
    score_table,
)
from flexmg.baselines.exact.team import TabularTeam
from flexmg.baselines.rollout.turns import Batch
from flexmg.errors import InvalidArgument


def debate(scores, policy: str = "debater"):
    """An episode of one row of scores per round, one column per debater."""
    turns = []
    for t, row in enumerate(scores):
        for a, score in enumerate(row):
            made = turn(f"debater_{a}", [int(score)], policy=policy, step=t)
            made.truth = float(score)
            made.log_probs = np.array([math.log(0.5)], dtype=np.float32)
            turns.append(made)
    return episode(turns, [0.0] * (len(scores) - 1) + [float(scores[-1][0])])


def test_score_rule_hand_computed():
    """d = 0.3, three rounds, two debaters."""
    scores = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    got = discounted_scores(scores, 0.3)
    norm = 1 + 0.3 + 0.09
    assert got[0] == pytest.approx([(1 + 0.3 * 0 + 0.09 * 1) / norm, (0 + 0.09) / norm])
    assert got[1] == pytest.approx([0.3 / 1.3, 0.3 / 1.3])
    assert got[2] == pytest.approx([1.0, 1.0])


def test_all_right_is_worth_one_in_every_round():
    assert discounted_scores(np.ones((4, 3)), 0.3) == pytest.approx(np.ones((4, 3)))


A0, A1, A2, A3 = 1.0, 10.0, 100.0, 1000.0


@pytest.mark.parametrize(
    ("scores", "first", "second"),
    [
        # debater 0 goes right while debater 1 was, and stays, right
        ([[0, 1], [1, 1]], [0, +A3], [+A0, 0]),
        # debater 0 goes right beside one that stays wrong
        ([[0, 0], [1, 0]], [0, +A2], [+A1, 0]),
        # debater 0 goes wrong beside one that stays wrong: it let itself be misled
        ([[1, 0], [0, 0]], [0, -A3], [-A0, 0]),
        # debater 0 goes wrong beside one that stays right
        ([[1, 1], [0, 1]], [0, -A2], [-A1, 0]),
        ([[1, 0], [1, 0]], [0, 0], [0, 0]),
    ],
)
def test_bonuses_hand_computed(scores, first, second):
    got = influence_bonuses(np.array(scores, dtype=float), (A0, A1, A2, A3))
    assert got.tolist() == [first, second]


def test_published_signs_turn_the_half_about_others_round():
    scores = np.array([[0.0, 1.0], [1.0, 1.0]])
    got = influence_bonuses(scores, (A0, A1, A2, A3), sign=-1.0)
    assert got.tolist() == [[0, -A3], [+A0, 0]]


def test_others_are_right_when_more_than_half_of_them_are():
    """Three debaters: for debater 0, one right of two others is not a majority."""
    scores = np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    got = influence_bonuses(scores, (A0, A1, 0.0, 0.0))
    assert got[1].tolist() == [A1, 0, 0]


def test_each_answer_is_a_trajectory_of_its_own():
    """V = 0: the advantage of an answer is R(t, i), with nothing added from other rounds."""
    team = TabularTeam(["debater"], ["debater"])
    learner = MAPoRL(team, MAPoRLConfig(bonuses=(0.5, 0.0, 0.0, 0.0)), temperature=1.0)
    ep = debate([[0, 1], [1, 1]])
    stream = learner.streams([ep])
    expected = discounted_scores(score_table(ep), 0.3)
    expected[1, 0] += 0.5
    assert stream.rewards == pytest.approx(expected.ravel())
    assert (stream.discounts == 0).all()
    assert stream.ends.all()


def test_an_environment_that_does_not_score_every_answer_is_refused():
    ep = debate([[1, 0], [1, 1]])
    ep.turns[1].truth = None
    team = TabularTeam(["debater"], ["debater"])
    with pytest.raises(InvalidArgument, match="math-debate-v0"):
        MAPoRL(team, MAPoRLConfig(), temperature=1.0).update(Batch([ep]), (0,), no_fresh_batch)


def test_a_workflow_in_which_agents_act_in_turn_is_refused():
    ep = debate([[1, 0], [1, 1]])
    del ep.turns[3]
    with pytest.raises(InvalidArgument, match="no debate"):
        score_table(ep)


def test_episodes_that_were_cut_are_left_out():
    batch = [debate([[k % 2, 0], [1, k % 2]]) for k in range(6)]
    batch[0].terminated = False
    team = TabularTeam(["debater"], ["debater"])
    got = MAPoRL(team, MAPoRLConfig(), temperature=1.0).update(Batch(batch), (0,), no_fresh_batch)
    assert (got["left_out"], got["policies"]["debater"]["turns"]) == (1, 20)


@pytest.mark.parametrize("level", ["action", "token"])
def test_debaters_learn_to_be_right(level):
    """Fact 6: the right answer is token 1, from even odds."""
    team = TabularTeam(["debater"], ["debater"])
    learner = MAPoRL(team, MAPoRLConfig(level=level, lr=0.1), temperature=1.0)
    rng = np.random.default_rng(0)
    for iteration in range(25):
        batch = []
        for _ in range(24):
            picks, logs = sample_actions(team, "debater", 4, rng)
            ep = debate(picks.reshape(2, 2))
            for t, log in zip(ep.turns, logs, strict=True):
                t.log_probs = np.array([log], dtype=np.float32)
            batch.append(ep)
        learner.update(Batch(batch), (iteration,), no_fresh_batch)
    assert team.probability("debater", 1) > 0.9
