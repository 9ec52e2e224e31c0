"""From loosely typed settings to a run or an evaluation: what the commands call."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console

import flexmg
from flexmg.baselines.algorithms.registry import configure
from flexmg.baselines.evaluation import evaluate
from flexmg.baselines.rollout.collector import RolloutSettings
from flexmg.baselines.training import config as configs
from flexmg.baselines.training.config import RunConfig
from flexmg.baselines.training.problems import held_out_problems, other_problems
from flexmg.baselines.training.progress import progress
from flexmg.baselines.training.records import Row, evaluation_row, plain
from flexmg.baselines.training.trainer import Trainer, build_team, is_run, load_team, use_threads
from flexmg.errors import InvalidArgument


def prepare(given: Mapping[str, Any], folder: Path | None, *, resume: bool) -> RunConfig:
    """The config of a run to start or to resume.

    Args:
        given: settings that the user asked for, ``env`` among them.
        folder: of the run; None for the default one.
        resume: continue what is in the folder. Its settings hold; only ``iterations`` may
            change.

    Raises:
        InvalidArgument: a bad setting; one that differs from those of the run to resume; or
            a folder that holds a run although ``resume`` was not asked for.
    """
    fresh = _complete(configs.build(RunConfig, given, "the run"))
    folder = folder or default_folder(fresh)
    if not is_run(folder):
        return fresh
    if not resume:
        raise InvalidArgument(
            f"{folder} holds a run already; continue it with --resume, or choose another --out"
        )
    saved = configs.load(folder)
    wanted = configs.merge(dataclasses.asdict(saved), given)
    config = _complete(configs.build(RunConfig, wanted, "the run"))
    changes = [name for name in configs.differences(saved, config) if name != "iterations"]
    if changes:
        raise InvalidArgument(
            f"the run in {folder} has other settings ({', '.join(changes)}), and a resumed run "
            "keeps its own; only --iterations may change. Leave them out, or start a run in "
            "another --out"
        )
    return config


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
        KeyboardInterrupt: the user stopped it; so is the last checkpoint.
    """
    config = prepare(given, folder, resume=resume)
    folder = folder or default_folder(config)
    title = f"{config.algorithm} on {config.env} ({config.model})"
    with progress(console, config.iterations, title) as display:
        display.phase("loading")
        trainer = Trainer(config, folder, display)
        finished = trainer.resume() if resume else 0
        if finished:
            display.note(f"resumed after iteration {finished}")
        return trainer.run()


def assess(
    subject: str,
    env: str | None,
    env_args: Mapping[str, Any],
    *,
    limit: int | None,
    unlimited: int,
    samples: int,
    seed: int,
    greedy: bool,
    overrides: Mapping[str, Any],
) -> Row:
    """Evaluate a run's team, or a plain model in all roles.

    Args:
        subject: a run folder, or a model.
        env: id of the environment; None for that of the run.
        env_args: for :func:`flexmg.make`, over those of the run's held-out problems.
        limit: the most problems, from the first; None for all of them, or the first
            ``unlimited`` of a source without an end.
        unlimited: see ``limit``.
        samples: episodes per problem.
        seed: of sampling.
        greedy: take the likeliest tokens.
        overrides: fields of the config to set, such as ``device``.

    Returns:
        Plain JSON data: ``subject``, ``env``, ``env_args``, ``accuracy``, its 95 %
        ``interval``, ``n``, ``score``, ``statuses``, ``infra_errors``, ``tokens`` per
        episode, ``roles``, ``per_problem`` and ``seconds``.

    Raises:
        InvalidArgument: no environment was named and the subject is no run; or bad settings.
        CheckpointError: the run has no checkpoint, or one of other agents.
        FlexMGError: whatever else goes wrong.
    """
    folder = Path(subject)
    trained = (folder / configs.FILE).is_file()
    if trained:
        saved = configs.load(folder)
        base = dataclasses.asdict(saved)
        same_env = env is None or env == saved.env
        played = other_problems(saved.env_args, saved.held_out) if same_env else {"split": "test"}
        base["env_args"] = other_problems(played, env_args)
    elif env is None:
        raise InvalidArgument(
            f"{subject!r} is not a run folder, so --env must say on which environment to evaluate"
        )
    else:
        base = {"model": subject, "policies": "shared", "env_args": {"split": "test"}}
    wanted = configs.merge(
        base, {**overrides, "env_args": env_args, **({"env": env} if env else {})}
    )
    config = configs.build(RunConfig, wanted, "the evaluation")
    use_threads(config)
    game = flexmg.make(config.env, **config.env_args).unwrapped
    agents = game.possible_agents
    team = load_team(config, folder, agents) if trained else build_team(config, agents)
    started = perf_counter()
    result = evaluate(
        config.env,
        config.env_args,
        team,
        held_out_problems(game.source, limit or game.source.size or unlimited),
        (seed,),
        samples=samples,
        settings=RolloutSettings(
            temperature=config.temperature,
            greedy=greedy,
            games=config.games,
            max_prompt_tokens=config.max_prompt_tokens,
        ),
    )
    row = evaluation_row(result, iteration=0)
    del row["iteration"]
    named = {"subject": subject, "env": config.env, "env_args": config.env_args}
    return {**plain(named), **row, "seconds": perf_counter() - started}


def _complete(config: RunConfig) -> RunConfig:
    """The config with every setting of its algorithm spelt out."""
    settings = configure(config.algorithm, config.algorithm_args)
    return dataclasses.replace(config, algorithm_args=dataclasses.asdict(settings))
