"""Attributes: the static facts of an operation.

Strings, booleans, types, tuples (arrays), dictionaries and None (a unit attribute) stand for themselves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from .sizes import Size
from .types import ScalarType, ShapedType, Type

Array: TypeAlias = npt.NDArray[np.generic]
Attribute: TypeAlias = Union[
    bool,
    str,
    Type,
    tuple["Attribute", ...],
    Mapping[str, "Attribute"],
    "IntegerAttr",
    "FloatAttr",
    "SymbolRef",
    "DenseElements",
    "DenseArray",
    "EnumAttr",
    "StructAttr",
    "RawAttr",
    None,
]

MAX_LISTED: Final = 64
"""Longer constants are printed in hexadecimal."""

CONVOLUTION_SIDES: Final = (
    ("input", "b", "batch", "f", "feature"),
    ("kernel", "i", "input_feature", "o", "output_feature"),
    ("output", "b", "batch", "f", "feature"),
)
"""The sides of a convolution's dimension numbers, each with the letters and names of its two named dimensions."""

_BARE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*", re.ASCII)
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f\x7f-\U0010ffff]')


@dataclass(frozen=True, slots=True)
class IntegerAttr:
    """An integer with its type: ``3 : i64``."""

    value: int
    type: Type

    def __str__(self) -> str:
        return f"{self.value} : {self.type}"


@dataclass(frozen=True, slots=True)
class FloatAttr:
    """A number with its type: ``1.0 : f32``."""

    value: float
    type: Type

    def __str__(self) -> str:
        return f"{_number(self.value, self.type)} : {self.type}"


@dataclass(frozen=True, slots=True)
class SymbolRef:
    """The name of a symbol: ``@main``, ``@executable::@entry`` (``::@`` separates the parts here, too)."""

    name: str

    def __str__(self) -> str:
        return "::".join(symbol_text(part) for part in self.name.split("::@"))


@dataclass(frozen=True, slots=True)
class EnumAttr:
    """A case of an enumeration: ``#stablehlo<comparison_direction EQ>``."""

    dialect: str
    kind: str
    case: str

    def __str__(self) -> str:
        return f"#{self.dialect}<{self.kind} {self.case}>"


@dataclass(frozen=True, slots=True, eq=False)
class StructAttr:
    """Named fields: ``#stablehlo.dot<lhs_contracting_dimensions = [1], …>``.

    Attributes:
        name: the name with its dialect.
        fields: integers, numbers, names (as strings), lists of these as tuples, and attributes.
    """

    name: str
    fields: Mapping[str, object]

    def ints(self, field: str) -> tuple[int, ...]:
        """Returns a list of integers; empty if the field is missing."""
        value = self.fields.get(field, ())
        return tuple(item for item in value if isinstance(item, int)) if isinstance(value, tuple) else ()

    def int(self, field: str, default: int = 0) -> int:
        """Returns an integer, or the default if the field is missing."""
        value = self.fields.get(field, default)
        return value if isinstance(value, int) else default

    def __str__(self) -> str:
        if self.name.endswith(".conv"):
            return f"#{self.name}<{convolution_text(self.fields)}>"
        return f"#{self.name}<{', '.join(f'{key} = {_field_text(value)}' for key, value in self.fields.items())}>"


@dataclass(frozen=True, slots=True)
class RawAttr:
    """An attribute of a dialect that is kept verbatim."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, eq=False)
class DenseArray:
    """Elements without a shape: ``array<i64: 0, 1>``. Integers that depend on the call are sizes."""

    element: Type
    values: tuple[int | float | bool | Size, ...]

    def __str__(self) -> str:
        if not self.values:
            return f"array<{self.element}>"
        return f"array<{self.element}: {', '.join(_number(value, self.element) for value in self.values)}>"


@dataclass(frozen=True, slots=True, eq=False)
class DenseElements:
    """A constant tensor: ``dense<[1, 2]> : tensor<2xi32>``.

    Attributes:
        type: the tensor type.
        array: the elements in the type's shape and dtype; all strides are 0 if every element is the same (a splat).
    """

    type: ShapedType
    array: Array

    @classmethod
    def of(cls, array: npt.ArrayLike, type: ShapedType) -> DenseElements:
        """Creates a constant from an array, broadcast to the type's shape; too large floats become infinite."""
        with np.errstate(over="ignore", invalid="ignore"):
            elements = np.asarray(array, type.scalar.dtype)
        return cls(type, np.broadcast_to(elements, type_shape(type)))

    @property
    def is_splat(self) -> bool:
        """Whether the array is one repeated element."""
        return self.array.size > 0 and not any(self.array.strides)

    @property
    def value_text(self) -> str:
        """Returns the text without the type: ``dense<0>``."""
        array, element = self.array, self.type.scalar
        if not array.size:
            return "dense<>"
        if self.is_splat or array.ndim == 0:
            return f"dense<{_element_text(array[(0,) * array.ndim], element)}>"
        if array.size > MAX_LISTED:
            return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}">'
        return f"dense<{_list_text(array, element)}>"

    def __str__(self) -> str:
        return f"{self.value_text} : {self.type}"


def sizes_in(value: Attribute) -> Iterator[Size]:
    """Yields the sizes among the integers of an attribute."""
    if isinstance(value, DenseArray):
        yield from (item for item in value.values if isinstance(item, Size))
    elif isinstance(value, tuple):
        for item in value:
            yield from sizes_in(item)


def type_shape(type: ShapedType) -> tuple[int, ...]:
    """Returns a static shape as integers.

    Raises:
        ValueError: a length is not known.
    """
    lengths = tuple(length for length in type.shape if isinstance(length, int))
    if len(lengths) < type.rank:
        raise ValueError(f"{type} has lengths that are not known")
    return lengths


def string_text(value: str) -> str:
    """Quotes a string, escaped as in MLIR."""

    def escaped(match: re.Match[str]) -> str:
        char = match[0]
        if char in '"\\':
            return "\\" + char
        return "".join(f"\\{byte:02X}" for byte in char.encode("utf-8", "surrogateescape"))

    return f'"{_ESCAPED.sub(escaped, value)}"'


def symbol_text(name: str) -> str:
    """Returns a symbol's name with its sigil, quoted if needed."""
    return f"@{name}" if _BARE.fullmatch(name) else f"@{string_text(name)}"


def key_text(name: str) -> str:
    """Returns a key of a dictionary, quoted if needed."""
    return name if _BARE.fullmatch(name) else string_text(name)


def attribute_text(value: Attribute) -> str:
    """Returns an attribute as MLIR text."""
    if value is None:
        return "unit"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return string_text(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(attribute_text, value))}]"
    if isinstance(value, Mapping):
        return dictionary_text(value)
    return str(value)


def dictionary_text(values: Mapping[str, Attribute]) -> str:
    """Returns a dictionary with its braces; a unit attribute is only its key."""
    items = (
        key_text(key) if value is None else f"{key_text(key)} = {attribute_text(value)}"
        for key, value in values.items()
    )
    return f"{{{', '.join(items)}}}"


def _field_text(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_field_text, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def convolution_text(fields: Mapping[str, object]) -> str:
    """Returns dimension numbers in the short form."""
    lists = []
    for side, first, first_name, second, second_name in CONVOLUTION_SIDES:
        spatial = fields[f"{side}_spatial_dimensions"]
        assert isinstance(spatial, tuple)
        named = {
            fields[f"{side}_{first_name}_dimension"]: first,
            fields[f"{side}_{second_name}_dimension"]: second,
            **{position: str(number) for number, position in enumerate(spatial)},
        }
        lists.append(f"[{', '.join(named[position] for position in range(len(named)))}]")
    return f"{lists[0]}x{lists[1]}->{lists[2]}"


def _list_text(array: Array, element: ScalarType) -> str:
    if array.ndim == 0:
        return _element_text(array.reshape(1)[0], element)
    return f"[{', '.join(_list_text(item, element) for item in array)}]"


def _element_text(value: np.generic, element: ScalarType) -> str:
    if element.kind == "complex":
        number = complex(value.item())
        return f"({_number(number.real, element.part)}, {_number(number.imag, element.part)})"
    return _number(value.item() if element.kind == "bool" else value, element)


def _number(value: object, type: Type) -> str:
    if isinstance(value, Size):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if not isinstance(type, ScalarType) or type.kind != "float":
        return str(int(value))  # type: ignore[call-overload]
    number = float(value)  # type: ignore[arg-type]
    if not math.isfinite(number):
        bits = np.asarray(value, type.dtype).view(f"u{type.dtype.itemsize}")
        return f"0x{int(bits):0{type.dtype.itemsize * 2}X}"
    return _shortest(number, type.dtype)


def _shortest(number: float, dtype: np.dtype[np.generic]) -> str:
    """Formats a number as MLIR does, with six digits after the point or the fewest exact digits."""
    text = f"{number:e}"
    if np.asarray(float(text), dtype) == np.asarray(number, dtype):
        return text
    shortest = np.float32(number) if dtype == np.float32 else np.float64(number)
    return np.format_float_scientific(shortest, trim="0", exp_digits=2)
