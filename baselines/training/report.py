"""``report.html``: one self-contained page that shows what a run did."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import yaml

from flexmg.baselines.training.charts import interval_bars, line_chart
from flexmg.baselines.training.config import RunConfig
from flexmg.baselines.training.progress import duration
from flexmg.baselines.training.records import Row, RunRecords
from flexmg.errors import TranscriptError
from flexmg.render.page import viewer
from flexmg.render.sight import Sight, sight
from flexmg.transcript import Transcript

FILE = "report.html"
Z95 = 1.96
SHOWN_EPISODES = 3


def write(folder: Path, config: RunConfig) -> Path:
    """Write the report of a run folder from what is recorded there.

    Args:
        folder: of the run.
        config: its settings.

    Returns:
        The path of the page. It needs no network and no other file.

    Raises:
        CheckpointError: it cannot be written, or a record of the run is broken.
    """
    records = RunRecords(folder)
    rows = records.rows()
    evaluations = records.evaluations()
    examples = example_episodes(records)
    shown = [transcript for _, transcript in examples]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("flexmg.baselines.training", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["share"] = _share
    environment.filters["points"] = _points
    environment.filters["figure"] = _figure
    page = environment.get_template(FILE).render(
        config=config,
        rows=rows,
        charts=_charts(rows),
        evaluations=evaluations,
        bars=_bars(evaluations),
        gain=gain(evaluations),
        roles=_roles(evaluations, rows),
        totals=_totals(rows),
        labels=[label for label, _ in examples],
        episodes=viewer(shown, sights=[_sight(transcript) for transcript in shown]),
        settings=yaml.safe_dump(dataclasses.asdict(config), sort_keys=False),
    )
    records.replace(FILE, page)
    return folder / FILE


def gain(evaluations: dict[str, Row]) -> dict[str, float] | None:
    """The rise in accuracy and its 95 % interval, from differences on the same problems.

    Returns:
        ``mean``, ``low`` and ``high``; None unless there are two evaluations of at least two
        common problems. Its standard error is that of the mean of per-problem differences,
        which counts problems, not episodes.
    """
    if not {"before", "after"} <= evaluations.keys():
        return None
    pairs = zip(
        evaluations["before"]["per_problem"], evaluations["after"]["per_problem"], strict=True
    )
    differences = np.array([b - a for a, b in pairs if a is not None and b is not None])
    if len(differences) < 2:
        return None
    mean = float(differences.mean())
    half = Z95 * float(differences.std(ddof=1)) / math.sqrt(len(differences))
    return {"mean": mean, "low": mean - half, "high": mean + half}


def example_episodes(records: RunRecords) -> list[tuple[str, Transcript]]:
    """Three episodes to replay, each with a label.

    One held-out problem before and after training (the first that the untrained team got
    wrong and the trained one right, where there is one), and one that still fails. A run
    without an evaluation shows the beginning of its last iteration instead.
    """
    before, after = (_transcripts(records, name) for name in ("before", "after"))
    if not before or not after:
        number = records.rows()[-1]["iteration"] if records.rows() else 0
        last = _transcripts(records, f"iteration-{number:05d}")[:SHOWN_EPISODES]
        return [(f"iteration {number}", transcript) for transcript in last]
    solved = {one.problem for one in after if _right(one)}
    first = next((one for one in before if not _right(one) and one.problem in solved), before[0])
    same = [one for one in after if one.problem == first.problem]
    second = max(same, key=_right)
    others = [one for one in after if one.problem != first.problem]
    third = sorted(others, key=_right)[:1]
    return [
        ("before training", first),
        ("the same problem after training", second),
        *(("another problem after training", one) for one in third),
    ]


def _transcripts(records: RunRecords, name: str) -> list[Transcript]:
    return [Transcript.from_json(line) for line in records.transcript_lines(name)]


def _sight(transcript: Transcript) -> Sight | None:
    """What the agents saw; None for an environment that does not repeat itself."""
    try:
        return sight(transcript)
    except TranscriptError:
        return None


def _right(transcript: Transcript) -> bool:
    return transcript.verdict.get("status") == "correct"


def _charts(rows: list[Row]) -> list[dict[str, str]]:
    """Title, caption and drawing of each curve."""
    numbers = [row["iteration"] for row in rows]

    def column(name: str) -> list[float | None]:
        return [row.get(name) for row in rows]

    def chart(name: str, title: str, caption: str, **options: Any) -> dict[str, str]:
        drawing = line_chart(title, numbers, column(name), **options)
        return {"title": title, "caption": caption, "drawing": drawing}

    return [
        chart(
            "accuracy",
            "Accuracy",
            "share of the training batch's episodes that are right",
            form="{:.0%}".format,
            bounds=(0.0, 1.0),
        ),
        chart("reward", "Reward", "mean of an episode's team reward"),
        chart("kl", "KL", "how far an iteration moves a policy: k3 estimate per token"),
        chart("value_loss", "Value loss", "Huber error of the critic, mean over its steps"),
    ]


def _bars(evaluations: dict[str, Row]) -> str:
    return interval_bars(
        [
            (name, row["accuracy"], *row["interval"])
            for name, row in evaluations.items()
            if row["accuracy"] is not None
        ]
    )


def _roles(evaluations: dict[str, Row], rows: list[Row]) -> list[dict[str, Any]]:
    """Per role: how it wrote before and after, and what its policy's last update was like."""
    names = dict.fromkeys(
        role for source in [*evaluations.values(), *rows[-1:]] for role in source["roles"]
    )
    updates = rows[-1].get("policies", {}) if rows else {}

    def held_out(when: str, role: str) -> dict[str, Any]:
        figures = evaluations.get(when, {}).get("roles", {}).get(role, {})
        return {name: figures.get(name) for name in ("tokens", "fallback", "cut")}

    return [
        {
            "name": role,
            "before": held_out("before", role),
            "after": held_out("after", role),
            "last_update": {
                name: updates.get(role, {}).get(name)
                for name in ("kl", "clip_fraction", "grad_norm")
            },
        }
        for role in names
    ]


def _totals(rows: list[Row]) -> dict[str, str]:
    seconds = sum(row["seconds"] for row in rows)
    tokens = sum(row["tokens"] for row in rows)
    return {
        "iterations": str(len(rows)),
        "episodes": f"{sum(row['episodes'] for row in rows):,}",
        "tokens": f"{tokens:,}",
        "time": duration(seconds),
        "tokens/s": f"{tokens / seconds:,.0f}" if seconds else "–",
        "infra errors": str(sum(row["infra_errors"] for row in rows)),
    }


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _points(value: float) -> str:
    return f"{100 * value:+.1f}"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
