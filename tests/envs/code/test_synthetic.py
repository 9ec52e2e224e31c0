"""The generated programming problems: right answers from outside, wrong ones noticed."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flexmg
from flexmg.envs.code import grade
from flexmg.envs.code.steps import FAMILIES
from flexmg.envs.code.suite import Suite
from flexmg.envs.code.synthetic import HIDDEN, PUBLIC, STEPS, SyntheticSource
from flexmg.envs.code.values import decode
from flexmg.envs.generated import LEVELS, SPLITS, split_of
from flexmg.errors import InvalidArgument, UnknownProblem

SPLIT = st.sampled_from(tuple(SPLITS))
LEVEL = st.sampled_from(LEVELS)
INDEX = st.integers(0, 2**31)


def run(program, arguments):
    """The program's own answer: the text is executed here, for it is ours."""
    namespace = {}
    exec(program, namespace)
    return namespace["f"](*arguments)


@given(SPLIT, LEVEL, INDEX)
@settings(max_examples=150, deadline=None)
def test_the_reference_gives_what_the_tests_expect(split, level, index):
    """Expected values come from the steps' meanings, not from the program."""
    problem = SyntheticSource(split, level=level).get(index)
    for case in Suite.of(problem).cases:
        arguments = [decode(one) for one in case.input]
        assert run(problem.payload["reference"], arguments) == decode(case.output)


@given(SPLIT, LEVEL, INDEX)
@settings(max_examples=60, deadline=None)
def test_a_problem_is_of_its_own_split(split, level, index):
    assert split_of(SyntheticSource(split, level=level).get(index).statement) == split


@given(LEVEL, INDEX)
@settings(max_examples=60, deadline=None)
def test_every_step_left_out_is_noticed_by_a_hidden_test(level, index):
    problem = SyntheticSource("test", level=level).get(index)
    lines = problem.gold.splitlines()
    assert len(lines) == STEPS[level - 1] + 1
    first = lines[0].partition("(")[2].partition(")")[0].partition(",")[0]
    for place in range(1, len(lines)):
        body = lines[1:]
        if place == 1:
            body[0] = f"    x = {first}"
        elif place == len(lines) - 1:
            body[-1] = "    return x"
        else:
            del body[place - 1]
        wrong = "\n".join([lines[0], *body])
        assert not all(agrees(wrong, case) for case in Suite.of(problem).hidden)


@given(LEVEL, INDEX)
@settings(max_examples=60, deadline=None)
def test_every_number_one_off_is_noticed_by_a_hidden_test(level, index):
    problem = SyntheticSource("test", level=level).get(index)
    signature, *body = problem.gold.splitlines()
    for place, fact in enumerate(problem.facts):
        for number in re.findall(r"\d+", fact):
            for near in (int(number) - 1, int(number) + 1):
                line = re.sub(rf"\b{number}\b", str(near), body[place])
                wrong = "\n".join([signature, *body[:place], line, *body[place + 1 :]])
                assert not all(agrees(wrong, case) for case in Suite.of(problem).hidden)


def agrees(program, case):
    try:
        return run(program, [decode(one) for one in case.input]) == decode(case.output)
    except (TypeError, AttributeError, ValueError, ZeroDivisionError):
        return False


@pytest.mark.parametrize("family", FAMILIES)
def test_the_reference_of_every_family_is_graded_correct(family):
    source = SyntheticSource("test", families=(family,))
    for index in range(5):
        problem = source.get(index)
        assert problem.payload["family"] == family
        assert grade(problem, problem.gold).correct


def test_tests_are_public_and_hidden():
    suite = Suite.of(SyntheticSource().get(0))
    assert (len(suite.public), len(suite.hidden)) == (PUBLIC, HIDDEN)


def test_inputs_of_one_problem_differ():
    for index in range(50):
        suite = Suite.of(SyntheticSource().get(index))
        inputs = [str(case.input) for case in suite.cases]
        assert len(set(inputs)) == len(inputs)


def test_level_one_has_thousands_of_problems():
    source = SyntheticSource()
    assert len({source.get(index).statement for index in range(1000)}) > 850


def test_a_problem_is_the_same_in_every_process():
    here = SyntheticSource("train", level=3).get(12345).statement
    code = (
        "from flexmg.envs.code.synthetic import SyntheticSource as S;"
        "print(S('train', level=3).get(12345).statement)"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert there.stdout.strip() == here


def test_ids_find_their_problems():
    source = SyntheticSource("validation", level=2)
    problem = source.get(7)
    assert problem.id == "code-synthetic-validation-l2-7"
    assert source.find(problem.id) == problem


@pytest.mark.parametrize("id", ["code-synthetic-train-l1-x", "synthetic-train-l1-3", "", "3"])
def test_foreign_ids_are_unknown(id):
    with pytest.raises(UnknownProblem):
        SyntheticSource().find(id)


@pytest.mark.parametrize("wrong", [{"level": 6}, {"families": ("puzzles",)}, {"split": "dev"}])
def test_unknown_settings_are_refused(wrong):
    with pytest.raises(InvalidArgument):
        SyntheticSource(**wrong)


@pytest.mark.parametrize("workflow", ["single", "duo", "quad", "voting", "debate", "router"])
def test_demonstrated_episodes_are_right(workflow):
    env = flexmg.make(f"code-{workflow}-v0", split="test")
    env.reset(seed=3)
    while not env.finished:
        env.step(env.demonstrate(env.agent_selection))
    assert env.outcome.verdict.correct


def test_facts_are_divided_among_agents():
    env = flexmg.make("code-duo-v0", information="split")
    env.reset(seed=5)
    while not env.finished:
        env.step(env.demonstrate(env.agent_selection))
    assert env.outcome.verdict.correct
