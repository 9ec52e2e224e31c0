"""Standard output against the expected one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmg.envs.code.output import difference


def right(expected, written, **flags):
    output = written if isinstance(written, bytes) else written.encode()
    return not difference(expected, output, **flags)


RIGHT = {
    "the same": ("1 2\n3\n", "1 2\n3\n"),
    "nothing": ("", ""),
    "no last newline": ("1\n", "1"),
    "trailing blanks": ("1 2\n", "1 2  \n\n"),
    "Windows lines": ("1\n2\n", "1\r\n2\r\n"),
    "other line breaks": ("1\n2\n", "1 2\n"),
    "a decimal's last digit": ("0.333333333333\n", "0.3333333"),
    "a decimal as a whole number": ("2.0", "2"),
    "a decimal with an exponent": ("1e-3", "0.001"),
    "a decimal of large size": ("123456789012.5", "123456789012.6"),
    "a negative zero": ("0", "-0.0"),
    "a decimal's sign of zero": ("0.0", "-0"),
    "accents": ("é\n", "é\n"),
}


@pytest.mark.parametrize(("expected", "written"), RIGHT.values(), ids=RIGHT.keys())
def test_right(expected, written):
    assert right(expected, written)


WRONG = {
    "nothing": ("1", ""),
    "something": ("", "1"),
    "too few": ("1 2 3", "1 2"),
    "too many": ("1 2", "1 2 3"),
    "joined": ("1 2", "12"),
    "part of it": ("12", "1"),
    "another order": ("1\n2", "2\n1"),
    "another case": ("YES", "yes"),
    "another digit": ("0.333333333333", "0.3334"),
    "a whole number as a decimal": ("5", "5.0"),
    "a large whole number": ("1000000000000000001", "1000000000000000000"),
    "leading zeros": ("7", "007"),
    "a plus": ("7", "+7"),
    "not a number": ("3.5", "nan"),
    "infinity": ("3.5", "inf"),
    "infinity for infinity's size": ("1e400", "1e500"),
    "underscores": ("42.5", "4_2.5"),
    "other digits": ("42.5", "٤٢.٥"),
    "hexadecimal": ("1.0", "0x1p0"),
    "a zero that is none": ("0", "1e-400"),
    "a decimal for a word": ("one", "1.0"),
    "a sign": ("1.5", "-1.5"),
    "a text in UTF-16": ("1", "1".encode("utf-16")),
    "invalid UTF-8": ("é", b"\xe9"),
    "a NUL": ("1", b"1\0"),
}


@pytest.mark.parametrize(("expected", "written"), WRONG.values(), ids=WRONG.keys())
def test_wrong(expected, written):
    assert not right(expected, written)


@pytest.mark.parametrize(
    ("expected", "written", "is_right"),
    [
        ("1\n2\n3", "3\n1\n2", True),
        ("1\n2\n2", "2\n1\n1", False),
        ("1 2\n3", "3\n2 1", False),  # lines move, tokens do not
        ("1\n2", "2\n1\n1", False),
        ("a\nb", "b\nc", False),
        ("9.9999999\n10.5", "10.5\n10.0", True),
        ("0.5 b\n0.25 a", "0.2500001 a\n0.5 b", True),
        ("0.5\n0.25", "0.25\n0.6", False),
        ("", "", True),
    ],
)
def test_lines_in_any_order(expected, written, is_right):
    assert right(expected, written, any_order=True) is is_right


def test_any_case():
    assert right("YES\nNo", "yes\nNO", any_case=True)
    assert not right("YES", "yeah", any_case=True)


def test_the_tolerance_is_absolute_below_one_and_relative_above():
    assert right("0.001", "0.0010009") and not right("0.001", "0.001002")
    assert right("1000.5", "1000.5009") and not right("1000.5", "1000.502")


def test_the_tolerance_can_be_set():
    assert right("3.14", "3.1", tolerance=0.1) and not right("3.14", "3.1", tolerance=1e-3)


def test_what_is_wrong_does_not_tell_what_is_right():
    told = difference("secret1 secret2", b"secret1 guess")
    assert "token 2" in told and "secret" not in told


def test_the_numbers_of_tokens_are_told():
    assert difference("1 2 3", b"1") == "1 tokens instead of 3"


@pytest.mark.timeout(30)  # as a number it takes minutes
@pytest.mark.parametrize(
    "digits", ["9" * 1_000_000, "1." + "9" * 1_000_000, "1e" + "9" * 1_000_000]
)
def test_a_token_of_a_megabyte_is_compared_as_a_text(digits):
    assert right(digits, digits)
    assert not right(digits, digits[:-1] + "8")
    assert not right("0.5", digits) and not right("0", digits)


@pytest.mark.timeout(30)
def test_a_megabyte_of_tokens_in_any_order():
    lines = [f"{number} x" for number in range(100_000)]
    assert right("\n".join(lines), "\n".join(reversed(lines)), any_order=True)


TOKENS = st.lists(st.integers() | st.floats(allow_nan=False) | st.text("abcXYZ", min_size=1))


@given(TOKENS, st.randoms(use_true_random=False))
def test_white_space_never_matters(tokens, random):
    texts = list(map(str, tokens))
    spaced = "".join(text + random.choice([" ", "\n", "  ", "\t\n"]) for text in texts)
    assert right(" ".join(texts), spaced)


@given(st.integers(), st.integers())
def test_whole_numbers_are_equal_only_to_themselves(one, other):
    assert right(str(one), str(other)) is (one == other)


@given(st.lists(st.integers(-5, 5)), st.lists(st.integers(-5, 5)))
def test_any_order_is_the_same_multiset(expected, written):
    texts = ("\n".join(map(str, numbers)) for numbers in (expected, written))
    assert right(*texts, any_order=True) is (sorted(expected) == sorted(written))
