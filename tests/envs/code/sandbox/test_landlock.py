"""Landlock by itself, without the system-call filter: which files a process may still open."""

from __future__ import annotations

import errno
import os
import socket
import sys
from pathlib import Path

import pytest

from flexmg.envs.code.sandbox import landlock, probe

if complaint := probe.ingredients()["landlock"].complaint:
    pytest.skip(f"no Landlock here: {complaint}", allow_module_level=True)

ATTEMPTS = """
def attempt(act):
    try:
        return act()
    except OSError as error:
        return error.errno
"""
EACCES, EPERM = errno.EACCES, errno.EPERM


@pytest.fixture
def folder(tmp_path):
    """A library with packages beside it, and a file that lies outside."""
    for path in ("lib/module.py", "lib/sub/module.py", "lib/site-packages/other/module.py", "out"):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)
    (tmp_path / "lib" / "link").symlink_to(tmp_path / "out")
    for path in (tmp_path, *tmp_path.parents):
        # So that an ordinary user, too, is stopped by Landlock and nothing else.
        if path.owner() == tmp_path.owner() and path.name.startswith(("pytest", "test")):
            path.chmod(0o755)
    return tmp_path


@pytest.fixture
def confined(fresh, folder):
    """Run code under rules that let the library be read."""

    def run(act, before=""):
        rules = f"landlock.Ruleset([{str(folder / 'lib')!r}]).restrict()\n"
        return fresh(f"{ATTEMPTS}\nF = {str(folder)!r}\n{before}\n{rules}found = attempt({act})")

    return run


READ = "lambda: Path(F, {!r}).read_text()"


@pytest.mark.parametrize("path", ["lib/module.py", "lib/sub/module.py"])
def test_the_library_is_read(confined, path):
    assert confined(READ.format(path)) == path


@pytest.mark.parametrize("path", ["out", "lib/../out", "lib/link"])
def test_nothing_outside_is_read(confined, path):
    assert confined(READ.format(path)) == EACCES


def test_installed_packages_are_not_read(confined):
    assert confined(READ.format("lib/site-packages/other/module.py")) == EACCES


def test_the_library_is_listed_as_imports_need_it(confined):
    names = confined("lambda: sorted(os.listdir(F + '/lib'))")
    assert names == ["link", "module.py", "site-packages", "sub"]


def test_nothing_outside_is_listed(confined):
    assert confined("lambda: os.listdir(F)") == EACCES


CHANGES = {
    "write": "open(F + '/lib/module.py', 'r+')",
    "write outside": "open(F + '/out', 'r+')",
    "make": "open(F + '/lib/new', 'w')",
    "make outside": "open(F + '/new', 'w')",
    "make a folder": "os.mkdir(F + '/lib/new')",
    "remove": "os.remove(F + '/lib/module.py')",
    "remove a folder": "os.rmdir(F + '/lib/sub')",
    "rename": "os.rename(F + '/lib/module.py', F + '/lib/other.py')",
    "link": "os.link(F + '/lib/module.py', F + '/lib/other.py')",
    "make a symbolic link": "os.symlink('/', F + '/lib/root')",
    "make a fifo": "os.mkfifo(F + '/lib/fifo')",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_nothing_is_changed(confined, change):
    # EXDEV: Landlock speaks of moving between folders as the kernel does of other disks.
    assert confined(f"lambda: {change}") in (EACCES, errno.EXDEV)


def test_the_null_device_is_written_to(confined):
    assert confined("lambda: open('/dev/null', 'wb', buffering=0).write(b'x')") == 1


def test_an_open_file_stays_open(confined):
    assert confined("file.read", before="file = open(F + '/out')") == "out"


def test_no_port_is_reached(confined):
    with socket.create_server(("127.0.0.1", 0)) as server:
        act = f"lambda: socket.create_connection({server.getsockname()!r})"
        found = confined(act, before="import socket")
    if landlock.Ruleset([]).abi < 4:
        pytest.skip("this kernel's Landlock knows of no ports")
    assert found == EACCES


def test_the_parent_is_not_signalled(confined):
    if landlock.Ruleset([]).abi < 6:
        pytest.skip("this kernel's Landlock knows of no signals")
    assert confined("lambda: os.kill(os.getppid(), 0)") == EPERM


def test_what_a_process_starts_is_confined_too(confined):
    act = f"lambda: os.posix_spawn({sys.executable!r}, ['python'], {{}})"
    assert confined(act) == EACCES


# ------------------------------------------------------------------------ other kernels


def test_scopes_that_a_kernel_only_claims_are_left_out(confined):
    """Bits that no kernel knows stand for those that some kernels count and do not have."""
    assert confined(READ.format("out"), before="landlock._SCOPES = 1 << 63") == EACCES


def test_a_kernel_without_landlock_is_named(fresh):
    code = """
landlock._CREATE_RULESET = 1 << 20  # a call that no kernel has
try:
    landlock.Ruleset()
except OSError as error:
    found = [error.errno, str(error)]
"""
    number, text = fresh(code)
    assert number == errno.ENOSYS and "Landlock: ENOSYS" in text


def test_a_path_that_is_missing_is_named(fresh):
    code = """
try:
    landlock.Ruleset(["/nowhere/at/all"])
except OSError as error:
    found = str(error)
"""
    assert "/nowhere/at/all" in fresh(code)


# --------------------------------------------------------------------- what may be read


def test_every_module_of_the_library_is_found_in_readable_paths():
    paths = landlock.readable_paths()
    for module in ("os", "json", "_ctypes", "sqlite3", "zoneinfo"):
        file = getattr(__import__(module), "__file__", None)
        if file is not None:
            assert any(os.path.realpath(file).startswith(path) for path in paths)


@pytest.mark.parametrize(
    "private", ["/etc", "/home", "/root", "/proc", "/tmp", "/var", "/usr", "/dev", "/", __file__]
)
def test_private_folders_are_not_readable(private):
    assert not any(f"{private}/".startswith(f"{path}/") for path in landlock.readable_paths())


def test_a_virtual_environment_is_not_readable():
    if sys.prefix == sys.base_prefix:
        pytest.skip("the tests run in no virtual environment")
    paths = landlock.readable_paths()
    assert not any(sys.prefix in (path, *map(str, Path(path).parents)) for path in paths)


def test_packages_of_the_base_interpreter_are_hidden():
    library = os.path.dirname(os.path.realpath(os.__file__))
    hidden = landlock.hidden_paths(landlock.readable_paths())
    assert {one for one in (f"{library}/site-packages",) if os.path.isdir(one)} <= set(hidden)


def test_packages_of_distributions_are_hidden(tmp_path):
    places = ["python3/dist-packages", "python3.11/site-packages", "python3.12/dist-packages"]
    for place in places:
        (tmp_path / place).mkdir(parents=True)
    assert set(landlock.hidden_paths([str(tmp_path)])) == {str(tmp_path / p) for p in places}


def test_libraries_that_an_interpreter_brings_are_readable(tmp_path, monkeypatch):
    """As conda's does: libraries in lib, beside whatever else its packages keep there."""
    (tmp_path / "lib").mkdir()
    for name in ("libsqlite3.so.0", "data.txt"):
        (tmp_path / "lib" / name).touch()
    monkeypatch.setattr(sys, "base_exec_prefix", str(tmp_path))
    brought = [path for path in landlock.readable_paths() if path.startswith(str(tmp_path))]
    assert brought == [str(tmp_path / "lib" / "libsqlite3.so.0")]
