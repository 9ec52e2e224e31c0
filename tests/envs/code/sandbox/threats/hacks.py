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
found = []
frame = sys._getframe()
while frame:
    found += [repr(value)[:200] for value in frame.f_locals.values() if '42' in repr(value)[:200]]
    frame = frame.f_back
for thing in gc.get_objects():
    if isinstance(thing, (list, dict)) and len(thing) < 50 and 'expected' in repr(thing)[:500]:
        found.append(repr(thing)[:100])
print('|'.join(found) or 'nothing')
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
