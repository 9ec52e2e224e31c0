"""Units of measure, currencies and number words that stand beside an answer."""

from __future__ import annotations

_SPELLINGS = {
    "millimeter": "mm millimeter millimeters millimetre millimetres",
    "centimeter": "cm centimeter centimeters centimetre centimetres",
    "meter": "meter meters metre metres",
    "kilometer": "km kilometer kilometers kilometre kilometres",
    "inch": "in inch inches",
    "foot": "ft foot feet",
    "yard": "yd yard yards",
    "mile": "mi mile miles",
    "milligram": "mg milligram milligrams",
    "gram": "gram grams",
    "kilogram": "kg kilogram kilograms",
    "ounce": "oz ounce ounces",
    "pound": "lb lbs pound pounds",
    "ton": "ton tons tonne tonnes",
    "milliliter": "ml mL milliliter milliliters millilitre millilitres",
    "liter": "liter liters litre litres",
    "gallon": "gal gallon gallons",
    "cup": "cup cups",
    "second": "sec secs second seconds",
    "minute": "min mins minute minutes",
    "hour": "hr hrs hour hours",
    "day": "day days",
    "week": "week weeks",
    "month": "month months",
    "year": "yr yrs year years",
    "degree": "degree degrees deg",
    "radian": "radian radians rad",
    "percent": "percent percentage pct",
    "dollar": "dollar dollars USD",
    "cent": "cent cents",
    "euro": "euro euros EUR",
    "rupee": "rupee rupees INR",
    "yen": "yen JPY",
    "acre": "acre acres",
    "hertz": "Hz hertz",
    "joule": "joule joules",
    "newton": "newton newtons",
    "watt": "watt watts",
    "kelvin": "kelvin kelvins",
    "am": "am AM",
    "pm": "pm PM",
    "mph": "mph",
    "kph": "kph",
    "bit": "bit bits",
    "byte": "byte bytes",
}

UNITS = {spelling: unit for unit, spellings in _SPELLINGS.items() for spelling in spellings.split()}
# Only inside \text or \mathrm: elsewhere these letters are variables.
UPRIGHT_UNITS = {"m": "meter", "g": "gram", "s": "second", "h": "hour", "L": "liter", "l": "liter"}
POWERS = {"square": "2", "squared": "2", "sq": "2", "cubic": "3", "cubed": "3", "cu": "3"}
CURRENCY_SIGNS = {
    "$": "dollar",
    "€": "euro",
    "£": "sterling",
    "¥": "yen",
    "₹": "rupee",
    "¢": "cent",
}

_SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
]
_TENS = ["thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred"]
NUMBER_WORDS = {word: value for value, word in enumerate(_SMALL)} | {
    word: 10 * value for value, word in enumerate(_TENS, start=3)
}


def unit_of(word: str) -> str | None:
    """The unit that a word of a text stands for, or None."""
    return UNITS.get(word) or UNITS.get(word.lower())
