r"""How the rows of mathematics data sets become problems: one table of field mappings.

A new data set with fields of its own is one entry in :data:`MAPPINGS`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from flexmg.envs.rows import Row, RowError
from flexmg.envs.sources import ParsedRow
from flexmg.errors import InvalidArgument

GoldRule = Literal["plain", "hashes", "boxed"]
GOLD_RULES: tuple[GoldRule, ...] = get_args(GoldRule)

_ABSENT = object()
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_LEVEL = re.compile(r"Level (\d+)")
_LEADING_ZEROS = re.compile(r"([+-]?)0+(?=\d)(\d+)")
# What some data sets write around every problem to tell a model how to answer. The workflow tells
# it in its own words, and an instruction left inside would hide that two problems are the same.
_INSTRUCTIONS = (
    "Let's think step by step and output the final answer within \\boxed{}.",
    "Solve the following math problem step by step. The last line of your response should be of "
    "the form Answer: $Answer (without quotes) where $Answer is the answer to the problem.",
    'Remember to put your answer on its own line after "Answer:".',
)


@dataclass(frozen=True, slots=True)
class FieldMapping:
    r"""Which fields of a row hold what. A dot descends: ``"prompt.0.content"``.

    Args:
        statement: field of the problem's text.
        gold: field of the reference answer: a text, a number, or a list of them.
        rule: what of the gold field is the answer. ``"plain"``: all of it, or what follows the
            last ``####`` when there is one; ``"hashes"``: what follows the last ``####``, which
            must be there; ``"boxed"``: what the last ``\boxed{...}`` holds.
        ids: fields that may hold the row's own id; the first one present counts.
        level: field of a difficulty: a whole number or ``"Level 3"``; anything else is no level.
        context: field of a text to be read before the statement; may be null.
        payload: fields that are kept for graders and analyses when they are not null.
    """

    statement: str
    gold: str
    rule: GoldRule = "plain"
    ids: tuple[str, ...] = ()
    level: str | None = None
    context: str | None = None
    payload: tuple[str, ...] = ()

    def fits(self, row: Row) -> bool:
        """Whether a row has the fields of this mapping (and the mark its rule looks for)."""
        statement, gold = _look_up(row, self.statement), _look_up(row, self.gold)
        if statement is _ABSENT or gold is _ABSENT:
            return False
        if self.rule == "hashes":
            return isinstance(gold, str) and "####" in gold
        if self.rule == "boxed":
            return isinstance(gold, str) and _BOX.search(gold) is not None
        return True

    def parse(self, row: Row) -> ParsedRow:
        """The problem in a row.

        Raises:
            RowError: a field is missing, empty, or of a type that it cannot have.
        """
        statement = without_instructions(_text(_required(row, self.statement), self.statement))
        if self.context is not None:
            context = _look_up(row, self.context)
            if context is not _ABSENT and context is not None:
                statement = f"{_text(context, self.context)}\n\n{statement}".strip()
        if not statement:
            raise RowError("is empty", self.statement)
        return ParsedRow(
            statement=statement,
            gold=self._gold(_required(row, self.gold)),
            id=self._id(row),
            level=self._level(row),
            payload=self._payload(row),
        )

    def _gold(self, value: Any) -> str:
        gold = _answer(value, self.gold)
        if self.rule == "boxed":
            gold = _last_box(gold, self.gold)
        elif "####" in gold:
            gold = gold.rpartition("####")[2].strip()
            if _GROUPED.fullmatch(gold):
                gold = gold.replace(",", "")
        elif self.rule == "hashes":
            raise RowError("has no '####' before a final answer", self.gold)
        if not gold:
            raise RowError("holds no final answer", self.gold)
        return _without_leading_zeros(gold)

    def _id(self, row: Row) -> str | None:
        for name in self.ids:
            value = _look_up(row, name)
            if value is _ABSENT or value is None:
                continue
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)
            id = _text(value, name)
            if id:
                return id
            raise RowError("is empty", name)
        return None

    def _level(self, row: Row) -> int | None:
        value = _ABSENT if self.level is None else _look_up(row, self.level)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        match = _LEVEL.fullmatch(value) if isinstance(value, str) else None
        return int(match[1]) if match else None

    def _payload(self, row: Row) -> dict[str, Any]:
        payload = {}
        for name in self.payload:
            value = _look_up(row, name)
            if value is _ABSENT or value is None:
                continue
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise RowError(f"cannot be written as JSON ({error})", name) from error
            payload[name] = value
        return payload


# The order is the order of recognition: a row may fit several, and the more telling fields come
# first (AMC rows carry `problem` and `question`; AIME rows carry `answer` and `solution`).
MAPPINGS: Mapping[str, FieldMapping] = {
    "verl": FieldMapping("prompt.0.content", "reward_model.ground_truth"),
    "problem-expected_answer": FieldMapping("problem", "expected_answer", ids=("id",)),
    "problem-answer": FieldMapping(
        "problem", "answer", ids=("unique_id", "id"), level="level", payload=("subject",)
    ),
    "olympiadbench": FieldMapping(
        "question",
        "final_answer",
        ids=("id",),
        context="context",
        payload=("unit", "answer_type", "is_multiple_answer", "subfield"),
    ),
    "gsm8k": FieldMapping("question", "answer", rule="hashes"),
    "question-answer": FieldMapping("question", "answer", ids=("id",)),
    "minerva": FieldMapping("problem", "solution", rule="boxed", ids=("idx",), payload=("type",)),
    "prompt-solution": FieldMapping("prompt", "solution"),
}

_MAPPING_KEYS = ("statement", "gold", "rule", "id", "level", "context")


def mapping_from(fields: Mapping[str, str]) -> FieldMapping:
    """The mapping a user gives, as in ``{"statement": "question", "gold": "answer"}``.

    Args:
        fields: field names by role: ``statement`` and ``gold``, and if wanted ``id``, ``level``,
            ``context``; ``rule`` is one of :data:`GOLD_RULES` (see :class:`FieldMapping`).

    Raises:
        InvalidArgument: not a mapping, a role is unknown or lacking, or the rule is unknown.
    """
    if not isinstance(fields, Mapping):
        raise InvalidArgument(
            f"mapping={fields!r} is not a mapping, such as "
            "{'statement': 'question', 'gold': 'answer'}"
        )
    unknown = [key for key in fields if key not in _MAPPING_KEYS]
    lacking = [key for key in ("statement", "gold") if key not in fields]
    if unknown or lacking:
        raise InvalidArgument(
            f"mapping={dict(fields)!r} "
            + (f"has no {' and no '.join(map(repr, lacking))}" if lacking else "")
            + (" and " if lacking and unknown else "")
            + (f"has the unknown key {unknown[0]!r}" if unknown else "")
            + f"; it names fields by {', '.join(_MAPPING_KEYS)}, as in "
            "{'statement': 'question', 'gold': 'answer'}"
        )
    rule = fields.get("rule", "plain")
    known = [name for name in GOLD_RULES if name == rule]
    if not known:
        raise InvalidArgument(f"mapping rule {rule!r} is none of {', '.join(GOLD_RULES)}")
    return FieldMapping(
        fields["statement"],
        fields["gold"],
        rule=known[0],
        ids=(fields["id"],) if "id" in fields else (),
        level=fields.get("level"),
        context=fields.get("context"),
    )


def recognise(row: Row) -> FieldMapping | None:
    """The first of :data:`MAPPINGS` that fits a row, or None."""
    return next((mapping for mapping in MAPPINGS.values() if mapping.fits(row)), None)


def without_instructions(statement: str) -> str:
    """A statement without the answer instructions that some data sets wrap around it."""
    statement = statement.strip()
    for instruction in _INSTRUCTIONS:
        statement = statement.removeprefix(instruction).removesuffix(instruction).strip()
    return statement


def _look_up(row: Row, path: str) -> Any:
    value: Any = row
    for step in (path,) if path in row else path.split("."):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, Sequence) and not isinstance(value, str) and step.isdecimal():
            position = int(step)
            if position >= len(value):
                return _ABSENT
            value = value[position]
        else:
            return _ABSENT
    return value


def _required(row: Row, name: str) -> Any:
    value = _look_up(row, name)
    if value is _ABSENT:
        raise RowError(f"is missing; the row has {', '.join(map(repr, row)) or 'no field'}", name)
    if value is None:
        raise RowError("is null", name)
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise RowError(f"must be a text, not {_shown(value)}", name)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise RowError("holds half of a surrogate pair, which is not a character", name) from error
    return value.strip()


def _answer(value: Any, name: str) -> str:
    if isinstance(value, bool):
        raise RowError(f"must be a text or a number, not {value}", name)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RowError(f"must be a finite number, not {value}", name)
        # Contest answers stored as floats are whole numbers: 27.0 stands for 27.
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, list | tuple):
        if not value:
            raise RowError("is an empty list", name)
        return ", ".join(_answer(item, name) for item in value)
    return _text(value, name)


def _without_leading_zeros(gold: str) -> str:
    match = _LEADING_ZEROS.fullmatch(gold)
    return f"{match[1]}{match[2]}" if match else gold


def _last_box(text: str, name: str) -> str:
    openings = [match.end() for match in _BOX.finditer(text)]
    if not openings:
        raise RowError("has no \\boxed{...} with a final answer", name)
    depth = 1
    for position in range(openings[-1], len(text)):
        if text[position - 1] == "\\":
            continue
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return text[openings[-1] : position].strip()
    raise RowError("has a \\boxed{ that is never closed", name)


def _shown(value: Any) -> str:
    shown = repr(value)
    return f"{type(value).__name__} {shown if len(shown) <= 40 else shown[:37] + '...'}"
