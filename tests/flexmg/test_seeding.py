"""Streams by key: apart from each other, and the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from flexmg.seeding import draw, draws, stream

KEYS = [("a", 1), ("a", "1"), ("a1",), ("a", 2), ("a,1",), (1, "a"), ("a", 1, ""), ("a", -1)]


@pytest.mark.parametrize("function", [lambda *k: stream(*k).random(), lambda *k: draw(2**60, *k)])
def test_different_keys_are_different_streams(function):
    assert len({function(*key) for key in KEYS}) == len(KEYS)


def test_neighbouring_seeds_share_nothing():
    many = [draw(2**40, "problem", seed, k) for seed in range(50) for k in range(50)]
    assert len(set(many)) == len(many)


def test_draw_is_uniform():
    counts = [0] * 7
    for k in range(7000):
        counts[draw(7, "die", k)] += 1
    chi2 = sum((c - 1000) ** 2 / 1000 for c in counts)
    assert chi2 < 22.5  # 6 degrees of freedom, 0.1 %


def test_draws_begin_alike_whatever_their_number():
    assert draws(3, "x") == draws(8, "x")[:3]


def test_numbers_of_any_size_and_sign_are_keys():
    assert len({draw(2**60, n) for n in (0, -1, 2**63, -(2**70))}) == 4


def test_text_that_is_no_unicode_is_a_key():
    assert draw(10, "\ud800") in range(10)


def test_streams_are_equal_in_another_process_with_other_hashes():
    code = (
        "from flexmg.seeding import *;"
        "print(draw(2**60, 'a', 1), draws(2, 'a', 1), stream('a', 1).integers(2**60))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    here = f"{draw(2**60, 'a', 1)} {draws(2, 'a', 1)} {stream('a', 1).integers(2**60)}\n"
    assert outputs == {here}
