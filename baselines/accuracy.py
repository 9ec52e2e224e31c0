"""Statistics of 0/1 outcomes on problems: intervals and pass@k."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from scipy import stats

LEVEL = 0.95


def wilson(share: float, n: float, *, quantile: float | None = None) -> tuple[float, float]:
    """Wilson's score interval of a share among n (Wilson 1927); (0, 1) when n is 0.

    Unlike the share plus or minus z standard errors it stays within [0, 1] and says
    something at shares of 0 and 1.

    Args:
        share: in [0, 1].
        n: number of independent outcomes; may be an effective number.
        quantile: of the reference distribution; by default the normal one's for 95 %.
    """
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + LEVEL) / 2) if quantile is None else quantile
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # The interval contains the share; rounding must not put a share of 0 outside.
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def clustered_interval(outcomes: Sequence[Sequence[bool]]) -> tuple[float, float]:
    """95 % interval of the mean outcome, with problems as clusters.

    Samples of one problem are alike, so they count for less than as many problems would.
    The variance of the mean is estimated from the problems' totals (the ratio estimator of
    survey sampling), turned into an effective number of outcomes between the number of
    problems and that of episodes (Korn and Graubard 1998), and put into Wilson's interval
    with Student's quantile for the problems' degrees of freedom. With one episode per
    problem that is Wilson's own interval.

    Args:
        outcomes: of every problem its graded episodes; empty ones are left out.
    """
    totals = np.array([sum(own) for own in outcomes if own], dtype=float)
    sizes = np.array([len(own) for own in outcomes if own], dtype=float)
    problems, episodes = len(sizes), sizes.sum()
    if problems < 2:
        return wilson(totals.sum() / episodes if problems else math.nan, problems)
    share = totals.sum() / episodes
    residuals = totals - share * sizes
    variance = problems / (problems - 1) * (residuals**2).sum() / episodes**2
    effective = problems if variance == 0 else share * (1 - share) / variance
    effective = min(max(effective, problems), episodes)
    if episodes == problems:
        return wilson(share, problems)
    quantile = float(stats.t.ppf((1 + LEVEL) / 2, problems - 1))
    return wilson(share, effective, quantile=quantile)


def pass_at_k(outcomes: Sequence[Sequence[bool]], k: int) -> float:
    """Mean over problems of the chance that one of k samples is right, unbiased.

    ``1 - C(n - c, k) / C(n, k)`` with c right ones among n samples (Chen et al. 2021). NaN
    when no problem has k graded samples; those with fewer are left out.
    """
    chances = [
        1.0 - math.comb(len(own) - sum(own), k) / math.comb(len(own), k)
        for own in outcomes
        if len(own) >= k
    ]
    return float(np.mean(chances)) if chances else math.nan


def powers_up_to(samples: int) -> list[int]:
    """1, 2, 4 ... and ``samples`` itself."""
    return sorted({*(2**p for p in range(samples.bit_length())), samples})
