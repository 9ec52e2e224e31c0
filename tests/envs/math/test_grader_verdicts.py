"""What a verdict says besides right and wrong, and the canonical form that votes count."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmg.envs.math import MathDomain, canonical, grade, is_equivalent
from flexmg.errors import InvalidArgument, ProblemError
from flexmg.problem import Domain, Problem


def test_a_verdict_names_the_answer_and_the_rule() -> None:
    verdict = grade("12", "So \\boxed{ 12 }.")
    assert (verdict.status, verdict.score, verdict.answer, verdict.rule) == (
        "correct", 1.0, " 12 ", "boxed",
    )  # fmt: skip


def test_a_reply_without_an_answer_is_unparseable() -> None:
    assert grade("12", "I ran out of").status == "unparseable"


@pytest.mark.parametrize(
    "reply", ["I don't know.", "I’m unsure", "I give up", "No idea.", "no answer", "...", "!!!"]
)
def test_a_reply_that_says_there_is_none_is_unparseable(reply: str) -> None:
    assert grade("12", reply).status == "unparseable"


@pytest.mark.parametrize("reply", ["No", "no solution", "None", "I and III", "I", "Isosceles"])
def test_a_reply_of_few_words_is_an_answer(reply: str) -> None:
    assert grade(reply, reply).correct


def test_an_answer_that_nobody_can_read_is_unparseable() -> None:
    assert grade("12", "\\boxed{1 2 3}").status == "unparseable"


@pytest.mark.parametrize("gold", ["", "  ", "$$"])
def test_an_empty_gold_is_an_error(gold: str) -> None:
    with pytest.raises(ProblemError, match="gold answer is empty"):
        grade(gold, "\\boxed{12}")


def test_two_unreadable_texts_are_equal_only_when_they_are_the_same() -> None:
    assert grade("\\foo{1} ^", "\\boxed{\\foo{1}^}").correct
    assert not grade("\\foo{1} ^", "\\boxed{\\foo{2}^}").correct


@pytest.mark.parametrize("odd", ["\x00", "\ud800", "1\x00", "\u202e12", "\ufeff"])
def test_odd_characters_are_no_error(odd: str) -> None:
    assert not grade("7", f"\\boxed{{{odd}}}").correct


def test_zero_width_characters_do_not_count() -> None:
    assert grade("12", "\\boxed{1\u200b2}").correct


def test_the_package_imports_no_sympy() -> None:
    code = (
        "import sys, flexmg.envs.math as m\n"
        "assert m.grade('1/2', 'so \\\\boxed{0.5}').correct\n"
        "assert m.grade('x+1', 'so \\\\boxed{1+x}').correct\n"
        "print(sorted({'sympy', 'math_verify', 'mpmath'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- canonical forms ---------------------------------------------------------------------
@pytest.mark.parametrize(
    "same",
    [
        ("12", "12.0", "$12$", "x = 12", "12 \\text{ cm}", "\\text{12}", "012", "１２", "\\$12"),
        ("\\frac{1}{2}", "0.5", "1/2", "\\dfrac12", "½"),
        ("2\\sqrt{3}", "\\sqrt{12}", "\\frac{6}{\\sqrt{3}}", "2*sqrt(3)"),
        ("3, 5, 7", "7, 5 and 3"),
        ("\\{1, 2\\}", "\\{2, 1, 1\\}"),
        ("(1, 6.5)", "1 < x < \\frac{13}{2}"),
        ("x^2 + 2x + 1", "(x+1)^2"),
        ("1 \\pm \\sqrt{2}", "1 - \\sqrt{2}, 1 + \\sqrt{2}"),
        ("Evelyn", "\\text{evelyn}."),
        ("2^{n+1}", "2 \\cdot 2^n"),
    ],
)
def test_equal_answers_have_one_form(same: tuple[str, ...]) -> None:
    assert len({canonical(answer) for answer in same}) == 1


DIFFERENT = [
    "12", "13", "-12", "12\\%", "12_8", "(1,2)", "[1,2]", "\\{1,2\\}", "1,2", "(2,1)", "x", "y",
    "x_1", "\\sqrt{2}", "\\sqrt{x^2}", "|x|", "1:2", "\\text{east}", "x<2", "x\\le 2", "2^n", "n^2",
    "\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}1&2\\end{pmatrix}", "x^2+y^2=1",
]  # fmt: skip


def test_different_answers_have_different_forms() -> None:
    forms = [canonical(answer) for answer in DIFFERENT]
    assert len(set(forms)) == len(DIFFERENT)


def test_no_answer_has_no_form() -> None:
    assert canonical("  ") is None


fractions = st.fractions(min_value=-1000, max_value=1000, max_denominator=60)


def spelled(value: Fraction, style: int) -> str:
    sign, over, under = "-" * (value < 0), abs(value.numerator), value.denominator
    whole, part = divmod(over, under)
    mixed = f"{sign}{whole}\\frac{{{part}}}{{{under}}}" if whole and part else str(value)
    return (
        str(value),
        f"{sign}\\frac{{{over}}}{{{under}}}",
        f"\\dfrac{{{2 * value.numerator}}}{{{2 * under}}}",
        mixed,
        f"x = {value}",
    )[style]


styles = st.integers(0, 4)


@given(fractions, fractions, styles, styles)
def test_fractions_are_equal_exactly_when_their_values_are(
    one: Fraction, other: Fraction, style: int, another: int
) -> None:
    first, second = spelled(one, style), spelled(other, another)
    assert is_equivalent(first, second) == (one == other)
    assert (canonical(first) == canonical(second)) == (one == other)


@given(st.lists(st.integers(-30, 30), min_size=2, max_size=5), st.randoms())
def test_lists_are_unordered_and_tuples_are_not(items: list[int], random) -> None:
    shuffled = list(items)
    random.shuffle(shuffled)
    one, other = (", ".join(map(str, order)) for order in (items, shuffled))
    assert is_equivalent(one, other)
    assert is_equivalent(f"({one})", f"({other})") == (items == shuffled)


@given(st.text(max_size=60))
def test_any_text_gets_a_verdict(text: str) -> None:
    verdict = grade("17", text)
    assert verdict.score in (0.0, 1.0)


@given(st.text(alphabet="0123456789.,+-*/^_(){}[]\\fracsqt xy=<>%$|!", max_size=24))
def test_any_notation_is_equal_to_itself_or_unreadable(text: str) -> None:
    reply = f"\\boxed{{{text}}}"
    verdict = grade("17", reply)
    assert verdict.status in ("correct", "wrong", "unparseable")


# -- the domain ---------------------------------------------------------------------------
PROBLEM = Problem(id="p", statement="1 + 1 = ?", gold="2")


def test_the_domain_fulfils_its_protocol() -> None:
    assert isinstance(MathDomain(), Domain)


def test_the_domain_grades_a_reply() -> None:
    assert MathDomain().grade(PROBLEM, "\\boxed{2}").correct


def test_equal_replies_have_one_key() -> None:
    keys = {MathDomain().answer_key(PROBLEM, r) for r in ("\\boxed{2.0}", "The answer is 4/2.")}
    assert len(keys) == 1
    json.dumps(list(keys))


def test_a_reply_without_an_answer_has_no_key() -> None:
    assert MathDomain().answer_key(PROBLEM, "I do not know yet, wait a bit") is None


@pytest.mark.parametrize(("gold", "answer", "named"), [(1, "1", "gold"), ("1", None, "answer")])
def test_what_is_no_text_is_refused(gold: Any, answer: Any, named: str) -> None:
    with pytest.raises(InvalidArgument, match=f"{named} must be a text"):
        grade(gold, answer)
