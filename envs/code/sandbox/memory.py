"""Files in memory, by which programs and their output travel without a pipe."""

from __future__ import annotations

import fcntl
import os

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def sealed(name: str, *parts: bytes) -> int:
    """A descriptor of a file that holds these bytes and that nobody can change any more."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        for part in parts:
            rest = memoryview(part)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def empty(name: str) -> int:
    """A descriptor of an empty file to be written to."""
    return os.memfd_create(name, os.MFD_CLOEXEC)


def content(descriptor: int, limit: int) -> tuple[bytes, bool]:
    """The first ``limit`` bytes of a file, and whether there are more."""
    size = os.fstat(descriptor).st_size
    parts = []
    place = 0
    while place < min(size, limit):
        part = os.pread(descriptor, min(size, limit) - place, place)
        if not part:
            break
        parts.append(part)
        place += len(part)
    return b"".join(parts), size > limit
