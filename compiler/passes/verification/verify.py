"""Verification of programs by the rules of their operations, and the rules that later stages share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...dialects.rules.bodies import REGIONS
from ...dialects.rules.hlo import infer, is_known
from ...dialects.rules.requirements import OperationError, compatible
from ...ir.attributes import Attribute, DenseArray, DenseElements, IntegerAttr, SymbolRef
from ...ir.element_types import element_type
from ...ir.operation import Block, Operation, Value, origin_of
from ...ir.sizes import Dim, is_at_least
from ...ir.source import CompileError, SourceText
from ...ir.types import I32, I64, FunctionType, MemRefType, ScalarType, ShapedType, TensorType, Type, types_text
from ..dispatch.outline import buffer_type
from ..sequencing.steps import Buffer

_ENDS: Final = {"func.func": "func.return"}
_COMPOSITE: Final = re.compile(r"[A-Za-z]\w*(\.[\w$]+)+", re.ASCII)
_EXPORTED: Final = re.compile(r"[A-Za-z0-9_$.]+", re.ASCII)  # the characters of symbols in VM assembly
_MAX_VALUES: Final = 8192
"""Each argument takes a register of the virtual machine, of which there are 16,383."""

_RETURNS: Final = frozenset({"func.return", "stablehlo.return"})


def verify(functions: Mapping[str, Operation], source: SourceText) -> None:
    """Checks every operation of every function.

    Raises:
        CompileError: an operation breaks its rule; the error is at the first.
    """
    for function in functions.values():
        for operation in function.walk():
            try:
                _check(operation, functions)
            except OperationError as error:
                raise located(operation, error, source) from None


def verify_boundary(function: Operation, source: SourceText) -> None:
    """Checks that an exported function takes and returns tensors of scalars.

    Raises:
        CompileError: an argument or a result is not a tensor of scalars; the error is at the function.
    """
    type = _function_type(function)
    name = function.attributes.get("sym_name")
    if not isinstance(name, str) or not _EXPORTED.fullmatch(name):
        error = OperationError(f"a name of letters, digits, '_', '$' and '.' where it is public, got {name}")
        raise located(function, error, source)
    if max(len(type.inputs), len(type.results)) > _MAX_VALUES:
        raise located(function, OperationError(f"at most {_MAX_VALUES:,} arguments or results"), source)
    for value in (*type.inputs, *type.results):
        if not isinstance(value, TensorType) or not isinstance(value.element, ScalarType):
            error = OperationError(f"arguments and results that are tensors of scalars where it is public, got {value}")
            raise located(function, error, source)
        if element_type(value.element) is None:
            error = OperationError(f"arguments and results of elements that buffer views have, got {value}; convert it")
            raise located(function, error, source)


def located(operation: Operation, error: OperationError, source: SourceText) -> CompileError:
    text = f"{operation.name} expects {error.expected}{origin_of(operation)}"
    return source.error(max(operation.location.offset, 0), text)


def _check(operation: Operation, functions: Mapping[str, Operation]) -> None:
    dialect, _, name = operation.name.partition(".")
    if dialect == "iree":
        return
    if dialect in ("func", "arith") or is_known(operation):
        _check_regions(operation, name)
    if dialect not in ("func", "arith"):
        agree([value.type for value in operation.results], infer(operation), "results")
        if name == "composite":
            if not _COMPOSITE.fullmatch(str(operation.attributes.get("name"))):
                raise OperationError("a name with a dialect, such as chlo.top_k")
            _check_call(operation, functions, "decomposition")
    elif operation.name == "func.call":
        _check_call(operation, functions, "callee")
    elif operation.name == "func.func":
        _check_function(operation)
    elif operation.name not in ("func.return", "arith.constant"):
        raise OperationError(f"to be one of func.call, func.func and func.return in {dialect}")


def _check_regions(operation: Operation, name: str) -> None:
    """Checks that each region is one block with a single return, at its end."""
    count = len(operation.regions)
    wanted = count if name in ("case", "func") else REGIONS.get(name, 0)
    if count != wanted:
        raise OperationError(f"{wanted} region{'s' * (wanted != 1)}, got {count}")
    end = _ENDS.get(operation.name, "stablehlo.return")
    for region in operation.regions:
        if len(region.blocks) != 1:
            raise OperationError(f"regions of one block, got one of {len(region.blocks)}")
        if not region.block.operations or region.block.terminator.name != end:
            raise OperationError(f"{end} at the end of each region")
    if name in ("case", "if") and any(region.block.arguments for region in operation.regions):
        raise OperationError("branches without arguments")
    if operation.name in _RETURNS and (operation.parent is None or operation.parent.terminator is not operation):
        raise OperationError("to be the last operation of its block")


def _check_call(operation: Operation, functions: Mapping[str, Operation], attribute: str) -> None:
    callee = operation.attributes.get(attribute)
    function = functions.get(callee.name) if isinstance(callee, SymbolRef) else None
    if function is None:
        raise OperationError(f"a function of this program, got {callee}")
    type = _function_type(function)
    agree([value.type for value in operation.operands], type.inputs, "arguments")
    agree([value.type for value in operation.results], type.results, "results")


def _check_function(operation: Operation) -> None:
    type = _function_type(operation)
    if operation.parent is not None and operation.parent.parent is not None:
        owner = operation.parent.parent.parent
        if owner is not None and owner.name != "builtin.module":
            raise OperationError("to stand in a module, not in a function")
    for region in operation.regions:
        agree([value.type for value in region.block.arguments], type.inputs, "arguments")
        agree([value.type for value in region.block.terminator.operands], type.results, "returned values")


def _function_type(function: Operation) -> FunctionType:
    type = function.attributes.get("function_type")
    if not isinstance(type, FunctionType):
        raise OperationError("the attribute function_type")
    return type


def agree(types: Sequence[Type], wanted: Sequence[Type], noun: str) -> None:
    if len(types) != len(wanted) or not all(compatible(left, right) for left, right in zip(types, wanted, strict=True)):
        raise OperationError(f"{noun} of types ({types_text(wanted)}), got ({types_text(types)})")


@dataclass(frozen=True, slots=True)
class Entry:
    """The buffers of an entry point.

    Attributes:
        types: the types of the buffers; empty if only the code is known.
        sizes: the sizes of the buffers in bytes.
        results: the number of written buffers, which come last.
    """

    types: Sequence[Type]
    sizes: Sequence[Dim]
    results: int


def check_all(rule: Callable[[Operation], None], operations: Iterable[Operation], source: SourceText) -> None:
    """Applies a rule to operations.

    Raises:
        CompileError: an operation breaks the rule; the error is at the operation.
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
    """Whether a size is smaller than another in every call."""
    return is_at_least(left - right, 0) is False


def is_workload(value: Attribute) -> bool:
    """Whether an attribute consists of three numbers, which may be call-dependent."""
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
