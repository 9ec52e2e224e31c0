"""`make` on a fresh machine, and the versions it installs."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TARGETS = ("demo", "test", "test-full", "lint", "format", "type", "bench", "clean")
NOT_PINNED = {"ray", "vllm"}  # never installed by the Makefile


@pytest.fixture(scope="module")
def pins(repository: Path) -> dict[str, str]:
    """Name -> version in constraints.txt."""
    text = (repository / "constraints.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    pairs = (line.split("==") for line in lines)
    return {canonicalize_name(name): version for name, version in pairs}


def direct_requirements(project: dict[str, Any]) -> Iterator[Requirement]:
    extras = project["project"]["optional-dependencies"]
    texts = [*project["project"]["dependencies"], *(t for table in extras.values() for t in table)]
    for requirement in map(Requirement, texts):
        if requirement.name not in NOT_PINNED | {"flexmg"}:
            yield requirement


def make(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Not as a part of the `make` that runs the tests, whose settings would come along.
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    command = ["make", *arguments]
    return subprocess.run(
        command, cwd=repository, env=clean, capture_output=True, text=True, check=False
    )


def test_help_lists_every_target(repository: Path) -> None:
    listed = re.findall(r"^  make (\S+)", make(repository).stdout, flags=re.MULTILINE)
    assert set(TARGETS) <= set(listed)


def test_an_old_python_is_refused_with_its_version(repository: Path, tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.10.2\nexit 1\n')
    old.chmod(0o755)
    done = make(repository, "setup", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}")
    assert done.returncode != 0
    assert "needs Python 3.11, 3.12 or 3.13" in done.stderr
    assert "this is Python 3.10.2" in done.stderr


def test_no_python_at_all_is_said_clearly(repository: Path, tmp_path: Path) -> None:
    done = make(repository, "setup", "PYTHON=", f"VENV={tmp_path / 'venv'}")
    assert done.returncode != 0
    assert "make setup PYTHON=/path/to/python" in done.stderr


def test_every_requirement_is_pinned(project: dict[str, Any], pins: dict[str, str]) -> None:
    missing = {one.name for one in direct_requirements(project)}
    assert {name for name in missing if canonicalize_name(name) not in pins} == set()


def test_every_pin_lies_in_the_declared_range(
    project: dict[str, Any], pins: dict[str, str]
) -> None:
    outside = [
        f"{one} but {pins[canonicalize_name(one.name)]}"
        for one in direct_requirements(project)
        if not one.specifier.contains(pins[canonicalize_name(one.name)])
    ]
    assert outside == []


def test_ci_runs_the_documented_commands(repository: Path) -> None:
    script = (repository / ".ci" / "run").read_text(encoding="utf-8")
    ran = re.findall(r"^run make (\S+)", script, flags=re.MULTILINE)
    assert ran == ["lint", "type", "test", "test-long"]
