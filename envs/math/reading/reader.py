"""Reading an answer: lists, tuples, intervals, sets, matrices, relations, units, words."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from flexmg.envs.math.reading.arithmetic import ArithmeticReader
from flexmg.envs.math.reading.cursor import ReadError, RefusedError
from flexmg.envs.math.reading.expression import (
    Alternatives,
    BaseNumber,
    Bounded,
    Collection,
    Dots,
    Group,
    Listing,
    Matrix,
    Node,
    Number,
    Quantity,
    Relation,
    Text,
    Unread,
    is_arithmetic,
)
from flexmg.envs.math.reading.notation import (
    LONGEST_ANSWER,
    MOST_TOKENS,
    Token,
    clean,
    fold_words,
    tokenize,
)
from flexmg.envs.math.reading.preparation import prepared
from flexmg.envs.math.reading.relations import listed, related, unit_outside, united, worded
from flexmg.envs.math.reading.units import (
    CURRENCY_SIGNS,
    NUMBER_WORDS,
    POWERS,
    UPRIGHT_UNITS,
    unit_of,
)
from flexmg.envs.math.reading.vocabulary import (
    AND_OR,
    CLOSING,
    DENIALS,
    ENVIRONMENTS,
    IGNORED_BEFORE,
    JOINS,
    RELATIONS,
    SEPARATORS,
)

_INTEGER = re.compile(r"-?\d{1,300}\Z")

_WORD = re.compile(r"[^\W\d_]{2,}")

# Notation beyond the reader that math-verify may know. What it makes of the rest is no
# help: it takes `12 \Rightarrow 13` for 13.
_FOR_SYMPY = re.compile(
    r"\\(?:i?i?int|oint|sum|prod|lim|setminus|backslash|mid|partial|begin)(?![a-zA-Z])"
)

_OPENING_BRACE = re.compile(r"(?<!\\)\{")

_CLOSING_BRACE = re.compile(r"(?<!\\)\}")

_COMMAND = re.compile(r"\\[a-zA-Z]+")

_LISTED_THOUSANDS = re.compile(r"[-\d,]*\Z")


class AnswerReader(ArithmeticReader):
    """Reads a whole answer from its tokens."""

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(prepared(tokens))

    def answer(self) -> Node:
        """The whole answer; every token must be used."""
        items = self.items(expand=True)
        if self.position < len(self.tokens):
            raise ReadError(f"unexpected {self.token.text!r}")
        return listed(items)

    # -- items ------------------------------------------------------------------------
    def items(self, expand: bool) -> list[Node]:
        r"""Items up to a closing bracket; with ``expand``, ``a \pm b`` is two of them."""
        found: list[Node] = []
        while True:
            start, tokens, depth = self.position, list(self.tokens), self.depth
            saw_before, self.saw_plus_minus = self.saw_plus_minus, False
            found.append(self.item())
            if self.saw_plus_minus and expand:
                self.position, self.tokens, self.depth = start, tokens, depth
                self.plus_minus = -1
                found.append(self.item())
                self.plus_minus = 1
                self.saw_plus_minus = False
            self.saw_plus_minus = self.saw_plus_minus or saw_before
            if not self.separator():
                return found

    def separator(self) -> bool:
        """Move past a comma, an ``and`` or both."""
        before = self.position
        while self.token.text in SEPARATORS or (
            self.token.text in AND_OR and self.token.kind in ("word", "joint")
        ):
            self.take()
        return self.position > before

    def item(self) -> Node:
        """One item of a list: dots, words, or a chain of relations."""
        if self.token.kind == "dots" or self.token.text in ("\\ldots", "\\dots", "\\cdots"):
            self.take()
            return Dots()
        words: list[str] = []
        while self.token.kind == "word":
            words.append(self.take().text)
        if words:
            ends = self.position >= len(self.tokens) or self.token.text in SEPARATORS | CLOSING
            if ends or self.token.kind == "joint":
                return worded(words)
            folded = [word.casefold() for word in words]
            if folded[-1] in ("minus", "negative") and len(words) == 1:
                return self.negated(self.operand())
            if RELATIONS.get(self.token.text) == "=" or self.token.text == ":":
                self.take()  # a label in words
            elif not set(folded) <= IGNORED_BEFORE:
                raise ReadError("words before a value")
        return self.chain()

    # -- relations --------------------------------------------------------------------
    def chain(self) -> Node:
        """Operands joined by relations, put in the form that is compared."""
        if self.token.text in ("\\approx", "\\sim", "\\simeq", "="):
            self.take()
        operands, operators = [self.operand()], []
        while True:
            text = self.token.text
            if text == ":" or text == "\\colon":
                operators.append(":")
            elif text in RELATIONS:
                operators.append(RELATIONS[text])
            else:
                break
            self.take()
            operands.append(self.operand())
        return related(operators, operands)

    def operand(self) -> Node:
        """Sets and intervals joined by unions, or one value, with its unit."""
        currency = None
        if self.token.text in CURRENCY_SIGNS:
            currency = CURRENCY_SIGNS[self.take().text]
        node = self.with_unit(self.sum())
        if currency is not None:
            node = Quantity(node, currency)
        parts = [node]
        while self.token.text in JOINS or (self.token.text == "U" and not is_arithmetic(node)):
            join = JOINS.get(self.take().text, "cup")
            right = self.with_unit(self.sum())
            if join == "cup":
                parts.append(right)
            else:
                parts = [Relation((join,), (united(parts), right))]
        return united(parts)

    def with_unit(self, node: Node) -> Node:
        """The value with the unit that is written inside or after it."""
        node = unit_outside(node)
        names: list[str] = []
        exponent = ""
        while self.token.kind == "word" or (names and self.token.text in ("/", "^", "*", "\\cdot")):
            kind, text, _ = self.take()
            if text == "base" and self.token.kind in ("number", "word"):
                return self.based(node, names)
            if text.casefold() in DENIALS:
                raise ReadError("a denial after the value")
            if text == "^":
                exponent = (
                    "".join(t.text for t in self.braced())
                    if self.token.text == "{"
                    else (self.take().text)
                )
                names.append(exponent)
            elif kind == "word":
                unit = POWERS.get(text.casefold()) or unit_of(text) or UPRIGHT_UNITS.get(text)
                if unit is not None:
                    names.append(unit)
        if not names or isinstance(node, Quantity):
            return node
        return Quantity(node, " ".join(sorted(names)))

    def based(self, node: Node, names: list[str]) -> Node:
        """``204 in base 5``."""
        token = self.take()
        base = NUMBER_WORDS.get(token.text.casefold()) if token.kind == "word" else None
        if base is None and token.kind == "number" and token.text.isdecimal():
            base = int(token.text)
        if not isinstance(node, Number) or node.value.denominator != 1 or base is None:
            raise ReadError("a base with no digits before it")
        if set(names) - {"inch"} or not 2 <= base <= 36:
            raise ReadError(f"{base} is not a base")
        return BaseNumber(str(node.value), base)

    # -- brackets -------------------------------------------------------------------
    def ends_value(self, command: str) -> bool:
        """Whether a command is a relation, a separator or a closing bracket."""
        return command in RELATIONS or command in JOINS or command in SEPARATORS | CLOSING | {
            "\\ldots", "\\dots", "\\cdots", "\\colon",
        }  # fmt: skip

    def group(self) -> Node:
        """What stands in brackets: one value, a tuple or interval, a set, a vector."""
        opening = self.take().text
        self.depth += 1
        if opening in ("\\{", "\\lbrace", "{"):
            return self.collection(opening)
        if opening == "[" and self.token.text == "]":
            raise ReadError("empty brackets")
        bars, self.inside_bars = self.inside_bars, False
        items = self.items(expand=False)
        self.inside_bars = bars
        closing = self.take().text
        self.depth -= 1
        if opening == "\\langle":
            if closing != "\\rangle":
                raise ReadError("an angle bracket is not closed")
            return Matrix(tuple((item,) for item in items))
        if closing not in (")", "]") and not (closing == "[" and self.outward):
            raise ReadError("a bracket is not closed")
        if len(items) == 1:
            if (opening, closing) not in (("(", ")"), ("[", "]")):
                raise ReadError("brackets of two kinds around one value")
            return items[0]
        opening, closing = opening.replace("]", "("), closing.replace("[", ")")
        if Dots() in items and len(items) < 3:
            raise ReadError("dots with nothing around them")
        return Group(opening, closing, tuple(items))

    def collection(self, opening: str) -> Node:
        """A set in braces; plain braces around one value only group it."""
        closers = ("}",) if opening == "{" else ("\\}", "\\rbrace")
        if self.token.text in closers:
            self.take()
            self.depth -= 1
            return Collection(())
        if self.ahead(1).text in ("\\mid", "|", ":") and self.token.kind == "letters":
            items = [self.described()]
            opening = "{"
        else:
            items = self.items(expand=True)
        self.depth -= 1
        if self.take().text not in closers:
            raise ReadError("a brace is not closed")
        if opening == "{" and len(items) == 1:
            return items[0]
        return Collection(tuple(items))

    def described(self) -> Node:
        r"""``x \mid x > 2`` inside braces: the interval of all such x."""
        name = self.take().text
        self.take()
        bounds = self.chain()
        if not isinstance(bounds, Bounded) or bounds.name != name:
            raise ReadError("a set described by more than bounds")
        return bounds.interval

    def environment(self) -> Node:
        """A LaTeX matrix."""
        self.take()
        name = "".join(token.text for token in self.braced())
        if name not in ENVIRONMENTS:
            raise ReadError(f"the environment {name} is not known")
        if name == "array" and self.token.text == "{":
            self.braced()
        rows: list[tuple[Node, ...]] = []
        row: list[Node] = []
        while self.token.text != "\\end":
            row.append(self.chain())
            text = self.token.text
            if text in ("&", "\\\\"):
                self.take()
            elif text != "\\end":
                raise ReadError(f"unexpected {text!r} in a matrix")
            if text != "&":
                rows.append(tuple(row))
                row = []
        self.take()
        self.braced()
        if row or not rows or len({len(r) for r in rows}) > 1:
            raise ReadError("the rows of the matrix differ in length")
        return Matrix(tuple(rows))


@lru_cache(maxsize=4096)
def read(answer: str) -> Node:
    """An answer as a tree; what cannot be read becomes ``Text`` or ``Unread``."""
    if _INTEGER.match(answer) and answer.isascii():
        return Number(Fraction(int(answer)))
    text = clean(answer)
    if not text or len(text) > LONGEST_ANSWER:
        return Unread(text, symbolic=False)
    tokens = tokenize(text)
    if len(tokens) > MOST_TOKENS:
        return Unread(text, symbolic=False)
    try:
        node = AnswerReader(tokens).answer()
    except (RefusedError, RecursionError):
        return Unread(text, symbolic=False)
    except ReadError:
        return unread(text)
    ambiguous = _LISTED_THOUSANDS.match(text) and "," in text and ",0" not in text
    if ambiguous and isinstance(node, Number):
        listing = Listing(tuple(Number(Fraction(int(part))) for part in text.split(",")))
        return Alternatives((node, listing))
    return node


def unread(text: str) -> Node:
    """A phrase as ``Text``; notation as ``Unread``."""
    plain = _COMMAND.sub(" ", text)
    upright = "\\text" in text or "\\mbox" in text or "\\" not in text
    words = [word for word in _WORD.findall(plain) if len(word) > 2]
    if words and upright and not re.search(r"[=^_]", text):
        return Text(fold_words(text))
    balanced = len(_OPENING_BRACE.findall(text)) == len(_CLOSING_BRACE.findall(text))
    symbolic = balanced and len(text) < LONGEST_ANSWER // 2 and bool(_FOR_SYMPY.search(text))
    return Unread(" ".join(text.split()), symbolic)
