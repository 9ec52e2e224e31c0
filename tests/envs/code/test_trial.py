"""What agents read of their program's run on the public tests."""

import pytest

from flexmg.envs.code.grader import CodeDomain
from flexmg.envs.code.sandbox import Limits
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.code.trial import LONGEST_REPORT
from flexmg.envs.code.values import encode
from flexmg.problem import Problem

LIMITS = Limits(cpu_s=0.5, wall_s=2.0, memory_mb=128, output_kb=8)


@pytest.fixture(scope="module")
def domain():
    return CodeDomain()


def squares(public=((2, 4), (3, 9)), hidden=((1234567, 1524155677489),)):
    return Suite(
        "stdin",
        public=tuple(Case(f"{n}\n", f"{square}\n") for n, square in public),
        hidden=tuple(Case(f"{n}\n", f"{square}\n") for n, square in hidden),
        limits=LIMITS,
    )


def tried(domain, program, suite=None):
    tests = (suite or squares()).payload()
    problem = Problem("square", "Square it.", "tests", payload={"tests": tests})
    return domain.trial(problem, f"```python\n{program}\n```")


def test_a_right_program(domain):
    assert tried(domain, "print(int(input()) ** 2)") == "Public tests passed: 2 of 2."


def test_a_wrong_program_is_shown_input_expectation_and_output(domain):
    assert tried(domain, "print(int(input()) * 2)").splitlines() == [
        "Public tests passed: 1 of 2.",
        "Input '3': expected '9', got 6.",
    ]


def test_a_function_is_shown_as_a_call(domain):
    suite = Suite("calls", public=(Case([encode(3)], encode(9)),), entry="f", limits=LIMITS)
    assert tried(domain, "def f(x): return 2 * x", suite).splitlines() == [
        "Public tests passed: 0 of 1.",
        "f(3): expected 9, got 6.",
    ]


def test_nothing_of_hidden_tests_is_told(domain):
    assert "1234567" not in tried(domain, "print(int(input()) * 2)")
    assert "1524155677489" not in tried(domain, "print(open(0).read())")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("while True: pass", "it takes too long"),
        ("import time\ntime.sleep(60)", "it waits for ever"),
        ("x = [0] * 10**9\nprint(x)", "it needs too much memory"),
        ("print('x' * 100_000)", "it writes too much"),
        ("print(", "it is not valid Python"),
        ("print(1 / 0)", "it fails (ZeroDivisionError: division by zero)"),
    ],
)
def test_how_a_program_ended(domain, program, said):
    report = tried(domain, program, squares(public=((2, 4),)))
    assert report.splitlines()[1] == f"Input '2': {said}."


def test_silence_is_said(domain):
    report = tried(domain, "pass", squares(public=((2, 4),)))
    assert report.endswith("expected '4', got nothing.")


@pytest.mark.parametrize(
    "program",
    ["print(object())", "raise ValueError(object())", "print(input, hash('a'), {'a','b'})"],
)
def test_the_same_program_has_the_same_report(domain, program):
    reports = {tried(domain, program) for _ in range(4)}
    assert len(reports) == 1


def test_addresses_are_left_out(domain):
    assert "got <object object at 0x...>" in tried(domain, "print(object())")


def test_numbers_in_hexadecimal_are_kept(domain):
    assert "got 0xdeadbeef." in tried(domain, "print(hex(0xdeadbeef))")


def test_a_long_report_is_cut_at_a_whole_line(domain):
    many = squares(public=[(10**150 + n, 1) for n in range(20)])
    report = tried(domain, "print(input() * 3)", many)
    assert len(report) <= LONGEST_REPORT
    assert report.startswith("Public tests passed: 0 of 20.\n") and report.endswith(".")


def test_a_reply_without_a_program(domain):
    problem = Problem("square", "Square it.", "tests", payload={"tests": squares().payload()})
    assert domain.trial(problem, "I do not know.") == "No program was found in the reply."


@pytest.mark.parametrize(("program", "word"), [("x = 1", "is valid"), ("x = (", "is not valid")])
def test_without_public_tests_it_is_only_read(domain, program, word):
    report = tried(domain, program, squares(public=()))
    assert report == f"There are no public tests. The program {word} Python."
