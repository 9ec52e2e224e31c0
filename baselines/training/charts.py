"""Line charts as inline SVG: no library, no network, readable in light and dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

WIDTH, HEIGHT = 520, 240
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 14, 30
# Neighbours on each side that the smoothed curve averages over.
REACH = 2
Point = tuple[float, float]


def line_chart(
    label: str,
    xs: Sequence[float],
    ys: Sequence[float | None],
    *,
    form: Callable[[float], str] = "{:g}".format,
    bounds: tuple[float, float] | None = None,
) -> str:
    """One series over iterations: every value as a faint dot, and a running mean as a line.

    Args:
        label: of the chart, for screen readers.
        xs: iteration numbers.
        ys: values; None leaves a gap in the dots.
        form: writes a value of the y axis.
        bounds: that the y axis never leaves, such as (0, 1) for shares.

    Returns:
        An ``<svg>`` element; its colours are the CSS variables ``--ink``, ``--faint`` and
        ``--accent`` of the page around it. A sentence instead if there is nothing to draw.
    """
    known = [(x, y) for x, y in zip(xs, ys, strict=True) if y is not None and math.isfinite(y)]
    if not known:
        return '<p class="empty">not measured in this run</p>'
    ticks = axis_ticks(min(y for _, y in known), max(y for _, y in known), bounds)
    first, last = min(xs), max(xs)
    across, up = (last - first) or 1.0, (ticks[-1] - ticks[0]) or 1.0

    def place(point: Point) -> Point:
        x = LEFT + (point[0] - first) / across * (WIDTH - LEFT - RIGHT)
        y = HEIGHT - BOTTOM - (point[1] - ticks[0]) / up * (HEIGHT - TOP - BOTTOM)
        return round(x, 1), round(y, 1)

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)} by iteration">'
    ]
    for tick in ticks:
        _, y = place((first, tick))
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{form(tick)}</text>')
    for tick in iteration_ticks(first, last):
        x, _ = place((tick, ticks[0]))
        parts.append(
            f'<text x="{x}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:g}</text>'
        )
    path = " ".join(f"{x},{y}" for x, y in map(place, running_mean(known)))
    parts.append(f'<polyline class="curve" points="{path}"/>')
    for point in known:
        x, y = place(point)
        parts.append(
            f'<circle class="dot" cx="{x}" cy="{y}" r="2.6">'
            f"<title>iteration {point[0]:g}: {form(point[1])}</title></circle>"
        )
    parts.append("</svg>")
    return "".join(parts)


def running_mean(points: Sequence[Point]) -> list[Point]:
    """Each value averaged with up to two neighbours on either side."""
    smooth = []
    for k, (x, _) in enumerate(points):
        # As many on one side as on the other, so that the ends do not lag behind a trend.
        reach = min(REACH, k, len(points) - 1 - k)
        near = [y for _, y in points[k - reach : k + reach + 1]]
        smooth.append((x, sum(near) / len(near)))
    return smooth


def axis_ticks(low: float, high: float, bounds: tuple[float, float] | None = None) -> list[float]:
    """Three to seven round numbers that enclose ``low`` and ``high``, within ``bounds``."""
    if high - low < 1e-12:
        margin = abs(low) * 0.1 or 0.1
        low, high = low - margin, high + margin
    raw = (high - low) / 4
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw * 0.999)
    start, stop = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [round(k * step, 12) for k in range(start, stop + 1)]
    if bounds is not None:
        inside = [tick for tick in ticks if bounds[0] - 1e-9 <= tick <= bounds[1] + 1e-9]
        ticks = inside if len(inside) > 1 else list(bounds)
    return ticks


def iteration_ticks(first: float, last: float) -> list[int]:
    """At most about eight whole iteration numbers, the first and last among them."""
    step = max(1, math.ceil((last - first) / 7))
    ticks = list(range(int(first), int(last) + 1, step))
    if int(last) - ticks[-1] < step / 2 and len(ticks) > 1:
        ticks.pop()
    return ticks if ticks[-1] == int(last) else [*ticks, int(last)]


def interval_bars(rows: Sequence[tuple[str, float, float, float]]) -> str:
    """Shares with their intervals, one bar each, on one axis from 0 to 100 %.

    Args:
        rows: (name, share, low, high).
    """
    height = 34 * len(rows) + 24
    left, right = 70, 64
    span = WIDTH - left - right
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="shares with intervals">']
    for tick in (0, 0.25, 0.5, 0.75, 1):
        x = left + tick * span
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="4" y2="{height - 20}"/>')
        parts.append(f'<text x="{x}" y="{height - 5}" text-anchor="middle">{tick:.0%}</text>')
    for k, (name, value, low, high) in enumerate(rows):
        y = 34 * k + 20
        end = left + value * span
        parts += [
            f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="bar" x="{left}" y="{y - 9}" width="{max(end - left, 1)}" height="18"'
            ' rx="3"/>',
            f'<line class="whisker" x1="{left + low * span}" x2="{left + high * span}" '
            f'y1="{y}" y2="{y}"/>',
            f'<text class="value" x="{WIDTH - right + 10}" y="{y + 4}">{value:.1%}</text>',
        ]
    return "".join([*parts, "</svg>"])
