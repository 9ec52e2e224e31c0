"""Programs whose end is the trick: handlers, hooks, reports, finalisers, a wrecked interpreter."""

from __future__ import annotations

from threat import ANSWER, threat

FOREVER = "while True:\n        pass\n"

ENDINGS = [
    threat(
        "loops-at-exit", "TLE", "import atexit\ndef f():\n    " + FOREVER + "atexit.register(f)\n"
    ),
    threat(
        "sleeps-at-exit",
        "IDLE",
        "import atexit, time\natexit.register(time.sleep, 1000)\n" + ANSWER,
    ),
    threat(
        "exits-hard-at-exit", "WA AC", "import atexit, os\natexit.register(os._exit, 0)\n" + ANSWER
    ),
    threat(
        "registers-at-exit-for-ever",
        "WA TLE MLE",
        "import atexit\ndef f():\n    atexit.register(f)\natexit.register(f)\n",
    ),
    threat(
        "starts-a-thread-at-exit",
        "AC RE",
        """
import atexit, threading
atexit.register(lambda: threading.Thread(target=lambda: None).start())
"""
        + ANSWER,
    ),
    threat(
        "loops-in-a-hook",
        "TLE",
        "import sys\ndef hook(*_):\n    " + FOREVER + "sys.excepthook = hook\n1 / 0\n",
    ),
    threat("hook-that-fails", "RE", "import sys\nsys.excepthook = lambda *_: 1 / 0\n1 / 0\n"),
    threat(
        "hook-that-exits-0",
        "WA",
        "import os, sys\nsys.excepthook = lambda *_: os._exit(0)\n1 / 0\n",
    ),
    threat(
        "loops-in-a-message",
        "TLE",
        "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E\n",
    ),
    threat(
        "message-that-fails",
        "RE",
        "class E(Exception):\n    def __str__(self): 1 / 0\n    __repr__ = __str__\nraise E\n",
    ),
    threat("message-of-a-gigabyte", "MLE RE", "raise ValueError('x' * 10**9)\n"),
    threat("message-of-megabytes", "RE OLE", "raise ValueError('x' * (20 << 20))\n"),
    threat(
        "chain-of-exceptions",
        "RE TLE MLE",
        """
error = None
for n in range(200_000):
    later = ValueError(n)
    later.__cause__ = error
    error = later
raise error
""",
    ),
    threat(
        "circle-of-exceptions",
        "RE",
        """
one, two = ValueError(1), ValueError(2)
one.__cause__, two.__cause__ = two, one
raise one
""",
    ),
    threat(
        "tree-of-exceptions",
        "RE TLE MLE",
        """
error = ValueError()
for _ in range(60):
    error = ExceptionGroup('x', [error, error])
raise error
""",
    ),
    threat(
        "pretends-a-syntax-error",
        "RE",
        "error = SyntaxError('x', ('<program>', 1, 1, 'x' * 10**6, 9, 9))\n"
        "error.text = object()\nraise error\n",
    ),
    threat("base-exception", "RE", "class E(BaseException): pass\nraise E\n"),
    threat("keyboard-interrupt", "RE", "raise KeyboardInterrupt\n"),
    threat("generator-exit", "RE", "raise GeneratorExit\n"),
    threat("exit-code-of-many-bits", "WA RE", "import sys\nsys.exit(1 << 4000)\n"),
    threat("negative-exit-code", "RE", "import sys\nsys.exit(-1)\n"),
    threat("exit-with-an-object", "RE", "import sys\nsys.exit(object())\n"),
    threat(
        "exit-that-cannot-be-shown",
        "RE",
        "class E:\n    def __str__(self): raise SystemExit(0)\nraise SystemExit(E())\n",
    ),
    threat(
        "exit-in-a-thread",
        "AC",
        "import sys, threading\nthreading.Thread(target=sys.exit).start()\n" + ANSWER,
    ),
    threat(
        "hard-exit-in-a-thread",
        "WA AC",
        "import os, threading\nthreading.Thread(target=os._exit, args=(0,)).start()\n" + ANSWER,
    ),
    threat(
        "exits-are-no-more",
        "AC RE",
        "import os, sys\nos._exit = sys.exit = os.abort = lambda *_: None\n" + ANSWER,
    ),
    threat("modules-are-no-more", "AC WA RE", ANSWER + "import sys\nsys.modules.clear()\n"),
    threat(
        "builtins-are-no-more",
        "AC WA RE",
        ANSWER + "import builtins\nfor name in list(vars(builtins)): delattr(builtins, name)\n",
    ),
    threat(
        "threading-is-replaced",
        "AC RE",
        "import threading\nthreading._shutdown = None\nthreading.main_thread = None\n" + ANSWER,
    ),
    threat(
        "reporting-is-replaced",
        "RE",
        """
import linecache, os, resource, traceback
traceback.format_exception = os.write = os.fstat = resource.getrlimit = lambda *a, **k: 0
linecache.cache = None
1 / 0
""",
    ),
    threat(
        "streams-that-fail",
        "RE WA AC",
        """
import sys
class Stream:
    def __getattr__(self, name):
        raise OSError(28, 'no room')
print(int(input()) + 1, flush=True)
sys.stdout = sys.stderr = Stream()
""",
    ),
    threat(
        "stream-that-loops",
        "TLE",
        """
import sys
class Stream:
    def flush(self):
        while True: pass
sys.stdout = Stream()
""",
    ),
    threat("stream-is-none", "AC RE", ANSWER + "import sys\nsys.stdout = sys.stderr = None\n"),
    threat(
        "finaliser-that-loops",
        "TLE AC WA",
        "class C:\n    def __del__(self):\n        while True: pass\nC()\n" + ANSWER,
    ),
    threat(
        "watchdog",
        "RE",
        "import faulthandler\nfaulthandler.dump_traceback_later(0.05, exit=True)\n"
        "while True:\n    pass\n",
    ),
    threat(
        "audits-everything",
        "RE",
        "import sys\ndef hook(*_): raise PermissionError\nsys.addaudithook(hook)\n" + ANSWER,
    ),
    threat(
        "imports-are-hooked",
        "AC RE",
        """
import builtins, sys
builtins.__import__ = lambda *a, **k: sys
sys.meta_path.clear()
sys.path_hooks.clear()
sys.path.clear()
"""
        + ANSWER,
    ),
    threat(
        "traces-everything",
        "AC",
        """
import sys, threading
def trace(frame, event, argument):
    return trace
sys.settrace(trace)
sys.setprofile(trace)
threading.settrace(trace)
"""
        + ANSWER,
    ),
    threat(
        "collector-is-busy",
        "AC",
        "import gc\ngc.unfreeze()\ngc.set_threshold(1, 1, 1)\ngc.collect()\n" + ANSWER,
    ),
]
