"""Intervals for means over seeds and problems, when both are samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class TwoWay:
    """A mean over seeds and problems.

    Args:
        mean: over all cells.
        low: of the 95 % interval.
        high: of the 95 % interval.
        standard_error: of the mean.
        degrees: of freedom (Satterthwaite).
    """

    mean: float
    low: float
    high: float
    standard_error: float
    degrees: float


def two_way(values: NDArray[np.float64]) -> TwoWay:
    """Mean of seeds x problems, with an interval that counts both as drawn at random.

    Resampling problems within a handful of fixed seeds says nothing about other seeds. The
    variance of the grand mean in the crossed model with random effects is
    ``s2_seed / S + s2_problem / n - MSE / (S n)``, s2 being the variances of the seeds' and of
    the problems' means and MSE the residual mean square; its degrees of freedom are
    Satterthwaite's (1946).

    Args:
        values: [S, n], at least two seeds and two problems, without gaps.
    """
    seeds, problems = values.shape
    if seeds < 2 or problems < 2:
        mean = float(values.mean())
        return TwoWay(mean, -math.inf, math.inf, math.inf, 0.0)
    mean = float(values.mean())
    rows, columns = values.mean(axis=1), values.mean(axis=0)
    residuals = values - rows[:, None] - columns[None] + mean
    cells = seeds * problems
    parts = [
        (seeds - 1, float(rows.var(ddof=1)) / seeds),
        (problems - 1, float(columns.var(ddof=1)) / problems),
    ]
    free = (seeds - 1) * (problems - 1)
    residual = float((residuals**2).sum()) / free / cells
    # The larger component is a floor: a difference of estimates may fall below it by chance.
    own = [part for _, part in parts]
    variance = max(sum(own) - residual, *own)
    if variance == 0.0:
        return TwoWay(mean, mean, mean, 0.0, float(seeds - 1))
    spread = sum(part**2 / degrees for degrees, part in parts) + residual**2 / free
    degrees = max(1.0, variance**2 / spread)
    error = math.sqrt(variance)
    half = float(stats.t.ppf((1 + LEVEL) / 2, degrees)) * error
    return TwoWay(mean, mean - half, mean + half, error, degrees)
