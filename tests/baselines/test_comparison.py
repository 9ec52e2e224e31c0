"""The majority vote of a lone agent, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from flexmg.baselines.comparison import majority
from flexmg.baselines.rollout.turns import Episode

GAME = SimpleNamespace(
    source=SimpleNamespace(get=lambda index: index),
    workflow=SimpleNamespace(
        domain=SimpleNamespace(answer_key=lambda problem, reply: reply.strip() or None)
    ),
)


def said(text: str, status: str = "wrong", infra: bool = False) -> Episode:
    turn = SimpleNamespace(text=text)
    return Episode("p", 0, [turn], np.zeros(1), {}, status=status, infra_error=infra)


@pytest.mark.parametrize(
    ("episodes", "right"),
    [
        ([said("7"), said("8", "correct"), said(" 8 ", "correct")], True),
        ([said("8", "correct"), said("7"), said("7")], False),
        ([said("8", "correct"), said("7")], True),  # a tie: the first given
        ([said("7"), said("8", "correct")], False),
        ([said(""), said(" "), said("8", "correct")], True),  # no answer is no vote
        ([said(""), said(" ")], False),
        ([said("7", infra=True), said("8", "correct")], True),
        ([said("7", infra=True)], None),
    ],
)
def test_majority(episodes, right):
    assert majority(GAME, 0, episodes) is right
