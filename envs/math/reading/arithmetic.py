"""Reading one value: a recursive-descent reader of LaTeX and program arithmetic.

Nothing is ever evaluated as code. Numbers are folded into exact fractions as long as
they stay small; ``9^{9^{9^9}}`` stays a tree of four numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

from flexmg.envs.math.reading.cursor import ReadError, RefusedError
from flexmg.envs.math.reading.expression import (
    BaseNumber,
    Call,
    Node,
    Number,
    Sum,
    Symbol,
    is_arithmetic,
    negative,
)
from flexmg.envs.math.reading.factors import FactorReader
from flexmg.envs.math.reading.folding import MOST_BITS, _bits, multiplied, powered
from flexmg.envs.math.reading.notation import Token
from flexmg.envs.math.reading.units import NUMBER_WORDS
from flexmg.envs.math.reading.vocabulary import FRACTIONS, OVER, TIMES

MOST_MARKS = 8  # factorials and the like behind one value


class ArithmeticReader(FactorReader):
    """Reads sums, products and powers from a list of tokens."""

    # -- sums and products ------------------------------------------------------------
    def sum(self) -> Node:
        """One or more terms."""
        self.descend()
        sign = self.sign()
        if sign == 0 and self.token.text == "+-":
            self.take()
            self.saw_plus_minus, sign = True, self.plus_minus
        first = self.product()
        if sign < 0 and isinstance(first, BaseNumber):
            first = BaseNumber("-" + first.digits, first.base)
        elif sign < 0:
            first = self.negated(first)
        terms = [first]
        while True:
            if self.token.text == "+-":
                self.tokens[self.position : self.position + 1] = [
                    Token("other", "+", False),
                    Token("other", "-", False),
                ]
            sign = self.sign()
            if sign == 0:
                break
            term = self.product()
            terms.append(negative(term) if sign < 0 else term)
        self.depth -= 1
        if len(terms) == 1:
            return terms[0]
        if not all(is_arithmetic(term) for term in terms):
            raise ReadError("a structure stands inside a sum")
        numbers = [t for t in terms if isinstance(t, Number) and _bits(t.value) < MOST_BITS]
        if len(numbers) == len(terms):
            return Number(sum((t.value for t in numbers), Fraction(0)))
        return Sum(tuple(terms))

    def sign(self) -> int:
        """Move past one sign; 0 when there is none."""
        text = self.token.text
        if text in ("+", "-"):
            self.take()
            return 1 if text == "+" else -1
        if text in ("\\pm", "\\mp", "+/-"):
            self.take()
            self.saw_plus_minus = True
            return -self.plus_minus if text == "\\mp" else self.plus_minus
        return 0

    def product(self) -> Node:
        """One or more factors, with or without an operator between them."""
        literal = self.token.kind == "number"
        factors = [self.unary()]
        while True:
            text = self.token.text
            if text in TIMES:
                self.take()
                factors.append(self.unary())
            elif text in OVER:
                self.take()
                factors.append(self.inverse(self.unary()))
            elif text in FRACTIONS and literal and isinstance(factors[-1], Number):
                factors.append(self.mixed(factors.pop()))
            elif self.starts_factor() and is_arithmetic(factors[-1]):
                factors.append(self.power())
            else:
                return multiplied(factors)
            literal = False

    def mixed(self, whole: Node) -> Node:
        r"""``2\frac{1}{3}`` is a mixed number when the fraction is proper, else a product."""
        part = self.power()
        if not (isinstance(whole, Number) and isinstance(part, Number)):
            return multiplied([whole, part])
        integral = whole.places is None and whole.value.denominator == 1
        if integral and 0 < part.value < 1:
            return Number(whole.value + part.value)
        return multiplied([whole, part])

    def starts_factor(self) -> bool:
        """Whether the next token can follow a factor with no operator between them."""
        kind, text, _ = self.token
        if kind == "letters":
            return True
        if kind == "number":
            return self.tokens[self.position - 1].text in (")", "}")
        if kind == "command":
            if text in ("\\lbrace", "\\{", "\\}", "\\rbrace", "\\$", "\\%", "\\langle", "\\rangle"):
                return False
            closing = ("\\rfloor", "\\rceil", "\\vert", "\\rvert", "\\mid", "\\pm", "\\mp")
            return text not in closing and not self.ends_value(text)
        if text == "|":
            return not self.inside_bars
        if text == "[":
            return not self.outward
        return text in ("(", "{") and kind == "other"

    @abstractmethod
    def ends_value(self, command: str) -> bool:
        """Whether a command is a relation or an operation between structures."""

    # -- factors ------------------------------------------------------------------------
    def unary(self) -> Node:
        """A factor that may carry a sign, as in ``2 * -3``."""
        sign = self.sign()
        if sign == 0:
            return self.power()
        self.descend()
        factor = self.unary()
        self.depth -= 1
        return self.negated(factor) if sign < 0 else factor

    def power(self) -> Node:
        """A factor with its exponents, factorials, percent and degree signs."""
        self.descend()
        node = self.marked(self.primary())
        self.depth -= 1
        return node

    def marked(self, node: Node) -> Node:
        """A value with all that is written behind and above it."""
        for _ in range(MOST_MARKS):
            text = self.token.text
            if text == "!":
                self.take()
                node = Call("factorial", (node,))
            elif text in ("%", "\\%"):
                self.take()
                node = Call("unit:percent", (node,))
            elif text in ("\\degree", "\\textdegree"):
                self.take()
                node = Call("unit:degree", (node,))
            elif text == "'" and isinstance(node, Symbol):
                self.take()
                node = Symbol(node.name + "'")
            elif text == "_" and isinstance(node, Number):
                self.take()
                node = self.in_base(node)
            elif text in ("^", "**"):
                self.take()
                node = self.exponentiated(node)
            else:
                return node
        raise RefusedError("too many marks behind one value")

    def in_base(self, number: Number) -> BaseNumber:
        r"""Digits with the base that stands below them, ``(204)_5`` or ``204_{\text{five}}``."""
        below = self.braced() if self.token.text == "{" else [self.take()]
        text = "".join(token.text for token in below).strip("()").casefold()
        base = int(text) if text.isdecimal() else NUMBER_WORDS.get(text, 0)
        if number.value.denominator != 1 or number.value < 0 or not 2 <= base <= 36:
            raise ReadError(f"{text} is not a base")
        return BaseNumber(str(number.value), base)

    def exponentiated(self, base: Node) -> Node:
        """``base`` with the exponent that stands here."""
        marks = self.braced_text() if self.token.text == "{" else self.token.text
        if marks in ("\\circ", "\\degree", "\\prime", "\\prime\\prime"):
            if self.token.text == "{":
                self.braced()
            else:
                self.take()
            if "prime" not in marks:
                if self.token.text in ("C", "F"):
                    self.take()
                return Call("unit:degree", (base,))
            if not isinstance(base, Symbol):
                raise ReadError("a prime on something that is no name")
            return Symbol(base.name + "'" * marks.count("prime"))
        if self.token.text == "{":
            return powered(base, self.argument())
        sign = self.sign()
        exponent = self.power()  # right associative: 2^3^2 is 2^(3^2)
        return powered(base, negative(exponent) if sign < 0 else exponent)
