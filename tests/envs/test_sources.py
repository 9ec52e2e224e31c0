from __future__ import annotations

import hashlib
import json
import pickle
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmg.envs.rows import Row, RowError, open_rows
from flexmg.envs.sources import (
    FirstProblems,
    ParsedRow,
    RowSource,
    check_disjoint,
    overlap,
    overlap_key,
    problems,
)
from flexmg.errors import InvalidArgument, MalformedProblem, ProblemError, UnknownProblem
from flexmg.problem import Problem, ProblemSource


def parse(row: Row) -> ParsedRow:
    if "q" not in row:
        raise RowError("is missing", "q")
    return ParsedRow(row["q"], row.get("a", "0"), row.get("id"), row.get("level"))


def source(folder: Path, rows: Iterable[Any], name: str = "rows", **settings: Any) -> RowSource:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return RowSource(open_rows(path), parse, name=name, split="test", stem=name, **settings)


def ask(*statements: str) -> list[dict[str, str]]:
    return [{"q": statement} for statement in statements]


class Unlimited:
    name, split, size = "counting", "train", None

    def get(self, index: int) -> Problem:
        return Problem(id=f"counting-{index}", statement=f"Count to {index}.", gold=str(index))

    def find(self, id: str) -> Problem:
        return self.get(int(id.rpartition("-")[2]))


def test_problems_keep_the_order_of_the_rows(tmp_path: Path) -> None:
    assert [p.statement for p in problems(source(tmp_path, ask("x", "y", "z")))] == ["x", "y", "z"]


def test_a_problem_says_where_it_comes_from(tmp_path: Path) -> None:
    rows = [{"q": "x"}, {"q": "y", "a": "7", "level": 3}]
    assert source(tmp_path, rows).get(1) == Problem(
        id="rows-1", statement="y", gold="7", source="rows", split="test", index=1, level=3
    )


def test_a_source_is_a_problem_source(tmp_path: Path) -> None:
    assert isinstance(source(tmp_path, ask("x")), ProblemSource)


def test_a_row_keeps_its_own_id(tmp_path: Path) -> None:
    assert source(tmp_path, [{"q": "x", "id": "algebra/7.json"}]).get(0).id == "algebra/7.json"


def test_a_bare_number_for_an_id_is_told_apart_by_the_stem(tmp_path: Path) -> None:
    assert source(tmp_path, [{"q": "x", "id": "60"}]).get(0).id == "rows-60"


@given(st.integers(0, 4))
def test_find_is_the_inverse_of_get(tmp_path_factory: pytest.TempPathFactory, index: int) -> None:
    made = source(tmp_path_factory.mktemp("s"), ask(*"abcde"))
    assert made.find(made.get(index).id) == made.get(index)


def test_an_unknown_id_is_refused_with_an_example(tmp_path: Path) -> None:
    with pytest.raises(UnknownProblem, match="'rows-9'; its ids are like 'rows-0'"):
        source(tmp_path, ask("x")).find("rows-9")


@pytest.mark.parametrize("index", [-1, 2, 10**30])
def test_an_index_out_of_range_is_refused(tmp_path: Path, index: int) -> None:
    with pytest.raises(UnknownProblem, match=f"problem number {index}: it has 2, counted from 0"):
        source(tmp_path, ask("x", "y")).get(index)


def test_an_index_may_be_a_numpy_integer(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    assert source(tmp_path, ask("x", "y")).get(numpy.int64(1)).index == 1


def test_a_malformed_row_is_raised_with_file_line_and_field(tmp_path: Path) -> None:
    with pytest.raises(MalformedProblem, match=r"rows\.jsonl, line 2: field 'q' is missing"):
        source(tmp_path, [{"q": "x"}, {"w": "y"}])


def test_two_rows_with_one_id_are_malformed(tmp_path: Path) -> None:
    rows = [{"q": "x", "id": "p"}, {"q": "y"}, {"q": "z", "id": "p"}]
    with pytest.raises(MalformedProblem, match=r"line 3: the id 'p' is already taken by .*line 1"):
        source(tmp_path, rows)


@pytest.fixture
def skipping(tmp_path: Path) -> RowSource:
    rows = [{"q": "x"}, {"w": "y"}, 7, {"q": "z"}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return source(tmp_path, rows, on_malformed="skip")


def test_malformed_rows_are_left_out_when_asked(skipping: RowSource) -> None:
    assert [problem.statement for problem in problems(skipping)] == ["x", "z"]


def test_skipped_rows_leave_no_gap_in_the_indices(skipping: RowSource) -> None:
    assert [problem.index for problem in problems(skipping)] == [0, 1]


def test_skipped_rows_do_not_shift_the_ids(skipping: RowSource) -> None:
    assert [problem.id for problem in problems(skipping)] == ["rows-0", "rows-3"]


def test_skipped_rows_are_counted(skipping: RowSource) -> None:
    assert [message.partition("line ")[2] for message in skipping.skipped] == [
        "2: field 'q' is missing",
        "3: the row is not a JSON object with fields, but a int",
    ]


def test_skipping_warns_once(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="2 of 3 rows are malformed and left out") as caught:
        source(tmp_path, [{}, {"q": "x"}, {}], on_malformed="skip")
    assert len(caught) == 1


def test_a_file_without_one_good_row_is_refused_even_when_skipping(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"no usable problem \(2 rows, 2 malformed\)"):
        source(tmp_path, [{}, {}], on_malformed="skip")


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"no usable problem \(0 rows, 0 malformed\)"):
        source(tmp_path, [])


def test_an_unknown_way_with_malformed_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="'ignore' is neither 'raise' nor 'skip'"):
        source(tmp_path, ask("x"), on_malformed="ignore")


def test_a_limit_keeps_the_first_problems(tmp_path: Path) -> None:
    limited = source(tmp_path, ask("x", "y", "z"), limit=2)
    assert [problem.statement for problem in problems(limited)] == ["x", "y"]


def test_rows_behind_the_limit_are_not_looked_at(tmp_path: Path) -> None:
    assert source(tmp_path, [{"q": "x"}, {}], limit=1).size == 1


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_without_problems_is_refused(tmp_path: Path, limit: int) -> None:
    with pytest.raises(InvalidArgument, match="leaves no problem"):
        source(tmp_path, ask("x"), limit=limit)


def test_a_source_survives_pickling(tmp_path: Path) -> None:
    made = source(tmp_path, ask("x", "y"))
    assert list(problems(pickle.loads(pickle.dumps(made)))) == list(problems(made))


def test_the_fingerprint_is_the_documented_digest(tmp_path: Path) -> None:
    def short(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    made = source(tmp_path, [{"q": "What  is\n1?", "a": "1"}, {"q": "Two?", "a": "2"}])
    lines = f"{short('What is 1?')} {short('1')}\n{short('Two?')} {short('2')}\n"
    assert made.fingerprint == hashlib.sha256(lines.encode()).hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        [{"q": "x", "a": "1"}, {"q": "y", "a": "3"}],
        [{"q": "y", "a": "2"}, {"q": "x", "a": "1"}],
        [{"q": "x", "a": "1"}],
        [{"q": "x", "a": "1"}, {"q": "z", "a": "2"}],
    ],
)
def test_the_fingerprint_changes_with_gold_order_number_and_statement(
    tmp_path: Path, other: list[Any]
) -> None:
    made = source(tmp_path, [{"q": "x", "a": "1"}, {"q": "y", "a": "2"}])
    assert source(tmp_path, other, "other").fingerprint != made.fingerprint


def test_the_first_problems_of_an_unlimited_source_can_be_taken() -> None:
    assert [problem.id for problem in problems(FirstProblems(Unlimited(), 2))] == [
        "counting-0",
        "counting-1",
    ]


def test_the_first_problems_are_no_more_than_there_are(tmp_path: Path) -> None:
    assert FirstProblems(source(tmp_path, ask("x", "y")), 9).size == 2


def test_beyond_the_first_problems_there_is_nothing() -> None:
    with pytest.raises(UnknownProblem, match="no problem number 2"):
        FirstProblems(Unlimited(), 2).get(2)


def test_an_id_beyond_the_first_problems_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(UnknownProblem, match="not among the first 1"):
        FirstProblems(source(tmp_path, ask("x", "y")), 1).find("rows-1")


def test_an_unlimited_source_is_not_walked_through() -> None:
    with pytest.raises(InvalidArgument, match="counting never ends"):
        overlap(Unlimited(), Unlimited())


def test_overlap_pairs_equal_problems(tmp_path: Path) -> None:
    a, b = source(tmp_path, ask("x", "y", "z"), "a"), source(tmp_path, ask("w", "z", "x"), "b")
    assert overlap(a, b) == [("a-2", "b-1"), ("a-0", "b-2")]


def test_overlap_names_every_pair_of_repeated_problems(tmp_path: Path) -> None:
    a, b = source(tmp_path, ask("x", "x"), "a"), source(tmp_path, ask("x"), "b")
    assert overlap(a, b) == [("a-0", "b-0"), ("a-1", "b-0")]


def test_disjoint_sources_pass(tmp_path: Path) -> None:
    check_disjoint(source(tmp_path, ask("x"), "a"), source(tmp_path, ask("y"), "b"))


def test_sources_that_share_a_problem_are_named(tmp_path: Path) -> None:
    a, b = source(tmp_path, ask("x", "y"), "a"), source(tmp_path, ask("y"), "b")
    with pytest.raises(ProblemError, match=r"a \(test\) and b \(test\) share 1 .*'a-1' = 'b-0'"):
        check_disjoint(a, b)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Find $x$ if $x^{2}=4$.", "Find x if \\[x^2 = 4.\\]"),
        ("Let $r_1,$ $\\overline{r}_1$ be roots", "let $r_1, \\overline{r_1}$ be roots"),
        ("log$_{}x$ and ${}_{}y$", "log$x$ and $y$"),
        ("Evaluate $\\dfrac12 + \\left(3\\right)$", "Evaluate $\\frac12+(3)$"),
        ("one,\\, two\\!", "one, two"),
    ],
)
def test_copies_in_another_notation_are_the_same_problem(one: str, other: str) -> None:
    assert overlap_key(one) == overlap_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("where $k > 0$", "where $k < 0$"),
        ("Compute $\\sin 60^\\circ$.", "Compute $\\sin(-60^\\circ)$."),
        ("What is $88 \\div (4 \\div 2)$?", "What is $88 \\div 4 \\div 2$?"),
        ("$2^3$", "$23$"),
        ("$2n - 1$", "$2n + 1$"),
        ("3.5 litres", "35 litres"),
        ("the interval $[0,1]$", "the interval $(0,1)$"),
        ("What is $3!$?", "What is $3$?"),
        ("1/2", "12"),
    ],
)
def test_problems_that_differ_in_meaning_are_kept_apart(one: str, other: str) -> None:
    assert overlap_key(one) != overlap_key(other)


@given(st.text())
def test_equal_content_is_always_overlap(statement: str) -> None:
    assert overlap_key(" ".join(statement.split())) == overlap_key(statement)
