"""A GraphDef's file: its messages, and the positions of its nodes for errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ....ir.source import SourceText
from .messages import GraphMessage, NodeMessage, ParsingError, parse_binary, parse_text, print_text

FREEZE: Final = "tensorflow.python.framework.convert_to_constants.convert_variables_to_constants_v2"
"""The TensorFlow function that makes a GraphDef from a function with variables."""

_CONTROL_CHARACTER: Final = re.compile(rb"[\x00-\x08\x0e-\x1f]")
"""The text format escapes control characters; a binary GraphDef has one before each node's operation."""

_TOKEN: Final = re.compile(r"""[A-Za-z_][A-Za-z0-9_.]*|[{}<>]|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\#[^\n]*""")
_SEPARATOR: Final = re.compile(r"\s*[,;]")

_WITHOUT_MEANING: Final = frozenset(
    {
        "arg_attr",
        "debug_info",
        "deprecation",
        "experimental_debug_info",
        "experimental_full_type",
        "experimental_type",
        "gradient",
        "handle_data",
        "registered_gradients",
        "resource_arg_unique_id",
    }
)
"""Blocks that do not affect the computation and that the schema lacks."""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed GraphDef.

    Attributes:
        graph: the graph's messages.
        source: the text; for a binary file a listing with a line for each node.
        nodes: the offsets of the graph's nodes in the text.
        functions: the offset of each library function, and those of its nodes.
    """

    graph: GraphMessage
    source: SourceText
    nodes: Sequence[int]
    functions: Sequence[tuple[int, Sequence[int]]]


def read_document(data: bytes, file_name: str) -> Document:
    """Parses a GraphDef; its first bytes decide between text and binary.

    Raises:
        CompileError: the data is no GraphDef.
        UnavailableError: the extra ``graphdef`` is not installed.
    """
    if _CONTROL_CHARACTER.search(data) is None:
        return _of_text(data.decode("utf-8", "replace"), file_name)
    try:
        graph = parse_binary(data)
    except ParsingError as error:
        raise SourceText("", file_name).error(
            0,
            f"expected a GraphDef, as text or binary; the file is cut off or something else, such as a SavedModel, "
            f"whose functions are frozen into GraphDefs with {FREEZE}, or what jax.export serializes, whose "
            f"mlir_module() is text: {error}",
        ) from None
    return _of_binary(graph, file_name)


def graph_text(data: bytes, file_name: str) -> str:
    """Returns a GraphDef as text: unchanged, or printed from the binary form.

    Raises: as for ``read_document``.
    """
    if _CONTROL_CHARACTER.search(data) is None:
        return data.decode("utf-8", "replace")
    return print_text(read_document(data, file_name).graph)


def _of_text(text: str, file_name: str) -> Document:
    source = SourceText(text, file_name)
    nodes: list[int] = []
    functions: list[tuple[int, list[int]]] = []
    pieces: list[str] = []
    position = 0
    for path, start, end in _blocks(text):
        if path[-1] in _WITHOUT_MEANING or path[-2:] == ("signature", "attr"):
            if start >= position:
                pieces += [text[position:start], re.sub(r"[^\n]", " ", text[start:end])]
                position = end
        elif end >= 0:
            continue
        elif path == ("node",):
            nodes.append(start)
        elif path == ("library", "function"):
            functions.append((start, []))
        elif path == ("library", "function", "node_def") and functions:
            functions[-1][1].append(start)
    pieces.append(text[position:])
    try:
        graph = parse_text("".join(pieces))
    except ParsingError as error:
        offset = source.offset(error.line, error.column) if error.line else 0
        raise source.error(offset, f"expected a GraphDef as text: {error}") from None
    return Document(graph, source, nodes, functions)


def _blocks(text: str) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Yields each block in braces twice, when it opens and when it closes: its qualified name, the offset of its name,
    and the offset of its end, which is -1 when it opens.
    """
    stack: list[tuple[str, int]] = []
    name, start = "", 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "{<":
            stack.append((name, start))
            yield tuple(item[0] for item in stack), start, -1
        elif token in "}>":
            if not stack:
                return
            path = tuple(item[0] for item in stack)
            name, start = stack.pop()
            separator = _SEPARATOR.match(text, match.end())
            yield path, start, separator.end() if separator else match.end()
            start = match.end()
        elif token[0] not in "\"'#":
            name, start = token, match.start()


def _of_binary(graph: GraphMessage, file_name: str) -> Document:
    lines: list[str] = []
    length = 0

    def listed(nodes: Sequence[NodeMessage], indent: str) -> list[int]:
        nonlocal length
        offsets = []
        for node in nodes:
            offsets.append(length + len(indent))
            lines.append(f"{indent}{node.name} = {node.op}({', '.join(node.input)})")
            length += len(lines[-1]) + 1
        return offsets

    nodes = listed(graph.node, "")
    functions: list[tuple[int, list[int]]] = []
    for function in graph.library.function:
        offset = length
        lines.append(f"function {function.signature.name}")
        length += len(lines[-1]) + 1
        functions.append((offset, listed(function.node_def, "  ")))
    return Document(graph, SourceText("\n".join(lines), file_name), nodes, functions)
