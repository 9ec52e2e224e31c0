"""The dependency graph against hand-drawn graphs and brute force."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmg import DependencyGraph
from flexmg.errors import DependencyCycle, InvalidArgument

NAMES = [f"agent_{k}" for k in range(5)]
DIAMOND = DependencyGraph.from_edges("abcd", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])


def is_acyclic(mask: np.ndarray) -> bool:
    """Brute force: some order puts every agent after those it depends on."""
    return any(
        all(order.index(i) < order.index(j) for i, j in np.argwhere(mask))
        for order in permutations(range(len(mask)))
    )


def relabelled_triangle(drawn) -> np.ndarray:
    """The upper triangle of a mask, under another numbering of the agents."""
    mask, random = drawn
    order = list(range(len(mask)))
    random.shuffle(order)
    return np.triu(mask, k=1)[np.ix_(order, order)]


masks = st.integers(2, 4).flatmap(
    lambda n: st.lists(st.booleans(), min_size=n * n, max_size=n * n).map(
        lambda bits: np.array(bits).reshape(n, n)
    )
)

acyclic_masks = st.tuples(masks, st.randoms(use_true_random=False)).map(relabelled_triangle)


@settings(deadline=None)
@given(masks)
def test_exactly_the_cyclic_masks_are_refused(mask):
    try:
        DependencyGraph(NAMES[: len(mask)], mask)
    except DependencyCycle:
        assert not is_acyclic(mask)
    else:
        assert is_acyclic(mask)


@settings(deadline=None)
@given(acyclic_masks)
def test_a_layer_is_one_more_than_the_last_layer_depended_on(mask):
    graph = DependencyGraph(NAMES[: len(mask)], mask)
    layer = {agent: k for k, agents in enumerate(graph.layers) for agent in agents}
    for agent in graph.agents:
        assert layer[agent] == 1 + max((layer[d] for d in graph.dependencies(agent)), default=-1)


@settings(deadline=None)
@given(acyclic_masks, st.data())
def test_ready_are_those_not_done_with_everything_they_depend_on_done(mask, data):
    graph = DependencyGraph(NAMES[: len(mask)], mask)
    done = data.draw(st.sets(st.sampled_from(graph.agents)))
    expected = [
        agent
        for j, agent in enumerate(graph.agents)
        if agent not in done
        and all(graph.agents[i] in done for i in range(len(mask)) if mask[i, j])
    ]
    assert list(graph.ready(done)) == expected


def test_mask_i_j_means_that_j_depends_on_i():
    graph = DependencyGraph(["planner_0", "solver_0"], [[0, 1], [0, 0]])
    assert graph.dependencies("solver_0") == ("planner_0",)


def test_the_diamond_has_three_layers():
    assert DIAMOND.layers == (("a",), ("b", "c"), ("d",))


def test_edges_come_in_row_order():
    assert DIAMOND.edges == (("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"))


def test_a_graph_without_edges_has_one_layer():
    assert DependencyGraph(NAMES, np.zeros((5, 5))).layers == (tuple(NAMES),)


@pytest.mark.parametrize(
    ("edges", "named"),
    [
        ([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")], {"a", "b", "c"}),
        ([("a", "b"), ("c", "d"), ("d", "c")], {"c", "d"}),
        ([("b", "b")], {"b"}),
    ],
)
def test_a_cycle_is_spelt_out_edge_by_edge(edges, named):
    with pytest.raises(DependencyCycle) as error:
        DependencyGraph.from_edges("abcd", edges)
    loop = str(error.value).split("cycle: ")[1].split(";")[0].split(" -> ")
    assert loop[0] == loop[-1]
    assert set(loop) == named
    assert all(pair in edges for pair in pairwise(loop))


@pytest.mark.parametrize("mask", [[[0, 1]], np.zeros((3, 3)), [[0, 1], [0]], np.zeros(2)])
def test_a_mask_of_another_shape_is_refused(mask):
    with pytest.raises(InvalidArgument, match="shape"):
        DependencyGraph(["a", "b"], mask)


def test_a_name_that_stands_twice_is_refused():
    with pytest.raises(InvalidArgument, match="twice"):
        DependencyGraph(["a", "a"], np.zeros((2, 2)))


def test_an_edge_to_a_stranger_is_refused():
    with pytest.raises(InvalidArgument, match="'zoe'"):
        DependencyGraph.from_edges("ab", [("a", "zoe")])


def test_the_dependencies_of_a_stranger_are_refused():
    with pytest.raises(InvalidArgument, match="'zoe'"):
        DIAMOND.dependencies("zoe")


def test_the_mask_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        DIAMOND.mask[0, 0] = True


def test_the_mask_is_a_copy():
    mask = np.zeros((2, 2), dtype=bool)
    graph = DependencyGraph("ab", mask)
    mask[1, 0] = True
    assert graph.edges == ()


def test_equal_graphs_are_equal_and_hash_alike():
    twin = DependencyGraph("abcd", DIAMOND.mask)
    assert (twin, hash(twin)) == (DIAMOND, hash(DIAMOND))


def test_graphs_with_other_edges_differ():
    assert DependencyGraph.from_edges("abcd", [("a", "b")]) != DIAMOND


def test_ascii():
    assert DIAMOND.ascii() == "a  =>  b | c  =>  d\nb sees a\nc sees a\nd sees b, c"


def test_mermaid():
    graph = DependencyGraph.from_edges(["a_0", "b_0"], [("a_0", "b_0")])
    assert graph.mermaid() == "graph LR\n    a_0\n    b_0\n    a_0 --> b_0"


def test_graphviz():
    graph = DependencyGraph.from_edges(["a_0", "b_0"], [("a_0", "b_0")])
    assert graph.graphviz() == (
        'digraph D {\n    rankdir=LR;\n    "a_0";\n    "b_0";\n    "a_0" -> "b_0";\n}'
    )
