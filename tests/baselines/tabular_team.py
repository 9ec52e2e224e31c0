"""Records for a team of tables, made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from flexmg.baselines.exact.team import TabularTeam
from flexmg.baselines.rollout.turns import Episode, SampledTurn


def turn(
    agent: str,
    actions: Sequence[int],
    *,
    policy: str | None = None,
    step: int = 0,
    layer: int = 0,
    state: int = 0,
    log_probs: Sequence[float] | None = None,
    text: str = "",
) -> SampledTurn:
    role, slot = agent.rsplit("_", 1)
    return SampledTurn(
        agent=agent,
        role=role,
        slot=int(slot),
        policy=policy or role,
        step=step,
        layer=layer,
        prompt_ids=np.array([0, state], dtype=np.int32),
        action_ids=np.array(actions, dtype=np.int32),
        log_probs=np.array(
            log_probs if log_probs is not None else [0.0] * len(actions), dtype=np.float32
        ),
        ended="eos",
        state_ids=np.array([0, state], dtype=np.int32),
        text=text,
    )


def episode(
    turns: list[SampledTurn], rewards: Sequence[float], *, sample: int = 0, **fields
) -> Episode:
    """An episode whose agents are all paid the team's total."""
    total = float(sum(rewards))
    paid = {t.agent: total for t in turns}
    return Episode(
        problem="p",
        sample=sample,
        turns=turns,
        step_rewards=np.array(rewards, dtype=np.float64),
        agent_rewards=fields.pop("agent_rewards", paid),
        score=total,
        **fields,
    )


def sample_actions(team: TabularTeam, policy: str, n: int, rng, state: int = 0):
    """n one-token actions of a policy, with their log-probs."""
    logs = torch.log_softmax(team.tables[policy][state].detach(), dim=-1).numpy()
    chosen = rng.choice(len(logs), size=n, p=np.exp(logs) / np.exp(logs).sum())
    return chosen, logs[chosen]


def no_fresh_batch(place: int):
    """For algorithms that must not ask for one."""
    raise AssertionError(f"fresh batch {place} was asked for")
