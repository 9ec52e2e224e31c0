"""Where programming problems come from: names, files and generators behind one ``load``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from flexmg.envs.catalogue import SPLITS, Catalogue, PublicDataSet
from flexmg.envs.code.fields import MAPPINGS, mapping_from
from flexmg.envs.rows import Row, RowError, parse_row
from flexmg.envs.sources import OnMalformed
from flexmg.errors import SourceUnavailable
from flexmg.problem import ProblemSource

__all__ = ["NAMES", "PUBLIC", "SPLITS", "load"]

# Revisions as other public projects pin them; docs/sources.md says what was tried.
_PLAIN: Mapping[str, PublicDataSet] = {
    "mbpp": PublicDataSet(
        "google-research-datasets/mbpp",
        "4bb6404fdc6cacfda99d4ac4205087b89d32030c",
        {"train": "train", "validation": "validation", "test": "test"},
        "mbpp",
        "CC BY 4.0",
        configuration="full",
    ),
    "humaneval": PublicDataSet(
        "openai/openai_humaneval",
        "7dce6050a7d6d172f3cc5c32aa97f52fa1a2e544",
        {"test": "test"},
        "humaneval",
        "MIT",
    ),
    "deepcoder": PublicDataSet(
        "agentica-org/DeepCoder-Preview-Dataset",
        "177913a7bd43791646ef6a43645caa3c871ab3db",
        {"train": "train"},
        "deepcoder",
        "MIT; texts of contest problems",
        configuration="primeintellect",
    ),
    "codeforces": PublicDataSet(
        "open-r1/codeforces",
        "fbe3f6e903ee854eec2e69e9d96d0306cde59baf",
        {"train": "train", "test": "test"},
        "codeforces",
        "CC BY 4.0 by its tag, ODC-By by its card; statements (c) Codeforces",
        configuration="verifiable",
    ),
    "codecontests": PublicDataSet(
        "deepmind/code_contests",
        "802411c3010cb00d1b05bad57ca77365a3c699d6",
        {"train": "train", "validation": "valid", "test": "test"},
        "codecontests",
        "CC BY 4.0",
    ),
}
# Its configurations, and the splits that each has.
DEEPCODER: Mapping[str, tuple[str, ...]] = {
    "primeintellect": ("train",),
    "taco": ("train",),
    "lcbv5": ("train", "test"),
    "codeforces": ("test",),
}
# The raw file that each release of LiveCodeBench adds.
LIVECODEBENCH = tuple(f"test{number}.jsonl" for number in ("", 2, 3, 4, 5, 6))


def _tables() -> dict[str, PublicDataSet]:
    tables = dict(_PLAIN)
    for name, splits in DEEPCODER.items():
        tables[f"deepcoder:{name}"] = replace(
            _PLAIN["deepcoder"], splits={split: split for split in splits}, configuration=name
        )
    # As in its own script: release_v3 is all rows up to the third file, v3 the third file alone.
    for release, file in enumerate(LIVECODEBENCH, start=1):
        tables[f"livecodebench:release_v{release}"] = _livecodebench(LIVECODEBENCH[:release])
        tables[f"livecodebench:v{release}"] = _livecodebench((file,))
    tables["livecodebench"] = _livecodebench(LIVECODEBENCH)
    tables["apps"] = PublicDataSet(
        "codeparrot/apps",
        "21e74ddf8de1a21436da12e3e653065c5213e9d1",
        {},
        "apps",
        "MIT",
        files={"train": ("train.jsonl",), "test": ("test.jsonl",)},
    )
    return tables


def _livecodebench(files: tuple[str, ...]) -> PublicDataSet:
    return PublicDataSet(
        "livecodebench/code_generation_lite",
        "0fe84c3912ea0c4d4a78037083943e8f0c4dd505",
        {},
        "livecodebench",
        "CC (see its card); statements (c) the contest sites",
        files={"test": files},
    )


PUBLIC = _tables()
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
    """Programming problems by name, by path, or from the generator.

    Args:
        source: ``"synthetic"``; a name in :data:`NAMES`; the path of a ``.jsonl``,
            ``.jsonl.gz``, ``.json`` or ``.parquet`` file, whose fields are recognised; or the
            path of a folder of problems as APPS keeps them.
        split: ``"train"``, ``"validation"`` or ``"test"``. Not every data set has each. A file
            is one split, whatever it is called.
        mapping: names of the fields of a file, see
            :func:`flexmg.envs.code.fields.mapping_from`.
        on_malformed: what a broken row does: ``"raise"``, or ``"skip"`` to go on without it.
            A problem without tests is broken.
        limit: only the first so many problems.
        level: difficulty; for ``"synthetic"``.
        **options: further settings of the generator.

    Raises:
        InvalidArgument: a name, split or setting that does not exist; the message says which do.
        SourceUnavailable: the data are not here; the message says what to download.
        MalformedProblem: a row is broken; the message gives file, line and field.
        MissingDependency: an optional package is needed; the message says how to install it.
    """
    return CATALOGUE.load(
        source,
        split=split,
        mapping=mapping,
        on_malformed=on_malformed,
        limit=limit,
        level=level,
        options=options,
    )


class AppsFolder:
    """Problems as APPS keeps them: a folder each, with a file per field.

    Args:
        folder: holds the problems' folders.

    Raises:
        SourceUnavailable: it holds none.
    """

    FILES: Mapping[str, str] = {
        "question": "question.txt",
        "input_output": "input_output.json",
        "solutions": "solutions.json",
        "starter_code": "starter_code.py",
    }

    def __init__(self, folder: Path) -> None:
        self.label = str(folder)
        self._problems = sorted(one.parent for one in folder.glob(f"*/{self.FILES['question']}"))
        if not self._problems:
            raise SourceUnavailable(
                f"{folder} is a folder, but holds no problems as APPS keeps them "
                "(NUMBER/question.txt); give the path of a file, or of such a folder"
            )

    def __len__(self) -> int:
        return len(self._problems)

    def place(self, number: int) -> str:
        """The problem's own folder."""
        return str(self._problems[number])

    def read(self, number: int) -> Row:
        """One row; see :class:`flexmg.envs.rows.Rows`."""
        folder = self._problems[number]
        row: dict[str, Any] = {"problem_id": f"apps-{folder.name}"}
        for field, name in self.FILES.items():
            try:
                row[field] = (folder / name).read_text(encoding="utf-8")
            except FileNotFoundError:
                continue
            except (OSError, UnicodeDecodeError) as error:
                raise RowError(f"cannot be read ({error})", field) from error
        if "input_output" in row:
            row["input_output"] = parse_row(row["input_output"].encode())
        return row

    def scan(self) -> Iterator[Row | RowError]:
        """Every row in order; see :class:`flexmg.envs.rows.Rows`."""
        for number in range(len(self)):
            try:
                yield self.read(number)
            except RowError as error:
                yield error


def _generated(name: str, split: str, settings: dict[str, Any]) -> ProblemSource | None:
    if name != "synthetic":
        return None
    from flexmg.envs.code.synthetic import SyntheticSource

    return SyntheticSource(split, **settings)


CATALOGUE = Catalogue(
    public=PUBLIC,
    parsers={name: kind.parse for name, kind in MAPPINGS.items()},
    fits={name: kind.fits for name, kind in MAPPINGS.items()},
    from_user=mapping_from,
    known_fields=", ".join(" + ".join(kind.needs) for kind in MAPPINGS.values())
    + "; rows without tests are of no use",
    generated=_generated,
    generators=("synthetic",),
    folder=lambda path: (AppsFolder(path), MAPPINGS["apps"].parse),
)
