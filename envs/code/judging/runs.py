"""Running the jobs of a suite, so that verdicts do not depend on the machine's load."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from flexmg.envs.code.sandbox import Execution, Job, Pool
from flexmg.envs.code.sandbox.pool import Purpose

PoolOf = Callable[[Purpose], Pool]
# A run that waited so many times as long as it worked had neighbours, which cost CPU time, too:
# caches and cores are shared.
CROWDED = 1.5
_alone = threading.Lock()


def run_cases(
    pool: Pool, jobs: Sequence[Job], *, enough: Callable[[Execution], bool] | None = None
) -> list[Execution]:
    """Run jobs side by side; the executions in their order.

    Args:
        pool: where.
        jobs: one per case.
        enough: after an execution of which it says so the rest need not run; what is
            returned then ends with that execution.
    """
    found: list[Execution] = []
    wave = pool.workers if enough is not None else len(jobs)
    for start in range(0, len(jobs), max(wave, 1)):
        part = jobs[start : start + wave]
        for job, execution in zip(part, pool.run_all(part), strict=True):
            execution = once_more(pool, job, execution)
            found.append(execution)
            if enough is not None and enough(execution):
                return found
    return found


def once_more(pool: Pool, job: Job, execution: Execution) -> Execution:
    """A run that ended near a limit on time, again and alone; any other as it is."""
    if not _is_near(job, execution):
        return execution
    with _alone:
        return pool.run(job)


def _is_near(job: Job, execution: Execution) -> bool:
    if execution.status == "idle_limit":
        # Asleep on purpose, or kept from a processor: only a program that worked deserves it.
        return execution.cpu_s > 0.1 * job.limits.cpu_s
    return execution.status == "time_limit" and execution.wall_s > CROWDED * execution.cpu_s
