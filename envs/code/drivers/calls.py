"""Run a program as a module, then call its functions: one line of result per call.

The request is JSON: ``prelude`` (code before the program), ``setup`` (code after it), ``entry``
and ``calls``, each ``{"args": [...]}`` with encoded arguments for the entry function, or
``{"expression": source}``, or ``{"statement": source}``; source knows the entry function as
:data:`FUNCTION`. The first line of the result says that the program was loaded; then each call
has one, ``{"value": encoded}`` or ``{"error": text}``. What the results ought to be is not
in here.
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
FUNCTION = "__candidate__"
LONGEST_FAILURE = 300  # characters


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
        return f"{type(error).__name__}: {error}"[:LONGEST_FAILURE]
    except Exception:
        return type(error).__name__[:LONGEST_FAILURE]


def main(program: bytes, request: bytes, result: int, channel: int | None) -> None:
    """See the module."""
    asked = json.loads(request)
    # Bound now: what the program replaces later can only change its own answers.
    write, dumps = os.write, to_json
    entry = asked["entry"]

    def say(line: str) -> None:
        rest = memoryview(line.encode() + b"\n")
        while rest:
            rest = rest[write(result, rest) :]

    namespace = load(program, asked["prelude"], asked["setup"])
    namespace[FUNCTION] = lambda *args, **kwargs: resolve(namespace, entry)(*args, **kwargs)
    say("{}")
    for call in asked["calls"]:
        try:
            line = dumps({"value": encode(_answer(namespace, entry, call))})
        except MemoryError:
            raise
        except Exception as error:
            line = dumps({"error": failure(error)})
        say(line)


def _answer(namespace: dict[str, Any], entry: str, call: dict[str, Any]) -> Any:
    if "expression" in call:
        return eval(compile(call["expression"], "<test>", "eval", dont_inherit=True), namespace)
    if "statement" in call:
        exec(compile(call["statement"], "<test>", "exec", dont_inherit=True), namespace)
        return None
    return resolve(namespace, entry)(*[decode(argument) for argument in call["args"]])
