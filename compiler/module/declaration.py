"""Reflection attributes of exports: the declaration, and the calling convention."""

from __future__ import annotations

from collections.abc import Sequence

from ...vm.bytecode.declaration import DECLARATION_KEY, TENSOR_KEY
from ..abi.function_abi import Abi, FunctionAbi
from ..ir.operation import Operation
from ..ir.types import FunctionType, ShapedType, TensorType, Type

ASYNC = "$async"
"""The suffix of the names of asynchronous forms."""

REUSES_KEY = "pumice.abi.reuses"
"""The attribute of a storage that lists the arguments whose memory it may share."""


def reflection(function: Operation, reused: Sequence[Sequence[int]], *, is_async: bool) -> dict[str, str]:
    """Returns the reflection attributes of an export.

    Args:
        function: the function, with its types.
        reused: for each result, the numbers of the arguments whose memory it may reuse.
        is_async: whether the export takes storages for the results, a wait fence and a signal fence.
    """
    type = function.attributes["function_type"]
    assert isinstance(type, FunctionType)
    name = function.attributes["sym_name"]
    abi = FunctionAbi.of(function)
    has_outs = is_async or abi.has_outs
    inputs = [
        _declared(f"input{index}", argument, abi.arguments[index], {}) for index, argument in enumerate(type.inputs)
    ]
    results = []
    for index, (argument, kind) in enumerate(zip(type.results, abi.results, strict=True)):
        # A function writes all results to memory, even those returned as numbers.
        way = Abi.VIEW if has_outs and kind is Abi.VALUE else kind
        attributes = {"iree.abi.output": f"{index} : index"} if has_outs else {}
        memories = [str(argument) for argument in reused[index] if abi.arguments[argument] is not Abi.VALUE]
        if has_outs and memories:
            attributes[REUSES_KEY] = f"[{', '.join(memories)}]"
        results.append(_declared(f"output{index}", argument, way, attributes))
    if has_outs:
        inputs, results = inputs + results, []
    values = f"({', '.join(inputs)}) -> ({', '.join(results)})"
    if is_async:
        return {DECLARATION_KEY: f"async func @{name}{ASYNC}{values}", "iree.abi.model": "coarse-fences"}
    return {
        DECLARATION_KEY: f"sync func @{name}{values}",
        "pumice.abi.convention": abi.convention,
        "pumice.abi.type": str(abi.before),
        "pumice.abi.converted": str(abi.after),
    }


def _declared(name: str, type: Type, kind: Abi, attributes: dict[str, str]) -> str:
    shown = str(type)
    if isinstance(type, ShapedType):
        shape = [length if isinstance(length, int) else None for length in type.shape]
        shown = str(type.element) if kind is Abi.VALUE else str(TensorType(shape, type.element))
    if kind is Abi.BUFFER:
        shown, attributes = "!hal.buffer", {**attributes, TENSOR_KEY: shown}
    listed = ", ".join(f"{key} = {value}" for key, value in attributes.items())
    return f"%{name}: {shown} {{{listed}}}" if listed else f"%{name}: {shown}"
