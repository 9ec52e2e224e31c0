"""Budgets, interruption, validation, cliffs, loggers: how a run ends and who is told."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import letter_game
import numpy as np
import pytest
from rich.console import Console

from flexmg.baselines.training import validation
from flexmg.baselines.training.launch import launch, launch_seeds
from flexmg.baselines.training.loggers import figures, open_loggers
from flexmg.errors import InvalidArgument, MissingDependency

TIMED = {"seconds", "rollout_seconds", "update_seconds", "tokens_per_s", "total_seconds"}


@pytest.fixture(autouse=True)
def game() -> None:
    letter_game.register()


def rows(folder: Path, name: str = "metrics.jsonl") -> list[dict]:
    found = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    return [{k: v for k, v in row.items() if k not in TIMED} for row in found]


def train(model: Path, folder: Path, *, resume: bool = False, **more) -> str:
    """Train without evaluation; what was printed."""
    given = {**letter_game.settings(str(model), 1), "eval_problems": 0, **more}
    if more.get("iterations", 1) is None:
        del given["iterations"]
    console = Console(file=io.StringIO(), width=200)
    launch(given, folder, resume=resume, console=console)
    return console.file.getvalue()


def outcome(folder: Path) -> dict:
    return json.loads((folder / "outcome.json").read_text())


def test_a_token_budget_ends_the_run_with_the_iteration_that_reaches_it(model_folder, tmp_path):
    printed = train(model_folder, tmp_path, iterations=None, budget_tokens=150)
    totals = [row["total_tokens"] for row in rows(tmp_path)]
    assert totals == np.cumsum([row["tokens"] for row in rows(tmp_path)]).tolist()
    assert totals[-1] >= 150 and all(total < 150 for total in totals[:-1])
    assert outcome(tmp_path)["ended_by"] == "budget_tokens"
    assert "budget_tokens = 150" in printed


def test_an_episode_budget_counts_over_a_resume(model_folder, tmp_path):
    train(model_folder, tmp_path / "two", iterations=None, budget_episodes=9)
    assert len(rows(tmp_path / "two")) == 2  # 8 episodes an iteration
    train(model_folder, tmp_path / "two", resume=True, iterations=None, budget_episodes=24)
    train(model_folder, tmp_path / "one", iterations=3)
    assert rows(tmp_path / "two") == rows(tmp_path / "one")


def test_a_run_that_would_never_end_is_refused(model_folder, tmp_path):
    with pytest.raises(InvalidArgument, match="never end"):
        launch(
            {"env": letter_game.ENV, "iterations": None},
            tmp_path / "run",
            resume=False,
            console=Console(file=io.StringIO()),
        )


def test_fresh_batches_of_recollect_count_against_the_budget(model_folder, tmp_path):
    """Two policies: one batch more in every iteration, of as many episodes."""
    train(model_folder, tmp_path, iterations=2, algorithm_args={"importance": "recollect"})
    assert [row["episodes"] for row in rows(tmp_path)] == [16, 16]
    assert [row["total_episodes"] for row in rows(tmp_path)] == [16, 32]


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import letter_game
letter_game.register()
from flexmg.cli import main
main(["train", letter_game.ENV, "--model", {model!r}, "--out", {out!r}, "--device", "cpu",
      "--problems", "4", "--samples", "2", "--eval-problems", "0", "--seed", "11",
      "--iterations", "100000", "--checkpoint-every", "1000"])
"""


def command(model: Path, out: Path) -> subprocess.Popen:
    code = SCRIPT.format(
        folder=str(Path(letter_game.__file__).parent),
        model=str(model),
        out=str(out),
    )
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_what_is_finished_and_says_how_to_go_on(number, model_folder, tmp_path):
    """No checkpoint was due, and the signal comes anywhere in an iteration."""
    out = tmp_path / "run"
    process = command(model_folder, out)
    log = out / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (log.exists() and log.read_text().count("\n") >= 3):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, number)
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert f"flexmg train {letter_game.ENV} --out {out} --resume" in printed
    done = json.loads((out / "checkpoint" / "trainer.json").read_text())["iteration"]
    assert done >= 3
    stopped = rows(out)[:done]
    same = {"algorithm_args": {}, "logged_episodes": 8, "checkpoint_every": 1000}
    train(model_folder, out, resume=True, iterations=done + 2, **same)
    train(model_folder, tmp_path / "straight", iterations=done + 2, **same)
    assert rows(out) == rows(tmp_path / "straight")
    assert rows(out)[:done] == stopped


VALIDATED = {"validate_every": 1, "validation_problems": 3, "checkpoint_every": 2}


def test_validation_problems_are_never_trained_on_nor_held_out(model_folder, tmp_path):
    more = {"env_args": {"size": 20, "twins": True}, "eval_problems": 3, **VALIDATED}
    train(model_folder, tmp_path, iterations=2, **more)
    # Problems 0 to 2 of every split are twins; three are held out, three others validate.
    looks = rows(tmp_path, "validation.jsonl")
    assert [look["iteration"] for look in looks] == [1, 2]
    assert [len(look["per_problem"]) for look in looks] == [3, 3]
    files = sorted((tmp_path / "episodes").glob("iteration-*.jsonl"))
    seen = {json.loads(line)["problem"] for f in files for line in f.read_text().splitlines()}
    assert not seen & {"train-0", "train-1", "train-2"}


def test_the_best_team_by_validation_is_kept(model_folder, tmp_path, monkeypatch):
    """Accuracies 0.2, 0.6, 0.4 at three looks: iteration 2 is kept."""
    looks = iter([0.2, 0.6, 0.4])
    monkeypatch.setattr(validation.Validation, "look", _planned(looks))
    train(model_folder, tmp_path, iterations=3, **VALIDATED)
    best = json.loads((tmp_path / "checkpoint-best" / "trainer.json").read_text())
    assert best["iteration"] == 2


def _planned(looks):
    def look(self, iteration):
        accuracy = next(looks)
        wins = round(accuracy * 100)
        row = {
            "iteration": iteration,
            "accuracy": accuracy,
            "per_problem": [1.0] * wins + [0.0] * (100 - wins),
        }
        self.records.add(row, validation.FILE)
        return row

    return look


def test_a_cliff_ends_the_run_and_the_best_team_stays(model_folder, tmp_path, monkeypatch):
    """Up to 0.8, down to 0.4 and still there: the second look at the bottom ends it."""
    looks = iter([0.3, 0.6, 0.8, 0.4, 0.4, 0.4, 0.4])
    monkeypatch.setattr(validation.Validation, "look", _planned(looks))
    printed = train(model_folder, tmp_path, iterations=7, stop_on_cliff=True, **VALIDATED)
    found = outcome(tmp_path)
    assert (found["ended_by"], found["iterations"]) == ("cliff", 5)
    assert (found["cliff"]["peak"], found["cliff"]["high"], found["cliff"]["low"]) == (3, 0.8, 0.4)
    assert "from 80.0% (iteration 3) to 40.0%" in printed
    # A resume finds the run where it ended.
    train(model_folder, tmp_path, resume=True, iterations=9, stop_on_cliff=True, **VALIDATED)
    assert len(rows(tmp_path)) == 5


def test_watching_for_cliffs_needs_validation(model_folder, tmp_path):
    with pytest.raises(InvalidArgument, match="validate_every"):
        train(model_folder, tmp_path / "run", stop_on_cliff=True)


def test_several_seeds_have_folders_of_their_own_and_equal_single_runs(model_folder, tmp_path):
    given = letter_game.settings(str(model_folder), 1, eval_problems=0)
    del given["seed"]
    console = Console(file=io.StringIO())
    launch_seeds(given, [4, 7], tmp_path / "both", resume=False, console=console)
    train(model_folder, tmp_path / "four", seed=4)
    assert rows(tmp_path / "both" / "seed-4") == rows(tmp_path / "four")
    assert rows(tmp_path / "both" / "seed-7") != rows(tmp_path / "four")
    with pytest.raises(InvalidArgument, match="twice"):
        launch_seeds(given, [4, 4], tmp_path / "both", resume=True, console=console)


def test_figures_are_the_numbers_of_a_row_by_path():
    row = {"kl": 0.5, "policies": {"a": {"kl": 1, "skipped": "why"}}, "order": ["a"], "x": None}
    assert figures(row) == {"kl": 0.5, "policies/a/kl": 1.0}


def test_unknown_and_missing_loggers_say_so(tmp_path, monkeypatch):
    with pytest.raises(InvalidArgument, match="tensorboard"):
        open_loggers(["tensorbord"], tmp_path, {})
    monkeypatch.setitem(sys.modules, "trackio", None)
    with pytest.raises(MissingDependency, match="pip install trackio"):
        open_loggers(["trackio"], tmp_path, {})


@pytest.mark.parametrize("package", ["wandb", "trackio"])
def test_trackers_get_every_iteration(package, model_folder, tmp_path, monkeypatch):
    """Neither is a dependency: a module with their three functions stands in."""
    calls = []
    stand_in = types.ModuleType(package)
    stand_in.__spec__ = types.SimpleNamespace()
    stand_in.init = lambda **options: calls.append(("init", options["resume"]))
    stand_in.log = lambda found, step: calls.append((step, found["tokens"]))
    stand_in.finish = lambda: calls.append(("finish", None))
    monkeypatch.setitem(sys.modules, package, stand_in)
    train(model_folder, tmp_path, iterations=2, log=[package])
    tokens = [row["tokens"] for row in rows(tmp_path)]
    assert calls == [("init", "allow"), (1, tokens[0]), (2, tokens[1]), ("finish", None)]


def test_tensorboard_files_hold_the_figures(model_folder, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(model_folder, tmp_path, iterations=2, log=["tensorboard"])
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    written = [(event.step, event.value) for event in events.Scalars("tokens")]
    assert written == [(row["iteration"], row["tokens"]) for row in rows(tmp_path)]


def test_the_trainer_says_which_policy_learnt_nothing(model_folder, tmp_path):
    """With GRPO and one sample per problem every group has one episode."""
    printed = train(model_folder, tmp_path, algorithm="grpo", algorithm_args={}, samples=1)
    assert "policy writer learnt nothing: writer: its groups have one episode each" in printed
    blocks = rows(tmp_path)[0]["policies"]
    assert all("skipped" in block for block in blocks.values())
