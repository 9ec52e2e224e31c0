"""``flexmg export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")],
    policy: Annotated[str, typer.Option(help="Which of its policies.")],
    out: Annotated[Path, typer.Option(help="The folder to write; it must not exist yet.")],
    best: Annotated[
        bool, typer.Option("--best", help="As of the best validation look, not the last iteration.")
    ] = False,
) -> None:
    """Merge a trained policy into its base model: a plain transformers folder.

    Needs nothing of flexmg any more: AutoModelForCausalLM.from_pretrained opens it, vLLM
    serves it, and flexmg train --model takes it.
    """
    from flexmg.baselines.training.export import export_policy

    base = export_policy(folder, policy, out, best=best)
    Console().print(
        f"{out}: {base} with the adapter of policy {policy} merged in",
        highlight=False,
        soft_wrap=True,
    )
