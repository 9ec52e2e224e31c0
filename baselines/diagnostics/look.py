"""One look at an iteration: everything that ``diagnostics.jsonl`` records of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flexmg.baselines.algorithms.advantages import Standardised
from flexmg.baselines.algorithms.learner import Learner
from flexmg.baselines.diagnostics.gradients import (
    describe,
    preconditioner,
    slot_gradients,
)
from flexmg.baselines.diagnostics.text import text_signs
from flexmg.baselines.rollout.turns import Batch, Episode

FILE = "diagnostics.jsonl"


class Look:
    """Observes one update of a learner; see :class:`~flexmg.baselines.algorithms.learner.Learner`.

    Args:
        learner: what is looked at. Its update is the same with and without a look.
    """

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.policies: dict[str, Any] = {}

    def __enter__(self) -> Look:
        """Begin to observe."""
        self.learner.observer = self
        return self

    def __exit__(self, *error: object) -> None:
        """Stop observing."""
        self.learner.observer = None

    def __call__(self, episodes: Sequence[Episode], standard: Standardised) -> None:
        """What the policies are about to learn from, before any of them is updated."""
        for policy in self.learner.team.policies:
            slots = slot_gradients(self.learner, policy, episodes, standard)
            if not slots:
                continue
            scale = preconditioner(self.learner, policy)
            self.policies[policy] = {
                **describe(slots),
                "adam": None if scale is None else describe(slots, scale),
            }

    def row(
        self, iteration: int, batch: Batch, steps: dict[str, float], accumulation: dict[str, Any]
    ) -> dict[str, Any]:
        """The row of ``diagnostics.jsonl``.

        Args:
            iteration: its number.
            batch: the episodes.
            steps: length of each policy's applied step.
            accumulation: of each policy, see ``Updates.accumulation``.
        """
        policies = {
            policy: {
                **block,
                "step": steps.get(policy, 0.0),
                **accumulation.get(policy, {}),
            }
            for policy, block in self.policies.items()
        }
        return {"iteration": iteration, "policies": policies, "text": text_signs(batch)}
