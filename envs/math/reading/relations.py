r"""Lists, units and chains of relations in the form in which answers are compared."""

from __future__ import annotations

from fractions import Fraction

from flexmg.envs.math.comparing.numeric import FloatArithmetic, NoValue, evaluate
from flexmg.envs.math.reading.cursor import ReadError, RefusedError
from flexmg.envs.math.reading.expression import (
    Alternatives,
    Assignment,
    Bounded,
    Call,
    Collection,
    Group,
    Listing,
    Node,
    Number,
    Product,
    Quantity,
    Ratio,
    Relation,
    Symbol,
    Text,
    Union,
    is_constant,
    negative,
)
from flexmg.envs.math.reading.notation import fold_words
from flexmg.envs.math.reading.units import NUMBER_WORDS
from flexmg.envs.math.reading.vocabulary import MIRRORED

LOOSEST_APPROXIMATION = 0.05  # relative, in `a \approx b`


def listed(items: list[Node]) -> Node:
    """One answer, or an unordered list of them without nested lists."""
    flat: list[Node] = []
    for item in items:
        flat.extend(item.items if isinstance(item, Listing) else (item,))
    return flat[0] if len(flat) == 1 else Listing(tuple(flat))


def worded(words: list[str]) -> Node:
    """A phrase; a number word is the number."""
    if len(words) == 1 and words[0].casefold() in NUMBER_WORDS:
        return Number(Fraction(NUMBER_WORDS[words[0].casefold()]))
    phrase = fold_words(" ".join(words))
    return Collection(()) if phrase == "empty set" else Text(phrase)


def united(parts: list[Node]) -> Node:
    """One part as it is, several as a union."""
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def unit_outside(node: Node) -> Node:
    r"""``-5^\circ`` as a quantity of -5 degrees: a unit inside a product moves outside."""
    if isinstance(node, Call) and node.function.startswith("unit:"):
        return Quantity(unit_outside(node.arguments[0]), node.function[5:])
    if isinstance(node, Product):
        for at, factor in enumerate(node.factors):
            if isinstance(factor, Call) and factor.function.startswith("unit:"):
                inner = (*node.factors[:at], *factor.arguments, *node.factors[at + 1 :])
                numbers = [f for f in inner if isinstance(f, Number)]
                if len(numbers) == len(inner) == 2 and numbers[0].value == -1:
                    return Quantity(negative(numbers[1]), factor.function[5:])
                return Quantity(Product(inner), factor.function[5:])
    return node


def name_of(node: Node) -> str | None:
    """The name that an assignment gives a value to, or None."""
    if isinstance(node, Symbol) and node.name not in ("pi", "e", "i", "oo"):
        return node.name
    if isinstance(node, Text):
        return ""
    if isinstance(node, Group) and all(isinstance(item, Symbol) for item in node.items):
        return ",".join(item.name for item in node.items if isinstance(item, Symbol))
    if isinstance(node, Product) and all(isinstance(f, Symbol) for f in node.factors):
        names = [f.name for f in node.factors if isinstance(f, Symbol)]
        if all(name.isupper() or name.startswith("\\") for name in names):
            return "".join(names)  # a segment or an angle: AB, \angle ABC
    return None


def related(operators: list[str], operands: list[Node]) -> Node:
    """A chain of relations in the form that is compared."""
    if not operators:
        return operands[0]
    if set(operators) == {":"}:
        return Ratio(tuple(operands))
    if operators[-1] == "~" and operators[:-1] in ([], ["="]):
        return related(operators[:-1], [*operands[:-2], approximated(*operands[-2:])])
    name = name_of(operands[0])
    if operators[0] == "in" and len(operators) == 1:
        return operands[1] if name is not None else Relation(("in",), tuple(operands))
    if set(operators) == {"="}:
        if name is not None:
            return Assignment(name, operands[-1])
        last = name_of(operands[-1])
        if last and len(operands) == 2 and is_constant(operands[0]):
            return Assignment(last, operands[0])
        if len(operands) > 1 and all(is_constant(operand) for operand in operands[:-1]):
            return operands[-1]
    bounded = interval_of(operators, operands)
    return bounded or Relation(tuple(operators), tuple(operands))


def approximated(value: Node, rounded: Node) -> Alternatives:
    r"""``1/7 \approx 0.143`` may be read either way, as long as the two are close."""
    if is_constant(value) and is_constant(rounded):
        try:
            one, other = (evaluate(node, 0, FloatArithmetic()) for node in (value, rounded))
        except NoValue as error:
            raise ReadError("an approximation without a value") from error
        if abs(one - other) > LOOSEST_APPROXIMATION * abs(one):
            raise RefusedError("an approximation that is none: two answers")
    return Alternatives((value, rounded))


def interval_of(operators: list[str], operands: list[Node]) -> Bounded | None:
    """``a < x <= b`` and ``x > a`` as intervals of one variable."""
    if not set(operators) <= set(MIRRORED) or len(operands) > 3:
        return None
    if len(operands) == 2:
        left, right = operands
        name = name_of(left)
        if name and is_constant(right):
            return _half_line(name, operators[0], right)
        name = name_of(right)
        return (
            _half_line(name, MIRRORED[operators[0]], left) if name and is_constant(left) else None
        )
    low, middle, high = operands
    name = name_of(middle)
    if not name or not (is_constant(low) and is_constant(high)):
        return None
    if {op[0] for op in operators} == {">"}:
        low, high = high, low
        operators = [MIRRORED[op] for op in reversed(operators)]
    if {op[0] for op in operators} != {"<"}:
        return None
    opening, closing = "[" if operators[0] == "<=" else "(", "]" if operators[1] == "<=" else ")"
    return Bounded(name, Group(opening, closing, (low, high)))


def _half_line(name: str, operator: str, bound: Node) -> Bounded:
    infinity = Symbol("oo")
    if operator[0] == ">":
        return Bounded(name, Group("[" if operator == ">=" else "(", ")", (bound, infinity)))
    closing = "]" if operator == "<=" else ")"
    return Bounded(name, Group("(", closing, (negative(infinity), bound)))
