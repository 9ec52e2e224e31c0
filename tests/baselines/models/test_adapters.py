"""One adapter per policy, by exact name (facts 3 and 5 of the algorithms)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from peft import PeftModel
from peft.tuners.lora import LoraLayer
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

from flexmg.baselines.models.adapters import Adapters, LoraSettings
from flexmg.baselines.models.base import Base, load_base
from flexmg.errors import CheckpointError, InvalidArgument

NAMES = ("agent_1", "agent_10", "agent_2")


def disturb(adapters: Adapters, policy: str, seed: int = 0) -> None:
    """Random B and A: an adapter that does something."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in adapters.parameters(policy):
        parameter.data.add_(torch.randn(parameter.shape, generator=generator) * 0.1)


def snapshot(base: Base) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in base.model.named_parameters()}


@pytest.fixture
def adapters(base: Base) -> Adapters:
    adapters = Adapters(base, NAMES, LoraSettings(), seed=3)
    for i, policy in enumerate(NAMES):
        disturb(adapters, policy, i)
    return adapters


def loss(adapters: Adapters, policy: str) -> torch.Tensor:
    base = adapters.base
    with adapters.learning(policy):
        return base.logits(base.hidden(torch.arange(12)[None])).logsumexp(-1).square().sum()


def test_a_new_policy_is_the_base(base: Base, model_folder: Path) -> None:
    bare = AutoModelForCausalLM.from_pretrained(model_folder).eval()
    adapters = Adapters(base, NAMES, LoraSettings())
    ids = torch.arange(20)[None]
    with torch.no_grad(), adapters.learning("agent_10"):
        assert torch.equal(base.logits(base.hidden(ids)), bare(input_ids=ids).logits)


@pytest.mark.parametrize("policy", NAMES)
def test_an_update_leaves_every_other_adapter_and_the_base_bit_identical(
    adapters: Adapters, policy: str
) -> None:
    before = snapshot(adapters.base)
    optimiser = torch.optim.AdamW(adapters.parameters(policy), lr=0.1, weight_decay=0.1)
    loss(adapters, policy).backward()
    optimiser.step()
    own = {id(p) for p in adapters.parameters(policy)}
    after = dict(adapters.base.model.named_parameters())
    changed = {name for name, p in after.items() if not torch.equal(p, before[name])}
    assert changed == {name for name, p in after.items() if id(p) in own}


@pytest.mark.parametrize("policy", NAMES)
def test_only_the_learning_adapter_receives_gradients(adapters: Adapters, policy: str) -> None:
    loss(adapters, policy).backward()
    touched = {n for n in NAMES for p in adapters.parameters(n) if p.grad is not None}
    assert touched == {policy}


def test_a_graph_keeps_its_gradients_when_another_adapter_learns(adapters: Adapters) -> None:
    total = loss(adapters, "agent_1") + loss(adapters, "agent_2")
    total.backward()
    together = [p.grad.clone() for p in adapters.parameters("agent_1")]
    for parameter in adapters.parameters("agent_1"):
        parameter.grad = None
    loss(adapters, "agent_1").backward()
    alone = [p.grad for p in adapters.parameters("agent_1")]
    assert all(torch.equal(a, b) for a, b in zip(together, alone, strict=True))


@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.parametrize("way", ["acting", "learning"])
def test_acting_and_learning_give_the_logits_of_peft(
    adapters: Adapters, policy: str, way: str
) -> None:
    base, ids = adapters.base, torch.arange(40)[None]
    for layer in base.model.modules():
        if isinstance(layer, LoraLayer):
            layer.set_adapter(policy)
    with torch.no_grad():
        wrapped = base.logits(base.hidden(ids)).log_softmax(-1)
        with getattr(adapters, way)(policy):
            ours = base.logits(base.hidden(ids)).log_softmax(-1)
    torch.testing.assert_close(ours, wrapped, rtol=0, atol=1e-4)


def test_acting_without_a_policy_is_the_base(adapters: Adapters, model_folder: Path) -> None:
    bare = AutoModelForCausalLM.from_pretrained(model_folder).eval()
    ids = torch.arange(20)[None]
    with torch.no_grad(), adapters.acting(None):
        ours = adapters.base.logits(adapters.base.hidden(ids))
    assert torch.equal(ours, bare(input_ids=ids).logits)


@pytest.mark.parametrize("policy", ["agent_1", "agent_10"])
@pytest.mark.parametrize("way", ["acting", "learning"])
def test_weights_and_layers_are_as_they_were_after_an_error(
    adapters: Adapters, policy: str, way: str
) -> None:
    before = snapshot(adapters.base)
    modules = dict(adapters.base.model.named_modules())
    with pytest.raises(ZeroDivisionError), getattr(adapters, way)(policy):
        raise ZeroDivisionError
    after = dict(adapters.base.model.named_parameters())
    assert dict(adapters.base.model.named_modules()) == modules
    assert all(torch.equal(p, before[name]) for name, p in after.items())


@pytest.mark.parametrize("policy", NAMES)
def test_a_saved_adapter_opens_with_peft_and_gives_the_same_logits(
    adapters: Adapters, policy: str, model_folder: Path, tmp_path: Path
) -> None:
    adapters.save(policy, tmp_path / policy)
    bare = AutoModelForCausalLM.from_pretrained(model_folder).eval()
    opened = PeftModel.from_pretrained(bare, tmp_path / policy)
    ids = torch.arange(40)[None]
    with torch.no_grad(), adapters.learning(policy):
        ours = adapters.base.logits(adapters.base.hidden(ids)).log_softmax(-1)
        theirs = opened(input_ids=ids).logits.log_softmax(-1)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4)


def test_an_initial_adapter_depends_on_seed_and_name_only(model_folder: Path) -> None:
    def first(names: tuple[str, ...], seed: int) -> torch.Tensor:
        base = load_base(str(model_folder), device="cpu")
        return Adapters(base, names, LoraSettings(), seed).parameters("agent_1")[0].detach()

    assert torch.equal(first(NAMES, 3), first(NAMES[::-1], 3))
    assert not torch.equal(first(NAMES, 3), first(NAMES, 4))


def test_making_adapters_leaves_the_global_random_state_alone(base: Base) -> None:
    before = torch.get_rng_state()
    Adapters(base, NAMES, LoraSettings())
    assert torch.equal(torch.get_rng_state(), before)


def test_every_linear_layer_but_the_head_is_adapted(base: Base) -> None:
    linear = [m for m in base.model.modules() if isinstance(m, torch.nn.Linear)]
    adapters = Adapters(base, ("solver",), LoraSettings())
    assert len(adapters.parameters("solver")) == 2 * (len(linear) - 1)


def test_rank_and_scale_are_as_asked_for(base: Base) -> None:
    adapters = Adapters(base, ("solver",), LoraSettings(rank=3, alpha=12))
    layer = base.model.model.layers[0].self_attn.q_proj
    assert layer.lora_A["solver"].weight.shape[0] == 3
    assert adapters.config.lora_dropout == 0.0 and layer.scaling["solver"] == 12 / 3


def test_a_state_comes_back(adapters: Adapters) -> None:
    saved = adapters.state("agent_1")
    disturb(adapters, "agent_1", 9)
    adapters.load_state("agent_1", saved)
    now = adapters.state("agent_1")
    assert all(torch.equal(now[name], saved[name]) for name in saved)


def test_a_state_of_another_rank_is_refused(adapters: Adapters, model_folder: Path) -> None:
    other = Adapters(load_base(str(model_folder), device="cpu"), ("solver",), LoraSettings(rank=2))
    with pytest.raises(CheckpointError, match="rank"):
        adapters.load_state("agent_1", other.state("solver"))


def test_a_state_that_lacks_a_layer_is_refused(adapters: Adapters) -> None:
    saved = adapters.state("agent_1")
    name = next(iter(saved))
    del saved[name]
    with pytest.raises(CheckpointError, match=f"lacks '{name}'"):
        adapters.load_state("agent_1", saved)


def test_a_base_carries_one_team_only(adapters: Adapters) -> None:
    with pytest.raises(InvalidArgument, match="load it again"):
        Adapters(adapters.base, ("b",), LoraSettings())


@pytest.mark.parametrize("names", [(), ("b", "b"), ("b.c",), ("",), ("keys",), ("1",), ("lora",)])
def test_impossible_policy_names_are_refused(base: Base, names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidArgument):
        Adapters(base, names, LoraSettings())


def test_an_unknown_policy_is_named(adapters: Adapters) -> None:
    with (
        pytest.raises(InvalidArgument, match=r"'agent_3'.*agent_1, agent_10, agent_2"),
        adapters.learning("agent_3"),
    ):
        pass


def test_half_precision_acts_as_it_learns(model_folder: Path) -> None:
    base = load_base(str(model_folder), dtype="bfloat16", device="cpu")
    adapters = Adapters(base, ("solver",), LoraSettings())
    disturb(adapters, "solver")
    ids = torch.arange(20)[None]
    with torch.no_grad():
        with adapters.learning("solver"):
            learning = base.logits(base.hidden(ids))
        with adapters.acting("solver"):
            assert torch.equal(base.logits(base.hidden(ids)), learning)


def test_layers_that_are_no_plain_linear_layers_can_learn(base: Base) -> None:
    config = GPT2Config(vocab_size=64, n_embd=16, n_layer=1, n_head=2, eos_token_id=0)
    model = GPT2LMHeadModel(config).eval().requires_grad_(False)
    other = Base(model, base.tokenizer, "gpt2", 1, (0,), 64)
    adapters = Adapters(other, NAMES, LoraSettings())
    for policy in NAMES:
        disturb(adapters, policy)
    ids = torch.arange(30)[None]
    with torch.no_grad():
        with adapters.learning("agent_1"):
            learning = other.logits(other.hidden(ids))
        with adapters.acting("agent_1"):
            acting = other.logits(other.hidden(ids))
    torch.testing.assert_close(acting, learning, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_of_one_batch_play_their_own_policies(adapters: Adapters, dtype) -> None:
    """Three policies in one pass, against one pass of each; fewer rows change nothing."""
    adapters.base.model.to(dtype)
    gap = 1e-4 if dtype == torch.float32 else 0.3
    ids = torch.randint(0, 256, (7, 11), generator=torch.Generator().manual_seed(2))
    one, two, three = adapters.policies
    policies = [one, two, one, three, two, one, three]
    expected = torch.empty(7, 11, adapters.base.width, dtype=dtype)
    with torch.no_grad():
        for policy in set(policies):
            with adapters.learning(policy):
                rows = [k for k, own in enumerate(policies) if own == policy]
                expected[rows] = adapters.base.hidden(ids[rows])
        like = adapters.parameters(one)[0]
        with adapters.mixing() as mixture:
            mixture.set(policies, like)
            torch.testing.assert_close(adapters.base.hidden(ids), expected, atol=gap, rtol=gap)
            mixture.set(policies[2:5], like)
            found = adapters.base.hidden(ids[2:5])
            torch.testing.assert_close(found, expected[2:5], atol=gap, rtol=gap)


def test_a_mixture_plays_adapters_as_they_are_when_it_begins(adapters: Adapters) -> None:
    ids = torch.arange(9)[None]
    policy = adapters.policies[1]
    like = adapters.parameters(policy)[0]
    outs = []
    for _ in range(2):
        with torch.no_grad(), adapters.mixing() as mixture:
            mixture.set([policy], like)
            outs.append(adapters.base.hidden(ids))
        disturb(adapters, policy, 9)
    assert not torch.allclose(outs[0], outs[1], atol=1e-3)
