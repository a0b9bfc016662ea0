"""The function of a schedule: it binds buffers, replays command buffers one after another, and decides between them.

Steps between two decisions of the host are one command buffer, or several if they are many. Each is submitted to wait
for the one before; the host waits only where it reads a flag, and at the end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ..codegen.kernel import Kernel
from ..ir.attributes import Attribute, FloatAttr
from ..ir.element_types import element_type
from ..ir.operation import Location
from ..ir.printer import line_text
from ..ir.sizes import Size
from ..ir.source import SourceText
from ..ir.types import I1, MemRefType
from ..passes.sequencing.steps import (
    MAX_RECORDED,
    Barrier,
    Branch,
    Buffer,
    Check,
    Loop,
    Repeat,
    Schedule,
    Step,
    is_recorded,
    recorded_size,
    rounds_together,
)
from .argument_values import HOST_MEMORY, HOST_USAGE, read_values
from .dynamic_call import DynamicCall
from .function_text import FunctionText
from .lengths import Lengths
from .recording import FLAG_STRIDE, Recorder
from .rodata import Rodata

MAX_PENDING: Final = 256
"""Submissions after which the host waits, so that a queue holds no more."""

MAX_REPLAYS: Final = 64
"""Replays of a loop's rounds between two tests: it starts with one, and doubles them."""

ROUNDS: Final = 16
"""Rounds recorded together, of a loop whose trips are known when it begins; the rest goes one by one."""

_DEVICE_MEMORY, _DEVICE_USAGE = 48, 0xC03
_INDIRECT_USAGE: Final = 0x100
_ENCODING_DENSE = 1


class SequenceWriter:
    """Writes the functions of one schedule.

    Args:
        name: of the exported function.
        plan: its schedule.
        kernels: by entry point.
        executables: names of the globals that hold them, by entry point.
        rodata: gives the ordinal of a constant of the module.
        declaration: the function's types as reflection shows them.
        attributes: of the function: what calls have to fulfil.
        location: of the function.
        source: the program's text.
    """

    def __init__(
        self,
        name: str,
        plan: Schedule,
        kernels: Mapping[str, Kernel],
        executables: Mapping[str, str],
        rodata: Rodata,
        declaration: str,
        attributes: Mapping[str, Attribute],
        location: Location,
        source: SourceText,
    ) -> None:
        self._plan = plan
        self._rodata = rodata
        self._kernels = kernels
        self._call = DynamicCall(name, plan, attributes)
        self._recorder = Recorder(name, self._call, plan, kernels, executables, rodata, source)
        self._source = source
        self._place = line_text(source, location)
        reflection = {"iree.abi.declaration": declaration}
        self._text = FunctionText(name, len(plan.arguments), len(plan.results), reflection, self._place)
        self._bound: dict[str, str] = {}
        self._device = self._null = self._last = ""
        self._lengths = Lengths(self._text, plan.plan, {})
        self._commands: dict[int, str] = {}

    @property
    def recorders(self) -> Sequence[FunctionText]:
        """Functions that record a command buffer each and give it, once ``function`` has been called."""
        return self._recorder.functions

    @property
    def is_recorded_at_load(self) -> bool:
        """Whether command buffers are the same for all calls."""
        return not self._call.symbols

    @property
    def globals(self) -> Sequence[str]:
        """Declarations of what calls keep."""
        return self._call.globals

    def recording_global(self, index: int) -> str:
        """The global that holds a recorded command buffer."""
        return self._recorder.recording_global(index)

    def function(self) -> FunctionText:
        """The exported function."""
        plan, text = self._plan, self._text
        self._device = text.load_global("device", "hal.device")
        self._null, self._last = text.null(), text.null()
        start = self._bind()
        self._steps(plan.steps)
        if self._call.symbols:
            with text.inserted(start):
                self._call.record(text, self._lengths, self._recorder.functions, self._commands)
        text.at(self._place)
        if self._recorder.functions:
            text.await_fence(self._last)
        for name in ("arena", "flags"):
            if name in self._bound:
                arguments = [self._device, text.i64(-1), self._null, self._fence(), self._bound[name], text.i64(0)]
                text.call("hal.device.queue.dealloca", arguments)
        views = [self._view(each) for each in plan.results]
        text.line(f"vm.return {', '.join(views)}" if views else "vm.return")
        return text

    def _fence(self) -> str:
        return self._text.reference_of("hal.fence.create", [self._device, self._text.i64(0)])

    # -- buffers ---------------------------------------------------------------------------------------

    def _bind(self) -> int:
        """References to the buffer of each slot; gives the position in the text after the checks of arguments."""
        text, plan = self._text, self._plan
        if "constants" in self._recorder.slots:
            self._bound["constants"] = text.load_global("constants", "hal.buffer")
        for index in self._call.values:
            self._take(index)
        buffers = {index: self._bound[f"argument{index}"] for index in self._call.values}
        values = read_values(
            text, self._device, {index: (each, plan.arguments[index].type.scalar) for index, each in buffers.items()}
        )
        self._lengths = self._call.read(text, values)
        for index in range(len(plan.arguments)):
            if index not in values:
                self._take(index)
        if self._call.symbols or values:
            self._call.check(text, self._lengths, values, self._kernels)
        start = text.position
        arena_usage = _DEVICE_USAGE | (_INDIRECT_USAGE if plan.tables else 0)
        self._allocate("arena", _DEVICE_MEMORY, arena_usage)
        self._allocate("flags", HOST_MEMORY, HOST_USAGE)
        for each in plan.results:
            if each.kind == "result":
                self._allocate(f"result{each.number}", _DEVICE_MEMORY, _DEVICE_USAGE, each)
            for length in (each.bytes, *each.type.lengths):
                if isinstance(length, Size):
                    self._lengths.of(length)
        return start

    def _take(self, index: int) -> None:
        """The buffer of an argument whose type is as it has to be."""
        text, buffer = self._text, self._plan.arguments[index]
        message = text.rodata(self._rodata.text(f"argument {index}"))
        view = f"%r{index}"
        dims = [(self._lengths.of(length),) for length in buffer.type.lengths]
        element = text.i32(_signed(element_code(buffer.type)))
        text.call("hal.buffer_view.assert", [view, message, element, text.i32(_ENCODING_DENSE), dims])
        self._bound[f"argument{index}"] = text.reference_of("hal.buffer_view.buffer", [view])

    def _allocate(self, name: str, memory: int, usage: int, buffer: Buffer | None = None) -> None:
        text = self._text
        if name in self._recorder.slots and name not in self._bound:
            fence = self._fence()
            arguments = [self._device, text.i64(-1), self._null, fence, text.i64(0), text.i32(memory), text.i32(usage)]
            if buffer is not None:
                arguments.append(self._lengths.words(buffer))
            else:
                flags = len(self._plan.flags) * FLAG_STRIDE
                arguments.append(self._lengths.arena if name == "arena" else text.i64(flags))
            arguments.append(text.i64(0))
            self._bound[name] = text.reference_of("hal.device.queue.alloca", arguments)
            text.await_fence(fence)

    def _view(self, buffer: Buffer) -> str:
        text = self._text
        if buffer.kind == "argument":
            return f"%r{buffer.number}"
        name, offset = self._recorder.place(self._lengths, buffer)
        dims = [(self._lengths.of(length),) for length in buffer.type.lengths]
        element = text.i32(_signed(element_code(buffer.type)))
        place = [self._bound[name], self._lengths.at(offset), self._lengths.of(buffer.bytes)]
        return text.reference_of("hal.buffer_view.create", [*place, element, text.i32(_ENCODING_DENSE), dims])

    # -- control flow ----------------------------------------------------------------------------------

    def _steps(self, steps: Sequence[Step]) -> None:
        pending: list[Step] = []
        size = 0
        for step in steps:
            if is_recorded(step):
                more = recorded_size([step]) or 0
                if size + more > MAX_RECORDED:
                    self._replay(pending)
                    pending, size = [], 0
                pending.append(step)
                size += more
                continue
            self._replay(pending)
            pending, size = [], 0
            if not isinstance(step, Barrier):
                self._text.at(line_text(self._source, step.operation.location))
            if isinstance(step, Repeat):
                self._repeat(step)
            elif isinstance(step, Loop):
                self._loop(step)
            elif isinstance(step, Branch):
                self._branch(step)
            elif isinstance(step, Check):
                self._check(step)
        self._replay(pending)

    def _repeat(self, step: Repeat) -> None:
        """Rounds whose number is known: several are a command buffer, and nothing waits between them."""
        text = self._text
        trips = step.trips
        count = text.i32(_signed(trips)) if isinstance(trips, int) else self._flag(trips)
        size = recorded_size(step.body)
        if size is None or size > MAX_RECORDED or not all(map(is_recorded, step.body)):
            with text.counted(count):
                self._steps(step.body)
            return
        if isinstance(trips, int):
            # Recording a command costs about half of a submission, and is done anew for each call with other buffers.
            rounds = rounds_together(step.body, math.isqrt(2 * trips // max(size, 1)))
            self._replays(
                self._recorder.record([Repeat(step.operation, rounds, step.body)]), text.i32(_signed(trips // rounds))
            )
            if trips % rounds:
                self._submit(self._recorder.record([Repeat(step.operation, trips % rounds, step.body)]))
            return
        rounds = rounds_together(step.body, ROUNDS)
        for divide, body in (("div", [Repeat(step.operation, rounds, step.body)]), ("rem", step.body)):
            times = text.integer()
            text.line(f"{times} = vm.{divide}.i32.u {count}, {text.i32(rounds)}")
            self._replays(self._recorder.record(body), times)

    def _loop(self, step: Loop) -> None:
        text = self._text
        test, body, done = text.new_label(), text.new_label(), text.new_label()
        times = text.integer()
        if step.is_repeatable:
            text.line(f"{times} = vm.const.i32 1")
        text.line(f"vm.br {test}()")
        text.label(test)
        if step.is_repeatable and (recorded_size(step.condition) or MAX_RECORDED + 1) <= MAX_RECORDED:
            self._replays(self._recorder.record(step.condition), times)
            text.line(f"{times} = vm.add.i32 {times}, {times}")
            text.line(f"{times} = vm.min.i32.s {times}, {text.i32(MAX_REPLAYS)}")
        else:
            self._steps(step.condition)
        text.line(f"vm.cond_br {self._flag(step.flag)}, {body}(), {done}()")
        text.label(body)
        self._steps(step.body)
        text.line(f"vm.br {test}()")
        text.label(done)

    def _branch(self, step: Branch) -> None:
        text = self._text
        labels = [text.new_label() for _ in step.branches]
        done = text.new_label()
        flag = self._flag(step.index)
        if step.index.type.scalar is I1:
            text.line(f"vm.cond_br {flag}, {labels[0]}(), {labels[1]}()")
        else:
            cases = ", ".join(f"{index}: {label}()" for index, label in enumerate(labels))
            text.line(f"vm.br_table {flag} {{ default: {labels[-1]}(), {cases} }}")
        for label, branch in zip(labels, step.branches, strict=True):
            text.label(label)
            self._steps(branch)
            text.line(f"vm.br {done}()")
        text.label(done)

    def _check(self, step: Check) -> None:
        """An expectation of the host about what the device has written."""
        text, attributes = self._text, step.operation.attributes
        if self._recorder.functions:
            text.await_fence(self._last)
        tolerances = [attributes[key] for key in ("atol", "rtol") if key in attributes]
        numbers = [text.f32(each.value) for each in tolerances if isinstance(each, FloatAttr)]
        views = [self._view(buffer) for buffer in step.buffers]
        text.call(str(attributes["call_target_name"]), [self._device, *views, *numbers])

    def _flag(self, buffer: Buffer) -> str:
        """What the device wrote to a flag, once it has."""
        text = self._text
        text.await_fence(self._last)
        name, offset = self._recorder.place(self._lengths, buffer)
        loaded = text.integer()
        length = 1 if buffer.type.scalar.bits == 1 else 4
        text.call("hal.buffer.load", [self._bound[name], self._lengths.at(offset), text.i32(length)], [loaded])
        return loaded

    # -- submissions -----------------------------------------------------------------------------------

    def _replay(self, steps: Sequence[Step]) -> None:
        """Submits a command buffer of steps."""
        first = next((step for step in steps if not isinstance(step, Barrier)), None)
        if first is not None:
            self._text.at(line_text(self._source, first.operation.location))
            self._submit(self._recorder.record(steps))

    def _replays(self, index: int, times: str) -> None:
        """Submits a command buffer a number of times."""
        text = self._text
        with text.counted(times) as number:
            self._submit(index)
            wait, go_on, pending = text.new_label(), text.new_label(), text.integer()
            text.line(f"{pending} = vm.rem.i32.u {number}, {text.i32(MAX_PENDING)}")
            text.line(f"{pending} = vm.cmp.eq.i32 {pending}, {text.i32(MAX_PENDING - 1)}")
            text.line(f"vm.cond_br {pending}, {wait}(), {go_on}()")
            text.label(wait)
            text.await_fence(self._last)
            text.line(f"vm.br {go_on}()")
            text.label(go_on)

    def _submit(self, index: int) -> None:
        """Submits a command buffer after what was submitted last."""
        text = self._text
        if self._call.symbols:
            if index not in self._commands:
                self._commands[index] = text.reference()
            commands = self._commands[index]
        else:
            commands = text.load_global(self._recorder.recording_global(index), "hal.command_buffer")
        fence = self._fence()
        bindings = [(self._bound[name], text.i64(0), text.i64(-1)) for name in self._recorder.slots]
        arguments = [self._device, text.i64(-1), self._last, fence, commands, text.i64(0), bindings]
        text.call("hal.device.queue.execute.indirect", arguments)
        text.line(f"{self._last} = vm.assign.ref {fence}")


def element_code(type: MemRefType) -> int:
    """The HAL's code of a buffer's elements."""
    found = element_type(type.scalar)
    if found is None:
        raise ValueError(f"buffer views have no elements of {type.scalar}")
    return int(found)


def _signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value
