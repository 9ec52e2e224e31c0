"""The system-call filter, run by an interpreter written here, against the policy in words."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmg.envs.code.sandbox.seccomp import Filter
from flexmg.envs.code.sandbox.syscalls import ARCHITECTURES

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
PID = 4321
AUDIT = {machine: audit for machine, (audit, _) in ARCHITECTURES.items()}
# What a program may never do, by name and number on x86_64.
FORBIDDEN = {
    "fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "socket": 41, "connect": 42,
    "bind": 49, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "bpf": 321,
    "io_uring_setup": 425, "memfd_create": 319, "keyctl": 250, "add_key": 248, "userfaultfd": 323,
    "perf_event_open": 298, "mount": 165, "unshare": 272, "setns": 308, "chroot": 161,
    "chmod": 90, "fchmod": 91, "fchmodat": 268, "chown": 92, "utime": 132, "utimensat": 280,
    "setxattr": 188, "flock": 73, "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240,
    "pidfd_open": 434, "pidfd_getfd": 438, "pidfd_send_signal": 424, "kcmp": 312, "tkill": 200,
    "setpriority": 141, "sched_setaffinity": 203, "sched_setattr": 314, "setrlimit": 160,
    "setuid": 105, "setresuid": 117, "capset": 126, "seccomp": 317, "rename": 82, "unlink": 87,
    "symlink": 88, "link": 86, "mkdir": 83, "truncate": 76, "personality": 135, "init_module": 175,
    "open_by_handle_at": 304, "fanotify_init": 300, "mlock": 149, "setsid": 112, "setpgid": 109,
    "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "process_madvise": 440, "openat2": 437,
    "landlock_restrict_self": 446, "io_setup": 206, "clone3 with ENOSYS": None,
}  # fmt: skip


def run(code, machine, number, arguments=(), architecture=None):
    """What the kernel would make of a call."""
    return interpreted(code, machine, number, arguments, architecture)[0]


def interpreted(code, machine, number, arguments=(), architecture=None):
    """Verdict and number of instructions: classic BPF, by its definition."""
    audit = AUDIT[machine] if architecture is None else architecture
    data = struct.pack("<IIQ6Q", number, audit, 0, *(list(arguments) + [0] * 6)[:6])
    place = accumulator = steps = 0
    while True:
        steps += 1
        operation, then, otherwise, k = struct.unpack_from("<HBBI", code, 8 * place)
        place += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, k)
            case 0x05:
                place += k
            case 0x54:
                accumulator &= k
            case 0x15:
                place += then if accumulator == k else otherwise
            case 0x35:
                place += then if accumulator >= k else otherwise
            case 0x06:
                return k, steps
            case _:
                raise AssertionError(f"unknown instruction {operation:#x}")


@pytest.fixture(scope="module", params=ARCHITECTURES)
def machine(request):
    return request.param


@pytest.fixture(scope="module")
def code(machine):
    return Filter(machine).code(PID)


# Calls whose arguments decide, with some that are allowed and some that are not.
CHECKED = {
    # Truncating needs a mode in which Landlock asks for the right to write.
    "open": ([(0, 0), (0, 2), (0, 0x241)], [(0, 3), (0, 0x200), (0, 0x203)]),
    "openat": ([(0, 0, 0), (0, 0, 0x242)], [(0, 0, 3), (0, 0, 0x200)]),
    "clone": ([(0x10F00,), (0x10000,)], [(17,), (0x10F00 | 0x40000000,), (0x10F00 | 0x10000000,)]),
    "kill": ([(PID, 9)], [(1, 9), (0, 9), (2**32 - 1, 9), (PID + 1, 0)]),
    "tgkill": ([(PID, PID + 5, 6)], [(1, 1, 9)]),
    "prlimit64": ([(0, 7), (PID, 7)], [(1, 7)]),
    "fcntl": ([(3, 1), (3, 3), (3, 1030)], [(3, 5), (3, 6), (3, 7), (3, 37), (3, 38), (3, 1024)]),
    "ioctl": ([(1, 0x5401), (1, 0x541B)], [(0, 0x5412), (1, 0x5410)]),
    "socketpair": ([(1, 1), (1, 1 | 0x80000), (1, 1 | 0x800)], [(1, 2), (2, 1), (1, 5)]),
    "prctl": ([(15,), (16,)], [(1,), (4,), (8,), (22,), (38,)]),
}


@pytest.mark.parametrize("name", CHECKED)
def test_arguments_decide(code, machine, name):
    if name not in ARCHITECTURES[machine][1]:
        pytest.skip(f"{machine} has no {name}")
    number = ARCHITECTURES[machine][1][name]
    allowed, refused = CHECKED[name]
    assert {run(code, machine, number, arguments) for arguments in allowed} == {ALLOW}
    assert {run(code, machine, number, arguments) for arguments in refused} == {EPERM}


def test_every_number_is_treated_as_the_table_says(code, machine):
    table = ARCHITECTURES[machine][1]
    free = {number for name, number in table.items() if name not in CHECKED and name != "clone3"}
    for number in range(600):
        if number in free:
            assert run(code, machine, number) == ALLOW
        elif number == table["clone3"]:
            assert run(code, machine, number) == ENOSYS
        elif number not in {table[name] for name in CHECKED if name in table}:
            assert run(code, machine, number) == EPERM


@pytest.mark.parametrize(("name", "number"), [(n, k) for n, k in FORBIDDEN.items() if k])
def test_what_a_program_may_never_do(name, number):
    filter = Filter("x86_64").code(PID)
    assert run(filter, "x86_64", number) == EPERM


@given(st.integers(0, 2**32 - 1), st.sampled_from([0x40000003, 0xC00000B7, 0, 0xC000003D]))
def test_calls_of_another_architecture_kill(number, architecture):
    filter = Filter("x86_64").code(PID)
    assert run(filter, "x86_64", number, architecture=architecture) == KILL


@given(st.integers(0x40000000, 2**32 - 1))
def test_x32_calls_kill(number):
    assert run(Filter("x86_64").code(PID), "x86_64", number) == KILL


@given(st.integers(600, 0x3FFFFFFF))
def test_numbers_beyond_the_table_are_refused(number):
    assert run(Filter("x86_64").code(PID), "x86_64", number) == EPERM


def test_a_call_is_decided_by_few_instructions(code, machine):
    """The kernel runs the filter at every call, so it must search, not look through a list."""
    table = ARCHITECTURES[machine][1].values()
    assert max(interpreted(code, machine, number)[1] for number in table) <= 25


def test_another_machine_has_no_filter():
    with pytest.raises(OSError, match="no system-call table for riscv64"):
        Filter("riscv64")
