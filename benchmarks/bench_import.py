"""Wall time of ``import flexmg`` in a new process, against ``import pettingzoo``.

Target: under 0.5 s. The interpreter's own start is measured too and taken off.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from time import perf_counter

from benchmarks.measure import interleaved, versions

ROUNDS = 15
NOTHING = "pass"


def seconds(code: str) -> float:
    """Wall time of a new interpreter that runs ``code``."""
    start = perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return perf_counter() - start


if __name__ == "__main__":
    codes = ("import flexmg", "import pettingzoo", "import gymnasium", NOTHING)
    medians = interleaved({code: partial(seconds, code) for code in codes}, ROUNDS)
    print(f"{versions('flexmg', 'pettingzoo', 'gymnasium', 'numpy')}; medians of {ROUNDS}")
    start = medians.pop(NOTHING)
    for code, median in medians.items():
        print(f"{code:20} {median:6.3f} s, of which the interpreter {start:.3f} s")
    ratio = (medians["import flexmg"] - start) / (medians["import pettingzoo"] - start)
    print(f"flexmg / pettingzoo  {ratio:6.2f} (target: import flexmg under 0.5 s)")
