"""A position in a list of tokens, and the errors of reading."""

from __future__ import annotations

from flexmg.envs.math.reading.notation import Token

DEEPEST = 80  # levels of brackets, signs and exponents

END = Token("end", "", False)


class ReadError(ValueError):
    """The text is not notation that the reader knows."""


class RefusedError(ReadError):
    """No other reader may try either: too deep, too long a number, two answers in one."""


class Cursor:
    """Moves over tokens and keeps count of the depth."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.position = 0
        self.depth = 0
        self.plus_minus = 1  # how this pass reads \pm
        self.saw_plus_minus = False
        self.inside_bars = False
        self.outward = bool(tokens) and tokens[-1].text == "["  # `[1,3[` closes with a bracket

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

    def braced_text(self) -> str:
        """The text of the group that starts here, without moving."""
        here = self.position
        text = "".join(token.text for token in self.braced())
        self.position = here
        return text

    def descend(self) -> None:
        """Go one level deeper; whoever calls it goes back up by itself."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise RefusedError("nested too deeply")
