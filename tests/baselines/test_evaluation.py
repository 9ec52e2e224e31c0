"""Counting what a team gets right."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from flexmg.baselines.evaluation import Evaluation, evaluate, wilson
from flexmg.baselines.generation.protocol import Generation, Request
from flexmg.baselines.models.base import Base
from flexmg.baselines.models.team import Team


class Says:
    """An engine that always says 8."""

    def generate(self, requests: Sequence[Request]) -> list[Generation]:
        ids = np.array([ord("8") - 33, 258], dtype=np.int32)
        return [Generation(ids, np.zeros(2, dtype=np.float32), "eos") for _ in requests]


@pytest.fixture
def report(
    base: Base, make_game: Callable[..., Any], make_domain: Callable[..., Any]
) -> Callable[..., Evaluation]:
    team = Team(base, ("planner_0", "solver_0"))

    def run(problems: Sequence[int], samples: int = 1, **kinds: tuple[str, ...]) -> Evaluation:
        return evaluate(
            lambda: make_game("duo", domain=make_domain(**kinds)),
            None,
            team,
            problems,
            (0,),
            samples=samples,
            engine=Says(),
        )

    return run


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


def test_accuracy_is_the_share_of_right_episodes(report) -> None:
    result = report([4, 1, 2, 9])
    assert result.per_problem == [1.0, 0.0, 0.0, 0.0]
    assert result.accuracy == 0.25 and result.n == 4
    assert result.statuses == {"correct": 1, "wrong": 3}
    assert result.interval == pytest.approx(wilson(0.25, 4))


def test_infra_errors_are_in_no_figure(report) -> None:
    result = report([4, 1, 2], infra=("sum-1",))
    assert result.per_problem == [1.0, None, 0.0]
    assert result.accuracy == 0.5 and result.n == 2 and result.infra_errors == 1
    assert result.statuses == {"correct": 1, "infra_error": 1, "wrong": 1}
    assert result.interval == pytest.approx(wilson(0.5, 2))


def test_the_interval_counts_problems_not_samples(report) -> None:
    result = report([4, 1], samples=8)
    assert result.n == 16 and result.interval == pytest.approx(wilson(0.5, 2))


def test_tokens_are_counted_over_all_agents(report) -> None:
    assert report([4, 1]).tokens == 4.0


def test_roles_are_reported_apart(report) -> None:
    roles = report([4, 1]).roles
    assert set(roles) == {"planner", "solver"}
    assert roles["solver"].turns == 2 and roles["solver"].tokens == 2.0
    assert roles["solver"].cut == 0.0 and roles["solver"].empty == 0.0


def test_without_any_graded_episode_the_accuracy_is_unknown(report) -> None:
    result = report([1], infra=("sum-1",))
    assert math.isnan(result.accuracy) and result.n == 0 and result.interval == (0.0, 1.0)
