"""A worker's process: imports once, then forks a confined child per run and watches it.

Started by :mod:`launch` with the arguments FD ISOLATION FILES UID DRIVERS. It takes requests
(:mod:`protocol`) from the socket FD, one at a time. It never reads a program, its input or its
output: they lie in memory files that it hands on.
"""

from __future__ import annotations

import gc
import importlib
import math
import os
import resource
import socket
import sys
import threading
import time
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from . import interpreter, privileges, supervision
from .confinement import Confinement
from .launch import load_package
from .protocol import (
    BY_CPU,
    BY_ITSELF,
    DESCRIPTORS,
    ERROR_BYTES,
    MESSAGE_BYTES,
    READY,
    STARTED,
    Reply,
    Request,
)

DRIVERS = "_flexmg_drivers"
STACK_BYTES = 64 << 20
THREAD_STACK_BYTES = 8 << 20
RE_EXECUTED = "FLEXMG_ZYGOTE_STACK"
# Of an interpreter that has imported as much as this one, where no /proc tells.
USUAL_ADDRESS_SPACE = 64 << 20
LONGEST_CPU_S = 1 << 31

# What programs import most; a child has them for nothing.
PRELOADED = (
    "abc",
    "array",
    "atexit",
    "bisect",
    "cmath",
    "collections",
    "collections.abc",
    "contextlib",
    "copy",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "io",
    "itertools",
    "json",
    "linecache",
    "math",
    "numbers",
    "operator",
    "queue",
    "random",
    "re",
    "statistics",
    "string",
    "struct",
    "textwrap",
    "threading",
    "time",
    "traceback",
    "types",
    "typing",
)


class Zygote:
    """The process that forks.

    Args:
        control: the socket that requests come from.
        confinement: applied by each child.
        drivers: by name.
        address_space: bytes that a child has before it runs anything.
    """

    def __init__(
        self,
        control: socket.socket,
        confinement: Confinement,
        drivers: Mapping[str, types.ModuleType],
        address_space: int,
    ) -> None:
        self.control = control
        self.confinement = confinement
        self.drivers = drivers
        self.address_space = address_space

    def serve(self) -> None:
        """Answer requests until the other side hangs up."""
        while True:
            data, descriptors, _, _ = socket.recv_fds(
                self.control, MESSAGE_BYTES, len(DESCRIPTORS) + 1
            )
            if not data:
                return
            try:
                reply = self.run(Request.unpack(data), descriptors)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            self.control.send(reply.pack())

    def run(self, request: Request, descriptors: Sequence[int]) -> Reply:
        """One run, from fork to reaping."""
        began = time.monotonic()
        status, ours = os.pipe()
        child = os.fork()
        if child == 0:
            self.be_child(request, descriptors, ours)
        os.close(ours)
        try:
            result = descriptors[DESCRIPTORS.index("result")]
            stopped = supervision.watch(child, request, result, began)
            if not self.confinement.strict:
                supervision.end_group(child)
            _, code, usage = os.wait4(child, 0)
            said = os.read(status, ERROR_BYTES)
        finally:
            os.close(status)
        cpu_s = usage.ru_utime + usage.ru_stime
        if stopped == BY_ITSELF and cpu_s > request.cpu_s * request.calls:
            # It ended between two looks at its clock.
            stopped = BY_CPU
        return Reply(
            started=said == STARTED,
            stopped=stopped,
            status=code,
            cpu_s=cpu_s,
            wall_s=time.monotonic() - began,
            peak=usage.ru_maxrss * 1024,
            error="" if said == STARTED else said.decode(errors="replace"),
        )

    def be_child(self, request: Request, descriptors: Sequence[int], status: int) -> NoReturn:
        """The child's whole life."""
        code = 1
        try:
            source, stdin, stdout, stderr, result, *channel = descriptors
            try:
                os.setsid()
                for number, descriptor in enumerate((stdin, stdout, stderr)):
                    os.dup2(descriptor, number)
                close_all_but({0, 1, 2, source, result, status, *channel})
                self.confinement.apply(
                    address_space=self.address_space + request.memory,
                    cpu_s=min(math.ceil(request.cpu_s * request.calls) + 1, LONGEST_CPU_S),
                    output=request.output + 1,
                )
            except BaseException as error:
                os.write(status, f"{type(error).__name__}: {error}".encode()[:ERROR_BYTES])
                os._exit(1)
            os.write(status, STARTED)
            os.close(status)
            whole = os.fstat(source).st_size
            program = read(source, 0, request.program)
            asked = read(source, request.program, whole - request.program)
            os.close(source)
            code = interpreter.live(
                self.drivers[request.driver],
                program,
                asked,
                result,
                channel[0] if channel else None,
            )
        except MemoryError:
            code = interpreter.EXIT_MEMORY
        finally:
            os._exit(code)


def read(descriptor: int, start: int, length: int) -> bytes:
    """A part of a file."""
    parts = []
    while length and (part := os.pread(descriptor, length, start)):
        parts.append(part)
        start += len(part)
        length -= len(part)
    return b"".join(parts)


def close_all_but(kept: set[int]) -> None:
    """Close every descriptor but some."""
    below = 0
    for descriptor in sorted(kept):
        # An empty range below 0 would be taken for all there are.
        if below < descriptor:
            os.closerange(below, descriptor)
        below = descriptor + 1
    os.closerange(below, 1 << 20)


def forget_packages() -> None:
    """Let programs see the modules of a plain interpreter only; ours live on without a name."""
    for name in [name for name in sys.modules if name.startswith("_flexmg_")]:
        del sys.modules[name]


def address_space() -> int:
    """Bytes of address space that this process takes."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except FileNotFoundError:
        return USUAL_ADDRESS_SPACE
    return pages * resource.getpagesize()


def grow_stack() -> None:
    """Start again with a large stack: the main thread's is fixed when a process starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    if soft == wanted or RE_EXECUTED in os.environ:
        os.environ.pop(RE_EXECUTED, None)
        return
    resource.setrlimit(resource.RLIMIT_STACK, (wanted, wanted))
    os.environ[RE_EXECUTED] = "1"
    os.execv(sys.executable, sys.orig_argv)


def load_drivers(folder: Path) -> dict[str, types.ModuleType]:
    """Every driver, by name, and with it what they share."""
    load_package(DRIVERS, folder)
    names = [path.stem for path in sorted(folder.glob("*.py")) if path.stem != "__init__"]
    return {name: importlib.import_module(f"{DRIVERS}.{name}") for name in names}


def main(arguments: list[str]) -> None:
    """See the module."""
    grow_stack()
    descriptor, isolation, files, uid, drivers = arguments
    privileges.end_with_parent()
    for name in PRELOADED:
        importlib.import_module(name)
    threading.stack_size(THREAD_STACK_BYTES)
    loaded = load_drivers(Path(drivers))
    interpreter.prepare()
    control = socket.socket(fileno=int(descriptor))
    # Asked while files can still be read.
    bare = address_space()
    zygote = Zygote(control, Confinement(isolation, files, int(uid)), loaded, bare)
    # Its children have its uid where they cannot take another: none may look into it.
    privileges.hide_memory()
    privileges.reset_signals()
    forget_packages()
    gc.collect()
    gc.freeze()
    zygote.control.send(READY)
    zygote.serve()
