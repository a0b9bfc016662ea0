"""The ABI of a function: how its arguments and results are passed through the virtual machine.

A convention (``calling_convention``) decides it. From stage to stage it is an attribute of the function; without the
attribute a function has the default, in which everything is a buffer view.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from ..dialects.rules.requirements import OperationError
from ..ir.attributes import Attribute
from ..ir.element_types import element_type
from ..ir.operation import Operation
from ..ir.types import DialectType, FunctionType, MemRefType, ScalarType, ShapedType, TensorType, Type

ABI: Final = "pumice.abi"
"""The name of the attribute."""

DEFAULT: Final = "default"
"""The convention of functions without the attribute."""

CONTEXT: Final = DialectType("!rt.kernel_context")
"""The type of the first argument of every function with an ABI: the state of its module. It takes no register."""

Shaped = TypeVar("Shaped", bound=ShapedType)


class Abi(enum.Enum):
    """The way in which a value crosses the boundary."""

    VIEW = "view"
    """As a ``!hal.buffer_view``, whose shape and element type are checked."""

    BUFFER = "buffer"
    """As a bare ``!hal.buffer``, whose size is checked. The tensor's shape must be static."""

    VALUE = "value"
    """As a number in a register (``i``, ``I``, ``f`` or ``F``). The tensor must have no dimensions."""


@dataclass(frozen=True, slots=True)
class FunctionAbi:
    """The arguments and results of a function at the boundary.

    Attributes:
        convention: the convention's name.
        before: the function's type in the program.
        after: the function's type by the convention, with the context and any out-parameters.
        arguments: for each argument, the way it is passed.
        results: for each result, the way it is returned, or the way the storage of its out-parameter is passed.
        has_outs: whether results are out-parameters after the arguments.
    """

    convention: str
    before: FunctionType
    after: FunctionType
    arguments: tuple[Abi, ...]
    results: tuple[Abi, ...]
    has_outs: bool = False

    @classmethod
    def default(cls, type: FunctionType) -> FunctionAbi:
        """Returns the default for a function of tensors, or of the buffers that hold them."""
        inputs, results = type.inputs, type.results
        before = FunctionType(_open(inputs, TensorType), _open(results, TensorType))
        after = FunctionType([CONTEXT, *_open(inputs, MemRefType)], _open(results, MemRefType))
        return cls(DEFAULT, before, after, (Abi.VIEW,) * len(inputs), (Abi.VIEW,) * len(results))

    @classmethod
    def of(cls, function: Operation) -> FunctionAbi:
        """Returns the ABI of a function's attribute, or the default.

        Raises:
            OperationError: the attribute does not have the form that ``attribute`` returns, or does not fit the
                function's type.
        """
        type = function.attributes["function_type"]
        assert isinstance(type, FunctionType)
        if ABI not in function.attributes:
            return cls.default(type)
        attribute = function.attributes[ABI]
        fields: Mapping[str, Attribute] = attribute if isinstance(attribute, Mapping) else {}
        before, after, name = fields.get("before"), fields.get("after"), fields.get("convention")
        if not (isinstance(before, FunctionType) and isinstance(after, FunctionType) and isinstance(name, str)):
            raise OperationError(f"{ABI} with a convention, which is a name, and before and after, types of functions")
        arguments = _kinds(fields.get("arguments"), type.inputs)
        results = _kinds(fields.get("results"), type.results)
        abi = cls(name, before, after, arguments, results, "outs" in fields)
        is_whole = (len(before.inputs), len(before.results)) == (len(arguments), len(results))
        if not is_whole or abi.attribute() != dict(fields):
            raise OperationError(f"{ABI} with ways to pass each argument and result of before, and outs or nothing")
        if abi.has_outs and Abi.VALUE in results:
            raise OperationError(f"{ABI} with out-parameters that are memory, got a value")
        return abi

    def attribute(self) -> dict[str, Attribute]:
        """Returns the attribute ``pumice.abi`` of a function with this ABI."""
        made: dict[str, Attribute] = {
            "convention": self.convention,
            "before": self.before,
            "after": self.after,
            "arguments": tuple(kind.value for kind in self.arguments),
            "results": tuple(kind.value for kind in self.results),
        }
        return {**made, "outs": None} if self.has_outs else made


def misfit(abi: Abi, tensor: ShapedType) -> str | None:
    """Returns why a tensor cannot cross the boundary in this way; None if it can."""
    scalar = tensor.element
    if not isinstance(scalar, ScalarType) or element_type(scalar) is None:
        return f"buffers have no elements of {scalar}"
    if abi is Abi.BUFFER and not tensor.is_static:
        return f"a bare buffer does not tell the lengths of {tensor}"
    if abi is Abi.VALUE and tensor.rank:
        return f"a register holds one number, and {tensor} has {tensor.rank} dimension{'s' * (tensor.rank > 1)}"
    if abi is Abi.VALUE and scalar.kind not in ("bool", "int", "uint", "float"):
        return f"registers hold integers and floats, and no {scalar}"
    return None


def _kinds(attribute: Attribute, types: Sequence[Type]) -> tuple[Abi, ...]:
    """Reads a list of ways to cross the boundary, and checks each against its type."""
    names = attribute if isinstance(attribute, tuple) else ()
    known = {abi.value: abi for abi in Abi}
    if len(names) != len(types) or not all(isinstance(name, str) and name in known for name in names):
        raise OperationError(f"{ABI} with one of {', '.join(known)} for each argument and result")
    kinds = tuple(known[str(name)] for name in names)
    for kind, type in zip(kinds, types, strict=True):
        problem = misfit(kind, type) if isinstance(type, ShapedType) else f"got {type}"
        if problem is not None:
            raise OperationError(f"tensors that cross the boundary as {ABI} says: {problem}")
    return kinds


def _open(types: Sequence[Type], kind: type[Shaped]) -> list[Type]:
    """Converts shaped types to a kind, with ``?`` for call-dependent lengths."""
    return [
        kind([length if isinstance(length, int) else None for length in type.shape], type.element, type.encoding)
        if isinstance(type, ShapedType)
        else type
        for type in types
    ]
