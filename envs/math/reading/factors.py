r"""Reading one factor: a number, a name, a function, a root, something in bars."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction

from flexmg.envs.math.reading.cursor import Cursor, ReadError, RefusedError
from flexmg.envs.math.reading.expression import (
    HALF,
    BaseNumber,
    Call,
    Collection,
    Node,
    Number,
    Product,
    Symbol,
    is_arithmetic,
    negative,
    reciprocal,
)
from flexmg.envs.math.reading.folding import multiplied, powered
from flexmg.envs.math.reading.notation import Token
from flexmg.envs.math.reading.vocabulary import (
    BARS,
    BEYOND,
    DECORATIONS,
    FENCES,
    FRACTIONS,
    FUNCTIONS,
    INVERSES,
    RENAMED,
    SPELLINGS,
)

LONGEST_NUMBER = 1000  # digits

LARGEST_EXPONENT = 5000  # of scientific notation


class FactorReader(Cursor, ABC):
    """Reads single factors; sums and brackets are for the readers built on it."""

    @abstractmethod
    def sum(self) -> Node:
        """One or more terms."""

    @abstractmethod
    def sign(self) -> int:
        """Move past one sign; 0 when there is none."""

    @abstractmethod
    def product(self) -> Node:
        """One or more factors."""

    @abstractmethod
    def unary(self) -> Node:
        """A factor that may carry a sign."""

    @abstractmethod
    def power(self) -> Node:
        """A factor with its exponents."""

    @abstractmethod
    def starts_factor(self) -> bool:
        """Whether the next token can follow a factor with no operator between them."""

    @abstractmethod
    def group(self) -> Node:
        """What stands in brackets; the reader of structures knows tuples and intervals."""

    @abstractmethod
    def environment(self) -> Node:
        """A LaTeX environment (a matrix)."""

    def argument(self, whole_number: bool = True) -> Node:
        r"""A LaTeX argument: a ``{...}`` group or one token (``\frac43`` takes digits)."""
        if self.token.text == "{":
            self.take()
            node = self.sum()
            self.expect("}")
            if not is_arithmetic(node):
                raise ReadError("a structure stands where a value belongs")
            return node
        token = self.token
        if token.kind == "number" and not whole_number and token.text[0].isdigit():
            if len(token.text) > 1:
                self.tokens[self.position] = Token("number", token.text[1:], False)
            else:
                self.take()
            return Number(Fraction(int(token.text[0])))
        return self.primary()

    def primary(self) -> Node:
        """A number, a name, a function of something, or something in brackets."""
        kind, text, _ = self.token
        if kind == "number":
            return self.number()
        if kind == "letters":
            return self.name_or_call(text)
        if kind == "based":
            self.take()
            digits, _, base = text.partition("_")
            radix = int(base.strip(" {}()"))
            if not 2 <= radix <= 36:
                raise ReadError(f"{radix} is not a base")
            return BaseNumber(digits.strip().lstrip("0") or "0", radix)
        if kind == "command":
            return self.command(text)
        if text in BARS:
            return self.bars(BARS[text])
        if text in ("(", "[", "{", "]"):
            return self.group()
        raise ReadError(f"unexpected {text!r}")

    def number(self) -> Node:
        r"""A number as written: ``12``, ``0.50``, ``1e5``, ``0.1\overline{6}``, ``2 1/3``."""
        text = self.take().text
        if len(text) > LONGEST_NUMBER:
            raise RefusedError("the number is too long")
        mantissa, _, exponent = text.lower().partition("e")
        shift = int(exponent) if exponent else 0
        if abs(shift) > LARGEST_EXPONENT:
            raise RefusedError("the exponent is too large")
        whole, point, decimals = mantissa.partition(".")
        if self.token.text == "\\overline" and point and not exponent:
            self.take()
            return self.repeating(whole, decimals, "".join(t.text for t in self.braced()))
        value = (
            Fraction(int((whole or "0") + decimals), 10 ** len(decimals)) * Fraction(10) ** shift
        )
        if decimals or exponent:
            digits = len((whole + decimals).lstrip("0"))
            dots = self.token.kind == "dots" or self.token.text in ("\\ldots", "\\dots", "\\cdots")
            if dots and decimals and not self.token.spaced:
                self.take()
                return Number(value, len(decimals), digits, open_ended=True)
            return Number(value, len(decimals) - shift, digits)
        second, slash, third = self.token, self.ahead(1), self.ahead(2)
        if second.kind == "number":  # only white space can part two numbers
            if slash.text == "/" and third.kind == "number":
                part = self.product_of_two()
                if value.denominator == 1 and 0 < part < 1:
                    return Number(value + part)
            raise ReadError("two numbers side by side")
        return Number(value)

    def product_of_two(self) -> Fraction:
        """The fraction ``a/b`` of two integers that stands here."""
        over, _, under = self.take().text, self.take(), self.take().text
        if not (over.isdecimal() and under.isdecimal() and len(over + under) < LONGEST_NUMBER):
            raise ReadError("a mixed number with no proper fraction")
        if int(under) == 0:
            raise ReadError("division by zero")
        return Fraction(int(over), int(under))

    def repeating(self, whole: str, decimals: str, period: str) -> Node:
        """A repeating decimal as the fraction that it is."""
        if not period.isdecimal():
            raise ReadError("a period that is no number")
        scale = 10 ** len(decimals)
        tail = Fraction(int(period), (10 ** len(period) - 1) * scale)
        return Number(Fraction(int((whole or "0") + decimals), scale) + tail)

    def name_or_call(self, text: str) -> Node:
        """A letter with its subscript or arguments, a constant, or a function by its name."""
        name = SPELLINGS.get(text, text)
        if name in FUNCTIONS or name == "binom":
            self.take()
            return self.call(name)
        self.take()
        if text in ("e", "i", "pi", "oo") and self.token.text != "_":
            return Symbol(text)
        return self.named(text)

    def named(self, name: str) -> Node:
        """A name that has been read, with its subscript and, for ``f(x)``, its arguments."""
        if self.token.text == "_":
            self.take()
            if self.token.text == "{":
                name += "_" + "".join(token.text for token in self.braced())
            else:
                name += "_" + self.take().text
        steps, expects_name = 1, True
        if self.token.text == "(":
            while True:
                kind, text, _ = self.ahead(steps)
                simple = kind in ("letters", "number") or text in RENAMED
                if (expects_name and not simple) or (not expects_name and text not in (",", ")")):
                    break
                steps += 1
                if text == ")":
                    arguments = "".join(self.take().text for _ in range(steps))
                    return Symbol(name + arguments)
                expects_name = not expects_name
        return Symbol(name)

    def command(self, text: str) -> Node:
        """What a LaTeX command stands for."""
        if text in FRACTIONS:
            return self.fraction()
        if text == "\\begin":
            return self.environment()
        if text in ("\\{", "\\lbrace", "\\langle"):
            return self.group()
        if text in BARS:
            return self.bars(BARS[text])
        self.take()
        if text == "\\sqrt":
            return self.root()
        if text == "\\underline":
            return self.argument()
        if text in FENCES:
            closing, function = FENCES[text]
            node = self.sum()
            self.expect(closing)
            return Call(function, (node,))
        if text in ("\\binom", "\\dbinom", "\\tbinom"):
            return Call("binom", (self.argument(False), self.argument(False)))
        if text == "\\$":
            return Call("unit:dollar", (self.unary(),))
        if text in DECORATIONS:
            inner = self.braced_text() if self.token.text == "{" else self.token.text
            self.braced() if self.token.text == "{" else self.take()
            return self.named(f"{text}{{{inner}}}")
        name = RENAMED.get(text, text)
        bare = SPELLINGS.get(name[1:], name[1:])
        if name.startswith("\\") and bare in FUNCTIONS:
            return self.call(bare)
        if name in ("oo", "pi", "i"):
            return Symbol(name)
        if name == "\\emptyset":
            return Collection(())
        if text in BEYOND or self.token.text == "{" or not text[1:].isalpha():
            raise ReadError(f"{text} is not known")
        return self.named(name)

    def fraction(self) -> Node:
        r"""``\frac``; a derivative is a name of its own, not a quotient of products."""
        self.take()
        here = self.position
        if self.token.text == "{":
            over = self.braced()
            under = self.braced() if self.token.text == "{" else []
            marks = ("d", "\\partial")
            if len(under) > 1 and under[0].text in marks and over and over[0].text in marks:
                return Symbol("D" + "".join(t.text for t in [*over, Token("", "|", False), *under]))
            self.position = here
        over_node = self.argument(False)
        return multiplied([over_node, self.inverse(self.argument(False))])

    def root(self) -> Node:
        r"""``\sqrt{x}`` and ``\sqrt[n]{x}``."""
        degree: Node = HALF
        if self.token.text == "[":
            self.take()
            degree = self.inverse(self.sum())
            self.expect("]")
        return powered(self.argument(), degree)

    def bars(self, closing: str) -> Node:
        """An absolute value."""
        if self.inside_bars:
            raise ReadError("bars within bars")
        self.take()
        self.inside_bars = True
        node = self.sum()
        self.inside_bars = False
        self.expect(closing)
        return Call("abs", (node,))

    # -- functions ------------------------------------------------------------------------
    def call(self, function: str) -> Node:
        """A function whose name has been read, with its power, base and argument."""
        exponent: Node | None = None
        base: Node | None = None
        while self.token.text in ("^", "_"):
            if self.take().text == "_":
                digits = self.token.kind == "number" and self.token.text.isdecimal()
                base = Number(Fraction(int(self.take().text))) if digits else self.argument()
            else:
                sign = self.sign()
                exponent = self.argument()
                exponent = negative(exponent) if sign < 0 else exponent
        if exponent == Number(Fraction(-1)) and function in INVERSES:
            function, exponent = INVERSES[function], None
        node = self.applied(function, base)
        return node if exponent is None else powered(node, exponent)

    def applied(self, function: str, base: Node | None) -> Node:
        """The function of its argument, in terms of few basic functions."""
        arguments = self.arguments()
        if len(arguments) != (2 if function == "binom" else 1):
            if function not in ("min", "max", "gcd", "lcm", "log") or len(arguments) < 2:
                raise ReadError(f"{function} of {len(arguments)} arguments")
            if function == "log":
                arguments, base = arguments[:1], arguments[1]
        if not all(is_arithmetic(argument) for argument in arguments):
            raise ReadError("a function of a structure")
        simple: dict[str, Callable[[Node], Node]] = {
            "sqrt": lambda x: powered(x, HALF),
            "cbrt": lambda x: powered(x, Number(Fraction(1, 3))),
            "exp": lambda x: powered(Symbol("e"), x),
        }
        if function in simple:
            return simple[function](arguments[0])
        if function == "lg":
            function, base = "log", Number(Fraction(10))
        if function in ("log", "ln"):
            logarithm = Call("ln", (arguments[0],))
            if base is None:
                return logarithm
            return Product((logarithm, reciprocal(Call("ln", (base,)))))
        return Call(function, tuple(arguments))

    def arguments(self) -> list[Node]:
        """Arguments in brackets, or the factors that follow up to an operator."""
        text = self.token.text
        if text in ("(", "[", "{"):
            closing = {"(": ")", "[": "]", "{": "}"}[text]
            self.take()
            found = [self.sum()]
            while self.token.text == ",":
                self.take()
                found.append(self.sum())
            self.expect(closing)
            return found
        factors = [self.unary()]
        while self.starts_factor() and not self.starts_function():
            factors.append(self.power())
        return [multiplied(factors)]

    def starts_function(self) -> bool:
        """Whether the next token is the name of a function."""
        name = self.token.text.removeprefix("\\")
        return SPELLINGS.get(name, name) in FUNCTIONS - {"sqrt", "cbrt"}

    def inverse(self, node: Node) -> Node:
        """The reciprocal of what stands under a fraction bar."""
        if not is_arithmetic(node):
            raise ReadError("division by a structure")
        if isinstance(node, Number):
            if node.value == 0:
                raise ReadError("division by zero")
            return Number(1 / node.value)
        return reciprocal(node)

    def negated(self, node: Node) -> Node:
        """The additive inverse of what must be a value."""
        if not is_arithmetic(node):
            raise ReadError("a structure with a sign")
        return negative(node)
