"""Run a program as a script: standard input in, standard output out.

A driver is a module of this folder with a function ``main(program, request, result, channel)``,
called in the confined child:

* ``program``: the source, as bytes;
* ``request``: what the parent asks beyond that, as bytes;
* ``result``: descriptor of the file that the parent reads as ``Execution.result``;
* ``channel``: descriptor of an open socket, or None.

It returns when the run went well and lets the program's exceptions pass. A zygote loads all
drivers before it confines itself, under a private package name: a driver may import the
standard library and, relatively, modules of this folder, but nothing of flexmg. What it writes
is as little to be trusted as what the program writes, for they share a process.
"""

from __future__ import annotations

import sys
import types

FILENAME = "<program>"


def compile_program(program: bytes) -> types.CodeType:
    """The code of a program, as Python reads it from a file (coding cookies count).

    Raises:
        SyntaxError: it is no Python. Its ``filename`` is :data:`FILENAME`.
        MemoryError: it nests too deep, or its constants are too large.
        RecursionError: likewise.
    """
    try:
        return compile(program, FILENAME, "exec", dont_inherit=True)
    except SyntaxError as error:
        # A codec's own complaint names no file.
        error.filename = FILENAME
        raise
    except (ValueError, LookupError, OverflowError) as error:
        # Python 3.11 reports NUL bytes by ValueError; odd codecs raise what they please.
        raise SyntaxError(str(error), (FILENAME, None, None, None)) from None


def main_module() -> types.ModuleType:
    """A fresh ``__main__``, put in its place in ``sys.modules``."""
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = sys.modules["builtins"]
    module.__file__ = FILENAME
    sys.modules["__main__"] = module
    sys.argv[:] = [FILENAME]
    return module


def main(program: bytes, request: bytes, result: int, channel: int | None) -> None:
    """Compile the program and run it as ``__main__``."""
    code = compile_program(program)
    exec(code, main_module().__dict__)
