"""What a threat is: a hostile or broken program, and what may come of it.

Every program is to print 42 for the input 41. What may come of it: AC (the right answer), WA (a
wrong one), RE (an error or a signal), SE (no Python), TLE, IDLE, MLE, OLE (a limit on CPU time,
wall time, memory, output). ``{secret!r}``, ``{marker!r}`` and ``{port}`` are filled in by the
runner; braces are doubled.
"""

from __future__ import annotations

from dataclasses import dataclass

LIBC = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
ANSWER = "print(int(input()) + 1)\n"


@dataclass(frozen=True)
class Threat:
    """One program.

    Args:
        name: of the threat.
        program: its source.
        outcomes: what may come of it.
    """

    name: str
    program: str | bytes
    outcomes: frozenset[str]


def threat(name: str, outcomes: str, program: str | bytes) -> Threat:
    """A threat; outcomes are separated by spaces."""
    return Threat(name, program, frozenset(outcomes.split()))
