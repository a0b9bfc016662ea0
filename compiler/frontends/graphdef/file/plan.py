"""The order of a graph's nodes, and the structure of its dataflow control flow.

Switch passes its value to one of two outputs, and the nodes after an output run only if it got the value; Merge passes
on the input that arrived. A *context* is the set of (predicate, branch) under which a node runs. Merge ends a context:
it becomes a conditional whose branches are the nodes in the two contexts of its inputs.

A loop is a frame. Enter leads into it. The Merge of each variable takes the value of Enter first and that of
NextIteration afterwards. Depending on LoopCond, Switch continues to the body or to Exit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Final, NamedTuple, TypeAlias

from .graph import Graph, GraphNode, Ref

Context: TypeAlias = frozenset[tuple[Ref, int]]

_MAX_SHOWN: Final = 8


class Variable(NamedTuple):
    """A variable of a loop.

    Attributes:
        merge: the node that starts an iteration.
        initial: the first value.
        following: the value for the next iteration.
        switch: the node that continues into the body; empty if the body does not use the variable.
        exit: the node with the last value; empty if the last value is not used.
    """

    merge: str
    initial: Ref
    following: Ref
    switch: str
    exit: str


@dataclass(slots=True)
class GraphLoop:
    """A loop of the graph, which TensorFlow calls a frame.

    Attributes:
        enters: the names of the nodes that lead into the loop.
        condition: the value that continues the loop.
        variables: the variables, in the graph's order.
    """

    enters: list[str] = field(default_factory=list)
    condition: Ref | None = None
    variables: list[Variable] = field(default_factory=list)


class Choice(NamedTuple):
    """The conditional that a Merge is part of.

    Attributes:
        predicate: the conditional's predicate.
        branches: the Merge's input numbers for a false predicate, and for a true one.
        together: the names of all merges of the conditional, including this one: they have the same predicate, context
            and level, and do not depend on each other.
    """

    predicate: Ref
    branches: tuple[int, int]
    together: list[str]


class GraphPlan:
    """The order and the control flow of a graph.

    Attributes:
        rank: the rank of each node; operands have lower ranks.
        contexts: for each node, the branches under which it runs.
        depths: the number of loops around each node's outputs.
        choices: the conditional of each Merge that is not part of a loop.
        loops: the loop of each Exit.

    Raises:
        CompileError: a cycle is not a loop, or the control flow is malformed.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.rank: dict[str, tuple[int, bool, int]] = {}
        self.contexts: dict[str, Context] = {}
        self.depths: dict[str, int] = {}
        self.choices: dict[str, Choice] = {}
        self.loops: dict[str, GraphLoop] = {}
        self._together: dict[tuple[Ref, Context, int], list[str]] = {}
        self._loop_merges: set[str] = set()
        self._loop_conditions: set[str] = set()
        self._find_loops()
        self._order()

    def sources(self, node: GraphNode) -> Sequence[Ref]:
        """Returns the values that a node needs when it is translated."""
        if node.name in self.loops:
            return [Ref(name, 0) for name in self.loops[node.name].enters]
        if node.name in self.choices:
            return [*node.inputs, self.choices[node.name].predicate]
        return node.inputs

    def predicate(self, ref: Ref) -> Ref:
        """Follows identities back to the value that they pass on."""
        node = self._graph.nodes[ref.node]
        while node.op == "Identity" and node.inputs:
            ref = node.inputs[0]
            node = self._graph.nodes[ref.node]
        return ref

    def _find_loops(self) -> None:
        graph = self._graph
        nodes = graph.nodes.values()
        frames: dict[str, GraphLoop] = {}
        frame_of: dict[str, str] = {}
        for node in nodes:
            if node.op == "Enter":
                value = node.attributes.get("frame_name")
                if value is None or len(node.inputs) != 1:
                    raise graph.error(node, "expected one input and the attribute frame_name")
                name = value.s.decode(errors="replace")
                frames.setdefault(name, GraphLoop()).enters.append(node.name)
                frame_of[node.name] = name
        merges: dict[str, tuple[str, Ref, Ref]] = {}
        for node in nodes:
            following = [ref for ref in node.inputs if graph.nodes[ref.node].op == "NextIteration"]
            if node.op != "Merge" or not following:
                continue
            initial = [ref for ref in node.inputs if ref.node in frame_of]
            (next_node, *_) = (graph.nodes[ref.node] for ref in following)
            if len(node.inputs) != 2 or len(initial) != 1 or len(next_node.inputs) != 1:
                raise graph.error(node, "expected what an Enter and a NextIteration give")
            merges[node.name] = (frame_of[initial[0].node], initial[0], next_node.inputs[0])
        self._loop_merges.update(merges)
        switches: dict[str, str] = {}
        exits: dict[str, str] = {}
        for node in nodes:
            if node.op == "Switch" and len(node.inputs) == 2 and node.inputs[0].node in merges:
                condition = graph.nodes[node.inputs[1].node]
                if condition.op != "LoopCond" or len(condition.inputs) != 1:
                    continue
                switches[node.inputs[0].node] = node.name
                frames[merges[node.inputs[0].node][0]].condition = condition.inputs[0]
                self._loop_conditions.add(condition.name)
        merge_of = {switch: merge for merge, switch in switches.items()}
        for node in nodes:
            if node.op == "Exit":
                merge = merge_of.get(node.inputs[0].node) if node.inputs else None
                if merge is None or node.inputs[0].port != 0:
                    raise graph.error(node, "expected the first output of a Switch of a loop")
                exits[merge] = node.name
                self.loops[node.name] = frames[merges[merge][0]]
        for merge, (frame, initial_ref, following_ref) in merges.items():
            variable = Variable(merge, initial_ref, following_ref, switches.get(merge, ""), exits.get(merge, ""))
            frames[frame].variables.append(variable)

    def _order(self) -> None:
        """Sorts topologically; computes levels, contexts and choices."""
        graph = self._graph
        nodes = graph.nodes
        before: dict[str, list[str]] = {}
        sorter = TopologicalSorter(dict.fromkeys(nodes, ()))
        for node in nodes.values():
            refs = list(node.inputs)
            if node.name in self._loop_merges:
                refs = [ref for ref in refs if nodes[ref.node].op != "NextIteration"]
            names = [*(ref.node for ref in refs), *node.controls]
            if node.name in self.loops:
                names += self.loops[node.name].enters
            before[node.name] = names
            sorter.add(node.name, *names)
        try:
            order = list(sorter.static_order())
        except CycleError as error:
            cycle = error.args[1]
            shown = [*cycle[: _MAX_SHOWN - 1], "…", cycle[-1]] if len(cycle) > _MAX_SHOWN else cycle
            raise graph.error(nodes[cycle[0]], f"the graph has a cycle: {' → '.join(shown)}") from None
        levels: dict[str, int] = {}
        for name in order:
            node = nodes[name]
            is_choice = node.op == "Merge" and name not in self._loop_merges
            level = max((levels[other] for other in before[name]), default=0) + is_choice
            levels[name] = level
            depth = max((self.depths[other] for other in before[name]), default=0)
            self.depths[name] = depth + (node.op == "Enter") - (node.op == "Exit")
            self.contexts[name] = self._context(node, level, is_choice)
            self.rank[name] = (level, not is_choice, len(self.rank))

    def _context(self, node: GraphNode, level: int, is_choice: bool) -> Context:
        if is_choice:
            return self._choice(node, level)
        context: Context = frozenset()
        for ref in node.inputs:
            if ref.node in self.contexts:  # the next iteration's value does not have a context yet
                context |= self._context_of(ref)
        for name in node.controls:
            context |= self.contexts[name]
        return context

    def _context_of(self, ref: Ref) -> Context:
        node = self._graph.nodes[ref.node]
        context = self.contexts[ref.node]
        if node.op == "Switch" and len(node.inputs) == 2 and node.inputs[1].node not in self._loop_conditions:
            return context | {(self.predicate(node.inputs[1]), ref.port)}
        return context

    def _choice(self, node: GraphNode, level: int) -> Context:
        contexts = [self._context_of(ref) for ref in node.inputs]
        if len(contexts) != 2:
            raise self._graph.error(node, f"expected two inputs, one from each side of a Switch, got {len(contexts)}")
        split = [predicate for predicate, branch in contexts[0] if (predicate, 1 - branch) in contexts[1]]
        if len(split) != 1:
            raise self._graph.error(node, "its inputs do not come from the two sides of one Switch")
        (predicate,) = split
        truth = 0 if (predicate, 1) in contexts[0] else 1
        context = (contexts[0] | contexts[1]) - {(predicate, 0), (predicate, 1)}
        together = self._together.setdefault((predicate, context, level), [])
        together.append(node.name)
        self.choices[node.name] = Choice(predicate, (1 - truth, truth), together)
        return context
