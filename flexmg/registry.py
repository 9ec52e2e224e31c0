"""Ids and what they stand for: ``make``, ``register``, ``spec``, ``pprint_registry``.

Environments arrive by entry points of the group ``flexmg.envs``: each names a function
without arguments that calls :func:`register`. Ours come in the same way as a third
party's.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import entry_points
from typing import Any

import pettingzoo

from flexmg.errors import (
    InvalidArgument,
    MissingDependency,
    NameNotFound,
    RegistrationError,
    VersionNotFound,
)
from flexmg.game import FlexMarkovGame

ID = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]*?)(?:-v(?P<version>0|[1-9][0-9]*))?")
ENTRY_POINTS = "flexmg.envs"


@dataclass(frozen=True)
class EnvSpec:
    """What an id stands for.

    Args:
        id: ``name-vN``. Any change that may change results makes a new version.
        entry_point: builds the game from keyword arguments: a callable, or
            ``"module:attribute"``, imported when first used.
        kwargs: given to the entry point; those of :func:`make` override them.
        description: one line for listings.
        requires: ``module: extra`` pairs that must be importable.
    """

    id: str
    entry_point: str | Callable[..., FlexMarkovGame]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    requires: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The id without its version."""
        return self.id.rpartition("-v")[0]

    @property
    def version(self) -> int:
        """The version number."""
        return int(self.id.rpartition("-v")[2])


_registry: dict[str, EnvSpec] = {}


def register(
    id: str,
    entry_point: str | Callable[..., FlexMarkovGame],
    *,
    kwargs: Mapping[str, Any] | None = None,
    description: str = "",
    requires: Mapping[str, str] | None = None,
) -> EnvSpec:
    """Register an environment, here and in PettingZoo's registry as ``flexmg/<id>``.

    Args: see :class:`EnvSpec`.

    Raises:
        RegistrationError: the id has no version or is taken.
    """
    match = _match(id)
    if match is None or match["version"] is None:
        raise RegistrationError(f"{id!r} is not an id such as 'my-game-v0'")
    if id in _registry:
        raise RegistrationError(
            f"{id!r} is registered already; a changed environment needs a new version"
        )
    new = EnvSpec(id, entry_point, dict(kwargs or {}), description, dict(requires or {}))
    _registry[id] = new
    # PettingZoo has a registry of its own since 1.27.
    if hasattr(pettingzoo, "register"):
        pettingzoo.register("aec", f"flexmg/{id}", partial(make, id))
    return new


def spec(id: str) -> EnvSpec:
    """The spec of an id; without a version, that of the latest one.

    Raises:
        NameNotFound: unknown name; the message names the closest one.
        VersionNotFound: the name has no such version.
    """
    match = _match(id)
    name, version = (match["name"], match["version"]) if match else (str(id), None)
    versions = sorted(s.version for s in _registry.values() if s.name == name)
    if not versions:
        raise NameNotFound(
            f"no environment is called {name!r}.{did_you_mean(f'{name}-v{version}', _registry)} "
            "See flexmg.pprint_registry() for all of them"
        )
    if version is None:
        version = versions[-1]
    if int(version) not in versions:
        raise VersionNotFound(
            f"{name!r} has no version v{version}; it has {', '.join(f'v{v}' for v in versions)}"
        )
    return _registry[f"{name}-v{version}"]


def make(id: str, **kwargs: Any) -> FlexMarkovGame:
    """Build the environment with this id.

    Args:
        id: a registered id, e.g. ``"math-orch-workers-v0"``.
        kwargs: override those of the spec; ``source``, ``split``, ``profiles``,
            ``reward``, ``dependencies``, ``render_mode`` and the workflow's own.

    Raises:
        NameNotFound, VersionNotFound: no such id.
        MissingDependency: an optional package is needed; the message says which extra.
        InvalidArgument: a keyword that this environment does not know, or its value.
    """
    found = spec(id)
    for module, extra in found.requires.items():
        require(module, extra, f"the environment {found.id!r}")
    merged = {**deepcopy(dict(found.kwargs)), **kwargs}
    build = _load(found)
    parameters = inspect.signature(build).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        check_keywords(merged, parameters, found.id)
    game = build(**merged)
    game.spec = replace(found, kwargs=kwargs)
    game.metadata = {**game.metadata, "name": found.id.replace("-", "_")}
    return game


def _match(id: Any) -> re.Match[str] | None:
    return ID.fullmatch(id) if isinstance(id, str) else None


def pprint_registry() -> None:
    """Print every id with its description."""
    from rich.console import Console
    from rich.table import Table

    table = Table("id", "what it is", title="flexmg environments")
    for id, one in sorted(_registry.items()):
        table.add_row(id, one.description)
    Console().print(table)


def registered() -> tuple[EnvSpec, ...]:
    """All specs, in order of id."""
    return tuple(_registry[id] for id in sorted(_registry))


def check_keywords(
    given: Iterable[str], allowed: Iterable[str], owner: str, others: Iterable[str] = ()
) -> None:
    """Refuse keywords that are not allowed, with the closest known one.

    Args:
        given: the keywords to check.
        allowed: those allowed here.
        owner: whose keywords these are, for the message.
        others: keywords that are fine, but taken elsewhere; part of the message.

    Raises:
        InvalidArgument: naming the first unknown keyword and all allowed ones.
    """
    allowed = set(allowed)
    known = sorted({*allowed, *others})
    for name in given:
        if name not in allowed:
            raise InvalidArgument(
                f"{owner} has no keyword {name!r}.{did_you_mean(name, known)} "
                f"It takes {', '.join(known)}"
            )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` Did you mean 'x'?`` for the closest known word, or nothing."""
    spelled = {one.lower(): one for one in known}
    close = difflib.get_close_matches(str(word).lower(), list(spelled), n=1, cutoff=0.5)
    return f" Did you mean {spelled[close[0]]!r}?" if close else ""


def require(module: str, extra: str, what: str) -> None:
    """Check that an optional package is there, without importing it.

    Raises:
        MissingDependency: naming the extra to install.
    """
    try:
        found = importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a parent of "package.module" lacks
        found = False
    if not found:
        raise MissingDependency(
            f"{what} needs the package {module!r}: install it with  pip install 'flexmg[{extra}]'"
        )


def load_plugins() -> None:
    """Let every installed package register its environments; a broken one only warns."""
    # Ours first, whatever the order on the path: nobody else can take our ids.
    plugins = entry_points(group=ENTRY_POINTS)
    for plugin in sorted(
        plugins, key=lambda p: (p.dist is None or p.dist.name != "flexmg", p.name)
    ):
        try:
            plugin.load()()
        except Exception as error:
            warnings.warn(
                f"the environments of the plug-in {plugin.value!r} cannot be registered: "
                f"{type(error).__name__}: {error}",
                stacklevel=2,
            )


def _load(found: EnvSpec) -> Callable[..., FlexMarkovGame]:
    if callable(found.entry_point):
        return found.entry_point
    module, _, attribute = found.entry_point.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise RegistrationError(
            f"the entry point {found.entry_point!r} of {found.id!r} cannot be loaded: {error}"
        ) from error
