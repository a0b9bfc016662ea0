"""Executables of the format ``pumice-reference``: functions of tensor operations as JSON, constants as bytes after it.

    "PREF", version and length of the JSON as u32, the JSON, and the elements of constants
    {"functions": [{"name", "inputs": [type], "outputs": [type], "body"}]}, and where lengths depend on the call
        "symbols": count, and "sizes": [[[factor, [symbol]]]], sums of products of symbols
    body = [argument numbers, [node], result numbers]; type = [dtype, [length]]
    node = [name, operand numbers, result numbers, [type], {attribute: value}, [body]]

A value is a number, text, a boolean, null, a list of values, {"type", "at"} of a constant at an offset, or {"size"} of
the number of a size. A length that is size n is the number -1 - n.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from ..base.lazy_dataclass import dataclass
from ..status import IncompatibleError, InvalidArgumentError, UnimplementedError, shown
from .operations import DEFINITIONS
from .program import Array, Body, Node, SizeNumber, TensorSpec

FORMAT: Final = "pumice-reference"
"""The format's name for modules and the device."""

HEADER: Final = struct.Struct("<4sII")
"""Magic, version, and length of the JSON."""
MAGIC: Final = b"PREF"
VERSION: Final = 1
_MAX_BYTES: Final = 1 << 48

_NAMES: Final = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
_DTYPES: Final[dict[str, np.dtype[Any]]] = {name: np.dtype(name) for name in _NAMES.split()} | {
    kind.__name__: np.dtype(kind)
    for kind in vars(ml_dtypes).values()
    if isinstance(kind, type) and issubclass(kind, np.generic)
}


@dataclass(frozen=True, slots=True)
class Function:
    """A function of an executable.

    Attributes:
        name: the name that programs look up.
        inputs, outputs: the types of its bindings, inputs first.
        body: the program.
        symbols: the number of symbols, whose values a dispatch passes.
        sizes: the sizes that lengths and attributes refer to: sums of a factor times symbols.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    body: Body
    symbols: int = 0
    sizes: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...] = ()

    def specialised(self, constants: Sequence[int]) -> Function:
        """Returns the function with a dispatch's values in place of symbols.

        Raises:
            InvalidArgumentError: the number of values differs from that of the symbols, or makes a length negative or
                too large.
        """
        if len(constants) != self.symbols:
            raise InvalidArgumentError(f"{self.name} takes {self.symbols} constants, got {len(constants)}")
        if not self.sizes:
            return self
        values = [
            sum(factor * math.prod(constants[symbol] for symbol in symbols) for factor, symbols in size)
            for size in self.sizes
        ]
        try:
            return _Specialiser(values).function(self)
        except ValueError as error:
            raise InvalidArgumentError(f"{self.name}: with the constants {list(constants)}, {error}") from None


class _Specialiser:
    """Replaces sizes by numbers."""

    def __init__(self, values: Sequence[int]) -> None:
        self._values = values

    def function(self, function: Function) -> Function:
        inputs, outputs = (tuple(map(self._type, types)) for types in (function.inputs, function.outputs))
        return Function(function.name, inputs, outputs, self._body(function.body))

    def _body(self, body: Body) -> Body:
        return Body(body.arguments, tuple(map(self._node, body.nodes)), body.results)

    def _node(self, node: Node) -> Node:
        attributes = {name: self._value(value) for name, value in node.attributes.items()}
        types, bodies = tuple(map(self._type, node.types)), tuple(map(self._body, node.bodies))
        return Node(node.name, node.operands, node.results, types, attributes, bodies)

    def _type(self, spec: TensorSpec) -> TensorSpec:
        shape = tuple(self._values[-1 - length] if length < 0 else length for length in spec.shape)
        return _checked(TensorSpec(spec.dtype, shape))

    def _value(self, value: Any) -> Any:
        if isinstance(value, SizeNumber):
            return self._values[value.number]
        return [self._value(item) for item in value] if isinstance(value, list) else value


def _checked(spec: TensorSpec) -> TensorSpec:
    if any(length < 0 for length in spec.shape) or spec.dtype.itemsize * math.prod(spec.shape) > _MAX_BYTES:
        raise ValueError(f"a tensor of shape {shown(list(spec.shape))}")
    return spec


def decode(blob: memoryview) -> tuple[Function, ...]:
    """Decodes the functions of an executable and checks that values are defined before use and operations are known.

    Raises:
        InvalidArgumentError: the data is not an executable of the format, or is damaged.
        IncompatibleError: it has an unknown version of the format.
        UnimplementedError: it has an unknown operation.
    """
    if blob.nbytes < HEADER.size or bytes(blob[:4]) != MAGIC:
        raise InvalidArgumentError(f"an executable of format {FORMAT} starts with {MAGIC!r}, got {bytes(blob[:4])!r}")
    _, version, length = HEADER.unpack_from(blob)
    if version != VERSION:
        raise IncompatibleError(f"expected version {VERSION} of the format {FORMAT}, got {version}; compile it again")
    start = HEADER.size + length
    if start > blob.nbytes:
        raise InvalidArgumentError(f"the executable's program has {length} bytes, {blob.nbytes} were given")
    try:
        document = json.loads(bytes(blob[HEADER.size : start]))
        reader = _Reader(blob[start:])
        return tuple(reader.function(function) for function in document["functions"])
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise InvalidArgumentError(
            f"a damaged executable of format {FORMAT}: {type(error).__name__}: {error}"
        ) from None


class _Reader:
    """Reads functions; malformed functions raise an error that ``decode`` catches."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._sizes = 0

    def function(self, fields: Any) -> Function:
        symbols = fields.get("symbols", 0)
        sizes = tuple([tuple([self._term(term, symbols) for term in size]) for size in fields.get("sizes", ())])
        self._sizes = len(sizes)
        inputs, outputs = self._types(fields["inputs"]), self._types(fields["outputs"])
        known: dict[int, TensorSpec | None] = {}
        body = self._body(fields["body"], known, inputs)
        types = [known[number] for number in body.results]
        if any(type is not None and type != wanted for type, wanted in zip(types, outputs, strict=True)):
            raise ValueError(f"results of {types} are stored as {outputs}")
        return Function(_text(fields["name"]), inputs, outputs, body, symbols, sizes)

    def _term(self, item: Any, symbols: int) -> tuple[int, tuple[int, ...]]:
        factor, names = item
        if len(self._new([factor, *names])) > 9 or not all(0 <= name < symbols for name in names):
            raise ValueError(f"a size has products of at most 8 of {symbols} symbols, got {shown(item)}")
        return factor, tuple(names)

    def _body(self, item: Any, outer: dict[int, TensorSpec | None], inputs: Sequence[TensorSpec] | None = None) -> Body:
        arguments, nodes, results = item
        known = outer if inputs is not None else dict(outer)
        types: Sequence[TensorSpec | None] = [None] * len(arguments) if inputs is None else inputs
        known.update(zip(self._new(arguments), types, strict=True))
        return Body(tuple(arguments), tuple([self._node(node, known) for node in nodes]), self._known(results, known))

    def _node(self, item: Any, known: dict[int, TensorSpec | None]) -> Node:
        name, operands, results, types, attributes, bodies = item
        if _text(name) not in DEFINITIONS:
            raise UnimplementedError(f"the reference device of this release has no operation {shown(name)}")
        node = Node(
            name,
            self._known(operands, known),
            self._new(results),
            self._types(types),
            {key: self._value(value) for key, value in attributes.items()},
            tuple([self._body(body, known) for body in bodies]),
        )
        known.update(zip(node.results, node.types, strict=True))
        return node

    def _new(self, numbers: Any) -> tuple[int, ...]:
        if not all(type(number) is int for number in numbers):
            raise TypeError(f"numbers of values are integers, got {shown(numbers)}")
        return tuple(numbers)

    def _known(self, numbers: Any, known: dict[int, TensorSpec | None]) -> tuple[int, ...]:
        missing = [number for number in self._new(numbers) if number not in known]
        if missing:
            raise ValueError(f"value {missing[0]} is used before it is defined")
        return tuple(numbers)

    def _types(self, items: Any) -> tuple[TensorSpec, ...]:
        return tuple([self._type(item) for item in items])

    def _type(self, item: Any) -> TensorSpec:
        name, lengths = item
        spec = TensorSpec(_DTYPES[name], self._new(lengths))
        if any(-self._sizes <= length < 0 for length in spec.shape):
            return spec
        return _checked(spec)

    def _value(self, item: Any) -> Any:
        if isinstance(item, list):
            return [self._value(element) for element in item]
        if isinstance(item, dict) and "size" in item:
            (number,) = self._new([item["size"]])
            if not 0 <= number < self._sizes:
                raise ValueError(f"there are {self._sizes} sizes, got number {number}")
            return SizeNumber(number)
        return self._constant(item) if isinstance(item, dict) else item

    def _constant(self, item: Any) -> Array:
        spec, at = self._type(item["type"]), item["at"]
        count = math.prod(spec.shape)
        end = at + count * spec.dtype.itemsize
        if type(at) is not int or at < 0 or end > self._data.nbytes:
            raise ValueError(f"a constant is bytes [{at}, {end}) of {self._data.nbytes}")
        constant: Array = np.frombuffer(self._data[at:end], spec.dtype, count).reshape(spec.shape)
        return constant


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a name is text, got {shown(value)}")
    return value
