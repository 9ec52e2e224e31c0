"""The commands of the baselines: ``flexmg train`` and ``flexmg eval``.

Nothing heavy is imported until a command runs, so that ``flexmg --help`` stays quick.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from flexmg.errors import InvalidArgument

if TYPE_CHECKING:
    from flexmg.baselines.training.records import Row

# Problems that `flexmg eval` plays of a source without an end, unless told otherwise.
UNLIMITED_DEFAULT = 200

Settings = Annotated[
    list[str] | None,
    typer.Option("--env-arg", metavar="KEY=VALUE", help="Keyword of flexmg.make; repeatable."),
]
Device = Annotated[str | None, typer.Option(help="auto (the default), cpu, cuda ...")]
Dtype = Annotated[str | None, typer.Option(help="float32 (the default), bfloat16 or float16.")]
Threads = Annotated[
    int | None,
    typer.Option(
        help="CPU threads of PyTorch; 0 for its own choice. Default: 1 with tiny, else 0."
    ),
]


def add_commands(app: typer.Typer) -> None:
    """Contribute ``train`` and ``eval`` to a typer application."""
    app.command("train")(train)
    app.command("eval")(evaluate_command)


def train(
    env: Annotated[str, typer.Argument(help="Id of an environment, see `flexmg envs`.")],
    algo: Annotated[
        str | None, typer.Option(help="marft (the default), ippo, or an installed plug-in.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="tiny (the default), smollm2, a folder, a GGUF file, or a hub id."),
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(help="Iterations in total, resumed ones included. Default 20.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything random. Default 0.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder. Default runs/ENV-ALGO-SEED.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in --out from its checkpoint.")
    ] = False,
    source: Annotated[
        str | None, typer.Option(help="Problems: a source's name, or the path of a file.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Part of the source to train on.")] = None,
    level: Annotated[int | None, typer.Option(help="Difficulty, for levelled sources.")] = None,
    policies: Annotated[
        str | None,
        typer.Option(
            "--policies",
            "--policy-map",
            help="isolated (one per role, the default), shared, per-agent, "
            "or role=policy,agent=policy,...",
        ),
    ] = None,
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
    lora_rank: Annotated[int | None, typer.Option(help="Rank of the adapters. Default 8.")] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option(help="Iterations between checkpoints. Default 1.")
    ] = None,
    device: Device = None,
    dtype: Dtype = None,
    threads: Threads = None,
    env_arg: Settings = None,
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
        **_given(source=source, split=split, level=level),
        **_pairs(env_arg, "--env-arg"),
    }
    held_out = {"split": "test", **_given(source=eval_source, split=eval_split)}
    settings = _given(
        algorithm=algo,
        model=model,
        iterations=iterations,
        seed=seed,
        policies=_policy_map(policies),
        problems=problems,
        samples=samples,
        temperature=temperature,
        eval_problems=eval_problems,
        lora_rank=lora_rank,
        checkpoint_every=checkpoint_every,
        device=device,
        dtype=dtype,
        threads=threads,
        env_args=env_args or None,
        held_out=held_out if eval_source or eval_split else None,
        algorithm_args=_pairs(algo_arg, "--algo-arg") or None,
    )
    from flexmg.baselines.training.launch import launch

    console = Console()
    try:
        evaluations = launch({"env": env, **settings}, out, resume=resume, console=console)
    except KeyboardInterrupt:
        console.print("Stopped. The same command with --resume continues from the checkpoint.")
        raise typer.Exit(130) from None
    if evaluations:
        console.print(_table(evaluations))


def evaluate_command(
    subject: Annotated[
        str, typer.Argument(metavar="DIR_OR_MODEL", help="A run folder, or a model as in train.")
    ],
    env: Annotated[
        str | None, typer.Option(help="Id of an environment. Default: that of the run.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Problems: a source's name, or the path of a file.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Part of the source. Default: the run's, or test.")
    ] = None,
    level: Annotated[int | None, typer.Option(help="Difficulty, for levelled sources.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Only the first so many problems. Default: all, or 200."),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Episodes per problem.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of sampling.")] = 0,
    temperature: Annotated[
        float | None, typer.Option(help="Of sampling. Default: the run's, or 1.")
    ] = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="Take the likeliest tokens.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    device: Device = None,
    dtype: Dtype = None,
    threads: Threads = None,
    env_arg: Settings = None,
) -> None:
    """Play problems with a trained team or a plain model, and report its accuracy."""
    from flexmg.baselines.training.launch import assess

    env_args = {
        **_given(source=source, split=split, level=level),
        **_pairs(env_arg, "--env-arg"),
    }
    row = assess(
        subject,
        env,
        env_args,
        limit=limit,
        unlimited=UNLIMITED_DEFAULT,
        samples=samples,
        seed=seed,
        greedy=greedy,
        overrides=_given(temperature=temperature, device=device, dtype=dtype, threads=threads),
    )
    if as_json:
        typer.echo(json.dumps(row, ensure_ascii=False, allow_nan=False))
        return
    console = Console()
    console.print(_table({subject: row}))
    statuses = ", ".join(f"{count} {status}" for status, count in row["statuses"].items())
    console.print(f"{statuses}; {row['seconds']:.1f} s", highlight=False)


def _table(evaluations: Mapping[str, Row]) -> Table:
    """Evaluations side by side."""
    table = Table(title="held-out problems", title_justify="left")
    for name in ("", "accuracy", "95 % interval", "episodes", "infra errors", "tokens/episode"):
        table.add_column(name, justify="left" if not name else "right")
    for name, row in evaluations.items():
        low, high = row["interval"]
        accuracy, tokens = row["accuracy"], row["tokens"]
        table.add_row(
            name,
            "–" if accuracy is None else f"{accuracy:.1%}",
            f"{low:.1%} – {high:.1%}",
            str(row["n"]),
            str(row["infra_errors"]),
            "–" if tokens is None else f"{tokens:.0f}",
        )
    return table


def _given(**settings: Any) -> dict[str, Any]:
    """Those that were given on the command line."""
    return {name: value for name, value in settings.items() if value is not None}


def _pairs(texts: list[str] | None, option: str) -> dict[str, Any]:
    """``KEY=VALUE`` texts as a mapping; values are read as YAML (numbers, true, lists ...).

    Raises:
        InvalidArgument: a text without ``=``, or a value that is not YAML.
    """
    import yaml

    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise InvalidArgument(f"{option} takes KEY=VALUE, not {text!r}")
        try:
            pairs[name] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise InvalidArgument(f"{option} {name}: {value!r} cannot be read: {error}") from error
    return pairs


def _policy_map(text: str | None) -> str | dict[str, str] | None:
    """A policy map's name, or ``role=policy,agent=policy,...`` as a mapping."""
    if text is None or "=" not in text:
        return text
    pairs = {}
    for part in text.split(","):
        name, equals, policy = part.strip().partition("=")
        if not (name and equals and policy):
            raise InvalidArgument(f"--policies takes ROLE=POLICY,..., not {part.strip()!r}")
        pairs[name] = policy
    return pairs
