"""Functions as programs of the reference device: operations as plain data, evaluated in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...hal_reference.program import Body, Node, SizeNumber, TensorSpec
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
from ..ir.operation import Block, Operation, Value
from ..ir.sizes import Dim, Size, number_of
from ..ir.types import ShapedType, Type


class ProgramWriter:
    """Writes functions as programs of the reference device; calls and dispatch regions are inlined.

    Args:
        functions: the functions by symbol name.

    Attributes:
        sizes: the index of each call-dependent size; specs and attributes name sizes by it.
    """

    def __init__(self, functions: Mapping[str, Operation]) -> None:
        self.sizes: dict[Size, int] = {}
        self._functions = functions
        self._numbers: dict[Value, int] = {}
        self._count = 0

    def function(self, name: str) -> Body:
        """Returns the program of a function."""
        return self.block(self._functions[name].regions[0].block)

    def executable(self, function: Operation) -> Body:
        """Returns the program of an executable's function: its inputs are the loads, its results the stores."""
        operations = function.regions[0].block.operations
        arguments = tuple(self._new(op.result) for op in operations if op.name == "iree.load_input")
        nodes: list[Node] = []
        self._append([op for op in operations if not op.name.startswith("iree.")], nodes)
        results = tuple(self._numbers[op.operands[0]] for op in operations if op.name == "iree.store_output")
        return Body(arguments, tuple(nodes), results)

    def block(self, block: Block) -> Body:
        """Returns the program of a block whose terminator returns."""
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
            attributes = {name: self._numbered(plain(value)) for name, value in flat_attributes(operation).items()}
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
        """Returns the NumPy type and shape; the length that is size number ``n`` becomes ``-1 - n``."""
        return spec_of(type, lambda length: length if isinstance(length, int) else -1 - self._number(length))

    def _number(self, size: Size) -> int:
        return self.sizes.setdefault(size, len(self.sizes))

    def _numbered(self, value: Any) -> Any:
        if isinstance(value, Size):
            return SizeNumber(self._number(value))
        return [self._numbered(item) for item in value] if isinstance(value, list) else value

    def _new(self, value: Value) -> int:
        self._numbers[value] = self._count
        self._count += 1
        return self._count - 1


def spec_of(type: Type, number: Callable[[Dim], int] = number_of) -> TensorSpec:
    """Returns the NumPy type and shape of a tensor, empty for a token; ``number`` maps lengths to integers."""
    if not isinstance(type, ShapedType):
        return TensorSpec(np.dtype(np.uint8), (0,))
    return TensorSpec(type.scalar.dtype, tuple(map(number, type.lengths)))


def flat_attributes(operation: Operation) -> Mapping[str, Attribute | object]:
    """Returns attributes by name, including the fields of structures."""
    attributes: dict[str, Attribute | object] = {}
    for name, value in operation.attributes.items():
        if isinstance(value, StructAttr):
            attributes.update(value.fields)
        else:
            attributes[name] = value
    return attributes


def plain(value: object) -> Any:
    """Returns an attribute as Python data."""
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
