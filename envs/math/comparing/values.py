"""Whether two values are equal, as far as this process can tell without sympy."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from flexmg.envs.math.comparing import numeric
from flexmg.envs.math.comparing.normal_form import TooLarge, terms_of, written
from flexmg.envs.math.reading.expression import Node, Number, is_constant, symbols

FEWEST_DIGITS = 6  # of a decimal that stands for an exact value

FEWEST_LEADING = 4  # significant digits that 6 places must hold

NOISE_DIGITS = 15  # from here on a decimal may carry binary rounding noise


# -- values ------------------------------------------------------------------------------
@lru_cache(maxsize=8192)
def form_of(node: Node) -> str | None:
    """The normal form of a value, None when it is too large to write out."""
    try:
        return written(terms_of(node))
    except (TooLarge, RecursionError):
        return None


def same_value(gold: Node, answer: Node) -> bool | None:
    """Whether two values are equal, as far as exact and floating-point arithmetic tell."""
    if isinstance(gold, Number) and isinstance(answer, Number):
        return gold.value == answer.value or stands_for(answer, gold) or stands_for(gold, answer)
    if isinstance(answer, Number) and stands_for(answer, gold):
        return True
    if isinstance(gold, Number) and stands_for(gold, answer):
        return True
    one, other = form_of(gold), form_of(answer)
    if one is not None and one == other:
        return True
    if "oo" in {*symbols(gold), *symbols(answer)} and one is not None and other is not None:
        return False
    if numeric.differ(gold, answer):
        return False
    return None


def stands_for(decimal: Number, exact: Node) -> bool:
    """Whether a decimal is an exact constant correctly rounded to enough digits."""
    places = decimal.places
    if places is None or not is_constant(exact):
        return False
    enough = decimal.digits >= FEWEST_DIGITS and places >= 1
    if not enough and not (places >= FEWEST_DIGITS and decimal.digits >= FEWEST_LEADING):
        return False
    value = exact.value if isinstance(exact, Number) else _float_value(exact)
    if value is None:
        return False
    noise = abs(value) * Fraction(1, 10**14)
    if decimal.digits >= NOISE_DIGITS and abs(value - decimal.value) <= noise:
        return True
    if isinstance(exact, Number) and exact.places is not None:
        return False
    if decimal.open_ended:
        gap = (value - decimal.value) * (1 if decimal.value >= 0 else -1)
        return 0 <= gap < Fraction(1, 10**places)
    slack = 0 if isinstance(exact, Number) else abs(value) / 10**15
    return abs(value - decimal.value) <= Fraction(1, 2 * 10**places) + slack


def _float_value(node: Node) -> Fraction | None:
    """The real value of a constant to double precision."""
    try:
        value = numeric.evaluate(node, 0, numeric.FloatArithmetic())
    except numeric.NoValue:
        return None
    if not abs(value) < float("inf") or abs(value.imag) > 1e-12 * abs(value):
        return None
    return Fraction(value.real)
