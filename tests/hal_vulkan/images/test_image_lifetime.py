"""Images, views and samplers are closed while queues, descriptor sets and recordings use them; nothing is left."""

from __future__ import annotations

import gc
import struct

import numpy as np
import pytest
from support.devices.device_images import download, glsl, picture, run, upload
from support.devices.host_buffers import HOST, host_buffer
from support.waiting import in_threads

from pumice.hal_vulkan import BindingSlot
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.status import ClosedError, ResourceExhaustedError

pytestmark = pytest.mark.vulkan

FETCH = """
    layout(local_size_x = 1) in;
    layout(binding = 0) uniform sampler2D picture;
    layout(binding = 1) writeonly buffer Out { vec4 result[]; };
    void main() { result[0] = textureLod(picture, vec2(1.25, 0.5), 0); }"""


@pytest.fixture(
    params=[pytest.param(True, marks=pytest.mark.features("VK_KHR_push_descriptor")), False], ids=["pushed", "sets"]
)
def either(driver: Driver, request: pytest.FixtureRequest) -> Device:
    return Device(driver, options=PlanOptions(push_descriptors=request.param))


def test_every_object_is_counted_and_destroyed(device: Device) -> None:
    before = live_objects()
    image = device.create_image("rgba8unorm", (16, 16), layers=2, levels=3)
    sampler = device.create_sampler()
    buffer = device.create_buffer(64)
    texels = device.texel_buffer(buffer, "r32uint")
    views = [image.view(), image.view(arrayed=False, layers=1), image.view(levels=1)]
    combined = [view.with_sampler(sampler) for view in views]
    assert combined[0] is views[0].with_sampler(sampler) and image.view() is views[0]
    during = live_objects()
    grown = {kind: during[kind] - before.get(kind, 0) for kind in ("image", "image view", "sampler", "buffer view")}
    assert grown == {"image": 1, "image view": 3, "sampler": 1, "buffer view": 1}
    assert during["allocation"] == before.get("allocation", 0) + 2
    for one in (image, sampler, buffer):
        one.close()
        one.close()
    assert all(one.is_closed for one in (image, sampler, texels, *views, *combined))
    device.wait_idle(20)
    device.trim()
    after = live_objects()
    for kind in (*grown, "allocation", "memory block"):
        assert after.get(kind, 0) == before.get(kind, 0), kind
    with pytest.raises(ClosedError):
        image.view()
    with pytest.raises(ClosedError):
        views[0].with_sampler(sampler)


def test_the_device_destroys_what_is_left(driver: Driver) -> None:
    before = live_objects()
    with Device(driver) as device:
        image, sampler = device.create_image("r32float", (4, 4)), device.create_sampler()
        image.view().with_sampler(sampler)
        device.texel_buffer(device.create_buffer(64), "r32float")
    assert image.is_closed and sampler.is_closed
    image.close()
    sampler.close()
    gc.collect()
    assert live_objects() == before


def test_closed_in_flight(either: Device) -> None:
    """Resources that a submission names stay until it has run, though everything is closed right after."""
    with either as device, device.create_pipeline(glsl(FETCH)) as pipeline:
        started = device.create_semaphore()
        image = picture(device, np.full((1, 1), 7, np.float32), "r32float")
        sampler = device.create_sampler(address="repeat")
        with device.create_buffer(16, memory_type=HOST) as out:
            commands = device.create_command_buffer(one_shot=True).begin()
            commands.dispatch(pipeline, [image.view().with_sampler(sampler), out], (1, 1, 1))
            device.compute_queue.execute(commands.end(), waits=[(started, 1)])  # held back
            before = live_objects()
            image.close()
            sampler.close()
            assert [live_objects()[kind] for kind in ("image", "sampler")] == [
                before[kind] for kind in ("image", "sampler")
            ]
            started.signal(1)
            device.wait_idle(20)
            assert struct.unpack("<4f", out.read())[0] == 7
        device.retire()
        assert "image" not in live_objects() and "sampler" not in live_objects()
        commands.close()
        started.close()


def test_a_recording_with_closed_images_is_refused(device: Device) -> None:
    with device.create_pipeline(glsl(FETCH)) as pipeline, device.create_buffer(16, memory_type=HOST) as out:
        for close in ("image", "sampler"):
            objects = {"image": device.create_image("r32float", (4, 4)), "sampler": device.create_sampler()}
            combined = objects["image"].view().with_sampler(objects["sampler"])  # type: ignore[union-attr, arg-type]
            with device.create_command_buffer() as commands:
                commands.begin().dispatch(pipeline, [combined, out], (1, 1, 1))
                commands.end()
                bound = pipeline.bind([combined, out])
                objects[close].close()
                with pytest.raises(ClosedError, match="an image that it uses was closed"):
                    device.compute_queue.execute(commands)
                commands.begin()
                with pytest.raises(ClosedError, match="an image of these sets was closed"):
                    commands.dispatch(pipeline, bound, (1, 1, 1))
                bound.close()
            for one in objects.values():
                one.close()


def test_new_samplers_and_views_are_never_mistaken_for_old_ones(either: Device) -> None:
    """Handles come again when objects are destroyed; descriptor sets and recordings must not be found by them."""
    with either as device, device.create_pipeline(glsl(FETCH)) as pipeline:
        data = np.array([[1, 2, 3, 4]], np.float32)
        out = device.create_buffer(16, memory_type=HOST)
        image = picture(device, data, "r32float")
        commands = device.create_command_buffer(binding_capacity=2).begin()
        commands.dispatch(pipeline, [BindingSlot(0), BindingSlot(1)], (1, 1, 1))
        commands.end()
        for step in range(12):
            address, wanted = (("repeat", 2), ("clamp_to_edge", 4), ("clamp_to_border", 0))[step % 3]
            sampler = device.create_sampler(filter="nearest", address=address)  # type: ignore[arg-type]
            combined = image.view().with_sampler(sampler)
            run(device, pipeline, [combined, out])
            assert struct.unpack("<4f", out.read())[0] == wanted
            device.compute_queue.execute(commands, bindings=[combined, out])
            device.wait_idle(20)
            assert struct.unpack("<4f", out.read())[0] == wanted
            sampler.close()
            if step % 4 == 3:
                image.close()
                image = picture(device, data, "r32float")
        image.close()
        out.close()
        commands.close()


def test_cached_sets_go_with_what_they_name(driver: Driver) -> None:
    with (
        Device(driver, options=PlanOptions(push_descriptors=False)) as device,
        device.create_pipeline(glsl(FETCH)) as pipeline,
        device.create_buffer(16, memory_type=HOST) as out,
    ):
        layout = pipeline.set_layouts[0]
        for close in ("image", "sampler"):
            objects = {"image": device.create_image("r32float", (4, 4)), "sampler": device.create_sampler()}
            combined = objects["image"].view().with_sampler(objects["sampler"])  # type: ignore[union-attr, arg-type]
            pipeline.bind([combined, out]).close()
            assert len(layout._sets) == 1
            device.wait_idle(20)
            objects[close].close()
            assert len(layout._sets) == 0
            for one in objects.values():
                one.close()


def test_texel_buffers_go_with_their_memory(device: Device) -> None:
    before = live_objects().get("buffer view", 0)
    buffer = device.create_buffer(1024)
    part = buffer.subspan(256, 512)
    views = [device.texel_buffer(part, "r32uint"), device.texel_buffer(part, "r32uint")]
    assert views[0].descriptor == views[1].descriptor
    other = device.texel_buffer(buffer, "r32uint")
    assert other.descriptor != views[0].descriptor and live_objects()["buffer view"] == before + 2
    part.close()
    assert views[0].is_closed and not other.is_closed
    buffer.close()
    assert other.is_closed and live_objects().get("buffer view", 0) == before


def test_images_share_blocks_of_their_own(device: Device) -> None:
    """No image lies in a block with a buffer over it; small ones share a block, at their alignment."""
    images = [device.create_image("rgba8unorm", (16 + n, 16)) for n in range(20)]
    buffers = [device.create_buffer(4096) for _ in range(5)]
    blocks = {id(image._allocation.block): image._allocation.block for image in images}
    assert len(blocks) == 1
    (block,) = blocks.values()
    assert block.mapped is None and block.handle_value == 0
    assert all(buffer._allocation.block is not block for buffer in buffers)
    spans = sorted((image._allocation.offset, image.memory_bytes) for image in images)
    assert all(a + n <= b for (a, n), (b, _) in zip(spans, spans[1:], strict=False))
    statistics = device.allocator.statistics()
    assert sum(block.use.allocations for block in statistics.blocks) == statistics.allocations
    for one in (*images[::2], *buffers, *images[1::2]):
        one.close()
    device.wait_idle(20)
    device.trim()
    assert device.allocator.statistics().allocated == 0


def test_a_failed_allocation_leaves_no_image(device: Device) -> None:
    before = live_objects()
    real = device.fn.vkAllocateMemory
    device.fn.vkAllocateMemory = lambda *_: -2  # VK_ERROR_OUT_OF_DEVICE_MEMORY
    try:
        with pytest.raises(ResourceExhaustedError):
            device.create_image("rgba32float", (1024, 1024))
    finally:
        device.fn.vkAllocateMemory = real
    assert live_objects() == before


def test_many_threads_make_use_and_close(device: Device) -> None:
    pipeline = device.create_pipeline(glsl(FETCH))

    def work(seed: int) -> None:
        for step in range(10):
            value = float(seed * 100 + step)
            with (
                device.create_image("r32float", (2, 2)) as image,
                device.create_sampler(filter="nearest") as sampler,
                host_buffer(device, bytes(16)) as out,
                device.create_command_buffer() as commands,
            ):
                done = device.create_semaphore()
                commands.begin().clear_image(image, value)
                commands.execution_barrier()
                commands.dispatch(pipeline, [image.view().with_sampler(sampler), out], (1, 1, 1))
                device.compute_queue.execute(commands.end(), signals=[(done, 1)])
                done.wait(1, 20)
                assert struct.unpack("<4f", out.read())[0] == value
                done.close()

    in_threads(work, range(4))


def test_several_queues_see_the_layout(driver: Driver) -> None:
    with Device(driver, options=PlanOptions(max_compute_queues=4)) as device:
        for queue in device.queues:
            with device.create_image("r32uint", (4, 4)) as image:
                data = np.arange(16, dtype=np.uint32)
                with host_buffer(device, data.tobytes()) as buffer, device.create_command_buffer() as commands:
                    commands.begin().copy_buffer_to_image(buffer, image)
                    if queue.family == device.plan.compute_family:
                        queue.execute(commands.end())
                        device.wait_idle(20)
                        np.testing.assert_array_equal(download(device, image, np.uint32), data)
                upload(device, image, data)
