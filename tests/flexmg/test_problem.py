"""Problems, hashes and verdicts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flexmg import Problem, Verdict
from flexmg.errors import InvalidArgument
from flexmg.problem import content_hash

PROBLEM = Problem("p/0", "What is  1 + 1?", "2", payload={"tests": [1, {"b": 2, "a": 1}]})


def changed(**fields):
    return replace(PROBLEM, **fields)


def test_the_content_hash_folds_white_space():
    assert content_hash("What is\n1 + 1? ") == PROBLEM.content_hash


def test_the_content_hash_tells_statements_apart():
    assert content_hash("What is 1 + 2?") != PROBLEM.content_hash


@pytest.mark.parametrize(
    "fields", [{"gold": "3"}, {"statement": "What is 1 + 1?"}, {"payload": {"tests": []}}]
)
def test_the_payload_hash_changes_when_grading_may(fields):
    assert changed(**fields).payload_hash != PROBLEM.payload_hash


def test_the_payload_hash_does_not_depend_on_the_order_of_keys():
    twin = changed(payload={"tests": [1, {"a": 1, "b": 2}]})
    assert twin.payload_hash == PROBLEM.payload_hash


def test_the_payload_hash_does_not_depend_on_the_id():
    assert changed(id="q/9").payload_hash == PROBLEM.payload_hash


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_score_outside_0_1_is_refused(score):
    with pytest.raises(InvalidArgument, match="score"):
        Verdict(score, "correct")


def test_an_unknown_status_is_refused():
    with pytest.raises(InvalidArgument, match="'maybe'"):
        Verdict(0.5, "maybe")


@pytest.mark.parametrize("status", ["wrong", "unparseable", "timeout", "crash", "infra_error"])
def test_only_correct_is_correct(status):
    assert Verdict(1.0, "correct").correct and not Verdict(0.0, status).correct
