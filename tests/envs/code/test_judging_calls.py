"""Function calls: values in, values out, all calls of a problem in one run."""

from __future__ import annotations

import pytest

from flexmg.envs.code.judging.calls import judge
from flexmg.envs.code.sandbox import Limits, shared_pool
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.code.values import encode
from flexmg.errors import ProblemError


class Counting:
    """A pool that counts its runs."""

    def __init__(self):
        self.pool = shared_pool()
        self.runs = 0

    def run(self, job):
        self.runs += 1
        return self.pool.run(job)


def findings(program, *calls, fail_fast=False, pool=None, **settings):
    """Findings on calls, each the arguments and, last, the expected value."""
    cases = tuple(Case([encode(one) for one in given], encode(value)) for *given, value in calls)
    suite = Suite("calls", hidden=cases, **{"entry": "f", **settings})
    return judge(suite, program, lambda purpose: pool or shared_pool(), cases, fail_fast=fail_fast)


def passed(*args, **settings):
    return [one.passed for one in findings(*args, **settings)]


def statuses(*args, **settings):
    return [one.status for one in findings(*args, **settings)]


SQUARE = "def f(x):\n    return x * x\n"


def test_each_call_is_judged_by_its_value():
    assert passed(SQUARE, (2, 4), (3, 8), (4, 16)) == [True, False, True]


def test_all_calls_share_one_run():
    pool = Counting()
    findings(SQUARE, *[(n, n * n) for n in range(20)], pool=pool)
    assert pool.runs == 1


def test_a_fast_judge_stops_at_the_first_failure():
    assert passed(SQUARE, (2, 4), (3, 8), (4, 16), fail_fast=True) == [True, False]


@pytest.mark.parametrize(
    "value", [(1, 2), {1, 2}, {1: "a", (2,): None}, 3 + 4j, b"\x00", float("inf"), [10**5000]]
)
def test_builtin_values_travel_both_ways(value):
    assert passed("def f(x):\n    return x\n", (value, value)) == [True]


def test_a_tuple_is_no_list_where_values_are_exact():
    assert passed("def f(x):\n    return (x,)\n", (1, [1])) == [False]


def test_a_tuple_is_a_list_where_they_come_from_json():
    assert passed("def f(x):\n    return (x,)\n", (1, [1]), exact=False) == [True]


def test_decimals_from_json_have_a_tolerance():
    assert passed("def f(x):\n    return x / 3\n", (1.0, 0.33333334), exact=False) == [True]


def test_any_order_is_a_flag():
    flags = frozenset({"any_order"})
    assert passed("def f(x):\n    return x[::-1]\n", ([1, 2, 2], [1, 2, 2]), flags=flags) == [True]


@pytest.mark.parametrize(
    ("entry", "program"),
    [
        ("f", SQUARE),
        ("f", "class Solution:\n    def f(self, x):\n        return x * x\n"),
        ("Solution.f", "class Solution:\n    def f(self, x):\n        return x * x\n"),
        ("Solution.f", SQUARE),
    ],
)
def test_an_entry_is_found_as_a_function_or_as_a_method(entry, program):
    assert passed(program, (3, 9), entry=entry) == [True]


def test_each_call_of_a_method_has_an_instance_of_its_own():
    program = (
        "class Solution:\n"
        "    def __init__(self):\n        self.n = 0\n"
        "    def f(self):\n        self.n += 1\n        return self.n\n"
    )
    assert passed(program, (1,), (1,), entry="Solution.f") == [True, True]


def test_the_prelude_runs_before_the_program():
    program = "class Solution:\n    def f(self, x: Optional[int]) -> int:\n        return one + x\n"
    prelude = "from typing import Optional\none = 1\n"
    assert passed(program, (2, 3), entry="Solution.f", prelude=prelude) == [True]


def test_the_set_up_runs_after_the_program():
    assert passed("k = 1\ndef f():\n    return k\n", (2,), setup="k = 2") == [True]


def test_a_main_block_does_not_run():
    program = SQUARE + "if __name__ == '__main__':\n    raise SystemExit\n"
    assert passed(program, (2, 4)) == [True]


def test_standard_input_is_empty():
    program = "import sys\nseen = sys.stdin.read()\ndef f():\n    return seen\n"
    assert passed(program, ("",)) == [True]


def test_dataclasses_and_pickles_find_their_module():
    program = (
        "import pickle\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass P:\n    x: int\n"
        "def f(x):\n    return pickle.loads(pickle.dumps(P(x))).x\n"
    )
    assert passed(program, (5, 5)) == [True]


def test_what_is_printed_is_no_answer():
    assert passed("def f(x):\n    print(x)\n", (4, 4)) == [False]


# -- failures ----------------------------------------------------------------------------
def test_an_exception_fails_its_own_call_only():
    program = "def f(x):\n    return 6 // x\n"
    assert statuses(program, (2, 3), (0, 0), (3, 2)) == ["ok", "runtime_error", "ok"]


def test_an_exception_is_named():
    assert "ZeroDivisionError" in findings("def f(x):\n    return 6 // x\n", (0, 0))[0].detail


@pytest.mark.parametrize("end", ["raise SystemExit(0)", "__import__('os')._exit(0)"])
def test_ending_the_process_fails_the_call(end):
    assert statuses(f"def f(x):\n    {end}\n", (2, 4)) == ["runtime_error"]


def test_calls_after_one_that_ended_the_process_are_judged():
    program = "import os\ndef f(x):\n    return os._exit(0) if x == 2 else x\n"
    assert passed(program, (1, 1), (2, 2), (3, 3)) == [True, False, True]


def test_a_program_that_ends_while_it_is_loaded_fails_every_call():
    assert statuses(SQUARE + "raise SystemExit(0)\n", (2, 4), (3, 9)) == ["runtime_error"] * 2


def test_such_a_program_is_not_run_again():
    pool = Counting()
    findings(SQUARE + "raise SystemExit(0)\n", (2, 4), (3, 9), pool=pool)
    assert pool.runs == 1


def test_a_program_that_is_no_python_is_a_syntax_error():
    assert statuses("def f(x) return x\n", (2, 4)) == ["syntax_error"]


def test_a_missing_function_is_named():
    assert "defines no 'f'" in findings("def g(x):\n    return x\n", (2, 4))[0].detail


def test_an_endless_call_is_a_time_limit():
    program = "def f(x):\n    while x:\n        pass\n"
    limits = Limits(cpu_s=0.3)
    assert statuses(program, (0, None), (1, 0), (0, None), limits=limits) == [
        "ok",
        "time_limit",
        "ok",
    ]


def test_the_time_limit_holds_per_call():
    program = (
        "import time\ndef f(x):\n"
        "    end = time.process_time() + 0.2\n"
        "    while time.process_time() < end:\n        pass\n    return x\n"
    )
    assert passed(program, *[(n, n) for n in range(6)], limits=Limits(cpu_s=0.6)) == [True] * 6


def test_too_much_memory_is_a_memory_limit():
    assert statuses("def f(x):\n    return [0] * 10**10\n", (1, 1)) == ["memory_limit"]


def test_results_that_do_not_fit_into_one_file_are_asked_for_again():
    program = "def f(x):\n    return 'a' * x\n"
    calls = [(400_000, "a" * 400_000)] * 4
    assert passed(program, *calls) == [True] * 4


def test_a_result_that_fits_into_no_file_is_an_output_limit():
    assert statuses("def f(x):\n    return 'a' * x\n", (2_000_000, "a")) == ["output_limit"]


def test_an_expected_value_that_is_not_encoded_is_the_problems_fault():
    suite = Suite("calls", hidden=(Case([1], {"a": 1, "b": 2}),), entry="f")
    with pytest.raises(ProblemError, match="not encoded"):
        judge(suite, SQUARE, lambda purpose: shared_pool(), suite.cases, fail_fast=True)


# -- tricks ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "program",
    [
        "class E(int):\n    def __eq__(s, o): return True\ndef f(x):\n    return E(4)\n",
        "class E:\n    def __eq__(s, o): return True\ndef f(x):\n    return E()\n",
        "class L(list):\n    def __eq__(s, o): return True\ndef f(x):\n    return L([4])\n",
        "def f(x):\n    raise Exception('{\"value\": 4}')\n",
        "import json\njson.dumps = lambda *a, **k: '{\"value\": 5}'\ndef f(x):\n    return 5\n",
        "import os\nfor n in range(3, 64):\n"
        "    try: os.write(n, b'{\"value\": 5}\\n' * 9)\n    except OSError: pass\n"
        "def f(x):\n    return 5\n",
        "import os\nfor n in range(3, 64):\n"
        "    try: os.ftruncate(n, 0)\n    except OSError: pass\n"
        "def f(x):\n    return 5\n",
        "def f(x):\n    return range(10**15)\n",
        "def f(x):\n    x = []\n    for _ in range(5000): x = [x]\n    return x\n",
        "def f(x):\n    x = []\n    x.append(x)\n    return x\n",
        "def f(x):\n    return {k * (2**61 - 1) for k in range(2000)}\n",
        "import gc, sys\n"
        "def f(x):\n"
        "    frame = sys._getframe()\n"
        "    while frame:\n"
        "        if '4' in map(str, frame.f_locals.get('expected', ())): return 4\n"
        "        frame = frame.f_back\n"
        "    return 5\n",
    ],
)
def test_a_trick_does_not_pass(program):
    assert passed(program, (2, 4)) == [False]
