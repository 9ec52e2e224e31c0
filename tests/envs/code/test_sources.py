"""Programming problems by name and path, on the real files."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from flexmg.envs.code.sources import NAMES, PUBLIC, load
from flexmg.envs.code.suite import Suite
from flexmg.envs.sources import check_disjoint, overlap
from flexmg.errors import InvalidArgument, ProblemError, SourceUnavailable

# Rows as SOURCES.md of the shared data counts them.
FILES = {
    "humaneval/HumanEval.jsonl.gz": 164,
    "mbpp/mbpp.jsonl": 974,
    "mbpp/sanitized-mbpp.json": 427,
    "codecontests/test.json": 165,
    "codeforces/test.json": 408,
    "apps/train": 5,
}


class TestRealFiles:
    @pytest.mark.parametrize(("name", "rows"), FILES.items())
    def test_every_row_is_a_problem_with_tests(self, shared, name, rows):
        source = load(shared / "data" / name)
        assert source.size == rows
        assert all(Suite.of(source.get(k)).cases for k in range(rows))

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

    def test_codecontests_outputs_keep_their_trailing_blanks(self, shared):
        first = Suite.of(load(shared / "data/codecontests/test.json").get(0)).hidden[0]
        assert (first.input, first.output) == ("5 2\nAA\nAB\nBB\nBA\nAZ\n", "5 2 1 3 4 \n")

    def test_apps_folders_hold_functions_and_programs(self, shared):
        source = load(shared / "data/apps/train")
        kinds = {source.get(k).id: Suite.of(source.get(k)) for k in range(source.size)}
        assert kinds["apps-4184"].entry == "is_prime"
        assert kinds["apps-2404"].entry == "Solution.findKthPositive"
        assert kinds["apps-0001"].kind == "stdin"


class TestOverlap:
    @pytest.fixture
    def mbpp(self, shared, tmp_path):
        """MBPP's own splits, by its numbers."""
        rows = [json.loads(line) for line in (shared / "data/mbpp/mbpp.jsonl").open()]
        splits = {"test": range(11, 511), "validation": range(511, 601), "train": range(601, 975)}
        for name, ids in splits.items():
            chosen = [json.dumps(row) for row in rows if row["task_id"] in ids]
            (tmp_path / f"{name}.jsonl").write_text("\n".join(chosen))
        return {name: load(tmp_path / f"{name}.jsonl") for name in splits}

    def test_three_tasks_of_mbpp_are_in_train_and_in_test(self, mbpp):
        """The same words each, with other tests (found by comparing the ``text`` fields)."""
        assert set(overlap(mbpp["train"], mbpp["test"])) == {
            ("mbpp-602", "mbpp-217"),
            ("mbpp-704", "mbpp-248"),
            ("mbpp-872", "mbpp-216"),
        }

    def test_the_leak_is_named(self, mbpp):
        with pytest.raises(ProblemError, match="share 3 problems"):
            check_disjoint(mbpp["train"], mbpp["test"])

    def test_the_validation_split_of_mbpp_is_disjoint(self, mbpp):
        check_disjoint(mbpp["validation"], mbpp["train"])
        check_disjoint(mbpp["validation"], mbpp["test"])

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("humaneval/HumanEval.jsonl.gz", "mbpp/mbpp.jsonl"),
            ("codecontests/test.json", "codeforces/test.json"),
            ("apps/train", "codecontests/test.json"),
        ],
    )
    def test_other_files_share_no_problem(self, shared, one, other):
        check_disjoint(load(shared / "data" / one), load(shared / "data" / other))


class TestFiles:
    def test_a_users_own_fields(self, tmp_path):
        path = tmp_path / "own.jsonl"
        tests = [{"input": "a", "output": "a"}]
        path.write_text(json.dumps({"task": "Echo.", "checks": tests, "answer": "print(input())"}))
        fields = {"statement": "task", "tests": "checks", "solution": "answer"}
        problem = load(path, mapping=fields).get(0)
        assert (problem.statement, problem.gold) == ("Echo.", "print(input())")

    def test_a_mapping_without_tests_is_refused(self, tmp_path):
        (tmp_path / "own.jsonl").write_text('{"task": "Echo."}')
        with pytest.raises(InvalidArgument, match="must name the fields 'statement' and 'tests'"):
            load(tmp_path / "own.jsonl", mapping={"statement": "task"})

    def test_an_empty_folder_is_no_source(self, tmp_path):
        with pytest.raises(SourceUnavailable, match="holds no problems"):
            load(tmp_path)

    @pytest.mark.parametrize("settings", [{"mapping": {"statement": "q"}}, {"level": 2}, {"n": 1}])
    def test_a_folder_has_neither_fields_nor_settings(self, tmp_path, settings):
        with pytest.raises(InvalidArgument, match=str(tmp_path)):
            load(tmp_path, **settings)

    def test_broken_folders_are_left_out_when_asked(self, tmp_path):
        for name in ("1", "2"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "question.txt").write_text("Print 1.")
        tests = {"inputs": [""], "outputs": ["1"]}
        (tmp_path / "2" / "input_output.json").write_text(json.dumps(tests))
        with pytest.warns(UserWarning, match="1 of 2 rows are malformed"):
            source = load(tmp_path, on_malformed="skip")
        assert [source.get(k).id for k in range(source.size)] == ["apps-2"]


class TestNames:
    def test_a_slip_is_answered(self):
        with pytest.raises(InvalidArgument, match="did you mean 'humaneval'"):
            load("humanevl")

    def test_a_split_that_a_data_set_lacks(self):
        with pytest.raises(InvalidArgument, match="no split 'train'; it has 'test'"):
            load("livecodebench:release_v5", split="train")

    def test_deepcoder_has_train_and_test_of_livecodebench(self):
        assert set(PUBLIC["deepcoder:lcbv5"].splits) == {"train", "test"}

    def test_only_generated_problems_have_a_level(self):
        with pytest.raises(InvalidArgument, match="level=2 cannot be chosen for mbpp"):
            load("mbpp", level=2)

    @pytest.mark.parametrize("name", [n for n in NAMES if n != "synthetic"])
    def test_without_a_hub_the_error_says_what_to_download(self, name, monkeypatch):
        pytest.importorskip("datasets")
        monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        data_set = PUBLIC[name]
        split = next(iter(data_set.files or data_set.splits))
        with pytest.raises(SourceUnavailable, match=r"not in the local cache.*path"):
            load(name, split=split)

    @pytest.mark.parametrize("name", PUBLIC)
    def test_the_docs_state_id_revision_splits_and_licence(self, name, repository):
        data_set = PUBLIC[name]
        start = f"| `{name.partition(':')[0]}`"
        lines = (repository / "docs/sources.md").read_text().splitlines()
        row = next(line for line in lines if line.startswith(start))
        facts = [data_set.repository, data_set.revision, data_set.licence]
        facts += [*(data_set.files or data_set.splits), data_set.configuration or ""]
        assert [fact for fact in facts if fact not in row] == []

    def test_importing_the_sources_loads_no_heavy_library(self):
        heavy = ("datasets", "pyarrow", "pandas", "torch", "sympy", "huggingface_hub")
        code = (
            f"import sys, flexmg.envs.code.sources; print([m for m in {heavy} if m in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "[]"
