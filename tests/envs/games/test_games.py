"""The exact games: payoffs by hand, D enforced, ordinary environments otherwise."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from pettingzoo.test import api_test
from scripted import begin

import flexmg
from flexmg.errors import InvalidArgument, UnknownProblem
from flexmg.testing import check_env

NAMES = ("bandit", "coordination", "signalling", "relay", "corridor")


def played(name: str, letters: str, problem: int = 0, **options) -> flexmg.FlexMarkovGame:
    env = begin(flexmg.make(f"game-{name}-v0", **options), problem=problem)
    for letter in letters:
        env.step(letter)
    return env


@pytest.mark.parametrize("name", NAMES)
def test_games_keep_the_rules_of_a_flexible_markov_game(name):
    check_env(flexmg.make(f"game-{name}-v0"))


@pytest.mark.parametrize("name", NAMES)
def test_games_pass_pettingzoos_own_test(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        api_test(flexmg.make(f"game-{name}-v0"), num_cycles=20)


@pytest.mark.parametrize(
    ("name", "letters", "score"),
    [
        ("bandit", "A", 0.1),
        ("bandit", "C", 1.0),
        ("coordination", "AA", 1 / 3),
        ("coordination", "AB", 1.0),
        ("coordination", "BB", 0.0),
        ("relay", "ABA", 1.0),
        ("relay", "ABB", 0.25),
        ("relay", "BBB", 0.0),
        ("corridor", "AA", 0.3),
        ("corridor", "BBAA", 0.6),
        ("corridor", "BBBB", 1.0),
        ("corridor", "ABBB", 0.0),
        ("corridor", "BBAB", 0.0),
    ],
)
def test_payoffs_hand_computed(name, letters, score):
    outcome = played(name, letters).outcome
    assert outcome.verdict.score == pytest.approx(score)
    assert outcome.verdict.correct is (score == 1.0)
    assert sum(outcome.step_rewards) == pytest.approx(score)


@pytest.mark.parametrize("state", [0, 1, 2])
def test_the_receiver_is_paid_for_the_state_whatever_the_signal(state):
    for signal, answer in itertools.product("ABC", repeat=2):
        outcome = played("signalling", signal + answer, problem=state, states=3).outcome
        assert outcome.verdict.score == float("ABC"[state] == answer)


def signalling_value(dependencies) -> float:
    """The best that any pair of rules reaches, by trying all: letters as functions of prompts."""
    env = flexmg.make("game-signalling-v0", dependencies=dependencies)

    def shown(agent: str) -> str:
        observation = env.observe(agent)
        return str(observation["messages"])

    senders, receivers, paid = [], [], {}
    for state in (0, 1):
        begin(env, problem=state)
        senders.append(shown("sender_0"))
        for signal in "AB":
            begin(env, problem=state)
            env.select("sender_0")
            env.step(signal)
            receivers.append(shown("receiver_0"))
            for answer in "AB":
                paid[state, signal, answer] = float("AB"[state] == answer)
    values = []
    for send in itertools.product("AB", repeat=len(set(senders))):
        for receive in itertools.product("AB", repeat=len(set(receivers))):
            told = dict(zip(dict.fromkeys(senders), send, strict=True))
            heard = dict(zip(dict.fromkeys(receivers), receive, strict=True))
            total = 0.0
            for state in (0, 1):
                signal = told[senders[state]]
                prompt = receivers[2 * state + "AB".index(signal)]
                total += paid[state, signal, heard[prompt]] / 2
            values.append(total)
    return max(values)


def test_d_matters_without_it_signalling_is_chance():
    assert signalling_value("designed") == 1.0
    assert signalling_value("none") == 0.5


@pytest.mark.parametrize(("text", "letter"), [("b", "B"), ("  A!", "A"), ("Z", "A"), ("", "A")])
def test_the_first_letter_counts_and_anything_else_is_flagged(text, letter):
    env = begin(flexmg.make("game-relay-v0"))
    env.step(text)
    (turn,) = env.turns
    assert turn.value == letter
    assert bool(turn.fallback) is (text in ("Z", ""))


@pytest.mark.parametrize("name", NAMES)
def test_demonstrations_pay_the_most(name):
    env = flexmg.make(f"game-{name}-v0")
    for problem in range(env.unwrapped.source.size):
        begin(env, problem=problem)
        while not env.unwrapped.finished:
            env.step(env.unwrapped.demonstrate(env.agent_selection))
        assert env.unwrapped.outcome.verdict.correct


def test_payoffs_are_parameters():
    assert played("bandit", "B", arms=[0.5, 0.75]).outcome.verdict.score == 0.75
    table = np.eye(3).tolist()
    assert played("coordination", "CC", payoffs=table).outcome.verdict.correct
    with pytest.raises(InvalidArgument, match="square"):
        flexmg.make("game-coordination-v0", payoffs=[[0, 1], [1, 0], [0, 0]])
    with pytest.raises(InvalidArgument, match=r"in \[0, 1\]"):
        flexmg.make("game-bandit-v0", arms=[0, 2])
    with pytest.raises(InvalidArgument, match="Did you mean 'arms'"):
        flexmg.make("game-bandit-v0", arm=[0, 1])


def test_a_game_has_its_states_and_no_more():
    with pytest.raises(UnknownProblem):
        begin(flexmg.make("game-signalling-v0"), problem=2)
    assert flexmg.make("game-signalling-v0").unwrapped.source.find("game-signalling/1").gold == "B"
