"""Running programs that nobody trusts: only bytes leave the sandbox."""

from __future__ import annotations

from .jobs import Job
from .limits import Execution, Limits
from .pool import Isolation, Pool, shared_pool

__all__ = ["Execution", "Isolation", "Job", "Limits", "Pool", "execute", "shared_pool"]


def execute(
    program: str,
    stdin: str = "",
    *,
    limits: Limits | None = None,
    sandbox: Isolation = "strict",
) -> Execution:
    """Run a program as a script, and say what came of it.

    Never raises for a bad program: NULs, lone surrogates and odd encodings are outcomes.

    Args:
        program: Python source.
        stdin: what it reads on standard input.
        limits: on time, memory and output; by default those of :class:`Limits`.
        sandbox: ``"strict"``; ``"unsafe"`` runs it without isolation.

    Raises:
        SandboxUnavailable: programs cannot be run safely on this machine.
        InvalidArgument: ``program`` or ``stdin`` is no text.
    """
    return shared_pool(sandbox).run(Job(program, stdin, limits=limits or Limits()))
