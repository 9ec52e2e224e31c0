"""Can this machine run untrusted programs? By trying out, never by version numbers."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from flexmg.errors import InfraError, SandboxUnavailable

LAUNCH = Path(__file__).resolve().parent / "launch.py"
PROBE_SECONDS = 60.0

# Ingredient -> what it does here, and what to do where it lacks.
INGREDIENTS: Mapping[str, tuple[str, str]] = {
    "memory_files": ("sealed memory files", "a Linux kernel from 3.17 on, not an emulation of one"),
    "process_files": ("/proc and process descriptors", "mount /proc; a Linux kernel from 5.3 on"),
    "seccomp": (
        "system-call filter",
        "a kernel with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64, and a container that does "
        "not forbid prctl",
    ),
    "landlock": ("Landlock", "a Linux kernel from 5.13 on, started with Landlock among its lsm="),
    "bubblewrap": (
        "bubblewrap",
        "install the package bubblewrap, and allow user namespaces to ordinary users",
    ),
    "namespaces": ("namespaces", "allow user namespaces to ordinary users"),
}
# What must hold -> ingredients any one of which provides it, the first choice first.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "programs and their output travel in memory": ("memory_files",),
    "a run can be watched": ("process_files",),
    "no network, no other processes, no odd system calls": ("seccomp",),
    "no files": ("landlock", "bubblewrap"),
}
UNSAFE_NEEDS = ("programs and their output travel in memory", "a run can be watched")


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one ingredient: ``complaint`` is empty when it works."""

    name: str
    complaint: str

    @property
    def works(self) -> bool:
        """Whether it can be relied on."""
        return not self.complaint


@functools.cache
def ingredients() -> dict[str, Finding]:
    """Try everything out, once per process.

    Raises:
        InfraError: the probe itself does not run.
    """
    if sys.platform != "linux":
        complaint = f"programs can be confined on Linux only, and this is {sys.platform}"
        return {name: Finding(name, complaint) for name in INGREDIENTS}
    command = [os.path.realpath(sys.executable), "-s", "-S", "-P", "-B", str(LAUNCH), "ingredients"]
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=PROBE_SECONDS, check=True
        )
        seen = json.loads(run.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        said = getattr(error, "stderr", "") or ""
        raise InfraError(f"the sandbox's probe does not run: {error} {said[-1000:]}") from error
    return {name: Finding(name, seen[name]) for name in INGREDIENTS}


def require(isolation: str = "strict", without: Collection[str] = ()) -> str:
    """Refuse a machine on which programs could not be confined.

    Args:
        isolation: ``"strict"`` or ``"unsafe"``.
        without: ingredients to do without, as if they lacked.

    Returns:
        The provider of "no files": ``"landlock"`` or ``"bwrap"``.

    Raises:
        SandboxUnavailable: something lacks; the message names it and the remedy.
    """
    found = ingredients()
    works = {name for name, one in found.items() if one.works and name not in without}
    needs = NEEDS if isolation == "strict" else {name: NEEDS[name] for name in UNSAFE_NEEDS}
    lacking = {need: names for need, names in needs.items() if works.isdisjoint(names)}
    if not lacking:
        return "landlock" if "landlock" in works or isolation == "unsafe" else "bwrap"
    lines = ["untrusted programs cannot be run safely on this machine:"]
    for need, names in lacking.items():
        lines.append(f"- {need}: needs {' or '.join(INGREDIENTS[name][0] for name in names)}")
        for name in names:
            what, remedy = INGREDIENTS[name]
            complaint = found[name].complaint or "left out on request"
            lines.append(f"    {what}: {complaint}. Remedy: {remedy}")
    if isolation == "strict":
        lines.append(
            "Run it in a Linux container or virtual machine that has them; or, for programs that "
            "you trust, say sandbox='unsafe'."
        )
    raise SandboxUnavailable("\n".join(lines))


def report() -> list[tuple[str, bool, str]]:
    """For ``flexmg doctor``: (what, nothing to do about it, sentence) per ingredient.

    What lacks is nothing to do about when something else provides the same; the last line says
    whether programs can be run.
    """
    found = ingredients()
    works = {name for name, one in found.items() if one.works}
    needed = {name for names in NEEDS.values() if works.isdisjoint(names) for name in names}
    lines = []
    for name, one in found.items():
        what, remedy = INGREDIENTS[name]
        if one.works:
            lines.append((what, True, "works"))
        elif name in needed:
            lines.append((what, False, f"{one.complaint}. Remedy: {remedy}"))
        else:
            lines.append((what, True, f"{one.complaint}; not needed here"))
    if needed:
        lines.append(("programs", False, "cannot be run safely on this machine"))
    else:
        by = INGREDIENTS["landlock" if "landlock" in works else "bubblewrap"][0]
        lines.append(("programs", True, f"run confined by the system-call filter and {by}"))
    return lines
