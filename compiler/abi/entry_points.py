"""ABIs of entry points, the functions that a module exports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Final

from ...status import InvalidArgumentError
from ..conversion.preparation import is_user_type
from ..dialects.rules.requirements import OperationError
from ..ir.operation import Operation
from ..ir.source import SourceText
from ..ir.types import FunctionType, TensorType, Type
from .calling_convention import NAMED, CallingConvention, ConventionError
from .function_abi import ABI, DEFAULT, FunctionAbi

_ARGUMENT: Final = re.compile(r"%[\w$.-]+\s*:", re.ASCII)


def give_abis(
    functions: Mapping[str, Operation],
    written: Mapping[str, FunctionType],
    convention: CallingConvention | None,
    source: SourceText,
) -> None:
    """Sets the attribute ``pumice.abi`` of public functions of tensors whose ABI is not the default.

    Args:
        functions: the functions by name.
        written: the functions' types in the program, with users' types.
        convention: the convention to apply; None for a function's own convention, or else the default.
        source: the program's text, for errors.

    Raises:
        CompileError: an argument or a result has no ABI by the convention, or a function already has another
            convention.
    """
    check_abis({name: tensor for name, tensor in functions.items() if ABI in tensor.attributes}, convention, source)
    for name, function in functions.items():
        tensors = function.attributes["function_type"]
        is_entry = bool(function.regions) and function.attributes.get("sym_visibility") != "private"
        assert isinstance(tensors, FunctionType)
        # The canonical stage rejects other functions with an error of its own.
        if not is_entry or not all(isinstance(tensor, TensorType) for tensor in (*tensors.inputs, *tensors.results)):
            continue
        type = _merged(written[name], tensors)
        if ABI in function.attributes or (convention in (None, NAMED[DEFAULT]) and type is tensors):
            continue
        try:
            abi = (convention or NAMED[DEFAULT]).abi(type, tensors)
        except InvalidArgumentError as error:
            raise source.error(_place(function, type, error, source.text), f"@{name}: {error.message}") from error
        function.attributes[ABI] = abi.attribute()


def check_abis(functions: Mapping[str, Operation], convention: CallingConvention | None, source: SourceText) -> None:
    """Checks the ABIs of functions that were read with one: they must fit, and be of the same convention.

    Raises:
        CompileError: an ABI does not fit, or belongs to another convention; the error is at the function.
    """
    for function in functions.values():
        try:
            has = FunctionAbi.of(function).convention
            if convention is not None and convention.name != has:
                raise OperationError(f"the calling convention {has}, which it was compiled with, got {convention.name}")
        except OperationError as error:
            raise source.error(max(function.location.offset, 0), f"func.func expects {error.expected}") from None


def _merged(written: FunctionType, tensors: FunctionType) -> FunctionType:
    """Returns the type of a function of tensors, with users' types from the program."""

    def merged(before: tuple[Type, ...], after: tuple[Type, ...]) -> list[Type]:
        return [user if is_user_type(user) else tensor for user, tensor in zip(before, after, strict=True)]

    return FunctionType(merged(written.inputs, tensors.inputs), merged(written.results, tensors.results))


def _place(function: Operation, type: FunctionType, error: InvalidArgumentError, text: str) -> int:
    """Returns the offset of the argument or result type that an error is about, or else of the function."""
    start = max(function.location.offset, 0)
    if not isinstance(error, ConventionError) or error.role is None:
        return start
    # The first names with a colon after the function's name are its arguments.
    arguments = islice(_ARGUMENT.finditer(text, start), len(type.inputs))
    places = [match.start() for match in arguments]
    if error.role == "argument":
        return places[error.index] if error.index < len(places) else start
    offset = text.find("->", max(places, default=start))
    for result in type.results[: error.index + 1] if offset >= 0 else ():
        offset = max(text.find(str(result), offset + 1), offset)
    return max(offset, start)
