"""A recording as a compiled program: a module with one function, from which C and HAL code are generated too.

The function ``run`` takes an array for each array of the device that the recording uses, in the order of first use. It
works on these arrays in place, and returns those that are written. Push constants are those that the recording has.

The module is written as VM assembly: at load it creates the kernels and records a command buffer with a slot for each
array; a call submits that and waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...formats.element_type import ElementType, format_shape_and_type
from ...formats.vke1 import (
    DescriptorBindingDef,
    DescriptorSetLayoutDef,
    DescriptorType,
    ExecutableDef,
    PipelineDef,
    PipelineLayoutDef,
    PushConstantRange,
)
from ...formats.vke1_writer import build_executable
from ...hal_vulkan import ComputePipeline
from ...hal_vulkan.pipelines.descriptors import COMPUTE_STAGE
from ...spirv.binary.grammar import ExecutionMode, Op
from ...spirv.binary.words import encode, pack, read_binary
from ...spirv.checks.tools import validate
from ...status import PumiceError, UnimplementedError
from ...vm.assembly.assembler import assemble
from ...vm.bytecode.writer import write_module
from ..arrays.array import DeviceArray
from ..arrays.recorder import CopyStep, Step, ZeroStep
from ..arrays.uses import Uses
from ..kernels.recorded_call import RecordedCall

_FORMAT: Final = b"vulkan-spirv-fb"
_BUFFERS: Final = (6, 7)  # VkDescriptorType of uniform and of storage buffers
_HEAD: Final = """\
vm.module @recording version 0
vm.dependency @hal version 7
vm.type !hal.buffer
vm.type !hal.buffer_view
vm.type !hal.command_buffer
vm.type !hal.device
vm.type !hal.executable
vm.type !hal.fence
vm.type !vm.buffer
vm.import @hal.buffer_view.assert cconv "0rriiCID_v"
vm.import @hal.buffer_view.buffer cconv "0r_r"
vm.import @hal.command_buffer.copy_buffer cconv "0riirIrIII_v"
vm.import @hal.command_buffer.create cconv "0riiIi_r"
vm.import @hal.command_buffer.dispatch cconv "0rrIiiiICiDCiirIID_v"
vm.import @hal.command_buffer.dispatch.indirect cconv "0rrIirIICiDCiirIID_v"
vm.import @hal.command_buffer.execution_barrier cconv "0riiI_v"
vm.import @hal.command_buffer.fill_buffer cconv "0rrIIiIiI_v"
vm.import @hal.command_buffer.finalize cconv "0r_v"
vm.import @hal.device.queue.execute.indirect cconv "0rIrrrICrIID_v"
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.executable.create cconv "0rIrrr_r"
vm.import @hal.executable.lookup.function cconv "0rr_I"
vm.import @hal.fence.await cconv "0iICrD_i"
vm.import @hal.fence.create cconv "0rI_r"
vm.global.ref private mutable @device : !hal.device
vm.global.ref private mutable @commands : !hal.command_buffer
"""
_COMMANDS: Final = (28, 13)  # the stages before and after a barrier, of dispatches and transfers


def module_of(steps: Sequence[Step], name: str) -> bytes:
    """Returns the file of a module that runs steps.

    Raises:
        UnimplementedError: a step uses what programs have not: images, arrays by address, or values of the host.
    """
    return write_module(assemble(_Module(steps, name).text()))


class _Code:
    """The body of one function: registers and instructions."""

    def __init__(self, references: int = 0) -> None:
        self.lines: list[str] = []
        self._numbers: dict[tuple[str, int], str] = {}
        self._constants: list[str] = []
        self._next = 0
        self._references = references

    def i32(self, value: int) -> str:
        return self._number("i32", value)

    def i64(self, value: int) -> str:
        return self._number("i64", value)

    def _number(self, bank: str, value: int) -> str:
        key = bank, value
        if key not in self._numbers:
            register = self.new(bank)
            self._numbers[key] = register
            self._constants.append(
                f"  {register} = vm.const.{bank} {value}" if value else f"  {register} = vm.const.{bank}.zero"
            )
        return self._numbers[key]

    def new(self, bank: str) -> str:
        """Returns a new register for a number, or for a reference (``ref``)."""
        if bank == "ref":
            self._references += 1
            return f"%r{self._references - 1}"
        if bank == "i32":
            self._next += 1
            return f"%i{self._next - 1}"
        self._next += self._next % 2 + 2
        return f"%i{self._next - 2}:{self._next - 1}"

    def reference(self, instruction: str) -> str:
        register = self.new("ref")
        self.lines.append(f"  {register} = {instruction}")
        return register

    def emit(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}")

    def call(self, function: str, arguments: Sequence[str], lists: Sequence[int] = (), fixed: int = -1) -> None:
        """Calls an import; ``lists`` are the lengths of its variadic arguments, which follow ``fixed`` others."""
        operands = ", ".join(arguments)
        if fixed < 0:
            self.emit(f"vm.call @{function}({operands})")
        else:
            segments = ", ".join(["65535"] * fixed + [str(length) for length in lists])
            self.emit(f"vm.call.variadic @{function} segments[{segments}]({operands})")

    def text(self, head: str) -> str:
        return "\n".join([head, "^bb0:", *self._constants, *self.lines, "}"])


class _Module:
    """The module of one recording, while it is written."""

    def __init__(self, steps: Sequence[Step], name: str) -> None:
        self._steps = steps
        self._name = name
        self._rodata: list[bytes] = []
        self._slots: dict[Uses, int] = {}
        self.arrays: list[DeviceArray] = []
        self._written: set[int] = set()
        self._executables: dict[ComputePipeline, int] = {}
        self._made: list[str] = []  # the instructions that make the kernels

    def text(self) -> str:
        initializer = self._initializer()
        run = self._run()
        rodata = "".join(f"vm.rodata[{i}] = {data.hex()}\n" for i, data in enumerate(self._rodata))
        executables = "".join(
            f"vm.global.ref private mutable @executable{i} : !hal.executable\n" for i in self._executables.values()
        )
        return f"{_HEAD}{executables}{rodata}vm.export @run\n{run}\nvm.export @__init\n{initializer}\n"

    def _constant(self, data: bytes) -> int:
        if data not in self._rodata:
            self._rodata.append(data)
        return self._rodata.index(data)

    # -- arrays --------------------------------------------------------------------------------------

    def _place(self, array: object, step: Step) -> tuple[int, int, int]:
        """Returns the slot of an array's memory, and its offset and size there."""
        if not isinstance(array, DeviceArray):
            raise UnimplementedError(
                f"{step.name} uses {type(array).__name__}, and a program's kernels take arrays alone: record calls "
                "with arrays on the device"
            )
        root = array if array._base is None else array._base
        slot = self._slots.setdefault(array.uses, len(self.arrays))
        if slot == len(self.arrays):
            self.arrays.append(root)
        return slot, array.buffer.offset - root.buffer.offset, array.nbytes

    # -- load ----------------------------------------------------------------------------------------

    def _initializer(self) -> str:
        code = _Code()
        device = code.reference(f"vm.call @hal.devices.get({code.i32(0)})")
        null = code.reference("vm.const.ref.zero")
        commands = code.new("ref")
        known: dict[ComputePipeline, tuple[str, str]] = {}
        begun, code.lines = code.lines, []
        for index, step in enumerate(self._steps):
            if index:
                first, second = map(code.i32, _COMMANDS)
                code.call("hal.command_buffer.execution_barrier", [commands, first, second, code.i64(0)])
            self._record(code, commands, null, step, known, device)
        recorded = code.lines
        first, second = map(code.i32, _COMMANDS)
        slots = code.i32(len(self.arrays))
        create = f"  {commands} = vm.call @hal.command_buffer.create({device}, {code.i32(0)}, {code.i32(3)}, "
        create += f"{code.i64(-1)}, {slots})"
        code.lines = [*begun, *self._made, create, *recorded]
        code.call("hal.command_buffer.execution_barrier", [commands, first, second, code.i64(0)])
        code.call("hal.command_buffer.finalize", [commands])
        code.emit(f"vm.global.store.ref {device}, @device : !hal.device")
        code.emit(f"vm.global.store.ref {commands}, @commands : !hal.command_buffer")
        code.emit("vm.return")
        return code.text("vm.func @__init() -> () {")

    def _kernel(
        self, code: _Code, device: str, null: str, call: RecordedCall, known: dict[ComputePipeline, tuple[str, str]]
    ) -> tuple[str, str]:
        """Returns the registers of a kernel's executable and function, which are made before the commands."""
        if call.pipeline in known:
            return known[call.pipeline]
        number = self._executables[call.pipeline] = len(self._executables)
        lines, code.lines = code.lines, []
        name = code.reference(f"vm.const.ref.rodata {self._constant(_FORMAT)}")
        data = code.reference(f"vm.const.ref.rodata {self._constant(_executable(call))}")
        executable = code.reference(f"vm.call @hal.executable.create({device}, {code.i64(-1)}, {name}, {data}, {null})")
        code.emit(f"vm.global.store.ref {executable}, @executable{number} : !hal.executable")
        entry = code.reference(f"vm.const.ref.rodata {self._constant(call.pipeline.entry.name.encode())}")
        function = code.new("i64")
        code.emit(f"{function} = vm.call @hal.executable.lookup.function({executable}, {entry})")
        self._made += code.lines
        code.lines = lines
        known[call.pipeline] = executable, function
        return known[call.pipeline]

    def _record(
        self,
        code: _Code,
        commands: str,
        null: str,
        step: Step,
        known: dict[ComputePipeline, tuple[str, str]],
        device: str,
    ) -> None:
        """Adds the command of a step."""
        zero, none = code.i64(0), code.i32(0)
        if isinstance(step, CopyStep):
            (source, start, size), (target, to, _) = self._place(step.source, step), self._place(step.target, step)
            self._written.add(target)
            arguments = [commands, code.i32(source), code.i32(target), null, code.i64(start), null, code.i64(to)]
            code.call("hal.command_buffer.copy_buffer", [*arguments, code.i64(size), zero])
        elif isinstance(step, ZeroStep):
            slot, start, size = self._place(step.target, step)
            self._written.add(slot)
            arguments = [commands, null, code.i64(start), code.i64(size), code.i32(slot), zero, code.i32(1), zero]
            code.call("hal.command_buffer.fill_buffer", arguments)
        else:
            assert isinstance(step, RecordedCall)
            if step.is_moved or len(step.call.pointed) > (step.call.indirect is not None) or step.constants:
                raise UnimplementedError(
                    f"{step.name} uses an array by its address, a view that the device cannot bind, or a value of the "
                    "host: record calls with whole arrays on the device"
                )
            executable, function = self._kernel(code, device, null, step, known)
            bindings: list[str] = []
            for bound, parameter in zip(step.call.bound, step.call.parameters, strict=True):
                slot, start, size = self._place(bound, step)
                bindings += [none, code.i32(slot), null, code.i64(start), code.i64(size)]
                if parameter.written:
                    self._written.add(slot)
            push = step.call.push + bytes(-len(step.call.push) % 4)
            constants = [
                code.i32(int.from_bytes(push[at : at + 4], "little", signed=True)) for at in range(0, len(push), 4)
            ]
            lists = [len(constants), len(step.call.bound)]
            if step.call.indirect is not None:
                slot, start, _ = self._place(step.call.indirect, step)
                grid = [code.i32(slot), null, code.i64(start), zero]
                operands = [commands, executable, function, *grid, *constants, *bindings]
                code.call("hal.command_buffer.dispatch.indirect", operands, lists, 7)
            else:
                grid = [*map(code.i32, step.groups), zero]
                operands = [commands, executable, function, *grid, *constants, *bindings]
                code.call("hal.command_buffer.dispatch", operands, lists, 7)

    # -- a call --------------------------------------------------------------------------------------

    def _run(self) -> str:
        count = len(self.arrays)
        code = _Code(count)
        device = code.reference("vm.global.load.ref @device : !hal.device")
        commands = code.reference("vm.global.load.ref @commands : !hal.command_buffer")
        null = code.reference("vm.const.ref.zero")
        table: list[str] = []
        shown: list[str] = []
        for index, array in enumerate(self.arrays):
            kind = ElementType.from_dtype(array.dtype)
            shown.append(f"%array{index}: tensor<{format_shape_and_type(array.shape, kind)}>")
            name = code.reference(f"vm.const.ref.rodata {self._constant(f'array{index}'.encode())}")
            operands = [f"%r{index}", name, code.i32(int(kind)), code.i32(1), *map(code.i64, array.shape)]
            code.call("hal.buffer_view.assert", operands, [len(array.shape)], 4)
            buffer = code.reference(f"vm.call @hal.buffer_view.buffer(%r{index})")
            table += [buffer, code.i64(0), code.i64(-1)]
        fence = code.reference(f"vm.call @hal.fence.create({device}, {code.i64(0)})")
        operands = [device, code.i64(-1), null, fence, commands, code.i64(0), *table]
        code.call("hal.device.queue.execute.indirect", operands, [count], 6)
        status, for_ever, flags = code.new("i32"), code.i32(-1), code.i64(0)
        code.emit(
            f"vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1]({for_ever}, {flags}, {fence}) "
            f"-> ^bb1({status})"
        )
        results = [f"%r{index}" for index in sorted(self._written)]
        code.lines += [
            "^bb1:",
            f"  vm.cond_br {status}, ^bb2(), ^bb3()",
            "^bb2:",
            f'  vm.fail {status}, "the work failed"',
            "^bb3:",
            f"  vm.return {', '.join(results)}".rstrip(),
        ]
        parameters = ", ".join(f"%r{index}: !hal.buffer_view" for index in range(count))
        types = ", ".join("!hal.buffer_view" for _ in results)
        outs = ", ".join(f"{shown[index]}" for index in sorted(self._written))
        declared = f"sync func @run({', '.join(shown)}) -> ({outs})"
        attributes = f'attributes {{iree.abi.declaration = "{declared}"}} '
        return code.text(f"vm.func @run({parameters}) -> ({types}) {attributes}{{")


def _executable(call: RecordedCall) -> bytes:
    """Returns the executable of a kernel, with its specialization constants as defaults."""
    pipeline = call.pipeline
    layouts = pipeline.interface.set_layouts
    if any(kind not in _BUFFERS for key in layouts for _, kind, _ in key):
        raise UnimplementedError(f"{call.name} binds images or samplers, and a program's kernels take arrays alone")
    sets = tuple(
        DescriptorSetLayoutDef(
            tuple(DescriptorBindingDef(binding, DescriptorType(kind), count) for binding, kind, count in key)
        )
        for key in layouts
    )
    pushed = pipeline.interface.push_constant_bytes
    ranges = (PushConstantRange(COMPUTE_STAGE, 0, -(-pushed // 4) * 4),) if pushed else ()
    return build_executable(
        ExecutableDef(
            (PipelineDef(0, pipeline.entry.name, 0, call.memory.subgroup_size),),
            sets,
            (PipelineLayoutDef(tuple(range(len(sets))), push_constant_ranges=ranges),),
            (memoryview(_portable(call.memory.specialized(), pipeline.local_size)),),
        )
    )


def _portable(code: bytes, local_size: tuple[int, int, int]) -> bytes:
    """Returns a module as SPIR-V of Vulkan 1.2, for which C programs are written, if it is valid as such."""
    binary = read_binary(code)
    if binary.version <= (1, 5):
        return code
    words = list(binary.words)
    words[1] = 0x00010500
    for opcode, start, end in binary:
        if opcode == Op.ExecutionModeId and words[start + 2] == ExecutionMode.LocalSizeId:
            words[start:end] = encode(Op.ExecutionMode, words[start + 1], ExecutionMode.LocalSize, *local_size)
    lowered = pack(words)
    try:
        validate(lowered)
    except PumiceError:
        return code
    return lowered
