"""Run a program and its tests in one process: for tests that pass objects to and fro.

Weak: a program that sets out to cheat can reach what the tests hold. The request is JSON with
``prelude``, ``setup``, ``tests``, ``call``, ``entry`` and ``nonce``; the nonce is written to the
result when the last test has passed.
"""

from __future__ import annotations

import json
import os

from .calls import load, resolve


def main(program: bytes, request: bytes, result: int, channel: int | None) -> None:
    """See the module."""
    asked = json.loads(request)
    write = os.write
    namespace = load(program, asked["prelude"], asked["setup"])
    exec(compile(asked["tests"], "<tests>", "exec", dont_inherit=True), namespace)
    if asked["call"]:
        namespace[asked["call"]](resolve(namespace, asked["entry"]))
    write(result, asked["nonce"].encode())
