from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flexmg.envs.math.fields import MAPPINGS
from flexmg.envs.math.sources import NAMES, PUBLIC, load
from flexmg.errors import InvalidArgument, MalformedProblem, SourceUnavailable

DOCS = Path(__file__).parents[3] / "docs" / "sources.md"
ROWS = [
    {"question": "What is 2 + 2?", "answer": "Add.\n#### 4"},
    {"question": "What is 2 + 3?", "answer": "Add.\n#### 5"},
]


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_path_is_loaded(tmp_path: Path) -> None:
    source = load(str(write(tmp_path / "mine.jsonl", ROWS)))
    assert [(p.id, p.gold) for p in map(source.get, range(2))] == [("mine-0", "4"), ("mine-1", "5")]


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_a_file_is_one_split_whatever_it_is_called(tmp_path: Path, split: str) -> None:
    source = load(write(tmp_path / "mine.jsonl", ROWS), split=split)
    assert [source.get(index).split for index in range(2)] == [split] * 2


def test_a_file_named_like_a_source_is_reached_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("gsm8k.jsonl"), ROWS)
    assert load("gsm8k.jsonl").name == "gsm8k.jsonl"


def test_the_formats_of_a_file_give_the_same_problems(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    lines = write(tmp_path / "r.jsonl", ROWS)
    (tmp_path / "r.jsonl.gz").write_bytes(gzip.compress(lines.read_bytes()))
    (tmp_path / "r.json").write_text(json.dumps(ROWS, indent=2))
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "r.parquet")
    contents = {
        tuple((p.id, p.statement, p.gold) for p in map(load(path).get, range(2)))
        for path in tmp_path.iterdir()
    }
    assert len(contents) == 1


def test_a_file_may_bring_its_mapping(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.jsonl", [{"frage": "2 + 2?", "antwort": 4}])
    assert load(path, mapping={"statement": "frage", "gold": "antwort"}).get(0).gold == "4"


def test_unknown_fields_are_named_with_the_known_ones(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.jsonl", [{"frage": "2 + 2?", "antwort": 4}])
    with pytest.raises(MalformedProblem, match=r"line 1: .*'frage', 'antwort'.*mapping="):
        load(path)


def test_a_malformed_row_stops_the_load(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.jsonl", [*ROWS, {"question": "x", "answer": None}])
    with pytest.raises(MalformedProblem, match=r"mine\.jsonl, line 3: field 'answer' is null"):
        load(path)


def test_the_load_goes_on_without_malformed_rows_when_asked(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.jsonl", [{"odd": 1}, *ROWS, {"question": "x", "answer": None}])
    with pytest.warns(UserWarning, match="2 of 4 rows"):
        assert load(path, on_malformed="skip").size == 2


def test_a_limit_is_passed_on(tmp_path: Path) -> None:
    assert load(write(tmp_path / "mine.jsonl", ROWS), limit=1).size == 1


def test_a_misspelt_name_gets_a_suggestion_and_the_list() -> None:
    with pytest.raises(InvalidArgument) as caught:
        load("gsm8")
    assert "did you mean 'gsm8k'?" in str(caught.value)
    assert all(name in str(caught.value) for name in NAMES)


def test_a_path_that_does_not_exist_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match=r"none\.jsonl does not exist"):
        load(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": "gsm8k", "split": "dev"}, "'dev' is none of train, validation, test"),
        ({"source": "gsm8k", "split": "validation"}, "gsm8k has no split 'validation'.*'train'"),
        ({"source": "math500", "split": "train"}, "math500 has no split 'train'; it has 'test'"),
        ({"source": "gsm8k", "level": 2}, "only synthetic problems are generated to a level"),
        ({"source": "gsm8k", "families": 2}, "gsm8k has no setting 'families'"),
        ({"source": "gsm8k", "mapping": {}}, "those of gsm8k are known"),
        ({"source": "synthetic", "mapping": {}}, "synthetic has none"),
        ({"source": "gsm8k", "limit": 0}, "leaves no problem"),
        ({"source": ""}, "there is no source ''"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        load(**arguments)


def test_synthetic_problems_are_the_default() -> None:
    pytest.importorskip("flexmg.envs.math.synthetic")
    assert load().name == "synthetic"


def test_the_level_reaches_the_synthetic_problems() -> None:
    pytest.importorskip("flexmg.envs.math.synthetic")
    assert load(level=2, limit=3).get(2).level == 2


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_data_set_has_a_full_revision(name: str) -> None:
    assert re.fullmatch(r"[0-9a-f]{40}", PUBLIC[name].revision)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_data_set_has_a_known_mapping(name: str) -> None:
    assert PUBLIC[name].mapping in MAPPINGS


@pytest.mark.parametrize("name", PUBLIC)
def test_the_docs_state_id_revision_splits_and_licence(name: str) -> None:
    data_set = PUBLIC[name]
    row = next(line for line in DOCS.read_text().splitlines() if line.startswith(f"| `{name}` |"))
    facts = [data_set.repository, data_set.revision, data_set.licence, *data_set.splits]
    assert [fact for fact in facts if fact not in row] == []


def test_importing_the_sources_loads_no_heavy_library() -> None:
    heavy = ("datasets", "pyarrow", "pandas", "torch", "sympy", "reasoning_gym", "huggingface_hub")
    code = f"import sys, flexmg.envs.math.sources; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("source", [3, None, b"synthetic", ["gsm8k"]])
def test_what_is_neither_name_nor_path_is_refused(source: Any) -> None:
    with pytest.raises(InvalidArgument, match="neither the name of a source nor a path"):
        load(source)


def test_a_mapping_must_be_one(tmp_path: Path) -> None:
    mapping: Any = "question"
    with pytest.raises(InvalidArgument, match="is not a mapping"):
        load(write(tmp_path / "mine.jsonl", ROWS), mapping=mapping)
