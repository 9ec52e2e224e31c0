"""The terms of the objective against hand-computed numbers and numerical integration."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tabular_team import turn

from flexmg.baselines.algorithms.losses import (
    DEFAULT_CLIP,
    NORMALISATIONS,
    aggregate,
    clipped_surrogate,
    divisor,
    k3,
    lengths,
    masked_sum,
    value_loss,
)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "clipped"),
    [
        (1.0, 2.0, -2.0, False),
        (1.5, 2.0, -2.4, True),  # gain bounded at 1.2 A
        (0.5, 2.0, -1.0, False),  # a loss of probability is never bounded
        (0.5, -2.0, 1.6, True),  # decrease bounded at 0.8 A
        (1.5, -2.0, 3.0, False),
    ],
)
def test_clipped_surrogate_hand_computed(ratio, advantage, loss, clipped):
    got, where = clipped_surrogate(torch.tensor([ratio]), torch.tensor([advantage]), 0.2, 0.2)
    assert got.item() == pytest.approx(loss)
    assert where.item() is clipped


def test_infinite_clip_never_clips():
    got, where = clipped_surrogate(torch.tensor([50.0]), torch.tensor([3.0]), math.inf, math.inf)
    assert (got.item(), where.item()) == (-150.0, False)


def test_padding_never_counts_even_when_it_is_nan():
    tokens = torch.tensor([[1.0, 2.0, math.nan], [3.0, math.inf, -math.inf]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert masked_sum(tokens, mask).tolist() == [3.0, 3.0]


def test_padding_gets_no_gradient():
    tokens = torch.ones(1, 3, requires_grad=True)
    masked_sum(tokens, torch.tensor([[True, True, False]])).sum().backward()
    assert tokens.grad.tolist() == [[1.0, 1.0, 0.0]]


def test_lengths_of_each_normalisation():
    turns = [turn("a_0", [1, 1, 1], text="two  words\n"), turn("a_0", [], text="")]
    mask = torch.tensor([[True, True, True], [False, False, False]])
    assert lengths(turns, mask, "sum") == 1.0
    assert lengths(turns, mask, "token").tolist() == [3.0, 1.0]
    assert lengths(turns, mask, "word").tolist() == [2.0, 1.0]


def test_every_normalisation_has_a_clip_of_its_own():
    assert set(DEFAULT_CLIP) == set(NORMALISATIONS)
    assert DEFAULT_CLIP["token"] < DEFAULT_CLIP["word"] < DEFAULT_CLIP["sum"]


@given(st.floats(-5, 5), st.floats(-5, 5))
def test_value_loss_is_symmetric_in_the_error(old, error):
    def loss(sign):
        values = torch.tensor([old + sign * error])
        olds = torch.tensor([old])
        return value_loss(values, olds, olds, clip=0.2, huber=1.0).item()

    assert loss(+1) == pytest.approx(loss(-1), abs=1e-4)


@pytest.mark.parametrize(("error", "loss"), [(0.5, 0.125), (1.0, 0.5), (3.0, 2.5), (-3.0, 2.5)])
def test_huber_hand_computed(error, loss):
    got = value_loss(
        torch.tensor([error]), torch.tensor([error]), torch.tensor([0.0]), clip=0.2, huber=1.0
    )
    assert got.item() == pytest.approx(loss)


def test_value_moved_too_far_towards_its_target_has_no_gradient():
    values = torch.tensor([0.9], requires_grad=True)
    value_loss(values, torch.tensor([0.0]), torch.tensor([1.0]), clip=0.2, huber=1.0).backward()
    assert values.grad.item() == 0.0


def test_value_moved_away_from_its_target_keeps_its_gradient():
    values = torch.tensor([-0.9], requires_grad=True)
    value_loss(values, torch.tensor([0.0]), torch.tensor([1.0]), clip=0.2, huber=1.0).backward()
    assert values.grad.item() == pytest.approx(-1.0)


@given(
    st.lists(st.floats(-3, 3), min_size=3, max_size=3),
    st.lists(st.floats(-3, 3), min_size=3, max_size=3),
)
def test_k3_averages_to_the_true_divergence(p_logits, q_logits):
    """The expectation of k3 under p, token by token, is KL(p || q)."""
    p = torch.log_softmax(torch.tensor(p_logits, dtype=torch.float64), dim=0)
    q = torch.log_softmax(torch.tensor(q_logits, dtype=torch.float64), dim=0)
    expected = (p.exp() * (p - q)).sum().item()
    assert (p.exp() * k3(p, q)).sum().item() == pytest.approx(expected, abs=1e-9)
    assert (k3(p, q) >= 0).all()


def test_a_higher_clip_above_one_lets_good_actions_move_further():
    ratio, advantage = torch.tensor([1.25, 1.4, 0.7]), torch.tensor([1.0, 1.0, -1.0])
    got, where = clipped_surrogate(ratio, advantage, 0.2, 0.28)
    assert got.tolist() == pytest.approx([-1.25, -1.28, 0.8])
    assert where.tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("aggregation", "loss"),
    [
        ("turn-sum", (1 + 2 + 3 + 10) / 2),
        ("turn-mean", (2 + 10) / 2),
        ("token-mean", 16 / 4),
    ],
)
def test_aggregations_hand_computed(aggregation, loss):
    """A turn of three tokens and one of one token, padded with NaN."""
    tokens = torch.tensor([[1.0, 2.0, 3.0], [10.0, math.nan, math.nan]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    terms = aggregate(tokens, mask, aggregation)
    assert (terms.sum() / divisor(mask, aggregation)).item() == pytest.approx(loss)
