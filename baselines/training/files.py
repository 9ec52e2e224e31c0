"""Settings as files: typed on the way in, with suggestions for slips; commented on the way out."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from flexmg.baselines.training.config import RunConfig
from flexmg.errors import InvalidArgument

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
FILE = "config.yaml"
COMMENT_WIDTH = 88
REFERENCE = re.compile(r":\w+:`~?([^`]*)`")
ARGUMENT = re.compile(r"^    (\w+): ", re.MULTILINE)


def build(cls: type[T], values: Mapping[str, Any], what: str) -> T:
    """A config from untyped values (a YAML file, a command line).

    Args:
        cls: a dataclass.
        values: field -> value.
        what: names it in messages.

    Raises:
        InvalidArgument: an unknown field (the message names the closest), a missing one, or
            a value of the wrong type or out of range.
    """
    known = [f.name for f in dataclasses.fields(cls)]
    for name in values:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known)}"
            raise InvalidArgument(f"{what} has no setting {name!r}; {hint}")
    try:
        return TypeAdapter(cls).validate_python(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        reason = first["msg"].removeprefix("Value error, ")
        raise InvalidArgument(
            f"{what}: {f'{place}: ' if place else ''}{reason[:1].lower()}{reason[1:]}"
        ) from error


def merge(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` with some fields set; of fields that are mappings, some entries."""
    merged = dict(values)
    for name, value in given.items():
        present = merged.get(name)
        # A policy map is one setting: half of an old and half of a new one is neither.
        whole = name in ("policies", "models")
        if not whole and isinstance(present, Mapping) and isinstance(value, Mapping):
            merged[name] = {**present, **value}
        else:
            merged[name] = value
    return merged


def differences(one: RunConfig, other: RunConfig) -> list[str]:
    """The fields in which two configs differ; of fields that are mappings, the entries."""
    names = []
    for field_ in dataclasses.fields(RunConfig):
        mine, its = getattr(one, field_.name), getattr(other, field_.name)
        if mine == its:
            continue
        if isinstance(mine, dict) and isinstance(its, dict):
            keys = [key for key in {**mine, **its} if mine.get(key) != its.get(key)]
            names += [f"{field_.name}.{key}" for key in keys]
        else:
            names.append(field_.name)
    return names


def text(config: RunConfig) -> str:
    """What ``config.yaml`` holds."""
    return yaml.safe_dump(dataclasses.asdict(config), sort_keys=False, allow_unicode=True)


def commented(config: RunConfig, algorithm: type[DataclassInstance]) -> str:
    """The same settings, with what each means above it.

    Args:
        config: the settings; ``algorithm_args`` holds all fields of the algorithm's config.
        algorithm: the class of that config.
    """
    return "".join(_commented(dataclasses.asdict(config), RunConfig, {"algorithm_args": algorithm}))


def _commented(
    values: Mapping[str, Any], cls: type, nested: Mapping[str, type], indent: str = ""
) -> list[str]:
    meanings = descriptions(cls)
    lines = []
    for name, value in values.items():
        meaning = textwrap.wrap(meanings[name], COMMENT_WIDTH - len(indent))
        lines += [f"{indent}# {line}\n" for line in meaning]
        if name in nested:
            lines.append(f"{indent}{name}:\n")
            lines += _commented(value, nested[name], {}, indent + "  ")
        else:
            dumped = yaml.safe_dump({name: value}, sort_keys=False, allow_unicode=True)
            lines += [f"{indent}{line}\n" for line in dumped.splitlines()]
    return lines


def descriptions(cls: type) -> dict[str, str]:
    """What each field of a config class means, from the ``Args`` of its docstring and bases'."""
    found: dict[str, str] = {}
    for base in cls.__mro__:
        _, _, arguments = inspect.cleandoc(base.__doc__ or "").partition("\nArgs:\n")
        # The first part is what stands before the first argument: nothing.
        parts = ARGUMENT.split(arguments)[1:]
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            found.setdefault(name, " ".join(REFERENCE.sub(r"\1", text.replace("``", "")).split()))
    return found


def load(folder: Path) -> RunConfig:
    """Read ``config.yaml`` of a run folder.

    Raises:
        InvalidArgument: there is none, it is not YAML, or it does not fit.
    """
    path = folder / FILE
    if not path.is_file():
        raise InvalidArgument(f"{folder} is not a run folder: it has no {FILE}")
    return build(RunConfig, read(path), str(path))


def read(path: Path) -> dict[str, Any]:
    """The settings in a YAML file, as they stand there.

    Raises:
        InvalidArgument: it is not there, is not YAML, or holds no settings.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path} is not YAML: {error}") from error
    if not isinstance(values, dict):
        raise InvalidArgument(f"{path} does not hold settings")
    return values
