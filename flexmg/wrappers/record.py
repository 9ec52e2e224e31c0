"""Transcripts in a file: one line of JSON per finished episode."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pettingzoo.utils import BaseWrapper

from flexmg.errors import FlexMGError, TranscriptError
from flexmg.transcript import Transcript


class RecordError(FlexMGError, OSError):
    """A file of transcripts cannot be written or read; what stands in it is left as it is."""


class RecordEpisodes(BaseWrapper):
    """Appends the transcript of every finished episode to a JSONL file.

    The file is only ever appended to, and a line is handed to the operating system in one
    write as soon as its episode has been graded: a crash in the middle of a later episode
    loses that episode alone, and several processes may write to one file.

    Args:
        env: a Flexible Markov Game, wrapped or not.
        path: of the file; folders that lack are made.

    Raises:
        RecordError: the file cannot be opened for appending.
    """

    def __init__(self, env: Any, path: str | os.PathLike[str]) -> None:
        super().__init__(env)
        self.path = Path(path)
        self.recorded = 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.open("ab").close()
        except OSError as error:
            raise RecordError(f"episodes cannot be recorded in {self.path}: {error}") from error

    def step(self, action: Any) -> None:
        """Act; when that ends the episode, append its transcript.

        Raises:
            RecordError: the transcript cannot be written (a full disk ...).
        """
        was_over = self.env.finished
        self.env.step(action)
        if self.env.finished and not was_over:
            append(self.path, self.env.transcript())
            self.recorded += 1


def append(path: str | os.PathLike[str], transcript: Transcript) -> None:
    """Append one transcript to a file, in one write.

    A line that an earlier crash left without its end stays alone on its line.

    Raises:
        RecordError: it cannot be written.
    """
    line = transcript.to_json().encode() + b"\n"
    try:
        with open(path, "ab+", buffering=0) as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    line = b"\n" + line
            written = file.write(line)
    except OSError as error:
        raise RecordError(f"a transcript cannot be appended to {path}: {error}") from error
    if written != len(line):
        raise RecordError(
            f"only {written} of {len(line)} bytes of a transcript fitted into {path}; free some "
            "space, its last line is torn"
        )


def read(path: str | os.PathLike[str]) -> Iterator[tuple[int, Transcript | TranscriptError]]:
    """The transcripts of a file with their line numbers, from 1; empty lines are left out.

    Yields:
        Per line its number, and the transcript or the error that says what is wrong with
        it (a torn line must not hide the good ones after it).

    Raises:
        RecordError: the file cannot be read.
    """
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    yield number, Transcript.from_json(line)
                except TranscriptError as error:
                    yield number, TranscriptError(f"{path}, line {number}: {error}")
    except OSError as error:
        raise RecordError(f"transcripts cannot be read from {path}: {error}") from error
