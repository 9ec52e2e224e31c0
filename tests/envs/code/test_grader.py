"""Verdicts on programs, and the code domain."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from flexmg.envs.code import Limits, grade, grader
from flexmg.envs.code.grader import CodeDomain
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.code.values import encode
from flexmg.errors import InvalidArgument, ProblemError
from flexmg.problem import Domain, ExecutingDomain, Problem, WordedDomain

LIMITS = Limits(cpu_s=0.5, wall_s=2.0, memory_mb=128, output_kb=8)
RIGHT = "print(int(input()) ** 2)"


def problem(public=(2, 3), hidden=(4, 5, 6), limits=LIMITS):
    """Square a number."""
    cases = [tuple(Case(f"{n}\n", f"{n * n}\n") for n in part) for part in (public, hidden)]
    suite = Suite("stdin", *cases, limits=limits)
    return Problem("square", "Square it.", RIGHT, payload={"tests": suite.payload()})


def function():
    suite = Suite("calls", hidden=(Case([encode(3)], encode(9)),), entry="f", limits=LIMITS)
    return Problem("f", "Square it.", "def f(x): ...", payload={"tests": suite.payload()})


# ------------------------------------------------------------------------------- verdicts
ENDS = {
    "right": (RIGHT, "correct"),
    "wrong": ("print(1)", "wrong"),
    "silent": ("", "wrong"),
    "exits early": ("import sys; sys.exit(0)", "wrong"),
    "too slow": ("while True: pass", "timeout"),
    "asleep": ("import time; time.sleep(60)", "timeout"),
    "fails": ("print(1 / 0)", "crash"),
    "exit code": ("print(int(input()) ** 2); raise SystemExit(1)", "crash"),
    "too much memory": ("x = [0] * 10**9", "crash"),
    "too much output": ("print('x' * 100_000)", "crash"),
    "no Python": ("print(", "crash"),
    "a NUL": ("print(1)\0", "crash"),
    "a lone surrogate": ("print('\ud800')", "crash"),
    "an odd coding": ("# coding: no-such\nprint(1)", "crash"),
}


@pytest.mark.parametrize(("program", "status"), ENDS.values(), ids=ENDS.keys())
def test_status(program, status):
    verdict = grade(problem(), program)
    assert verdict.status == status
    assert verdict.score == (1.0 if status == "correct" else 0.0)


def test_ten_megabytes_of_source_are_judged():
    assert grade(problem(limits=Limits()), RIGHT + "\n#" + "x" * 10**7).correct


def test_the_verdict_holds_the_program():
    assert grade(problem(), RIGHT).answer == RIGHT


def test_the_detail_counts_and_names_the_first_failure():
    cheat = "n = int(input()); print(n * n if n < 5 else 0)"
    detail = grade(problem(), cheat).detail
    assert "test 4 (hidden)" in detail and "of 5 tests" in detail and "token 1 is wrong" in detail


def test_the_detail_never_tells_what_a_hidden_test_expects():
    hidden = problem(public=(), hidden=(111,))
    assert "12321" not in grade(hidden, "print(input())").detail


def test_a_program_must_pass_public_tests_too():
    assert not grade(problem(), "n = int(input()); print(n * n if n > 3 else 0)").correct


def test_the_share_passed_as_score():
    verdict = grade(problem(), "n = int(input()); print(n * n if n % 2 else 0)", score="fraction")
    assert (verdict.score, verdict.status) == (2 / 5, "wrong")
    assert verdict.detail.startswith("passed 2 of 5 tests; test 1 (public)")


@pytest.mark.parametrize("score", ["all", "fraction"])
def test_a_right_program_scores_one(score):
    assert grade(problem(), RIGHT, score=score).score == 1.0


def test_the_share_counts_every_failure_once():
    mixed = "n = int(input())\nif n == 3: 1 / 0\nif n == 4:\n  while True: pass\nprint(n * n)"
    verdict = grade(problem(), mixed, score="fraction")
    assert (verdict.score, verdict.status) == (3 / 5, "crash")


def test_functions_are_called():
    assert grade(function(), "def f(x): return x * x").correct
    assert grade(function(), "def f(x): return x").status == "wrong"
    assert grade(function(), "def g(x): return x * x").status == "crash"


@pytest.mark.parametrize(
    "payload",
    [{}, {"tests": None}, {"tests": {"kind": "stdin"}}, {"tests": {"kind": "stdin", "hidden": []}}],
)
def test_a_problem_without_tests_is_no_problem(payload):
    with pytest.raises(ProblemError):
        grade(Problem("p", "Do it.", "tests", payload=payload), "print(1)")


@pytest.mark.parametrize(
    "arguments", [{"score": "half"}, {"sandbox": "none"}, {"program": None}, {"program": b"x = 1"}]
)
def test_settings_that_make_no_sense(arguments):
    with pytest.raises(InvalidArgument):
        grade(problem(), **{"program": RIGHT, **arguments})


def test_verdicts_do_not_depend_on_load():
    """0.4 s of CPU under limits below and above, eight at once on fewer processors."""
    busy = "import time\nwhile time.process_time() < 0.4: pass\nprint(int(input()) ** 2)"
    enough = problem((2,), (), Limits(cpu_s=1.0))
    too_little = problem((2,), (), Limits(cpu_s=0.2))
    with ThreadPoolExecutor(8) as threads:
        crowd = [threads.submit(grade, one, busy) for one in [enough, too_little] * 4]
        found = [future.result().status for future in crowd]
    assert found == [grade(enough, busy).status, grade(too_little, busy).status] * 4
    assert found[:2] == ["correct", "timeout"]


# -------------------------------------------------------------------------------- the domain
@pytest.fixture(scope="module")
def domain():
    return CodeDomain()


def reply(program):
    return f"Here it is.\n```python\n{program}\n```\n"


@pytest.mark.parametrize("protocol", [Domain, WordedDomain, ExecutingDomain])
def test_it_is_a_domain(domain, protocol):
    assert isinstance(domain, protocol) and domain.name == "code"


def test_the_program_of_a_reply_is_judged(domain):
    verdict = domain.grade(problem(), reply(RIGHT))
    assert (verdict.status, verdict.rule) == ("correct", "block")


def test_a_reply_without_a_program_is_unparseable(domain):
    verdict = domain.grade(problem(), "I do not know.")
    assert (verdict.status, verdict.score, verdict.answer) == ("unparseable", 0.0, None)


def test_a_program_judged_twice_has_one_verdict(domain):
    first, second = (domain.grade(problem(), reply(RIGHT)) for _ in range(2))
    assert first == second


def test_what_is_remembered_belongs_to_its_problem(domain):
    assert domain.grade(problem(), reply(RIGHT)).correct
    cubes = Suite("stdin", hidden=(Case("2\n", "8\n"),), limits=LIMITS)
    other = Problem("square", "Square it.", RIGHT, payload={"tests": cubes.payload()})
    assert not domain.grade(other, reply(RIGHT)).correct


class TestMemory:
    """A program is judged once as long as its verdict is remembered."""

    @pytest.fixture
    def judged(self, monkeypatch):
        """The programs that were really judged, in their order."""
        programs = []

        def note(problem, program, **settings):
            programs.append(program.strip())
            return grade(problem, program, **settings)

        monkeypatch.setattr(grader, "grade", note)
        return programs

    def ask(self, domain, *programs):
        for program in programs:
            assert domain.grade(problem((2,), ()), reply(program)).correct

    def test_a_program_is_judged_once(self, judged):
        self.ask(CodeDomain(), RIGHT, RIGHT)
        assert judged == [RIGHT]

    def test_the_oldest_verdict_is_forgotten_first(self, judged, monkeypatch):
        monkeypatch.setattr(grader, "MOST_REMEMBERED", 2)
        self.ask(CodeDomain(), RIGHT, "print(4)", RIGHT, "print(2 + 2)", RIGHT, "print(4)")
        assert judged == [RIGHT, "print(4)", "print(2 + 2)", "print(4)"]

    def test_long_programs_are_not_remembered(self, judged):
        long = f"{RIGHT}\n#{'x' * grader.LONGEST_REMEMBERED}"
        self.ask(CodeDomain(), long, long)
        assert judged == [long, long]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_judges_alike(again):
    copied = again(CodeDomain(score="fraction"))
    assert copied.score == "fraction" and copied.grade(problem(), reply(RIGHT)).correct


@pytest.mark.parametrize("settings", [{"sandbox": "none"}, {"score": "half"}])
def test_a_domain_with_senseless_settings(settings):
    with pytest.raises(InvalidArgument):
        CodeDomain(**settings)


SAME = {
    "white space": ("x=1", "x  =  1"),
    "comments": ("x = 1  # one", "x = 1"),
    "blank lines": ("x = 1\n\n\ny = 2", "x = 1\ny = 2"),
    "quotes": ("x = 'a'", 'x = "a"'),
    "brackets": ("x = (1)", "x = 1"),
    "digits": ("x = 1_000", "x = 0x3e8"),
    "line ends": ("x = 1\r\ny = 2", "x = 1\ny = 2"),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME.keys())
def test_spellings_of_one_program_are_one_vote(domain, one, other):
    assert domain.answer_key(problem(), reply(one)) == domain.answer_key(problem(), reply(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [("x = 1", "x = 2"), ("x = 1", "x = 1.0"), ("x = 1", "x = True"), ("x = (", "x = [")],
)
def test_different_programs_are_different_votes(domain, one, other):
    assert domain.answer_key(problem(), reply(one)) != domain.answer_key(problem(), reply(other))


def test_no_program_is_no_vote(domain):
    assert domain.answer_key(problem(), "I do not know.") is None


@pytest.mark.parametrize("program", ["\ud800", "x\0", "(" * 10_000, "1+" * 50_000 + "1"])
def test_odd_programs_have_votes_too(domain, program):
    assert domain.answer_key(problem(), reply(program))


def test_a_vote_runs_nothing(domain, tmp_path):
    mark = tmp_path / "mark"
    assert domain.answer_key(problem(), reply(f"open({str(mark)!r}, 'w')"))
    assert not mark.exists()
