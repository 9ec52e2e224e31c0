"""The display of a run."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from flexmg.baselines.training.progress import (
    LiveProgress,
    PlainProgress,
    duration,
    progress,
    share,
)

ROW = {"iteration": 3, "accuracy": 0.25, "reward": 0.5, "tokens_per_s": 1234.5, "seconds": 20.0}


def test_no_terminal_gets_plain_lines():
    out = io.StringIO()
    with progress(Console(file=out, width=200), 9, "title") as display:
        assert isinstance(display, PlainProgress)
        display.iteration(ROW)
    assert out.getvalue() == (
        "iteration 3/9  accuracy 25.0%  reward 0.500  1,234 tokens/s  left 2 min 00 s\n"
    )


def test_a_terminal_gets_a_live_display_with_every_figure():
    out = io.StringIO()
    console = Console(file=out, width=120, force_terminal=True)
    with progress(console, 9, "marft on somewhere") as display:
        assert isinstance(display, LiveProgress)
        display.phase("rollouts")
        display.iteration(ROW)
    text = out.getvalue()
    for figure in ("marft on somewhere", "3/9", "25.0%", "0.500", "1,234 tokens/s", "2 min 00 s"):
        assert figure in text


def test_figures_that_are_not_known_are_dashes():
    out = io.StringIO()
    with progress(Console(file=out, width=200), 9, "title") as display:
        display.iteration({**ROW, "accuracy": None, "reward": None})
    assert "accuracy –  reward –" in out.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.6, "1 min 00 s"), (200, "3 min 20 s"), (7500, "2 h 05 min")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_shares():
    assert (share(None), share(0.1234)) == ("–", "12.3%")
