"""Serve calls of a program's functions to whoever is at the other end of the channel.

The request is JSON with ``prelude``, ``setup`` and ``entry``. A message is a line of JSON: a
call is ``{"name": ..., "args": [...], "kwargs": [[name, value], ...]}``, encoded; the reply
``{"value": encoded}`` or ``{"error": class name, "text": ...}``. It ends when the other end does.
"""

from __future__ import annotations

import json
import os

from .calls import failure, load, resolve
from .encoding import decode, encode, to_json

CANDIDATE = "candidate"


def main(program: bytes, request: bytes, result: int, channel: int | None) -> None:
    """See the module."""
    asked = json.loads(request)
    loads, dumps = json.loads, to_json
    reading, writing = os.fdopen(os.dup(channel), "rb"), os.fdopen(os.dup(channel), "wb")
    namespace = load(program, asked["prelude"], asked["setup"])
    for line in reading:
        call = loads(line)
        name = asked["entry"] if call["name"] == CANDIDATE else call["name"]
        try:
            function = resolve(namespace, name)
            keywords = {key: decode(value) for key, value in call["kwargs"]}
            value = function(*[decode(argument) for argument in call["args"]], **keywords)
            reply = dumps({"value": encode(value)})
        except MemoryError:
            raise
        except Exception as error:
            reply = dumps({"error": type(error).__name__, "text": failure(error)})
        writing.write(reply.encode() + b"\n")
        writing.flush()
        # The growth of the result file tells the supervisor that a call is done.
        os.write(result, b".")
