"""A worker's process: imports once, then forks a confined child per run and watches it.

Run by path, without flexmg: ``python -s -S -P -B zygote.py FD ISOLATION FILES UID DRIVERS``. It
takes requests (:mod:`protocol`) from the socket FD, one at a time. It never reads a program,
its input or its output: they lie in memory files that it hands on.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import math
import os
import random
import resource
import select
import signal
import socket
import sys
import threading
import time
import traceback
import types
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
STACK_BYTES = 64 << 20
THREAD_STACK_BYTES = 8 << 20
RE_EXECUTED = "FLEXMG_ZYGOTE_STACK"
PROCESS_CLOCK = 2  # CPUCLOCK_SCHED of the kernel's clock ids
SHORTEST_LOOK, LONGEST_LOOK = 0.004, 0.05  # seconds between two looks at a child's clock

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


def load_package(name: str, folder: Path) -> None:
    """Make a folder importable under a private name."""
    package = types.ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package


class Zygote:
    """The process that forks.

    Args:
        control: the socket that requests come from.
        confinement: applied by each child.
        drivers: by name.
        protocol: the module of that name.
    """

    def __init__(
        self,
        control: socket.socket,
        confinement: Any,
        drivers: dict[str, types.ModuleType],
        protocol: types.ModuleType,
    ) -> None:
        self.control = control
        self.confinement = confinement
        self.drivers = drivers
        self.protocol = protocol
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        self.address_space = pages * resource.getpagesize()

    def serve(self) -> None:
        """Answer requests until the other side hangs up."""
        while True:
            data, descriptors, _, _ = socket.recv_fds(
                self.control, self.protocol.MESSAGE_BYTES, len(self.protocol.DESCRIPTORS) + 1
            )
            if not data:
                return
            try:
                reply = self.run(self.protocol.Request.unpack(data), descriptors)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            self.control.send(reply.pack())

    def run(self, request: Any, descriptors: list[int]) -> Any:
        """One run, from fork to reaping."""
        began = time.monotonic()
        status, ours = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(status)
            self.be_child(request, descriptors, ours)
        os.close(ours)
        try:
            result = descriptors[self.protocol.DESCRIPTORS.index("result")]
            stopped = supervise(child, request, result, began)
            _, code, usage = os.wait4(child, 0)
            said = os.read(status, self.protocol.ERROR_BYTES)
        finally:
            os.close(status)
        started = said == self.protocol.STARTED
        return self.protocol.Reply(
            started=started,
            stopped=stopped,
            status=code,
            cpu_s=usage.ru_utime + usage.ru_stime,
            wall_s=time.monotonic() - began,
            peak=usage.ru_maxrss * 1024,
            error="" if started else said.decode(errors="replace"),
        )

    def be_child(self, request: Any, descriptors: list[int], status: int) -> None:
        """The child's whole life. Never returns."""
        code = 1
        try:
            source, stdin, stdout, stderr, result, *channel = descriptors
            try:
                os.setsid()
                for number, descriptor in enumerate((stdin, stdout, stderr)):
                    os.dup2(descriptor, number)
                close_all_but(
                    {0, 1, 2, source, result, status, *channel, *self.confinement.descriptors}
                )
                self.confinement.apply(
                    address_space=self.address_space + request.memory,
                    cpu_s=math.ceil(request.cpu_s * request.calls) + 1,
                    output=request.output + 1,
                )
            except BaseException as error:
                os.write(status, f"{type(error).__name__}: {error}".encode()[:2000])
                os._exit(1)
            os.write(status, self.protocol.STARTED)
            os.close(status)
            code = self.live(request, source, result, channel[0] if channel else None)
        finally:
            os._exit(code)

    def live(self, request: Any, source: int, result: int, channel: int | None) -> int:
        """Run the driver on the program, and end as Python ends; the exit code."""
        code = 0
        try:
            whole = os.fstat(source).st_size
            program = os.pread(source, request.program, 0)
            asked = os.pread(source, whole - request.program, request.program)
            os.close(source)
            random.seed(0)
            self.drivers[request.driver].main(program, asked, result, channel)
        except BaseException as error:
            code = self.outcome(error)
        for end in (threading._shutdown, atexit._run_exitfuncs):
            try:
                end()
            except BaseException as error:
                code = code or self.outcome(error)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException as error:
                # A program may close or replace its streams; that alone is no failure.
                if not isinstance(error, ValueError | AttributeError):
                    code = code or self.outcome(error)
        return code

    def outcome(self, error: BaseException) -> int:
        """Report an exception as Python does, on stderr; the exit code."""
        if isinstance(error, SystemExit):
            if error.code is None:
                return 0
            if isinstance(error.code, int):
                return error.code & 0xFF
            print(error.code, file=sys.__stderr__)
            return 1
        code = 1
        if isinstance(error, MemoryError):
            code = self.protocol.EXIT_MEMORY
        elif isinstance(error, SyntaxError) and error.filename == "<program>":
            code = self.protocol.EXIT_SYNTAX
        try:
            report(error)
        except BaseException as again:
            # What cannot even be reported is reported by its exit code.
            if isinstance(again, MemoryError):
                return self.protocol.EXIT_MEMORY
        return code


def report(error: BaseException) -> None:
    """The traceback on stderr, from the program's own first line on."""
    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename != "<program>":
        place = place.tb_next
    lines = traceback.format_exception(type(error), error, place)
    os.write(2, "".join(lines).encode(errors="backslashreplace"))


def supervise(child: int, request: Any, result: int, began: float) -> int:
    """Wait for a child's end, or end it when it has used up its time; why it ended.

    In a run of several calls the result file grows with each; the limits then hold from one
    growth to the next, and for all calls together.
    """
    by_itself, by_cpu, by_wall = range(3)
    clock = (~child << 3) | PROCESS_CLOCK
    descriptor = os.pidfd_open(child)
    ending = select.poll()
    ending.register(descriptor, select.POLLIN)
    size, cpu_mark, wall_mark = 0, 0.0, began
    try:
        wait = SHORTEST_LOOK
        while not ending.poll(1000 * wait):
            now = time.monotonic()
            used = time.clock_gettime(clock)
            if request.calls > 1 and (grown := os.fstat(result).st_size) > size:
                size, cpu_mark, wall_mark = grown, used, now
            left = min(request.cpu_s - (used - cpu_mark), request.cpu_s * request.calls - used)
            late = max(
                now - wall_mark - request.wall_s, now - began - request.wall_s * request.calls
            )
            if left <= 0 or late >= 0:
                os.kill(child, signal.SIGKILL)
                return by_cpu if left <= 0 else by_wall
            wait = min(max(SHORTEST_LOOK, left / 2), LONGEST_LOOK, max(SHORTEST_LOOK, -late))
        return by_itself
    finally:
        os.close(descriptor)


def close_all_but(kept: set[int]) -> None:
    """Close every descriptor but some."""
    below = 0
    for descriptor in sorted(kept):
        # An empty range below 0 would be taken for all there are.
        if below < descriptor:
            os.closerange(below, descriptor)
        below = descriptor + 1
    os.closerange(below, 1 << 20)


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


def main(arguments: list[str]) -> None:
    """See the module."""
    grow_stack()
    descriptor, isolation, files, uid, drivers = arguments
    for name in PRELOADED:
        importlib.import_module(name)
    threading.stack_size(THREAD_STACK_BYTES)
    load_package("_flexmg_sandbox", FOLDER)
    load_package("_flexmg_drivers", Path(drivers))
    protocol = importlib.import_module("_flexmg_sandbox.protocol")
    privileges = importlib.import_module("_flexmg_sandbox.privileges")
    confinement = importlib.import_module("_flexmg_sandbox.confinement")
    loaded = {
        path.stem: importlib.import_module(f"_flexmg_drivers.{path.stem}")
        for path in sorted(Path(drivers).glob("*.py"))
        if path.stem != "__init__"
    }
    privileges.end_with_parent()
    zygote = Zygote(
        socket.socket(fileno=int(descriptor)),
        confinement.Confinement(isolation, files, int(uid)),
        loaded,
        protocol,
    )
    gc.collect()
    gc.freeze()
    zygote.control.send(protocol.READY)
    zygote.serve()


if __name__ == "__main__":
    main(sys.argv[1:])
