"""``flexmg diagnose``: why a run learns, or does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def diagnose(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what a run's gradients and texts show, and draw them.

    Writes diagnostics.html and PNG charts to the run folder.
    """
    from flexmg.baselines.diagnostics.report import diagnose as draw

    found = draw(folder)
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False, allow_nan=False))
        return
    console = Console()
    for sentence in found["sentences"]:
        console.print(f"• {sentence}", highlight=False)
    console.print(f"\nCharts: {found['page']}", highlight=False, soft_wrap=True)
