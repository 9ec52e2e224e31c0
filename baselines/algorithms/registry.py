"""Algorithms by name: ours, and any that an installed package contributes.

A third party adds one with a class that satisfies
:class:`flexmg.baselines.algorithms.protocol.Algorithm` and one line of packaging::

    [project.entry-points."flexmg.algorithms"]
    reinforce = "their_package.reinforce:Reinforce"

after which ``flexmg train ENV --algo reinforce`` finds it.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from flexmg.baselines.algorithms.protocol import Algorithm
from flexmg.errors import InvalidArgument, RegistrationError

GROUP = "flexmg.algorithms"

BUILT_IN = {
    "marft": EntryPoint("marft", "flexmg.baselines.algorithms.marft:MARFT", GROUP),
    "ippo": EntryPoint("ippo", "flexmg.baselines.algorithms.ippo:IPPO", GROUP),
    "maporl": EntryPoint("maporl", "flexmg.baselines.algorithms.maporl:MAPoRL", GROUP),
    "grpo": EntryPoint("grpo", "flexmg.baselines.algorithms.grpo:GRPO", GROUP),
}


def algorithms() -> dict[str, EntryPoint]:
    """Every known algorithm by name, not yet imported.

    Raises:
        RegistrationError: two packages contribute the same name.
    """
    known = dict(BUILT_IN)
    for entry in entry_points(group=GROUP):
        other = known.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise RegistrationError(
                f"two algorithms are called {entry.name!r}: {other.value} and {entry.value}; "
                "uninstall one of them or rename its entry point"
            )
    return known


def algorithm(name: str) -> type[Algorithm]:
    """The class of an algorithm.

    Raises:
        InvalidArgument: no such name; the message names the closest known one.
        RegistrationError: the entry point cannot be imported, or is not an algorithm.
    """
    known = algorithms()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(known))}"
        raise InvalidArgument(f"there is no algorithm {name!r}; {hint}")
    entry = known[name]
    try:
        found = entry.load()
    except (ImportError, AttributeError) as error:
        raise RegistrationError(
            f"algorithm {name!r} ({entry.value}) cannot be imported: {error}"
        ) from error
    required = ("critics", "update", "state", "load_state")
    lacking = [part for part in required if not callable(getattr(found, part, None))]
    if not (inspect.isclass(found) and dataclasses.is_dataclass(getattr(found, "Config", None))):
        lacking.append("Config (a dataclass)")
    if lacking:
        raise RegistrationError(
            f"algorithm {name!r} ({entry.value}) lacks {', '.join(lacking)}; see "
            "flexmg.baselines.algorithms.protocol.Algorithm"
        )
    return found


def configure(name: str, settings: Mapping[str, Any]) -> Any:
    """An algorithm's config with some fields set.

    Args:
        name: of the algorithm.
        settings: field -> value; values of the wrong type are refused.

    Raises:
        InvalidArgument: an unknown field (with the closest known one), or a bad value.
    """
    from flexmg.baselines.training.files import build

    return build(algorithm(name).Config, settings, f"algorithm {name!r}")
