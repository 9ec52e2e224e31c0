"""Machines that cannot confine programs are refused, by name of what lacks and remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from flexmg.envs.code.sandbox import Job, probe
from flexmg.envs.code.sandbox.slot import Slot
from flexmg.errors import InfraError, SandboxUnavailable


@pytest.fixture
def machine(monkeypatch):
    """A machine of which one says what does not work."""

    def of(**complaints):
        found = {name: probe.Finding(name, complaints.get(name, "")) for name in probe.INGREDIENTS}
        monkeypatch.setattr(probe, "ingredients", lambda: found)

    return of


def test_this_machine_is_tried_out_by_doing():
    assert set(probe.ingredients()) == set(probe.INGREDIENTS)


def test_landlock_is_the_first_choice(machine):
    machine()
    assert probe.require() == "landlock"


def test_bubblewrap_stands_in_for_landlock(machine):
    machine(landlock="OSError: ENOSYS")
    assert probe.require() == "bwrap"


def test_without_is_as_if_it_lacked(machine):
    machine()
    assert probe.require(without={"landlock"}) == "bwrap"


@pytest.mark.parametrize("name", ["memory_files", "process_files", "seccomp"])
def test_what_nothing_else_provides_is_required(machine, name):
    machine(**{name: "OSError: no such thing"})
    with pytest.raises(SandboxUnavailable) as refused:
        probe.require()
    what, remedy = probe.INGREDIENTS[name]
    assert f"{what}: OSError: no such thing. Remedy: {remedy}" in str(refused.value)


def test_without_both_providers_each_is_named(machine):
    machine(landlock="OSError: ENOSYS", bubblewrap="not installed")
    with pytest.raises(SandboxUnavailable) as refused:
        probe.require()
    text = str(refused.value)
    assert "Landlock: OSError: ENOSYS" in text and "bubblewrap: not installed" in text


def test_a_refusal_tells_of_unsafe(machine):
    machine(seccomp="OSError")
    with pytest.raises(SandboxUnavailable, match="sandbox='unsafe'"):
        probe.require()


def test_unsafe_does_without_confinement(machine):
    machine(seccomp="x", landlock="x", bubblewrap="x", namespaces="x")
    probe.require("unsafe")


def test_unsafe_needs_memory_files_too(machine):
    machine(memory_files="x")
    with pytest.raises(SandboxUnavailable):
        probe.require("unsafe")


def test_namespaces_are_not_required(machine):
    machine(namespaces="x")
    assert probe.require() == "landlock"


def test_a_probe_that_does_not_run_is_our_failure(monkeypatch, tmp_path):
    monkeypatch.setattr(probe, "LAUNCH", tmp_path / "nothing.py")
    probe.ingredients.cache_clear()
    with pytest.raises(InfraError, match=r"nothing\.py"):
        probe.ingredients()


@pytest.mark.parametrize("system", ["darwin", "win32"])
@pytest.mark.parametrize("sandbox", ["strict", "unsafe"])
def test_other_systems_are_refused_with_the_same_sentence(system, sandbox):
    """Simulated: another name of the system, and none of the modules that only POSIX has."""
    script = (
        "import sys\n"
        "from flexmg.errors import SandboxUnavailable\n"
        f"sys.platform = {system!r}\n"
        "for name in ('fcntl', 'resource', 'select'): sys.modules[name] = None\n"
        "from flexmg.envs.code import execute\n"
        "try:\n"
        f"    execute('print(1)', sandbox={sandbox!r})\n"
        "except SandboxUnavailable as error:\n"
        "    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert f"on Linux only, and this is {system}" in ran.stdout, ran.stderr


# ------------------------------------------------------------------------------- report


def test_report_ends_with_the_conclusion(machine):
    machine()
    assert probe.report()[-1] == (
        "programs",
        True,
        "run confined by the system-call filter and Landlock",
    )


def test_report_asks_for_nothing_that_something_else_provides(machine):
    machine(bubblewrap="not installed")
    assert all(fine for _, fine, _ in probe.report())


def test_report_names_what_lacks(machine):
    machine(seccomp="OSError: EPERM")
    lacking = [name for name, fine, _ in probe.report() if not fine]
    assert lacking == ["system-call filter", "programs"]


# --------------------------------------------------------------------------- bubblewrap


@pytest.fixture(scope="module")
def wrapped():
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    slot = Slot(0, "strict", "bwrap")
    yield slot
    slot.stop()


def test_a_program_runs_in_a_bubblewrap(wrapped):
    assert wrapped.run(Job("import decimal, hashlib\nprint(1)")).stdout == b"1\n"


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/1/mem", "/proc/self/maps", __file__])
def test_a_bubblewrap_keeps_files_out_of_sight(wrapped, path):
    found = wrapped.run(Job(f"open({path!r}, 'rb').read(1)"))
    assert found.stderr.rstrip().rpartition(b"\n")[2].startswith(b"FileNotFoundError")


@pytest.mark.parametrize("folder", ["/", "/tmp", "/dev", "/dev/shm", os.path.dirname(os.__file__)])
def test_nothing_can_be_written_in_a_bubblewrap(wrapped, folder):
    found = wrapped.run(Job(f"open({folder!r} + '/flexmg-left-behind', 'w')"))
    assert found.status == "runtime_error" and b"Error: [Errno" in found.stderr
