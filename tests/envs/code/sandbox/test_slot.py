"""One worker: what happens when its process breaks, and what it leaves behind."""

from __future__ import annotations

import gc
import os
import signal
import socket
import threading
import time

import pytest

from flexmg.envs.code.sandbox import Job, Limits
from flexmg.envs.code.sandbox import slot as slots
from flexmg.envs.code.sandbox.slot import Slot
from flexmg.errors import InfraError

SLOW = Job("import time\ntime.sleep(0.6)\nprint('done')")


@pytest.fixture
def slot():
    slot = Slot(0, "strict", "landlock")
    assert slot.run(Job("print(1)")).ok
    yield slot
    slot.stop()


def kill_when_running(slot, times):
    """Kill the zygote in mid-run, so many zygotes in a row."""
    killed = set()

    def kill():
        deadline = time.monotonic() + 20
        while len(killed) < times and time.monotonic() < deadline:
            time.sleep(0.3)
            if (pid := slot.pid) is not None and pid not in killed and children(pid):
                killed.add(pid)
                os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def ends(pid, seconds=10.0):
    """Whether a process ends within some seconds; it may wait to be reaped."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{pid}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_zygote_killed_while_idle_is_replaced(slot):
    os.kill(slot.pid, signal.SIGKILL)
    assert slot.run(Job("print(2)")).stdout == b"2\n"


def test_a_run_whose_zygote_is_killed_is_run_again(slot):
    thread = kill_when_running(slot, 1)
    assert slot.run(SLOW).stdout == b"done\n"
    thread.join()


def test_a_run_whose_zygotes_are_killed_twice_is_an_infra_error(slot):
    thread = kill_when_running(slot, 2)
    found = slot.run(SLOW)
    thread.join()
    assert found.status == "infra_error" and "twice" in found.detail


def test_a_run_with_a_channel_is_not_run_again(slot):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        thread = kill_when_running(slot, 1)
        found = slot.run(Job(SLOW.program, channel=theirs.fileno()))
        thread.join()
    assert found.status == "infra_error"


def test_a_slot_recovers_after_an_infra_error(slot):
    thread = kill_when_running(slot, 2)
    slot.run(SLOW)
    thread.join()
    assert slot.run(Job("print(3)")).stdout == b"3\n"


def test_a_killed_zygote_takes_its_program_with_it(slot):
    pid = slot.pid
    thread = threading.Thread(target=slot.run, args=(SLOW,))
    thread.start()
    time.sleep(0.3)
    (child,) = children(pid)
    os.kill(pid, signal.SIGKILL)
    thread.join()
    assert ends(child)


def test_a_zygote_that_hangs_is_replaced(slot, monkeypatch):
    monkeypatch.setattr(slots, "START_SECONDS", 4.0)
    os.kill(slot.pid, signal.SIGSTOP)
    found = slot.run(Job("print(1)", limits=Limits(wall_s=0.1)))
    assert found.stdout == b"1\n"


def test_a_zygote_that_cannot_start_is_named_with_its_own_words(tmp_path, monkeypatch):
    broken = tmp_path / "launch.py"
    broken.write_text("raise SystemExit('the disk is on fire')")
    monkeypatch.setattr(slots, "FOLDER", tmp_path)
    slot = Slot(0, "strict", "landlock")
    with pytest.raises(InfraError, match="the disk is on fire"):
        slot.run(Job("print(1)"))


def test_a_missing_interpreter_is_an_infra_error(monkeypatch):
    monkeypatch.setattr(slots.sys, "executable", "/nowhere/python")
    with pytest.raises(InfraError, match="/nowhere/python"):
        Slot(0, "strict", "landlock").run(Job("print(1)"))


def test_stop_ends_the_process(slot):
    pid = slot.pid
    slot.stop()
    assert not os.path.exists(f"/proc/{pid}")


def test_runs_leave_no_descriptors_behind(slot):
    gc.collect()  # what other tests left behind is not to be closed in between
    before = os.listdir("/proc/self/fd"), os.listdir(f"/proc/{slot.pid}/fd")
    for program in (
        "print(1)",
        "1 / 0",
        "print(",
        "import os\nos.abort()",
        "x = bytearray(10**10)",
    ):
        slot.run(Job(program))
    after = os.listdir("/proc/self/fd"), os.listdir(f"/proc/{slot.pid}/fd")
    assert [len(names) for names in after] == [len(names) for names in before]


def test_runs_leave_no_processes_behind(slot):
    for program in ("print(1)", "import os\nos._exit(3)", "import os\nos.abort()"):
        slot.run(Job(program))
    assert children(slot.pid) == []


def test_a_replaced_zygote_leaves_no_descriptors_behind(slot):
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        os.kill(slot.pid, signal.SIGKILL)
        slot.run(Job("print(1)"))
    assert len(os.listdir("/proc/self/fd")) == before


# --------------------------------------------------------------------- without isolation


@pytest.fixture
def unsafe():
    slot = Slot(0, "unsafe", "landlock")
    yield slot
    slot.stop()


def test_unsafe_runs_programs_with_limits(unsafe):
    assert unsafe.run(Job("while True: pass", limits=Limits(cpu_s=0.2))).status == "time_limit"


def test_unsafe_programs_may_read_files(unsafe):
    assert unsafe.run(Job("print(len(open('/etc/passwd').read()) > 0)")).stdout == b"True\n"


def test_what_an_unsafe_program_starts_ends_with_it(unsafe):
    program = "import subprocess\np = subprocess.Popen(['sleep', '60'])\nprint(p.pid, flush=True)"
    assert ends(int(unsafe.run(Job(program)).stdout))
