"""Finding the program in a reply."""

import ast
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmg.envs.code import extract
from flexmg.envs.code.extraction import is_valid
from flexmg.errors import InvalidArgument

PROGRAM = "def f(x):\n    return x + 1\n"
DRAFT = "def f(x):\n    return x\n"


def block(program, info="python", marks="```"):
    return f"{marks}{info}\n{program}{marks}\n"


def program_in(reply):
    found = extract(reply)
    return None if found is None else found.program


# What is said around one program must not change what is found.
AROUND_ONE = {
    "alone": block(PROGRAM),
    "before and after": f"I add one.\n\n{block(PROGRAM)}\nThat is all.",
    "short language": block(PROGRAM, "py"),
    "capitals": block(PROGRAM, "Python3"),
    "a space before the language": block(PROGRAM, " python "),
    "attributes": block(PROGRAM, '{.python title="f.py"}'),
    "no language": block(PROGRAM, ""),
    "tildes": block(PROGRAM, marks="~~~"),
    "four marks": block(PROGRAM, marks="````"),
    "Windows lines": block(PROGRAM).replace("\n", "\r\n"),
    "no last newline": block(PROGRAM).rstrip("\n"),
    "byte order mark": "\ufeff" + block(PROGRAM),
    "a summary in another language": block(PROGRAM) + block("It adds one.\n", "markdown"),
    "how to run it": block(PROGRAM) + block("python f.py\n", "bash"),
    "its output": block(PROGRAM) + "Output:\n" + block("42\n", ""),
    "an input that looks like Python": block(PROGRAM) + "Input:\n" + block("x = 3\n", ""),
    "an example": block(PROGRAM) + "Use it:\n" + block("print(f(1))\n"),
    "an assertion": block(PROGRAM) + "Check:\n" + block("assert f(1) == 2\n"),
    "a session": block(PROGRAM) + block(">>> f(1)\n2\n", "pycon"),
    "broken code after it": block(PROGRAM) + "In short:\n" + block("return x + 1 ...\n"),
    "a draft before it": block(DRAFT) + "Wrong, mended:\n" + block(PROGRAM),
    "an unfinished copy after it": block(PROGRAM) + "Again:\n```python\ndef f(x",
    "thoughts": f"<think>Perhaps {block(DRAFT)}? No.</think>\n{block(PROGRAM)}",
    "thoughts that only end": f"Perhaps\n{block(DRAFT)}</think>{block(PROGRAM)}",
    "thoughts that never end": f"<think>Perhaps\n{block(PROGRAM)}",
    "nothing after the thoughts": f"<think>{PROGRAM}\n{block(PROGRAM)}</think>\n",
    "a list item": "1. Write:\n   ```python\n   def f(x):\n       return x + 1\n   ```\n2. Done.",
    "a fence never closed before the next": "```python\ndef f(\n\nNo:\n" + block(PROGRAM),
    "fences in the middle of lines": f"Here: ```python\n{PROGRAM.rstrip()}```",
    "no fence": PROGRAM,
    "no opening fence": PROGRAM + "```\n",
    "no opening fence, words after": PROGRAM + "```\nThis adds one.\n",
    "no closing fence": "```python\n" + PROGRAM,
    "no closing fence, no language": "```\n" + PROGRAM,
}


@pytest.mark.parametrize("reply", AROUND_ONE.values(), ids=AROUND_ONE.keys())
def test_the_program_is_found(reply):
    assert program_in(reply) == PROGRAM


NONE = {
    "nothing": "",
    "white space": " \n\t\n",
    "a sentence": "I could not solve it.",
    "one word": "Sorry",
    "a labelled number": "Answer: 42",
    "a choice": "Best: 2",
    "words that parse": "not sure",
    "an empty block": "```python\n```\n",
    "an output only": "The output is\n```\n42\n```\n",
    "another language": block("int main() { return 0; }\n", "cpp"),
    "a draft in thoughts": f"<think>{block(DRAFT)}</think>\nI give up.",
    "long prose": "word " * 100_000,
}


@pytest.mark.parametrize("reply", NONE.values(), ids=NONE.keys())
def test_there_is_no_program(reply):
    assert extract(reply) is None


# Marks in the texts of a program do not end it.
IN_TEXTS = {
    "a fence": 'DOC = """\n```\nx = 1\n```\n"""\nprint(DOC)\n',
    "a fence with a language": 'DOC = """\n```python\nx = 1\n```\n"""\nprint(DOC)\n',
    "an indented fence": 'def f():\n    return """\n    ```\n    """\n',
    "a thought's end": "print('<think></think>'.replace(\"</think>\", ''))\n",
    "marks within a line": "print('```python')\n",
}


@pytest.mark.parametrize("program", IN_TEXTS.values(), ids=IN_TEXTS.keys())
def test_marks_in_texts(program):
    assert program_in(block(program)) == program


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        (block(PROGRAM), "block"),
        ("```python\n" + PROGRAM, "open block"),
        (PROGRAM + "```", "stray fence"),
        ("So ```python\nprint(1)```", "inline fence"),
        (PROGRAM, "bare"),
    ],
)
def test_the_rule_is_named(reply, rule):
    assert extract(reply).rule == rule


def test_a_last_part_that_defines_something_is_no_example():
    main = "def g(x):\n    return f(f(x))\n"
    assert program_in(block(PROGRAM) + block(main)) == main


def test_a_script_that_shares_no_name_is_no_example():
    script = "n = int(input())\nprint(n + 1)\n"
    assert program_in(block("def unused():\n    pass\n") + block(script)) == script


def test_a_broken_program_is_found_where_there_is_no_other():
    broken = "def f(x)\n    return x\n"
    assert program_in("Here:\n" + block(broken)) == broken


def test_a_truncated_program_is_found():
    assert program_in("```python\ndef f(x):\n    return (x\n") == "def f(x):\n    return (x\n"


def test_a_block_too_long_to_be_read_counts():
    program = "x = 1\n" * 100_000
    assert program_in(block(program)) == program


def test_programs_with_odd_escapes_raise_no_warning():
    code = "import sys; from flexmg.envs.code import extract; print(extract(sys.argv[1]).rule)"
    reply = block("print('\\d')\n")
    run = subprocess.run([sys.executable, "-W", "error", "-c", code, reply], capture_output=True)
    assert (run.stdout, run.stderr) == (b"block\n", b"")


def test_a_reply_must_be_a_text():
    with pytest.raises(InvalidArgument, match="reply must be a text"):
        extract(None)


@pytest.mark.parametrize(
    "text", ["a\0b", "\ud800", "(" * 10_000, "-" * 50_000 + "1", "1+" * 50_000 + "1"]
)
def test_no_text_is_too_odd_to_be_looked_at(text):
    assert isinstance(is_valid(text), bool)
    extract(block(text + "\n"))


SCRIPTS = st.lists(
    st.sampled_from(["x = 1", "print('```')", "def f():\n    return 2", "import math", "# why"]),
    min_size=1,
    max_size=6,
).map(lambda lines: "\n".join([*lines, "print(f)"]) + "\n")
WORDS = st.text(st.characters(exclude_characters="`~<\r", exclude_categories=["Cs"]), max_size=80)


@given(SCRIPTS, WORDS, WORDS)
def test_words_around_a_block_change_nothing(program, before, after):
    assert program_in(f"{before}\n{block(program)}{after}") == program


@given(st.text(alphabet="`~\n python=x1()\"'#<>/think", max_size=200))
def test_any_reply_gives_a_text_or_none(reply):
    found = extract(reply)
    assert found is None or found.program.strip()


LONG = {
    "fences": "```\n" * 250_000,
    "marks": "`" * 1_000_000,
    "blocks": block("x = 1\n") * 50_000,
    "broken blocks": block("x = = 1\n") * 40_000,
    "openings": "```python\n" * 100_000,
    "spaces": " " * 1_000_000 + "x",
    "indented spaces": (" " * 1000 + "``\n") * 1000,
    "spaces after words": "x" + " " * 1_000_000 + "y",
    "inline": "x ```python y``` " * 50_000,
    "thoughts": "</think>" * 120_000,
    "quoted thoughts": '"</think>' * 100_000,
}


@pytest.mark.timeout(30)  # a quadratic rule takes hours
@pytest.mark.parametrize("reply", LONG.values(), ids=LONG.keys())
def test_a_megabyte_of_anything_is_read(reply):
    found = extract(reply)
    assert found is None or len(found.program) <= len(reply)


def test_a_found_block_parses():
    assert isinstance(ast.parse(program_in(AROUND_ONE["a list item"])), ast.Module)
