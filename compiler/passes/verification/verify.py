"""Verification of programs by the rules of their operations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ...dialects.rules.bodies import REGIONS
from ...dialects.rules.hlo import infer, is_known
from ...dialects.rules.requirements import OperationError, compatible
from ...ir.attributes import SymbolRef
from ...ir.element_types import element_type
from ...ir.operation import Operation, origin_of
from ...ir.source import CompileError, SourceText
from ...ir.types import FunctionType, ScalarType, TensorType, Type, types_text

_ENDS: Final = {"func.func": "func.return"}
_COMPOSITE: Final = re.compile(r"[A-Za-z]\w*(\.[\w$]+)+", re.ASCII)
_EXPORTED: Final = re.compile(r"[A-Za-z0-9_$.]+", re.ASCII)  # the characters of symbols in VM assembly
_MAX_VALUES: Final = 8192
"""Each argument takes a register of the virtual machine, of which there are 16,383."""

_RETURNS: Final = frozenset({"func.return", "stablehlo.return"})


def verify(functions: Mapping[str, Operation], source: SourceText) -> None:
    """Checks every operation of every function.

    Raises:
        CompileError: at the first operation that breaks its rule.
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
        CompileError: at the function.
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
    """Checks that each region is one block with one return, at its end."""
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


def agree(types: Sequence[Type], wanted: Sequence[Type], what: str) -> None:
    if len(types) != len(wanted) or not all(compatible(left, right) for left, right in zip(types, wanted, strict=True)):
        raise OperationError(f"{what} of types ({types_text(wanted)}), got ({types_text(types)})")
