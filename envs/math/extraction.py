r"""Finding the final answer in a reply.

Rules, in this order: the last balanced ``\boxed`` (or ``\fbox``; boxes joined by commas
or "and" / "or" make one list), unless an explicit "final answer is ..." follows it; the
last ``<answer>``; the last ``####``; the last "answer is" or "Answer:"; the last bold
text; a final expression. Only the text after a closing ``</think>`` counts when there is
any. Every rule takes time linear in the length of the reply.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from flexmg.envs.math.prose import LONGEST_SENTENCE, final_expression, leading_answer, whole_answer

LONGEST_TAIL = 4000  # characters from the end that the last two rules look at
MOST_LABELS = 200  # that are looked at, from the end
_BOXES = ("\\boxed", "\\fbox", "\\framebox")
_BOX_MARK = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{|\\[^a-zA-Z]|[{}]")
_SIMPLE_BOX = re.compile(r"\s*\{([^{}\\]*)\}")
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)\s*(\d+|[a-zA-Z])(?![\w{])")
_JOINED = re.compile(
    r"[\s$.]*(?:\\[()\[\]]\s*)*(?:,|;|and|or|\\text\{\s*(?:and|or)\s*\}|[\s$])*[\s$]*(?:\\[()\[\]]\s*)*\Z"
)
_JOINER = re.compile(r",|;|\band\b|\bor\b")
_LABEL = re.compile(
    r"answer\b[*_`\" ]{0,6}"
    r"(?:[^\n.:=?]{0,60}?\b(?:is|are|was|were|be|equals)\b"
    r"|[ \t]{0,4}[:=\uff1a]|[ \t*_#]{0,8}(?=\n))",
    re.IGNORECASE,
)
_HAS_VALUE = re.compile(r"\d|\$|\\|^\W*[A-J]\W*$")
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")


@dataclass(frozen=True, slots=True)
class Extraction:
    """An answer and the rule that found it."""

    answer: str
    rule: str


def extract(reply: str) -> Extraction | None:
    """The final answer of a reply, or None when it holds none.

    Args:
        reply: the whole reply.
    """
    if "</think>" in reply:
        after = reply[reply.rindex("</think>") + len("</think>") :]
        if after.strip():
            reply = after
    if "box{" in reply or "boxed" in reply or "\\fbox" in reply:
        found = _boxed(reply)
        if found is not None:
            return found if found.answer.strip() else None
    for rule in (_tagged, _marked, _labelled):
        answer = rule(reply)
        if answer:
            return Extraction(answer, _RULES[rule.__name__])
    tail = reply[-LONGEST_TAIL:]
    whole = whole_answer(reply)
    if whole:
        return Extraction(whole, "final expression")
    answer = _bold(tail)
    if answer:
        return Extraction(answer, "bold")
    answer = final_expression(tail)
    return Extraction(answer, "final expression") if answer else None


def _boxed(reply: str) -> Extraction | None:
    at = max(reply.rfind(name) for name in _BOXES)
    if at < 0:
        return None
    start = reply.find("{", at, at + 20)
    simple = _SIMPLE_BOX.match(reply, start) if start >= 0 else None
    if simple is not None and not _JOINER.search(reply, max(0, at - 24), at):
        answer, end = simple.group(1), simple.end()
    else:
        boxes = _balanced(reply)
        if not boxes:
            bare = _BARE_BOX.findall(reply)
            return Extraction(bare[-1], "boxed") if bare else None
        answer, end = _joined_boxes(reply, boxes), boxes[-1][2]
    tail = reply[end:]
    if "inal" in tail:
        label = _last_label(tail, "final answer")
        later = leading_answer(tail[label : label + LONGEST_TAIL]) if label is not None else None
        if later and _HAS_VALUE.search(later):
            return Extraction(later, "answer is")
    return Extraction(answer, "boxed")


def _balanced(reply: str) -> list[tuple[int, int, int]]:
    """Balanced boxes in the order in which they close: (start, content, end)."""
    boxes: list[tuple[int, int, int]] = []
    open_marks: list[tuple[int, int]] = []  # (start or -1, content)
    for mark in _BOX_MARK.finditer(reply):
        text = mark.group()
        if text == "}":
            if open_marks:
                start, content = open_marks.pop()
                if start >= 0:
                    while boxes and boxes[-1][0] > start:
                        boxes.pop()  # a box within this one
                    boxes.append((start, content, mark.end()))
        elif text[-1] == "{" and len(text) != 2:
            open_marks.append((mark.start() if len(text) > 1 else -1, mark.end()))
    return boxes


def _joined_boxes(reply: str, boxes: list[tuple[int, int, int]]) -> str:
    """The content of the last box, with those that commas or "and" / "or" join to it."""
    contents = [reply[boxes[-1][1] : boxes[-1][2] - 1]]
    joints: list[str] = []
    for earlier, later in zip(reversed(boxes[:-1]), reversed(boxes), strict=False):
        between = reply[earlier[2] : later[0]]
        if len(between) > 24 or not _JOINED.match(between) or not _JOINER.search(between):
            break
        contents.append(reply[earlier[1] : earlier[2] - 1])
        joints.append(between)
    if len(set(contents)) == 1:
        return contents[0]
    return ", ".join(reversed(contents))


def _tagged(reply: str) -> str | None:
    start = reply.rfind("<answer>")
    if start < 0:
        return None
    end = reply.find("</answer>", start)
    inner = reply[start + len("<answer>") : end if end >= 0 else len(reply)].strip()
    label = _last_label(inner, "answer")
    if label is not None:
        return leading_answer(inner[label:])
    return leading_answer(inner) if len(inner) > LONGEST_SENTENCE else inner


def _marked(reply: str) -> str | None:
    start = reply.rfind("####")
    if start < 0:
        return None
    line = reply[start + 4 :].strip().partition("\n")[0].strip()
    return line.strip("#* ")


def _labelled(reply: str) -> str | None:
    label = _last_label(reply, "answer")
    return leading_answer(reply[label : label + LONGEST_TAIL]) if label is not None else None


def _last_label(reply: str, words: str) -> int | None:
    """Where the text behind the last label that says something begins."""
    folded = reply.lower()
    if len(folded) != len(reply):  # a letter whose lower case is longer: positions would shift
        folded = reply
    at = len(folded)
    for _ in range(MOST_LABELS):
        at = folded.rfind(words, 0, at)
        if at < 0:
            return None
        label = _LABEL.match(folded, at + len(words) - len("answer"))
        if label is None or folded[at - 1 : at].isalnum():
            continue
        if folded[label.end() : label.end() + 200].strip(" \t\r\n*_`#:"):
            return label.end()
    return None


_RULES = {"_tagged": "answer tag", "_marked": "####", "_labelled": "answer is"}


def _bold(tail: str) -> str | None:
    for match in reversed(_BOLD.findall(tail)):
        if re.search(r"\d", match) and len(match) <= 80:
            label = _LABEL.search(match.lower())
            return leading_answer(match[label.end() :] if label else match) or None
    return None
