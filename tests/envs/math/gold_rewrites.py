"""Other ways to write a MATH-500 gold answer, right ones and near misses.

Values are worked out here with fractions and sympy, apart from the grader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

WRAPPERS = {
    "boxed": "We find \\boxed{@}.",
    "fbox": "Hence \\fbox{@}",
    "answer tag": "Some thinking.\n<answer>@</answer>",
    "hashes": "Some steps, 3 of them.\n#### @",
    "prose": "After 4 steps we are done. The answer is @.",
    "label": "Work.\n\nAnswer: @",
    "final label": "Work.\n\n**Final Answer:** $@$",
    "dollars": "So we get $@$",
    "display": "We conclude\n\\[ @ \\]",
    "boxed display": "Thus\n\\[\\boxed{@}\\]",
    "bare": "@",
}
INTEGER = re.compile(r"-?\d+\Z")
GROUPED = re.compile(r"-?\d{1,3}(?:,(?:\\!)?\s*\d{3})+\Z")
FRACTION = re.compile(r"(-?)\\frac\s*(?:\{(\d+)\}|(\d))\s*(?:\{(\d+)\}|(\d))\Z")
DECIMAL = re.compile(r"-?\d+\.\d+\Z")
PAIR = re.compile(
    r"(?:\\left)?([(\[])\s*([^,()\[\]{}]+?)\s*,\s*([^,()\[\]{}]+?)\s*(?:\\right)?([)\]])\Z"
)
FULL_WIDTH = str.maketrans("0123456789-./", "０１２３４５６７８９－．／")


def value_of(gold: str) -> Fraction | None:
    """The value of a gold that is an integer, a decimal or a fraction of integers."""
    if INTEGER.match(gold) or DECIMAL.match(gold):
        return Fraction(gold)
    if GROUPED.match(gold):
        return Fraction(re.sub(r"[^\d-]", "", gold))
    match = FRACTION.match(gold)
    if match is None:
        return None
    sign, a, b, c, d = match.groups()
    return Fraction(int(sign + (a or b)), int(c or d))


def is_expression(gold: str) -> bool:
    """Whether a gold that is no plain number is a single expression."""
    structured = ("(", "[", "\\left", "\\{", "\\begin", "x \\in")
    parts = ("=", "\\text", "\\pm", ",")
    return value_of(gold) is None and not (
        gold.startswith(structured) or any(part in gold for part in parts)
    )


def boxed(text: str) -> str:
    return f"So the result is \\boxed{{{text}}}."


def plain_decimal(value: Fraction, places: int) -> str:
    scaled = round(value * 10**places)
    return str(Decimal(scaled).scaleb(-places))


def right(gold: str) -> Iterator[tuple[str, str]]:
    """(class, reply) for replies that are right."""
    for name, wrapper in WRAPPERS.items():
        yield f"wrapper: {name}", wrapper.replace("@", gold)
    yield "spacing", boxed(f"  {gold}\\, ")
    yield "spacing", boxed(re.sub(r"(?<=[+=,])(?!\\!)", "\\ ", gold))
    yield "full stop", boxed(gold + ".")
    yield "dollars in box", boxed(f"${gold}$")
    if "\\frac" in gold:
        yield "fraction style", boxed(gold.replace("\\frac", "\\dfrac"))
        yield "fraction style", boxed(gold.replace("\\frac", "\\tfrac"))
    value = value_of(gold)
    if value is not None:
        yield from right_numbers(value)
    if gold.endswith("^\\circ"):
        angle = gold.removesuffix("^\\circ")
        for style in (angle, f"{angle}°", f"{angle} degrees", f"{angle}\\text{{ degrees}}",
                      f"{angle}^{{\\circ}}"):  # fmt: skip
            yield "degree", boxed(style)
    if re.match(r"\\text\{[A-Za-z]+\}\Z", gold):
        word = gold[6:-1]
        for style in (
            word,
            word.upper(),
            word.capitalize(),
            f"\\textbf{{{word}}}",
            f"\\mbox{{{word}}}",
        ):
            yield "text", boxed(style)
        yield "text", f"So the answer is {word}."
    if re.match(r"\\text\{\([A-Z]\)\}\Z", gold):
        letter = gold[7]
        for style in (letter, f"({letter})", f"\\text{{{letter}}}", f"\\mathrm{{({letter})}}"):
            yield "text", boxed(style)
        yield "text", f"The answer is ({letter})."
    items = gold.split(",") if re.match(r"-?\d+(?:,\s*-?\d+)+\Z", gold) else []
    if items and not GROUPED.match(gold):
        backwards = [item.strip() for item in reversed(items)]
        yield "unordered list", boxed(", ".join(backwards))
        yield "unordered list", boxed(",".join(backwards))
        yield "unordered list", boxed(", ".join(backwards[:-1]) + " \\text{ and } " + backwards[-1])
        yield "unordered list", "The answer is " + " and ".join(backwards) + "."
    if "=" not in gold and "\\in" not in gold and "\\text" not in gold:
        yield "x =", boxed(f"x = {gold}")
        yield "x =", boxed(f"N={gold}")


def right_numbers(value: Fraction) -> Iterator[tuple[str, str]]:
    whole = value.denominator == 1
    sign = "-" if value < 0 else ""
    over, under = abs(value.numerator), value.denominator
    if whole:
        yield "decimal", boxed(f"{value}.0")
        yield "decimal", boxed(f"{value}.")
        yield "leading zero", boxed(f"{sign}0{over}")
        yield "leading zero", boxed(f"{sign}{over:03d}")
        yield "fraction", boxed(f"\\frac{{{2 * value}}}{{2}}")
        yield "full width", boxed(str(value).translate(FULL_WIDTH))
        yield "text", boxed(f"\\text{{{value}}}")
        yield "$", boxed(f"\\${value}")
        yield "$", f"The answer is ${value}."
        yield "degree", boxed(f"{value}^\\circ")
        for unit in ("\\text{ cm}", " cm", "\\,\\mathrm{cm}", "\\text{ units}", "\\mbox{ inches}^2",
                     " apples", "\\text{ dollars}", " cm^2", "\\text{ ways}"):  # fmt: skip
            yield "unit", boxed(f"{value}{unit}")
        yield "unit", f"The answer is {value} apples."
        if over >= 1000:
            yield "thousands", boxed(f"{int(value):,}")
            yield "thousands", boxed(f"{int(value):,}".replace(",", ",\\!"))
            yield "thousands", boxed(f"{int(value):,}".replace(",", "{,}"))
            yield "thousands", boxed(f"{int(value):,}".replace(",", "\\,"))
            yield "thousands", boxed(f"{int(value):,}".replace(",", " "))
            yield "thousands", f"The answer is {int(value):,}."
        else:
            yield "scientific", boxed(f"{value}e0")
    else:
        yield "fraction", boxed(f"{value}")
        yield "fraction", boxed(f"{sign}\\dfrac{{{over}}}{{{under}}}")
        yield "fraction", boxed(f"{sign}{{{over}}}/{{{under}}}")
        yield "fraction", boxed(f"\\frac{{{3 * value.numerator}}}{{{3 * under}}}")
        yield "fraction", f"The answer is {value}."
        yield "fraction", boxed(f"{value.numerator} / {under}")
        yield "full width", boxed(str(value).translate(FULL_WIDTH))
        yield "6-place decimal", boxed(plain_decimal(value, 6))
        yield "6-place decimal", boxed(plain_decimal(value, 9))
        yield "6-place decimal", f"The answer is {plain_decimal(value, 6)}."
        if 10**9 % under == 0:
            exact = f"{Decimal(value.numerator) / Decimal(under):f}"
            yield "decimal", boxed(exact)
            yield "decimal", boxed(exact + "0")
            yield "decimal", f"The answer is {exact}."
        if over > under:
            part = f"{over % under}/{under}"
            yield "mixed", boxed(f"{sign}{over // under} {part}")
            yield "mixed", boxed(f"{sign}{over // under}\\frac{{{over % under}}}{{{under}}}")
            yield "mixed", boxed(f"{sign}{over // under}\\ \\frac{{{over % under}}}{{{under}}}")
            yield "mixed", f"The answer is {sign}{over // under} {part}."
    if value and 10**9 % under == 0:
        mantissa, exponent = f"{Decimal(value.numerator) / Decimal(under):e}".split("e")
        power = int(exponent)
        yield "scientific", boxed(f"{mantissa}e{power}")
        yield "scientific", boxed(f"{mantissa}E{power:+d}")
        yield "scientific", boxed(f"{mantissa} \\times 10^{{{power}}}")
        yield "scientific", boxed(f"{mantissa} \\cdot 10^{{{power}}}")


def near_misses(gold: str) -> Iterator[tuple[str, str]]:
    """(class, reply) for replies that are wrong."""
    value = value_of(gold)
    if value is not None and value:
        yield "percent", boxed(f"{gold}\\%")
        yield "percent", f"The answer is {gold}%."
        yield "sign", boxed(f"-{gold}" if value > 0 else gold.lstrip("-"))
        yield "sign", f"The answer is {-value}."
        yield "sign", boxed(f"{-float(value):.6f}")
        if value.denominator == 1:
            for other in (value + 1, value - 1, 10 * value, value + Fraction(1, 10)):
                yield "neighbour", boxed(str(other))
            yield "neighbour", boxed(f"{value}.01")
            yield "neighbour", boxed(f"{value} \\frac{{1}}{{2}}")
            for base in (8, 7, 16):
                yield "base suffix", boxed(f"{value}_{base}")
                yield "base suffix", boxed(f"{value}_{{{base}}}")
            for hedge in (" or ", ", ", " \\text{ or } ", " and ", "; "):
                yield "hedging", boxed(f"{value}{hedge}{value + 1}")
                yield "hedging", boxed(f"{value - 1}{hedge}{value}")
            yield "hedging", f"The answer is {value} or {value + 1}."
            yield "hedging", f"The answer is either {value + 1} or {value}."
            yield "hedging", f"\\boxed{{{value}}} or \\boxed{{{value + 1}}}"
            yield "hedging", f"$\\boxed{{{value}}}$, $\\boxed{{{value + 1}}}$"
            yield "hedging", f"\\boxed{{{value}}}\n\nNo, wait: \\boxed{{{value + 1}}}"
        else:
            yield "neighbour", boxed(str(value + Fraction(1, value.denominator)))
            yield "neighbour", boxed(str(1 / value))
            yield "neighbour", boxed(str(value.numerator))
            if 10**6 % value.denominator:
                yield "neighbour", boxed(f"{float(value):.3f}")
                yield "neighbour", boxed(f"{float(value) + 2e-6:.6f}")
    elif is_expression(gold):
        yield "sign", boxed(f"-({gold})" if "_" not in gold else f"-{gold}")
        yield "neighbour", boxed(f"{gold} + 1")
        yield "neighbour", boxed(f"2({gold})")
        yield "hedging", boxed(f"{gold} \\text{{ or }} 17")
    pair = PAIR.match(gold)
    if pair is not None:
        opening, first, second, closing = pair.groups()
        for other in ("()", "[]", "(]", "[)"):
            if other != opening + closing:
                yield "other brackets", boxed(f"{other[0]}{first},{second}{other[1]}")
        yield "set for pair", boxed(f"\\{{{first},{second}\\}}")
        yield "set for pair", boxed(f"\\left\\{{{first}, {second}\\right\\}}")
        yield "list for pair", boxed(f"{first}, {second}")
        if first != second:
            yield "order", boxed(f"{opening}{second},{first}{closing}")
    if re.match(r"\\text\{[A-Za-z]+\}\Z", gold):
        yield "hedging", boxed(f"{gold} or Nobody")
        yield "neighbour", boxed("\\text{somebody}")
    if re.match(r"\\text\{\([A-Z]\)\}\Z", gold):
        yield "hedging", boxed("C or D" if gold[7] != "A" else "A or B")
        yield "neighbour", boxed("\\text{(J)}")
