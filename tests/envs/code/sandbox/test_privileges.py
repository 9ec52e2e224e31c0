"""What a process gives up, asked of the kernel afterwards."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from flexmg.envs.code.sandbox import privileges

CAPABILITIES = """
def capabilities():
    lines = Path("/proc/self/status").read_text().splitlines()
    return {name: int(value, 16) for name, value in (line.split(":") for line in lines)
            if name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
"""
NONE = dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapAmb"), 0)


def test_no_capability_is_left(fresh):
    code = CAPABILITIES + "privileges.drop_capabilities()\nfound = capabilities()"
    assert fresh(code) == NONE


def test_root_becomes_an_ordinary_user(fresh, root):
    code = "privileges.become(1879050000)\nfound = [os.getresuid(), os.getresgid(), os.getgroups()]"
    assert fresh(code) == [[1879050000] * 3, [1879050000] * 3, []]


def test_a_user_that_root_became_has_no_capability(fresh, root):
    code = CAPABILITIES + "privileges.become(1879050000)\nfound = capabilities()"
    assert fresh(code) == NONE


def test_a_user_that_root_became_may_keep_the_right_to_read(fresh, root):
    code = (
        CAPABILITIES
        + "privileges.become(1879050000, privileges.READ_ANY_FILE)\nfound = capabilities()"
    )
    # CAP_DAC_READ_SEARCH is number 2 in capability(7).
    assert fresh(code) == {**NONE, "CapPrm": 1 << 2, "CapEff": 1 << 2}


def test_an_ordinary_user_becomes_nobody_else(fresh, ordinary_python):
    code = "found = privileges.succeeds(lambda: privileges.become(1879050000))"
    assert fresh(code, ordinary_python) is False


@pytest.mark.parametrize("number", [0, 1, 65535])
def test_drawn_uids_are_valid_and_of_no_other_worker(number):
    drawn = {privileges.drawn_uid(privileges.FIRST_UID + number) for _ in range(500)}
    assert all(uid % 65536 == number and 0x70000000 <= uid < 0x7FFF0000 for uid in drawn)


def test_two_draws_differ_nearly_always():
    assert len({privileges.drawn_uid(privileges.FIRST_UID) for _ in range(20)}) >= 15


def test_limits_are_hard(fresh):
    code = """
import resource
privileges.fix_limits()
privileges.set_limits(address_space=2**32, cpu_s=7, output=12345, tasks=77)
names = "NOFILE CORE MEMLOCK MSGQUEUE AS CPU FSIZE NPROC".split()
found = {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name)) for name in names}
"""
    wanted = {"NOFILE": 64, "CORE": 0, "MEMLOCK": 0, "MSGQUEUE": 0}
    wanted |= {"AS": 2**32, "CPU": 7, "FSIZE": 12345, "NPROC": 77}
    assert fresh(code) == {name: [value, value] for name, value in wanted.items()}


def test_a_limit_that_is_lower_already_is_kept(fresh):
    code = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 20))
privileges.set_limits(address_space=2**32, cpu_s=7, output=12345, tasks=None)
found = resource.getrlimit(resource.RLIMIT_FSIZE)
"""
    assert fresh(code) == [20, 20]


def test_signals_are_as_in_a_fresh_interpreter(fresh):
    """But for SIGXFSZ; SIGHUP stands for one that whoever started the trainer had ignored."""
    ask = """
import signal
def dispositions():
    return {s.name: str(signal.getsignal(s)).split(" at ")[0] for s in map(signal.Signals,
            signal.valid_signals() & set(signal.Signals)) if s.name not in ("SIGXFSZ", "SIGHUP")}
"""
    messed = """
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, print)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR2})
privileges.reset_signals()
found = [dispositions(), len(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
         signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGXFSZ)]
"""
    as_fresh = fresh(ask + "found = dispositions()")
    assert fresh(ask + messed) == [as_fresh, 0, 0, 0]


def test_an_attempt_changes_its_child_only(fresh):
    code = """
os.environ["A"] = "before"
def attempt(): os.environ["A"] = "after"
found = [privileges.succeeds(attempt), os.environ["A"]]
"""
    assert fresh(code) == [True, "before"]


@pytest.mark.parametrize("attempt", ["1 / 0", "sys.exit(0) or None", "os.kill(os.getpid(), 9)"])
def test_an_attempt_that_raises_or_dies_fails(fresh, attempt):
    assert fresh(f"found = privileges.succeeds(lambda: {attempt})") is False


def test_memory_is_hidden_from_ones_own_user(fresh, ordinary_python):
    code = """
import subprocess
privileges.hide_memory()
look = f"open('/proc/{os.getpid()}/environ', 'rb').read(1)"
found = subprocess.run([sys.executable, "-S", "-c", look], capture_output=True, text=True).stderr
"""
    assert "PermissionError" in fresh(code, ordinary_python)


def test_a_process_ends_with_its_parent(fresh):
    code = """
import time
reading, writing = os.pipe()
if os.fork() == 0:
    child = os.fork()
    if child == 0:
        privileges.end_with_parent()
        os.write(writing, b"ready")
        time.sleep(60)
        os._exit(0)
    os.read(reading, 5)
    os.write(writing, str(child).encode())
    os._exit(0)
os.wait()
found = int(os.read(reading, 20))
"""
    child = fresh(code)
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{child}") and time.monotonic() < deadline:
        if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{child}")


# ---------------------------------------------------------------------------- namespaces


NETWORK = """
import socket
entered = privileges.enter_namespaces()
found = [list(entered), [name for _, name in socket.if_nameindex()], os.geteuid()]
"""


def test_the_network_of_ones_own_is_empty(fresh):
    entered, interfaces, _ = fresh(NETWORK)
    if "net" not in entered:
        pytest.skip("the kernel grants no network namespace here")
    assert interfaces in ([], ["lo"])


def test_an_ordinary_user_stays_who_it_is(fresh, ordinary_python):
    uid = os.geteuid() or 65534
    assert fresh(NETWORK, ordinary_python)[2] == uid


# --------------------------------------------------------------------------------- tasks


def test_a_user_without_other_tasks_is_allowed_few(fresh, ordinary_python):
    code = """
entered = privileges.enter_namespaces()
found = [list(entered), privileges.tasks_allowed()]
"""
    entered, allowed = fresh(code, ordinary_python)
    if "user" not in entered:
        pytest.skip("the kernel grants no user namespace here")
    assert 2 + privileges.TASKS <= allowed <= 4 + privileges.TASKS


def test_other_tasks_of_the_user_are_counted(fresh, ordinary_python):
    code = """
import subprocess, threading
event = threading.Event()
for _ in range(20):
    threading.Thread(target=event.wait, daemon=True).start()
found = privileges.tasks_allowed()
"""
    assert fresh(code, ordinary_python) >= 21 + privileges.TASKS_TOGETHER


def test_counting_tasks_leaves_the_limit_as_it_was(fresh, ordinary_python):
    code = """
import resource
before = resource.getrlimit(resource.RLIMIT_NPROC)
privileges.tasks_allowed()
found = before == resource.getrlimit(resource.RLIMIT_NPROC)
"""
    assert fresh(code, ordinary_python) is True
