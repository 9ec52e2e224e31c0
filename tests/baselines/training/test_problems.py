"""Which problems are trained on."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from letter_game import Words

from flexmg.baselines.training.problems import Curriculum, held_out_problems, other_problems
from flexmg.errors import InvalidArgument


def hashes(source: Words, count: int) -> set[str]:
    return {source.get(index).content_hash for index in range(count)}


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_an_epoch_takes_no_problem_twice(size, count, seed):
    if count > size:
        return
    curriculum = Curriculum(Words("train", size, False), seed, count)
    per_epoch = size // count
    for epoch in range(2):
        taken = [curriculum(1 + epoch * per_epoch + k) for k in range(per_epoch)]
        flat = list(chain.from_iterable(taken))
        assert len(set(flat)) == len(flat) == per_epoch * count
        assert set(flat) <= set(range(size))


def test_epochs_and_seeds_are_shuffled_differently():
    def order(seed: int, epoch: int) -> list[int]:
        return Curriculum(Words("train", 30, False), seed, 30)(1 + epoch)

    assert order(0, 0) != order(0, 1)
    assert order(0, 0) != order(1, 0)


def test_an_iteration_does_not_depend_on_what_was_asked_before():
    one, other = (Curriculum(Words("train", 30, False), 0, 7) for _ in range(2))
    for iteration in range(1, 6):
        one(iteration)
    assert one(9) == other(9)


def test_held_out_problems_are_never_drawn():
    """Three problems of the training source have the statements of held-out ones."""
    test = Words("test", 10, twins=True)
    curriculum = Curriculum(Words("train", 10, twins=True), 0, 7, hashes(test, 10))
    assert curriculum.excluded == 3
    assert sorted(curriculum(1)) == [3, 4, 5, 6, 7, 8, 9]


def test_a_file_that_is_both_source_and_test_keeps_them_apart():
    source = Words("train", 10, False)
    curriculum = Curriculum(source, 0, 6, hashes(source, 4))
    assert sorted(curriculum(1)) == [4, 5, 6, 7, 8, 9]


def test_too_few_problems_is_a_clear_error():
    source = Words("train", 10, False)
    with pytest.raises(InvalidArgument, match="7 problems to train on"):
        Curriculum(source, 0, 8, hashes(source, 3))


def test_an_unlimited_source_gives_different_problems_each_time():
    curriculum = Curriculum(Words("train", None, False), 0, 20)
    taken = list(chain.from_iterable(curriculum(iteration) for iteration in range(1, 11)))
    assert len(set(taken)) == 200


def test_held_out_problems_are_the_first_of_the_source():
    assert held_out_problems(Words("test", 3, False), 5) == [0, 1, 2]
    assert held_out_problems(Words("test", None, False), 2) == [0, 1]


def test_another_source_leaves_behind_what_described_the_old_one():
    trained = {"level": 2, "mode": "strategies"}
    assert other_problems(trained, {"source": "a.jsonl"}) == {
        "mode": "strategies",
        "source": "a.jsonl",
    }
    assert other_problems(trained, {"split": "test"}) == {**trained, "split": "test"}
