"""A wheel of this tree, installed with nothing but the base dependencies."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from installation import Installation, environment_with, pip_install


@pytest.fixture(scope="session")
def project(repository: Path) -> dict[str, Any]:
    """The content of pyproject.toml."""
    return tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def wings(repository: Path, project: dict[str, Any]) -> dict[str, Path]:
    """Import name -> folder of each wing, as mapped in pyproject.toml."""
    mapping = project["tool"]["setuptools"]["package-dir"]
    return {name: repository / folder for name, folder in mapping.items()}


def copy_sources(repository: Path, wings: dict[str, Path], target: Path) -> Path:
    """Copy what a build reads, so that nothing is built inside the repository."""
    target.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(repository / name, target)
    for folder in wings.values():
        shutil.copytree(
            folder,
            target / folder.name,
            ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"),
        )
    return target


@pytest.fixture(scope="session")
def wheel(
    repository: Path, wings: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A wheel, built from the source distribution of this tree."""
    folder = tmp_path_factory.mktemp("build")
    source = copy_sources(repository, wings, folder / "source")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def installed(
    wheel: Path, project: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Installation:
    """The wheel with its base dependencies only, run beside decoys of the wings' folders."""
    folder = tmp_path_factory.mktemp("installed")
    installation = environment_with(folder, project["project"]["dependencies"])
    for name in ("envs", "baselines", "leaderboard"):
        decoy = installation.cwd / name
        decoy.mkdir()
        (decoy / "__init__.py").write_text("OWNER = 'the user'\n", encoding="utf-8")
    pip_install(installation, wheel)
    return installation


@pytest.fixture
def editable(
    repository: Path, wings: dict[str, Path], project: dict[str, Any], tmp_path: Path
) -> tuple[Installation, Path]:
    """An editable install of a copy of this tree, and the copy."""
    source = copy_sources(repository, wings, tmp_path / "source")
    needs = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    installation = environment_with(tmp_path, needs)
    pip_install(installation, "--editable", source)
    return installation, source
