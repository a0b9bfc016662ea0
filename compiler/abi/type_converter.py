"""Conversions of types at the boundary between caller and module, and ABIs of types there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ...status import InvalidArgumentError, shown
from ..ir.source import SourceText
from ..ir.type_parser import TypeParser
from ..ir.types import DialectType, MemRefType, ScalarType, TensorType, Type
from .function_abi import Abi

Role: TypeAlias = Literal["argument", "result", "out"]
"""The use of a type. An out-parameter is an argument whose memory the function writes."""

Conversion: TypeAlias = Callable[[Type], Type | None]
"""Returns a replacement of a type, or None to decline."""

_ROLES: Final[tuple[Role, ...]] = ("argument", "result", "out")
_USER_TYPE: Final = re.compile(r"![A-Za-z_]\w*(?:\.\w+)+", re.ASCII)
_TAKEN: Final = ("!hal.", "!rt.", "!vm.", "!stablehlo.", "!mhlo.")


@dataclass(frozen=True, slots=True)
class TypeAbi:
    """ABIs of a type.

    Attributes:
        argument: the ABI as an argument or as a result's storage; None if the type cannot be an argument.
        result: the ABI as a result; None if the type cannot be a result.
    """

    argument: Abi | None = None
    result: Abi | None = None


class TypeConverter:
    """Conversions of types, and ABIs of users' types.

    Conversions are tried in the order in which they were added (MLIR tries the last one first); the first that does not
    decline decides. If all decline, the type stays unchanged.

    For one thread at a time. A convention copies the converter: later additions do not change it.

    Attributes:
        conversions: the conversions, each with the roles it applies to.
        abis: the ABIs of users' types by name.
    """

    def __init__(self) -> None:
        self.conversions: tuple[tuple[Conversion, tuple[Role, ...]], ...] = ()
        self.abis: Mapping[str, TypeAbi] = {}

    def add(self, conversion: Conversion, roles: Sequence[Role] = _ROLES) -> TypeConverter:
        """Adds a conversion.

        Args:
            conversion: a function that takes a type and returns its replacement, the type itself to keep it, or None to
                decline.
            roles: the roles it applies to: ``"argument"``, ``"result"`` or ``"out"``.

        Returns:
            The converter.

        Raises:
            InvalidArgumentError: the conversion cannot be called, or there is no such role.
        """
        if not callable(conversion):
            raise InvalidArgumentError(f"expected a function from a type to a type, got {shown(conversion)}")
        if isinstance(roles, str) or not roles or any(role not in _ROLES for role in roles):
            raise InvalidArgumentError(f"expected roles among {', '.join(_ROLES)}, got {shown(roles)}")
        self.conversions = (*self.conversions, (conversion, tuple(roles)))
        return self

    def register(self, name: str, *, argument: Abi | None = None, result: Abi | None = None) -> TypeConverter:
        """Gives a user's type an argument ABI, a result ABI or both.

        Args:
            name: the type's name, ``!my.array``, which covers ``!my.array<…>``, too.
            argument: the ABI as an argument or as a result's storage.
            result: the ABI as a result.

        Returns:
            The converter.

        Raises:
            InvalidArgumentError: the name is not that of a user's type, is registered already, or gets no ABI.
        """
        if not isinstance(name, str) or not _USER_TYPE.fullmatch(name) or name.startswith(_TAKEN):
            raise InvalidArgumentError(f"expected the name of a type of your own, such as !my.array, got {shown(name)}")
        if name in self.abis:
            raise InvalidArgumentError(f"{name} is registered already; give its ABIs as argument and result at once")
        if argument is None and result is None:
            raise InvalidArgumentError(f"{name}: expected an argument ABI, a result ABI or both, got none")
        for abi in (argument, result):
            if abi is not None and not isinstance(abi, Abi):
                raise InvalidArgumentError(f"{name}: expected Abi.VIEW, Abi.BUFFER or Abi.VALUE, got {shown(abi)}")
        self.abis = {**self.abis, name: TypeAbi(argument, result)}
        return self


def parse_type(text: str) -> Type:
    """Parses a type, such as ``tensor<?x4xf32>``, ``!my.array<4>`` or ``(f32) -> memref<4xf32>``.

    Raises:
        CompileError: the text is not a type.
    """
    if not isinstance(text, str):
        raise InvalidArgumentError(f"expected the text of a type, got {shown(text)}")
    parser = TypeParser(SourceText(text, "<type>"))
    parsed = parser.type()
    if parser.here() < len(text):
        parser.unexpected("the end of the type")
    return parsed


def abi_of(type: Type, users: Mapping[str, TypeAbi]) -> TypeAbi:
    """Returns the ABIs of a user's type, or of a type that every convention knows."""
    name = str(type).partition("<")[0]
    if isinstance(type, DialectType):
        return users.get(name, _KNOWN.get(type, _NONE))
    if isinstance(type, TensorType | MemRefType):
        return _BOTH[Abi.VIEW]
    is_number = isinstance(type, ScalarType) and type.kind in ("bool", "int", "uint", "float") and type.bits <= 64
    return _BOTH[Abi.VALUE] if is_number else _NONE


_BOTH: Final = {abi: TypeAbi(abi, abi) for abi in Abi}
_NONE: Final = TypeAbi()
_KNOWN: Final = {
    DialectType("!hal.buffer_view"): _BOTH[Abi.VIEW],
    DialectType("!hal.buffer"): _BOTH[Abi.BUFFER],
}


# -- conversions of named conventions --------------------------------------------------------------------


def to_memref(type: Type) -> Type | None:
    """Converts a tensor to the buffer that holds it."""
    return MemRefType(type.shape, type.element, type.encoding) if isinstance(type, TensorType) else None


def to_memory(type: Type) -> Type | None:
    """Converts a number to a buffer, as out-parameters are written."""
    return MemRefType((), type) if isinstance(type, ScalarType) else None


def to_value(type: Type) -> Type | None:
    """Converts a tensor of rank 0 to a number."""
    if not isinstance(type, TensorType | MemRefType) or type.rank or abi_of(type.element, {}) is _NONE:
        return None
    return type.element


def to_buffer(type: Type) -> Type | None:
    """Converts a static tensor to a bare buffer: its caller knows the lengths."""
    return DialectType("!hal.buffer") if isinstance(type, TensorType | MemRefType) and type.is_static else None
