"""Rules that the stages share: bodies, buffers, entry points, operations of StableHLO."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...dialects.rules.hlo import infer
from ...dialects.rules.requirements import OperationError
from ...ir.attributes import Attribute, DenseArray, DenseElements, IntegerAttr, SymbolRef
from ...ir.operation import Block, Operation, Value
from ...ir.sizes import Dim, is_at_least
from ...ir.source import SourceText
from ...ir.types import I32, I64, FunctionType, MemRefType, ShapedType, Type, types_text
from ..dispatch.outline import buffer_type
from ..sequencing.steps import Buffer
from .verify import agree, located


@dataclass(frozen=True, slots=True)
class Entry:
    """The buffers of an entry point.

    Attributes:
        types: of its buffers; empty where only the code is known.
        sizes: of its buffers in bytes.
        results: the number of buffers that it writes, the last ones.
    """

    types: Sequence[Type]
    sizes: Sequence[Dim]
    results: int


def check_all(rule: Callable[[Operation], None], operations: Iterable[Operation], source: SourceText) -> None:
    """Applies a rule to operations.

    Raises:
        CompileError: at the operation that breaks it.
    """
    for operation in operations:
        try:
            rule(operation)
        except OperationError as error:
            raise located(operation, error, source) from None


def dispatch(operation: Operation, buffers: Sequence[Value], entries: Mapping[str, Entry]) -> None:
    """Checks that a dispatch passes the buffers that its entry point takes."""
    symbol = operation.attributes.get("entry")
    entry = entries.get(symbol.name) if isinstance(symbol, SymbolRef) else None
    if entry is None:
        raise OperationError(f"an entry point of an executable of this program, got {symbol}")
    types = [value.type for value in buffers]
    if entry.types:
        agree(types, entry.types, "buffers")
    sizes = [size_of(type) for type in types]
    if len(sizes) != len(entry.sizes) or any(is_smaller(*pair) for pair in zip(sizes, entry.sizes, strict=True)):
        raise OperationError(f"buffers of {', '.join(map(str, entry.sizes))} bytes at least, got {types_text(types)}")
    in_place(operation, "in_place", len(types) - entry.results)
    if operation.integer("results", 1) != entry.results and entry.types:
        raise OperationError(f"results = {entry.results}, as many as the entry point writes")


def is_smaller(left: Dim, right: Dim) -> bool:
    """Whether a size is less than another in every call."""
    return is_at_least(left - right, 0) is False


def is_workload(value: Attribute) -> bool:
    """Whether an attribute is three numbers, which may depend on the call."""
    if isinstance(value, DenseElements):
        return value.array.size == 3
    return isinstance(value, DenseArray) and len(value.values) == 3


def infer_types(operation: Operation) -> None:
    """Checks a StableHLO operation on tensors, and the operations in its regions."""
    for inner in operation.walk():
        if not inner.name.startswith("stablehlo."):
            raise OperationError(f"operations of StableHLO alone at this stage, got {inner.name}")
        check_rule(inner)


def check_rule(operation: Operation) -> None:
    known_trips(operation)
    for region in operation.regions:
        last = region.blocks[0].operations[-1:] if len(region.blocks) == 1 else []
        if not last or last[0].name != "stablehlo.return":
            raise OperationError("regions of one block with stablehlo.return at its end")
    agree([value.type for value in operation.results], infer(operation), "results")


def in_place(operation: Operation, name: str, inputs: int) -> None:
    """Checks that inputs which may share memory with the result exist."""
    positions = operation.integers(name)
    if any(not 0 <= index < inputs for index in positions):
        raise OperationError(f"{name} with positions of its {inputs} inputs, got {list(positions)}")


def known_trips(operation: Operation) -> None:
    """Checks the trip count that an earlier pass recorded."""
    count = operation.attributes.get("trip_count", IntegerAttr(0, I64))
    if not isinstance(count, IntegerAttr) or count.value < 0:
        raise OperationError("trip_count to be a number of rounds")
    if "trip_count_operand" in operation.attributes:
        index = operation.integer("trip_count_operand", -1)
        type = operation.operands[index].type if 0 <= index < len(operation.operands) else None
        if not isinstance(type, ShapedType) or type.rank or type.element is not I32:
            raise OperationError("trip_count_operand to be the number of an operand that is one i32")


def operations_of(operation: Operation) -> list[Operation]:
    return [inner for region in operation.regions for block in region.blocks for inner in block.operations]


def body_of(operation: Operation) -> Block:
    if len(operation.regions) != 1 or len(operation.regions[0].blocks) != 1:
        raise OperationError("a body of one block")
    return operation.regions[0].block


def function_type_of(function: Operation, block: Block) -> FunctionType:
    type = function.attributes.get("function_type")
    if not isinstance(type, FunctionType):
        raise OperationError("a function type")
    agree([value.type for value in block.arguments], type.inputs, "arguments")
    return type


def ends(block: Block, name: str, types: Sequence[Type]) -> None:
    if not block.operations or block.terminator.name != name:
        raise OperationError(f"{name} at its end")
    agree([value.type for value in block.terminator.operands], types, "returned values")
    for operation in block.operations[:-1]:
        if operation.name == name:
            raise OperationError(f"one {name}")


def buffer_of(operation: Operation) -> MemRefType:
    """Returns the buffer type of an operation's only result."""
    type = operation.results[0].type if len(operation.results) == 1 else None
    if not isinstance(type, MemRefType) or None in type.shape:
        raise OperationError(f"one result, a buffer of known size, got {type}")
    try:
        type.scalar  # noqa: B018
    except ValueError as error:
        raise OperationError(str(error)) from None
    return type


def size_of(type: Type) -> Dim:
    """Returns the bytes of a buffer in whole words."""
    if not isinstance(type, MemRefType) or None in type.shape:
        raise OperationError(f"buffers of known size, got {type}")
    try:
        return Buffer(type, "").size
    except ValueError as error:
        raise OperationError(str(error)) from None


def constant(operation: Operation) -> DenseElements:
    """Checks a constant; returns its value."""
    value = operation.attributes.get("value")
    if not isinstance(value, DenseElements) or len(operation.results) != 1:
        raise OperationError("a value such as dense<0> : tensor<4xi32>")
    type = operation.results[0].type
    if type not in (value.type, buffer_type(value.type)):
        raise OperationError(f"a result of its value's type, got {type}")
    return value
