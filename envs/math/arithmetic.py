"""Reading one value: a recursive-descent reader of LaTeX and program arithmetic.

Nothing is ever evaluated as code. Numbers are folded into exact fractions as long as
they stay small; ``9^{9^{9^9}}`` stays a tree of four numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flexmg.envs.math.expression import (
    HALF,
    ONE,
    BaseNumber,
    Call,
    Collection,
    Node,
    Number,
    Power,
    Product,
    Sum,
    Symbol,
    is_arithmetic,
    negative,
    reciprocal,
)
from flexmg.envs.math.notation import Token

MOST_BITS = 16_384  # of a number that is folded
LONGEST_NUMBER = 1000  # digits
LARGEST_EXPONENT = 5000  # of scientific notation
DEEPEST = 80  # levels of brackets, signs and exponents
MOST_MARKS = 8  # factorials and the like behind one value

_INVERSE = {name: "arc" + name for name in ("sin", "cos", "tan", "cot", "sec", "csc")}
FUNCTIONS = {
    "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "ln", "log", "lg",
    "exp", "sqrt", "abs", "floor", "ceil", "factorial", "binomial", "min", "max", "gcd", "lcm",
    "det", "sgn", "sign", "cbrt", *_INVERSE.values(),
}  # fmt: skip
SPELLINGS = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "tg": "tan", "ctg": "cot",
    "log10": "lg", "ceiling": "ceil", "sign": "sgn", "binomial": "binom", "cosec": "csc",
}  # fmt: skip
FRACTIONS = {"\\frac", "\\dfrac", "\\tfrac", "\\cfrac"}
TIMES = {"*", "\\cdot", "\\times", "\\ast", "\\cdotp", "\\bullet"}
OVER = {"/", "\\div", "\\slash"}
DECORATIONS = {
    "\\vec", "\\hat", "\\bar", "\\dot", "\\ddot", "\\tilde", "\\overline", "\\underline",
    "\\overrightarrow", "\\widehat", "\\widetilde", "\\mathbb", "\\mathfrak", "\\mathscr",
    "\\overset", "\\overparen", "\\overarc",
}  # fmt: skip
# Commands whose meaning is more than a name: left to math-verify.
BEYOND = {
    "\\int", "\\iint", "\\oint", "\\sum", "\\prod", "\\lim", "\\begin", "\\end", "\\pmod", "\\bmod",
    "\\mod", "\\forall", "\\exists", "\\right", "\\left", "\\color", "\\stackrel", "\\substack",
    "\\boxed", "\\fbox", "\\ldots", "\\dots", "\\cdots", "\\rightarrow", "\\implies", "\\mid",
    "\\&", "\\#", "\\\\", "\\|",
}  # fmt: skip
RENAMED = {
    "\\varnothing": "\\emptyset", "\\varepsilon": "\\epsilon", "\\varphi": "\\phi",
    "\\vartheta": "\\theta", "\\imath": "i", "\\infty": "oo", "\\pi": "pi",
}  # fmt: skip
FENCES = {"\\lfloor": ("\\rfloor", "floor"), "\\lceil": ("\\rceil", "ceil")}
BARS = {"|": "|", "\\vert": "\\vert", "\\lvert": "\\rvert", "\\mid": "\\mid"}
END = Token("end", "", False)


class ReadError(ValueError):
    """The text is not notation that the reader knows."""


def multiplied(factors: list[Node]) -> Node:
    """A product, its leading numbers folded; ``1.3 \\times 10^5`` stays a decimal."""
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


class ArithmeticReader:
    """Reads sums, products, powers, functions and names from a list of tokens."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.position = 0
        self.depth = 0
        self.plus_minus = 1  # how this pass reads \pm
        self.saw_plus_minus = False
        self.inside_bars = False

    # -- tokens ---------------------------------------------------------------------
    @property
    def token(self) -> Token:
        """The token to be read next; ``END`` after the last."""
        return self.tokens[self.position] if self.position < len(self.tokens) else END

    def ahead(self, steps: int) -> Token:
        """The token ``steps`` after the next one."""
        at = self.position + steps
        return self.tokens[at] if at < len(self.tokens) else END

    def take(self) -> Token:
        """Move past the next token and return it."""
        token = self.token
        self.position += 1
        return token

    def expect(self, text: str) -> None:
        """Move past the next token, which must be this one."""
        if self.take().text != text:
            raise ReadError(f"expected {text!r}")

    def braced(self) -> list[Token]:
        """The tokens of a ``{...}`` group that starts here, braces excluded."""
        self.expect("{")
        start, depth = self.position, 1
        while depth:
            token = self.take()
            if token is END:
                raise ReadError("a brace is not closed")
            depth += {"{": 1, "}": -1}.get(token.text, 0)
        return self.tokens[start : self.position - 1]

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

    def descend(self) -> None:
        """Go one level deeper; whoever calls it goes back up by itself."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise ReadError("nested too deeply")

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
            elif self.starts_factor():
                factors.append(self.power())
            else:
                return multiplied(factors)
            literal = False

    def mixed(self, whole: Node) -> Node:
        """``2\\frac{1}{3}`` is a mixed number when the fraction is proper, else a product."""
        part = self.power()
        if isinstance(whole, Number) and isinstance(part, Number) and whole.places is None:
            if whole.value.denominator == 1 and 0 < part.value < 1:
                return Number(whole.value + part.value)
        return multiplied([whole, part])

    def inverse(self, node: Node) -> Node:
        """The reciprocal of what stands under a fraction bar."""
        if not is_arithmetic(node):
            raise ReadError("division by a structure")
        if isinstance(node, Number):
            if node.value == 0:
                raise ReadError("division by zero")
            return Number(1 / node.value)
        return reciprocal(node)

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
        return text in ("(", "[", "{") and kind == "other"

    def ends_value(self, command: str) -> bool:
        """Whether a command is a relation or an operation between structures."""
        raise NotImplementedError

    def group(self) -> Node:
        """What stands in brackets; the reader of structures knows tuples and intervals."""
        raise NotImplementedError

    def environment(self) -> Node:
        """A LaTeX environment (a matrix)."""
        raise NotImplementedError

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

    def negated(self, node: Node) -> Node:
        """The additive inverse of what must be a value."""
        if not is_arithmetic(node):
            raise ReadError("a structure with a sign")
        return negative(node)

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
            elif text in ("^", "**"):
                self.take()
                node = self.exponentiated(node)
            else:
                return node
        raise ReadError("too many marks behind one value")

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

    def braced_text(self) -> str:
        """The text of the group that starts here, without moving."""
        here = self.position
        text = "".join(token.text for token in self.braced())
        self.position = here
        return text

    def argument(self, whole_number: bool = True) -> Node:
        """A LaTeX argument: a ``{...}`` group or one token (``\\frac43`` takes digits)."""
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
        """A number as written: ``12``, ``0.50``, ``1e5``, ``0.1\\overline{6}``, ``2 1/3``."""
        text = self.take().text
        if len(text) > LONGEST_NUMBER:
            raise ReadError("the number is too long")
        mantissa, _, exponent = text.lower().partition("e")
        shift = int(exponent) if exponent else 0
        if abs(shift) > LARGEST_EXPONENT:
            raise ReadError("the exponent is too large")
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
        if text in FENCES:
            closing, function = FENCES[text]
            node = self.sum()
            self.expect(closing)
            return Call(function, (node,))
        if text in ("\\binom", "\\dbinom", "\\tbinom"):
            return Call("binom", (self.argument(False), self.argument(False)))
        if text == "\\$":
            return Call("unit:dollar", (self.power(),))
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
        """``\\frac``; a derivative is a name of its own, not a quotient of products."""
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
        """``\\sqrt{x}`` and ``\\sqrt[n]{x}``."""
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
                base = self.argument()
            else:
                sign = self.sign()
                exponent = self.argument()
                exponent = negative(exponent) if sign < 0 else exponent
        if exponent == Number(Fraction(-1)) and function in _INVERSE:
            function, exponent = _INVERSE[function], None
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


__all__ = ["END", "ONE", "ArithmeticReader", "ReadError"]
