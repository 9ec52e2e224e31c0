"""The terminal accuracy cliff: has a team lost what it once could?

The workflow study (arXiv 2605.24202) names the phenomenon and gives no threshold; this
definition is ours. "Peak minus last" alone is positive on any flat but noisy curve, since
the peak is chosen for being high. So the choice is part of the test: the statistic is the
*largest* paired t over all earlier looks, and its 95 % quantile comes from a bootstrap over
problems of the same maximum with every difference centred at zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flexmg.seeding import stream

SMALLEST_DROP = 0.05
LEVEL = 0.95
RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Cliff:
    """A fall that noise does not explain.

    Args:
        peak: iteration of the look that the last one is furthest below, in standard errors.
        last: iteration of the last look.
        high: accuracy at the peak. ``low``: at the last look.
        statistic: the paired t between the two. ``threshold``: what noise reaches in 5 % of
            flat runs.
    """

    peak: int
    last: int
    high: float
    low: float
    statistic: float
    threshold: float


def find_cliff(scores: NDArray[np.float64], iterations: Sequence[int]) -> Cliff | None:
    """The cliff that the last look stands under, or None.

    Args:
        scores: [T, n], the accuracy on each of n problems at each of T looks.
        iterations: of the looks.

    Returns:
        None unless the largest paired t of (earlier look minus last) exceeds its centred
        bootstrap 95 % quantile and the accuracy fell by at least 5 points there.
    """
    looks, problems = scores.shape
    if looks < 2 or problems < 2:
        return None
    differences = scores[:-1] - scores[-1]
    observed = paired_t(differences.mean(axis=1), (differences**2).mean(axis=1), problems)
    peak = int(observed.argmax())
    drop = float(differences[peak].mean())
    # Rounding must not decide about a fall of exactly five points.
    if drop < SMALLEST_DROP - 1e-9:
        return None
    threshold = null_quantile(differences)
    if observed[peak] <= threshold:
        return None
    return Cliff(
        peak=iterations[peak],
        last=iterations[-1],
        high=float(scores[peak].mean()),
        low=float(scores[-1].mean()),
        statistic=float(observed[peak]),
        threshold=threshold,
    )


def null_quantile(differences: NDArray[np.float64]) -> float:
    """What the largest paired t of flat curves stays below in 95 % of resamples.

    Args:
        differences: [T, n]; problems are resampled together, so that looks stay correlated.
    """
    problems = differences.shape[1]
    centred = differences - differences.mean(axis=1, keepdims=True)
    rng = stream("cliff", *differences.shape)
    counts = rng.multinomial(problems, np.full(problems, 1 / problems), size=RESAMPLES)
    means = counts @ centred.T / problems
    squares = counts @ (centred**2).T / problems
    return float(np.quantile(paired_t(means, squares, problems).max(axis=1), LEVEL))


def paired_t(
    means: NDArray[np.float64], squares: NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    """Student's t of mean differences from their first two moments; 0 where nothing differs."""
    variance = np.maximum(squares - means**2, 0.0) * count / (count - 1)
    # Every problem fell by the same amount: infinitely many standard errors.
    with np.errstate(divide="ignore", invalid="ignore"):
        t = means / np.sqrt(variance / count)
    return np.where(np.abs(means) < 1e-12, 0.0, t)
