"""The rows of open-r1/codeforces: a statement in parts, tests, perhaps a checker of their own."""

from __future__ import annotations

import ast
from typing import Any

from flexmg.envs.code.cells import data_of, pairs_of, text_of
from flexmg.envs.code.programs import limits_of, program_suite
from flexmg.envs.code.suite import Suite
from flexmg.envs.rows import Row, RowError

# The data set's checkers are scripts that are called with three file names and print 1 or 0.
# A sandbox has no files: the script reads the texts where it opens them.
_CHECKER = """\
def check(stdin, out, gold):
    import builtins, contextlib, io, sys
    texts = {{"input.txt": stdin, "correct_output.txt": gold, "solution_output.txt": out}}
    real = io.open

    def opened(file, mode="r", *args, **kwargs):
        text = texts.get(str(file))
        if text is None:
            return real(file, mode, *args, **kwargs)
        return io.BytesIO(text.encode()) if "b" in mode else io.StringIO(text, newline=None)

    builtins.open = io.open = opened
    sys.argv = ["checker.py", *texts]
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            exec(compile({source!r}, "checker.py", "exec"), {{"__name__": "__main__"}})
    except SystemExit as end:
        if end.code:
            return False
    return said.getvalue().strip() == "1"
"""


def statement_of(row: Row) -> str:
    """The parts of the statement, and the examples.

    Raises:
        RowError: no program that reads standard input could solve it.
    """
    if row.get("interaction_format"):
        raise RowError("is an interactive problem: no stored input can test it")
    if row.get("input_mode") not in (None, "", "stdio"):
        raise RowError("asks for files instead of standard input and output", "input_mode")
    parts = [text_of(row, "description")]
    for name, title in (("input_format", "Input"), ("output_format", "Output")):
        if row.get(name):
            parts.append(f"{title}\n{text_of(row, name)}")
    for given, wanted in _unix(row.get("examples") or []):
        parts.append(f"Example input\n{given.strip()}\nExample output\n{wanted.strip()}")
    if row.get("note"):
        parts.append(f"Note\n{text_of(row, 'note')}")
    return "\n\n".join(parts)


def suite_of(row: Row, statement: str) -> Suite:
    """The tests: the examples are public, the other official ones hidden.

    Raises:
        RowError: they cannot be read.
    """
    public = _unix(row.get("examples") or [])
    shown = {_tokens(pair) for pair in public}
    official = _unix(data_of(row, "official_tests"))
    return program_suite(
        statement,
        public=public,
        hidden=[pair for pair in official if _tokens(pair) not in shown],
        checker=_checker(row.get("generated_checker")),
        limits=limits_of(row.get("time_limit")),
    )


def _unix(tests: Any) -> list[tuple[str, str]]:
    """(input, output) with the line ends that programs expect here."""
    return [
        (given.replace("\r\n", "\n"), wanted.replace("\r\n", "\n"))
        for given, wanted in pairs_of(tests)
    ]


def _tokens(pair: tuple[str, str]) -> tuple[tuple[str, ...], ...]:
    """Tells tests apart that differ in more than white space."""
    return tuple(tuple(text.split()) for text in pair)


def _checker(source: Any) -> str:
    """The data set's checker as :mod:`flexmg.envs.code.checkers` calls one."""
    if source is None or source == "":
        return ""
    if not isinstance(source, str):
        raise RowError("is no Python program", "generated_checker")
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RowError(f"is no Python program ({error})", "generated_checker") from error
    return _CHECKER.format(source=source)
