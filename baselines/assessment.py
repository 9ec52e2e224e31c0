"""What ``flexmg eval`` does: a run's team, or a plain model, on problems of one's choice."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import flexmg
from flexmg.baselines.comparison import single_agent
from flexmg.baselines.evaluation import Evaluation, evaluate
from flexmg.baselines.rollout.collector import RolloutSettings
from flexmg.baselines.training import files
from flexmg.baselines.training.config import RunConfig
from flexmg.baselines.training.problems import held_out_problems, other_problems
from flexmg.baselines.training.records import Row, evaluation_row, plain
from flexmg.baselines.training.teams import build_team, load_team, use_threads
from flexmg.errors import InvalidArgument


def assess(
    subject: str,
    env: str | None,
    env_args: Mapping[str, Any],
    *,
    limit: int | None,
    unlimited: int,
    samples: int,
    seed: int,
    decoding: Mapping[str, Any],
    best: bool,
    baselines: bool,
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
        decoding: ``greedy``, ``top_k`` and ``top_p`` of ``RolloutSettings``.
        best: of a run, the team of its best validation look, not its last.
        baselines: also let the base model answer alone, with as many calls per problem.
        overrides: fields of the config to set, such as ``device``.

    Returns:
        Plain JSON data: ``subject``, ``env``, ``env_args``, the fields of
        :class:`flexmg.baselines.evaluation.Evaluation` but the episodes, ``baselines`` (see
        :func:`flexmg.baselines.comparison.single_agent`; None where there are none) and
        ``seconds``.

    Raises:
        InvalidArgument: no environment was named and the subject is no run; or bad settings.
        CheckpointError: the run has no checkpoint, or one of other agents.
        FlexMGError: whatever else goes wrong.
    """
    folder = Path(subject)
    config = _config(folder, subject, env, env_args, best, overrides)
    trained = (folder / files.FILE).is_file()
    use_threads(config)
    game = flexmg.make(config.env, **config.env_args).unwrapped
    agents = game.possible_agents
    problems = held_out_problems(game.source, limit or game.source.size or unlimited)
    team = load_team(config, folder, agents, best=best) if trained else build_team(config, agents)
    settings = RolloutSettings(
        temperature=config.temperature,
        games=config.games,
        max_prompt_tokens=config.max_prompt_tokens,
        **decoding,
    )
    started = perf_counter()
    result = evaluate(
        config.env, config.env_args, team, problems, (seed,), samples=samples, settings=settings
    )
    alone = None
    if baselines:
        del team  # one base in memory is enough
        alone = _alone(config, problems, seed, settings, result)
    row = evaluation_row(result, iteration=0)
    del row["iteration"]
    named = {"subject": subject, "env": config.env, "env_args": config.env_args}
    more = {"baselines": plain(alone), "seconds": perf_counter() - started}
    return {**plain(named), **row, **more}


def _config(
    folder: Path,
    subject: str,
    env: str | None,
    env_args: Mapping[str, Any],
    best: bool,
    overrides: Mapping[str, Any],
) -> RunConfig:
    if (folder / files.FILE).is_file():
        saved = files.load(folder)
        base = dataclasses.asdict(saved)
        same_env = env is None or env == saved.env
        played = other_problems(saved.env_args, saved.held_out) if same_env else {"split": "test"}
        base["env_args"] = other_problems(played, env_args)
    elif env is None:
        raise InvalidArgument(
            f"{subject!r} is not a run folder, so --env must say on which environment to evaluate"
        )
    elif best:
        raise InvalidArgument(f"{subject!r} is not a run folder, so it has no best checkpoint")
    else:
        base = {"model": subject, "policies": "shared", "env_args": {"split": "test"}}
    named = {"env": env} if env else {}
    wanted = files.merge(base, {**overrides, "env_args": env_args, **named})
    return files.build(RunConfig, wanted, "the evaluation")


def _alone(
    config: RunConfig,
    problems: Sequence[int],
    seed: int,
    settings: RolloutSettings,
    result: Evaluation,
) -> Row | None:
    plain_model = dataclasses.replace(config, policies="shared")
    return single_agent(
        config.env,
        config.env_args,
        lambda agents: build_team(plain_model, agents),
        problems,
        (seed,),
        calls=result.calls,
        settings=settings,
    )
