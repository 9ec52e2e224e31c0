"""How far the policies move, step by step and in all."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from flexmg.baselines.algorithms.protocol import Team


class Updates:
    """Follows the parameters of every policy from the beginning of a run.

    Make it while the team is fresh: a run that is resumed measures its way from there too.

    Args:
        team: whose policies are followed.
    """

    def __init__(self, team: Team) -> None:
        self.team = team
        self.start = self._now()
        self.before = self.start
        self.lengths = dict.fromkeys(team.policies, 0.0)
        self.steps = dict.fromkeys(team.policies, 0)

    def resume(self, rows: list[dict[str, Any]]) -> None:
        """Continue after the iterations of these rows of ``metrics.jsonl``."""
        self.before = self._now()
        for row in rows:
            for policy, length in row["steps"].items():
                self.lengths[policy] += length
                self.steps[policy] += length > 0

    def step(self) -> dict[str, float]:
        """||theta - theta_before|| of every policy since the last call."""
        now = self._now()
        moved = {policy: _distance(now[policy], self.before[policy]) for policy in now}
        self.before = now
        for policy, length in moved.items():
            self.lengths[policy] += length
            self.steps[policy] += length > 0
        return moved

    def accumulation(self) -> dict[str, dict[str, float]]:
        """Of each policy that has moved: how straight its way was.

        Returns:
            ``accumulation``: ||sum of updates|| / sum ||updates||, 1 on a straight way;
            ``null``: 1 / sqrt(T), what T steps in unrelated directions have.
        """
        found = {}
        for policy, steps in self.steps.items():
            if steps:
                way = _distance(self.before[policy], self.start[policy])
                found[policy] = {
                    "accumulation": way / self.lengths[policy],
                    "null": steps**-0.5,
                    "updates": steps,
                }
        return found

    def _now(self) -> dict[str, list[Tensor]]:
        return {
            policy: [p.detach().clone() for p in self.team.policy_parameters(policy)]
            for policy in self.team.policies
        }


def _distance(one: list[Tensor], other: list[Tensor]) -> float:
    squares = [(a.double() - b.double()).square().sum() for a, b in zip(one, other, strict=True)]
    return float(torch.stack(squares).sum().sqrt())
