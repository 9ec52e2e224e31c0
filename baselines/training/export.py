"""A trained policy as a plain transformers model."""

from __future__ import annotations

import shutil
from pathlib import Path

import flexmg
from flexmg.baselines.models.assignment import check_names
from flexmg.baselines.training import files
from flexmg.baselines.training.teams import load_team
from flexmg.errors import CheckpointError, InvalidArgument


def export_policy(folder: Path, policy: str, out: Path, *, best: bool = False) -> str:
    """Write the base model with a policy's adapter merged into its weights.

    The sum is made in float32, whatever the type of the weights, and rounded once.

    Args:
        folder: of a run.
        policy: one of its policies.
        out: the folder to write: weights, config, generation config and tokenizer.
        best: as of the best validation look.

    Returns:
        The name of the base model.

    Raises:
        InvalidArgument: no run, no such policy, or ``out`` exists.
        CheckpointError: there is no checkpoint, or it cannot be written.
    """
    config = files.load(folder)
    if out.exists():
        raise InvalidArgument(f"{out} exists already; choose another --out")
    game = flexmg.make(config.env, **config.env_args).unwrapped
    team = load_team(config, folder, game.possible_agents, best=best)
    check_names([policy], [*team.policies, *team.frozen], "--policy", "policy of this run")
    base = team.base_of(policy)
    beside = out.with_name(f".{out.name}.new")
    try:
        with team.adapters_of(policy).merged(policy) as model:
            model.save_pretrained(str(beside))
            base.tokenizer.save_pretrained(str(beside))
        beside.rename(out)
    except OSError as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise CheckpointError(f"{out} cannot be written ({error}); make room") from error
    return base.name
