"""Watching a child: its CPU clock, the wall clock, the growth of its results; ending it."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress

from .protocol import BY_CPU, BY_ITSELF, BY_WALL, Request

_PROCESS_CLOCK = 2  # CPUCLOCK_SCHED of the kernel's clock ids: all threads together
_SHORTEST_LOOK, _LONGEST_LOOK = 0.004, 0.05  # seconds between two looks at the clocks


def watch(child: int, request: Request, result: int, began: float) -> int:
    """Wait for a child's end, or end it when it has used up its time.

    In a run of several calls the result file grows with each; the limits then hold from one
    growth to the next, and for all calls together. A program that forges growth gains nothing
    but the time of calls that it does not make.

    Args:
        child: its pid; it is left unreaped.
        request: holds the limits.
        result: descriptor of the result file.
        began: when the run began, by ``time.monotonic``.

    Returns:
        ``protocol.BY_ITSELF``, ``BY_CPU`` or ``BY_WALL``.
    """
    clock = (~child << 3) | _PROCESS_CLOCK
    descriptor = os.pidfd_open(child)
    try:
        ending = select.poll()
        ending.register(descriptor, select.POLLIN)
        size, cpu_mark, wall_mark = 0, 0.0, began
        wait = _SHORTEST_LOOK
        while not ending.poll(1000 * wait):
            now, used = time.monotonic(), time.clock_gettime(clock)
            if request.calls > 1 and (grown := os.fstat(result).st_size) > size:
                size, cpu_mark, wall_mark = grown, used, now
            left = min(request.cpu_s + cpu_mark, request.cpu_s * request.calls) - used
            rest = min(request.wall_s + wall_mark, request.wall_s * request.calls + began) - now
            if left <= 0 or rest <= 0:
                os.kill(child, signal.SIGKILL)
                return BY_CPU if left <= 0 else BY_WALL
            wait = min(max(_SHORTEST_LOOK, min(left / 2, rest)), _LONGEST_LOOK)
        return BY_ITSELF
    finally:
        os.close(descriptor)


def end_group(child: int) -> None:
    """Kill what a child that is not yet reaped has left behind in its process group.

    A confined child cannot start a process; this is for those that run without isolation.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
