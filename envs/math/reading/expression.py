"""What an answer is once it has been read: numbers, expressions, and what is built of them.

The nodes are frozen and hashable. Two equal trees are the same answer; two different
trees may still be (that is what :mod:`flexmg.envs.math.comparing.comparison` finds out).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Number:
    """An exact rational number.

    Args:
        value: its value.
        places: decimal places as written (``0.50`` has 2), None when it was not a decimal.
        digits: significant digits as written, for decimals.
        open_ended: whether an ellipsis followed the digits (``0.333...``).
    """

    value: Fraction
    places: int | None = None
    digits: int = 0
    open_ended: bool = False


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable or a named constant (``pi``, ``e``, ``i`` and ``oo`` are constants)."""

    name: str


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum of terms."""

    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """A product of factors."""

    factors: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Power:
    """A power; roots and quotients are powers too."""

    base: Node
    exponent: Node


@dataclass(frozen=True, slots=True)
class Call:
    """A known function of its arguments (``sin``, ``log``, ``binom`` ...)."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with a unit: ``percent``, ``degree``, a currency, a unit of measure."""

    value: Node
    unit: str


@dataclass(frozen=True, slots=True)
class BaseNumber:
    """Digits in a stated base, ``204_5``: another base is another answer."""

    digits: str
    base: int


@dataclass(frozen=True, slots=True)
class Text:
    """A word or a phrase, folded to lower case without articles and punctuation."""

    words: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Several answers with no brackets around them: their order does not matter."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Ordered items in brackets: a point, a tuple, or an interval when there are two."""

    opening: str
    closing: str
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """A set in braces; the order and repetitions of its items do not matter."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """A union of sets and intervals, in any order."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix or a column vector, row by row."""

    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    """``name = value``, where the left side is a name (``x``, ``f(x)``, ``(a, b)``)."""

    name: str
    value: Node


@dataclass(frozen=True, slots=True)
class Bounded:
    """An inequality on one variable, as the interval that it describes."""

    name: str
    interval: Group


@dataclass(frozen=True, slots=True)
class Relation:
    """Any other chain of relations: ``operands[0] operators[0] operands[1] ...``."""

    operators: tuple[str, ...]
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Ratio:
    """``a : b : c``, also a clock time."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Dots:
    """Left-out items of a sequence."""


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Two readings of one text: ``100,200`` is a number or two of them."""

    readings: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Unread:
    """A text that the reader does not understand; equal only to the same text.

    Args:
        text: the cleaned text.
        symbolic: whether it is LaTeX that math-verify may be able to read.
    """

    text: str
    symbolic: bool


Node = (
    Number
    | Symbol
    | Sum
    | Product
    | Power
    | Call
    | Quantity
    | BaseNumber
    | Text
    | Listing
    | Group
    | Collection
    | Union
    | Matrix
    | Assignment
    | Bounded
    | Relation
    | Ratio
    | Dots
    | Alternatives
    | Unread
)

ARITHMETIC = (Number, Symbol, Sum, Product, Power, Call)
CONSTANTS = frozenset({"pi", "e", "i", "oo"})

ONE = Number(Fraction(1))
MINUS_ONE = Number(Fraction(-1))
HALF = Number(Fraction(1, 2))


def is_arithmetic(node: Node) -> bool:
    """Whether a node is one value: a number or an expression, not a structure of them."""
    return isinstance(node, ARITHMETIC)


def children(node: Node) -> tuple[Node, ...]:
    """The operands of an arithmetic node."""
    match node:
        case Sum(parts) | Product(parts):
            return parts
        case Power(base, exponent):
            return (base, exponent)
        case Call(_, arguments):
            return arguments
    return ()


def symbols(node: Node) -> Iterator[str]:
    """The names in an arithmetic node, constants included, with repetitions."""
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, Symbol):
            yield top.name
        else:
            stack.extend(children(top))


def is_constant(node: Node) -> bool:
    """Whether an arithmetic node holds no variable."""
    return is_arithmetic(node) and all(name in CONSTANTS for name in symbols(node))


def negative(node: Node) -> Node:
    """The additive inverse; a number stays a number."""
    if isinstance(node, Number):
        return Number(-node.value, node.places, node.digits, node.open_ended)
    return Product((MINUS_ONE, node))


def reciprocal(node: Node) -> Node:
    """The multiplicative inverse."""
    return Power(node, MINUS_ONE)
