"""Scalars of a program as expressions of a shader.

========================== ==========================================================================================
booleans                   a boolean
integers up to 32 bits     a word, extended to 32 bits by zeros (unsigned) or the sign
64-bit integers            a 64-bit integer where the target has them, else a pair of words
f32, f64                   a float
narrower floats            an f32 whose value the type has; every operation rounds to it
complex numbers            real and imaginary part
========================== ==========================================================================================

In memory, elements lie densely in words, low bits first: a boolean, and a float of less than 8 bits, takes a byte;
integers of 2 and 4 bits lie several to a byte, as in ``ElementType.pack``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ....spirv.binary.declarations import F32, F64, U32, U64, Kind
from ....spirv.binary.expression import Id
from ....spirv.binary.grammar import Op
from ...ir.sizes import Dim
from ...ir.types import ScalarType
from .lengths import KernelBuilder
from .narrow_floats import FORMATS, decoded, encoded
from .target import Target
from .wide_integers import Pair, choose


class Complex:
    """A complex number."""

    __slots__ = ("imaginary", "real")

    def __init__(self, real: Id, imaginary: Id) -> None:
        self.real = real
        self.imaginary = imaginary


Scalar: TypeAlias = Id | Complex


def parts_of(scalar: Scalar) -> list[Id]:
    """The expressions that make up a scalar."""
    if isinstance(scalar, Pair):
        return [scalar.low, scalar.high]
    if isinstance(scalar, Complex):
        return [scalar.real, scalar.imaginary]
    return [scalar]


def _parts(scalars: Sequence[Scalar]) -> list[Id]:
    return [part for scalar in scalars for part in parts_of(scalar)]


def with_parts(like: Sequence[Scalar], parts: Sequence[Id]) -> list[Scalar]:
    """Scalars of the same forms as others, from all their parts."""
    found: list[Scalar] = []
    position = 0
    for scalar in like:
        if isinstance(scalar, Pair | Complex):
            found.append(type(scalar)(parts[position], parts[position + 1]))
            position += 2
        else:
            found.append(parts[position])
            position += 1
    return found


def select(condition: Id, then: Scalar, otherwise: Scalar) -> Scalar:
    """``then`` where the condition holds."""
    if isinstance(then, Complex):
        assert isinstance(otherwise, Complex)
        return Complex(
            condition.select(then.real, otherwise.real), condition.select(then.imaginary, otherwise.imaginary)
        )
    assert not isinstance(otherwise, Complex)
    return choose(condition, then, otherwise)


def as_id(scalar: Scalar) -> Id:
    """A scalar that is not complex."""
    assert isinstance(scalar, Id)
    return scalar


def as_complex(scalar: Scalar) -> Complex:
    """A scalar that is complex."""
    assert isinstance(scalar, Complex)
    return scalar


def storage_bits(type: ScalarType) -> int:
    """Bits that an element takes in memory."""
    if type.kind == "bool" or (type.kind == "float" and type.bits < 8):
        return 8
    return type.bits


def is_signed(type: ScalarType) -> bool:
    """Whether an integer type has negative numbers."""
    return type.kind in ("int", "index")


def float_kind(type: ScalarType) -> Kind:
    """What a float, or a part of a complex number, is computed in."""
    return F64 if type.part.bits == 64 else F32


class Scalars:
    """Scalars of every type: constants, bits, and the rounding that each operation ends with.

    Attributes:
        builder: of the module.
        target: of the kernel.
        repeats: how often the instructions written now run: the product of the loops around.
        iterations: that an invocation runs, of all loops.
    """

    def __init__(self, builder: KernelBuilder, target: Target) -> None:
        self.builder = builder
        self.target = target
        self.repeats: Dim = 1
        self.iterations: Dim = 0
        # Narrow floats by their f32, so that what is stored or moved needs no second conversion.
        self._bits: dict[int, tuple[ScalarType, Id]] = {}
        # Bytes by the word that they were read from, and their number in it.
        self._bytes: dict[int, tuple[Id, int]] = {}

    def loop(
        self,
        starts: Sequence[Scalar],
        step: Callable[[Sequence[Scalar]], tuple[Sequence[Scalar], Id]],
        most: int = 0,
    ) -> list[Scalar]:
        """Values that ``step`` changes, once at least, and again as long as the condition that it gives holds.

        Args:
            starts: the values before.
            step: from values to changed ones, and whether to go on.
            most: how often it may run, where the caller does not count that itself.
        """

        def run(parts: Sequence[Id]) -> tuple[list[Id], Id]:
            values, condition = step(with_parts(starts, parts))
            return _parts(values), condition

        self.iterations += self.repeats * most
        return with_parts(starts, self.builder.loop(_parts(starts), run))

    def conditional(
        self,
        condition: Id,
        then: Callable[[], Sequence[Scalar]],
        otherwise: Callable[[], Sequence[Scalar]],
    ) -> list[Scalar]:
        """What one of two functions gives; only that one runs."""
        forms: list[Sequence[Scalar]] = []

        def run(side: Callable[[], Sequence[Scalar]]) -> Sequence[Id]:
            forms.append(side())
            return _parts(forms[-1])

        parts = self.builder.conditional(condition, lambda: run(then), lambda: run(otherwise))
        return with_parts(forms[0], parts)

    def constant(self, type: ScalarType, value: complex) -> Scalar:
        """A constant."""
        if type.kind == "complex":
            kind = float_kind(type)
            return Complex(self.builder.constant(kind, value.real), self.builder.constant(kind, value.imag))
        if type.kind == "bool":
            return self.builder.boolean(value != 0)
        if type.kind == "float":
            return self.builder.constant(float_kind(type), value.real)
        return self.integer(type, int(value.real))

    def integer(self, type: ScalarType, value: int) -> Id:
        """An integer constant, wrapped to the type."""
        raw = value & ((1 << type.bits) - 1)
        if is_signed(type) and raw >> (type.bits - 1):
            raw -= 1 << type.bits
        if type.bits <= 32:
            return self.builder.word(raw)
        return self.builder.constant(U64, raw) if self.target.int64 else Pair.of(self.builder, raw)

    def element(self, type: ScalarType, value: np.generic) -> Scalar:
        """A constant of an element of an array."""
        return self.from_words(type, [self.builder.word(word) for word in element_words(type, value)])

    def wrapped(self, type: ScalarType, value: Id) -> Id:
        """An integer as its type holds it, from one whose low bits are right."""
        if isinstance(value, Pair) or type.bits >= 32:
            return value
        if value.value is not None:
            return self.integer(type, value.value)
        if not is_signed(type):
            return value & ((1 << type.bits) - 1)
        return self.builder.emit(Op.BitFieldSExtract, U32, value, self.builder.word(0), self.builder.word(type.bits))

    def rounded(self, type: ScalarType, value: Id) -> Id:
        """A float as its type holds it."""
        if type.bits >= 32:
            return value
        return self._decoded(type, self._encoded(type, value))

    def wide(self, low: Id, high: Id) -> Id:
        """A 64-bit integer of two words."""
        if not self.target.int64:
            return Pair(low, high)
        if low.value is not None and high.value is not None:
            return self.builder.constant_bits(U64, low.value | high.value << 32)
        vector = self.builder.emit(Op.CompositeConstruct, Kind("u", 32, 2), low, high)
        return vector.bits(U64)

    def halves(self, value: Id) -> tuple[Id, Id]:
        """Low and high word of 64 bits: an integer or an f64."""
        if isinstance(value, Pair):
            return value.low, value.high
        if value.value is not None:
            return self.builder.word(value.value), self.builder.word(value.value >> 32)
        vector = value.bits(Kind("u", 32, 2))
        low, high = (self.builder.emit(Op.CompositeExtract, U32, vector, index) for index in range(2))
        return low, high

    def float_of_words(self, low: Id, high: Id) -> Id:
        """The f64 of two words."""
        return self.builder.emit(Op.CompositeConstruct, Kind("u", 32, 2), low, high).bits(F64)

    def float_bits(self, value: Id) -> Id:
        """The bits of an f32 or f64."""
        return value.bits(U32) if value.kind == F32 else self.wide(*self.halves(value))

    def float_of(self, bits: Id) -> Id:
        """The f32 or f64 of these bits."""
        if isinstance(bits, Id) and bits.kind == U32:
            return bits.bits(F32)
        return self.float_of_words(*self.halves(bits))

    def is_nan(self, value: Id) -> Id:
        """Whether an f32 or f64 is NaN, by its bits: devices may take for granted that there are none."""
        if value.kind == F32:
            return (value.bits(U32) & 0x7FFFFFFF) > 0x7F800000
        low, high = self.halves(value)
        return ((high & 0x7FFFFFFF) | low.differs(0).select(self.builder.word(1), 0)) > 0x7FF00000

    def _is_native(self, type: ScalarType) -> bool:
        """Whether the device converts a narrow float exactly; the kernel says so where it has to."""
        is_native = str(type) == "f16" and self.target.float16
        if is_native and self.target.float_controls:
            self.builder.declarations.exact_floats()
        return is_native

    def _encoded(self, type: ScalarType, value: Id) -> Id:
        known, bits = self._bits.get(value.number, (None, value))
        return bits if known is type else encoded(FORMATS[str(type)], value, self._is_native(type))

    def _decoded(self, type: ScalarType, bits: Id) -> Id:
        found = decoded(FORMATS[str(type)], bits, self._is_native(type))
        self._bits[found.number] = type, bits
        return found

    def from_words(self, type: ScalarType, words: Sequence[Id]) -> Scalar:
        """The scalar of an element's bits: one word, of which the low bits count, or several, low ones first."""
        if type.kind == "complex":
            half = len(words) // 2
            real, imaginary = self.from_words(type.part, words[:half]), self.from_words(type.part, words[half:])
            return Complex(as_id(real), as_id(imaginary))
        (low, *rest) = words
        if type.kind == "bool":
            return (low & 0xFF).differs(0)
        if type.kind == "float":
            if type.bits < 32:
                return self._decoded(type, low & ((1 << storage_bits(type)) - 1))
            return self.float_of_words(low, rest[0]) if rest else low.bits(F32)
        return self.wide(low, rest[0]) if rest else self.wrapped(type, low)

    def keep_byte(self, value: Scalar, word: Id, number: int) -> None:
        """Says that an integer is a byte of a word."""
        if isinstance(value, Id) and value.value is None:
            self._bytes[value.number] = word, number

    def packed(self, values: Sequence[Scalar]) -> Id:
        """The low bytes of up to four integers as a word, which is the one that they were read from if there is one."""
        found = [as_id(each) for each in values]
        words = [self._bytes.get(each.number) for each in found]
        (word, _) = words[0] or (None, 0)
        if word is not None and len(found) == 4 and words == [(word, number) for number in range(4)]:
            return word
        total = self.builder.word(0)
        for number, each in enumerate(found):
            total = total | (each & 0xFF) << 8 * number
        return total

    def to_words(self, type: ScalarType, value: Scalar) -> list[Id]:
        """The bits of a scalar; of one narrower than a word, the others are zero."""
        if isinstance(value, Complex):
            return self.to_words(type.part, value.real) + self.to_words(type.part, value.imaginary)
        if type.kind == "bool":
            return [as_id(value).select(self.builder.word(1), 0)]
        if type.bits == 64:
            return list(self.halves(value))
        if type.kind == "float":
            return [as_id(value).bits(U32) if type.bits == 32 else self._encoded(type, as_id(value))]
        return [as_id(value) & ((1 << type.bits) - 1)]


def element_words(type: ScalarType, value: np.generic) -> list[int]:
    """An element's bits in memory as words."""
    data = np.asarray(value).tobytes().ljust(4, b"\0")
    return [int(word) for word in np.frombuffer(data, "<u4")]
