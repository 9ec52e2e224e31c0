"""One engine for a team on several base models."""

from __future__ import annotations

from collections.abc import Sequence

from flexmg.baselines.generation.local import LocalEngine
from flexmg.baselines.generation.protocol import Generation, Request
from flexmg.baselines.models.team import Team


class TeamEngine:
    """Hands each request to the engine of its policy's base.

    Args:
        team: whose policies generate.
    """

    def __init__(self, team: Team) -> None:
        self.team = team
        self._engines: dict[int, LocalEngine] = {}

    def generate(self, requests: Sequence[Request]) -> list[Generation]:
        """Generate every action; results in the order of the requests.

        Raises:
            InvalidArgument: as of :class:`~flexmg.baselines.generation.local.LocalEngine`.
        """
        by_engine: dict[int, list[int]] = {}
        for place, request in enumerate(requests):
            adapters = self.team.adapters_of(request.policy)
            if id(adapters) not in self._engines:
                self._engines[id(adapters)] = LocalEngine(adapters)
            by_engine.setdefault(id(adapters), []).append(place)
        results: dict[int, Generation] = {}
        for engine, places in by_engine.items():
            done = self._engines[engine].generate([requests[place] for place in places])
            results.update(zip(places, done, strict=True))
        return [results[place] for place in range(len(requests))]
