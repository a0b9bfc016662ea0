"""The function of a schedule: it binds buffers, replays command buffers one after another, and decides between them.

Steps between two decisions of the host are one command buffer, or several if they are many. Each is submitted to wait
for the one before; the host waits only where it reads a flag, and at the end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ..abi.function_abi import Abi, FunctionAbi
from ..ir.attributes import FloatAttr
from ..ir.operation import Operation
from ..ir.printer import line_text
from ..ir.sizes import Size
from ..ir.source import SourceText
from ..ir.types import I1
from ..kernels.kernel import Kernel
from ..passes.sequencing.reuse import reuses
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
    walk,
)
from .allocation import DEVICE, HOST, INDIRECT, STRIDE, allocate, new_fence
from .declaration import ASYNC, reflection
from .dynamic_call import DynamicCall
from .function_text import FunctionText
from .lengths import Lengths
from .parameters import Parameters
from .recording import Recorder
from .rodata import Rodata
from .synchronous import write_synchronous
from .views import view_of

MAX_PENDING: Final = 256
"""Submissions after which the host waits, so that a queue holds no more."""

MAX_REPLAYS: Final = 64
"""Replays of a loop's rounds between two tests: it starts with one, and doubles them."""

ROUNDS: Final = 16
"""Rounds recorded together, of a loop whose trips are known when it begins; the rest goes one by one."""


class SequenceWriter:
    """Writes the functions of one schedule.

    Args:
        function: as it was before it became a sequence, for its types.
        plan: its schedule.
        kernels: by entry point.
        executables: names of the globals that hold them, by entry point.
        rodata: gives the ordinal of a constant of the module.
        source: the program's text.
    """

    def __init__(
        self,
        function: Operation,
        plan: Schedule,
        kernels: Mapping[str, Kernel],
        executables: Mapping[str, str],
        rodata: Rodata,
        source: SourceText,
    ) -> None:
        self._function = function
        self._name = name = str(function.attributes["sym_name"])
        self._plan = plan
        self._rodata = rodata
        self._kernels = kernels
        self._call = DynamicCall(name, plan, function.attributes)
        self._recorder = Recorder(name, self._call, plan, kernels, executables, rodata, source)
        self._source = source
        self._place = line_text(source, function.location)
        self._abi = FunctionAbi.of(function)
        taken = Parameters.argument_letters(plan, self._abi) + "r" * (len(plan.results) + 2)
        self._reused = reuses(plan)
        attributes = reflection(function, self._reused, is_async=True)
        self._text = FunctionText(f"{name}{ASYNC}", taken, "", attributes, self._place)
        self._wait, self._signal = self._text.arguments[-2:]
        self._parameters = Parameters(self._text, plan, self._abi, rodata)
        self._bound: dict[str, str] = {}
        self._offsets: dict[str, int] = {}
        self._device, self._last = "", self._wait
        self._lengths = Lengths(self._text, plan.plan, {})
        self._commands: dict[int, str] = {}
        self._kept = self._text.reference() if self._call.symbols else ""

    @property
    def recorders(self) -> Sequence[FunctionText]:
        """Functions that record a command buffer each and give it, once ``function`` has been called."""
        return self._recorder.functions

    @property
    def recorded_at_load(self) -> Sequence[int]:
        """Numbers of the recorders whose command buffers are the same for all calls."""
        one_shot = range(len(self.recorders)) if self._call.symbols else self._recorder.one_shot
        return [index for index in range(len(self.recorders)) if index not in one_shot]

    @property
    def globals(self) -> Sequence[str]:
        """Declarations of what calls keep."""
        return self._call.globals

    def recording_global(self, index: int) -> str:
        """The global that holds a recorded command buffer."""
        return self._recorder.recording_global(index)

    def asynchronous(self) -> FunctionText:
        """The function that takes the storages of its results and two fences."""
        plan, text = self._plan, self._text
        self._device = text.load_global("device", "hal.device")
        start = self._bind()
        owned = [name for name in ("arena", "flags", "numbers") if name in self._bound]
        is_signalled = self._steps(plan.steps, "" if owned else self._signal)
        if self._call.symbols:
            with text.inserted(start):
                self._call.record(text, self._lengths, self._recorder.functions, self._commands, self._kept)
        text.at(self._place)
        for name in owned:
            fence = self._signal if name == owned[-1] else new_fence(text, self._device)
            arguments = [self._device, text.i64(-1), self._last, fence, self._bound[name], text.i64(0)]
            text.call("hal.device.queue.dealloca", arguments)
            self._last = fence
        if not owned and not is_signalled:
            arguments = [self._device, text.i64(-1), self._last, self._signal, text.i64(0)]
            text.call("hal.device.queue.barrier", arguments)
        text.line("vm.return")
        return text

    def synchronous(self) -> FunctionText:
        """The function that allocates its results, or takes their storages by its convention, and waits."""
        plan, abi = self._plan, self._abi
        takes, gives = Parameters.argument_letters(plan, abi), Parameters.result_letters(plan, abi)
        if abi.has_outs:
            takes, gives = takes + gives, ""
        attributes = reflection(self._function, self._reused, is_async=False)
        text = FunctionText(self._name, takes, gives, attributes, self._place)
        write_synchronous(text, plan, abi, self._call, self._kernels, self._rodata)
        return text

    # -- buffers ---------------------------------------------------------------------------------------

    def _bind(self) -> int:
        """References to the buffer of each slot; gives the position in the text after the checks of arguments."""
        text, plan = self._text, self._plan
        if "constants" in self._recorder.slots:
            self._bound["constants"] = text.load_global("constants", "hal.buffer")
        self._lengths = self._call.begin(text, self._parameters, self._device, self._wait, self._kernels)
        for index in range(len(plan.arguments)):
            if index not in self._parameters.numbers:
                self._bound[f"argument{index}"] = self._parameters.argument(self._lengths, index)
        for index in range(len(plan.results)):
            self._bound[f"result{index}"] = self._parameters.result(self._lengths, index)
        if self._parameters.numbers:
            self._place_numbers()
        start = text.position
        if "arena" in self._recorder.slots:
            memory = INDIRECT if plan.tables else DEVICE
            self._bound["arena"], self._last = allocate(text, self._device, self._last, memory, self._lengths.arena)
        if "flags" in self._recorder.slots:
            size = text.i64(len(plan.flags) * STRIDE)
            self._bound["flags"], self._last = allocate(text, self._device, self._last, HOST, size)
        for buffer in (each for step in walk(plan.steps) if isinstance(step, Check) for each in step.buffers):
            # Lengths that are computed inside a branch are not known outside of it.
            self._recorder.place(self._lengths, buffer)
            for length in (buffer.bytes, *buffer.type.lengths):
                if isinstance(length, Size):
                    self._lengths.of(length)
        return start

    def _place_numbers(self) -> None:
        """Puts arguments that are numbers where dispatches read them: in memory of this call's own."""
        text = self._text
        size = text.i64(STRIDE * len(self._parameters.numbers))
        # Nothing that is submitted before uses it, so the host does not wait for that.
        memory, fence = allocate(text, self._device, text.null(), HOST, size)
        text.await_fence(fence)
        self._bound["numbers"] = memory
        for index, offset in self._parameters.store_numbers(memory).items():
            self._bound[f"argument{index}"] = memory
            self._offsets[f"argument{index}"] = offset

    def _view(self, buffer: Buffer) -> str:
        root = buffer.root
        if buffer.kind == "argument" and self._abi.arguments[buffer.number] is Abi.VIEW:
            return self._text.arguments[buffer.number]
        if root is buffer and buffer.kind == "result" and self._abi.results[buffer.number] is not Abi.BUFFER:
            return self._parameters.storage(buffer.number)
        name, offset = self._recorder.place(self._lengths, buffer)
        return view_of(self._text, self._lengths, buffer, self._bound[name], self._offsets.get(name, offset))

    def _steps(self, steps: Sequence[Step], signal: str = "") -> bool:
        """Writes steps; whether the last of them is a submission, which then signals a fence."""
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
        return self._replay(pending, signal)

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

    def _replay(self, steps: Sequence[Step], signal: str = "") -> bool:
        """Submits a command buffer of steps, if there are any."""
        first = next((step for step in steps if not isinstance(step, Barrier)), None)
        if first is not None:
            self._text.at(line_text(self._source, first.operation.location))
            self._submit(self._recorder.record(steps), signal)
        return bool(first is not None and signal)

    def _replays(self, index: int, times: str) -> None:
        """Submits a command buffer a number of times."""
        text = self._text
        with text.counted(times) as number:
            self._submit(index)
            pending = text.integer()
            text.line(f"{pending} = vm.rem.i32.u {number}, {text.i32(MAX_PENDING)}")
            text.line(f"{pending} = vm.cmp.eq.i32 {pending}, {text.i32(MAX_PENDING - 1)}")
            with text.where(pending):
                text.await_fence(self._last)

    def _submit(self, index: int, signal: str = "") -> None:
        """Submits a command buffer after what was submitted last; what comes next waits unless a fence is given."""
        text = self._text
        if index in self._recorder.one_shot:
            commands = text.reference()
            text.line(f"{commands} = vm.call @{self._recorder.functions[index].name}({self._kept})")
        elif self._call.symbols:
            if index not in self._commands:
                self._commands[index] = text.reference()
            commands = self._commands[index]
        else:
            commands = text.load_global(self._recorder.recording_global(index), "hal.command_buffer")
        fence = signal or new_fence(text, self._device)
        bindings = [self._binding(name) for name in self._recorder.slots]
        arguments = [self._device, text.i64(-1), self._last, fence, commands, text.i64(0), bindings]
        text.call("hal.device.queue.execute.indirect", arguments)
        if not signal:
            text.line(f"{self._last} = vm.assign.ref {fence}")

    def _binding(self, slot: str) -> tuple[str, str, str]:
        """What a slot is: a buffer, an offset and a length."""
        text = self._text
        if slot in self._offsets:
            return self._bound[slot], text.i64(self._offsets[slot]), text.i64(STRIDE)
        return self._bound[slot], text.i64(0), text.i64(-1)


def _signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value
