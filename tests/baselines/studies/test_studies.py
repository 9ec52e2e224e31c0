"""Studies: two-way intervals that cover, and the path from runs to a page."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from flexmg.baselines.studies import smollm2
from flexmg.baselines.studies.cells import finished, run
from flexmg.baselines.studies.report import write
from flexmg.baselines.studies.small import SEEDS, cells
from flexmg.baselines.studies.smollm2 import cell
from flexmg.baselines.two_way import two_way


def test_two_way_by_hand():
    """Seeds 1 and 3 apart by 2, problems by 4, no residual: 1/1 + 4/1 ... by the formula."""
    values = np.array([[0.0, 4.0], [2.0, 6.0]])
    found = two_way(values)
    # Seed means 2 and 4 (variance 2), problem means 1 and 5 (variance 8), residual 0.
    assert found.mean == 3.0
    assert found.standard_error == pytest.approx(np.sqrt(2 / 2 + 8 / 2))
    assert found.degrees == pytest.approx(25 / (1 + 16))
    assert found.high - 3 == pytest.approx(stats.t.ppf(0.975, 25 / 17) * np.sqrt(5))


@pytest.mark.parametrize(("seed_sd", "problem_sd"), [(0.03, 0.2), (0.1, 0.2), (0.0, 0.3)])
def test_coverage_over_simulated_studies(seed_sd, problem_sd):
    """Five seeds, 100 problems, 0/1 outcomes: nominal 95 %, and never far below."""
    rng = np.random.default_rng(0)
    runs, covered, naive = 1500, 0, 0
    for _ in range(runs):
        chance = 0.5 + seed_sd * rng.normal(size=(5, 1)) + problem_sd * rng.normal(size=(1, 100))
        values = (rng.random((5, 100)) < chance).astype(float)
        found = two_way(values)
        covered += found.low <= 0.5 <= found.high
        means = values.mean(axis=0)
        naive += abs(means.mean() - 0.5) <= 1.96 * means.std(ddof=1) / 10
    assert 0.925 <= covered / runs <= 0.99
    if seed_sd == 0.1:
        assert naive / runs < 0.75  # problems alone, with seeds fixed


def test_one_seed_has_no_interval():
    assert two_way(np.ones((1, 10))).high == float("inf")


def test_the_table_has_the_ten_lines_of_the_study():
    made = cells()
    assert len(made) == 10 and len(SEEDS) == 3
    assert len({cell.name for cell in made}) == 10
    shared = {cell.title for cell in made if cell.settings["policies"] == "shared"}
    assert shared == {"MARFT-A", "GRPO"}
    budgets = {(cell.env, cell.settings["budget_tokens"]) for cell in made}
    assert len(budgets) == 2


def test_runs_become_a_page_and_finished_ones_are_kept(tmp_path: Path, capsys):
    small = [
        dataclasses.replace(
            cell,
            settings={**cell.settings, "budget_tokens": 200, "problems": 2, "eval_problems": 4},
        )
        for cell in cells()
        if cell.name in ("duo-marft-a-isolated", "duo-grpo-isolated")
    ]
    runs, out = tmp_path / "runs", tmp_path / "out"
    run(small, (0, 1), runs, 1)
    assert all(finished(runs / cell.name / f"seed-{seed}") for cell in small for seed in (0, 1))
    capsys.readouterr()
    run(small, (0, 1), runs, 1)
    assert capsys.readouterr().out.startswith("4 of 4 runs are there")
    write(small, (0, 1), runs, out)
    page = (out / "small.md").read_text()
    assert "| `math-duo-v0` | isolated | GRPO |" in page
    assert "flexmg train math-duo-v0 --algo grpo" in page
    assert (out / "small-math-duo.png").read_bytes().startswith(b"\x89PNG")


def test_the_smollm2_study_runs_with_any_model(tmp_path: Path, monkeypatch):
    """The path from the run to the page, in four seconds with the embedded model."""
    words = ["--model", "tiny", "--seconds", "1", "--run", str(tmp_path / "run")]
    monkeypatch.setattr("sys.argv", ["smollm2", *words, "--out", str(tmp_path)])
    monkeypatch.setattr(
        smollm2,
        "cell",
        lambda model, seconds: dataclasses.replace(
            own := cell(model, seconds),
            settings={**own.settings, "problems": 2, "eval_problems": 4, "dtype": "float32"},
        ),
    )
    smollm2.main()
    page = (tmp_path / "smollm2.md").read_text()
    assert "| before |" in page and "| after |" in page and "by quarters" in page
