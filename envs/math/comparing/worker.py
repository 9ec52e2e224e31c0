"""The worker process: ``python -m flexmg.envs.math.comparing.worker``, driven over two pipes.

Messages are JSON, each behind its length (4 bytes, big-endian). The worker first says
``{"ready": true}``, then answers ``{"gold", "answer"}`` with ``{"equal": true | false |
null}`` or ``{"error": ...}``. It ends when its input closes or when its parent is gone.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import struct
import sys

HEADER = struct.Struct(">I")
PARENT_CHECK_SECONDS = 5.0


def read_exactly(descriptor: int, size: int, parent: int) -> bytes | None:
    """``size`` bytes, or None at the end of the input or of the parent."""
    data = b""
    while len(data) < size:
        # A fork of the parent may hold the pipe open: then no end of file ever comes.
        ready, _, _ = select.select([descriptor], [], [], PARENT_CHECK_SECONDS)
        if not ready:
            if os.getppid() != parent:
                return None
            continue
        chunk = os.read(descriptor, size - len(data))
        if not chunk:
            return None
        data += chunk
    return data


def limit_memory(megabytes: int) -> None:
    """Cap the address space at what is in use now plus this much."""
    try:
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
    except FileNotFoundError:
        used = 0  # not Linux
    wanted = used + megabytes * 2**20
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def main(megabytes: int, seconds: int) -> None:
    """Serve requests until the input closes."""
    parent = os.getppid()
    output = os.dup(1)
    os.dup2(2, 1)  # a stray print must not break the protocol

    def send(message: dict[str, object]) -> None:
        data = json.dumps(message).encode()
        os.write(output, HEADER.pack(len(data)) + data)

    try:
        from flexmg.envs.math.comparing.symbolic import settle
    except ImportError as error:
        send({"ready": False, "missing": str(error)})
        return
    limit_memory(megabytes)
    send({"ready": True})
    while True:
        header = read_exactly(0, HEADER.size, parent)
        body = header and read_exactly(0, HEADER.unpack(header)[0], parent)
        if not body:
            return
        request = json.loads(body)
        # The parent keeps the time; should it be gone, this ends a runaway all the same.
        signal.alarm(seconds)
        try:
            reply: dict[str, object] = {"equal": settle(request["gold"], request["answer"])}
        except MemoryError:
            reply = {"error": "memory"}
        except RecursionError:
            reply = {"error": "nesting"}
        except Exception as error:  # sympy may raise anything on an odd expression
            reply = {"equal": None, "detail": type(error).__name__}
        signal.alarm(0)
        send(reply)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
