from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmg.envs.rows import JsonRows, RowError, open_rows
from flexmg.errors import InvalidArgument, MissingDependency, ProblemError, SourceUnavailable

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
ROWS = st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), max_size=6)
# ensure_ascii=False would write lone surrogates, which UTF-8 cannot hold.
BYTES = {"indent": st.sampled_from([None, 0, 2, "\t"]), "ensure_ascii": st.just(True)}


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read_all(path: Path) -> list[Any]:
    rows = open_rows(path)
    return [rows.read(number) for number in range(len(rows))]


def error_of(path: Path, number: int = 0) -> str:
    rows = open_rows(path)
    with pytest.raises(RowError) as caught:
        rows.read(number)
    return f"{rows.place(number)}: {caught.value}"


@given(ROWS, st.fixed_dictionaries(BYTES), st.sampled_from(["", "\n\n ", "\r\n"]))
def test_a_json_list_gives_back_its_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], style: dict[str, Any], space: str
) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.json"
    text = space + json.dumps(rows, **style) + space
    assert read_all(write(path, text)) == rows


@given(ROWS, st.sampled_from([None, 1]))
def test_a_row_of_a_json_list_is_placed_at_the_line_where_it_starts(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], indent: int | None
) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.json"
    marked = [{"number": number, **row} for number, row in enumerate(rows)]
    write(path, json.dumps(marked, indent=indent))
    lines = path.read_text().split("\n")
    for number in range(len(rows)):
        key = next(i for i, line in enumerate(lines) if f'"number": {number}' in line)
        # With an indent the brace stands on the line before the first key.
        expected = key + 1 if indent is None else key
        assert open_rows(path).place(number) == f"{path}, line {expected}"


@given(ROWS)
def test_json_lines_give_back_their_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any]
) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    assert read_all(write(path, "".join(json.dumps(row) + "\n" for row in rows))) == rows


@given(ROWS)
def test_scanning_and_reading_agree(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any]
) -> None:
    path = write(tmp_path_factory.mktemp("rows") / "rows.json", json.dumps(rows, indent=1))
    assert list(open_rows(path).scan()) == read_all(path)


def test_text_beyond_ascii_does_not_shift_the_rows(tmp_path: Path) -> None:
    content = '[{"a": "é𝔸\u2028"},\n {"a": "日本"}, {"a": "x"}]'
    assert read_all(write(tmp_path / "r.json", content)) == [
        {"a": "é𝔸\u2028"},
        {"a": "日本"},
        {"a": "x"},
    ]


def test_blank_lines_count_as_lines_but_not_as_rows(tmp_path: Path) -> None:
    rows = open_rows(write(tmp_path / "r.jsonl", '\n{"a": 1}\n\n  \n{"a": 2}'))
    assert [rows.place(0)[-6:], rows.place(1)[-6:]] == ["line 2", "line 5"]


def test_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", b'\xef\xbb\xbf{"a": 1}\r\n{"a": 2}\r\n')
    assert read_all(path) == [{"a": 1}, {"a": 2}]


def test_a_json_list_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert read_all(write(tmp_path / "r.json", b'\xef\xbb\xbf[{"a": 1}]')) == [{"a": 1}]


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path: Path) -> None:
    assert len(open_rows(write(tmp_path / "r.jsonl", '{"a": "x\u2028y\x85z"}\n'))) == 1


def test_a_json_file_may_hold_one_row_a_line(tmp_path: Path) -> None:
    assert read_all(write(tmp_path / "r.json", '{"a": 1}\n{"a": 2}\n')) == [{"a": 1}, {"a": 2}]


def test_an_empty_list_has_no_rows(tmp_path: Path) -> None:
    assert len(open_rows(write(tmp_path / "r.json", " [ \n ] "))) == 0


def test_compressed_lines_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl.gz", gzip.compress(b'{"a": 1}\n{"a": 2}\n'))
    assert read_all(path) == [{"a": 1}, {"a": 2}]


def test_a_truncated_compressed_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 99)[:-9])
    with pytest.raises(ProblemError, match=r"r\.jsonl\.gz is not a whole gzip file"):
        open_rows(path)


def test_damaged_compressed_data_are_refused(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(bytes(range(256)) * 9))
    content[20:60] = b"\xff" * 40
    with pytest.raises(ProblemError, match="gzip"):
        open_rows(write(tmp_path / "r.jsonl.gz", bytes(content)))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{'a': 1}", "not JSON that can be read"),
        (b'{"a": 1', "not JSON that can be read"),
        (b'{"a": 1} {"a": 2}', "not JSON that can be read"),
        (b'{"a": "\xff"}', "the row is not UTF-8 \\(byte 8 of it\\)"),
        (b'["a", 1]', "not a JSON object with fields, but a list"),
        (b"null", "not a JSON object with fields, but a NoneType"),
        (b'{"a": 1, "b": 2, "a": 3}', "field 'a' stands twice in the row"),
        (b'{"o": {"a": 1, "a": 3}}', "field 'a' stands twice in the row"),
        (b'{"a": ' + b"9" * 9000 + b"}", "not JSON that can be read"),
        (b'{"a": ' + b"[" * 200_000 + b"}", "not JSON that can be read"),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: bytes, reason: str) -> None:
    path = write(tmp_path / "r.jsonl", b'{"a": 1}\n' + line + b"\n")
    with pytest.raises(RowError, match=reason):
        open_rows(path).read(1)


def test_bytes_that_are_not_utf8_spoil_only_their_row_of_a_list(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", b'[{"a": "\xff\xfe"},\n{"a": "\xc3\xa9"}]')
    assert open_rows(path).read(1) == {"a": "é"}
    assert error_of(path) == f"{path}, line 1: the row is not UTF-8 (byte 8 of it)"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('[{"a": 1},\n{"a": }]', 2),
        ('[{"a": 1}\n{"a": 2}]', 2),
        ('[{"a": 1},\n\n]', 3),
        ('[{"a": 1},\n{"a": 2}', 2),
        ('[{"a": 1}]\n[{"a": 2}]', 1),
        ("[\n\n" + "[" * 200_000, 3),
    ],
)
def test_a_list_that_breaks_off_is_refused_with_its_line(
    tmp_path: Path, content: str, line: int
) -> None:
    with pytest.raises(ProblemError, match=rf"r\.json, line {line}: "):
        open_rows(write(tmp_path / "r.json", content))


def test_parquet_rows_are_read_in_order(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"a": number, "o": {"b": [str(number)]}} for number in range(700)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "r.parquet", row_group_size=90)
    assert read_all(tmp_path / "r.parquet") == rows
    assert list(open_rows(tmp_path / "r.parquet").scan()) == rows


def test_a_folder_name_adds_no_column_to_parquet_rows(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "split=test").mkdir()
    parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "split=test" / "r.parquet")
    assert read_all(tmp_path / "split=test" / "r.parquet") == [{"a": 1}]


def test_a_file_that_is_not_parquet_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(ProblemError, match="not a readable Parquet file"):
        open_rows(write(tmp_path / "r.parquet", b"PAR1 and then nothing"))


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDependency, match=r"pip install 'flexmg\[data\]'"):
        open_rows(write(tmp_path / "r.parquet", b""))


def test_an_unknown_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"r\.csv .* \.jsonl, \.jsonl\.gz, \.json, \.parquet"):
        open_rows(write(tmp_path / "r.csv", "a,b"))


def test_a_missing_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match=r"r\.jsonl does not exist"):
        open_rows(tmp_path / "r.jsonl")


def test_a_folder_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").mkdir()
    with pytest.raises(SourceUnavailable, match="is a folder"):
        open_rows(tmp_path / "r.jsonl")


def test_a_file_that_changes_under_a_run_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", '{"a": 1}\n{"a": 2}\n')
    rows = JsonRows(path)
    write(path, '{"a": 1000}\n{"a": 2}\n')
    with pytest.raises(ProblemError, match="has changed since it was loaded"):
        rows.read(0)


def test_a_file_that_goes_under_a_run_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", '{"a": 1}\n')
    rows = JsonRows(path)
    path.unlink()
    with pytest.raises(SourceUnavailable, match="cannot be read any more"):
        rows.read(0)
