"""The report: self-contained, safe, and its figures right."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import letter_game
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from flexmg.baselines.training.charts import (
    axis_ticks,
    interval_bars,
    iteration_ticks,
    line_chart,
    running_mean,
)
from flexmg.baselines.training.launch import launch
from flexmg.baselines.training.report import gain


@pytest.fixture(scope="module")
def page(model_folder, tmp_path_factory) -> str:
    letter_game.register()
    folder = tmp_path_factory.mktemp("report") / "run"
    given = letter_game.settings(str(model_folder), 3)
    with (folder.parent / "log").open("w") as log:
        launch(given, folder, resume=False, console=Console(file=log))
    return (folder / "report.html").read_text(encoding="utf-8")


def test_nothing_is_fetched_from_anywhere(page):
    loads = re.findall(r"""(?:src|href)\s*=\s*["']([^"'#]+)|url\(([^)]+)\)|@import""", page)
    assert loads == []


def test_every_element_is_closed(page):
    open_elements = []

    class Nesting(HTMLParser):
        def handle_starttag(self, tag, attributes):
            if tag not in ("meta", "br", "input", "hr", "link"):
                open_elements.append(tag)

        def handle_startendtag(self, tag, attributes):
            pass

        def handle_endtag(self, tag):
            assert open_elements.pop() == tag

    Nesting().feed(page)
    assert open_elements == []


def test_the_four_curves_are_there(page):
    for title in ("Accuracy", "Reward", "KL", "Value loss"):
        assert f"<h3>{title}</h3>" in page
    assert page.count('class="curve"') == 4


def test_three_episodes_can_be_replayed(page):
    assert "before training" in page and "the same problem after training" in page


def test_settings_and_table_are_there(page):
    assert "algorithm: marft" in page
    assert page.count("<td title=") == 2


def test_gain_is_the_mean_of_paired_differences_hand_computed():
    before = {"per_problem": [0.0, 1.0, 0.0, None, 0.0]}
    after = {"per_problem": [1.0, 1.0, 1.0, 1.0, 0.0]}
    found = gain({"before": before, "after": after})
    half = 1.96 * np.std([1, 0, 1, 0], ddof=1) / 2
    assert found["mean"] == 0.5
    assert found["high"] - found["mean"] == pytest.approx(half)


def test_gain_needs_both_evaluations():
    assert gain({"before": {"per_problem": [1.0, 0.0]}}) is None


@given(
    st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6, allow_nan=False)), min_size=1, max_size=40)
)
def test_charts_are_well_formed_and_every_point_is_inside(values):
    drawing = line_chart("x < y & z", range(1, len(values) + 1), values)
    root = ET.fromstring(drawing)
    for dot in root.iter("circle"):
        assert 58 <= float(dot.get("cx")) <= 506
        assert 13.9 <= float(dot.get("cy")) <= 210.1


@given(st.floats(-1e5, 1e5), st.floats(0, 1e5))
def test_ticks_enclose_the_values(low, span):
    ticks = axis_ticks(low, low + span)
    assert 2 <= len(ticks) <= 7
    unseen = 1e-6 * (1 + abs(low) + span)  # less than a pixel of the axis
    assert ticks[0] <= low + unseen
    assert ticks[-1] >= low + span - unseen


def test_ticks_of_shares_stay_between_0_and_1():
    assert axis_ticks(0.9, 1.0, (0.0, 1.0))[-1] == 1.0
    assert axis_ticks(1.0, 1.0, (0.0, 1.0)) == [0.9, 0.95, 1.0]


@given(st.integers(1, 500), st.integers(0, 500))
def test_iteration_ticks_are_few_and_end_with_the_last(first, more):
    ticks = iteration_ticks(first, first + more)
    assert ticks[-1] == first + more and ticks[0] == first
    assert len(ticks) <= 9 and ticks == sorted(set(ticks))


def test_running_mean_hand_computed():
    points = [(1, 0.0), (2, 3.0), (3, 6.0), (4, 3.0)]
    assert running_mean(points) == [(1, 0.0), (2, 3.0), (3, 4.0), (4, 3.0)]


def test_interval_bars_are_well_formed():
    root = ET.fromstring(interval_bars([("a<b", 0.5, 0.4, 0.6)]))
    assert any(text.text == "50.0%" for text in root.iter("text"))
