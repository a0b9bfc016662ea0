"""Lengths in the VM: constants, or values computed from symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...status import InvalidArgumentError
from ..ir.sizes import Dim, Size, parts_of_quotient
from ..kernels.kernel import Limit, Workload
from ..passes.sequencing.memory import ALIGNMENT, Plan
from ..passes.sequencing.steps import Buffer
from .function_builder import FunctionBuilder, Register

_MAX_GROUPS = 65_535


class Lengths:
    """Registers of lengths in one function, each computed at its first use.

    A length first computed inside a branch is available only there.

    Args:
        code: the builder of the function.
        plan: the arena's plan.
        symbols: the 64-bit registers of the symbols.
    """

    def __init__(self, code: FunctionBuilder, plan: Plan, symbols: Mapping[str, Register]) -> None:
        self._code = code
        self._plan = plan
        self._symbols = symbols
        self._known: dict[object, Register] = {}
        self._groups: dict[Workload, list[Register]] = {}

    def of(self, size: Dim) -> Register:
        """Returns a length, 64 bits."""
        if isinstance(size, int):
            return self._code.i64(size)
        if size not in self._known:
            self._known[size] = self._sum(size)
        return self._known[size]

    def _sum(self, size: Size) -> Register:
        total: Register | None = None
        for monomial, factor in size.terms:
            registers = [self.register(name) for name in monomial]
            if factor != 1 or not registers:
                registers.append(self._code.i64(factor))
            term = registers[0]
            for register in registers[1:]:
                term = self._code.compute("mul.i64", term, register)
            total = term if total is None else self._code.compute("add.i64", total, term)
        if total is None:
            raise AssertionError(f"{size} is a constant, which is an int")
        return total

    def _rounded(self, number: Register, multiple: int) -> Register:
        """Rounds up to a multiple of a power of two."""
        more = self._code.compute("add.i64", number, self._code.i64(multiple - 1))
        return self._code.compute("and.i64", more, self._code.i64(-multiple))

    def words(self, buffer: Buffer) -> Register:
        """Returns the bytes of a buffer in whole words, at least one word."""
        size = buffer.size
        if isinstance(size, int):
            return self._code.i64(max(size, 4))
        key = ("words", size)
        if key not in self._known:
            rounded = self._rounded(self.of(buffer.bytes), 4)
            self._known[key] = self._code.compute("max.i64.s", rounded, self._code.i64(4))
        return self._known[key]

    def is_full(self, buffer: Buffer) -> Register:
        """Whether a buffer has any bytes, 32 bits."""
        key = ("full", buffer.bytes)
        if key not in self._known:
            self._known[key] = self._code.compute("cmp.nz.i64", self.of(buffer.bytes))
        return self._known[key]

    @property
    def arena(self) -> Register:
        """Returns the bytes of the arena."""
        return self._slot(len(self._plan.slots)) if self._plan.slots else self._code.i64(self._plan.size)

    def _slot(self, number: int) -> Register:
        """Returns the start of a slot of the arena, after the buffers of known sizes and the previous slots."""
        key = ("slot", number)
        if key not in self._known:
            if not number:
                return self._code.i64(-(-self._plan.size // ALIGNMENT) * ALIGNMENT)
            before = self._slot(number - 1)
            # An empty buffer is also bound, and so needs a word.
            size = self._code.compute("max.i64.s", self.of(self._plan.slots[number - 1]), self._code.i64(1))
            self._known[key] = self._code.compute("add.i64", before, self._rounded(size, ALIGNMENT))
        return self._known[key]

    def offset(self, buffer: Buffer) -> int | Register:
        """Returns the start of a transient buffer in the arena."""
        offset = self._plan.offsets[buffer.number]
        return offset if isinstance(buffer.size, int) else self._slot(offset)

    def at(self, offset: int | Register) -> Register:
        """Returns the register of an offset."""
        return self._code.i64(offset) if isinstance(offset, int) else offset

    def register(self, symbol: str) -> Register:
        """Returns a symbol's value, 64 bits."""
        try:
            parts = parts_of_quotient(symbol)
        except ValueError as error:
            raise InvalidArgumentError(f"a symbol's name says what it is: {error}") from None
        if parts is None and symbol not in self._symbols:
            raise InvalidArgumentError(f"no argument of the function tells {symbol}")
        if parts is None:
            return self._symbols[symbol]
        key = ("quotient", symbol)
        if key not in self._known:
            self._known[key] = self._code.compute("div.i64.s", self.of(parts[0]), self._code.i64(parts[1]))
        return self._known[key]

    def word(self, symbol: str) -> Register:
        """Returns a symbol's value, 32 bits."""
        key = ("word", symbol)
        if key not in self._known:
            self._known[key] = self._code.compute("trunc.i64.i32", self.register(symbol))
        return self._known[key]

    def within(self, limits: Sequence[Limit]) -> Register:
        """Returns whether sizes are within limits, as 32 bits."""
        code = self._code
        key = ("within", tuple(limits))
        if key not in self._known:
            result = code.i32(1)
            for limit in limits:
                holds = code.compute("cmp.lt.i64.s", self.of(limit.size), code.i64(limit.most + 1))
                result = code.compute("and.i32", result, holds)
            self._known[key] = result
        return self._known[key]

    def groups(self, workload: Workload) -> list[Register]:
        """Returns the registers of the workgroup counts in each dimension, with rows as long as devices allow."""
        if workload not in self._groups:
            code = self._code
            more = code.compute("add.i64", self.of(workload.elements), code.i64(workload.per_group - 1))
            count = code.compute("div.i64.u", more, code.i64(workload.per_group))
            columns = code.compute("min.i64.s", count, code.i64(_MAX_GROUPS))
            divisor = code.compute("max.i64.s", columns, code.i64(1))
            rows = code.compute("add.i64", count, code.compute("sub.i64", divisor, code.i64(1)))
            rows = code.compute("div.i64.u", rows, divisor)
            self._groups[workload] = [code.compute("trunc.i64.i32", number) for number in (columns, rows)]
        return [*self._groups[workload], self._code.i32(1)]
