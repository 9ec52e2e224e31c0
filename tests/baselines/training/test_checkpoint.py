"""Checkpoints: atomic, verified, and intact after a full disk or a kill."""

from __future__ import annotations

import errno
import os
import resource

import pytest
import torch

from flexmg.baselines.training import checkpoint
from flexmg.errors import CheckpointError


def save(folder, value: float, iteration: int) -> None:
    def adapters(path):
        (path / "team").mkdir(parents=True)
        (path / "team" / "weights").write_text(str(value))

    state = {"team": torch.full((1000,), value), "algorithm": {"step": iteration}}
    checkpoint.save(folder, state, iteration, adapters)


def stored(folder) -> tuple[int, float]:
    iteration, state = checkpoint.load(folder)
    return iteration, state["team"][0].item()


def test_what_is_loaded_is_what_was_saved(tmp_path):
    save(tmp_path / "checkpoint", 1.5, 7)
    assert stored(tmp_path / "checkpoint") == (7, 1.5)


def test_the_second_replaces_the_first_and_nothing_else_is_left(tmp_path):
    save(tmp_path / "checkpoint", 1.0, 1)
    save(tmp_path / "checkpoint", 2.0, 2)
    assert stored(tmp_path / "checkpoint") == (2, 2.0)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def in_a_process_of_its_own(action) -> int:
    """Run ``action`` in a forked child, which ends without any clean-up; its exit code."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except CheckpointError as error:
            os._exit(3 if "intact" in str(error) else 4)
        except BaseException:
            os._exit(5)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_real_limit_on_file_size_leaves_the_old_one(tmp_path):
    """The kernel refuses to write more than 1 kB, as a full disk would."""
    folder = tmp_path / "checkpoint"
    save(folder, 1.0, 1)

    def save_with_little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
        save(folder, 2.0, 2)

    assert in_a_process_of_its_own(save_with_little_room) == 3
    assert stored(folder) == (1, 1.0)


@pytest.mark.parametrize("failing", ["write_bytes", "fsync", "first rename", "second rename"])
def test_no_space_at_any_step_leaves_the_old_one(tmp_path, monkeypatch, failing):
    folder = tmp_path / "checkpoint"
    save(folder, 1.0, 1)
    full = OSError(errno.ENOSPC, "No space left on device")
    rename, calls = os.rename, []

    def fail(*arguments, **keywords):
        raise full

    def fail_rename(source, target):
        calls.append(source)
        if len(calls) == (1 if failing == "first rename" else 2):
            raise full
        rename(source, target)

    if failing == "write_bytes":
        monkeypatch.setattr("pathlib.Path.write_bytes", fail)
    elif failing == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(os, "rename", fail_rename)
    with pytest.raises(CheckpointError, match=r"No space left.*intact"):
        save(folder, 2.0, 2)
    monkeypatch.undo()
    assert stored(folder) == (1, 1.0)


@pytest.mark.parametrize("step", range(12))
def test_killed_at_any_system_call_leaves_one_of_the_two(tmp_path, step):
    """The process ends in place of the step-th fsync or rename of the second save."""
    folder = tmp_path / "checkpoint"
    save(folder, 1.0, 1)

    def save_and_die():
        left = step

        def dying(call):
            def wrapped(*arguments):
                nonlocal left
                left -= 1
                if left < 0:
                    os._exit(9)
                return call(*arguments)

            return wrapped

        os.fsync, os.rename = dying(os.fsync), dying(os.rename)
        save(folder, 2.0, 2)

    in_a_process_of_its_own(save_and_die)
    assert stored(folder) in ((1, 1.0), (2, 2.0))
    save(folder, 3.0, 3)
    assert stored(folder) == (3, 3.0)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_a_damaged_file_is_noticed(tmp_path):
    save(tmp_path / "checkpoint", 1.0, 1)
    path = tmp_path / "checkpoint" / checkpoint.STATE
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="SHA-256"):
        checkpoint.load(tmp_path / "checkpoint")


def test_a_missing_one_is_a_clear_error(tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoint in"):
        checkpoint.load(tmp_path / "checkpoint")


@pytest.mark.parametrize("text", ["[]", "{}", "{"])
def test_a_broken_summary_is_a_clear_error(tmp_path, text):
    (tmp_path / "state.pt").write_bytes(b"")
    (tmp_path / "trainer.json").write_text(text)
    with pytest.raises(CheckpointError, match="cannot be read"):
        checkpoint.load(tmp_path)
