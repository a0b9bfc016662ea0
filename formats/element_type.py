"""Element and encoding types of buffer views, their codes, their names and their NumPy dtypes.

The codes are those of IREE's HAL (``runtime/src/iree/hal/buffer_view.h``): the numerical type in bits 24..31, the
number of bits an element in bits 0..7. The names are those of its text form (``runtime/src/iree/hal/string_util.c``).
"""

from __future__ import annotations

import enum
import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ..status import InvalidArgumentError, UnimplementedError, shorten, shown

MAX_RANK: Final = 64
"""The largest number of dimensions of a shape: NumPy's limit (IREE allows 128)."""

_MAX_DIM: Final = 2**63 - 1


class NumericalType(enum.IntEnum):
    """The interpretation of an element's bits: bits 24..31 of an element type."""

    UNKNOWN = 0x00
    INTEGER = 0x10
    INTEGER_SIGNED = 0x11
    INTEGER_UNSIGNED = 0x12
    BOOLEAN = 0x13
    FLOAT_IEEE = 0x21
    FLOAT_BRAIN = 0x22
    FLOAT_COMPLEX = 0x23
    FLOAT_8_E5M2 = 0x24
    FLOAT_8_E4M3_FN = 0x25
    FLOAT_8_E5M2_FNUZ = 0x26
    FLOAT_8_E4M3_FNUZ = 0x27
    FLOAT_8_E8M0_FNU = 0x28


_NAMES: Final[dict[int, str]] = {
    NumericalType.UNKNOWN: "*{bits}",
    NumericalType.INTEGER: "i{bits}",
    NumericalType.INTEGER_SIGNED: "si{bits}",
    NumericalType.INTEGER_UNSIGNED: "ui{bits}",
    NumericalType.BOOLEAN: "i1",
    NumericalType.FLOAT_IEEE: "f{bits}",
    NumericalType.FLOAT_BRAIN: "bf{bits}",
    NumericalType.FLOAT_COMPLEX: "cf{bits}",
    NumericalType.FLOAT_8_E5M2: "f8E5M2",
    NumericalType.FLOAT_8_E4M3_FN: "f8E4M3FN",
    NumericalType.FLOAT_8_E5M2_FNUZ: "f8E5M2FNUZ",
    NumericalType.FLOAT_8_E4M3_FNUZ: "f8E4M3FNUZ",
    NumericalType.FLOAT_8_E8M0_FNU: "f8E8M0FNU",
}


class ElementType(enum.IntEnum):
    """The type of an element of a buffer view; the value is the 32-bit code that modules and drivers exchange.

    Signless integers (``INT_*``) are MLIR's ``i32``: the operation, not the type, decides about the sign. A boolean
    takes a byte in memory and is written ``i1``.
    """

    NONE = 0x00000000
    OPAQUE_8 = 0x00000008
    OPAQUE_16 = 0x00000010
    OPAQUE_32 = 0x00000020
    OPAQUE_64 = 0x00000040
    BOOL_8 = 0x13000008
    INT_4 = 0x10000004
    SINT_4 = 0x11000004
    UINT_4 = 0x12000004
    INT_8 = 0x10000008
    SINT_8 = 0x11000008
    UINT_8 = 0x12000008
    INT_16 = 0x10000010
    SINT_16 = 0x11000010
    UINT_16 = 0x12000010
    INT_32 = 0x10000020
    SINT_32 = 0x11000020
    UINT_32 = 0x12000020
    INT_64 = 0x10000040
    SINT_64 = 0x11000040
    UINT_64 = 0x12000040
    FLOAT_16 = 0x21000010
    FLOAT_32 = 0x21000020
    FLOAT_64 = 0x21000040
    BFLOAT_16 = 0x22000010
    COMPLEX_FLOAT_64 = 0x23000040
    COMPLEX_FLOAT_128 = 0x23000080
    FLOAT_8_E5M2 = 0x24000008
    FLOAT_8_E4M3_FN = 0x25000008
    FLOAT_8_E5M2_FNUZ = 0x26000008
    FLOAT_8_E4M3_FNUZ = 0x27000008
    FLOAT_8_E8M0_FNU = 0x28000008

    @classmethod
    def _missing_(cls, value: object) -> ElementType | None:
        shown = f"{value:#010x}" if isinstance(value, int) else repr(value)
        raise InvalidArgumentError(f"expected an element type code, got {shown}; known are {', '.join(_names())}")

    @property
    def numerical_type(self) -> NumericalType:
        """The interpretation of the element's bits."""
        return NumericalType(self.value >> 24)

    @property
    def bits(self) -> int:
        """Bits an element; 8 for a boolean, 0 for ``NONE``."""
        return self & 0xFF

    @property
    def byte_count(self) -> int:
        """The bytes of one element alone; 1 for the 4-bit types, which pack two to a byte in a buffer."""
        return (self.bits + 7) // 8

    def storage_bytes(self, count: int) -> int:
        """Returns bytes that ``count`` densely packed elements take in a buffer, rounded up to a whole byte.

        Raises:
            InvalidArgumentError: ``count`` is negative.
        """
        if count < 0:
            raise InvalidArgumentError(f"expected an element count of 0 or more, got {count}")
        return (count * self.bits + 7) // 8

    @property
    def short_name(self) -> str:
        """The name in the text form: ``f32``, ``i1``, ``si8``, ``bf16``, ``f8E4M3FN``, ``cf64``, ``*8``."""
        return _NAMES[self.value >> 24].format(bits=self.bits)

    @property
    def dtype(self) -> np.dtype[np.generic] | None:
        """The NumPy dtype of one element, or ``None`` if there is none.

        bfloat16, the 8-bit floats and the 4-bit integers are ml_dtypes' (in NumPy a 4-bit element takes a byte); opaque
        elements are ``void`` of their size.
        """
        plain = _plain_dtypes().get(self)
        return _dtypes().get(self) if plain is None else plain

    @property
    def is_opaque(self) -> bool:
        """Whether only the size is known."""
        return self.value >> 24 == NumericalType.UNKNOWN

    @property
    def is_boolean(self) -> bool:
        """Whether it is a truth value, stored as a byte."""
        return self.value >> 24 == NumericalType.BOOLEAN

    @property
    def is_integer(self) -> bool:
        """Whether it is a signless, signed or unsigned integer; a boolean is not."""
        return NumericalType.INTEGER <= self.value >> 24 <= NumericalType.INTEGER_UNSIGNED

    @property
    def is_unsigned(self) -> bool:
        """Whether it is an explicitly unsigned integer."""
        return self.value >> 24 == NumericalType.INTEGER_UNSIGNED

    @property
    def is_float(self) -> bool:
        """Whether it is real floating point of any format."""
        return self.value >> 24 >= NumericalType.FLOAT_IEEE and not self.is_complex

    @property
    def is_complex(self) -> bool:
        """Whether it is a pair of floats, real part first."""
        return self.value >> 24 == NumericalType.FLOAT_COMPLEX

    @property
    def is_sub_byte(self) -> bool:
        """Whether several elements share a byte."""
        return 0 < self.bits < 8

    @classmethod
    def parse(cls, text: str) -> ElementType:
        """Returns the element type of a name: those of ``short_name``, and MLIR's ``complex<f32>``, ``complex<f64>``.

        Raises:
            InvalidArgumentError: there is no such type; the message lists all types.
        """
        element_type = _names().get(text)
        if element_type is None:
            raise InvalidArgumentError(f"expected an element type, got {shown(text)}; known are {', '.join(_names())}")
        return element_type

    @classmethod
    def from_dtype(cls, dtype: npt.DTypeLike) -> ElementType:
        """Returns the element type of a NumPy dtype. Signed NumPy integers become the signless types that MLIR uses.

        Raises:
            InvalidArgumentError: the dtype has no element type, or has foreign byte order.
        """
        try:
            wanted = dtype_of(dtype)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"expected a NumPy dtype, got {shown(dtype)}: {shorten(str(error))}") from None
        element_type = _by_dtype(_plain_dtypes).get(wanted)
        if element_type is None:
            element_type = _by_dtype(_dtypes).get(wanted)
        if element_type is None:
            known = ", ".join(str(known) for known in _by_dtype(_dtypes))
            hint = "; convert it to native byte order first" if not wanted.isnative else ""
            raise InvalidArgumentError(f"expected one of the dtypes {known}, got {shorten(str(wanted))}{hint}")
        return element_type

    def pack(self, array: npt.NDArray[np.generic]) -> bytes:
        """Returns the bytes of ``array`` in row-major order as a buffer holds them, low nibble first for 4-bit types.

        Args:
            array: an array of any shape, of exactly ``dtype``.

        Raises:
            InvalidArgumentError: the dtype differs.
            UnimplementedError: the type has no dtype.
        """
        dtype = self.require_dtype()
        if array.dtype != dtype:
            raise InvalidArgumentError(f"expected an array of dtype {dtype} for {self.short_name}, got {array.dtype}")
        if not self.is_sub_byte:
            return array.tobytes()
        nibbles = np.frombuffer(array.tobytes(), np.uint8) & 0x0F
        padded = np.append(nibbles, np.zeros(nibbles.size % 2, np.uint8))
        packed: npt.NDArray[np.uint8] = padded[0::2] | (padded[1::2] << 4)
        return packed.tobytes()

    def unpack(self, data: bytes | bytearray | memoryview, shape: Sequence[int]) -> npt.NDArray[np.generic]:
        """Returns a new array of ``dtype`` and ``shape`` from the bytes in a buffer.

        Raises:
            InvalidArgumentError: ``data`` is not exactly the size that ``shape`` needs.
            UnimplementedError: the type has no dtype.
        """
        dtype = self.require_dtype()
        count = math.prod(shape)
        needed, got = self.storage_bytes(count), memoryview(data).nbytes
        if got != needed:
            name = format_shape_and_type(shape, self)
            raise InvalidArgumentError(f"expected {needed} bytes for {name}, got {got}")
        if not self.is_sub_byte:
            return np.frombuffer(data, np.uint8).copy().view(dtype).reshape(shape)
        packed = np.frombuffer(data, np.uint8)
        nibbles = np.stack([packed & 0x0F, packed >> 4], axis=-1).reshape(-1)[:count]
        if self.is_unsigned:
            return nibbles.astype(dtype).reshape(shape)
        return ((nibbles ^ 8).astype(np.int8) - 8).astype(dtype).reshape(shape)

    def require_dtype(self) -> np.dtype[np.generic]:
        """Returns the NumPy dtype of one element.

        Raises:
            UnimplementedError: the type has no dtype.
        """
        dtype = self.dtype
        if dtype is None:
            raise UnimplementedError(
                f"{self.name} has no NumPy dtype here; use a type with values, and ml_dtypes 0.5 or newer for f8E8M0FNU"
            )
        return dtype


class EncodingType(enum.IntEnum):
    """The arrangement of a buffer view's elements in its buffer (``iree_hal_encoding_types_t``)."""

    OPAQUE = 0
    DENSE_ROW_MAJOR = 1


@functools.cache
def _names() -> dict[str, ElementType]:
    names: dict[str, ElementType] = {
        member.short_name: member for member in ElementType if member is not ElementType.NONE
    }
    names["complex<f32>"] = ElementType.COMPLEX_FLOAT_64
    names["complex<f64>"] = ElementType.COMPLEX_FLOAT_128
    return names


def dtype_of(dtype: npt.DTypeLike) -> np.dtype[np.generic]:
    """Returns the dtype of a type, a name or a dtype that NumPy accepts; the names of ml_dtypes' are known too.

    Raises:
        TypeError, ValueError: NumPy accepts no such dtype.
    """
    try:
        return np.dtype(dtype)
    except TypeError:
        import ml_dtypes  # noqa: F401  here: programs start sooner without; with it NumPy knows the names

        return np.dtype(dtype)


@functools.cache
def _plain_dtypes() -> dict[ElementType, np.dtype[np.generic]]:
    """Returns NumPy's own dtypes, by element type."""
    kinds: dict[ElementType, npt.DTypeLike] = {
        ElementType.OPAQUE_8: "V1",
        ElementType.OPAQUE_16: "V2",
        ElementType.OPAQUE_32: "V4",
        ElementType.OPAQUE_64: "V8",
        ElementType.BOOL_8: np.bool_,
        ElementType.FLOAT_16: np.float16,
        ElementType.FLOAT_32: np.float32,
        ElementType.FLOAT_64: np.float64,
        ElementType.COMPLEX_FLOAT_64: np.complex64,
        ElementType.COMPLEX_FLOAT_128: np.complex128,
    }
    for bits in (8, 16, 32, 64):
        kinds[ElementType[f"INT_{bits}"]] = f"i{bits // 8}"
        kinds[ElementType[f"SINT_{bits}"]] = f"i{bits // 8}"
        kinds[ElementType[f"UINT_{bits}"]] = f"u{bits // 8}"
    return {member: np.dtype(kind) for member, kind in kinds.items()}


@functools.cache
def _dtypes() -> dict[ElementType, np.dtype[np.generic]]:
    """Returns all dtypes, those of ml_dtypes too, by element type."""
    import ml_dtypes  # imported here, so that programs that need no ml_dtypes start sooner

    kinds: dict[ElementType, npt.DTypeLike] = {
        ElementType.INT_4: ml_dtypes.int4,
        ElementType.SINT_4: ml_dtypes.int4,
        ElementType.UINT_4: ml_dtypes.uint4,
        ElementType.BFLOAT_16: ml_dtypes.bfloat16,
        ElementType.FLOAT_8_E5M2: ml_dtypes.float8_e5m2,
        ElementType.FLOAT_8_E4M3_FN: ml_dtypes.float8_e4m3fn,
        ElementType.FLOAT_8_E5M2_FNUZ: ml_dtypes.float8_e5m2fnuz,
        ElementType.FLOAT_8_E4M3_FNUZ: ml_dtypes.float8_e4m3fnuz,
    }
    # ml_dtypes has this type only since 0.5.
    if hasattr(ml_dtypes, "float8_e8m0fnu"):
        kinds[ElementType.FLOAT_8_E8M0_FNU] = ml_dtypes.float8_e8m0fnu
    return _plain_dtypes() | {member: np.dtype(kind) for member, kind in kinds.items()}


@functools.cache
def _by_dtype(dtypes: Callable[[], dict[ElementType, np.dtype[np.generic]]]) -> dict[np.dtype[np.generic], ElementType]:
    by_dtype: dict[np.dtype[np.generic], ElementType] = {}
    for member, dtype in dtypes().items():
        # A signed type shares its dtype with the signless one, which is declared before it and wins.
        by_dtype.setdefault(dtype, member)
    return by_dtype


def format_shape(shape: Sequence[int]) -> str:
    """Returns ``(2, 3)`` as ``"2x3"``; a scalar's shape ``()`` is the empty text."""
    return "x".join(map(str, shape))


def format_shape_and_type(shape: Sequence[int], element_type: ElementType) -> str:
    """Returns ``(2, 3)`` and ``FLOAT_32`` as ``"2x3xf32"``; a scalar is the bare type, ``"f32"``."""
    return "x".join([*map(str, shape), element_type.short_name])


_DIM: Final = re.compile(r"([0-9]+)x")


def parse_shape_and_type(text: str) -> tuple[tuple[int, ...], ElementType]:
    """Returns the shape and element type of ``"2x3xf32"``, of a scalar ``"f32"``, with dimensions of 0 or more.

    Raises:
        InvalidArgumentError: a dimension is not a number below 2**63, the rank is above ``MAX_RANK``, or the element
            type is unknown.
    """
    shape: list[int] = []
    position = 0
    while match := _DIM.match(text, position):
        digits = match[1]
        if len(digits) > 4000 or int(digits) > _MAX_DIM:
            raise InvalidArgumentError(f"dimension {len(shape)}: expected at most {_MAX_DIM}, got {shorten(digits)}")
        if len(shape) == MAX_RANK:
            raise InvalidArgumentError(f"expected at most {MAX_RANK} dimensions, got more: {shown(text)}")
        shape.append(int(digits))
        position = match.end()
    name = text[position:]
    if name not in _names() and re.match(r"-|\?|x[0-9x]", name):
        raise InvalidArgumentError(
            f"dimension {len(shape)}: expected a number of 0 or more, got {shown(name)} in {shown(text)}"
        )
    return tuple(shape), ElementType.parse(name)
