"""Run every ``bench_*.py`` beside this file, each in a process of its own: ``make bench``.

Usage: ``python -m benchmarks [NAME ...]``, where ``import`` means ``bench_import.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import machine

FOLDER = Path(__file__).resolve().parent
PREFIX = "bench_"


def main(names: list[str]) -> int:
    """Run the named benchmarks, by default all, and return how many failed."""
    present = [file.stem.removeprefix(PREFIX) for file in sorted(FOLDER.glob(f"{PREFIX}*.py"))]
    if unknown := set(names) - set(present):
        sys.exit(f"no benchmark is called {sorted(unknown)}; there are {present}")
    print(machine(), flush=True)
    failed = 0
    for name in names or present:
        print(f"\n== {name}", flush=True)
        one_thread = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        command = [sys.executable, "-m", f"{FOLDER.name}.{PREFIX}{name}"]
        failed += subprocess.run(command, cwd=FOLDER.parent, env=one_thread).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
