"""Programs that start, kill or change processes, themselves included."""

from __future__ import annotations

from threat import ANSWER, LIBC, threat

PROCESSES = [
    threat(
        "subprocess", "RE", "import subprocess\nprint(subprocess.run(['/bin/sh', '-c', 'id']))\n"
    ),
    threat("os-system", "WA", "import os\nprint(os.system('touch {marker}'))\n"),
    threat("exec", "RE", "import os\nos.execv('/bin/sh', ['sh', '-c', 'echo 42'])\n"),
    threat("spawn", "RE", "import os\nos.posix_spawn('/bin/sh', ['sh', '-c', 'echo 42'], {{}})\n"),
    threat(
        "multiprocessing", "RE", "import multiprocessing\nmultiprocessing.Pool(2).map(abs, [1])\n"
    ),
    threat(
        "daemon",
        "RE",
        """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1)
        open({marker!r}, 'w').write('x')
print(42)
""",
    ),
    threat("exit-handlers", "WA", "import atexit\natexit.register(print, 'late')\n" + ANSWER),
    threat(
        "fork-handlers", "AC", "import os\nos.register_at_fork(before=lambda: print(0))\n" + ANSWER
    ),
    threat(
        "finaliser",
        "AC WA",
        "class C:\n    def __del__(self):\n        print('late')\nc = C()\n" + ANSWER,
    ),
    threat("kills-its-parent", "RE", "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n"),
    threat("kills-its-group", "RE", "import os, signal\nos.killpg(0, signal.SIGKILL)\n"),
    threat("kills-everything", "RE", "import os, signal\nos.kill(-1, signal.SIGKILL)\n"),
    threat("stops-its-parent", "RE", "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\n"),
    threat("kills-itself", "RE", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"),
    threat("kills-its-group-by-number", "RE", "import os\nos.kill(-os.getpid(), 9)\n"),
    threat("signals-its-parent-with-nothing", "RE", "import os\nos.kill(os.getppid(), 0)\n"),
    threat("queues-a-signal", "WA", LIBC + "attempt(libc.sigqueue, os.getppid(), 9, 0)\n"),
    threat("aborts", "RE", "import os\nos.abort()\n"),
    threat("segfaults", "RE", "import ctypes\nctypes.string_at(0)\n"),
    threat("stops-itself", "IDLE", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n"),
    threat("stops-like-a-terminal", "IDLE WA", "import os\nos.kill(os.getpid(), 20)\n"),
    threat(
        "timers",
        "WA RE TLE IDLE",
        LIBC
        + """
made, timer = 0, ctypes.c_void_p()
while made < 100_000 and libc.timer_create(1, None, ctypes.byref(timer)) == 0:
    libc.timer_settime(timer, 0, (ctypes.c_long * 4)(0, 1, 0, 1), None)
    made += 1
print(made)
""",
    ),
    threat(
        "alarm",
        "RE",
        "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\nwhile True:\n    pass\n",
    ),
    threat(
        "raises-its-limits",
        "RE",
        """
import resource
resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))
""",
    ),
    threat(
        "limits-of-its-parent",
        "RE",
        """
import os, resource
resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))
""",
    ),
    threat("becomes-root", "RE", "import os\nos.setuid(0)\nos.setresuid(0, 0, 0)\n"),
    threat(
        "capabilities",
        "WA",
        LIBC
        + """
import struct
attempt(libc.capset, struct.pack('Ii', 0x20080522, 0), b'\\xff' * 24)
""",
    ),
    threat("priority", "RE", "import os\nos.setpriority(os.PRIO_PROCESS, os.getppid(), 19)\n"),
    threat("goes-first", "RE", "import os\nos.nice(-20)\n"),
    threat(
        "runs-in-real-time", "RE", "import os\nos.sched_setscheduler(0, 1, os.sched_param(99))\n"
    ),
    threat("affinity", "RE", "import os\nos.sched_setaffinity(os.getppid(), [0])\n"),
    threat("session", "RE WA", "import os\nos.setsid()\n"),
]
