"""The in-process engine: exact log-probs, own random streams, honest ends (fact 3)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, MistralConfig, MistralForCausalLM

from flexmg.baselines.generation.local import LocalEngine, truncated, uniforms
from flexmg.baselines.generation.protocol import Generation, Request, SamplingParams
from flexmg.baselines.models.base import Base, load_base
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.turns import SampledTurn
from flexmg.errors import InvalidArgument

AGENTS = ("planner_0", "agent_1", "agent_10")


def make_team(base: Base) -> Team:
    team = Team(base, AGENTS, policy_map="per-agent")
    generator = torch.Generator().manual_seed(5)
    for policy in team.policies:
        for parameter in team.policy_parameters(policy):
            parameter.data.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    return team


@pytest.fixture
def team(base: Base) -> Team:
    return make_team(base)


def ragged(count: int, sampling: SamplingParams, seed: int = 0) -> list[Request]:
    rng = np.random.default_rng(seed)
    return [
        Request(
            policy=AGENTS[i % 3],
            prompt_ids=rng.integers(0, 256, rng.integers(1, 50)).astype(np.int32),
            sampling=sampling,
            key=(seed, i),
        )
        for i in range(count)
    ]


def as_turn(request: Request, generation: Generation) -> SampledTurn:
    return SampledTurn(
        agent="agent_1",
        role="agent",
        slot=1,
        policy=request.policy,
        step=0,
        layer=0,
        prompt_ids=request.prompt_ids,
        action_ids=generation.action_ids,
        log_probs=generation.log_probs,
        ended=generation.ended,
        state_ids=request.prompt_ids,
    )


def worst_log_ratio(team: Team, requests: list[Request], out: list[Generation]) -> float:
    worst = 0.0
    for policy in team.policies:
        turns = [as_turn(r, g) for r, g in zip(requests, out, strict=True) if r.policy == policy]
        temperature = requests[0].sampling.temperature
        scores = team.log_probs(policy, turns, temperature=temperature)
        for i, one in enumerate(turns):
            own = scores.log_probs[i][scores.mask[i]].detach().numpy()
            worst = max(worst, float(np.abs(own - one.log_probs).max()))
    return worst


def same(one: Generation, other: Generation) -> bool:
    return np.array_equal(one.action_ids, other.action_ids)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_before_any_step_every_ratio_is_one(team: Team, temperature: float) -> None:
    requests = ragged(40, SamplingParams(24, temperature=temperature))
    out = LocalEngine(team.adapters).generate(requests)
    assert worst_log_ratio(team, requests, out) < 1e-4


def test_ratios_are_one_with_a_sliding_window(base: Base) -> None:
    config = MistralConfig(
        vocab_size=259,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        sliding_window=8,
        initializer_range=0.2,
        eos_token_id=258,
        pad_token_id=256,
    )
    other = Base(MistralForCausalLM(config).eval(), base.tokenizer, "random", 0, (258,), 512)
    other.model.requires_grad_(False)
    team = make_team(other)
    requests = ragged(20, SamplingParams(24))
    out = LocalEngine(team.adapters).generate(requests)
    assert worst_log_ratio(team, requests, out) < 1e-4


def test_equal_batches_give_equal_bits(team: Team) -> None:
    requests = ragged(30, SamplingParams(20))
    engine = LocalEngine(team.adapters)
    first, second = engine.generate(requests), engine.generate(requests)
    for one, other in zip(first, second, strict=True):
        assert one.action_ids.tobytes() == other.action_ids.tobytes()
        assert one.log_probs.tobytes() == other.log_probs.tobytes()


@pytest.mark.parametrize("limits", [{"max_rows": 1}, {"max_rows": 7}, {"max_tokens": 300}])
def test_actions_are_the_same_at_other_batch_sizes(team: Team, limits: dict[str, int]) -> None:
    requests = ragged(100, SamplingParams(16))
    together = LocalEngine(team.adapters).generate(requests)
    apart = LocalEngine(team.adapters, **limits).generate(requests)
    assert sum(map(same, together, apart)) >= 99


def test_actions_do_not_depend_on_the_order_of_requests(team: Team) -> None:
    requests = ragged(60, SamplingParams(16))
    engine = LocalEngine(team.adapters)
    forward, backward = engine.generate(requests), engine.generate(requests[::-1])[::-1]
    assert sum(map(same, forward, backward)) >= 59


def test_keys_decide_what_is_drawn(team: Team) -> None:
    prompt = np.arange(10, dtype=np.int32)
    requests = [Request("agent_1", prompt, SamplingParams(16), (0, i)) for i in range(20)]
    out = LocalEngine(team.adapters).generate(requests)
    assert len({g.action_ids.tobytes() for g in out}) == 20


def test_equal_prompts_are_read_once(team: Team) -> None:
    rows: list[int] = []
    hook = team.base.model.get_input_embeddings().register_forward_hook(
        lambda module, ids, output: rows.append(len(output))
    )
    prompt = np.arange(10, dtype=np.int32)
    requests = [Request("agent_1", prompt, SamplingParams(4), (0, i)) for i in range(20)]
    LocalEngine(team.adapters).generate(requests)
    hook.remove()
    assert rows[0] == 1 and rows[1] > 1


def test_greedy_actions_are_those_of_transformers(base: Base, model_folder: Path) -> None:
    team = Team(base, AGENTS, policy_map="per-agent")
    requests = ragged(12, SamplingParams(12, greedy=True))
    bare = AutoModelForCausalLM.from_pretrained(model_folder).eval()
    for request, generation in zip(
        requests, LocalEngine(team.adapters).generate(requests), strict=True
    ):
        prompt = torch.tensor(request.prompt_ids[None].astype(np.int64))
        expected = bare.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False
        )
        assert generation.action_ids.tolist() == expected[0, prompt.shape[1] :].tolist()


def test_tokens_follow_the_softmax_at_the_temperature(base: Base, model_folder: Path) -> None:
    team = Team(base, AGENTS, policy_map="per-agent")
    prompt = np.arange(9, dtype=np.int32)
    draws = 4000
    sampling = SamplingParams(1, temperature=2.0)
    requests = [Request("agent_1", prompt, sampling, (1, i)) for i in range(draws)]
    out = LocalEngine(team.adapters, max_rows=2000).generate(requests)
    counts = np.bincount([g.action_ids[0] for g in out], minlength=259)
    bare = AutoModelForCausalLM.from_pretrained(model_folder).eval()
    with torch.no_grad():
        logits = bare(input_ids=torch.tensor(prompt[None].astype(np.int64))).logits[0, -1]
    expected = (logits.double() / 2.0).softmax(-1).numpy() * draws
    common = expected >= 5
    observed = np.append(counts[common], counts[~common].sum())
    wanted = np.append(expected[common], expected[~common].sum())
    statistic = float(((observed - wanted) ** 2 / wanted).sum())
    # Mean k, standard deviation sqrt(2 k): five deviations above it would be a fault.
    freedom = len(wanted) - 1
    assert statistic < freedom + 5 * np.sqrt(2 * freedom)


def test_an_end_token_is_part_of_the_action_and_ends_it(team: Team) -> None:
    team.base.eos_ids = tuple(range(40))
    out = LocalEngine(team.adapters).generate(ragged(40, SamplingParams(60)))
    ended = [g for g in out if g.ended == "eos"]
    assert ended
    for generation in ended:
        assert [token < 40 for token in generation.action_ids] == [
            *[False] * (len(generation.action_ids) - 1),
            True,
        ]


def test_an_action_without_an_end_token_stops_at_its_own_cap(team: Team) -> None:
    team.base.eos_ids = ()
    requests = [
        Request("agent_1", np.arange(5, dtype=np.int32), SamplingParams(cap), (cap,))
        for cap in (1, 3, 9)
    ]
    out = LocalEngine(team.adapters).generate(requests)
    assert [(len(g.action_ids), g.ended) for g in out] == [
        (1, "length"),
        (3, "length"),
        (9, "length"),
    ]


def test_ends_in_the_middle_of_a_batch_leave_the_others_exact(team: Team) -> None:
    team.base.eos_ids = tuple(range(30))
    requests = ragged(40, SamplingParams(40))
    out = LocalEngine(team.adapters).generate(requests)
    assert len({len(g.action_ids) for g in out}) > 5
    assert worst_log_ratio(team, requests, out) < 1e-4


def test_a_stop_string_ends_an_action_at_its_first_token_that_completes_it(team: Team) -> None:
    stop = ("e", "zz")
    out = LocalEngine(team.adapters).generate(ragged(40, SamplingParams(60, stop=stop)))
    stopped = [g for g in out if g.ended == "stop"]
    assert stopped
    decode = team.base.tokenizer.decode
    for generation in stopped:
        text, before = decode(generation.action_ids), decode(generation.action_ids[:-1])
        assert any(s in text for s in stop) and not any(s in before for s in stop)


def test_requests_of_one_batch_keep_their_own_temperature(team: Team) -> None:
    prompt = np.arange(8, dtype=np.int32)
    cold, hot = SamplingParams(6, temperature=0.3), SamplingParams(6, temperature=3.0)
    requests = [Request("agent_1", prompt, s, (4,)) for s in (cold, hot)]
    mixed = LocalEngine(team.adapters).generate(requests)
    alone = [LocalEngine(team.adapters).generate([request])[0] for request in requests]
    assert all(map(same, mixed, alone))
    assert not same(*mixed)


def test_half_precision_generates(model_folder: Path) -> None:
    team = make_team(load_base(str(model_folder), dtype="bfloat16", device="cpu"))
    out = LocalEngine(team.adapters).generate(ragged(6, SamplingParams(8)))
    assert all(np.isfinite(g.log_probs).all() for g in out)


def test_generating_leaves_the_base_and_adapters_as_they_were(team: Team) -> None:
    before = {name: p.detach().clone() for name, p in team.base.model.named_parameters()}
    LocalEngine(team.adapters).generate(ragged(9, SamplingParams(8)))
    after = dict(team.base.model.named_parameters())
    assert all(torch.equal(after[name], p) for name, p in before.items())


def test_no_requests_give_no_generations(team: Team) -> None:
    assert LocalEngine(team.adapters).generate([]) == []


@pytest.mark.parametrize(
    ("length", "policy", "words"),
    [(0, "agent_1", "no tokens"), (2040, "agent_1", "context"), (5, "agent_2", "no policy")],
)
def test_impossible_requests_are_refused(team: Team, length: int, policy: str, words: str) -> None:
    request = Request(policy, np.zeros(length, dtype=np.int32), SamplingParams(16), (0,))
    with pytest.raises(InvalidArgument, match=words):
        LocalEngine(team.adapters).generate([request])


@given(st.lists(st.integers(0, 2**40), max_size=6), st.integers(1, 50), st.integers(0, 50))
def test_a_shorter_stream_is_a_prefix_of_a_longer_one(key: list[int], n: int, more: int) -> None:
    assert np.array_equal(uniforms(key, n), uniforms(key, n + more)[:n])


def test_a_trailing_zero_makes_another_key() -> None:
    assert not np.array_equal(uniforms((1,), 4), uniforms((1, 0), 4))


@pytest.mark.parametrize(
    "settings",
    [
        {"max_new_tokens": 0},
        {"max_new_tokens": 4, "temperature": 0.0},
        {"max_new_tokens": 4, "temperature": float("nan")},
        {"max_new_tokens": 4, "stop": ("",)},
    ],
)
def test_impossible_sampling_is_refused(settings: dict) -> None:
    with pytest.raises(InvalidArgument):
        SamplingParams(**settings)


def test_truncated_chances_hand_computed() -> None:
    chances = torch.tensor([[0.1, 0.5, 0.15, 0.25]])

    def left(most: int, mass: float) -> list[bool]:
        kept = truncated(chances, torch.tensor([[most]]), torch.tensor([[mass]]))
        return (kept[0] > 0).tolist()

    assert left(4, 1.0) == [True] * 4
    assert left(2, 1.0) == [False, True, False, True]
    assert left(4, 0.5) == [False, True, False, False]
    assert left(4, 0.51) == [False, True, False, True]
    assert left(4, 0.01) == [False, True, False, False]
    assert left(1, 0.9) == [False, True, False, False]


def test_top_k_of_one_is_greedy_and_rows_keep_their_own(team: Team) -> None:
    engine = LocalEngine(team.adapters)
    greedy = engine.generate(ragged(20, SamplingParams(12, greedy=True)))
    first = engine.generate(ragged(20, SamplingParams(12, top_k=1)))
    assert all(map(same, greedy, first))
    free = ragged(20, SamplingParams(12))
    mixed = [
        narrow if k % 2 else wide
        for k, (narrow, wide) in enumerate(
            zip(ragged(20, SamplingParams(12, top_k=1)), free, strict=True)
        )
    ]
    out, alone = engine.generate(mixed), engine.generate(free)
    assert all(same(out[k], (first if k % 2 else alone)[k]) for k in range(20))


def test_log_probs_of_truncated_sampling_are_the_policys(team: Team) -> None:
    requests = ragged(20, SamplingParams(12, top_p=0.5))
    out = LocalEngine(team.adapters).generate(requests)
    assert worst_log_ratio(team, requests, out) < 1e-4
