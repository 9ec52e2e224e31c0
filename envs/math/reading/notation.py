r"""From the text of an answer to tokens: typography, wrappers and digit grouping.

The reader (:mod:`flexmg.envs.math.reading.reader`) sees LaTeX and program notation alike, so
that ``\frac{\sqrt{5}}{2}``, ``sqrt(5)/2`` and ``√5/2`` become the same tokens.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

LONGEST_ANSWER = 2000
MOST_TOKENS = 1500

_GREEK = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "lambda",
    "mu",
    "nu",
    "xi",
    "omicron",
    "pi",
    "rho",
    "varsigma",
    "sigma",
    "tau",
    "upsilon",
    "phi",
    "chi",
    "psi",
    "omega",
]
_CHARACTERS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "×": "\\times ", "÷": "\\div ",
    "·": "\\cdot ", "⋅": "\\cdot ", "∙": "\\cdot ", "∗": "*", "√": "\\sqrt ", "∞": "\\infty ",
    "≤": "\\le ", "⩽": "\\le ", "≥": "\\ge ", "⩾": "\\ge ", "≠": "\\ne ", "≈": "\\approx ",
    "∪": "\\cup ", "∩": "\\cap ", "∈": "\\in ", "∅": "\\emptyset ", "∖": "\\setminus ",
    "°": "^{\\circ}", "±": "\\pm ", "∓": "\\mp ", "′": "'", "…": "\\ldots ", "⋯": "\\ldots ",
    "⟨": "\\langle ", "⟩": "\\rangle ", "⌊": "\\lfloor ", "⌋": "\\rfloor ", "⌈": "\\lceil ",
    "⌉": "\\rceil ", "ℝ": "\\mathbb{R}", "ℤ": "\\mathbb{Z}", "ℕ": "\\mathbb{N}",
    "ℚ": "\\mathbb{Q}", "ℂ": "\\mathbb{C}", "→": "\\to ", "¬": "\\neg ", "∧": "\\land ",
    "∨": "\\lor ", "“": '"', "”": '"', "‘": "'", "’": "'", "、": ",", "，": ",", "；": ";",
    "：": ":", "。": ".", "∶": ":", "⁄": "/", "∕": "/", "\u200b": "", "\u200c": "", "\u200d": "",
    "\x00": "", "\u2060": "",
    "\ufeff": "", "\u00ad": "", "ϕ": "\\phi ", "ε": "\\epsilon ", "∂": "\\partial ",
}  # fmt: skip
_CHARACTERS |= {chr(0x3B1 + i): f"\\{name} " for i, name in enumerate(_GREEK)}
_CHARACTERS |= {chr(0xFF01 + i): chr(0x21 + i) for i in range(94)}  # full-width ASCII
_CHARACTERS |= {c: f"^{{{d}}}" for d, c in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")} | {"⁻": "^{-}", "ⁿ": "^{n}"}
_CHARACTERS |= {c: f"_{{{d}}}" for d, c in enumerate("₀₁₂₃₄₅₆₇₈₉")}
_TRANSLATION = str.maketrans(_CHARACTERS)
_JOINED_SCRIPTS = re.compile(r"\}([\^_])\{(?=[-\d])")

# `10,\!080`, `23{,}000`, `1\,000`: grouping that cannot be anything else.
_LATEX_THOUSANDS = re.compile(
    r"(?<![\d.])\d{1,3}(?:(?:\s*,\s*\\!\s*|\{,\}|\\,|\\;|\\ |\\thinspace\s*|~)\d{3})+(?![\d])"
)
_SPACED_THOUSANDS = re.compile(
    r"(?<![\w.\\}])(?<!\d )\d{1,3}(?: \d{3})+(?!\s*[\d/]|\s*\\[dt]?frac)"
)
_UNDERSCORED_THOUSANDS = re.compile(r"(?<![\w.])\d{1,3}(?:_\d{3})+(?![\d_])")
_MODULE = re.compile(r"\b(?:np|numpy|math|sympy|cmath)\.(?=[a-z])")
_HALF_DAY = re.compile(r"\b([ap])\.\s?m\b\.?")
_UPRIGHT_DIGITS = re.compile(r"\\(?:text|mathrm)\{([0-9A-Z]+)\}\s*_")
_QUOTED_NUMBER = re.compile(r"(['\"])(-?[\d.]+)\1")
_NOT_DIGIT = re.compile(r"\D")
_SIZED = re.compile(
    r"\\(?:left|right|bigl?|bigr|Bigl?|Bigr|biggl?|biggr|Biggl?|Biggr)(?![a-zA-Z])\s*"
)
_OPEN_WRAPPERS = {
    "\\boxed{": "}", "\\fbox{": "}", "\\framebox{": "}", "\\mathbf{": "}", "\\boldsymbol{": "}",
    "$$": "$$", "$": "$", "\\[": "\\]", "\\(": "\\)", "**": "**", "`": "`", '"': '"', "'": "'",
    "<answer>": "</answer>", "\\displaystyle": "", "\\textstyle": "",
}  # fmt: skip


def fold_characters(text: str) -> str:
    """Unicode typography as ASCII and LaTeX: full-width digits, minus signs, ``√``, ``½`` ..."""
    if text.isascii() and "\x00" not in text:
        return text
    text = text.translate(_TRANSLATION)
    if not text.isascii():
        text = "".join(_fold_one(c) for c in text)
    return _JOINED_SCRIPTS.sub("", text)


def _fold_one(character: str) -> str:
    if character.isascii():
        return character
    if character.isspace():
        return " "
    digit = unicodedata.digit(character, None)
    if digit is not None:
        return str(digit)
    folded = unicodedata.normalize("NFKC", character)
    if "⁄" in folded:  # a vulgar fraction: "1½" is a mixed number
        return " " + folded.replace("⁄", "/") + " "
    return folded


def _closes(text: str, opening: str, closing: str) -> bool:
    """Whether the wrapper that opens the text closes at its very end, not before."""
    if not closing:
        return True
    inner = text[len(opening) : len(text) - len(closing)]
    if not text.endswith(closing) or len(text) < len(opening) + len(closing):
        return False
    if closing != "}":
        return closing not in inner
    depth = 0
    for mark in re.finditer(r"\\.|[{}]", inner):
        depth += {"{": 1, "}": -1}.get(mark.group(), 0)
        if depth < 0:
            return False
    return depth == 0


@lru_cache(maxsize=4096)
def clean(answer: str) -> str:
    """The answer without wrappers, sizing commands, digit grouping and a final full stop."""
    text = fold_characters(answer).strip()
    while True:
        before = text
        if text[-1:] in ".,;:!?" and not text.endswith(("\\,", "\\;", "\\:", "\\!", "...", "!")):
            text = text[:-1].rstrip()
        if text[-1:] == "\\" or text.endswith(("\\,", "\\;", "\\!", "\\:", "\\\\")):
            text = text.rstrip(",;!:").rstrip("\\").rstrip()
        if text[:1] in "\\$*`\"'<":
            for opening, closing in _OPEN_WRAPPERS.items():
                if text.startswith(opening) and _closes(text, opening, closing):
                    text = text[len(opening) : len(text) - len(closing)].strip()
                    break
        if text == before:
            break
    if "\\" in text:
        text = _SIZED.sub("", text)
        text = _LATEX_THOUSANDS.sub(_ungroup, text)
    if " " in text:
        text = _SPACED_THOUSANDS.sub(_ungroup, text)
    if "{,}" in text:
        text = _LATEX_THOUSANDS.sub(_ungroup, text).replace("{,}", ".")
    if "'" in text or '"' in text:
        text = _QUOTED_NUMBER.sub(r"\2", text)
    if "." in text:
        text = _plain_prefixes(text)
    if "_" in text:
        text = _UPRIGHT_DIGITS.sub(r"\1_", text)
        text = _UNDERSCORED_THOUSANDS.sub(_ungroup, text)
    return text


def _ungroup(match: re.Match[str]) -> str:
    return _NOT_DIGIT.sub("", match.group())


def _plain_prefixes(text: str) -> str:
    """Module prefixes of program notation and the points of "a.m." taken out."""
    return _HALF_DAY.sub(r"\1m", _MODULE.sub("", text))


class Token(NamedTuple):
    """One token: its kind, its text, and whether white space stood before it."""

    kind: str
    text: str
    spaced: bool


# Order matters: the first alternative that matches wins.
_TOKEN = re.compile(
    r"""
    (?P<space>(?:\s|~|\\[,;:!>\ ]|\\(?:quad|qquad|thinspace|displaystyle|limits|nolimits
        |textstyle|hspace\{[^}]*\}|hfill|phantom\{[^}]*\})(?![a-zA-Z]))+)
  | (?P<based>(?:[0-9][0-9A-Z]*|[A-F][0-9A-F]+)\s*_\s*(?:\{\s*\(?\d{1,2}\)?\s*\}|\d))
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+(?![\w.]))?)
  | (?P<text>\\(?:text|mbox|textbf|textit|textrm|textnormal|texttt|mathrm|rm|hbox|textsf
        |operatorname\*?|mathbf|mathit|bf|it|mathsf|mathcal|boldsymbol|bm)(?![a-zA-Z])\s*)
  | (?P<command>\\[a-zA-Z]+|\\.)
  | (?P<dots>\.\.\.+)
  | (?P<relation><=|>=|==|!=|=|<|>)
  | (?P<power>\*\*)
  | (?P<plusminus>\+/-|\+-(?=[\s\d\\(]))
  | (?P<letters>[a-zA-Z]+)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def tokenize(text: str) -> list[Token]:
    """Tokens of a cleaned answer.

    More than ``MOST_TOKENS`` of them are cut off, one past the limit, for the reader to refuse.
    """
    tokens: list[Token] = []
    spaced = False
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "other"
        if kind == "space":
            spaced = True
            continue
        tokens.append(Token(kind, match.group(), spaced))
        spaced = False
        if len(tokens) > MOST_TOKENS:
            break
    return tokens


_ARTICLES = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)
_TEXT_COMMAND = re.compile(r"\\[a-zA-Z]+\s*\{?|[{}$]")


def fold_words(text: str) -> str:
    """A phrase as it is compared: lower case, no article, no punctuation at its ends."""
    words = " ".join(_TEXT_COMMAND.sub(" ", text).replace("~", " ").split())
    return _ARTICLES.sub("", words.strip(" .,;:!?\"'()")).casefold()
