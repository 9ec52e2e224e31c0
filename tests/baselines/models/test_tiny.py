"""The embedded model: standard files, a recipe that runs, accuracies in the stated range."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import flexmg
from flexmg.baselines.evaluation import evaluate
from flexmg.baselines.models.base import load_base
from flexmg.baselines.models.team import Team
from flexmg.baselines.models.tiny import build
from flexmg.baselines.models.tiny.demonstrations import BOXED, Habit, demonstrations
from flexmg.seeding import stream

FAULTLESS = Habit(**dict.fromkeys(asdict(Habit()), 0.0))
MOST_BYTES = 8_000_000


def play(id: str, problems: int, **kwargs: object) -> float:
    kwargs = {"split": "test", "token_limits": 64, **kwargs}
    agents = flexmg.make(id, **kwargs).possible_agents
    team = Team(load_base("tiny"), agents, policy_map="shared", critics=())
    return evaluate(id, kwargs, team, range(problems), (0,)).accuracy


def test_it_loads_as_any_hugging_face_model_does() -> None:
    model = AutoModelForCausalLM.from_pretrained(build.WEIGHTS)
    tokenizer = AutoTokenizer.from_pretrained(build.WEIGHTS)
    assert type(model).__name__ == "Qwen3ForCausalLM"
    assert len(tokenizer) == model.config.vocab_size
    assert 1_000_000 <= sum(p.numel() for p in model.parameters()) <= 3_000_000


def test_its_files_are_small_enough_for_a_repository() -> None:
    assert sum(f.stat().st_size for f in build.WEIGHTS.iterdir()) <= MOST_BYTES


def test_its_tokenizer_loses_nothing() -> None:
    tokenizer = AutoTokenizer.from_pretrained(build.WEIGHTS)
    for text in ("x ≤ 3, café", "12*34=408. \\boxed{408}", "\n\n  tabs\tand spaces  ", "日本"):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_digits_are_tokens_of_their_own() -> None:
    tokenizer = AutoTokenizer.from_pretrained(build.WEIGHTS)
    assert [tokenizer.decode([i]) for i in tokenizer.encode("12345")] == list("12345")


def test_the_recipe_of_the_weights_is_the_committed_one() -> None:
    made = json.loads((build.WEIGHTS / "recipe.json").read_text())
    assert made["recipe"] == asdict(build.Recipe())
    assert made["habit"] == asdict(Habit())


def test_the_recipe_makes_a_model_that_loads(tmp_path: Path) -> None:
    recipe = build.Recipe(
        vocabulary=600,
        tokenizer_episodes=30,
        width=32,
        layers=1,
        heads=2,
        feed_forward=32,
        skill_episodes=20,
        habit_episodes=24,
        pool=10,
    )
    build.build(recipe, Habit(), tmp_path)
    base = load_base(str(tmp_path))
    assert base.tokenizer.chat_template and base.width == 32


def test_the_recipe_is_seeded(tmp_path: Path) -> None:
    recipe = build.Recipe(
        vocabulary=500,
        tokenizer_episodes=12,
        width=32,
        layers=1,
        heads=2,
        feed_forward=32,
        skill_episodes=10,
        habit_episodes=12,
        pool=10,
    )
    weights = []
    for name in ("one", "other"):
        build.build(recipe, Habit(), tmp_path / name)
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
        torch.rand(3)
        np.random.rand(3)
    assert weights[0] == weights[1]


def test_a_faultless_team_demonstrates_right_answers_only() -> None:
    for examples in demonstrations(build.workflows(), range(24), FAULTLESS):
        assert examples
    for examples in demonstrations([("math-single-v0", {})], range(20), FAULTLESS):
        (one,) = examples
        assert BOXED.search(one.reply)[1] == one.reply.rpartition("=")[2].partition(".")[0]


def programs(habit: Habit) -> list[bool]:
    """Which of fifty demonstrated programs are right, by the environment's own verdict."""
    env = flexmg.make("code-single-v0")
    right = []
    for (one,) in demonstrations([("code-single-v0", {})], range(50), habit):
        problem = int(stream("tiny demonstrations", len(right)).integers(2**31))
        env.reset(seed=len(right), options={"problem": problem})
        env.step(one.reply)
        right.append(env.outcome.verdict.correct)
    return right


def test_a_faultless_programmer_writes_right_programs() -> None:
    assert all(programs(FAULTLESS))


def test_a_bug_is_a_wrong_program() -> None:
    assert not any(programs(replace(FAULTLESS, bug=1.0)))


def test_demonstrations_depend_on_their_number_only() -> None:
    whole = list(demonstrations(build.workflows(), range(10, 30), Habit()))
    tail = list(demonstrations(build.workflows(), range(20, 30), Habit()))
    assert [[d.reply for d in e] for e in whole[10:]] == [[d.reply for d in e] for e in tail]


def test_every_role_of_every_workflow_is_demonstrated() -> None:
    shown = {d.agent for e in demonstrations(build.workflows(), range(220), Habit()) for d in e}
    roles = {
        a.rpartition("_")[0]
        for spec in flexmg.registered()
        if spec.id.startswith("math-")
        for a in flexmg.make(spec.id).possible_agents
    }
    assert {a.rpartition("_")[0] for a in shown} == roles


@pytest.mark.parametrize(
    "id",
    ["math-orch-workers-v0", "math-single-v0", "math-voting-v0", "code-duo-v0", "code-debate-v0"],
)
def test_there_is_something_left_to_learn(id: str) -> None:
    # 150 problems: the standard error is 4 points, and the bounds are those of the card's range.
    assert 0.15 <= play(id, 150) <= 0.75
