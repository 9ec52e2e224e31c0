"""Tokens made ready for the reader: words, single letters, grouped digits."""

from __future__ import annotations

from flexmg.envs.math.reading.notation import Token
from flexmg.envs.math.reading.units import NUMBER_WORDS, UPRIGHT_UNITS, unit_of
from flexmg.envs.math.reading.vocabulary import AND_OR, FUNCTIONS, PLAIN_WORDS, SPELLINGS


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
    if text in FUNCTIONS or text in SPELLINGS or text == "binom":
        called = following.text in ("(", "^", "_", "{") or text not in ("min", "max", "sec", "det")
        return [token if called else token._replace(kind="word")]
    if text in ("infinity", "inf", "oo", "infty", "pi"):
        return [token._replace(text="pi" if text == "pi" else "oo")]
    if len(text) == 1:
        is_unit = upright and text in UPRIGHT_UNITS and following.text in ("}", "^", "/")
        return [token._replace(kind="word")] if is_unit else [token]
    known = unit_of(text) is not None or text.casefold() in NUMBER_WORDS
    wordlike = upright or known or text in PLAIN_WORDS
    if wordlike or (len(text) >= 4 and not text.isupper()) or len(text) > 6:
        return [token._replace(kind="word")]
    if text.startswith("np") and following.text.startswith("."):
        return []
    first, *rest = list(text)
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
    unspaced = followed.text == "," and not followed.spaced and end + 1 < len(tokens)
    if unspaced and tokens[end + 1].kind == "number" and not tokens[end + 1].spaced:
        return first, at + 1  # a list: `10,200,3`
    return first._replace(text=text), end
