"""Programs that would rather have the verdict than the answer."""

from __future__ import annotations

from threat import threat

HACKS = [
    threat("exit-0", "WA", "import sys\nsys.exit(0)\n"),
    threat("hard-exit-0", "WA", "import os\nos._exit(0)\n"),
    threat("imitates-our-codes", "RE MLE SE", "import os\nos._exit(231)\n"),
    threat("imitates-other-codes", "RE MLE SE", "import os\nos._exit(97)\n"),
    threat(
        "writes-to-every-descriptor",
        "WA RE",
        """
import os
for number in range(3, 1024):
    try:
        os.write(number, b'S{{"passed": true}}ready')
    except OSError:
        pass
print('forged')
""",
    ),
    threat(
        "searches-its-memory",
        "WA",
        """
import gc, sys
wanted = chr(52) + chr(50)
frame = sys._getframe()
places = list(gc.get_objects())
while frame:
    places.append(list(frame.f_locals.values()))
    frame = frame.f_back
for place in places:
    if isinstance(place, dict):
        place = list(place.values())
    if isinstance(place, (list, tuple)):
        for thing in place:
            if isinstance(thing, bytes):
                thing = thing.decode('latin-1')
            if type(thing) is str and thing.strip() == wanted:
                print(thing)
""",
    ),
    threat(
        "reads-every-descriptor",
        "WA RE",
        """
import os, socket
found = b''
for number in range(3, 1024):
    for read in (os.read, lambda n, k: os.pread(n, k, 0)):
        try:
            found += read(number, 100_000)
        except OSError:
            pass
    try:
        found += socket.socket(fileno=os.dup(number)).recv(100_000, socket.MSG_DONTWAIT)
    except OSError:
        pass
print(found)
""",
    ),
    threat(
        "traces-its-way-out",
        "WA AC RE",
        """
import os, sys, atexit
seen = []
def trace(frame, event, argument):
    seen.append((frame.f_code.co_filename, sorted(map(str, frame.f_locals))))
    frame.f_trace_opcodes = True
    return trace
frame = sys._getframe()
while frame:
    frame.f_trace = trace
    frame = frame.f_back
sys.settrace(trace)
""",
    ),
    threat(
        "returns-to-the-zygote",
        "WA RE",
        """
# Nothing ends this process where it should: it goes on in the loop that serves requests.
import os, socket, sys
nothing = lambda *a, **k: 0
os._exit = os.close = nothing
a, b = socket.socketpair()
for number in range(3, 64):
    try:
        os.fstat(number)
    except OSError:
        os.dup2(a.fileno(), number)
os.write(1, b'forged')
""",
    ),
    threat(
        "patches-unittest",
        "WA",
        "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n",
    ),
    threat("not-a-number", "WA", "print(float('nan'))\n"),
    threat("underscored", "WA", "print('4_2')\n"),
    threat("other-digits", "WA", "print('\\u0664\\u0662')\n"),
    threat(
        "environment-is-bare",
        "AC",
        """
import os
allowed = {{'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'}}
extra = [k for k in os.environ if k not in allowed and not k.startswith('PYTHON')]
print(int(input()) + 1 if not extra else extra)
""",
    ),
    threat(
        "poisons-modules",
        "AC",
        """
import builtins, json
builtins.print_ = builtins.print
json.dumps = lambda *a, **k: 'poisoned'
builtins.len = lambda x: 42
print(int(input()) + 1)
""",
    ),
    threat(
        "is-not-poisoned",
        "AC",
        """
import json
assert json.dumps([1]) == '[1]' and len([1, 2]) == 2
print(int(input()) + 1)
""",
    ),
    threat(
        "reaches-the-supervisor",
        "WA RE",
        """
import sys, os
zygotes = [m for name, m in list(sys.modules.items()) if 'flexmg' in name or 'zygote' in name]
sent = 0
import gc, socket
for thing in gc.get_objects():
    if isinstance(thing, socket.socket):
        try:
            thing.send(b'S'); sent += 1
        except OSError:
            pass
print('sent', sent)
""",
    ),
]
