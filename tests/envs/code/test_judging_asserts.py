"""Assert tests: taken apart, in dialogue with a second process, or (weakly) in one process."""

from __future__ import annotations

import gc
import os
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import pytest

from flexmg.envs.code.judging.asserts import judge
from flexmg.envs.code.judging.names import names_of
from flexmg.envs.code.judging.rewriting import checks
from flexmg.envs.code.sandbox import Execution, Job, Limits, Pool, shared_pool
from flexmg.envs.code.suite import Case, Suite
from flexmg.errors import ProblemError


def pool_of(purpose):
    return shared_pool("strict", purpose)


def findings(program, *tests, fail_fast=False, pools=pool_of, **settings):
    suite = Suite("asserts", hidden=tuple(map(Case, tests)), **settings)
    return judge(suite, program, pools, suite.cases, fail_fast=fail_fast)


def passed(*args, **settings):
    return [one.passed for one in findings(*args, **settings)]


def statuses(*args, **settings):
    return [one.status for one in findings(*args, **settings)]


def taken_apart(tests, entry="f", prelude="", setup=""):
    names = names_of(tests, entry=entry, prelude=prelude, setup=setup)
    return checks(tests, entry, names)


def sent(tests, **settings):
    """All source that the candidate's process is sent."""
    found = taken_apart(tests, **settings)
    return (
        None if found is None else [text for one in found for c in one.calls for text in c.values()]
    )


SQUARE = "def f(x):\n    return x * x\n"
LOOP = "for i in range(4):\n    assert f(i) == i * i\n"
NODE = "class Node:\n    def __init__(self, v):\n        self.v, self.left = v, None\n"
HEIGHT = NODE + "def height(n):\n    return 1 + height(n.left) if n else 0\n"


# -- taking apart ------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("tests", "sources"),
    [
        ("assert f(2) == 4", ["__candidate__(2)"]),
        ("assert 4 == f(2)", ["__candidate__(2)"]),
        ("assert f(2) == f(-2)", ["__candidate__(2)", "__candidate__(-2)"]),
        ("assert not f(2)", ["not not (__candidate__(2))"]),
        ("assert f(2) is None, 'message'", ["__candidate__(2)"]),
        ("assert abs(f(2) - 0.5) < 1e-6", ["__candidate__(2)"]),
        ("import math\nassert math.isclose(f(2), 0.5)", ["__candidate__(2)"]),
        ("from math import isclose\nassert isclose(f(2), 0.5)", ["__candidate__(2)"]),
        ("assert set(f([1])) == set((1, 2))", ["__candidate__([1])"]),
        ("assert round(f(2), 2) == 0.33", ["__candidate__(2)"]),
        ("assert f(2)[0].x == 3", ["__candidate__(2)[0].x"]),
        ("assert f(g(2)) == 3", ["__candidate__(g(2))"]),
        ("x, y = 1, 2\nassert f(2) == 4", None),
        ("x = [1, 2]\nassert f(x) == 4", ["__candidate__([1, 2])"]),
        ("expected = [9, 8]\nassert f(2) == expected", ["__candidate__(2)"]),
        ("a = Acc()\nassert a.n == 4", ["__tests_a = Acc()", "__tests_a.n"]),
        ("def check(candidate):\n    assert candidate(2) == 4\n", ["__candidate__(2)"]),
        (
            "import math\nassert f(math.pi) == 3",
            ["import math as __tests_math", "__candidate__(__tests_math.pi)"],
        ),
        ("x = [2, 1]\nf(x)\nassert x == [1, 2]", ["__tests_x = [2, 1]", "__candidate__(__tests_x)",
                                               "__tests_x"]),
        ("assert sorted(f(2), key=len) == []", None),
        ("assert all(f(x) == 1 for x in (1, 2))", None),
        ("ok = f(2) == 4\nassert ok", None),
        (LOOP, None),
        ("import random\nx = random.random()\nassert f(x) == x", None),
        ("def close(a):\n    return a < 1\nassert close(f(2))", None),
    ],
)  # fmt: skip
def test_the_candidate_is_sent_its_own_part_only(tests, sources):
    assert sent(tests) == sources


def test_a_function_of_the_preludes_is_not_the_candidates():
    assert sent("assert close(f(2))", prelude="def close(x):\n    return x < 1\n") is None


def test_what_the_set_up_makes_of_the_candidates_classes_is_over_there():
    assert sent("assert f(root) == 1", setup="root = Node(1)") == ["__candidate__(root)"]


def test_the_entry_may_be_called_like_something_of_pythons():
    assert sent("assert sum(10, 15) == 25", entry="sum") == ["__candidate__(10, 15)"]


def test_without_an_entry_a_name_of_pythons_may_be_the_candidates():
    assert sent("assert sum(10, 15) == 25", entry="") == ["sum(10, 15)"]


def test_a_known_name_is_pythons_even_if_the_tests_do_not_import_it():
    names = names_of(
        "assert f(2) == Counter('a') or f(2) == sys.getsizeof(2)", entry="f", prelude="", setup=""
    )
    assert names.candidate == {"f"}


# -- right and wrong programs, in each of the ways ---------------------------------------
RIGHT = [
    ("assert f(2) == 4", SQUARE),
    ("assert f(2) == 4\nassert f(3) == 9", SQUARE),
    ("assert 3 < f(2) <= 4 and f(1)", SQUARE),
    ("assert (f(1), f(2)) == (1, 4)", SQUARE),
    ("assert f(x=3) == 9", SQUARE),
    ("assert f(2)", "import re\ndef f(x):\n    return re.match('a', 'a')\n"),
    ("assert not f(2)", "def f(x):\n    return []\n"),
    ("assert list(f(3)) == [0, 1, 2]", "f = range"),
    ("assert f(1) == 10**5000", "def f(x):\n    return 10**5000\n"),
    ("assert isinstance(f(1), int)", SQUARE),
    ("assert apply(lambda x: x + 1, 3) == 4", "def apply(g, x):\n    return g(x)\n"),
    ("assert is_tree(root)", NODE + "def is_tree(r):\n    return isinstance(r, Node)\n"),
    ("root = Node(1)\nroot.left = Node(2)\nassert height(root) == 2", HEIGHT),
    ("x = [3, 1, 2]\nf(x)\nassert x == [1, 2, 3]", "def f(x):\n    x.sort()\n"),
    ("def check(candidate):\n    assert candidate(3) == 9\ncheck(f)", SQUARE),
    ("def check(candidate):\n    assert candidate(3) == 9\n    assert True, 'note'\n", SQUARE),
    # in dialogue
    (LOOP, SQUARE),
    ("assert all(f(x) == x * x for x in range(5))", SQUARE),
    ("def check(g):\n    assert g(3) == 9\n", SQUARE),
    ("import random\nx = random.random()\nassert f(x) == x * x", SQUARE),
    ("for n in range(3):\n    assert f(x=n) == n * n", SQUARE),
    ("for n in range(3):\n    top = Node(n)\n    top.left = Node(0)\n    assert height(top) == 2",
     HEIGHT),
    ("for n in range(3):\n    assert Node(n).v == n\n    assert Node(n)", HEIGHT),
    ("for n in range(3):\n    assert g(f, n) == n * n", SQUARE + "def g(h, x):\n    return h(x)\n"),
    ("for x in ([3, 1], [2, 1]):\n    f(x)\n    assert x[0] == 1", "def f(x):\n    x.sort()\n"),
    ("try:\n    f(-1)\nexcept ValueError:\n    pass\nelse:\n    assert False",
     "class Mine(ValueError):\n    pass\ndef f(x):\n    raise Mine('negative')\n"),
    ("import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
     "        self.assertEqual(f(2), 4)\n"
     "suite = unittest.defaultTestLoader.loadTestsFromTestCase(T)\n"
     "assert unittest.TextTestRunner().run(suite).wasSuccessful()", SQUARE),
    # in one process
    ("for n in range(3):\n    assert apply(lambda x: x + n, 3) == 3 + n",
     "def apply(g, x):\n    return g(x)\n"),
]  # fmt: skip


def settings_of(tests):
    return {
        "setup": "root = Node(1)\n" if "root)" in tests and "root =" not in tests else "",
        "entry": "f" if "check" in tests else "",
    }


@pytest.mark.parametrize(("tests", "program"), RIGHT)
def test_a_right_program_passes(tests, program):
    assert passed(program, tests, **settings_of(tests)) == [True]


@pytest.mark.parametrize(("tests", "program"), RIGHT[:-1])
def test_the_same_test_fails_a_program_that_returns_an_object(tests, program):
    names = ("f", "g", "apply", "is_tree", "height", "Node")
    wrong = "class E:\n    def __eq__(s, o): return True\n    def __bool__(s): return False\n"
    wrong += "".join(f"def {name}(*a, **k):\n    return E()\n" for name in names)
    if "not f(2)" in tests:
        wrong = wrong.replace("return False", "return True")
    assert passed(wrong, tests, **settings_of(tests)) == [False]


def test_only_objects_of_the_tests_own_are_judged_weakly():
    weak = [
        tests
        for tests, program in RIGHT
        for one in findings(program, tests, **settings_of(tests))
        if one.weak
    ]
    assert weak == [RIGHT[-1][0]]


def test_helper_functions_of_the_prelude_travel_with_a_bare_function():
    prelude = "from typing import List\ndef one():\n    return 1\n"
    program = "def f(xs: List[int]):\n    return xs + [one()]\n"
    tests = "def check(candidate):\n    assert candidate([]) == [1]\n"
    assert passed(program, tests, prelude=prelude, entry="f") == [True]


@pytest.mark.parametrize("entry", ["f", "Solution.f"])
@pytest.mark.parametrize(
    "program", [SQUARE, "class Solution:\n    def f(self, x):\n        return x * x\n"]
)
def test_the_candidate_may_be_a_function_or_a_method(entry, program):
    tests = "def check(candidate):\n    assert candidate(2) == 4\n"
    assert passed(program, tests, entry=entry) == [True]


def test_objects_of_the_preludes_classes_reach_a_method():
    prelude = "class TreeNode:\n    def __init__(self, val=0):\n        self.val = val\n"
    program = "class Solution:\n    def val(self, root):\n        return root.val\n"
    assert passed(program, "assert Solution().val(TreeNode(3)) == 3", prelude=prelude) == [True]


def test_each_case_has_a_finding():
    tests = ["assert f(2) == 4", LOOP, "assert f(2) == 5", "assert f(3) == 9"]
    assert passed(SQUARE, *tests) == [True, True, False, True]


def test_a_fast_judge_stops_at_the_first_failure():
    assert passed(SQUARE, "assert f(2) == 5", LOOP, fail_fast=True) == [False]


def test_a_case_that_ends_the_process_leaves_the_others_alone():
    program = "import os\ndef f(x):\n    return os._exit(0) if x == 2 else x * x\n"
    assert passed(program, "assert f(1) == 1", "assert f(2) == 4", "assert f(3) == 9") == [
        True,
        False,
        True,
    ]


def test_variables_of_the_tests_do_not_touch_the_programs():
    program = "root = 7\nclass Node:\n    pass\ndef f(n):\n    return root\n"
    assert passed(program, "root = Node()\nassert f(root) == 7") == [True]


# -- tricks ------------------------------------------------------------------------------
TRICKS = {
    "equal to everything": "class E(int):\n    def __eq__(s, o): return True\n"
    "    __hash__ = int.__hash__\ndef f(x):\n    return E(0)\n",
    "exit while loading": SQUARE + "import sys\nsys.exit(0)\n",
    "exit in the call": "def f(x):\n    raise SystemExit(0)\n",
    "hard exit while loading": SQUARE + "import os\nos._exit(0)\n",
    "hard exit in the call": "import os\ndef f(x):\n    os._exit(0)\n",
    "exit handler": "import atexit, os\natexit.register(os._exit, 0)\ndef f(x):\n    return -1\n",
    "looks for expected values": "def f(x):\n    g = globals()\n"
    "    return next((v for k, v in g.items() if 'expected' in k), -1)\n",
    "answers on every descriptor": "import os\nfor n in range(3, 64):\n    try:\n"
    "        os.write(n, b'{\"value\": 4}\\n{\"verdict\": \"passed\"}\\n' * 3)\n"
    "    except OSError: pass\ndef f(x):\n    return -1\n",
    "replaces what tests use": "import builtins, math\n"
    "builtins.abs = builtins.all = math.isclose = lambda *a, **k: True\n"
    "def close(*a):\n    return True\ndef f(x):\n    return -1\n",
    "empties its argument": "def f(x):\n    x.clear()\n    return []\n",
    "a range without end": "def f(x):\n    return range(10**15)\n",
    "a long reply": "def f(x):\n    return 'a' * 10**7\n",
    "a deep reply": "def f(x):\n    x = []\n    for _ in range(5000): x = [x]\n    return x\n",
    "raises an assertion": "def f(x):\n    raise AssertionError\n",
    "raises an import error": "def f(x):\n    raise ImportError('numpy')\n",
    "stops the tests": "def f(x):\n    raise StopIteration\n",
}  # fmt: skip
TESTS = {
    "assert": ("assert f(2) == 4\n", {}),
    "expected value in a variable": ("expected = 4\nassert f(2) == expected\n", {}),
    "isclose": ("import math\nassert math.isclose(f(2), 4)\n", {}),
    "argument in a variable": ("x = [2, 1]\nassert f(x) == sorted(x)\n", {}),
    "loop": (LOOP, {}),
    "loop over lists": ("for x in ([2, 1], [3, 2]):\n    assert list(f(x)) == sorted(x)\n", {}),
    "helper of the tests": (
        "def close(a, b):\n    return abs(a - b) < 1\nassert close(f(2), 4)\n", {}),
    "helper of the prelude": (
        "assert close(f(2), 4)\n", {"prelude": "def close(a, b):\n    return abs(a - b) < 1\n"}),
    "catches everything": ("try:\n    y = f(2)\nexcept:\n    y = 4\nassert y == 4 and f(3) == 9\n",
                           {}),
    "check": ("def check(candidate):\n    for i in (1, 2):\n"
              "        assert candidate(i) == i * i\n", {}),
}  # fmt: skip


@pytest.mark.parametrize("tests", TESTS)
@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_is_a_failure_of_the_program(trick, tests):
    code, settings = TESTS[tests]
    (finding,) = findings(TRICKS[trick], code, entry="f", **settings)
    assert (finding.passed, finding.status == "infra_error") == (False, False)


def test_a_message_of_a_hidden_test_is_not_told():
    (finding,) = findings(SQUARE, "for i in (2, 3):\n    assert f(i) == 0, f'{i * i + 77}'\n")
    assert "81" not in finding.detail


class Listening:
    """Pools that keep the jobs which they are given."""

    def __init__(self):
        self.jobs: dict[str, list[Job]] = {"candidates": [], "referees": []}

    def __call__(self, purpose):
        pool = pool_of(purpose)

        def heard(ask, job):
            self.jobs[purpose].append(job)
            return ask(job)

        return SimpleNamespace(run=partial(heard, pool.run), submit=partial(heard, pool.submit))


@pytest.mark.parametrize(
    "tests", ["assert f(2) == 31337\n", "for i in (2, 3):\n    assert f(i) == 31337\n"]
)
def test_the_candidates_process_is_never_given_what_is_expected(tests):
    listening = Listening()
    findings(SQUARE, tests, pools=listening)
    assert all(b"31337" not in job.request for job in listening.jobs["candidates"])


def test_plain_asserts_of_all_cases_share_one_run():
    listening = Listening()
    findings(SQUARE, *[f"assert f({n}) == {n * n}" for n in range(9)], pools=listening)
    assert len(listening.jobs["candidates"]) == 1


# -- how runs end ------------------------------------------------------------------------
@pytest.mark.parametrize("tests", ["assert f(2) == 4", LOOP])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("while True: pass", "time_limit"),
        ("return __import__('time').sleep(60)", "idle_limit"),
        ("return [0] * 10**10", "memory_limit"),
        ("return print('a' * 10**7)", "output_limit"),
        ("return __import__('os').abort()", "runtime_error"),
        ("return -1", "ok"),
    ],
)
def test_a_finding_says_how_the_run_ended(tests, body, status):
    limits = Limits(cpu_s=0.3, wall_s=1.5)
    assert statuses(f"def f(x):\n    {body}\n", tests, limits=limits) == [status]


@pytest.mark.parametrize("tests", ["assert f(2) == 4", LOOP])
def test_a_program_that_is_no_python_is_a_syntax_error(tests):
    assert statuses("def f(x) return x", tests) == ["syntax_error"]


@pytest.mark.parametrize("tests", ["assert f(2) == 4", LOOP])
def test_a_thread_left_behind_changes_nothing(tests):
    program = (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n" + SQUARE
    )
    assert passed(program, tests, limits=Limits(wall_s=1.0)) == [True]


def test_many_dialogues_at_once_do_not_wait_for_each_other():
    with Pool(1) as candidates, Pool(1) as referees, ThreadPoolExecutor(6) as threads:
        pools = {"candidates": candidates, "referees": referees}.__getitem__
        verdicts = threads.map(lambda _: passed(SQUARE, LOOP, LOOP, pools=pools), range(12))
        assert list(verdicts) == [[True, True]] * 12


def test_no_descriptor_is_left_open():
    with Pool(1) as candidates, Pool(1) as referees:
        pools = {"candidates": candidates, "referees": referees}.__getitem__
        passed(SQUARE, LOOP, pools=pools)
        gc.collect()  # what other tests left behind is not to be closed in between
        before = len(os.listdir("/proc/self/fd"))
        for program in (SQUARE, "def f(x): return 0", "raise SystemExit", "import os\nos.abort()"):
            passed(program, LOOP, pools=pools)
        assert len(os.listdir("/proc/self/fd")) == before


# -- the problem's faults ----------------------------------------------------------------
@pytest.mark.parametrize("tests", ["assert f(2) ==", "assert 1 == 1", "", "x = 1"])
def test_tests_that_cannot_tell_are_the_problems_fault(tests):
    with pytest.raises(ProblemError):
        findings(SQUARE, tests)


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        ("import no_such_module\nfor i in (1, 2):\n    assert f(i) == 4\n", "no_such_module"),
        ("def test_f():\n    assert f(2) == 4\n", "never calls"),
    ],
)
def test_tests_that_cannot_run_are_no_verdict_on_the_program(tests, why):
    (finding,) = findings(SQUARE, tests)
    assert finding.status == "infra_error" and why in finding.detail


def test_a_broken_pool_is_an_infra_error():
    class Broken:
        def __call__(self, purpose):
            return self

        def submit(self, job):
            future: Future[Execution] = Future()
            future.set_result(Execution("infra_error"))
            return future

    (finding,) = findings(SQUARE, LOOP, pools=Broken())
    assert finding.status == "infra_error"
