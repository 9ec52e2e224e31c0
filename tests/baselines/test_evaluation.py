"""Counting what a team gets right."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from flexmg.baselines.accuracy import wilson
from flexmg.baselines.evaluation import Evaluation, critical_path, evaluate
from flexmg.baselines.generation.protocol import Generation, Request
from flexmg.baselines.models.base import Base
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.turns import Episode, SampledTurn


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


def test_samples_that_all_agree_count_like_one(report) -> None:
    result = report([4, 1], samples=8)
    low, high = wilson(0.5, 2, quantile=12.706)  # Student's t for one degree of freedom
    assert result.n == 16 and result.interval == pytest.approx((low, high), abs=1e-4)


def test_pass_at_k_of_the_samples(report) -> None:
    assert report([4, 1], samples=3).pass_at == {1: 0.5, 2: 0.5, 3: 0.5}


def test_calls_and_prompts_are_counted_per_episode(report) -> None:
    result = report([4, 1])
    assert result.calls == 2.0 and result.prompt_tokens > 10


def chain(*turns: tuple[str, int, tuple[str, ...], int]) -> Episode:
    made = [
        SampledTurn(
            agent=agent,
            role="",
            slot=0,
            policy="",
            step=step,
            layer=0,
            prompt_ids=np.array([1], dtype=np.int32),
            action_ids=np.zeros(tokens, dtype=np.int32),
            log_probs=np.zeros(tokens, dtype=np.float32),
            ended="eos",
            state_ids=np.empty(0, dtype=np.int32),
            sees=sees,
        )
        for agent, tokens, sees, step in turns
    ]
    return Episode("p", 0, made, np.zeros(2), {})


def test_critical_path_hand_computed() -> None:
    """Orchestrator 10, then workers of 5 and 30 side by side, then a synthesizer of 7."""
    workers = ("w0", "w1")
    played = chain(
        ("o", 10, (), 0),
        ("w0", 5, ("o",), 0),
        ("w1", 30, ("o",), 0),
        ("s", 7, ("o", *workers), 0),
    )
    assert critical_path(played) == 10 + 30 + 7


def test_critical_path_waits_for_the_longest_at_the_end_of_a_step() -> None:
    """Two rounds of a debate: the slower debater of each."""
    assert critical_path(chain(("a", 3, (), 0), ("b", 8, (), 0), ("a", 6, (), 1))) == 14


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
