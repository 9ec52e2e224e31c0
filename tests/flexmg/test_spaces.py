"""The text and observation spaces."""

from __future__ import annotations

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from flexmg.errors import InvalidAction
from flexmg.spaces import ObservationSpace, Utterance, legal_text, seed_lazily, state_space


@pytest.mark.parametrize("text", ["", "x ≤ 3", "café", "a\nb", "数", "x" * 10, "\x00"])
def test_any_text_within_the_length_is_in(text):
    assert text in Utterance(10)


@pytest.mark.parametrize("other", ["x" * 11, b"bytes", None, 5, ["a"], np.array("a")])
def test_longer_texts_and_other_things_are_not(other):
    assert other not in Utterance(10)


def test_a_subclass_of_str_is_a_text():
    assert np.str_("a") in Utterance(10)


@pytest.mark.parametrize("length", [0, 1, 5, 1000])
def test_samples_are_in_the_space(length):
    space = Utterance(length, seed=0)
    assert all(space.sample() in space for _ in range(200))


def test_samples_of_equal_seeds_are_equal():
    one, two = Utterance(100, seed=3), Utterance(100, seed=3)
    assert [one.sample() for _ in range(5)] == [two.sample() for _ in range(5)]


def test_masks_mean_nothing():
    assert Utterance(5, seed=0).sample(mask=(3, None)) == Utterance(5, seed=0).sample()


def test_spaces_of_equal_length_are_equal():
    assert Utterance(5) == Utterance(5) != Utterance(6)


def test_repr_is_short():
    assert repr(Utterance(32768)) == "Utterance(32768)"


@pytest.mark.parametrize("make", [lambda: Utterance(50), lambda: ObservationSpace(3, 50)])
class TestLateSeed:
    def test_it_fixes_the_samples(self, make):
        one, two = make(), make()
        for space in (one, two):
            seed_lazily(space, "stream", 1)
        assert str(one.sample()) == str(two.sample())

    def test_another_stream_gives_other_samples(self, make):
        one, two = make(), make()
        seed_lazily(one, "stream", 1)
        seed_lazily(two, "stream", 2)
        assert [str(one.sample()) for _ in range(3)] != [str(two.sample()) for _ in range(3)]

    def test_it_is_used_once(self, make):
        space = make()
        seed_lazily(space, "stream", 1)
        assert len({str(space.sample()) for _ in range(5)}) > 1

    def test_a_seed_given_afterwards_counts(self, make):
        one, two = make(), make()
        seed_lazily(one, "stream", 1)
        for space in (one, two):
            space.seed(7)
        assert str(one.sample()) == str(two.sample())

    def test_it_survives_copies(self, make):
        space = make()
        seed_lazily(space, "stream", 1)
        twins = [copy.deepcopy(space), pickle.loads(pickle.dumps(space))]
        assert {str(twin.sample()) for twin in twins} == {str(space.sample())}


def test_other_spaces_are_seeded_at_once():
    one, two = spaces.Discrete(10**9), spaces.Discrete(10**9)
    seed_lazily(one, "stream", 1)
    seed_lazily(two, "stream", 1)
    assert one.sample() == two.sample()


def test_an_observation_is_in_its_space():
    observation = {
        "profile": "You are a solver.",
        "messages": ({"role": "user", "content": "Problem: 1 + 1?"},),
        "dependencies": np.array([1, 0, 0], dtype=np.int8),
    }
    assert observation in ObservationSpace(3, 100)


def test_sampled_observations_are_in_the_space():
    space = ObservationSpace(3, 100)
    space.seed(0)
    assert all(space.sample() in space for _ in range(20))


def test_observation_keys_are_none_that_pettingzoo_treats_specially():
    assert set(ObservationSpace(2, 5).spaces).isdisjoint({"observation", "action_mask"})


def test_a_state_is_in_its_space_without_a_warning(monkeypatch):
    warned = []
    monkeypatch.setattr(gymnasium.logger, "warn", lambda *a, **k: warned.append(a))
    state = {"statement": "1 + 1?", "turns": ({"agent": "a_0", "step": 0, "text": "2"},)}
    assert state in state_space(100)
    assert warned == []


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (None, "must be a text, not NoneType"),
        (7, "must be a text, not int"),
        (b"2", "must be a text, not bytes"),
        ("x" * 1_000_000, "1000000 characters"),
        ("ab\ud800", "lone surrogate at character 2"),
        ("ab\x00", "NUL at character 2"),
    ],
)
def test_an_illegal_action_is_refused_with_its_reason(action, says):
    with pytest.raises(InvalidAction, match=says):
        legal_text("worker_0", Utterance(100), action)


def test_a_legal_action_comes_back_as_it_is():
    text = "x ≤ 3\n\t🙂"
    assert legal_text("worker_0", Utterance(100), text) == text
