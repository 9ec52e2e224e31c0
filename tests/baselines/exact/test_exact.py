"""Exact expectations on small games: by hand, by finite differences, by sampling."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from flexmg.baselines.algorithms.grpo import GRPO, GRPOConfig
from flexmg.baselines.algorithms.ippo import IPPO, IPPOConfig
from flexmg.baselines.algorithms.marft import MARFT, MARFTConfig
from flexmg.baselines.exact.estimators import estimators, improvements, moments
from flexmg.baselines.exact.tree import GameTree
from flexmg.errors import InvalidArgument

ACROSS = np.array([[1 / 3, 1.0], [1.0, 0.0]])


@pytest.fixture(scope="module")
def coordination() -> GameTree:
    return GameTree("game-coordination-v0")


def at(tree: GameTree, p: float, q: float):
    """The team that plays B with probability p in the row and q in the column."""
    team = tree.team()
    for agent, chance in (("row_0", p), ("column_0", q)):
        team.tables[agent].data[:, 1] = math.log(chance / (1 - chance))
    return team


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.2, 0.2), (0.9, 0.3)])
def test_value_of_the_two_by_two_game_by_hand(coordination, p, q):
    value = np.array([1 - p, p]) @ ACROSS @ np.array([1 - q, q])
    assert coordination.value(at(coordination, p, q)) == pytest.approx(value, abs=1e-6)


def test_gradient_of_the_two_by_two_game_by_hand(coordination):
    """dJ/dlogit_B of the row is p (1 - p) (E[u | B] - E[u | A])."""
    p, q = 0.2, 0.7
    team = at(coordination, p, q)
    paid = ACROSS @ np.array([1 - q, q])
    expected = p * (1 - p) * (paid[1] - paid[0])
    gradient = coordination.gradient(team)["row_0"].sum(dim=0)
    assert gradient[1].item() == pytest.approx(expected, abs=1e-6)
    assert gradient[0].item() == pytest.approx(-expected, abs=1e-6)


@pytest.mark.parametrize(
    ("env", "letters"),
    [
        ("game-bandit-v0", "ABC"),
        ("game-signalling-v0", "AB"),
        ("game-relay-v0", "AB"),
        ("game-corridor-v0", "AB"),
    ],
)
def test_gradients_equal_finite_differences(env, letters):
    tree = GameTree(env, letters)
    team = tree.team(seed=1)
    chances = tree.log_probabilities(team).exp()
    assert chances.sum().item() == pytest.approx(1.0)
    exact = tree.gradient(team)
    rng = np.random.default_rng(0)
    for policy, table in team.tables.items():
        table.data = table.data.double()
        for _ in range(4):
            row, column = rng.integers(0, table.shape[0]), rng.integers(0, table.shape[1])
            values = []
            for step in (1e-5, -2e-5):
                table.data[row, column] += step
                values.append(tree.value(team))
            table.data[row, column] += 1e-5
            slope = (values[0] - values[1]) / 2e-5
            assert exact[policy][row, column].item() == pytest.approx(slope, abs=1e-6)


def test_every_episode_of_the_corridor_is_there_once():
    """One pair goes home at once; the three others have four ends each."""
    tree = GameTree("game-corridor-v0")
    assert len(tree.episodes) == 1 + 3 * 4
    assert sorted({len(e.turns) for e in tree.episodes}) == [2, 4]
    assert {e.step_rewards.sum() for e in tree.episodes} == {0.0, 0.3, 0.6, 1.0}


def test_a_game_without_end_is_refused():
    with pytest.raises(InvalidArgument, match="no end"):
        GameTree("math-duo-v0")


def test_sampled_frequencies_are_the_exact_chances(coordination):
    team = at(coordination, 0.3, 0.6)
    batch = coordination.sample(team, 20_000, 1)
    both = np.mean([e.step_rewards.sum() for e in batch.episodes])
    assert both == pytest.approx(coordination.value(team), abs=0.01)
    turn = batch.episodes[0].turns[0]
    assert turn.log_probs[0] == pytest.approx(math.log(0.3 if turn.action_ids[0] else 0.7))


@pytest.fixture(scope="module")
def corridor():
    tree = GameTree("game-corridor-v0")
    return tree, tree.team(seed=3)


@pytest.mark.parametrize(
    "name",
    ["MARFT, V = 0, no discount", "MARFT, exact V, no discount", "IPPO, exact V, no discount"],
)
def test_estimators_without_discounts_are_unbiased(corridor, name):
    """The policy gradient theorem: any value of the state is a baseline."""
    tree, team = corridor
    estimator, group = estimators(tree, team)[name]
    found = moments(tree, team, estimator, group)
    assert found.bias == pytest.approx(0.0, abs=1e-6)
    assert found.cosine == pytest.approx(1.0, abs=1e-6)


def test_exact_values_lower_the_variance_and_the_bias_of_discounts_and_lambdas(corridor):
    tree, team = corridor
    made = estimators(tree, team)

    def found(name):
        estimator, group = made[name]
        return moments(tree, team, estimator, group)

    blind = found("MARFT, V = 0, no discount")
    seeing = found("MARFT, exact V, no discount")
    assert seeing.deviation < 0.8 * blind.deviation
    assert found("MARFT, V = 0, defaults").bias > 0.02
    assert found("MARFT, exact V, defaults").bias < found("MARFT, V = 0, defaults").bias


def test_moments_equal_those_of_a_large_sample(corridor):
    """The estimator's mean and spread over 4,000 sampled episodes."""
    tree, team = corridor
    estimator, _ = estimators(tree, team)["MARFT, V = 0, defaults"]
    exact = moments(tree, team, estimator)
    gradient = np.concatenate([g.reshape(-1).numpy() for g in tree.gradient(team).values()])
    rows = []
    for episode in tree.sample(team, 4000, 5).episodes:
        weights = estimator([episode], [0])
        total = torch.zeros(())
        for turn, weight in zip(episode.turns, weights, strict=True):
            logs = torch.log_softmax(team.tables[turn.policy], dim=-1)
            total = total + float(weight) * logs[int(turn.prompt_ids[-1]), int(turn.action_ids[0])]
        found = torch.autograd.grad(total, list(team.tables.values()), allow_unused=True)
        pieces = [
            np.zeros(t.numel()) if g is None else g.reshape(-1).numpy()
            for t, g in zip(team.tables.values(), found, strict=True)
        ]
        rows.append(np.concatenate(pieces))
    sample = np.array(rows)
    size = np.linalg.norm(gradient)
    noise = exact.deviation / math.sqrt(4000)
    assert np.linalg.norm(sample.mean(0) - gradient) / size == pytest.approx(
        exact.bias, abs=3 * noise
    )
    spread = math.sqrt(sample.var(axis=0).sum()) / size
    assert spread == pytest.approx(exact.deviation, rel=0.05)


def test_groups_by_turns_are_biased_where_length_depends_on_the_outcome(corridor):
    """Statistics over episodes keep the direction better than statistics over turns."""
    tree, team = corridor
    made = estimators(tree, team)
    by_episode = moments(tree, team, *made["GRPO, pairs, over episodes"])
    by_turn = moments(tree, team, *made["GRPO, pairs, over turns"])
    assert by_episode.cosine > by_turn.cosine
    assert by_episode.cosine > 0.95


def test_one_small_update_improves_every_scheme_in_the_mean(coordination):
    settings = {"lr": 0.05, "epochs": 1, "minibatches": 1}
    made = {
        "happo": lambda t: MARFT(t, MARFTConfig(**settings), temperature=1.0),
        "none": lambda t: MARFT(t, MARFTConfig(importance="none", **settings), temperature=1.0),
        "recollect": lambda t: MARFT(
            t, MARFTConfig(importance="recollect", **settings), temperature=1.0
        ),
        "ippo": lambda t: IPPO(t, IPPOConfig(**settings), temperature=1.0),
        "grpo": lambda t: GRPO(t, GRPOConfig(level="action", **settings), temperature=1.0),
    }
    for name, learner in made.items():
        critics = ("row_0", "column_0") if name == "ippo" else ("central",)

        def team(critics=critics):
            made_team = at(coordination, 0.2, 0.4)
            made_team.critics = critics
            made_team.heads = {
                c: torch.nn.Parameter(torch.zeros(coordination.states)) for c in critics
            }
            return made_team

        gains = improvements(coordination, team, learner, episodes=64, batches=8)
        assert gains.mean() > 0.001, name


def test_large_steps_at_once_lose_what_factors_keep(coordination):
    """One unclipped step from p = q = 0.2: both move to B at once, and meet in the worst cell."""
    settings = {
        "lr": 4.0,
        "epochs": 1,
        "minibatches": 1,
        "clip": math.inf,
        "max_grad_norm": 1e9,
        "target_kl": None,
    }

    def gains(importance):
        return improvements(
            coordination,
            lambda: at(coordination, 0.2, 0.2),
            lambda t: MARFT(t, MARFTConfig(importance=importance, **settings), temperature=1.0),
            episodes=64,
            batches=20,
        )

    assert gains("none").mean() < -0.1
    assert gains("happo").mean() > gains("none").mean() + 0.2
