"""How the rows of programming data sets become problems: one function per kind of row.

A new data set with fields of its own is one entry in :data:`MAPPINGS`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flexmg.envs.code import codeforces, livecodebench
from flexmg.envs.code.cells import (
    data_of,
    first_of,
    lines_of,
    mapping_of,
    pairs_of,
    text_of,
    texts_of,
)
from flexmg.envs.code.functions import asks_for, function_name, function_suite
from flexmg.envs.code.programs import UNTIMED_LIMITS, limits_of, program_suite
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.rows import Row, RowError
from flexmg.envs.sources import ParsedRow
from flexmg.errors import InvalidArgument

NO_REFERENCE = "tests"
# The docstring of HumanEval/47 calls 15.0 the median of six numbers whose median is 8.0.
WRONG_EXAMPLES = ("HumanEval/47",)
CODECONTESTS_PYTHON3 = 3  # among its numbers of languages


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
    statement: str, suite: Suite, *, id: Any = None, reference: str = "", task: str = ""
) -> ParsedRow:
    """A problem with its tests.

    Args:
        statement: what agents read.
        suite: the tests.
        id: the row's own identifier, or None.
        reference: a right program, if one is known.
        task: the statement without what was added to it, for comparisons with other sources.

    Raises:
        RowError: no statement, no test, or a text that is none.
    """
    if not suite.cases:
        raise RowError("the row has no test: no program could be judged by it")
    if not statement.strip():
        raise RowError("the row states no problem")
    payload: dict[str, Any] = {"tests": suite.payload()}
    if reference:
        payload["reference"] = reference
    if task and task != statement:
        payload["task"] = task
    try:
        json.dumps([statement, payload], ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as error:
        raise RowError("the row holds half of a surrogate pair, which is no character") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise RowError(f"the row holds data that JSON has no word for ({error})") from error
    return ParsedRow(
        statement=statement.strip(),
        gold=reference or NO_REFERENCE,
        id=None if id is None else str(id),
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
        limits=UNTIMED_LIMITS,
    )
    task = text_of(row, "text" if "text" in row else "prompt").strip()
    shown = f"\nYour program should pass this test:\n{asserts[0]}" if task and asserts else ""
    id = None if row.get("task_id") is None else f"mbpp-{row['task_id']}"
    return problem_row(task + shown, suite, id=id, reference=program, task=task)


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
        limits=UNTIMED_LIMITS,
    )
    statement = f"Complete this function. Write the whole program.\n\n{prompt.strip()}"
    program = prompt + text_of(row, "canonical_solution")
    return problem_row(statement, suite, id=id, reference=program)


def _deepcoder(row: Row) -> ParsedRow:
    """``problem`` and ``tests``, perhaps as text: of whole programs, or of a function."""
    return _with_tests(row, text_of(row, "problem"), data_of(row, "tests"), row.get("id"))


def _apps(row: Row) -> ParsedRow:
    """APPS and TACO: ``input_output`` with inputs, outputs and perhaps ``fn_name``."""
    statement, tests = text_of(row, "question"), data_of(row, "input_output")
    if not isinstance(tests, Mapping):
        raise RowError("is not an object with inputs and outputs", "input_output")
    return _with_tests(row, statement, tests, row.get("problem_id", row.get("id")))


def _with_tests(row: Row, statement: str, tests: Any, id: Any) -> ParsedRow:
    reference = first_of(row.get("solutions"))
    name = function_name(row, tests)
    if not name:
        suite = program_suite(statement, hidden=pairs_of(tests))
        return problem_row(statement, suite, id=id, reference=reference)
    starter = str(row.get("starter_code") or "")
    # LiveCodeBench's tests keep their calls as texts; APPS', TACO's and PrimeIntellect's do not.
    texts = isinstance(tests, list) and not any(
        isinstance(one, Mapping) and "fn_name" in one for one in tests
    )
    suite = function_suite(name, starter, statement, hidden=tests, texts=texts)
    text = asks_for(statement, starter, name)
    return problem_row(text, suite, id=id, reference=reference, task=statement)


def _codecontests(row: Row) -> ParsedRow:
    """CodeContests: public, private and generated tests, each two lists."""
    statement = text_of(row, "description")
    for name in ("input_file", "output_file"):
        if row.get(name):
            raise RowError("asks for files instead of standard input and output", name)
    hidden = [
        pair
        for name in ("private_tests", "generated_tests")
        if row.get(name) is not None
        for pair in pairs_of(data_of(row, name))
    ]
    suite = program_suite(
        statement,
        public=pairs_of(data_of(row, "public_tests")),
        hidden=hidden,
        limits=limits_of(mapping_of(row.get("time_limit")).get("seconds")),
    )
    reference = _python_solution(mapping_of(row.get("solutions")))
    return problem_row(statement, suite, id=row.get("name"), reference=reference)


def _python_solution(solutions: Mapping[str, Any]) -> str:
    """The first of CodeContests' solutions that is in Python 3."""
    languages, programs = solutions.get("language"), solutions.get("solution")
    if not isinstance(languages, list) or not isinstance(programs, list):
        return ""
    for language, program in zip(languages, programs, strict=False):
        if language == CODECONTESTS_PYTHON3 and isinstance(program, str):
            return program
    return ""


def _codeforces(row: Row) -> ParsedRow:
    statement = codeforces.statement_of(row)
    return problem_row(statement, codeforces.suite_of(row, statement), id=row.get("id"))


def _livecodebench(row: Row) -> ParsedRow:
    statement = text_of(row, "question_content")
    starter = str(row.get("starter_code") or "")
    text = f"{statement}\n\n{starter}" if starter.strip() else statement
    id = f"livecodebench-{row['question_id']}" if row.get("question_id") else None
    return problem_row(text, livecodebench.suite_of(row), id=id, task=statement)


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
