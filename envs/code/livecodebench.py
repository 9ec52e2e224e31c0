"""LiveCodeBench's rows: public tests as JSON, private ones packed; on stdin or of a function."""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import zlib
from collections.abc import Mapping
from typing import Any

from flexmg.envs.code.cells import data_of, list_of, mapping_of, pairs_of, text_of
from flexmg.envs.code.functions import function_suite
from flexmg.envs.code.programs import program_suite
from flexmg.envs.code.suite import Suite
from flexmg.envs.rows import Row, RowError

LARGEST_UNPACKED = 256 << 20  # bytes of private tests
# The opcodes that pickle one text, under any protocol.
_TEXTS = ("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8")
_AROUND = ("PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP")


def suite_of(row: Row) -> Suite:
    """The tests of a row.

    Raises:
        RowError: they cannot be read.
    """
    statement = text_of(row, "question_content")
    public = list_of(data_of(row, "public_test_cases"), "public_test_cases")
    packed = row.get("private_test_cases")
    hidden = unpack(packed) if isinstance(packed, str) and packed else []
    name = mapping_of(row.get("metadata")).get("func_name")
    cases = [one for one in (*public, *hidden) if isinstance(one, Mapping)]
    if isinstance(name, str) and name and all(one.get("testtype") != "stdin" for one in cases):
        starter = str(row.get("starter_code") or "")
        return function_suite(name, starter, statement, public=public, hidden=hidden, texts=True)
    return program_suite(statement, public=pairs_of(public), hidden=pairs_of(hidden))


def unpack(packed: str) -> list[Any]:
    """LiveCodeBench's private tests: JSON, or base64 of zlib of pickle of JSON.

    Raises:
        RowError: they are neither, unpack to more than is sensible, or hold more than a text.
    """
    field = "private_test_cases"
    try:
        return list_of(json.loads(packed), field)
    except (ValueError, RecursionError) as error:
        if isinstance(error, RowError):
            raise
    try:
        raw = base64.b64decode(packed, validate=True)
        engine = zlib.decompressobj()
        data = engine.decompress(raw, LARGEST_UNPACKED)
        if engine.unconsumed_tail:
            raise RowError(f"unpacks to more than {LARGEST_UNPACKED >> 20} MiB", field)
        if not engine.eof:
            raise RowError("is cut off: its compressed data have no end", field)
        return list_of(json.loads(_pickled_text(data)), field)
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        if isinstance(error, RowError):
            raise
        raise RowError(f"cannot be unpacked ({type(error).__name__}: {error})", field) from error


def _pickled_text(pickled: bytes) -> str:
    """The text in a pickle of one text.

    Its opcodes are only listed. An unpickler would obey them, and even one that looks no name
    up can be told to fill all memory.

    Raises:
        ValueError: it is no pickle, or one of something else.
    """
    texts: list[str] = []
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name in _TEXTS:
            texts.append(str(argument))
        elif opcode.name not in _AROUND:
            raise ValueError(f"the pickle holds more than a text: {opcode.name}")
    if len(texts) != 1:
        raise ValueError(f"the pickle holds {len(texts)} texts instead of one")
    return texts[0]
