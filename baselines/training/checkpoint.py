"""Checkpoints that survive whatever happens while they are written.

A checkpoint is a folder::

    checkpoint/trainer.json       iteration, and the SHA-256 of state.pt
               state.pt           team and algorithm: tensors and plain data
               adapters/POLICY/   each adapter as a standard PEFT folder

It is written beside the old one, forced to disk, and put in its place by two renames. A
full disk leaves the old one untouched. A process killed between the two renames leaves the
old one under another name, which :func:`load` puts back.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from flexmg.errors import CheckpointError

STATE, SUMMARY, ADAPTERS = "state.pt", "trainer.json", "adapters"


def save(
    folder: Path,
    state: dict[str, Any],
    iteration: int,
    save_adapters: Callable[[Path], None],
) -> None:
    """Replace the checkpoint in ``folder``, or leave it as it was.

    Args:
        folder: of the checkpoint.
        state: nested dicts and lists of tensors and plain data.
        iteration: number of finished iterations.
        save_adapters: writes one PEFT folder per policy into the folder that it is given.

    Raises:
        CheckpointError: it cannot be written (a full disk, no permission ...).
    """
    new, old = _new(folder), _old(folder)
    try:
        _recover(folder)
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        # Through memory: torch.save hides the operating system's error behind its own.
        buffer = io.BytesIO()
        torch.save(state, buffer)
        data = buffer.getvalue()
        (new / STATE).write_bytes(data)
        save_adapters(new / ADAPTERS)
        summary = {"iteration": iteration, "sha256": hashlib.sha256(data).hexdigest()}
        (new / SUMMARY).write_text(json.dumps(summary), encoding="utf-8")
        _flush_tree(new)
        if folder.exists():
            os.rename(folder, old)
        os.rename(new, folder)
        _flush(folder.parent)
        shutil.rmtree(old, ignore_errors=True)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(new, ignore_errors=True)
        _recover(folder)
        kept = f"the one before is intact in {folder}" if folder.exists() else "there is none yet"
        raise CheckpointError(
            f"the checkpoint of iteration {iteration} cannot be written ({error}); {kept}. "
            "Make room and continue with --resume"
        ) from error


def load(folder: Path) -> tuple[int, dict[str, Any]]:
    """The last complete checkpoint: number of finished iterations, and the state.

    Raises:
        CheckpointError: there is none, or its files are broken.
    """
    try:
        _recover(folder)
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        data = (folder / STATE).read_bytes()
        iteration, digest = int(summary["iteration"]), summary["sha256"]
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no checkpoint in {folder}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"the checkpoint in {folder} cannot be read: {error}") from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise CheckpointError(
            f"{folder / STATE} is not the file that was written (its SHA-256 differs); copy the "
            "checkpoint again, or start the run anew"
        )
    state: dict[str, Any] = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
    return iteration, state


def exists(folder: Path) -> bool:
    """Whether there is a complete checkpoint."""
    _recover(folder)
    return (folder / SUMMARY).is_file()


def _new(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.new")


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def _recover(folder: Path) -> None:
    """Finish, or undo, what a killed process left between the two renames."""
    old = _old(folder)
    if not old.exists():
        return
    if folder.exists():
        shutil.rmtree(old)
    else:
        os.rename(old, folder)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _flush_tree(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        _flush(path)
