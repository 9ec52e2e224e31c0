"""Reference solutions of real data sets pass their own tests; known wrong ones do not."""

from __future__ import annotations

import json

import pytest

from flexmg.envs.code import grade
from flexmg.envs.code.sources import load
from flexmg.envs.sources import problems


def failures(source, indices=None):
    chosen = problems(source) if indices is None else map(source.get, indices)
    verdicts = {p.id: grade(p, p.payload["reference"]) for p in chosen}
    return {id: v.detail for id, v in verdicts.items() if not v.correct or "weak" in v.detail}


@pytest.mark.parametrize(
    "name", ["humaneval/HumanEval.jsonl.gz", "mbpp/mbpp.jsonl", "mbpp/sanitized-mbpp.json"]
)
def test_a_sample_of_references_is_right(shared, name):
    source = load(shared / "data" / name)
    assert not failures(source, range(0, source.size, source.size // 30))


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("humaneval/HumanEval.jsonl.gz", 164),
        ("mbpp/mbpp.jsonl", 974),
        ("mbpp/sanitized-mbpp.json", 427),
    ],
)
def test_every_reference_is_right_and_none_is_judged_weakly(shared, name, count):
    source = load(shared / "data" / name)
    assert source.size == count
    assert not failures(source)


def apps(shared, name):
    """(problem, program) of each program in one of the files of the APPS sample."""
    source = load(shared / "data/apps/train")
    for problem in problems(source):
        folder = shared / "data/apps/train" / problem.id.removeprefix("apps-")
        for row in json.loads((folder / name).read_text()):
            yield problem, row


def test_apps_solutions_are_right(shared):
    wrong = {}
    for problem, program in apps(shared, "solutions.json"):
        verdict = grade(problem, program)
        if not verdict.correct:
            wrong.setdefault(problem.id, []).append(verdict.detail)
    # Three of problem 2287's return at top level: no programs, as they were scraped.
    assert {id: len(details) for id, details in wrong.items()} == {"apps-2287": 3}, wrong


def test_apps_programs_known_to_fail_do(shared):
    """``result`` is whether the program passed in APPS' own runs."""
    passed = [
        (problem.id, row["code"])
        for problem, row in apps(shared, "gen_solutions.json")
        if row["result"] is not True and grade(problem, row["code"]).correct
    ]
    assert not passed
