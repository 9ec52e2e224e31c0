"""What a program may use, and what came of running it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from flexmg.errors import InvalidArgument

ExecutionStatus = Literal[
    "ok",
    "runtime_error",
    "time_limit",
    "idle_limit",
    "memory_limit",
    "output_limit",
    "syntax_error",
    "infra_error",
]
EXECUTION_STATUSES: tuple[ExecutionStatus, ...] = get_args(ExecutionStatus)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run of a program may use.

    Time is CPU time: a loaded machine makes a program slow, not wrong. The wall clock is a
    distant backstop against programs that sleep.

    Args:
        cpu_s: CPU seconds, all threads together. In a run of several calls, per call.
        wall_s: seconds by the clock on the wall; by default ``3 * cpu_s + 2``.
        memory_mb: address space in MiB that the program may add to a bare interpreter's.
        output_kb: KiB that it may write, for stdout, stderr and results each.

    Raises:
        InvalidArgument: a limit is not a positive, finite number.
    """

    cpu_s: float = 2.0
    wall_s: float | None = None
    memory_mb: int = 512
    output_kb: int = 1024

    def __post_init__(self) -> None:
        for name in ("cpu_s", "wall_s", "memory_mb", "output_kb"):
            value = getattr(self, name)
            if name == "wall_s" and value is None:
                continue
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not (math.isfinite(value) and value > 0)
            ):
                raise InvalidArgument(f"limit {name}={value!r} is not a positive number")

    @property
    def wall(self) -> float:
        """The wall limit in seconds."""
        return 3 * self.cpu_s + 2 if self.wall_s is None else self.wall_s


@dataclass(frozen=True, slots=True)
class Execution:
    """What came of one run.

    Args:
        status: one of :data:`EXECUTION_STATUSES`. ``infra_error`` is our own failure and
            says nothing about the program.
        stdout: what it wrote, up to the limit.
        stderr: the same for its error stream.
        cpu_s: CPU seconds used, user and system, all threads.
        wall_s: seconds from start to end.
        memory_mb: peak resident memory in MiB.
        exit_code: of the process; None when a signal or a limit ended it.
        signal: number of the signal that ended it, or None.
        detail: a sentence for people, empty when all went well.
        result: what the driver of a run of calls wrote (see
            :mod:`flexmg.envs.code.drivers`); as little to be trusted as stdout.
    """

    status: ExecutionStatus
    stdout: bytes = b""
    stderr: bytes = b""
    cpu_s: float = 0.0
    wall_s: float = 0.0
    memory_mb: float = 0.0
    exit_code: int | None = None
    signal: int | None = None
    detail: str = ""
    result: bytes = b""

    @property
    def ok(self) -> bool:
        """Whether the program ran to its end with exit code 0."""
        return self.status == "ok"
