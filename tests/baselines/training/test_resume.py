"""Fact 7: a run that was killed and resumed equals one that was not."""

from __future__ import annotations

import io
import json
import os
import signal
import time
from pathlib import Path

import letter_game
import pytest
import torch
from rich.console import Console

from flexmg.baselines.training.launch import launch
from flexmg.errors import InvalidArgument

TIMED = {"seconds", "total_seconds", "rollout_seconds", "update_seconds", "tokens_per_s"}


@pytest.fixture(autouse=True)
def game() -> None:
    letter_game.register()


def quiet() -> Console:
    return Console(file=open(os.devnull, "w"))


def metrics(folder: Path) -> list[dict]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if k not in TIMED} for row in rows]


def train(model: Path, folder: Path, iterations: int, *, resume: bool = False, **more):
    given = letter_game.settings(str(model), iterations, **more)
    return launch(given, folder, resume=resume, console=Console(file=io.StringIO()))


@pytest.fixture(scope="module")
def whole(model_folder, tmp_path_factory) -> Path:
    """An uninterrupted run of MARFT."""
    letter_game.register()
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(model_folder, folder, 4)
    return folder


def test_training_changes_the_policies(whole):
    rows = metrics(whole)
    assert all(row["kl"] > 0 for row in rows)
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4]


def test_engine_and_learner_give_the_same_log_probs(whole):
    """Fact 3, in training: pi_old / mu of whole actions, adapters moving, fp32."""
    for row in metrics(whole):
        assert all(block["engine_gap"] < 1e-4 for block in row["policies"].values())


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_killed_with_sigkill_and_resumed_gives_the_same_metrics(
    rows, whole, model_folder, tmp_path
):
    """Killed as soon as so many rows are there: before, in or after the last one's checkpoint."""
    folder = tmp_path / "run"
    child = os.fork()
    if child == 0:
        try:
            train(model_folder, folder, 4)
        finally:
            os._exit(0)
    try:
        deadline = time.monotonic() + 120
        log = folder / "metrics.jsonl"
        while not (log.exists() and log.read_text().count("\n") >= rows):
            assert os.waitpid(child, os.WNOHANG) == (0, 0), "the run ended by itself"
            assert time.monotonic() < deadline, "the run made no progress"
            time.sleep(0.005)
    finally:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    train(model_folder, folder, 4, resume=True)
    assert metrics(folder) == metrics(whole)


@pytest.mark.parametrize("algorithm", ["marft", "ippo"])
def test_stopped_early_and_extended_equals_a_long_run(algorithm, model_folder, tmp_path):
    """`iterations` is the total, and no schedule depends on it."""
    order = {"order": "round-robin"} if algorithm == "marft" else {}
    more = {
        "algorithm": algorithm,
        "algorithm_args": {"lr": 0.01, "minibatches": 1, **order},
        "eval_problems": 0,
    }
    train(model_folder, tmp_path / "long", 3, **more)
    train(model_folder, tmp_path / "short", 1, **more)
    train(model_folder, tmp_path / "short", 3, resume=True, **more)
    assert metrics(tmp_path / "short") == metrics(tmp_path / "long")


def test_evaluation_after_equals_that_of_the_uninterrupted_run(whole, model_folder, tmp_path):
    train(model_folder, tmp_path / "run", 3)
    train(model_folder, tmp_path / "run", 4, resume=True)
    both = [json.loads((f / "evaluation.json").read_text()) for f in (whole, tmp_path / "run")]
    assert both[0] == both[1]


def test_rows_without_a_checkpoint_are_played_again(whole, model_folder, tmp_path):
    folder = tmp_path / "run"
    train(model_folder, folder, 2)
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"iteration": 3, "accuracy": 0.5}) + "\n" + '{"iteration": 4, "acc')
    train(model_folder, folder, 4, resume=True)
    assert metrics(folder) == metrics(whole)


def test_a_run_is_not_overwritten_without_being_asked(whole, model_folder):
    with pytest.raises(InvalidArgument, match="--resume"):
        train(model_folder, whole, 4)


def test_other_settings_on_resume_are_refused_by_name(whole, model_folder):
    with pytest.raises(InvalidArgument, match=r"seed, algorithm_args\.lr|algorithm_args\.lr, seed"):
        train(model_folder, whole, 6, resume=True, seed=12, algorithm_args={"lr": 0.02})


def test_a_finished_run_resumed_changes_nothing(whole, model_folder):
    before = metrics(whole)
    train(model_folder, whole, 4, resume=True)
    assert metrics(whole) == before


def test_resume_of_nothing_starts_at_the_beginning(whole, model_folder, tmp_path):
    train(model_folder, tmp_path / "run", 4, resume=True)
    assert metrics(tmp_path / "run") == metrics(whole)


def test_adapters_of_the_checkpoint_are_peft_folders(whole, model_folder):
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(model_folder)
    adapters = whole / "checkpoint" / "adapters"
    assert {path.name for path in adapters.iterdir()} == {"writer", "copyist"}
    opened = PeftModel.from_pretrained(base, adapters / "writer")
    moved = [p for name, p in opened.named_parameters() if "lora_B" in name]
    assert any(torch.count_nonzero(p) for p in moved)
