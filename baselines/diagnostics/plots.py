"""The figures of a run over its iterations, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

Row = dict[str, Any]
INK, MUTED, GRID = "#1d2430", "#667080", "#e3e2dc"
# Okabe and Ito's colours, told apart with any colour vision; black comes last.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def draw(folder: Path, looks: Sequence[Row], validation: Sequence[Row]) -> list[dict[str, str]]:
    """Write the charts as PNG files.

    Args:
        folder: where to.
        looks: rows of ``diagnostics.jsonl``, at least one.
        validation: rows of ``validation.jsonl``, maybe none.

    Returns:
        Per chart ``file``, ``title``, ``caption`` and ``alt``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    charts = [
        _mass(folder, looks),
        _capture(folder, looks),
        _amplification(folder, looks),
        _way(folder, looks),
        _accuracy(folder, looks, validation),
        _lengths(folder, looks),
    ]
    return [chart for chart in charts if chart]


def series(looks: Sequence[Row], *path: str) -> dict[str, tuple[list[int], list[float]]]:
    """Iterations and values by policy and role (or by policy, for a path of a policy's own).

    Args:
        looks: the rows.
        path: ``("roles", "mass")`` for each role's mass, ``("capture",)`` for each policy's.
    """
    found: dict[str, tuple[list[int], list[float]]] = {}
    for look in looks:
        for policy, block in look["policies"].items():
            if path[0] == "roles":
                items = {
                    role if role == policy else f"{role} ({policy})": own[path[1]]
                    for role, own in block["roles"].items()
                }
            else:
                items = {policy: block.get(path[0])}
            for name, value in items.items():
                if value is not None:
                    xs, ys = found.setdefault(name, ([], []))
                    xs.append(look["iteration"])
                    ys.append(value)
    return found


def _mass(folder: Path, looks: Sequence[Row]) -> dict[str, str]:
    figure, axes = canvas("gradient norm")
    found = series(looks, "roles", "mass")
    lines(axes, found)
    axes.set_ylim(bottom=0)
    return _save(
        figure,
        folder / "mass.png",
        "Gradient mass per role",
        "The norm of what each role adds to its policy's gradient.",
        _spoken(found),
    )


def _capture(folder: Path, looks: Sequence[Row]) -> dict[str, str]:
    """Shares within shared policies; nothing where every policy has one role."""
    shared = {
        name: line for name, line in series(looks, "roles", "share").items() if min(line[1]) < 1.0
    }
    if not shared:
        return {}
    figure, axes = canvas("share of the policy's gradient mass")
    lines(axes, shared)
    axes.set_ylim(0, 1)
    return _save(
        figure,
        folder / "capture.png",
        "Role capture",
        "Each role's share of a shared policy's gradient mass; near 1, that role owns it.",
        _spoken(shared),
    )


def _amplification(folder: Path, looks: Sequence[Row]) -> dict[str, str]:
    copies = series(looks, "roles", "copies")
    several = {name for name, (_, counts) in copies.items() if max(counts) > 1}
    if not several:
        return {}
    figure, axes = canvas("amplification")
    found = {n: v for n, v in series(looks, "roles", "amplification").items() if n in several}
    nulls = {n: v for n, v in series(looks, "roles", "null").items() if n in several}
    lines(axes, found)
    for number, (xs, ys) in enumerate(nulls.values()):
        axes.plot(xs, ys, linestyle=":", color=COLOURS[number % len(COLOURS)], linewidth=1.5)
    most = max(max(counts) for name, (_, counts) in copies.items() if name in several)
    axes.set_ylim(0, 1.1 * most)
    axes.axhline(most, color=MUTED, linewidth=0.8)
    axes.annotate(
        f"all aligned: {most:.0f}",
        (1, most),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="bottom",
        color=MUTED,
        fontsize=9,
    )
    return _save(
        figure,
        folder / "amplification.png",
        "Gradient amplification",
        "Copies of a role: solid, measured; dotted, what orthogonal gradients would have.",
        _spoken(found),
    )


def _way(folder: Path, looks: Sequence[Row]) -> dict[str, str]:
    found = series(looks, "accumulation")
    if not found:
        return {}
    figure, axes = canvas("net way / length of way")
    lines(axes, found)
    nulls = series(looks, "null")
    longest = max(nulls.values(), key=lambda line: len(line[0]))
    axes.plot(*longest, linestyle=":", color=MUTED, label="unrelated steps")
    axes.legend(frameon=False, fontsize=9)
    axes.set_ylim(0, 1.02)
    return _save(
        figure,
        folder / "updates.png",
        "Update accumulation",
        "1: every update goes the same way; dotted, unrelated directions.",
        _spoken(found),
    )


def _accuracy(folder: Path, looks: Sequence[Row], validation: Sequence[Row]) -> dict[str, str]:
    found = {"training episodes": _text_line(looks, "accuracy")}
    oracle = _text_line(looks, "any_right")
    if oracle[0]:
        found["somebody was right"] = oracle
    if validation:
        known = [row for row in validation if row["accuracy"] is not None]
        found["validation"] = (
            [row["iteration"] for row in known],
            [row["accuracy"] for row in known],
        )
    figure, axes = canvas("accuracy")
    lines(axes, found)
    axes.set_ylim(0, 1)
    return _save(
        figure,
        folder / "accuracy.png",
        "Accuracy",
        "Of the team; and how often an agent's own answer was right, chosen or not.",
        _spoken(found),
    )


def _text_line(looks: Sequence[Row], name: str) -> tuple[list[int], list[float]]:
    known = [look for look in looks if look["text"][name] is not None]
    return [look["iteration"] for look in known], [look["text"][name] for look in known]


def _lengths(folder: Path, looks: Sequence[Row]) -> dict[str, str]:
    figure, axes = canvas("tokens per action")
    found: dict[str, tuple[list[int], list[float]]] = {}
    roles = dict.fromkeys(role for look in looks for role in look["text"]["roles"])
    for number, role in enumerate(roles):
        own = [
            (r["iteration"], r["text"]["roles"][role]) for r in looks if role in r["text"]["roles"]
        ]
        xs = [iteration for iteration, _ in own]
        middle, high = [s["tokens_p50"] for _, s in own], [s["tokens_p95"] for _, s in own]
        found[role] = (xs, middle)
        colour = COLOURS[number % len(COLOURS)]
        axes.fill_between(xs, middle, high, color=colour, alpha=0.15, linewidth=0)
    lines(axes, found)
    axes.set_ylim(bottom=0)
    return _save(
        figure,
        folder / "lengths.png",
        "Length of actions",
        "Median per role, shaded up to the 95th percentile.",
        _spoken(found),
    )


def canvas(label: str, below: str = "iteration") -> tuple[Figure, Axes]:
    """An empty chart in the house's style.

    Args:
        label: of the y axis.
        below: of the x axis.
    """
    figure = Figure(figsize=(6.4, 3.4), dpi=150, layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(below, color=MUTED)
    axes.set_ylabel(label, color=MUTED)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
    return figure, axes


def lines(axes: Axes, named: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> None:
    """Draw named lines, (xs, ys) each, with a legend."""
    for number, (name, (xs, ys)) in enumerate(named.items()):
        axes.plot(
            xs,
            ys,
            marker="o",
            markersize=3.5,
            linewidth=1.8,
            color=COLOURS[number % len(COLOURS)],
            label=name,
        )
    axes.legend(frameon=False, fontsize=9)


def _save(figure: Figure, path: Path, title: str, caption: str, alt: str) -> dict[str, str]:
    figure.savefig(path)
    return {"file": path.name, "title": title, "caption": caption, "alt": f"{title}: {alt}"}


def _spoken(lines: dict[str, tuple[list[int], list[float]]]) -> str:
    """First and last value of every line, for who cannot see it."""
    parts = [f"{name} from {ys[0]:.2g} to {ys[-1]:.2g}" for name, (_, ys) in lines.items() if ys]
    return "; ".join(parts)
