"""Scores, readings and values of a team, against the plain model read one row at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peft import PeftModel
from transformers import AutoModelForCausalLM

from flexmg.baselines.models.assignment import assign_policies
from flexmg.baselines.models.base import Base, load_base
from flexmg.baselines.models.reading import TeamReading
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.turns import SampledTurn
from flexmg.errors import CheckpointError, InvalidArgument

AGENTS = ("planner_0", "worker_0", "worker_1", "worker_10")


def turn(prompt: list[int], action: list[int], agent: str = "worker_1") -> SampledTurn:
    role, slot = agent.rsplit("_", 1)
    empty = np.empty(0, dtype=np.int32)
    return SampledTurn(
        agent=agent,
        role=role,
        slot=int(slot),
        policy=role,
        step=0,
        layer=0,
        prompt_ids=np.array(prompt, dtype=np.int32),
        action_ids=np.array(action, dtype=np.int32),
        log_probs=np.zeros(len(action), dtype=np.float32),
        ended="eos",
        state_ids=empty,
    )


def random_turns(count: int, seed: int = 0) -> list[SampledTurn]:
    rng = np.random.default_rng(seed)
    return [
        turn(
            rng.integers(0, 256, rng.integers(1, 40)).tolist(),
            [*rng.integers(0, 256, rng.integers(0, 20)).tolist(), 258],
        )
        for _ in range(count)
    ]


def disturb(team: Team) -> Team:
    generator = torch.Generator().manual_seed(5)
    for policy in team.policies:
        for parameter in team.policy_parameters(policy):
            parameter.data.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    return team


@pytest.fixture
def team(base: Base) -> Team:
    return disturb(Team(base, AGENTS, critics=("central", "other")))


@pytest.fixture
def bare(model_folder: Path):
    return AutoModelForCausalLM.from_pretrained(model_folder).eval()


def reference(model, one: SampledTurn, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probs and entropies of one action from the full logits of one sequence."""
    ids = torch.tensor([[*one.prompt_ids.tolist(), *one.action_ids.tolist()]])
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0].double() / temperature
    start = len(one.prompt_ids)
    logs = logits[start - 1 : -1].log_softmax(-1)
    picked = logs[torch.arange(len(logs)), ids[0, start:]]
    return picked, -(logs.exp() * logs).sum(-1)


# ---------------------------------------------------------------------- policy maps


@pytest.mark.parametrize(
    ("policy_map", "expected"),
    [
        ("shared", ["team", "team", "team", "team"]),
        ("isolated", ["planner", "worker", "worker", "worker"]),
        ("per-agent", list(AGENTS)),
        ({"planner": "a", "worker": "b"}, ["a", "b", "b", "b"]),
        ({"planner": "a", "worker": "b", "worker_1": "c"}, ["a", "b", "c", "b"]),
    ],
)
def test_policy_maps(policy_map, expected: list[str]) -> None:
    assert list(assign_policies(AGENTS, policy_map).values()) == expected


def test_an_entry_for_nobody_is_refused_with_the_closest_name() -> None:
    with pytest.raises(InvalidArgument, match="did you mean 'worker'"):
        assign_policies(AGENTS, {"planner": "a", "wroker": "b"})


def test_an_agent_without_a_policy_is_named() -> None:
    with pytest.raises(InvalidArgument, match="'worker_0' no policy"):
        assign_policies(AGENTS, {"planner": "a", "worker_1": "b"})


def test_an_unknown_word_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="'share' is not 'shared'"):
        assign_policies(AGENTS, "share")


def test_policies_stand_in_the_order_of_the_agents(team: Team) -> None:
    assert team.policies == ("planner", "worker")


def test_an_agent_of_another_team_is_refused(team: Team) -> None:
    with pytest.raises(InvalidArgument, match="no agent 'worker_2'"):
        team.policy_of("worker_2")


# ---------------------------------------------------------------------- log-probs


def test_log_probs_and_entropies_equal_the_plain_models(team: Team, bare, tmp_path: Path) -> None:
    team.save_adapters(tmp_path)
    model = PeftModel.from_pretrained(bare, tmp_path / "worker")
    turns = random_turns(12)
    scores = team.log_probs("worker", turns, temperature=0.7, entropy=True)
    assert scores.entropy is not None
    for i, one in enumerate(turns):
        log_probs, entropy = reference(model, one, 0.7)
        own = scores.mask[i]
        torch.testing.assert_close(scores.log_probs[i][own].double(), log_probs, rtol=0, atol=1e-4)
        torch.testing.assert_close(scores.entropy[i][own].double(), entropy, rtol=0, atol=1e-4)


def test_scores_outside_the_mask_are_zero(team: Team) -> None:
    scores = team.log_probs("worker", random_turns(9), temperature=1.0, entropy=True)
    assert scores.entropy is not None
    assert not scores.log_probs[~scores.mask].any() and not scores.entropy[~scores.mask].any()


def test_the_mask_covers_every_action_token_and_no_other(team: Team) -> None:
    turns = random_turns(9)
    mask = team.log_probs("worker", turns, temperature=1.0).mask
    assert mask.sum(1).tolist() == [len(one.action_ids) for one in turns]
    assert mask.shape[1] == max(len(one.action_ids) for one in turns)


def test_base_log_probs_are_those_of_the_untouched_model(team: Team, bare) -> None:
    turns = random_turns(6)
    scores = team.base_log_probs(turns, temperature=1.3)
    for i, one in enumerate(turns):
        log_probs, _ = reference(bare, one, 1.3)
        got = scores.log_probs[i][scores.mask[i]].double()
        torch.testing.assert_close(got, log_probs, rtol=0, atol=1e-4)
    assert not scores.log_probs.requires_grad


def gradient(team: Team, turns: list[SampledTurn]) -> torch.Tensor:
    parameters = team.policy_parameters("worker")
    scores = team.log_probs("worker", turns, temperature=1.0)
    weights = torch.tensor([float(one.prompt_ids[0]) / 100 - 1 for one in turns])
    total = (scores.log_probs.sum(1) * weights).sum()
    return torch.cat([g.flatten() for g in torch.autograd.grad(total, parameters)])


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(order=st.permutations(range(10)), budget=st.integers(1, 400))
def test_batching_and_padding_never_change_a_gradient(
    team: Team, order: list[int], budget: int
) -> None:
    turns = random_turns(10)
    team.token_budget = 10**6
    together = gradient(team, turns)
    team.token_budget = budget
    apart = gradient(team, [turns[i] for i in order])
    torch.testing.assert_close(apart, together, rtol=1e-3, atol=1e-4 * together.abs().max().item())


def test_the_gradient_equals_that_of_turns_one_by_one(team: Team) -> None:
    turns = random_turns(6)
    together = gradient(team, turns)
    apart = torch.stack([gradient(team, [one]) for one in turns]).sum(0)
    torch.testing.assert_close(together, apart, rtol=1e-3, atol=1e-4 * apart.abs().max().item())


def test_no_logits_are_computed_for_prompt_positions(team: Team) -> None:
    rows: list[int] = []
    head = team.base.model.get_output_embeddings()
    hook = head.register_forward_hook(
        lambda module, inputs, output: rows.append(output.shape[:-1].numel())
    )
    turns = random_turns(8)
    team.log_probs("worker", turns, temperature=1.0)
    hook.remove()
    assert sum(rows) == sum(len(one.action_ids) for one in turns)


def test_no_turns_give_an_empty_grid(team: Team) -> None:
    assert team.log_probs("worker", [], temperature=1.0).log_probs.shape == (0, 0)


def test_a_turn_without_a_prompt_or_action_is_refused(team: Team) -> None:
    with pytest.raises(InvalidArgument, match="no tokens"):
        team.log_probs("worker", [turn([], [])], temperature=1.0)


# ---------------------------------------------------------------------- features, values


def inputs(count: int, seed: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, rng.integers(1, 60)).astype(np.int32) for _ in range(count)]


def read(team: Team, states, actions=None):
    return team.read("central", states, policies=["worker"] * len(states), actions=actions)


def features(team: Team, states) -> torch.Tensor:
    return read(team, states).parts[0].features


def test_features_are_the_bases_last_hidden_states(team: Team, bare) -> None:
    states = inputs(8)
    found = features(team, states)
    for ids, row in zip(states, found, strict=True):
        with torch.no_grad():
            out = bare(
                input_ids=torch.tensor(ids[None].astype(np.int64)), output_hidden_states=True
            )
        torch.testing.assert_close(row, out.hidden_states[-1][0, -1], rtol=0, atol=1e-4)


def test_features_do_not_depend_on_company(team: Team) -> None:
    states = inputs(12)
    together = features(team, states)
    team.token_budget = 50
    alone = torch.cat([features(team, [ids]) for ids in states])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-4)


def test_equal_inputs_have_equal_features_and_are_read_once(team: Team) -> None:
    one, other = inputs(2)
    rows: list[int] = []
    hook = team.base.model.get_input_embeddings().register_forward_hook(
        lambda module, ids, output: rows.append(len(output))
    )
    found = features(team, [one, other, one.copy(), one])
    hook.remove()
    assert sum(rows) == 2
    assert torch.equal(found[0], found[2]) and torch.equal(found[0], found[3])


def test_with_actions_every_token_is_valued_where_it_is_predicted(team: Team, bare) -> None:
    """The first at the last token of the input, the last before the action's last token."""
    states = inputs(6)
    actions = [np.arange(3, 4 + k, dtype=np.int32) for k in range(6)]
    reading = read(team, states, actions)
    assert reading.lengths.tolist() == [1, 2, 3, 4, 5, 6]
    for k in range(6):
        ids = np.concatenate([states[k], actions[k]]).astype(np.int64)
        with torch.no_grad():
            out = bare(input_ids=torch.tensor(ids[None]), output_hidden_states=True)
        expected = out.hidden_states[-1][0, len(states[k]) - 1 : -1]
        torch.testing.assert_close(reading[[k]].parts[0].features, expected, rtol=0, atol=1e-4)
    first = reading.parts[0].features[np.cumsum(reading.lengths) - reading.lengths]
    torch.testing.assert_close(first, features(team, states), rtol=0, atol=1e-4)


def test_rows_of_a_reading_come_in_the_order_asked_for(team: Team) -> None:
    actions = [np.arange(1, 3 + k, dtype=np.int32) for k in range(4)]
    reading = read(team, inputs(4), actions)
    parts = torch.split(reading.parts[0].features, reading.lengths.tolist())
    chosen = reading[np.array([2, 0, 2])]
    assert chosen.lengths.tolist() == [4, 2, 4]
    assert torch.equal(chosen.parts[0].features, torch.cat([parts[2], parts[0], parts[2]]))


def test_values_are_zero_before_the_first_update(team: Team) -> None:
    assert not team.values("central", read(team, inputs(5))).any()


def test_value_gradients_reach_the_head_of_that_critic_only(team: Team) -> None:
    team.values("central", read(team, inputs(5))).sum().backward()
    everything = [*team.base.model.parameters(), *team.critic_parameters("other")]
    assert all(p.grad is None for p in everything)
    assert any(p.grad is not None for p in team.critic_parameters("central"))


def fitted(team: Team) -> TeamReading:
    """A critic with random weights that has seen a first batch."""
    reading = read(team, inputs(20))
    team.values("central", reading)
    generator = torch.Generator().manual_seed(0)
    for parameter in team.critic_parameters("central"):
        parameter.data.normal_(generator=generator)
    return reading


def test_the_value_of_a_state_does_not_depend_on_the_batch_it_comes_in(team: Team) -> None:
    reading = fitted(team)
    together = team.values("central", reading)
    alone = torch.cat([team.values("central", reading[[k]]) for k in range(len(reading))])
    torch.testing.assert_close(together, alone)


def test_a_critic_can_fit_values_that_depend_on_the_state(team: Team) -> None:
    reading = read(team, inputs(64))
    targets = torch.linspace(-1, 1, 64)
    optimiser = torch.optim.Adam(team.critic_parameters("central"), lr=0.01)
    for _ in range(200):
        loss = (team.values("central", reading) - targets).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss < 0.1 * targets.var()


def test_an_unknown_critic_is_named(team: Team) -> None:
    with pytest.raises(InvalidArgument, match="no critic 'worker'"):
        team.critic_parameters("worker")


# ---------------------------------------------------------------------- state


def test_a_state_brings_back_scores_values_and_versions(team: Team) -> None:
    reading = fitted(team)
    turns = random_turns(4)
    team.versions["worker"] = 7
    before = team.log_probs("worker", turns, temperature=1.0).log_probs
    values = team.values("central", reading)
    saved = team.state()
    disturb(team)
    fitted(team)
    for parameter in team.critic_parameters("central"):
        parameter.data.zero_()
    team.versions["worker"] = 9
    team.load_state(saved)
    assert torch.equal(team.log_probs("worker", turns, temperature=1.0).log_probs, before)
    assert torch.equal(team.values("central", reading), values)
    assert team.versions == {"planner": 0, "worker": 7}


def test_loading_keeps_the_parameters_that_optimisers_hold(team: Team) -> None:
    before = [id(p) for p in team.policy_parameters("worker")]
    team.load_state(team.state())
    assert [id(p) for p in team.policy_parameters("worker")] == before


def test_a_state_of_another_team_is_refused(team: Team, model_folder: Path) -> None:
    other = Team(load_base(str(model_folder), device="cpu"), AGENTS, policy_map="shared")
    with pytest.raises(CheckpointError, match="policies team"):
        team.load_state(other.state())


def test_memory_holds_one_base_whatever_the_number_of_policies(model_folder: Path) -> None:
    def count(policy_map: str) -> int:
        team = Team(load_base(str(model_folder), device="cpu"), AGENTS, policy_map=policy_map)
        adapters = sum(p.numel() for n in team.policies for p in team.policy_parameters(n))
        return sum(p.numel() for p in team.base.model.parameters()) - adapters

    assert count("per-agent") == count("shared")
