"""What the commands have in common: options, and how texts become settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from flexmg.errors import InvalidArgument

if TYPE_CHECKING:
    from flexmg.baselines.training.records import Row

Settings = Annotated[
    list[str] | None,
    typer.Option("--env-arg", metavar="KEY=VALUE", help="Keyword of flexmg.make; repeatable."),
]
Source = Annotated[
    str | None, typer.Option(help="Problems: a source's name, or the path of a file.")
]
Difficulty = Annotated[
    int | None, typer.Option(help="Level of the problems, for levelled sources.")
]
Device = Annotated[str | None, typer.Option(help="auto (the default), cpu, cuda ...")]
Dtype = Annotated[str | None, typer.Option(help="float32 (the default), bfloat16 or float16.")]
Threads = Annotated[
    int | None,
    typer.Option(
        help="CPU threads of PyTorch; 0 for its own choice. Default: 1 with tiny, else 0."
    ),
]
TIME = re.compile(r"^(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+)s?)?$")


def given(**settings: Any) -> dict[str, Any]:
    """Those that were given on the command line."""
    return {name: value for name, value in settings.items() if value is not None}


def pairs(texts: list[str] | None, option: str) -> dict[str, Any]:
    """``KEY=VALUE`` texts as a mapping; values are read as YAML (numbers, true, lists ...).

    Raises:
        InvalidArgument: a text without ``=``, or a value that is not YAML.
    """
    import yaml

    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise InvalidArgument(f"{option} takes KEY=VALUE, not {text!r}")
        try:
            found[name] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise InvalidArgument(f"{option} {name}: {value!r} cannot be read: {error}") from error
    return found


def assignments(text: str | None, option: str) -> str | dict[str, str] | None:
    """A word, or ``name=value,name=value,...`` as a mapping.

    Raises:
        InvalidArgument: a part without ``=``.
    """
    if text is None or "=" not in text:
        return text
    found = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not (name and equals and value):
            raise InvalidArgument(f"{option} takes ROLE=NAME,..., not {part.strip()!r}")
        found[name] = value
    return found


def seeds(text: str | None) -> list[int] | None:
    """``"1,2,3"`` as numbers.

    Raises:
        InvalidArgument: a part that is no number.
    """
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise InvalidArgument(f"--seed takes a number, or some like 1,2,3, not {text!r}") from error


def seconds(text: str | None) -> float | None:
    """``"90"``, ``"90s"``, ``"15m"`` or ``"1h30m"`` as seconds.

    Raises:
        InvalidArgument: anything else.
    """
    if text is None:
        return None
    match = TIME.match(text.replace(" ", ""))
    if not text or match is None:
        raise InvalidArgument(f"--budget-time takes seconds, or a time like 1h30m, not {text!r}")
    hours, minutes, rest = (int(part or 0) for part in match.groups())
    return 3600.0 * hours + 60.0 * minutes + rest


def accuracy_table(evaluations: Mapping[str, Row]) -> Table:
    """Evaluations side by side."""
    table = Table(title="held-out problems", title_justify="left")
    for name in ("", "accuracy", "95 % interval", "episodes", "infra errors", "tokens/episode"):
        table.add_column(name, justify="left" if not name else "right")
    for name, row in evaluations.items():
        table.add_row(
            name,
            percent(row["accuracy"]),
            interval(row["interval"]),
            str(row["n"]),
            str(row["infra_errors"]),
            number(row["tokens"]),
        )
    return table


def percent(value: float | None) -> str:
    """A share for reading; a dash for none."""
    return "–" if value is None else f"{value:.1%}"


def interval(bounds: tuple[float, float]) -> str:
    """Two shares for reading."""
    return f"{bounds[0]:.1%} – {bounds[1]:.1%}"


def number(value: float | None) -> str:
    """A count for reading; a dash for none."""
    return "–" if value is None else f"{value:,.0f}"
