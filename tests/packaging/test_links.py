"""The link tree for type checkers and editors shows the package as a wheel does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = """
[tool.setuptools.package-dir]
"house" = "house"
"house.cellar" = "cellar"
"""


@pytest.fixture
def tree(tmp_path: Path, repository: Path) -> Path:
    """A small project with one wing, and a copy of the tool."""
    for name in ("house", "cellar", "tools"):
        (tmp_path / name).mkdir()
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "house" / "__init__.py").touch()
    (tmp_path / "cellar" / "wine.py").touch()
    source = repository / "tools" / "links.py"
    (tmp_path / "tools" / "links.py").write_bytes(source.read_bytes())
    return tmp_path


def link(tree: Path) -> str:
    command = [sys.executable, tree / "tools" / "links.py"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_wing_appears_inside_the_package(tree: Path) -> None:
    link(tree)
    wine = tree / ".links" / "house" / "cellar" / "wine.py"
    assert wine.resolve() == tree / "cellar" / "wine.py"


def test_a_second_run_changes_nothing(tree: Path) -> None:
    link(tree)
    assert link(tree) == ".links: 0 links changed"


def test_a_new_module_gets_a_link(tree: Path) -> None:
    link(tree)
    (tree / "house" / "roof.py").touch()
    link(tree)
    assert (tree / ".links" / "house" / "roof.py").exists()


def test_a_removed_module_loses_its_link(tree: Path) -> None:
    (tree / "house" / "roof.py").touch()
    link(tree)
    (tree / "house" / "roof.py").unlink()
    link(tree)
    assert not (tree / ".links" / "house" / "roof.py").is_symlink()


def test_the_tree_can_be_moved_with_the_project(tree: Path) -> None:
    link(tree)
    moved = tree.rename(tree.parent / "elsewhere")
    assert (moved / ".links" / "house" / "cellar" / "wine.py").exists()
