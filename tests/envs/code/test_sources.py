"""Programming problems by name and path: what rows become, on real files and by hand."""

from __future__ import annotations

import base64
import json
import pickle
import zlib

import pytest

from flexmg.envs.code.livecodebench import unpack
from flexmg.envs.code.sources import NAMES, load
from flexmg.envs.code.suite import Suite
from flexmg.envs.rows import RowError
from flexmg.envs.sources import check_disjoint
from flexmg.errors import InvalidArgument, MalformedProblem, SourceUnavailable

# Rows as SOURCES.md of the shared data counts them.
FILES = {
    "humaneval/HumanEval.jsonl.gz": 164,
    "mbpp/mbpp.jsonl": 974,
    "mbpp/sanitized-mbpp.json": 427,
    "codecontests/test.json": 165,
    "codeforces/test.json": 408,
    "apps/train": 5,
}


def of_file(tmp_path, *rows):
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return load(path)


def suite_of(tmp_path, row):
    return Suite.of(of_file(tmp_path, row).get(0))


def lcb(private, *, functional=False, **more):
    kind = "functional" if functional else "stdin"
    public = {"input": "[1, 2]\n3" if functional else "1 2", "output": "6", "testtype": kind}
    return {
        "question_content": "Add them up.",
        "question_id": "abc",
        "starter_code": "class Solution:\n    def total(self, v, k):" if functional else "",
        "public_test_cases": json.dumps([public]),
        "private_test_cases": private,
        "metadata": json.dumps({"func_name": "total"} if functional else {}),
        **more,
    }


def packed(tests):
    """As LiveCodeBench packs its private tests."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


class TestRealFiles:
    @pytest.mark.parametrize(("name", "rows"), FILES.items())
    def test_every_row_is_a_problem_with_tests(self, shared, name, rows):
        source = load(shared / "data" / name)
        assert source.size == rows
        assert all(Suite.of(source.get(k)).cases for k in range(rows))

    def test_statements_that_allow_any_letter_case(self, shared):
        """53 of the 408, as counted in the notes on graders."""
        source = load(shared / "data/codeforces/test.json")
        flagged = [Suite.of(source.get(k)).flags for k in range(source.size)]
        assert sum("any_case" in flags for flags in flagged) == 53

    def test_mbpp_shows_its_first_assert(self, shared):
        problem = load(shared / "data/mbpp/mbpp.jsonl").find("mbpp-11")
        assert 'assert remove_Occ("hello","l") == "heo"' in problem.statement
        assert len(Suite.of(problem).public) == 1

    def test_humaneval_helpers_travel_with_the_program(self, shared):
        """HumanEval/38 defines encode_cyclic before the function that is asked for."""
        problem = load(shared / "data/humaneval/HumanEval.jsonl.gz").find("HumanEval/38")
        assert "def encode_cyclic" in Suite.of(problem).prelude

    def test_examples_of_a_docstring_are_public(self, shared):
        problem = load(shared / "data/humaneval/HumanEval.jsonl.gz").find("HumanEval/0")
        public = [case.input for case in Suite.of(problem).public]
        assert public == [
            "assert has_close_elements([1.0, 2.0, 3.0], 0.5) == False",
            "assert has_close_elements([1.0, 2.8, 3.0, 4.0, 5.0, 2.0], 0.3) == True",
        ]

    def test_apps_folders_hold_functions_and_programs(self, shared):
        source = load(shared / "data/apps/train")
        kinds = {source.get(k).id: Suite.of(source.get(k)) for k in range(source.size)}
        assert kinds["apps-4184"].entry == "is_prime"
        assert kinds["apps-2404"].entry == "Solution.findKthPositive"
        assert kinds["apps-0001"].kind == "stdin"

    def test_few_shot_examples_have_no_tests_and_are_refused(self, shared):
        with pytest.raises(MalformedProblem, match=r"few_shot_stdin.json.*fields"):
            load(shared / "data/livecodebench/few_shot_stdin.json")

    def test_humaneval_and_mbpp_share_no_problem(self, shared):
        check_disjoint(
            load(shared / "data/humaneval/HumanEval.jsonl.gz"),
            load(shared / "data/mbpp/mbpp.jsonl"),
        )


class TestLiveCodeBench:
    def test_programs_on_stdin(self, tmp_path):
        hidden = [{"input": "3 4", "output": "7", "testtype": "stdin"}]
        suite = suite_of(tmp_path, lcb(packed(hidden)))
        assert [case.input for case in suite.public] == ["1 2"]
        assert [(case.input, case.output) for case in suite.hidden] == [("3 4", "7")]

    def test_functions_take_one_json_value_per_line(self, tmp_path):
        hidden = [{"input": "[4]\n5", "output": "9", "testtype": "functional"}]
        suite = suite_of(tmp_path, lcb(packed(hidden), functional=True))
        assert suite.entry == "Solution.total" and not suite.exact
        assert [case.input for case in suite.cases] == [[[1, 2], 3], [[4], 5]]
        assert [case.output for case in suite.cases] == [6, 9]

    def test_plain_json_is_read_too(self):
        assert unpack('[{"input": "1", "output": "2"}]') == [{"input": "1", "output": "2"}]

    def test_a_pickle_that_asks_for_code_is_refused(self, tmp_path):
        class Hostile:
            def __reduce__(self):
                import os

                return os.system, (f"touch {tmp_path / 'marker'}",)

        text = base64.b64encode(zlib.compress(pickle.dumps(Hostile()))).decode()
        with pytest.raises(RowError, match=r"asks for posix\.system"):
            unpack(text)
        assert not (tmp_path / "marker").exists()

    def test_a_bomb_is_refused(self, monkeypatch):
        monkeypatch.setattr("flexmg.envs.code.livecodebench.LARGEST_UNPACKED", 1 << 20)
        text = base64.b64encode(zlib.compress(bytes(2 << 20))).decode()
        with pytest.raises(RowError, match="more than 1 MiB"):
            unpack(text)

    @pytest.mark.parametrize("text", ["!!", "AAAA", packed({"not": "a list"}), packed([])[:-8]])
    def test_what_is_not_packed_tests_is_refused(self, text):
        with pytest.raises(RowError, match="private_test_cases"):
            unpack(text)


class TestRows:
    def test_taco_and_apps_keep_tests_as_text(self, tmp_path):
        tests = {"fn_name": "add", "inputs": [[1, [2]]], "outputs": [[1, 2]]}
        row = {"question": "Add.", "input_output": json.dumps(tests), "starter_code": "def add(a,"}
        suite = suite_of(tmp_path, row)
        assert (suite.entry, suite.hidden[0].input, suite.hidden[0].output) == (
            "add",
            [1, [2]],
            [1, 2],
        )

    def test_codecontests_has_public_private_and_generated_tests(self, tmp_path):
        both = {"input": ["1"], "output": ["2"]}
        row = {
            "name": "1_A",
            "description": "Add one. If there are several answers, print any of them.",
            "public_tests": both,
            "private_tests": both,
            "generated_tests": {"input": ["5", "6"], "output": ["6", "7"]},
        }
        suite = suite_of(tmp_path, row)
        assert (len(suite.public), len(suite.hidden)) == (1, 3)
        assert suite.flags == {"any_valid"}

    def test_deepcoder_functions_name_themselves_in_the_tests(self, tmp_path):
        tests = [{"input": "[1]\n2", "output": "3", "metadata": {"func_name": "add"}}]
        suite = suite_of(tmp_path, {"problem": "Add.", "tests": json.dumps(tests)})
        assert (suite.kind, suite.entry, suite.hidden[0].input) == ("calls", "add", [[1], 2])

    def test_a_users_own_fields(self, tmp_path):
        path = tmp_path / "own.jsonl"
        row = {
            "task": "Echo.",
            "checks": [{"input": "a", "output": "a"}],
            "answer": "print(input())",
        }
        path.write_text(json.dumps(row))
        fields = {"statement": "task", "tests": "checks", "solution": "answer"}
        problem = load(path, mapping=fields).get(0)
        assert (problem.statement, problem.gold) == ("Echo.", "print(input())")

    @pytest.mark.parametrize(
        ("row", "complaint"),
        [
            ({"problem": "Add.", "tests": "[]"}, "no test"),
            ({"problem": "Add.", "tests": "[1"}, "neither JSON nor"),
            ({"problem": "Add.", "tests": [{"input": "1"}]}, "without input or output"),
            ({"problem": "Add.", "tests": {"inputs": ["1"], "outputs": []}}, "1 inputs, but 0"),
            ({"problem": "  ", "tests": [{"input": "1", "output": "1"}]}, "no problem"),
            ({"question": "Add.", "input_output": "[]"}, "not an object"),
            ({"word": "Add."}, "fields 'word' are not those"),
        ],
    )
    def test_broken_rows_name_their_line(self, tmp_path, row, complaint):
        with pytest.raises(MalformedProblem, match=f"tasks.jsonl, line 1.*{complaint}"):
            of_file(tmp_path, row)


class TestNames:
    def test_a_slip_is_answered(self):
        with pytest.raises(InvalidArgument, match="did you mean 'humaneval'"):
            load("humanevl")

    def test_a_split_that_a_data_set_lacks(self):
        with pytest.raises(InvalidArgument, match="no split 'train'; it has 'test'"):
            load("livecodebench:v5", split="train")

    @pytest.mark.parametrize("name", [n for n in NAMES if n != "synthetic"])
    def test_without_a_hub_the_error_says_what_to_download(self, name, monkeypatch, tmp_path):
        pytest.importorskip("datasets")
        monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        split = (
            "train"
            if name in ("deepcoder", "deepcoder:primeintellect", "deepcoder:taco")
            else "test"
        )
        with pytest.raises(SourceUnavailable, match=r"not in the local cache.*path"):
            load(name, split=split)

    def test_an_empty_folder_is_no_source(self, tmp_path):
        with pytest.raises(SourceUnavailable, match="holds no problems"):
            load(tmp_path)
