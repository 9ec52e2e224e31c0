"""The dependency function D: who sees whose action of the same step.

``D(a_i, a_j) = 1`` means that agent j's action is conditioned on agent i's action of
the same env step (MARFT, arXiv 2504.16129, Flex-MG). D = 0 everywhere is a DEC-POMDP;
a chain is MARFT's sequential decision process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from flexmg.errors import DependencyCycle, InvalidArgument


class DependencyGraph:
    """An acyclic dependency graph over named agents.

    Args:
        agents: the names, which fix the order of rows and columns.
        mask: boolean array of shape (N, N), ``mask[i, j] = D(a_i, a_j)``: the action of
            agent j is conditioned on that of agent i.

    Raises:
        InvalidArgument: the mask has another shape, or a name stands twice.
        DependencyCycle: the mask is cyclic; the message spells the cycle out.
    """

    def __init__(self, agents: Sequence[str], mask: NDArray[np.bool_] | Sequence) -> None:
        self.agents = tuple(agents)
        self.mask: NDArray[np.bool_] = np.array(mask, dtype=bool)
        n = len(self.agents)
        if len(set(self.agents)) != n:
            raise InvalidArgument(f"an agent stands twice in {list(self.agents)}")
        if self.mask.shape != (n, n):
            raise InvalidArgument(
                f"the mask of {n} agents must have shape {(n, n)}, not {self.mask.shape}"
            )
        self.mask.setflags(write=False)
        self._layers = self._topological_layers()

    @classmethod
    def from_edges(cls, agents: Sequence[str], edges: Iterable[tuple[str, str]]) -> DependencyGraph:
        """A graph from pairs ``(i, j)``: agent j depends on agent i."""
        index = {name: i for i, name in enumerate(agents)}
        mask = np.zeros((len(agents), len(agents)), dtype=bool)
        for source, target in edges:
            for name in (source, target):
                if name not in index:
                    raise InvalidArgument(
                        f"the edge {source} -> {target} names {name!r}, "
                        f"which is not one of {list(agents)}"
                    )
            mask[index[source], index[target]] = True
        return cls(agents, mask)

    def _topological_layers(self) -> tuple[tuple[str, ...], ...]:
        remaining = dict.fromkeys(range(len(self.agents)))
        layers = []
        while remaining:
            layer = [
                j
                for j in remaining
                if not any(i in remaining for i in np.flatnonzero(self.mask[:, j]))
            ]
            if not layer:
                raise DependencyCycle(
                    f"the dependency graph has a cycle: {' -> '.join(self._cycle(remaining))}; "
                    "within one step D must be acyclic (let an agent see earlier steps through "
                    "recall instead)"
                )
            layers.append(tuple(self.agents[j] for j in layer))
            for j in layer:
                del remaining[j]
        return tuple(layers)

    def _cycle(self, remaining: Collection[int]) -> list[str]:
        # Every remaining node has a remaining predecessor: walking back must repeat one.
        path = [next(iter(remaining))]
        while True:
            before = next(int(i) for i in np.flatnonzero(self.mask[:, path[-1]]) if i in remaining)
            if before in path:
                loop = [*path[path.index(before) :], before]
                return [self.agents[i] for i in reversed(loop)]
            path.append(before)

    @property
    def layers(self) -> tuple[tuple[str, ...], ...]:
        """Topological layers: every agent stands one layer after its last dependency."""
        return self._layers

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """All pairs ``(i, j)`` with ``D(a_i, a_j) = 1``, in row order."""
        return tuple((self.agents[i], self.agents[j]) for i, j in np.argwhere(self.mask))

    def dependencies(self, agent: str) -> tuple[str, ...]:
        """The agents that ``agent`` depends on, in the graph's order."""
        column = self.mask[:, self.agents.index(agent)]
        return tuple(self.agents[i] for i in np.flatnonzero(column))

    def ready(self, done: Collection[str]) -> tuple[str, ...]:
        """The agents not in ``done`` whose dependencies all are, in the graph's order."""
        return tuple(
            a for a in self.agents if a not in done and all(d in done for d in self.dependencies(a))
        )

    def ascii(self) -> str:
        """One line per layer, e.g. ``voter_0  voter_1  ->  aggregator_0`` with the edges below."""
        lines = ["  =>  ".join(" | ".join(layer) for layer in self.layers)]
        lines += [f"{a} sees {', '.join(d)}" for a in self.agents if (d := self.dependencies(a))]
        return "\n".join(lines)

    def mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        lines = ["graph LR", *(f"    {a}" for a in self.agents)]
        lines += [f"    {a} --> {b}" for a, b in self.edges]
        return "\n".join(lines)

    def graphviz(self) -> str:
        """The graph in Graphviz' dot language."""
        lines = ["digraph D {", "    rankdir=LR;", *(f'    "{a}";' for a in self.agents)]
        lines += [f'    "{a}" -> "{b}";' for a, b in self.edges]
        return "\n".join([*lines, "}"])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DependencyGraph)
            and self.agents == other.agents
            and bool((self.mask == other.mask).all())
        )

    def __hash__(self) -> int:
        return hash((self.agents, self.mask.tobytes()))

    def __repr__(self) -> str:
        return f"DependencyGraph({list(self.agents)}, edges={list(self.edges)})"
