"""The record of an episode: JSON and back, hashes, malformed lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import act, begin, row, tabled
from sums import team

from flexmg import Profile, Transcript
from flexmg.errors import TranscriptError
from flexmg.transcript import observation_hash, plain

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40)


def recorded(text="Answer: 14", **options):
    env = begin(team("orch-workers", **options))
    script = {"orchestrator_0": "1. add", "worker_0": text, "synthesizer_0": text}
    return act(env, script).transcript()


@settings(deadline=None)
@given(texts)
def test_json_and_back(text):
    record = recorded(text)
    assert Transcript.from_json(record.to_json()) == record


def test_an_unfinished_episode_to_json_and_back():
    record = begin(team("debate")).transcript()
    assert Transcript.from_json(record.to_json()) == record


@settings(deadline=None)
@given(texts)
def test_a_record_is_one_line_whatever_is_said(text):
    assert recorded(text + "\u2028\x85\r\n").to_json().splitlines() == [
        recorded(text + "\u2028\x85\r\n").to_json()
    ]


def test_keys_of_truth_are_positions_again():
    assert Transcript.from_json(recorded().to_json()).truth == {1: 1.0, 2: 1.0}


LINE = json.loads(recorded().to_json())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 2}, "format 1"),
        ({"colour": "red"}, "unknown fields"),
        ({"seed": "0"}, "'seed' must be of type int"),
        ({"seed": True}, "'seed' must be of type int"),
        ({"order": "abc"}, "'order' must be of type list"),
        ({"order": [1]}, "order"),
        ({"turns": {}}, "'turns'"),
        ({"turns": ["x"]}, "turn 0"),
        ({"turns": [{}]}, "turn 0: the field 'agent' lacks"),
        ({"turns": [{**LINE["turns"][0], "text": None}]}, "turn 0: the field 'text'"),
        ({"turns": [LINE["turns"][0], {**LINE["turns"][0], "sees": [1]}]}, "turn 1: sees"),
        ({"rewards": {"worker_0": "1"}}, "rewards"),
        ({"rewards": {"worker_0": float("nan")}}, "rewards"),
        ({"step_rewards": [None]}, "step_rewards"),
        ({"truth": {"first": 1.0}}, "truth"),
        ({"verdict": None}, "'verdict'"),
        ({"kwargs": []}, "'kwargs'"),
        ({"finished": 1}, "'finished'"),
    ],
)
def test_a_malformed_record_is_refused_with_the_field(change, says):
    with pytest.raises(TranscriptError, match=says):
        Transcript.from_json(json.dumps({**LINE, **change}))


@pytest.mark.parametrize("name", ["env", "seed", "problem", "turns", "order"])
def test_a_missing_field_is_named(name):
    with pytest.raises(TranscriptError, match=f"'{name}' lacks"):
        Transcript.from_json(json.dumps({k: v for k, v in LINE.items() if k != name}))


@pytest.mark.parametrize("line", ["", "{", "[]", "null", "5", "[" * 100_000])
def test_what_is_no_json_object_is_refused(line):
    with pytest.raises(TranscriptError):
        Transcript.from_json(line)


def test_the_observation_hash_keeps_texts_apart():
    def shown(*contents):
        return observation_hash("p", [{"role": "user", "content": c} for c in contents])

    variants = [("ab",), ("a", "b"), ("a\x1fb",), ("a\x1euser\x1fb",), ("", "ab"), ("1:a",)]
    assert len({shown(*v) for v in variants}) == len(variants)


def test_the_observation_hash_tells_roles_apart():
    user, assistant = ({"role": r, "content": "x"} for r in ("user", "assistant"))
    assert observation_hash("p", [user]) != observation_hash("p", [assistant])


def test_the_observation_hash_tells_profiles_apart():
    assert observation_hash("p", []) != observation_hash("q", [])


def test_the_digest_changes_with_any_text():
    rounds = row("a_0", "b_0")
    said = [
        act(begin(tabled(rounds)), {"a_0": a, "b_0": b}).transcript().digest
        for a, b in [("x", "y"), ("x", "z"), ("", "xy"), ("xy", "")]
    ]
    assert len(set(said)) == 4


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": (1, 2.5, None, True)}, {"a": [1, 2.5, None, True]}),
        (Path("a/b.jsonl"), "a/b.jsonl"),
        ({"solver": Profile("t", "f")}, {"solver": {"text": "t", "output_format": "f"}}),
        ({0: "x"}, {"0": "x"}),
    ],
)
def test_keywords_are_recorded_as_json_gives_them_back(value, expected):
    assert plain(value) == expected


def test_a_keyword_that_json_cannot_hold_is_an_error_when_written():
    record = recorded()
    strange = Transcript(**{**record.__dict__, "kwargs": {"domain": object()}})
    with pytest.raises(TranscriptError, match="not plain data"):
        strange.to_json()
