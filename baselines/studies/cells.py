"""Runs of a study: resumable, side by side in processes of one thread each."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console

from flexmg.baselines.training.progress import duration
from flexmg.baselines.training.records import RunRecords

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Cell:
    """One line of a study's table.

    Args:
        name: of the folder; letters, digits and dashes.
        title: for people.
        env: id of the environment.
        settings: of the runs, without the seed.
    """

    name: str
    title: str
    env: str
    settings: Mapping[str, Any]

    def command(self, seeds: Sequence[int]) -> str:
        """How a user trains the same."""
        options = [
            f"--algo {self.settings['algorithm']}",
            f"--policy-map {self.settings['policies']}",
            f"--seed {','.join(map(str, seeds))}",
        ]
        for name, value in self.settings["algorithm_args"].items():
            options.append(f"--level {value}" if name == "level" else f"--algo-arg {name}={value}")
        for name, value in self.settings["env_args"].items():
            options.append(f"--env-arg {name}={value}")
        for name in ("budget_tokens", "problems", "samples", "eval_problems"):
            options.append(f"--{name.replace('_', '-')} {self.settings[name]}")
        return " ".join(["flexmg train", self.env, *options])


def run(cells: Sequence[Cell], seeds: Sequence[int], folder: Path, processes: int) -> None:
    """Train every cell with every seed; finished runs are kept, stopped ones go on.

    Args:
        cells: of the study.
        seeds: of the runs.
        folder: gets ``CELL/seed-N`` of each.
        processes: how many runs at a time.
    """
    # One thread each, in this process and those to come: two would fight.
    os.environ.update(dict.fromkeys(THREADS, "1"))
    jobs = [(cell, seed) for seed in seeds for cell in cells]
    left = [job for job in jobs if not finished(folder / job[0].name / f"seed-{job[1]}")]
    print(f"{len(jobs) - len(left)} of {len(jobs)} runs are there, {len(left)} to go")
    started = perf_counter()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        futures = {pool.submit(_train, cell, seed, folder): (cell, seed) for cell, seed in left}
        for number, future in enumerate(as_completed(futures), 1):
            cell, seed = futures[future]
            future.result()
            took = duration(perf_counter() - started)
            print(f"{number}/{len(left)} {cell.name} seed {seed} ({took} in all)")
            sys.stdout.flush()


def finished(folder: Path) -> bool:
    """Whether a run has ended and was evaluated."""
    return (folder / "outcome.json").is_file()


def _train(cell: Cell, seed: int, folder: Path) -> None:
    from flexmg.baselines.training.launch import launch

    given = {"env": cell.env, **cell.settings, "seed": seed}
    console = Console(file=StringIO())
    launch(given, folder / cell.name / f"seed-{seed}", resume=True, console=console)


@dataclass(frozen=True)
class Result:
    """What one run came to.

    Args:
        before: held-out accuracy per problem, untrained. ``after``: trained.
        tokens: generated in training, after every iteration.
        accuracy: of the training episodes of every iteration.
        outcome: what ended it, and its costs.
    """

    before: list[float]
    after: list[float]
    tokens: list[float]
    accuracy: list[float]
    outcome: dict[str, Any]


def results(cell: Cell, seeds: Sequence[int], folder: Path) -> list[Result]:
    """Of every seed of a cell, in order."""
    found = []
    for seed in seeds:
        own = folder / cell.name / f"seed-{seed}"
        records = RunRecords(own)
        evaluations, rows = records.evaluations(), records.rows()
        found.append(
            Result(
                before=evaluations["before"]["per_problem"],
                after=evaluations["after"]["per_problem"],
                tokens=[row["total_tokens"] for row in rows],
                accuracy=[row["accuracy"] for row in rows],
                outcome=json.loads((own / "outcome.json").read_text(encoding="utf-8")),
            )
        )
    return found
