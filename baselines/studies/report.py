"""A study's page: commands, a table with two-way intervals, curves, raw figures."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from flexmg.baselines.diagnostics.plots import COLOURS, canvas, lines
from flexmg.baselines.studies.cells import Cell, Result, results
from flexmg.baselines.two_way import TwoWay, two_way

BINS = 20
HEADINGS = (
    *("environment", "policies", "algorithm", "untrained", "trained", "gain", "by seed"),
    "against MARFT-A",
)


def write(cells: Sequence[Cell], seeds: Sequence[int], runs: Path, out: Path) -> None:
    """Write ``small.md``, ``small.json`` and one chart per environment and policy map.

    Args:
        cells: of the study; all their runs are finished.
        seeds: of the runs.
        runs: where they are.
        out: the folder to write to.
    """
    out.mkdir(parents=True, exist_ok=True)
    found = {cell.name: results(cell, seeds, runs) for cell in cells}
    charts = []
    for env in dict.fromkeys(cell.env for cell in cells):
        group = [cell for cell in cells if cell.env == env]
        path = out / f"small-{env.removesuffix('-v0')}.png"
        _curves(env, group, found).savefig(path)
        charts.append((env, path.name))
    (out / "small.json").write_text(
        json.dumps({c.name: _raw(c, found[c.name]) for c in cells}, indent=1) + "\n",
        encoding="utf-8",
    )
    (out / "small.md").write_text(_page(cells, seeds, found, charts), encoding="utf-8")


def gains(own: Sequence[Result]) -> TwoWay:
    """Trained minus untrained, per seed and problem."""
    return two_way(np.array([np.subtract(r.after, r.before) for r in own], dtype=float))


def difference(one: Sequence[Result], other: Sequence[Result]) -> TwoWay:
    """Trained accuracy of one minus another, same seeds and problems."""
    return two_way(
        np.array([np.subtract(a.after, b.after) for a, b in zip(one, other, strict=True)], float)
    )


def _page(
    cells: Sequence[Cell],
    seeds: Sequence[int],
    found: dict[str, list[Result]],
    charts: list[tuple[str, str]],
) -> str:
    minutes = sum(r.outcome["totals"]["seconds"] for own in found.values() for r in own) / 60
    text = [
        "# Four algorithms, two workflows, the embedded model",
        "",
        "Written by `make study-small`; raw figures in [small.json](small.json). Every line of "
        f"the table: {len(seeds)} seeds, equal settings, an equal budget of generated tokens, "
        "held-out accuracy on the same 300 problems before and after. Intervals are 95 % and "
        "count seeds and problems both as drawn at random (`flexmg.baselines.two_way`). Training "
        f"took {minutes:.0f} minutes of single-thread processes on {platform.machine()}, Python "
        f"{platform.python_version()}.",
        "",
        f"| {' | '.join(HEADINGS)} |",
        f"|{'---|' * len(HEADINGS)}",
    ]
    for cell in cells:
        own = found[cell.name]
        before = np.mean([r.before for r in own])
        after = two_way(np.array([r.after for r in own], dtype=float))
        gain = gains(own)
        by_seed = ", ".join(f"{100 * np.mean(np.subtract(r.after, r.before)):+.1f}" for r in own)
        policies = cell.settings["policies"]
        reference = next(
            c
            for c in cells
            if c.env == cell.env and c.settings["policies"] == policies and c.title == "MARFT-A"
        )
        against = "" if reference is cell else _points(difference(own, found[reference.name]))
        text.append(
            f"| `{cell.env}` | {policies} | {cell.title} | {before:.1%} | {after.mean:.1%} "
            f"({max(0, after.low):.0%} to {min(1, after.high):.0%}) | {_points(gain)} | {by_seed} "
            f"| {against} |"
        )
    text += ["", "Gains and differences in points of accuracy.", ""]
    for env, file in charts:
        text += [f"![Training accuracy on {env} over generated tokens]({file})", ""]
    text += ["## The commands", "", "```text"]
    text += [cell.command(seeds) for cell in cells]
    text += ["```", ""]
    return "\n".join(text)


def _points(value: TwoWay) -> str:
    half = 100 * (value.high - value.mean)
    return f"{100 * value.mean:+.1f} ± {half:.1f}"


def _curves(env: str, cells: Sequence[Cell], found: dict[str, list[Result]]) -> Figure:
    """Training accuracy over tokens: mean over seeds, and the range of the seeds."""
    figure, axes = canvas("accuracy of training episodes", "generated tokens")
    drawn = {}
    for number, cell in enumerate(cells):
        own = found[cell.name]
        end = min(r.tokens[-1] for r in own)
        grid = np.linspace(end / BINS, end, BINS)
        smooth = np.array([_smooth(r, grid) for r in own])
        colour = COLOURS[number % len(COLOURS)]
        axes.fill_between(
            grid, smooth.min(axis=0), smooth.max(axis=0), color=colour, alpha=0.12, linewidth=0
        )
        shared = ", shared" if cell.settings["policies"] == "shared" else ""
        drawn[cell.title + shared] = (grid.tolist(), smooth.mean(axis=0).tolist())
    lines(axes, drawn)
    axes.set_title(env, fontsize=10)
    return figure


def _smooth(result: Result, grid: np.ndarray) -> list[float]:
    """Mean accuracy of the iterations within one bin on either side of each grid point."""
    tokens, accuracy = np.array(result.tokens), np.array(result.accuracy, dtype=float)
    width = grid[1] - grid[0]
    values = []
    for point in grid:
        near = np.abs(tokens - point) <= width
        values.append(accuracy[near].mean() if near.any() else np.interp(point, tokens, accuracy))
    return [float(value) for value in values]


def _raw(cell: Cell, own: Sequence[Result]) -> dict[str, Any]:
    return {
        "env": cell.env,
        "settings": dict(cell.settings),
        "seeds": [
            {
                "before": float(np.mean(r.before)),
                "after": float(np.mean(r.after)),
                "tokens": r.outcome["totals"]["tokens"],
                "iterations": r.outcome["iterations"],
                "seconds": round(r.outcome["totals"]["seconds"], 1),
                "curve": [[t, round(a, 4)] for t, a in zip(r.tokens, r.accuracy, strict=True)],
            }
            for r in own
        ],
    }
