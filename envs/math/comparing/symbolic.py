"""What only symbolic work can tell, run in a worker: 60 digits, then math-verify.

Expressions that the reader understands are compared at sample points with mpmath: two
expressions that agree to 40 digits at several random points are equal for every purpose
of a grader, and nothing is ever expanded or simplified. Notation that it does not
understand (sums, integrals, limits ...) goes to math-verify's LaTeX reader, never to its
plain reader, and never to anything that evaluates text as code.
"""

from __future__ import annotations

import logging
from typing import Any

import mpmath
from math_verify import LatexExtractionConfig, parse, verify

from flexmg.envs.math.comparing import numeric
from flexmg.envs.math.comparing.comparison import Question, compare
from flexmg.envs.math.reading.expression import Node, Unread, symbols
from flexmg.envs.math.reading.notation import clean
from flexmg.envs.math.reading.reader import read

DIGITS = 60
AGREEMENT = 40  # digits in which equal values agree

# Every call without a time limit of its own is logged; the pool holds the limit here.
logging.getLogger("math_verify").setLevel(logging.ERROR)
logging.getLogger("latex2sympy2_extended").setLevel(logging.ERROR)


class PreciseArithmetic:
    """mpmath's complex numbers with 60 digits."""

    def __init__(self) -> None:
        context: Any = mpmath.MPContext()
        context.dps = DIGITS
        self.context = context
        self.tiny = context.mpf(10) ** -(DIGITS - 10)
        self.constants = {"pi": +context.pi, "e": +context.e, "i": context.j, "oo": context.inf}
        names = "sin cos tan cot sec csc sinh cosh tanh coth ln"
        self.functions = {name: getattr(context, name) for name in names.split()}
        for name in ("sin", "cos", "tan", "cot", "sec", "csc"):
            self.functions["arc" + name] = getattr(context, "a" + name)
        self.functions["abs"] = abs
        self.functions["arccot"] = lambda x: context.pi / 2 - context.atan(x)

    def fraction(self, numerator: int, denominator: int) -> Any:
        """A rational number."""
        return self.context.mpc(self.context.mpf(numerator) / denominator)

    def power(self, base: Any, exponent: Any) -> Any:
        """A power on the principal branch."""
        if exponent.imag == 0 and exponent.real == int(exponent.real):
            return base ** int(exponent.real)
        return self.context.power(base, exponent)

    def gamma(self, x: Any) -> Any:
        """The gamma function of a real number."""
        return self.context.gamma(x.real)

    def floor(self, x: Any) -> Any:
        """The floor of a real number."""
        return self.context.floor(x.real)


def equal_values(gold: Node, answer: Node) -> bool | None:
    """Whether two expressions agree at every sample point; None when there is none."""
    arithmetic = PreciseArithmetic()
    names = {*symbols(gold), *symbols(answer)}
    constant = not names - set(arithmetic.constants)
    threshold = arithmetic.context.mpf(10) ** -AGREEMENT
    agreed = 0
    for index in range(1 if constant else numeric.SAMPLES):
        try:
            a = numeric.evaluate(gold, index, arithmetic)
            b = numeric.evaluate(answer, index, arithmetic)
            if not numeric.usable(a, b, constant or "i" in names):
                continue
            scale = max(abs(a), abs(b), numeric.largest_term(gold, answer, index, arithmetic))
        except numeric.NoValue:
            continue
        if abs(a - b) > threshold * scale:
            return False
        agreed += 1
    return True if agreed else None


def proportional_values(gold: Node, answer: Node) -> bool | None:
    """Whether two expressions have a constant ratio other than 0 at the sample points."""
    arithmetic = PreciseArithmetic()
    threshold = arithmetic.context.mpf(10) ** -AGREEMENT
    ratios = []
    for index in range(numeric.SAMPLES):
        try:
            a = numeric.evaluate(gold, index, arithmetic)
            b = numeric.evaluate(answer, index, arithmetic)
            scale = numeric.largest_term(gold, answer, index, arithmetic)
        except numeric.NoValue:
            continue
        if abs(a) > threshold * scale and abs(b) > threshold * scale:
            ratios.append(a / b)
    if len(ratios) < 2:
        return None
    return all(abs(ratio - ratios[0]) <= threshold * abs(ratios[0]) for ratio in ratios)


def verified(gold: str, answer: str) -> bool | None:
    """What math-verify says of two LaTeX texts; None when it cannot read one of them."""
    config = [LatexExtractionConfig(boxed_match_priority=-1)]
    parsed = []
    for text in (gold, answer):
        found = parse(
            f"${text}$",
            config,
            fallback_mode="no_fallback",
            extraction_mode="first_match",
            parsing_timeout=None,
        )
        if len(found) != 1 or isinstance(found[0], str):
            return None
        parsed.append(found[0])
    return bool(verify(parsed[0], parsed[1], timeout_seconds=None))


def settle(gold: str, answer: str) -> bool | None:
    """Whether an extracted answer is right; None when neither reader can tell."""

    def decide(question: Question, one: Node, other: Node) -> bool | None:
        if isinstance(one, Unread) or isinstance(other, Unread):
            return verified(clean(gold), clean(answer))
        return (equal_values if question == "equal" else proportional_values)(one, other)

    return compare(read(gold), read(answer), decide)
