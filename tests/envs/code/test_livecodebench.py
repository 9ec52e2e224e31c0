"""LiveCodeBench's rows: packed tests, programs and functions, releases."""

from __future__ import annotations

import base64
import json
import pickle
import zlib

import pytest

from flexmg.envs.code import grade
from flexmg.envs.code.fields import MAPPINGS
from flexmg.envs.code.livecodebench import unpack
from flexmg.envs.code.sources import PUBLIC, load
from flexmg.envs.code.suite import Suite
from flexmg.envs.rows import RowError
from flexmg.errors import MalformedProblem
from flexmg.problem import Problem

TESTS = [{"input": "3 4\n", "output": "7\n", "testtype": "stdin"}]
CALLS = [{"input": "[4]\n5", "output": "9", "testtype": "functional"}]


def compressed(data):
    return base64.b64encode(zlib.compress(data)).decode()


def packed(tests, protocol=None):
    """As LiveCodeBench packs its private tests."""
    return compressed(pickle.dumps(json.dumps(tests), protocol))


def row(private, *, functional=False, **more):
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


def problem(row):
    parsed = MAPPINGS["livecodebench"].parse(row)
    return Problem(
        id=str(parsed.id), statement=parsed.statement, gold=parsed.gold, payload=parsed.payload
    )


class TestRows:
    def test_programs_on_stdin(self):
        suite = Suite.of(problem(row(packed(TESTS))))
        assert [case.input for case in suite.public] == ["1 2"]
        assert [(case.input, case.output) for case in suite.hidden] == [("3 4\n", "7\n")]

    def test_functions_take_one_json_value_per_line(self):
        suite = Suite.of(problem(row(packed(CALLS), functional=True)))
        assert suite.entry == "Solution.total" and not suite.exact
        assert [case.input for case in suite.cases] == [[[1, 2], 3], [[4], 5]]
        assert [case.output for case in suite.cases] == [6, 9]

    def test_the_code_to_begin_with_is_part_of_the_statement(self):
        assert "def total(self, v, k):" in problem(row("[]", functional=True)).statement

    def test_a_problem_has_one_id_in_every_release(self):
        assert problem(row("[]", question_id="2777")).id == "livecodebench-2777"

    def test_a_method_may_be_written_as_a_function(self):
        task = problem(row(packed(CALLS), functional=True))
        assert grade(task, "def total(v, k):\n    return sum(v) + k").correct

    def test_a_method_finds_what_leetcode_imports_and_the_builtin_pow(self):
        program = (
            "class Solution:\n"
            "    def total(self, v: List[int], k: int) -> int:\n"
            "        assert pow(3, 4, 5) == 1 and inf > 10 ** 9 and Counter(v) and gcd(4, 6) == 2\n"
            "        return reduce(lambda a, b: a + b, v) + k"
        )
        assert grade(problem(row(packed(CALLS), functional=True)), program).correct

    def test_the_order_of_a_list_counts_unless_the_statement_says_so(self):
        lists = json.dumps([{"input": "1", "output": "[1, 2]", "testtype": "functional"}])
        ordered = row("[]", functional=True, public_test_cases=lists)
        free = {**ordered, "question_content": "You may return the answer in any order."}
        program = "class Solution:\n    def total(self, v):\n        return [2, 1]"
        verdicts = [grade(problem(one), program).status for one in (ordered, free)]
        assert verdicts == ["wrong", "correct"]

    @pytest.mark.parametrize("field", ["public_test_cases", "private_test_cases"])
    def test_tests_that_are_no_list_are_malformed(self, tmp_path, field):
        path = tmp_path / "lcb.jsonl"
        path.write_text(json.dumps(row("[]", **{field: '{"input": "1"}'})))
        with pytest.raises(MalformedProblem, match=f"line 1: field '{field}'"):
            load(path)

    def test_few_shot_examples_have_no_tests_and_are_refused(self, shared):
        with pytest.raises(MalformedProblem, match=r"few_shot_stdin.json.*without tests"):
            load(shared / "data/livecodebench/few_shot_stdin.json")


class TestPacked:
    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    @pytest.mark.parametrize("length", [1, 300, 100_000], ids=["short", "long", "out of frame"])
    def test_every_protocol_of_pickle_is_read(self, protocol, length):
        tests = [{"input": "é" * length, "output": "\n", "testtype": "stdin"}]
        assert unpack(packed(tests, protocol)) == tests

    def test_plain_json_is_read_too(self):
        assert unpack(json.dumps(TESTS)) == TESTS

    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_a_pickle_that_asks_for_code_is_refused(self, tmp_path, protocol):
        marker = tmp_path / "marker"

        class Hostile:
            def __reduce__(self):
                import os

                return os.system, (f"touch {marker}",)

        with pytest.raises(RowError, match="holds more than a text"):
            unpack(compressed(pickle.dumps(Hostile(), protocol)))
        assert not marker.exists()

    def test_code_beside_the_tests_is_refused(self, tmp_path):
        marker = tmp_path / "marker"
        call = f"cposix\nsystem\n(Vtouch {marker}\ntR0".encode()
        pickled = pickle.dumps(json.dumps(TESTS), 0)
        with pytest.raises(RowError, match="holds more than a text: GLOBAL"):
            unpack(compressed(call + pickled))
        assert not marker.exists()

    def test_a_pickle_cannot_ask_for_memory(self):
        """An unpickler obeys index 0x7fffffff of its memo with 16 GiB."""
        text = json.dumps(TESTS).encode()
        pickled = b"\x80\x02X" + len(text).to_bytes(4, "little") + text + b"r\xff\xff\xff\x7f."
        assert unpack(compressed(pickled)) == TESTS

    def test_a_bomb_is_refused(self, monkeypatch):
        monkeypatch.setattr("flexmg.envs.code.livecodebench.LARGEST_UNPACKED", 1 << 20)
        with pytest.raises(RowError, match="more than 1 MiB"):
            unpack(compressed(bytes(2 << 20)))

    @pytest.mark.parametrize(
        "text",
        [
            "!!",
            "AAAA",
            packed({"not": "a list"}),
            packed(TESTS)[:-8],
            compressed(b""),
            compressed(b"\x80\x04."),
            compressed(pickle.dumps(["two", "texts"])),
            compressed(pickle.dumps("[" * 100_000)),
            "[" * 100_000,
        ],
        ids=["no base64", "no zlib", "no list", "cut off", "empty", "nothing", "two texts", "deep",
             "deep JSON"],
    )  # fmt: skip
    def test_what_is_not_packed_tests_is_refused(self, text):
        with pytest.raises(RowError, match="private_test_cases"):
            unpack(text)


class TestReleases:
    def test_a_release_holds_all_rows_up_to_its_own(self):
        files = PUBLIC["livecodebench:release_v3"].files
        assert files == {"test": ("test.jsonl", "test2.jsonl", "test3.jsonl")}

    def test_a_version_holds_the_rows_that_it_added(self):
        assert PUBLIC["livecodebench:v3"].files == {"test": ("test3.jsonl",)}

    def test_the_latest_release_is_the_default(self):
        assert PUBLIC["livecodebench"] == PUBLIC["livecodebench:release_v6"]
