"""The team of a run: made as configured, or as a checkpoint has it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import torch

from flexmg.baselines.algorithms.registry import algorithm
from flexmg.baselines.models.adapters import LoraSettings
from flexmg.baselines.models.assignment import PolicyMap, assign_policies, learning_policies
from flexmg.baselines.models.base import Base, load_base
from flexmg.baselines.models.critic import CriticSettings
from flexmg.baselines.models.team import Team
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
    learners = learning_policies(assign_policies(agents, policy_map), config.freeze)
    targets = config.lora_targets
    lora = LoraSettings(
        rank=config.lora_rank,
        alpha=config.lora_alpha,
        targets=targets if isinstance(targets, str) else tuple(targets),
    )

    def load(name: str) -> Base:
        return load_base(name, dtype=config.dtype, device=config.device)

    base = load(config.model)
    # Policies that name the same model share it in memory.
    loaded = {config.model: base}
    for name in dict.fromkeys(config.models.values()):
        loaded.setdefault(name, load(name))
    critic = CriticSettings(config.critic_trunk, config.critic_model)
    critics = algorithm(config.algorithm).critics(learners)
    team = Team(
        base,
        agents,
        policy_map=policy_map,
        critics=critics,
        lora=lora,
        seed=config.seed,
        others={policy: loaded[name] for policy, name in config.models.items()},
        freeze=config.freeze,
        critic=critic,
        critic_base=load(critic.model) if critics and critic.model else None,
    )
    if config.gradient_checkpointing:
        for policy in team.policies:
            team.adapters_of(policy).checkpoint_gradients()
    return team


def load_team(config: RunConfig, folder: Path, agents: list[str], *, best: bool = False) -> Team:
    """The team of a run folder as its last checkpoint has it, or the best by validation.

    Raises:
        CheckpointError: there is no such checkpoint, it is broken, or of other agents.
    """
    _, state = checkpoint.load(folder / (BEST if best else CHECKPOINT))
    team = build_team(config, agents)
    team.load_state(state["team"])
    return team
