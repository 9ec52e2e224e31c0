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
        n = len(self.agents)
        try:
            self.mask: NDArray[np.bool_] = np.array(mask, dtype=bool)
        except ValueError as error:
            raise InvalidArgument(f"the mask is not an array of shape {(n, n)}: {error}") from error
        if len(set(self.agents)) != n:
            raise InvalidArgument(f"an agent stands twice in {list(self.agents)}")
        if self.mask.shape != (n, n):
            raise InvalidArgument(
                f"the mask of {n} agents must have shape {(n, n)}, not {self.mask.shape}"
            )
        self.mask.setflags(write=False)
        self._dependencies = {
            agent: tuple(self.agents[i] for i in np.flatnonzero(self.mask[:, j]))
            for j, agent in enumerate(self.agents)
        }
        self._layers = self._topological_layers()

    @classmethod
    def from_edges(cls, agents: Sequence[str], edges: Iterable[tuple[str, str]]) -> DependencyGraph:
        """A graph from pairs ``(i, j)``: agent j depends on agent i.

        Raises:
            InvalidArgument: a pair names an agent that is not one of ``agents``.
            DependencyCycle: the pairs form a cycle.
        """
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
        remaining = dict.fromkeys(self.agents)
        layers = []
        while remaining:
            layer = tuple(
                a for a in remaining if not any(d in remaining for d in self._dependencies[a])
            )
            if not layer:
                raise DependencyCycle(
                    f"the dependency graph has a cycle: {' -> '.join(self._cycle(remaining))}; "
                    "within one step D must be acyclic (let an agent see earlier steps through "
                    "recall instead)"
                )
            layers.append(layer)
            for agent in layer:
                del remaining[agent]
        return tuple(layers)

    def _cycle(self, remaining: Collection[str]) -> list[str]:
        # Every remaining agent has a remaining dependency: walking back must repeat one.
        path = [next(iter(remaining))]
        while True:
            before = next(d for d in self._dependencies[path[-1]] if d in remaining)
            if before in path:
                return [*path[path.index(before) :], before][::-1]
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
        """The agents that ``agent`` depends on, in the graph's order.

        Raises:
            InvalidArgument: the graph has no such agent.
        """
        if agent not in self._dependencies:
            raise InvalidArgument(f"{agent!r} is not one of {list(self.agents)}")
        return self._dependencies[agent]

    def ready(self, done: Collection[str]) -> tuple[str, ...]:
        """The agents not in ``done`` whose dependencies all are, in the graph's order."""
        return tuple(
            a for a in self.agents if a not in done and all(d in done for d in self.dependencies(a))
        )

    def ascii(self) -> str:
        """The layers on one line, ``voter_0 | voter_1  =>  aggregator_0``; who sees whom below."""
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
