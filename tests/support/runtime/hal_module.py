"""For tests of the hal module: VM buffers, executables of the shaders that ship, a small program's calls."""

from __future__ import annotations

import numpy as np

from pumice import shaders
from pumice.formats.vke1 import (
    DescriptorBindingDef,
    DescriptorSetLayoutDef,
    ExecutableDef,
    PipelineDef,
    PipelineLayoutDef,
    PushConstantRange,
)
from pumice.formats.vke1_writer import build_executable
from pumice.hal_vulkan import Buffer, Device, MemoryTypeFlags, compile_glsl, reflect
from pumice.hal_vulkan.programs.command_buffer import ProgramCommandBuffer
from pumice.hal_vulkan.programs.executable import ProgramExecutable
from pumice.runtime.modules.hal.module import HalState
from pumice.vm.types.buffer import VmBuffer
from pumice.waits.wait_frame import Wait

FORMAT = "vulkan-spirv-fb"
DEVICE_LOCAL = 0x30
HOST_LOCAL = 0x56
USAGE = 0xC03 | 0x100  # transfer, storage, and indirect parameters
MAPPED_USAGE = USAGE | 0x9000000
F32 = 0x21000020


def vm(data: bytes | str) -> VmBuffer:
    """A read-only VM buffer, as a module's constants are."""
    return VmBuffer(memoryview(data.encode() if isinstance(data, str) else data))


def executable_blob(*names: str) -> bytes:
    """A VKE1 blob with a pipeline for each of the shaders that ship, whose names they have."""
    pipelines, sets, layouts, modules = [], [], [], []
    for index, name in enumerate(names):
        code = shaders.spirv(name)
        entry = reflect(code).entry_point(None)
        push = entry.push_constants
        sets.append(DescriptorSetLayoutDef(tuple(DescriptorBindingDef(b.binding) for b in entry.bindings)))
        layouts.append(PipelineLayoutDef((index,), (PushConstantRange(0x20, 0, push.size),) if push else ()))
        modules.append(memoryview(code))
        pipelines.append(PipelineDef(index, entry.name, index))
    return build_executable(ExecutableDef(tuple(pipelines), tuple(sets), tuple(layouts), tuple(modules)))


def storage_blob(source: str, bindings: int, push: int = 0, defines: dict[str, str | int] | None = None) -> bytes:
    """A VKE1 blob of a GLSL kernel whose layout has one set of this many storage buffers."""
    return build_executable(
        ExecutableDef(
            (PipelineDef(0, "main", 0),),
            (DescriptorSetLayoutDef(tuple(DescriptorBindingDef(index) for index in range(bindings))),),
            (PipelineLayoutDef((0,), (PushConstantRange(0x20, 0, push),) if push else ()),),
            (memoryview(compile_glsl(source, defines=defines or {})),),
        )
    )


def executable(state: HalState, device: Device, *names: str) -> ProgramExecutable:
    """``executable.create`` of ``executable_blob``."""
    return state.executable_create(device, -1, vm(FORMAT), vm(executable_blob(*names)), None)


def buffer_of(state: HalState, device: Device, array: np.ndarray, memory: int = HOST_LOCAL) -> Buffer:
    """A buffer with an array's bytes, by way of a file and a queue read, as constants come to be."""
    allocator = state.device_allocator(device)
    buffer = state.allocator_allocate(allocator, -1, memory, MAPPED_USAGE, array.nbytes)
    file = state.file_from_memory(device, -1, 1, vm(array.tobytes()), 0, array.nbytes, 0)
    done = state.fence_create(device, 0)
    state.queue_read(device, -1, None, done, file, 0, buffer, 0, array.nbytes, 0)
    assert wait_for(state, done) == 0
    return buffer


def array_of(state: HalState, buffer: Buffer, dtype: object = np.float32) -> np.ndarray:
    """A buffer's contents, by way of a copy to host memory."""
    device = buffer.device
    staged = device.create_buffer(
        max(buffer.size, 1), memory_type=MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE
    )
    with staged:
        done = state.fence_create(device, 0)
        state.queue_copy(device, -1, None, done, buffer, 0, staged, 0, buffer.size, 0)
        assert wait_for(state, done) == 0
        return np.frombuffer(staged.read(0, buffer.size), dtype)


def wait_for(state: HalState, *fences: object, timeout: int = -1) -> int:
    """``fence.await`` with the wait performed as an invocation's driver performs it."""
    answer = state.fence_await(timeout, 0, fences)
    if isinstance(answer, Wait):
        error = None
        try:
            for source in answer.sources:
                source.wait_until(answer.deadline)
        except Exception as raised:
            error = raised
        answer = answer.resume(error)  # type: ignore[arg-type]
    assert isinstance(answer, int)
    return answer


def direct(*buffers: Buffer) -> tuple[tuple[int, int, Buffer, int, int], ...]:
    """Bindings of whole buffers."""
    return tuple((0, 0, buffer, 0, -1) for buffer in buffers)


def multiply_commands(state: HalState, device: Device, count: int) -> ProgramCommandBuffer:
    """Reusable commands: slot 2 = slot 0 * slot 1, f32."""
    commands = state.command_buffer_create(device, 0, 3, -1, 3)
    slots = tuple((0, slot, None, 0, 4 * count) for slot in range(3))
    made = executable(state, device, "mul")
    state.command_buffer_dispatch(commands, made, 0, -(-count // 64), 1, 1, 0, (), slots)
    state.command_buffer_execution_barrier(commands, 28, 13, 0)
    state.command_buffer_finalize(commands)
    return commands


def table(*buffers: Buffer) -> tuple[tuple[Buffer, int, int], ...]:
    """A binding table of whole buffers."""
    return tuple((buffer, 0, buffer.size) for buffer in buffers)
