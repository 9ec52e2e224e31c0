"""Gradient figures: synthetic cases with a known answer, and brute force on real teams."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tabular_team import episode, no_fresh_batch, turn

from flexmg.baselines.algorithms.advantages import Standardised
from flexmg.baselines.algorithms.grpo import GRPO, GRPOConfig
from flexmg.baselines.algorithms.learner import Learner
from flexmg.baselines.algorithms.marft import MARFT, MARFTConfig
from flexmg.baselines.algorithms.settings import PolicyConfig
from flexmg.baselines.algorithms.streams import flatten
from flexmg.baselines.diagnostics.gradients import (
    SlotGradient,
    coherence,
    describe,
    effective_number,
    noise_free_amplification,
    noise_free_capture,
    preconditioner,
    slot_gradients,
)
from flexmg.baselines.diagnostics.look import Look
from flexmg.baselines.diagnostics.updates import Updates
from flexmg.baselines.exact.team import TabularTeam
from flexmg.baselines.rollout.turns import Batch


def slot(agent: str, *vector: float, weight: float = 1.0, other=None, turns: int = 10):
    """A slot whose halves agree, unless another half is given."""
    first = torch.tensor(vector)
    second = first if other is None else torch.tensor(other)
    role = agent.rpartition("_")[0]
    return SlotGradient(agent, role, turns, weight, (first, second), (0.5, 0.5))


@pytest.mark.parametrize(
    ("vectors", "amplification"),
    [
        ([(1.0, 0.0, 0.0)] * 3, 3.0),  # aligned
        ([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)], math.sqrt(3)),  # orthogonal
        ([(1.0, 0.0), (-1.0, 0.0)], 0.0),  # opposed
        ([(1.0, 0.0), (3.0, 0.0)], 2.0),  # aligned, of different sizes
        ([(2.0, 0.0)], 1.0),  # alone
        ([(0.0, 0.0), (0.0, 0.0)], 0.0),  # nothing
    ],
)
def test_amplification_of_known_gradients(vectors, amplification):
    block = coherence([slot(f"voter_{k}", *v) for k, v in enumerate(vectors)])
    assert block["amplification"] == pytest.approx(amplification, abs=1e-6)
    assert block["copies"] == len(vectors)


def test_the_null_is_that_of_orthogonal_gradients_of_the_same_sizes():
    """Sizes 3 and 4: sqrt(9 + 16) / 7 of two."""
    block = coherence([slot("voter_0", 3.0, 0.0), slot("voter_1", 4.0, 0.0)])
    assert block["null"] == pytest.approx(2 * 5 / 7)
    block = coherence([slot(f"voter_{k}", 1.0) for k in range(4)])
    assert block["null"] == pytest.approx(2.0)


def test_pure_noise_has_the_amplification_of_the_null():
    """Not 1: three copies of random gradients look amplified to the naive eye."""
    generator = torch.Generator().manual_seed(0)
    blocks = [
        coherence(
            [slot(f"voter_{k}", *torch.randn(500, generator=generator).tolist()) for k in range(3)]
        )
        for _ in range(20)
    ]
    assert np.mean([b["amplification"] for b in blocks]) == pytest.approx(math.sqrt(3), abs=0.05)


def test_one_dominating_role_captures_a_shared_policy():
    """Masses 8, 1 and 1 in directions of their own."""
    found = describe(
        [
            slot("solver_0", 8.0, 0.0, 0.0),
            slot("planner_0", 0.0, 1.0, 0.0),
            slot("judge_0", 0.0, 0.0, 1.0),
        ]
    )
    assert (found["capturing"], found["capture"]) == ("solver", pytest.approx(0.8))
    entropy = -(0.8 * math.log(0.8) + 2 * 0.1 * math.log(0.1))
    assert found["effective_roles"] == pytest.approx(math.exp(entropy))
    assert found["conflict_rate"] == 0.0


def test_conflicts_are_pairs_with_a_negative_cosine():
    found = describe(
        [slot("a_0", 1.0, 0.0), slot("b_0", -1.0, 1.0), slot("c_0", 0.0, 1.0)],
    )
    assert found["cosines"] == {
        "a_0 b_0": pytest.approx(-1 / math.sqrt(2)),
        "a_0 c_0": pytest.approx(0.0),
        "b_0 c_0": pytest.approx(1 / math.sqrt(2)),
    }
    assert found["conflict_rate"] == pytest.approx(1 / 3)


def test_effective_number_of_equal_shares_is_their_number():
    assert effective_number([0.25] * 4) == pytest.approx(4.0)
    assert effective_number([1.0, 0.0]) == 1.0


def noisy_looks(seed: int, signals: list[np.ndarray], noise: float, looks: int):
    """Looks at slots with a fixed signal and fresh noise in each half."""
    rng = np.random.default_rng(seed)
    size = len(signals[0])
    made = []
    for _ in range(looks):
        slots = []
        for k, signal in enumerate(signals):
            halves = [torch.tensor(signal + noise * rng.normal(size=size)) for _ in "AB"]
            role = "voter" if len(signals) == 3 else f"role{k}"
            slots.append(SlotGradient(f"{role}_{k}", role, 9, 1.0, tuple(halves), (0.5, 0.5)))
        made.append(slots)
    return made


def test_halves_reveal_aligned_signals_under_noise():
    """The noise is 4 times the signal: measured, it looks orthogonal; common, it is aligned."""
    signal = np.zeros(200)
    signal[0] = 5.0
    looks = [coherence(slots) for slots in noisy_looks(0, [signal] * 3, 1.4, 12)]
    assert np.mean([look["amplification"] for look in looks]) < 2.1
    assert noise_free_amplification(looks) == pytest.approx(3.0, abs=0.25)


def test_halves_say_nothing_where_there_is_nothing():
    looks = [coherence(slots) for slots in noisy_looks(1, [np.zeros(200)] * 3, 1.0, 3)]
    assert noise_free_amplification(looks) is None


def test_halves_reveal_whose_signal_is_large():
    """Equal noise, signals 6 and 2: measured shares near one half, common ones 3 to 1."""
    large, small = np.zeros(200), np.zeros(200)
    large[0], small[1] = 6.0, 2.0
    looks = [describe(slots)["roles"] for slots in noisy_looks(2, [large, small], 1.0, 30)]
    assert looks[0]["role0"]["share"] < 0.6
    shares = noise_free_capture(looks)
    assert shares["role0"] == pytest.approx(0.75, abs=0.05)


def shared_team() -> TabularTeam:
    return TabularTeam(["team"], ["central"], states=3, actions=3)


def voting_batch(seed: int, episodes: int = 12) -> Batch:
    rng = np.random.default_rng(seed)
    made = []
    for number in range(episodes):
        turns = [
            turn(
                agent,
                rng.integers(0, 3, size=rng.integers(1, 4)),
                policy="team",
                layer=int(agent == "judge_0"),
                state=int(agent == "judge_0"),
            )
            for agent in ("voter_0", "voter_1", "judge_0")
        ]
        one = episode(turns, [float(rng.normal())], sample=number)
        one.problem = f"p{number}"
        made.append(one)
    return Batch(made)


def random_standard(batch: Batch, level: str, seed: int = 0) -> Standardised:
    turns = flatten(batch.episodes)
    lengths = np.array([len(t.action_ids) if level == "token" else 1 for t in turns])
    rng = np.random.default_rng(seed)
    used = rng.random(len(turns)) < 0.8
    return Standardised(rng.normal(size=lengths.sum()), lengths, used, {})


@pytest.mark.parametrize(
    ("level", "aggregation"),
    [("action", None), ("token", "turn-sum"), ("token", "turn-mean"), ("token", "token-mean")],
)
def test_weighted_slot_gradients_add_up_to_the_first_steps_gradient(level, aggregation):
    """Brute force: one plain descent step on the whole batch moves by minus their sum."""
    batch = voting_batch(0)
    standard = random_standard(batch, level)
    config = PolicyConfig(
        level=level,
        aggregation=aggregation,
        epochs=1,
        minibatches=1,
        max_grad_norm=1e9,
        target_kl=None,
    )
    team = shared_team()
    learner = Learner(team, config, temperature=1.0)
    slots = slot_gradients(learner, "team", batch.episodes, standard)
    assert {s.agent for s in slots} == {"voter_0", "voter_1", "judge_0"}
    assert sum(s.weight for s in slots) == pytest.approx(1.0)
    total = sum(s.weight * s.gradient for s in slots)
    assert all(p.grad is None for p in team.policy_parameters("team"))
    for one in flatten(batch.episodes):
        one.log_probs = np.full(len(one.action_ids), math.log(1 / 3), dtype=np.float32)
    learner.policy_optimizers["team"] = torch.optim.SGD(team.policy_parameters("team"), lr=1.0)
    before = team.tables["team"].detach().clone()
    old = learner.record(flatten(batch.episodes))
    learner.improve("team", old["team"], standard, (0,))
    step = before - team.tables["team"].detach()
    torch.testing.assert_close(total, step.flatten(), atol=1e-6, rtol=1e-5)


def test_each_slots_gradient_is_that_of_its_mean_loss():
    """Autograd of -mean(A log pi) over one voter's turns, by hand."""
    batch = voting_batch(1)
    standard = random_standard(batch, "action")
    team = shared_team()
    learner = Learner(team, PolicyConfig(), temperature=1.0)
    slots = {s.agent: s for s in slot_gradients(learner, "team", batch.episodes, standard)}
    turns = flatten(batch.episodes)
    for agent, found in slots.items():
        rows = [k for k, t in enumerate(turns) if t.agent == agent and standard.used[k]]
        loss = torch.zeros(())
        logs = torch.log_softmax(team.tables["team"], dim=-1)
        for k in rows:
            summed = logs[int(turns[k].prompt_ids[-1])][torch.tensor(turns[k].action_ids).long()]
            loss = loss - float(standard.advantages[k]) * summed.sum() / len(rows)
        (expected,) = torch.autograd.grad(loss, [team.tables["team"]])
        torch.testing.assert_close(found.gradient, expected.flatten(), atol=1e-6, rtol=1e-5)
        assert found.turns == len(rows)


@pytest.mark.parametrize("level", ["action", "token"])
@pytest.mark.parametrize("algorithm", ["marft", "grpo"])
def test_a_look_changes_nothing_of_the_update(level, algorithm):
    """Bit for bit: parameters, critic, metrics and optimisers, two iterations."""

    def run(looked: bool):
        team = shared_team()
        if algorithm == "marft":
            learner = MARFT(team, MARFTConfig(level=level), temperature=1.0)
        else:
            learner = GRPO(team, GRPOConfig(level=level), temperature=1.0)
        metrics = []
        for iteration in (1, 2):
            batch = voting_batch(iteration)
            for one in batch.episodes:
                one.problem = f"p{one.sample // 4}"
            if looked:
                with Look(learner) as look:
                    metrics.append(learner.update(batch, (iteration,), no_fresh_batch))
                assert look.policies["team"]["slots"].keys() == {"voter_0", "voter_1", "judge_0"}
            else:
                metrics.append(learner.update(batch, (iteration,), no_fresh_batch))
        return team, metrics

    (one, first), (other, second) = run(True), run(False)
    assert torch.equal(one.tables["team"], other.tables["team"])
    assert torch.equal(one.heads["central"], other.heads["central"])
    assert first == second


def test_adams_preconditioner_is_its_own():
    """One step of Adam: v is the squared gradient after bias correction."""
    team = shared_team()
    learner = Learner(team, PolicyConfig(), temperature=1.0)
    assert preconditioner(learner, "team") is None
    gradient = torch.linspace(-1, 1, 9).reshape(3, 3)
    team.tables["team"].grad = gradient.clone()
    learner.policy_optimizers["team"].step()
    expected = 1 / (gradient.abs() + 1e-5)
    torch.testing.assert_close(preconditioner(learner, "team"), expected.flatten())


def test_the_way_of_updates_hand_computed():
    """Right 3, then up 4: net 5 of a way of 7, against 1 / sqrt(2)."""
    parameter = torch.nn.Parameter(torch.zeros(2))
    team = SimpleNamespace(policies=("team",), policy_parameters=lambda policy: [parameter])
    updates = Updates(team)
    parameter.data += torch.tensor([3.0, 0.0])
    assert updates.step() == {"team": pytest.approx(3.0)}
    parameter.data += torch.tensor([0.0, 4.0])
    assert updates.step() == {"team": pytest.approx(4.0)}
    found = updates.accumulation()["team"]
    assert found["accumulation"] == pytest.approx(5 / 7)
    assert found["null"] == pytest.approx(2**-0.5)
    assert updates.step() == {"team": 0.0}
    assert updates.accumulation()["team"]["updates"] == 2
