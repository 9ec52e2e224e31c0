"""Programs with odd output or odd source."""

from __future__ import annotations

from threat import ANSWER, threat

SOURCES = [
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
    threat("number-of-200000-digits", "WA", "print(7 ** 236_000)\n"),
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
    threat("recursion-of-repr", "RE MLE", "x = []\nfor _ in range(10**6):\n    x = [x]\nrepr(x)\n"),
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

OUTPUT = [
    threat("flood", "OLE", "while True:\n    print('x' * 1000)\n"),
    threat(
        "flood-of-errors",
        "OLE RE TLE",
        "import sys\nwhile True:\n    sys.stderr.write('x' * 1000)\n",
    ),
    threat(
        "flood-unbuffered", "OLE RE", "import os\nwhile True:\n    os.write(1, b'x' * 100_000)\n"
    ),
    threat(
        "flood-deaf-to-the-signal",
        "OLE RE TLE",
        """
import os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
while True:
    try:
        os.write(1, b'x' * 100_000)
    except OSError:
        pass
""",
    ),
    threat("sparse", "OLE RE", "import os\nos.lseek(1, 1 << 40, 0)\nos.write(1, b'x')\n"),
    threat("much-but-allowed", "WA", "print('x' * 900_000)\n"),
    threat("exactly-the-limit", "WA", "import sys\nsys.stdout.write('x' * (1 << 20))\n"),
    threat("binary", "WA", "import sys\nsys.stdout.buffer.write(bytes(range(128, 256)))\n"),
    threat("surrogates", "RE", "print('\\ud83d')\n"),
    threat(
        "own-output-truncated",
        "AC",
        """
import os, sys
os.write(1, b'junk')
os.ftruncate(1, 0)
os.lseek(1, 0, 0)
print(int(input()) + 1)
""",
    ),
    threat("streams-closed", "WA RE", "import os\nos.close(0)\nos.close(1)\nos.close(2)\n"),
    threat("every-descriptor-closed", "WA RE", "import os\nos.closerange(0, 4096)\n"),
    threat("stdout-replaced", "WA", "import sys, io\nsys.stdout = io.StringIO()\n" + ANSWER),
]

SOURCES = [
    threat("nul", "SE", "print(1)\0print(2)\n"),
    threat("not-utf8", "SE", b"print('\xff\xfe')\n"),
    threat("surrogate-in-source", "SE", "print('\ud800')\n"),
    threat("odd-codec", "SE RE WA", "# -*- coding: rot13 -*-\ncevag(42)\n"),
    threat("unknown-codec", "SE", "# -*- coding: klingon -*-\nprint(42)\n"),
    threat("latin1-cookie", "WA", b"# -*- coding: latin-1 -*-\nprint('\xe9')\n"),
    threat("syntax", "SE", "def f(:\n"),
    threat("empty", "WA", ""),
    threat("ten-megabytes", "AC", "#" * (10 << 20) + "\n" + ANSWER),
    threat("byte-order-mark", "AC", "\ufeff" + ANSWER),
    threat("null-statement-bomb", "WA MLE TLE RE SE", ";".join(["0"] * 300_000) + "\n"),
]
