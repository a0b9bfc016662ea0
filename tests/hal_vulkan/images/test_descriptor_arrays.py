"""Arrays of descriptors of run-time size, with absent elements.

A device that lacks descriptor indexing by name may index arrays as any other: with the features noted in the plan, and
without the validation layers, which would tell the difference, what is bound and read can be tested. A device that has
it is taken as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from support.devices.device_images import glsl, picture, run
from support.devices.features import require_features
from support.devices.host_buffers import HOST, host_buffer

from pumice.hal_vulkan import BindingSlot
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.status import ClosedError, InvalidArgumentError, NotFoundError

pytestmark = pytest.mark.vulkan

INDEXING = frozenset(
    {
        "descriptorBindingPartiallyBound",
        "runtimeDescriptorArray",
        "shaderSampledImageArrayDynamicIndexing",
        "shaderSampledImageArrayNonUniformIndexing",
        "shaderStorageBufferArrayNonUniformIndexing",
    }
)
TABLES = """
    #extension GL_EXT_nonuniform_qualifier : require
    layout(local_size_x = 1) in;
    layout(set = 0, binding = 0) buffer Out { float v[]; };
    layout(set = 0, binding = 1) readonly buffer In { float v[]; } buffers[];
    layout(set = 1, binding = 0) uniform texture2D pictures[];
    layout(set = 1, binding = 1) uniform texture2D last[2];
    void main() {
      for (int i = 0; i < 4; i++)
        v[i] = texelFetch(pictures[1 + i], ivec2(0), 0).x + buffers[2 * i].v[0] + texelFetch(last[1], ivec2(0), 0).x;
    }"""


@pytest.fixture
def indexing() -> Iterator[Device]:
    """A device whose plan says that it has descriptor indexing."""
    with Driver(validation=False) as driver, Device(driver) as device:
        if "descriptorIndexing" in device.profile.features:
            require_features(device, *INDEXING)
        extensions = (*device.plan.extensions, "VK_EXT_descriptor_indexing")
        device.plan = replace(device.plan, features=device.plan.features | INDEXING, extensions=extensions)
        yield device


def test_elements_may_be_absent(indexing: Device) -> None:
    device = indexing
    pictures = [picture(device, np.full((1, 1), value, np.float32), "r32float") for value in (1, 2, 3, 4, 1000)]
    buffers = [host_buffer(device, struct.pack("<f", value)) for value in (10, 20, 30, 40)]
    views = [image.view() for image in pictures]
    last = [None, views[4]]
    out = device.create_buffer(16, memory_type=HOST)
    with device.create_pipeline(glsl(TABLES)) as pipeline:
        assert pipeline.push_template is None and len(pipeline.interface.partial) == 3
        given = [buffers[0], None, buffers[1], None, buffers[2], None, buffers[3]]
        for _ in range(2):  # written, and found again
            run(device, pipeline, [out, given, [None, *views[:4]], last])
            assert struct.unpack("<4f", out.read()) == (1011, 1022, 1033, 1044)
        run(device, pipeline, [out, given[::-1], [views[4], *views[3::-1]], last])  # other elements, another set
        assert struct.unpack("<4f", out.read()) == (1044, 1033, 1022, 1011)
        with device.create_command_buffer(binding_capacity=2) as commands:
            table = [BindingSlot(1), None, BindingSlot(1), None, BindingSlot(1), None, buffers[3]]
            commands.begin().dispatch(pipeline, [BindingSlot(0), table, [None, *views[:4]], last], (1, 1, 1))
            commands.end()
            for value, one in zip((10, 20), buffers[:2], strict=True):
                device.compute_queue.execute(commands, bindings=[out, one])
                device.wait_idle(20)
                assert struct.unpack("<4f", out.read()) == (1001 + value, 1002 + value, 1003 + value, 1044)
        pictures[1].close()
        with pytest.raises(ClosedError, match="the image for set 1 binding 0 was closed"):
            pipeline.bind([out, given, [None, *views[:4]], last])  # type: ignore[list-item]


def test_sizes_follow_the_limits_or_the_caller(indexing: Device) -> None:
    device, code = indexing, glsl(TABLES)
    limits = device.profile.limits
    with device.create_pipeline(code) as pipeline:
        sizes = {(s, b): n for s, key in enumerate(pipeline.interface.set_layouts) for b, _, n in key}
        assert sizes[0, 1] + 1 <= limits.max_per_stage_descriptor_storage_buffers
        assert sizes[1, 0] + 2 <= limits.max_per_stage_descriptor_sampled_images
        assert sum(sizes.values()) <= limits.max_per_stage_resources
        assert min(sizes[0, 1], sizes[1, 0]) > 8
    executable = device.create_executable(code)
    small = executable.pipeline(array_sizes={(0, 1): 7, (1, 0): 5})
    assert small.interface.binding_count == 1 + 7 + 5 + 2
    assert small is executable.pipeline(array_sizes={(1, 0): 5, (0, 1): 7}) and small is not executable.pipeline()
    with device.create_buffer(16) as buffer:
        with pytest.raises(InvalidArgumentError, match="set 0 binding 1 takes up to 7 elements, got 8; .*array_sizes"):
            small.bind([buffer, [buffer] * 8, [], []])  # type: ignore[list-item]
        with pytest.raises(InvalidArgumentError, match="one for each of 4 bindings, arrays as lists, got 2"):
            small.bind([buffer, [buffer] * 7])  # type: ignore[list-item]
        with pytest.raises(InvalidArgumentError, match="set 0 binding 0 takes a storage buffer, got nothing"):
            small.bind([None, [], [], []])
        with pytest.raises(InvalidArgumentError, match="set 1 binding 0 takes a sampled image .*got a buffer"):
            small.bind([buffer, [], [None, buffer], []])  # type: ignore[list-item]
    for sizes, error, match in (
        ({(0, 0): 3}, NotFoundError, r"no run-time sized array .* \(0, 0\); it has: \(0, 1\), \(1, 0\)"),
        ({(0, 1): 0}, InvalidArgumentError, "positive int, got 0"),
        ({(0, 1): 1 << 30}, InvalidArgumentError, "storage buffers are more than"),
    ):
        with pytest.raises(error, match=match):
            executable.pipeline(array_sizes=sizes)
    executable.close()
