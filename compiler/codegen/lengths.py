"""Lengths in kernels: numbers are constants, what depends on the call is computed from push constants."""

from __future__ import annotations

from collections.abc import Iterable

from ...spirv.builder import Builder, Id
from ..ir.sizes import Dim


class KernelBuilder(Builder):
    """Writes a kernel whose push constants are the values of symbols, 32 bits each.

    Args:
        symbols: in the order of the push constants.
    """

    def __init__(self, symbols: Iterable[str] = ()) -> None:
        super().__init__()
        self._numbers = {name: number for number, name in enumerate(symbols)}

    def word(self, value: Dim) -> Id:
        """A 32-bit number for indices."""
        if isinstance(value, int):
            return super().word(value)
        total = super().word(0)
        for monomial, factor in value.terms:
            term = super().word(factor)
            for name in monomial:
                term = self.parameter(self._numbers[name], len(self._numbers)) * term
            total = total + term
        return total
