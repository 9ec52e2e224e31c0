"""A team of tables: what an algorithm needs of a team, small enough to check by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from flexmg.baselines.rollout.turns import SampledTurn

PADDING = 7.5  # what padding holds: anything but 0, so that counting it shows


@dataclass
class TableScores:
    """See :class:`flexmg.baselines.algorithms.protocol.Scores`."""

    log_probs: Tensor
    mask: Tensor
    entropy: Tensor | None


class TableReading:
    """The table entries at which inputs are valued: that of the token before each position."""

    def __init__(self, entries: list[list[int]]) -> None:
        self.entries = entries
        self.lengths: NDArray[np.int64] = np.array([len(row) for row in entries], dtype=np.int64)

    def __len__(self) -> int:
        """B."""
        return len(self.entries)

    def __getitem__(self, rows: NDArray[np.int64]) -> TableReading:
        """The chosen inputs."""
        return TableReading([self.entries[k] for k in rows])


class TabularTeam:
    """One table of logits per policy, and one table of values per critic.

    Every token of an action is drawn from ``softmax(table[s])``, s being the last id of the
    prompt; a value is ``table[s]``, s being the id just before its position.

    Args:
        policies: names of the policies.
        critics: names of the critics.
        states: rows of every table.
        actions: tokens to choose from.
        logits: of token 1 at the start; all others are 0.
    """

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
        self.tables = {policy: torch.nn.Parameter(start.clone()) for policy in policies}
        self.heads = {critic: torch.nn.Parameter(torch.zeros(states)) for critic in critics}
        self._start = start

    def log_probs(
        self,
        policy: str,
        turns: Sequence[SampledTurn],
        *,
        temperature: float,
        entropy: bool = False,
    ) -> TableScores:
        """Scores of recorded actions, padded with numbers that must not count."""
        return _scores(self.tables[policy], turns, temperature, entropy)

    @torch.no_grad()
    def base_log_probs(self, turns: Sequence[SampledTurn], *, temperature: float) -> TableScores:
        """Scores under the tables as they were at the start."""
        return _scores(self._start, turns, temperature, False)

    def policy_parameters(self, policy: str) -> list[torch.nn.Parameter]:
        """The policy's table."""
        return [self.tables[policy]]

    def read(
        self,
        critic: str,
        inputs: Sequence[NDArray[np.int32]],
        *,
        policies: Sequence[str],
        actions: Sequence[NDArray[np.int32]] | None = None,
    ) -> TableReading:
        """See :class:`flexmg.baselines.algorithms.protocol.Team`."""
        tails = [[0]] * len(inputs) if actions is None else [list(map(int, a)) for a in actions]
        return TableReading(
            [[int(ids[-1]), *tail[:-1]] for ids, tail in zip(inputs, tails, strict=True)]
        )

    def values(self, critic: str, reading: TableReading) -> Tensor:
        """Table entries at all positions."""
        return self.heads[critic][[entry for row in reading.entries for entry in row]]

    def critic_parameters(self, critic: str) -> list[torch.nn.Parameter]:
        """The critic's table."""
        return [self.heads[critic]]

    def probability(self, policy: str, action: int, state: int = 0) -> float:
        """Of one token in one state."""
        return torch.softmax(self.tables[policy][state], dim=-1)[action].item()


def _scores(
    table: Tensor, turns: Sequence[SampledTurn], temperature: float, entropy: bool
) -> TableScores:
    width = max((len(turn.action_ids) for turn in turns), default=0)
    tokens = np.zeros((len(turns), width), dtype=np.int64)
    mask = np.zeros((len(turns), width), dtype=bool)
    for row, turn in enumerate(turns):
        tokens[row, : len(turn.action_ids)] = turn.action_ids
        mask[row, : len(turn.action_ids)] = True
    logs = torch.log_softmax(table / temperature, dim=-1)
    logs = logs[[int(turn.prompt_ids[-1]) for turn in turns]]
    known, padding = torch.from_numpy(mask), torch.tensor(PADDING)
    own = logs.gather(1, torch.from_numpy(tokens)).where(known, padding)
    spread = -(logs.exp() * logs).sum(1, keepdim=True).expand(-1, width).where(known, padding)
    return TableScores(own, known, spread if entropy else None)
