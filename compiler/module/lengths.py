"""Lengths in the VM: numbers are constants, what depends on the call is computed from the values of symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...status import InvalidArgumentError
from ..ir.sizes import Dim, Size, parts_of_quotient
from ..kernels.kernel import Limit, Workload
from ..passes.sequencing.memory import ALIGNMENT, Plan
from ..passes.sequencing.steps import Buffer
from .function_text import FunctionText

_MAX_GROUPS = 65_535


class Lengths:
    """Registers of lengths in one function. What is asked for first where only some paths pass is known only there.

    Args:
        text: of the function.
        plan: of the arena.
        symbols: registers of 64 bits by symbol.
    """

    def __init__(self, text: FunctionText, plan: Plan, symbols: Mapping[str, str]) -> None:
        self._text = text
        self._plan = plan
        self._symbols = symbols
        self._known: dict[object, str] = {}

    def of(self, size: Dim) -> str:
        """A length, 64 bits."""
        if isinstance(size, int):
            return self._text.i64(size)
        if size not in self._known:
            self._known[size] = self._sum(size)
        return self._known[size]

    def _sum(self, size: Size) -> str:
        total = ""
        for monomial, factor in size.terms:
            registers = [self.register(name) for name in monomial]
            if factor != 1 or not registers:
                registers.append(self._text.i64(factor))
            term = registers[0]
            for register in registers[1:]:
                term = self._binary("mul.i64", term, register)
            total = term if not total else self._binary("add.i64", total, term)
        return total

    def _binary(self, name: str, left: str, right: str) -> str:
        found = self._text.wide()
        self._text.line(f"{found} = vm.{name} {left}, {right}")
        return found

    def _rounded(self, number: str, multiple: int) -> str:
        """A number rounded up to a multiple of a power of two."""
        more = self._binary("add.i64", number, self._text.i64(multiple - 1))
        return self._binary("and.i64", more, self._text.i64(-multiple))

    def words(self, buffer: Buffer) -> str:
        """Bytes of a buffer in whole words, one at least."""
        size = buffer.size
        if isinstance(size, int):
            return self._text.i64(max(size, 4))
        key = ("words", size)
        if key not in self._known:
            rounded = self._rounded(self.of(buffer.bytes), 4)
            self._known[key] = self._binary("max.i64.s", rounded, self._text.i64(4))
        return self._known[key]

    def is_full(self, buffer: Buffer) -> str:
        """Whether a buffer has any bytes, 32 bits."""
        key = ("full", buffer.bytes)
        if key not in self._known:
            self._known[key] = self._text.integer()
            self._text.line(f"{self._known[key]} = vm.cmp.nz.i64 {self.of(buffer.bytes)}")
        return self._known[key]

    @property
    def arena(self) -> str:
        """Bytes of the arena."""
        return self._slot(len(self._plan.slots)) if self._plan.slots else self._text.i64(self._plan.size)

    def _slot(self, number: int) -> str:
        """Where a slot of the arena begins: behind the buffers of known sizes and the slots before."""
        key = ("slot", number)
        if key not in self._known:
            if not number:
                return self._text.i64(-(-self._plan.size // ALIGNMENT) * ALIGNMENT)
            before = self._slot(number - 1)
            # An empty buffer is bound, too, and so needs a word.
            size = self._binary("max.i64.s", self.of(self._plan.slots[number - 1]), self._text.i64(1))
            self._known[key] = self._binary("add.i64", before, self._rounded(size, ALIGNMENT))
        return self._known[key]

    def offset(self, buffer: Buffer) -> int | str:
        """Where a transient buffer begins in the arena: a number, or the register of one."""
        offset = self._plan.offsets[buffer.number]
        return offset if isinstance(buffer.size, int) else self._slot(offset)

    def at(self, offset: int | str) -> str:
        """The register of an offset."""
        return self._text.i64(offset) if isinstance(offset, int) else offset

    def register(self, symbol: str) -> str:
        """A symbol's value, 64 bits."""
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
            self._known[key] = self._binary("div.i64.s", self.of(parts[0]), self._text.i64(parts[1]))
        return self._known[key]

    def word(self, symbol: str) -> str:
        """A symbol's value, 32 bits."""
        key = ("word", symbol)
        if key not in self._known:
            self._known[key] = self._narrow(self.register(symbol))
        return self._known[key]

    def _narrow(self, register: str) -> str:
        found = self._text.integer()
        self._text.line(f"{found} = vm.trunc.i64.i32 {register}")
        return found

    def within(self, limits: Sequence[Limit]) -> str:
        """Whether sizes are at most what they have to be, 32 bits."""
        key = ("within", tuple(limits))
        if key not in self._known:
            text = self._text
            found = text.i32(1)
            for limit in limits:
                holds, both = text.integer(), text.integer()
                text.line(f"{holds} = vm.cmp.lt.i64.s {self.of(limit.size)}, {text.i64(limit.most + 1)}")
                text.line(f"{both} = vm.and.i32 {found}, {holds}")
                found = both
            self._known[key] = found
        return self._known[key]

    def groups(self, workload: Workload) -> list[str]:
        """Workgroups in each dimension: rows of as many as devices take."""
        key = ("groups", workload)
        if key not in self._known:
            text = self._text
            more = self._binary("add.i64", self.of(workload.elements), text.i64(workload.per_group - 1))
            count = self._binary("div.i64.u", more, text.i64(workload.per_group))
            columns = self._binary("min.i64.s", count, text.i64(_MAX_GROUPS))
            divisor = self._binary("max.i64.s", columns, text.i64(1))
            rows = self._binary("add.i64", count, self._binary("sub.i64", divisor, text.i64(1)))
            rows = self._binary("div.i64.u", rows, divisor)
            self._known[key] = f"{self._narrow(columns)} {self._narrow(rows)}"
        return [*self._known[key].split(), self._text.i32(1)]
