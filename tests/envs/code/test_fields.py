"""What the rows of each data set become."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmg.envs.code import grade
from flexmg.envs.code.fields import MAPPINGS
from flexmg.envs.code.sources import load
from flexmg.envs.code.suite import Suite
from flexmg.envs.rows import RowError
from flexmg.errors import MalformedProblem
from flexmg.problem import Problem

PAIR = {"input": ["1"], "output": ["2"]}
ROWS = {
    "mbpp": {
        "task_id": 3,
        "text": "Return twice n.",
        "code": "def twice(n):\r\n    return 2 * n",
        "test_list": ["assert twice(1) == 2", "assert twice(2) == 4"],
        "test_setup_code": "",
        "challenge_test_list": [],
    },
    "humaneval": {
        "task_id": "T/1",
        "prompt": 'import math\ndef twice(n):\n    """Twice n.\n    >>> twice(1)\n    2\n    """\n',
        "canonical_solution": "    return 2 * n",
        "entry_point": "twice",
        "test": "def check(candidate):\n    assert candidate(2) == 4",
    },
    "apps": {
        "problem_id": 7,
        "question": "Print twice n.",
        "input_output": json.dumps({"inputs": ["1\n"], "outputs": ["2\n"]}),
        "solutions": json.dumps(["print(2 * int(input()))"]),
        "starter_code": "",
    },
    "codecontests": {
        "name": "1_A",
        "description": "Print twice n.",
        "public_tests": PAIR,
        "private_tests": PAIR,
        "generated_tests": {"input": ["5", "6"], "output": ["10", "12"]},
        "solutions": {"language": [2, 3], "solution": ["int main", "print(2 * int(input()))"]},
        "time_limit": {"seconds": 9, "nanos": 0},
        "input_file": "",
        "output_file": "",
    },
    "codeforces": {
        "id": "1/A",
        "description": "Split n into two numbers.",
        "input_format": "One number.",
        "output_format": "If there are several answers, print any of them.",
        "note": "That is all.",
        "examples": [{"input": "5", "output": "2 3"}],
        "official_tests": [
            {"input": "5\r\n", "output": "2 3\r\n"},
            {"input": "7\r\n", "output": "3 4\r\n"},
        ],
        "generated_checker": "",
        "interaction_format": None,
        "input_mode": "stdio",
        "time_limit": 1.0,
    },
    "deepcoder": {
        "problem": "Add.",
        "tests": json.dumps([{"input": "1 2", "output": "3", "metadata": {"func_name": None}}]),
        "solutions": ["print(sum(map(int, input().split())))"],
    },
    "livecodebench": {
        "question_content": "Add.",
        "question_id": "abc",
        "starter_code": "",
        "public_test_cases": json.dumps([{"input": "1 2", "output": "3", "testtype": "stdin"}]),
        "private_test_cases": "",
        "metadata": "{}",
    },
}
# The shape of open-r1's checkers: a script with three file names.
CHECKER = """
import sys
from pathlib import Path

def main(input_path, output_path, submission_path):
    with open(input_path) as file:
        n = int(file.read())
    numbers = [int(part) for part in Path(submission_path).read_text().split()]
    with open(output_path, encoding="utf-8") as file:
        known = len(file.readlines()) == 1
    print(1 if known and len(numbers) == 2 and sum(numbers) == n else 0)

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3])
"""


def problem(kind, **changes):
    parsed = MAPPINGS[kind].parse({**ROWS[kind], **changes})
    return Problem(
        id=str(parsed.id), statement=parsed.statement, gold=parsed.gold, payload=parsed.payload
    )


def suite(kind, **changes):
    return Suite.of(problem(kind, **changes))


class TestMbpp:
    def test_the_first_assert_is_public_and_in_the_statement(self):
        assert [case.input for case in suite("mbpp").public] == ["assert twice(1) == 2"]
        assert problem("mbpp").statement.endswith("assert twice(1) == 2")

    def test_the_task_alone_is_kept_for_comparisons(self):
        assert problem("mbpp").payload["task"] == "Return twice n."

    def test_line_ends_of_windows_go(self):
        assert problem("mbpp").gold == "def twice(n):\n    return 2 * n"

    def test_a_row_without_asserts_has_no_test(self):
        with pytest.raises(RowError, match="no test"):
            problem("mbpp", test_list=[])


class TestHumanEval:
    def test_what_stands_before_the_function_travels_with_the_program(self):
        assert suite("humaneval").prelude == "import math\n"

    def test_examples_of_the_docstring_are_public(self):
        assert [case.input for case in suite("humaneval").public] == ["assert twice(1) == 2"]

    def test_a_prompt_without_the_function_is_malformed(self):
        with pytest.raises(RowError, match="does not begin the function 'thrice'"):
            problem("humaneval", entry_point="thrice")


class TestAppsAndTaco:
    def test_programs(self):
        assert [(c.input, c.output) for c in suite("apps").hidden] == [("1\n", "2\n")]

    def test_functions(self):
        tests = {"fn_name": "add", "inputs": [[1, [2]]], "outputs": [[1, 2]]}
        found = suite("apps", input_output=json.dumps(tests), starter_code="def add(a, b):")
        assert (found.entry, found.hidden[0].input) == ("add", [1, [2]])
        assert found.hidden[0].output == [1, 2]

    def test_values_that_are_all_wrapped_in_a_list_are_unwrapped(self):
        tests = {"fn_name": "add", "inputs": [[1], [2]], "outputs": [[True], [False]]}
        found = suite("apps", input_output=json.dumps(tests))
        assert [case.output for case in found.hidden] == [True, False]

    def test_an_empty_field_means_no_test(self):
        """So are some rows of the public APPS."""
        with pytest.raises(RowError, match="'input_output' is empty"):
            problem("apps", input_output="")

    def test_the_first_solution_is_the_reference(self):
        assert problem("apps").payload["reference"] == "print(2 * int(input()))"


class TestCodeContests:
    def test_private_and_generated_tests_are_hidden(self):
        found = suite("codecontests")
        assert [case.input for case in found.public] == ["1"]
        assert [case.input for case in found.hidden] == ["1", "5", "6"]

    def test_the_reference_is_in_python(self):
        assert problem("codecontests").gold == "print(2 * int(input()))"

    def test_a_longer_time_limit_is_kept(self):
        assert suite("codecontests").limits.cpu_s == 9

    @pytest.mark.parametrize("limit", [None, {"seconds": 1}, {"seconds": 1e9}, {"seconds": "x"}])
    def test_other_time_limits_are_the_usual_one(self, limit):
        assert suite("codecontests", time_limit=limit).limits.cpu_s == 6

    def test_problems_that_read_files_are_refused(self):
        with pytest.raises(RowError, match="'input_file' asks for files"):
            problem("codecontests", input_file="input.txt")


class TestCodeforces:
    def test_the_statement_has_all_parts_and_the_examples(self):
        assert problem("codeforces").statement == (
            "Split n into two numbers.\n\nInput\nOne number.\n\n"
            "Output\nIf there are several answers, print any of them.\n\n"
            "Example input\n5\nExample output\n2 3\n\nNote\nThat is all."
        )

    def test_an_example_is_not_tested_twice(self):
        assert [case.input for case in suite("codeforces").cases] == ["5", "7\n"]

    @pytest.mark.parametrize(
        ("program", "status"),
        [
            ("n = int(input())\nprint(1, n - 1)", "correct"),
            ("n = int(input())\nprint(2, n - 2)", "correct"),
            ("n = int(input())\nprint(1, n)", "wrong"),
            ("n = int(input())\nprint(1, n - 1, 0)", "wrong"),
            ("print('some text')", "wrong"),
            ("print('1')", "wrong"),
            ("", "wrong"),
        ],
    )
    def test_its_own_checker_decides(self, program, status):
        verdict = grade(problem("codeforces", generated_checker=CHECKER), program)
        assert verdict.status == status, verdict.detail

    def test_a_checker_that_leaves_with_an_error_does_not_accept(self):
        leaving = "import sys\nprint(1)\nsys.exit(2)"
        verdict = grade(problem("codeforces", generated_checker=leaving), "print(2, 3)")
        assert verdict.status == "wrong"

    def test_a_checker_may_leave_without_one(self):
        leaving = "import sys\nprint(1)\nsys.exit(0)"
        assert grade(problem("codeforces", generated_checker=leaving), "print(2, 3)").correct

    @pytest.mark.parametrize(
        ("changes", "complaint"),
        [
            ({"interaction_format": "Ask."}, "interactive"),
            ({"input_mode": "file"}, "'input_mode' asks for files"),
            ({"generated_checker": "int main() {"}, "'generated_checker' is no Python"),
            ({"official_tests": [], "examples": []}, "no test"),
        ],
    )
    def test_what_cannot_be_judged_is_refused(self, changes, complaint):
        with pytest.raises(RowError, match=complaint):
            problem("codeforces", **changes)


class TestDeepCoder:
    def test_programs(self):
        assert [(c.input, c.output) for c in suite("deepcoder").hidden] == [("1 2", "3")]

    def test_two_lists(self):
        found = suite("deepcoder", tests={"inputs": ["1\n", ["2", "3"]], "outputs": ["1", "5"]})
        assert [case.input for case in found.hidden] == ["1\n", "2\n3"]

    @pytest.mark.parametrize("metadata", [{"func_name": "add"}, '{"func_name": "add"}'])
    def test_calls_of_livecodebench_name_the_function_in_each_test(self, metadata):
        tests = [{"input": "[1]\n2", "output": "3", "metadata": metadata}]
        found = suite("deepcoder", tests=json.dumps(tests))
        assert (found.kind, found.entry, found.hidden[0].input) == ("calls", "add", [[1], 2])
        assert found.hidden[0].output == 3

    def test_calls_of_livecodebench_name_the_function_in_the_row(self):
        tests = [{"input": "1", "output": "3", "testtype": "functional"}]
        found = suite("deepcoder", tests=json.dumps(tests), metadata={"func_name": "add"})
        assert (found.entry, found.hidden[0].input) == ("add", [1])

    def test_calls_of_primeintellect_have_data_for_arguments(self):
        """A text that looks like JSON stays a text."""
        tests = [
            {"type": "function_call", "fn_name": "f", "input": ["12", 3], "output": ["12"]},
            {"type": "function_call", "fn_name": "f", "input": ["a"], "output": ["b"]},
        ]
        found = suite("deepcoder", tests=json.dumps(tests))
        assert (found.kind, found.entry) == ("calls", "f")
        assert [(c.input, c.output) for c in found.hidden] == [(["12", 3], "12"), (["a"], "b")]

    def test_programs_of_primeintellect_name_no_function(self):
        tests = [{"type": "stdin_stdout", "fn_name": None, "input": "1", "output": "2"}]
        assert suite("deepcoder", tests=json.dumps(tests)).kind == "stdin"

    def test_a_function_is_named_where_no_code_is_given_to_begin_with(self):
        tests = {"fn_name": "add", "inputs": [[1]], "outputs": [1]}
        assert problem("deepcoder", tests=tests).statement == "Add.\n\nWrite add."


@pytest.mark.parametrize("kind", ROWS)
def test_every_kind_is_recognised_by_its_fields(kind, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROWS[kind]))
    assert load(path).get(0).statement == problem(kind).statement


@pytest.mark.parametrize("kind", [k for k in ROWS if k not in ("livecodebench", "codeforces")])
def test_the_references_of_the_rows_above_are_right(kind):
    task = problem(kind)
    verdict = grade(task, task.payload["reference"])
    assert verdict.correct, verdict.detail


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["\ud800", "[" * 9999, "1" * 5000, '["\\ud800"]', "[NaN]", "{}", "[{}]"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["input", "output", "inputs", "outputs", "fn_name", "metadata"]), inner
        )
    ),
    max_leaves=6,
)


@given(kind=st.sampled_from(sorted(ROWS)), data=st.data())
def test_a_row_is_a_usable_problem_or_malformed(kind, data):
    row = dict(ROWS[kind])
    for field in data.draw(st.lists(st.sampled_from(sorted(row)), min_size=1, max_size=2)):
        row[field] = data.draw(JUNK | JUNK.map(lambda v: json.dumps(v, skipkeys=True)))
    if data.draw(st.booleans()):
        del row[data.draw(st.sampled_from(sorted(row)))]
    try:
        parsed = MAPPINGS[kind].parse(row)
    except RowError:
        return
    found = Problem(id="x", statement=parsed.statement, gold=parsed.gold, payload=parsed.payload)
    assert Suite.of(found).cases
    assert found.content_hash and found.payload_hash


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"problem": "Add.", "tests": "[]"}, "no test"),
        ({"problem": "Add.", "tests": ""}, "'tests' is empty"),
        ({"problem": "Add.", "tests": "[1"}, "neither JSON nor"),
        ({"problem": "Add.", "tests": [{"input": "1"}]}, "without input or output"),
        ({"problem": "Add.", "tests": {"inputs": ["1"], "outputs": []}}, "1 inputs, but 0"),
        ({"problem": "  ", "tests": [{"input": "1", "output": "1"}]}, "no problem"),
        ({"problem": "\ud800", "tests": [{"input": "1", "output": "1"}]}, "half of a surrogate"),
        ({"question": "Add.", "input_output": "[]"}, "not an object"),
        ({"word": "Add."}, "fields 'word' are not those"),
    ],
)
def test_broken_rows_name_their_line(tmp_path, row, complaint):
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(row))
    with pytest.raises(MalformedProblem, match=f"tasks.jsonl, line 1.*{complaint}"):
        load(path)
