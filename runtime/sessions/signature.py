"""Signatures of program functions: what the caller gives and gets.

A function's *declaration* (``iree.abi.declaration``) has the types of the source program, its *calling convention* those of the
VM. Where there is no declaration that fits, arguments are only held to the convention. How values are converted is in
binding.py.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...formats.element_type import format_shape_and_type
from ...hal_vulkan import BufferView, ElementType
from ...status import InvalidArgumentError
from ...vm.bytecode.calling_convention import CallingConvention
from ...vm.bytecode.declaration import DeclaredValue, FunctionDeclaration, ValueKind
from ..arrays.array import DeviceArray
from ..device import Device
from .binding import argument_binder, dtypes_of, result_unbinder
from .scalar_binding import element_type_of

__all__ = ["Argument", "Result", "Signature", "make_signature"]

_TYPES: Final = {"i": "i32", "I": "i64", "f": "f32", "F": "f64", "r": "ref"}


@dataclass(frozen=True, slots=True, repr=False)
class Argument:
    """One argument of a function.

    Attributes:
        position: from 0.
        name: as declared, or ``argument0``.
        letter: of the calling convention.
        declared: its declaration, if there is one.
        element_type: of a tensor, or ``None`` where any will do.
        dtypes: NumPy dtypes that a tensor's array may have; empty where NumPy has none for its elements.
        shape: of a tensor, ``None`` for dynamic lengths; or ``None``.
    """

    position: int
    name: str
    letter: str
    declared: DeclaredValue | None
    element_type: ElementType | None
    dtypes: tuple[np.dtype[np.generic], ...]
    shape: tuple[int | None, ...] | None

    def __str__(self) -> str:
        return f"{self.name}: {self.type_text}"

    def __repr__(self) -> str:
        return f"<Argument {self}>"

    @property
    def type_text(self) -> str:
        """Its type as declared, or that of its register: ``tensor<4xf32>``, ``i64``, ``ref``."""
        return self.declared.type_text if self.declared is not None else _TYPES[self.letter]

    @property
    def is_tensor(self) -> bool:
        """Whether the program declares a tensor."""
        return self.declared is not None and self.declared.kind is ValueKind.TENSOR

    def error(self, function: str, value: object, detail: str = "") -> InvalidArgumentError:
        """What says that ``value`` is not what was declared."""
        return InvalidArgumentError(
            f"{function}: argument {self.position} ({self}) got {_describe(value)}{'; ' + detail if detail else ''}"
        )

    def binder(
        self, function: str, first: Callable[[], Device], devices: Container[Device] | None = None
    ) -> Callable[[Any], Any]:
        """What makes the VM's value of the caller's; see ``binding.argument_binder``."""
        return argument_binder(self, function, first, devices)


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """One result of a function.

    Attributes:
        name: as declared, or ``result0``.
        letter: of the calling convention.
        declared: its declaration, if there is one.
    """

    name: str
    letter: str
    declared: DeclaredValue | None

    def __str__(self) -> str:
        return f"{self.name}: {self.type_text}"

    def __repr__(self) -> str:
        return f"<Result {self}>"

    @property
    def type_text(self) -> str:
        """Its type as declared, or that of its register."""
        return self.declared.type_text if self.declared is not None else _TYPES[self.letter]

    def unbinder(
        self,
        wrap: Callable[[BufferView], object],
        wrap_known: Callable[[BufferView, np.dtype[np.generic]], object],
    ) -> Callable[[Any], Any]:
        """What makes the caller's value of the VM's; see ``binding.result_unbinder``."""
        return result_unbinder(self, wrap, wrap_known)


@dataclass(frozen=True, slots=True, repr=False)
class Signature:
    """What a function takes and gives.

    Attributes:
        name: full name.
        arguments, results: in order, without the fences of asynchronous functions.
        convention: the VM's calling convention.
        is_async: whether it takes a wait fence and a signal fence behind its arguments, and returns before its work is done.
        attributes: reflection attributes of the export.
    """

    name: str
    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]
    convention: CallingConvention
    is_async: bool
    attributes: dict[str, str]

    def __str__(self) -> str:
        arguments = ", ".join(map(str, self.arguments))
        results = ", ".join(map(str, self.results))
        return f"{'async ' if self.is_async else ''}{self.name}({arguments}) -> ({results})"

    def __repr__(self) -> str:
        return f"<Signature {self}>"

    def place(self, arguments: tuple[object, ...], named: Mapping[str, object]) -> tuple[object, ...]:
        """All arguments in order, those given by name among them.

        Args:
            arguments: given by position.
            named: given by declared name.

        Raises:
            InvalidArgumentError: too many or too few, a name that is not declared, or an argument given twice.
        """
        wanted = self.arguments
        if len(arguments) > len(wanted) or (not named and len(arguments) < len(wanted)):
            raise InvalidArgumentError(f"{self} takes {_count(len(wanted))}, got {len(arguments)}")
        values: dict[int, object] = dict(enumerate(arguments))
        for name, value in named.items():
            positions = [one.position for one in wanted if one.name == name and one.declared is not None]
            if len(positions) != 1:
                which = "no argument" if not positions else f"{len(positions)} arguments"
                raise InvalidArgumentError(f"{self} has {which} named {name!r}; give it by position")
            if positions[0] in values:
                raise InvalidArgumentError(f"{self} got argument {name!r} twice, by position and by name")
            values[positions[0]] = value
        missing = [str(one) for one in wanted if one.position not in values]
        if missing:
            raise InvalidArgumentError(f"{self} takes {_count(len(wanted))}; missing: {', '.join(missing)}")
        return tuple([values[position] for position in range(len(wanted))])


def make_signature(
    name: str, convention: CallingConvention, declaration: FunctionDeclaration | None, attributes: dict[str, str]
) -> Signature:
    """The signature of an export.

    Raises:
        InvalidArgumentError: repeated arguments, which only programs can pass.
    """
    letters: list[str] = []
    for element in convention.arguments:
        if not isinstance(element, str):
            raise InvalidArgumentError(
                f"{name} takes a variable number of arguments ({convention.text}); only programs can call it"
            )
        letters.append(element)
    if declaration is not None and not declaration.fits(convention):
        declaration = None
    is_async = declaration.is_async if declaration is not None else attributes.get("iree.abi.model") == "coarse-fences"
    if is_async and letters[-2:] != ["r", "r"]:
        is_async = False
    if is_async:
        letters = letters[:-2]
    arguments = []
    for position, letter in enumerate(letters):
        declared = declaration.arguments[position] if declaration is not None else None
        tensor = declared if declared is not None and declared.kind is ValueKind.TENSOR else None
        element_type = element_type_of(tensor)
        arguments.append(
            Argument(
                position,
                declared.name if declared is not None else f"argument{position}",
                letter,
                declared,
                element_type,
                dtypes_of(element_type),
                tensor.shape if tensor is not None else None,
            )
        )
    results = []
    for position, letter in enumerate(convention.results):
        declared = declaration.results[position] if declaration is not None else None
        results.append(Result(declared.name if declared is not None else f"result{position}", letter, declared))
    return Signature(name, tuple(arguments), tuple(results), convention, is_async, attributes)


def _count(count: int) -> str:
    return f"{count} argument{'s' if count != 1 else ''}"


def _describe(value: object) -> str:
    if isinstance(value, (np.ndarray, DeviceArray)):
        return f"an array of shape {tuple(value.shape)} and dtype {value.dtype}"
    if isinstance(value, BufferView):
        return f"a buffer view {format_shape_and_type(value.shape, value.element_type)}"
    text = reprlib.repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
