"""The functions of a schedule: they bind buffers, replay command buffers in order, and make the host's decisions.

Steps between two decisions of the host form one command buffer, or several if there are many steps. Each submission
waits for the previous submission; the host waits only to read a flag, and at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ..abi.function_abi import Abi, FunctionAbi
from ..ir.attributes import FloatAttr
from ..ir.operation import Operation
from ..ir.sizes import Size
from ..ir.types import I1
from ..passes.sequencing.barriers import reuses
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
from .context import ModuleContext
from .declaration import ASYNC, reflection
from .dynamic_call import DynamicCall
from .function_builder import FunctionBuilder, Register
from .lengths import Lengths
from .memory import DEVICE, HOST, INDIRECT, STRIDE, allocate, load_scalar, new_fence, view_of
from .parameters import Parameters
from .recording import Recorder

MAX_PENDING: Final = 256
"""The most submissions between two waits of the host, which bounds the queue's length."""

MAX_REPLAYS: Final = 64
"""The most replays of a loop's iterations between two tests; the number starts at one and doubles."""

ROUNDS: Final = 16
"""Iterations recorded together, for a loop with a known trip count; the remainder runs one by one."""


class SequenceWriter:
    """Writes the functions of one schedule.

    Args:
        function: the original function, for its types.
        plan: the function's schedule.
        context: the module's context.
    """

    def __init__(self, function: Operation, plan: Schedule, context: ModuleContext) -> None:
        self._function = function
        self._name = name = str(function.attributes["sym_name"])
        self._plan = plan
        self._context = context
        self._call = DynamicCall(name, plan, function.attributes)
        self._recorder = Recorder(name, self._call, plan, context)
        self._place = context.place(function.location)
        self._abi = FunctionAbi.of(function)
        self._reused = reuses(plan)
        taken = Parameters.argument_letters(plan, self._abi) + "r" * (len(plan.results) + 2)
        attributes = reflection(function, self._reused, is_async=True)
        self._code = code = FunctionBuilder(f"{name}{ASYNC}", taken, "", attributes, self._place)
        self._wait, self._signal = code.arguments[-2:]
        self._parameters = Parameters(code, plan, self._abi, context.rodata)
        self._bound: dict[str, Register] = {}
        self._offsets: dict[str, int] = {}
        self._last = self._wait
        self._lengths = Lengths(code, plan.plan, {})
        self._commands: dict[int, Register] = {}
        self._kept = code.reference() if self._call.symbols else None

    @property
    def recorders(self) -> Sequence[FunctionBuilder]:
        """The functions that each record and return a command buffer, once ``asynchronous`` has been called."""
        return self._recorder.functions

    @property
    def recorded_at_load(self) -> Sequence[int]:
        """The numbers of the recorders whose command buffers are the same for all calls."""
        one_shot = range(len(self.recorders)) if self._call.symbols else self._recorder.one_shot
        return [index for index in range(len(self.recorders)) if index not in one_shot]

    @property
    def recorded_by_call(self) -> str | None:
        """The global that holds the recordings for the lengths of a call; None for fixed lengths."""
        return self._call.recorded if self._call.symbols else None

    def recording_global(self, index: int) -> str:
        """Returns the global that holds a recorded command buffer."""
        return self._recorder.recording_global(index)

    def asynchronous(self) -> FunctionBuilder:
        """Writes the function that takes the storages of its results and two fences."""
        plan, code = self._plan, self._code
        self._device = code.load_global("device", "!hal.device")
        start = self._bind()
        owned = [name for name in ("arena", "flags", "numbers") if name in self._bound]
        is_signalled = self._steps(plan.steps, None if owned else self._signal)
        if self._kept is not None:
            code.at(self._place)
            with code.inserted(start):
                self._call.record(code, self._lengths, self._recorder.functions, self._commands, self._kept)
        code.at(self._place)
        for name in owned:
            fence = self._signal if name == owned[-1] else new_fence(code, self._device)
            arguments = [self._device, code.i64(-1), self._last, fence, self._bound[name], code.i64(0)]
            code.call("hal.device.queue.dealloca", arguments)
            self._last = fence
        if not owned and not is_signalled:
            arguments = [self._device, code.i64(-1), self._last, self._signal, code.i64(0)]
            code.call("hal.device.queue.barrier", arguments)
        code.emit("return", ())
        return code

    def synchronous(self) -> FunctionBuilder:
        """Writes the function that allocates its results, or takes their storages in its convention, and waits."""
        plan, abi = self._plan, self._abi
        takes, gives = Parameters.argument_letters(plan, abi), Parameters.result_letters(plan, abi)
        if abi.has_outs:
            takes, gives = takes + gives, ""
        attributes = reflection(self._function, self._reused, is_async=False)
        code = FunctionBuilder(self._name, takes, gives, attributes, self._place)
        device, last = code.load_global("device", "!hal.device"), code.null()
        storages, memories = [], []
        if not abi.has_outs:
            lengths = Lengths(code, plan.plan, {})
            if any(isinstance(length, Size) for result in plan.results for length in result.type.lengths):
                parameters = Parameters(code, plan, abi, self._context.rodata)
                lengths = self._call.begin(code, parameters, device, last, self._context.kernels)
            for result, kind in zip(plan.results, abi.results, strict=True):
                use = HOST if kind is Abi.VALUE else DEVICE
                memory, last = allocate(code, device, last, use, lengths.words(result))
                memories.append(memory)
                storages.append(memory if kind is Abi.BUFFER else view_of(code, lengths, result, memory))
        done = new_fence(code, device)
        code.call(f"{code.name}{ASYNC}", [*code.arguments, *storages, last, done])
        code.await_fence(done)
        results = [
            load_scalar(code, memory, 0, result.type.scalar) if kind is Abi.VALUE else storage
            for result, kind, memory, storage in zip(plan.results, abi.results, memories, storages, strict=False)
        ]
        code.emit("return", results)
        return code

    # -- buffers ---------------------------------------------------------------------------------------

    def _bind(self) -> int:
        """Gets the buffer of each slot; returns the code position after the checks of arguments."""
        code, plan = self._code, self._plan
        if "constants" in self._recorder.slots:
            self._bound["constants"] = code.load_global("constants", "!hal.buffer")
        self._lengths = self._call.begin(code, self._parameters, self._device, self._wait, self._context.kernels)
        for index in range(len(plan.arguments)):
            if index not in self._parameters.numbers:
                self._bound[f"argument{index}"] = self._parameters.argument(self._lengths, index)
        for index in range(len(plan.results)):
            self._bound[f"result{index}"] = self._parameters.result(self._lengths, index)
        if self._parameters.numbers:
            self._place_numbers()
        start = code.position
        if "arena" in self._recorder.slots:
            memory = INDIRECT if plan.tables else DEVICE
            self._bound["arena"], self._last = allocate(code, self._device, self._last, memory, self._lengths.arena)
        if "flags" in self._recorder.slots:
            size = code.i64(len(plan.flags) * STRIDE)
            self._bound["flags"], self._last = allocate(code, self._device, self._last, HOST, size)
        for buffer in (checked for step in walk(plan.steps) if isinstance(step, Check) for checked in step.buffers):
            # Lengths computed inside a branch are not available outside it.
            self._recorder.place(self._lengths, buffer)
            for length in (buffer.bytes, *buffer.type.lengths):
                if isinstance(length, Size):
                    self._lengths.of(length)
        return start

    def _place_numbers(self) -> None:
        """Stores numeric arguments in memory of this call, from which dispatches read them."""
        code = self._code
        size = code.i64(STRIDE * len(self._parameters.numbers))
        # No earlier submission uses this memory, so the host need not wait for them.
        memory, fence = allocate(code, self._device, code.null(), HOST, size)
        code.await_fence(fence)
        self._bound["numbers"] = memory
        for index, offset in self._parameters.store_numbers(memory).items():
            self._bound[f"argument{index}"] = memory
            self._offsets[f"argument{index}"] = offset

    def _view(self, buffer: Buffer) -> Register:
        root = buffer.root
        if buffer.type is root.type:
            buffer = root
        if buffer.kind == "argument" and self._abi.arguments[buffer.number] is Abi.VIEW:
            return self._code.arguments[buffer.number]
        if root is buffer and buffer.kind == "result" and self._abi.results[buffer.number] is not Abi.BUFFER:
            return self._parameters.storage(buffer.number)
        name, offset = self._recorder.place(self._lengths, buffer)
        return view_of(self._code, self._lengths, buffer, self._bound[name], self._offsets.get(name, offset))

    def _steps(self, steps: Sequence[Step], signal: Register | None = None) -> bool:
        """Writes steps; returns whether the last step is a submission that signals ``signal``."""
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
                self._code.at(self._context.place(step.operation.location))
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
        """Repeats a loop's body a known number of times; several iterations share a command buffer, without waits."""
        code = self._code
        trips = step.trips
        count = code.i32(trips) if isinstance(trips, int) else self._flag(trips)
        size = recorded_size(step.body)
        if size is None or size > MAX_RECORDED or not all(map(is_recorded, step.body)):
            with code.counted(count):
                self._steps(step.body)
            return
        if isinstance(trips, int):
            # Recording a command costs about half a submission, and is repeated for each call with other buffers.
            rounds = rounds_together(step.body, math.isqrt(2 * trips // max(size, 1)))
            self._replays(self._recorder.record([Repeat(step.operation, rounds, step.body)]), code.i32(trips // rounds))
            if trips % rounds:
                self._submit(self._recorder.record([Repeat(step.operation, trips % rounds, step.body)]))
            return
        rounds = rounds_together(step.body, ROUNDS)
        for divide, body in (("div", [Repeat(step.operation, rounds, step.body)]), ("rem", step.body)):
            self._replays(self._recorder.record(body), code.compute(f"{divide}.i32.u", count, code.i32(rounds)))

    def _loop(self, step: Loop) -> None:
        code = self._code
        test, body, done = code.new_label(), code.new_label(), code.new_label()
        times = code.integer()
        if step.is_repeatable:
            code.emit("const.i32", 1, times)
        code.jump(test)
        code.label(test)
        if step.is_repeatable and (recorded_size(step.condition) or MAX_RECORDED + 1) <= MAX_RECORDED:
            self._replays(self._recorder.record(step.condition), times)
            code.emit("add.i32", times, times, times)
            code.emit("min.i32.s", times, code.i32(MAX_REPLAYS), times)
        else:
            self._steps(step.condition)
        code.jump_if(self._flag(step.flag), body, done)
        code.label(body)
        self._steps(step.body)
        code.jump(test)
        code.label(done)

    def _branch(self, step: Branch) -> None:
        code = self._code
        labels = [code.new_label() for _ in step.branches]
        done = code.new_label()
        flag = self._flag(step.index)
        if step.index.type.scalar is I1:
            code.jump_if(flag, labels[0], labels[1])
        else:
            code.emit("br_table", flag, labels[-1], (), [(label, ()) for label in labels])
        for label, branch in zip(labels, step.branches, strict=True):
            code.label(label)
            self._steps(branch)
            code.jump(done)
        code.label(done)

    def _check(self, step: Check) -> None:
        """Calls the host's check of values that the device has written."""
        code, attributes = self._code, step.operation.attributes
        code.await_fence(self._last)
        tolerances = [attributes[key] for key in ("atol", "rtol") if key in attributes]
        numbers = [code.f32(tolerance.value) for tolerance in tolerances if isinstance(tolerance, FloatAttr)]
        views = [self._view(buffer) for buffer in step.buffers]
        code.call(str(attributes["call_target_name"]), [self._device, *views, *numbers])

    def _flag(self, buffer: Buffer) -> Register:
        """Waits for the device, and loads the number that it wrote to a flag."""
        code = self._code
        code.await_fence(self._last)
        name, offset = self._recorder.place(self._lengths, buffer)
        loaded = code.integer()
        length = 1 if buffer.type.scalar.bits == 1 else 4
        code.call("hal.buffer.load", [self._bound[name], self._lengths.at(offset), code.i32(length)], [loaded])
        return loaded

    # -- submissions -----------------------------------------------------------------------------------

    def _replay(self, steps: Sequence[Step], signal: Register | None = None) -> bool:
        """Submits a command buffer of steps, if there are any."""
        first = next((step for step in steps if not isinstance(step, Barrier)), None)
        if first is not None:
            self._code.at(self._context.place(first.operation.location))
            self._submit(self._recorder.record(steps), signal)
        return bool(first is not None and signal)

    def _replays(self, index: int, times: Register) -> None:
        """Submits a command buffer a number of times."""
        code = self._code
        with code.counted(times) as number:
            self._submit(index)
            pending = code.compute("rem.i32.u", number, code.i32(MAX_PENDING))
            with code.where(code.compute("cmp.eq.i32", pending, code.i32(MAX_PENDING - 1))):
                code.await_fence(self._last)

    def _submit(self, index: int, signal: Register | None = None) -> None:
        """Submits a command buffer after the last submission; later ones wait for it unless a fence is passed."""
        code = self._code
        if index in self._recorder.one_shot:
            arguments = [] if self._kept is None else [self._kept]
            commands = code.reference_of(self._recorder.functions[index].name, arguments)
        elif self._call.symbols:
            if index not in self._commands:
                self._commands[index] = code.reference()
            commands = self._commands[index]
        else:
            commands = code.load_global(self._recorder.recording_global(index), "!hal.command_buffer")
        fence = signal or new_fence(code, self._device)
        bindings = [self._binding(name) for name in self._recorder.slots]
        scalars = [self._device, code.i64(-1), self._last, fence, commands, code.i64(0)]
        code.call("hal.device.queue.execute.indirect", [*scalars, bindings])
        if not signal:
            code.emit("assign.ref", fence, self._last)

    def _binding(self, slot: str) -> tuple[Register, Register, Register]:
        """Returns the buffer, the offset and the length of a slot."""
        code = self._code
        if slot in self._offsets:
            return self._bound[slot], code.i64(self._offsets[slot]), code.i64(STRIDE)
        return self._bound[slot], code.i64(0), code.i64(-1)
