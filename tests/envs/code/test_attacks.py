"""Programs that would rather have the verdict than the answer, as the grader meets them."""

from __future__ import annotations

import time

import pytest

from flexmg.envs.code import Limits, grade
from flexmg.envs.code.output import difference
from flexmg.envs.code.sandbox import Job, Pool
from flexmg.envs.code.suite import Case, Suite
from flexmg.problem import Problem

LIMITS = Limits(cpu_s=2.0, memory_mb=256)


def judged(program, suite):
    return grade(Problem("p", "Add one.", "tests", payload={"tests": suite.payload()}), program)


def calls(program):
    """A function f that is to add one."""
    return judged(
        program, Suite("calls", entry="f", hidden=(Case([41], 42), Case([1], 2)), limits=LIMITS)
    )


def asserts(program, code="assert f(41) == 42\nassert f(1) == 2\n"):
    return judged(program, Suite("asserts", entry="f", hidden=(Case(code),), limits=LIMITS))


CANDIDATES = {
    "equal to everything": """
class E:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    def __hash__(self): return 0
def f(x): return E()
""",
    "a number that equals everything": """
class E(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
    def __repr__(self): return '42'
def f(x): return E(0)
""",
    "a text that pretends to be JSON": "def f(x): return '{\"value\": 42}'\n",
    "patched json": """
import json, json.encoder
json.dumps = lambda *a, **k: '{"value": 42}'
json.encoder.JSONEncoder.encode = lambda *a, **k: '{"value": 42}'
def f(x): return 0
""",
    "hard exit": "import os\ndef f(x): os._exit(0)\n",
    "exit": "def f(x): raise SystemExit(0)\n",
    "exit at once": "def f(x): return x + 1\nimport sys\nsys.exit(0)\n",
    "results of one's own": """
import os
for number in range(3, 64):
    try: os.write(number, b'{"value": 1000}\\n')
    except OSError: pass
def f(x): return 0
""",
    "a patched assert machinery": """
import builtins
builtins.AssertionError = type('Nothing', (Exception,), {})
builtins.isinstance = lambda *a: True
def f(x): return 0
""",
    "walks the frames": """
import sys
def f(x):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):
            if isinstance(value, int) and value in (42, 2):
                return value
        frame = frame.f_back
    return 0
""",
    "no function": "g = 1\n",
    "None": "def f(x): return None\n",
}


@pytest.mark.parametrize("name", CANDIDATES)
def test_none_of_them_passes_a_function_problem(name):
    assert not calls(CANDIDATES[name]).correct


@pytest.mark.parametrize("name", CANDIDATES)
def test_none_of_them_passes_assert_tests(name):
    assert not asserts(CANDIDATES[name]).correct


@pytest.mark.parametrize("name", CANDIDATES)
def test_none_of_them_passes_tests_that_loop(name):
    """Test code in a sandbox of its own, the candidate in another."""
    assert not asserts(CANDIDATES[name], "for x in range(5):\n    assert f(x) == x + 1\n").correct


def test_the_right_function_passes_all_three():
    right = "def f(x):\n    return x + 1\n"
    assert calls(right).correct and asserts(right).correct
    assert asserts(right, "for x in range(5):\n    assert f(x) == x + 1\n").correct


BOMBS = {
    "deep nesting": "def f(x):\n    v = []\n    for _ in range(100_000): v = [v]\n    return v\n",
    "contains itself": "def f(x):\n    v = []\n    v.append(v)\n    return v\n",
    "a million digits": "def f(x): return 10 ** 1_000_000\n",
    "a very long text": "def f(x): return 'x' * 900_000\n",
    "a list of a hundred thousand": "def f(x): return list(range(100_000))\n",
    "equal hashes": "def f(x): return {k * (2**61 - 1) for k in range(20_000)}\n",
    "not a number": "def f(x): return float('nan')\n",
    "raw JSON nesting": (
        "import os\nfor n in range(3, 64):\n    try: os.write(n, b'[' * 500_000 + b'\\n')\n"
        "    except OSError: pass\ndef f(x): return 0\n"
    ),
    "raw digits": (
        "import os\nfor n in range(3, 64):\n"
        "    try: os.write(n, b'{\"value\": ' + b'7' * 500_000 + b'}\\n')\n"
        "    except OSError: pass\ndef f(x): return 0\n"
    ),
    "not UTF-8": (
        "import os\nfor n in range(3, 64):\n    try: os.write(n, bytes(range(256)) + b'\\n')\n"
        "    except OSError: pass\ndef f(x): return 0\n"
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_result_cannot_hurt_the_parent(name):
    """It is not passed, nothing is raised, and the parent's own work stays small."""
    used = time.process_time()
    verdict = calls(BOMBS[name])
    assert not verdict.correct and verdict.status != "infra_error"
    assert time.process_time() - used < 5.0


def test_tokens_of_a_megabyte_are_compared_in_no_time():
    used = time.process_time()
    assert difference("1" * 1_000_000, b"1" * 999_999 + b"2")
    assert difference("1.5", b"1." + b"5" * 1_000_000)
    assert not difference("7" * 1_000_000, b"7" * 1_000_000)
    assert time.process_time() - used < 2.0


def test_nothing_can_be_left_for_a_second_try():
    """A program that would behave differently had it run before, run twice on one worker."""
    program = """
import builtins, os, sys
seen = hasattr(builtins, 'seen') or os.path.exists('/tmp/flexmg-seen') or 'seen' in sys.modules
builtins.seen = sys.modules['seen'] = True
try: open('/tmp/flexmg-seen', 'w')
except OSError: pass
print('before' if seen else 'never')
"""
    with Pool(1) as pool:
        runs = pool.run_all([Job(program)] * 4)
    assert {run.stdout for run in runs} == {b"never\n"}


def test_random_numbers_are_the_same_every_time():
    with Pool(2) as pool:
        runs = pool.run_all([Job("import random\nprint(random.random(), hash('a'))")] * 6)
    assert len({run.stdout for run in runs}) == 1 and runs[0].stdout


def test_an_object_in_a_list_does_not_put_the_tests_into_the_programs_process():
    """Tests that hand results back must not be forced beside the program by what it returns."""
    program = """
import gc
def f(x):
    for thing in gc.get_objects():
        if isinstance(thing, dict) and 'nonce' in thing:
            import os
            for number in range(3, 64):
                try: os.write(number, thing['nonce'].encode())
                except OSError: pass
            os._exit(0)
    return [object()]
def g(x): return 0
"""
    verdict = asserts(program, "for x in range(3):\n    y = f(x)\n    assert g(y) == 7\n")
    assert not verdict.correct and "weak" not in verdict.detail


def test_an_exception_that_ends_loops_in_silence_is_an_error():
    program = "def f(x): raise StopIteration\n"
    code = "xs = range(3)\nfor _ in xs:\n    assert all(map(lambda x: f(x) == x + 1, xs))\n"
    assert not asserts(program, code).correct


@pytest.mark.parametrize("number", [34, 40, 64])
def test_a_real_time_signal_is_a_crash(number):
    program = f"import os\nos.kill(os.getpid(), {number})\n"
    verdict = judged(program, Suite("stdin", hidden=(Case("", "42\n"),), limits=LIMITS))
    assert verdict.status == "crash" and "ended by" in verdict.detail
