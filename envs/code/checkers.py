"""A problem's own checker: trusted code that reads what nobody trusts."""

from __future__ import annotations

import ast
import json

from flexmg.envs.code.sandbox import Job, Limits, Pool

LIMITS = Limits(cpu_s=5.0, memory_mb=512)
# It runs in a sandbox of its own, so that an output can at worst bring down its own check.
_PROGRAM = """
import json, sys
_data = json.loads(sys.stdin.read())
stdin, out, gold = _data["stdin"], _data["out"], _data["gold"]
{body}
sys.stdout.write(_data["yes"] if {verdict} else "no")
"""
YES = "accepted"


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
        that fails or runs out of time does not accept.
    """
    try:
        out = output.decode("utf-8")
    except UnicodeDecodeError:
        return False, "the output is not UTF-8"
    data = json.dumps({"stdin": stdin, "out": out, "gold": gold, "yes": YES})
    run = pool.run(Job(_source(checker), data, limits=LIMITS))
    if run.status == "infra_error":
        return None, run.detail
    if run.ok and run.stdout == YES.encode():
        return True, ""
    if run.ok:
        return False, "the checker does not accept the output"
    return False, f"the checker could not make sense of the output ({run.detail})"


def _source(checker: str) -> str:
    try:
        ast.parse(checker.strip(), mode="eval")
    except SyntaxError:
        return _PROGRAM.format(body=checker, verdict="check(stdin, out, gold)")
    return _PROGRAM.format(body="", verdict=f"({checker.strip()})")
