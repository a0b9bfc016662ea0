"""Types of buffers' elements, and where their values lie in memory.

Numbers, vectors, matrices, arrays and structures are laid out by the rules of GLSL's ``std140`` and ``std430``
(OpenGL specification 4.6, section 7.6.2.2), with what Amber's own layout adds: an element of a vector of three takes
the room of four, and a type without ``[]`` is not padded to 16 bytes. Image formats are as Vulkan names them.
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
_MODES: Final = {
    **{kind: kind.upper() for kind in ("unorm", "snorm", "uscaled", "sscaled", "uint", "sint", "srgb", "ufloat")},
    "float": "SFLOAT",
}
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
class Channel:
    """A channel of an image format; ``shift`` is its lowest bit in the texel, in little-endian order."""

    name: str
    bits: int
    mode: str
    shift: int


@dataclass(frozen=True, slots=True)
class ImageFormat:
    """A Vulkan format such as ``R8G8B8A8_UNORM``; ``packed`` is the bits of the word that holds all channels, or 0."""

    name: str
    channels: tuple[Channel, ...]
    packed: int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a structure; what is ``None`` follows from the rules of the layout."""

    name: str
    type: Number | ImageFormat | Struct
    offset: int | None = None
    array_stride: int | None = None
    matrix_stride: int | None = None


@dataclass(frozen=True, slots=True)
class Struct:
    """A structure; ``stride`` is the bytes from one element to the next where the script gives them."""

    name: str
    members: tuple[Member, ...]
    stride: int | None = None

    def __str__(self) -> str:
        return self.name


DataType: TypeAlias = Number | ImageFormat | Struct


@dataclass(frozen=True, slots=True)
class Segment:
    """One value of an element: its byte offset and how it is stored."""

    offset: int
    kind: Kind
    bits: int

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """NumPy's type of it."""
        return np.dtype(f"<{ {'int': 'i', 'uint': 'u', 'float': 'f'}[self.kind] }{self.bits // 8}")


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of an element's values, in the order in which scripts write them; ``size`` is in bytes."""

    segments: tuple[Segment, ...]
    size: int


def parse_type(text: str, structs: Mapping[str, Struct]) -> DataType | None:
    """Returns the type that a name stands for, or ``None``."""
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


@functools.cache
def parse_format(name: str) -> ImageFormat | None:
    """Returns the image format of a name, or ``None``; compressed ones and shared exponents have no channels of their
    own.
    """
    if not name.isupper() or not TexelFormat.is_name(name):
        return None
    image_format = TexelFormat.parse(name)
    if (
        image_format.vulkan_name.upper() != name
        or image_format.is_compressed
        or any(channel == "e" for channel, _ in image_format.fields)
    ):
        return None
    channels = []
    shift = 0
    for channel, bits in image_format.fields:
        channels.append(Channel(channel.upper(), bits, "UINT" if channel == "s" else _MODES[image_format.kind], shift))
        shift += bits
    return ImageFormat(name, tuple(channels), shift if _PACK.search(name) else 0)


def format_of(number: Number) -> str:
    """Returns the name of the image format whose texels are such numbers, as images by ``DATA_TYPE`` have them."""
    mode = {"int": "SINT", "uint": "UINT", "float": "SFLOAT"}[number.kind]
    return "".join(f"{channel}{number.bits}" for channel in "RGBA"[: number.rows]) + f"_{mode}"


@functools.cache
def layout_of(type: DataType, standard: Standard) -> Layout:
    """Returns the layout of one element of a buffer."""
    segments: list[Segment] = []
    if isinstance(type, ImageFormat):
        size = _place_texel(type, segments)
    elif isinstance(type, Struct):
        size = _place_struct(type, 0, segments, standard)
        size = type.stride if type.stride is not None else _round_up(size, _alignment(type, standard))
    else:
        element = Number(type.kind, type.bits, type.rows, type.columns)
        size = _round_up(_place_number(element, 0, segments, standard, None), _alignment(element, standard))
        if type.length is not None:
            if standard == "STD140":
                size = _round_up(size, 16)
            if type.length:
                segments = [Segment(i * size + s.offset, s.kind, s.bits) for i in range(type.length) for s in segments]
                size *= type.length
    return Layout(tuple(segments), size)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _alignment(type: DataType, standard: Standard) -> int:
    if isinstance(type, ImageFormat):
        return max(1, (type.packed or type.channels[0].bits) // 8)
    if isinstance(type, Struct):
        most = max((_alignment(member.type, standard) for member in type.members), default=1)
        return _round_up(most, 16) if standard == "STD140" else most
    alignment = type.bits // 8 * (4 if type.rows == 3 else type.rows)
    rounded = type.columns > 1 or type.length is not None
    return _round_up(alignment, 16) if rounded and standard == "STD140" else alignment


def _place_texel(image: ImageFormat, segments: list[Segment]) -> int:
    if image.packed:
        segments.append(Segment(0, "uint", image.packed))
        return image.packed // 8
    for channel in image.channels:
        kind: Kind = "uint"
        if channel.mode == "SFLOAT":
            kind = "float"
        elif channel.mode in ("SNORM", "SINT", "SSCALED"):
            kind = "int"
        if channel.bits == 24:  # depth beside stencil: a word of both
            segments.append(Segment(channel.shift // 8, "uint", 32))
            return 4
        segments.append(Segment(channel.shift // 8, kind, channel.bits))
    return sum(channel.bits for channel in image.channels) // 8


def _place_number(
    number: Number, offset: int, segments: list[Segment], standard: Standard, matrix_stride: int | None
) -> int:
    """Appends the segments of a number that is no array; returns its bytes."""
    scalar = number.bits // 8
    if number.columns == 1:
        segments += [Segment(offset + i * scalar, number.kind, number.bits) for i in range(number.rows)]
        return number.rows * scalar
    stride = matrix_stride if matrix_stride is not None else _alignment(number, standard)
    for column in range(number.columns):
        start = offset + column * stride
        segments += [Segment(start + i * scalar, number.kind, number.bits) for i in range(number.rows)]
    return number.columns * stride


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
        texel_segments: list[Segment] = []
        size = _place_texel(type, texel_segments)
        segments += [Segment(offset + s.offset, s.kind, s.bits) for s in texel_segments]
        return size
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
