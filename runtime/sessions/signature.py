"""Signatures of program functions: the values that callers pass and receive.

A function's *declaration* (``iree.abi.declaration``) has the types of the source program, its *calling convention*
those of the VM. Without a declaration that fits the convention, arguments are checked only against the convention.
Values are converted in binding.py.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...formats.element_type import ElementType, format_shape_and_type
from ...hal.buffer_view import BufferView
from ...status import InvalidArgumentError
from ...vm.bytecode.calling_convention import CallingConvention
from ...vm.bytecode.declaration import DeclaredValue, FunctionDeclaration
from ..arrays.array import DeviceArray

_OUTPUT: Final = re.compile(r"\d{1,4}(?= : |$)")
_INDICES: Final = re.compile(r"\[(?:\d{1,4}(?:, )?)*\]")
_TYPES: Final = {"i": "i32", "I": "i64", "f": "f32", "F": "f64", "r": "ref"}


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """One result of a function.

    Attributes:
        name: the declared name, or ``result0``.
        letter: the letter of the calling convention.
        declared: the result's declaration, or ``None``.
    """

    name: str
    letter: str
    declared: DeclaredValue | None

    def __str__(self) -> str:
        return f"{self.name}: {self.type_text}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    @property
    def type_text(self) -> str:
        """Its declared type, or its register's: ``tensor<4xf32>``, ``i64``, ``ref``."""
        return self.declared.type_text if self.declared is not None else _TYPES[self.letter]


@dataclass(frozen=True, slots=True, repr=False)
class Argument(Result):
    """One argument of a function; the name is ``argument0`` where none is declared.

    Attributes:
        position: the position, from 0.
        element_type: the element type of a tensor; ``None`` where any is accepted.
        dtypes: the NumPy dtypes that a tensor's array may have; empty where NumPy has none for its elements.
        shape: the shape of a tensor, with ``None`` for dynamic lengths; ``None`` where any is accepted.
        storage: the number of the result that the program writes into it (``iree.abi.output``); ``None`` for inputs.
        reuses: for a storage, the positions of the arguments whose memory it may be (``pumice.abi.reuses``).
    """

    position: int
    element_type: ElementType | None
    dtypes: tuple[np.dtype[np.generic], ...]
    shape: tuple[int | None, ...] | None
    storage: int | None = None
    reuses: tuple[int, ...] = ()

    @classmethod
    def of(cls, name: str, letter: str, declared: DeclaredValue | None, position: int) -> Argument:
        """Returns the declared argument."""
        tensor = declared if declared is not None and declared.is_tensor else None
        element_type = element_type_of(tensor)
        attributes: Mapping[str, str] = {} if declared is None else declared.attributes
        output = _OUTPUT.match(attributes.get("iree.abi.output", ""))
        reuses = attributes.get("pumice.abi.reuses", "")
        return cls(
            declared.name if declared is not None else name,
            letter,
            declared,
            position,
            element_type,
            dtypes_of(element_type),
            tensor.shape if tensor is not None else None,
            int(output[0]) if output is not None and letter == "r" else None,
            tuple(map(int, re.findall(r"\d+", reuses))) if _INDICES.fullmatch(reuses) else (),
        )

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for arguments that accept the same values."""
        return self.letter, self.type_text, self.element_type, self.shape

    @property
    def is_tensor(self) -> bool:
        """Whether the program declares a tensor."""
        return self.declared is not None and self.declared.is_tensor

    def error(self, function: str, value: object, detail: str = "") -> InvalidArgumentError:
        """Returns the error for a ``value`` that differs from the declaration."""
        return InvalidArgumentError(
            f"{function}: argument {self.position} ({self}) got {_describe(value)}{'; ' + detail if detail else ''}"
        )


def element_type_of(declared: DeclaredValue | None) -> ElementType | None:
    """Returns the element type of a declared tensor or scalar; ``None`` if buffers have no such type."""
    if declared is None or declared.element_type is None:
        return None
    text = declared.element_type
    if text == "i1":
        return ElementType.BOOL_8
    if text == "index":
        return ElementType.INT_64
    try:
        return ElementType.parse(text)
    except InvalidArgumentError:
        return None


def dtypes_of(element_type: ElementType | None) -> tuple[np.dtype[np.generic], ...]:
    """Returns the NumPy dtypes for an element type; empty if there are none, or for ``None``."""
    if element_type is None or element_type.dtype is None:
        return ()
    dtype = element_type.dtype
    if element_type is ElementType.INT_4:
        unsigned = ElementType.UINT_4.dtype
        return (dtype,) if unsigned is None else (dtype, unsigned)
    if element_type.name.startswith("INT_"):
        return (dtype, np.dtype(f"u{dtype.itemsize}"))
    return (dtype,)


@dataclass(frozen=True, slots=True, repr=False)
class Signature:
    """Arguments and results of a function.

    Attributes:
        name: the full name.
        arguments, results: the arguments and results in order, without the fences of asynchronous functions.
        convention: the VM's calling convention.
        is_async: whether it takes a wait fence and a signal fence after its arguments, and returns before its work is
            done.
        attributes: the reflection attributes of the export.
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

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The arguments without the storages of results."""
        return tuple([argument for argument in self.arguments if argument.storage is None])

    @property
    def storages(self) -> tuple[Argument, ...]:
        """The storages, in the order of their results."""
        storages = [argument for argument in self.arguments if argument.storage is not None]
        return tuple(sorted(storages, key=lambda argument: argument.storage or 0))

    def without_storages(self) -> Signature:
        """Returns the results for callers who omit the storages, including results that are only written."""
        return replace(self, arguments=self.inputs, results=self.results or self.storages)

    def writes(self, other: Signature) -> bool:
        """Whether it is the signature ``other`` with a storage for each result."""
        return (
            self.is_async
            and not self.results
            and [argument.key for argument in self.inputs] == [argument.key for argument in other.arguments]
            and len(self.storages) == len(other.results)
            and all(_holds(storage, result) for storage, result in zip(self.storages, other.results, strict=True))
        )

    def place(
        self, arguments: tuple[object, ...], named: Mapping[str, object], wanted: Sequence[Argument] | None = None
    ) -> tuple[object, ...]:
        """Returns the values of all arguments by position, including named arguments.

        Or only of the ``wanted`` arguments.
        """
        if wanted is None:
            wanted = self.arguments
        if len(arguments) > len(wanted) or (not named and len(arguments) < len(wanted)):
            raise InvalidArgumentError(f"{self} takes {_count(len(wanted))}, got {len(arguments)}")
        values: dict[int, object] = {
            argument.position: value for argument, value in zip(wanted, arguments, strict=False)
        }
        for name, value in named.items():
            positions = [
                argument.position for argument in wanted if argument.name == name and argument.declared is not None
            ]
            if len(positions) != 1:
                which = "no argument" if not positions else f"{len(positions)} arguments"
                raise InvalidArgumentError(f"{self} has {which} named {name!r}; give it by position")
            if positions[0] in values:
                raise InvalidArgumentError(f"{self} got argument {name!r} twice, by position and by name")
            values[positions[0]] = value
        missing = [str(argument) for argument in wanted if argument.position not in values]
        if missing:
            raise InvalidArgumentError(f"{self} takes {_count(len(wanted))}; missing: {', '.join(missing)}")
        return tuple([values[argument.position] for argument in wanted])


def make_signature(
    name: str, convention: CallingConvention, declaration: FunctionDeclaration | None, attributes: Mapping[str, str]
) -> Signature:
    """Returns the signature of an export."""
    letters = [element for element in convention.arguments if isinstance(element, str)]
    if len(letters) < len(convention.arguments):
        raise InvalidArgumentError(
            f"{name} takes a variable number of arguments ({convention.text}); only programs can call it"
        )
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
        arguments.append(Argument.of(f"argument{position}", letter, declared, position))
    results = []
    for position, letter in enumerate(convention.results):
        declared = declaration.results[position] if declaration is not None else None
        results.append(Result(declared.name if declared is not None else f"result{position}", letter, declared))
    if not _has_storages(arguments, results):
        arguments = [replace(argument, storage=None) for argument in arguments]
    return Signature(name, tuple(arguments), tuple(results), convention, is_async, dict(attributes))


def _holds(storage: Argument, result: Result) -> bool:
    """Whether a storage can hold a result: it has the result's type, or has one element for a number."""
    if result.letter == "r":
        return storage.key == Argument.of(result.name, "r", result.declared, 0).key
    return storage.shape == () and bool(storage.dtypes) and storage.element_type is element_type_of(result.declared)


def _has_storages(arguments: Sequence[Argument], results: Sequence[Result]) -> bool:
    """Whether each storage in the arguments is for a reference result, or without results all results are stored."""
    numbers = sorted(item.storage for item in arguments if item.storage is not None)
    if not results:
        return numbers == list(range(len(numbers)))
    return len(set(numbers)) == len(numbers) and all(
        item < len(results) and results[item].letter == "r" for item in numbers
    )


def shape_text(shape: Sequence[int | None]) -> str:
    """Formats a shape, ``(4, ?)`` with dynamic lengths."""
    text = ", ".join("?" if length is None else str(length) for length in shape)
    return f"({text}{',' if len(shape) == 1 else ''})"


def _describe(value: object) -> str:
    if isinstance(value, (np.ndarray, DeviceArray)):
        return f"an array of shape {tuple(value.shape)} and dtype {value.dtype}"
    if isinstance(value, BufferView):
        return f"a buffer view {format_shape_and_type(value.shape, value.element_type)}"
    text = reprlib.repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


def _count(count: int) -> str:
    return f"{count} argument{'s' if count != 1 else ''}"
