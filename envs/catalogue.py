"""Sources by name or path: what the domains share of their ``load``.

A domain has a table of public data sets, mappings from rows to problems, and generators. How
a name is looked up, a file opened, fields recognised and a slip answered is here.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flexmg.envs.hub import hub_files, hub_rows
from flexmg.envs.rows import SUFFIXES, Row, RowError, Rows, has_row_suffix, open_rows
from flexmg.envs.sources import FirstProblems, OnMalformed, Parse, ParsedRow, RowSource, check_limit
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
        mapping: name of the mapping that reads its rows.
        licence: a note for the docs; look at the data set's card before you redistribute.
        configuration: the data set's configuration, or None for its default.
        files: raw row files, by our split name, of a data set that ``datasets`` cannot load
            because it comes with a script.
    """

    repository: str
    revision: str
    splits: Mapping[str, str]
    mapping: str
    licence: str
    configuration: str | None = None
    files: Mapping[str, tuple[str, ...]] | None = None


@dataclass(frozen=True)
class Catalogue:
    """The sources of one domain.

    Args:
        public: data sets by short name.
        parsers: what reads a row, by name of the mapping.
        fits: whether a row has the fields of a mapping, by its name; in order of recognition.
        from_user: the parser of a mapping that the user gives.
        known_fields: of the mappings, for an error message.
        generated: makes a generated source from (name, split, settings), or returns None for
            a name that is no generator's.
        generators: their names, for an error message.
        folder: opens a folder of problems, if the subject has such: rows and what reads them.
    """

    public: Mapping[str, PublicDataSet]
    parsers: Mapping[str, Parse]
    fits: Mapping[str, Callable[[Row], bool]]
    from_user: Callable[[Mapping[str, str]], Parse]
    known_fields: str
    generated: Callable[[str, str, dict[str, Any]], ProblemSource | None]
    generators: tuple[str, ...]
    folder: Callable[[Path], tuple[Rows, Parse]] | None = None

    def load(
        self,
        source: str | os.PathLike[str],
        *,
        split: str,
        mapping: Mapping[str, str] | None,
        on_malformed: OnMalformed,
        limit: int | None,
        level: int | None,
        options: dict[str, Any],
    ) -> ProblemSource:
        """A source by name, path or generator.

        Raises:
            InvalidArgument: a name, split or setting that does not exist; says which do.
            SourceUnavailable: the data are not here; says what to download.
            MalformedProblem: a row is broken; says file, line and field.
            MissingDependency: an optional package is needed.
        """
        if split not in SPLITS:
            raise InvalidArgument(f"split={split!r} is none of {', '.join(SPLITS)}")
        check_limit(limit)
        if not isinstance(source, str | os.PathLike):
            raise InvalidArgument(f"source={source!r} is neither the name of a source nor a path")
        name = os.fspath(source)
        settings = options if level is None else {"level": level, **options}
        generated = self.generated(name, split, settings)
        if generated is not None:
            if mapping is not None:
                raise InvalidArgument(f"mapping names the fields of a file; {name} has none")
            return generated if limit is None else FirstProblems(generated, limit)
        refuse_settings(name, level, options)
        rows, parse, label, stem = self._rows(source, name, split, mapping)
        return RowSource(
            rows, parse, name=label, split=split, stem=stem, on_malformed=on_malformed, limit=limit
        )

    def _rows(
        self,
        source: str | os.PathLike[str],
        name: str,
        split: str,
        mapping: Mapping[str, str] | None,
    ) -> tuple[Rows, Parse, str, str]:
        path = Path(name)
        if isinstance(source, str) and name in self.public:
            if mapping is not None:
                raise InvalidArgument(
                    f"mapping names the fields of a file; those of {name} are known"
                )
            return self._public_rows(name, split), self._public_parse(name), name, name
        if self.folder is not None and path.is_dir():
            if mapping is not None:
                raise InvalidArgument(
                    f"mapping names the fields of a file; {path} is a folder, whose files are known"
                )
            return *self.folder(path), str(path), path.name
        if has_row_suffix(path) or path.is_file():
            parse = self.recognising if mapping is None else lambda: self.from_user(mapping)
            return open_rows(path), parse(), str(path), path.name.partition(".")[0]
        close = difflib.get_close_matches(name, self.names, n=1)
        raise InvalidArgument(
            f"there is no source {name!r}"
            + (f" (did you mean {close[0]!r}?)" if close else "")
            + f"; the sources are {', '.join(self.names)}, and paths that end in "
            f"{', '.join(SUFFIXES)}"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that is known."""
        return (*self.generators, *self.public)

    def _public_rows(self, name: str, split: str) -> Rows:
        data_set = self.public[name]
        known = data_set.files if data_set.files is not None else data_set.splits
        if split not in known:
            raise InvalidArgument(
                f"{name} has no split {split!r}; it has {', '.join(map(repr, known))}"
            )
        if data_set.files is not None:
            return hub_files(data_set.repository, data_set.files[split], data_set.revision)
        return hub_rows(
            data_set.repository, data_set.configuration, data_set.splits[split], data_set.revision
        )

    def _public_parse(self, name: str) -> Parse:
        return self.parsers[self.public[name].mapping]

    def recognising(self) -> Parse:
        """A parser that settles for the mapping which fits the first row it can tell."""
        chosen: list[Parse] = []

        def parse(row: Row) -> ParsedRow:
            if not chosen:
                name = next((name for name, fits in self.fits.items() if fits(row)), None)
                if name is None:
                    raise RowError(
                        f"the fields {', '.join(map(repr, row)) or '(none)'} are not those of a "
                        f"known data set ({self.known_fields}): name them by "
                        "mapping={'statement': ..., ...}"
                    )
                chosen.append(self.parsers[name])
            return chosen[0](row)

        return parse


def refuse_settings(name: str, level: int | None, options: Mapping[str, Any]) -> None:
    """Refuse settings of a generator for a source that is none.

    Raises:
        InvalidArgument: there is one.
    """
    if level is not None:
        raise InvalidArgument(
            f"level={level} cannot be chosen for {name}: only synthetic problems are generated "
            "to a level"
        )
    if options:
        raise InvalidArgument(
            f"{name} has no setting {next(iter(options))!r}; only generators have settings"
        )
