"""What statements say of right outputs: sentences by hand, and the real files."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from flexmg.envs.code.flags import flags_of

SENTENCES = [
    ("You can print each letter in any case (upper or lower).", {"any_case"}),
    ("You can output the answer in any letter case.", {"any_case"}),
    ("You can print each letter in any register (upper or lower).", {"any_case"}),
    ("The output is case insensitive.", {"any_case"}),
    ("You may print the lines in any order.", {"any_order"}),
    ("You may return the answer in any order.", {"any_order"}),
    ("If there are multiple answers, print any of them.", {"any_valid"}),
    ("If there are several possible answers, you may print any of them.", {"any_valid"}),
    ("If there are multiple such integers, output any.", {"any_valid"}),
    ("In case of multiple answers, print any.", {"any_valid"}),
    ("Find any array of integers for which the following holds:", {"any_valid"}),
    ("If there are multiple valid answers, return any of them.", {"any_valid"}),
    ("Print the pairs in any order. If there are several answers, print any.", {"any_valid"}),
]
# Sentences of real statements that speak of the problem, not of its answer.
ABOUT_SOMETHING_ELSE = [
    "A permutation consists of n distinct integers from 1 to n in arbitrary order.",
    "You can perform the following operations any number of times in any order.",
    "If there are several minima, Yelisey can choose any of them.",
    "If the values on them are equal, you can choose any of them.",
    "Print -1 if the scores are not consistent with any valid set of games.",
    "Print YES if there is a route between any pair of nodes.",
    "If you output any other positive number instead of 1, it counts as 1.",
    "The door is locked in any case.",
    "If there are multiple such countries, output the smallest one.",
    "Find the lexicographically smallest array after any number of swaps.",
]


@pytest.mark.parametrize(("sentence", "flags"), SENTENCES)
def test_sentences_that_allow_several_outputs(sentence, flags):
    assert flags_of(f"Given n. {sentence} Good luck.") == flags


@pytest.mark.parametrize("sentence", ABOUT_SOMETHING_ELSE)
def test_sentences_about_something_else(sentence):
    assert not flags_of(sentence)


@pytest.fixture(scope="module")
def flagged(shared):
    """The flags of every statement of the two contest files."""
    return {
        name: [
            flags_of(row["problem"])
            for row in json.loads((shared / "data" / name / "test.json").read_text())
        ]
        for name in ("codeforces", "codecontests")
    }


def test_letter_case_in_codeforces(flagged):
    """53 of the 408, as counted in the notes on graders."""
    assert Counter("any_case" in flags for flags in flagged["codeforces"])[True] == 53


@pytest.mark.parametrize(("name", "count"), [("codeforces", 43), ("codecontests", 35)])
def test_any_valid_answer_in_the_real_files(flagged, name, count):
    """Counted by reading each sentence with "any", "several" or "multiple" in it."""
    assert sum("any_valid" in flags for flags in flagged[name]) == count


@pytest.mark.parametrize("row", [15, 65, 219, 220])
def test_statements_with_one_answer_in_spite_of_their_words(flagged, row):
    assert "any_valid" not in flagged["codeforces"][row]


def test_only_one_of_the_contests_has_one_answer_in_any_order(flagged):
    """Row 161: "print the lines in any order. We can show that the answer is unique"."""
    rows = [row for row, flags in enumerate(flagged["codecontests"]) if "any_order" in flags]
    assert rows == [161]
