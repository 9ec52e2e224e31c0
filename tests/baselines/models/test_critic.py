"""What critics are made of: frozen trunks, trunks that learn, another model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tabular_team import turn
from transformers import AutoModelForCausalLM

from flexmg.baselines.models.adapters import LoraSettings
from flexmg.baselines.models.base import load_base
from flexmg.baselines.models.critic import CriticSettings
from flexmg.baselines.models.team import Team
from flexmg.errors import CheckpointError, InvalidArgument, ModelError

AGENTS = ("planner_0", "solver_0")
ATTENTION = {"q_proj", "k_proj", "v_proj", "o_proj"}
MLP = {"gate_proj", "up_proj", "down_proj"}


def make(folder: Path, **more) -> Team:
    return Team(load_base(str(folder), device="cpu"), AGENTS, **more)


def inputs(count: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, rng.integers(1, 30)).astype(np.int32) for _ in range(count)]


def read(team: Team, states, actions=None):
    policies = ["planner", "solver"] * len(states)
    return team.read("central", states, policies=policies[: len(states)], actions=actions)


def wake(team: Team) -> None:
    """Random weights in the head and the trunk, so that values differ."""
    generator = torch.Generator().manual_seed(0)
    for parameter in team.critic_parameters("central"):
        parameter.data.normal_(0, 0.3, generator=generator)


def test_a_trunk_that_learns_gets_a_gradient_and_policies_do_not(model_folder):
    team = make(model_folder, critic=CriticSettings("adapter"))
    wake(team)
    team.values("central", read(team, inputs(6))).square().sum().backward()
    own = team.critic_parameters("central")
    assert len(own) > 4  # the head has four
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in own)
    others = [p for policy in team.policies for p in team.policy_parameters(policy)]
    assert all(p.grad is None for p in others)
    assert all(
        not p.requires_grad for n, p in team.base.model.named_parameters() if "lora" not in n
    )


def test_a_fresh_trunk_that_learns_values_like_a_frozen_one(model_folder):
    """Adapters start as the base, and heads by their own name."""
    frozen, learning = make(model_folder), make(model_folder, critic=CriticSettings("adapter"))
    actions = [np.arange(2, 4 + k, dtype=np.int32) for k in range(5)]
    for team in (frozen, learning):
        team.values("central", read(team, inputs(9, seed=1)))  # fits the standardisation
        team.critic_parameters("central")[2].data.fill_(0.1)
    one = frozen.values("central", read(frozen, inputs(5), actions))
    other = learning.values("central", read(learning, inputs(5), actions))
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_values_of_a_learning_trunk_do_not_depend_on_company(model_folder):
    team = make(model_folder, critic=CriticSettings("adapter"))
    wake(team)
    actions = [np.arange(2, 4 + k, dtype=np.int32) for k in range(6)]
    reading = read(team, inputs(6), actions)
    together = team.values("central", reading).split(reading.lengths.tolist())
    for k in range(6):
        alone = team.values("central", reading[np.array([k])])
        torch.testing.assert_close(alone, together[k], atol=1e-4, rtol=1e-4)


def test_another_model_reads_in_place_of_the_base(model_folder, tmp_path):
    """Features are that model's last hidden states."""
    other = AutoModelForCausalLM.from_pretrained(model_folder)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(0.5)
    other.save_pretrained(tmp_path)
    team = make(model_folder)
    team.base.tokenizer.save_pretrained(tmp_path)
    critic = CriticSettings("model", str(tmp_path))
    team = make(model_folder, critic=critic, critic_base=load_base(str(tmp_path), device="cpu"))
    states = inputs(3)
    found = read(team, states).parts[0].features
    for ids, row in zip(states, found, strict=True):
        with torch.no_grad():
            out = other(torch.tensor(ids[None].astype(np.int64)), output_hidden_states=True)
        torch.testing.assert_close(row, out.hidden_states[-1][0, -1], atol=1e-4, rtol=1e-4)


def test_a_model_with_another_tokenizer_cannot_read(model_folder):
    critic = CriticSettings("model", "tiny")
    with pytest.raises(ModelError, match="another tokenizer"):
        make(model_folder, critic=critic, critic_base=load_base("tiny", device="cpu"))


def test_a_learning_trunk_is_saved_and_comes_back(model_folder):
    team = make(model_folder, critic=CriticSettings("adapter"))
    wake(team)
    states = inputs(4)
    before = team.values("central", read(team, states))
    saved = team.state()
    fresh = make(model_folder, critic=CriticSettings("adapter"), seed=9)
    fresh.load_state(saved)
    torch.testing.assert_close(fresh.values("central", read(fresh, states)), before)
    with pytest.raises(CheckpointError, match="trunk"):
        make(model_folder).load_state(saved)
    with pytest.raises(CheckpointError, match="trunk"):
        fresh.load_state(make(model_folder).state())


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"trunk": "own"}, "'frozen', 'adapter' or 'model'"),
        ({"trunk": "model"}, "give both"),
        ({"model": "tiny"}, "give both"),
        ({"width": 0}, "at least 1"),
    ],
)
def test_impossible_critics_are_refused(settings, fault):
    with pytest.raises(InvalidArgument, match=fault):
        CriticSettings(**settings)


@pytest.mark.parametrize(
    ("targets", "layers"),
    [
        (
            "all-linear",
            {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"},
        ),
        ("attention", {"q_proj", "k_proj", "v_proj", "o_proj"}),
        ("mlp", {"gate_proj", "up_proj", "down_proj"}),
        (("q_proj", "v_proj"), {"q_proj", "v_proj"}),
    ],
)
def test_adapters_sit_on_the_chosen_layers(model_folder, targets, layers):
    team = make(model_folder, lora=LoraSettings(targets=targets))
    names = team.state()["policies"]["solver"]
    assert {name.split(".")[-3] for name in names} == layers


def test_targets_that_the_model_lacks_are_named(model_folder):
    with pytest.raises(InvalidArgument, match="no layer x_proj"):
        make(model_folder, lora=LoraSettings(targets=("q_proj", "x_proj")))
    with pytest.raises(InvalidArgument, match="all-linear, attention, mlp"):
        LoraSettings(targets="everything")


def test_gradient_checkpointing_changes_no_gradient(model_folder):
    turns = [turn("team_0", [3, 1, 4][: 1 + k], policy="team", state=7 * k + 1) for k in range(3)]
    found = []
    for checkpointing in (False, True):
        team = make(model_folder, policy_map="shared")
        if checkpointing:
            team.adapters.checkpoint_gradients()
        generator = torch.Generator().manual_seed(1)
        for parameter in team.policy_parameters("team"):
            parameter.data.normal_(0, 0.1, generator=generator)
        recomputed = []
        hook = team.base.model.model.layers[0].mlp.register_forward_pre_hook(
            lambda *_, seen=recomputed: seen.append(1)
        )
        scores = team.log_probs("team", turns, temperature=1.0)
        forward = len(recomputed)
        scores.log_probs.sum().backward()
        hook.remove()
        assert (len(recomputed) > forward) is checkpointing
        found.append([p.grad for p in team.policy_parameters("team")])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
