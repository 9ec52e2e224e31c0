r"""Products and powers of numbers, worked out exactly as long as they stay small."""

from __future__ import annotations

from fractions import Fraction

from flexmg.envs.math.reading.cursor import ReadError
from flexmg.envs.math.reading.expression import Node, Number, Power, Product, is_arithmetic

MOST_BITS = 16_384  # of a number that is folded


def multiplied(factors: list[Node]) -> Node:
    r"""A product, its leading numbers folded; ``1.3 \times 10^5`` stays a decimal."""
    if len(factors) == 1:
        return factors[0]
    number: Number | None = None
    rest: list[Node] = []
    for factor in factors:
        if not is_arithmetic(factor):
            raise ReadError("a structure stands inside a product")
        if isinstance(factor, Number) and _bits(factor.value) < MOST_BITS:
            number = factor if number is None else _times(number, factor)
        else:
            rest.append(factor)
    if number is None:
        return Product(tuple(rest))
    if not rest:
        return number
    return Product((number, *rest)) if number.value != 1 else _product(rest)


def _product(factors: list[Node]) -> Node:
    return factors[0] if len(factors) == 1 else Product(tuple(factors))


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


def _times(a: Number, b: Number) -> Number:
    value = a.value * b.value
    for decimal, scale in ((a, b.value), (b, a.value)):
        if decimal.places is not None and scale > 0:
            digits = str(scale.numerator if scale >= 1 else scale.denominator)
            if digits.strip("0") == "1" and min(scale.numerator, scale.denominator) == 1:
                shift = len(digits) - 1
                places = decimal.places - (shift if scale >= 1 else -shift)
                return Number(value, places, decimal.digits)
    return Number(value)


def powered(base: Node, exponent: Node) -> Node:
    """A power, folded when it is a small exact number."""
    if not (is_arithmetic(base) and is_arithmetic(exponent)):
        raise ReadError("a structure is raised to a power")
    if isinstance(base, Number) and isinstance(exponent, Number):
        n = exponent.value
        small = n.denominator == 1 and abs(n) * max(1, _bits(base.value)) <= MOST_BITS
        if small and not (base.value == 0 and n <= 0):
            return Number(base.value ** int(n))
    return Power(base, exponent)
