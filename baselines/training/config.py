"""The settings of a training run: one dataclass, written to ``config.yaml``."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from flexmg.errors import InvalidArgument

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
FILE = "config.yaml"


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides the outcome of a run, ``iterations`` aside.

    No schedule depends on ``iterations``: a longer run begins exactly like a shorter one.

    Args:
        env: id of the environment.
        env_args: keyword arguments of :func:`flexmg.make`, such as ``source``.
        held_out: the arguments that differ in evaluation. Problems that are evaluated on are
            never trained on, whatever the source: they are recognised by content.
        algorithm: name of a registered algorithm.
        algorithm_args: fields of its ``Config``; ``config.yaml`` holds them all.
        model: ``tiny``, ``smollm2``, a folder, a GGUF file, or a Hugging Face id.
        dtype: ``float32``, ``bfloat16`` or ``float16`` for the base model.
        device: ``auto``, ``cpu``, ``cuda`` ...
        threads: CPU threads of PyTorch, 0 for its own choice; None for one with ``tiny``,
            whose small matrices gain nothing from two and lose much beside a busy
            process, and for PyTorch's choice with any other model. Part of the settings because
            sums may round differently with another number.
        policies: the policy map: ``isolated`` (one policy per role), ``shared``,
            ``per-agent``, or a mapping from agent or role to policy.
        lora_rank: rank of the adapters.
        lora_alpha: their scale is ``lora_alpha / lora_rank``.
        iterations: how many in total.
        seed: of everything random.
        problems: problems per iteration.
        samples: episodes per problem.
        temperature: of sampling, in training and evaluation.
        games: the most episodes in flight at once.
        max_turns: cut an episode that has taken this many turns (it is then truncated, and
            bootstraps); None plays every episode to its end.
        max_prompt_tokens: a limit on prompts and critic inputs below the model's own.
        eval_problems: held-out problems, played before the first iteration and after the
            last; 0 for none.
        eval_samples: episodes per held-out problem.
        checkpoint_every: iterations from one checkpoint to the next.
        logged_episodes: transcripts kept of each iteration.
    """

    env: str
    env_args: dict[str, Any] = field(default_factory=dict)
    held_out: dict[str, Any] = field(default_factory=lambda: {"split": "test"})
    algorithm: str = "marft"
    algorithm_args: dict[str, Any] = field(default_factory=dict)
    model: str = "tiny"
    dtype: str = "float32"
    device: str = "auto"
    threads: int | None = None
    policies: str | dict[str, str] = "isolated"
    lora_rank: int = 8
    lora_alpha: int = 16
    iterations: int = 20
    seed: int = 0
    problems: int = 64
    samples: int = 4
    temperature: float = 1.0
    games: int = 256
    max_turns: int | None = None
    max_prompt_tokens: int | None = None
    eval_problems: int = 100
    eval_samples: int = 1
    checkpoint_every: int = 1
    logged_episodes: int = 8

    def __post_init__(self) -> None:
        for name in ("iterations", "problems", "samples", "eval_samples", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("seed", "eval_problems", "logged_episodes", "threads"):
            if (getattr(self, name) or 0) < 0:
                raise InvalidArgument(f"{name} must not be negative, not {getattr(self, name)}")


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
        whole = name == "policies"
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


def load(folder: Path) -> RunConfig:
    """Read ``config.yaml`` of a run folder.

    Raises:
        InvalidArgument: there is none, it is not YAML, or it does not fit.
    """
    path = folder / FILE
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InvalidArgument(f"{folder} is not a run folder: it has no {FILE}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path} is not YAML: {error}") from error
    if not isinstance(values, dict):
        raise InvalidArgument(f"{path} does not hold settings")
    return build(RunConfig, values, str(path))
