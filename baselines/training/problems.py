"""Which problems an iteration trains on: by key, and never a held-out one."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from flexmg.errors import InvalidArgument
from flexmg.problem import ProblemSource
from flexmg.seeding import draw, stream

# Where an unlimited source is drawn from: two draws hardly ever meet.
UNLIMITED = 2**31
# Arguments of flexmg.make that describe one source and mean nothing to another.
OF_ONE_SOURCE = ("level", "limit", "mapping", "source_options")


class Curriculum:
    """Draws problems without replacement within an epoch, as a function of the iteration.

    A source of n problems is shuffled anew each epoch (by seed and epoch) and cut into
    iterations; the remainder of an epoch that fills none is left out of it. An unlimited
    source is drawn from at random. Problems whose content is in ``held_out`` are skipped.

    Args:
        source: of the training problems.
        seed: of the run.
        count: problems per iteration.
        held_out: content hashes of the problems that are evaluated on.

    Raises:
        InvalidArgument: the source has fewer than ``count`` problems that are not held out.
    """

    def __init__(
        self, source: ProblemSource, seed: int, count: int, held_out: Set[str] = frozenset()
    ) -> None:
        self.source = source
        self.seed = seed
        self.count = count
        self.held_out = held_out
        self.excluded = 0
        self._allowed: list[int] | None = None
        if source.size is not None:
            self._allowed = [index for index in range(source.size) if self._may(index)]
            self.excluded = source.size - len(self._allowed)
            if len(self._allowed) < count:
                raise InvalidArgument(
                    f"source {source.name!r} has {len(self._allowed)} problems to train on "
                    f"({self.excluded} of {source.size} are held out), fewer than the {count} "
                    "that an iteration takes; lower the problems per iteration or the held-out "
                    "problems"
                )

    def __call__(self, iteration: int) -> list[int]:
        """The indices of an iteration's problems, counted from 1; all different."""
        if self._allowed is None:
            return self._drawn(iteration)
        per_epoch = len(self._allowed) // self.count
        epoch, place = divmod(iteration - 1, per_epoch)
        order = stream("curriculum", self.seed, epoch).permutation(len(self._allowed))
        chosen = order[place * self.count : (place + 1) * self.count]
        return [self._allowed[k] for k in chosen]

    def _drawn(self, iteration: int) -> list[int]:
        chosen: dict[int, None] = {}
        attempt = 0
        while len(chosen) < self.count:
            index = draw(UNLIMITED, "curriculum", self.seed, iteration, attempt)
            if self._may(index):
                chosen[index] = None
            attempt += 1
        return list(chosen)

    def _may(self, index: int) -> bool:
        return not self.held_out or self.source.get(index).content_hash not in self.held_out


def other_problems(env_args: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of :func:`flexmg.make` for the same game on other problems.

    Args:
        env_args: the arguments so far.
        given: those that change. With another ``source``, what described the old one (its
            level, its field mapping ...) is left behind.
    """
    moved = "source" in given and given["source"] != env_args.get("source", "synthetic")
    kept = {k: v for k, v in env_args.items() if not (moved and k in OF_ONE_SOURCE)}
    return {**kept, **given}


def held_out_problems(source: ProblemSource, count: int) -> list[int]:
    """Indices of the first ``count`` problems of a source, or all of them if it has fewer."""
    return list(range(count if source.size is None else min(count, source.size)))
