"""``diagnostics.html`` and its charts: what a run's looks show."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import jinja2

from flexmg.baselines.diagnostics.look import FILE
from flexmg.baselines.diagnostics.plots import draw
from flexmg.baselines.diagnostics.words import sentences
from flexmg.baselines.training import files, validation
from flexmg.baselines.training.records import RunRecords
from flexmg.errors import InvalidArgument

PAGE, CHARTS = "diagnostics.html", "diagnostics"


def diagnose(folder: Path) -> dict[str, Any]:
    """Draw a run's diagnostics, and say what they show.

    Args:
        folder: of a run.

    Returns:
        ``sentences``; ``charts`` (paths); ``page`` (path); ``looks`` (the rows).

    Raises:
        InvalidArgument: no run, or a run without looks.
        CheckpointError: a file of the run is broken, or the page cannot be written.
    """
    config = files.load(folder)
    records = RunRecords(folder)
    looks = records.rows(FILE)
    if not looks:
        raise InvalidArgument(
            f"the run in {folder} has no diagnostics: it was trained with diagnose_every = "
            f"{config.diagnose_every}, or ended before the first look. Train again with "
            "--diagnose-every 5, say"
        )
    checked = records.rows(validation.FILE)
    cliff = validation.cliff_of(checked) if len(checked) > 1 else None
    said = sentences(looks, cliff)
    charts = draw(folder / CHARTS, looks, checked)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("flexmg.baselines.diagnostics", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    images = {
        chart["file"]: base64.b64encode((folder / CHARTS / chart["file"]).read_bytes()).decode()
        for chart in charts
    }
    page = environment.get_template(PAGE).render(
        config=config, looks=looks, last=looks[-1], said=said, charts=charts, images=images
    )
    records.replace(PAGE, page)
    return {
        "sentences": said,
        "charts": [str(folder / CHARTS / chart["file"]) for chart in charts],
        "page": str(folder / PAGE),
        "looks": looks,
    }
