"""`flexmg train` and `flexmg eval`, and an algorithm from outside the package."""

from __future__ import annotations

import dataclasses
import json
import re
import textwrap
from pathlib import Path

import letter_game
import pytest
import typer
import yaml
from typer.testing import CliRunner

from flexmg.baselines.algorithms.registry import algorithm, algorithms
from flexmg.baselines.commands import add_commands
from flexmg.baselines.commands.options import seconds
from flexmg.baselines.training.config import RunConfig
from flexmg.baselines.training.files import build
from flexmg.baselines.training.launch import complete
from flexmg.errors import CheckpointError, InvalidArgument, NameNotFound, RegistrationError


@pytest.fixture(autouse=True)
def game() -> None:
    letter_game.register()


def run(*words: str):
    app = typer.Typer()
    add_commands(app)
    return CliRunner().invoke(app, list(words), catch_exceptions=True)


def train(model: Path, out: Path, *words: str):
    return run(
        *("train", letter_game.ENV, "--model", str(model), "--out", str(out)),
        *("--problems", "4", "--samples", "2", "--eval-problems", "2", "--device", "cpu"),
        *words,
    )


@pytest.fixture(scope="module")
def trained(model_folder, tmp_path_factory) -> Path:
    letter_game.register()
    folder = tmp_path_factory.mktemp("cli") / "run"
    done = train(model_folder, folder, "--iterations", "2", "--seed", "3", "--algo", "ippo")
    assert done.exit_code == 0, done.output
    return folder


def test_train_writes_what_the_documentation_names(trained):
    for name in ("metrics.jsonl", "report.html", "config.yaml"):
        assert (trained / name).is_file()
    assert (trained / "checkpoint").is_dir()
    assert list((trained / "episodes").glob("*.jsonl"))


def test_rows_count_from_1_and_have_the_named_fields(trained):
    rows = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 2]
    assert {"accuracy", "reward", "tokens", "seconds", "policies", "kl"} <= rows[0].keys()


def test_eval_of_a_run_prints_one_json_object(trained):
    done = run("eval", str(trained), "--limit", "3", "--samples", "2", "--json")
    row = json.loads(done.stdout)
    assert row["env"] == letter_game.ENV and row["env_args"] == {"split": "test"}
    assert row["n"] == sum(row["statuses"].values()) == 6
    assert 0 <= row["interval"][0] <= row["accuracy"] <= row["interval"][1] <= 1


def test_eval_of_a_run_repeats_its_own_evaluation(trained):
    """Same problems and temperature; the seed decides, so two calls agree."""
    rows = [json.loads(run("eval", str(trained), "--limit", "2", "--json").stdout) for _ in "ab"]
    assert rows[0]["per_problem"] == rows[1]["per_problem"]


def test_eval_of_a_plain_model_prints_a_table(model_folder):
    done = run("eval", str(model_folder), "--env", letter_game.ENV, "--limit", "2")
    assert done.exit_code == 0, done.output
    assert "held-out problems" in done.stdout and "2 wrong" in done.stdout


def test_eval_of_a_model_needs_an_environment(model_folder):
    error = run("eval", str(model_folder)).exception
    assert isinstance(error, InvalidArgument) and "--env" in str(error)


def test_eval_of_a_run_on_another_team_says_so(trained):
    error = run("eval", str(trained), "--env", "math-duo-v0", "--limit", "1").exception
    assert isinstance(error, CheckpointError) and "writer" in str(error)


def test_unknown_environment_is_an_error_of_ours(model_folder, tmp_path):
    error = run("train", "math-dou-v0", "--model", str(model_folder)).exception
    assert isinstance(error, NameNotFound)


def test_arguments_of_environment_and_algorithm_are_read(model_folder, tmp_path):
    done = train(
        *(model_folder, tmp_path / "run", "--iterations", "1", "--env-arg", "size=20"),
        *("--algo-arg", "importance=none", "--algo-arg", "lr=1e-4", "--policies", "shared"),
    )
    assert done.exit_code == 0, (done.output, done.exception)
    text = (tmp_path / "run" / "config.yaml").read_text()
    for line in ("size: 20", "importance: none", "lr: 0.0001", "policies: shared"):
        assert line in text


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--algo-arg", "lr"], "KEY=VALUE"),
        (["--algo-arg", "learning_rate=1"], "no setting 'learning_rate'"),
        (["--env-arg", "x=[1"], "cannot be read"),
        (["--policies", "writer=a,copyist"], "ROLE=NAME"),
        (["--algo", "mrft"], "did you mean 'marft'"),
        (["--problems", "0"], "problems must be at least 1"),
    ],
)
def test_bad_words_are_refused_before_anything_is_written(model_folder, tmp_path, words, fault):
    error = train(model_folder, tmp_path / "run", *words).exception
    assert isinstance(error, InvalidArgument) and fault in str(error)
    assert not (tmp_path / "run").exists()


def test_ctrl_c_says_how_to_go_on(model_folder, tmp_path, monkeypatch):
    def interrupted(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr("flexmg.baselines.algorithms.marft.MARFT.update", interrupted)
    done = train(model_folder, tmp_path / "run")
    assert (done.exit_code, "--resume" in done.stdout) == (130, True)


def test_explicit_policy_map(model_folder, tmp_path):
    done = train(
        *(model_folder, tmp_path / "run", "--iterations", "1"),
        *("--policies", "writer=one,copyist_0=two"),
    )
    assert done.exit_code == 0, (done.output, done.exception)
    adapters = tmp_path / "run" / "checkpoint" / "adapters"
    assert {path.name for path in adapters.iterdir()} == {"one", "two"}


REINFORCE = '''
"""REINFORCE with a batch-mean baseline: an algorithm that flexmg has never heard of."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Settings:
    lr: float = 0.01


class Reinforce:
    Config = Settings

    def __init__(self, team, config, *, temperature):
        self.team, self.temperature = team, temperature
        self.optimizers = {
            policy: torch.optim.Adam(team.policy_parameters(policy), lr=config.lr)
            for policy in team.policies
        }

    @staticmethod
    def critics(policies):
        return ()

    def update(self, batch, key, collect):
        baseline = sum(e.step_rewards.sum() for e in batch.trainable) / len(batch.trainable)
        for policy, optimizer in self.optimizers.items():
            turns = [(t, e) for e in batch.trainable for t in e.turns if t.policy == policy]
            own = [turn for turn, _ in turns]
            scores = self.team.log_probs(policy, own, temperature=self.temperature)
            returns = torch.tensor([e.step_rewards.sum() - baseline for _, e in turns])
            loss = -((scores.log_probs * scores.mask).sum(1) * returns).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            self.team.versions[policy] += 1
        return {"baseline": float(baseline)}

    def state(self):
        return {policy: optimizer.state_dict() for policy, optimizer in self.optimizers.items()}

    def load_state(self, state):
        for policy, saved in state.items():
            self.optimizers[policy].load_state_dict(saved)
'''


def install(folder: Path, entries: str) -> None:
    """What pip leaves behind: a module, and metadata with an entry point."""
    info = folder / "outsider-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "outsider_reinforce.py").write_text(REINFORCE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outsider\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(textwrap.dedent(entries))


def test_an_algorithm_from_outside_is_trained_from_the_command_line(
    model_folder, tmp_path, monkeypatch
):
    site = tmp_path / "site"
    install(site, "[flexmg.algorithms]\nreinforce = outsider_reinforce:Reinforce\n")
    monkeypatch.syspath_prepend(str(site))
    out = tmp_path / "run"
    first = train(model_folder, out, "--iterations", "1", "--algo", "reinforce")
    assert first.exit_code == 0, (first.output, first.exception)
    done = train(model_folder, out, "--iterations", "2", "--algo", "reinforce", "--resume")
    assert done.exit_code == 0, (done.output, done.exception)
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [0 < row["baseline"] < 1 for row in rows] == [True, True]


def test_two_algorithms_of_one_name_are_refused(tmp_path, monkeypatch):
    install(tmp_path / "site", "[flexmg.algorithms]\nmarft = outsider_reinforce:Reinforce\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    with pytest.raises(RegistrationError, match="two algorithms are called 'marft'"):
        algorithms()


@pytest.mark.parametrize(
    ("entry", "fault"),
    [("outsider_reinforce:Settings", "lacks critics"), ("nowhere_to_be_found:X", "imported")],
)
def test_an_entry_point_that_is_no_algorithm_says_what_lacks(tmp_path, monkeypatch, entry, fault):
    install(tmp_path / "site", f"[flexmg.algorithms]\nother = {entry}\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    with pytest.raises(RegistrationError, match=fault):
        algorithm("other")


def test_level_is_the_algorithms_and_difficulty_the_problems(tmp_path):
    done = run(
        *("train", "math-duo-v0", "--algo", "grpo", "--level", "action", "--difficulty", "2"),
        *("--iterations", "1", "--problems", "2", "--samples", "2", "--eval-problems", "0"),
        *("--out", str(tmp_path / "run")),
    )
    assert done.exit_code == 0, (done.output, done.exception)
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert config["algorithm_args"]["level"] == "action"
    assert config["env_args"] == {"level": 2}


def test_an_algorithm_without_levels_says_so(model_folder, tmp_path, monkeypatch):
    site = tmp_path / "site"
    install(site, "[flexmg.algorithms]\nreinforce = outsider_reinforce:Reinforce\n")
    monkeypatch.syspath_prepend(str(site))
    error = train(
        model_folder, tmp_path / "run", "--algo", "reinforce", "--level", "token"
    ).exception
    assert isinstance(error, InvalidArgument) and "no setting 'level'" in str(error)


@pytest.mark.parametrize("algo", ["marft", "ippo", "maporl", "grpo"])
def test_printed_defaults_are_what_a_run_has_and_are_taken_back(algo, tmp_path):
    """`flexmg config` prints YAML with a comment for every setting."""
    printed = run("config", "--algo", algo, "--env", letter_game.ENV).stdout
    values = yaml.safe_load(printed)
    config = complete(RunConfig(env=letter_game.ENV, algorithm=algo))
    assert values == dataclasses.asdict(config) | {"algorithm_args": values["algorithm_args"]}
    assert build(RunConfig, values, "it") == config
    lines = printed.splitlines()
    for number, line in enumerate(lines):
        if re.match(r"^ {0,2}\w+:", line) and not line.startswith("  split"):
            assert lines[number - 1].lstrip().startswith("#"), line


def test_a_file_of_settings_is_taken_and_options_go_before_it(model_folder, tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text(
        f"env: {letter_game.ENV}\nmodel: {model_folder}\ndevice: cpu\nproblems: 4\nsamples: 2\n"
        "eval_problems: 0\niterations: 5\nseed: [3, 4]\nalgorithm_args: {lr: 0.5, epochs: 1}\n"
    )
    out = tmp_path / "runs"
    done = run(
        *("train", "--config", str(file), "--iterations", "1", "--out", str(out)),
        *("--algo-arg", "lr=0.25"),
    )
    assert done.exit_code == 0, (done.output, done.exception)
    for seed in (3, 4):
        config = yaml.safe_load((out / f"seed-{seed}" / "config.yaml").read_text())
        assert (config["iterations"], config["seed"]) == (1, seed)
        assert (config["algorithm_args"]["lr"], config["algorithm_args"]["epochs"]) == (0.25, 1)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("itertions: 3", "did you mean 'iterations'"),
        ("algorithm_args: {epoch: 3}", "did you mean 'epochs'"),
        ("- 1", "does not hold settings"),
        ("a: [", "is not YAML"),
    ],
)
def test_slips_in_a_file_are_named(text, fault, tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text(text if text.startswith("-") else f"env: {letter_game.ENV}\n{text}\n")
    error = run("train", "--config", str(file), "--out", str(tmp_path / "run")).exception
    assert isinstance(error, InvalidArgument) and fault in str(error)


def test_a_missing_file_and_a_missing_environment_are_named(tmp_path):
    error = run("train", "--config", str(tmp_path / "none.yaml")).exception
    assert isinstance(error, InvalidArgument) and "none.yaml cannot be read" in str(error)
    error = run("train", "--out", str(tmp_path / "run")).exception
    assert isinstance(error, InvalidArgument) and "name one" in str(error)


@pytest.mark.parametrize(
    ("words", "value"),
    [("90", 90.0), ("90s", 90.0), ("15m", 900.0), ("1h30m", 5400.0), ("2h", 7200.0)],
)
def test_times_are_read(words, value):
    assert seconds(words) == value


@pytest.mark.parametrize("words", ["", "h", "1x", "-3", "1.5h"])
def test_what_is_no_time_is_refused(words):
    with pytest.raises(InvalidArgument, match="1h30m"):
        seconds(words)


def test_eval_compares_with_the_base_model_alone(tmp_path):
    """A duo makes two calls, so alone there are two answers, of which a majority counts."""
    done = run("eval", "tiny", "--env", "math-duo-v0", "--limit", "12", "--samples", "2", "--json")
    row = json.loads(done.stdout)
    assert row["calls"] == 2.0 and row["pass_at"].keys() == {"1", "2"}
    assert row["pass_at"]["1"] == pytest.approx(row["accuracy"])
    assert row["critical_path"] == pytest.approx(row["tokens"])  # a chain waits for everybody
    alone = row["baselines"]
    assert alone["calls"] == 2
    assert 0 <= alone["single_agent"]["accuracy"] <= 1
    low, high = alone["majority_vote"]["interval"]
    assert low <= alone["majority_vote"]["accuracy"] <= high
    text = run("eval", "tiny", "--env", "math-duo-v0", "--limit", "4").stdout
    assert "majority vote" in text and "planner" in text and "critical path" in text


def test_eval_of_a_game_without_a_single_agent_version_has_no_baselines(trained):
    row = json.loads(run("eval", str(trained), "--limit", "2", "--json").stdout)
    assert row["baselines"] is None


def test_the_best_checkpoint_of_a_plain_model_is_refused(model_folder):
    error = run("eval", str(model_folder), "--env", letter_game.ENV, "--best").exception
    assert isinstance(error, InvalidArgument) and "no best checkpoint" in str(error)
