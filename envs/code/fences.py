"""The fences of code blocks in a text, and what stands between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# A line of marks; the language of an opening fence stands on the same line.
_FENCE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)$", re.MULTILINE
)
# In "Here: ```python" and "print(1)```" a fence shares its line with other text.
_INLINE_OPENING = re.compile(r"```(python3?|py)\b[ \t]*\n?", re.IGNORECASE)
_INLINE_CLOSING = re.compile(r"(?<=[^\s`])[ \t]{0,3}```(?=\s|[.,;]|\Z)")
CLOSING_INDENT = 3  # columns that a closing fence may stand further in than the opening one


@dataclass(frozen=True, slots=True)
class Block:
    """A complete code block.

    Args:
        info: what the opening fence says, such as its language; may be empty.
        text: what the block stands in.
        fences: all fences of the text.
        opening: index of its opening fence.
        closing: index of its closing fence.
    """

    info: str
    text: str
    fences: Sequence[re.Match[str]]
    opening: int
    closing: int

    @property
    def body(self) -> str:
        """The text between the fences, less the opening fence's indentation."""
        return _between(self.text, self.fences[self.opening], self.fences[self.closing])

    def later_ends(self, most: int) -> Iterator[str]:
        """The body if the block ended at one of the next closing fences instead."""
        candidates = range(self.closing + 1, len(self.fences))
        for number in [n for n in candidates[: 2 * most] if not _info(self.fences[n])][:most]:
            yield _between(self.text, self.fences[self.opening], self.fences[number])

    def later_starts(self, most: int) -> Iterator[str]:
        """The body if the block began at a later opening fence within it, the last first."""
        for number in list(range(self.closing - 1, self.opening, -1))[:most]:
            yield _between(self.text, self.fences[number], self.fences[self.closing])


@dataclass(frozen=True, slots=True)
class Leftover:
    """A fence without a partner, and the texts around it."""

    info: str
    before: str
    after: str


def paired(text: str) -> tuple[list[Block], Leftover | None]:
    """Complete blocks in their order, and an opening fence that nothing closes.

    A fence is closed by the next one of the same mark, at least as long, without a language
    and not indented further than by three columns.
    """
    fences = list(_FENCE.finditer(text))
    blocks = []
    opening: int | None = None
    for number, fence in enumerate(fences):
        if opening is None:
            opening = number
        elif _closes(fence, fences[opening]):
            blocks.append(Block(_info(fences[opening]), text, fences, opening, number))
            opening = None
    if opening is None:
        return blocks, None
    last = fences[opening]
    after = _unindented(text[last.end() + 1 :], last["indent"])
    return blocks, Leftover(_info(last), text[: last.start()], after)


def separated(text: str) -> str:
    """The text with every fence on a line of its own."""
    opened = _INLINE_OPENING.sub(lambda found: f"\n```{found[1]}\n", text)
    return _INLINE_CLOSING.sub("\n```\n", opened)


def _closes(fence: re.Match[str], opening: re.Match[str]) -> bool:
    return (
        not _info(fence)
        and fence["marks"][0] == opening["marks"][0]
        and len(fence["marks"]) >= len(opening["marks"])
        and len(fence["indent"]) <= len(opening["indent"]) + CLOSING_INDENT
    )


def _info(fence: re.Match[str]) -> str:
    return fence["info"].strip()


def _between(text: str, opening: re.Match[str], closing: re.Match[str]) -> str:
    return _unindented(text[opening.end() + 1 : closing.start()], opening["indent"])


def _unindented(body: str, indent: str) -> str:
    """A body in a list item is indented as its fence is."""
    if not indent:
        return body
    return "".join(line.removeprefix(indent) for line in body.splitlines(keepends=True))
