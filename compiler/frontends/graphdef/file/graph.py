"""Nodes and the edges between them, in a graph or in a library function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ....ir.source import CompileError, SourceText
from .document import FREEZE, Document
from .messages import AttributeMessage, NodeMessage

ARGUMENT: Final = "_Arg"
"""The operation that stands for an argument in a function's graph."""

# The output names of operations with several outputs; functions refer to outputs by name.
_OUTPUTS: Final[Mapping[str, Sequence[str]]] = {
    "Switch": ("output_false", "output_true"),
    "Merge": ("output", "value_index"),
    "TopKV2": ("values", "indices"),
    "TensorArrayV3": ("handle", "flow"),
    **dict.fromkeys(
        ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
        ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"),
    ),
}


class Ref(NamedTuple):
    """An output of a node.

    Attributes:
        node: the node's name.
        port: the output's number.
    """

    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.node}:{self.port}" if self.port else self.node


class GraphNode(NamedTuple):
    """A node.

    Attributes:
        name: the name, unique in its graph.
        op: the operation's name.
        inputs: the outputs of other nodes that it uses.
        controls: the names of the nodes that must run before it.
        attributes: the attributes by name.
        offset: the offset in the document's text.
    """

    name: str
    op: str
    inputs: tuple[Ref, ...]
    controls: tuple[str, ...]
    attributes: Mapping[str, AttributeMessage]
    offset: int


class Graph:
    """Nodes by name. Every edge refers to an existing node.

    Attributes:
        name: the function's name; empty for the graph itself.
        nodes: the nodes by name, in the document's order.
        arguments: the names of a function's arguments.
        results: the outputs that a function returns.
        source: the document's text.
    """

    def __init__(self, source: SourceText, name: str = "") -> None:
        self.name = name
        self.nodes: dict[str, GraphNode] = {}
        self.arguments: list[str] = []
        self.results: list[Ref] = []
        self.source = source

    def error(self, node: GraphNode, message: str) -> CompileError:
        """Makes an error at a node."""
        inside = f" of function '{self.name}'" if self.name else ""
        return self.source.error(node.offset, f"node '{node.name}' ({node.op}){inside}: {message}")


def graph_of(document: Document) -> Graph:
    """Returns the graph of a document.

    Raises:
        CompileError: the graph has no nodes, two nodes of the same name, or an edge from an unknown node.
    """
    graph = Graph(document.source)
    if not document.graph.node:
        raise document.source.error(
            0,
            f"the graph has no nodes; a SavedModel is no GraphDef: freeze one of its functions with {FREEZE}",
        )
    _add_nodes(graph, document.graph.node, document.nodes)
    return graph


def functions_of(document: Document) -> Mapping[str, Graph]:
    """Returns the functions of a document's library, by name.

    Raises:
        CompileError: a function has two nodes of the same name, or an edge from an unknown node.
    """
    graphs: dict[str, Graph] = {}
    for index, function in enumerate(document.graph.library.function):
        offset, offsets = document.functions[index] if index < len(document.functions) else (0, ())
        name = function.signature.name
        if name in graphs:
            raise document.source.error(offset, f"the library has two functions '{name}'")
        graph = graphs[name] = Graph(document.source, name)
        for argument in function.signature.input_arg:
            graph.arguments.append(argument.name)
            graph.nodes[argument.name] = GraphNode(argument.name, ARGUMENT, (), (), {}, offset)
        _add_nodes(graph, function.node_def, offsets)
        returned = {pair.key: pair.value for pair in function.ret}
        for result in function.signature.output_arg:
            if result.name not in returned:
                raise document.source.error(offset, f"function '{name}' does not say what its result {result.name} is")
            ref = _ref(returned[result.name], graph)
            if ref.node not in graph.nodes:
                raise document.source.error(offset, f"function '{name}' gives '{ref.node}', which is not in it")
            graph.results.append(ref)
    return graphs


def _add_nodes(graph: Graph, messages: Sequence[NodeMessage], offsets: Sequence[int]) -> None:
    for index, message in enumerate(messages):
        offset = offsets[index] if index < len(offsets) else 0
        if not message.name or not message.op:
            raise graph.source.error(offset, "expected a node with a name and an op")
        node = GraphNode(message.name, message.op, (), (), message.attr, offset)
        if message.name in graph.nodes:
            raise graph.error(node, "there is another node of that name")
        graph.nodes[message.name] = node
    for message in messages:
        refs = tuple(_ref(item, graph) for item in message.input if not item.startswith("^"))
        controls = tuple(item[1:] for item in message.input if item.startswith("^"))
        node = graph.nodes[message.name]._replace(inputs=refs, controls=controls)
        for name in (*(ref.node for ref in refs), *controls):
            if name not in graph.nodes:
                raise graph.error(node, f"it takes '{name}', and there is no node of that name")
        graph.nodes[message.name] = node


def _ref(text: str, graph: Graph) -> Ref:
    """Parses ``node``, ``node:1``, or ``node:output:1`` with the output's name in a function."""
    name, *rest = text.split(":")
    port = rest[-1] if rest and rest[-1].isdecimal() and len(rest[-1]) < 10 else "0"
    node = graph.nodes.get(name)
    if graph.name and rest and node is not None and rest[0] in _OUTPUTS.get(node.op, ()):
        return Ref(name, _OUTPUTS[node.op].index(rest[0]))
    return Ref(name, int(port))
