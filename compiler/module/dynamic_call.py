"""Calls of a function whose lengths depend on them: the symbols' values, checks, and command buffers for these.

Command buffers hold workgroup counts, offsets and push constants, so they are recorded for the lengths of a call, and
kept for the next one: in a list, after the lengths, which does not change once it is in its global. So a call that
another one runs beside, with other lengths, has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...status import InvalidArgumentError
from ..ir.attributes import Attribute, DenseArray
from ..ir.sizes import Place, Size, definitions, symbols_of
from ..kernels.kernel import Kernel
from ..passes.dynamic.requirements import REQUIRES, values_of
from ..passes.dynamic.resolve import MAX_SIZE
from ..passes.sequencing.steps import Dispatch, Schedule, walk
from .argument_values import read_values
from .function_text import FunctionText
from .lengths import Lengths
from .parameters import Parameters

_INVALID_ARGUMENT: Final = 3
_LIST: Final = "!vm.list<!vm.opaque>"


class DynamicCall:
    """What calls of one function have in common.

    Args:
        name: of the function.
        plan: its schedule.
        attributes: of the function: ``requires`` and ``values``, see ``passes/dynamic/requirements.py``.

    Attributes:
        symbols: that lengths depend on; none for a function of fixed lengths.
        values: arguments whose values are lengths, and the sizes that they have to be.
    """

    def __init__(self, name: str, plan: Schedule, attributes: Mapping[str, Attribute]) -> None:
        self._name = name
        self._plan = plan
        self._requires = attributes.get(REQUIRES, ())
        self.values = values_of(attributes, [buffer.type for buffer in plan.arguments])
        lengths = [each for buffer in plan.arguments for each in buffer.type.lengths]
        self.symbols = tuple(sorted(symbols_of([*lengths, *self.values.values()])))
        self._places = definitions((buffer.type.lengths for buffer in plan.arguments), self.values)

    @property
    def globals(self) -> list[str]:
        """Declarations of the list of lengths and of what is recorded for them."""
        return [f"vm.global.ref private mutable @{self._name}.recorded"] if self.symbols else []

    def begin(
        self, text: FunctionText, parameters: Parameters, device: str, wait: str, kernels: Mapping[str, Kernel]
    ) -> Lengths:
        """Lengths of a call, in a function that takes its arguments: they are read and held against each other.

        Args:
            text: of the function.
            parameters: its arguments; those whose values are lengths are checked.
            device: its register.
            wait: a fence before which nothing reads values.
            kernels: by entry point.
        """
        lengths = Lengths(text, self._plan.plan, {})
        stored = [index for index in self.values if index not in parameters.numbers]
        buffers = {index: parameters.argument(lengths, index) for index in stored}
        scalars = {index: (each, self._plan.arguments[index].type.scalar) for index, each in buffers.items()}
        values = read_values(text, device, wait, scalars)
        values |= {index: parameters.length(index) for index in self.values if index in parameters.numbers}
        lengths = self._read(text, values)
        if self.symbols or values:
            self._check(text, lengths, values, kernels)
        return lengths

    def _read(self, text: FunctionText, values: Mapping[int, str]) -> Lengths:
        registers = {}
        for symbol in self.symbols:
            if symbol not in self._places:
                raise InvalidArgumentError(f"no argument of @{self._name} tells {symbol}")
            argument, axis, factor, constant = self._places[symbol]
            register = text.wide() if axis is not None else values[argument]
            if axis is not None:
                text.call("hal.buffer_view.dim", [text.arguments[argument], text.i32(axis)], [register])
            # A rest is found when the argument's shape or value is held against what it has to be.
            for name, number in (("sub.i64", constant), ("div.i64.s", factor - 1 and factor)):
                if number:
                    whole, register = register, text.wide()
                    text.line(f"{register} = vm.{name} {whole}, {text.i64(number)}")
            registers[symbol] = register
        return Lengths(text, self._plan.plan, registers)

    def load(self, text: FunctionText) -> Lengths:
        """Lengths of the call that records, in a function that records: its argument is the list."""
        registers = {}
        for number, symbol in enumerate(self.symbols):
            registers[symbol] = text.wide()
            text.line(f"{registers[symbol]} = vm.list.get.i64 {text.arguments[0]}, {text.i32(number)}")
        return Lengths(text, self._plan.plan, registers)

    def _check(
        self, text: FunctionText, lengths: Lengths, values: Mapping[int, str], kernels: Mapping[str, Kernel]
    ) -> None:
        """Holds what the program and its kernels take for granted."""
        where = ", ".join(f"{self._at(place)} is {place}" for place in self._places.values())
        for symbol in self.symbols:
            place = self._places[symbol]
            message = f"argument {place.argument}: expected at most {MAX_SIZE} "
            message += "as its value" if place.axis is None else f"elements along dimension {place.axis}"
            _hold(text, lengths.register(symbol), text.i64(MAX_SIZE), message)
        for argument, value in values.items():
            size = self.values[argument]
            if isinstance(size, Size) and size.name is not None and self._places[size.name].argument == argument:
                said = f"argument {argument}: expected a length as its value, which is 0 or more"
                _hold(text, text.i64(0), value, said)
                continue
            used = [place for symbol, place in self._places.items() if symbol in symbols_of([size])]
            said = f"argument {argument}: expected its value to be {str(size).strip('()')}"
            said += ", where " * bool(used) + ", ".join(f"{self._at(place)} is {place}" for place in used)
            _hold_equal(text, value, lengths.of(size), said)
        for required in self._requires if isinstance(self._requires, tuple) else ():
            listed, what = required if isinstance(required, tuple) and len(required) == 2 else (None, None)
            for each in listed.values if isinstance(listed, DenseArray) else ():
                if isinstance(each, Size):
                    said = f"{what}; expected {str(each)[1:-1]} >= 0, where {where}"
                    _hold(text, text.i64(0), lengths.of(each), said)
        dispatches = [step for step in walk(self._plan.steps) if isinstance(step, Dispatch)]
        entries = [(not step.guard and kernels[step.entry].longer) or step.entry for step in dispatches]
        limits = dict.fromkeys(limit for entry in entries for limit in kernels[entry].limits)
        for limit in limits:
            got = f"got {str(limit.size)[1:-1]}, where {where}"
            wanted = f"expected at most {limit.most} {limit.what} in a kernel, {got}"
            _hold(text, lengths.of(limit.size), text.i64(limit.most), wanted)

    def _at(self, place: Place) -> str:
        """What is read at a place."""
        if place.axis is None:
            return str(self.values[place.argument]).strip("()")
        return str(self._plan.arguments[place.argument].type.lengths[place.axis])[1:-1]

    def record(
        self,
        text: FunctionText,
        lengths: Lengths,
        recorders: Sequence[FunctionText],
        commands: Mapping[int, str],
        kept: str,
    ) -> None:
        """Puts command buffers for a call's lengths into registers, recorded anew if those of the last call differ.

        Args:
            text: of the function.
            lengths: of the call.
            recorders: functions that record a command buffer each.
            commands: registers by the recorders' numbers.
            kept: the register of the list of lengths and command buffers.
        """
        compare, known, record, go_on = (text.new_label() for _ in range(4))
        some, same = text.integer(), text.integer()
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
        count = text.i32(len(self.symbols) + len(commands))
        text.line(f"{kept} = vm.list.alloc {count} : {_LIST}")
        text.line(f"vm.list.resize {kept}, {count}")
        for number, symbol in enumerate(self.symbols):
            text.line(f"vm.list.set.i64 {kept}, {text.i32(number)}, {lengths.register(symbol)}")
        for place, number in enumerate(commands, len(self.symbols)):
            recorded = text.reference()
            text.line(f"{recorded} = vm.call @{recorders[number].name}({kept})")
            text.line(f"vm.list.set.ref {kept}, {text.i32(place)}, {recorded}")
        text.line(f"vm.global.store.ref {kept}, @{self._name}.recorded : {_LIST}")
        text.line(f"vm.br {known}()")
        text.label(known)
        for place, register in enumerate(commands.values(), len(self.symbols)):
            text.line(f"{register} = vm.list.get.ref {kept}, {text.i32(place)} : !hal.command_buffer")
        text.line(f"vm.br {go_on}()")
        text.label(go_on)


def _hold(text: FunctionText, less: str, more: str, message: str) -> None:
    """Fails with a message unless a number is at most another."""
    _fail_if(text, f"vm.cmp.lt.i64.s {more}, {less}", message)


def _hold_equal(text: FunctionText, one: str, other: str, message: str) -> None:
    """Fails with a message unless a number is another."""
    _fail_if(text, f"vm.cmp.ne.i64 {one}, {other}", message)


def _fail_if(text: FunctionText, comparison: str, message: str) -> None:
    condition, fails, holds = text.integer(), text.new_label(), text.new_label()
    text.line(f"{condition} = {comparison}")
    text.line(f"vm.cond_br {condition}, {fails}(), {holds}()")
    text.label(fails)
    shown = message.replace("\\", "/").replace('"', "'").replace("\n", " ")
    text.line(f'vm.fail {text.i32(_INVALID_ARGUMENT)}, "{shown}"')
    text.label(holds)
