"""What the exports of a function say about it: its declaration, and how it is called."""

from __future__ import annotations

from ...vm.bytecode.declaration import DECLARATION_KEY
from ..function_abi import Abi, FunctionAbi
from ..ir.operation import Operation
from ..ir.types import FunctionType, ShapedType, TensorType, Type

ASYNC = "$async"
"""What the name of an asynchronous form ends with."""


def reflection(function: Operation, *, is_async: bool) -> dict[str, str]:
    """The attributes of an export of a function.

    Args:
        function: with its types.
        is_async: whether the export takes storages for the results, a wait fence and a signal fence.
    """
    type = function.attributes["function_type"]
    assert isinstance(type, FunctionType)
    name = function.attributes["sym_name"]
    abi = FunctionAbi.of(function)
    has_outs = is_async or abi.has_outs
    inputs = [f"%input{index}: {each}" for index, each in enumerate(map(_shown, type.inputs, abi.arguments))]
    results = []
    for index, (each, kind) in enumerate(zip(type.results, abi.results, strict=True)):
        # What a function writes is memory, also of what is returned as a number.
        shown = _shown(each, Abi.VIEW if has_outs and kind is Abi.VALUE else kind)
        results.append(f"%output{index}: {shown}")
    if has_outs:
        inputs += [f"{each} {{iree.abi.output = {index} : index}}" for index, each in enumerate(results)]
        results = []
    values = f"({', '.join(inputs)}) -> ({', '.join(results)})"
    if is_async:
        return {DECLARATION_KEY: f"async func @{name}{ASYNC}{values}", "iree.abi.model": "coarse-fences"}
    return {
        DECLARATION_KEY: f"sync func @{name}{values}",
        "pumice.abi.convention": abi.convention,
        "pumice.abi.type": str(abi.before),
        "pumice.abi.converted": str(abi.after),
    }


def _shown(type: Type, kind: Abi) -> str:
    if not isinstance(type, ShapedType):
        return str(type)
    if kind is Abi.BUFFER:
        return "!hal.buffer"
    if kind is Abi.VALUE:
        return str(type.element)
    return str(TensorType([length if isinstance(length, int) else None for length in type.shape], type.element))
