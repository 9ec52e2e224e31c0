"""One run of a program: what is asked for, and what the raw outcome means."""

from __future__ import annotations

import functools
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

from flexmg.errors import InvalidArgument

from . import protocol
from .limits import Execution, ExecutionStatus, Limits

DRIVERS = Path(__file__).resolve().parent.parent / "drivers"
# A run that ended by force ran out of memory if it held so much of what it may have, beyond
# what any program holds resident.
MEMORY_SHARE = 0.9
BARE_BYTES = 12 << 20
LONGEST_DETAIL = 300
LARGEST = 1 << 60  # what the records can carry; limits beyond it are none


@dataclass(frozen=True, slots=True)
class Job:
    """A program to run.

    Args:
        program: source; a text is encoded as UTF-8, its lone surrogates as Python writes
            them in a file (which then is no valid source).
        stdin: what it reads on standard input.
        driver: name of a driver, see :mod:`flexmg.envs.code.drivers.script`.
        request: what the driver is asked beyond the program.
        channel: descriptor of a socket that the run gets, or None. It must stay open here
            until the run has ended, and such a run is never repeated: who is at the other end
            has heard a part of it.
        limits: of the run.
        calls: number of calls that the driver makes; limits on time are per call.

    Raises:
        InvalidArgument: an argument is of no use; no program is ever a reason.
    """

    program: bytes | str
    stdin: bytes | str = b""
    driver: str = "script"
    request: bytes = b""
    channel: int | None = None
    limits: Limits = field(default_factory=Limits)
    calls: int = 1

    def __post_init__(self) -> None:
        for name in ("program", "stdin"):
            if not isinstance(getattr(self, name), bytes | str):
                raise InvalidArgument(f"{name} must be a text or bytes")
        if self.driver not in driver_names():
            known = ", ".join(sorted(driver_names()))
            raise InvalidArgument(f"there is no driver {self.driver!r}; there are {known}")
        if self.calls < 1:
            raise InvalidArgument(f"calls={self.calls}: a run makes at least one")

    def record(self, program: int) -> bytes:
        """What a zygote is asked by; ``program`` is the length of the program in bytes."""
        limits = self.limits
        return protocol.Request(
            cpu_s=limits.cpu_s,
            wall_s=limits.wall,
            memory=min(int(limits.memory_mb * 2**20), LARGEST),
            output=min(int(limits.output_kb * 2**10), LARGEST),
            calls=min(self.calls, LARGEST),
            program=program,
            driver=self.driver,
        ).pack()


@functools.cache
def driver_names() -> frozenset[str]:
    """The modules of the drivers' folder."""
    return frozenset(path.stem for path in DRIVERS.glob("*.py")) - {"__init__"}


def as_bytes(text: bytes | str) -> bytes:
    """UTF-8; what it cannot hold (lone surrogates) as the bytes that stand for it."""
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def infra_error(detail: str) -> Execution:
    """Our own failure."""
    return Execution("infra_error", detail=detail)


def judged(
    reply: protocol.Reply, job: Job, outputs: dict[str, bytes], overflown: str | None
) -> Execution:
    """The execution that a zygote's reply describes.

    Args:
        reply: how the run ended.
        job: the run.
        outputs: ``stdout``, ``stderr`` and ``result``.
        overflown: the output that is longer than allowed, or None.
    """
    if not reply.started:
        return infra_error(f"a program could not be confined: {reply.error or 'it never began'}")
    code = os.waitstatus_to_exitcode(reply.status)
    status, detail = _status(reply, job.limits, code, outputs["stderr"], overflown)
    if code in (protocol.EXIT_MEMORY, protocol.EXIT_SYNTAX):
        code = 1  # as Python's own
    return Execution(
        status=status,
        stdout=outputs["stdout"],
        stderr=outputs["stderr"],
        cpu_s=reply.cpu_s,
        wall_s=reply.wall_s,
        memory_mb=reply.peak / 2**20,
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        detail=detail,
        result=outputs["result"],
    )


def _status(
    reply: protocol.Reply, limits: Limits, code: int, stderr: bytes, overflown: str | None
) -> tuple[ExecutionStatus, str]:
    if code == 0 and reply.stopped == protocol.BY_ITSELF and overflown is None:
        return "ok", ""
    if overflown is not None or code == -signal.SIGXFSZ:
        name = overflown or "stdout"
        return "output_limit", f"it wrote more than {limits.output_kb} KiB to {name}"
    forced = code < 0 or reply.stopped != protocol.BY_ITSELF
    most = BARE_BYTES + MEMORY_SHARE * limits.memory_mb * 2**20
    if code == protocol.EXIT_MEMORY or (forced and reply.peak > most):
        return "memory_limit", f"it needs more than {limits.memory_mb} MiB of memory"
    if reply.stopped == protocol.BY_CPU or code == -signal.SIGXCPU:
        return "time_limit", f"it needs more than {limits.cpu_s:g} s of CPU time"
    if reply.stopped == protocol.BY_WALL:
        return "idle_limit", f"it did not end within {limits.wall:g} s, most of them idle"
    last = stderr.decode(errors="replace").strip().rpartition("\n")[2][:LONGEST_DETAIL]
    if code == protocol.EXIT_SYNTAX:
        return "syntax_error", last
    if code < 0:
        return "runtime_error", f"it was ended by {signal_name(-code)}"
    return "runtime_error", last or f"exit code {code}"


def signal_name(number: int) -> str:
    """A signal's name; real-time signals have none but their number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
