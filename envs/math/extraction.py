"""Finding the final answer in a reply.

Rules, in this order: the last balanced ``\\boxed`` (or ``\\fbox``; boxes joined by commas
or "and" / "or" make one list), unless an explicit "final answer is ..." follows it; the
last ``<answer>``; the last ``####``; the last "answer is" or "Answer:"; the last bold
text; a final expression. Only the text after a closing ``</think>`` counts when there is
any. Every rule takes time linear in the length of the reply.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_TAIL = 4000  # characters from the end that the last two rules look at
LONGEST_SENTENCE = 600

_BOXES = ("\\boxed", "\\fbox", "\\framebox")
_BOX_MARK = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{|\\[^a-zA-Z]|[{}]")
_SIMPLE_BOX = re.compile(r"\s*\{([^{}\\]*)\}")
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)\s*(\d+|[a-zA-Z])(?![\w{])")
_JOINED = re.compile(r"[\s$.]*(?:\\[()\[\]]\s*)*(?:,|;|and|or|\\text\{\s*(?:and|or)\s*\}|[\s$])*[\s$]*(?:\\[()\[\]]\s*)*\Z")
_JOINER = re.compile(r",|;|\band\b|\bor\b")
_LABEL = re.compile(
    r"\b(final\s+)?answer\b[*_`\"]*\s*"
    r"(?:(?:[^\n.:=?]{0,60}?\b(?:is|are|was|were|be|equals)\b)[*_`:\s]*|[:=\uff1a][*_`\s]*|[*_#\s]*\n[*_\s]*)",
    re.IGNORECASE,
)
_HAS_VALUE = re.compile(r"\d|\$|\\|^\W*[A-J]\W*$")
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_MATH = re.compile(r"\$\$([^$]+)\$\$|\$(?=[^\s$])([^$\n]*[^\s$\\])\$|\\\[(.+?)\\\]|\\\((.+?)\\\)", re.DOTALL)
_LIST_JOINT = re.compile(r"(\s*(?:,\s*and|,\s*or|,|and|or|;)\s*)(?=[$\\\d(-])")
_WORD = re.compile(r"(?:\\.|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|[^\s\\])+", re.DOTALL)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")
_NAMES = (
    "sqrt sin cos tan cot sec csc log ln exp pi arcsin arccos arctan asin acos atan infinity abs "
    "floor ceil factorial binomial"
).split()
_NAMED = re.compile(r"(?:%s)(?![a-zA-Z])" % "|".join(_NAMES))
_LETTERS = re.compile(r"[a-zA-Z]{2,}")
_UNIT_WORDS = re.compile(r"(?:%|percent|degrees?|dollars?|cents?|cm|mm|km|kg|ft|inches|meters|miles|hours|minutes|seconds|years|days|cubic|square)\b", re.I)
_CODE = re.compile(r"\(\)|__|[`@#?]|\w\.\w*[a-zA-Z]\w*\(|(?<!\\)[\"]")
_CONNECTIVES = {"and", "or", "base", "in"}


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
    whole = _whole(reply)
    if whole:
        return Extraction(whole, "final expression")
    answer = _bold(tail)
    if answer:
        return Extraction(answer, "bold")
    answer = _final_expression(tail)
    return Extraction(answer, "final expression") if answer else None


# -- boxes ---------------------------------------------------------------------------------
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
            bare = None
            for bare in _BARE_BOX.finditer(reply):
                pass
            return Extraction(bare.group(1), "boxed") if bare is not None else None
        answer, end = _joined_boxes(reply, boxes), boxes[-1][2]
    tail = reply[end:]
    if "inal" in tail:
        for label in _LABEL.finditer(tail):
            if label.group(1):
                later = leading_answer(tail[label.end() :])
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


# -- tags, marks and labels ------------------------------------------------------------
def _tagged(reply: str) -> str | None:
    start = reply.rfind("<answer>")
    if start < 0:
        return None
    end = reply.find("</answer>", start)
    inner = reply[start + len("<answer>") : end if end >= 0 else len(reply)].strip()
    return leading_answer(inner) if len(inner) > LONGEST_SENTENCE else inner


def _marked(reply: str) -> str | None:
    start = reply.rfind("####")
    if start < 0:
        return None
    line = reply[start + 4 :].strip().partition("\n")[0].strip()
    return line.strip("#* ")


def _labelled(reply: str) -> str | None:
    last = None
    if "nswer" in reply or "NSWER" in reply:
        for label in _LABEL.finditer(reply):
            if reply[label.end() :][:200].strip():
                last = label
    return leading_answer(reply[last.end() :]) if last is not None else None


_RULES = {"_tagged": "answer tag", "_marked": "####", "_labelled": "answer is"}


# -- prose --------------------------------------------------------------------------------
def leading_answer(text: str) -> str | None:
    """The answer that a text starts with: mathematics, or a word or two.

    Args:
        text: what follows a label such as "The answer is".
    """
    text = text[: 2 * LONGEST_SENTENCE].lstrip(" \t\r\n*_`\"':")
    math = _MATH.match(text)
    if math is not None:
        return _math_list(text, math)
    sentence = _sentence(text)
    run = _leading_run(sentence)
    if run:
        return run
    words = sentence.split()
    if len(words) <= 8 and not re.search(r"\d|\\|\$", sentence):
        return sentence.strip(" *_`.,;:!?\"") or None
    return _last_in_line(sentence)


def _sentence(text: str) -> str:
    """The first sentence; a full stop inside braces or mathematics does not end it."""
    depth = 0
    for position, character in enumerate(text[:LONGEST_SENTENCE]):
        if character == "{":
            depth += 1
        elif character == "}":
            depth = max(0, depth - 1)
        elif depth == 0 and character in ".!?\n" and _SENTENCE_END.match(text, position):
            if text[position - 1 : position] == "\\":
                continue
            if character != "!" or not text[:position].rstrip()[-1:].isalnum():
                return text[:position]
            if text[position:].strip(" !.*\n") == "" and not text[position - 1].isdigit():
                return text[:position]
    return text[:LONGEST_SENTENCE]


def _math_list(text: str, first: re.Match[str]) -> str:
    """Mathematics in dollars, with more of it that commas or "and" / "or" join."""
    end = first.end()
    pieces = [_content(first)]
    while True:
        joint = _LIST_JOINT.match(text, end)
        following = _MATH.match(text, joint.end()) if joint else None
        if joint is None or following is None:
            break
        pieces.append(joint.group(1) + _content(following))
        end = following.end()
    unit = re.match(r"\s*(\\?%|[a-zA-Z]+)", text[end:])
    if unit is not None and _UNIT_WORDS.match(unit.group(1).lstrip("\\")):
        pieces.append(f" {unit.group(1)}")
    return "".join(pieces).strip()


def _content(math: re.Match[str]) -> str:
    return next(group for group in math.groups() if group is not None)


def _is_mathematical(word: str) -> bool:
    """Whether a word of a sentence is notation rather than prose."""
    if word.startswith("\\"):
        return True
    bare = re.sub(r"\\[a-zA-Z]+\*?|\{[^{}]*\}", "", word)
    letters = _LETTERS.findall(_NAMED.sub("", bare))
    if any(character.isdigit() for character in word):
        return not letters or all(len(run) <= 3 for run in letters)
    return not letters or "\\" in word


def _leading_run(sentence: str) -> str | None:
    """The notation that a sentence starts with."""
    run: list[str] = []
    words = [match.group() for match in _WORD.finditer(sentence)]
    for position, word in enumerate(words):
        bare = word.strip(",.;:")
        following = words[position + 1 :]
        if bare in _CONNECTIVES:
            joins = bool(run) and bool(following) and _is_mathematical(following[0])
            if not joins:
                break
        elif run and _UNIT_WORDS.fullmatch(bare):
            run.append(word)
            if word != bare:
                break
            continue
        elif not _is_mathematical(bare):
            break
        elif bare in ("a", "A", "I") and following and not _is_mathematical(following[0]):
            break
        run.append(word)
    return _trimmed(" ".join(run)) or None


def _trimmed(run: str) -> str:
    """A run of notation without the punctuation of the sentence around it."""
    run = run.strip(" *_`\"'").rstrip(" ,.;:?*_`\"'=").strip()
    surplus = sum(run.count(c) for c in "([") - sum(run.count(c) for c in ")]")
    while surplus < 0 and run.endswith(")"):
        run, surplus = run[:-1].rstrip(" .,;:"), surplus + 1
    while surplus > 0 and run.startswith("("):
        run, surplus = run[1:].lstrip(), surplus - 1
    return run


def _whole(reply: str) -> str | None:
    """A reply that is nothing but an answer: notation, or at most three words."""
    text = reply.strip()
    if not text or len(text) > LONGEST_SENTENCE or "\n\n" in text:
        return None
    words = [match.group() for match in _WORD.finditer(text)]
    operators = re.search(r"[-+*/]", text) and all(map(_is_mathematical, words))
    if not operators and not re.search(r"\d|\\|[$=^]", text):
        short = len(words) <= 3 and all(re.fullmatch(r"[\w'.,()!-]+", word) for word in words)
        return text if short and not _CODE.search(text) else None
    if _CODE.search(text):
        return None
    notation = all(_is_mathematical(w) or w.strip(",") in _CONNECTIVES for w in words)
    units = [word for word in words if _UNIT_WORDS.fullmatch(word.strip(".,"))]
    plain = [w for w in words if not _is_mathematical(w) and w.strip(",") not in _CONNECTIVES]
    return text if notation or (plain == units and _is_mathematical(words[0])) else None


def _bold(tail: str) -> str | None:
    for match in reversed(_BOLD.findall(tail)):
        if re.search(r"\d", match) and len(match) <= 80:
            label = _LABEL.search(match)
            return leading_answer(match[label.end() :] if label else match) or None
    return None


def _final_expression(tail: str) -> str | None:
    """The last line with notation in it: its last formula, or its last run of notation."""
    for line in reversed(tail.split("\n")):
        found = _last_in_line(line)
        if found is not None:
            return found or None
    return None


def _last_in_line(line: str) -> str | None:
    """The last notation of a line; an empty text when it is no answer (code)."""
    math = None
    for match in _MATH.finditer(line):
        math = match
    after = line[math.end() :] if math else line
    run = _last_run(after)
    if run is not None:
        return run
    return None if math is None else _content(math).strip()


def _last_run(line: str) -> str | None:
    runs: list[list[str]] = [[]]
    for match in _WORD.finditer(line[-LONGEST_SENTENCE:]):
        word = match.group()
        bare = word.strip(",.;:!?*_`\"'")
        if bare in ("a", "A", "I") or not _is_mathematical(bare) or not bare:
            joins = bare in ("and", "or") and runs[-1]
            if joins:
                runs[-1].append(word)
            elif runs[-1]:
                runs.append([])
            continue
        runs[-1].append(word)
        if word[-1] in ".;:?" and runs[-1]:
            runs.append([])
    for run in reversed(runs):
        while run and run[-1].strip(",") in ("and", "or"):
            run = run[:-1]
        text = _trimmed(" ".join(run))
        if re.search(r"\d", text):
            if _CODE.search(text) or text.count("(") != text.count(")"):
                return ""
            return text
    return None
