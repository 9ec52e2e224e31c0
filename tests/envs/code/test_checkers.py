"""Problems' own checkers: trusted code, fed with what nobody trusts."""

import pytest

from flexmg.envs.code import grade
from flexmg.envs.code.checkers import accepted
from flexmg.envs.code.sandbox import shared_pool
from flexmg.envs.code.suite import Case, Suite
from flexmg.errors import ProblemError
from flexmg.problem import Problem

DIVISOR = """
def check(stdin, out, gold):
    n, d = int(stdin), int(out)
    return 1 < d < n and n % d == 0
"""


def verdict(checker, out, stdin="12", gold="3"):
    output = out if isinstance(out, bytes) else out.encode()
    return accepted(checker, stdin, output, gold, shared_pool("strict", "referees"))


@pytest.mark.parametrize(("out", "is_right"), [("2", True), ("6\n", True), ("5", False)])
def test_a_function(out, is_right):
    assert verdict(DIVISOR, out)[0] is is_right


@pytest.mark.parametrize(("out", "is_right"), [("4", True), ("3", False)])
@pytest.mark.parametrize(
    "checker",
    [
        "int(out) == int(gold) + 1",
        "int(out) ==\n    int(gold) + 1",
        "int(out) == int(gold) + 1  # one more",
        "  int(out) == int(gold) + 1\n",
    ],
)
def test_an_expression(checker, out, is_right):
    assert verdict(checker, out)[0] is is_right


def test_what_a_checker_prints_is_no_verdict():
    chatty = "def check(stdin, out, gold):\n    print('accepted')\n    return out == 'yes'"
    assert verdict(chatty, "yes")[0] is True
    assert verdict(chatty, "no")[0] is False


@pytest.mark.parametrize("out", ["", "two", "2 2", "accepted", '"}'])
def test_what_it_cannot_read_is_not_accepted(out):
    passed, why = verdict(DIVISOR, out)
    assert passed is False and "could not make sense" in why


def test_an_output_that_costs_too_much_is_not_accepted():
    passed, why = verdict("len(set(range(10 ** int(out)))) > 0", "10")
    assert passed is False and "limit" in why


def test_bytes_that_are_no_text_are_not_accepted():
    assert verdict("True", b"\xff") == (False, "the output is not UTF-8")


def test_a_complaint_does_not_tell_the_stored_output():
    telling = "def check(stdin, out, gold):\n    assert out == gold, f'expected {gold}'\n"
    passed, why = verdict(telling, "2", gold="SECRET")
    assert passed is False and "SECRET" not in why


@pytest.mark.parametrize("checker", ["def check(", "1 +", "x = \0"])
def test_a_checker_that_is_no_python_is_a_fault_of_the_problem(checker):
    with pytest.raises(ProblemError, match="checker is no Python"):
        verdict(checker, "2")


def problem(**suite):
    tests = Suite("stdin", hidden=(Case("12", "3"),), **suite)
    return Problem("divisor", "Print a divisor.", "print(3)", payload={"tests": tests.payload()})


def test_a_checker_decides_in_place_of_the_stored_output():
    assert grade(problem(checker=DIVISOR), "print(4)").correct
    assert grade(problem(checker=DIVISOR), "print(5)").status == "wrong"


def test_a_checker_cannot_be_hung_by_an_output():
    slow = "any(True for _ in iter(lambda: out, ''))  and len([0] * 10**9 * len(out))"
    assert grade(problem(checker=slow), "print(4)").status == "wrong"


def test_without_a_checker_only_the_stored_answer_passes_and_the_detail_says_so():
    weak = problem(flags=frozenset(["any_valid"]))
    assert grade(weak, "print(3)").correct
    refused = grade(weak, "print(4)")
    assert refused.status == "wrong" and "no checker" in refused.detail
