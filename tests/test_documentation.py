"""The code blocks of README.md and docs/ do what they say.

The ``python`` blocks of a file run as one program, in order, in an empty folder; line
numbers of a failure are those of the document. ``$`` lines of a ``console`` block run when
the block is marked. Marks are HTML comments on the line before a block:

    <!-- skip: reason -->   do not run
    <!-- needs: train -->   run where these extras are installed
    <!-- run -->            run the commands of this console block
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>\w*)\s*$")
MARK = re.compile(r"^ *<!-- (?P<name>skip|needs|run)(?:: (?P<value>.+?))? -->\s*$")
SECONDS = 240


@dataclass(frozen=True)
class Block:
    """A fenced block of a document.

    Args:
        file: the document.
        line: number of its first line of code, from 1.
        language: what stands after the fence.
        code: its text.
        marks: the marks before it.
    """

    file: str
    line: int
    language: str
    code: str
    marks: dict[str, str]

    @property
    def obstacle(self) -> str:
        """Why it is not run; empty when it is."""
        if "skip" in self.marks:
            return self.marks["skip"]
        missing = [one for one in self.marks.get("needs", "").split() if not is_installed(one)]
        return f"needs the extras {', '.join(missing)}" if missing else ""


def is_installed(extra: str) -> bool:
    """Whether the packages that an extra asks for are there."""
    known = distribution("flexmg").metadata.get_all("Provides-Extra", [])
    assert extra in known, f"flexmg has no extra {extra!r}, only {known}"
    for text in distribution("flexmg").requires or []:
        requirement = Requirement(text)
        if requirement.marker and requirement.marker.evaluate({"extra": extra}):
            if not all(map(is_installed, requirement.extras & set(known))):
                return False
            try:
                distribution(requirement.name)
            except PackageNotFoundError:
                return False
    return True


def blocks(text: str, file: str = "text") -> list[Block]:
    """The fenced blocks of a Markdown text."""
    found: list[Block] = []
    marks: dict[str, str] = {}
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        if mark := MARK.match(line):
            marks[mark["name"]] = mark["value"] or ""
        elif fence := FENCE.match(line):
            code = []
            for _, inner in lines:
                if inner.strip() == fence["fence"]:
                    break
                code.append(inner.removeprefix(fence["indent"]))
            found.append(Block(file, number + 1, fence["language"], "\n".join(code), marks))
            marks = {}
        elif line.strip():
            marks = {}
    return found


def program(parts: list[Block]) -> str:
    """One program of several blocks, each at the line it has in the document."""
    lines: list[str] = []
    for block in parts:
        lines += [""] * (block.line - 1 - len(lines))
        lines += block.code.splitlines()
    return "\n".join(lines) + "\n"


def commands(block: Block) -> list[str]:
    """The commands of a console block, lines that end in a backslash joined."""
    joined = block.code.replace("\\\n", " ")
    return [line[2:] for line in joined.splitlines() if line.startswith("$ ")]


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [
    block
    for file in DOCUMENTS
    if file.exists()
    for block in blocks(file.read_text(encoding="utf-8"), file.relative_to(ROOT).as_posix())
]
PYTHON = [block for block in BLOCKS if block.language == "python"]
CONSOLE = [b for b in BLOCKS if b.language == "console" and "run" in b.marks]


def files(found: list[Block]) -> list[str]:
    return sorted({block.file for block in found if not block.obstacle})


def run(command: list[str], cwd: Path) -> None:
    binaries = Path(sys.executable).parent
    path = f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | {"PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("file", files(PYTHON))
def test_python_blocks_run(file: str, tmp_path: Path) -> None:
    script = tmp_path / Path(file).with_suffix(".py").name
    own = [block for block in PYTHON if block.file == file and not block.obstacle]
    script.write_text(program(own), encoding="utf-8")
    run([sys.executable, script.name], tmp_path)


@pytest.mark.parametrize("file", files(CONSOLE))
def test_console_blocks_run(file: str, tmp_path: Path) -> None:
    for block in CONSOLE:
        if block.file == file and not block.obstacle:
            for command in commands(block):
                run(shlex.split(command), tmp_path)


@pytest.mark.parametrize(
    "block",
    [b for b in [*PYTHON, *CONSOLE] if b.obstacle],
    ids=lambda block: f"{block.file}:{block.line}",
)
def test_blocks_left_out(block: Block) -> None:
    pytest.skip(f"{block.file}:{block.line}: {block.obstacle}")


SAMPLE = """# Title

```python
one = 1
```

Prose.

<!-- skip: needs a phone -->
```python
call()
```

1. In a list:

   ```python
   if one:
       two = 2
   ```

<!-- run -->

```console
$ flexmg envs \\
    --json
output
$ flexmg doctor
```
"""


def test_the_sample_has_four_blocks() -> None:
    languages = [block.language for block in blocks(SAMPLE)]
    assert languages == ["python", "python", "python", "console"]


def test_a_mark_belongs_to_the_next_block_only() -> None:
    assert [sorted(block.marks) for block in blocks(SAMPLE)] == [[], ["skip"], [], ["run"]]


def test_a_skipped_block_says_why() -> None:
    assert blocks(SAMPLE)[1].obstacle == "needs a phone"


def test_a_block_in_a_list_loses_its_indentation() -> None:
    assert blocks(SAMPLE)[2].code == "if one:\n    two = 2"


def test_a_program_keeps_the_documents_line_numbers() -> None:
    first, _, third, _ = blocks(SAMPLE)
    assert program([first, third]).splitlines().index("    two = 2") == SAMPLE.splitlines().index(
        "       two = 2"
    )


def test_commands_are_the_dollar_lines() -> None:
    assert [shlex.split(line) for line in commands(blocks(SAMPLE)[3])] == [
        ["flexmg", "envs", "--json"],
        ["flexmg", "doctor"],
    ]


def test_an_unknown_extra_is_refused() -> None:
    with pytest.raises(AssertionError, match="no extra 'trian'"):
        is_installed("trian")
