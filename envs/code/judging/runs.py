"""Running the jobs of a suite, so that verdicts do not depend on the machine's load."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from flexmg.envs.code.sandbox import Execution, Job, Limits, Pool
from flexmg.envs.code.sandbox.pool import Purpose

PoolOf = Callable[[Purpose], Pool]
# A run that waited so many times as long as it worked had neighbours, which cost CPU time, too:
# caches and cores are shared.
CROWDED = 1.5
ALONE = threading.Lock()


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
    if not is_near_a_limit(execution, job.limits):
        return execution
    with ALONE:
        return pool.run(job)


def is_near_a_limit(execution: Execution, limits: Limits) -> bool:
    """Whether a run might have ended otherwise had it been alone."""
    if execution.status == "idle_limit":
        # Asleep on purpose, or kept from a processor: only a program that worked deserves it.
        return execution.cpu_s > 0.1 * limits.cpu_s
    return execution.status == "time_limit" and execution.wall_s > CROWDED * execution.cpu_s
