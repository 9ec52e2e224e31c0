"""A team small enough to be checked by hand: one table of logits per policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from flexmg.baselines.rollout.turns import Episode, SampledTurn

GARBAGE = 7.5  # what padding holds: anything but 0, so that counting it shows


@dataclass
class TableScores:
    log_probs: torch.Tensor
    mask: torch.Tensor
    entropy: torch.Tensor | None


class TableReading:
    def __init__(self, places):
        self.places = places
        self.lengths = np.array([len(row) for row in places], dtype=np.int64)

    def __len__(self):
        return len(self.places)

    def __getitem__(self, rows):
        return TableReading([self.places[k] for k in rows])


class TabularTeam:
    """Every token of an action is drawn from softmax(table[last prompt token])."""

    def __init__(
        self,
        policies: Sequence[str],
        critics: Sequence[str],
        *,
        states: int = 1,
        actions: int = 2,
        logits: float = 0.0,
    ) -> None:
        self.policies = tuple(policies)
        self.critics = tuple(critics)
        self.versions = dict.fromkeys(policies, 0)
        start = torch.zeros(states, actions)
        start[:, 1] = logits
        self.tables = {p: torch.nn.Parameter(start.clone()) for p in policies}
        self.base = start.clone()
        self.heads = {c: torch.nn.Parameter(torch.zeros(states)) for c in critics}
        self.states = states

    def _scores(self, table, turns, temperature, entropy):
        width = max((len(turn.action_ids) for turn in turns), default=0)
        tokens = np.zeros((len(turns), width), dtype=np.int64)
        mask = np.zeros((len(turns), width), dtype=bool)
        for row, turn in enumerate(turns):
            tokens[row, : len(turn.action_ids)] = turn.action_ids
            mask[row, : len(turn.action_ids)] = True
        logs = torch.log_softmax(table / temperature, dim=-1)
        logs = logs[[int(turn.prompt_ids[-1]) for turn in turns]]
        known = torch.from_numpy(mask)
        own = logs.gather(1, torch.from_numpy(tokens)).where(known, torch.tensor(GARBAGE))
        spread = -(logs.exp() * logs).sum(1, keepdim=True).expand(-1, width)
        spread = spread.where(known, torch.tensor(GARBAGE))
        return TableScores(own, known, spread if entropy else None)

    def log_probs(self, policy, turns, *, temperature, entropy=False):
        return self._scores(self.tables[policy], turns, temperature, entropy)

    @torch.no_grad()
    def base_log_probs(self, turns, *, temperature):
        return self._scores(self.base, turns, temperature, False)

    def policy_parameters(self, policy):
        return [self.tables[policy]]

    def read(self, critic, inputs, *, policies, actions=None):
        """Each position is read as the token id just before it."""
        assert len(policies) == len(inputs)
        tails = actions if actions is not None else [[0]] * len(inputs)
        places = [
            [int(ids[-1]), *map(int, tail[:-1])] for ids, tail in zip(inputs, tails, strict=True)
        ]
        return TableReading(places)

    def values(self, critic, reading):
        return self.heads[critic][[place for row in reading.places for place in row]]

    def critic_parameters(self, critic):
        return [self.heads[critic]]

    def probability(self, policy: str, action: int, state: int = 0) -> float:
        return torch.softmax(self.tables[policy][state], dim=-1)[action].item()


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
