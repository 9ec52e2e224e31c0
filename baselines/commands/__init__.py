"""The commands of the baselines: ``flexmg train``, ``eval``, ``diagnose``, ``export`` ...

Nothing heavy is imported until a command runs, so that ``flexmg --help`` stays quick.
"""

from __future__ import annotations

import typer

from flexmg.baselines.commands.config import config
from flexmg.baselines.commands.diagnose import diagnose
from flexmg.baselines.commands.evaluate import evaluate
from flexmg.baselines.commands.export import export
from flexmg.baselines.commands.train import train


def add_commands(app: typer.Typer) -> None:
    """Contribute these commands to a typer application."""
    app.command("train")(train)
    app.command("eval")(evaluate)
    app.command("diagnose")(diagnose)
    app.command("export")(export)
    app.command("config")(config)
