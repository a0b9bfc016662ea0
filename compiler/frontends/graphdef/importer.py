"""Import of a GraphDef as a program: feeds are its arguments, fetches its results."""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from ....status import InvalidArgumentError
from ...dialects.builder import Builder
from ...ir.attributes import Attribute
from ...ir.operation import Block, Location, Operation, Region, Value
from ...ir.sizes import symbol
from ...ir.source import SourceText
from ...ir.types import FunctionType, ScalarType, TensorType
from ...passes.canonical.canonicalize import drop_unused
from .file.document import read_document
from .file.graph import Graph, GraphNode, Ref, functions_of, graph_of
from .file.plan import GraphPlan
from .file.tensors import ELEMENTS, dims_of, element_of
from .operators.lists import OPEN_LIST, is_open
from .operators.node import MAX_ELEMENTS
from .translator import Scope, Translator

_NOT_FETCHED: Final = ("Assert", "Const", "NoOp", "Placeholder", "Print", "PrintV2", "Switch")
_OUTPUT: Final = re.compile(r"(.*?)(?::([0-9]{1,9}))?", re.DOTALL)
_SHAPE: Final = re.compile(r"((?:(?:[0-9]{1,12}|\?)(?:x|$))*)([a-z][a-z0-9<>]*)?", re.ASCII)
_BATCH: Final = symbol(0)
"""The call-dependent first length, shared by all arguments whose graph leaves it open."""
_GRAPH: Final = Location(0)
"""The function's location: the graph as a whole."""


def import_graph(
    data: bytes, file_name: str, feeds: Sequence[str] = (), fetches: Sequence[str] = ()
) -> tuple[list[Operation], SourceText]:
    """Translates the nodes that fetches need into one function of StableHLO operations.

    Args:
        data: a GraphDef as text or binary.
        file_name: the name of the file, for errors; the function is named after it.
        feeds: the arguments of the function, in order, as ``NAME[:N][=SHAPE]`` with a shape such as ``4x224x224x3`` or
            ``4x3xf32``. Other needed placeholders follow in the graph's order. A first length of ``?``, here or in the
            graph, depends on the call, and is the same for all arguments. A shape is required if the graph leaves
            another length open, and an element type if a feed is not a placeholder.
        fetches: the results of the function, as ``NAME[:N]``. By default all outputs of nodes that no other node uses.

    Returns:
        A module, and the text that its locations refer to; for a binary graph, the text has a line for each node.

    Raises:
        CompileError: the graph is wrong, or a needed node is not supported.
        InvalidArgumentError: a feed or a fetch is not in the graph.
        UnavailableError: the extra ``graphdef`` is not installed.
    """
    document = read_document(data, file_name)
    source = document.source
    graph = graph_of(document)
    translator = Translator(functions_of(document), file_name)
    fed = {}
    for text in feeds:
        ref, shape = _feed(graph, text)
        if ref in fed:
            raise InvalidArgumentError(f"{file_name}: '{ref}' is fed twice")
        fed[ref] = shape
    wanted = [_named(graph, text, "fetch") for text in fetches]
    sinks = [] if wanted else _sinks(graph, translator.plan(graph))
    block = Block()
    scope = Scope(Builder(block), None, {})
    for ref, shape in fed.items():
        scope.values[ref] = _argument(graph, block, ref, shape)
    needed = translator.needed(graph, [*wanted, *(Ref(name, 0) for name in sinks)], scope)
    for node in graph.nodes.values():
        if node.op == "Placeholder" and node.name in needed:
            scope.values[Ref(node.name, 0)] = _argument(graph, block, Ref(node.name, 0), None)
    results = translator.values(graph, wanted or [Ref(name, 0) for name in sinks], scope)
    if not wanted:
        every = ((Ref(name, port) for port in itertools.count()) for name in sinks)
        results = [scope.values[ref] for refs in every for ref in itertools.takewhile(scope.values.__contains__, refs)]
    block.append(Operation("func.return", results, location=_GRAPH))
    drop_unused(block)
    for operation in block.operations:
        if operation.name == OPEN_LIST or any(is_open(value.type) for value in operation.operands):
            raise source.error(operation.location.offset, "the elements of this list have no shape, and it is needed")
    return [_module(block, file_name)], source


def _named(graph: Graph, text: str, noun: str) -> Ref:
    """Returns an output by its name; ``NAME`` means its first output."""
    match = _OUTPUT.fullmatch(text)
    name, port = (match[1], int(match[2] or 0)) if match else (text, 0)
    if name not in graph.nodes:
        close = difflib.get_close_matches(name, graph.nodes, 3)
        meant = f"; did you mean {' or '.join(close)}?" if close else ""
        raise InvalidArgumentError(f"{graph.source.file_name}: there is no node '{name}' to {noun}{meant}")
    return Ref(name, port)


def _feed(graph: Graph, text: str) -> tuple[Ref, str | None]:
    name, separator, shape = text.partition("=")
    return _named(graph, name, "feed"), shape if separator else None


def _argument(graph: Graph, block: Block, ref: Ref, shape: str | None) -> Value:
    """Adds an argument for an output."""
    node = graph.nodes[ref.node]
    declared = _declared(graph, node)
    try:
        element = element_of(next(node.attributes[name].type for name in ("dtype", "T") if name in node.attributes))
    except StopIteration:
        element = None
    except ValueError as error:
        raise graph.error(node, str(error)) from None
    dims: Sequence[int | None] | None = declared
    if shape is not None:
        match = _SHAPE.fullmatch(shape)
        if match is None:
            raise graph.error(node, f"expected a shape such as 4x224x224x3 or 4x3xf32 for the feed, got '{shape}'")
        dims = [None if length == "?" else int(length) for length in match[1].split("x") if length]
        try:
            element = ScalarType(match[2]) if match[2] else element
        except ValueError as error:
            raise graph.error(node, str(error)) from None
        # Graphs before version 22 declare an unknown shape as a shape without dimensions.
        fits = not declared or len(declared) == len(dims)
        if not fits or any(None not in (a, b) and a != b for a, b in zip(declared or (), dims, strict=False)):
            raise graph.error(node, f"it is fed with the shape {shape}, and declared as {_shown(declared)}")
    if element is None or element not in ELEMENTS:
        raise graph.error(node, f"the element type of '{ref}' is not known: feed it as {ref}=4x3xf32")
    if dims is None or None in dims[1:]:
        raise graph.error(
            node, f"its shape is {_shown(dims)}: say what is open with a feed such as {node.name}={_example(dims)}"
        )
    type = TensorType([_BATCH if length is None else length for length in dims], element)
    if math.prod(length for length in dims if length) >= MAX_ELEMENTS:
        raise graph.error(node, f"it is {type}, which has {MAX_ELEMENTS} elements or more")
    value = Value(type, block, len(block.arguments), _identifier(ref.node))
    block.arguments.append(value)
    return value


def _declared(graph: Graph, node: GraphNode) -> Sequence[int | None] | None:
    """Returns the shape that a placeholder declares."""
    attribute = node.attributes.get("shape")
    if attribute is None or not node.op.startswith("Placeholder"):
        return None
    try:
        return dims_of(attribute.shape)
    except ValueError as error:
        raise graph.error(node, str(error)) from None


def _shown(dims: Sequence[int | None] | None) -> str:
    return "not declared" if dims is None else "x".join("?" if length is None else str(length) for length in dims)


def _example(dims: Sequence[int | None] | None) -> str:
    return "x".join(str(length or 1) for length in dims) if dims else "1x224x224x3"


def _sinks(graph: Graph, plan: GraphPlan) -> list[str]:
    """Returns the nodes whose outputs no other node uses."""
    taken = {ref.node for node in graph.nodes.values() for ref in node.inputs}
    sinks = [
        name
        for name, node in graph.nodes.items()
        if name not in taken and node.op not in _NOT_FETCHED and not plan.contexts[name] and not plan.depths[name]
    ]
    if not sinks:
        raise InvalidArgumentError(
            f"{graph.source.file_name}: no node has outputs that no other takes: name what to fetch"
        )
    return sinks


def _module(block: Block, file_name: str) -> Operation:
    results = [value.type for value in block.terminator.operands]
    name = _identifier(PurePath(file_name).name.split(".")[0]) or "main"
    attributes: dict[str, Attribute] = {
        "sym_name": name,
        "function_type": FunctionType([value.type for value in block.arguments], results),
    }
    function = Operation("func.func", attributes=attributes, regions=[Region([block])], location=_GRAPH)
    body = Block()
    body.append(function)
    return Operation("builtin.module", attributes={"sym_name": name}, regions=[Region([body])])


def _identifier(name: str) -> str:
    """Makes an identifier of letters, digits and underscores from a name."""
    identifier = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
    return f"_{identifier}" if identifier[:1].isdigit() else identifier
