"""Synthetic problems: solved again from their words, by a reader that shares no code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmg.envs.generated import LEVELS, SPLITS, split_of
from flexmg.envs.math.synthetic import FAMILIES, SyntheticSource
from flexmg.errors import InvalidArgument, UnknownProblem

EQUATION = re.compile(r"(\d+)([-+*])(\d+)=(\d+)")
BUYS = re.compile(r"(\w+) buys (\d+) \w+ at (\d+) coins each\.")
FILLS = re.compile(r"(\w+) fills (\d+) baskets with (\d+) \w+ each\.")
PICKS = re.compile(r"Every day \w+ picks (.+?)\.")
DAYS = re.compile(r"\w+ does this for (\d+) days\.")
HAS = re.compile(r"(\w+) has (\d+) \w+\.")
MORE = re.compile(r"(\w+) has (\d+) more than (\w+)\.")
TIMES = re.compile(r"(\w+) has (\d+) times as many as (\w+)\.")
ASKS_MORE = re.compile(r"How many more \w+ does (\w+) have than (\w+)\?")
ASKS_HAVE = re.compile(r"How many \w+ does (\w+) have\?")


def solve(statement: str) -> int:
    """What the statement asks for, worked out from its words alone."""
    bought = sum(int(k) * int(price) for _, k, price in BUYS.findall(statement))
    if asked := ASKS_MORE.search(statement):
        heaps = dict.fromkeys(asked.groups(), 0)
        for owner, k, each in FILLS.findall(statement):
            heaps[owner] += int(k) * int(each)
        return heaps[asked[1]] - heaps[asked[2]]
    if days := DAYS.search(statement):
        daily = sum(int(n) for part in PICKS.findall(statement) for n in re.findall(r"\d+", part))
        return daily * int(days[1])
    if statement.endswith("pay in all?"):
        return bought
    if statement.endswith("have left?"):
        (purse,) = HAS.findall(statement)
        return int(purse[1]) - bought
    have = {name: int(n) for name, n in HAS.findall(statement)}
    for name, n, other in MORE.findall(statement):
        have[name] = have[other] + int(n)
    for name, n, other in TIMES.findall(statement):
        have[name] = have[other] * int(n)
    return have[ASKS_HAVE.search(statement)[1]]


def problems(number=150, split="train", level=1, **options):
    source = SyntheticSource(split, level=level, **options)
    return [source.get(index) for index in range(number)]


EVERY = [p for level in LEVELS for p in problems(level=level)]


def test_the_gold_answer_is_what_the_words_ask_for():
    assert [int(p.gold) for p in EVERY] == [solve(p.statement) for p in EVERY]


def test_every_equation_holds():
    operations = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
    for problem in EVERY:
        for step in problem.payload["solution"]["steps"]:
            assert EQUATION.sub("", step).replace(", ", "") == ""
            for a, operation, b, result in EQUATION.findall(step):
                assert operations[operation](int(a), int(b)) == int(result)


def test_the_last_equation_yields_the_gold():
    for problem in EVERY:
        last = EQUATION.findall(problem.payload["solution"]["steps"][-1])[-1]
        assert last[3] == problem.gold


def test_every_number_worked_with_is_given_or_was_worked_out():
    for problem in EVERY:
        known = set(re.findall(r"\d+", problem.statement))
        for a, _, b, result in EQUATION.findall(" ".join(problem.payload["solution"]["steps"])):
            assert {a, b} <= known
            known.add(result)


def test_the_plan_has_one_line_per_step():
    for problem in EVERY:
        solution = problem.payload["solution"]
        assert len(solution["plan"]) == len(solution["steps"])


def test_a_step_does_what_its_line_says():
    signs = {"multiply": "*", "add": "+", "subtract": "-"}
    for problem in EVERY:
        solution = problem.payload["solution"]
        for line, step in zip(solution["plan"], solution["steps"], strict=True):
            assert {sign for _, sign, _, _ in EQUATION.findall(step)} == {signs[line.split()[0]]}


def test_answers_are_positive_whole_numbers():
    assert all(p.gold.isdecimal() and int(p.gold) > 0 for p in EVERY)


def test_the_boxed_answer_is_the_gold():
    assert all(p.payload["solution"]["answer"] == rf"\boxed{{{p.gold}}}" for p in EVERY)


def test_the_statement_is_facts_then_question():
    assert all(" ".join([*p.facts, p.question]) == p.statement for p in EVERY)


def test_the_question_holds_no_number():
    assert not any(re.search(r"\d", p.question) for p in EVERY)


def test_no_fact_stands_within_another():
    """Else one could not tell whether a fact has been said."""
    for problem in [*EVERY, *problems(2000, level=2, families=("comparison",))]:
        for one, other in permutations(problem.facts, 2):
            assert one not in other


def test_facts_are_short_sentences():
    assert all(len(f) <= 60 and f.endswith(".") for p in EVERY for f in p.facts)


class TestLevels:
    def parts(self, level):
        return [len(p.facts) for p in problems(400, level=level)]

    def test_the_number_of_facts_grows(self):
        means = [sum(self.parts(level)) / 400 for level in LEVELS]
        assert means == sorted(means) and means[4] > means[0] + 2

    def test_the_answers_grow(self):
        means = [sum(int(p.gold) for p in problems(400, level=level)) for level in LEVELS]
        assert means == sorted(means)

    def test_level_1_has_one_digit_numbers_but_for_purses(self):
        found = [
            n
            for p in problems(400)
            for f in p.facts
            if not re.search(r"has \d+ coins", f)
            for n in re.findall(r"\d+", f)
        ]
        assert max(map(len, found)) == 1

    def test_level_1_has_two_or_three_facts(self):
        assert set(self.parts(1)) == {2, 3}

    @pytest.mark.parametrize("level", [0, 6, "hard", None, 1.5])
    def test_another_level_is_refused(self, level):
        with pytest.raises(InvalidArgument, match="level="):
            SyntheticSource(level=level)


class TestFamilies:
    def test_there_are_several(self):
        assert {p.payload["family"] for p in problems()} == set(FAMILIES)

    def test_one_may_be_chosen(self):
        assert {p.payload["family"] for p in problems(families=("chain",))} == {"chain"}

    def test_chosen_families_have_ids_of_their_own(self):
        assert problems(1, families=("chain",))[0].id != problems(1)[0].id

    def test_another_family_is_refused(self):
        with pytest.raises(InvalidArgument, match="'poetry'"):
            SyntheticSource(families=("poetry",))


class TestSplits:
    def test_splits_share_no_problem_over_20000_draws(self):
        drawn = {
            split: {p.content_hash for p in problems(20_000 // len(SPLITS), split)}
            for split in SPLITS
        }
        train, validation, test = drawn["train"], drawn["validation"], drawn["test"]
        assert not (train & validation or train & test or validation & test)

    @pytest.mark.parametrize("level", LEVELS)
    @pytest.mark.parametrize("split", SPLITS)
    def test_a_problem_belongs_to_its_split(self, split, level):
        assert {split_of(p.statement) for p in problems(100, split, level)} == {split}

    def test_choosing_families_does_not_leak_into_another_split(self):
        chosen = {p.content_hash for p in problems(2000, "test", families=("change",))}
        assert not chosen & {p.content_hash for p in problems(5000, "train")}

    def test_another_split_is_refused(self):
        with pytest.raises(InvalidArgument, match="split='dev'"):
            SyntheticSource("dev")


class TestIdentity:
    @settings(deadline=None)
    @given(st.integers(0, 2**63), st.sampled_from(LEVELS), st.sampled_from(sorted(SPLITS)))
    def test_a_problem_is_found_by_its_id(self, index, level, split):
        source = SyntheticSource(split, level=level)
        problem = source.get(index)
        assert source.find(problem.id) == problem

    def test_ids_are_of_one_split_and_level(self):
        ids = {problems(1, split, level)[0].id for split, level in product(SPLITS, LEVELS)}
        assert len(ids) == len(SPLITS) * len(LEVELS)

    @pytest.mark.parametrize(
        "id",
        [
            "",
            "5",
            "synthetic-train-l1-",
            "synthetic-train-l1-05",
            "synthetic-train-l1-²",
            "synthetic-test-l1-5",
            "synthetic-train-l2-5",
            "synthetic-train-l1--5",
            "x" * 5000,
        ],
    )
    def test_other_ids_are_refused(self, id):
        with pytest.raises(UnknownProblem, match="synthetic-train-l1-<number>"):
            SyntheticSource("train").find(id)

    def test_a_negative_index_is_refused(self):
        with pytest.raises(UnknownProblem, match="-1"):
            SyntheticSource().get(-1)

    def test_it_has_no_end(self):
        assert SyntheticSource().size is None

    def test_neighbouring_indices_rarely_share_a_problem(self):
        assert len({p.statement for p in problems(500, level=3)}) > 490

    def test_problems_are_equal_in_another_process_with_other_hashes(self):
        code = (
            "from flexmg.envs.math.synthetic import SyntheticSource as S;"
            "print([S('test', level=3).get(k).statement for k in range(5)])"
        )
        printed = {
            subprocess.run(
                [sys.executable, "-c", code],
                env=os.environ | {"PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for seed in ("1", "2")
        }
        assert printed == {f"{[p.statement for p in problems(5, 'test', 3)]}\n"}
