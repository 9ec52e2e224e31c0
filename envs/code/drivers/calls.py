"""Run a program as a module, then call its functions: one line of result per call.

The request is JSON: ``prelude`` (code before the program), ``setup`` (code after it) and
``calls``, each ``{"entry": name, "args": [...]}`` with encoded arguments or
``{"expression": source}``. Each result line is ``{"value": encoded}`` or ``{"error": text}``.
What the results ought to be is not in here.
"""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from .encoding import decode, encode, to_json
from .script import FILENAME, compile_program

MODULE = "solution"


def load(program: bytes, prelude: str, setup: str) -> dict[str, Any]:
    """The namespace of a program run as a module, so that its ``__main__`` block does not run."""
    module = types.ModuleType(MODULE)
    module.__file__ = FILENAME
    # Dataclasses and the like look their module up.
    sys.modules[MODULE] = module
    sys.argv[:] = [FILENAME]
    namespace = module.__dict__
    if prelude:
        exec(compile(prelude, "<prelude>", "exec", dont_inherit=True), namespace)
    exec(compile_program(program), namespace)
    if setup:
        exec(compile(setup, "<setup>", "exec", dont_inherit=True), namespace)
    return namespace


def resolve(namespace: dict[str, Any], entry: str) -> Callable[..., Any]:
    """The function that ``name`` or ``Class.name`` names; a fresh instance for a method.

    A program may have written a plain function for a method, or a ``Solution`` for a function.

    Raises:
        NameError: the program defines neither.
    """
    owner, _, name = entry.rpartition(".")
    for place in (owner, "", "Solution"):
        if not place and name in namespace:
            return namespace[name]
        if place and place in namespace and hasattr(namespace[place], name):
            return getattr(namespace[place](), name)
    raise NameError(f"the program defines no {entry!r}")


def failure(error: BaseException) -> str:
    """An exception in a few words."""
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except Exception:
        return type(error).__name__[:300]


def main(program: bytes, request: bytes, result: int, channel: int | None) -> None:
    """See the module."""
    asked = json.loads(request)
    # Bound now: what the program replaces later can only change its own answers.
    write, dumps, run = os.write, to_json, eval
    namespace = load(program, asked["prelude"], asked["setup"])
    for call in asked["calls"]:
        try:
            if "expression" in call:
                value = run(compile(call["expression"], "<test>", "eval"), namespace)
            else:
                function = resolve(namespace, call["entry"])
                value = function(*[decode(argument) for argument in call["args"]])
            line = dumps({"value": encode(value)})
        except MemoryError:
            raise
        except Exception as error:
            line = dumps({"error": failure(error)})
        rest = memoryview(line.encode() + b"\n")
        while rest:
            rest = rest[write(result, rest) :]
