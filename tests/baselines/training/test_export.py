"""`flexmg export`: base + adapter as one plain model; and what PEFT does with several adapters."""

from __future__ import annotations

import io
from pathlib import Path

import letter_game
import pytest
import torch
import typer
from peft import LoraConfig, PeftModel, get_peft_model
from rich.console import Console
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from flexmg.baselines.commands import add_commands
from flexmg.baselines.training.export import export_policy
from flexmg.baselines.training.launch import launch
from flexmg.errors import CheckpointError, InvalidArgument


@pytest.fixture(scope="module")
def trained(model_folder, tmp_path_factory) -> Path:
    letter_game.register()
    folder = tmp_path_factory.mktemp("exported") / "run"
    given = letter_game.settings(str(model_folder), 2, eval_problems=0)
    given["algorithm_args"] = {"lr": 0.05}
    launch(given, folder, resume=False, console=Console(file=io.StringIO()))
    return folder


@pytest.mark.parametrize("policy", ["writer", "copyist"])
def test_an_exported_policy_is_a_plain_model_with_the_same_logits(
    policy, trained, model_folder, tmp_path
):
    out = tmp_path / "model"
    app = typer.Typer()
    add_commands(app)
    words = ["export", str(trained), "--policy", policy, "--out", str(out)]
    assert CliRunner().invoke(app, words).exit_code == 0
    plain = AutoModelForCausalLM.from_pretrained(out)
    assert not any("lora" in name for name, _ in plain.named_parameters())
    base = AutoModelForCausalLM.from_pretrained(model_folder)
    adapted = PeftModel.from_pretrained(base, trained / "checkpoint" / "adapters" / policy)
    ids = torch.tensor([[5, 77, 31, 200, 9]])
    with torch.no_grad():
        torch.testing.assert_close(plain(ids).logits, adapted(ids).logits, atol=1e-3, rtol=1e-3)
        with adapted.disable_adapter():
            assert not torch.allclose(plain(ids).logits, adapted(ids).logits, atol=1e-3)
    assert AutoTokenizer.from_pretrained(out)("ab")["input_ids"]


def test_what_cannot_be_exported_is_named(trained, tmp_path):
    with pytest.raises(InvalidArgument, match="did you mean 'writer'"):
        export_policy(trained, "writr", tmp_path / "a")
    with pytest.raises(InvalidArgument, match="exists already"):
        export_policy(trained, "writer", tmp_path)
    with pytest.raises(CheckpointError, match="no checkpoint"):
        export_policy(trained, "writer", tmp_path / "b", best=True)
    with pytest.raises(InvalidArgument, match="not a run folder"):
        export_policy(tmp_path, "writer", tmp_path / "c")


@pytest.fixture
def two_adapters(model_folder):
    """PEFT's own model with two adapters, told apart by their numbers."""
    config = LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False)
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(model_folder), config, "one")
    model.add_adapter("two", config)
    return model


def test_peft_mixes_adapters_in_a_batch_in_eval_mode_only(two_adapters):
    """Why engines may, and learners may not, use `adapter_names`."""
    ids = torch.tensor([[5, 77, 31], [5, 77, 31]])
    two_adapters.eval()
    with torch.no_grad():
        mixed = two_adapters(ids, adapter_names=["one", "two"]).logits
        for row, name in enumerate(("one", "two")):
            two_adapters.set_adapter(name)
            torch.testing.assert_close(mixed[row], two_adapters(ids).logits[row])
    two_adapters.train()
    with pytest.raises(ValueError, match="adapter_names"):
        two_adapters(ids, adapter_names=["one", "two"])


def test_pefts_set_adapter_flips_requires_grad(two_adapters):
    """Why adapters here are switched in another way."""

    def learning() -> set[str]:
        named = two_adapters.named_parameters()
        return {name.split(".")[-2] for name, p in named if p.requires_grad}

    two_adapters.set_adapter("one")
    assert learning() == {"one"}
    two_adapters.set_adapter("two")
    assert learning() == {"two"}
