"""Values on their way out of a sandbox, and how they are compared."""

from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from contextlib import suppress
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmg.envs.code.drivers.encoding import to_json
from flexmg.envs.code.values import (
    Refused,
    Unreadable,
    decode,
    encode,
    equal,
    read,
    shown,
    value_of,
)

HASHABLE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec=None))
    | st.binary()
    | st.complex_numbers(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=6,
)
VALUES = st.recursive(
    HASHABLE,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.lists(inner, max_size=4).map(deque)
        | st.sets(HASHABLE, max_size=4)
        | st.dictionaries(HASHABLE, inner, max_size=4)
    ),
    max_leaves=12,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["set", "dict", "int", "range", "float", "bytes", "refused", "x"]),
            inner,
            max_size=1,
        )
    ),
    max_leaves=8,
)
MERSENNE = 2**61 - 1  # whole numbers that differ by a multiple of it share a hash


def out_and_back(value):
    return value_of(read(to_json(encode(value)).encode()))


class AlwaysEqual(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


class Colour(IntEnum):
    RED = 1


Point = namedtuple("Point", "x y")


# -- out and back ------------------------------------------------------------------------
@given(VALUES)
def test_builtin_values_survive(value):
    assert out_and_back(value) == value


@given(VALUES)
def test_their_types_survive(value):
    assert type(out_and_back(value)) is type(value)


@pytest.mark.parametrize("value", [math.inf, -math.inf, [10**5000, -(7**9000)], range(2, 9, 3)])
def test_what_json_has_no_word_for_survives(value):
    assert out_and_back(value) == value


def test_not_a_number_survives():
    assert math.isnan(out_and_back(math.nan))


def test_the_sign_of_zero_survives():
    assert math.copysign(1, out_and_back(-0.0)) == -1


def test_lone_surrogates_survive():
    assert out_and_back("a\ud800b") == "a\ud800b"


@pytest.mark.parametrize(
    "value", [Counter("aab"), OrderedDict(a=1), defaultdict(int, {(1, 2): [3]})]
)
def test_pythons_kinds_of_dict_come_back_as_dicts(value):
    assert out_and_back(value) == dict(value)


@pytest.mark.parametrize(
    "value",
    [AlwaysEqual(4), Colour.RED, Point(1, 2), object(), len, int, (n for n in "ab"), map(int, "1")],
)
def test_everything_else_is_refused(value):
    assert isinstance(out_and_back(value), Refused)


def test_a_subclass_inside_a_list_is_refused_too():
    assert isinstance(out_and_back([AlwaysEqual(4)])[0], Refused)


def test_a_list_that_contains_itself_cannot_be_encoded():
    value: list = []
    value.append(value)
    with pytest.raises(RecursionError):
        encode(value)


# -- hostile lines -----------------------------------------------------------------------
@given(JSON)
def test_any_json_is_read_or_unreadable(data):
    with suppress(Unreadable):
        value_of(read(json.dumps(data).encode()))


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_unreadable(line):
    with suppress(Unreadable):
        value_of(read(line))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b"[" * 400 + b"]" * 400,
        b"9" * 1_000_000,
        b"[-" + b"9" * 1_000_000 + b"]",
        b"[NaN]",
        b"Infinity",
        b'{"range": [0, 1000000000000, 1]}',
        b'{"range": [100000000000000000000000000, 100000000000000000000000001, 1]}',
        b'{"set": [[1]]}',
        b'{"dict": [[1]]}',
        b'{"dict": 5}',
        b'{"bytes": "xy"}',
        b'{"complex": [1]}',
        b'{"int": "xyz"}',
        b'{"float": "1e5"}',
        b'{"unknown": 1}',
        b'{"tuple": [], "set": []}',
        b"{}",
    ],
)
def test_what_no_driver_writes_is_unreadable(line):
    with pytest.raises(Unreadable):
        value_of(read(line))


@pytest.mark.parametrize("tag", ["set", "frozenset", "dict"])
def test_numbers_that_share_a_hash_are_not_put_into_a_set(tag):
    numbers = [k * MERSENNE for k in range(100)]
    items = [[one, 0] for one in numbers] if tag == "dict" else numbers
    with pytest.raises(Unreadable, match="hash"):
        value_of(read(json.dumps({tag: items}).encode()))


def test_a_large_honest_set_is_read():
    assert out_and_back(set(range(20_000))) == set(range(20_000))


def test_a_forged_class_name_is_cut():
    assert len(repr(decode({"refused": "x" * 10**6}))) < 200


# -- comparing ---------------------------------------------------------------------------
@given(VALUES, VALUES)
def test_exact_comparison_is_pythons(one, other):
    assert equal(one, other) == (one == other)


@given(VALUES)
def test_what_comes_back_equals_what_was_sent(value):
    assert equal(value, out_and_back(value))


@given(st.lists(VALUES, max_size=5).flatmap(lambda xs: st.tuples(st.just(xs), st.permutations(xs))))
def test_any_order_accepts_every_permutation(pair):
    assert equal(*pair, any_order=True)


@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
def test_any_order_counts_items(one, other):
    assert equal(one, other, any_order=True) == (Counter(one) == Counter(other))


@pytest.mark.parametrize(
    ("expected", "got", "settings", "right"),
    [
        ([1, 2], (1, 2), {}, False),
        ([1, 2], (1, 2), {"exact": False}, True),
        ([[1], [2]], [(1,), (2,)], {"exact": False}, True),
        ({"a": [1]}, {"a": (1,)}, {"exact": False}, True),
        ({"a": [1]}, {"a": (1,)}, {}, False),
        ([1], {1}, {"exact": False}, False),
        (1, True, {}, True),
        (1, 1.0, {}, True),
        ("1", 1, {}, False),
        (1.0, 1.0 + 1e-9, {}, False),
        (1.0, 1.0 + 1e-9, {"tolerance": 1e-6}, True),
        (1.0, 1.001, {"tolerance": 1e-6}, False),
        (1e9, 1e9 + 1, {"tolerance": 1e-6}, True),
        (1, 1.0000000001, {"tolerance": 1e-6}, False),
        (2.0, 2, {"tolerance": 1e-6}, True),
        (1.333347333382e18, 1333347333382000056, {"tolerance": 1e-9}, True),
        (1000000000000000001, 1000000000000000000, {"tolerance": 1e-6}, False),
        (math.inf, math.inf, {"tolerance": 1e-6}, True),
        (math.inf, 5.0, {"tolerance": 1e-6}, False),
        (5.0, math.inf, {"tolerance": 1e-6}, False),
        (math.inf, -math.inf, {"tolerance": 1e-6}, False),
        ([5.0], [10**5000], {"tolerance": 1e-6}, False),
        (math.nan, math.nan, {"tolerance": 1e-6}, False),
        ([math.nan], [math.nan], {}, False),
        ([1.0, [2.0]], [1.0, [2.0 + 1e-9]], {"tolerance": 1e-6}, True),
        ("Yes", "yES", {}, False),
        ("Yes", "yES", {"any_case": True}, True),
        (["B", "a"], ["A", "b"], {"any_case": True, "any_order": True}, True),
        ([1, 1, 2], [1, 2, 2], {"any_order": True}, False),
        ([[1, 2], [3]], [[3], [1, 2]], {"any_order": True}, True),
        ([[1, 2], [3]], [[3], [2, 1]], {"any_order": True}, False),
        ([{1: 2, 3: 4}, {5: 6}], [{5: 6}, {3: 4, 1: 2}], {"any_order": True}, True),
        ([1.0, 1.0000001], [1.00000005, 1.0], {"any_order": True, "tolerance": 1e-6}, True),
        ([1, "a", None], [None, 1, "a"], {"any_order": True}, True),
        ((4, 5), (5, 4), {"any_order": True}, True),
        ("ab", "ba", {"any_order": True}, False),
    ],
)
def test_comparison_by_settings(expected, got, settings, right):
    assert equal(expected, got, **settings) is right


@pytest.mark.parametrize("settings", [{}, {"any_order": True}, {"exact": False}])
def test_a_refused_value_equals_nothing(settings):
    refused = Refused("E")
    assert not equal([refused], [refused], **settings)


def test_deep_values_are_compared_without_an_exception():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    assert equal(deep, [deep]) is False


# -- in a sentence -----------------------------------------------------------------------
@pytest.mark.parametrize("value", [[1, "a", None], {"a": (1,)}, {3}, (), {}, set(), 1.5, b"x"])
def test_short_values_are_shown_as_python_writes_them(value):
    assert shown(value) == repr(value)


@pytest.mark.parametrize(
    "value",
    [[10**300_000], [10**300_000] * 60, "a" * 10**6, list(range(10**6)), {"k" * 10**5: deque([1])}],
)
def test_long_values_are_shortened(value):
    assert len(shown(value)) <= 203
