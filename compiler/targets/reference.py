"""Executables of the reference device: operations as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...hal_reference.layout import storage_bytes
from ...hal_reference.program import Body, Node, SizeNumber, TensorSpec
from ...hal_reference.program_format import FORMAT, HEADER, MAGIC, VERSION, Function
from ..dialects.rules.requirements import OperationError
from ..ir.attributes import (
    Attribute,
    DenseArray,
    DenseElements,
    EnumAttr,
    FloatAttr,
    IntegerAttr,
    StructAttr,
    SymbolRef,
)
from ..ir.operation import Block, Location, Operation, Region, Value
from ..ir.sizes import Size, number_of
from ..ir.source import SourceText
from ..ir.types import ShapedType, Type
from ..kernels.kernel import Binding, Kernel, symbols_in
from .variant import Variant

TARGET = "Reference"
"""How executables name the target."""

_TOKEN = TensorSpec(np.dtype(np.uint8), (0,))


def reference_variant(module: Region, location: Location) -> Operation:
    """A module of an executable's function as the executable of this target in a program."""
    return Operation("iree.executable", (), (), {"target": TARGET}, [module], location=location)


def reference_executable(variant: Operation, source: SourceText) -> Variant:
    """What the device loads for an executable of this target; it names no line of the source.

    Raises:
        OperationError: the executable has not the form of a function over buffers.
    """
    functions = [each for each in variant.walk() if each.name == "func.func"]
    if len(functions) != 1:
        raise OperationError("a module with one function in it")
    name = str(functions[0].attributes["sym_name"])
    operations = functions[0].regions[0].block.operations
    writer = ProgramWriter({})
    body = writer.executable(functions[0])
    inputs = tuple(writer.spec(each.result.type) for each in operations if each.name == "iree.load_input")
    outputs = tuple(writer.spec(each.operands[0].type) for each in operations if each.name == "iree.store_output")
    bindings = [(spec, True) for spec in inputs] + [(spec, False) for spec in outputs]
    symbols = symbols_in(functions[0].regions[0].block)
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    sizes = tuple(
        tuple((factor, tuple(numbers[symbol] for symbol in monomial)) for monomial, factor in size.terms)
        for size in writer.sizes
    )
    kernel = Kernel(
        b"",
        name,
        (1, 1, 1),
        (1, 1, 1),
        tuple(Binding(_size(spec), read, not read) for spec, read in bindings),
        symbols,
    )
    return Variant(TARGET, FORMAT, encode([Function(name, inputs, outputs, body, len(symbols), sizes)]), kernel)


def _size(spec: TensorSpec) -> int:
    """Bytes of a binding, in whole words; 0 where they depend on the call."""
    return 0 if any(length < 0 for length in spec.shape) else max(-(-storage_bytes(spec) // 4) * 4, 4)


class ProgramWriter:
    """Writes functions as programs of the reference device; calls and dispatch regions are written out.

    Args:
        functions: by symbol name.

    Attributes:
        sizes: numbers of the sizes that depend on the call, by which specs and attributes refer to them.
    """

    def __init__(self, functions: Mapping[str, Operation]) -> None:
        self.sizes: dict[Size, int] = {}
        self._functions = functions
        self._numbers: dict[Value, int] = {}
        self._count = 0

    def function(self, name: str) -> Body:
        """The program of a function."""
        return self.block(self._functions[name].regions[0].block)

    def executable(self, function: Operation) -> Body:
        """The program of an executable's function: its inputs are what it loads, its results what it stores."""
        operations = function.regions[0].block.operations
        arguments = tuple(self._new(op.result) for op in operations if op.name == "iree.load_input")
        nodes: list[Node] = []
        self._append([op for op in operations if not op.name.startswith("iree.")], nodes)
        results = tuple(self._numbers[op.operands[0]] for op in operations if op.name == "iree.store_output")
        return Body(arguments, tuple(nodes), results)

    def block(self, block: Block) -> Body:
        """The program of a block whose terminator returns."""
        arguments = tuple(self._new(value) for value in block.arguments)
        nodes: list[Node] = []
        results = self._operations(block, nodes)
        return Body(arguments, tuple(nodes), tuple(results))

    def _operations(self, block: Block, nodes: list[Node]) -> list[int]:
        self._append(block.operations[:-1], nodes)
        return [self._numbers[value] for value in block.terminator.operands]

    def _append(self, operations: Sequence[Operation], nodes: list[Node]) -> None:
        for operation in operations:
            if operation.name == "func.call":
                callee = operation.attributes["callee"]
                assert isinstance(callee, SymbolRef)
                self._written_out(self._functions[callee.name].regions[0].block, operation.operands, operation, nodes)
                continue
            if operation.name == "iree.dispatch_region":
                self._written_out(operation.regions[0].block, operation.operands[1:], operation, nodes)
                continue
            bodies = tuple(self.block(region.block) for region in operation.regions)
            attributes = {name: self._plain(value) for name, value in flat_attributes(operation).items()}
            nodes.append(
                Node(
                    operation.name.removeprefix("stablehlo.").removeprefix("arith."),
                    tuple(self._numbers[value] for value in operation.operands),
                    tuple(self._new(value) for value in operation.results),
                    tuple(self.spec(value.type) for value in operation.results),
                    attributes,
                    bodies,
                )
            )

    def _written_out(self, block: Block, operands: Sequence[Value], operation: Operation, nodes: list[Node]) -> None:
        for argument, value in zip(block.arguments, operands, strict=True):
            self._numbers[argument] = self._numbers[value]
        for result, number in zip(operation.results, self._operations(block, nodes), strict=True):
            self._numbers[result] = number

    def spec(self, type: Type) -> TensorSpec:
        """A type as NumPy knows it; a length that is size ``n`` is -1 - n."""
        if not isinstance(type, ShapedType):
            return _TOKEN
        shape = [length if isinstance(length, int) else -1 - self._number(length) for length in type.lengths]
        return TensorSpec(type.scalar.dtype, tuple(shape))

    def _number(self, size: Size) -> int:
        return self.sizes.setdefault(size, len(self.sizes))

    def _plain(self, value: object) -> Any:
        return self._numbered(plain(value))

    def _numbered(self, value: Any) -> Any:
        if isinstance(value, Size):
            return SizeNumber(self._number(value))
        return [self._numbered(item) for item in value] if isinstance(value, list) else value

    def _new(self, value: Value) -> int:
        self._numbers[value] = self._count
        self._count += 1
        return self._count - 1


def spec_of(type: Type) -> TensorSpec:
    """A type as NumPy knows it."""
    if not isinstance(type, ShapedType):
        return _TOKEN
    return TensorSpec(type.scalar.dtype, tuple(map(number_of, type.lengths)))


def flat_attributes(operation: Operation) -> Mapping[str, Attribute | object]:
    """Attributes with the fields of structures among them."""
    found: dict[str, Attribute | object] = {}
    for name, value in operation.attributes.items():
        if isinstance(value, StructAttr):
            found.update(value.fields)
        else:
            found[name] = value
    return found


def plain(value: object) -> Any:
    """An attribute as Python data."""
    if isinstance(value, IntegerAttr | FloatAttr):
        return value.value
    if isinstance(value, EnumAttr):
        return value.case
    if isinstance(value, DenseArray):
        return list(value.values)
    if isinstance(value, DenseElements):
        return value.array
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def encode(functions: Sequence[Function]) -> bytes:
    """Functions as an executable; the same ones give the same bytes."""
    data = bytearray()

    def value_of(value: object) -> object:
        if isinstance(value, np.ndarray | np.generic):
            at = len(data)
            data.extend(value.tobytes())
            return {"type": _type(TensorSpec(value.dtype, value.shape)), "at": at}
        if isinstance(value, list | tuple):
            return [value_of(item) for item in value]
        if isinstance(value, SizeNumber):
            return {"size": value.number}
        return value if value is None or isinstance(value, bool | int | float | str) else str(value)

    def body_of(body: Body) -> object:
        nodes = [
            [
                node.name,
                node.operands,
                node.results,
                [_type(each) for each in node.types],
                {name: value_of(value) for name, value in node.attributes.items()},
                [body_of(inner) for inner in node.bodies],
            ]
            for node in body.nodes
        ]
        return [body.arguments, nodes, body.results]

    written = [
        {
            "name": each.name,
            "inputs": [_type(spec) for spec in each.inputs],
            "outputs": [_type(spec) for spec in each.outputs],
            "body": body_of(each.body),
            **({"symbols": each.symbols, "sizes": each.sizes} if each.symbols else {}),
        }
        for each in functions
    ]
    text = json.dumps({"functions": written}, separators=(",", ":")).encode()
    return HEADER.pack(MAGIC, VERSION, len(text)) + text + data


def _type(spec: TensorSpec) -> list[object]:
    return [spec.dtype.name, list(spec.shape)]
