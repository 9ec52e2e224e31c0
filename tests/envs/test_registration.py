"""Maths environments by keyword: sources, and what is refused."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest
from scripted import begin

import flexmg
from flexmg.errors import FlexMGError, InvalidArgument, UnknownProblem

ROWS = [{"question": f"What is {k} + {k}?", "answer": str(2 * k)} for k in range(5)]


@pytest.fixture
def rows(tmp_path):
    file = tmp_path / "sums.jsonl"
    file.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    return file


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_a_path_is_a_source(rows, kind):
    env = begin(flexmg.make("math-single-v0", source=kind(rows)), problem=3)
    assert (env.problem.statement, env.problem.gold) == ("What is 3 + 3?", "6")


def test_an_episode_of_a_file_is_graded(rows):
    env = begin(flexmg.make("math-single-v0", source=rows), problem=3)
    env.step(r"3 + 3 is \boxed{6}")
    assert env.outcome.verdict.correct


def test_an_episode_of_a_file_replays_from_json(rows):
    env = begin(flexmg.make("math-single-v0", source=rows), problem=3)
    env.step(r"\boxed{6}")
    record = flexmg.Transcript.from_json(env.transcript().to_json())
    assert flexmg.replay(record).ok


def test_an_index_past_the_end_is_unknown(rows):
    with pytest.raises(UnknownProblem):
        begin(flexmg.make("math-single-v0", source=rows), problem=5)


def test_a_mapping_names_the_fields(tmp_path):
    file = tmp_path / "own.jsonl"
    file.write_text(json.dumps({"task": "1 + 1?", "result": "2"}), encoding="utf-8")
    mapping = {"statement": "task", "gold": "result"}
    env = begin(flexmg.make("math-single-v0", source=file, mapping=mapping))
    assert env.problem.gold == "2"


def test_limit_keeps_the_first_problems(rows):
    assert flexmg.make("math-single-v0", source=rows, limit=2).source.size == 2


def test_the_level_is_that_of_the_problems():
    assert begin(flexmg.make("math-duo-v0", level=4)).problem.level == 4


def test_splits_pose_different_problems():
    statements = {
        begin(flexmg.make("math-duo-v0", split=split)).problem.statement
        for split in ("train", "validation", "test")
    }
    assert len(statements) == 3


def test_families_may_be_chosen():
    env = flexmg.make("math-duo-v0", source_options={"families": ["chain"]})
    assert begin(env).problem.payload["family"] == "chain"


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ({"split": "dev"}, "split='dev'"),
        ({"source": "gsm9k"}, "gsm8k"),
        ({"level": 9}, "level=9"),
        ({"source_options": {"family": "chain"}}, "Did you mean 'families'"),
        ({"source_options": {"level": 2}}, "no keyword 'level'"),
        ({"source_options": 5}, "not a mapping"),
        ({"source_options": {"families": ["poetry"]}}, "'poetry'"),
        ({"reward": "locally"}, "reward='locally'"),
        ({"dependencies": "random"}, "dependencies='random'"),
        ({"render_mode": "text"}, "render_mode='text'"),
        ({"temperature": 1.0}, "no keyword 'temperature'"),
    ],
)
def test_what_cannot_be_is_refused(kwargs, says):
    with pytest.raises(InvalidArgument, match=says):
        flexmg.make("math-duo-v0", **kwargs)


@pytest.mark.parametrize("keyword", ["level", "limit", "on_malformed", "source"])
def test_a_keyword_of_its_own_is_no_setting_of_a_generator(keyword, rows):
    with pytest.raises(FlexMGError, match=keyword):
        flexmg.make("math-duo-v0", source=rows, source_options={keyword: 1})


def test_an_environment_survives_pickling():
    env = begin(flexmg.make("math-orch-workers-v0", n=2))
    env.step("1. a\n2. b")
    assert pickle.loads(pickle.dumps(env)).transcript() == env.transcript()


def test_the_gold_answer_is_shown_to_nobody():
    """Over whole episodes in which nobody writes it."""
    for spec in flexmg.registered():
        if not spec.id.startswith("math-"):  # other tests register games of their own
            continue
        env = flexmg.make(spec.id, level=5)
        candidates = map(env.source.get, range(50))
        telling = next(p for p in candidates if len(p.gold) >= 3 and p.gold not in p.statement)
        begin(env, problem=telling.index)
        gold = telling.gold
        while not env.finished:
            assert gold not in str(env.observe(env.agent_selection)["messages"])
            env.step("CALL: analyst_0 -> solver_0 -> critic_0")


def test_names_that_users_rely_on_need_no_import_of_their_own():
    program = (
        "import sys, flexmg; "
        "assert not {'flexmg.testing', 'flexmg.wrappers', 'flexmg.envs.math'} & set(sys.modules); "
        "assert flexmg.envs.math.grade('1/2', 'It is 0.5.').status == 'correct'; "
        "flexmg.testing.check_env, flexmg.wrappers.TokenLevel, flexmg.envs.workflows.WORKFLOWS; "
        "assert not hasattr(flexmg, 'tasting') and not hasattr(flexmg.envs, 'maths')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
