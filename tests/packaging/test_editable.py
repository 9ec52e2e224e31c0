"""In an editable install, new files are there at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from installation import Installation

pytestmark = pytest.mark.xdist_group("wheel")


@pytest.mark.parametrize(
    ("wing", "parent"),
    [("flexmg", "flexmg"), ("envs", "flexmg.envs"), ("baselines", "flexmg.baselines")],
)
def test_new_files_need_no_new_install(
    editable: tuple[Installation, Path], wing: str, parent: str
) -> None:
    installation, source = editable
    (source / wing / "fresh.py").write_text("WORD = 'module'\n", encoding="utf-8")
    (source / wing / "later").mkdir()
    (source / wing / "later" / "__init__.py").write_text("WORD = 'package'\n", encoding="utf-8")
    code = f"""
from {parent}.fresh import WORD as first
from {parent}.later import WORD as second
print(first, second)
"""
    assert installation.python(code) == "module package"
