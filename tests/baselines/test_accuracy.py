"""Intervals and pass@k: values by hand, coverage by simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from flexmg.baselines.accuracy import clustered_interval, pass_at_k, powers_up_to, wilson


# Brown, Cai and DasGupta (2001) discuss the interval; these values are computed by hand
# from its closed form with z = 1.96.
@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (5, 10, 0.2366, 0.7634),
        (8, 10, 0.4902, 0.9433),
        (81, 263, 0.2553, 0.3662),
    ],
)
def test_wilson_intervals(right: int, n: int, low: float, high: float) -> None:
    assert wilson(right / n, n) == pytest.approx((low, high), abs=1e-4)


def test_nothing_is_known_without_data() -> None:
    assert wilson(math.nan, 0) == (0.0, 1.0)


def test_one_episode_per_problem_is_wilsons_interval() -> None:
    assert clustered_interval([[True], [False], [True], [True]]) == pytest.approx(wilson(0.75, 4))


def test_problems_without_a_graded_episode_are_left_out() -> None:
    assert clustered_interval([[True], [], [False]]) == pytest.approx(wilson(0.5, 2))
    assert clustered_interval([[], []]) == (0.0, 1.0)


@pytest.mark.parametrize("spread", [0.5, 2.0, 50.0])
def test_coverage_over_simulated_evaluations(spread: float) -> None:
    """40 problems of different difficulty (beta), 8 samples each: 95 % covers 93 to 97.5 %."""
    rng = np.random.default_rng(0)
    mean, runs, covered = 0.35, 1500, 0
    for _ in range(runs):
        chance = rng.beta(mean * spread, (1 - mean) * spread, size=40)
        outcomes = (rng.random((40, 8)) < chance[:, None]).tolist()
        low, high = clustered_interval(outcomes)
        covered += low <= mean <= high
    assert 0.93 <= covered / runs <= 0.975


@pytest.mark.parametrize(("n", "c", "k"), [(5, 2, 1), (5, 2, 3), (6, 0, 4), (4, 4, 2), (5, 1, 5)])
def test_pass_at_k_is_the_share_of_subsets_with_a_right_one(n: int, c: int, k: int) -> None:
    outcomes = [True] * c + [False] * (n - c)
    subsets = list(itertools.combinations(outcomes, k))
    assert pass_at_k([outcomes], k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


def test_pass_at_k_leaves_out_problems_with_fewer_samples() -> None:
    assert pass_at_k([[True, False], [True]], 2) == 1.0
    assert math.isnan(pass_at_k([[True]], 2))


def test_powers() -> None:
    assert powers_up_to(1) == [1]
    assert powers_up_to(6) == [1, 2, 4, 6]
