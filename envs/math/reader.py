"""Reading an answer: lists, tuples, intervals, sets, matrices, relations, units, words."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from flexmg.envs.math.arithmetic import ArithmeticReader, ReadError
from flexmg.envs.math.expression import (
    Alternatives,
    Assignment,
    BaseNumber,
    Bounded,
    Call,
    Collection,
    Dots,
    Group,
    Listing,
    Matrix,
    Node,
    Number,
    Product,
    Quantity,
    Ratio,
    Relation,
    Symbol,
    Text,
    Union,
    Unread,
    is_arithmetic,
    is_constant,
    negative,
)
from flexmg.envs.math.notation import LONGEST_ANSWER, Token, clean, fold_words, tokenize
from flexmg.envs.math.units import CURRENCY_SIGNS, NUMBER_WORDS, POWERS, UPRIGHT_UNITS, unit_of

RELATIONS = {
    "=": "=", "==": "=", "\\equiv": "\\equiv", "<": "<", "\\lt": "<", ">": ">", "\\gt": ">",
    "<=": "<=", "\\le": "<=", "\\leq": "<=", "\\leqslant": "<=", "\\leqq": "<=",
    ">=": ">=", "\\ge": ">=", "\\geq": ">=", "\\geqslant": ">=", "\\geqq": ">=",
    "!=": "!=", "\\ne": "!=", "\\neq": "!=", "\\in": "in", "\\approx": "~", "\\simeq": "~",
    "\\sim": "\\sim", "\\cong": "\\cong", "\\to": "\\to", "\\mapsto": "\\to", "\\perp": "\\perp",
    "\\parallel": "\\parallel", "\\subset": "\\subset", "\\subseteq": "\\subseteq",
    "\\propto": "\\propto", "\\notin": "\\notin",
}  # fmt: skip
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
JOINS = {"\\cup": "cup", "\\cap": "cap", "\\setminus": "minus", "\\backslash": "minus"}
SEPARATORS = {",", ";", "\\text{and}", "\\land", "\\lor", "\\wedge", "\\vee"}
AND_OR = {"and", "or", "AND", "OR", "And", "Or"}
PLAIN_WORDS = {
    "in", "is", "the", "of", "to", "no", "yes", "No", "Yes", "not", "for", "all", "per", "a.m",
    "am", "pm", "odd", "any", "Sam", "Tom", "Ann", "Bob", "red", "yet", "as", "at", "an", "by",
}  # fmt: skip
IGNORED_BEFORE = {
    "about", "approximately", "approx", "exactly", "roughly", "only", "option", "choice",
    "answer", "is", "the", "a", "an", "total", "of", "either", "both", "choices", "value", "when",
}  # fmt: skip
DENIALS = {"not", "no", "wrong", "incorrect", "except", "never", "isn", "cannot"}
ENVIRONMENTS = {"pmatrix", "bmatrix", "matrix", "Bmatrix", "smallmatrix", "array", "psmallmatrix"}
CLOSING = {")", "]", "}", "\\}", "\\rbrace", "\\rangle", "&", "\\\\", "\\end"}
_INTEGER = re.compile(r"-?\d{1,300}\Z")
_WORD = re.compile(r"[^\W\d_]{2,}")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_LISTED_THOUSANDS = re.compile(r"[-\d,]*\Z")


class AnswerReader(ArithmeticReader):
    """Reads a whole answer from its tokens."""

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(prepared(tokens))
        self.outward = bool(tokens) and tokens[-1].text == "["  # `[1,3[`

    def answer(self) -> Node:
        """The whole answer; every token must be used."""
        items = self.items(expand=True)
        if self.position < len(self.tokens):
            raise ReadError(f"unexpected {self.token.text!r}")
        return listed(items)

    # -- items ------------------------------------------------------------------------
    def items(self, expand: bool) -> list[Node]:
        """Items up to a closing bracket; with ``expand``, ``a \\pm b`` is two of them."""
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
        return command in RELATIONS or command in JOINS or command in SEPARATORS | CLOSING | {
            "\\ldots", "\\dots", "\\cdots", "\\colon",
        }  # fmt: skip

    def group(self) -> Node:
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
        items = self.items(expand=True)
        self.depth -= 1
        if self.take().text not in closers:
            raise ReadError("a brace is not closed")
        if opening == "{" and len(items) == 1:
            return items[0]
        return Collection(tuple(items))

    def environment(self) -> Node:
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


def prepared(tokens: list[Token]) -> list[Token]:
    """Tokens with upright text as words, letters one by one, and grouped digits joined."""
    found: list[Token] = []
    dollars = sum(token.text == "$" for token in tokens)
    upright_depth = 0
    depth = 0
    position = 0
    while position < len(tokens):
        token = tokens[position]
        kind, text, spaced = token
        following = tokens[position + 1] if position + 1 < len(tokens) else Token("end", "", False)
        position += 1
        if kind == "text":
            if following.text == "{":
                position += 1
                upright_depth += 1
                depth += 1
            continue
        if text == "{":
            depth += 1
            upright_depth += 1 if upright_depth else 0
        elif text == "}" and upright_depth:
            upright_depth -= 1
            depth -= 1
            if upright_depth == 0:
                continue
        elif text in ("}", ")", "]", "\\}"):
            depth -= 1
        elif text in ("(", "[", "\\{"):
            depth += 1
        if text == "$":
            if dollars % 2 and following.kind == "number":
                found.append(Token("command", "\\$", spaced))
            continue
        if text == "." and upright_depth:
            continue
        if kind == "letters":
            found.extend(_letters(token, upright_depth > 0, following))
        elif kind == "number" and depth <= 0:
            joined, position = _joined(tokens, position - 1)
            found.append(joined)
        else:
            found.append(token)
    return found


def _letters(token: Token, upright: bool, following: Token) -> list[Token]:
    """A run of letters: a function, a word, a joint of a list, or variables side by side."""
    text = token.text
    if text in AND_OR:
        return [token._replace(kind="joint")]
    from flexmg.envs.math.arithmetic import FUNCTIONS, SPELLINGS

    if text in FUNCTIONS or text in SPELLINGS or text == "binom":
        called = following.text in ("(", "^", "_", "{") or text not in ("min", "max", "sec", "det")
        return [token if called else token._replace(kind="word")]
    if text in ("infinity", "inf", "oo", "infty", "pi"):
        return [token._replace(text="pi" if text == "pi" else "oo")]
    if len(text) == 1:
        is_unit = upright and text in UPRIGHT_UNITS and following.text in ("}", "^", "/")
        return [token._replace(kind="word")] if is_unit else [token]
    wordlike = upright or text in PLAIN_WORDS or unit_of(text) is not None
    if wordlike or (len(text) >= 4 and not text.isupper()) or len(text) > 6:
        return [token._replace(kind="word")]
    if text.startswith("np") and following.text.startswith("."):
        return []
    first, *rest = text
    return [Token("letters", first, token.spaced), *(Token("letters", c, False) for c in rest)]


def _joined(tokens: list[Token], at: int) -> tuple[Token, int]:
    """A number outside brackets with its comma-separated groups of three digits."""
    first = tokens[at]
    end, text = at + 1, first.text
    if first.text.isdecimal() and len(first.text) <= 3:
        while end + 1 < len(tokens):
            comma, group = tokens[end], tokens[end + 1]
            whole = group.text.partition(".")[0]
            if comma.text != "," or comma.spaced or group.spaced or len(whole) != 3:
                break
            if group.kind != "number":
                break
            text += group.text
            end += 2
            if "." in group.text:
                break
    followed = tokens[end] if end < len(tokens) else Token("end", "", False)
    if followed.text == "," and not followed.spaced and end + 1 < len(tokens):
        if tokens[end + 1].kind == "number" and not tokens[end + 1].spaced:
            return first, at + 1  # a list: `10,200,3`
    return first._replace(text=text), end


def listed(items: list[Node]) -> Node:
    """One answer, or an unordered list of them without nested lists."""
    flat: list[Node] = []
    for item in items:
        flat.extend(item.items if isinstance(item, Listing) else (item,))
    return flat[0] if len(flat) == 1 else Listing(tuple(flat))


def worded(words: list[str]) -> Node:
    """A phrase; a number word is the number."""
    if len(words) == 1 and words[0].casefold() in NUMBER_WORDS:
        return Number(Fraction(NUMBER_WORDS[words[0].casefold()]))
    phrase = fold_words(" ".join(words))
    return Collection(()) if phrase == "empty set" else Text(phrase)


def united(parts: list[Node]) -> Node:
    """One part as it is, several as a union."""
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def unit_outside(node: Node) -> Node:
    """``-5^\\circ`` as a quantity of -5 degrees: a unit inside a product moves outside."""
    if isinstance(node, Call) and node.function.startswith("unit:"):
        return Quantity(unit_outside(node.arguments[0]), node.function[5:])
    if isinstance(node, Product):
        for at, factor in enumerate(node.factors):
            if isinstance(factor, Call) and factor.function.startswith("unit:"):
                inner = (*node.factors[:at], *factor.arguments, *node.factors[at + 1 :])
                numbers = [f for f in inner if isinstance(f, Number)]
                if len(numbers) == len(inner) == 2 and numbers[0].value == -1:
                    return Quantity(negative(numbers[1]), factor.function[5:])
                return Quantity(Product(inner), factor.function[5:])
    return node


def name_of(node: Node) -> str | None:
    """The name that an assignment gives a value to, or None."""
    if isinstance(node, Symbol) and node.name not in ("pi", "e", "i", "oo"):
        return node.name
    if isinstance(node, Text):
        return ""
    if isinstance(node, Group) and all(isinstance(item, Symbol) for item in node.items):
        return ",".join(item.name for item in node.items if isinstance(item, Symbol))
    if isinstance(node, Product) and all(isinstance(f, Symbol) for f in node.factors):
        names = [f.name for f in node.factors if isinstance(f, Symbol)]
        if all(name.isupper() or name.startswith("\\") for name in names):
            return "".join(names)  # a segment or an angle: AB, \angle ABC
    return None


def related(operators: list[str], operands: list[Node]) -> Node:
    """A chain of relations in the form that is compared."""
    if not operators:
        return operands[0]
    if set(operators) == {":"}:
        return Ratio(tuple(operands))
    if operators[-1] == "~" and operators[:-1] in ([], ["="]):
        last = Alternatives((operands[-2], operands[-1]))
        return related(operators[:-1], [*operands[:-2], last]) if operators[:-1] else last
    name = name_of(operands[0])
    if operators[0] == "in" and len(operators) == 1:
        return operands[1] if name is not None else Relation(("in",), tuple(operands))
    if set(operators) == {"="}:
        if name is not None:
            return Assignment(name, operands[-1])
        if len(operands) > 1 and all(is_constant(operand) for operand in operands[:-1]):
            return operands[-1]
    bounded = interval_of(operators, operands)
    return bounded or Relation(tuple(operators), tuple(operands))


def interval_of(operators: list[str], operands: list[Node]) -> Bounded | None:
    """``a < x <= b`` and ``x > a`` as intervals of one variable."""
    if not set(operators) <= set(MIRRORED) or len(operands) > 3:
        return None
    if len(operands) == 2:
        left, right = operands
        name = name_of(left)
        if name and is_constant(right):
            return _half_line(name, operators[0], right)
        name = name_of(right)
        return (
            _half_line(name, MIRRORED[operators[0]], left) if name and is_constant(left) else None
        )
    low, middle, high = operands
    name = name_of(middle)
    if not name or not (is_constant(low) and is_constant(high)):
        return None
    if {op[0] for op in operators} == {">"}:
        low, high = high, low
        operators = [MIRRORED[op] for op in reversed(operators)]
    if {op[0] for op in operators} != {"<"}:
        return None
    opening, closing = "[" if operators[0] == "<=" else "(", "]" if operators[1] == "<=" else ")"
    return Bounded(name, Group(opening, closing, (low, high)))


def _half_line(name: str, operator: str, bound: Node) -> Bounded:
    infinity = Symbol("oo")
    if operator[0] == ">":
        return Bounded(name, Group("[" if operator == ">=" else "(", ")", (bound, infinity)))
    closing = "]" if operator == "<=" else ")"
    return Bounded(name, Group("(", closing, (negative(infinity), bound)))


@lru_cache(maxsize=4096)
def read(answer: str) -> Node:
    """An answer as a tree; what cannot be read becomes ``Text`` or ``Unread``."""
    if _INTEGER.match(answer) and answer.isascii():
        return Number(Fraction(int(answer)))
    text = clean(answer)
    if not text or len(text) > LONGEST_ANSWER:
        return Unread(text, symbolic=False)
    try:
        node = AnswerReader(tokenize(text)).answer()
    except (ReadError, ValueError, RecursionError):
        return unread(text)
    if _LISTED_THOUSANDS.match(text) and "," in text and ",0" not in text:
        if isinstance(node, Number) and len(text) > 4:
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
    return Unread(" ".join(text.split()), symbolic="\\" in text and len(text) < LONGEST_ANSWER // 2)
