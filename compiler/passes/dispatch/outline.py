"""Outlining: dispatch regions become executables, and functions become sequences that dispatch them.

A region's body becomes the function of an executable, which reads its inputs from buffers and writes its results to
buffers. Regions with the same body share an executable. The function that held the regions becomes a sequence over
buffers: it allocates each result and dispatches.

An input may share memory with the result if each of its elements is read only to compute the element at the same index.
A region that only updates a slice of an input, or scatters to the input, need not write the other elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...analysis.special_forms import is_direct
from ...analysis.weights import HEAVY, MOVES
from ...dialects.syntax.text import to_text
from ...ir.attributes import Attribute, DenseArray, IntegerAttr, SymbolRef
from ...ir.copying import copy_operations
from ...ir.operation import Block, Location, Operation, Region, Value, block_of
from ...ir.sizes import Dim
from ...ir.types import I64, FunctionType, MemRefType, ShapedType, TensorType, Type

UNSPECIFIED: Final = "Unspecified"
"""The target of an executable before it is lowered."""


def outline(function: Operation) -> list[Operation]:
    """Returns executables, and then the function as a sequence of the ``iree_hl_seq`` dialect."""
    return _Outliner(str(function.attributes["sym_name"])).run(function)


def buffer_type(type: Type) -> Type:
    """Returns the type of the buffer for a value; tokens and the like keep their type."""
    return MemRefType(type.shape, type.element) if isinstance(type, TensorType) else type


def entry_of(executable: Operation) -> tuple[str, Operation]:
    """Returns the entry point of an executable in the form used by dispatches, and its function."""
    (function,) = (operation for operation in executable.walk() if operation.name == "func.func")
    return f"{executable.attributes['sym_name']}::@{function.attributes['sym_name']}", function


class _Outliner:
    def __init__(self, name: str) -> None:
        self._name = name
        self._executables: dict[str, tuple[Operation, str]] = {}

    def run(self, function: Operation) -> list[Operation]:
        block = self._block(function.regions[0].block, {})
        type = function.attributes["function_type"]
        assert isinstance(type, FunctionType)
        buffers = FunctionType(
            [buffer_type(value) for value in type.inputs], [buffer_type(value) for value in type.results]
        )
        attributes = {**function.attributes, "function_type": buffers}
        sequence = Operation(function.name, (), (), attributes, [Region([block])], location=function.location)
        return [*(executable for executable, _ in self._executables.values()), sequence]

    def _block(self, block: Block, outer: Mapping[Value, Value]) -> Block:
        """Makes the sequence of a block; ``outer`` has the buffers of enclosing values."""
        made = Block([buffer_type(value.type) for value in block.arguments])
        buffers = {**outer, **dict(zip(block.arguments, made.arguments, strict=True))}
        for operation in block.operations:
            operands = [buffers[value] for value in operation.operands]
            if operation.name == "iree.dispatch_region":
                results = self._dispatch(operation, operands, made)
            else:
                regions = [
                    Region([self._block(inner, buffers) for inner in region.blocks]) for region in operation.regions
                ]
                keeps_types = operation.name in ("arith.constant", "iree.workload")
                types = [value.type if keeps_types else buffer_type(value.type) for value in operation.results]
                name = _SEQUENCED.get(operation.name, operation.name)
                copy = Operation(name, operands, types, operation.attributes, regions, location=operation.location)
                results = made.append(copy).results
            buffers.update(zip(operation.results, results, strict=True))
        return made

    def _dispatch(self, operation: Operation, operands: Sequence[Value], into: Block) -> list[Value]:
        entry = self._entry(operation)
        results = []
        for value in operation.results:
            allocation = Operation("iree_hl_seq.alloc_heap", (), [buffer_type(value.type)], location=operation.location)
            results.append(into.append(allocation).result)
        attributes: dict[str, Attribute] = {"entry": SymbolRef(entry)}
        if len(results) > 1:
            attributes["results"] = IntegerAttr(len(results), I64)
        attributes |= {key: value for key, value in operation.attributes.items() if key in ("bytes", "flops")}
        attributes |= sharing(operation.regions[0].block)
        into.append(
            Operation("iree_hl_seq.dispatch", [*operands, *results], (), attributes, location=operation.location)
        )
        return results

    def _entry(self, operation: Operation) -> str:
        """Returns the entry point that runs a region's body; makes its executable at the first call."""
        function = executable_function(operation.regions[0].block, "", operation.location)
        text = to_text([function])
        known = self._executables.get(text)
        if known is None:
            number = len(self._executables)
            entry = f"{self._name}_rgn_dispatch_{number}"
            function.attributes["sym_name"] = entry
            name = f"{self._name}_ex_dispatch_{number}"
            executable = executable_of(function, name)
            known = (executable, f"{name}::@{entry}")
            self._executables[text] = known
        return known[1]


def sharing(body: Block) -> dict[str, Attribute]:
    """Returns the attributes for inputs that may share memory with the result, and for its written part."""
    if is_view(body):
        return {"view": None}
    if body.scratch is not None:
        return {"scratch": None}
    inputs = in_place_inputs(body)
    attributes: dict[str, Attribute] = {"in_place": DenseArray(I64, inputs)} if inputs else {}
    return {**attributes, "updates": None} if updates_slice(body) else attributes


def executable_of(function: Operation, name: str) -> Operation:
    """Makes an executable of one function, for any target."""
    location = function.location
    module = Operation("builtin.module", regions=[Region([block_of([function])])], location=location)
    attributes: dict[str, Attribute] = {"target": UNSPECIFIED}
    variant = Operation("iree.executable", (), (), attributes, [Region([block_of([module])])], location=location)
    return Operation(
        "iree.multi_arch_executable", (), (), {"sym_name": name}, [Region([block_of([variant])])], location=location
    )


_SEQUENCED: Final = {"func.return": "iree_hl_seq.return", "stablehlo.constant": "iree_hl_seq.constant"}


def executable_function(body: Block, name: str, location: Location) -> Operation:
    """Makes the function of an executable: a region's body between loads of inputs and stores of results."""
    types = [buffer_type(value.type) for value in (*body.arguments, *body.terminator.operands)]
    block = Block(types)
    values: dict[Value, Value] = {}
    for argument, buffer in zip(body.arguments, block.arguments, strict=False):
        load = Operation("iree.load_input", [buffer], [argument.type], location=location)
        values[argument] = block.append(load).result
    copy_operations(body.operations[:-1], block, values)
    outputs = block.arguments[len(body.arguments) :]
    for value, buffer in zip(body.terminator.operands, outputs, strict=True):
        block.append(Operation("iree.store_output", [values[value], buffer], location=location))
    block.append(Operation("iree.return", location=location))
    attributes: dict[str, Attribute] = {
        "sym_name": name,
        "function_type": FunctionType(types, ()),
        "iree.executable.export": None,
        **{f"iree.executable.{key}": value for key, value in sharing(body).items()},
    }
    return Operation("func.func", (), (), attributes, [Region([block])], location=location)


_FIRST: Final = frozenset({"dynamic_update_slice", "scatter"})
"""Operations that read their first operand at the result's index."""


def in_place_inputs(block: Block) -> tuple[int, ...]:
    """Returns positions of the inputs that may share memory with the result."""
    if len(block.terminator.operands) != 1:
        return ()
    result = block.terminator.operands[0].tensor
    aligned: set[Value] = set(block.terminator.operands)
    others: set[Value] = set()
    for operation in reversed(block.operations[:-1]):
        is_aligned = len(operation.results) == 1 and operation.results[0] in aligned
        for index, value in enumerate(operation.operands):
            (aligned if is_aligned and _reads_same_place(operation, index) else others).add(value)
        for inner in operation.walk():
            if inner is not operation:
                others.update(inner.operands)
        if others.intersection(operation.results):
            # The operation is also computed at other indices, and reads its operands there.
            others.update(operation.operands)
    return tuple(
        index
        for index, value in enumerate(block.arguments)
        if value in aligned and value not in others and _is_laid_out_as(value.tensor, result)
    )


def updates_slice(block: Block) -> bool:
    """Whether a region only updates its first input, and uses it for nothing else."""
    root = block.terminator.operands[0].owner
    if not isinstance(root, Operation) or not (root.name == "stablehlo.dynamic_update_slice" or is_direct(root)):
        return False
    value, update = root.operands[0], root.operands[-1 if root.name == "stablehlo.scatter" else 1]
    used = [operand for operation in block.operations for inner in operation.walk() for operand in inner.operands]
    is_input = value.owner is block and value.index == 0 and used.count(value) == 1
    is_static = value.tensor.is_static and update.tensor.is_static
    return is_input and is_static and value.tensor.scalar.bits >= 32 and update.tensor.count != 0


def is_view(block: Block) -> bool:
    """Whether a region's result has the bytes of its only input, with another shape or type."""
    if len(block.arguments) != 1 or len(block.terminator.operands) != 1:
        return False
    value, result = block.arguments[0], block.terminator.operands[0]
    for operation in block.operations[:-1]:
        if operation.name not in ("stablehlo.reshape", "stablehlo.bitcast_convert"):
            return False
    return value.tensor.is_static and _bits(value) == _bits(result)


def _bits(value: Value) -> Dim:
    return value.tensor.count * max(value.tensor.scalar.bits, 8)


def _reads_same_place(operation: Operation, index: int) -> bool:
    name = operation.name.removeprefix("stablehlo.")
    shape = operation.results[0].tensor.shape
    if name in _FIRST:
        return index == 0
    is_pointwise = not operation.regions and name not in HEAVY and name not in MOVES
    return is_pointwise and operation.operands[index].tensor.shape == shape


def _is_laid_out_as(type: ShapedType, other: ShapedType) -> bool:
    is_alike = type.scalar is other.scalar or (type.scalar.bits == other.scalar.bits and type.scalar.bits >= 8)
    return is_alike and type.shape == other.shape and type.is_static and type.count != 0
