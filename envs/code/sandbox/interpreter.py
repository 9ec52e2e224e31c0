"""A program's life in its confined process: it runs and ends as in an interpreter of its own.

What differs from ``python program.py``: ``random`` starts from a fixed seed, conversions of
long integers have no limit, objects that are alive at the end are not finalised one by one
(files at the top level of the program are flushed), and a traceback shows the program's lines
only.
"""

from __future__ import annotations

import atexit
import errno
import io
import linecache
import os
import random
import resource
import site
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from .protocol import EXIT_MEMORY, EXIT_SYNTAX

FILENAME = "<program>"  # as drivers.script compiles it, which lives in another package here
LONGEST_SHOWN = 1 << 20  # bytes of source of which a traceback shows lines
LONGEST_REPORT = 1 << 16  # bytes of a traceback

_lacked_memory = threading.Event()


def prepare() -> None:
    """What the zygote does once for all programs."""
    # Without `site`, which is switched off, a program that calls exit() would fail.
    site.setquit()
    threading.excepthook = noting_memory(threading.excepthook)
    sys.unraisablehook = noting_memory(sys.unraisablehook)


def noting_memory(hook: Callable[[Any], object]) -> Callable[[Any], None]:
    """A hook for exceptions that end no program, which remembers that memory lacked."""

    def noting(arguments: Any) -> None:
        if lacks_memory(arguments.exc_value):
            _lacked_memory.set()
        hook(arguments)

    return noting


def live(driver: types.ModuleType, program: bytes, asked: bytes, *files: int | None) -> int:
    """Run the driver on the program, and end as Python ends; the exit code.

    Args:
        driver: see :mod:`flexmg.envs.code.drivers.script`.
        program: the source.
        asked: the driver's request.
        files: descriptors of the result and of the channel.
    """
    random.seed(0)
    code = 0
    try:
        driver.main(program, asked, *files)
    except BaseException as error:
        code = outcome(error, program)
    # The interpreter's own end calls the same two, in this order.
    for end in (vars(threading)["_shutdown"], atexit._run_exitfuncs):
        try:
            end()
        except BaseException as error:
            code = code or outcome(error, program)
    for stream in open_streams():
        try:
            stream.flush()
        except (ValueError, AttributeError):
            # Closed, or replaced by something that needs no flush: no failure.
            continue
        except BaseException as error:
            code = code or outcome(error, program)
    if code == 0 and _lacked_memory.is_set():
        return EXIT_MEMORY
    return code


def open_streams() -> Iterator[Any]:
    """The standard streams, the replaced ones too, and the files at the program's top level."""
    yield from (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    for value in list(getattr(sys.modules.get("__main__"), "__dict__", {}).values()):
        if issubclass(type(value), io.IOBase):
            yield value


def lacks_memory(error: BaseException | None) -> bool:
    """Whether an exception says that there is no more memory."""
    return isinstance(error, MemoryError) or (
        isinstance(error, OSError) and error.errno == errno.ENOMEM
    )


def outcome(error: BaseException, program: bytes) -> int:
    """Report an exception on stderr as Python does; the exit code."""
    if isinstance(error, SystemExit):
        if error.code is None:
            return 0
        if isinstance(error.code, int):
            return error.code & 0xFF
        message: BaseException | str = f"{error.code}\n"
        code = 1
    elif lacks_memory(error):
        message, code = error, EXIT_MEMORY
    elif isinstance(error, SyntaxError) and error.filename == FILENAME and not own_part(error):
        message, code = error, EXIT_SYNTAX
    else:
        message, code = error, 1
    try:
        report(message, program)
    except BaseException as again:
        # A hook that fails, no memory, a stderr that is closed: the exit code still tells.
        with suppress(OSError):
            os.write(2, f"{type(error).__name__} (and {type(again).__name__})\n".encode())
    return code


def report(message: BaseException | str, program: bytes) -> None:
    """Write a message, or a traceback from the program's own first line on."""
    if isinstance(message, str):
        sys.stderr.write(message)
        return
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(type(message), message, own_part(message))
        return
    if len(program) <= LONGEST_SHOWN:
        source = program.decode(errors="replace")
        linecache.cache[FILENAME] = (len(source), None, source.splitlines(True), FILENAME)
    lines = traceback.format_exception(type(message), message, own_part(message))
    text = "".join(lines).encode(errors="backslashreplace")
    # Our words must not be what exceeds the program's limit. The end says the most.
    room = resource.getrlimit(resource.RLIMIT_FSIZE)[0] - 1 - os.fstat(2).st_size
    if room > 0:
        os.write(2, text[-min(room, LONGEST_REPORT) :])


def own_part(error: BaseException) -> types.TracebackType | None:
    """The traceback without our own frames, None if the program was not reached."""
    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename != FILENAME:
        place = place.tb_next
    return place
