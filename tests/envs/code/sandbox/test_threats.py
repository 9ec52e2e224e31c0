"""The threat suite: what comes of hostile programs, and that nothing else does.

All programs run in one go (:mod:`threats.run`), in a pid namespace of its own where possible.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from run import THREATS

RUNNER = str(Path(__file__).parent / "threats" / "run.py")
SECONDS = 240
# Finds flexmg wherever it is installed, in an interpreter that another one's packages suit.
START = (
    "import runpy, site, sys; _, packages, *sys.argv = sys.argv; site.addsitedir(packages); "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


def apart() -> list[str]:
    """The command that runs what follows in a pid namespace of its own."""
    unshare = shutil.which("unshare")
    own = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    command = [str(unshare), *own, "--pid", "--fork", "--kill-child", "--mount-proc"]
    if unshare and subprocess.run([*command, "true"], capture_output=True).returncode == 0:
        return command
    print("no pid namespace is to be had: the threats run beside the tests")
    return []


def report_of(command: list[str]) -> dict:
    """What the runner says."""
    run = subprocess.run(
        [*command, "-P", "-c", START, sysconfig.get_path("platlib"), RUNNER],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd="/",
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout)


@functools.cache
def report() -> dict:
    """As whoever runs the tests."""
    return report_of([*apart(), sys.executable])


@pytest.fixture(scope="module")
def ordinary_user(ordinary_python) -> dict:
    """As a user without privileges."""
    return report() if os.geteuid() != 0 else report_of([*apart(), *ordinary_python])


@pytest.mark.parametrize("threat", THREATS, ids=lambda threat: threat.name)
def test_the_outcome_is_one_that_may_be(threat):
    outcome, detail = report()["outcomes"][threat.name]
    assert outcome in threat.outcomes, detail


@pytest.mark.parametrize(
    "check",
    [
        "zygotes survive",
        "nothing runs on",
        "later programs are right",
        "no marker",
        "the secret is untouched",
        "the library is untouched",
        "no listener is reached",
        "the secret is in no output",
    ],
)
def test_nothing_else_comes_of_any(check):
    assert report()["checks"][check]


def test_an_ordinary_user_is_as_safe(ordinary_user):
    assert all(ordinary_user["checks"].values()), ordinary_user["checks"]
    wrong = {
        threat.name: ordinary_user["outcomes"][threat.name]
        for threat in THREATS
        if ordinary_user["outcomes"][threat.name][0] not in threat.outcomes
    }
    assert not wrong


def test_names_are_unique():
    assert len({threat.name for threat in THREATS}) == len(THREATS) >= 81
