"""Serve a program's functions to whoever is at the other end of the channel.

The request is JSON with ``prelude``, ``setup`` and ``entry``. A message is a line of JSON. The
first one, ``{}``, says that the program is loaded; each later one answers a question:

* ``{"do": "call", "of": target, "args": [...], "kwargs": [[name, argument], ...]}``
* ``{"do": "get", "of": target, "name": attribute}``
* ``{"do": "set", "of": target, "name": attribute, "args": [argument]}``
* ``{"do": "truth", "of": target}``

A target is ``{"name": global name}`` or ``{"kept": number}``, an argument a target or
``{"value": encoded}``. The answer is ``{"value": encoded}``; or ``{"kept": number, "class": name}``
for an object that is no builtin value and stays here; or ``{"error": builtin class, "text": ...}``.
A call that returns None adds ``"args"``, its arguments as they are afterwards. The dialogue
ends when the other end hangs up.
"""

from __future__ import annotations

import builtins
import json
import os
from typing import Any, BinaryIO

from .calls import failure, load, resolve
from .encoding import REFUSED, decode, encode, to_json

CANDIDATE = "candidate"


def main(program: bytes, request: bytes, result: int, channel: int | None) -> None:
    """See the module."""
    asked = json.loads(request)
    loads, dumps, write = json.loads, to_json, os.write
    reading, writing = both_ways(channel)

    def say(line: str) -> None:
        writing.write(line.encode() + b"\n")
        writing.flush()
        # The growth of the result file tells the supervisor that a call is done.
        write(result, b".")

    service = _Service(load(program, asked["prelude"], asked["setup"]), asked["entry"])
    say("{}")
    for line in reading:
        try:
            reply = dumps(service.answer(loads(line)))
        except MemoryError:
            raise
        except Exception as error:
            reply = dumps({"error": _builtin_name(error), "text": failure(error)})
        say(reply)


def both_ways(channel: int | None) -> tuple[BinaryIO, BinaryIO]:
    """A channel to read from, and to write to.

    Raises:
        ValueError: there is none.
    """
    if channel is None:
        raise ValueError("this driver needs a channel")
    return os.fdopen(os.dup(channel), "rb"), os.fdopen(os.dup(channel), "wb")


class _Service:
    def __init__(self, namespace: dict[str, Any], entry: str) -> None:
        self.namespace, self.entry = namespace, entry
        self.kept: list[Any] = []

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        target = self.target(question["of"])
        match question["do"]:
            case "call":
                arguments = [self.argument(one) for one in question["args"]]
                keywords = {name: self.argument(one) for name, one in question["kwargs"]}
                value = target(*arguments, **keywords)
                if value is None:
                    return {"value": None, "args": [encode(one) for one in arguments]}
                return self.sent(value)
            case "get":
                return self.sent(getattr(target, question["name"]))
            case "set":
                setattr(target, question["name"], self.argument(question["args"][0]))
                return {"value": None}
        return {"value": bool(target)}

    def target(self, of: dict[str, Any]) -> Any:
        if "kept" in of:
            return self.kept[of["kept"]]
        name = self.entry if of["name"] == CANDIDATE else of["name"]
        return resolve(self.namespace, name)

    def argument(self, data: dict[str, Any]) -> Any:
        return decode(data["value"]) if "value" in data else self.target(data)

    def sent(self, value: Any) -> dict[str, Any]:
        data = encode(value)
        if type(data) is not dict or REFUSED not in data:
            return {"value": data}
        self.kept.append(value)
        return {"kept": len(self.kept) - 1, "class": data[REFUSED]}


def _builtin_name(error: Exception) -> str:
    """The nearest builtin class: tests catch ``ValueError``, not what a program derived from it."""
    names = (kind.__name__ for kind in type(error).__mro__)
    return next((name for name in names if hasattr(builtins, name)), "Exception")
