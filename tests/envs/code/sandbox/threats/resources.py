"""Programs that use up time, memory, threads, descriptors, or the compiler."""

from __future__ import annotations

from threat import ANSWER, threat

RESOURCES = [
    threat("cpu-loop", "TLE", "while True:\n    pass\n"),
    threat("cpu-in-c", "TLE", "pow(3, 10**8, 10**(10**5) + 7)\n" * 3 + "sum(range(10**12))\n"),
    threat("cpu-in-regex", "TLE", "import re\nre.match('(a+)+$', 'a' * 40 + 'b')\n"),
    threat(
        "cpu-catch",
        "TLE",
        """
import signal
for number in range(1, 65):
    try:
        signal.signal(number, lambda *_: None)
    except (OSError, ValueError):
        pass
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
""",
    ),
    threat(
        "cpu-in-threads",
        "TLE",
        """
import threading
def spin():
    while True:
        pass
for _ in range(3):
    threading.Thread(target=spin).start()
""",
    ),
    threat("sleep", "IDLE", "import time\ntime.sleep(1000)\n"),
    threat(
        "sleep-on-a-lock",
        "IDLE",
        "import threading\nthreading.Lock().acquire() and None\n"
        "lock = threading.Lock(); lock.acquire(); lock.acquire()\n",
    ),
    threat("stdin-past-the-end", "RE", "input()\ninput()\n"),
    threat("stdin-loop", "TLE WA", "import sys\nwhile True:\n    sys.stdin.readline()\n"),
    threat(
        "memory-list", "MLE TLE", "hoard = []\nwhile True:\n    hoard.append(bytearray(1 << 20))\n"
    ),
    threat(
        "memory-catch",
        "MLE TLE",
        """
hoard = []
while True:
    try:
        hoard.append(bytearray(1 << 20))
    except MemoryError:
        pass
""",
    ),
    threat("memory-big-number", "MLE TLE", "print(2 ** (10 ** 11))\n"),
    threat("memory-mmap", "MLE RE", "import mmap\nmmap.mmap(-1, 8 << 30)\n"),
    threat("memory-uncaught-in-a-function", "MLE", "def f():\n    return [0] * 10**11\nf()\n"),
    threat("compile-bomb-nesting", "MLE RE TLE SE", "print(" + "(" * 5000 + ")" * 5000 + ")\n"),
    threat(
        "compile-bomb-folding",
        "MLE RE TLE WA",
        "x = ((1 << 300) * 10**4) ** 9\nprint('a' * 10**10)\n",
    ),
    threat(
        "compile-bomb-tuple", "MLE RE TLE", "x = ((1,) * 10**5,) * 10**5\nprint(len(repr(x)))\n"
    ),
    threat("number-of-200000-digits", "WA TLE", "print(7 ** 236_000)\n"),
    threat("number-to-text", "TLE OLE MLE", "print(len(str(7 ** 11_833_000)))\nwhile True: pass\n"),
    threat("recursion", "RE", "def f():\n    f()\nf()\n"),
    threat(
        "recursion-in-c",
        "RE MLE TLE",
        """
import sys
sys.setrecursionlimit(10**9)
def f():
    return [f()]
f()
""",
    ),
    threat(
        "recursion-of-repr",
        "RE MLE TLE",
        "x = []\nfor _ in range(10**6):\n    x = [x]\nrepr(x)\n",
    ),
    threat("fork-bomb", "RE", "import os\nwhile True:\n    os.fork()\n"),
    threat(
        "fork-bomb-catch",
        "TLE RE",
        """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
    ),
    threat(
        "thread-bomb",
        "RE MLE TLE IDLE",
        """
import threading, time
while True:
    threading.Thread(target=time.sleep, args=(1000,)).start()
""",
    ),
    threat(
        "descriptor-bomb", "RE", "hoard = []\nwhile True:\n    hoard.append(open('/dev/null'))\n"
    ),
    threat(
        "map-bomb",
        "MLE RE TLE",
        """
import mmap
hoard = []
while True:
    hoard.append(mmap.mmap(-1, 4096))
""",
    ),
    threat(
        "leftover-thread",
        "IDLE",
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(1000,)).start()\n" + ANSWER,
    ),
    threat(
        "daemon-thread",
        "AC",
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n" + ANSWER,
    ),
]
