"""Types of buffers' elements, and the layout of their values in memory.

Numbers, vectors, matrices, arrays and structures are laid out by the rules of GLSL's ``std140`` and ``std430`` (OpenGL
specification 4.6, section 7.6.2.2), with the rules of Amber's own layout: an element of a vector of three takes the
space of four, and a type without ``[]`` is not padded to 16 bytes. Image formats are as Vulkan names them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import numpy as np

from ..base.lazy_dataclass import dataclass
from ..formats.image_format import ImageFormat as TexelFormat

Kind: TypeAlias = Literal["int", "uint", "float"]
Standard: TypeAlias = Literal["STD140", "STD430"]

_SCALARS: Final[dict[str, tuple[Kind, int]]] = {
    **{f"{sign}int{bits}": ("uint" if sign else "int", bits) for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float16": ("float", 16),
    "float": ("float", 32),
    "double": ("float", 64),
}
_NUMBER: Final = re.compile(r"(?:vec([234])<(\w+)>|mat([234])x([234])<(\w+)>|(\w+?))(?:\[([0-9]{0,9})\])?")
_PACK: Final = re.compile(r"_PACK(8|16|32)$")
_TEXEL_KINDS: Final[Mapping[str, Kind]] = {"float": "float", **dict.fromkeys(("snorm", "sint", "sscaled"), "int")}
MAX_LENGTH: Final = 1 << 16
"""The limit for arrays within an element; a forged length would take all memory."""
NUMBER_NAMES: Final = (*_SCALARS, *(f"vec{n}<float>" for n in (2, 3, 4)), "mat2x2<float>")


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar, vector (``rows``), or matrix (``columns`` of ``rows``); ``length`` for arrays, 0 if of any length."""

    kind: Kind
    bits: int
    rows: int = 1
    columns: int = 1
    length: int | None = None

    def __str__(self) -> str:
        scalar = next(name for name, kind_and_bits in _SCALARS.items() if kind_and_bits == (self.kind, self.bits))
        if self.columns > 1:
            scalar = f"mat{self.columns}x{self.rows}<{scalar}>"
        elif self.rows > 1:
            scalar = f"vec{self.rows}<{scalar}>"
        return scalar if self.length is None else f"{scalar}[{self.length or ''}]"


@dataclass(frozen=True, slots=True)
class ImageFormat:
    """An image format by Vulkan's name, such as ``R8G8B8A8_UNORM``."""

    texels: TexelFormat

    @property
    def packed(self) -> int:
        """The bits of the word that scripts write for all channels, or 0."""
        return 8 * self.texels.texel_bytes if _PACK.search(str(self)) else 0

    def __str__(self) -> str:
        return self.texels.vulkan_name.upper()


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a structure; fields that are ``None`` follow from the rules of the layout."""

    name: str
    type: Number | ImageFormat | Struct
    offset: int | None = None
    array_stride: int | None = None
    matrix_stride: int | None = None


@dataclass(frozen=True, slots=True)
class Struct:
    """A structure; ``stride`` is the bytes from one element to the next if the script sets it."""

    name: str
    members: tuple[Member, ...]
    stride: int | None = None

    def __str__(self) -> str:
        return self.name


DataType: TypeAlias = Number | ImageFormat | Struct


@dataclass(frozen=True, slots=True)
class Segment:
    """One value of an element: its byte offset and its form in memory."""

    offset: int
    kind: Kind
    bits: int

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return np.dtype(f"<{ {'int': 'i', 'uint': 'u', 'float': 'f'}[self.kind] }{self.bits // 8}")


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of an element's values, in the order in which scripts write them; ``size`` is in bytes."""

    segments: tuple[Segment, ...]
    size: int


def parse_type(text: str, structs: Mapping[str, Struct]) -> DataType | None:
    """Returns the type with a name, or ``None``."""
    if text in structs:
        return structs[text]
    match = _NUMBER.fullmatch(text)
    if match is not None:
        rows, of_vector, columns, matrix_rows, of_matrix, scalar, length = match.groups()
        kind_and_bits = _SCALARS.get(of_vector or of_matrix or scalar)
        if kind_and_bits is not None and int(length or 0) <= MAX_LENGTH:
            return Number(*kind_and_bits, int(rows or matrix_rows or 1), int(columns or 1), _length(length))
    return parse_format(text)


def _length(text: str | None) -> int | None:
    return None if text is None else int(text or 0)


def parse_format(name: str) -> ImageFormat | None:
    """Returns the image format of a name; ``None`` for unknown formats, compressed formats and shared exponents."""
    if not name.isupper() or not TexelFormat.is_name(name):
        return None
    texels = TexelFormat.parse(name)
    plain = not texels.is_compressed and all(channel != "e" for channel, _ in texels.fields)
    return ImageFormat(texels) if plain and texels.vulkan_name.upper() == name else None


def format_of(number: Number) -> str:
    """Returns the name of the image format for texels declared as ``DATA_TYPE``."""
    mode = {"int": "SINT", "uint": "UINT", "float": "SFLOAT"}[number.kind]
    return "".join(f"{channel}{number.bits}" for channel in "RGBA"[: number.rows]) + f"_{mode}"


@functools.cache
def layout_of(type: DataType, standard: Standard) -> Layout:
    """Returns the layout of one element of a buffer."""
    segments: list[Segment] = []
    size = _place_member(Member("", type), 0, segments, standard)
    if isinstance(type, Number):
        size = _round_up(size, _alignment(type, standard))
    return Layout(tuple(segments), size)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _alignment(type: DataType, standard: Standard) -> int:
    if isinstance(type, ImageFormat):
        return max(1, (type.packed or type.texels.fields[0][1]) // 8)
    if isinstance(type, Struct):
        most = max((_alignment(member.type, standard) for member in type.members), default=1)
        return _round_up(most, 16) if standard == "STD140" else most
    alignment = type.bits // 8 * (4 if type.rows == 3 else type.rows)
    rounded = type.columns > 1 or type.length is not None
    return _round_up(alignment, 16) if rounded and standard == "STD140" else alignment


def _place_texel(texels: TexelFormat, packed: int, offset: int, segments: list[Segment]) -> int:
    """Appends the segments of a texel: its channels, or the word that scripts write for all; returns its bytes."""
    bits_before = 0
    for channel, bits in texels.fields:
        if packed or bits == 24:  # depth beside stencil: a word of both
            segments.append(Segment(offset, "uint", packed or 32))
            break
        kind = "uint" if channel == "s" else _TEXEL_KINDS.get(texels.kind, "uint")
        segments.append(Segment(offset + bits_before // 8, kind, bits))
        bits_before += bits
    return texels.texel_bytes


def _place_number(
    number: Number, offset: int, segments: list[Segment], standard: Standard, matrix_stride: int | None
) -> int:
    """Appends the segments of a number that is not an array; returns its bytes."""
    scalar = number.bits // 8
    stride = matrix_stride if matrix_stride is not None else _alignment(number, standard)
    for column in range(number.columns):
        start = offset + column * stride
        segments += [Segment(start + i * scalar, number.kind, number.bits) for i in range(number.rows)]
    return number.rows * scalar if number.columns == 1 else number.columns * stride


def _place_struct(struct: Struct, offset: int, segments: list[Segment], standard: Standard) -> int:
    """Appends the segments of a structure; returns its bytes up to the end of its last member."""
    end = 0
    for member in struct.members:
        start = member.offset if member.offset is not None else _round_up(end, _alignment(member.type, standard))
        end = max(end, start + _place_member(member, offset + start, segments, standard))
    return end


def _place_member(member: Member, offset: int, segments: list[Segment], standard: Standard) -> int:
    type = member.type
    if isinstance(type, ImageFormat):
        return _place_texel(type.texels, type.packed, offset, segments)
    if isinstance(type, Struct):
        size = _place_struct(type, offset, segments, standard)
        return type.stride if type.stride is not None else _round_up(size, _alignment(type, standard))
    number = Number(type.kind, type.bits, type.rows, type.columns)
    if type.length is None:
        return _place_number(number, offset, segments, standard, member.matrix_stride)
    stride = member.array_stride
    if stride is None:
        stride = _round_up(_place_number(number, 0, [], standard, member.matrix_stride), _alignment(type, standard))
    for index in range(max(type.length, 1)):
        _place_number(number, offset + index * stride, segments, standard, member.matrix_stride)
    return max(type.length, 1) * stride
