"""Calls of a function whose lengths depend on them: the symbols' values, checks, and command buffers for these.

Command buffers hold workgroup counts, offsets and push constants, so they are recorded for the lengths of a call, and
kept for the next one: in a list, after the lengths, which does not change once it is in its global. So a call that
another one runs beside, with other lengths, has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...status import InvalidArgumentError
from ..codegen.kernel import Kernel
from ..ir.attributes import Attribute, DenseArray
from ..ir.sizes import Size, definitions, symbols_of
from ..passes.dynamic.resolve import MAX_SIZE
from ..passes.sequencing.steps import Dispatch, Schedule, walk
from .function_text import FunctionText
from .lengths import Lengths

_INVALID_ARGUMENT: Final = 3
_LIST: Final = "!vm.list<!vm.opaque>"


class DynamicCall:
    """What calls of one function have in common.

    Args:
        name: of the function.
        plan: its schedule.
        requires: its attribute of that name, which ``passes/dynamic/resolve.py`` makes.

    Attributes:
        symbols: that lengths depend on; none for a function of fixed lengths.
    """

    def __init__(self, name: str, plan: Schedule, requires: Attribute) -> None:
        self._name = name
        self._plan = plan
        self._requires = requires
        self.symbols = tuple(sorted(symbols_of(each for buffer in plan.arguments for each in buffer.type.lengths)))
        self._places = definitions(buffer.type.lengths for buffer in plan.arguments)

    @property
    def globals(self) -> list[str]:
        """Declarations of the list of lengths and of what is recorded for them."""
        return [f"vm.global.ref private mutable @{self._name}.recorded"] if self.symbols else []

    def read(self, text: FunctionText) -> Lengths:
        """Lengths of a call, in its function."""
        registers = {}
        for symbol in self.symbols:
            if symbol not in self._places:
                raise InvalidArgumentError(f"no argument of @{self._name} tells {symbol}")
            argument, axis, factor, constant = self._places[symbol]
            register = registers[symbol] = text.wide()
            text.call("hal.buffer_view.dim", [f"%r{argument}", text.i32(axis)], [register])
            if constant:
                text.line(f"{register} = vm.sub.i64 {register}, {text.i64(constant)}")
            if factor > 1:
                # A rest is found when the argument's shape is held against what it has to be.
                text.line(f"{register} = vm.div.i64.s {register}, {text.i64(factor)}")
        return Lengths(text, self._plan.plan, registers)

    def load(self, text: FunctionText) -> Lengths:
        """Lengths of the call that records, in a function that records: its argument is the list."""
        registers = {}
        for number, symbol in enumerate(self.symbols):
            registers[symbol] = text.wide()
            text.line(f"{registers[symbol]} = vm.list.get.i64 %r0, {text.i32(number)}")
        return Lengths(text, self._plan.plan, registers)

    def check(self, text: FunctionText, lengths: Lengths, kernels: Mapping[str, Kernel]) -> None:
        """Holds what the program and its kernels take for granted."""
        shapes = [buffer.type.lengths for buffer in self._plan.arguments]
        where = ", ".join(
            f"{str(shapes[argument][axis])[1:-1]} is dimension {axis} of argument {argument}"
            for argument, axis, _, _ in self._places.values()
        )
        for symbol in self.symbols:
            argument, axis, _, _ = self._places[symbol]
            message = f"argument {argument}: expected at most {MAX_SIZE} elements along dimension {axis}"
            _hold(text, lengths.register(symbol), text.i64(MAX_SIZE), message)
        for pair in self._requires if isinstance(self._requires, tuple) else ():
            size, what = pair if isinstance(pair, tuple) and len(pair) == 2 else (None, None)
            for value in size.values if isinstance(size, DenseArray) else ():
                if isinstance(value, Size):
                    said = f"{what}; expected {str(value)[1:-1]} >= 0, where {where}"
                    _hold(text, text.i64(0), lengths.of(value), said)
        entries = dict.fromkeys(step.entry for step in walk(self._plan.steps) if isinstance(step, Dispatch))
        limits = dict.fromkeys(limit for entry in entries for limit in kernels[entry].limits)
        for limit in limits:
            got = f"got {str(limit.size)[1:-1]}, where {where}"
            wanted = f"expected at most {limit.most} {limit.what} in a kernel, {got}"
            _hold(text, lengths.of(limit.size), text.i64(limit.most), wanted)

    def record(
        self, text: FunctionText, lengths: Lengths, recorders: Sequence[FunctionText], commands: Mapping[int, str]
    ) -> None:
        """Puts command buffers for a call's lengths into registers, recorded anew if those of the last call differ.

        Args:
            text: of the function.
            lengths: of the call.
            recorders: functions that record a command buffer each.
            commands: registers by the recorders' numbers.
        """
        compare, known, record, go_on = (text.new_label() for _ in range(4))
        kept, some, same = text.reference(), text.integer(), text.integer()
        text.line(f"{kept} = vm.global.load.ref @{self._name}.recorded : {_LIST}")
        text.line(f"{some} = vm.cmp.nz.ref {kept}")
        text.line(f"vm.cond_br {some}, {compare}(), {record}()")
        text.label(compare)
        text.line(f"{same} = vm.const.i32 1")
        for number, symbol in enumerate(self.symbols):
            last, equal = text.wide(), text.integer()
            text.line(f"{last} = vm.list.get.i64 {kept}, {text.i32(number)}")
            text.line(f"{equal} = vm.cmp.eq.i64 {last}, {lengths.register(symbol)}")
            text.line(f"{same} = vm.and.i32 {same}, {equal}")
        text.line(f"vm.cond_br {same}, {known}(), {record}()")
        text.label(record)
        count = text.i32(len(self.symbols) + len(recorders))
        text.line(f"{kept} = vm.list.alloc {count} : {_LIST}")
        text.line(f"vm.list.resize {kept}, {count}")
        for number, symbol in enumerate(self.symbols):
            text.line(f"vm.list.set.i64 {kept}, {text.i32(number)}, {lengths.register(symbol)}")
        for number, recorder in enumerate(recorders):
            recorded = text.reference()
            text.line(f"{recorded} = vm.call @{recorder.name}({kept})")
            text.line(f"vm.list.set.ref {kept}, {text.i32(len(self.symbols) + number)}, {recorded}")
        text.line(f"vm.global.store.ref {kept}, @{self._name}.recorded : {_LIST}")
        text.line(f"vm.br {known}()")
        text.label(known)
        for number in range(len(recorders)):
            place = text.i32(len(self.symbols) + number)
            text.line(f"{commands[number]} = vm.list.get.ref {kept}, {place} : !hal.command_buffer")
        text.line(f"vm.br {go_on}()")
        text.label(go_on)


def _hold(text: FunctionText, less: str, more: str, message: str) -> None:
    """Fails with a message unless a number is at most another."""
    above, fails, holds = text.integer(), text.new_label(), text.new_label()
    text.line(f"{above} = vm.cmp.lt.i64.s {more}, {less}")
    text.line(f"vm.cond_br {above}, {fails}(), {holds}()")
    text.label(fails)
    shown = message.replace("\\", "/").replace('"', "'").replace("\n", " ")
    text.line(f'vm.fail {text.i32(_INVALID_ARGUMENT)}, "{shown}"')
    text.label(holds)
