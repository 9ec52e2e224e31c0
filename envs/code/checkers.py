"""A problem's own checker: trusted code that reads what nobody trusts."""

from __future__ import annotations

import ast
import json

from flexmg.envs.code.sandbox import Job, Limits, Pool
from flexmg.errors import ProblemError

LIMITS = Limits(cpu_s=5.0, memory_mb=512)
# It runs in a sandbox of its own, so that an output can at worst bring down its own check. What
# it prints to people goes to stderr.
_PROGRAM = """
import json, sys
_data = json.loads(sys.stdin.read())
_verdict, sys.stdout = sys.stdout, sys.stderr
stdin, out, gold = _data["stdin"], _data["out"], _data["gold"]
{body}
_verdict.write("{yes}" if {verdict} else "{no}")
"""
YES, NO = "accepted", "not accepted"


def accepted(
    checker: str, stdin: str, output: bytes, gold: str, pool: Pool
) -> tuple[bool | None, str]:
    """Whether a checker accepts an output.

    Args:
        checker: an expression over the texts ``stdin``, ``out`` and ``gold``, or code that
            defines ``check(stdin, out, gold)``.
        stdin: what the program read.
        output: what it wrote.
        gold: the stored output, one of the right ones.
        pool: where checkers run.

    Returns:
        The verdict (None: our own failure) and, unless it is True, a sentence. A checker
        that fails or runs out of time does not accept; what it says then is left out, for
        it may quote the stored output.

    Raises:
        ProblemError: the checker is no Python.
    """
    try:
        out = output.decode("utf-8")
    except UnicodeDecodeError:
        return False, "the output is not UTF-8"
    data = json.dumps({"stdin": stdin, "out": out, "gold": gold})
    run = pool.run(Job(_source(checker), data, limits=LIMITS))
    if run.status == "infra_error":
        return None, run.detail
    if run.ok and run.stdout == YES.encode():
        return True, ""
    if run.ok and run.stdout == NO.encode():
        return False, "the checker does not accept the output"
    why = run.status.replace("_", " ") if not run.ok else "no verdict"
    return False, f"the checker could not make sense of the output ({why})"


def _source(checker: str) -> str:
    # On lines of its own, in brackets: it may be of several lines and end in a comment.
    expression = f"(\n{checker.strip()}\n)"
    try:
        ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError):
        body, verdict = checker, "check(stdin, out, gold)"
    else:
        body, verdict = "", expression
    source = _PROGRAM.format(body=body, verdict=verdict, yes=YES, no=NO)
    try:
        ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise ProblemError(f"a problem's checker is no Python ({error}): mend it") from error
    return source
