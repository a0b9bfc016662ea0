"""Calls of a function with call-dependent lengths: the symbols' values, checks, and command buffers for them.

Command buffers hold workgroup counts, offsets and push constants, so they are recorded for the lengths of a call and
kept for the next call, in a list after the lengths. A list in a global never changes, so concurrent calls with
different lengths use different lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ...status import InvalidArgumentError
from ..ir.attributes import Attribute, DenseArray
from ..ir.sizes import Place, Size, definitions, symbols_of
from ..kernels.kernel import Kernel
from ..passes.dynamic.requirements import REQUIRES, values_of
from ..passes.dynamic.resolve import MAX_SIZE
from ..passes.sequencing.steps import Dispatch, Schedule, walk
from .function_builder import FunctionBuilder, Register
from .lengths import Lengths
from .memory import read_values
from .parameters import Parameters

if TYPE_CHECKING:
    from ..ir.sizes import Dim

_INVALID_ARGUMENT: Final = 3
ELEMENT: Final = "!vm.opaque"
LIST: Final = f"!vm.list<{ELEMENT}>"


class DynamicCall:
    """The common parts of one function's calls.

    Args:
        name: the function's name.
        plan: the function's schedule.
        attributes: the function's attributes ``requires`` and ``values``, see ``passes/dynamic/requirements.py``.

    Attributes:
        symbols: the symbols that lengths depend on; none for a function of fixed lengths.
        values: the required sizes of the arguments whose values are lengths.
        recorded: the global that holds the list of lengths and command buffers, if there are symbols.
    """

    def __init__(self, name: str, plan: Schedule, attributes: Mapping[str, Attribute]) -> None:
        self._name = name
        self._plan = plan
        self._requires = attributes.get(REQUIRES, ())
        self.values: dict[int, Dim] = values_of(attributes, [buffer.type for buffer in plan.arguments])
        lengths = [length for buffer in plan.arguments for length in buffer.type.lengths]
        self.symbols: tuple[str, ...] = tuple(sorted(symbols_of([*lengths, *self.values.values()])))
        self.recorded: str = f"{name}.recorded"
        self._places = definitions((buffer.type.lengths for buffer in plan.arguments), self.values)

    def begin(
        self,
        code: FunctionBuilder,
        parameters: Parameters,
        device: Register,
        wait: Register,
        kernels: Mapping[str, Kernel],
    ) -> Lengths:
        """Reads and checks the lengths of a call, in a function that takes its arguments.

        Args:
            code: the builder of the function.
            parameters: the function's arguments.
            device: the register of the call's device.
            wait: the fence after which values may be read.
            kernels: the kernels by entry point.
        """
        lengths = Lengths(code, self._plan.plan, {})
        stored = [index for index in self.values if index not in parameters.numbers]
        buffers = {index: parameters.argument(lengths, index) for index in stored}
        scalars = {index: (buffer, self._plan.arguments[index].type.scalar) for index, buffer in buffers.items()}
        values = read_values(code, device, wait, scalars)
        values |= {index: parameters.length(index) for index in self.values if index in parameters.numbers}
        lengths = self._read(code, values)
        if self.symbols or values:
            self._check(code, lengths, values, kernels)
        return lengths

    def _read(self, code: FunctionBuilder, values: Mapping[int, Register]) -> Lengths:
        registers = {}
        for symbol in self.symbols:
            if symbol not in self._places:
                raise InvalidArgumentError(f"no argument of @{self._name} tells {symbol}")
            argument, axis, factor, constant = self._places[symbol]
            register = code.wide() if axis is not None else values[argument]
            if axis is not None:
                code.call("hal.buffer_view.dim", [code.arguments[argument], code.i32(axis)], [register])
            # A remainder is an error, reported by the check of the argument's shape or value.
            for name, number in (("sub.i64", constant), ("div.i64.s", factor - 1 and factor)):
                if number:
                    register = code.compute(name, register, code.i64(number))
            registers[symbol] = register
        return Lengths(code, self._plan.plan, registers)

    def load(self, code: FunctionBuilder) -> Lengths:
        """Loads the lengths of a call in a recording function, whose argument is the list of lengths."""
        registers = {
            symbol: code.compute("list.get.i64", code.arguments[0], code.i32(number))
            for number, symbol in enumerate(self.symbols)
        }
        return Lengths(code, self._plan.plan, registers)

    def _check(
        self, code: FunctionBuilder, lengths: Lengths, values: Mapping[int, Register], kernels: Mapping[str, Kernel]
    ) -> None:
        """Checks the requirements of the program and its kernels."""
        where = ", ".join(f"{self._at(source)} is {source}" for source in self._places.values())
        for symbol in self.symbols:
            source = self._places[symbol]
            message = f"argument {source.argument}: expected at most {MAX_SIZE} "
            message += "as its value" if source.axis is None else f"elements along dimension {source.axis}"
            _check_at_most(code, lengths.register(symbol), code.i64(MAX_SIZE), message)
        for argument, value in values.items():
            size = self.values[argument]
            if isinstance(size, Size) and size.name is not None and self._places[size.name].argument == argument:
                said = f"argument {argument}: expected a length as its value, which is 0 or more"
                _check_at_most(code, code.i64(0), value, said)
                continue
            used = [source for symbol, source in self._places.items() if symbol in symbols_of([size])]
            said = f"argument {argument}: expected its value to be {str(size).strip('()')}"
            said += ", where " * bool(used) + ", ".join(f"{self._at(source)} is {source}" for source in used)
            _check_equal(code, value, lengths.of(size), said)
        for required in self._requires if isinstance(self._requires, tuple) else ():
            listed, expectation = required if isinstance(required, tuple) and len(required) == 2 else (None, None)
            for length in listed.values if isinstance(listed, DenseArray) else ():
                if isinstance(length, Size):
                    said = f"{expectation}; expected {str(length)[1:-1]} >= 0, where {where}"
                    _check_at_most(code, code.i64(0), lengths.of(length), said)
        dispatches = [step for step in walk(self._plan.steps) if isinstance(step, Dispatch)]
        entries = [(not step.guard and kernels[step.entry].longer) or step.entry for step in dispatches]
        limits = dict.fromkeys(limit for entry in entries for limit in kernels[entry].limits)
        for limit in limits:
            got = f"got {str(limit.size)[1:-1]}, where {where}"
            wanted = f"expected at most {limit.most} {limit.noun} in a kernel, {got}"
            _check_at_most(code, lengths.of(limit.size), code.i64(limit.most), wanted)

    def _at(self, source: Place) -> str:
        if source.axis is None:
            return str(self.values[source.argument]).strip("()")
        return str(self._plan.arguments[source.argument].type.lengths[source.axis])[1:-1]

    def record(
        self,
        code: FunctionBuilder,
        lengths: Lengths,
        recorders: Sequence[FunctionBuilder],
        commands: Mapping[int, Register],
        kept: Register,
    ) -> None:
        """Puts command buffers for a call's lengths into registers; records them anew if the last call had other
        lengths.

        Args:
            code: the builder of the function.
            lengths: the call's lengths.
            recorders: the functions that each record a command buffer.
            commands: the registers by the recorders' numbers.
            kept: the register of the list of lengths and command buffers.
        """
        compare, known, record, done = (code.new_label() for _ in range(4))
        code.emit("global.load.ref", self.recorded, LIST, kept)
        code.jump_if(code.compute("cmp.nz.ref", kept), compare, record)
        code.label(compare)
        same = code.compute("const.i32", 1)
        for number, symbol in enumerate(self.symbols):
            last = code.compute("list.get.i64", kept, code.i32(number))
            equal = code.compute("cmp.eq.i64", last, lengths.register(symbol))
            code.emit("and.i32", same, equal, same)
        code.jump_if(same, known, record)
        code.label(record)
        count = code.i32(len(self.symbols) + len(commands))
        code.emit("list.alloc", ELEMENT, count, kept)
        code.emit("list.resize", kept, count)
        for number, symbol in enumerate(self.symbols):
            code.emit("list.set.i64", kept, code.i32(number), lengths.register(symbol))
        for index, number in enumerate(commands, len(self.symbols)):
            recorded = code.reference_of(recorders[number].name, [kept])
            code.emit("list.set.ref", kept, code.i32(index), recorded)
        code.store_global(kept, self.recorded, LIST)
        code.jump(known)
        code.label(known)
        for index, register in enumerate(commands.values(), len(self.symbols)):
            code.emit("list.get.ref", kept, code.i32(index), "!hal.command_buffer", register)
        code.jump(done)
        code.label(done)


def _check_at_most(code: FunctionBuilder, less: Register, more: Register, message: str) -> None:
    """Fails with a message unless `less <= more`."""
    _fail_if(code, code.compute("cmp.lt.i64.s", more, less), message)


def _check_equal(code: FunctionBuilder, left: Register, right: Register, message: str) -> None:
    """Fails with a message unless two numbers are equal."""
    _fail_if(code, code.compute("cmp.ne.i64", left, right), message)


def _fail_if(code: FunctionBuilder, condition: Register, message: str) -> None:
    fails, holds = code.new_label(), code.new_label()
    code.jump_if(condition, fails, holds)
    code.label(fails)
    code.fail(code.i32(_INVALID_ARGUMENT), message)
    code.label(holds)
