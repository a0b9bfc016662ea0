"""Lengths and indices in kernels: numbers are constants, what depends on the call is computed from push constants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ...spirv.builder import Builder
from ...spirv.declarations import U32, U64, Kind
from ...spirv.expression import Id
from ...spirv.grammar import Op
from ..ir.sizes import Dim, parts_of_quotient
from .lanes import Lane, arithmetic, multiple

_QUAD: Final = Kind("u", 32, 4)
_OCTET: Final = Kind("u", 64, 4)


class KernelBuilder(Builder):
    """Writes a kernel whose push constants are the values of symbols, 32 bits each.

    Args:
        symbols: in the order of the push constants.

    Attributes:
        in_lanes: whether indices are kept as lanes, and neighbouring words are loaded together.
        quads: buffers of whole quads of words.
        octets: those of whole eights of words that are loaded so.
    """

    def __init__(self, symbols: Iterable[str] = ()) -> None:
        super().__init__()
        self._numbers = {name: number for number, name in enumerate(symbols)}
        self.in_lanes = False
        self.quads: set[int] = set()
        self.octets: set[int] = set()

    def word(self, value: Dim) -> Id:
        """A 32-bit number for indices."""
        if isinstance(value, int):
            return super().word(value)
        total = super().word(0)
        for monomial, factor in value.terms:
            term = super().word(factor)
            for name in monomial:
                term = self._symbol(name) * term
            total = total + term
        return total

    def _symbol(self, name: str) -> Id:
        """A symbol's value: what is given, or a quotient of it."""
        if name in self._numbers:
            return self.parameter(self._numbers[name], len(self._numbers))
        parts = parts_of_quotient(name)
        assert parts is not None, f"no length of the region tells {name}"
        return self.word(parts[0]) // parts[1]

    def multiple(self, index: Id, length: Dim) -> Id:
        """An index times a length, which does not wrap around."""
        if self.in_lanes and isinstance(length, int):
            return multiple(index, length)
        return index * self.word(length)

    def binary(self, opcode: int, kind: Kind, left: Id, right: Id) -> Id:
        """An instruction of two operands; what is known of lanes is kept."""
        if self.in_lanes and left.kind == U32 and (isinstance(left, Lane) or isinstance(right, Lane)):
            found = arithmetic(self, opcode, left, right)
            if found is not None:
                return found
        return super().binary(opcode, kind, left, right)

    def quotient(self, number: Id, divisor: int) -> Id:
        """An index divided by a power of two."""
        return number // divisor if isinstance(number, Lane) else super().quotient(number, divisor)

    def load(self, buffer: int, index: Id) -> Id:
        """A word of a buffer that is read; one of neighbours is taken from the vector of them."""
        if isinstance(index, Lane) and index.along == 1 and index.step % 4 == 0 and buffer in self.quads:
            if index.step % 8 == 0 and buffer in self.octets:
                octet, part = index.in_steps(8), index.offset % 8
                long = self.emit(Op.CompositeExtract, U64, self.load_vector(_OCTET, buffer, octet.base), part // 2)
                return self.emit(Op.CompositeExtract, U32, long.bits(Kind("u", 32, 2)), part % 2)
            quad, part = index.in_steps(4), index.offset % 4
            return self.emit(Op.CompositeExtract, U32, self.load_vector(_QUAD, buffer, quad.base), part)
        return super().load(buffer, index)

    def store_words(self, buffer: int, first: Id, words: Sequence[Id]) -> None:
        """Writes neighbouring words of a buffer, by up to 128 bits as far as they are known to be aligned."""
        at = 0
        if isinstance(first, Lane) and first.step % 4 == 0 and first.offset % 4 == 0 and buffer in self.quads:
            base = first.in_steps(4).base
            while at + 4 <= len(words):
                self.store_quad(buffer, base + at // 4, words[at : at + 4])
                at += 4
        while at < len(words):
            place = first + at
            width = next(each for each in (4, 2, 1) if place.multiple % each == 0 and at + each <= len(words))
            if width == 1:
                self.store(buffer, place, words[at])
            else:
                self.store_wide(buffer, place, words[at : at + width])
            at += width
