"""The program in a reply.

Models write programs in blocks of code, and also beside them, in unfinished ones, in lists,
with thoughts before and with examples of use and of output after. What counts as the program
stands in :func:`extract`. Nothing is run, and no rule takes more than time in proportion to the
length of the reply.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from flexmg.errors import InvalidArgument

from .fences import Block, Leftover, paired, separated

PYTHON = frozenset(["python", "python3", "python2", "py", "py3", "code", "tool_code"])
LONGEST_PARSED = 200_000  # characters; a longer block is taken for a program unparsed
MOST_BLOCKS = 20  # that are looked at, from the end
MOST_REPAIRS = 6  # ends tried of a block that is no Python
_REPLY = "<reply>"
_LANGUAGE = re.compile(r"[\s{.]*([^\s{}:,=]*)")
# Quoted, it is part of a text; a fence may follow it.
_THOUGHT_ENDS = re.compile(r"(?<![\"'])</think>(?!\s?(?:[\"'\\]|`(?!``)))")
_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# "\d" in a program is its author's affair; a reader of replies does not warn of it.
warnings.filterwarnings("ignore", module=re.escape(_REPLY))


@dataclass(frozen=True, slots=True)
class Extraction:
    """A program found in a reply, and the rule that found it.

    Args:
        program: the source.
        rule: ``"block"`` (a complete code block), ``"open block"`` (a fence that is never
            closed), ``"stray fence"`` (a closing fence without an opening one), ``"inline
            fence"`` (a block whose fences share lines with other text) or ``"bare"`` (the
            whole reply is a program).
    """

    program: str
    rule: str


def extract(reply: str) -> Extraction | None:
    """The program that a reply holds.

    The last complete block that is valid Python counts. Blocks in another language do not;
    blocks that name none count if they do something, and only if they define or import
    something beside blocks that say they are Python (the others show inputs and outputs). A last
    block that only uses what an earlier one defines is an example: the earlier one counts.
    Failing that: blocks with fences of their own in their texts, a block that is never closed, the
    text before a stray closing fence, blocks whose fences share lines with other text, and the
    whole reply where it is Python without any fence. If nothing is valid Python, the last block
    that may be meant to be counts. Thoughts (``<think>``) are left out.

    Args:
        reply: the whole reply.

    Returns:
        None when there is no program.

    Raises:
        InvalidArgument: the reply is no text.
    """
    if not isinstance(reply, str):
        raise InvalidArgument(f"reply must be a text, not {reply!r:.80}")
    text = _without_thoughts(reply.replace("\r\n", "\n").removeprefix("\ufeff"))
    blocks, leftover = paired(text)
    ours = _last_ours(blocks)
    if found := _last_program(ours) or _mended(ours):
        return Extraction(found, "block")
    if leftover is not None and (left := _left_over(leftover, alone=not blocks)):
        return left
    if found := _inline_program(text):
        return Extraction(found, "inline fence")
    if ours and (broken := _last_broken(ours)):
        return Extraction(broken, "block")
    if leftover is not None and leftover.info and _is_python(leftover.info):
        return Extraction(_ended(leftover.after), "open block") if leftover.after.strip() else None
    if not blocks and leftover is None and _is_program(text):
        return Extraction(_ended(text), "bare")
    return None


def parsed(program: str) -> ast.Module | None:
    """The syntax tree of a text; None if it is no Python, or too long to look."""
    if len(program) > LONGEST_PARSED:
        return None
    try:
        return ast.parse(program, _REPLY)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_valid(program: str) -> bool:
    """Whether a text is Python; a very long one is taken to be."""
    return len(program) > LONGEST_PARSED or parsed(program) is not None


def _last_ours(blocks: Sequence[Block]) -> list[Block]:
    """The last blocks in Python, or in no language; the last one first."""
    last = islice(reversed(blocks), 10 * MOST_BLOCKS)
    ours = (one for one in last if _is_python(one.info) and one.body.strip())
    return list(islice(ours, MOST_BLOCKS))


def _last_program(blocks: Sequence[Block]) -> str | None:
    """The program among blocks, of which the last is the first here."""
    named = any(block.info for block in blocks)
    used: list[tuple[str, frozenset[str]]] = []  # later blocks that may be examples
    for block in blocks:
        tree = parsed(block.body)
        if tree is None:
            if len(block.body) <= LONGEST_PARSED:
                continue
            return block.body
        if not block.info and not (_defines(tree) if named else _does_something(tree)):
            continue
        defined = {one.name for one in tree.body if isinstance(one, _DEFINING)}
        if not used and defined:
            return block.body
        if any(defined & names for _, names in used):
            return block.body
        used.append((block.body, _wanted(tree)))
    return used[0][0] if used else None


def _mended(blocks: Sequence[Block]) -> str | None:
    """A block that becomes Python by another choice of its fences.

    The text of a program may hold fences, so that it ends at a later one; or a block was
    never closed before the next was opened, so that the program begins there.
    """
    for block in blocks:
        for body in chain(block.later_ends(MOST_REPAIRS), block.later_starts(MOST_REPAIRS)):
            if _is_program(body):
                return body
    return None


def _inline_program(text: str) -> str | None:
    """The program in blocks whose fences share lines with other text."""
    apart = separated(text)
    return None if apart == text else _last_program(_last_ours(paired(apart)[0]))


def _left_over(leftover: Leftover, *, alone: bool) -> Extraction | None:
    """What a fence without a partner sets apart, if it is Python."""
    if leftover.info:
        whole = _is_python(leftover.info) and leftover.after.strip() and is_valid(leftover.after)
        return Extraction(_ended(leftover.after), "open block") if whole else None
    if alone and _is_program(leftover.before):
        return Extraction(_ended(leftover.before), "stray fence")
    if _is_program(leftover.after):
        return Extraction(_ended(leftover.after), "open block")
    return None


def _last_broken(blocks: Sequence[Block]) -> str | None:
    """The last block that is meant to be a program and is none, those named Python first."""
    named = [block for block in blocks if block.info] or blocks
    return next((one.body for one in named if one.info or not is_valid(one.body)), None)


def _is_python(info: str) -> bool:
    language = _LANGUAGE.match(info.lower())
    return not info or (language is not None and language[1] in PYTHON)


def _without_thoughts(text: str) -> str:
    """The text after the last thought; its opening mark may lack."""
    *_, after = _THOUGHT_ENDS.split(text)
    return after if after.strip() else text


def _is_program(text: str) -> bool:
    tree = parsed(text)
    return tree is not None and _does_something(tree)


def _does_something(tree: ast.Module) -> bool:
    """Whether Python text is more than words that happen to parse: ``Yes``, ``Answer: 42``."""
    return any(map(_acts, tree.body))


def _acts(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.AnnAssign):
        return statement.value is not None
    return not isinstance(statement, ast.Expr) or isinstance(statement.value, ast.Call | ast.Await)


def _defines(tree: ast.Module) -> bool:
    kinds = (*_DEFINING, ast.Import, ast.ImportFrom)
    return any(isinstance(one, kinds) for one in tree.body)


def _wanted(tree: ast.Module) -> frozenset[str]:
    """Names that a text uses and does not give a value."""
    names = list(_names(tree))
    given = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
    return frozenset(name.id for name in names) - given


def _names(tree: ast.Module) -> Iterator[ast.Name]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Name))


def _ended(program: str) -> str:
    return program if program.endswith("\n") else program + "\n"
