"""The mathematics grader: ``grade(gold, reply)``.

Extraction, then exact comparison in this process, then, for what is left, symbolic work
in a worker with limits on time and memory (:mod:`flexmg.envs.math.comparing.workers`). The policies
on units, percentages, rounding, lists and intervals stand in
:mod:`flexmg.envs.math.comparing.comparison`. The answer is never run or evaluated as code.
"""

from __future__ import annotations

import re

from flexmg.envs.math.comparing.comparison import compare
from flexmg.envs.math.comparing.values import form_of
from flexmg.envs.math.comparing.workers import shared_pool
from flexmg.envs.math.extraction import extract
from flexmg.envs.math.reading.expression import (
    Alternatives,
    Assignment,
    BaseNumber,
    Bounded,
    Collection,
    Group,
    Listing,
    Matrix,
    Node,
    Number,
    Quantity,
    Ratio,
    Relation,
    Text,
    Union,
    Unread,
    is_arithmetic,
)
from flexmg.envs.math.reading.notation import LONGEST_ANSWER, clean
from flexmg.envs.math.reading.reader import read
from flexmg.errors import InfraError, InvalidArgument, ProblemError
from flexmg.problem import Problem, Verdict

_PLAIN_INTEGER = re.compile(r"-?[1-9][0-9]{0,17}\Z")
_CHOICE = re.compile(
    r"(?:option|choice)?\s*(?:\\text(?:bf|rm)?\s*\{\s*|\\mathrm\s*\{\s*)?\(?\s*([A-J])\s*\)?\s*\}?"
    r"(?P<rest>$|\s*[:.)].*|\s*\\(?:text|quad|\s).*)",
    re.DOTALL | re.IGNORECASE,
)
_ONE_OF_MORE = re.compile(r"\W*(?:and|or|,)\b", re.IGNORECASE)


def grade(gold: str, answer: str) -> Verdict:
    """Judge a whole reply against the gold answer.

    Args:
        gold: the reference answer, bare or wrapped (LaTeX, plain, with a unit ...).
        answer: the reply; the final answer is extracted from it
            (:func:`flexmg.envs.math.extraction.extract`).

    Returns:
        ``correct`` (score 1); ``wrong``; ``unparseable`` (no answer in the reply, or one
        that nobody can read); ``timeout`` or ``crash`` (the answer takes more time or
        memory than a grader spends); ``infra_error`` (our own failure, never a 0).

    Raises:
        ProblemError: the gold answer is empty.
        InvalidArgument: one of the two is not a text.
        MissingDependency: symbolic work is needed and ``flexmg[math]`` is not installed.
    """
    if not (isinstance(gold, str) and isinstance(answer, str)):
        name, given = ("answer", answer) if isinstance(gold, str) else ("gold", gold)
        raise InvalidArgument(f"{name} must be a text, not {given!r:.80}")
    found = extract(answer)
    if found is None:
        if not gold.strip():
            raise ProblemError("the gold answer is empty: nothing can be graded against it")
        return Verdict(0.0, "unparseable", "the reply holds no answer")
    given, rule = found.answer, found.rule
    if given == gold and gold.strip():
        return Verdict(1.0, "correct", "", given, rule)
    if _PLAIN_INTEGER.match(gold) and _PLAIN_INTEGER.match(given):
        return Verdict(0.0, "wrong", "", given, rule)
    return judge(gold, given, rule)


def is_equivalent(gold: str, answer: str) -> bool:
    """Whether an extracted answer is right: ``judge(gold, answer).correct``."""
    return judge(gold, answer).correct


def judge(gold: str, answer: str, rule: str = "") -> Verdict:
    """Judge an answer that has been extracted already; see :func:`grade`."""
    if not clean(gold):
        raise ProblemError("the gold answer is empty: nothing can be graded against it")
    if len(answer) > LONGEST_ANSWER:  # not even remembered
        detail = f"the answer has more than {LONGEST_ANSWER} characters"
        return Verdict(0.0, "unparseable", detail, answer, rule)
    if not clean(answer):
        return Verdict(0.0, "unparseable", "the answer is empty", answer, rule)
    expected, given = read(gold), read(answer)
    if _same_choice(gold, answer):
        return Verdict(1.0, "correct", "", answer, rule)
    equal = compare(expected, given)
    if equal is None:
        return _by_symbolic_work(gold, answer, rule)
    if equal:
        return Verdict(1.0, "correct", "", answer, rule)
    if isinstance(given, Unread) and not given.symbolic:
        return Verdict(0.0, "unparseable", "the answer cannot be read", answer, rule)
    return Verdict(0.0, "wrong", "", answer, rule)


def _by_symbolic_work(gold: str, answer: str, rule: str) -> Verdict:
    try:
        settlement = shared_pool().settle(gold, answer)
    except InfraError as error:
        return Verdict(0.0, "infra_error", str(error), answer, rule)
    if settlement.outcome != "settled":
        return Verdict(0.0, settlement.outcome, settlement.detail, answer, rule)
    if settlement.equal is None:
        if isinstance(read(answer), Unread):
            return Verdict(0.0, "unparseable", "the answer cannot be read", answer, rule)
        return Verdict(0.0, "wrong", "no equality could be shown", answer, rule)
    if settlement.equal:
        return Verdict(1.0, "correct", "", answer, rule)
    return Verdict(0.0, "wrong", "", answer, rule)


def _same_choice(gold: str, answer: str) -> bool:
    r"""Whether both name the same choice: ``\text{(C)}``, ``C``, ``C: the third option``."""
    expected = _CHOICE.match(clean(gold))
    if expected is None or expected["rest"] or not expected[1].isupper():
        return False
    given = _CHOICE.match(clean(answer))
    if given is None or _ONE_OF_MORE.match(given["rest"]):
        return False
    return given[1].upper() == expected[1]


# -- votes -----------------------------------------------------------------------------
def canonical(answer: str) -> str | None:
    """A canonical form of an extracted answer: equal forms are equal answers.

    Numbers are exact fractions, expressions are in normal form, lists and sets are
    sorted, wrappers, assignments and units of measure are dropped (a percentage keeps
    its sign). No sympy, no workers. The reverse does not hold: two equal answers that
    only symbolic work can identify have two forms.

    Returns:
        None when the answer is empty.
    """
    if len(answer) > LONGEST_ANSWER:
        return _written(Unread(answer, symbolic=False))
    return _written(read(answer)) if clean(answer) else None


def _written(node: Node) -> str:
    if is_arithmetic(node):
        form = form_of(node)
        return repr(node) if form is None else form
    match node:
        case Number(value):
            return str(value)
        case Text(words):
            return f"'{words}'"
        case BaseNumber(digits, base):
            return f"{digits}_{base}"
        case Quantity(value, unit):
            return _written(value) + ("%" if unit == "percent" else "")
        case Assignment(_, value):
            return _written(value)
        case Alternatives((first, *_)):
            return _written(first)
        case Bounded(_, interval):
            return _written(interval)
        case Listing(items):
            return ", ".join(sorted(map(_written, items)))
        case Collection(items):
            return "{" + ", ".join(sorted(set(map(_written, items)))) + "}"
        case Group(opening, closing, items):
            return opening + ", ".join(map(_written, items)) + closing
        case Union(parts):
            return " U ".join(sorted(map(_written, parts)))
        case Matrix(rows):
            return "matrix[" + "; ".join(", ".join(map(_written, row)) for row in rows) + "]"
        case Ratio(parts):
            return " : ".join(map(_written, parts))
        case Relation(operators, operands):
            pieces = [_written(operands[0])]
            for operator, operand in zip(operators, operands[1:], strict=True):
                pieces += [operator, _written(operand)]
            return " ".join(pieces)
        case Unread(text):
            return f"`{text}`"
    return "..."


class MathDomain:
    """Mathematics, as workflows and games see it (:class:`flexmg.problem.Domain`)."""

    name = "math"
    answer_format = "End with the final answer, and nothing else, inside \\boxed{...}."

    def grade(self, problem: Problem, reply: str) -> Verdict:
        """Judge a whole reply against the problem's gold answer."""
        return grade(problem.gold, reply)

    def answer_key(self, problem: Problem, reply: str) -> str | None:
        """The canonical form of the reply's answer, None when it holds none."""
        del problem
        found = extract(reply)
        return None if found is None else canonical(found.answer)
