"""The program in a reply."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

# A fence opens with its language on the same line, and is closed by as many of its marks.
_FENCE = re.compile(r"^[ \t]*(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)$", re.MULTILINE)
PYTHON = frozenset(["", "python", "python3", "py", "py3", "python2", "pycon", "code", "tool_code"])
LONGEST_PARSED = 200_000  # characters; a longer text is taken for a program unparsed


@dataclass(frozen=True, slots=True)
class Extraction:
    """A program found in a reply, and the rule that found it.

    Args:
        program: the source.
        rule: ``"block"`` (a complete code block), ``"open block"`` (a fence that is never
            closed), ``"stray fence"`` (a closing fence without an opening one) or
            ``"bare"`` (the whole reply is a program).
    """

    program: str
    rule: str


def extract(reply: str) -> Extraction | None:
    """The program that a reply holds.

    The last complete Python block counts, one in no language too; of several the last that
    is valid Python. Without a block: what follows a fence that is never closed, what precedes
    a stray closing fence, or the whole reply if it is Python. Thoughts (``<think>``) are left
    out.

    Args:
        reply: the whole reply.

    Returns:
        None when there is no program.
    """
    text = _without_thoughts(reply.replace("\r\n", "\n"))
    blocks, rest = _blocks(text)
    candidates = [body for info, body in blocks if _is_python(info) and body.strip()]
    valid = [body for body in candidates if is_valid(body)]
    if candidates:
        return Extraction((valid or candidates)[-1], "block")
    if rest is not None:
        info, body, before = rest
        if body.strip() and _is_python(info):
            return Extraction(_ended(body), "open block")
        if not body.strip() and not info and is_valid(before) and before.strip():
            return Extraction(_ended(before), "stray fence")
    if not blocks and rest is None and text.strip() and is_valid(text) and _does_something(text):
        return Extraction(_ended(text), "bare")
    return None


def is_valid(program: str) -> bool:
    """Whether a text is Python; a very long one is taken to be."""
    if len(program) > LONGEST_PARSED:
        return True
    try:
        ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _blocks(text: str) -> tuple[list[tuple[str, str]], tuple[str, str, str] | None]:
    """Complete blocks as (info, body), and a fence that is left over as (info, after, before)."""
    found = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        marks, info = fence["marks"], fence["info"].strip()
        if opened is None:
            opened = fence
        elif marks[0] == opened["marks"][0] and len(marks) >= len(opened["marks"]) and not info:
            found.append((opened["info"].strip(), text[opened.end() + 1 : fence.start()]))
            opened = None
    if opened is None:
        return found, None
    return found, (opened["info"].strip(), text[opened.end() + 1 :], text[: opened.start()])


def _is_python(info: str) -> bool:
    word = re.split(r"[\s{:,]", info.lower().lstrip("{."), maxsplit=1)[0].rstrip("}")
    return word in PYTHON


def _without_thoughts(text: str) -> str:
    """The text after the last thought; an opening mark may lack, a closing one not."""
    _, closed, after = text.rpartition("</think>")
    return after if closed else text


def _does_something(program: str) -> bool:
    """Whether Python text is more than a word or a sentence that happens to parse."""
    if len(program) > LONGEST_PARSED:
        return True
    return any(
        not isinstance(one, ast.Expr) or isinstance(one.value, ast.Call)
        for one in ast.parse(program).body
    )


def _ended(program: str) -> str:
    return program if program.endswith("\n") else program + "\n"
