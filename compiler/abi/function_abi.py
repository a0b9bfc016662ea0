"""How calls of an exported function pass its arguments and results through the virtual machine.

A convention (``calling_convention``) decides it. The function carries it from stage to stage in one attribute, and the
module is written by it; a function without the attribute has the default, in which everything is a buffer view.
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
"""The attribute of a function."""

DEFAULT: Final = "default"
"""The convention of functions without the attribute."""

CONTEXT: Final = DialectType("!rt.kernel_context")
"""The type of the first argument of every function with an ABI: the state of its module, which takes no register."""

Shaped = TypeVar("Shaped", bound=ShapedType)


class Abi(enum.Enum):
    """How one value crosses the boundary."""

    VIEW = "view"
    """As a ``!hal.buffer_view``, whose shape and element type are checked."""

    BUFFER = "buffer"
    """As a bare ``!hal.buffer``, whose size is checked. The tensor's shape has to be static."""

    VALUE = "value"
    """As a number in a register (``i``, ``I``, ``f`` or ``F``). The tensor has to be without dimensions."""


@dataclass(frozen=True, slots=True)
class FunctionAbi:
    """What a function takes and gives at the boundary.

    Attributes:
        convention: its name.
        before: the type that the program gives the function.
        after: its type by the convention, with the context and, where it has them, out-parameters.
        arguments: how each of the program's arguments is passed.
        results: how each of its results is; of out-parameters, how the storage is.
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
        """The default for a function of tensors, or of the buffers that hold them."""
        inputs, results = type.inputs, type.results
        before = FunctionType(_open(inputs, TensorType), _open(results, TensorType))
        after = FunctionType([CONTEXT, *_open(inputs, MemRefType)], _open(results, MemRefType))
        return cls(DEFAULT, before, after, (Abi.VIEW,) * len(inputs), (Abi.VIEW,) * len(results))

    @classmethod
    def of(cls, function: Operation) -> FunctionAbi:
        """The ABI that a function carries.

        Raises:
            OperationError: the attribute is not as ``attribute`` writes it, or does not fit the function's type.
        """
        type = function.attributes["function_type"]
        assert isinstance(type, FunctionType)
        if ABI not in function.attributes:
            return cls.default(type)
        given = function.attributes[ABI]
        fields: Mapping[str, Attribute] = given if isinstance(given, Mapping) else {}
        before, after, name = fields.get("before"), fields.get("after"), fields.get("convention")
        if not (isinstance(before, FunctionType) and isinstance(after, FunctionType) and isinstance(name, str)):
            raise OperationError(f"{ABI} with a convention, which is a name, and before and after, types of functions")
        arguments = _kinds(fields.get("arguments"), type.inputs)
        results = _kinds(fields.get("results"), type.results)
        found = cls(name, before, after, arguments, results, "outs" in fields)
        is_whole = (len(before.inputs), len(before.results)) == (len(arguments), len(results))
        if not is_whole or found.attribute() != dict(fields):
            raise OperationError(f"{ABI} with ways to pass each argument and result of before, and outs or nothing")
        if found.has_outs and Abi.VALUE in results:
            raise OperationError(f"{ABI} with out-parameters that are memory, got a value")
        return found

    def attribute(self) -> dict[str, Attribute]:
        """The attribute ``pumice.abi`` of a function with this ABI."""
        made: dict[str, Attribute] = {
            "convention": self.convention,
            "before": self.before,
            "after": self.after,
            "arguments": tuple(each.value for each in self.arguments),
            "results": tuple(each.value for each in self.results),
        }
        return {**made, "outs": None} if self.has_outs else made


def misfit(abi: Abi, tensor: ShapedType) -> str | None:
    """Why a tensor cannot cross the boundary in a way; None if it can."""
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


def _kinds(given: Attribute, types: Sequence[Type]) -> tuple[Abi, ...]:
    """Ways to cross the boundary that an attribute lists, each held against the type of what crosses."""
    names = given if isinstance(given, tuple) else ()
    known = {each.value: each for each in Abi}
    if len(names) != len(types) or not all(isinstance(name, str) and name in known for name in names):
        raise OperationError(f"{ABI} with one of {', '.join(known)} for each argument and result")
    kinds = tuple(known[str(name)] for name in names)
    for kind, type in zip(kinds, types, strict=True):
        problem = misfit(kind, type) if isinstance(type, ShapedType) else f"got {type}"
        if problem is not None:
            raise OperationError(f"tensors that cross the boundary as {ABI} says: {problem}")
    return kinds


def _open(types: Sequence[Type], kind: type[Shaped]) -> list[Type]:
    """Types of a kind; lengths that depend on the call are open."""
    return [
        kind([length if isinstance(length, int) else None for length in type.shape], type.element, type.encoding)
        if isinstance(type, ShapedType)
        else type
        for type in types
    ]
