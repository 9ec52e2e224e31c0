"""Words and commands of mathematical notation, by the part that they play."""

from __future__ import annotations

INVERSES = {name: "arc" + name for name in ("sin", "cos", "tan", "cot", "sec", "csc")}

FUNCTIONS = {
    "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "ln", "log", "lg",
    "exp", "sqrt", "abs", "floor", "ceil", "factorial", "binomial", "min", "max", "gcd", "lcm",
    "det", "sgn", "sign", "cbrt", *INVERSES.values(),
}  # fmt: skip

SPELLINGS = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "tg": "tan", "ctg": "cot",
    "log10": "lg", "ceiling": "ceil", "sign": "sgn", "binomial": "binom", "cosec": "csc",
}  # fmt: skip

FRACTIONS = {"\\frac", "\\dfrac", "\\tfrac", "\\cfrac"}

TIMES = {"*", "\\cdot", "\\times", "\\ast", "\\cdotp", "\\bullet"}

OVER = {"/", "\\div", "\\slash"}

DECORATIONS = {
    "\\vec", "\\hat", "\\bar", "\\dot", "\\ddot", "\\tilde", "\\overline",
    "\\overrightarrow", "\\widehat", "\\widetilde", "\\mathbb", "\\mathfrak", "\\mathscr",
    "\\overset", "\\overparen", "\\overarc",
}  # fmt: skip

# Commands whose meaning is more than a name: left to math-verify.
BEYOND = {
    "\\int", "\\iint", "\\oint", "\\sum", "\\prod", "\\lim", "\\begin", "\\end", "\\pmod", "\\bmod",
    "\\mod", "\\forall", "\\exists", "\\right", "\\left", "\\color", "\\stackrel", "\\substack",
    "\\boxed", "\\fbox", "\\ldots", "\\dots", "\\cdots", "\\rightarrow", "\\implies", "\\mid",
    "\\&", "\\#", "\\\\", "\\|",
}  # fmt: skip

RENAMED = {
    "\\varnothing": "\\emptyset", "\\varepsilon": "\\epsilon", "\\varphi": "\\phi",
    "\\vartheta": "\\theta", "\\imath": "i", "\\infty": "oo", "\\pi": "pi",
}  # fmt: skip

FENCES = {"\\lfloor": ("\\rfloor", "floor"), "\\lceil": ("\\rceil", "ceil")}

BARS = {"|": "|", "\\vert": "\\vert", "\\lvert": "\\rvert", "\\mid": "\\mid"}

RELATIONS = {
    "=": "=", "==": "=", "\\equiv": "\\equiv", "<": "<", "\\lt": "<", ">": ">", "\\gt": ">",
    "<=": "<=", "\\le": "<=", "\\leq": "<=", "\\leqslant": "<=", "\\leqq": "<=",
    ">=": ">=", "\\ge": ">=", "\\geq": ">=", "\\geqslant": ">=", "\\geqq": ">=",
    "!=": "!=", "\\ne": "!=", "\\neq": "!=", "\\in": "in", "\\approx": "~", "\\simeq": "~",
    "\\sim": "\\sim", "\\cong": "\\cong", "\\to": "\\to", "\\mapsto": "\\to", "\\perp": "\\perp",
    "\\parallel": "\\parallel", "\\subset": "\\subset", "\\subseteq": "\\subseteq",
    "\\propto": "\\propto", "\\notin": "\\notin",
}  # fmt: skip

MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}

JOINS = {"\\cup": "cup", "\\cap": "cap", "\\setminus": "minus", "\\backslash": "minus"}

SEPARATORS = {",", ";", "\\text{and}", "\\land", "\\lor", "\\wedge", "\\vee"}

AND_OR = {"and", "or", "AND", "OR", "And", "Or"}

PLAIN_WORDS = {
    "in", "is", "the", "of", "to", "no", "yes", "No", "Yes", "not", "for", "all", "per", "a.m",
    "am", "pm", "odd", "any", "Sam", "Tom", "Ann", "Bob", "red", "yet", "as", "at", "an", "by",
}  # fmt: skip

IGNORED_BEFORE = {
    "about", "approximately", "approx", "exactly", "roughly", "only", "option", "choice",
    "answer", "is", "the", "a", "an", "total", "of", "either", "both", "choices", "value", "when",
}  # fmt: skip

DENIALS = {"not", "no", "wrong", "incorrect", "except", "never", "isn", "cannot"}

ENVIRONMENTS = {"pmatrix", "bmatrix", "matrix", "Bmatrix", "smallmatrix", "array", "psmallmatrix"}

CLOSING = {")", "]", "}", "\\}", "\\rbrace", "\\rangle", "&", "\\\\", "\\end"}
