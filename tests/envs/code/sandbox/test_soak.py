"""Ten thousand runs, a tenth of them hostile: no wrong result, nothing left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flexmg.envs.code.sandbox import Job, Limits, Pool

RUNS, HOSTILE = 10_000, 10
GROWTH = 20 << 20  # bytes
QUICK = Limits(cpu_s=0.2, wall_s=20.0, memory_mb=128)
# Each ends by itself or at a limit within milliseconds, with one of these outcomes.
THREATS = [
    ("import os\nos._exit(0)", {"ok"}),
    ("import os\nos.kill(os.getpid(), 9)", {"runtime_error"}),
    ("import os\nwhile True: os.write(1, b'x' * 100_000)", {"output_limit"}),
    ("x = [0] * 10**10", {"memory_limit"}),
    ("import os\nos.fork()", {"runtime_error"}),
    ("import os\nos.closerange(0, 4096)", {"ok", "runtime_error"}),
    ("def f(): f()\nf()", {"runtime_error"}),
    ("def f(:", {"syntax_error"}),
    ("import threading\nthreading.Thread(target=print).start()", {"ok"}),
    ("import ctypes\nctypes.string_at(0)", {"runtime_error"}),
]


def children() -> set[int]:
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(status[1]) == os.getpid():
            found.add(int(name))
    return found


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.full
def test_nothing_leaks_over_ten_thousand_runs():
    before = children()
    with Pool(2) as pool:
        pool.run_all([Job("print(1)")] * 200)
        watched = [os.getpid(), *(slot.pid for slot in pool.slots)]
        start = {pid: (descriptors(pid), resident(pid)) for pid in watched}
        wrong = []
        for first in range(0, RUNS, 500):
            numbers = range(first, first + 500)
            jobs = [
                Job(THREATS[n // HOSTILE % len(THREATS)][0], limits=QUICK)
                if n % HOSTILE == 0
                else Job("print(int(input()) + 1)", str(n))
                for n in numbers
            ]
            for n, run in zip(numbers, pool.run_all(jobs), strict=True):
                if n % HOSTILE == 0:
                    right = run.status in THREATS[n // HOSTILE % len(THREATS)][1]
                else:
                    right = run.stdout == f"{n + 1}\n".encode()
                if not right:
                    wrong.append((n, run))
        assert not wrong
        assert watched[1:] == [slot.pid for slot in pool.slots]
        end = {pid: (descriptors(pid), resident(pid)) for pid in watched}
    assert {pid: end[pid][0] for pid in watched} == {pid: start[pid][0] for pid in watched}
    assert all(end[pid][1] - start[pid][1] < GROWTH for pid in watched)
    assert children() == before
