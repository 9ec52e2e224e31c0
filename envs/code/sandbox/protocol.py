"""What the pool and a zygote say to each other: fixed records over one datagram socket.

Both sides load this module, the zygote without flexmg on its path; it needs the standard
library only. File descriptors travel beside a record, in the order of :data:`DESCRIPTORS`.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

MESSAGE_BYTES = 4096
ERROR_BYTES = 2000

DESCRIPTORS = ("source", "stdin", "stdout", "stderr", "result")
"""Sent with each request; a sixth one is the channel."""

# Exit codes by which the interpreter's side of a child says how its program failed. A program
# can imitate them; all it gains is another name for its own failure.
EXIT_MEMORY = 231
EXIT_SYNTAX = 232

READY = b"ready"
STARTED = b"S"

_REQUEST = struct.Struct("<dd4Q")
_REPLY = struct.Struct("<?Bi2dQ")

# What made the supervisor end a run.
BY_ITSELF, BY_CPU, BY_WALL = range(3)


class Request(NamedTuple):
    """One run of a program.

    Args:
        cpu_s: CPU seconds per call.
        wall_s: seconds by the wall clock, per call.
        memory: bytes of address space beyond a bare interpreter's.
        output: bytes that each of stdout, stderr and result may hold.
        calls: how many calls the run makes; 1 for a script.
        program: length of the program in the source file; the driver's request follows it.
        driver: name of the driver.
    """

    cpu_s: float
    wall_s: float
    memory: int
    output: int
    calls: int
    program: int
    driver: str

    def pack(self) -> bytes:
        """The record as bytes."""
        return _REQUEST.pack(*self[:-1]) + self.driver.encode()

    @classmethod
    def unpack(cls, data: bytes) -> Request:
        """The record that :meth:`pack` made."""
        return cls._make((*_REQUEST.unpack_from(data), data[_REQUEST.size :].decode()))


class Reply(NamedTuple):
    """How a run ended.

    Args:
        started: whether the program's process was confined and began to work; False is our
            failure, and ``error`` names it.
        stopped: :data:`BY_ITSELF`, :data:`BY_CPU` or :data:`BY_WALL`.
        status: as ``os.wait4`` gives it.
        cpu_s: CPU seconds used.
        wall_s: seconds by the wall clock.
        peak: peak resident memory in bytes.
        error: why it did not start.
    """

    started: bool
    stopped: int
    status: int
    cpu_s: float
    wall_s: float
    peak: int
    error: str = ""

    def pack(self) -> bytes:
        """The record as bytes."""
        return _REPLY.pack(*self[:-1]) + self.error.encode(errors="replace")[:ERROR_BYTES]

    @classmethod
    def unpack(cls, data: bytes) -> Reply:
        """The record that :meth:`pack` made."""
        error = data[_REPLY.size :].decode(errors="replace")
        return cls._make((*_REPLY.unpack_from(data), error))
