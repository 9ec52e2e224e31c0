"""The team of a run: made as configured, or as a checkpoint has it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import torch

from flexmg.baselines.algorithms.registry import algorithm
from flexmg.baselines.models.adapters import LoraSettings
from flexmg.baselines.models.base import load_base
from flexmg.baselines.models.team import PolicyMap, Team, assign_policies
from flexmg.baselines.training import checkpoint
from flexmg.baselines.training.config import RunConfig

CHECKPOINT, BEST = "checkpoint", "checkpoint-best"


def use_threads(config: RunConfig) -> None:
    """Give PyTorch as many CPU threads as the config says; see ``RunConfig.threads``."""
    threads = config.threads
    if threads is None:
        threads = 1 if config.model == "tiny" else 0
    if threads:
        torch.set_num_threads(threads)


def build_team(config: RunConfig, agents: list[str]) -> Team:
    """A fresh team as configured, for these agents.

    Raises:
        ModelError: the model cannot be loaded.
        InvalidArgument: a policy map that does not fit, or another bad setting.
    """
    policy_map = cast(PolicyMap, config.policies)
    policies = tuple(dict.fromkeys(assign_policies(agents, policy_map).values()))
    return Team(
        load_base(config.model, dtype=config.dtype, device=config.device),
        agents,
        policy_map=policy_map,
        critics=algorithm(config.algorithm).critics(policies),
        lora=LoraSettings(rank=config.lora_rank, alpha=config.lora_alpha),
        seed=config.seed,
    )


def load_team(config: RunConfig, folder: Path, agents: list[str], *, best: bool = False) -> Team:
    """The team of a run folder as its last checkpoint has it, or the best by validation.

    Raises:
        CheckpointError: there is no such checkpoint, it is broken, or of other agents.
    """
    _, state = checkpoint.load(folder / (BEST if best else CHECKPOINT))
    team = build_team(config, agents)
    team.load_state(state["team"])
    return team
