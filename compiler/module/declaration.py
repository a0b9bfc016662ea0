"""What the exports of a function say about it: its declaration, and how it is called."""

from __future__ import annotations

from ...vm.bytecode.declaration import DECLARATION_KEY
from ..function_abi import FunctionAbi
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
    inputs = [f"%input{index}: {_shown(each)}" for index, each in enumerate(type.inputs)]
    results = [f"%output{index}: {_shown(each)}" for index, each in enumerate(type.results)]
    if is_async or FunctionAbi.of(function).has_outs:
        inputs += [f"{each} {{iree.abi.output = {index} : index}}" for index, each in enumerate(results)]
        results = []
    values = f"({', '.join(inputs)}) -> ({', '.join(results)})"
    if is_async:
        return {DECLARATION_KEY: f"async func @{name}{ASYNC}{values}", "iree.abi.model": "coarse-fences"}
    return {DECLARATION_KEY: f"sync func @{name}{values}"}


def _shown(type: Type) -> str:
    if not isinstance(type, ShapedType):
        return str(type)
    return str(TensorType([length if isinstance(length, int) else None for length in type.shape], type.element))
