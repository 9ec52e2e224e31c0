"""The command ``flexmg``. Wings and plug-ins contribute commands by entry point.

The group is ``flexmg.commands``: a name, and a function ``add_commands(app)`` that adds
commands to a typer application. Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer

import flexmg
from flexmg.errors import FlexMGError, InvalidArgument, TranscriptError
from flexmg.registry import EnvSpec
from flexmg.transcript import Transcript, plain

COMMANDS = "flexmg.commands"
HELP = (
    "Teams of language models that solve problems together, and learn to.\n\n"
    "Begin with  [bold]flexmg envs[/]  to see the environments, and  "
    "[bold]flexmg play math-duo-v0[/]  to sit in one of them yourself;  "
    "[bold]flexmg doctor[/]  says what is installed and what lacks."
)


@dataclass
class Session:
    """What holds for one run of the command; ``debug`` shows the traceback of an error."""

    debug: bool = False


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command.

    An error of flexmg's own is one sentence on stderr and exit code 2.

    Args:
        arguments: by default those of the process.
    """
    session = Session()
    command = typer.main.get_command(application(session))
    try:
        command.main(args=None if arguments is None else list(arguments), prog_name="flexmg")
    except FlexMGError as error:
        if session.debug:
            raise
        print(f"flexmg: {error}", file=sys.stderr)
        sys.exit(2)


def application(session: Session) -> typer.Typer:
    """The whole application, with the commands of all plug-ins; a broken one only warns."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        help=HELP,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def begin(
        version: Annotated[
            bool,
            typer.Option(
                "--version", help="Print the version and leave.", callback=_version, is_eager=True
            ),
        ] = False,
        debug: Annotated[
            bool, typer.Option("--debug", help="Show the traceback of an error.")
        ] = False,
    ) -> None:
        del version
        session.debug = debug

    for command in (envs, play, replay, doctor):
        app.command()(command)
    for plugin in entry_points(group=COMMANDS):
        try:
            plugin.load()(app)
        # Whatever is wrong with a plug-in, the other commands must go on working.
        except Exception as error:
            print(
                f"flexmg: the commands of the plug-in {plugin.value!r} cannot be added: "
                f"{type(error).__name__}: {error}",
                file=sys.stderr,
            )
    return app


def _version(wanted: bool) -> None:
    if wanted:
        print(f"flexmg {flexmg.__version__}")
        raise typer.Exit


def envs(
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the environments."""
    rows = [_row(spec) for spec in flexmg.registered()]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("id", "what it is", "to install")
    for row in rows:
        table.add_row(row["id"], row["description"], row["install"] or "ready")
    console = Console()
    console.print(table)
    console.print('Make one with  flexmg.make("ID"), sit in one with  flexmg play ID', markup=False)


def _row(spec: EnvSpec) -> dict[str, Any]:
    lacking = sorted(
        {
            extra
            for module, extra in spec.requires.items()
            if importlib.util.find_spec(module) is None
        }
    )
    return {
        "id": spec.id,
        "description": spec.description,
        "kwargs": plain(dict(spec.kwargs)),
        "install": f"pip install 'flexmg[{','.join(lacking)}]'" if lacking else "",
    }


def play(
    env: Annotated[str, typer.Argument(help="Id of an environment, see  flexmg envs.")],
    role: Annotated[
        str | None, typer.Option(help="The role you take, or all. Default: you are asked.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="One agent you take, as worker_0.")] = None,
    source: Annotated[
        str | None, typer.Option(help="Problems: a source's name, or the path of a file.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Part of the source.")] = None,
    level: Annotated[int | None, typer.Option(help="Difficulty, for levelled sources.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the episode. Default: drawn.")] = None,
    problem: Annotated[
        str | None, typer.Option(help="Index or id of the problem. Default: by the seed.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Plays the others. Default: correct scripts do.")
    ] = None,
    env_arg: Annotated[
        list[str] | None,
        typer.Option("--env-arg", metavar="KEY=VALUE", help="Keyword of flexmg.make; repeatable."),
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="Append the episode to this JSONL file.")
    ] = None,
) -> None:
    """Take part in a team: you write for one role, the others are scripts or a model.

    You are shown what your agent sees, and nothing that D hides from it. An empty line
    ends what you write; Ctrl-D leaves.
    """
    from rich.console import Console
    from rich.text import Text

    from flexmg import play as table
    from flexmg.wrappers.record import append

    given = {"source": source, "split": split, "level": level}
    kwargs = {name: value for name, value in given.items() if value is not None}
    game = flexmg.make(env, **kwargs, **keywords(env_arg or []))
    console = Console()
    try:
        if role is None and agent is None:
            role = table.choose_role(game, console, input)
        seats = table.seats_of(game, role, agent)
        others = None if model is None else table.find_player(model)
        chosen = int(problem) if problem and problem.isdecimal() else problem
        game.reset(seed=seed, options={} if chosen is None else {"problem": chosen})
        table.Table(game, seats, others=others, console=console, read=input).play()
    except (table.LeftGame, KeyboardInterrupt):
        console.print(Text("\nYou have left the game. Good-bye.", style="dim"))
        return
    if record is not None:
        append(record, game.transcript())
        console.print(Text(f"Appended to {record}.", style="dim"))


def keywords(pairs: Sequence[str]) -> dict[str, Any]:
    """Keywords from ``KEY=VALUE`` texts; a value that is JSON is read as such.

    Raises:
        InvalidArgument: a text without ``=``.
    """
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (equals and name.isidentifier()):
            raise InvalidArgument(f"--env-arg {pair!r} is not of the form KEY=VALUE")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def replay(
    file: Annotated[Path, typer.Argument(help="A JSONL file of transcripts.")],
    html: Annotated[
        Path | None, typer.Option(help="Write the episodes as a page with a viewer.")
    ] = None,
) -> None:
    """Play recorded episodes again without a model, grade them, and report differences.

    The exit code is 1 if any record does not hold.
    """
    from flexmg.wrappers.record import read

    transcripts: list[Transcript] = []
    lines = broken = 0
    for number, entry in read(file):
        lines += 1
        if isinstance(entry, TranscriptError):
            print(f"line {number}: {entry}")
            broken += 1
            continue
        transcripts.append(entry)
        found = flexmg.replay(entry)
        broken += not found.ok
        for difference in found.differences:
            print(f"line {number}, {entry.env}, problem {entry.problem}: {difference}")
    if not transcripts and not broken:
        raise TranscriptError(f"{file} holds no transcripts")
    print(
        f"{len(transcripts)} replayed: "
        + (f"{broken} of {lines} records do not hold" if broken else "every record holds")
    )
    if html is not None:
        _write_page(transcripts, file.name, html)
    if broken:
        raise typer.Exit(1)


def _write_page(transcripts: Sequence[Transcript], title: str, path: Path) -> None:
    from flexmg.render.page import page
    from flexmg.wrappers.record import RecordError

    text = page(transcripts, f"Episodes of {title}", sights=list(_sights(transcripts)))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RecordError(f"the page cannot be written to {path}: {error}") from error
    print(f"wrote {path}")


def _sights(transcripts: Sequence[Transcript]) -> Iterator[Any]:
    from flexmg.render.sight import sight

    for transcript in transcripts:
        try:
            yield sight(transcript)
        except FlexMGError as error:
            # The page still shows the record; the replay has said what is wrong with it.
            print(f"what the agents of {transcript.problem} saw cannot be shown: {error}")
            yield None


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Say what is installed, on which device models run, what lacks and how to get it."""
    from flexmg.doctor import diagnose, report

    found = diagnose()
    if as_json:
        print(json.dumps(found.as_dict(), indent=2))
        return
    from rich.console import Console

    report(found, Console())
