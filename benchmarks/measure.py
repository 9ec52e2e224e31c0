"""How the benchmarks here measure: peers take turns, medians are compared, the machine is named."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from statistics import median


def machine() -> str:
    """Processor, cores, system and Python of this machine."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    system = f"{platform.system()} {platform.release()}"
    python = f"Python {platform.python_version()}"
    return f"{processor}, {os.cpu_count()} cores, {system}, {python}"


def versions(*names: str) -> str:
    """The versions of these distributions."""
    return ", ".join(f"{name} {version(name)}" for name in names)


def interleaved(cases: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Median of each case's figure, the cases taking turns so that all see the same weather.

    Args:
        cases: by name, a function that makes one measurement and returns it.
        rounds: measurements of each; one more comes first and is thrown away.
    """
    figures: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(rounds + 1):
        for name, measure in cases.items():
            figure = measure()
            if turn:
                figures[name].append(figure)
    return {name: median(values) for name, values in figures.items()}
