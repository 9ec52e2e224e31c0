"""The reported cases under FLEXMG_SHARED, each with the verdict that it deserves."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from flexmg.envs.math import grade

ROOT = Path(__file__).resolve().parents[3]
CASES = Path(os.environ.get("FLEXMG_SHARED", ROOT.parent / "shared")) / "cases"
# What these generators ask is a number or a word, which the grader compares by itself.
COMPARED = {
    "gcd", "lcm", "basic_arithmetic", "syllogism", "course_schedule", "count_primes", "chain_sum",
    "gsm_symbolic", "prime_factorization", "game_of_life_halting", "number_sorting",
    "fraction_simplification", "complex_arithmetic", "string_insertion", "intermediate_integration",
}  # fmt: skip
FAULTY_GOLD = {"r21"}  # the generator's own gold answer is wrong


def rows(name: str) -> list[dict]:
    path = CASES / name
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def replies(case: dict) -> list[str]:
    if case.get("form") == "response":
        return [case["answer"]]
    return [f"Thus \\boxed{{{case['answer']}}}", case["answer"]]


def test_the_case_files_are_there() -> None:
    if not (CASES / "math_cases.jsonl").exists():
        pytest.skip(f"no case files under {CASES}: set FLEXMG_SHARED")
    assert len(rows("math_cases.jsonl")) == 80


@pytest.mark.parametrize("case", rows("math_cases.jsonl"), ids=lambda case: case["id"])
def test_reported_case(case: dict) -> None:
    for reply in replies(case):
        assert grade(case["gold"], reply).correct == case["expected"], reply


@pytest.mark.parametrize(
    "case",
    [c for c in rows("rg_cases.jsonl") if c["dataset"] in COMPARED and c["id"] not in FAULTY_GOLD],
    ids=lambda case: case["id"],
)
def test_reasoning_gym_reply(case: dict) -> None:
    for reply in replies(case):
        assert grade(case["gold"], reply).correct == case["expected"], reply
