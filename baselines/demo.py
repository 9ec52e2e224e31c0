"""The main job, ``make demo``: two algorithms train the same team with the same budget.

MARFT (action level, isolated adapters, central critic) and Independent PPO (own critics,
own observations) train orchestrator, workers and synthesizer of ``math-orch-workers-v0``
with the embedded model. ``mode="strategies"`` is played, the workflow study's: each worker
solves the whole problem in its own way, so that every role has something to learn (which
strategies to suggest, to show the working, whom to trust); with subtasks the tiny model
leaves nothing to the orchestrator.

``--seeds 3`` repeats it with several seeds and prints the mean gain with its interval.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table
from scipy import stats

from flexmg.baselines.training.launch import launch
from flexmg.baselines.training.records import Row

ENV = "math-orch-workers-v0"
ALGORITHMS = {"marft": "MARFT", "ippo": "IPPO"}
BUDGET: dict[str, Any] = {
    "env": ENV,
    "model": "tiny",
    "policies": "isolated",
    "iterations": 20,
    "problems": 32,
    "samples": 2,
    "eval_problems": 300,
    "checkpoint_every": 5,
    # As many optimiser steps as two epochs of two minibatches, for half the passes.
    "algorithm_args": {"epochs": 1, "minibatches": 4},
    # The tiny model's replies are short; a cap keeps runaway ones from costing time.
    "env_args": {"mode": "strategies", "token_limits": 48},
}


def train_both(folder: Path, seed: int, console: Console) -> dict[str, dict[str, Row]]:
    """Train with both algorithms; per algorithm the evaluations ``before`` and ``after``."""
    return {
        algorithm: launch(
            {**BUDGET, "algorithm": algorithm, "seed": seed},
            folder / f"demo-{algorithm}-{seed}",
            resume=True,
            console=console,
        )
        for algorithm in ALGORITHMS
    }


def table(seed: int, results: dict[str, dict[str, Row]]) -> Table:
    """Held-out accuracy (95 % interval) and tokens per episode, before and after."""
    rows = Table(title=f"{ENV}, held-out accuracy (seed {seed})", title_justify="left")
    for name in ("", "untrained", "trained", "gain", "tokens"):
        rows.add_column(name, justify="left" if not name else "right", no_wrap=True)
    for algorithm, evaluations in results.items():
        before, after = evaluations["before"], evaluations["after"]
        rows.add_row(
            ALGORITHMS[algorithm],
            _share(before),
            _share(after),
            f"{100 * (after['accuracy'] - before['accuracy']):+.1f} points",
            f"{before['tokens']:.0f} -> {after['tokens']:.0f}",
        )
    return rows


def _share(row: Row) -> str:
    low, high = row["interval"]
    return f"{row['accuracy']:.1%} ({low:.0%}–{high:.0%})"


def gain_interval(gains: list[float]) -> tuple[float, float]:
    """Mean of per-seed gains and the half-width of its 95 % t interval."""
    mean = sum(gains) / len(gains)
    if len(gains) < 2:
        return mean, math.nan
    spread = math.sqrt(sum((g - mean) ** 2 for g in gains) / (len(gains) - 1) / len(gains))
    return mean, float(stats.t.ppf(0.975, len(gains) - 1)) * spread


def main() -> None:
    """Command line: ``--seeds`` how many, ``--out`` where the run folders go."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    arguments = parser.parse_args()
    console = Console()
    began = perf_counter()
    gains: dict[str, list[float]] = {algorithm: [] for algorithm in ALGORITHMS}
    for seed in range(arguments.seeds):
        results = train_both(arguments.out, seed, console)
        console.print(table(seed, results))
        for algorithm, found in results.items():
            gains[algorithm].append(found["after"]["accuracy"] - found["before"]["accuracy"])
    if arguments.seeds > 1:
        for algorithm, own in gains.items():
            mean, half = gain_interval(own)
            console.print(
                f"{ALGORITHMS[algorithm]}: gain {100 * mean:+.1f} ± {100 * half:.1f} points "
                f"(95 % t interval over {len(own)} seeds)"
            )
        (arguments.out / "demo.json").write_text(json.dumps(gains) + "\n")
    reports = ", ".join(
        str(arguments.out / f"demo-{algorithm}-0" / "report.html") for algorithm in ALGORITHMS
    )
    console.print(f"Reports: {reports}; {(perf_counter() - began) / 60:.1f} minutes in all.")


if __name__ == "__main__":
    main()
