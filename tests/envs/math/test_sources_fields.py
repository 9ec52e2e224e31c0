from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmg.envs.math.fields import MAPPINGS, FieldMapping, mapping_from, recognise
from flexmg.envs.rows import RowError
from flexmg.errors import InvalidArgument

PLAIN = FieldMapping("question", "answer")
BOXED = FieldMapping("problem", "solution", rule="boxed")


def gold_of(value: Any, mapping: FieldMapping = PLAIN) -> str:
    return mapping.parse({mapping.statement: "How many?", mapping.gold: value}).gold


def complaint(row: dict[str, Any], mapping: FieldMapping = PLAIN) -> str:
    with pytest.raises(RowError) as caught:
        mapping.parse(row)
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "gold"),
    [
        (27.0, "27"),
        (-1.0, "-1"),
        (0.5, "0.5"),
        (1e20, "1e+20"),
        (12, "12"),
        ("025", "25"),
        ("-007", "-7"),
        ("000", "0"),
        ("0", "0"),
        ("0.5", "0.5"),
        (" 27\n", "27"),
        (["2", "3"], "2, 3"),
        ([2.0], "2"),
        ("336^\\circ", "336^\\circ"),
        ("\\frac{3}{7}", "\\frac{3}{7}"),
        ("1,234", "1,234"),
    ],
)
def test_a_gold_is_the_answer_as_a_text(value: Any, gold: str) -> None:
    assert gold_of(value) == gold


@given(st.integers(-(10**14), 10**14))
def test_a_whole_float_is_its_integer(number: int) -> None:
    assert gold_of(float(number)) == str(number)


@pytest.mark.parametrize(
    ("value", "gold"),
    [
        ("2 + 2 = <<2+2=4>>4\n#### 4", "4"),
        ("First.\n#### 5\nNo.\n#### 1,450,000", "1450000"),
        ("#### -10", "-10"),
        ("#### 1,234.50", "1234.50"),
        ("#### (1,2)", "(1,2)"),
    ],
)
def test_what_follows_the_last_hashes_is_the_gold(value: str, gold: str) -> None:
    assert gold_of(value) == gold


@pytest.mark.parametrize(
    ("solution", "gold"),
    [
        ("Then $x=\\boxed{4}$.", "4"),
        ("\\boxed{1} or rather \\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
        ("\\boxed{\\left\\{1,2\\right\\}}", "\\left\\{1,2\\right\\}"),
        ("\\boxed {7}", "7"),
        ("\\fbox{9}", "9"),
        ("\\boxed{007}", "7"),
    ],
)
def test_what_the_last_box_holds_is_the_gold(solution: str, gold: str) -> None:
    assert gold_of(solution, BOXED) == gold


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"answer": "4"}, "field 'question' is missing; the row has 'answer'"),
        ({}, "field 'question' is missing; the row has no field"),
        ({"question": "x"}, "field 'answer' is missing; the row has 'question'"),
        ({"question": "x", "answer": None}, "field 'answer' is null"),
        ({"question": None, "answer": "4"}, "field 'question' is null"),
        ({"question": " \n", "answer": "4"}, "field 'question' is empty"),
        ({"question": "x", "answer": "  "}, "field 'answer' holds no final answer"),
        ({"question": "x", "answer": "so\n####"}, "field 'answer' holds no final answer"),
        ({"question": "x", "answer": True}, "field 'answer' must be a text or a number, not True"),
        ({"question": "x", "answer": {}}, "field 'answer' must be a text, not dict {}"),
        ({"question": "x", "answer": []}, "field 'answer' is an empty list"),
        ({"question": "x", "answer": ["1", None]}, "must be a text, not NoneType None"),
        ({"question": 7, "answer": "4"}, "field 'question' must be a text, not int 7"),
        ({"question": ["x"], "answer": "4"}, "field 'question' must be a text, not list ['x']"),
        ({"question": "x", "answer": float("nan")}, "must be a finite number, not nan"),
        ({"question": "x", "answer": float("-inf")}, "must be a finite number, not -inf"),
        ({"question": "\ud800", "answer": "4"}, "field 'question' holds half of a surrogate"),
        ({"question": "x", "answer": "\udfff"}, "field 'answer' holds half of a surrogate"),
    ],
)
def test_a_malformed_field_is_named(row: dict[str, Any], message: str) -> None:
    assert message in complaint(row)


def test_a_long_wrong_value_is_shown_in_part() -> None:
    assert len(complaint({"question": ["x" * 10_000], "answer": "4"})) < 120


@pytest.mark.parametrize(
    ("solution", "message"),
    [
        ("The answer is 4.", "has no \\boxed{...} with a final answer"),
        ("\\boxed{4", "has a \\boxed{ that is never closed"),
        ("\\boxed{ }", "holds no final answer"),
    ],
)
def test_a_solution_without_a_boxed_answer_is_malformed(solution: str, message: str) -> None:
    assert message in complaint({"problem": "x", "solution": solution}, BOXED)


def test_gsm8k_rows_need_their_hashes() -> None:
    row = {"question": "x", "answer": "It is 4."}
    assert complaint(row, MAPPINGS["gsm8k"]) == (
        "field 'answer' has no '####' before a final answer"
    )


def test_a_payload_that_json_cannot_hold_is_malformed() -> None:
    mapping = FieldMapping("question", "answer", payload=("unit",))
    row = {"question": "x", "answer": "4", "unit": float("nan")}
    assert complaint(row, mapping).startswith("field 'unit' cannot be written as JSON")


def test_nan_in_a_field_nobody_reads_does_no_harm() -> None:
    assert PLAIN.parse({"question": "x", "answer": "4", "rate": float("nan")}).gold == "4"


@pytest.mark.parametrize(
    ("value", "level"),
    [(3, 3), ("Level 5", 5), ("Level ?", None), (None, None), (2.5, None), (True, None)],
)
def test_a_level_is_a_whole_number(value: Any, level: int | None) -> None:
    row = {"problem": "x", "answer": "4", "level": value}
    assert MAPPINGS["problem-answer"].parse(row).level == level


@pytest.mark.parametrize(
    ("row", "id"),
    [
        ({"unique_id": "test/algebra/1.json", "id": 9}, "test/algebra/1.json"),
        ({"id": 60}, "60"),
        ({"id": "aime24-0"}, "aime24-0"),
        ({"id": None}, None),
        ({}, None),
    ],
)
def test_the_first_id_field_that_is_there_counts(row: dict[str, Any], id: str | None) -> None:
    assert MAPPINGS["problem-answer"].parse({"problem": "x", "answer": "4", **row}).id == id


@pytest.mark.parametrize("id", ["", [1], 2.5, True])
def test_an_id_that_is_none_is_malformed(id: Any) -> None:
    row = {"problem": "x", "answer": "4", "id": id}
    assert "field 'id'" in complaint(row, MAPPINGS["problem-answer"])


def test_a_context_is_read_before_the_question() -> None:
    row = {"question": "How many?", "final_answer": ["4"], "context": "Four birds sing."}
    parsed = MAPPINGS["olympiadbench"].parse(row)
    assert parsed.statement == "Four birds sing.\n\nHow many?"


@pytest.mark.parametrize(
    "prompt",
    [
        "How many? Let's think step by step and output the final answer within \\boxed{}.",
        "Solve the following math problem step by step. The last line of your response should be "
        "of the form Answer: $Answer (without quotes) where $Answer is the answer to the problem."
        '\n\nHow many?\n\nRemember to put your answer on its own line after "Answer:".',
        "How many?",
    ],
)
def test_instructions_around_a_problem_are_taken_off(prompt: str) -> None:
    row = {"prompt": [{"content": prompt, "role": "user"}], "reward_model": {"ground_truth": "4"}}
    assert MAPPINGS["verl"].parse(row).statement == "How many?"


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"question": "x", "answer": "so\n#### 4"}, "gsm8k"),
        ({"question": "x", "answer": "4"}, "question-answer"),
        ({"problem": "x", "question": "x", "answer": 27.0}, "problem-answer"),
        ({"problem": "x", "solution": "\\boxed{4}", "answer": "4"}, "problem-answer"),
        ({"problem": "x", "solution": "\\boxed{4}"}, "minerva"),
        ({"problem": "x", "expected_answer": "4"}, "problem-expected_answer"),
        ({"question": "x", "final_answer": ["4"], "solution": ["y"]}, "olympiadbench"),
        ({"prompt": [{"content": "x"}], "reward_model": {"ground_truth": "4"}}, "verl"),
        ({"prompt": "x", "solution": "4"}, "prompt-solution"),
    ],
)
def test_rows_are_recognised_by_their_fields(row: dict[str, Any], name: str) -> None:
    assert recognise(row) is MAPPINGS[name]


@pytest.mark.parametrize("row", [{}, {"text": "x", "label": "4"}, {"problem": "x"}])
def test_other_rows_are_not_recognised(row: dict[str, Any]) -> None:
    assert recognise(row) is None


def test_a_field_whose_name_has_a_dot_is_found() -> None:
    assert FieldMapping("q.text", "a").parse({"q.text": "x", "a": "4"}).statement == "x"


def test_a_step_beyond_a_list_is_missing() -> None:
    row = {"prompt": [], "reward_model": {"ground_truth": "4"}}
    assert complaint(row, MAPPINGS["verl"]).startswith("field 'prompt.0.content' is missing")


def test_a_given_mapping_is_used() -> None:
    given = {"statement": "q", "gold": "a", "id": "key", "level": "grade", "context": "before"}
    parsed = mapping_from(given).parse({"q": "x", "a": 4, "key": "k", "grade": 2, "before": "b"})
    assert (parsed.statement, parsed.gold, parsed.id, parsed.level) == ("b\n\nx", "4", "k", 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"statement": "q"}, "has no 'gold'"),
        ({}, "has no 'statement' and no 'gold'"),
        ({"statement": "q", "gold": "a", "golden": "b"}, "has the unknown key 'golden'"),
        ({"statement": "q", "gold": "a", "rule": "eval"}, "'eval' is none of plain, hashes, boxed"),
    ],
)
def test_a_mapping_that_makes_no_sense_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        mapping_from(given)
