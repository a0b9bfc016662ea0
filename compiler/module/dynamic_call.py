"""Calls of a function whose lengths depend on them: the symbols' values, checks, and command buffers for these.

Command buffers hold workgroup counts, offsets and push constants, so they are recorded for the lengths of a call, and
kept for the next one. A call takes them before it first waits: another call may record others meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..codegen.kernel import Kernel
from ..ir.attributes import Attribute, DenseArray
from ..ir.sizes import Size, definitions, symbols_of
from ..passes.dynamic import MAX_SIZE
from ..passes.steps import Dispatch, Schedule, walk
from .function_text import FunctionText
from .lengths import Lengths

_INVALID_ARGUMENT: Final = 3


class DynamicCall:
    """What calls of one function have in common.

    Args:
        name: of the function.
        plan: its schedule.
        requires: its attribute of that name, which ``passes/dynamic.py`` makes.

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
        """Declarations of the lengths that command buffers are recorded for, and whether they are."""
        if not self.symbols:
            return []
        return [
            f"vm.global.i32 private mutable @{self._name}.recorded",
            *(f"vm.global.i64 private mutable @{self._name}.{symbol}" for symbol in self.symbols),
        ]

    def read(self, text: FunctionText) -> Lengths:
        """Lengths of a call, in its function."""
        registers = {}
        for symbol in self.symbols:
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
        """Lengths of the call that records, in a function that records."""
        registers = {}
        for symbol in self.symbols:
            registers[symbol] = text.wide()
            text.line(f"{registers[symbol]} = vm.global.load.i64 @{self._name}.{symbol}")
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
        same, known, record, go_on = text.integer(), text.new_label(), text.new_label(), text.new_label()
        text.line(f"{same} = vm.global.load.i32 @{self._name}.recorded")
        for symbol in self.symbols:
            last, equal = text.wide(), text.integer()
            text.line(f"{last} = vm.global.load.i64 @{self._name}.{symbol}")
            text.line(f"{equal} = vm.cmp.eq.i64 {last}, {lengths.register(symbol)}")
            text.line(f"{same} = vm.and.i32 {same}, {equal}")
        text.line(f"vm.cond_br {same}, {known}(), {record}()")
        text.label(record)
        text.line(f"vm.global.store.i32 {text.i32(0)}, @{self._name}.recorded")
        for symbol in self.symbols:
            text.line(f"vm.global.store.i64 {lengths.register(symbol)}, @{self._name}.{symbol}")
        for number, recorder in enumerate(recorders):
            text.line(f"{commands[number]} = vm.call @{recorder.name}()")
            text.store_global(commands[number], f"{self._name}.commands.{number}", "hal.command_buffer")
        text.line(f"vm.global.store.i32 {text.i32(1)}, @{self._name}.recorded")
        text.line(f"vm.br {go_on}()")
        text.label(known)
        for number in range(len(recorders)):
            text.line(f"{commands[number]} = vm.global.load.ref @{self._name}.commands.{number} : !hal.command_buffer")
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
