"""Images, samplers and texel buffers that are made, used and closed leave nothing behind, also in flight."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.flat import hold_flat
from support.soak import SOAK

from pumice.hal_vulkan import Device, Driver, PlanOptions
from pumice.spirv.sources.glsl import compile_glsl

pytestmark = [pytest.mark.vulkan, pytest.mark.sample(1)]

_CALLS = 5_000 if SOAK else 100
SHADER = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) uniform sampler2D picture;
layout(binding = 1, rgba8) uniform writeonly image2D result;
layout(binding = 2) uniform textureBuffer factors;
void main() {
  ivec2 at = ivec2(gl_GlobalInvocationID.xy);
  imageStore(result, at, texture(picture, (vec2(at) + 0.5) / 8) * texelFetch(factors, at.x));
}"""


@pytest.fixture(
    params=[pytest.param(True, marks=pytest.mark.features("VK_KHR_push_descriptor")), False], ids=["pushed", "sets"]
)
def device(driver: Driver, request: pytest.FixtureRequest) -> Iterator[Device]:
    with Device(driver, options=PlanOptions(push_descriptors=request.param), persistent_cache=False) as opened:
        yield opened


def test_images_leave_nothing(device: Device) -> None:
    pipeline = device.create_pipeline(compile_glsl(SHADER))
    factors = device.create_buffer(32)
    kept = device.create_image("rgba8unorm", (8, 8), levels=0)
    upload = device.create_buffer(256)

    def block() -> None:
        for step in range(_CALLS):
            with (
                device.create_image("rgba8unorm", (8, 8), layers=1 + step % 3) as image,
                device.create_sampler(filter="nearest") as sampler,
                device.create_command_buffer() as commands,
            ):
                commands.begin().copy_buffer_to_image(upload, image, layers=1)
                commands.execution_barrier()
                source = kept if step % 2 else image
                resources = [
                    source.view(arrayed=False, layers=1).with_sampler(sampler),
                    image.view(arrayed=False, layers=1),
                    device.texel_buffer(factors, "r32float"),
                ]
                if source is image:
                    resources[0] = kept.view(levels=1 + step % 4).with_sampler(sampler)
                commands.dispatch(pipeline, resources, (1, 1, 1))
                device.compute_queue.execute(commands.end())  # closed while it runs

    hold_flat(block, device.wait_idle)
