"""Every shader that ships, run on the device and compared with its NumPy reference."""

from __future__ import annotations

import pytest
from support.devices import shader_references as references

from pumice import shaders
from pumice.hal.memory import MemoryTypeFlags
from pumice.hal_vulkan.device import Device

pytestmark = pytest.mark.vulkan
HOST = MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.DEVICE_LOCAL


by_shader: dict[str, list[object]] = {}
for _case in references.CASES:
    by_shader.setdefault(_case.shader, []).append(_case)


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", sorted(by_shader))
def test_shader_against_its_reference(device: Device, name: str) -> None:
    """All cases of one shader on one device; a case's name is in the message where it differs."""
    executable = device.create_executable(shaders.spirv(name))
    with device.create_semaphore() as done:
        for number, case in enumerate(by_shader[name], 1):
            pipeline = executable.pipeline(specialization=dict(case.spec))  # type: ignore[attr-defined]
            buffers = []
            for array in case.buffers:  # type: ignore[attr-defined]
                buffer = device.create_buffer(array.nbytes, memory_type=HOST)
                buffer.write(array.tobytes())
                buffers.append(buffer)
            bound = [buffers[index] for index in case.bindings]  # type: ignore[attr-defined]
            with device.create_command_buffer(one_shot=True, name=case.name) as commands:  # type: ignore[attr-defined]
                commands.begin()
                for each in case.passes:  # type: ignore[attr-defined]
                    commands.dispatch(pipeline, bound, each.groups, each.push)
                    commands.execution_barrier()
                device.compute_queue.submit((commands.end(),), signals=((done, number),))
                done.wait(number, 30)
            case.check([buffer.read() for buffer in buffers])  # type: ignore[attr-defined]
            for buffer in buffers:
                buffer.close()
    executable.close()


def test_every_shader_has_a_case() -> None:
    # mul_address has no bindings: tests/study runs it. What has images is run by tests/hal_vulkan/images, and what
    # belongs to `pumice check` by tests/tools/check.
    elsewhere = {"builtin/empty", "timing/mul_address", "builtin/mip_1d", "builtin/mip_2d", "builtin/mip_3d"}
    elsewhere |= {name for name in shaders.names() if name.startswith("check/")}
    assert set(by_shader) | elsewhere == set(shaders.names())
