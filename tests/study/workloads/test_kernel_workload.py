"""Kernels as workloads: they compute what NumPy does in every setting, and their samples are consistent."""

from __future__ import annotations

import math
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from support.study.workloads import ADDRESS, MUL, SAXPY, N, has, kernel, take

from pumice.hal_vulkan.submit.queue import Queue
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.status import (
    InvalidArgumentError,
    PumiceError,
    UnavailableError,
)
from pumice.study.workloads.clock import resolve
from pumice.study.workloads.workload import WorkloadContext

pytestmark = pytest.mark.vulkan

MOVE = """#version 450
layout(local_size_x = 64) in;
struct Way { float gain; vec2 at; };
layout(std140, binding = 0) uniform Settings { uint count; Way ways[2]; } settings;
layout(std430, binding = 1) buffer Places { float places[]; };
layout(std430, binding = 2) readonly buffer Speeds { float v[]; } speeds;
layout(push_constant) uniform Push { Way way; float shift; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    Way second = settings.ways[1];
    if (i < settings.count) places[i] += speeds.v[i] * (second.gain + way.gain) + second.at.x + shift;
}
"""


def test_bindings_by_name_and_blocks(context: WorkloadContext) -> None:
    (context.folder / "move.comp").write_text(MOVE)
    names: list[dict[str, Any]] = [
        {"name": "speeds", "shape": N, "init": 2},
        {"block": {"count": N, "ways": [{"gain": 1, "at": [0, 0]}, {"gain": 3, "at": [0.5, 1]}]}},
        {"name": "Places", "shape": N, "init": "arange"},
    ]
    push = {"way": {"gain": 2, "at": [1, 0]}, "shift": 10}
    with closing(kernel(context, source="move.comp", bindings=names, push=push)) as workload:
        workload.first()
        _, places, speeds = workload.results()
        np.testing.assert_array_equal(places, TIMES + 2 * (3 + 2) + 10.5)
        np.testing.assert_array_equal(speeds, np.full(N, 2))
    for bindings, message in [
        ([*names[:2], {**names[2], "name": "Plaecs"}], "'Plaecs'.*did you mean Places"),
        ([*names[:2], names[0]], "two bindings are named speeds"),
        ([names[0], {"block": {"count": 1}}, names[2]], r"ways.* not given"),
    ]:
        with pytest.raises(PumiceError, match=message):
            kernel(context, source="move.comp", bindings=bindings, push=push)


TIMES = np.arange(N, dtype=np.float32)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"batch": 5},
        {"batch": 5, "barrier": "none"},
        {"batch": 3, "command_buffers": 2, "in_flight": 4},
        {"timestamps": "each", "batch": 3, "in_flight": 2},
        {"timestamps": "none"},
        {"record": "each", "update": True, "read": True},
        {"wait": "poll", "in_flight": 3},
        {"wait": "thread", "in_flight": 3},
        {"calls": "hal", "in_flight": 3, "batch": 2},
        {"calls": "kernel", "in_flight": 3},
        {"descriptors": "sets"},
        pytest.param({"descriptors": "push"}, marks=pytest.mark.features("VK_KHR_push_descriptor")),
        {"cache": "cold", "batch": 2},
        {"robust": True},
        {"host_sleep": 0.0005, "host_sleep_in": "wake"},
    ],
    ids=lambda given: " ".join(f"{name}={value}" for name, value in given.items()) or "plain",
)
def test_a_kernel_computes_in_every_setting(context: WorkloadContext, given: dict[str, object]) -> None:
    before = live_objects()
    workload = kernel(context, **MUL, **given)
    try:
        samples = take(workload)
        a, b, product = workload.results()
        assert np.array_equal(a, TIMES) and np.all(b == 3) and np.array_equal(product, 3 * TIMES)
    finally:
        workload.close()
        workload.close()
    timed = given.get("timestamps") != "none" and given.get("calls") != "kernel"
    expected = {"submit"} | (
        {"queue", "execute", "wake"} if timed and workload.device.hal.plan.timestamp_bits else set()
    )
    expected |= {"record"} if given.get("record") == "each" else set()
    expected |= {"update", "read"} if given.get("read") else set()
    assert has(samples[0]) == expected - {"update"} | {"create", "record"}
    batch, *rest = (int(str(given.get(name, 1))) for name in ("batch", "command_buffers", "in_flight"))
    for sample in samples[1:]:
        assert has(sample) == expected
        assert sample.dispatches == batch * math.prod(rest)
        single = sample.dispatches == 1
        assert sample.barrier == ("single" if single else given.get("barrier", "between"))
    assert set(live_objects()) >= set(before)


def test_a_kernel_by_address(context: WorkloadContext) -> None:
    try:
        workload = kernel(context, **MUL | ADDRESS, read=True)
    except UnavailableError as error:
        pytest.skip(error.message)
    take(workload)
    assert np.array_equal(workload.results()[2], 3 * TIMES)
    workload.close()
    with_ranges = kernel(context, **MUL | ADDRESS, ranges=3, batch=3)
    take(with_ranges)
    assert np.array_equal(with_ranges.results()[2], np.tile(3 * TIMES, (3, 1)))
    with_ranges.close()


@pytest.mark.parametrize("record", ["once", "each"])
def test_dispatches_count_and_are_ordered_by_barriers(context: WorkloadContext, record: str) -> None:
    """Each dispatch adds 0.5 x to y, so that a lost or an unordered dispatch changes the sum."""
    workload = kernel(context, **SAXPY, batch=4, command_buffers=3, in_flight=2, record=record)
    take(workload, 4)
    _, y = workload.results()
    workload.close()
    assert np.array_equal(y, 100 + 0.5 * TIMES * (4 * 3 * 2) * 5)


def test_an_update_writes_the_inputs_anew(context: WorkloadContext) -> None:
    workload = kernel(context, **SAXPY, update=True)
    take(workload, 4)
    _, y = workload.results()
    workload.close()
    assert np.array_equal(y, 100 + 0.5 * TIMES)


@pytest.mark.parametrize(
    "descriptors", ["sets", pytest.param("push", marks=pytest.mark.features("VK_KHR_push_descriptor"))]
)
def test_bindings_rotate_through_ranges(context: WorkloadContext, descriptors: str) -> None:
    """Each range holds the inputs at first; 15 dispatches over 5 ranges are 3 in each."""
    workload = kernel(context, **SAXPY, batch=15, ranges=5, descriptors=descriptors)
    workload.first()
    x, y = workload.results()
    workload.close()
    assert x.shape == y.shape == (5, N)
    assert np.array_equal(x, np.tile(TIMES, (5, 1))) and np.array_equal(y, np.tile(100 + 1.5 * TIMES, (5, 1)))


def test_thousands_of_ranges_take_few_submissions(context: WorkloadContext, monkeypatch: pytest.MonkeyPatch) -> None:
    submitted = []
    copy = Queue.copy
    monkeypatch.setattr(Queue, "copy", lambda self, *given, **named: submitted.append(copy(self, *given, **named)))
    kernel(context, **SAXPY, ranges=4096).close()
    assert len(submitted) == 26  # of two bindings


def test_an_indirect_dispatch_runs_the_workgroups_it_reads(context: WorkloadContext) -> None:
    workload = kernel(context, **MUL, indirect=True, batch=2, groups=[2, 1, 1])
    take(workload)
    product = workload.results()[2]
    workload.close()
    local = int(np.count_nonzero(product)) + 1  # the first of all products is 0
    assert 0 < local <= N and np.array_equal(product[:local], 3 * TIMES[:local]) and not product[local:].any()


def test_a_kernel_from_a_file_with_specialization_and_defines(context: WorkloadContext) -> None:
    (context.folder / "scale.comp").write_text(
        "#version 450\nlayout(local_size_x = 64) in;\nlayout(constant_id = 3) const int factor = 1;\n"
        "layout(set = 0, binding = 0) buffer B { float b[]; };\n"
        "void main() { b[gl_GlobalInvocationID.x] = float(factor) * SCALE; }\n"
    )
    workload = kernel(
        context,
        source="scale.comp",
        bindings=[{"shape": N, "init": "zeros"}],
        specialization={"factor": 6},
        defines={"SCALE": "7.0"},
        groups=N // 64,
    )
    take(workload)
    assert np.all(workload.results()[0] == 42)
    workload.close()


IMAGES = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) uniform texture2D source;
layout(binding = 1) uniform sampler how;
layout(binding = 2, rgba8) uniform image2D target;
layout(binding = 3) uniform samplerBuffer more;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, imageSize(target)))) return;
    vec2 place = (at + 0.5) / imageSize(target);
    vec4 read = textureLod(sampler2D(source, how), place, 0) * texelFetch(more, 0).x;
    imageStore(target, at, read + imageLoad(target, at));
}"""


@pytest.mark.parametrize("given", [{}, {"update": True, "read": True, "record": "each"}, {"calls": "kernel"}])
def test_images_and_samplers(context: WorkloadContext, given: dict[str, object]) -> None:
    (context.folder / "images.comp").write_text(IMAGES, encoding="utf-8")
    np.save(context.folder / "picture.npy", np.arange(16, dtype=np.uint8).reshape(2, 2, 4))
    workload = kernel(
        context,
        source="images.comp",
        bindings=[
            "2x2xrgba8unorm=@picture.npy",
            "sampler:filter=nearest,address=repeat",
            {"shape": [4, 4], "format": "rgba8unorm", "init": 3},
            {"shape": 1, "format": "r32float", "init": 2, "name": "more"},
        ],
        **given,
    )
    with closing(workload):
        samples = take(workload, 2)
        picture, nothing, target, more = workload.results()
        assert picture.shape == (2, 2, 4) and not nothing.size and more.tolist() == [2]
        runs = 1 if given.get("update") else len(samples)
        whole = picture.repeat(2, 0).repeat(2, 1)
        assert np.array_equal(target, 3 + 2 * runs * whole)


def test_an_image_with_a_sampler_of_its_own(context: WorkloadContext) -> None:
    source = IMAGES.replace("texture2D source", "sampler2D source").replace("sampler2D(source, how)", "source")
    (context.folder / "one.comp").write_text(source.replace("place, 0", "place + 1, 0"), encoding="utf-8")
    image = {"shape": [2, 2], "format": "r8unorm", "init": 5}
    outside = {"filter=nearest": 5, "address=clamp_to_border,border=opaque_black": 0}
    for sampler, expected in outside.items():
        bindings = [{**image, "sampler": sampler}, "4x4xrgba8unorm", "1xr32float=1"]
        with closing(kernel(context, source="one.comp", bindings=bindings)) as workload:
            workload.first()
            assert (workload.results()[1][..., 0] == expected).all()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"bindings": ["2x2xr32uint=1", "sampler", "4x4xrgba8unorm", "1xr32float=1"]}, "texels of r32uint are read"),
        ({"bindings": ["2x2xr8unorm=1", "sampler", "4x4xr32float", "1xr32float=1"]}, "declares rgba8unorm, got r32f"),
        ({"bindings": ["2x2xr8unorm=1", "2x2xr8unorm=1", "4x4xrgba8unorm", "1xr32float"]}, "declares a sampler, got"),
        ({"bindings": ["2x2xr8unorm=1", "sampler"]}, "expected a binding for each of 4, got 2"),
        ({"bindings": ["2x2xr8unorm=1", "sampler", "4x4xrgba8unorm", "1xr32float"], "ranges": 2}, "have no ranges"),
    ],
)
def test_images_that_a_kernel_does_not_take(context: WorkloadContext, given: dict[str, object], problem: str) -> None:
    (context.folder / "images.comp").write_text(IMAGES, encoding="utf-8")
    with (
        pytest.raises(InvalidArgumentError, match=problem),
        closing(kernel(context, source="images.comp", **given)) as workload,
    ):
        workload.first()


def test_the_empty_kernel_takes_no_bindings(context: WorkloadContext) -> None:
    workload = kernel(context, source="builtin:builtin/empty")
    take(workload)
    assert workload.results() == ()
    workload.close()


def test_a_device_without_timestamps_is_bounded_by_the_host(context: WorkloadContext) -> None:
    """With timestampValidBits 0 there are no device times; everything else is unchanged."""
    device = context.pool.open(context.uri)
    family = device.profile.queue_families[device.hal.plan.compute_family]
    bits = family.timestamp_valid_bits
    object.__setattr__(family, "timestamp_valid_bits", 0)
    try:
        workload = kernel(context, **MUL)
        raw = (workload.first(), workload.sample())[1]
        workload.close()
    finally:
        object.__setattr__(family, "timestamp_valid_bits", bits)
    (sample,) = resolve([raw], None)
    assert has(sample) == {"submit"} and sample.device > 0 and sample.stage == "" and sample.device_begin == -1
