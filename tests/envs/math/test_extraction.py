"""Which text of a reply is the answer, and by which rule."""

from __future__ import annotations

import pytest

from flexmg.envs.math.extraction import Extraction, extract

FOUND = [
    ("\\boxed{5}", "5", "boxed"),
    ("First \\boxed{3}, then \\boxed{5}.", "5", "boxed"),
    ("\\boxed{\\frac{1}{2}}", "\\frac{1}{2}", "boxed"),
    ("\\boxed{\\{1, 2\\}}", "\\{1, 2\\}", "boxed"),
    ("Thus \\fbox{15}", "15", "boxed"),
    ("Thus \\framebox{15}", "15", "boxed"),
    ("so \\boxed 7", "7", "boxed"),
    ("\\boxed{12} and then \\boxed{13 is cut off", "12", "boxed"),
    ("\\boxed{3} and \\boxed{5}", "3, 5", "boxed"),
    ("$\\boxed{3}$, $\\boxed{5}$ and $\\boxed{7}$", "3, 5, 7", "boxed"),
    ("\\boxed{12} and \\boxed{12}", "12", "boxed"),
    ("\\boxed{20 cm} ++++++ \\boxed{6}", "6", "boxed"),
    ("\\boxed{3} is my final answer.", "3", "boxed"),
    ("\\boxed{3}\n\nThis answer is correct.", "3", "boxed"),
    ("Answer: \\boxed{8}", "8", "boxed"),
    ("work \\boxed{2}, final answer: 3", "3", "answer is"),
    ("The answer is 4. <answer>9</answer>", "9", "answer tag"),
    ("<answer>9", "9", "answer tag"),
    ("steps\n#### 1,234", "1,234", "####"),
    ("The answer is 84, in total, so that is what she earns.", "84", "answer is"),
    ("The answer is 5 1/3.", "5 1/3", "answer is"),
    ("The answer is 12 or 13.", "12 or 13", "answer is"),
    ("The answer is $3$, $5$ and $7$.", "3, 5 and 7", "answer is"),
    ("The answer is Evelyn.", "Evelyn", "answer is"),
    ("The answer is (3,4].", "(3,4]", "answer is"),
    ("The answer is (C).", "(C)", "answer is"),
    ("The final answer is: $x = 5$", "x = 5", "answer is"),
    ("## Final Answer\n\n3", "3", "answer is"),
    ("**Answer:** 3", "3", "answer is"),
    ("Answer: 12 was my guess.\nAnswer: 15", "15", "answer is"),
    ("It is **59** pens", "59", "bold"),
    ("The total is 84 pens, altogether.", "84", "final expression"),
    ("so the change is -7", "-7", "final expression"),
    ("She makes 9 * 2 = $18 every day.", "9 * 2 = $18", "final expression"),
    ("so we get $x^2+1$", "x^2+1", "final expression"),
    ("The correct option is B.", "B", "final expression"),
    ("\\frac{5}{8}", "\\frac{5}{8}", "final expression"),
    ("Evelyn", "Evelyn", "final expression"),
    ("1 2 3 70", "1 2 3 70", "final expression"),
    ("<think>\\boxed{5}</think>The answer is 3", "3", "answer is"),
    ("<think>maybe \\boxed{5}", "5", "boxed"),
    ("\\boxed{5}</think>  ", "5", "boxed"),
]


@pytest.mark.parametrize(("reply", "answer", "rule"), FOUND)
def test_the_answer_and_its_rule(reply: str, answer: str, rule: str) -> None:
    assert extract(reply) == Extraction(answer, rule)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   ",
        "\\boxed{}",
        "The reasoning was cut off before",
        "(lambda: 4)()",
        '__import__("os").getcwd()',
        "it is not 12",
    ],
)
def test_replies_without_an_answer(reply: str) -> None:
    assert extract(reply) is None


LONG = {
    "a box after a megabyte": ("x " * 500_000 + "\\boxed{4}", "4"),
    "70,000 open boxes": ("\\boxed{" * 70_000, None),
    "a box before 70,000 open ones": ("\\boxed{4}" + "\\boxed{" * 70_000, "4"),
    "nested boxes": ("\\boxed{" * 50_000 + "4" + "}" * 50_000, None),
    "a million braces": ("{" * 1_000_000, None),
    "closing braces": ("}" * 1_000_000 + "\\boxed{4}", "4"),
    "labels without end": ("the answer is " * 70_000, None),
    "a label and blanks": ("answer" + " " * 1_000_000 + "x", None),
    "labels and new lines": ("answer\n" * 150_000, None),
    "a box, then final answers": ("\\boxed{4} " + "final answer is " * 60_000, "4"),
    "dollars": ("$" * 1_000_000, None),
    "backslashes": ("\\" * 1_000_000, None),
    "tags": ("<answer>" * 120_000, None),
    "spaced boxes": (("\\boxed" + " " * 100) * 9_000, None),
    "numbers": ("1 " * 500_000, None),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", LONG)
def test_a_megabyte_is_searched_in_linear_time(name: str) -> None:
    # The limit is far above the linear time and far below any quadratic one.
    reply, answer = LONG[name]
    found = extract(reply)
    if answer is not None:
        assert found is not None
        assert found.answer == answer
