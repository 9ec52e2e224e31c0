"""What a person sees of a run while it goes on."""

from __future__ import annotations

from contextlib import AbstractContextManager
from time import perf_counter
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

# Time left is extrapolated from the last few iterations: replies grow and shrink.
RECENT = 5


class Progress(Protocol):
    """Where the trainer reports to."""

    def phase(self, name: str) -> None:
        """What is being done now."""
        ...

    def iteration(self, row: dict[str, Any]) -> None:
        """One more iteration is done; its row of ``metrics.jsonl``."""
        ...

    def note(self, text: str) -> None:
        """A line that stays."""
        ...


def progress(console: Console, total: int | None, title: str) -> LiveProgress | PlainProgress:
    """A live display on a terminal, plain lines elsewhere.

    Args:
        console: where to print.
        total: number of iterations of the whole run; None when a budget decides.
        title: what is trained.
    """
    display = LiveProgress if console.is_terminal else PlainProgress
    return display(console, total, title)


def duration(seconds: float) -> str:
    """``"2 h 05 min"``, ``"3 min 20 s"`` or ``"12 s"``."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    if whole >= 60:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole} s"


def idle(row: dict[str, Any]) -> list[str]:
    """What of the team learnt nothing in an iteration, and why; one line each."""
    where = f"iteration {row['iteration']}"
    if "skipped" in row:
        return [f"{where}: nothing was learnt: {row['skipped']}"]
    lines = []
    for policy, block in row.get("policies", {}).items():
        if "skipped" in block:
            lines.append(f"{where}: policy {policy} learnt nothing: {block['skipped']}")
        else:
            roles = block.get("idle_roles", {})
            lines += [
                f"{where}: role {role} gave no gradient: {why}" for role, why in roles.items()
            ]
    return lines


def share(value: float | None) -> str:
    """A share as a percentage, ``"–"`` for none."""
    return "–" if value is None else f"{value:.1%}"


class _Clock:
    """Remembers rows, and estimates the time left."""

    def __init__(self, console: Console, total: int | None, title: str) -> None:
        self.console = console
        self.total = total
        self.title = title
        self.rows: list[dict[str, Any]] = []
        self.started = perf_counter()

    def place(self, iteration: int) -> str:
        return str(iteration) if self.total is None else f"{iteration}/{self.total}"

    def remaining(self) -> str:
        if not self.rows or self.total is None:
            return "–"
        recent = [row["seconds"] for row in self.rows[-RECENT:]]
        left = self.total - self.rows[-1]["iteration"]
        return duration(left * sum(recent) / len(recent))


class PlainProgress(_Clock, AbstractContextManager["PlainProgress"]):
    """One line per iteration: for log files and pipes."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing to close."""

    def phase(self, name: str) -> None:
        """A log shows what is finished, not what is going on."""

    def note(self, text: str) -> None:
        """A line that stays."""
        self.console.print(text, highlight=False)

    def iteration(self, row: dict[str, Any]) -> None:
        """One line of figures."""
        self.rows.append(row)
        for line in idle(row):
            self.note(line)
        self.note(
            f"iteration {self.place(row['iteration'])}  accuracy {share(row['accuracy'])}  "
            f"reward {_number(row['reward'])}  {row['tokens_per_s']:,.0f} tokens/s  "
            f"left {self.remaining()}"
        )


class LiveProgress(_Clock, AbstractContextManager["LiveProgress"]):
    """A display that is redrawn in place."""

    def __init__(self, console: Console, total: int | None, title: str) -> None:
        super().__init__(console, total, title)
        self.doing = "starting"
        self.live = Live(console=console, get_renderable=self._draw, refresh_per_second=4)

    def __enter__(self) -> LiveProgress:
        self.live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.doing = "stopped" if error else "done"
        self.live.stop()

    def phase(self, name: str) -> None:
        """Shown beside the bar."""
        self.doing = name

    def note(self, text: str) -> None:
        """A line above the display."""
        self.live.console.print(text, highlight=False)

    def iteration(self, row: dict[str, Any]) -> None:
        """Redraws with the new figures."""
        self.rows.append(row)
        for line in idle(row):
            self.note(line)

    def _draw(self) -> Group:
        done = self.rows[-1]["iteration"] if self.rows else 0
        head = Table.grid(padding=(0, 2))
        elapsed = duration(perf_counter() - self.started)
        head.add_row(
            Text(self.title, style="bold"),
            ProgressBar(total=self.total, completed=done, width=24),
            self.place(done),
            Text(self.doing, style="italic"),
            f"{elapsed}, left {self.remaining()}",
        )
        if not self.rows:
            return Group(head)
        last = self.rows[-1]
        figures = Table.grid(padding=(0, 2))
        figures.add_row(
            _trend("accuracy", [row["accuracy"] for row in self.rows], share(last["accuracy"])),
            _trend("reward", [row["reward"] for row in self.rows], _number(last["reward"])),
            f"KL {_number(last.get('kl'))}",
            f"{last['tokens_per_s']:,.0f} tokens/s",
        )
        return Group(head, figures)


def _trend(name: str, values: list[float | None], now: str) -> Text:
    """Name, a small curve of up to 30 last values, and the latest one."""
    known = [value for value in values if value is not None][-30:]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    span = (high - low) or 1.0
    bars = "▁▂▃▄▅▆▇█"
    curve = "".join(bars[round((value - low) / span * (len(bars) - 1))] for value in known)
    return Text.assemble(f"{name} ", (curve, "cyan"), " ", (now, "bold"))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
