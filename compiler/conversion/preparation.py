"""Preparation of functions for conversion: values of users' types are erased, and library functions get locations.

A type such as ``!my.array`` has a meaning for callers only. Its ABI determines how a value crosses the boundary, and
``builtin.unrealized_conversion_cast`` the tensor in it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final

from ..ir.attributes import SymbolRef
from ..ir.operation import DebugLocation, Location, Operation, Value
from ..ir.source import SourceText
from ..ir.types import DialectType, FunctionType, TensorType, Type, types_text

_CAST: Final = "builtin.unrealized_conversion_cast"
_KNOWN: Final = ("!stablehlo.", "!mhlo.", "!quant.")


def is_user_type(type: Type) -> bool:
    """Whether a type belongs to a dialect that the compiler does not know."""
    return isinstance(type, DialectType) and not str(type).startswith(_KNOWN)


def erase_user_types(function: Operation, source: SourceText) -> None:
    """Replaces values of users' types in a function, in place.

    Raises:
        CompileError: an argument is not cast to a single tensor type, or an operation other than a cast has a result of
            a user's type.
    """
    type = function.attributes.get("function_type")
    operations = [item for item in function.walk() if item is not function]
    casts = {item: None for item in operations if item.name == _CAST and len(item.operands) == len(item.results) == 1}
    if not isinstance(type, FunctionType) or not (casts or any(map(is_user_type, (*type.inputs, *type.results)))):
        return
    arguments = [value for region in function.regions for value in region.blocks[0].arguments]
    for value in filter(lambda item: is_user_type(item.type), arguments):
        held = list(dict.fromkeys(item.result.type for item in casts if item.operands[0] is value))
        if len(held) != 1 or not isinstance(held[0], TensorType):
            got = types_text(held) or "none"
            said = f"argument {value.index}, {value.type}: expected casts to the tensor that it holds, got {got}"
            raise source.error(max(function.location.offset, 0), said)
        value.type = held[0]
    results = _replace(operations, casts, type, source)
    for region in (region for item in (function, *operations) for region in item.regions):
        for block in region.blocks:
            block.operations = [item for item in block.operations if item not in casts]
    if arguments or function.regions:
        function.attributes["function_type"] = FunctionType([value.type for value in arguments], results)


def _replace(
    operations: Sequence[Operation], casts: Container[Operation], type: FunctionType, source: SourceText
) -> Sequence[Type]:
    """Replaces uses of casts by their operands; returns the types of the function's results."""
    tensors: dict[Value, Value] = {}
    results: Sequence[Type] = type.results
    for operation in operations:
        offset = max(operation.location.offset, 0)
        if operation.name == "func.return":
            operand_types = [value.type for value in operation.operands]
            operation.operands = [tensors.get(value, value) for value in operation.operands]
            results = [
                value.type if is_user_type(wanted) and before in (wanted, value.type) else wanted
                for value, before, wanted in zip(operation.operands, operand_types, type.results, strict=False)
            ]
            continue
        operation.operands = [tensors.get(value, value) for value in operation.operands]
        if operation in casts:
            (operand,) = operation.operands
            made = operation.result.type
            if not is_user_type(made) and made is not operand.type:
                raise source.error(offset, f"{_CAST} expects to give what the value holds, {operand.type}, got {made}")
            tensors[operation.result] = operand
        elif any(is_user_type(value.type) for value in operation.results):
            raise source.error(offset, f"{operation.name} expects results that are tensors, which {_CAST} takes")
    return results


def place_called(functions: Mapping[str, Operation]) -> None:
    """Gives operations without a source line the location of their function's first call, in place.

    JAX records no lines in functions of its own library, such as ``jax.nn.relu``.
    """
    callers = [function for function in functions.values() if function.attributes.get("sym_visibility") != "private"]
    reached: set[str] = set()
    for caller in callers:  # grows
        for operation in caller.walk():
            callee = operation.attributes.get("callee", operation.attributes.get("decomposition"))
            if isinstance(callee, SymbolRef) and callee.name in functions and callee.name not in reached:
                reached.add(callee.name)
                callers.append(functions[callee.name])
                if _has_line(operation.location.debug):
                    _place(functions[callee.name], operation.location.debug)


def _place(function: Operation, debug: DebugLocation | None) -> None:
    for operation in function.walk():
        if operation is not function and not _has_line(operation.location.debug):
            operation.location = Location(operation.location.offset, debug)


def _has_line(debug: DebugLocation | None) -> bool:
    return debug is not None and debug.line > 0
