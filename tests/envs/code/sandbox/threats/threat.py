"""What a threat is: a hostile or broken program, and what may come of it.

Every program is to print 42 for the input 41. What may come of it: AC (the right answer), WA (a
wrong one), RE (an error or a signal), SE (no Python), TLE, IDLE, MLE, OLE (a limit on CPU time,
wall time, memory, output). A program that tries something forbidden prints 42 when it succeeds:
then WA may come of it, and AC may not.

The runner fills in ``{secret!r}``, ``{marker!r}``, ``{socket!r}`` (paths), ``{abstract!r}`` (a
socket's name) and ``{port}``; braces are doubled.
"""

from __future__ import annotations

from dataclasses import dataclass

# `attempt` prints 42 unless the filter refuses the call: any other error would mean that the
# kernel has looked into it.
LIBC = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def refused(call, *arguments):
    ctypes.set_errno(0)
    return call(*arguments) == -1 and ctypes.get_errno() == 1
def attempt(call, *arguments):
    print('refused' if refused(call, *arguments) else 42)
"""
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
