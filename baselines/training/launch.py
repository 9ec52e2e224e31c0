"""From loosely typed settings to runs: what ``flexmg train`` calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from flexmg.baselines.algorithms.registry import configure
from flexmg.baselines.training import files
from flexmg.baselines.training.config import BUDGETS, OPEN, RunConfig
from flexmg.baselines.training.interruption import termination_as_interrupt
from flexmg.baselines.training.progress import progress
from flexmg.baselines.training.records import Row
from flexmg.baselines.training.trainer import Trainer, is_run
from flexmg.errors import InvalidArgument


def prepare(given: Mapping[str, Any], folder: Path | None, *, resume: bool) -> RunConfig:
    """The config of a run to start or to resume.

    Args:
        given: settings that the user asked for, ``env`` among them.
        folder: of the run; None for the default one.
        resume: continue what is in the folder. Its settings hold; only its limits and
            loggers (``OPEN``) may change.

    Raises:
        InvalidArgument: a bad setting; one that differs from those of the run to resume; or
            a folder that holds a run although ``resume`` was not asked for.
    """
    # A budget alone is not cut short by the default number of iterations.
    if "iterations" not in given and any(given.get(name) for name in BUDGETS):
        given = {**given, "iterations": None}
    fresh = complete(files.build(RunConfig, given, "the run"))
    folder = folder or default_folder(fresh)
    if not is_run(folder):
        return fresh
    if not resume:
        raise InvalidArgument(
            f"{folder} holds a run already; continue it with --resume, or choose another --out"
        )
    saved = files.load(folder)
    if given.get("rollout_workers") == "auto":
        # It was measured when the run began; a resume does not choose again.
        given = {**given, "rollout_workers": saved.rollout_workers}
    wanted = files.merge(dataclasses.asdict(saved), given)
    config = complete(files.build(RunConfig, wanted, "the run"))
    changes = [name for name in files.differences(saved, config) if name not in OPEN]
    if changes:
        raise InvalidArgument(
            f"the run in {folder} has other settings ({', '.join(changes)}), and a resumed run "
            "keeps its own; only --iterations, --budget-... and --log may change. Leave them out, "
            "or start a run in another --out"
        )
    return config


def complete(config: RunConfig) -> RunConfig:
    """The config with every setting of its algorithm spelt out."""
    settings = dataclasses.asdict(configure(config.algorithm, config.algorithm_args))
    # Lists, as the file will give them back.
    plain = {k: list(v) if isinstance(v, tuple) else v for k, v in settings.items()}
    return dataclasses.replace(config, algorithm_args=plain)


def default_folder(config: RunConfig) -> Path:
    """``runs/ENV-ALGORITHM-SEED``."""
    return Path("runs") / f"{config.env}-{config.algorithm}-{config.seed}"


def launch(
    given: Mapping[str, Any], folder: Path | None, *, resume: bool, console: Console
) -> dict[str, Row]:
    """Start or resume a run, and see it through.

    Args:
        given: settings that the user asked for.
        folder: of the run; None for the default one.
        resume: continue what is in the folder.
        console: where progress is shown.

    Returns:
        The evaluations, ``before`` and ``after``.

    Raises:
        FlexMGError: whatever goes wrong; the last checkpoint is intact.
        KeyboardInterrupt: the user stopped it, and was told how to go on; every finished
            iteration is saved.
    """
    config = prepare(given, folder, resume=resume)
    folder = folder or default_folder(config)
    title = f"{config.algorithm} on {config.env} ({config.model})"
    try:
        with (
            termination_as_interrupt(),
            progress(console, config.iterations, title) as display,
        ):
            display.phase("loading")
            trainer = Trainer(config, folder, display)
            finished = trainer.resume() if resume else 0
            if finished:
                display.note(f"resumed after iteration {finished}")
            return trainer.run()
    except KeyboardInterrupt:
        console.print(
            f"Stopped; what was finished is saved. To continue:\n"
            f"  flexmg train {config.env} --out {folder} --resume",
            highlight=False,
            soft_wrap=True,
        )
        raise


def launch_seeds(
    given: Mapping[str, Any],
    seeds: Sequence[int],
    folder: Path | None,
    *,
    resume: bool,
    console: Console,
) -> dict[str, dict[str, Row]]:
    """One run per seed, each in ``FOLDER/seed-N``; of several seeds, finished runs are kept.

    Args:
        given: settings of all runs, without the seed.
        seeds: of the runs, one after the other.
        folder: of the runs; None for ``runs/ENV-ALGORITHM``.
        resume: continue what is in the folders.
        console: where progress is shown.

    Returns:
        The evaluations by seed folder.

    Raises:
        InvalidArgument: a seed is named twice.
        FlexMGError: whatever else goes wrong in one of the runs.
    """
    if len(set(seeds)) != len(seeds):
        raise InvalidArgument(f"a seed is named twice in {','.join(map(str, seeds))}")
    config = files.build(RunConfig, given, "the run")
    folder = folder or Path("runs") / f"{config.env}-{config.algorithm}"
    return {
        f"seed-{seed}": launch(
            {**given, "seed": seed}, folder / f"seed-{seed}", resume=resume, console=console
        )
        for seed in seeds
    }
