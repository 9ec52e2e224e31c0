"""``flexmg config``: every setting of a run, with its default and what it means."""

from __future__ import annotations

from typing import Annotated

import typer


def config(
    algo: Annotated[str, typer.Option(help="Whose settings stand under algorithm_args.")] = "marft",
    env: Annotated[str, typer.Option(help="The environment to name.")] = "math-duo-v0",
) -> None:
    """Print the default settings of a run, commented, as a file for train --config.

    For example: flexmg config --algo grpo > run.yaml
    """
    from flexmg.baselines.algorithms.registry import algorithm
    from flexmg.baselines.training import files
    from flexmg.baselines.training.config import RunConfig
    from flexmg.baselines.training.launch import complete

    settings = complete(RunConfig(env=env, algorithm=algo))
    typer.echo(files.commented(settings, algorithm(algo).Config), nl=False)
