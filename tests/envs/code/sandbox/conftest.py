"""Running code in a fresh interpreter: what is confined stays confined, so never the tests' own.

The modules of the sandbox are there as those of a package ``sandbox``, without flexmg, as they are
in a worker's process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flexmg.envs.code.sandbox import probe

NOBODY = 65534
FOLDER = probe.LAUNCH.parent
PREAMBLE = """
import json, os, sys
from pathlib import Path
sys.path.append({folder!r})
import launch
sys.path.pop()
launch.load_package("sandbox", Path({folder!r}))
from sandbox import confinement, landlock, privileges, seccomp
found = None
"""
AS_NOBODY = [
    "setpriv",
    *(f"--{which}={NOBODY}" for which in ("reuid", "regid")),
    "--clear-groups",
    *(f"--{which}=-all" for which in ("inh-caps", "ambient-caps", "bounding-set")),
]


def fresh(code: str, command: list[str] | None = None, timeout: float = 60):
    """What the code leaves in ``found``."""
    command = command or [os.path.realpath(sys.executable)]
    source = PREAMBLE.format(folder=str(FOLDER)) + code + "\nprint(json.dumps(found))\n"
    run = subprocess.run(
        [*command, "-s", "-S", "-P", "-B", "-c", source],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd="/",
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout)


@pytest.fixture(scope="session", name="fresh")
def fresh_interpreter():
    """Run code in a fresh interpreter; what it leaves in ``found``."""
    return fresh


@pytest.fixture(scope="session")
def ordinary_python():
    """The command that starts an interpreter as an ordinary user."""
    if os.geteuid() != 0:
        return [os.path.realpath(sys.executable)]
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv, which changes the user, is not installed")
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    system = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
    readable = f"import ctypes; open({str(Path(FOLDER, 'launch.py'))!r})"
    for python in filter(None, [os.path.realpath(sys.executable), system]):
        command = [*AS_NOBODY, python]
        # setpriv itself may start what an ordinary user may not: so start it once more.
        again = (
            f"import subprocess as s, sys; s.run([sys.executable, '-c', {readable!r}], check=True)"
        )
        if subprocess.run([*command, "-c", again], capture_output=True).returncode == 0:
            return command
    pytest.skip(f"an ordinary user can run no {name} here, or not read this checkout")


@pytest.fixture
def root():
    if os.geteuid() != 0:
        pytest.skip("only root can try this")
