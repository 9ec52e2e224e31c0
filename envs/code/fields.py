"""How the rows of programming data sets become problems: one function per kind of row.

A new data set with fields of its own is one entry in :data:`MAPPINGS`.
"""

from __future__ import annotations

import ast
import base64
import binascii
import io
import json
import pickle
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flexmg.envs.code.flags import flags_of
from flexmg.envs.code.sandbox.limits import Limits
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.code.values import encode
from flexmg.envs.rows import Row, RowError
from flexmg.envs.sources import ParsedRow
from flexmg.errors import InvalidArgument

# Contest limits are for compiled languages and quiet machines.
LIMITS = Limits(cpu_s=6.0, memory_mb=1024, output_kb=4096)
NO_REFERENCE = "tests"
LARGEST_UNPACKED = 256 << 20  # bytes of private tests
# What LeetCode puts before every program.
LEETCODE = """\
import collections, functools, heapq, itertools, math, bisect, string, re, random
from typing import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from math import *
from bisect import *
class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next
class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right
"""


@dataclass(frozen=True, slots=True)
class RowKind:
    """How one kind of row is recognised and read.

    Args:
        needs: the fields that a row of this kind has.
        parse: the problem in a row; raises ``RowError``.
    """

    needs: tuple[str, ...]
    parse: Callable[[Row], ParsedRow]

    def fits(self, row: Row) -> bool:
        """Whether a row has the fields."""
        return all(name in row for name in self.needs)


def problem_row(
    statement: str, suite: Suite, *, id: Any = None, reference: str = "", level: Any = None
) -> ParsedRow:
    """A problem with its tests.

    Raises:
        RowError: no statement, or no test.
    """
    if not statement.strip():
        raise RowError("the row states no problem")
    if not suite.cases:
        raise RowError("the row has no test: no program could be judged by it")
    payload: dict[str, Any] = {"tests": suite.payload()}
    if reference:
        payload["reference"] = reference
    return ParsedRow(
        statement=statement.strip(),
        gold=reference or NO_REFERENCE,
        id=None if id is None else str(id),
        level=level if isinstance(level, int) and not isinstance(level, bool) else None,
        payload=payload,
    )


def _mbpp(row: Row) -> ParsedRow:
    """The first assert is public and part of the statement: it alone names the function."""
    asserts = [*_texts(row, "test_list"), *_texts(row, "challenge_test_list", required=False)]
    program = _text(row, "code").replace("\r\n", "\n")
    setup = _lines(row.get("test_setup_code")) + _lines(row.get("test_imports"))
    name = next((name for one in asserts for name in _called(one) if _defines(program, name)), "")
    suite = Suite(
        "asserts",
        public=tuple(Case(one) for one in asserts[:1]),
        hidden=tuple(Case(one) for one in asserts[1:]),
        entry=name,
        setup=setup,
        limits=LIMITS,
    )
    text = _text(row, "text" if "text" in row else "prompt")
    statement = (
        f"{text.strip()}\nYour program should pass this test:\n{asserts[0]}" if asserts else ""
    )
    return problem_row(statement, suite, id=f"mbpp-{row['task_id']}", reference=program)


def _humaneval(row: Row) -> ParsedRow:
    """The prompt's own code before the function travels with every program."""
    prompt, entry = _text(row, "prompt"), _text(row, "entry_point")
    head, found, _ = prompt.rpartition(f"def {entry}(")
    if not found:
        raise RowError(f"does not begin the function {entry!r}", "prompt")
    suite = Suite(
        "asserts",
        public=tuple(Case(one) for one in _doctests(prompt, entry)),
        hidden=(Case(_text(row, "test")),),
        entry=entry,
        prelude=head,
        limits=LIMITS,
    )
    statement = f"Complete this function. Write the whole program.\n\n{prompt.strip()}"
    program = prompt + _text(row, "canonical_solution")
    return problem_row(statement, suite, id=_text(row, "task_id"), reference=program)


def _contest(row: Row) -> ParsedRow:
    """``problem`` and ``tests``: lists of input and output, or two lists, perhaps as text."""
    statement = _text(row, "problem")
    tests = _data(row, "tests")
    pairs = _pairs(tests)
    suite = Suite(
        "stdin",
        hidden=tuple(Case(one, other) for one, other in pairs),
        flags=flags_of(statement),
        limits=LIMITS,
    )
    return problem_row(statement, suite, id=row.get("id"), reference=_first(row.get("solutions")))


def _deepcoder(row: Row) -> ParsedRow:
    """DeepCoder: ``tests`` as JSON, of stdin, or of function calls with a name in them."""
    statement = _text(row, "problem")
    tests = _data(row, "tests")
    metadata = _mapping(row.get("metadata"))
    name = metadata.get("func_name") or (isinstance(tests, Mapping) and tests.get("fn_name"))
    if not name and isinstance(tests, Sequence):
        name = next(
            (
                one["metadata"]["func_name"]
                for one in tests
                if isinstance(one, Mapping) and _mapping(one.get("metadata")).get("func_name")
            ),
            "",
        )
    if isinstance(name, str) and name:
        starter = str(row.get("starter_code") or "")
        suite = _function_suite(name, tests, starter, testtype_lines=isinstance(tests, list))
        text = f"{statement}\n\n{starter}".strip() if starter else f"{statement}\n\nWrite {name}."
        return problem_row(text, suite, reference=_first(row.get("solutions")))
    return _contest(row)


def _apps(row: Row) -> ParsedRow:
    """APPS and TACO: ``input_output`` with inputs, outputs and perhaps ``fn_name``."""
    statement, tests = _text(row, "question"), _data(row, "input_output")
    if not isinstance(tests, Mapping):
        raise RowError("is not an object with inputs and outputs", "input_output")
    starter = str(row.get("starter_code") or "")
    name = tests.get("fn_name")
    reference = _first(row.get("solutions"))
    identity = row.get("problem_id", row.get("id"))
    if isinstance(name, str) and name:
        suite = _function_suite(name, tests, starter, testtype_lines=False)
        text = f"{statement}\n\n{starter}" if starter else f"{statement}\n\nWrite {name}."
        return problem_row(text, suite, id=identity, reference=reference)
    suite = Suite(
        "stdin",
        hidden=tuple(Case(one, other) for one, other in _pairs(tests)),
        flags=flags_of(statement),
        limits=LIMITS,
    )
    return problem_row(statement, suite, id=identity, reference=reference)


def _codecontests(row: Row) -> ParsedRow:
    """CodeContests: public, private and generated tests, each two lists."""
    statement = _text(row, "description")
    public = _pairs(_data(row, "public_tests"))
    hidden = [
        pair
        for name in ("private_tests", "generated_tests")
        if row.get(name) is not None
        for pair in _pairs(_data(row, name))
    ]
    suite = Suite(
        "stdin",
        public=tuple(Case(one, other) for one, other in public),
        hidden=tuple(Case(one, other) for one, other in hidden),
        flags=flags_of(statement),
        limits=LIMITS,
    )
    return problem_row(statement, suite, id=row.get("name"))


def _codeforces(row: Row) -> ParsedRow:
    """open-r1/codeforces: parts of a statement, ``official_tests``, perhaps examples."""
    parts = [row.get("description"), row.get("input_format"), row.get("output_format")]
    statement = "\n\n".join(str(part) for part in parts if part)
    public = _pairs(row.get("examples") or [])
    hidden = _pairs(_data(row, "official_tests"))
    suite = Suite(
        "stdin",
        public=tuple(Case(one, other) for one, other in public),
        hidden=tuple(Case(one, other) for one, other in hidden if (one, other) not in public),
        flags=flags_of(statement),
        limits=LIMITS,
    )
    return problem_row(statement, suite, id=row.get("id"))


def _livecodebench(row: Row) -> ParsedRow:
    """LiveCodeBench: public tests as JSON, private ones packed; on stdin or of a function."""
    statement = _text(row, "question_content")
    starter = str(row.get("starter_code") or "")
    public = _data(row, "public_test_cases")
    packed = row.get("private_test_cases")
    hidden = unpack(packed) if isinstance(packed, str) and packed else []
    name = _mapping(row.get("metadata")).get("func_name")
    both = [one for one in (*public, *hidden) if isinstance(one, Mapping)]
    text = f"{statement}\n\n{starter}" if starter else statement
    if isinstance(name, str) and name and all(one.get("testtype") != "stdin" for one in both):
        one = _function_suite(name, public, starter, testtype_lines=True)
        other = _function_suite(name, hidden, starter, testtype_lines=True)
        suite = Suite(
            "calls",
            public=one.hidden,
            hidden=other.hidden,
            entry=one.entry,
            prelude=one.prelude,
            exact=False,
            limits=LIMITS,
        )
    else:
        suite = Suite(
            "stdin",
            public=tuple(Case(a, b) for a, b in _pairs(public)),
            hidden=tuple(Case(a, b) for a, b in _pairs(hidden)),
            flags=flags_of(statement),
            limits=LIMITS,
        )
    return problem_row(text, suite, id=row.get("question_id"))


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
        return _list(json.loads(packed), field)
    except ValueError:
        pass
    try:
        raw = base64.b64decode(packed, validate=True)
        engine = zlib.decompressobj()
        data = engine.decompress(raw, LARGEST_UNPACKED)
        if engine.unconsumed_tail:
            raise RowError(f"unpacks to more than {LARGEST_UNPACKED >> 20} MiB", field)
        text = _NoGlobals(io.BytesIO(data)).load()
        return _list(json.loads(text) if isinstance(text, str | bytes) else text, field)
    except (
        binascii.Error, zlib.error, pickle.UnpicklingError, ValueError, EOFError, IndexError,
        KeyError, AttributeError, TypeError, RecursionError,
    ) as error:  # fmt: skip
        if isinstance(error, RowError):
            raise
        raise RowError(f"cannot be unpacked ({type(error).__name__}: {error})", field) from error


# The order is the order of recognition: the more telling fields come first.
MAPPINGS: Mapping[str, RowKind] = {
    "livecodebench": RowKind(("question_content", "public_test_cases"), _livecodebench),
    "humaneval": RowKind(("prompt", "canonical_solution", "entry_point", "test"), _humaneval),
    "mbpp": RowKind(("task_id", "code", "test_list"), _mbpp),
    "apps": RowKind(("question", "input_output"), _apps),
    "codecontests": RowKind(("description", "public_tests"), _codecontests),
    "codeforces": RowKind(("description", "official_tests"), _codeforces),
    "deepcoder": RowKind(("problem", "tests"), _deepcoder),
}


def mapping_from(fields: Mapping[str, str]) -> Callable[[Row], ParsedRow]:
    """The reader of a file whose fields the user names.

    Args:
        fields: ``statement`` and ``tests`` (lists of input and output), and if wanted ``id``
            and ``solution``.

    Raises:
        InvalidArgument: not a mapping, or a role is unknown or lacking.
    """
    known = ("statement", "tests", "id", "solution")
    if not isinstance(fields, Mapping) or not {"statement", "tests"} <= set(fields) <= set(known):
        raise InvalidArgument(
            f"mapping={fields!r} must name the fields 'statement' and 'tests', and may name "
            f"'id' and 'solution', as in {{'statement': 'question', 'tests': 'cases'}}"
        )

    def parse(row: Row) -> ParsedRow:
        renamed = {
            "problem": row.get(fields["statement"]),
            "tests": row.get(fields["tests"]),
            "id": row.get(fields.get("id", "id")),
            "solutions": row.get(fields.get("solution", "solution")),
        }
        return _deepcoder(renamed)

    return parse


def _function_suite(name: str, tests: Any, starter: str, *, testtype_lines: bool) -> Suite:
    """Calls of a function with arguments and values as JSON has them."""
    cases = []
    for given, wanted in _pairs(tests, texts=False):
        if testtype_lines and isinstance(given, str):
            arguments = [_json(line) for line in given.splitlines() if line.strip()]
        else:
            arguments = list(given) if isinstance(given, list | tuple) else [given]
        value = _json(wanted) if testtype_lines and isinstance(wanted, str) else wanted
        cases.append(Case([encode(one) for one in arguments], encode(value)))
    in_class = "class Solution" in starter
    return Suite(
        "calls",
        hidden=tuple(cases),
        entry=f"Solution.{name}" if in_class else name,
        prelude=LEETCODE if in_class else "",
        exact=False,
        limits=LIMITS,
    )


def _pairs(tests: Any, *, texts: bool = True) -> list[tuple[Any, Any]]:
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
    return [(_joined(one), _joined(other)) for one, other in pairs] if texts else pairs


def _joined(value: Any) -> str:
    """A text; some data sets keep a list of lines."""
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return value if isinstance(value, str) else str(value)


def _data(row: Row, name: str) -> Any:
    """A field that is data, or data written as JSON or as a Python literal."""
    value = row.get(name)
    if value is None:
        raise RowError("is missing", name)
    return _json(value, name) if isinstance(value, str) else value


def _json(text: str, name: str = "tests") -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise RowError(f"is neither JSON nor a Python literal ({text[:60]!r})", name) from error


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise RowError(f"is not a list of tests, but a {type(value).__name__}", name)
    return value


def _text(row: Row, name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise RowError("is missing" if value is None else "must be a text", name)
    return value


def _texts(row: Row, name: str, *, required: bool = True) -> list[str]:
    value = row.get(name)
    if value is None and not required:
        return []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise RowError("must be a list of texts", name)
    return value


def _lines(value: Any) -> str:
    if isinstance(value, list):
        return "".join(f"{line}\n" for line in value)
    return f"{value}\n" if isinstance(value, str) and value.strip() else ""


def _first(value: Any) -> str:
    """The first of several solutions, however they are written."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return value
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, Mapping):
        value = value.get("code", "")
    return value if isinstance(value, str) else ""


def _called(code: str) -> list[str]:
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return []
    return [
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]


def _defines(program: str, name: str) -> bool:
    return (
        re.search(
            rf"^\s*(?:def|class)\s+{re.escape(name)}\b|^{re.escape(name)}\s*=",
            program,
            re.MULTILINE,
        )
        is not None
    )


def _doctests(prompt: str, entry: str) -> list[str]:
    """Examples of a docstring as asserts: ``>>> f(2)`` followed by a literal."""
    found = []
    for call, value in re.findall(r">>>\s*(.+)\n\s*([^\s>].*)", prompt):
        try:
            ast.literal_eval(value.strip())
            ast.parse(call.strip(), mode="eval")
        except (ValueError, SyntaxError):
            continue
        if call.strip().startswith(f"{entry}("):
            found.append(f"assert {call.strip()} == {value.strip()}")
    return found
