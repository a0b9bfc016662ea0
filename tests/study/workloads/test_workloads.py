"""Workloads of every kind: their results are right, their times are in order and sum, and closing them frees
everything.

If host and device clocks did not agree, a device would begin before the submit call or end after the host's wake-up:
each sample with device times is checked for that.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.submit.queue import Queue
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.runtime.profiling.clock import ClockRelation
from pumice.status import (
    DeadlineExceededError,
    InvalidArgumentError,
    NotFoundError,
    PumiceError,
    UnavailableError,
)
from pumice.study.definition.point import Point
from pumice.study.definition.sample import SEGMENTS, Sample
from pumice.study.definition.settings import Sampling
from pumice.study.definition.target_settings import KINDS
from pumice.study.workloads.clock import RawSample, resolve
from pumice.study.workloads.kernel import KernelWorkload
from pumice.study.workloads.openers import open_workload
from pumice.study.workloads.workload import DevicePool, Workload, WorkloadContext
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.writer import write_module

pytestmark = pytest.mark.vulkan

N = 256
MUL = {
    "source": "builtin:mul",
    "bindings": [{"shape": N, "init": "arange"}, {"shape": N, "init": 3}, {"shape": N, "init": "zeros"}],
}
SAXPY = {
    "source": "builtin:examples/saxpy",
    "bindings": [{"shape": N, "init": "arange"}, {"shape": N, "init": 100}],
    "push": {"a": 0.5},
}
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
ADDRESS = {"source": "builtin:timing/mul_address", "push": [N, 0], "groups": N // 64, "descriptors": "address"}
MODULE = """
vm.module @program
vm.export @identity
vm.func @identity(%r0: !hal.buffer_view) -> (!hal.buffer_view) attributes {DECLARATION} {
^bb0:
  vm.return %r0
}
vm.export @seven
vm.func @seven() -> (i32) attributes {"iree.abi.declaration" = "sync func @seven() -> (%x: i32)"} {
^bb0:
  %i0 = vm.const.i32 7
  vm.return %i0
}
""".replace("DECLARATION", '"iree.abi.declaration" = "sync func @identity(%x: tensor<4xf32>) -> (%y: tensor<4xf32>)"')


@pytest.fixture
def context(driver: Driver, tmp_path: Path) -> Iterator[WorkloadContext]:
    with DevicePool() as pool:
        yield WorkloadContext(pool, "vulkan", folder=tmp_path, timeout=20.0)


def opened(kind: str, context: WorkloadContext, **given: object) -> Workload:
    settings = {setting.name: setting.default for setting in KINDS[kind].settings} | given
    return open_workload(kind, Point(0, kind, context.uri, settings=settings), context, Sampling())


def kernel(context: WorkloadContext, **given: object) -> KernelWorkload:
    workload = opened("kernel", context, **given)
    assert isinstance(workload, KernelWorkload)
    return workload


def take(workload: Workload, count: int = 3) -> list[Sample]:
    """Returns the first call and ``count`` samples, each checked for what must be true of every sample."""
    hal = workload.device.hal
    timed = bool(hal.plan.timestamp_bits)
    before = hal.calibrate() if timed else None
    raws = [workload.first(), *(workload.sample() for _ in range(count))]
    relation = None if before is None else ClockRelation(hal.profile.name, (before, hal.calibrate()))
    samples = resolve(raws, relation)
    for raw, sample in zip(raws, samples, strict=True):
        check(raw, sample, relation)
    assert [sample.started for sample in samples] == sorted(sample.started for sample in samples)
    return samples


def check(raw: RawSample, sample: Sample, relation: ClockRelation | None) -> None:
    parts = {name: getattr(sample, name) for name in SEGMENTS if not math.isnan(getattr(sample, name))}
    between = 0.0 if "execute" in parts or "submit" not in parts or raw.awake < 0 else sample.device
    overlap = 0.0 if math.isnan(sample.overlap) else sample.overlap
    assert sum(parts.values()) + between - overlap == pytest.approx(sample.total, abs=1)
    assert all(value >= 0 for name, value in parts.items() if name != "wake")
    events = [raw.begin, raw.created, raw.updated, raw.recorded, raw.called, raw.returned, raw.awake, raw.done]
    happened = [event for event in events if event >= 0]
    assert happened == sorted(happened)
    if relation is not None and raw.device_begin >= 0:
        slack = relation.deviation_ns + 1
        began = relation.base_ns + float(relation.host_ns([raw.device_begin], [raw.awake])[0])
        assert raw.called - slack <= began
        assert began + sample.execute <= raw.awake + slack
        assert sample.wake >= -slack and sample.execute >= 0
        assert sample.stage


def has(sample: Sample) -> set[str]:
    return {name for name in SEGMENTS if not math.isnan(getattr(sample, name))}


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


# ---- kernels compute what NumPy does --------------------------------------------------------------------------------

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
        {"descriptors": "push"},
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


@pytest.mark.parametrize("descriptors", ["sets", "push"])
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


# ---- the other kinds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["session", "direct", "async"])
def test_modules(context: WorkloadContext, path: str) -> None:
    (context.folder / "program.vmfb").write_bytes(write_module(assemble(MODULE)))
    depth = 3 if path == "async" else 1
    workload = opened(
        "module",
        context,
        source="program.vmfb",
        function="identity",
        inputs=["4xf32=1 2 3 4"],
        path=path,
        in_flight=depth,
    )
    first, *samples = take(workload)
    workload.close()
    workload.close()
    assert has(first) == {"create", "call", "read"}
    assert all(has(sample) == {"call", "read"} and sample.dispatches == depth for sample in samples)


def test_modules_take_arrays_and_scalars(context: WorkloadContext) -> None:
    (context.folder / "program.vmfb").write_bytes(write_module(assemble(MODULE)))
    described = opened(
        "module",
        context,
        source="program.vmfb",
        function="identity",
        inputs=[{"shape": 4, "init": "arange"}],
        read=False,
    )
    assert has(take(described)[1]) == {"call"}
    described.close()
    scalar = opened("module", context, source="program.vmfb", function="program.seven")
    take(scalar)
    scalar.close()


@pytest.mark.parametrize("direction", ["host_to_device", "device_to_host", "device_to_device"])
@pytest.mark.parametrize(("batch", "offset"), [(1, 0), (3, 64)])
def test_copies_by_the_device(context: WorkloadContext, direction: str, batch: int, offset: int) -> None:
    workload = opened("copy", context, bytes=4096, direction=direction, batch=batch, offset=offset)
    samples = take(workload)
    source, target = workload._buffers  # type: ignore[attr-defined]
    if target.host_visible and source.host_visible:
        assert target.read(offset, 4096) == source.read(offset, 4096) == b"\x5a" * 4096
    workload.close()
    timed = workload.device.hal.plan.timestamp_bits
    for sample in samples:
        assert has(sample) == {"submit"} | ({"queue", "execute", "wake"} if timed else set())
        assert sample.dispatches == batch


@pytest.mark.parametrize("size", [1, 3, 4096])
@pytest.mark.parametrize(("direction", "segment"), [("host_write", "update"), ("host_read", "read")])
def test_copies_by_the_host(context: WorkloadContext, size: int, direction: str, segment: str) -> None:
    for memory in (None, "mapped", "host_cached"):
        workload = opened("copy", context, bytes=size, direction=direction, memory=memory, offset=4)
        samples = take(workload)
        workload.close()
        assert all(has(sample) == {segment} for sample in samples)


def test_copies_of_odd_sizes_and_offsets(context: WorkloadContext) -> None:
    for size, offset in ((1, 0), (5, 3), (1023, 1)):
        workload = opened("copy", context, bytes=size, direction="host_to_device", offset=offset)
        take(workload, 1)
        workload.close()


@pytest.mark.parametrize("cache", ["cold", "memory", "disk"])
@pytest.mark.parametrize("dispatch", [True, False])
def test_pipelines(context: WorkloadContext, cache: str, dispatch: bool) -> None:
    workload = opened("pipeline", context, source="builtin:mul", cache=cache, dispatch=dispatch)
    samples = take(workload, 2)
    workload.close()
    for sample in samples:
        assert has(sample) == {"create"} | ({"record", "submit"} if dispatch else set())
        assert sample.create > 0


def test_pipelines_with_specialization(context: WorkloadContext) -> None:
    workload = opened("pipeline", context, source="builtin:timing/copy", specialization={"local_size": 32})
    take(workload, 1)
    workload.close()


@pytest.mark.parametrize("waiters", [1, 3])
@pytest.mark.parametrize("wait", ["host", "thread", "poll", "asyncio", "look"])
def test_semaphores(context: WorkloadContext, wait: str, waiters: int) -> None:
    workload = opened("semaphore", context, wait=wait, waiters=waiters)
    samples = take(workload)
    workload.close()
    workload.close()
    assert all(has(sample) == {"wake"} and sample.wake > 0 for sample in samples)


@pytest.mark.parametrize("wait", ["host", "thread", "poll", "look"])
def test_semaphores_that_the_device_signals(context: WorkloadContext, wait: str) -> None:
    workload = opened("semaphore", context, signal="device", wait=wait)
    samples = take(workload)
    workload.close()
    if workload.device.hal.plan.timestamp_bits:
        assert all(sample.wake >= -sample.deviation for sample in samples)


@pytest.mark.parametrize(
    "given",
    [{}, {"command_buffers": 0}, {"command_buffers": 3, "waits": 2, "signals": 3, "in_flight": 4, "dispatches": 2}],
    ids=["plain", "nothing", "much"],
)
def test_submissions(context: WorkloadContext, given: dict[str, int]) -> None:
    workload = opened("submit", context, **given)
    samples = take(workload)
    workload.close()
    workload.close()
    assert all(has(sample) == {"submit"} and sample.dispatches == given.get("in_flight", 1) for sample in samples)


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "given", "error", "message"),
    [
        ("kernel", {"source": "builtin:no/such"}, NotFoundError, "no/such"),
        ("kernel", {"source": "missing.comp"}, NotFoundError, "missing.comp"),
        ("kernel", MUL | {"queues": 64}, UnavailableError, "64 were asked for"),
        ("kernel", MUL | {"bindings": ["4xf32=1"]}, InvalidArgumentError, "mul"),
        ("kernel", MUL | {"bindings": MUL["bindings"][:2]}, InvalidArgumentError, "mul"),
        ("kernel", ADDRESS | {"groups": None}, PumiceError, "give groups|no device addresses"),
        ("kernel", MUL | {"host_sleep": 0.1, "host_sleep_in": "submit"}, InvalidArgumentError, "can sleep in"),
        ("kernel", MUL | {"host_sleep": 0.1, "host_sleep_in": "read"}, InvalidArgumentError, "set read = true"),
        ("kernel", MUL | {"host_sleep": 0.1, "host_sleep_in": "update"}, InvalidArgumentError, "set update = true"),
        ("kernel", MUL | {"host_sleep": 0.1}, InvalidArgumentError, 'set record = "each"'),
        ("kernel", MUL | {"groups": 1 << 40}, PumiceError, "workgroups"),
        ("kernel", SAXPY | {"push": {"nonsense": 1}}, NotFoundError, "nonsense"),
        ("module", {"source": "missing.vmfb"}, NotFoundError, "missing.vmfb"),
        ("module", {"source": "program.vmfb"}, InvalidArgumentError, "identity, .*seven|say which function"),
        ("module", {"source": "program.vmfb", "function": "none"}, NotFoundError, "none"),
        ("module", {"source": "program.vmfb", "in_flight": 2}, InvalidArgumentError, "async"),
        ("copy", {"bytes": 4, "memory": "paper"}, InvalidArgumentError, "paper"),
        ("copy", {"bytes": 4, "memory": "device_local", "direction": "host_read"}, InvalidArgumentError, "host sees"),
        ("pipeline", {"source": "builtin:no/such"}, NotFoundError, "no/such"),
        ("pipeline", {"source": "builtin:mul", "entry_point": "other"}, PumiceError, "other"),
        ("semaphore", {"signal": "device", "wait": "asyncio"}, InvalidArgumentError, "one waiter"),
        ("semaphore", {"signal": "device", "waiters": 2}, InvalidArgumentError, "one waiter"),
        ("nonsense", {}, InvalidArgumentError, "no kind 'nonsense'"),
    ],
)
def test_what_cannot_be_run_says_why(
    context: WorkloadContext, kind: str, given: dict[str, object], error: type[PumiceError], message: str
) -> None:
    (context.folder / "program.vmfb").write_bytes(write_module(assemble(MODULE)))
    context.pool.open(context.uri)
    with pytest.raises(error, match=message):
        if kind not in KINDS:
            open_workload(kind, Point(0, kind, context.uri), context, Sampling())
        workload = opened(kind, context, **given)
        try:
            workload.first()
        finally:
            workload.close()


@pytest.mark.timing
@pytest.mark.parametrize("given", [{}, {"wait": "poll"}, {"wait": "thread"}, {"calls": "hal"}, {"calls": "kernel"}])
def test_a_kernel_that_runs_too_long_ends_in_time(context: WorkloadContext, given: dict[str, object]) -> None:
    long: dict[str, Any] = {
        "source": "builtin:timing/fma",
        "bindings": [{"shape": [1024, 4], "init": "zeros"}],
        "groups": 16,
        "push": {"iterations": 50_000, "factor": 1.0},  # llvmpipe ends loops at 65,535
    }
    workload = kernel(context, **long)
    # The fastest of some runs: a run that other work delays would make the kernel below too short.
    seconds = min(resolve([workload.first()], None)[0].device for _ in range(4)) / 1e9
    workload.close()
    groups = 16 * max(1, math.ceil(0.3 / max(seconds, 1e-6)))
    impatient = replace(context, timeout=0.02)
    workload = kernel(impatient, **long | {"groups": min(groups, 65535)}, **given)
    began = time.monotonic()
    with pytest.raises(DeadlineExceededError):
        workload.first()
    assert time.monotonic() - began < 15
    # Objects in use are freed when the device has finished.
    workload.close()


@pytest.mark.parametrize(
    "open_one",
    [
        lambda context: kernel(context, **MUL, batch=3, in_flight=2, wait="thread", ranges=2, update=True, read=True),
        lambda context: opened("copy", context, bytes=1024),
        lambda context: opened("pipeline", context, source="builtin:mul"),
        lambda context: opened("semaphore", context, waiters=2),
        lambda context: opened("submit", context),
    ],
    ids=["kernel", "copy", "pipeline", "semaphore", "submit"],
)
def test_closing_gives_everything_back(
    context: WorkloadContext, open_one: Callable[[WorkloadContext], Workload]
) -> None:
    """The second round leaves no native object that was not there after the first."""

    def once() -> dict[str, int]:
        workload = open_one(context)
        for _ in range(3):
            workload.first()
            workload.sample()
        workload.close()
        hal = workload.device.hal
        hal.wait_idle(10)
        hal.retire()
        return live_objects()

    once()
    assert once() == once()
