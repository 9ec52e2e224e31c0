"""Values of expressions at sample points: how two expressions are told apart.

The same evaluation runs in floating point (fast, in process: it may only refute) and
with mpmath at high precision (in a worker: it may also confirm). Sample points depend on
the name of the variable alone, so both sides see the same ones.
"""

from __future__ import annotations

import cmath
import hashlib
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from flexmg.envs.math.reading.expression import (
    Call,
    Node,
    Number,
    Power,
    Product,
    Sum,
    Symbol,
    symbols,
)

SAMPLES = 6
LARGEST_EXPONENT = 1e7  # of a power that is evaluated at all


class NoValue(ArithmeticError):
    """The expression has no value at this point, or none that can be computed."""


@lru_cache(maxsize=4096)
def sample(name: str, index: int) -> tuple[int, int]:
    """The ``index``-th sample of a variable as a fraction; every other one is negative."""
    seed = hashlib.sha256(f"{name}:{index}".encode()).digest()
    numerator = 301 + int.from_bytes(seed[:4], "big") % 2399
    return (-numerator if index % 2 else numerator), 997


class FloatArithmetic:
    """Python's complex floats."""

    functions: Mapping[str, Callable[..., Any]] = {
        "sin": cmath.sin, "cos": cmath.cos, "tan": cmath.tan, "ln": cmath.log,
        "cot": lambda x: 1 / cmath.tan(x), "sec": lambda x: 1 / cmath.cos(x),
        "csc": lambda x: 1 / cmath.sin(x), "sinh": cmath.sinh, "cosh": cmath.cosh,
        "tanh": cmath.tanh, "coth": lambda x: 1 / cmath.tanh(x), "arcsin": cmath.asin,
        "arccos": cmath.acos, "arctan": cmath.atan, "abs": abs,
        "arccot": lambda x: cmath.pi / 2 - cmath.atan(x), "arcsec": lambda x: cmath.acos(1 / x),
        "arccsc": lambda x: cmath.asin(1 / x),
    }  # fmt: skip
    constants: Mapping[str, Any] = {"pi": math.pi, "e": math.e, "i": 1j, "oo": math.inf}
    tiny = 1e-12

    def fraction(self, numerator: int, denominator: int) -> Any:
        """A rational number."""
        return complex(numerator / denominator)

    def power(self, base: Any, exponent: Any) -> Any:
        """A power on the principal branch."""
        return base**exponent

    def gamma(self, x: Any) -> Any:
        """The gamma function of a real number."""
        return complex(math.gamma(x.real))

    def floor(self, x: Any) -> Any:
        """The floor of a real number."""
        return complex(math.floor(x.real))


def evaluate(node: Node, index: int, arithmetic: Any) -> Any:
    """The value at the ``index``-th sample point, and its scale is checked by the caller.

    Raises:
        NoValue: when there is no value (a pole, a factorial of a fraction, a huge power).
    """
    try:
        return _value(node, index, arithmetic)
    except (ZeroDivisionError, OverflowError, ValueError, TypeError, KeyError) as error:
        raise NoValue(str(error)) from error


def _value(node: Node, index: int, arithmetic: Any) -> Any:
    match node:
        case Number(value):
            return arithmetic.fraction(value.numerator, value.denominator)
        case Symbol(name):
            if name in arithmetic.constants:
                return arithmetic.constants[name]
            return arithmetic.fraction(*sample(name, index))
        case Sum(terms):
            return sum(_value(term, index, arithmetic) for term in terms)
        case Product(factors):
            product: Any = 1
            for factor in factors:
                product = product * _value(factor, index, arithmetic)
            return product
        case Power(base, exponent):
            power = _value(exponent, index, arithmetic)
            if abs(power) > LARGEST_EXPONENT:
                raise NoValue("an exponent is too large")
            root = _value(base, index, arithmetic)
            if isinstance(exponent, Number) and root.imag == 0 and root.real < 0:
                over, under = exponent.value.numerator, exponent.value.denominator
                if under > 1 and under % 2:  # the real cube root of -8
                    return (-1 if over % 2 else 1) * arithmetic.power(-root, power)
            return arithmetic.power(root, power)
        case Call(function, arguments):
            return _call(function, [_value(a, index, arithmetic) for a in arguments], arithmetic)
    raise NoValue(f"{type(node).__name__} has no value")


def _call(function: str, values: list[Any], arithmetic: Any) -> Any:
    if function in arithmetic.functions:
        return arithmetic.functions[function](values[0])
    if function.startswith("unit:"):
        if function == "unit:percent":
            return values[0] * arithmetic.fraction(1, 100)
        if function == "unit:degree":
            return values[0] * arithmetic.constants["pi"] * arithmetic.fraction(1, 180)
        return values[0]
    if any(value.imag != 0 for value in values):
        raise NoValue(f"{function} of a complex number")
    x = values[0]
    if function == "floor":
        return arithmetic.floor(x)
    if function == "ceil":
        return -arithmetic.floor(-x)
    if function == "sgn":
        return (x.real > 0) - (x.real < 0) + 0j
    if abs(x) > 1e6:
        raise NoValue(f"{function} of a large number")
    if function == "factorial":
        return arithmetic.gamma(x + 1)
    if function == "binom":
        k = values[1]
        return arithmetic.gamma(x + 1) / (arithmetic.gamma(k + 1) * arithmetic.gamma(x - k + 1))
    raise NoValue(f"{function} is not evaluated")


def usable(left: Any, right: Any, complex_expected: bool) -> bool:
    """Whether a point tells something: both values finite, and real unless i is in play."""
    for value in (left, right):
        size = abs(value)
        if not size < math.inf:
            return False
        if not complex_expected and abs(value.imag) > 1e-9 * max(size, 1e-300):
            return False
    return True


def differ(left: Node, right: Node) -> bool:
    """Whether two expressions certainly differ, by floating-point values.

    False means only that nothing was found: the values agree, or there are none.
    """
    arithmetic = FloatArithmetic()
    names = {*symbols(left), *symbols(right)}
    complex_expected = "i" in names
    points = SAMPLES if names - set(arithmetic.constants) else 1
    for index in range(points):
        try:
            a = evaluate(left, index, arithmetic)
            b = evaluate(right, index, arithmetic)
        except NoValue:
            continue
        if not usable(a, b, complex_expected or points == 1):
            continue
        gap, size = abs(a - b), max(abs(a), abs(b))
        if size < 1e-250:
            continue
        if gap > 1e-7 * size and gap > arithmetic.tiny * largest_term(
            left, right, index, arithmetic
        ):
            return True
    return False


def differ_in_proportion(left: Node, right: Node) -> bool:
    """Whether two expressions certainly are no constant multiple of one another."""
    arithmetic = FloatArithmetic()
    ratios = []
    for index in range(SAMPLES):
        try:
            a = evaluate(left, index, arithmetic)
            b = evaluate(right, index, arithmetic)
            scale = largest_term(left, right, index, arithmetic)
        except NoValue:
            continue
        if usable(a, b, True) and min(abs(a), abs(b)) > 1e-6 * scale:
            ratios.append(a / b)
    return any(abs(ratio - ratios[0]) > 1e-6 * abs(ratios[0]) for ratio in ratios)


def largest_term(left: Node, right: Node, index: int, arithmetic: Any) -> float:
    """The largest term that was added on either side: the scale of rounding errors."""
    largest = 0.0
    stack = [left, right]
    while stack:
        node = stack.pop()
        if isinstance(node, Sum):
            for term in node.terms:
                largest = max(largest, abs(evaluate(term, index, arithmetic)))
        match node:
            case Sum(parts) | Product(parts) | Call(_, parts):
                stack.extend(parts)
            case Power(base, exponent):
                stack.extend((base, exponent))
    return largest
