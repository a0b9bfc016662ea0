"""The function of a schedule: command buffers that are recorded once, and what replays them.

Steps between two decisions of the host are one command buffer, whose buffers are slots: constants, the arena, flags
that the host reads, arguments, results. A call binds them and waits once for each decision and at its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...formats.element_type import ElementType
from ..codegen.kernel import Kernel
from ..ir.attributes import SymbolRef
from ..ir.sizes import number_of
from ..ir.types import I1, MemRefType
from ..passes.steps import Branch, Buffer, Copy, Dispatch, Loop, Schedule, Step, uses
from .function_text import FunctionText

MAX_RECORDED = 1000
"""Steps of one command buffer; more go into several."""

_DEVICE_MEMORY, _DEVICE_USAGE = 48, 0xC03
_HOST_MEMORY, _HOST_USAGE = 86, 0x9000C03
_CONSTANT_USAGE = 0x80C03
_FLAG_STRIDE = 256
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
    """

    def __init__(
        self,
        name: str,
        plan: Schedule,
        kernels: Mapping[str, Kernel],
        executables: Mapping[str, str],
        rodata: Rodata,
        declaration: str,
    ) -> None:
        self._name = name
        self._plan = plan
        self._kernels = kernels
        self._executables = executables
        self._rodata = rodata
        self._declaration = declaration
        self._flags = list(plan.flags)
        self._recorders: list[FunctionText] = []
        slots = ["constants"] if plan.constants else []
        slots += ["arena"] if plan.plan.size else []
        slots += ["flags"] if self._flags else []
        slots += [f"argument{index}" for index in range(len(plan.arguments))]
        slots += [f"result{each.number}" for each in plan.results if each.kind == "result"]
        self._slots = {each: index for index, each in enumerate(dict.fromkeys(slots))}

    @property
    def recordings(self) -> int:
        """How many command buffers there are, once ``function`` has been called."""
        return len(self._recorders)

    @property
    def recorders(self) -> Sequence[FunctionText]:
        """Functions that record a command buffer each and give it."""
        return self._recorders

    def recording_global(self, index: int) -> str:
        """The global that holds a recorded command buffer."""
        return f"{self._name}.commands.{index}"

    def function(self) -> FunctionText:
        """The exported function."""
        plan = self._plan
        text = FunctionText(
            self._name, len(plan.arguments), len(plan.results), {"iree.abi.declaration": self._declaration}
        )
        device = text.load_global("device", "hal.device")
        bound = self._bind(text, device)
        self._steps(text, device, bound, plan.steps)
        null = text.null()
        for name in ("arena", "flags"):
            if name in self._slots:
                done = text.reference_of("hal.fence.create", [device, text.i64(0)])
                arguments = [device, text.i64(-1), null, done, bound[name], text.i64(0)]
                text.call("hal.device.queue.dealloca", arguments)
        views = [self._view(text, each, bound) for each in plan.results]
        text.line(f"vm.return {', '.join(views)}" if views else "vm.return")
        return text

    def _bind(self, text: FunctionText, device: str) -> dict[str, str]:
        """References to the buffer of each slot."""
        bound: dict[str, str] = {}
        plan = self._plan
        if plan.constants:
            bound["constants"] = text.load_global("constants", "hal.buffer")
        for index, buffer in enumerate(plan.arguments):
            message = text.rodata(self._rodata.text(f"argument {index}"))
            view = f"%r{index}"
            dims = [(text.i64(number_of(length)),) for length in buffer.type.lengths]
            element = text.i32(_signed(element_code(buffer.type)))
            text.call("hal.buffer_view.assert", [view, message, element, text.i32(_ENCODING_DENSE), dims])
            bound[f"argument{index}"] = text.reference_of("hal.buffer_view.buffer", [view])
        sizes = {
            "arena": (plan.plan.size, _DEVICE_MEMORY, _DEVICE_USAGE),
            "flags": (len(self._flags) * _FLAG_STRIDE, _HOST_MEMORY, _HOST_USAGE),
        }
        for each in plan.results:
            if each.kind == "result":
                sizes[f"result{each.number}"] = (max(each.size, 4), _DEVICE_MEMORY, _DEVICE_USAGE)
        null = text.null()
        for name, (size, memory, usage) in sizes.items():
            if name in self._slots:
                fence = text.reference_of("hal.fence.create", [device, text.i64(0)])
                arguments = [device, text.i64(-1), null, fence, text.i64(0), text.i32(memory), text.i32(usage)]
                bound[name] = text.reference_of("hal.device.queue.alloca", [*arguments, text.i64(size), text.i64(0)])
                text.await_fence(fence)
        return bound

    def _view(self, text: FunctionText, buffer: Buffer, bound: Mapping[str, str]) -> str:
        if buffer.kind == "argument":
            return f"%r{buffer.number}"
        name, offset = self._place(buffer)
        dims = [(text.i64(number_of(length)),) for length in buffer.type.lengths]
        element = text.i32(_signed(element_code(buffer.type)))
        arguments = [bound[name], text.i64(offset), text.i64(buffer.bytes), element, text.i32(_ENCODING_DENSE), dims]
        return text.reference_of("hal.buffer_view.create", arguments)

    def _place(self, buffer: Buffer) -> tuple[str, int]:
        """The slot of a buffer, and its offset there."""
        root = buffer.root
        if root.kind == "transient":
            return "arena", self._plan.plan.offsets[root.number]
        if root.kind == "constant":
            return "constants", self._rodata.constant_offset(root)
        if root.kind == "flag":
            return "flags", root.number * _FLAG_STRIDE
        return f"{root.kind}{root.number}", 0

    # -- control flow ----------------------------------------------------------------------------------

    def _steps(self, text: FunctionText, device: str, bound: Mapping[str, str], steps: Sequence[Step]) -> None:
        pending: list[Dispatch | Copy] = []
        for step in steps:
            if isinstance(step, Dispatch | Copy):
                pending.append(step)
                if len(pending) == MAX_RECORDED:
                    self._replay(text, device, bound, pending)
                    pending = []
                continue
            self._replay(text, device, bound, pending)
            pending = []
            if isinstance(step, Loop):
                self._loop(text, device, bound, step)
            elif isinstance(step, Branch):
                self._branch(text, device, bound, step)
        self._replay(text, device, bound, pending)

    def _loop(self, text: FunctionText, device: str, bound: Mapping[str, str], step: Loop) -> None:
        test, body, done = text.new_label(), text.new_label(), text.new_label()
        text.line(f"vm.br {test}()")
        text.label(test)
        self._steps(text, device, bound, step.condition)
        flag = self._flag(text, bound, step.flag)
        text.line(f"vm.cond_br {flag}, {body}(), {done}()")
        text.label(body)
        self._steps(text, device, bound, step.body)
        text.line(f"vm.br {test}()")
        text.label(done)

    def _branch(self, text: FunctionText, device: str, bound: Mapping[str, str], step: Branch) -> None:
        labels = [text.new_label() for _ in step.branches]
        done = text.new_label()
        flag = self._flag(text, bound, step.index)
        if step.index.type.scalar is I1:
            text.line(f"vm.cond_br {flag}, {labels[0]}(), {labels[1]}()")
        else:
            cases = ", ".join(f"{index}: {label}()" for index, label in enumerate(labels))
            text.line(f"vm.br_table {flag} {{ default: {labels[-1]}(), {cases} }}")
        for label, branch in zip(labels, step.branches, strict=True):
            text.label(label)
            self._steps(text, device, bound, branch)
            text.line(f"vm.br {done}()")
        text.label(done)

    def _flag(self, text: FunctionText, bound: Mapping[str, str], buffer: Buffer) -> str:
        name, offset = self._place(buffer)
        loaded = text.integer()
        length = 1 if buffer.type.scalar.bits == 1 else 4
        text.call("hal.buffer.load", [bound[name], text.i64(offset), text.i32(length)], [loaded])
        return loaded

    # -- command buffers -------------------------------------------------------------------------------

    def _replay(
        self, text: FunctionText, device: str, bound: Mapping[str, str], steps: Sequence[Dispatch | Copy]
    ) -> None:
        """Executes a command buffer of steps, and waits for it."""
        if not steps:
            return
        index = len(self._recorders)
        self._recorders.append(self._record(index, steps))
        commands = text.load_global(self.recording_global(index), "hal.command_buffer")
        fence = text.reference_of("hal.fence.create", [device, text.i64(0)])
        null = text.null()
        bindings = [(bound[name], text.i64(0), text.i64(-1)) for name in self._slots]
        arguments = [device, text.i64(-1), null, fence, commands, text.i64(0), bindings]
        text.call("hal.device.queue.execute.indirect", arguments)
        text.await_fence(fence)

    def _record(self, index: int, steps: Sequence[Dispatch | Copy]) -> FunctionText:
        text = FunctionText(f"{self._name}.record.{index}", 0, 1)
        device = text.load_global("device", "hal.device")
        modes = [text.i32(0), text.i32(3), text.i64(-1), text.i32(len(self._slots))]
        commands = text.reference_of("hal.command_buffer.create", [device, *modes])
        null = text.null()
        hazards = _Hazards()
        for step in steps:
            reads, writes = uses(step)
            if hazards.conflict([self._range(each) for each in reads], [self._range(each) for each in writes]):
                text.call("hal.command_buffer.execution_barrier", [commands, text.i32(28), text.i32(13), text.i64(0)])
            if isinstance(step, Copy):
                self._copy(text, commands, null, step)
            else:
                self._dispatch(text, commands, null, step)
        text.call("hal.command_buffer.execution_barrier", [commands, text.i32(28), text.i32(13), text.i64(0)])
        text.call("hal.command_buffer.finalize", [commands])
        text.line(f"vm.return {commands}")
        return text

    def _range(self, buffer: Buffer) -> tuple[str, int, int]:
        name, offset = self._place(buffer)
        return name, offset, offset + max(buffer.root.size, 4)

    def _copy(self, text: FunctionText, commands: str, null: str, step: Copy) -> None:
        (source, source_offset), (target, target_offset) = self._place(step.source), self._place(step.target)
        slots = [text.i32(self._slots[source]), text.i32(self._slots[target])]
        offsets = [null, text.i64(source_offset), null, text.i64(target_offset)]
        if not step.target.bytes:
            return
        arguments = [commands, *slots, *offsets, text.i64(step.target.bytes), text.i64(0)]
        text.call("hal.command_buffer.copy_buffer", arguments)

    def _dispatch(self, text: FunctionText, commands: str, null: str, step: Dispatch) -> None:
        entry = step.operation.attributes["entry"]
        assert isinstance(entry, SymbolRef)
        kernel = self._kernels[entry.name]
        assert isinstance(kernel.workgroup_count, tuple)
        if 0 in kernel.workgroup_count:
            return
        executable = text.load_global(self._executables[entry.name], "hal.executable")
        function = text.wide()
        name = text.rodata(self._rodata.text(kernel.entry_point))
        text.call("hal.executable.lookup.function", [executable, name], [function])
        counts = [text.i32(count) for count in kernel.workgroup_count]
        bindings = []
        for buffer, binding in zip(step.buffers, kernel.bindings, strict=True):
            slot, offset = self._place(buffer)
            where = [text.i32(0), text.i32(self._slots[slot]), null, text.i64(offset), text.i64(binding.size)]
            bindings.append(where)
        text.call("hal.command_buffer.dispatch", [commands, executable, function, *counts, text.i64(0), [], bindings])


class Rodata:
    """Constants of a module: texts and blobs, each once, and a pool of tensors that is uploaded as one buffer."""

    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self._ordinals: dict[bytes, int] = {}
        self.pool = bytearray()
        self._offsets: dict[Buffer, int] = {}
        self._contents: dict[bytes, int] = {}

    def add(self, data: bytes) -> int:
        """The ordinal of a blob."""
        if data not in self._ordinals:
            self._ordinals[data] = len(self.blobs)
            self.blobs.append(data)
        return self._ordinals[data]

    def text(self, value: str) -> int:
        """The ordinal of a text."""
        return self.add(value.encode())

    def add_constant(self, buffer: Buffer, data: bytes) -> None:
        """Packs a tensor into the pool; equal ones share a place."""
        if data not in self._contents:
            self.pool += bytes(-len(self.pool) % 256)
            self._contents[data] = len(self.pool)
            self.pool += data
        self._offsets[buffer] = self._contents[data]

    def constant_offset(self, buffer: Buffer) -> int:
        """Where a tensor lies in the pool."""
        return self._offsets[buffer]


class _Hazards:
    """Ranges of buffers that were read and written since the last barrier."""

    def __init__(self) -> None:
        self._read: list[tuple[str, int, int]] = []
        self._written: list[tuple[str, int, int]] = []

    def conflict(self, reads: Sequence[tuple[str, int, int]], writes: Sequence[tuple[str, int, int]]) -> bool:
        """Whether a barrier has to come before a step, which is then taken into account."""
        clash = any(_overlap(one, other) for one in (*reads, *writes) for other in self._written)
        clash = clash or any(_overlap(one, other) for one in writes for other in self._read)
        if clash:
            self._read, self._written = [], []
        self._read.extend(reads)
        self._written.extend(writes)
        return clash


def _overlap(one: tuple[str, int, int], other: tuple[str, int, int]) -> bool:
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]


def element_code(type: MemRefType) -> int:
    """The HAL's code of a buffer's elements."""
    name = str(type.scalar).replace("complex<f32>", "cf64").replace("complex<f64>", "cf128").replace("index", "i64")
    for element in ElementType:
        if element.short_name == name:
            return int(element)
    raise ValueError(f"buffer views have no elements of {type.scalar}")


def _signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value
