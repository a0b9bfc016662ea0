"""Dominators, loops and reducibility of random graphs against their definitions."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from pumice.vm.translation.control_flow import Graph, Placement, UnstructuredError

Edges = list[list[int]]


def random_graph(seed: int) -> Edges:
    rng = random.Random(seed)
    count = rng.randrange(1, 14)
    forward = rng.random() < 0.5  # mostly forward edges make reducible graphs
    edges: Edges = []
    for node in range(count):
        targets = []
        for _ in range(rng.choice((0, 1, 1, 2, 2, 3))):
            low = min(node + 1, count - 1) if forward and rng.random() < 0.8 else 1 if count > 1 else 0
            targets.append(rng.randrange(low, count))
        edges.append([one for one in targets if one])  # nothing goes back to the entry
    return edges


def reached(edges: Edges, without: int | None = None) -> set[int]:
    seen: set[int] = set()
    stack = [0] if without != 0 else []
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += [one for one in edges[node] if one != without]
    return seen


def dominators(edges: Edges) -> dict[int, set[int]]:
    """Returns for each node the nodes that are on every path to it."""
    nodes = reached(edges)
    found = {node: {node} for node in nodes}
    for above in nodes:
        for node in nodes - reached(edges, above):
            found[node].add(above)
    return found


def is_reducible(edges: Edges) -> bool:
    """Whether merging nodes into their only predecessor leaves one node (Hecht and Ullman)."""
    nodes = reached(edges)
    after = {node: {one for one in edges[node] if one != node} for node in nodes}
    while len(after) > 1:
        for node in after:
            before = [other for other in after if node in after[other]]
            if node and len(before) == 1:
                after[before[0]] = (after[before[0]] | after[node]) - {node, before[0]}
                del after[node]
                break
        else:
            return False
    return True


def graphs() -> Iterator[Edges]:
    for seed in range(1500):
        yield random_graph(seed)


def test_dominators_are_what_every_way_goes_through() -> None:
    kinds = {True: 0, False: 0}
    for edges in graphs():
        graph = Graph(edges.__getitem__)
        assert set(graph.order) == reached(edges)
        reducible = is_reducible(edges)
        kinds[reducible] += 1
        if not reducible:
            with pytest.raises(UnstructuredError):
                graph.find_dominators()
            continue
        graph.find_dominators()
        for node, above in dominators(edges).items():
            chain = {node}
            at = node
            while at:
                at = graph.immediate_dominator[at]
                chain.add(at)
            assert chain == above
    assert min(kinds.values()) > 100


@pytest.mark.slow
def test_loops_are_natural_loops() -> None:
    for edges in graphs():
        if not is_reducible(edges):
            continue
        graph = Graph(edges.__getitem__)
        graph.find_dominators()
        graph.find_loops()
        above = dominators(edges)
        bodies: dict[int, set[int]] = {}
        for node in above:
            for header in edges[node]:
                if header in above[node]:  # a back edge: the loop is what reaches it without the header
                    body = bodies.setdefault(header, {header})
                    stack = [node]
                    while stack:
                        one = stack.pop()
                        if one not in body:
                            body.add(one)
                            stack += [other for other in above if one in edges[other]]
        assert graph.headers == set(bodies)
        for node in above:
            around = sorted((header for header in bodies if node in bodies[header]), key=lambda one: -len(bodies[one]))
            assert list(graph.loops[node]) == around


def test_every_node_has_one_place() -> None:
    for edges in graphs():
        graph = Graph(edges.__getitem__)
        try:
            placement = Placement(graph)
        except UnstructuredError:
            assert not is_reducible(edges)
            continue
        places = [node for group in (*placement.after.values(), *placement.after_loop.values()) for node in group]
        places += placement.inline
        assert sorted(places) == sorted(set(graph.order) - {0})


@pytest.mark.slow
def test_deep_graphs_take_no_host_stack_and_no_square_of_time() -> None:
    count = 30_000
    # Each node goes on or to the end, which is everyone's to meet at.
    edges = [[node + 1, count - 1] for node in range(count - 1)] + [[]]
    graph = Graph(edges.__getitem__)
    placement = Placement(graph)
    assert placement.after == {0: [count - 1]} or placement.after == {count - 3: [], 0: [count - 1]}
    diamonds: Edges = []
    for node in range(0, count, 4):
        diamonds += [[node + 1, node + 2], [node + 3], [node + 3], [node + 4]]
    diamonds[-1] = []
    placement = Placement(Graph(diamonds.__getitem__))
    assert len(placement.after) == count // 4


def test_loops_deeper_than_python_takes_are_refused() -> None:
    def nest(depth: int) -> Edges:
        # Headers 1 … depth, then a latch each.
        edges: Edges = [[1]]
        edges += [[node + 1, 2 * depth + 1] for node in range(1, depth + 1)]
        edges += [[depth - index, depth + 2 + index] for index in range(depth)]
        return [*edges, []]

    Placement(Graph(nest(15).__getitem__))
    with pytest.raises(UnstructuredError):
        Placement(Graph(nest(16).__getitem__))
    with pytest.raises(UnstructuredError):
        Placement(Graph(nest(3000).__getitem__))
