"""``flexmg doctor``: what is installed, which device, what lacks and how to get it."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, entry_points, requires, version
from typing import Any

from rich.console import Console
from rich.table import Table

# "torch>=2.9; extra == 'train'" -> name, version range, extra.
REQUIREMENT = re.compile(
    r"^(?P<name>[\w.-]+)(?:\[(?P<within>[\w, -]+)\])?\s*(?P<range>[^;]*?)\s*"
    r"(?:;.*\bextra\s*==\s*['\"](?P<extra>[\w-]+)['\"].*)?$"
)
BOUND = re.compile(r"(>=|<)\s*([0-9.]+)")
BASE = "base"
DEVELOPERS = "dev"
PROBES = "flexmg.probes"
GROUPS = ("flexmg.envs", "flexmg.commands", "flexmg.players", PROBES)


@dataclass(frozen=True)
class Package:
    """One package that flexmg can use.

    Args:
        name: on the package index.
        extra: the extra that brings it; ``"base"`` for what is always needed.
        wanted: the version range, as declared.
        installed: the version that is here, or None.
    """

    name: str
    extra: str
    wanted: str
    installed: str | None

    @property
    def fits(self) -> bool:
        """Whether it is here, in a version that was tried."""
        return self.installed is not None and _in_range(self.installed, self.wanted)


@dataclass(frozen=True)
class Plugin:
    """One entry point of a plug-in; ``error`` says why it cannot be loaded, empty if it can."""

    group: str
    name: str
    target: str
    error: str


@dataclass(frozen=True)
class Probe:
    """One thing that a plug-in tried out on this machine.

    A plug-in's entry point in the group ``flexmg.probes`` is a function without arguments that
    returns a list of (name, fine, sentence).

    Args:
        plugin: whose probe it is.
        name: of what was tried.
        fine: whether there is nothing to do about it.
        sentence: what was seen, and the remedy where one is needed.
    """

    plugin: str
    name: str
    fine: bool
    sentence: str


@dataclass(frozen=True)
class Diagnosis:
    """What the doctor found.

    Args:
        flexmg: version of flexmg. ``python`` and ``system`` likewise.
        cpus: processors that this process may use.
        threads: ``OMP_NUM_THREADS``, None when it is not set.
        device: what models would run on, and its name.
        engine: what generates texts by default, None when nothing can.
        packages: all packages that flexmg can use.
        plugins: all installed entry points of flexmg's groups.
        probes: what the plug-ins tried out.
        advice: one sentence with a command per thing that lacks.
    """

    flexmg: str
    python: str
    system: str
    cpus: int
    threads: str | None
    device: str
    engine: str | None
    packages: tuple[Package, ...]
    plugins: tuple[Plugin, ...]
    probes: tuple[Probe, ...]
    advice: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The findings as plain data."""
        return {**asdict(self), "packages": [{**asdict(p), "fits": p.fits} for p in self.packages]}


def diagnose() -> Diagnosis:
    """Look around. Imports torch, if it is there, to see the device."""
    import flexmg

    packages = tuple(_packages())
    plugins = tuple(_plugins())
    probes = tuple(_probes(plugins))
    device, engine = _device(), _engine(packages)
    return Diagnosis(
        flexmg=flexmg.__version__,
        python=f"{platform.python_version()} ({sys.executable})",
        system=f"{platform.system()} {platform.machine()}",
        cpus=_cpus(),
        threads=os.environ.get("OMP_NUM_THREADS"),
        device=device,
        engine=engine,
        packages=packages,
        plugins=plugins,
        probes=probes,
        advice=tuple(_advice(packages, plugins, probes)),
    )


def report(found: Diagnosis, console: Console) -> None:
    """Print the findings."""
    for name in ("flexmg", "python", "system", "cpus", "device", "engine"):
        value = getattr(found, name)
        console.print(f"{name:>8}  ", "none" if value is None else str(value), highlight=False)
    table = Table("package", "extra", "installed", "wanted", title="packages", title_justify="left")
    for package in found.packages:
        style = "" if package.fits else "yellow" if package.installed else "dim"
        table.add_row(
            package.name,
            package.extra,
            package.installed or "-",
            package.wanted or "any",
            style=style,
        )
    console.print(table)
    tried = Table("probe", "of", "found", title="probes", title_justify="left")
    for probe in found.probes:
        tried.add_row(probe.name, probe.plugin, probe.sentence, style="" if probe.fine else "red")
    console.print(tried)
    broken = [plugin for plugin in found.plugins if plugin.error]
    for plugin in broken:
        console.print(
            f"[yellow]the plug-in {plugin.name} ({plugin.group}) cannot be loaded:[/] ",
            plugin.error,
        )
    if found.advice:
        console.print("\nWhat lacks, and how to get it:")
        for line in found.advice:
            console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
    else:
        console.print("\nNothing lacks.")


def _packages() -> list[Package]:
    found = []
    for line in requires("flexmg") or []:
        match = REQUIREMENT.match(line)
        # Extras that name other extras ("flexmg[math]") bring no package of their own.
        if match is None or match["name"] == "flexmg":
            continue
        name = match["name"]
        try:
            here = version(name)
        except PackageNotFoundError:
            here = None
        found.append(Package(name, match["extra"] or BASE, match["range"], here))
    return found


def _plugins() -> list[Plugin]:
    found = []
    for group in GROUPS:
        for plugin in entry_points(group=group):
            error = ""
            try:
                plugin.load()
            # Whatever a plug-in raises is what there is to report.
            except Exception as raised:
                error = f"{type(raised).__name__}: {raised}"
            found.append(Plugin(group, plugin.name, plugin.value, error))
    return found


def _probes(plugins: tuple[Plugin, ...]) -> list[Probe]:
    found = []
    working = {plugin.name for plugin in plugins if plugin.group == PROBES and not plugin.error}
    for plugin in entry_points(group=PROBES):
        if plugin.name not in working:
            continue
        try:
            found += [Probe(plugin.name, *line) for line in plugin.load()()]
        # As above: a probe that fails is a finding.
        except Exception as raised:
            found.append(Probe(plugin.name, "probe", False, f"{type(raised).__name__}: {raised}"))
    return found


def _device() -> str:
    if importlib.util.find_spec("torch") is None:
        return "cpu (torch is not installed)"
    import torch

    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        return f"cuda ({', '.join(names)})"
    if torch.backends.mps.is_available():
        return "mps (Apple)"
    return f"cpu ({platform.processor() or platform.machine()})"


def _engine(packages: tuple[Package, ...]) -> str | None:
    here = {package.name for package in packages if package.installed}
    if {"torch", "transformers", "peft"} <= here:
        return "transformers, in this process" + (" (vllm is there too)" if "vllm" in here else "")
    return None


def _advice(
    packages: tuple[Package, ...], plugins: tuple[Plugin, ...], probes: tuple[Probe, ...]
) -> list[str]:
    lines = []
    by_extra: dict[str, list[Package]] = {}
    for package in packages:
        if not package.fits and package.extra != DEVELOPERS:
            by_extra.setdefault(package.extra, []).append(package)
    for extra, lacking in by_extra.items():
        what = ", ".join(
            p.name if p.installed is None else f"{p.name} {p.installed} (wanted {p.wanted})"
            for p in lacking
        )
        target = "flexmg" if extra == BASE else f"flexmg[{extra}]"
        lines.append(f"{extra}: {what}:  pip install --upgrade '{target}'")
    lines += [f"plug-in {p.name}: {p.error}" for p in plugins if p.error]
    lines += [f"{p.plugin}: {p.name}: {p.sentence}" for p in probes if not p.fine]
    return lines


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _in_range(installed: str, wanted: str) -> bool:
    """Whether a version lies in a range of ``>=`` and ``<`` bounds, the kinds we declare."""
    here = _release(installed)
    for sign, bound in BOUND.findall(wanted):
        if sign == ">=" and here < _release(bound):
            return False
        if sign == "<" and here >= _release(bound):
            return False
    return True


def _release(text: str) -> tuple[int, ...]:
    numbers = [int(part) for part in re.findall(r"\d+", text.split("+")[0])[:3]]
    return (*numbers, *[0] * (3 - len(numbers)))
