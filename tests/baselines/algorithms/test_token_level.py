"""MARFT-T and token-level Independent PPO: one ratio per token, one loss per turn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tabular_team import episode, no_fresh_batch, turn

from flexmg.baselines.algorithms.ippo import IPPO, IPPOConfig
from flexmg.baselines.algorithms.learner import Learner
from flexmg.baselines.algorithms.marft import MARFT, MARFTConfig
from flexmg.baselines.algorithms.optimisation import score, update_policy
from flexmg.baselines.algorithms.settings import PolicyConfig, PPOConfig
from flexmg.baselines.exact.team import TabularTeam
from flexmg.baselines.rollout.turns import Batch
from flexmg.errors import InvalidArgument

ROLES = ("planner", "solver")
ONE_STEP = {"epochs": 1, "minibatches": 1, "target_kl": None, "max_grad_norm": 1e9}


def ragged_batch(seed: int, episodes: int = 10) -> Batch:
    rng = np.random.default_rng(seed)
    made = []
    for sample in range(episodes):
        turns = []
        for layer, role in enumerate(ROLES):
            actions = rng.integers(0, 3, size=rng.integers(1, 5))
            logs = [math.log(1 / 3)] * len(actions)
            turns.append(turn(f"{role}_0", actions, layer=layer, state=layer, log_probs=logs))
        made.append(episode(turns, [float(rng.normal())], sample=sample))
    return Batch(made)


def gradient(turns, weights, **settings) -> torch.Tensor:
    """The gradient of one step of plain descent from uniform logits."""
    team = TabularTeam(["solver"], [], states=2, actions=3)
    start = team.tables["solver"].detach().clone()
    config = PolicyConfig(level="token", **ONE_STEP, **settings)
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
    return start - team.tables["solver"].detach()


def test_gradient_hand_computed_from_the_definition():
    """At rho = 1: -(1 / turns) sum over tokens of A grad log pi, a softmax over three tokens."""
    turns = [turn("solver_0", [0, 2]), turn("solver_0", [1])]
    advantages = torch.tensor([[1.0, -2.0], [0.5, 99.0]])  # 99 stands on padding
    expected = torch.zeros(2, 3)
    for token, advantage in ((0, 1.0), (2, -2.0), (1, 0.5)):
        expected[0] -= advantage * (torch.eye(3)[token] - 1 / 3) / 2
    assert torch.allclose(gradient(turns, advantages), expected, atol=1e-6)


@pytest.mark.parametrize("aggregation", ["turn-sum", "turn-mean", "token-mean"])
def test_micro_batches_never_change_the_gradient(aggregation):
    """Fact 4 at the token level, for every aggregation."""
    rng = np.random.default_rng(0)
    turns = [turn("solver_0", rng.integers(0, 3, size=n), state=n % 2) for n in (1, 4, 2, 5, 3)]
    weights = torch.from_numpy(rng.normal(size=(5, 5))).float()
    whole = gradient(turns, weights, aggregation=aggregation, entropy_coefficient=0.1)
    single = gradient(
        turns, weights, aggregation=aggregation, entropy_coefficient=0.1, micro_batch_tokens=1
    )
    assert torch.allclose(whole, single, atol=1e-6)


def first_step(algorithm, config, critics, batch) -> dict[str, torch.Tensor]:
    """The gradients of the first optimiser step, by policy."""
    team = TabularTeam(ROLES, critics, states=3, actions=3)
    learner = algorithm(team, config, temperature=1.0)
    learner.policy_optimizers = {
        p: torch.optim.SGD(team.policy_parameters(p), lr=1.0) for p in ROLES
    }
    learner.update(batch, (0,), no_fresh_batch)
    return {policy: -team.tables[policy].detach() for policy in ROLES}


@pytest.mark.parametrize(
    ("algorithm", "config", "critics"),
    [(MARFT, MARFTConfig, ["central"]), (IPPO, IPPOConfig, list(ROLES))],
)
def test_untrained_critic_gives_the_same_gradient_at_both_levels(algorithm, config, critics):
    """Fact 2: V constant inside actions (here 0), gamma_w = lam_w = 1, at rho = 1, under sum."""
    extra = {"importance": "none"} if algorithm is MARFT else {}
    batch = ragged_batch(0)
    action = first_step(algorithm, config(level="action", **ONE_STEP, **extra), critics, batch)
    token = first_step(algorithm, config(level="token", **ONE_STEP, **extra), critics, batch)
    for policy in ROLES:
        assert torch.allclose(action[policy], token[policy], atol=1e-5)
        assert action[policy].abs().max() > 0.01


def test_other_aggregations_give_another_gradient():
    batch = ragged_batch(0)
    settings = {"level": "token", "importance": "none", **ONE_STEP}
    summed = first_step(MARFT, MARFTConfig(**settings), ["central"], batch)
    mean = first_step(MARFT, MARFTConfig(aggregation="turn-mean", **settings), ["central"], batch)
    assert not torch.allclose(summed["planner"], mean["planner"], atol=1e-3)


def test_the_critic_sees_every_position_of_an_action():
    """Token values differ by what was written before, and so do the targets they are fitted to."""
    team = TabularTeam(["solver"], ["central"], states=3, actions=3)
    config = MARFTConfig(level="token", critic_lr=0.05, critic_epochs=200, lr=1e-12, value_clip=9)
    made = [
        episode([turn("solver_0", [first, 0], log_probs=[math.log(1 / 3)] * 2)], [float(first)])
        for first in (1, 2) * 8
    ]
    MARFT(team, config, temperature=1.0).update(Batch(made), (0,), no_fresh_batch)
    # Head entries are read by the token before: the prompt's 0, then the first token, 1 or 2.
    assert team.heads["central"].tolist() == pytest.approx([1.5, 1.0, 2.0], abs=0.05)


def test_happo_factors_are_of_whole_actions_at_the_token_level():
    """M multiplies every token of a turn: the ratio of the whole earlier turn."""
    batch = ragged_batch(3)
    settings = {"level": "token", "order": "topological", "lr": 0.5}
    team = TabularTeam(ROLES, ["central"], states=3, actions=3)
    learner = MARFT(team, MARFTConfig(**settings), temperature=1.0)
    seen = {}
    improve = Learner.improve

    def watched(policy, old, standard, key, factors):
        seen[policy] = factors.copy()
        return improve(learner, policy, old, standard, key, factors)

    learner.improve = watched
    learner.update(batch, (0,), no_fresh_batch)
    logs = torch.log_softmax(team.tables["planner"].detach()[0], dim=-1)
    for k, ep in enumerate(batch.episodes):
        ratio = math.exp(sum(logs[a].item() - math.log(1 / 3) for a in ep.turns[0].action_ids))
        assert seen["solver"][2 * k + 1] == pytest.approx(min(max(ratio, 0.1), 10.0), rel=1e-4)
    assert (seen["planner"] == 1.0).all()


@pytest.mark.parametrize(
    ("settings", "clip"),
    [
        ({}, (0.2, 0.2)),
        ({"normalisation": "token"}, (0.03, 0.03)),
        ({"normalisation": "word"}, (0.04, 0.04)),
        ({"level": "token"}, (0.2, 0.2)),
        ({"level": "token", "clip": 0.1, "clip_high": 0.28}, (0.1, 0.28)),
    ],
)
def test_clip_is_a_setting_per_level_and_normalisation(settings, clip):
    assert PPOConfig(**settings).ratio_clip == clip


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"level": "word"}, "'action', 'token'"),
        ({"level": "token", "normalisation": "word"}, "ratio of its own"),
        ({"aggregation": "turn-sum"}, "level 'token'"),
        ({"level": "token", "aggregation": "sum"}, "turn-mean"),
        ({"gamma_w": 0.9}, "level 'token' only"),
        ({"level": "token", "gamma_w": 1.5}, "between 0 and 1"),
    ],
)
def test_settings_that_contradict_the_level_are_refused(settings, fault):
    with pytest.raises(InvalidArgument, match=fault):
        PPOConfig(**settings)
