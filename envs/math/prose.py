"""Finding an answer in prose: notation among words, after a label or at the end."""

from __future__ import annotations

import re

LONGEST_SENTENCE = 600
_MATH = re.compile(
    r"\$\$([^$]+)\$\$|\$(?=[^\s$])([^$\n]*[^\s$\\])\$|\\\[(.+?)\\\]|\\\((.+?)\\\)", re.DOTALL
)
_LIST_JOINT = re.compile(r"(\s*(?:,\s*and|,\s*or|,|and|or|;)\s*)(?=[$\\\d(-])")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")
_NAMED = re.compile(
    r"(?:sqrt|sin|cos|tan|cot|sec|csc|log|ln|exp|pi|arcsin|arccos|arctan|asin|acos|atan"
    r"|infinity|abs|floor|ceil|factorial|binomial)(?![a-zA-Z])"
)
_LETTERS = re.compile(r"[a-zA-Z]{2,}")
_UNIT_WORDS = re.compile(
    r"(?:%|percent|degrees?|dollars?|cents?|cm|mm|km|kg|ft|inches|meters|miles|hours|minutes|seconds|years|days|cubic|square)\b",
    re.I,
)
_CODE = re.compile(r"\(\)|__|[`@#?]|\w\.\w*[a-zA-Z]\w*\(|(?<!\\)[\"]")
_CHOICE = re.compile(r"\b(?:option|choice|is)[:\s]*\*{0,2}\(?([A-J])\)?\W*\Z")
_BULLET = re.compile(r"^\s*[-*•]\s+")
_DENIALS = {"not", "isn't", "never"}
_CONNECTIVES = {"and", "or", "base", "in"}
# "I don't know", "I'm unsure", "no idea", "..."; but "I and III" and "II" are choices.
_NO_ANSWER = re.compile(
    r"i(?:['’]\w|\s+(?!and\b|or\b|[ivx]+\b)\w)|no\s+(?:idea|answer)\b|(?:unsure|idk)\b|[\W_]*\Z",
    re.IGNORECASE,
)


def words_of(text: str) -> list[str]:
    """Words parted by white space, which does not part what stands in braces."""
    if "{" not in text:
        return text.split()
    words: list[str] = []
    start, depth, escaped = 0, 0, False
    for position, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
        elif depth == 0 and character.isspace():
            words.append(text[start:position])
            start = position + 1
    if depth:
        return text.split()
    words.append(text[start:])
    return [word for word in words if word]


def leading_answer(text: str) -> str | None:
    """The answer that a text starts with: mathematics, or a word or two.

    Args:
        text: what follows a label such as "The answer is".
    """
    text = text[: 2 * LONGEST_SENTENCE].lstrip(" \t\r\n*_`#\"':")
    math = _MATH.match(text)
    if math is not None:
        return _math_list(text, math)
    sentence = _sentence(text)
    run = _leading_run(sentence)
    if run:
        return run
    words = sentence.split()
    if len(words) <= 8 and not re.search(r"\d|\\|\$", sentence):
        return sentence.strip(' *_`.,;:!?"') or None
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


def _is_article(word: str, following: list[str]) -> bool:
    """Whether a single letter is a word of prose."""
    return word in ("a", "A", "I") and bool(following) and not _is_mathematical(following[0])


def _leading_run(sentence: str) -> str | None:
    """The notation that a sentence starts with."""
    run: list[str] = []
    words = words_of(sentence)
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
        elif not _is_mathematical(bare) or _is_article(bare, following):
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


def whole_answer(reply: str) -> str | None:
    """A reply that is nothing but an answer: notation, or at most three words.

    "I don't know" is none, nor is a reply of punctuation alone ("...").
    """
    text = reply.strip()
    if not text or len(text) > LONGEST_SENTENCE or "\n\n" in text:
        return None
    words = words_of(text)
    operators = re.search(r"[-+*/|]", text) and all(map(_is_mathematical, words))
    if not operators and not re.search(r"\d|\\|[$=^]", text):
        short = len(words) <= 3 and all(re.fullmatch(r"[\w'.,()!-]+", word) for word in words)
        return text if short and not (_CODE.search(text) or _NO_ANSWER.match(text)) else None
    if _CODE.search(text):
        return None
    notation = all(_is_mathematical(w) or w.strip(",") in _CONNECTIVES for w in words)
    units = [word for word in words if _UNIT_WORDS.fullmatch(word.strip(".,"))]
    plain = [w for w in words if not _is_mathematical(w) and w.strip(",") not in _CONNECTIVES]
    return text if notation or (plain == units and _is_mathematical(words[0])) else None


def final_expression(tail: str) -> str | None:
    """The last line with notation in it: its last formula, or its last run of notation."""
    for line in reversed(tail.split("\n")):
        choice = _CHOICE.search(line)
        found = choice.group(1) if choice is not None else _last_in_line(line)
        if found is not None:
            return found or None
    return None


def _last_in_line(line: str) -> str | None:
    """The last notation of a line; an empty text when it is no answer (code)."""
    line = _BULLET.sub("", line)
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
    denied = False
    for word in words_of(line[-LONGEST_SENTENCE:]):
        bare = word.strip(",.;:!?*_`\"'") or word
        if bare in ("a", "A", "I") or not _is_mathematical(bare):
            joins = bare in ("and", "or") and runs[-1]
            if joins:
                runs[-1].append(word)
            elif runs[-1]:
                runs.append([])
            denied = bare.casefold() in _DENIALS
            continue
        if denied and not runs[-1]:
            continue
        runs[-1].append(word)
        if word[-1] in ".;:?" and runs[-1]:
            runs.append([])
    for run in reversed(runs):
        while run and run[-1].strip(",") in ("and", "or"):
            run = run[:-1]
        raw = " ".join(run)
        text = _trimmed(raw)
        if re.search(r"\d", text):
            if _CODE.search(raw) or text.count("(") != text.count(")"):
                return ""
            return text
    return None
