"""What agents are told of their program's run on the public tests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from flexmg.envs.code.judging.findings import Finding
from flexmg.envs.code.sandbox.limits import ExecutionStatus
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.code.values import decode, shown

LONGEST = 160  # characters of an input or output
MOST_TESTS = 5  # failed ones that are told in full
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
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
    told = 0
    for case, finding in zip(suite.public, findings, strict=True):
        if finding.passed or told == MOST_TESTS:
            continue
        told += 1
        lines.append(_failure(suite, case, finding))
    return "\n".join(lines)


def _failure(suite: Suite, case: Case, finding: Finding) -> str:
    asked, wanted = _case(suite, case)
    line = f"{asked}: "
    if finding.status == "ok":
        line += (
            f"expected {wanted}, got {_short(finding.output) or 'nothing'}."
            if wanted
            else (f"got {_short(finding.output) or 'something else'}.")
        )
        return line
    why = _ADDRESS.sub("0x...", finding.detail) if finding.status == "runtime_error" else ""
    return line + _IN_WORDS[finding.status] + (f" ({_short(why)})." if why else ".")


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
    text = text.strip()
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."
