"""What agents are told of their program's run on the public tests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from flexmg.envs.code.extraction import is_valid
from flexmg.envs.code.judging.findings import Finding
from flexmg.envs.code.sandbox.limits import ExecutionStatus
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.code.values import decode, shown

LONGEST = 160  # characters of an input or output
MOST_TESTS = 5  # failed ones that are told in full
LONGEST_REPORT = 1000  # characters; failed tests beyond it are left out
# Of objects in memory: they differ from run to run.
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")
# Without figures: what was measured differs from run to run, and a replay must not.
_IN_WORDS: dict[ExecutionStatus, str] = {
    "time_limit": "it takes too long",
    "idle_limit": "it waits for ever",
    "memory_limit": "it needs too much memory",
    "output_limit": "it writes too much",
    "runtime_error": "it fails",
    "syntax_error": "it is not valid Python",
}


def describe(suite: Suite, findings: Sequence[Finding]) -> str:
    """A report on the public tests, the same for the same program.

    Args:
        suite: whose public tests they are.
        findings: one per public test.
    """
    passed = sum(one.passed for one in findings)
    lines = [f"Public tests passed: {passed} of {len(findings)}."]
    for case, finding in zip(suite.public, findings, strict=True):
        if finding.passed:
            continue
        line = _failure(suite, case, finding)
        length = sum(map(len, lines)) + len(lines) + len(line)
        if len(lines) > MOST_TESTS or length > LONGEST_REPORT:
            break
        lines.append(line)
    return "\n".join(lines)


def without_tests(program: str) -> str:
    """A report on a program that there are no public tests for."""
    valid = "valid Python" if is_valid(program) else "not valid Python"
    return f"There are no public tests. The program is {valid}."


def _failure(suite: Suite, case: Case, finding: Finding) -> str:
    asked, wanted = _case(suite, case)
    line = f"{asked}: "
    if finding.status == "ok":
        got = _short(finding.output)
        if wanted:
            return f"{line}expected {wanted}, got {got or 'nothing'}."
        return f"{line}got {got or 'something else'}."
    why = _short(finding.detail) if finding.status == "runtime_error" else ""
    return line + _IN_WORDS[finding.status] + (f" ({why})." if why else ".")


def _case(suite: Suite, case: Case) -> tuple[str, str]:
    """A test's input and what it expects, in words; the latter empty if the input says it."""
    match suite.kind:
        case "stdin":
            return f"Input {_short(case.input)!r}", repr(_short(str(case.output)))
        case "calls":
            arguments = ", ".join(shown(decode(one)) for one in case.input)
            return f"{suite.entry}({_short(arguments)})", shown(decode(case.output))
    return _short(case.input.strip()), ""


def _short(text: str) -> str:
    text = _ADDRESS.sub("at 0x...", text.strip())
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."
