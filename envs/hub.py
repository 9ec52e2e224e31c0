"""Rows of public data sets, through the ``datasets`` library and at a fixed revision."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from flexmg.envs.rows import Row, RowError, Rows, open_rows
from flexmg.errors import MissingDependency, SourceUnavailable

# Long enough for a slow line, short enough that nobody thinks the program hangs.
_SECONDS_TO_ANSWER = 5.0


class HubRows:
    """Rows of one split of a data set that ``datasets`` has loaded (memory-mapped Arrow files).

    Args:
        dataset: a ``datasets.Dataset``.
        label: what to call it in messages.
    """

    def __init__(self, dataset: Any, label: str) -> None:
        self._dataset = dataset
        self._label = label

    @property
    def label(self) -> str:
        """Data set id and split."""
        return self._label

    def __len__(self) -> int:
        return len(self._dataset)

    def place(self, number: int) -> str:
        """Data set and row, counted from 1."""
        return f"{self._label}, row {number + 1}"

    def read(self, number: int) -> Row:
        """One row; see :class:`flexmg.envs.rows.Rows`."""
        row: Row = self._dataset[number]
        return row

    def scan(self) -> Iterator[Row | RowError]:
        """Every row in order; see :class:`flexmg.envs.rows.Rows`."""
        yield from self._dataset


def hub_rows(repository: str, configuration: str | None, split: str, revision: str) -> HubRows:
    """Rows of a data set at exactly this revision: from the local cache, else by downloading.

    A revision never changes, so the cache is looked at first and a cached copy needs no network.
    ``HF_HUB_OFFLINE=1`` is respected. Data sets with loading scripts are refused by ``datasets``.

    Args:
        repository: data set id, as ``"openai/gsm8k"``.
        configuration: its configuration, or None for the default one.
        split: the split's name in the data set itself.
        revision: full commit hash.

    Raises:
        MissingDependency: ``datasets`` is not installed.
        SourceUnavailable: there is no cached copy and none can be had; says what to download.
    """
    if importlib.util.find_spec("datasets") is None:
        raise MissingDependency(
            f"the data set {repository} is read through the datasets library: "
            "pip install 'flexmg[data]'"
        )
    wanted = repository + (f", configuration {configuration!r}" if configuration else "")
    dataset = _cached(repository, configuration, split, revision)
    if dataset is None:
        dataset = _downloaded(repository, configuration, split, revision, wanted)
    return HubRows(dataset, f"{wanted}, split {split!r}")


class JoinedRows:
    """The rows of several files, one after the other.

    Args:
        parts: the rows of each.
        label: what to call the whole in messages.
    """

    def __init__(self, parts: Sequence[Rows], label: str) -> None:
        self._parts = tuple(parts)
        self.label = label

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def _find(self, number: int) -> tuple[Rows, int]:
        for part in self._parts:
            if number < len(part):
                return part, number
            number -= len(part)
        raise IndexError(number)

    def place(self, number: int) -> str:
        """File and line."""
        part, own = self._find(number)
        return part.place(own)

    def read(self, number: int) -> Row:
        """One row; see :class:`flexmg.envs.rows.Rows`."""
        part, own = self._find(number)
        return part.read(own)

    def scan(self) -> Iterator[Row | RowError]:
        """Every row in order; see :class:`flexmg.envs.rows.Rows`."""
        for part in self._parts:
            yield from part.scan()


def hub_files(repository: str, files: Sequence[str], revision: str) -> JoinedRows:
    """Rows of raw files of a data set that ``datasets`` does not load, at this revision.

    Args:
        repository: data set id.
        files: their names in the repository.
        revision: full commit hash, or a branch where none is known.

    Raises:
        MissingDependency: ``huggingface_hub`` is not installed.
        SourceUnavailable: a file is not cached and cannot be had.
    """
    if importlib.util.find_spec("huggingface_hub") is None:
        raise MissingDependency(
            f"the data set {repository} is downloaded through huggingface_hub: "
            "pip install 'flexmg[data]'"
        )
    parts = [open_rows(Path(_hub_file(repository, file, revision))) for file in files]
    return JoinedRows(parts, f"{repository} ({', '.join(files)})")


def _hub_file(repository: str, file: str, revision: str) -> str:
    from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache

    known = try_to_load_from_cache(repository, file, revision=revision, repo_type="dataset")
    if isinstance(known, str):
        return known
    try:
        if not constants.HF_HUB_OFFLINE:
            _reach_hub()
        return hf_hub_download(repository, file, revision=revision, repo_type="dataset")
    except Exception as error:
        raise SourceUnavailable(
            f"{file} of {repository} (revision {revision}) is not in the local cache and cannot be "
            f"downloaded ({_one_line(error)}); where there is a network, run "
            f"huggingface_hub.hf_hub_download({repository!r}, {file!r}, revision={revision!r}, "
            "repo_type='dataset'), or give the path of a file that you have: "
            "source='path/to/file.jsonl'"
        ) from error


def _cached(repository: str, configuration: str | None, split: str, revision: str) -> Any | None:
    from datasets.packaged_modules.cache.cache import Cache

    builder = Cache(
        repo_id=repository,
        dataset_name=repository.rpartition("/")[2],
        config_name=configuration or "default",
        version="0.0.0",
        hash=revision,
    )
    if not os.path.isdir(builder.cache_dir):
        return None
    try:
        return builder.as_dataset(split=split)
    except (OSError, ValueError) as error:
        raise SourceUnavailable(
            f"the cached copy of {repository} in {builder.cache_dir} cannot be read ({error}); "
            "delete that folder and load the data set again"
        ) from error


def _downloaded(
    repository: str, configuration: str | None, split: str, revision: str, wanted: str
) -> Any:
    import datasets

    lacking = f"{wanted} (revision {revision}) is not in the local cache"
    arguments = ", ".join(repr(value) for value in (repository, configuration) if value is not None)
    remedy = (
        f"where there is a network, run datasets.load_dataset({arguments}, "
        f"revision={revision!r}) to fill the cache, or give the path of a file that you have: "
        "source='path/to/file.jsonl'"
    )
    try:
        if not datasets.config.HF_HUB_OFFLINE:
            _reach_hub()
        dataset = datasets.load_dataset(repository, configuration, split=split, revision=revision)
    except Exception as error:
        raise SourceUnavailable(
            f"{lacking} and cannot be downloaded ({_one_line(error)}); {remedy}"
        ) from error
    # When the hub is lost on the way, datasets falls back on whatever revision it has cached.
    if not all(revision in file["filename"] for file in dataset.cache_files):
        raise SourceUnavailable(f"{lacking}, only another revision of it is; {remedy}")
    return dataset


def _reach_hub() -> None:
    """Ask the hub for a sign of life; left alone, its client retries for half a minute."""
    from huggingface_hub import constants, get_session

    get_session().head(constants.ENDPOINT, timeout=_SECONDS_TO_ANSWER)


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
