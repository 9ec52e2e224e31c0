"""Looks at validation problems during a run: which team was best, and has it fallen?"""

from __future__ import annotations

from time import perf_counter

import numpy as np

import flexmg
from flexmg.baselines.diagnostics.cliff import Cliff, find_cliff
from flexmg.baselines.evaluation import evaluate
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.collector import RolloutSettings
from flexmg.baselines.training.config import RunConfig
from flexmg.baselines.training.problems import held_out_problems, other_problems
from flexmg.baselines.training.records import Row, RunRecords, plain

FILE = "validation.jsonl"
STREAM = 2  # of a run's keys; training is 0, evaluation 1
LOOKS_IN_A_ROW = 2


class Validation:
    """Plays the same problems with the same draws at every look, so that looks compare.

    The looks are in ``validation.jsonl`` of the run folder, one row each: ``iteration``,
    ``accuracy``, ``interval``, ``per_problem``, ``seconds``.

    Args:
        config: of the run.
        team: who plays.
        settings: how episodes are played.
        records: of the run.
        hashes: content hashes of the held-out problems, which are left out of validation.
    """

    def __init__(
        self,
        config: RunConfig,
        team: Team,
        settings: RolloutSettings,
        records: RunRecords,
        hashes: set[str],
    ) -> None:
        self.config = config
        self.team = team
        self.settings = settings
        self.records = records
        self.arguments = other_problems(config.env_args, config.validation)
        self.problems: list[int] = []
        self.hashes: set[str] = set()
        if config.validate_every:
            source = flexmg.make(config.env, **self.arguments).unwrapped.source
            # As many more as may turn out to be held out.
            spare = held_out_problems(source, config.validation_problems + len(hashes))
            found = {index: source.get(index).content_hash for index in spare}
            kept = [index for index in spare if found[index] not in hashes]
            self.problems = kept[: config.validation_problems]
            self.hashes = {found[index] for index in self.problems}

    def due(self, iteration: int) -> bool:
        """Whether a look follows this iteration."""
        return bool(self.problems) and iteration % self.config.validate_every == 0

    def look(self, iteration: int) -> Row:
        """Play the problems, and write the row."""
        started = perf_counter()
        result = evaluate(
            self.config.env,
            self.arguments,
            self.team,
            self.problems,
            (self.config.seed, STREAM),
            settings=self.settings,
        )
        row = plain(
            {
                "iteration": iteration,
                "accuracy": result.accuracy,
                "interval": list(result.interval),
                "per_problem": result.per_problem,
                "seconds": perf_counter() - started,
            }
        )
        self.records.add(row, FILE)
        return row

    def rows(self) -> list[Row]:
        """All looks so far."""
        return self.records.rows(FILE)

    def best(self) -> int | None:
        """The iteration of the best look, the first of equals; None before any."""
        rows = [row for row in self.rows() if row["accuracy"] is not None]
        return max(rows, key=lambda row: row["accuracy"])["iteration"] if rows else None

    def cliff(self) -> Cliff | None:
        """What the last look fell off, if the one before had fallen as well.

        One look alone cries wolf now and then; see docs/diagnostics.md.
        """
        rows = self.rows()
        if len(rows) <= LOOKS_IN_A_ROW:
            return None
        found = [cliff_of(rows[: len(rows) - k]) for k in range(LOOKS_IN_A_ROW)]
        return found[0] if all(found) else None


def cliff_of(rows: list[Row]) -> Cliff | None:
    """The cliff that the last of these looks stands under, if any.

    Problems that an infra error kept from being graded at any look are left out.
    """
    scores = np.array([row["per_problem"] for row in rows], dtype=float)
    known = ~np.isnan(scores).any(axis=0)
    return find_cliff(scores[:, known], [row["iteration"] for row in rows])
