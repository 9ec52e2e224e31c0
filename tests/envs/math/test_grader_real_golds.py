"""The gold answers of the real files: against themselves, one another and rewrites."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gold_rewrites import near_misses, right

from flexmg.envs.math import grade, is_equivalent

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("FLEXMG_SHARED", ROOT.parent / "shared")) / "data"


def lines(name: str) -> list[dict]:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"no {path}: set FLEXMG_SHARED to the folder that holds data/")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def minerva_gold(solution: str) -> str:
    """The content of the last box of a worked solution."""
    start = solution.rindex("\\boxed{") + len("\\boxed{")
    depth, end = 1, start
    while depth:
        depth += {"{": 1, "}": -1}.get(solution[end], 0)
        end += 1
    return solution[start : end - 1]


def deepscaler(name: str) -> list[str]:
    path = DATA / "deepscaler" / name
    if not path.exists():
        pytest.skip(f"no {path}: set FLEXMG_SHARED to the folder that holds data/")
    if path.suffix == ".parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
        return [row["reward_model"]["ground_truth"] for row in table]
    return [row["answer"] for row in json.loads(path.read_text(encoding="utf-8"))]


READERS: dict[str, Callable[[], list[str]]] = {
    "gsm8k": lambda: [r["answer"].split("####")[1].strip() for r in lines("gsm8k/test.jsonl")],
    "math500": lambda: [row["answer"] for row in lines("math500/test.jsonl")],
    "aime24": lambda: [row["expected_answer"] for row in lines("aime24/test.jsonl")],
    "aime24 (second copy)": lambda: [str(r["answer"]) for r in lines("aime24/test.qwen.jsonl")],
    "aime25": lambda: [row["expected_answer"] for row in lines("aime25/test.jsonl")],
    "amc23": lambda: [str(row["answer"]) for row in lines("amc23/test.jsonl")],
    "olympiadbench": lambda: [
        "; ".join(row["final_answer"]) for row in lines("olympiadbench/test.jsonl")
    ],
    "minerva": lambda: [minerva_gold(r["solution"]) for r in lines("minerva_math/test.jsonl")],
    "deepscaler": lambda: deepscaler("dsr_sub.parquet"),
    "deepscaler aime": lambda: deepscaler("train_aime.json"),
    "deepscaler math": lambda: deepscaler("train_math.json"),
}


def golds(name: str) -> list[str]:
    # Two rows of the MATH pool have no answer at all.
    return [gold for gold in READERS[name]() if gold and gold.strip()]


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "wrapper", ["We get\n\\boxed{@}", "After some work, the answer is @.", "The answer is $@$."]
)
def test_a_gold_answer_is_right_by_itself(name: str, wrapper: str) -> None:
    found = golds(name)
    if "$@$" in wrapper:
        found = [gold for gold in found if "$" not in gold]
    missed = [g for g in found if not grade(g, wrapper.replace("@", g)).correct]
    assert len(missed) <= 0.005 * len(found), missed


# Golds in two notations, by the documented policies: a missing unit, x = 5, bare lists.
SPELLINGS = {
    "10,\\!080": "10080",
    "\\frac14": "\\frac{1}{4}",
    "2 \\sqrt{5}": "2\\sqrt{5}",
    "1,-2": "-2,1",
    "15\\mbox{ cm}^2": "15",
    "x=5": "5",
    "\\$36": "36",
}


def reading(gold: str) -> str:
    return SPELLINGS.get(gold, gold.removesuffix("^\\circ"))


@pytest.mark.full
def test_different_golds_of_math500_that_grade_as_equal_are_equivalent() -> None:
    distinct = sorted(set(golds("math500")))
    equal = [(g, a) for g in distinct for a in distinct if g != a and is_equivalent(g, a)]
    assert len(distinct) * (len(distinct) - 1) == 90_300
    print("\n".join(f"{g}  =  {a}" for g, a in equal))
    assert [(g, a) for g, a in equal if reading(g) != reading(a)] == []


@pytest.mark.full
@pytest.mark.parametrize("name", ["gsm8k", "aime24", "aime25", "amc23", "minerva"])
def test_different_golds_of_numbers_are_equal_only_by_value(name: str) -> None:
    distinct = sorted(set(golds(name)))
    for g in distinct:
        for a in distinct:
            if g != a and is_equivalent(g, a):
                assert float(g.replace(",", "")) == float(a.replace(",", "")), (g, a)


def rates(
    rewrites: Callable[[str], Iterator[tuple[str, str]]], wanted: bool
) -> tuple[float, dict[str, str], list[tuple[str, str, str]]]:
    total: Counter[str] = Counter()
    good: Counter[str] = Counter()
    failed = []
    for gold in golds("math500"):
        for kind, reply in rewrites(gold):
            total[kind] += 1
            if grade(gold, reply).correct == wanted:
                good[kind] += 1
            else:
                failed.append((kind, gold, reply))
    table = {kind: f"{good[kind]}/{total[kind]}" for kind in total}
    return good.total() / total.total(), table, failed


@pytest.mark.parametrize(("rewrites", "wanted"), [(right, True), (near_misses, False)])
def test_rewrites_of_math500_golds(
    rewrites: Callable[[str], Iterator[tuple[str, str]]], wanted: bool
) -> None:
    share, table, failed = rates(rewrites, wanted)
    print(table)
    assert share >= 0.99, failed[:20]
