"""Rows of a data file, read lazily: JSON lines, JSON lists, Parquet.

What a row means is no business of this module. It finds the rows of a file, keeps only where each
one starts and ends, reads one when asked, and says precisely which row cannot be read and why.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from flexmg.errors import InvalidArgument, MissingDependency, ProblemError, SourceUnavailable

Row = Mapping[str, Any]

SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".parquet")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\r\n]*")
_ROWS_READ_AT_ONCE = 256


class RowError(ProblemError):
    """One row cannot be used.

    Args:
        reason: what is wrong, as the end of a sentence about the row or the field.
        field: the field at fault, or None when the row as a whole is.
    """

    def __init__(self, reason: str, field: str | None = None) -> None:
        super().__init__(f"field {field!r} {reason}" if field else reason)


class Rows(Protocol):
    """The rows of one split of a data set, in their order, numbered from 0."""

    @property
    def label(self) -> str:
        """What to call the whole in a message: a path or a data set id."""
        ...

    def __len__(self) -> int: ...

    def place(self, number: int) -> str:
        """Where a row stands, for messages: ``"train.jsonl, line 12"``."""
        ...

    def read(self, number: int) -> Row:
        """One row. Raises ``RowError`` when it cannot be read."""
        ...

    def scan(self) -> Iterator[Row | RowError]:
        """Every row in order; in the place of one that cannot be read, its error."""
        ...


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for key, value in pairs:
        if key in row:
            raise RowError("stands twice in the row", key)
        row[key] = value
    return row


def parse_row(raw: bytes) -> Row:
    """The JSON object in ``raw``.

    Raises:
        RowError: not UTF-8, not JSON, not an object, or an object with a repeated key.
    """
    try:
        row = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique_keys)
    except UnicodeDecodeError as error:
        raise RowError(f"the row is not UTF-8 (byte {error.start + 1} of it)") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, RowError):
            raise
        raise RowError(f"the row is not JSON that can be read ({error})") from error
    if not isinstance(row, dict):
        raise RowError(f"the row is not a JSON object with fields, but a {type(row).__name__}")
    return row


class JsonRows:
    """Rows of a ``.jsonl``, ``.jsonl.gz`` or ``.json`` file.

    A ``.json`` file holds one list of objects, or else one object a line. Only two offsets and a
    line number are kept per row, except for a compressed file, which is held in memory.

    Args:
        path: the file.

    Raises:
        SourceUnavailable: the file cannot be opened.
        ProblemError: the file as a whole cannot be cut into rows.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._starts, self._ends, self._lines = array("Q"), array("Q"), array("Q")
        self._content: bytes | None = None
        try:
            if path.suffix.lower() == ".gz":
                self._content = gzip.decompress(path.read_bytes())
            self._state = self._file_state()
            with self._open() as stream:
                if path.suffix.lower() == ".json" and self._first_character(stream) == b"[":
                    self._find_list_items(stream.read())
                else:
                    self._find_lines(stream)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ProblemError(f"{path} is not a whole gzip file ({error})") from error
        except OSError as error:
            raise SourceUnavailable(
                f"{path} cannot be read ({error.strerror or error}); give the path of a readable "
                f"{', '.join(SUFFIXES)} file"
            ) from error

    @property
    def label(self) -> str:
        """The path as it was given."""
        return str(self._path)

    def __len__(self) -> int:
        return len(self._starts)

    def place(self, number: int) -> str:
        """File and line (from 1) where the row starts."""
        return f"{self._path}, line {self._lines[number]}"

    def read(self, number: int) -> Row:
        """One row, read from the file again; see :class:`Rows`.

        Raises:
            RowError: the row cannot be read.
            SourceUnavailable: the file has gone.
            ProblemError: the file is no longer the one that was opened.
        """
        try:
            with self._open() as stream:
                self._check_unchanged()
                return parse_row(self._cut(stream, number))
        except OSError as error:
            raise SourceUnavailable(f"{self._path} cannot be read any more ({error})") from error

    def scan(self) -> Iterator[Row | RowError]:
        """Every row in order; see :class:`Rows`."""
        with self._open() as stream:
            for number in range(len(self)):
                try:
                    yield parse_row(self._cut(stream, number))
                except RowError as error:
                    yield error

    def _open(self) -> io.BufferedIOBase:
        if self._content is not None:
            return io.BytesIO(self._content)
        return self._path.open("rb")

    def _cut(self, stream: io.BufferedIOBase, number: int) -> bytes:
        stream.seek(self._starts[number])
        return stream.read(self._ends[number] - self._starts[number])

    def _file_state(self) -> tuple[int, int]:
        stat = self._path.stat()
        return stat.st_size, stat.st_mtime_ns

    def _check_unchanged(self) -> None:
        if self._content is None and self._file_state() != self._state:
            raise ProblemError(f"{self._path} has changed since it was loaded; load it again")

    def _keep(self, start: int, end: int, line: int) -> None:
        self._starts.append(start)
        self._ends.append(end)
        self._lines.append(line)

    @staticmethod
    def _first_character(stream: io.BufferedIOBase) -> bytes:
        head = stream.read(4096).removeprefix(_BYTE_ORDER_MARK).lstrip()
        stream.seek(0)
        return head[:1]

    def _find_lines(self, stream: io.BufferedIOBase) -> None:
        offset = 0
        for number, line in enumerate(stream, start=1):
            skip = len(_BYTE_ORDER_MARK) if number == 1 and line.startswith(_BYTE_ORDER_MARK) else 0
            if line[skip:].strip():
                self._keep(offset + skip, offset + len(line), number)
            offset += len(line)

    def _find_list_items(self, content: bytes) -> None:
        # Bytes that are not UTF-8 are carried along, so that only the row that holds them fails.
        text = content.decode("utf-8", "surrogateescape")
        decoder = json.JSONDecoder()
        position = text.index("[") + 1
        offset = len(text[:position].encode("utf-8", "surrogateescape"))
        line = text.count("\n", 0, position) + 1
        separator = "["
        while separator != "]":
            start = _end_of_space(text, position)
            if text[start : start + 1] == "]" and separator == "[":
                end = start
            else:
                try:
                    _, end = decoder.raw_decode(text, start)
                except (ValueError, RecursionError) as error:
                    line += text.count("\n", position, start)
                    raise ProblemError(
                        f"{self._path}, line {line}: the list breaks off at a row that is not JSON "
                        f"({error}), so the rows after it cannot be found; repair the file, or "
                        "write one row a line as .jsonl"
                    ) from error
                offset += len(text[position:start].encode("utf-8", "surrogateescape"))
                line += text.count("\n", position, start)
                size = len(text[start:end].encode("utf-8", "surrogateescape"))
                self._keep(offset, offset + size, line)
                offset += size
                line += text.count("\n", start, end)
            position = _end_of_space(text, end)
            separator = text[position : position + 1]
            offset += len(text[end : position + 1].encode("utf-8", "surrogateescape"))
            line += text.count("\n", end, position)
            position += 1
            if separator not in (",", "]"):
                raise ProblemError(
                    f"{self._path}, line {line}: expected a comma or the end of the list after a "
                    "row; repair the file, or write one row a line as .jsonl"
                )
        if text[position:].strip():
            raise ProblemError(
                f"{self._path}, line {line}: there is text after the end of the list"
            )


def _end_of_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


class ParquetRows:
    """Rows of a Parquet file, held as one Arrow table (compact, columnar) in memory.

    Args:
        path: the file.

    Raises:
        MissingDependency: pyarrow is not installed.
        SourceUnavailable: the file cannot be opened.
        ProblemError: the file is not Parquet.
    """

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise MissingDependency(
                f"{path} is a Parquet file, and reading it needs pyarrow: "
                "pip install 'flexmg[data]'"
            ) from error
        self._path = path
        try:
            # ParquetFile, unlike read_table, takes no columns from the names of the folders.
            with pyarrow.parquet.ParquetFile(path) as file:
                self._table = file.read()
        except pyarrow.ArrowException as error:
            raise ProblemError(f"{path} is not a readable Parquet file ({error})") from error
        except OSError as error:
            raise SourceUnavailable(f"{path} cannot be read ({error})") from error

    @property
    def label(self) -> str:
        """The path as it was given."""
        return str(self._path)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def place(self, number: int) -> str:
        """File and row, counted from 1 (a Parquet file has no lines)."""
        return f"{self._path}, row {number + 1}"

    def read(self, number: int) -> Row:
        """One row; see :class:`Rows`."""
        rows: list[Row] = self._table.slice(number, 1).to_pylist()
        return rows[0]

    def scan(self) -> Iterator[Row | RowError]:
        """Every row in order; see :class:`Rows`."""
        for start in range(0, len(self), _ROWS_READ_AT_ONCE):
            yield from self._table.slice(start, _ROWS_READ_AT_ONCE).to_pylist()


def has_row_suffix(path: Path) -> bool:
    """Whether the file's name ends as one that :func:`open_rows` reads."""
    return path.name.lower().endswith(SUFFIXES)


def open_rows(path: Path) -> Rows:
    """The rows of a data file, by its suffix (one of :data:`SUFFIXES`).

    Raises:
        InvalidArgument: the suffix is none of them.
        SourceUnavailable: there is no such file, or it cannot be opened.
        ProblemError: the file as a whole cannot be read.
    """
    if not has_row_suffix(path):
        raise InvalidArgument(
            f"{path} is not a data file that can be read: its name ends in none of "
            f"{', '.join(SUFFIXES)}"
        )
    if not path.is_file():
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise SourceUnavailable(
            f"{path} {what}; give the path of a {', '.join(SUFFIXES)} file, seen from "
            "the folder where the program runs"
        )
    return ParquetRows(path) if path.suffix.lower() == ".parquet" else JsonRows(path)
