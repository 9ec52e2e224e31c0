"""Virtual environments that hold what a test says, made offline and at once."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


@dataclass(frozen=True)
class Installation:
    """A virtual environment, and a folder to run it from."""

    folder: Path
    cwd: Path

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment; ``python`` is its interpreter."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        return subprocess.run(
            [self.folder / "bin" / command[0], *command[1:]],
            cwd=self.cwd,
            env=clean | {"COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def python(self, code: str) -> str:
        """What ``code`` prints."""
        done = self.run("python", "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def closure(requirements: Sequence[str]) -> set[str]:
    """The distributions behind these requirements, all the way down."""
    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        waiting += map(Requirement, distribution(name).requires or [])
    return found


def environment_with(folder: Path, requirements: Sequence[str]) -> Installation:
    """A new virtual environment that holds these requirements and nothing else.

    Their files are linked from the running environment: as good as installed, and it
    takes no network and no time.
    """
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    for name in closure(requirements):
        files = distribution(name).files or []
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            link = site / top
            if not link.exists():
                link.symlink_to(Path(str(distribution(name).locate_file(top))))
    cwd = folder / "work"
    cwd.mkdir()
    return Installation(folder / "venv", cwd)


def pip_install(installation: Installation, *what: str | Path) -> None:
    """Install into the environment, offline, without dependencies."""
    command = [sys.executable, "-m", "pip", "--python", installation.folder / "bin" / "python"]
    options = ["install", "--no-deps", "--no-index", "--no-build-isolation"]
    done = subprocess.run([*command, *options, *what], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
