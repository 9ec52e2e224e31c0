"""Where mathematics problems come from: names, files and generators behind one ``load``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from flexmg.envs.catalogue import SPLITS, Catalogue, PublicDataSet, refuse_settings
from flexmg.envs.math.fields import MAPPINGS, mapping_from
from flexmg.envs.math.reasoning_gym import PREFIX, ReasoningGymSource
from flexmg.envs.sources import OnMalformed
from flexmg.problem import ProblemSource

__all__ = ["NAMES", "PUBLIC", "SPLITS", "load"]

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
    return CATALOGUE.load(
        source,
        split=split,
        mapping=mapping,
        on_malformed=on_malformed,
        limit=limit,
        level=level,
        options=options,
    )


def _generated(name: str, split: str, settings: dict[str, Any]) -> ProblemSource | None:
    if name == "synthetic":
        from flexmg.envs.math.synthetic import SyntheticSource

        return SyntheticSource(split, **settings)
    if not name.startswith(PREFIX):
        return None
    refuse_settings(name, settings.pop("level", None), {})
    return ReasoningGymSource(name.removeprefix(PREFIX), split, **settings)


CATALOGUE = Catalogue(
    public=PUBLIC,
    parsers={name: mapping.parse for name, mapping in MAPPINGS.items()},
    fits={name: mapping.fits for name, mapping in MAPPINGS.items()},
    from_user=lambda fields: mapping_from(fields).parse,
    known_fields=", ".join(sorted({f"{m.statement} + {m.gold}" for m in MAPPINGS.values()})),
    generated=_generated,
    generators=("synthetic", f"{PREFIX}<generator>"),
)
