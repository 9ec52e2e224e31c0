"""The main job: its statistics, and that it really learns."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from flexmg.baselines.demo import BUDGET, gain_interval, table
from flexmg.baselines.training.launch import launch


def test_the_interval_of_three_gains_by_hand() -> None:
    # mean 0.2, standard deviation 0.1, t(0.975; 2) = 4.302653: 4.302653 * 0.1 / sqrt(3)
    mean, half = gain_interval([0.1, 0.2, 0.3])
    assert mean == pytest.approx(0.2)
    assert half == pytest.approx(0.248414, abs=1e-6)


def test_one_gain_has_no_interval() -> None:
    mean, half = gain_interval([0.4])
    assert mean == 0.4
    assert half != half


def test_the_table_shows_the_gain_in_points() -> None:
    before = {"accuracy": 0.4, "interval": [0.35, 0.45], "tokens": 30.0}
    after = {"accuracy": 0.75, "interval": [0.7, 0.8], "tokens": 41.0}
    console = Console(width=120, record=True)
    console.print(table(0, {"marft": {"before": before, "after": after}}))
    assert "+35.0 points" in console.export_text()


@pytest.mark.full
@pytest.mark.parametrize("algorithm", ["marft", "ippo"])
def test_the_team_gains_ten_points_within_half_the_budget(tmp_path: Path, algorithm: str) -> None:
    settings = {
        **BUDGET,
        "algorithm": algorithm,
        "seed": 0,
        "iterations": 15,
        "eval_problems": 200,
    }
    found = launch(settings, tmp_path, resume=False, console=Console(quiet=True))
    assert found["after"]["accuracy"] >= found["before"]["accuracy"] + 0.1
