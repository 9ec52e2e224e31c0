"""A record replays without a difference, and every kind of tampering is found."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from scripted import act, begin
from sums import team

import flexmg
from flexmg import Transcript
from flexmg.errors import InvalidArgument, TranscriptError
from flexmg.replay import replay

SCRIPT = {
    "generator_0": ["Answer: 15", "Answer: 14"],
    "evaluator_0": ["Incorrect. Count again.", "Correct."],
}


def game(**options):
    return team("eval-opt", **options)


def recorded(**options):
    return act(begin(game(**options), seed=3), SCRIPT).transcript()


def differences(record, **options):
    return " | ".join(replay(record, game(**options)).differences)


def with_turn(record, position, **fields):
    turns = list(record.turns)
    turns[position] = replace(turns[position], **fields)
    return replace(record, turns=tuple(turns))


def test_a_record_replays():
    record = recorded()
    assert replay(record, game()).transcript == record


def test_a_record_replays_after_json():
    assert differences(Transcript.from_json(recorded().to_json())) == ""


def test_an_unfinished_record_replays():
    record = act(begin(game(), seed=3), SCRIPT, until=1).transcript()
    assert replay(record, game()).ok


def test_a_record_in_another_order_of_play_replays():
    env = begin(team("voting"))
    env.select("voter_2")
    act(env, dict.fromkeys(env.possible_agents, "Answer: 14"))
    assert replay(env.transcript(), team("voting")).ok


@pytest.mark.parametrize("position", range(4))
def test_a_changed_text_is_found(position):
    changed = with_turn(recorded(), position, text=recorded().turns[position].text + " ")
    assert "digest" in differences(changed)


def test_a_text_changed_with_a_forged_digest_is_found_by_what_others_saw():
    forged = with_turn(recorded(), 0, text="Answer: 99").sealed()
    assert "turn 1 of evaluator_0 differs in observation" in differences(forged)


def test_a_forged_answer_is_found_by_grading_it_again():
    forged = with_turn(recorded(), 2, text="Answer: 99").sealed()
    assert "verdict status: recorded 'correct', replayed 'wrong'" in differences(forged)


def test_a_forged_verdict_of_the_evaluator_is_found():
    forged = with_turn(recorded(), 1, value=True)
    assert "turn 1 of evaluator_0 differs in value" in differences(forged)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("fallback", "none"),
        ("observation", "0" * 16),
        ("sees", ("generator_0", "evaluator_0")),
        ("step", 1),
        ("layer", 5),
        ("round", 5),
    ],
)
def test_a_changed_field_of_a_turn_is_found(field, value):
    assert f"differs in {field}" in differences(with_turn(recorded(), 1, **{field: value}))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"rewards": {"generator_0": 0.0, "evaluator_0": 1.0}}, "rewards of generator_0"),
        ({"rewards": {"generator_0": 1.0}}, "rewards: recorded for"),
        ({"step_rewards": (1.0, 1.0)}, "step_rewards of 0"),
        ({"step_rewards": (1.0,)}, "step_rewards: recorded for"),
        ({"truth": {0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0}}, "truth of 0"),
        ({"statement": "What is 1 + 1?"}, "statement"),
        ({"problem_hash": "0" * 16}, "problem_hash"),
        ({"problem": "sums/1"}, "problem_hash"),
        ({"problem": "sums/99"}, "cannot be played"),
        ({"seed": 4}, "digest"),
        ({"answer": "Answer: 15"}, "answer"),
        ({"designated": ("evaluator_0",)}, "designated"),
        ({"fallback": "luck"}, "fallback"),
        ({"infra_error": True}, "infra_error"),
        ({"finished": False}, "finished"),
        ({"verdict": {}}, "verdict"),
        ({"verdict": {**recorded().verdict, "score": 0.5}}, "verdict score"),
        ({"verdict": {**recorded().verdict, "score": "full"}}, "not numbers"),
        ({"order": ("generator_0",) * 4}, "cannot be played"),
        ({"order": ("zoe_0",)}, "more often"),
        ({"order": recorded().order[:2]}, "finished"),
        ({"order": (*recorded().order, "generator_0")}, "more often"),
        ({"turns": recorded().turns[:3]}, "more often"),
        ({"turns": recorded().turns[::-1]}, "cannot be played"),
    ],
)
def test_tampering_is_found(fields, says):
    assert says in differences(replace(recorded(), **fields))


def test_another_reward_is_found():
    assert "rewards" in differences(recorded(), reward={"team": 2.0})


def test_rounding_of_the_last_digit_is_no_difference():
    record = recorded()
    near = {agent: reward + 1e-12 for agent, reward in record.rewards.items()}
    assert differences(replace(record, rewards=near)) == ""


@pytest.mark.parametrize(
    ("env", "kwargs"),
    [
        ("math-nothing-v0", {}),
        ("math-eval-opt-v0", {"cap": "three"}),
        ("math-eval-opt-v0", {"colour": "red"}),
        ("math-eval-opt-v0", {"id": "math-duo-v0"}),
        ("math-eval-opt-v0", {"profiles": {"generator": 5}}),
        ("math-eval-opt-v0", {"source": 5}),
    ],
)
def test_an_environment_that_cannot_be_made_is_a_difference(env, kwargs):
    found = replay(replace(recorded(), env=env, kwargs=kwargs))
    assert not found.ok and "cannot be made" in found.differences[0]


def test_an_environment_is_made_from_its_record():
    env = flexmg.make("math-eval-opt-v0", cap=2, reward={"team": 1.0, "format": 0.5})
    env.reset(seed=1)
    while not env.finished:
        env.step(env.demonstrate(env.agent_selection))
    line = env.transcript().to_json()
    assert json.loads(line)["kwargs"]["cap"] == 2
    assert replay(Transcript.from_json(line)).ok


@pytest.mark.parametrize("written", [Transcript.to_json, lambda r: json.loads(r.to_json())])
def test_a_line_of_a_file_replays(written):
    assert replay(written(recorded()), game()).ok


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (3, InvalidArgument),
        (recorded, InvalidArgument),
        ({}, TranscriptError),
        ({"env": object()}, TranscriptError),
        ("no line", TranscriptError),
    ],
)
def test_what_is_no_record_is_refused(given, error):
    with pytest.raises(error, match="transcript"):
        replay(given)
