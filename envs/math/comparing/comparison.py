r"""Whether an answer is the gold answer: structure by structure, value by value.

Three-valued: True, False, or None when only symbolic work could tell. The same code
runs in the caller's process, where None is passed on, and in a worker, where
``decide`` settles it.

Rules that suites differ on, as decided here:

* A missing unit is forgiven, on either side; a different one is not (``5 cm`` is not
  ``5 m``, ``36^\circ`` is not ``\$36``).
* A gold percentage accepts the bare number and the fraction (``35\%``: 35, 0.35); a bare
  gold accepts a percentage only of the same value (0.35: ``35\%``; 9: never ``9\%``).
* A base is part of the answer: ``63_7`` is neither ``637`` nor ``63`` nor 45.
* A decimal stands for an exact gold when it is that gold correctly rounded to at least 6
  significant digits or 6 places (``0.142857`` for 1/7); ``0.667`` is not 2/3. Two decimals
  must be the same number (binary rounding noise after 15 digits aside).
* Bare lists are unordered; tuples are ordered, and their brackets count: ``(3, 8)`` is not
  ``[3, 8]``, ``\{3, 8\}`` or ``3, 8``. A set in braces equals the same bare list.
* ``1 < x < 6.5`` is the interval ``(1, 6.5)``; ``x = 8`` is 8 (but ``y = 8`` is not ``x = 8``).
* Several answers where one is asked (``12 or 13``) are wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Literal, TypeGuard

from flexmg.envs.math.comparing import numeric
from flexmg.envs.math.comparing.normal_form import TooLarge, terms_of, written
from flexmg.envs.math.comparing.values import same_value
from flexmg.envs.math.reading.expression import (
    Alternatives,
    Assignment,
    Bounded,
    Collection,
    Dots,
    Group,
    Listing,
    Matrix,
    Node,
    Number,
    Product,
    Quantity,
    Ratio,
    Relation,
    Sum,
    Symbol,
    Text,
    Union,
    Unread,
    is_arithmetic,
    is_constant,
    negative,
)
from flexmg.envs.math.reading.units import UPRIGHT_UNITS
from flexmg.envs.math.reading.vocabulary import MIRRORED

Question = Literal["equal", "proportional"]

Decide = Callable[[Question, Node, Node], bool | None]

MOST_ITEMS = 64

REAL_LINE = Group("(", ")", (negative(Symbol("oo")), Symbol("oo")))


def undecided(question: Question, gold: Node, answer: Node) -> bool | None:
    """The ``decide`` of the caller's process: leave it to a worker."""
    del question, gold, answer
    return None


def every(answers: Iterable[bool | None]) -> bool | None:
    """Three-valued conjunction."""
    result: bool | None = True
    for answer in answers:
        if answer is False:
            return False
        if answer is None:
            result = None
    return result


def some(answers: Iterable[bool | None]) -> bool | None:
    """Three-valued disjunction."""
    result: bool | None = False
    for answer in answers:
        if answer:
            return True
        if answer is None:
            result = None
    return result


def compare(gold: Node, answer: Node, decide: Decide = undecided) -> bool | None:
    """Whether ``answer`` is right where ``gold`` is the reference."""
    if gold == answer:
        return True
    if isinstance(gold, Alternatives):
        return some(compare(reading, answer, decide) for reading in gold.readings)
    if isinstance(answer, Alternatives):
        return some(compare(gold, reading, decide) for reading in answer.readings)
    if isinstance(gold, Unread) or isinstance(answer, Unread):
        return _compare_unread(gold, answer, decide)
    if isinstance(gold, Quantity) or isinstance(answer, Quantity):
        return _compare_quantities(gold, answer, decide)
    gold, answer = _as_set(gold, answer), _as_set(answer, gold)
    if isinstance(gold, (Assignment, Relation)) or isinstance(answer, (Assignment, Relation)):
        return _compare_relations(gold, answer, decide)
    if is_constant(gold) and _is_measure(answer):
        return compare(gold, answer.factors[0], decide)
    if is_arithmetic(gold) and is_arithmetic(answer):
        known = same_value(gold, answer)
        return decide("equal", gold, answer) if known is None else known
    if isinstance(gold, Listing) or isinstance(answer, Listing):
        return _compare_lists(gold, answer, decide)
    return _compare_structures(gold, answer, decide)


def _compare_structures(gold: Node, answer: Node, decide: Decide) -> bool | None:
    match gold, answer:
        case (Text(words), Product(factors)) | (Product(factors), Text(words)):
            return words == "".join(f.name for f in factors if isinstance(f, Symbol)).casefold()
        case Bounded(one, first), Bounded(other, second):
            return one == other and compare(first, second, decide)
        case Group(), Group():
            if (gold.opening, gold.closing) != (answer.opening, answer.closing):
                return False
            return _in_order(gold.items, answer.items, decide)
        case Ratio(parts), Ratio(others):
            return _in_order(parts, others, decide)
        case Matrix(rows), Matrix(others):
            return len(rows) == len(others) and every(
                _in_order(row, other, decide) for row, other in zip(rows, others, strict=True)
            )
        case Union(parts), Union(others):
            return _matched(parts, others, decide)
        case Collection(items), Collection(others):
            return _same_members(items, others, decide)
        case Collection((only,)), _:
            return compare(only, answer, decide)
        case _, Collection((only,)):
            return compare(gold, only, decide)
    return False


def _as_set(node: Node, other: Node) -> Node:
    r"""An inequality, or several, as the set that they describe; ``\mathbb{R}`` as a line."""
    if isinstance(node, Bounded) and not isinstance(other, (Bounded, Listing)):
        return node.interval
    if isinstance(node, Listing) and all(isinstance(item, Bounded) for item in node.items):
        bounded = [item for item in node.items if isinstance(item, Bounded)]
        if len({item.name for item in bounded}) == 1:
            return Union(tuple(item.interval for item in bounded))
    match node:
        case Symbol("\\mathbb{R}"):
            return REAL_LINE
        case Relation(("minus",), (Symbol("\\mathbb{R}"), Collection(points))):
            return _punctured_line(points)
        case Group("[", "]", rows) if isinstance(other, Matrix):
            lists = [row.items for row in rows if isinstance(row, Group)]
            return Matrix(tuple(lists)) if len(lists) == len(rows) else node
    return node


def _punctured_line(points: tuple[Node, ...]) -> Node:
    """The real line without some numbers, as the intervals between them."""
    if not all(isinstance(point, Number) for point in points):
        return Relation(("minus",), (REAL_LINE, Collection(points)))
    inner = sorted({p.value: p for p in points if isinstance(p, Number)}.items())
    bounds = [REAL_LINE.items[0], *(point for _, point in inner), REAL_LINE.items[1]]
    return Union(tuple(Group("(", ")", pair) for pair in itertools.pairwise(bounds)))


def _is_measure(node: Node) -> TypeGuard[Product]:
    """Whether ``5 m`` stands here: beside a constant gold the letter is a unit."""
    return (
        isinstance(node, Product)
        and len(node.factors) == 2
        and isinstance(node.factors[0], Number)
        and isinstance(node.factors[1], Symbol)
        and node.factors[1].name in UPRIGHT_UNITS
    )


def _compare_unread(gold: Node, answer: Node, decide: Decide) -> bool | None:
    """Only math-verify may know notation that the reader does not."""
    texts = [side.text.split() for side in (gold, answer) if isinstance(side, Unread)]
    if len(texts) == 2 and "".join(texts[0]) == "".join(texts[1]):
        return bool(texts[0])
    for side in (gold, answer):
        if isinstance(side, Text) or (isinstance(side, Unread) and not side.symbolic):
            return False
    return decide("equal", gold, answer)


def _compare_quantities(gold: Node, answer: Node, decide: Decide) -> bool | None:
    if _is_measure(answer) and isinstance(gold, Quantity) and is_constant(gold.value):
        number, unit = answer.factors
        answer = Quantity(number, UPRIGHT_UNITS[unit.name] if isinstance(unit, Symbol) else "")
    gold_unit = gold.unit if isinstance(gold, Quantity) else None
    answer_unit = answer.unit if isinstance(answer, Quantity) else None
    expected = gold.value if isinstance(gold, Quantity) else gold
    given = answer.value if isinstance(answer, Quantity) else answer
    if isinstance(expected, Assignment):
        expected = expected.value
    if gold_unit == answer_unit or "percent" not in (gold_unit, answer_unit):
        if gold_unit and answer_unit and gold_unit != answer_unit:
            return False
        return compare(expected, given, decide)
    if isinstance(given, Assignment):
        given = given.value
    if (gold_unit or answer_unit) != "percent" or (gold_unit and answer_unit):
        return False
    if gold_unit == "percent":
        bare = compare(expected, given, decide)
        return some((bare, compare(_hundredth(expected), given, decide)))
    return compare(expected, _hundredth(given), decide)


def _hundredth(node: Node) -> Node:
    """A percentage as the number that it is."""
    if isinstance(node, Number):
        places = None if node.places is None else node.places + 2
        return Number(node.value / 100, places, node.digits)
    if is_arithmetic(node):
        return Product((Number(Fraction(1, 100)), node))
    return node


# -- relations ---------------------------------------------------------------------------
def _compare_relations(gold: Node, answer: Node, decide: Decide) -> bool | None:
    match gold, answer:
        case Assignment(one, first), Assignment(other, second):
            if one == other or not one or not other:
                return compare(first, second, decide)
            if is_constant(first) or is_constant(second):
                return False
            return _same_equation(gold, answer, decide)
        case ((Assignment() | Relation(("=",), _)), (Assignment() | Relation(("=",), _))):
            return _same_equation(gold, answer, decide)
        case Relation(), Relation():
            return some(
                _in_order(gold.operands, operands, decide)
                for operators, operands in _readings(answer)
                if operators == gold.operators
            )
        case Assignment(_, value), _ if not isinstance(answer, (Relation, Bounded)):
            return compare(value, answer, decide)
        case _, Assignment(_, value) if not isinstance(gold, (Relation, Bounded)):
            return compare(gold, value, decide)
        case (_, Listing()) | (Listing(), _):
            return _compare_lists(gold, answer, decide)
    return False


def _readings(node: Relation) -> Iterable[tuple[tuple[str, ...], tuple[Node, ...]]]:
    """A chain of relations as written, and read from right to left."""
    yield node.operators, node.operands
    mirrored = tuple(MIRRORED.get(operator, operator) for operator in reversed(node.operators))
    yield mirrored, tuple(reversed(node.operands))


def _difference(node: Node) -> Node | None:
    """The left minus the right side of an equation."""
    if isinstance(node, Assignment):
        left: Node = Symbol(node.name)
        right = node.value
    elif isinstance(node, Relation) and len(node.operands) == 2:
        left, right = node.operands
    else:
        return None
    if not (is_arithmetic(left) and is_arithmetic(right)):
        return None
    return Sum((left, negative(right)))


def _same_equation(gold: Node, answer: Node, decide: Decide) -> bool | None:
    """Two equations are the same when their differences are proportional."""
    first, second = _difference(gold), _difference(answer)
    if first is None or second is None:
        return False
    try:
        one, other = _scaled(first), _scaled(second)
    except TooLarge:
        one, other = None, None
    if one is not None and one == other:
        return one != "0"
    if numeric.differ_in_proportion(first, second):
        return False
    return decide("proportional", first, second)


def _scaled(node: Node) -> str:
    terms = terms_of(node)
    if not terms:
        return "0"
    first = terms[min(terms)]
    return written({atoms: coefficient / first for atoms, coefficient in terms.items()})


# -- several items -------------------------------------------------------------------------
def _in_order(gold: Sequence[Node], answer: Sequence[Node], decide: Decide) -> bool | None:
    if len(gold) != len(answer):
        return False
    return every(compare(g, a, decide) for g, a in zip(gold, answer, strict=True))


def _compare_lists(gold: Node, answer: Node, decide: Decide) -> bool | None:
    gold_items, answer_items = _items(gold), _items(answer)
    if gold_items is None or answer_items is None:
        # One answer against several: right only when the several are all the same.
        if isinstance(gold, Listing) and not isinstance(answer, (Group, Matrix, Union)):
            return every(compare(item, answer, decide) for item in gold.items)
        if isinstance(answer, Listing) and not isinstance(gold, (Group, Matrix, Union)):
            return every(compare(gold, item, decide) for item in answer.items)
        named = _named_values(gold) or _named_values(answer)
        if named and isinstance(gold, (Group, Listing)) and isinstance(answer, (Group, Listing)):
            return _in_order(
                _named_values(gold) or gold.items, _named_values(answer) or answer.items, decide
            )
        return False
    if Dots() in (*gold_items, *answer_items):
        return _in_order(gold_items, answer_items, decide)
    if isinstance(gold, Collection) or isinstance(answer, Collection):
        return _same_members(gold_items, answer_items, decide)
    gold_values, answer_values = _named_values(gold), _named_values(answer)
    if (gold_values is None) != (answer_values is None):
        return _in_order(gold_values or gold_items, answer_values or answer_items, decide)
    return _matched(gold_items, answer_items, decide)


def _items(node: Node) -> tuple[Node, ...] | None:
    return node.items if isinstance(node, (Listing, Collection)) else None


def _named_values(node: Node) -> tuple[Node, ...] | None:
    """``y = 2, x = 1`` as (1, 2): the values of different names, in the order of the names."""
    if not isinstance(node, Listing):
        return None
    assigned = {item.name: item.value for item in node.items if isinstance(item, Assignment)}
    if len(assigned) < len(node.items):
        return None
    return tuple(assigned[name] for name in sorted(assigned, key=str.casefold))


def _matched(gold: Sequence[Node], answer: Sequence[Node], decide: Decide) -> bool | None:
    """Whether the items can be paired so that every pair is equal."""
    if len(gold) != len(answer) or len(gold) > MOST_ITEMS:
        return False
    table = [[compare(g, a, decide) for a in answer] for g in gold]
    if _pairing([[cell is True for cell in row] for row in table]):
        return True
    return None if _pairing([[cell is not False for cell in row] for row in table]) else False


def _pairing(allowed: list[list[bool]]) -> bool:
    """Whether a perfect matching exists (augmenting paths)."""
    partner: dict[int, int] = {}

    def place(row: int, seen: set[int]) -> bool:
        for column, fits in enumerate(allowed[row]):
            if fits and column not in seen:
                seen.add(column)
                if column not in partner or place(partner[column], seen):
                    partner[column] = row
                    return True
        return False

    return all(place(row, set()) for row in range(len(allowed)))


def _same_members(gold: Sequence[Node], answer: Sequence[Node], decide: Decide) -> bool | None:
    """Whether two sets have the same members, repetitions aside."""
    if max(len(gold), len(answer)) > MOST_ITEMS or not (gold and answer):
        return len(gold) == len(answer) == 0
    forward = every(some(compare(g, a, decide) for a in answer) for g in gold)
    backward = every(some(compare(g, a, decide) for g in gold) for a in answer)
    return every((forward, backward))
