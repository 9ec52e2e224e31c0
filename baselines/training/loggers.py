"""Where else the figures of a run go: TensorBoard, Weights & Biases, trackio, a plug-in.

``metrics.jsonl`` is always written; these are copies for dashboards. A third party adds one
under the entry-point group ``flexmg.loggers``: a function of (run folder, settings) that
returns a :class:`Logger`.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from flexmg.errors import InvalidArgument, MissingDependency

GROUP = "flexmg.loggers"


class Logger(Protocol):
    """Takes the figures of each iteration."""

    def log(self, iteration: int, figures: Mapping[str, float]) -> None:
        """Figures by path, such as ``policies/solver/kl``."""
        ...

    def close(self) -> None:
        """Nothing follows."""
        ...


class TensorBoard:
    """Event files in ``RUN/tensorboard``."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder / "tensorboard"))

    def log(self, iteration: int, figures: Mapping[str, float]) -> None:
        """One scalar per figure."""
        for name, value in figures.items():
            self.writer.add_scalar(name, value, iteration)

    def close(self) -> None:
        """Write what is waiting."""
        self.writer.close()


class Tracker:
    """Weights & Biases, or trackio, which has the same interface.

    A resumed run goes on under its old name: its id is that of the run folder.

    Args:
        package: ``wandb`` or ``trackio``.
        folder: of the run.
        settings: of the run.
    """

    def __init__(self, package: str, folder: Path, settings: Mapping[str, Any]) -> None:
        self.module = __import__(package)
        name = folder.resolve().name
        resume = {"id": name, "dir": str(folder)} if package == "wandb" else {"name": name}
        self.module.init(project="flexmg", config=dict(settings), resume="allow", **resume)

    def log(self, iteration: int, figures: Mapping[str, float]) -> None:
        """All figures of an iteration at once."""
        self.module.log(dict(figures), step=iteration)

    def close(self) -> None:
        """The run is over."""
        self.module.finish()


def _tracker(package: str) -> Callable[[Path, Mapping[str, Any]], Logger]:
    return lambda folder, settings: Tracker(package, folder, settings)


BUILT_IN: dict[str, tuple[str, Callable[[Path, Mapping[str, Any]], Logger]]] = {
    "tensorboard": ("tensorboard", TensorBoard),
    "wandb": ("wandb", _tracker("wandb")),
    "trackio": ("trackio", _tracker("trackio")),
}


def open_loggers(names: list[str], folder: Path, settings: Mapping[str, Any]) -> list[Logger]:
    """The named loggers, ready to take figures.

    Raises:
        InvalidArgument: an unknown name.
        MissingDependency: its package is not installed.
    """
    plugins: dict[str, EntryPoint] = {entry.name: entry for entry in entry_points(group=GROUP)}
    opened = []
    for name in dict.fromkeys(names):
        if name in BUILT_IN:
            package, make = BUILT_IN[name]
            if find_spec(package) is None:
                raise MissingDependency(
                    f"logging to {name} needs the package {package}, which is not installed here. "
                    f"Install it with: pip install {package}"
                )
            opened.append(make(folder, settings))
        elif name in plugins:
            opened.append(plugins[name].load()(folder, settings))
        else:
            known = ", ".join(sorted({*BUILT_IN, *plugins}))
            raise InvalidArgument(f"there is no logger {name!r}; there are {known}")
    return opened


def figures(row: Mapping[str, Any], path: str = "") -> dict[str, float]:
    """The numbers of a row, however deep, by path."""
    found: dict[str, float] = {}
    for name, value in row.items():
        here = f"{path}{name}"
        if isinstance(value, Mapping):
            found |= figures(value, f"{here}/")
        elif isinstance(value, numbers.Real):
            found[here] = float(value)
    return found
