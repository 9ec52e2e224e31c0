"""Problems of the ``reasoning-gym`` package, for the generators whose answers are plain numbers.

That package draws item ``i`` from ``seed + i``, so that neighbouring seeds share nearly all their
items. Here the seed is fixed and nobody chooses it. A candidate belongs to the split that a hash of
its text assigns to it, so the splits are disjoint even where a generator has few different items.
Only ``question`` and ``answer`` are used: the package's own scorers are not called, because some
give partial reward for wrong answers and some execute them.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import operator
from functools import cached_property
from typing import Any, SupportsIndex
from urllib.parse import parse_qsl, urlencode

from flexmg.envs.math.fields import without_instructions
from flexmg.envs.sources import check_index, fingerprint, overlap_key
from flexmg.errors import InvalidArgument, MissingDependency, ProblemError, UnknownProblem
from flexmg.problem import Problem

PREFIX = "reasoning-gym:"

# Cheap, independent of PYTHONHASHSEED, and with a number for an answer.
GENERATORS = (
    "basic_arithmetic",
    "binary_alternation",
    "chain_sum",
    "coin_flip",
    "count_bits",
    "count_primes",
    "decimal_chain_sum",
    "gcd",
    "lcm",
    "leg_counting",
    "letter_counting",
    "maze",
    "products",
    "simple_equations",
)

_EXECUTES = "its scorer runs the answer as code"
_HASH_SEED = "its items change with PYTHONHASHSEED"
_NOT_A_VALUE = "its answer is a form, not a value: the question itself would be graded as right"
_TEXT = "its answer is a text, which a mathematics grader would read as a product of letters"
_ORDER = "its answer is an ordered list, which a mathematics grader compares in any order"
_NO_ANSWER = "it comes without reference answers"

REFUSED = {
    "base_conversion": "its answer is a digit string of an unstated base",
    "binary_matrix": _EXECUTES,
    "bitwise_arithmetic": "its answer is hexadecimal, which a mathematics grader misreads",
    "boxnet": _NO_ANSWER,
    "calendar_arithmetic": _TEXT,
    "codeio": _HASH_SEED,
    "countdown": _EXECUTES,
    "family_relationships": _TEXT,
    "fraction_simplification": _NOT_A_VALUE,
    "game_of_life_halting": _TEXT,
    "graph_color": _NO_ANSWER,
    "gsm_symbolic": "its items depend on how many are asked for",
    "intermediate_integration": _EXECUTES,
    "isomorphic_strings": _HASH_SEED,
    "knight_swap": _HASH_SEED,
    "list_functions": _HASH_SEED,
    "n_queens": _EXECUTES,
    "number_filtering": _ORDER,
    "number_sorting": _ORDER,
    "polynomial_multiplication": _EXECUTES,
    "prime_factorization": _NOT_A_VALUE,
    "propositional_logic": _NO_ANSWER,
    "puzzle24": _EXECUTES,
    "ransom_note": _HASH_SEED,
    "rubiks_cube": _NO_ANSWER,
    "rush_hour": _NO_ANSWER,
    "simple_integration": _EXECUTES,
    "spell_backward": _TEXT,
    "spiral_matrix": _EXECUTES,
    "string_insertion": _EXECUTES,
    "syllogism": "about one in eight of its answers is wrong",
    "word_ladder": _HASH_SEED,
    "word_sorting": _ORDER,
}

_SEED = 20_250_101
# Of every ten different items, eight are for training.
_SPLIT_OF_TENTH = ("train",) * 8 + ("validation", "test")
# So many candidates are set aside per problem; none is of the wanted split with probability
# 0.9 ** 1024 in a generator with many different items.
_CANDIDATES = 1024


class ReasoningGymSource:
    """An unlimited :class:`~flexmg.problem.ProblemSource` over one generator.

    Problem ``i`` is the first of the candidates ``1024 i ... 1024 i + 1023`` that belongs to the
    split. Different indices may hold the same problem in generators with few different items.

    Args:
        generator: one of :data:`GENERATORS`, then if wanted ``?`` and settings of the generator, as
            ``"chain_sum?max_terms=3&max_digits=2"`` (values are read as JSON).
        split: ``"train"``, ``"validation"`` or ``"test"``.
        **settings: settings of the generator, in place of those in the string.

    Attributes:
        name: ``reasoning-gym:`` and the generator with its settings in alphabetical order.
        split: the split.
        size: None: it never ends.

    Raises:
        InvalidArgument: generator, setting or split cannot be used.
        MissingDependency: the package is not installed.
    """

    def __init__(self, generator: str, split: str = "train", **settings: Any) -> None:
        generator, _, query = generator.partition("?")
        _check_generator(generator)
        if split not in _SPLIT_OF_TENTH:
            raise InvalidArgument(
                f"{PREFIX}{generator} has the splits train, validation and test, not {split!r}"
            )
        settings = {**_read_settings(query), **settings}
        self._dataset = _create(generator, settings)
        self._generator = generator
        self.name = PREFIX + generator
        if settings:
            values = [(name, json.dumps(value)) for name, value in sorted(settings.items())]
            self.name += "?" + urlencode(values)
        self.split = split
        self.size = None

    def get(self, index: SupportsIndex) -> Problem:
        """The problem at ``index`` (any number from 0).

        Raises:
            UnknownProblem: the index is negative.
            ProblemError: with these settings the generator has no items for this split.
        """
        index = operator.index(index)
        check_index(self, index)
        for candidate in range(index * _CANDIDATES, (index + 1) * _CANDIDATES):
            item = self._dataset[candidate]
            statement = without_instructions(item["question"])
            if _split_of(statement) == self.split:
                return Problem(
                    id=f"{self._generator}-{self.split}-{index}",
                    statement=statement,
                    gold=str(item["answer"]).strip(),
                    source=self.name,
                    split=self.split,
                    index=index,
                )
        raise ProblemError(
            f"none of {_CANDIDATES} items of {self.name} falls into the split {self.split!r}: with "
            "these settings there are too few different ones; widen the settings"
        )

    def find(self, id: str) -> Problem:
        """The problem with this id; raises ``UnknownProblem`` for an id that is not one."""
        stem, _, number = id.rpartition("-")
        if stem == f"{self._generator}-{self.split}" and number.isdecimal():
            problem = self.get(int(number))
            if problem.id == id:
                return problem
        raise UnknownProblem(
            f"{self.name} ({self.split}) has no problem {id!r}; its ids are like "
            f"'{self._generator}-{self.split}-0'"
        )

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the first 256 problems, which stand for all of them.

        It differs when another version of the package generates other items. See
        :func:`flexmg.envs.sources.fingerprint`.
        """
        return fingerprint(map(self.get, range(256)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, split {self.split!r}, unlimited>"


def _split_of(statement: str) -> str:
    digest = hashlib.sha256(overlap_key(statement).encode()).digest()
    return _SPLIT_OF_TENTH[int.from_bytes(digest[:8], "big") % len(_SPLIT_OF_TENTH)]


def _check_generator(generator: str) -> None:
    if generator in REFUSED:
        raise InvalidArgument(
            f"{PREFIX}{generator} is refused: {REFUSED[generator]}; the generators that can be "
            f"used are {', '.join(GENERATORS)}"
        )
    if generator not in GENERATORS:
        close = difflib.get_close_matches(generator, GENERATORS, n=1)
        raise InvalidArgument(
            f"{PREFIX}{generator} is not among the generators that were checked"
            + (f" (did you mean {close[0]!r}?)" if close else "")
            + f": {', '.join(GENERATORS)}"
        )


def _read_settings(query: str) -> dict[str, Any]:
    settings = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        try:
            settings[name] = json.loads(text)
        except ValueError:
            # A bare word is a text, as in a shell.
            settings[name] = text
    return settings


def _create(generator: str, settings: dict[str, Any]) -> Any:
    try:
        import reasoning_gym
        from reasoning_gym.factory import DATASETS
    except ImportError as error:
        raise MissingDependency(
            f"{PREFIX}{generator} needs the package reasoning-gym: "
            "pip install 'flexmg[reasoning-gym]'"
        ) from error
    known = {field.name for field in dataclasses.fields(DATASETS[generator][1])} - {"seed", "size"}
    for name in settings:
        if name not in known:
            raise InvalidArgument(
                f"{PREFIX}{generator} has no setting {name!r}; it has {', '.join(sorted(known))}"
                + (" (seed and size are not settings here)" if name in ("seed", "size") else "")
            )
    try:
        # The declared size bounds nothing in these generators: any index can be drawn.
        return reasoning_gym.create_dataset(generator, seed=_SEED, size=1, **settings)
    except (AssertionError, TypeError, ValueError) as error:
        raise InvalidArgument(
            f"{PREFIX}{generator} does not accept the settings {settings} ({error})"
        ) from error
