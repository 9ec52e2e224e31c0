r"""A normal form for expressions: equal normal forms are equal expressions.

An expression becomes a sum of monomials, each a rational coefficient times atoms with
rational exponents. Atoms are variables, ``pi``, ``e``, ``i``, prime numbers under a root,
powers with a symbolic exponent (``2**n``) and whatever is not taken apart (``sin(x)``,
a quotient by a sum), by its own normal form. The form decides most answers without
sympy and serves as the key that votes are counted by. It is not complete: two different
normal forms may still be equal, which :mod:`flexmg.envs.math.comparing.comparison` looks into.

Variables under a root are taken for positive (``\sqrt{4/m}`` is ``2/\sqrt{m}``), as
contest answers mean them; ``\sqrt{x^2}`` is not simplified.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from flexmg.envs.math.reading.expression import Call, Node, Number, Power, Product, Sum, Symbol

MOST_TERMS = 120
LARGEST_POWER = 16
MOST_BITS = 16_384
LARGEST_TRIAL_DIVISOR = 1000

Atoms = tuple[tuple[str, Fraction], ...]
Terms = dict[Atoms, Fraction]


class TooLarge(ValueError):
    """The normal form would have too many terms, or too long numbers."""


def normal_form(node: Node) -> str:
    """The normal form of an arithmetic node as a string.

    Raises:
        TooLarge: when it would be too long to write out.
    """
    return written(terms_of(node))


def written(terms: Terms) -> str:
    """A sum of monomials as a string; equal sums give equal strings."""
    if not terms:
        return "0"
    parts = []
    for atoms, coefficient in sorted(terms.items()):
        names = [name if exponent == 1 else f"{name}^{exponent}" for name, exponent in atoms]
        parts.append("*".join(names if coefficient == 1 and names else [str(coefficient), *names]))
    return "+".join(parts)


def terms_of(node: Node) -> Terms:
    """The monomials of an arithmetic node."""
    match node:
        case Number(value):
            return {(): value} if value else {}
        case Symbol(name):
            return {((name, Fraction(1)),): Fraction(1)}
        case Sum(parts):
            return added(terms_of(part) for part in parts)
        case Product(factors):
            product: Terms = {(): Fraction(1)}
            for factor in factors:
                product = multiplied(product, terms_of(factor))
            return product
        case Power(base, exponent):
            return powered(terms_of(base), terms_of(exponent))
        case Call(function, arguments):
            return called(function, [terms_of(argument) for argument in arguments])
    raise TooLarge(f"{type(node).__name__} is no expression")


def added(sums: Iterable[Terms]) -> Terms:
    """The sum of several sums."""
    total: Terms = {}
    for terms in sums:
        for atoms, coefficient in terms.items():
            value = total.get(atoms, Fraction(0)) + coefficient
            if value:
                total[atoms] = value
            else:
                del total[atoms]
    if len(total) > MOST_TERMS:
        raise TooLarge(f"{len(total)} terms")
    return total


def multiplied(left: Terms, right: Terms) -> Terms:
    """The product of two sums, written out."""
    if len(left) * len(right) > 4 * MOST_TERMS:
        raise TooLarge(f"{len(left)} times {len(right)} terms")
    return added(
        {atoms: a * b * factor}
        for one, a in left.items()
        for other, b in right.items()
        for atoms, factor in [joined(one, other)]
    )


def joined(one: Atoms, other: Atoms) -> tuple[Atoms, Fraction]:
    """The product of two monomials: its atoms, and the rational number that falls out."""
    if not one:
        return other, Fraction(1)
    if not other:
        return one, Fraction(1)
    exponents = dict(one)
    for name, exponent in other:
        exponents[name] = exponents.get(name, Fraction(0)) + exponent
    return settled(exponents)


def settled(exponents: dict[str, Fraction]) -> tuple[Atoms, Fraction]:
    """Atoms in order: whole powers of primes and of i leave as a rational factor."""
    factor = Fraction(1)
    kept: list[tuple[str, Fraction]] = []
    for name, exponent in exponents.items():
        if name.isdecimal():
            whole = math.floor(exponent)
            if abs(whole) * int(name).bit_length() > MOST_BITS:
                raise TooLarge(f"{name} to the {whole}")
            factor *= Fraction(int(name)) ** whole
            exponent -= whole
        elif name == "i" and exponent.denominator == 1:
            turns = int(exponent) % 4
            factor *= -1 if turns >= 2 else 1
            exponent = Fraction(turns % 2)
        if exponent:
            kept.append((name, exponent))
    return tuple(sorted(kept)), factor


def powered(base: Terms, exponent: Terms) -> Terms:
    """A power of a sum; with a symbolic exponent it is split over the exponent's terms."""
    rational = exponent.get((), Fraction(0))
    symbolic = {atoms: c for atoms, c in exponent.items() if atoms}
    if not symbolic:
        return raised(base, rational)
    result: Terms = raised(base, rational)
    if set(base) != {()} and base != {(("e", Fraction(1)),): Fraction(1)}:
        name = f"({written(base)})**({written(symbolic)})"
        return multiplied(result, {((name, Fraction(1)),): Fraction(1)})
    if base.get((), Fraction(1)) <= 0:
        raise TooLarge("a symbolic power of a number that is not positive")
    bases = _primes(base[()]) if () in base else [("e", 1)]
    for prime, multiplicity in bases:
        for atoms, coefficient in symbolic.items():
            name = f"{prime}**({written({atoms: Fraction(1)})})"
            result = multiplied(result, {((name, coefficient * multiplicity),): Fraction(1)})
    return result


def raised(base: Terms, exponent: Fraction) -> Terms:
    """A sum to a rational power."""
    if exponent == 0:
        return {(): Fraction(1)}
    if not base:
        if exponent < 0:
            raise TooLarge("division by zero")
        return {}
    if len(base) == 1:
        [(atoms, coefficient)] = base.items()
        if exponent.denominator == 1 or _may_be_split(atoms, coefficient):
            return _monomial_raised(atoms, coefficient, exponent)
    elif exponent.denominator == 1 and 0 < exponent <= LARGEST_POWER:
        result = base
        for _ in range(int(exponent) - 1):
            result = multiplied(result, base)
        return result
    # An opaque power: content out, the rest by its own normal form.
    content = base[min(base)] if exponent.denominator == 1 else Fraction(1)
    primitive = {atoms: c / content for atoms, c in base.items()}
    name = f"({written(primitive)})"
    outside = _monomial_raised((), content, exponent)
    return multiplied(outside, {((name, exponent),): Fraction(1)})


def _may_be_split(atoms: Atoms, coefficient: Fraction) -> bool:
    """Whether a root of a monomial is the product of the roots of its parts."""
    variable = [(name, e) for name, e in atoms if name not in ("pi", "e") and not name.isdecimal()]
    odd = all(e.denominator > 1 or e.numerator % 2 for _, e in variable)
    return coefficient > 0 and len(variable) <= 1 and odd and ("i", Fraction(1)) not in atoms


def _monomial_raised(atoms: Atoms, coefficient: Fraction, exponent: Fraction) -> Terms:
    exponents = {name: e * exponent for name, e in atoms}
    if exponent.denominator == 1:
        bits = coefficient.numerator.bit_length() + coefficient.denominator.bit_length()
        if abs(exponent) * bits > MOST_BITS:
            raise TooLarge(f"a number to the {exponent}")
        kept, factor = settled(exponents)
        return {kept: factor * coefficient ** int(exponent)}
    for prime, multiplicity in _primes(coefficient):
        exponents[prime] = exponents.get(prime, Fraction(0)) + multiplicity * exponent
    kept, factor = settled(exponents)
    return {kept: factor}


def _primes(value: Fraction) -> list[tuple[str, int]]:
    """Factors of a positive fraction with multiplicity; a large rest counts as prime."""
    found: list[tuple[str, int]] = []
    for number, sign in ((value.numerator, 1), (value.denominator, -1)):
        divisor = 2
        while divisor * divisor <= number and divisor < LARGEST_TRIAL_DIVISOR:
            count = 0
            while number % divisor == 0:
                number //= divisor
                count += 1
            if count:
                found.append((str(divisor), sign * count))
            divisor += 1 if divisor == 2 else 2
        root = math.isqrt(number)
        if number > 1:
            square = root * root == number
            found.append((str(root), 2 * sign) if square else (str(number), sign))
    merged: dict[str, int] = {}
    for name, count in found:
        merged[name] = merged.get(name, 0) + count
    return sorted(merged.items())


def called(function: str, arguments: list[Terms]) -> Terms:
    """A function; exact where it is simple, else an atom by the form of its arguments."""
    if all(set(argument) <= {()} for argument in arguments):
        values = [argument.get((), Fraction(0)) for argument in arguments]
        exact = _exact_value(function, values)
        if exact is not None:
            return {(): exact} if exact else {}
    if function.startswith("unit:") and function not in ("unit:percent", "unit:degree"):
        return arguments[0]
    if function == "unit:percent":
        return multiplied(arguments[0], {(): Fraction(1, 100)})
    if function == "ln" and arguments[0] == {(("e", Fraction(1)),): Fraction(1)}:
        return {(): Fraction(1)}
    name = f"{function}({','.join(written(argument) for argument in arguments)})"
    return {((name, Fraction(1)),): Fraction(1)}


def _exact_value(function: str, values: list[Fraction]) -> Fraction | None:
    whole = [int(value) for value in values if value.denominator == 1]
    if function == "abs":
        return abs(values[0])
    if function in ("floor", "ceil"):
        return Fraction(math.floor(values[0]) if function == "floor" else math.ceil(values[0]))
    if function == "ln" and values[0] == 1:
        return Fraction(0)
    if len(whole) < len(values):
        return None
    if function == "factorial" and 0 <= whole[0] <= 3000:
        return Fraction(math.factorial(whole[0]))
    if function == "binom" and 0 <= whole[1] <= whole[0] <= 3000:
        return Fraction(math.comb(*whole))
    if function == "gcd":
        return Fraction(math.gcd(*whole))
    if function == "lcm":
        return Fraction(math.lcm(*whole))
    if function in ("max", "min"):
        return max(values) if function == "max" else min(values)
    return None
