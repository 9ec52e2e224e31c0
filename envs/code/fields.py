"""How the rows of programming data sets become problems: one function per kind of row.

A new data set with fields of its own is one entry in :data:`MAPPINGS`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flexmg.envs.code import livecodebench
from flexmg.envs.code.cells import (
    data_of,
    first_of,
    lines_of,
    mapping_of,
    pairs_of,
    text_of,
    texts_of,
)
from flexmg.envs.code.flags import flags_of
from flexmg.envs.code.functions import LIMITS, function_suite
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.rows import Row, RowError
from flexmg.envs.sources import ParsedRow
from flexmg.errors import InvalidArgument

NO_REFERENCE = "tests"
# The docstring of HumanEval/47 calls 15.0 the median of six numbers whose median is 8.0.
WRONG_EXAMPLES = ("HumanEval/47",)


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
    asserts = [*texts_of(row, "test_list"), *texts_of(row, "challenge_test_list", required=False)]
    program = text_of(row, "code").replace("\r\n", "\n")
    setup = lines_of(row.get("test_setup_code")) + lines_of(row.get("test_imports"))
    name = next((name for one in asserts for name in _called(one) if _defines(program, name)), "")
    suite = Suite(
        "asserts",
        public=tuple(Case(one) for one in asserts[:1]),
        hidden=tuple(Case(one) for one in asserts[1:]),
        entry=name,
        setup=setup,
        limits=LIMITS,
    )
    text = text_of(row, "text" if "text" in row else "prompt")
    statement = (
        f"{text.strip()}\nYour program should pass this test:\n{asserts[0]}" if asserts else ""
    )
    return problem_row(statement, suite, id=f"mbpp-{row['task_id']}", reference=program)


def _humaneval(row: Row) -> ParsedRow:
    """The prompt's own code before the function travels with every program."""
    prompt, entry = text_of(row, "prompt"), text_of(row, "entry_point")
    id = text_of(row, "task_id")
    head, found, _ = prompt.rpartition(f"def {entry}(")
    if not found:
        raise RowError(f"does not begin the function {entry!r}", "prompt")
    suite = Suite(
        "asserts",
        public=() if id in WRONG_EXAMPLES else tuple(map(Case, _doctests(prompt, entry))),
        hidden=(Case(text_of(row, "test")),),
        entry=entry,
        prelude=head,
        limits=LIMITS,
    )
    statement = f"Complete this function. Write the whole program.\n\n{prompt.strip()}"
    program = prompt + text_of(row, "canonical_solution")
    return problem_row(statement, suite, id=id, reference=program)


def _contest(row: Row) -> ParsedRow:
    """``problem`` and ``tests``: lists of input and output, or two lists, perhaps as text."""
    statement = text_of(row, "problem")
    tests = data_of(row, "tests")
    pairs = pairs_of(tests)
    suite = Suite(
        "stdin",
        hidden=tuple(Case(one, other) for one, other in pairs),
        flags=flags_of(statement),
        limits=LIMITS,
    )
    return problem_row(statement, suite, id=row.get("id"), reference=first_of(row.get("solutions")))


def _deepcoder(row: Row) -> ParsedRow:
    """DeepCoder: ``tests`` as JSON, of stdin, or of function calls with a name in them."""
    statement = text_of(row, "problem")
    tests = data_of(row, "tests")
    metadata = mapping_of(row.get("metadata"))
    name = metadata.get("func_name") or (isinstance(tests, Mapping) and tests.get("fn_name"))
    if not name and isinstance(tests, Sequence):
        name = next(
            (
                one["metadata"]["func_name"]
                for one in tests
                if isinstance(one, Mapping) and mapping_of(one.get("metadata")).get("func_name")
            ),
            "",
        )
    if isinstance(name, str) and name:
        starter = str(row.get("starter_code") or "")
        suite = function_suite(name, tests, starter, testtype_lines=isinstance(tests, list))
        text = f"{statement}\n\n{starter}".strip() if starter else f"{statement}\n\nWrite {name}."
        return problem_row(text, suite, reference=first_of(row.get("solutions")))
    return _contest(row)


def _apps(row: Row) -> ParsedRow:
    """APPS and TACO: ``input_output`` with inputs, outputs and perhaps ``fn_name``."""
    statement, tests = text_of(row, "question"), data_of(row, "input_output")
    if not isinstance(tests, Mapping):
        raise RowError("is not an object with inputs and outputs", "input_output")
    starter = str(row.get("starter_code") or "")
    name = tests.get("fn_name")
    reference = first_of(row.get("solutions"))
    identity = row.get("problem_id", row.get("id"))
    if isinstance(name, str) and name:
        suite = function_suite(name, tests, starter, testtype_lines=False)
        text = f"{statement}\n\n{starter}" if starter else f"{statement}\n\nWrite {name}."
        return problem_row(text, suite, id=identity, reference=reference)
    suite = Suite(
        "stdin",
        hidden=tuple(Case(one, other) for one, other in pairs_of(tests)),
        flags=flags_of(statement),
        limits=LIMITS,
    )
    return problem_row(statement, suite, id=identity, reference=reference)


def _codecontests(row: Row) -> ParsedRow:
    """CodeContests: public, private and generated tests, each two lists."""
    statement = text_of(row, "description")
    public = pairs_of(data_of(row, "public_tests"))
    hidden = [
        pair
        for name in ("private_tests", "generated_tests")
        if row.get(name) is not None
        for pair in pairs_of(data_of(row, name))
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
    public = pairs_of(row.get("examples") or [])
    hidden = pairs_of(data_of(row, "official_tests"))
    suite = Suite(
        "stdin",
        public=tuple(Case(one, other) for one, other in public),
        hidden=tuple(Case(one, other) for one, other in hidden if (one, other) not in public),
        flags=flags_of(statement),
        limits=LIMITS,
    )
    return problem_row(statement, suite, id=row.get("id"))


def _livecodebench(row: Row) -> ParsedRow:
    statement = text_of(row, "question_content")
    starter = str(row.get("starter_code") or "")
    text = f"{statement}\n\n{starter}" if starter else statement
    return problem_row(text, livecodebench.suite_of(row), id=row.get("question_id"))


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
