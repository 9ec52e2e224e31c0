"""What a run writes down: one JSON row per iteration, evaluations, transcripts."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from flexmg.baselines.evaluation import Evaluation, role_reports
from flexmg.baselines.rollout.turns import Batch, Episode
from flexmg.errors import CheckpointError

METRICS, EVALUATION, EPISODES = "metrics.jsonl", "evaluation.json", "episodes"
OUTCOME = "outcome.json"
Row = dict[str, Any]


def describe(batch: Batch) -> Row:
    """The figures of one iteration's episodes; infra errors are counted, and in no other figure.

    ``accuracy`` (share correct), ``reward`` (mean of the central stream's sums),
    ``episodes`` (graded), ``infra_errors``, ``truncated`` (cut by the collector),
    ``statuses``, ``tokens`` (generated, all episodes), and per role ``turns``, mean
    ``tokens``, ``fallback`` rate, shares ``cut`` at the token limit, ``empty``, and of
    ``truncated`` prompts.
    """
    graded = [episode for episode in batch.episodes if not episode.infra_error]
    turns = [turn for episode in graded for turn in episode.turns]
    return {
        "accuracy": _mean([episode.status == "correct" for episode in graded]),
        "reward": _mean([float(episode.step_rewards.sum()) for episode in graded]),
        "episodes": len(graded),
        "infra_errors": len(batch.episodes) - len(graded),
        "truncated": sum(not episode.terminated for episode in graded),
        "statuses": dict(Counter(episode.status or "ungraded" for episode in batch.episodes)),
        "tokens": sum(len(t.action_ids) for episode in batch.episodes for t in episode.turns),
        "roles": {role: dataclasses.asdict(report) for role, report in role_reports(turns).items()},
    }


def evaluation_row(evaluation: Evaluation, iteration: int) -> Row:
    """An evaluation as plain data, without its episodes."""
    row = {
        field.name: getattr(evaluation, field.name)
        for field in dataclasses.fields(evaluation)
        if field.name not in ("episodes", "roles")
    }
    roles = {role: dataclasses.asdict(report) for role, report in evaluation.roles.items()}
    return plain({"iteration": iteration, **row, "roles": roles})


def plain(value: Any) -> Any:
    """JSON data: tuples become lists, and numbers that are not finite None."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class RunRecords:
    """The record files of one run folder.

    Args:
        folder: of the run; it is created.

    Raises:
        CheckpointError: it cannot be created.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            (folder / EPISODES).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(
                f"the run folder {str(folder)!r} cannot be made ({error}); choose another --out"
            ) from error

    def rows(self, name: str = METRICS) -> list[Row]:
        """All complete rows of a JSON-lines file; a last line that was torn is no row."""
        path = self.folder / name
        if not path.exists():
            return []
        lines = path.read_text(encoding="utf-8").split("\n")
        # What follows the last newline was not written to its end.
        return [_read(line, path) for line in lines[:-1] if line]

    def forget_after(self, iteration: int, name: str = METRICS) -> None:
        """Drop rows of iterations that no checkpoint holds: they will be played again."""
        rows = self.rows(name)
        kept = [row for row in rows if row["iteration"] <= iteration]
        if rows or (self.folder / name).exists():
            self.replace(name, "".join(_line(row) for row in kept))

    def add(self, row: Row, name: str = METRICS) -> None:
        """Append one row, and force it to disk."""
        try:
            with (self.folder / name).open("a", encoding="utf-8") as file:
                file.write(_line(row))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._failed(name, error) from error

    def evaluations(self) -> dict[str, Row]:
        """``before`` and ``after``, those that are there."""
        path = self.folder / EVALUATION
        if not path.exists():
            return {}
        return _read(path.read_text(encoding="utf-8"), path)

    def add_evaluation(self, name: str, row: Row) -> None:
        """Set one evaluation."""
        found = {**self.evaluations(), name: row}
        self.replace(EVALUATION, json.dumps(found, indent=1, allow_nan=False) + "\n")

    def add_episodes(self, name: str, episodes: Sequence[Episode]) -> None:
        """Write the transcripts of some episodes to ``episodes/NAME.jsonl``."""
        lines = [json.dumps(data, ensure_ascii=False) + "\n" for data in _transcripts(episodes)]
        self.replace(f"{EPISODES}/{name}.jsonl", "".join(lines))

    def transcript_lines(self, name: str) -> list[str]:
        """The lines of ``episodes/NAME.jsonl``, none if there is no such file."""
        path = self.folder / EPISODES / f"{name}.jsonl"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def replace(self, name: str, text: str) -> None:
        """Put a whole file in place at once: readers see the old one or the new one.

        Raises:
            CheckpointError: it cannot be written; the old one is still there.
        """
        path = self.folder / name
        beside = path.with_name(f".{path.name}.new")
        try:
            with beside.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise self._failed(name, error) from error

    def _failed(self, name: str, error: OSError) -> CheckpointError:
        return CheckpointError(
            f"{self.folder / name} cannot be written ({error}); the last checkpoint is intact: "
            "make room and continue with --resume"
        )


def _read(text: str, path: Path) -> Row:
    try:
        row = json.loads(text)
    except ValueError as error:
        raise CheckpointError(f"{path} is not JSON ({error}); mend or remove it") from error
    if not isinstance(row, dict):
        raise CheckpointError(f"{path} holds {text[:40]!r} where an object belongs; mend it")
    return row


def _line(row: Row) -> str:
    return json.dumps(plain(row), ensure_ascii=False, allow_nan=False) + "\n"


def _transcripts(episodes: Iterable[Episode]) -> list[dict[str, Any]]:
    return [e.infos["transcript"] for e in episodes if "transcript" in e.infos]


def _mean(values: Sequence[float]) -> float | None:
    return float(sum(values) / len(values)) if values else None
