"""Run test code whose candidate lives in another sandbox.

The program is the test code; the request is JSON with ``names`` (what the tests take from the
candidate's program), ``entry``, ``call`` (a function of the test code to be called with the
candidate, or empty) and ``nonce``. Every name is a proxy that sends its calls over the channel
(:mod:`.dialogue`). The result is one line: ``{"nonce": ..., "verdict": ..., "detail": ...}`` with
the verdict ``passed``, ``failed``, ``gone`` (the candidate's end broke off) or ``objects``
(something that is no builtin value would have to be sent).
"""

from __future__ import annotations

import builtins
import json
import os
from typing import Any

from .calls import failure
from .dialogue import CANDIDATE
from .encoding import REFUSED, Refused, decode, encode, to_json

LONGEST_MESSAGE = 1 << 20  # bytes


class Gone(BaseException):
    """The candidate's end of the channel broke off."""


class Objects(BaseException):
    """A value cannot be sent."""


class Proxy:
    """A function of the candidate's program."""

    def __init__(self, name: str, line: Any, send: Any) -> None:
        self._name, self._line, self._send = name, line, send

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call it over there."""
        call = {
            "name": self._name,
            "args": [encode(argument) for argument in arguments],
            "kwargs": [[key, encode(value)] for key, value in keywords.items()],
        }
        text = to_json(call)
        if f'{{"{REFUSED}":' in text:
            raise Objects(self._name)
        try:
            self._send(text.encode() + b"\n")
            reply = self._line(LONGEST_MESSAGE)
            data = json.loads(reply) if reply.endswith(b"\n") else None
        except (OSError, ValueError, RecursionError) as error:
            raise Gone(str(error)) from None
        if not isinstance(data, dict):
            raise Gone("no reply")
        if "error" in data:
            raise _exception(data["error"])(str(data.get("text")))
        try:
            value = decode(data.get("value"))
        except (ValueError, RecursionError) as error:
            raise Gone(str(error)) from None
        if isinstance(value, Refused):
            raise TypeError(f"{self._name} returned {value!r}")
        return value


def _exception(name: Any) -> type[Exception]:
    found = getattr(builtins, name, None) if isinstance(name, str) else None
    return found if isinstance(found, type) and issubclass(found, Exception) else RuntimeError


def main(program: bytes, request: bytes, result: int, channel: int | None) -> None:
    """See the module."""
    asked = json.loads(request)
    reading, writing = os.fdopen(os.dup(channel), "rb"), os.fdopen(os.dup(channel), "wb")

    def send(message: bytes) -> None:
        writing.write(message)
        writing.flush()

    proxies = {name: Proxy(name, reading.readline, send) for name in asked["names"]}
    candidate = Proxy(CANDIDATE, reading.readline, send)
    namespace = {"__name__": "tests", **proxies, CANDIDATE: candidate}
    verdict, detail = "passed", ""
    try:
        exec(compile(program, "<tests>", "exec", dont_inherit=True), namespace)
        if asked["call"]:
            namespace[asked["call"]](candidate)
    except Gone as error:
        verdict, detail = "gone", str(error)
    except Objects as error:
        verdict, detail = "objects", str(error)
    except MemoryError:
        raise
    except BaseException as error:
        verdict, detail = "failed", failure(error)
    line = to_json({"nonce": asked["nonce"], "verdict": verdict, "detail": detail[:300]})
    os.write(result, line.encode())
