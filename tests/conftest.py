"""What every test relies on: one thread per process, imports, and where real files lie."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

# Before torch or numpy is imported: two test processes with two OpenMP threads each spin on
# each other and run many times slower than with one.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# A script that starts the tests in the background has them, and their programs, ignore these two.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent


def support_modules() -> dict[str, Path]:
    """Name -> file of the modules under tests/ that hold no tests but serve them."""
    found: dict[str, Path] = {}
    for file in sorted(TESTS.rglob("*.py")):
        if not file.name.startswith("test_") and file.name != "conftest.py":
            if other := found.get(file.stem):
                raise pytest.UsageError(f"{file} and {other} share a name: rename one of them")
            found[file.stem] = file
    return found


# A test imports the modules beside it by their bare name. Last on the path, so that they
# hide nothing.
sys.path += sorted({str(file.parent) for file in support_modules().values()})


@pytest.fixture(scope="session")
def repository() -> Path:
    """The repository's root."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real files and cases: $FLEXMG_SHARED, by default ../shared."""
    folder = (ROOT / os.environ.get("FLEXMG_SHARED", "../shared")).resolve()
    if not folder.is_dir():
        pytest.skip(f"no real files: {folder} is not a folder; set FLEXMG_SHARED")
    return folder
