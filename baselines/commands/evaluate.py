"""``flexmg eval``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from flexmg.baselines.commands import options

if TYPE_CHECKING:
    from flexmg.baselines.training.records import Row

# Problems that are played of a source without an end, unless told otherwise.
UNLIMITED_DEFAULT = 200


def evaluate(
    subject: Annotated[
        str, typer.Argument(metavar="DIR_OR_MODEL", help="A run folder, or a model as in train.")
    ],
    env: Annotated[
        str | None, typer.Option(help="Id of an environment. Default: that of the run.")
    ] = None,
    source: options.Source = None,
    split: Annotated[
        str | None, typer.Option(help="Part of the source. Default: the run's, or test.")
    ] = None,
    difficulty: options.Difficulty = None,
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
    top_k: Annotated[
        int, typer.Option(min=0, help="Sample among so many likeliest tokens; 0 for all.")
    ] = 0,
    top_p: Annotated[
        float, typer.Option(help="Sample among the likeliest tokens of this mass.")
    ] = 1.0,
    best: Annotated[
        bool, typer.Option("--best", help="Of a run, the team of its best validation look.")
    ] = False,
    baselines: Annotated[
        bool,
        typer.Option(
            "--baselines/--no-baselines",
            help="Also let the base model answer alone, with as many calls.",
        ),
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    device: options.Device = None,
    dtype: options.Dtype = None,
    threads: options.Threads = None,
    env_arg: options.Settings = None,
) -> None:
    """Play problems with a trained team or a plain model, and report its accuracy.

    Beside it stand two baselines: the base model alone, and the majority vote of as many of
    its answers as the team makes calls.
    """
    from flexmg.baselines.assessment import assess

    env_args = {
        **options.given(source=source, split=split, level=difficulty),
        **options.pairs(env_arg, "--env-arg"),
    }
    row = assess(
        subject,
        env,
        env_args,
        limit=limit,
        unlimited=UNLIMITED_DEFAULT,
        samples=samples,
        seed=seed,
        decoding={"greedy": greedy, "top_k": top_k, "top_p": top_p},
        best=best,
        baselines=baselines,
        overrides=options.given(
            temperature=temperature, device=device, dtype=dtype, threads=threads
        ),
    )
    if as_json:
        typer.echo(json.dumps(row, ensure_ascii=False, allow_nan=False))
        return
    console = Console()
    console.print(_accuracies(row))
    console.print(_roles(row["roles"]))
    console.print(
        f"per problem: {options.number(row['tokens'])} tokens generated, "
        f"{options.number(row['critical_path'])} on the critical path, "
        f"{options.number(row['prompt_tokens'])} read, {row['calls'] or 0:.1f} calls",
        highlight=False,
    )
    statuses = ", ".join(f"{count} {status}" for status, count in row["statuses"].items())
    console.print(f"{statuses}; {row['seconds']:.1f} s", highlight=False)


def _accuracies(row: Row) -> Table:
    """The team, and beside it what the base model does alone."""
    table = Table(title="held-out problems", title_justify="left")
    for name in ("", "accuracy", "95 % interval", "calls", "tokens/problem"):
        table.add_column(name, justify="left" if not name else "right")

    def add(name: str, found: dict[str, Any], calls: float | None, tokens: float | None) -> None:
        table.add_row(
            name,
            options.percent(found["accuracy"]),
            options.interval(found["interval"]),
            "–" if calls is None else f"{calls:.1f}",
            options.number(tokens),
        )

    add(row["subject"], row, row["calls"], row["tokens"])
    alone = row["baselines"]
    if alone:
        each = None if alone["tokens"] is None else alone["tokens"] / alone["calls"]
        add("base model alone", alone["single_agent"], 1, each)
        add("majority vote of it", alone["majority_vote"], alone["calls"], alone["tokens"])
    for k, value in row["pass_at"].items():
        if int(k) > 1:
            table.add_row(f"pass@{k}", options.percent(value), "", "", "")
    return table


def _roles(roles: dict[str, Row]) -> Table:
    table = Table(title="by role", title_justify="left")
    names = ("turns", "tokens", "unread", "cut", "empty", "prompt cut")
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right")
    for role, own in roles.items():
        shares = [options.percent(own[k]) for k in ("fallback", "cut", "empty", "truncated")]
        table.add_row(role, str(own["turns"]), f"{own['tokens']:.1f}", *shares)
    return table
