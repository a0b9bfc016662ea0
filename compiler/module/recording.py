"""Command buffers of a schedule: functions that record one each, when the module is loaded.

Their buffers are slots, which a call binds: constants, the arena, flags that the host reads, arguments, results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..codegen.kernel import Kernel
from ..ir.printer import line_text
from ..ir.source import SourceText
from ..passes.steps import Barrier, Buffer, Copy, Dispatch, Repeat, Schedule, Step, walk
from .function_text import FunctionText
from .rodata import Rodata

FLAG_STRIDE = 256
"""Bytes from one flag to the next."""


class Recorder:
    """Makes the functions that record the command buffers of one schedule.

    Args:
        name: of the exported function.
        plan: its schedule.
        kernels: by entry point.
        executables: names of the globals that hold them, by entry point.
        rodata: of the module.
        source: the program's text.

    Attributes:
        functions: made so far; each gives a command buffer.
        slots: numbers of the slots by name.
    """

    def __init__(
        self,
        name: str,
        plan: Schedule,
        kernels: Mapping[str, Kernel],
        executables: Mapping[str, str],
        rodata: Rodata,
        source: SourceText,
    ) -> None:
        self._name = name
        self._plan = plan
        self._kernels = kernels
        self._executables = executables
        self._rodata = rodata
        self._source = source
        self._functions: dict[str, tuple[str, str]] = {}
        self.functions: list[FunctionText] = []
        slots = ["constants"] if plan.constants or plan.tables else []
        slots += ["arena"] if plan.plan.size else []
        slots += ["flags"] if plan.flags else []
        slots += [f"argument{index}" for index in range(len(plan.arguments))]
        slots += [f"result{each.number}" for each in plan.results if each.kind == "result"]
        self.slots = {each: index for index, each in enumerate(dict.fromkeys(slots))}

    def recording_global(self, index: int) -> str:
        """The global that holds a recorded command buffer."""
        return f"{self._name}.commands.{index}"

    def place(self, buffer: Buffer) -> tuple[str, int]:
        """The slot of a buffer, and its offset there."""
        root = buffer.root
        if root.kind == "transient":
            return "arena", self._plan.plan.offsets[root.number]
        if root.kind == "constant":
            return "constants", self._rodata.constant_offset(root)
        if root.kind == "flag":
            return "flags", root.number * FLAG_STRIDE
        return f"{root.kind}{root.number}", 0

    def record(self, steps: Sequence[Step]) -> int:
        """The number of a new command buffer of steps that need no host."""
        text = FunctionText(f"{self._name}.record.{len(self.functions)}", 0, 1)
        self.functions.append(text)
        device = text.load_global("device", "hal.device")
        modes = [text.i32(0), text.i32(3), text.i64(-1), text.i32(len(self.slots))]
        commands = text.reference_of("hal.command_buffer.create", [device, *modes])
        null = text.null()
        self._functions = {}
        for entry in dict.fromkeys(step.entry for step in walk(steps) if isinstance(step, Dispatch)):
            self._functions[entry] = self._look_up(text, entry)
        self._steps(text, commands, null, steps)
        _barrier(text, commands)
        text.call("hal.command_buffer.finalize", [commands])
        text.line(f"vm.return {commands}")
        return len(self.functions) - 1

    def _look_up(self, text: FunctionText, entry: str) -> tuple[str, str]:
        executable = text.load_global(self._executables[entry], "hal.executable")
        function = text.wide()
        name = text.rodata(self._rodata.text(self._kernels[entry].entry_point))
        text.call("hal.executable.lookup.function", [executable, name], [function])
        return executable, function

    def _steps(self, text: FunctionText, commands: str, null: str, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Barrier):
                _barrier(text, commands)
                continue
            text.at(line_text(self._source, step.operation.location))
            if isinstance(step, Copy):
                self._copy(text, commands, null, step)
            elif isinstance(step, Dispatch):
                self._dispatch(text, commands, null, step)
            elif isinstance(step, Repeat) and isinstance(step.trips, int):
                with text.counted(text.i32(step.trips)):
                    self._steps(text, commands, null, step.body)
                    _barrier(text, commands)

    def _copy(self, text: FunctionText, commands: str, null: str, step: Copy) -> None:
        (source, source_offset), (target, target_offset) = self.place(step.source), self.place(step.target)
        slots = [text.i32(self.slots[source]), text.i32(self.slots[target])]
        offsets = [null, text.i64(source_offset), null, text.i64(target_offset)]
        if step.target.bytes:
            arguments = [commands, *slots, *offsets, text.i64(step.target.bytes), text.i64(0)]
            text.call("hal.command_buffer.copy_buffer", arguments)

    def _dispatch(self, text: FunctionText, commands: str, null: str, step: Dispatch) -> None:
        kernel = self._kernels[step.entry]
        assert isinstance(kernel.workgroup_count, tuple)
        if 0 in kernel.workgroup_count:
            return
        executable, function = self._functions[step.entry]
        bindings = []
        for buffer, binding in zip(step.buffers, kernel.bindings, strict=True):
            # An empty argument has no word to bind, and none is read: a result has.
            is_empty = buffer.root.kind == "argument" and 0 in buffer.type.shape
            slot, offset = self.place(step.buffers[-1] if is_empty else buffer)
            where = [text.i32(0), text.i32(self.slots[slot]), null, text.i64(offset), text.i64(binding.size)]
            bindings.append(where)
        if step.guard is None:
            counts = [text.i32(count) for count in kernel.workgroup_count]
            name = "hal.command_buffer.dispatch"
        else:
            guard, row = step.guard
            slot, offset = self.place(guard)
            counts = [text.i32(self.slots[slot]), null, text.i64(offset + 12 * row)]
            name = "hal.command_buffer.dispatch.indirect"
        text.call(name, [commands, executable, function, *counts, text.i64(0), [], bindings])


def _barrier(text: FunctionText, commands: str) -> None:
    text.call("hal.command_buffer.execution_barrier", [commands, text.i32(28), text.i32(13), text.i64(0)])
