"""The accuracy cliff: found where there is one, seldom where there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from flexmg.baselines.diagnostics.cliff import find_cliff, paired_t

PROBLEMS = 200


def looks(rng: np.random.Generator, accuracies: list[float]) -> np.ndarray:
    """0/1 results on problems of different difficulty, each look drawn anew."""
    difficulty = rng.normal(0.0, 0.15, size=PROBLEMS)
    return np.array(
        [rng.random(PROBLEMS) < np.clip(a + difficulty, 0, 1) for a in accuracies], dtype=float
    )


def test_paired_t_equals_the_textbook_formula():
    differences = np.array([1.0, 0.0, 1.0, -1.0, 1.0, 0.0])
    t = differences.mean() / (differences.std(ddof=1) / math.sqrt(6))
    got = paired_t(differences.mean(), (differences**2).mean(), 6)
    assert got == pytest.approx(t)


def test_a_deep_fall_is_found_with_its_figures():
    scores = looks(np.random.default_rng(0), [0.4, 0.6, 0.75, 0.7, 0.45])
    found = find_cliff(scores, [10, 20, 30, 40, 50])
    assert found is not None
    assert (found.peak, found.last) in {(30, 50), (40, 50)}
    assert found.low == pytest.approx(scores[-1].mean())
    assert found.statistic > found.threshold > 1.5


def test_flat_runs_seldom_look_like_cliffs():
    """Twelve looks at one accuracy; "peak minus last of 2 standard errors" cries wolf far more."""
    wolves = naive = 0
    for seed in range(300):
        scores = looks(np.random.default_rng(seed), [0.5] * 12)
        wolves += find_cliff(scores, range(12)) is not None
        means = scores.mean(axis=1)
        naive += means.max() - means[-1] > 2 * math.sqrt(0.25 / PROBLEMS)
    assert wolves / 300 <= 0.08
    assert naive / 300 >= 0.14


def test_a_rising_run_is_none():
    assert find_cliff(looks(np.random.default_rng(1), [0.3, 0.5, 0.7]), [1, 2, 3]) is None


def test_a_fall_of_less_than_five_points_is_none_however_sure():
    """The same four problems of a hundred lost: certain, and small."""
    scores = np.ones((3, 100))
    scores[-1, :4] = 0.0
    assert find_cliff(scores, [1, 2, 3]) is None
    scores[-1, :6] = 0.0
    assert find_cliff(scores, [1, 2, 3]) is not None


def test_one_look_or_one_problem_says_nothing():
    assert find_cliff(np.ones((1, 50)), [1]) is None
    assert find_cliff(np.array([[1.0], [0.0]]), [1, 2]) is None


def test_every_problem_lost_at_once_is_a_cliff():
    assert find_cliff(np.array([[1.0] * 20, [0.0] * 20]), [1, 2]) is not None
