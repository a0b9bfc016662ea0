"""How executables take their buffers: descriptors, descriptors of pointers, tables of addresses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.runtime.hal_module import (
    DEVICE_LOCAL,
    FORMAT,
    HOST_LOCAL,
    MAPPED_USAGE,
    array_of,
    buffer_of,
    direct,
    storage_blob,
    table,
    vm,
    wait_for,
)

from pumice.hal_vulkan import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.hal_vulkan.programs.command_buffer import ProgramCommandBuffer
from pumice.hal_vulkan.programs.executable import PUSHED_FORMAT, ProgramExecutable
from pumice.runtime.modules.hal.module import HalState
from pumice.status import InvalidArgumentError, NotFoundError, ResourceExhaustedError, UnimplementedError

pytestmark = pytest.mark.vulkan

POINTERS = """
#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 4) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(push_constant) uniform Push { float factor; };
layout(set = SET, binding = 0) buffer Table { Floats a; Floats b; Floats result; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    result.v[i] = factor * a.v[i] * b.v[i];
}
"""
PUSHED = """
#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 4) in;
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Floats { float v[]; };
layout(push_constant) uniform Push { float factor; uint spare; Floats given[2]; uint numbers[16]; };
layout(set = 0, binding = 1) writeonly buffer Result { float result[]; };
void main() {
    uint i = 4 * numbers[gl_WorkGroupID.x] + gl_LocalInvocationID.x;
    result[i] = factor * given[0].v[i];
}
"""
# As compilers do with types narrower than a word: the word is read, changed in part, and written.
BYTES = """
#version 450
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer Data { uint words[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    atomicOr(words[i / 4], (i + 1) << (8 * (i % 4)));
}
"""
# A fixed length, one that is asked for, and elements of two sizes in one binding, as IREE's compiler has them.
SHIFTED = """
#version 450
layout(local_size_x = 4) in;
layout(push_constant) uniform Push { uint factor; };
layout(set = 0, binding = 0) readonly buffer A { uint a[16]; };
layout(set = 0, binding = 0) readonly buffer Wide { uvec2 wide[8]; };
layout(set = 0, binding = 1) buffer B { uint b[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    b[i] = a[i] + factor * wide[i / 2].y + 1000 * b[i] + 100000 * b.length();
}
"""
SUBGROUPS = """
#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 512) in;
layout(set = 0, binding = 0) buffer Data { float data[]; };
void main() { data[0] = subgroupAdd(data[gl_LocalInvocationID.x]); }
"""


@pytest.fixture(scope="module", params=["mapped", "staging"])
def state(driver: Driver, request: pytest.FixtureRequest) -> Iterator[HalState]:
    with Device(driver, options=PlanOptions(staging=request.param == "staging")) as device:
        made = HalState((device,))
        yield made
        made.close()


def create(
    state: HalState,
    source: str,
    bindings: int,
    push: int = 0,
    *,
    name: str = FORMAT,
    defines: dict[str, str | int] | None = None,
) -> ProgramExecutable:
    """``executable.create`` of ``storage_blob``."""
    blob = storage_blob(source, bindings, push, defines)
    return state.executable_create(state.devices_get(0), -1, vm(name), vm(blob), None)


def submit(state: HalState, commands: ProgramCommandBuffer, *bindings: tuple[object, int, int]) -> None:
    device, done = state.devices_get(0), None
    state.command_buffer_execution_barrier(commands, 28, 13, 0)
    state.command_buffer_finalize(commands)
    for _ in range(2 if bindings else 1):
        wait, done = done, state.fence_create(device, 0)
        state.queue_execute_indirect(device, -1, wait, done, commands, 0, bindings)  # type: ignore[arg-type]
    assert wait_for(state, done) == 0


def bits(number: float) -> int:
    return int(np.float32(number).view(np.int32))


def test_descriptors_of_memory_with_pointers(state: HalState) -> None:
    """Format vulkan-spirv-fb-ptr as runtimes from 3.12 on take it: descriptors, and kernels may follow addresses."""
    device = state.devices_get(0)
    x = np.arange(8, dtype=np.float32)
    a, b, out = (buffer_of(state, device, array, HOST_LOCAL) for array in (x, x + 1, np.zeros_like(x)))
    pointers = buffer_of(state, device, np.array([one.device_address for one in (a, b, out)], np.uint64), DEVICE_LOCAL)
    made = create(state, POINTERS, 1, 4, name="vulkan-spirv-fb-ptr", defines={"SET": 0})
    commands = state.command_buffer_create(device, 1, 3, -1, 0)
    state.command_buffer_dispatch(commands, made, 0, 2, 1, 1, 0, (bits(0.5),), direct(pointers))
    submit(state, commands)
    np.testing.assert_array_equal(array_of(state, out), 0.5 * x * (x + 1))


@pytest.mark.parametrize("memory", [DEVICE_LOCAL, HOST_LOCAL])
@pytest.mark.parametrize("slots", [False, True])
def test_a_table_of_addresses_in_set_3(state: HalState, memory: int, slots: bool) -> None:
    """Format vulkan-spirv-fb-ptr of compilers up to 3.11 (IREE's ConvertToSPIRVPass.cpp, indirect bindings)."""
    device = state.devices_get(0)
    x = np.arange(16, dtype=np.float32)
    a, b, out = (buffer_of(state, device, array, memory) for array in (x, x + 1, np.zeros_like(x)))
    made = create(state, POINTERS, 3, 4, name="vulkan-spirv-fb-ptr", defines={"SET": 3})
    commands = state.command_buffer_create(device, 0 if slots else 1, 3, -1, 3 if slots else 0)
    for start, factor in ((0, 2.0), (16, 2.0), (32, -1.0)):
        whole = [(0, index, None if slots else one, start, 16) for index, one in enumerate((a, b, out))]
        state.command_buffer_dispatch(commands, made, 0, 1, 1, 1, 0, (bits(factor),), tuple(whole))
    with pytest.raises(InvalidArgumentError, match="takes 3 buffer"):
        state.command_buffer_dispatch(commands, made, 0, 1, 1, 1, 0, (0,), ())
    with pytest.raises(InvalidArgumentError, match="push constants"):
        state.command_buffer_dispatch(commands, made, 0, 1, 1, 1, 0, (), tuple(whole))
    submit(state, commands, *(table(a, b, out) if slots else ()))
    expected = np.repeat(np.float32([2, 2, -1, 0]), 4) * x * (x + 1)
    np.testing.assert_array_equal(array_of(state, out), expected)


@pytest.mark.parametrize("slots", [False, True])
def test_addresses_as_push_constants(state: HalState, slots: bool) -> None:
    """Our own format: descriptors, and behind the constants the addresses of all bindings and the words 0 to 15."""
    device = state.devices_get(0)
    x = np.arange(128, dtype=np.float32)  # halves that every device binds: at multiples of 256 bytes
    given, out = (buffer_of(state, device, array, DEVICE_LOCAL) for array in (x, np.zeros_like(x)))
    made = create(state, PUSHED, 2, 88, name=PUSHED_FORMAT)
    commands = state.command_buffer_create(device, 0 if slots else 1, 3, -1, 2 if slots else 0)
    for start, factor in ((0, 2.0), (256, -1.0), (256, 3.0)):
        parts = [(0, index, None if slots else one, start, 256) for index, one in enumerate((given, out))]
        state.command_buffer_dispatch(commands, made, 0, 16, 1, 1, 0, (bits(factor), 0), tuple(parts))
        state.command_buffer_execution_barrier(commands, 28, 13, 0)
    with pytest.raises(InvalidArgumentError, match="takes 8 bytes of push constants, got 4"):
        state.command_buffer_dispatch(commands, made, 0, 2, 1, 1, 0, (bits(1.0),), tuple(parts))
    submit(state, commands, *(table(given, out) if slots else ()))
    np.testing.assert_array_equal(array_of(state, out), np.repeat(np.float32([2, 3]), 64) * x)
    with pytest.raises(InvalidArgumentError, match="76 bytes of push constants have no room for the addresses of 2"):
        create(state, PUSHED.replace("given[2]", "given[1]"), 2, 76, name=PUSHED_FORMAT)


def test_addresses_need_a_device_that_has_them(driver: Driver) -> None:
    with Device(driver) as device:
        device.device_addresses = False
        state = HalState((device,))
        with pytest.raises(NotFoundError, match="does not run executables of format 'vulkan-spirv-fb-ptr'"):
            create(state, POINTERS, 3, 4, name="vulkan-spirv-fb-ptr", defines={"SET": 3})
        with pytest.raises(UnimplementedError):
            create(state, POINTERS, 3, 4, defines={"SET": 3})
        state.close()


@pytest.mark.parametrize("size", [1, 5, 6, 7, 8])
def test_the_last_word_is_bound_whole(state: HalState, size: int) -> None:
    """Devices that check bounds would drop what a kernel does with a word of which a part is bound."""
    device = state.devices_get(0)
    out = buffer_of(state, device, np.zeros(8, np.uint8), DEVICE_LOCAL)
    part = state.buffer_subspan(out, 0, size)
    commands = state.command_buffer_create(device, 1, 3, -1, 0)
    state.command_buffer_dispatch(commands, create(state, BYTES, 1), 0, 2, 1, 1, 0, (), direct(part))
    submit(state, commands)
    words = -(-size // 4)
    assert array_of(state, out, np.uint8).tolist()[: 4 * words] == list(range(1, 4 * words + 1))


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize("offsets", [(8, 0), (0, 4), (64, 192), (200, 12)])
def test_offsets_that_the_device_does_not_bind(state: HalState, offsets: tuple[int, int], slots: bool) -> None:
    """IREE's modules have constants and transients at multiples of 64 bytes; devices may bind multiples of 256."""
    device = state.devices_get(0)
    values = np.arange(128, dtype=np.uint32)
    made = create(state, SHIFTED, 2, 4)
    for count in (8, 16) if slots else (8,):
        a, b = (buffer_of(state, device, values, DEVICE_LOCAL) for _ in range(2))
        bindings = tuple(
            (0, index, None if slots else buffer, offset, 4 * count)
            for index, (buffer, offset) in enumerate(zip((a, b), offsets, strict=True))
        )
        commands = state.command_buffer_create(device, 0 if slots else 1, 3, -1, 2 if slots else 0)
        state.command_buffer_dispatch(commands, made, 0, count // 4, 1, 1, 0, (7,), bindings)
        submit(state, commands, *(((a, 0, 512), (b, 0, 512)) if slots else ()))
        first = values[offsets[0] // 4 :][:count]
        expected = values.copy()
        for _ in range(2 if slots else 1):
            old = expected[offsets[1] // 4 :][:count]
            old[:] = first + 7 * first[np.arange(count) // 2 * 2 + 1] + 1000 * old + 100000 * count
        np.testing.assert_array_equal(array_of(state, b, np.uint32), expected)
        np.testing.assert_array_equal(array_of(state, a, np.uint32), values)


def test_subgroups_larger_than_the_devices(driver: Driver) -> None:
    with Device(driver) as device:
        state = HalState((device,))
        if device.profile.subgroup.max_size >= 16:
            create(state, SUBGROUPS, 1)
        else:
            with pytest.raises(UnimplementedError, match="compiled for subgroups of 16 invocations or more"):
                create(state, SUBGROUPS, 1)
        state.close()


def test_empty_bindings(state: HalState) -> None:
    device = state.devices_get(0)
    out = state.device_allocator(device).allocate(DEVICE_LOCAL, MAPPED_USAGE, 16)
    commands = state.command_buffer_create(device, 1, 3, -1, 0)
    state.command_buffer_dispatch(commands, create(state, BYTES, 1), 0, 0, 1, 1, 0, (), ((0, 0, out, 16, 0),))
    submit(state, commands)


@pytest.mark.parametrize("slots", [False, True])
def test_grids_larger_than_the_device_dispatches(driver: Driver, slots: bool) -> None:
    """In parts: as IREE's end-to-end tests have them, 262144 workgroups where a device takes 65535."""
    source = """
        #version 450
        layout(local_size_x = 1) in;
        layout(constant_id = 0) const uint factor = 2;
        layout(set = 0, binding = 0) buffer Data { uint words[]; };
        void main() {
          words[gl_GlobalInvocationID.x + gl_NumWorkGroups.x * gl_WorkGroupID.y] = factor * gl_GlobalInvocationID.x;
        }
    """
    with Device(driver) as device:
        device.groups_max = (100, 2, 2)
        state = HalState((device,))
        made = create(state, source, 1)
        out = buffer_of(state, device, np.zeros(750, np.uint32))
        commands = state.command_buffer_create(device, 0 if slots else 1, 3, -1, int(slots))
        binding = ((0, 0, None if slots else out, 0, 3000),)
        for _ in range(2):
            state.command_buffer_dispatch(commands, made, 0, 250, 3, 1, 0, (), binding)
        with pytest.raises(ResourceExhaustedError, match="at once"):
            state.command_buffer_dispatch(commands, made, 0, 2**31 - 1, 1, 1, 0, (), binding)
        submit(state, commands, *(table(out) if slots else ()))
        np.testing.assert_array_equal(array_of(state, out, np.uint32), np.tile(2 * np.arange(250), 3))
        state.close()


def test_a_real_grid_larger_than_the_device_dispatches(driver: Driver) -> None:
    with Device(driver) as device:
        most = device.profile.limits.max_compute_work_group_count[0]
        if most > 1 << 20:
            pytest.skip(f"{device.profile.name} dispatches {most} workgroups at once")
        state = HalState((device,))
        count = most + 4
        out = buffer_of(state, device, np.zeros(4 * count, np.uint32))
        made = create(state, BYTES.replace("atomicOr(words[i / 4], (i + 1) << (8 * (i % 4)))", "words[i] = i"), 1)
        commands = state.command_buffer_create(device, 1, 3, -1, 0)
        state.command_buffer_dispatch(commands, made, 0, count, 1, 1, 0, (), direct(out))
        submit(state, commands)
        np.testing.assert_array_equal(array_of(state, out, np.uint32), np.arange(4 * count))
        state.close()
