"""What comes of real programs, by the rules of a Python interpreter of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from flexmg.envs.code import Limits, execute
from flexmg.errors import InvalidArgument


def run(program, stdin="", **limits):
    return execute(program, stdin, limits=Limits(**limits))


def test_a_program_reads_and_writes():
    assert run("print(int(input()) + 1)", "41").stdout == b"42\n"


# ----------------------------------------------------------- as in an interpreter of its own

LIKE_PYTHON = {
    "exit": "print(1)\nexit()\nprint(2)",
    "quit with a code": "quit(3)",
    "sys.exit with a text": "import sys\nsys.exit('no')",
    "sys.exit with a large code": "import sys\nsys.exit(256 + 7)",
    "os._exit flushes nothing": "import os\nprint(1)\nos._exit(0)",
    "uncaught exception": "print(1)\n1 / 0",
    "atexit": "import atexit\natexit.register(print, 'later')\nprint('now')",
    "atexit after sys.exit": "import atexit, sys\natexit.register(print, 'x')\nsys.exit(2)",
    "a thread outlives the main one": (
        "import threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()\nprint('soon')"
    ),
    "a daemon thread does not": (
        "import threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(9), print('x')), daemon=True).start()"
    ),
    "an exception in a thread": (
        "import threading\nthreading.Thread(target=lambda: 1 / 0).start()\nprint('main')"
    ),
    "a file on descriptor 1 is never closed": "f = open(1, 'w')\nf.write('42')",
    "stdout is replaced": "import io, sys\nprint('a')\nsys.stdout = io.StringIO()\nprint('b')",
    "stdout is wrapped": (
        "import io, sys\nsys.stdout = io.TextIOWrapper(io.FileIO(1, 'w'), write_through=False)\n"
        "print('wrapped')"
    ),
    "stdout is closed": "import sys\nprint('a')\nsys.stdout.close()",
    "main module": "import sys\nprint(__name__, sys.modules['__main__'].__dict__ is globals())",
    "argv": "import sys\nprint(len(sys.argv))",
    "a global counter": "n = 0\ndef f():\n    global n\n    n += 1\nf()\nprint(n)",
    "a dataclass with text annotations": (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass A:\n    x: int\nprint(A(1))"
    ),
    "no future of ours": "def f(x: print('evaluated')): pass",
    "pickle of its own class": (
        "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)"
    ),
    "readline, then the rest": "import sys\nprint(sys.stdin.readline(), sys.stdin.read())",
    "binary input": "import sys\nprint(sys.stdin.buffer.readline(), sys.stdin.buffer.read())",
    "os.read": "import os\nprint(os.read(0, 100))",
    "opened by number": "print(open(0).read().split())",
    "end of input": "input()\ninput()\ninput()",
    "binary output": "import sys\nsys.stdout.buffer.write(bytes(range(256)))",
    "recursion limit": "import sys\nprint(sys.getrecursionlimit())",
    "unbounded recursion": "def f(): f()\nf()",
    "dies of a signal": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "excepthook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1 / 0",
    "hash seed": "print(hash('flexmg'))",
    "a latin-1 cookie": "# coding: latin-1\nprint('caf\u00e9')",
    "carriage returns": "if True:\r\n    print(1)\r\n",
    "an empty program": "",
    "a return at the top": "return 5",
    "a NUL": "print(1)\0",
    "a tab after spaces": "if 1:\n        x = 1\n\ty = 2",
}


@pytest.mark.parametrize("program", LIKE_PYTHON.values(), ids=LIKE_PYTHON.keys())
def test_a_program_fares_as_with_python(tmp_path, program):
    file = tmp_path / "program.py"
    file.write_bytes(program.encode())
    stdin = b"first\nsecond\n"
    plain = subprocess.run(
        [os.path.realpath(sys.executable), "-s", "-P", str(file)],
        input=stdin,
        capture_output=True,
        env={"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"},
    )
    ours = run(program, stdin.decode())
    code = ours.exit_code if ours.signal is None else -ours.signal
    assert (ours.stdout, code) == (plain.stdout, plain.returncode)


def test_long_numbers_are_printed():
    assert run("print(7 ** 6000)").stdout.strip() == str_of_power(7, 6000)


def str_of_power(base, exponent):
    digits = [1]
    for _ in range(exponent):
        carry = 0
        for place, digit in enumerate(digits):
            carry, digits[place] = divmod(digit * base + carry, 10**18)
        if carry:
            digits.append(carry)
    first, *rest = reversed(digits)
    return (str(first) + "".join(f"{digit:018}" for digit in rest)).encode()


@pytest.mark.parametrize(
    "program",
    [
        "import sys\nsys.setrecursionlimit(10**6)\n"
        "def f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(50_000))",
        "import sys, threading\nsys.setrecursionlimit(10**6)\nthreading.stack_size(128 << 20)\n"
        "def f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
        "t = threading.Thread(target=lambda: print(f(50_000)))\nt.start()\nt.join()",
    ],
    ids=["plain", "in a thread with a large stack"],
)
def test_deep_recursion_is_possible(program):
    assert run(program).stdout == b"50000\n"


def test_asyncio_works():
    program = "import asyncio\nasync def f(): return 5\nprint(asyncio.run(f()))"
    assert run(program).stdout == b"5\n"


def test_a_traceback_shows_the_lines_of_the_program_and_none_of_ours():
    text = run("def f(x):\n    return 1 / x\n\nf(0)").stderr.decode()
    assert "return 1 / x" in text
    assert "flexmg" not in text and "launch.py" not in text


def test_programs_do_not_see_our_modules():
    program = "import sys\nprint([m for m in sys.modules if 'flexmg' in m or 'sandbox' in m])"
    assert run(program).stdout == b"[]\n"


def test_nothing_of_a_run_reaches_the_next_one():
    run("import builtins, json\nbuiltins.len = None\njson.dumps = None")
    assert run("import json\nprint(json.dumps(len('ab')))").stdout == b"2\n"


# ----------------------------------------------------------------------------- statuses

STATUSES = {
    "ok": ("print(1)", {}),
    "runtime_error": ("1 / 0", {}),
    "syntax_error": ("print(", {}),
    "time_limit": ("while True: pass", {"cpu_s": 0.2, "wall_s": 60}),
    "idle_limit": ("import time\ntime.sleep(60)", {"wall_s": 0.3}),
    "memory_limit": ("x = bytearray(10**9)", {"memory_mb": 64}),
    "output_limit": ("while True: print('x' * 1000)", {"output_kb": 8}),
}


@pytest.mark.parametrize("status", STATUSES)
def test_status(status):
    program, limits = STATUSES[status]
    assert run(program, **limits).status == status


MEMORY = {
    "at once": "x = bytearray(10**9)",
    "bit by bit": "x = []\nwhile True: x.append(bytearray(10**6))",
    "in a thread": (
        "import threading\nt = threading.Thread(target=lambda: bytearray(10**9))\nt.start()"
    ),
    "at exit": "import atexit\natexit.register(bytearray, 10**9)",
    "in a compiled constant": "x = [0] * (1 << 40)",
    "a mapping": "import mmap\nmmap.mmap(-1, 8 << 30)",
    "while an exception is handled": "try:\n    1 / 0\nexcept ValueError: pass\n"
    "finally:\n    bytearray(10**9)",
    "no memory for the report": "x = []\ntry:\n    while True: x.append(bytearray(1 << 12))\n"
    "except MemoryError:\n    raise",
}


@pytest.mark.parametrize("program", MEMORY.values(), ids=MEMORY.keys())
def test_lack_of_memory_anywhere_is_a_memory_limit(program):
    assert run(program, memory_mb=64).status == "memory_limit"


def test_a_program_may_use_the_memory_it_is_granted():
    assert run("x = bytearray(100 << 20)\nprint(len(x))", memory_mb=128).ok


def test_an_interpreter_itself_costs_a_program_no_memory():
    assert run("print(1)", memory_mb=1).ok


def test_output_up_to_the_limit_is_fine():
    found = run("import sys\nsys.stdout.write('x' * 8192)", output_kb=8)
    assert found.ok and len(found.stdout) == 8192


def test_one_byte_more_is_not():
    found = run("import sys\nsys.stdout.write('x' * 8193)", output_kb=8)
    assert found.status == "output_limit" and len(found.stdout) == 8192


def test_output_beyond_the_limit_whose_error_is_caught():
    program = "import signal, sys\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    program += "try:\n    print('x' * 9000, flush=True)\nexcept OSError: pass"
    assert run(program, output_kb=8).status == "output_limit"


def test_a_flood_of_errors_is_an_output_limit():
    found = run("import sys\nwhile True: sys.stderr.write('x' * 1000)", output_kb=8)
    assert found.status == "output_limit" and "stderr" in found.detail


def test_cpu_time_of_all_threads_counts():
    program = "import hashlib, threading\ndef f():\n    while True: hashlib.sha256(bytes(10**7))\n"
    program += "for _ in range(2): threading.Thread(target=f).start()"
    assert run(program, cpu_s=0.3, wall_s=60).status == "time_limit"


def test_time_asleep_is_no_cpu_time():
    assert run("import time\ntime.sleep(0.5)\nprint(1)", cpu_s=0.2, wall_s=30).ok


def test_more_cpu_time_than_allowed_is_never_ok():
    program = "import time\nwhile time.process_time() < 0.105: pass"
    assert run(program, cpu_s=0.1, wall_s=60).status == "time_limit"


def test_a_limit_cannot_be_caught():
    program = "import signal\nfor n in range(1, 65):\n    try: signal.signal(n, lambda *a: None)\n"
    program += "    except (OSError, ValueError): pass\nwhile True:\n"
    program += "    try:\n        while True: pass\n    except BaseException: pass"
    assert run(program, cpu_s=0.2, wall_s=60).status == "time_limit"


def test_a_segmentation_fault_is_a_runtime_error():
    found = run("import ctypes\nctypes.string_at(0)")
    assert (found.status, found.signal) == ("runtime_error", 11)


def test_a_syntax_error_at_run_time_is_a_runtime_error():
    assert run("eval('1 +')").status == "runtime_error"


def test_a_syntax_error_that_the_program_forges_is_a_runtime_error():
    program = "raise SyntaxError('x', ('<program>', 1, 1, 'x'))"
    assert run(program).status == "runtime_error"


# ------------------------------------------------------------------------- bad programs

BAD_SOURCES = {
    "NUL": "x = 1\0",
    "lone surrogate": "x = '\ud800'",
    "unknown cookie": "# coding: klingon\nprint(1)",
    "cookie of a codec between bytes": "# coding: hex\nprint(1)",
    "10 000 parentheses": "(" * 10_000,
    "deep nesting": "x = " + "-" * 100_000 + "1",
    "tab errors": "if 1:\n\tx = 1\n        y = 2",
    "10 MB of garbage": "?" * 10_000_000,
}


@pytest.mark.parametrize("program", BAD_SOURCES.values(), ids=BAD_SOURCES.keys())
def test_a_bad_source_is_a_verdict(program):
    assert run(program).status in ("syntax_error", "memory_limit", "runtime_error")


def test_source_that_is_no_utf8_is_a_syntax_error():
    assert run("x = '\udcff'").status == "syntax_error"


def test_ten_megabytes_of_source_run():
    assert run("x = 1\n" + "# " + "x" * 10_000_000 + "\nprint(x)", cpu_s=10).stdout == b"1\n"


def test_ten_megabytes_of_input_arrive():
    assert run("print(len(input()))", "x" * 10_000_000).stdout == b"10000000\n"


def test_input_with_lone_surrogates_is_no_error_of_ours():
    assert run("import sys\nsys.stdin.buffer.read()\nprint(1)", "\ud800").ok


def test_a_stdin_that_is_never_read_is_fine():
    assert run("print(1)", "x" * 1_000_000).ok


@pytest.mark.parametrize("limits", [{"cpu_s": 1e300}, {"wall_s": 1e300}, {"memory_mb": 10**300}])
def test_limits_beyond_all_measure_are_none(limits):
    assert run("print(1)", **limits).ok


def test_no_text_is_an_invalid_argument():
    with pytest.raises(InvalidArgument, match="program"):
        execute(5)


# --------------------------------------------------------------------------- who calls


def test_any_thread_may_call():
    found = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(run("print(int(input()) ** 2)", str(n))))
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(one.stdout) for one in found) == [n * n for n in range(20)]


def test_a_process_that_ends_in_mid_run_ends_everything(tmp_path):
    """A program that the caller abandons does not live on, whatever the caller dies of."""
    script = tmp_path / "caller.py"
    script.write_text(
        "import os, signal, sys, time\n"
        "from flexmg.envs.code.sandbox import Job, Pool\n"
        "from flexmg.envs.code import Limits\n"
        "pool = Pool(1)\n"
        "pool.run(Job('print(1)'))\n"
        "pool.submit(Job('while True: pass', limits=Limits(cpu_s=60)))\n"
        "time.sleep(0.3)\n"
        "print(pool.slots[0].pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, timeout=60)
    zygote = int(ended.stdout)
    assert gone(zygote)


def gone(pid, seconds=10.0):
    """Whether a process and its children end within some seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_the_end_of_the_process_is_not_held_up(tmp_path):
    script = "from flexmg.envs.code import execute\nprint(execute('print(1)').stdout)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"b'1\\n'\n", b"")
