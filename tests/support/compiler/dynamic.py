"""Programs whose lengths depend on the call, with the lengths of one call in their place."""

from __future__ import annotations

from collections.abc import Mapping

from pumice.compiler.ir.attributes import Attribute, DenseArray
from pumice.compiler.ir.operation import Block, Operation, Region, Value
from pumice.compiler.ir.sizes import Dim, evaluated
from pumice.compiler.ir.types import FunctionType, MemRefType, TensorType, Type


def specialised(operation: Operation, values: Mapping[str, int]) -> Operation:
    """A copy of an operation with symbols replaced by numbers, in all types and attributes."""
    return _Copier(values).operation(operation)


class _Copier:
    def __init__(self, values: Mapping[str, int]) -> None:
        self._lengths = values
        self._values: dict[Value, Value] = {}

    def operation(self, operation: Operation) -> Operation:
        regions = [Region([self._block(block) for block in region.blocks]) for region in operation.regions]
        made = Operation(
            operation.name,
            [self._values[value] for value in operation.operands],
            [self._type(value.type) for value in operation.results],
            {name: self._attribute(value) for name, value in operation.attributes.items()},
            regions,
            location=operation.location,
        )
        self._values.update(zip(operation.results, made.results, strict=True))
        return made

    def _block(self, block: Block) -> Block:
        made = Block([self._type(value.type) for value in block.arguments])
        self._values.update(zip(block.arguments, made.arguments, strict=True))
        for operation in block.operations:
            made.append(self.operation(operation))
        return made

    def _type(self, type: Type) -> Type:
        if isinstance(type, TensorType | MemRefType):
            return type.__class__([evaluated(length, self._lengths) for length in type.lengths], type.element)
        if isinstance(type, FunctionType):
            return FunctionType([self._type(each) for each in type.inputs], [self._type(each) for each in type.results])
        return type

    def _attribute(self, value: Attribute) -> Attribute:
        if isinstance(value, DenseArray):
            return DenseArray(value.element, tuple(self._number(item) for item in value.values))
        if isinstance(value, tuple):
            return tuple(self._attribute(item) for item in value)
        return self._type(value) if isinstance(value, Type) else value

    def _number(self, value: Dim | float | bool) -> int | float | bool:
        return value if isinstance(value, bool | float) else evaluated(value, self._lengths)
