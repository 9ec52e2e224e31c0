"""The real files, when they are at hand: row counts, golds, and the known leaks between them."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from flexmg.envs.math.sources import load
from flexmg.envs.sources import RowSource, check_disjoint, overlap, problems
from flexmg.errors import MalformedProblem, ProblemError
from flexmg.problem import Problem

SHARED = Path(os.environ.get("FLEXMG_SHARED", Path(__file__).parents[4] / "shared"))
DATA = SHARED / "data"
FILES = (
    "gsm8k/test.jsonl",
    "gsm8k/train_first2000.jsonl",
    "math500/test.jsonl",
    "aime24/test.jsonl",
    "aime24/test.qwen.jsonl",
    "aime25/test.jsonl",
    "amc23/test.jsonl",
    "olympiadbench/test.jsonl",
    "minerva_math/test.jsonl",
    "deepscaler/dsr_sub.parquet",
    "deepscaler/train_aime.json",
    "deepscaler/train_math.json",
)
# Rows of the real files whose answer is null or empty, found with a plain JSON reader.
WITHOUT_GOLD = {"deepscaler/dsr_sub.parquet": 1, "deepscaler/train_math.json": 4}
TRAIN = ("gsm8k/train_first2000.jsonl", *(name for name in FILES if name.startswith("deepscaler")))
TEST = tuple(name for name in FILES if name not in TRAIN)
LEAKS = {
    ("deepscaler/train_aime.json", "math500/test.jsonl"): 6,
    ("deepscaler/dsr_sub.parquet", "olympiadbench/test.jsonl"): 1,
}

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no real data in {DATA}; set FLEXMG_SHARED"
)

_loaded: dict[str, RowSource] = {}


def real(name: str) -> RowSource:
    if name not in _loaded:
        path = DATA / name
        if not path.is_file():
            pytest.skip(f"{path} is not here")
        if name.endswith("parquet"):
            pytest.importorskip("pyarrow")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source = load(path, on_malformed="skip")
        assert isinstance(source, RowSource)
        _loaded[name] = source
    return _loaded[name]


def stated_rows(name: str) -> int:
    """The number of rows that the table beside the files states."""
    table = (DATA / "SOURCES.md").read_text()
    counts = [
        next(int(cell) for cell in reversed(cells) if cell.isdecimal())
        for cells in (re.split(r"\s*\|\s*", line) for line in table.splitlines())
        if name in cells
    ]
    assert len(counts) == 1
    return counts[0]


@pytest.mark.parametrize("name", FILES)
def test_every_row_is_loaded_or_counted_as_skipped(name: str) -> None:
    source = real(name)
    assert source.size + len(source.skipped) == stated_rows(name)


@pytest.mark.parametrize("name", FILES)
def test_only_rows_without_a_gold_are_skipped(name: str) -> None:
    assert len(real(name).skipped) == WITHOUT_GOLD.get(name, 0)


@pytest.mark.parametrize("name", [name for name in FILES if name not in WITHOUT_GOLD])
def test_whole_files_load_without_being_asked_to_skip(name: str) -> None:
    assert load(DATA / name).size == real(name).size


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("deepscaler/dsr_sub.parquet", "row 266: field 'reward_model.ground_truth' holds no"),
        ("deepscaler/train_math.json", "line 5318: field 'answer' is null"),
    ],
)
def test_a_real_row_without_a_gold_is_named(name: str, place: str) -> None:
    real(name)
    with pytest.raises(MalformedProblem, match=re.escape(place)):
        load(DATA / name)


@pytest.mark.parametrize("name", FILES)
def test_ids_are_unique_and_find_their_problem(name: str) -> None:
    source = real(name)
    found = [source.find(problem.id).index for problem in problems(source)]
    assert found == list(range(source.size))


@pytest.mark.parametrize("name", FILES)
def test_no_instruction_is_left_in_a_statement(name: str) -> None:
    words = ("output the final answer within", "step by step and", "The last line of your")
    assert not [p.id for p in problems(real(name)) if any(word in p.statement for word in words)]


@pytest.mark.parametrize("name", ["aime24/test.jsonl", "aime24/test.qwen.jsonl"])
def test_aime_golds_are_integers_from_0_to_999(name: str) -> None:
    golds = [problem.gold for problem in problems(real(name))]
    assert [gold for gold in golds if gold != str(int(gold)) or not 0 <= int(gold) <= 999] == []


def test_two_copies_of_aime24_have_the_same_golds() -> None:
    one, other = real("aime24/test.jsonl"), real("aime24/test.qwen.jsonl")
    golds = [sorted(problem.gold for problem in problems(copy)) for copy in (one, other)]
    assert golds[0] == golds[1]


def test_amc_golds_are_whole_numbers() -> None:
    assert all(
        re.fullmatch(r"-?\d+", problem.gold) for problem in problems(real("amc23/test.jsonl"))
    )


def test_gsm8k_golds_are_the_numbers_behind_the_hashes() -> None:
    lines = (DATA / "gsm8k/test.jsonl").read_text().splitlines()
    expected = [json.loads(line)["answer"].split("#### ")[1].replace(",", "") for line in lines]
    assert [problem.gold for problem in problems(real("gsm8k/test.jsonl"))] == expected


def test_minerva_golds_stand_in_their_solutions() -> None:
    lines = (DATA / "minerva_math/test.jsonl").read_text().splitlines()
    solutions = ["".join(json.loads(line)["solution"].split()) for line in lines]
    for problem in problems(real("minerva_math/test.jsonl")):
        assert "\\boxed{" + "".join(problem.gold.split()) + "}" in solutions[problem.index]


def test_math500_levels_are_read() -> None:
    assert {problem.level for problem in problems(real("math500/test.jsonl"))} == {1, 2, 3, 4, 5}


class Joined:
    """The problems of several files; ids are prefixed with the file's name."""

    name, split = "joined", "test"

    def __init__(self, names: Sequence[str]) -> None:
        self._problems = [
            dataclasses.replace(problem, id=f"{name} {problem.id}")
            for name in names
            for problem in problems(real(name))
        ]

    @property
    def size(self) -> int:
        return len(self._problems)

    def get(self, index: int) -> Problem:
        return self._problems[index]

    def find(self, id: str) -> Problem:
        return next(problem for problem in self._problems if problem.id == id)


@pytest.mark.parametrize("train", TRAIN)
def test_train_and_test_share_only_the_known_leaks(train: str) -> None:
    shared = Counter(id.partition(" ")[0] for _, id in overlap(real(train), Joined(TEST)))
    assert shared == {test: count for (leaking, test), count in LEAKS.items() if leaking == train}


@pytest.mark.parametrize(("train", "test"), LEAKS)
def test_a_known_leak_is_refused(train: str, test: str) -> None:
    with pytest.raises(ProblemError, match="share"):
        check_disjoint(real(train), real(test))


def test_the_copies_of_aime24_are_found_to_be_copies() -> None:
    shared = overlap(real("aime24/test.jsonl"), real("aime24/test.qwen.jsonl"))
    assert len(shared) >= 23
