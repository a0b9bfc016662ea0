"""Command buffers of a schedule, and the functions that record them when the module is loaded.

Command buffers have numbered slots, to which a call binds buffers: constants, the arena, flags that the host reads,
arguments, results.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Final

from ..ir.sizes import Size
from ..kernels.kernel import Workload
from ..passes.sequencing.steps import Barrier, Buffer, Copy, Dispatch, Repeat, Schedule, Step, uses, walk
from .context import ModuleContext
from .dynamic_call import DynamicCall
from .function_builder import FunctionBuilder, Register
from .lengths import Lengths
from .memory import STRIDE

_ONE_SHOT: Final = 1


class Recorder:
    """Makes the functions that record the command buffers of one schedule.

    Args:
        name: the exported function's name.
        call: the common parts of its calls.
        plan: the function's schedule.
        context: the module's context.

    Attributes:
        functions: the functions made so far; each returns a command buffer.
        one_shot: the numbers of the functions whose command buffers are recorded for each submission. These only copy:
            for such commands a device may replay the buffers of an earlier call (IREE 3.13, Vulkan: native replays).
        slots: the numbers of the slots by name.
    """

    def __init__(self, name: str, call: DynamicCall, plan: Schedule, context: ModuleContext) -> None:
        self._name = name
        self.call = call
        self.plan = plan
        self.context = context
        self.functions: list[FunctionBuilder] = []
        self.one_shot: set[int] = set()
        slots = ["constants"] if plan.constants or plan.tables else []
        slots += ["arena"] if plan.plan.size or plan.plan.slots else []
        slots += ["flags"] if plan.flags else []
        slots += [f"argument{index}" for index in range(len(plan.arguments))]
        slots += [f"result{index}" for index in range(len(plan.results))]
        self.slots: dict[str, int] = {name: index for index, name in enumerate(slots)}

    def recording_global(self, index: int) -> str:
        """Returns the global that holds a recorded command buffer."""
        return f"{self._name}.commands.{index}"

    def place(self, lengths: Lengths, buffer: Buffer) -> tuple[str, int | Register]:
        """Returns the slot of a buffer, and the buffer's offset in the slot."""
        root = buffer.root
        if root.kind == "transient":
            return "arena", lengths.offset(root)
        if root.kind == "constant":
            return "constants", self.context.rodata.constant_offset(root)
        if root.kind == "flag":
            return "flags", root.number * STRIDE
        return f"{root.kind}{root.number}", 0

    def record(self, steps: Sequence[Step]) -> int:
        """Writes a function that records steps without host work; returns its number."""
        number = len(self.functions)
        code = FunctionBuilder(f"{self._name}.record.{number}", "r" if self.call.symbols else "", "r")
        self.functions.append(code)
        if not any(isinstance(step, Dispatch) for step in walk(steps)):
            self.one_shot.add(number)
        _Recording(self, code, steps, is_one_shot=number in self.one_shot)
        return number


class _Recording:
    """Writes a function that records one command buffer."""

    def __init__(self, recorder: Recorder, code: FunctionBuilder, steps: Sequence[Step], *, is_one_shot: bool) -> None:
        self._recorder = recorder
        self._kernels = recorder.context.kernels
        self._code = code
        device = code.load_global("device", "!hal.device")
        mode = [code.i32(_ONE_SHOT if is_one_shot else 0), code.i32(3), code.i64(-1), code.i32(len(recorder.slots))]
        self._commands = code.reference_of("hal.command_buffer.create", [device, *mode])
        self._null = code.null()
        self._functions = {entry: self._look_up(entry) for entry in self._entries(steps)}
        self._lengths = recorder.call.load(code)
        if recorder.call.symbols:
            self._prepare(steps)
        self._steps(steps)
        self._barrier()
        code.call("hal.command_buffer.finalize", [self._commands])
        code.emit("return", [self._commands])

    def _entries(self, steps: Sequence[Step]) -> dict[str, None]:
        """Returns the entry points of the kernels that steps dispatch."""
        entries: dict[str, None] = {}
        for step in walk(steps):
            if isinstance(step, Dispatch):
                longer = self._kernels[step.entry].longer
                entries |= dict.fromkeys((step.entry, longer) if longer else (step.entry,))
        return entries

    def _prepare(self, steps: Sequence[Step]) -> None:
        """Computes the lengths that the steps use, before any branch."""
        lengths = self._lengths
        for step in walk(steps):
            for buffer in (buffer for side in uses(step) for buffer in side):
                if isinstance(buffer.size, Size):
                    lengths.words(buffer)
                    lengths.is_full(buffer)
                    if buffer.root.kind == "transient":
                        lengths.offset(buffer.root)
            if isinstance(step, Dispatch):
                kernel = self._kernels[step.entry]
                if kernel.longer:
                    lengths.within(kernel.limits)
                for variant in (kernel, self._kernels[kernel.longer]) if kernel.longer else (kernel,):
                    for symbol in variant.symbols:
                        lengths.word(symbol)
                    if isinstance(variant.workgroup_count, Workload):
                        lengths.groups(variant.workgroup_count)

    def _look_up(self, entry: str) -> tuple[Register, Register]:
        code, context = self._code, self._recorder.context
        executable = code.load_global(context.executables[entry], "!hal.executable")
        function = code.wide()
        name = code.rodata(context.rodata.text(self._kernels[entry].entry_point))
        code.call("hal.executable.lookup.function", [executable, name], [function])
        return executable, function

    def _steps(self, steps: Sequence[Step]) -> None:
        code = self._code
        for step in steps:
            if isinstance(step, Barrier):
                self._barrier()
                continue
            code.at(self._recorder.context.place(step.operation.location))
            if isinstance(step, Copy):
                self._copy(step)
            elif isinstance(step, Dispatch):
                self._dispatch(step)
            elif isinstance(step, Repeat) and isinstance(step.trips, int):
                with code.counted(code.i32(step.trips)):
                    self._steps(step.body)
                    self._barrier()

    def _copy(self, step: Copy) -> None:
        code, lengths = self._code, self._lengths
        source, source_offset = self._recorder.place(lengths, step.source)
        target, target_offset = self._recorder.place(lengths, step.target)
        slots = [code.i32(self._recorder.slots[source]), code.i32(self._recorder.slots[target])]
        offsets = [self._null, lengths.at(source_offset), self._null, lengths.at(target_offset)]
        size = step.target.bytes
        if not size:
            return
        arguments = [self._commands, *slots, *offsets, lengths.of(size), code.i64(0)]
        if isinstance(size, int):
            code.call("hal.command_buffer.copy_buffer", arguments)
            return
        with code.where(lengths.is_full(step.target)):
            code.call("hal.command_buffer.copy_buffer", arguments)

    def _dispatch(self, step: Dispatch) -> None:
        code, lengths = self._code, self._lengths
        # Results of one dispatch have the same shape; a caller's empty buffer has no word to bind.
        if 0 in step.buffers[-1].type.shape:
            return
        with (
            code.where(lengths.is_full(step.buffers[-1])) if isinstance(step.buffers[-1].size, Size) else nullcontext()
        ):
            kernel = self._kernels[step.entry]
            if kernel.longer is None or step.guard is not None:
                self._call_dispatch(step, step.entry)
                return
            is_within = lengths.within(kernel.limits)
            with code.where(is_within):
                self._call_dispatch(step, step.entry)
            with code.where(code.compute("xor.i32", is_within, code.i32(1))):
                self._call_dispatch(step, kernel.longer)

    def _call_dispatch(self, step: Dispatch, entry: str) -> None:
        code, lengths, recorder = self._code, self._lengths, self._recorder
        kernel = self._kernels[entry]
        workgroups = kernel.workgroup_count
        executable, function = self._functions[entry]
        bindings = []
        last = step.buffers[-1]
        for buffer, binding in zip(step.buffers, kernel.bindings, strict=True):
            # A caller's empty buffer has no word to bind, and is not read; the result is bound instead.
            is_callers = buffer is not last and buffer.root.kind in ("argument", "result")
            is_empty = is_callers and 0 in buffer.type.shape
            slot, offset = recorder.place(lengths, last if is_empty else buffer)
            bound = [code.i32(0), code.i32(recorder.slots[slot]), self._null, lengths.at(offset)]
            if is_callers and isinstance(buffer.size, Size):
                other, start = recorder.place(lengths, last)
                is_full = lengths.is_full(buffer)
                bound[1] = code.compute("select.i32", is_full, bound[1], code.i32(recorder.slots[other]))
                bound[3] = code.compute("select.i64", is_full, bound[3], lengths.at(start))
            bindings.append([*bound, code.i64(binding.size) if binding.size else lengths.words(buffer)])
        if step.guard is not None:
            guard, row = step.guard
            offset = recorder.plan.plan.offsets[guard.root.number] + 12 * row
            counts = [code.i32(recorder.slots["arena"]), self._null, code.i64(offset)]
            name = "hal.command_buffer.dispatch.indirect"
        else:
            counts = (
                [code.i32(count) for count in workgroups]
                if isinstance(workgroups, tuple)
                else lengths.groups(workgroups)
            )
            name = "hal.command_buffer.dispatch"
        constants = [(lengths.word(symbol),) for symbol in kernel.symbols]
        code.call(name, [self._commands, executable, function, *counts, code.i64(0), constants, bindings])

    def _barrier(self) -> None:
        code = self._code
        code.call("hal.command_buffer.execution_barrier", [self._commands, code.i32(28), code.i32(13), code.i64(0)])
