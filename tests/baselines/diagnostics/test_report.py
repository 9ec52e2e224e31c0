"""`flexmg diagnose` on real runs; a diagnosed run equals an undiagnosed one."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import letter_game
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from flexmg.baselines.commands import add_commands
from flexmg.baselines.diagnostics.report import diagnose
from flexmg.baselines.training.launch import launch
from flexmg.errors import InvalidArgument

TIMED = {"seconds", "rollout_seconds", "update_seconds", "tokens_per_s", "total_seconds"}


@pytest.fixture(autouse=True)
def game() -> None:
    letter_game.register()


def train(model: Path, folder: Path, iterations: int = 3, *, resume: bool = False, **more) -> Path:
    given = letter_game.settings(str(model), iterations, eval_problems=0, **more)
    launch(given, folder, resume=resume, console=Console(file=io.StringIO()))
    return folder


def rows(folder: Path, name: str) -> list[dict]:
    found = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    return [{k: v for k, v in row.items() if k not in TIMED} for row in found]


@pytest.fixture(scope="module")
def shared(model_folder, tmp_path_factory) -> Path:
    letter_game.register()
    folder = tmp_path_factory.mktemp("diagnosed") / "run"
    more = {
        "policies": "shared",
        "diagnose_every": 1,
        "validate_every": 1,
        "validation_problems": 4,
    }
    return train(model_folder, folder, **more)


def test_looks_are_recorded_by_policy_role_and_slot(shared):
    looks = rows(shared, "diagnostics.jsonl")
    assert [look["iteration"] for look in looks] == [1, 2, 3]
    block = looks[1]["policies"]["team"]
    assert block["slots"].keys() == {"writer_0", "copyist_0"}
    assert sum(own["share"] for own in block["roles"].values()) == pytest.approx(1.0)
    assert sum(slot["weight"] for slot in block["slots"].values()) == pytest.approx(1.0)
    assert looks[0]["policies"]["team"]["adam"] is None  # before Adam's first step
    assert block["adam"]["capture"] > 0
    step = rows(shared, "metrics.jsonl")[1]["steps"]["team"]
    assert block["step"] == step > 0
    assert 0 < block["accumulation"] <= 1 and block["null"] == pytest.approx(2**-0.5)


def test_the_page_is_whole_and_charts_have_text_alternatives(shared):
    found = diagnose(shared)
    assert found["sentences"]
    page = Path(found["page"]).read_text()
    images = re.findall(r'<img src="data:image/png;base64,[^"]+" alt="([^"]+)"', page)
    assert len(images) == len(found["charts"]) >= 5
    assert all(" from " in alt for alt in images)
    assert not re.search(r'(src|href)="(?!data:)', page)
    for chart in found["charts"]:
        assert Path(chart).read_bytes().startswith(b"\x89PNG")


def test_the_command_prints_sentences_and_json(shared):
    app = typer.Typer()
    add_commands(app)
    printed = CliRunner().invoke(app, ["diagnose", str(shared)])
    assert printed.exit_code == 0 and "•" in printed.stdout and "diagnostics.html" in printed.stdout
    found = json.loads(CliRunner().invoke(app, ["diagnose", str(shared), "--json"]).stdout)
    assert found.keys() == {"sentences", "charts", "page", "looks"}


def test_a_run_without_looks_says_how_to_get_them(model_folder, tmp_path):
    folder = train(model_folder, tmp_path / "run", 1, diagnose_every=0)
    with pytest.raises(InvalidArgument, match="--diagnose-every"):
        diagnose(folder)
    with pytest.raises(InvalidArgument, match="not a run folder"):
        diagnose(tmp_path)


@pytest.mark.parametrize("policies", ["isolated", "shared"])
@pytest.mark.parametrize("algorithm", ["marft", "grpo"])
def test_a_diagnosed_run_equals_an_undiagnosed_one(policies, algorithm, model_folder, tmp_path):
    more = {"policies": policies, "algorithm": algorithm, "algorithm_args": {"lr": 0.01}}
    plain = train(model_folder, tmp_path / "plain", diagnose_every=0, **more)
    looked = train(model_folder, tmp_path / "looked", diagnose_every=1, **more)
    assert rows(plain, "metrics.jsonl") == rows(looked, "metrics.jsonl")


def test_looks_of_a_resumed_run_equal_those_of_one_in_one_go(model_folder, tmp_path):
    more = {"diagnose_every": 1}
    whole = train(model_folder, tmp_path / "whole", 3, **more)
    parts = train(model_folder, tmp_path / "parts", 1, **more)
    train(model_folder, parts, 3, resume=True, **more)
    assert rows(parts, "diagnostics.jsonl") == rows(whole, "diagnostics.jsonl")
