"""Run every threat in a sandbox and print, as JSON, what came of each and every side effect.

Started by the tests in a pid namespace of its own where that is possible: the programs kill every
process they can reach, and should one get out it must not reach the tests.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from endings import ENDINGS
from files import FILES
from hacks import HACKS
from kernel import KERNEL, NETWORK
from ordinary import BASELINE
from processes import PROCESSES
from resources import RESOURCES
from streams import OUTPUT, SOURCES
from threat import Threat
from x86_64 import X86_64

from flexmg.envs.code.sandbox import Execution, Job, Limits, Pool

THREATS = [
    *BASELINE,
    *RESOURCES,
    *OUTPUT,
    *SOURCES,
    *FILES,
    *PROCESSES,
    *NETWORK,
    *KERNEL,
    *HACKS,
    *ENDINGS,
    *(X86_64 if platform.machine() == "x86_64" else ()),
]
OUTCOMES = {
    "runtime_error": "RE",
    "syntax_error": "SE",
    "time_limit": "TLE",
    "idle_limit": "IDLE",
    "memory_limit": "MLE",
    "output_limit": "OLE",
    "infra_error": "IE",
}
SECRET = "the secret of these tests"
ELSEWHERE = [Path("/dev/shm/flexmg-marker"), Path("/marker"), Path("/tmp/flexmg-link")]


class Listeners:
    """Sockets that nobody may reach; counts who did."""

    def __init__(self, path: Path) -> None:
        self.reached: list[str] = []
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.unix = socket.socket(socket.AF_UNIX)
        self.abstract = f"\0flexmg {path}"
        self.unix.bind(self.abstract)
        self.unix.listen()
        self.named = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.named.bind(str(path))
        path.chmod(0o777)
        for name, listen in (
            ("tcp", self.tcp.accept),
            ("udp", lambda: self.udp.recv(10)),
            ("unix", self.unix.accept),
            ("named", lambda: self.named.recv(10)),
        ):
            threading.Thread(target=self._wait, args=(name, listen), daemon=True).start()

    def _wait(self, name: str, listen) -> None:
        listen()
        self.reached.append(name)


def outcome(run: Execution) -> str:
    """In two or three letters."""
    if run.ok:
        return "AC" if run.stdout.split() == [b"42"] else "WA"
    return OUTCOMES[run.status]


def limits(threat: Threat) -> Limits:
    """Little CPU time; only sleepers are cut short by the clock, for the machine may be busy."""
    wall = 1.5 if "IDLE" in threat.outcomes else 30.0
    return Limits(cpu_s=0.7, wall_s=wall, memory_mb=256)


def filled(threat: Threat, values: dict[str, object]) -> str | bytes:
    """The program with paths and ports in it."""
    program = threat.program
    if isinstance(program, bytes):
        return program
    for name, value in values.items():
        program = program.replace(f"{{{name}!r}}", repr(value)).replace(f"{{{name}}}", str(value))
    return program.replace("{{", "{").replace("}}", "}")


def processes() -> set[int]:
    """All there are in this namespace."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def main() -> None:
    """See the module."""
    if stale := [str(path) for path in ELSEWHERE if os.path.lexists(path)]:
        sys.exit(f"{', '.join(stale)} are there already, left by an unconfined run: remove them")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    secret, marker = folder / "secret.txt", folder / "marker"
    secret.write_text(SECRET)
    mode, times = secret.stat().st_mode, secret.stat().st_mtime_ns
    library = Path(os.__file__).read_bytes()
    listeners = Listeners(folder / "socket")
    values = {
        "secret": str(secret),
        "marker": str(marker),
        "socket": str(folder / "socket"),
        "abstract": listeners.abstract,
        "port": listeners.port,
    }
    wanted = set(sys.argv[1:])
    chosen = [threat for threat in THREATS if not wanted or threat.name in wanted]
    with Pool(2) as pool:
        pool.run_all([Job("print(42)")] * 8)
        zygotes = [slot.pid for slot in pool.slots]
        before = processes()
        runs = pool.run_all(Job(filled(t, values), "41", limits=limits(t)) for t in chosen)
        again = pool.run_all([Job("print(int(input()) + 1)", "41")] * 8)
        report = {
            "zygotes survive": zygotes == [slot.pid for slot in pool.slots],
            "nothing runs on": processes() <= before,
            "later programs are right": all(outcome(run) == "AC" for run in again),
        }
    report |= {
        "no marker": not marker.exists() and not any(map(os.path.lexists, ELSEWHERE)),
        "the secret is untouched": secret.read_text() == SECRET
        and (secret.stat().st_mode, secret.stat().st_mtime_ns) == (mode, times)
        and secret.stat().st_nlink == 1,
        "the library is untouched": Path(os.__file__).read_bytes() == library,
        "no listener is reached": not listeners.reached,
        "the secret is in no output": not any(
            SECRET.encode() in run.stdout + run.stderr for run in runs
        ),
    }
    print(
        json.dumps(
            {
                "uid": os.getuid(),
                "checks": report,
                "outcomes": {
                    threat.name: [outcome(run), f"{run.status}: {run.detail}"[:200]]
                    for threat, run in zip(chosen, runs, strict=True)
                },
            }
        )
    )


if __name__ == "__main__":
    main()
