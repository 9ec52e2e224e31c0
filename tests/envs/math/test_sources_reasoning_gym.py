from __future__ import annotations

import json
import math
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flexmg.envs.math.reasoning_gym import GENERATORS, REFUSED, ReasoningGymSource
from flexmg.envs.math.sources import load
from flexmg.errors import InvalidArgument, MissingDependency, ProblemError, UnknownProblem

SHARED = Path(os.environ.get("FLEXMG_SHARED", Path(__file__).parents[4] / "shared"))
CASES = SHARED / "cases" / "rg_cases.jsonl"
SPLITS = ("train", "validation", "test")


@pytest.mark.parametrize("generator", REFUSED)
def test_a_generator_that_cannot_be_graded_is_refused_with_the_reason(generator: str) -> None:
    with pytest.raises(InvalidArgument, match=f"{generator} is refused: {REFUSED[generator]}"):
        load(f"reasoning-gym:{generator}")


def test_a_misspelt_generator_gets_a_suggestion() -> None:
    with pytest.raises(InvalidArgument, match="did you mean 'chain_sum'"):
        load("reasoning-gym:chainsum")


def test_no_generator_is_both_used_and_refused() -> None:
    assert not set(GENERATORS) & set(REFUSED)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(MissingDependency, match=r"pip install 'flexmg\[reasoning-gym\]'"):
        load("reasoning-gym:chain_sum")


def reported() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CASES.read_text().splitlines()] if CASES.is_file() else []


@pytest.mark.skipif(not CASES.is_file(), reason=f"{CASES} is not here; set FLEXMG_SHARED")
@pytest.mark.parametrize(
    "case", [case for case in reported() if "code in the answer" in case["note"]]
)
def test_reported_generators_that_execute_answers_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="is refused"):
        load(f"reasoning-gym:{case['dataset']}")


class TestWithPackage:
    @pytest.fixture(autouse=True)
    def package(self) -> None:
        pytest.importorskip("reasoning_gym", reason="reasoning-gym is not installed")

    @pytest.mark.parametrize("generator", GENERATORS)
    def test_splits_share_no_problem(self, generator: str) -> None:
        contents = [
            {ReasoningGymSource(generator, split).get(index).content_hash for index in range(40)}
            for split in SPLITS
        ]
        assert not contents[0] & contents[1] | contents[0] & contents[2] | contents[1] & contents[2]

    def test_splits_share_no_problem_where_there_are_few(self) -> None:
        name = "products?min_terms=2&max_terms=2&min_digits=1&max_digits=1"
        train, test = (
            {ReasoningGymSource(name, split).get(index).content_hash for index in range(300)}
            for split in ("train", "test")
        )
        assert not train & test

    @pytest.mark.parametrize("generator", GENERATORS)
    def test_every_gold_is_a_number(self, generator: str) -> None:
        source = ReasoningGymSource(generator)
        assert all(math.isfinite(float(source.get(index).gold)) for index in range(40))

    @pytest.mark.parametrize("generator", GENERATORS)
    def test_a_problem_does_not_depend_on_what_was_asked_before(self, generator: str) -> None:
        expected = ReasoningGymSource(generator).get(7)
        source = ReasoningGymSource(generator)
        for index in (3, 11, 0):
            source.get(index)
        random.seed(5)
        assert source.get(7) == expected

    def test_chain_sums_are_right(self) -> None:
        source = ReasoningGymSource("chain_sum")
        for index in range(50):
            problem = source.get(index)
            terms = problem.statement.partition(":")[2].rstrip(" =").split()
            total = int(terms[0]) + sum(
                int(number) * (1 if sign == "+" else -1)
                for sign, number in zip(terms[1::2], terms[2::2], strict=True)
            )
            assert problem.gold == str(total)

    @pytest.mark.full
    def test_problems_do_not_change_with_the_hash_seed(self) -> None:
        code = (
            "from flexmg.envs.math.reasoning_gym import GENERATORS, ReasoningGymSource as S\n"
            "print([S(g).get(2).content_hash for g in GENERATORS])"
        )
        outputs = {
            subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for seed in ("0", "31")
        }
        assert len(outputs) == 1

    def test_settings_in_the_name_reach_the_generator(self) -> None:
        source = load("reasoning-gym:chain_sum?min_terms=2&max_terms=2&max_digits=1&min_digits=1")
        sums = [source.get(index).statement.partition(":")[2] for index in range(20)]
        assert all(re.fullmatch(r" \d [+-] \d =", sum) for sum in sums), sums

    def test_settings_as_keywords_are_the_same_source(self) -> None:
        by_name = load("reasoning-gym:gcd?max_value=9&max_numbers=2")
        by_keyword = load("reasoning-gym:gcd", max_numbers=2, max_value=9)
        assert (by_name.name, by_name.get(5)) == (by_keyword.name, by_keyword.get(5))

    @pytest.mark.parametrize(
        ("query", "message"),
        [
            ("seed=3", "no setting 'seed'.*seed and size are not settings here"),
            ("size=3", "no setting 'size'"),
            ("digits=3", "no setting 'digits'; it has .*max_digits"),
            ("min_terms=9&max_terms=2", "does not accept the settings"),
            ("min_terms=two", "does not accept the settings"),
        ],
    )
    def test_settings_that_make_no_sense_are_refused(self, query: str, message: str) -> None:
        with pytest.raises(InvalidArgument, match=message):
            load(f"reasoning-gym:chain_sum?{query}")

    def test_a_level_is_refused(self) -> None:
        with pytest.raises(InvalidArgument, match="only synthetic"):
            load("reasoning-gym:gcd", level=2)

    def test_find_is_the_inverse_of_get(self) -> None:
        source = ReasoningGymSource("lcm", "validation")
        assert source.find(source.get(13).id) == source.get(13)

    @pytest.mark.parametrize("id", ["lcm-train-3", "lcm-validation-03", "lcm-validation-", "x", ""])
    def test_an_unknown_id_is_refused(self, id: str) -> None:
        with pytest.raises(UnknownProblem, match="its ids are like 'lcm-validation-0'"):
            ReasoningGymSource("lcm", "validation").find(id)

    def test_a_negative_index_is_refused(self) -> None:
        with pytest.raises(UnknownProblem):
            ReasoningGymSource("lcm").get(-1)

    def test_a_generator_with_one_item_has_no_test_split(self) -> None:
        source = "products?min_terms=1&max_terms=1&min_digits=1&max_digits=1"
        kinds = []
        for split in SPLITS:
            try:
                kinds.append(ReasoningGymSource(source, split).get(0).split)
            except ProblemError as error:
                assert "too few different ones" in str(error)
        assert "train" in kinds

    def test_a_limit_makes_it_finite(self) -> None:
        assert load("reasoning-gym:lcm", limit=5).size == 5
