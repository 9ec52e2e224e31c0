"""The shared inner loop: padding and batching, the KL stop, the extra terms, divergence."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tabular_team import turn

from flexmg.baselines.algorithms.losses import NORMALISATIONS
from flexmg.baselines.algorithms.optimisation import (
    DivergenceError,
    adamw,
    explained_variance,
    micro_batches,
    score,
    update_policy,
)
from flexmg.baselines.algorithms.settings import PPOConfig
from flexmg.baselines.exact.team import TabularTeam
from flexmg.errors import InvalidArgument

START = torch.tensor([[0.3, -0.2, 0.8], [0.1, 0.5, -0.7]])


def ragged_turns(seed: int = 0, count: int = 10):
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        actions = rng.integers(0, 3, size=rng.integers(1, 6))
        made.append(
            turn("solver_0", actions, state=int(rng.integers(0, 2)), text="w " * len(actions))
        )
    return made


def gradient(turns, weights, **settings) -> torch.Tensor:
    """The gradient of one optimiser step, read from a step of plain descent."""
    team = TabularTeam(["solver"], [], states=2, actions=3)
    team.tables["solver"].data.copy_(START)
    config = PPOConfig(epochs=1, minibatches=1, max_grad_norm=1e9, target_kl=None, **settings)
    old = score(team, "solver", turns, np.arange(len(turns)), config, 1.0)
    update_policy(
        team,
        "solver",
        torch.optim.SGD(team.policy_parameters("solver"), lr=1.0),
        old,
        weights,
        np.arange(len(turns)),
        config,
        temperature=1.0,
        rng=np.random.default_rng(0),
    )
    return START - team.tables["solver"].detach()


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_micro_batches_never_change_the_gradient(normalisation):
    """Fact 4: one padded pass, and passes of single turns without any padding."""
    turns = ragged_turns()
    weights = torch.linspace(-1, 1, len(turns))
    whole = gradient(turns, weights, normalisation=normalisation, entropy_coefficient=0.1)
    single = gradient(
        turns,
        weights,
        normalisation=normalisation,
        entropy_coefficient=0.1,
        micro_batch_tokens=1,
    )
    assert torch.allclose(whole, single, atol=1e-6)


def test_a_longer_neighbour_never_changes_a_turns_gradient():
    """Fact 4: padding. A neighbour with weight 0 adds nothing but padding, and halves the mean."""
    short = turn("solver_0", [2, 1])
    long = turn("solver_0", [0] * 30)
    alone = gradient([short], torch.tensor([1.0]))
    beside = gradient([short, long], torch.tensor([1.0, 0.0]))
    assert torch.allclose(alone, 2 * beside, atol=1e-6)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_gradient_at_the_start_is_the_policy_gradient(normalisation):
    """At rho = 1: -mean A d(log pi / n), by hand from the softmax."""
    turns = ragged_turns(3)
    weights = torch.linspace(1, -2, len(turns))
    expected = torch.zeros(2, 3)
    probabilities = torch.softmax(START, dim=1)
    for weight, own in zip(weights, turns, strict=True):
        state = int(own.prompt_ids[-1])
        n = len(own.action_ids) if normalisation != "sum" else 1
        for token in own.action_ids:
            d = -probabilities[state]
            d[token] += 1.0
            expected[state] -= weight * d / n / len(turns)
    got = gradient(turns, weights, normalisation=normalisation)
    assert torch.allclose(got, expected, atol=1e-6)


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 20)), min_size=1, max_size=30),
    st.integers(1, 400),
)
@settings(max_examples=100, deadline=None)
def test_micro_batches_hold_every_turn_once_within_the_budget(sizes, budget):
    turns = []
    for prompt, action in sizes:
        own = turn("a_0", [0] * action)
        own.prompt_ids = np.zeros(prompt, dtype=np.int32)
        turns.append(own)
    passes = list(micro_batches(turns, range(len(turns)), budget))
    assert sorted(k for part in passes for k in part) == list(range(len(turns)))
    for part in passes:
        padded = max(sizes[k][0] for k in part) + max(sizes[k][1] for k in part)
        assert len(part) == 1 or padded * len(part) <= budget


def run_update(team, config, turns, weights):
    old = score(team, "solver", turns, np.arange(len(turns)), config, 1.0)
    return update_policy(
        team,
        "solver",
        adamw(team.policy_parameters("solver"), config.lr),
        old,
        torch.tensor(weights),
        np.arange(len(turns)),
        config,
        temperature=1.0,
        rng=np.random.default_rng(0),
    )


def test_kl_stop_ends_the_update_of_a_policy():
    team = TabularTeam(["solver"], [])
    turns = [turn("solver_0", [0]), turn("solver_0", [1])]
    config = PPOConfig(lr=1.0, epochs=20, minibatches=1, clip=math.inf, target_kl=0.1)
    metrics = run_update(team, config, turns, [1.0, -1.0])
    assert metrics["stopped"] and metrics["steps"] < 20


def test_entropy_bonus_flattens_a_policy_without_advantages():
    team = TabularTeam(["solver"], [], logits=2.0)
    turns = [turn("solver_0", [0]), turn("solver_0", [1])]
    config = PPOConfig(lr=0.1, epochs=40, entropy_coefficient=1.0, target_kl=None)
    run_update(team, config, turns, [0.0, 0.0])
    assert abs(team.probability("solver", 1) - 0.5) < 0.05


def test_kl_to_the_base_pulls_a_policy_back_to_it():
    team = TabularTeam(["solver"], [], logits=0.0)
    team.tables["solver"].data[0, 1] = 1.5
    half = np.random.default_rng(0).random(200) < team.probability("solver", 1)
    turns = [turn("solver_0", [int(action)]) for action in half]
    config = PPOConfig(lr=0.05, epochs=3, kl_coefficient=1.0, target_kl=None)
    before = team.probability("solver", 1)
    run_update(team, config, turns, [0.0] * 200)
    assert 0.5 < team.probability("solver", 1) < before


def test_action_without_tokens_is_legal():
    team = TabularTeam(["solver"], [])
    turns = [turn("solver_0", []), turn("solver_0", [1])]
    metrics = run_update(team, PPOConfig(normalisation="token"), turns, [1.0, -1.0])
    assert math.isfinite(metrics["loss"])


def test_a_loss_that_is_not_finite_stops_before_the_step():
    team = TabularTeam(["solver"], [])
    with pytest.raises(DivergenceError, match="lower lr"):
        run_update(team, PPOConfig(), [turn("solver_0", [1])], [math.nan])
    assert team.tables["solver"].tolist() == [[0.0, 0.0]]


def test_version_counts_applied_updates():
    team = TabularTeam(["solver"], [])
    run_update(team, PPOConfig(), [turn("solver_0", [1])], [1.0])
    assert team.versions == {"solver": 1}


def test_explained_variance_hand_computed():
    assert explained_variance(np.array([0.0, 1.0]), np.array([0.0, 2.0])) == pytest.approx(0.75)
    assert explained_variance(np.zeros(3), np.ones(3)) is None


@pytest.mark.parametrize("name", ["lr", "epochs", "minibatches", "clip", "target_kl", "gamma"])
def test_negative_settings_are_refused_by_name(name):
    with pytest.raises(InvalidArgument, match=name):
        PPOConfig(**{name: -1})
