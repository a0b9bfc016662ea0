"""The protocol buffer messages of a GraphDef.

The schema comes from the package tensorboardX, which has the schema of an older TensorFlow release; later additions
that are read here (functions, three element types) are added to its descriptors. The messages use a separate pool, so
that TensorFlow may be imported as well. Sources of the added numbers: ``tensorflow/core/framework/`` of TensorFlow
2.21, ``types.proto``, ``tensor.proto``, ``graph.proto``, ``function.proto`` and ``op_def.proto``.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from .....status import UnavailableError

_SCALARS: Final = {"string": 9, "bytes": 12, "bool": 8, "uint32": 13, "uint64": 4}
_MESSAGE: Final = 11
_ENUM: Final = 14

_NEW_TYPES: Final = {"DT_VARIANT": 21, "DT_UINT32": 22, "DT_UINT64": 23}
# Fields by message: name, number, type; a star marks a repeated field. Maps are read as repeated entries.
_NEW_FIELDS: Final = {
    "TensorProto": (("uint32_val", 16, "*uint32"), ("uint64_val", 17, "*uint64")),
    "GraphDef": (("library", 2, "FunctionDefLibrary"),),
    "FunctionDefLibrary": (("function", 1, "*FunctionDef"),),
    "FunctionDef": (
        ("signature", 1, "OpDef"),
        ("node_def", 3, "*NodeDef"),
        ("ret", 4, "*NamePair"),
        ("attr", 5, "*NamedAttr"),
        ("control_ret", 6, "*NamePair"),
    ),
    "NamePair": (("key", 1, "string"), ("value", 2, "string")),
    "NamedAttr": (("key", 1, "string"), ("value", 2, "AttrValue")),
    "OpDef": (
        ("name", 1, "string"),
        ("input_arg", 2, "*ArgDef"),
        ("output_arg", 3, "*ArgDef"),
        ("summary", 5, "string"),
        ("description", 6, "string"),
        ("is_aggregate", 16, "bool"),
        ("is_stateful", 17, "bool"),
        ("is_commutative", 18, "bool"),
        ("allows_uninitialized_input", 19, "bool"),
        ("control_output", 20, "*string"),
        ("is_distributed_communication", 21, "bool"),
    ),
    "ArgDef": (
        ("name", 1, "string"),
        ("description", 2, "string"),
        ("type", 3, "DataType"),
        ("type_attr", 4, "string"),
        ("number_attr", 5, "string"),
        ("type_list_attr", 6, "string"),
        ("is_ref", 16, "bool"),
    ),
}


class DimensionMessage(Protocol):
    """A length; -1 if unknown."""

    size: int


class ShapeMessage(Protocol):
    """A shape, or an unknown rank."""

    dim: Sequence[DimensionMessage]
    unknown_rank: bool


class TensorMessage(Protocol):
    """A constant tensor: its bytes, or its values, of which the last is repeated."""

    dtype: int
    tensor_shape: ShapeMessage
    tensor_content: bytes
    string_val: Sequence[bytes]


class FunctionReference(Protocol):
    """The name of a function, and attributes for it."""

    name: str


class ListMessage(Protocol):
    """An attribute that is a list."""

    s: Sequence[bytes]
    i: Sequence[int]
    type: Sequence[int]
    shape: Sequence[ShapeMessage]
    func: Sequence[FunctionReference]


class AttributeMessage(Protocol):
    """An attribute of a node; exactly one field is set."""

    s: bytes
    i: int
    f: float
    b: bool
    type: int
    shape: ShapeMessage
    tensor: TensorMessage
    list: ListMessage
    func: FunctionReference

    def WhichOneof(self, name: str) -> str | None:
        """Returns the name of the field that is set in the oneof ``value``."""


class NodeMessage(Protocol):
    """A node of a graph or a function."""

    name: str
    op: str
    input: Sequence[str]
    attr: Mapping[str, AttributeMessage]


class ArgumentMessage(Protocol):
    """An argument or a result of a function."""

    name: str
    type: int


class SignatureMessage(Protocol):
    """The arguments and results of a function."""

    name: str
    input_arg: Sequence[ArgumentMessage]
    output_arg: Sequence[ArgumentMessage]


class NamePairMessage(Protocol):
    """A name and its replacement."""

    key: str
    value: str


class FunctionMessage(Protocol):
    """A function of the library."""

    signature: SignatureMessage
    node_def: Sequence[NodeMessage]
    ret: Sequence[NamePairMessage]


class LibraryMessage(Protocol):
    """The functions of a graph."""

    function: Sequence[FunctionMessage]


class GraphMessage(Protocol):
    """A graph."""

    node: Sequence[NodeMessage]
    library: LibraryMessage


class ParsingError(Exception):
    """Text or bytes that are no GraphDef.

    Attributes:
        line: the line, from 1; 0 if unknown.
        column: the column, from 1; 0 if unknown.
    """

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


def parse_binary(data: bytes) -> GraphMessage:
    """Parses a binary GraphDef.

    Raises:
        ParsingError: the bytes are no GraphDef.
        UnavailableError: the extra ``graphdef`` is not installed.
    """
    graph = _graph_class()()
    from google.protobuf.message import DecodeError

    try:
        graph.ParseFromString(data)
    except DecodeError as error:
        raise ParsingError(_plain(error)) from None
    message: GraphMessage = graph
    return message


def parse_text(text: str) -> GraphMessage:
    """Parses a GraphDef in text form.

    Raises:
        ParsingError: the text has a syntax error; the error is located at the first.
        UnavailableError: the extra ``graphdef`` is not installed.
    """
    graph = _graph_class()()
    from google.protobuf import text_format

    try:
        with warnings.catch_warnings():
            # Python warns of escapes that its string literals lack.
            warnings.simplefilter("ignore", DeprecationWarning)
            text_format.Parse(text, graph)
    except text_format.ParseError as error:
        raise ParsingError(_plain(error).split(" : ", 1)[-1], error.GetLine() or 0, error.GetColumn() or 0) from None
    except RecursionError:
        raise ParsingError("messages are nested too deeply") from None
    message: GraphMessage = graph
    return message


def print_text(graph: GraphMessage) -> str:
    """Prints a GraphDef as text."""
    from google.protobuf import text_format

    text: str = text_format.MessageToString(graph)
    return text


def _plain(error: Exception) -> str:
    """Returns an error's message with TensorFlow's names for messages."""
    return str(error).replace("tensorboardX.", "")


@functools.cache
def _graph_class() -> Any:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
        from tensorboardX.proto import graph_pb2
    except ImportError as error:
        raise UnavailableError(
            f"GraphDefs need the extra `graphdef`, which is not installed ({error}): pip install 'pumice[graphdef]'"
        ) from None
    pool = descriptor_pool.DescriptorPool()
    files: list[Any] = []

    def collect(descriptor: Any) -> None:
        for dependency in descriptor.dependencies:
            collect(dependency)
        if all(file.name != descriptor.name for file in files):
            files.append(descriptor_pb2.FileDescriptorProto.FromString(descriptor.serialized_pb))

    collect(graph_pb2.DESCRIPTOR)
    package = graph_pb2.DESCRIPTOR.package
    _add_types(files)
    _add_messages(files, package)
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.GraphDef"))


def _add_types(files: Sequence[Any]) -> None:
    (enum,) = (enum for file in files for enum in file.enum_type if enum.name == "DataType")
    known = {value.name for value in enum.value}
    for name, number in _NEW_TYPES.items():
        if name not in known:
            enum.value.add(name=name, number=number)


def _add_messages(files: Sequence[Any], package: str) -> None:
    messages = {message.name: message for file in files for message in file.message_type}
    enums = {enum.name for file in files for enum in file.enum_type}
    last = files[-1]
    for name in _NEW_FIELDS:
        if name not in messages:
            messages[name] = last.message_type.add(name=name)
    for name, fields in _NEW_FIELDS.items():
        known = {field.name for field in messages[name].field}
        for field, number, spelled in fields:
            if field in known:
                continue
            type = spelled.removeprefix("*")
            added = messages[name].field.add(name=field, number=number, label=3 if spelled[0] == "*" else 1)
            added.type = _SCALARS.get(type) or (_ENUM if type in enums else _MESSAGE)
            if type not in _SCALARS:
                added.type_name = f".{package}.{type}"
    for file in files[:-1]:
        if file.name not in last.dependency:
            last.dependency.append(file.name)
