"""Real reported failures of code graders, with the right verdict; see the shared cases."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest

from flexmg.envs.code import Limits, extract, grade
from flexmg.envs.code.checkers import accepted
from flexmg.envs.code.output import difference
from flexmg.envs.code.sandbox import shared_pool
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.code.values import equal
from flexmg.problem import Problem

SHARED = Path(os.environ.get("FLEXMG_SHARED", Path(__file__).parents[3] / ".." / "shared"))
FILE = SHARED / "cases" / "code_cases.jsonl"
ROWS = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []

pytestmark = pytest.mark.skipif(not ROWS, reason="set FLEXMG_SHARED to the shared folder")
# What the case file calls how a run ended, and the verdicts that say so.
STATUSES = {"timeout": "timeout", "runtime_error": "crash", "memory_limit": "crash"}
FLAGS = {"ignore_case": "any_case", "unordered": "any_order"}


def of_kind(kind):
    return [pytest.param(row, id=row["id"]) for row in ROWS if row["kind"] == kind]


def problem(suite):
    return Problem("case", "Do it.", "tests", payload={"tests": suite.payload()})


@pytest.mark.parametrize("row", of_kind("stdout"))
def test_outputs(row):
    output = row["answer"].encode()
    if row.get("flag") == "checker":
        pool = shared_pool("strict", "referees")
        got, _ = accepted(row["checker"], row["stdin"], output, row["gold"], pool)
    else:
        flags = {FLAGS[row["flag"]]: True} if "flag" in row else {}
        got = not difference(row["gold"], output, tolerance=row.get("tolerance", 1e-6), **flags)
    assert got is row["expected"]


@pytest.mark.parametrize("row", of_kind("value"))
def test_values(row):
    got = equal(
        ast.literal_eval(row["gold"]),
        ast.literal_eval(row["answer"]),
        exact=row.get("flag") != "tuple_ok",
        any_order=row.get("flag") == "unordered",
        tolerance=row.get("tolerance"),
    )
    assert got is row["expected"]


@pytest.mark.parametrize("row", of_kind("program"))
def test_programs(row):
    limits = Limits(cpu_s=row.get("limit_s", 5))
    suite = Suite("stdin", hidden=(Case(row["stdin"], row["gold"]),), limits=limits)
    verdict = grade(problem(suite), row["answer"])
    assert verdict.correct is row["expected"]
    if "status" in row:
        assert verdict.status == STATUSES[row["status"]]


@pytest.mark.parametrize("row", of_kind("tests"))
def test_test_code(row):
    suite = Suite(
        "asserts",
        hidden=(Case(row["gold"]),),
        prelude=row.get("prelude", ""),
        setup=row.get("setup", ""),
    )
    assert grade(problem(suite), row["answer"]).correct is row["expected"]


@pytest.mark.parametrize("row", of_kind("extract"))
def test_extraction(row):
    found = extract(row["answer"])
    if row["gold"]:
        assert found is not None and found.program.strip() == row["gold"].strip()
    else:
        assert found is None
