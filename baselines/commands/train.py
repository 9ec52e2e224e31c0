"""``flexmg train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from flexmg.baselines.commands import options
from flexmg.errors import InvalidArgument


def train(
    env: Annotated[
        str | None,
        typer.Argument(help="Id of an environment, see `flexmg envs`; or given by --config."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="Settings as YAML, see `flexmg config`; options go before them."),
    ] = None,
    algo: Annotated[
        str | None,
        typer.Option(help="marft (the default), ippo, grpo, maporl, or an installed plug-in."),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(help="What the algorithm decides about: a whole action, or each token."),
    ] = None,
    policy_map: Annotated[
        str | None,
        typer.Option(
            "--policy-map",
            "--policies",
            help="isolated (one policy per role, the default), shared, per-agent, "
            "or role=policy,agent=policy,...; a policy may be scripted, random or "
            "openai:MODEL@URL",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="tiny (the default), smollm2, a folder, a GGUF file, or a hub id."),
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Other models of single policies: policy=model,...")
    ] = None,
    freeze: Annotated[
        str | None, typer.Option(help="Policies that act and do not learn, by commas.")
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option(help="Of everything random; 1,2,3 trains one run each in OUT/seed-N."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder. Default runs/ENV-ALGO-SEED.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in --out from its checkpoint.")
    ] = False,
    iterations: Annotated[
        int | None, typer.Option(help="Iterations in total, resumed ones included. Default 20.")
    ] = None,
    budget_tokens: Annotated[
        int | None, typer.Option(help="End once so many tokens are generated in training.")
    ] = None,
    budget_episodes: Annotated[
        int | None, typer.Option(help="End once so many episodes are played in training.")
    ] = None,
    budget_time: Annotated[
        str | None, typer.Option(help="End after so much training: seconds, or like 1h30m.")
    ] = None,
    source: options.Source = None,
    split: Annotated[str | None, typer.Option(help="Part of the source to train on.")] = None,
    difficulty: options.Difficulty = None,
    problems: Annotated[
        int | None, typer.Option(help="Problems per iteration. Default 64.")
    ] = None,
    samples: Annotated[int | None, typer.Option(help="Episodes per problem. Default 4.")] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Of sampling, here and in evaluation. Default 1.")
    ] = None,
    eval_problems: Annotated[
        int | None,
        typer.Option(help="Held-out problems, played before and after; 0 for none. Default 100."),
    ] = None,
    eval_source: Annotated[
        str | None, typer.Option(help="Where they come from. Default: the training source.")
    ] = None,
    eval_split: Annotated[str | None, typer.Option(help="Their split. Default test.")] = None,
    validate_every: Annotated[
        int | None, typer.Option(help="Iterations between looks at validation problems.")
    ] = None,
    diagnose_every: Annotated[
        int | None,
        typer.Option(help="Iterations between looks at gradients; 0 for none. Default 10."),
    ] = None,
    stop_on_cliff: Annotated[
        bool | None,
        typer.Option(
            "--stop-on-cliff", help="Stop when validation accuracy has collapsed; keep the best."
        ),
    ] = None,
    rollout_workers: Annotated[
        str | None,
        typer.Option(help="Processes that play episodes: a number, or auto. Default 1."),
    ] = None,
    lora_rank: Annotated[int | None, typer.Option(help="Rank of the adapters. Default 8.")] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option(help="Iterations between checkpoints. Default 1.")
    ] = None,
    log: Annotated[
        str | None, typer.Option(help="tensorboard, wandb, trackio: one, or some by commas.")
    ] = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    threads: options.Threads = None,
    env_arg: options.Settings = None,
    algo_arg: Annotated[
        list[str] | None,
        typer.Option(
            "--algo-arg", metavar="FIELD=VALUE", help="Setting of the algorithm; repeatable."
        ),
    ] = None,
) -> None:
    """Train a team of language models on an environment.

    Writes the settings, one row of metrics per iteration, checkpoints, transcripts and
    report.html to the run folder. A run that was stopped continues with --resume exactly
    as it would have.
    """
    env_args = {
        **options.given(source=source, split=split, level=difficulty),
        **options.pairs(env_arg, "--env-arg"),
    }
    algorithm_args = {
        **options.given(level=level),
        **options.pairs(algo_arg, "--algo-arg"),
    }
    held_out = {"split": "test", **options.given(source=eval_source, split=eval_split)}
    settings = options.given(
        env=env,
        algorithm=algo,
        model=model,
        models=options.assignments(models, "--models"),
        freeze=None if freeze is None else freeze.split(","),
        iterations=iterations,
        budget_tokens=budget_tokens,
        budget_episodes=budget_episodes,
        budget_seconds=options.seconds(budget_time),
        policies=options.assignments(policy_map, "--policy-map"),
        problems=problems,
        samples=samples,
        temperature=temperature,
        eval_problems=eval_problems,
        validate_every=validate_every,
        diagnose_every=diagnose_every,
        stop_on_cliff=stop_on_cliff,
        rollout_workers=rollout_workers,
        lora_rank=lora_rank,
        checkpoint_every=checkpoint_every,
        log=None if log is None else log.split(","),
        device=device,
        dtype=dtype,
        threads=threads,
        env_args=env_args or None,
        held_out=held_out if eval_source or eval_split else None,
        algorithm_args=algorithm_args or None,
    )
    wanted, listed = _with_file(config, settings, out)
    chosen = options.seeds(seed) or listed
    from flexmg.baselines.training.launch import launch, launch_seeds

    console = Console()
    try:
        if chosen is not None and len(chosen) > 1:
            runs = launch_seeds(wanted, chosen, out, resume=resume, console=console)
            evaluations = {
                f"{run} {name}": row for run, own in runs.items() for name, row in own.items()
            }
        else:
            wanted |= {} if chosen is None else {"seed": chosen[0]}
            evaluations = launch(wanted, out, resume=resume, console=console)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if evaluations:
        console.print(options.accuracy_table(evaluations))


def _with_file(
    config: Path | None, settings: dict[str, Any], out: Path | None
) -> tuple[dict[str, Any], list[int] | None]:
    """The file's settings with those of the command line over them, and the file's seeds.

    Raises:
        InvalidArgument: the file cannot be read, or nothing names an environment.
    """
    from flexmg.baselines.training import files

    wanted = files.merge({} if config is None else files.read(config), settings)
    # The file of a run that is resumed names its environment.
    if "env" not in wanted and out is not None and (out / files.FILE).is_file():
        wanted["env"] = files.load(out).env
    if "env" not in wanted:
        raise InvalidArgument(
            "nothing says on which environment to train: name one (flexmg envs lists them), or "
            "give a --config that does"
        )
    listed = wanted.pop("seed", None)
    if listed is None:
        return wanted, None
    return wanted, listed if isinstance(listed, list) else [listed]
