"""What the fields of a row hold, however a data set writes it."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from flexmg.envs.rows import Row, RowError


def pairs_of(tests: Any, *, texts: bool = True) -> list[tuple[Any, Any]]:
    """(input, output) of each test, from either way of writing them."""
    if isinstance(tests, Mapping):
        given = tests.get("inputs", tests.get("input"))
        wanted = tests.get("outputs", tests.get("output"))
        if not isinstance(given, list) or not isinstance(wanted, list):
            raise RowError("holds no lists of inputs and outputs", "tests")
        if len(given) != len(wanted):
            raise RowError(f"has {len(given)} inputs, but {len(wanted)} outputs", "tests")
        pairs = list(zip(given, wanted, strict=True))
    elif isinstance(tests, list):
        pairs = []
        for one in tests:
            if not isinstance(one, Mapping) or not {"input", "output"} <= set(one):
                raise RowError("holds a test without input or output", "tests")
            pairs.append((one["input"], one["output"]))
    else:
        raise RowError("is neither a list of tests nor an object of inputs and outputs", "tests")
    return [(joined(one), joined(other)) for one, other in pairs] if texts else pairs


def joined(value: Any) -> str:
    """A text; some data sets keep a list of lines."""
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return value if isinstance(value, str) else str(value)


def data_of(row: Row, name: str) -> Any:
    """A field that is data, or data written as JSON or as a Python literal."""
    value = row.get(name)
    if value is None:
        raise RowError("is missing", name)
    if isinstance(value, str) and not value.strip():
        raise RowError("is empty: no program could be judged by it", name)
    return parsed(value, name) if isinstance(value, str) else value


def parsed(text: str, name: str = "tests") -> Any:
    """JSON, or a Python literal; raises ``RowError`` for anything else."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise RowError(f"is neither JSON nor a Python literal ({text[:60]!r})", name) from error


def mapping_of(value: Any) -> Mapping[str, Any]:
    """An object, or one written as JSON; an empty one for anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, Mapping) else {}


def list_of(value: Any, name: str) -> list[Any]:
    """A list of tests; raises ``RowError`` for anything else."""
    if not isinstance(value, list):
        raise RowError(f"is not a list of tests, but a {type(value).__name__}", name)
    return value


def text_of(row: Row, name: str) -> str:
    """A text that must be there; raises ``RowError``."""
    value = row.get(name)
    if not isinstance(value, str):
        raise RowError("is missing" if value is None else "must be a text", name)
    return value


def texts_of(row: Row, name: str, *, required: bool = True) -> list[str]:
    """A list of texts; raises ``RowError``."""
    value = row.get(name)
    if value is None and not required:
        return []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise RowError("must be a list of texts", name)
    return value


def lines_of(value: Any) -> str:
    """Code that is kept as a text or as a list of lines; empty for anything else."""
    if isinstance(value, list):
        return "".join(f"{line}\n" for line in value)
    return f"{value}\n" if isinstance(value, str) and value.strip() else ""


def first_of(value: Any) -> str:
    """The first of several solutions, however they are written."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return value
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, Mapping):
        value = value.get("code", "")
    return value if isinstance(value, str) else ""
