"""Scalars of a program as expressions of a shader.

========================== ==========================================================================================
booleans                   a boolean
integers up to 32 bits     a word, extended to 32 bits by zeros (unsigned) or the sign
64-bit integers            a 64-bit integer if the target has them, else a pair of words
f32, f64                   a float
narrower floats            an f32 with a value of the type; every operation rounds to it
complex numbers            real and imaginary part
========================== ==========================================================================================

In memory, elements are packed into words, low bits first. A boolean takes a byte, as does a float of less than 8 bits.
Integers of 2 and 4 bits share a byte, as in ``ElementType.pack``.
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
        self.real: Id = real
        self.imaginary: Id = imaginary


Scalar: TypeAlias = Id | Complex


def parts_of(scalar: Scalar) -> list[Id]:
    """Returns the expressions that a scalar consists of."""
    if isinstance(scalar, Pair):
        return [scalar.low, scalar.high]
    if isinstance(scalar, Complex):
        return [scalar.real, scalar.imaginary]
    return [scalar]


def _parts(scalars: Sequence[Scalar]) -> list[Id]:
    return [part for scalar in scalars for part in parts_of(scalar)]


def with_parts(like: Sequence[Scalar], parts: Sequence[Id]) -> list[Scalar]:
    """Builds scalars of the same forms as ``like`` from all their parts."""
    scalars: list[Scalar] = []
    position = 0
    for scalar in like:
        if isinstance(scalar, Pair | Complex):
            scalars.append(type(scalar)(parts[position], parts[position + 1]))
            position += 2
        else:
            scalars.append(parts[position])
            position += 1
    return scalars


def select(condition: Id, then: Scalar, otherwise: Scalar) -> Scalar:
    if isinstance(then, Complex):
        assert isinstance(otherwise, Complex)
        return Complex(
            condition.select(then.real, otherwise.real), condition.select(then.imaginary, otherwise.imaginary)
        )
    assert not isinstance(otherwise, Complex)
    return choose(condition, then, otherwise)


def as_id(scalar: Scalar) -> Id:
    """Narrows the type of a non-complex scalar."""
    assert isinstance(scalar, Id)
    return scalar


def as_complex(scalar: Scalar) -> Complex:
    """Narrows the type of a complex scalar."""
    assert isinstance(scalar, Complex)
    return scalar


def storage_bits(type: ScalarType) -> int:
    """Returns the bits of an element in memory."""
    if type.kind == "bool" or (type.kind == "float" and type.bits < 8):
        return 8
    return type.bits


def is_signed(type: ScalarType) -> bool:
    """Returns whether an integer type is signed."""
    return type.kind in ("int", "index")


def float_kind(type: ScalarType) -> Kind:
    """Returns the kind in which a float, or a part of a complex number, is computed."""
    return F64 if type.part.bits == 64 else F32


class Scalars:
    """Scalars of every type: constants, bits, and the rounding at the end of each operation.

    Attributes:
        builder: the builder of the module.
        target: the target of the kernel.
        repeats: the number of times that the current instructions run: the product of the enclosing loops' counts.
        iterations: the iterations of all loops of an invocation.
    """

    def __init__(self, builder: KernelBuilder, target: Target) -> None:
        self.builder = builder
        self.target = target
        self.repeats: Dim = 1
        self.iterations: Dim = 0
        # The bits of narrow floats by their f32, so that stores and moves need no second conversion.
        self._bits: dict[int, tuple[ScalarType, Id]] = {}
        # The source word of a byte, and its position in the word.
        self._bytes: dict[int, tuple[Id, int]] = {}

    def loop(
        self,
        starts: Sequence[Scalar],
        step: Callable[[Sequence[Scalar]], tuple[Sequence[Scalar], Id]],
        most: int = 0,
    ) -> list[Scalar]:
        """Emits a loop that runs ``step`` at least once, and again while the condition that it returns holds.

        Args:
            starts: the initial values.
            step: a function from the values to new values and whether to continue.
            most: the largest number of iterations, unless the caller counts them itself.
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
        """Runs one of two functions and returns its results."""
        forms: list[Sequence[Scalar]] = []

        def run(side: Callable[[], Sequence[Scalar]]) -> Sequence[Id]:
            forms.append(side())
            return _parts(forms[-1])

        parts = self.builder.conditional(condition, lambda: run(then), lambda: run(otherwise))
        return with_parts(forms[0], parts)

    def constant(self, type: ScalarType, value: complex) -> Scalar:
        if type.kind == "complex":
            kind = float_kind(type)
            return Complex(self.builder.constant(kind, value.real), self.builder.constant(kind, value.imag))
        if type.kind == "bool":
            return self.builder.boolean(value != 0)
        if type.kind == "float":
            return self.builder.constant(float_kind(type), value.real)
        return self.integer(type, int(value.real))

    def integer(self, type: ScalarType, value: int) -> Id:
        """Returns an integer constant, wrapped to the type."""
        raw = value & ((1 << type.bits) - 1)
        if is_signed(type) and raw >> (type.bits - 1):
            raw -= 1 << type.bits
        if type.bits <= 32:
            return self.builder.word(raw)
        return self.builder.constant(U64, raw) if self.target.int64 else Pair.of(self.builder, raw)

    def element(self, type: ScalarType, value: np.generic) -> Scalar:
        """Returns a constant for an array element."""
        return self.from_words(type, [self.builder.word(word) for word in element_words(type, value)])

    def wrapped(self, type: ScalarType, value: Id) -> Id:
        """Wraps an integer with correct low bits to its type."""
        if isinstance(value, Pair) or type.bits >= 32:
            return value
        if value.value is not None:
            return self.integer(type, value.value)
        if not is_signed(type):
            return value & ((1 << type.bits) - 1)
        return self.builder.emit(Op.BitFieldSExtract, U32, value, self.builder.word(0), self.builder.word(type.bits))

    def rounded(self, type: ScalarType, value: Id) -> Id:
        """Rounds a float to its type."""
        if type.bits >= 32:
            return value
        return self._decoded(type, self._encoded(type, value))

    def wide(self, low: Id, high: Id) -> Id:
        """Builds a 64-bit integer from two words."""
        if not self.target.int64:
            return Pair(low, high)
        if low.value is not None and high.value is not None:
            return self.builder.constant_bits(U64, low.value | high.value << 32)
        vector = self.builder.emit(Op.CompositeConstruct, Kind("u", 32, 2), low, high)
        return vector.bits(U64)

    def halves(self, value: Id) -> tuple[Id, Id]:
        """Returns the low and the high word of a 64-bit integer or an f64."""
        if isinstance(value, Pair):
            return value.low, value.high
        if value.value is not None:
            return self.builder.word(value.value), self.builder.word(value.value >> 32)
        vector = value.bits(Kind("u", 32, 2))
        low, high = (self.builder.emit(Op.CompositeExtract, U32, vector, index) for index in range(2))
        return low, high

    def float_of_words(self, low: Id, high: Id) -> Id:
        """Builds an f64 from two words."""
        return self.builder.emit(Op.CompositeConstruct, Kind("u", 32, 2), low, high).bits(F64)

    def float_bits(self, value: Id) -> Id:
        """Returns the bits of an f32 or f64."""
        return value.bits(U32) if value.kind == F32 else self.wide(*self.halves(value))

    def float_of(self, bits: Id) -> Id:
        """Returns the f32 or f64 with these bits."""
        if isinstance(bits, Id) and bits.kind == U32:
            return bits.bits(F32)
        return self.float_of_words(*self.halves(bits))

    def is_nan(self, value: Id) -> Id:
        """Returns whether an f32 or f64 is NaN, by its bits, as devices may assume that there are no NaNs."""
        if value.kind == F32:
            return (value.bits(U32) & 0x7FFFFFFF) > 0x7F800000
        low, high = self.halves(value)
        return ((high & 0x7FFFFFFF) | low.differs(0).select(self.builder.word(1), 0)) > 0x7FF00000

    def _is_native(self, type: ScalarType) -> bool:
        """Returns whether the device converts a narrow float exactly; if so, declares the required execution modes."""
        is_native = str(type) == "f16" and self.target.float16
        if is_native and self.target.float_controls:
            self.builder.declarations.exact_floats()
        return is_native

    def _encoded(self, type: ScalarType, value: Id) -> Id:
        known, bits = self._bits.get(value.number, (None, value))
        return bits if known is type else encoded(FORMATS[str(type)], value, self._is_native(type))

    def _decoded(self, type: ScalarType, bits: Id) -> Id:
        result = decoded(FORMATS[str(type)], bits, self._is_native(type))
        self._bits[result.number] = type, bits
        return result

    def from_words(self, type: ScalarType, words: Sequence[Id]) -> Scalar:
        """Builds a scalar from an element's bits: the low bits of a word, or several words, the low one first."""
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
        """Records that an integer is a byte of a word."""
        if isinstance(value, Id) and value.value is None:
            self._bytes[value.number] = word, number

    def packed(self, values: Sequence[Scalar]) -> Id:
        """Packs the low bytes of up to four integers into a word, or reuses the word that they were read from."""
        ids = [as_id(value) for value in values]
        words = [self._bytes.get(value.number) for value in ids]
        (word, _) = words[0] or (None, 0)
        if word is not None and len(ids) == 4 and words == [(word, number) for number in range(4)]:
            return word
        total = self.builder.word(0)
        for number, value in enumerate(ids):
            total = total | (value & 0xFF) << 8 * number
        return total

    def to_words(self, type: ScalarType, value: Scalar) -> list[Id]:
        """Returns the bits of a scalar; the unused bits of a word are zero."""
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
    """Returns the words of an element in memory."""
    data = np.asarray(value).tobytes().ljust(4, b"\0")
    return [int(word) for word in np.frombuffer(data, "<u4")]
