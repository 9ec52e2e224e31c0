"""Where mathematics problems come from: names, files and generators behind one ``load``."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flexmg.envs.hub import hub_rows
from flexmg.envs.math.fields import MAPPINGS, FieldMapping, mapping_from, recognise
from flexmg.envs.math.reasoning_gym import PREFIX, ReasoningGymSource
from flexmg.envs.rows import SUFFIXES, Row, RowError, has_row_suffix, open_rows
from flexmg.envs.sources import FirstProblems, OnMalformed, ParsedRow, RowSource, check_limit
from flexmg.errors import InvalidArgument
from flexmg.problem import ProblemSource

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, slots=True)
class PublicDataSet:
    """A data set that is known by a short name and loaded through ``datasets``.

    Args:
        repository: data set id.
        revision: full commit hash; the same problems for ever.
        splits: our split name -> the name that the data set itself uses.
        mapping: key of :data:`flexmg.envs.math.fields.MAPPINGS`.
        licence: a note for the docs; look at the data set's card before you redistribute.
        configuration: the data set's configuration, or None for its default.
    """

    repository: str
    revision: str
    splits: Mapping[str, str]
    mapping: str
    licence: str
    configuration: str | None = None


# Two AIME copies call their only split "train" or "test" as they like; both are test problems.
PUBLIC: Mapping[str, PublicDataSet] = {
    "gsm8k": PublicDataSet(
        "openai/gsm8k",
        "740312add88f781978c0658806c59bc2815b9866",
        {"train": "train", "test": "test"},
        "gsm8k",
        "MIT",
        configuration="main",
    ),
    "math500": PublicDataSet(
        "HuggingFaceH4/MATH-500",
        "6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be",
        {"test": "test"},
        "problem-answer",
        "MIT (MATH, and the split of PRM800K); texts of contest problems",
    ),
    "aime2024": PublicDataSet(
        "HuggingFaceH4/aime_2024",
        "2fe88a2f1091d5048c0f36abc874fb997b3dd99a",
        {"test": "train"},
        "problem-answer",
        "none stated; problems (c) MAA",
    ),
    "aime2025": PublicDataSet(
        "math-ai/aime25",
        "563bb8404243c5f09de6ec262f2db674fe5bce9b",
        {"test": "test"},
        "problem-answer",
        "see its card; problems (c) MAA",
    ),
    "deepscaler": PublicDataSet(
        "agentica-org/DeepScaleR-Preview-Dataset",
        "b6ae8c60f5c1f2b594e2140b91c49c9ad0949e29",
        {"train": "train"},
        "problem-answer",
        "MIT; texts of contest problems",
    ),
    "olympiadbench": PublicDataSet(
        "math-ai/olympiadbench",
        "4faaf1e6ec17d11a4218a9bf4c049ecaf954dd84",
        {"test": "test"},
        "olympiadbench",
        "MIT (OlympiadBench)",
    ),
    "minerva": PublicDataSet(
        "math-ai/minervamath",
        "ee46ddc498933b1977577953250ca5c66be64f96",
        {"test": "test"},
        "question-answer",
        "NON-COMMERCIAL: MIT OpenCourseWare, CC BY-NC-SA 4.0",
    ),
    "dapo-math": PublicDataSet(
        "open-r1/DAPO-Math-17k-Processed",
        "31dd309567e3da778038cc87d868b6097a3ccf68",
        {"train": "train"},
        "prompt-solution",
        "Apache-2.0 (DAPO-Math-17k)",
        configuration="en",
    ),
}

NAMES = ("synthetic", *PUBLIC)


def load(
    source: str | os.PathLike[str] = "synthetic",
    *,
    split: str = "train",
    mapping: Mapping[str, str] | None = None,
    on_malformed: OnMalformed = "raise",
    limit: int | None = None,
    level: int | None = None,
    **options: Any,
) -> ProblemSource:
    """Mathematics problems by name, by path, or from a generator.

    Args:
        source: ``"synthetic"``; a name in :data:`PUBLIC`; ``"reasoning-gym:<generator>"``, if
            wanted with ``?setting=value&...``; or the path of a ``.jsonl``, ``.jsonl.gz``,
            ``.json`` or ``.parquet`` file, whose fields are recognised.
        split: ``"train"``, ``"validation"`` or ``"test"``. Not every data set has each. A file is
            one split, whatever it is called.
        mapping: names of the fields of a file, as
            ``{"statement": "question", "gold": "answer"}``; see
            :func:`flexmg.envs.math.fields.mapping_from`.
        on_malformed: what a broken row does: ``"raise"``, or ``"skip"`` to go on without it.
        limit: only the first so many problems.
        level: difficulty; for ``"synthetic"``.
        **options: further settings of a generator.

    Returns:
        A source. Those over rows have ``skipped`` (messages) and ``fingerprint`` as well.

    Raises:
        InvalidArgument: a name, split or setting that does not exist; the message says which do.
        SourceUnavailable: the data are not here; the message says what to download.
        MalformedProblem: a row is broken; the message gives file, line and field.
        MissingDependency: an optional package is needed; the message says how to install it.
    """
    if split not in SPLITS:
        raise InvalidArgument(f"split={split!r} is none of {', '.join(SPLITS)}")
    check_limit(limit)
    if not isinstance(source, str | os.PathLike):
        raise InvalidArgument(f"source={source!r} is neither the name of a source nor a path")
    name = os.fspath(source)
    path = Path(name)
    if name == "synthetic" or name.startswith(PREFIX):
        if mapping is not None:
            raise InvalidArgument(f"mapping names the fields of a file; {name} has none")
        return _generated(name, split, limit, level, options)
    _refuse_settings(name, level, options)
    if isinstance(source, str) and name in PUBLIC:
        if mapping is not None:
            raise InvalidArgument(f"mapping names the fields of a file; those of {name} are known")
        return _public(name, split, on_malformed, limit)
    if has_row_suffix(path) or path.is_file():
        return _file(path, split, mapping, on_malformed, limit)
    close = difflib.get_close_matches(name, NAMES, n=1)
    raise InvalidArgument(
        f"there is no source {name!r}"
        + (f" (did you mean {close[0]!r}?)" if close else "")
        + f"; the sources are {', '.join(NAMES)}, {PREFIX}<generator>, and paths that end in "
        f"{', '.join(SUFFIXES)}"
    )


def _generated(
    name: str, split: str, limit: int | None, level: int | None, options: dict[str, Any]
) -> ProblemSource:
    generated: ProblemSource
    if name == "synthetic":
        from flexmg.envs.math.synthetic import SyntheticSource

        settings = options if level is None else {"level": level, **options}
        generated = SyntheticSource(split, **settings)
    else:
        _refuse_settings(name, level, {})
        generated = ReasoningGymSource(name.removeprefix(PREFIX), split, **options)
    return generated if limit is None else FirstProblems(generated, limit)


def _refuse_settings(name: str, level: int | None, options: Mapping[str, Any]) -> None:
    if level is not None:
        raise InvalidArgument(
            f"level={level} cannot be chosen for {name}: only synthetic problems are generated "
            "to a level"
        )
    if options:
        raise InvalidArgument(
            f"{name} has no setting {next(iter(options))!r}; only generators have settings"
        )


def _public(name: str, split: str, on_malformed: OnMalformed, limit: int | None) -> RowSource:
    data_set = PUBLIC[name]
    if split not in data_set.splits:
        raise InvalidArgument(
            f"{name} has no split {split!r}; it has {', '.join(map(repr, data_set.splits))}"
        )
    rows = hub_rows(
        data_set.repository, data_set.configuration, data_set.splits[split], data_set.revision
    )
    parse = MAPPINGS[data_set.mapping].parse
    return RowSource(
        rows, parse, name=name, split=split, stem=name, on_malformed=on_malformed, limit=limit
    )


def _file(
    path: Path,
    split: str,
    mapping: Mapping[str, str] | None,
    on_malformed: OnMalformed,
    limit: int | None,
) -> RowSource:
    parse = _Recognition().parse if mapping is None else mapping_from(mapping).parse
    return RowSource(
        open_rows(path),
        parse,
        name=str(path),
        split=split,
        stem=path.name.partition(".")[0],
        on_malformed=on_malformed,
        limit=limit,
    )


class _Recognition:
    """Reads rows by the mapping that fits the first row whose fields are known."""

    def __init__(self) -> None:
        self._mapping: FieldMapping | None = None

    def parse(self, row: Row) -> ParsedRow:
        if self._mapping is None:
            self._mapping = recognise(row)
        if self._mapping is None:
            known = sorted({f"{m.statement} + {m.gold}" for m in MAPPINGS.values()})
            raise RowError(
                f"the fields {', '.join(map(repr, row)) or '(none)'} are not those of a known data "
                f"set ({', '.join(known)}): name them by "
                "mapping={'statement': ..., 'gold': ...}"
            )
        return self._mapping.parse(row)
