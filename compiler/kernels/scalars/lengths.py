"""Lengths and indices in kernels: constants, or values computed from push constants if call-dependent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ....spirv.binary.builder import Builder
from ....spirv.binary.declarations import U32, U64, Kind
from ....spirv.binary.expression import Id
from ....spirv.binary.grammar import Op
from ....spirv.binary.offsets import quotient
from ...ir.sizes import Dim, parts_of_quotient

_QUAD: Final = Kind("u", 32, 4)
_OCTET: Final = Kind("u", 64, 4)
_PAIR: Final = Kind("u", 32, 2)


class KernelBuilder(Builder):
    """Writes a kernel whose push constants are the values of symbols, 32 bits each.

    Args:
        symbols: the symbols in the order of the push constants.

    Attributes:
        pushes_addresses: whether the push constants end with the addresses of all bindings and the words 0 to 15.
        quads: the buffers whose size is a multiple of four words; their neighbouring words are loaded together.
        octets: the same for eight words.
        multiples: the known divisors of call-dependent lengths, in the current branch.
    """

    pushes_addresses = False

    def __init__(self, symbols: Iterable[str] = ()) -> None:
        super().__init__()
        self._numbers = {name: number for number, name in enumerate(symbols)}
        self.quads: set[int] = set()
        self.octets: set[int] = set()
        self.multiples: dict[Dim, int] = {}

    def word(self, value: Dim) -> Id:
        """Returns a length or index as a 32-bit value."""
        if isinstance(value, int):
            return super().word(value)
        total = super().word(0)
        for monomial, factor in value.terms:
            term = super().word(factor)
            for name in monomial:
                term = self._symbol(name) * term
            total = total + term
        if value in self.multiples:
            total = Id(self, total.number, U32)
            total.multiple = self.multiples[value]
        return total

    def _symbol(self, name: str) -> Id:
        """Returns a symbol's value: a push constant, or a quotient of a push constant."""
        if name in self._numbers:
            return self.parameter(self._numbers[name], len(self._numbers))
        parts = parts_of_quotient(name)
        assert parts is not None, f"no length of the region tells {name}"
        return self.word(parts[0]) // parts[1]

    def load(self, buffer: int, index: Id) -> Id:
        """Loads a word of a buffer; a word of a run of neighbours comes from a vector load."""
        if index.run >= 4 and buffer in self.quads:
            if index.run >= 8 and index.start.multiple % 8 == 0 and buffer in self.octets:
                part = index.distance % 8
                long = self.load_vector(_OCTET, buffer, quotient(index - part, 8))
                pair = self.emit(Op.CompositeExtract, U64, long, part // 2).bits(_PAIR)
                return self.emit(Op.CompositeExtract, U32, pair, part % 2)
            if index.start.multiple % 4 == 0:
                part = index.distance % 4
                return self.emit(
                    Op.CompositeExtract, U32, self.load_vector(_QUAD, buffer, quotient(index - part, 4)), part
                )
        return super().load(buffer, index)

    def store_words(self, buffer: int, first: Id, words: Sequence[Id]) -> None:
        """Stores neighbouring words of a buffer, up to 128 bits at a time if known to be aligned."""
        at = 0
        while at < len(words):
            index = first + at
            width = next(size for size in (4, 2, 1) if index.multiple % size == 0 and at + size <= len(words))
            if width == 1:
                self.store(buffer, index, words[at])
            else:
                self.store_wide(buffer, index, words[at : at + width])
            at += width
