"""Ctrl-C and SIGTERM: a run stops, and nothing that was finished is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """Within the block SIGTERM (what clusters send before they kill) acts like Ctrl-C.

    Outside the main thread, where Python delivers no signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
