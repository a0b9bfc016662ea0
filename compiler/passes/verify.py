"""Holds a program against the rules of its operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dialects.hlo import infer
from ..dialects.rules import OperationError, compatible
from ..ir.attributes import SymbolRef
from ..ir.operation import Operation
from ..ir.source import CompileError, SourceText
from ..ir.types import FunctionType, Type, types_text


def verify(functions: Mapping[str, Operation], source: SourceText) -> None:
    """Checks every operation of every function.

    Raises:
        CompileError: at the first operation that is not as its rule wants it.
    """
    for function in functions.values():
        for operation in function.walk():
            try:
                _check(operation, functions)
            except OperationError as error:
                raise _located(operation, error, source) from None


def _located(operation: Operation, error: OperationError, source: SourceText) -> CompileError:
    debug = operation.location.debug
    origin = f" (from {debug.file_name}:{debug.line})" if debug is not None and debug.line else ""
    return source.error(max(operation.location.offset, 0), f"{operation.name} expects {error.expected}{origin}")


def _check(operation: Operation, functions: Mapping[str, Operation]) -> None:
    results = [value.type for value in operation.results]
    if not operation.name.startswith(("func.", "iree.", "arith.")):
        _agree(results, infer(operation), "results")
    elif operation.name == "func.call":
        callee = operation.attributes.get("callee")
        function = functions.get(callee.name) if isinstance(callee, SymbolRef) else None
        if function is None:
            raise OperationError(f"a function of this program, got {callee}")
        type = function.attributes["function_type"]
        assert isinstance(type, FunctionType)
        _agree([value.type for value in operation.operands], type.inputs, "arguments")
        _agree(results, type.results, "results")
    elif operation.name == "func.func" and operation.regions:
        type = operation.attributes["function_type"]
        assert isinstance(type, FunctionType)
        last = operation.regions[0].blocks[-1].operations[-1:]
        if not last or last[0].name != "func.return":
            raise OperationError("a return at its end")
        _agree([value.type for value in last[0].operands], type.results, "returned values")


def _agree(found: Sequence[Type], wanted: Sequence[Type], what: str) -> None:
    if len(found) != len(wanted) or not all(compatible(one, other) for one, other in zip(found, wanted, strict=True)):
        raise OperationError(f"{what} of types ({types_text(wanted)}), got ({types_text(found)})")
