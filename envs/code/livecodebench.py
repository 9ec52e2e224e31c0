"""LiveCodeBench's rows: public tests as JSON, private ones packed; on stdin or of a function."""

from __future__ import annotations

import base64
import binascii
import io
import json
import pickle
import zlib
from collections.abc import Mapping
from typing import Any

from flexmg.envs.code.cells import data_of, list_of, mapping_of, pairs_of, text_of
from flexmg.envs.code.flags import flags_of
from flexmg.envs.code.functions import LIMITS, function_suite
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.rows import Row, RowError

LARGEST_UNPACKED = 256 << 20  # bytes of private tests


def suite_of(row: Row) -> Suite:
    """The tests of a row.

    Raises:
        RowError: they cannot be read.
    """
    starter = str(row.get("starter_code") or "")
    public = data_of(row, "public_test_cases")
    packed = row.get("private_test_cases")
    hidden = unpack(packed) if isinstance(packed, str) and packed else []
    name = mapping_of(row.get("metadata")).get("func_name")
    both = [one for one in (*public, *hidden) if isinstance(one, Mapping)]
    if isinstance(name, str) and name and all(one.get("testtype") != "stdin" for one in both):
        one = function_suite(name, public, starter, testtype_lines=True)
        other = function_suite(name, hidden, starter, testtype_lines=True)
        return Suite(
            "calls",
            public=one.hidden,
            hidden=other.hidden,
            entry=one.entry,
            prelude=one.prelude,
            exact=False,
            limits=LIMITS,
        )
    return Suite(
        "stdin",
        public=tuple(Case(a, b) for a, b in pairs_of(public)),
        hidden=tuple(Case(a, b) for a, b in pairs_of(hidden)),
        flags=flags_of(text_of(row, "question_content")),
        limits=LIMITS,
    )


class _NoGlobals(pickle.Unpickler):
    """Reads texts, numbers, lists and dicts, and nothing that has a name."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def unpack(packed: str) -> list[Any]:
    """LiveCodeBench's private tests: JSON, or base64 of zlib of pickle of JSON.

    Raises:
        RowError: they are neither, unpack to more than is sensible, or ask for code.
    """
    field = "private_test_cases"
    try:
        return list_of(json.loads(packed), field)
    except ValueError:
        pass
    try:
        raw = base64.b64decode(packed, validate=True)
        engine = zlib.decompressobj()
        data = engine.decompress(raw, LARGEST_UNPACKED)
        if engine.unconsumed_tail:
            raise RowError(f"unpacks to more than {LARGEST_UNPACKED >> 20} MiB", field)
        text = _NoGlobals(io.BytesIO(data)).load()
        return list_of(json.loads(text) if isinstance(text, str | bytes) else text, field)
    except (
        binascii.Error, zlib.error, pickle.UnpicklingError, ValueError, EOFError, IndexError,
        KeyError, AttributeError, TypeError, RecursionError,
    ) as error:  # fmt: skip
        if isinstance(error, RowError):
            raise
        raise RowError(f"cannot be unpacked ({type(error).__name__}: {error})", field) from error
