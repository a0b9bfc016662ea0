"""What a function declares of each argument and result."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...formats.element_type import format_shape_and_type
from ...hal_vulkan import BufferView, ElementType
from ...status import InvalidArgumentError
from ...vm.bytecode.declaration import DeclaredValue, ValueKind
from ..arrays.array import DeviceArray

_TYPES: Final = {"i": "i32", "I": "i64", "f": "f32", "F": "f64", "r": "ref"}


@dataclass(frozen=True, slots=True, repr=False)
class _Declared:
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
class Argument(_Declared):
    """One argument of a function.

    Attributes:
        name: as declared, or ``argument0``.
        letter: of the calling convention.
        declared: its declaration, or ``None``.
        position: from 0.
        element_type: of a tensor; ``None`` where any is accepted.
        dtypes: NumPy dtypes that a tensor's array may have; empty where NumPy has none for its elements.
        shape: of a tensor, with ``None`` for dynamic lengths; ``None`` where any is accepted.
    """

    position: int
    element_type: ElementType | None
    dtypes: tuple[np.dtype[np.generic], ...]
    shape: tuple[int | None, ...] | None

    @property
    def is_tensor(self) -> bool:
        """Whether the program declares a tensor."""
        return self.declared is not None and self.declared.kind is ValueKind.TENSOR

    def error(self, function: str, value: object, detail: str = "") -> InvalidArgumentError:
        """The error that ``value`` is not what is declared."""
        return InvalidArgumentError(
            f"{function}: argument {self.position} ({self}) got {_describe(value)}{'; ' + detail if detail else ''}"
        )


@dataclass(frozen=True, slots=True, repr=False)
class Result(_Declared):
    """One result of a function.

    Attributes:
        name: as declared, or ``result0``.
        letter: of the calling convention.
        declared: its declaration, or ``None``.
    """


def element_type_of(declared: DeclaredValue | None) -> ElementType | None:
    """The element type of a declared tensor or scalar; ``None`` if there is none or buffers have no such type."""
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
    """The NumPy dtypes for an element type; empty where there are none, or for ``None``."""
    if element_type is None or element_type.dtype is None:
        return ()
    dtype = element_type.dtype
    if element_type is ElementType.INT_4:
        unsigned = ElementType.UINT_4.dtype
        return (dtype,) if unsigned is None else (dtype, unsigned)
    if element_type.name.startswith("INT_"):
        return (dtype, np.dtype(f"u{dtype.itemsize}"))
    return (dtype,)


def _describe(value: object) -> str:
    if isinstance(value, (np.ndarray, DeviceArray)):
        return f"an array of shape {tuple(value.shape)} and dtype {value.dtype}"
    if isinstance(value, BufferView):
        return f"a buffer view {format_shape_and_type(value.shape, value.element_type)}"
    text = reprlib.repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
