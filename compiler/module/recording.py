"""Command buffers of a schedule: functions that record one each, when the module is loaded.

Their buffers are slots, which a call binds: constants, the arena, flags that the host reads, arguments, results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Final

from ..ir.printer import line_text
from ..ir.sizes import Size
from ..ir.source import SourceText
from ..kernels.kernel import Kernel, Workload
from ..passes.sequencing.steps import Barrier, Buffer, Copy, Dispatch, Repeat, Schedule, Step, uses, walk
from .allocation import STRIDE
from .dynamic_call import DynamicCall
from .function_text import FunctionText
from .lengths import Lengths
from .rodata import Rodata

_ONE_SHOT: Final = 1


class Recorder:
    """Makes the functions that record the command buffers of one schedule.

    Args:
        name: of the exported function.
        call: what its calls have in common.
        plan: its schedule.
        kernels: by entry point.
        executables: names of the globals that hold them, by entry point.
        rodata: of the module.
        source: the program's text.

    Attributes:
        functions: made so far; each gives a command buffer.
        one_shot: numbers of those whose command buffers are recorded for each submission. They only copy: a device may
            replay what it made of such commands for the buffers of an earlier call (IREE 3.13, Vulkan: native replays).
        slots: numbers of the slots by name.
    """

    def __init__(
        self,
        name: str,
        call: DynamicCall,
        plan: Schedule,
        kernels: Mapping[str, Kernel],
        executables: Mapping[str, str],
        rodata: Rodata,
        source: SourceText,
    ) -> None:
        self._name = name
        self._call = call
        self._plan = plan
        self._kernels = kernels
        self._executables = executables
        self._rodata = rodata
        self._source = source
        self._functions: dict[str, tuple[str, str]] = {}
        self.functions: list[FunctionText] = []
        self.one_shot: set[int] = set()
        slots = ["constants"] if plan.constants or plan.tables else []
        slots += ["arena"] if plan.plan.size or plan.plan.slots else []
        slots += ["flags"] if plan.flags else []
        slots += [f"argument{index}" for index in range(len(plan.arguments))]
        slots += [f"result{index}" for index in range(len(plan.results))]
        self.slots = {each: index for index, each in enumerate(slots)}

    def recording_global(self, index: int) -> str:
        """The global that holds a recorded command buffer."""
        return f"{self._name}.commands.{index}"

    def place(self, lengths: Lengths, buffer: Buffer) -> tuple[str, int | str]:
        """The slot of a buffer, and its offset there or the register of that."""
        root = buffer.root
        if root.kind == "transient":
            return "arena", lengths.offset(root)
        if root.kind == "constant":
            return "constants", self._rodata.constant_offset(root)
        if root.kind == "flag":
            return "flags", root.number * STRIDE
        return f"{root.kind}{root.number}", 0

    def record(self, steps: Sequence[Step]) -> int:
        """The number of a new command buffer of steps that need no host."""
        text = FunctionText(f"{self._name}.record.{len(self.functions)}", "r" if self._call.symbols else "", "r")
        self.functions.append(text)
        device = text.load_global("device", "hal.device")
        entries = dict.fromkeys(step.entry for step in walk(steps) if isinstance(step, Dispatch))
        if not entries:
            self.one_shot.add(len(self.functions) - 1)
        modes = [text.i32(_ONE_SHOT if not entries else 0), text.i32(3), text.i64(-1), text.i32(len(self.slots))]
        commands = text.reference_of("hal.command_buffer.create", [device, *modes])
        null = text.null()
        self._functions = {}
        for entry in entries:
            longer = self._kernels[entry].longer
            for each in (entry, longer) if longer else (entry,):
                self._functions[each] = self._look_up(text, each)
        lengths = self._call.load(text)
        self._prepare(lengths, steps)
        self._steps(text, lengths, commands, null, steps)
        _barrier(text, commands)
        text.call("hal.command_buffer.finalize", [commands])
        text.line(f"vm.return {commands}")
        return len(self.functions) - 1

    def _prepare(self, lengths: Lengths, steps: Sequence[Step]) -> None:
        """Computes ahead of any branch what the steps need of lengths that depend on the call."""
        for step in walk(steps) if self._call.symbols else ():
            for buffer in (each for side in uses(step) for each in side):
                if isinstance(buffer.size, Size):
                    lengths.words(buffer)
                    lengths.is_full(buffer)
                    if buffer.root.kind == "transient":
                        lengths.offset(buffer.root)
            if isinstance(step, Dispatch):
                kernel = self._kernels[step.entry]
                if kernel.longer:
                    lengths.within(kernel.limits)
                for each in (kernel, self._kernels[kernel.longer]) if kernel.longer else (kernel,):
                    for symbol in each.symbols:
                        lengths.word(symbol)
                    if isinstance(each.workgroup_count, Workload):
                        lengths.groups(each.workgroup_count)

    def _look_up(self, text: FunctionText, entry: str) -> tuple[str, str]:
        executable = text.load_global(self._executables[entry], "hal.executable")
        function = text.wide()
        name = text.rodata(self._rodata.text(self._kernels[entry].entry_point))
        text.call("hal.executable.lookup.function", [executable, name], [function])
        return executable, function

    def _steps(self, text: FunctionText, lengths: Lengths, commands: str, null: str, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Barrier):
                _barrier(text, commands)
                continue
            text.at(line_text(self._source, step.operation.location))
            if isinstance(step, Copy):
                self._copy(text, lengths, commands, null, step)
            elif isinstance(step, Dispatch):
                self._dispatch(text, lengths, commands, null, step)
            elif isinstance(step, Repeat) and isinstance(step.trips, int):
                with text.counted(text.i32(step.trips)):
                    self._steps(text, lengths, commands, null, step.body)
                    _barrier(text, commands)

    def _copy(self, text: FunctionText, lengths: Lengths, commands: str, null: str, step: Copy) -> None:
        source, source_offset = self.place(lengths, step.source)
        target, target_offset = self.place(lengths, step.target)
        slots = [text.i32(self.slots[source]), text.i32(self.slots[target])]
        offsets = [null, lengths.at(source_offset), null, lengths.at(target_offset)]
        size = step.target.bytes
        if not size:
            return
        arguments = [commands, *slots, *offsets, lengths.of(size), text.i64(0)]
        if isinstance(size, int):
            text.call("hal.command_buffer.copy_buffer", arguments)
            return
        with text.where(lengths.is_full(step.target)):
            text.call("hal.command_buffer.copy_buffer", arguments)

    def _dispatch(self, text: FunctionText, lengths: Lengths, commands: str, null: str, step: Dispatch) -> None:
        # Several results have one shape, and a caller's empty buffer has no word to bind.
        if 0 in step.buffers[-1].type.shape:
            return
        with (
            text.where(lengths.is_full(step.buffers[-1])) if isinstance(step.buffers[-1].size, Size) else nullcontext()
        ):
            kernel = self._kernels[step.entry]
            if kernel.longer is None or step.guard is not None:
                self._call_dispatch(text, lengths, commands, null, step, step.entry)
                return
            is_within = lengths.within(kernel.limits)
            with text.where(is_within):
                self._call_dispatch(text, lengths, commands, null, step, step.entry)
            is_beyond = text.integer()
            text.line(f"{is_beyond} = vm.xor.i32 {is_within}, {text.i32(1)}")
            with text.where(is_beyond):
                self._call_dispatch(text, lengths, commands, null, step, kernel.longer)

    def _call_dispatch(
        self, text: FunctionText, lengths: Lengths, commands: str, null: str, step: Dispatch, entry: str
    ) -> None:
        kernel = self._kernels[entry]
        workgroups = kernel.workgroup_count
        executable, function = self._functions[entry]
        bindings = []
        last = step.buffers[-1]
        for buffer, binding in zip(step.buffers, kernel.bindings, strict=True):
            # A caller's empty buffer has no word to bind, and none is read; the result stands in for it.
            is_callers = buffer is not last and buffer.root.kind in ("argument", "result")
            is_empty = is_callers and 0 in buffer.type.shape
            slot, offset = self.place(lengths, last if is_empty else buffer)
            where = [text.i32(0), text.i32(self.slots[slot]), null, lengths.at(offset)]
            if is_callers and isinstance(buffer.size, Size):
                other, start = self.place(lengths, last)
                is_full = lengths.is_full(buffer)
                where[1] = text.chosen("i32", is_full, where[1], text.i32(self.slots[other]))
                where[3] = text.chosen("i64", is_full, where[3], lengths.at(start))
            bindings.append([*where, text.i64(binding.size) if binding.size else lengths.words(buffer)])
        if step.guard is not None:
            guard, row = step.guard
            place = self._plan.plan.offsets[guard.root.number] + 12 * row
            counts = [text.i32(self.slots["arena"]), null, text.i64(place)]
            name = "hal.command_buffer.dispatch.indirect"
        else:
            counts = (
                [text.i32(count) for count in workgroups]
                if isinstance(workgroups, tuple)
                else lengths.groups(workgroups)
            )
            name = "hal.command_buffer.dispatch"
        constants = [(lengths.word(symbol),) for symbol in kernel.symbols]
        text.call(name, [commands, executable, function, *counts, text.i64(0), constants, bindings])


def _barrier(text: FunctionText, commands: str) -> None:
    text.call("hal.command_buffer.execution_barrier", [commands, text.i32(28), text.i32(13), text.i64(0)])
