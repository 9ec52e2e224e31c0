"""Run test code whose candidate lives in another sandbox.

The program is the test code; the request is JSON with ``before`` (code of the problem's own, a
list), ``setup`` (code to run before the tests), ``names`` (what set-up and tests take from the
candidate's program), ``call`` (a function of the test code to be called with the candidate, or
empty) and ``nonce``. Every name is a proxy whose calls go over the channel (:mod:`.dialogue`).
The result is a line of dots, one per question, and a line of JSON: ``nonce``, ``verdict`` and
``detail``. The verdict is ``passed``, ``failed``, ``gone`` (the candidate's end broke off),
``objects`` (something that is no builtin value would have to be sent), ``idle`` (nothing was
asked) or ``unfit`` (the tests themselves cannot run here).
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import json
import os
from collections.abc import Container
from typing import Any

from .calls import LONGEST_FAILURE, failure
from .dialogue import CANDIDATE, both_ways
from .encoding import REFUSED, Refused, decode, encode, to_json

LONGEST_MESSAGE = 1 << 20  # bytes
FROM_CANDIDATE = "raised by the candidate's program"


class Broken(BaseException):
    """The dialogue cannot go on."""


class Gone(Broken):
    """The candidate's end of the channel broke off."""


class Objects(Broken):
    """A value cannot be sent."""


class Proxy:
    """Something of the candidate's program: a function, a class, an object that it made.

    It can be called, its attributes read and set, and its truth asked for; it equals nothing
    but itself.
    """

    def __init__(self, line: _Line, target: dict[str, Any], title: str) -> None:
        vars(self).update(_line=line, _target=target, _title=title)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call it over there; what the call does to its arguments is done to these here."""
        answer = self._line.ask(
            {
                "do": "call",
                "of": self._target,
                "args": [self._sent(one) for one in arguments],
                "kwargs": [[key, self._sent(one)] for key, one in keywords.items()],
            }
        )
        for argument, changed in zip(arguments, answer.get("args", ()), strict=False):
            if type(argument) in (list, dict, set):
                _become(argument, self._line.value(changed))
        return self._received(answer)

    def __getattr__(self, name: str) -> Any:
        """An attribute over there."""
        if name.startswith("__"):
            raise AttributeError(name)
        return self._received(self._line.ask({"do": "get", "of": self._target, "name": name}))

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute over there."""
        question = {"do": "set", "of": self._target, "name": name, "args": [self._sent(value)]}
        self._line.ask(question)

    def __bool__(self) -> bool:
        """Its truth over there; what is only known by name is true, as functions are."""
        if "name" in self._target:
            return True
        return self._received(self._line.ask({"do": "truth", "of": self._target})) is True

    def __repr__(self) -> str:
        return f"<{self._title}>"

    def _sent(self, value: Any) -> dict[str, Any]:
        if type(value) is Proxy:
            return dict(value._target)
        data = encode(value)
        if _holds_refused(data, {Refused.__name__}):
            # The candidate's own doing: it must not be what puts the tests into its process.
            raise self._line.breaks(Gone("it returned an object where the tests need a value"))
        if _holds_refused(data):
            raise self._line.breaks(Objects(self._title))
        return {"value": data}

    def _received(self, answer: dict[str, Any]) -> Any:
        match answer:
            case {"kept": int(number), "class": str(title)}:
                return Proxy(self._line, {"kept": number}, f"an object of class {title}"[:100])
        return self._line.value(answer.get("value"))


def _holds_refused(data: Any, classes: Container[str] | None = None) -> bool:
    """Whether encoded data hold an object that was refused, of certain classes or of any."""
    if isinstance(data, dict):
        if REFUSED in data:
            return classes is None or data[REFUSED] in classes
        return any(_holds_refused(part, classes) for part in data.values())
    return isinstance(data, list) and any(_holds_refused(part, classes) for part in data)


def _become(argument: Any, changed: Any) -> None:
    """Give a mutable argument the content that it has over there."""
    if type(changed) is type(argument) and changed != argument:
        argument.clear()
        (argument.extend if type(argument) is list else argument.update)(changed)


# What ends a loop without a word: `all(map(...))` of the tests would be over, and true.
SILENT = (StopIteration, StopAsyncIteration)


def _exception(answer: dict[str, Any]) -> Exception:
    found = getattr(builtins, str(answer["error"]), None)
    if not (isinstance(found, type) and issubclass(found, Exception)) or found in SILENT:
        found = RuntimeError
    try:
        raised = found(str(answer.get("text")))
    except TypeError:
        raised = RuntimeError(str(answer.get("text")))
    raised.add_note(FROM_CANDIDATE)
    return raised


def main(program: bytes, request: bytes, result: int, channel: int | None) -> None:
    """See the module."""
    asked = json.loads(request)
    line = _Line(channel, result)
    verdict, detail = _run(program, asked, line)
    if verdict == "passed" and not line.questions:
        verdict = "idle"
    if line.broken is not None:
        # Whatever the tests made of it: they may well catch everything.
        verdict, detail = _named(line.broken)
    said = {"nonce": asked["nonce"], "verdict": verdict, "detail": detail[:LONGEST_FAILURE]}
    os.write(result, b"\n" + to_json(said).encode())


class _Line:
    """The connection to the candidate's program."""

    def __init__(self, channel: int | None, result: int) -> None:
        self._reading, self._writing = both_ways(channel)
        self._result = result
        self.questions = 0
        self.broken: Broken | None = None

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Put a question and wait for its answer; an exception over there is raised here."""
        if self.broken is not None:
            raise self.broken
        self.questions += 1
        try:
            self._writing.write(to_json(question).encode() + b"\n")
            self._writing.flush()
        except OSError as error:
            raise self.breaks(Gone(str(error))) from None
        answer = self.hear()
        os.write(self._result, b".")
        if "error" in answer:
            raise _exception(answer)
        return answer

    def hear(self) -> dict[str, Any]:
        """The next answer."""
        line = self._reading.readline(LONGEST_MESSAGE)
        try:
            data = json.loads(line) if line.endswith(b"\n") else None
        except (ValueError, RecursionError) as error:
            raise self.breaks(Gone(f"a reply cannot be read: {error}")) from None
        if not isinstance(data, dict):
            too_long = len(line) == LONGEST_MESSAGE
            raise self.breaks(Gone("a reply is too long" if too_long else "no reply"))
        return data

    def value(self, data: Any) -> Any:
        """An encoded value of an answer."""
        try:
            return decode(data)
        except (ValueError, RecursionError) as error:
            raise self.breaks(Gone(f"a reply cannot be read: {error}")) from None

    def breaks(self, why: Broken) -> Broken:
        """Nothing more goes over this line."""
        self.broken = self.broken or why
        return why


def _run(program: bytes, asked: dict[str, Any], line: _Line) -> tuple[str, str]:
    namespace: dict[str, Any] = {"__name__": "tests"}
    try:
        for code in asked["before"]:
            exec(compile(code, "<problem>", "exec", dont_inherit=True), namespace)
    except Exception as error:
        return "unfit", failure(error)
    for name in (*asked["names"], CANDIDATE):
        namespace[name] = Proxy(line, {"name": name}, name)
    try:
        line.hear()
        for code in (asked["setup"], program):
            exec(compile(code, "<tests>", "exec", dont_inherit=True), namespace)
        if asked["call"]:
            namespace[asked["call"]](namespace[CANDIDATE])
    except Broken as error:
        return _named(error)
    except MemoryError:
        raise
    except BaseException as error:
        if FROM_CANDIDATE in getattr(error, "__notes__", ()):
            return "failed", f"it raises {error}"
        if isinstance(error, ImportError) and (missing := _missing_modules(program)):
            return "unfit", f"there is no module {missing[0]!r} here"
        # A message of the tests' own may say what they expect.
        asserted = isinstance(error, AssertionError)
        return "failed", "" if asserted else f"it ends in {type(error).__name__}"
    return "passed", ""


def _named(error: Broken) -> tuple[str, str]:
    return ("gone" if isinstance(error, Gone) else "objects"), str(error)


def _missing_modules(tests: bytes) -> list[str]:
    """The modules that test code imports and that are not to be found."""
    found: list[str] = []
    for node in ast.walk(ast.parse(tests)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
    tops = [name.partition(".")[0] for name in found]
    return [name for name in tops if name and importlib.util.find_spec(name) is None]
