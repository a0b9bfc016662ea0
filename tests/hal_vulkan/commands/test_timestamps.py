"""Timing: tick arithmetic, durations of dispatches, and spans."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.devices.host_buffers import HOST, submitted

from pumice import shaders
from pumice.hal.clock import elapsed_ticks, signed_ticks
from pumice.hal.command_buffer import BindingSlot
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.memory.buffer import Buffer
from pumice.hal_vulkan.pipelines.pipeline import ComputePipeline
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.status import ClosedError, FailedPreconditionError, InvalidArgumentError, UnimplementedError

# ---- tick arithmetic, without a device ------------------------------------------------------------------------------


@given(st.integers(1, 64), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_elapsed_ticks_across_a_wrap(bits: int, begin: int, elapsed: int) -> None:
    modulus = 1 << bits
    begin, elapsed = begin % modulus, elapsed % modulus
    end = (begin + elapsed) % modulus
    assert elapsed_ticks(begin, end, bits) == elapsed
    # Bits above the valid ones are undefined and must not count.
    assert elapsed_ticks(begin + (5 << bits), end + (9 << bits), bits) == elapsed


@given(st.integers(2, 64), st.integers(0, 2**64 - 1), st.integers(-(2**63), 2**63 - 1))
def test_signed_ticks_are_the_nearer_way_round(bits: int, reference: int, difference: int) -> None:
    half = 1 << (bits - 1)
    difference = difference % (2 * half) - half
    reference %= 2 * half
    assert signed_ticks(reference, (reference + difference) % (2 * half), bits) == difference


@pytest.fixture
def saxpy(device: Device) -> Iterator[tuple[Device, ComputePipeline, list[Buffer]]]:
    if not device.plan.timestamp_bits:
        pytest.skip("the device writes no timestamps")
    pipeline = device.create_pipeline(shaders.spirv("examples/saxpy"))
    buffers = [device.create_buffer(1 << 20, memory_type=HOST) for _ in range(2)]
    yield device, pipeline, buffers
    for buffer in buffers:
        buffer.close()


PUSH = struct.pack("<f", 2.0)


@pytest.mark.vulkan
def test_durations_are_positive_ordered_and_lie_within_the_host_clock(
    saxpy: tuple[Device, ComputePipeline, list[Buffer]],
) -> None:
    device, pipeline, buffers = saxpy
    commands = device.create_command_buffer(timing=True, name="timed")
    commands.begin()
    sizes = [4096, 16, 1, 2048, 0]
    for groups in sizes:
        commands.dispatch(pipeline, buffers, (groups, 1, 1), PUSH)
        commands.execution_barrier()
    commands.end()
    clock = device.calibrate()
    for _ in range(3):
        before = time.monotonic_ns()
        device.compute_queue.submit((commands,))
        device.wait_idle(10)
        after = time.monotonic_ns()
        timings = commands.timings()
        assert [timing.groups for timing in timings] == [(n, 1, 1) for n in sizes]
        for timing, following in zip(timings, [*timings[1:], None], strict=True):
            assert timing.duration_ns >= 0 and timing.name == "main" and timing.stage == "COMPUTE_SHADER"
            assert timing.device_type == device.profile.device_type.name
            assert "ns a tick" in timing.clock and "valid bits" in timing.clock
            period = device.profile.limits.timestamp_period
            assert timing.duration_ns == pytest.approx((timing.end_ticks - timing.begin_ticks) * period)
            if following is not None:
                assert signed_ticks(timing.end_ticks, following.begin_ticks, device.plan.timestamp_bits) >= 0
        # The largest by far takes measurable time, and more than none.
        assert timings[0].duration_ns > 0
        assert sum(timing.duration_ns for timing in timings) <= after - before
        if clock.host_clock == "clock_monotonic":
            slack = clock.max_deviation_ns + 1_000_000
            assert before - slack <= clock.host_time_ns(timings[0].begin_ticks)
            assert clock.host_time_ns(timings[-1].end_ticks) <= after + slack
    commands.close()


@pytest.mark.vulkan
def test_more_dispatches_than_a_query_pool_holds(saxpy: tuple[Device, ComputePipeline, list[Buffer]]) -> None:
    device, pipeline, buffers = saxpy
    with device.create_command_buffer(timing=True) as commands:
        for count in (1, 128, 129, 400):
            commands.begin()
            for index in range(count):
                commands.dispatch(pipeline, buffers, (index + 1, 1, 1), PUSH)
                commands.execution_barrier()
            device.compute_queue.submit((commands.end(),))
            device.wait_idle(10)
            timings = commands.timings()
            assert [timing.groups for timing in timings] == [(index + 1, 1, 1) for index in range(count)]
            begins = [timing.begin_ticks for timing in timings]
            assert begins == sorted(begins)
    device.retire()
    pools = live_objects()["query pool"]
    for _ in range(20):
        with submitted(device, timing=True) as commands:
            commands.dispatch(pipeline, buffers, (1, 1, 1), PUSH)
    assert live_objects()["query pool"] == pools


@pytest.mark.vulkan
def test_timings_before_the_run(saxpy: tuple[Device, ComputePipeline, list[Buffer]]) -> None:
    device, pipeline, buffers = saxpy
    with device.create_command_buffer() as untimed:
        with pytest.raises(FailedPreconditionError, match="timing=True"):
            untimed.timings()
        untimed.begin().end()
        with pytest.raises(FailedPreconditionError, match="timing=True"):
            untimed.timings()
    for _ in range(3):  # the second time the query pool comes back with results of the first
        gate = device.create_semaphore()
        with device.create_command_buffer(timing=True) as commands:
            with pytest.raises(FailedPreconditionError):
                commands.timings()
            commands.begin().dispatch(pipeline, buffers, (1, 1, 1), PUSH)
            commands.end()
            with pytest.raises(FailedPreconditionError, match="wait for them first|wait first"):
                commands.timings()
            device.compute_queue.submit((commands,), waits=((gate, 1),))
            with pytest.raises(FailedPreconditionError, match="wait for them first|wait first"):
                commands.timings()
            gate.signal(1)
            device.wait_idle(10)
            assert len(commands.timings()) == 1
        with pytest.raises((FailedPreconditionError, ClosedError)):
            commands.timings()
        gate.close()


@pytest.mark.vulkan
@pytest.mark.parametrize(("one_shot", "capacity"), [(True, 0), (False, 1), (True, 1)])
def test_timings_of_other_kinds(
    saxpy: tuple[Device, ComputePipeline, list[Buffer]], one_shot: bool, capacity: int
) -> None:
    device, pipeline, buffers = saxpy
    with device.create_command_buffer(one_shot=one_shot, binding_capacity=capacity, timing=True) as commands:
        commands.begin()
        commands.dispatch(pipeline, [buffers[0], BindingSlot(0) if capacity else buffers[1]], (9, 1, 1), PUSH)
        commands.fill(buffers[0], b"\0", 1, 3)  # the unaligned fill is a dispatch of the HAL's own
        commands.end()
        device.compute_queue.submit((commands,), bindings=buffers[1:] if capacity else None)
        device.wait_idle(10)
        device.retire()
        assert [timing.groups for timing in commands.timings()][0] == (9, 1, 1)
        assert all(timing.duration_ns >= 0 for timing in commands.timings())


@pytest.mark.vulkan
def test_an_empty_timed_command_buffer(device: Device) -> None:
    with device.create_command_buffer(timing=True) as commands:
        commands.begin().end()
        device.compute_queue.submit((commands,))
        device.wait_idle(10)
        assert commands.timings() == ()


@pytest.mark.vulkan
def test_wrapping_timestamps_of_few_bits(saxpy: tuple[Device, ComputePipeline, list[Buffer]]) -> None:
    """A queue with 8 valid bits wraps every 256 ticks; the duration is still the lower bits of the real one."""
    device, pipeline, buffers = saxpy
    with device.create_command_buffer(timing=True) as commands:
        commands.begin().dispatch(pipeline, buffers, (1, 1, 1), PUSH)
        commands.end()
        recording = commands._recording
        assert recording is not None and recording.timestamps is not None
        device.compute_queue.submit((commands,))
        device.wait_idle(10)
        full = commands.timings()[0]
        recording.timestamps._valid_bits = 8
        short = commands.timings()[0]
        assert (short.begin_ticks, short.end_ticks) == (full.begin_ticks & 255, full.end_ticks & 255)
        assert short.duration_ns == (full.end_ticks - full.begin_ticks) % 256 * device.profile.limits.timestamp_period


@pytest.mark.vulkan
def test_a_queue_without_timestamps_says_so(device: Device) -> None:
    families = device.profile.queue_families
    family = families[device.plan.compute_family]
    bits = family.timestamp_valid_bits
    object.__setattr__(family, "timestamp_valid_bits", 0)
    try:
        with pytest.raises(UnimplementedError, match="timestamps"):
            device.create_command_buffer(timing=True)
        with pytest.raises(UnimplementedError, match="timestamps"):
            device.calibrate()
    finally:
        object.__setattr__(family, "timestamp_valid_bits", bits)


# ---- spans ----------------------------------------------------------------------------------------------------------


@pytest.mark.vulkan
@pytest.mark.parametrize("barriers", [True, False])
def test_a_span_is_one_pair_around_all_commands(
    saxpy: tuple[Device, ComputePipeline, list[Buffer]], barriers: bool
) -> None:
    device, pipeline, buffers = saxpy
    with device.create_command_buffer(timing="span", name="many") as commands:
        commands.begin()
        for _ in range(300):  # more than a query pool holds, were each of them timed
            commands.dispatch(pipeline, buffers, (64, 1, 1), PUSH)
            if barriers:
                commands.execution_barrier()
        commands.fill(buffers[1], b"\0\0\0\0")
        commands.end()
        clock = device.calibrate()
        before = time.monotonic_ns()
        device.compute_queue.submit((commands,))
        device.wait_idle(10)
        after = time.monotonic_ns()
        (timing,) = commands.timings()
        assert timing.name == "many" and timing.groups is None and timing.stage == "TOP_OF_PIPE..BOTTOM_OF_PIPE"
        assert 0 < timing.duration_ns <= after - before
        if clock.host_clock == "clock_monotonic":
            slack = clock.max_deviation_ns + 1_000_000
            assert before - slack <= clock.host_time_ns(timing.begin_ticks)
            assert clock.host_time_ns(timing.end_ticks) <= after + slack


@pytest.mark.vulkan
def test_a_span_of_nothing_and_one_that_is_run_again(saxpy: tuple[Device, ComputePipeline, list[Buffer]]) -> None:
    device, pipeline, buffers = saxpy
    with device.create_command_buffer(timing="span") as commands:
        commands.begin().end()
        device.compute_queue.submit((commands,))
        device.wait_idle(10)
        (empty,) = commands.timings()
        assert empty.duration_ns >= 0
        # Recorded anew, and run several times: each time the pair is written anew.
        commands.begin().dispatch(pipeline, buffers, (4096, 1, 1), PUSH)
        commands.end()
        begins = []
        for _ in range(5):
            device.compute_queue.submit((commands,))
            device.wait_idle(10)
            (timing,) = commands.timings()
            assert timing.duration_ns > 0
            begins.append(timing.begin_ticks)
        assert begins == sorted(set(begins)) and begins[0] > empty.end_ticks


@pytest.mark.vulkan
def test_a_span_holds_the_dispatches_within(saxpy: tuple[Device, ComputePipeline, list[Buffer]]) -> None:
    """Of two command buffers, the first one's span begins before the second's timestamps, and ends before its end."""
    device, pipeline, buffers = saxpy
    with (
        device.create_command_buffer(timing="span") as outer,
        device.create_command_buffer(timing=True) as inner,
    ):
        outer.begin().dispatch(pipeline, buffers, (256, 1, 1), PUSH)
        outer.end()
        inner.begin().dispatch(pipeline, buffers, (256, 1, 1), PUSH)
        inner.end()
        device.compute_queue.submit((outer, inner))
        device.wait_idle(10)
        (span,), (dispatch,) = outer.timings(), inner.timings()
        bits = device.plan.timestamp_bits
        assert elapsed_ticks(span.begin_ticks, dispatch.end_ticks, bits) >= elapsed_ticks(
            span.begin_ticks, span.end_ticks, bits
        )
        # Each command buffer ends in a full barrier: the dispatch of the second begins after the first is done.
        assert signed_ticks(span.end_ticks, dispatch.end_ticks, bits) >= 0


@pytest.mark.vulkan
def test_a_span_before_it_has_run(saxpy: tuple[Device, ComputePipeline, list[Buffer]]) -> None:
    device, pipeline, buffers = saxpy
    with device.create_command_buffer(timing="span") as commands:
        with pytest.raises(FailedPreconditionError):
            commands.timings()
        commands.begin().dispatch(pipeline, buffers, (1, 1, 1), PUSH)
        commands.end()
        with pytest.raises(FailedPreconditionError, match="wait for them first|wait first"):
            commands.timings()


@pytest.mark.vulkan
def test_spans_give_their_query_pools_back(saxpy: tuple[Device, ComputePipeline, list[Buffer]]) -> None:
    device, pipeline, buffers = saxpy

    def once() -> None:
        with device.create_command_buffer(timing="span") as commands:
            for _ in range(3):
                commands.begin().dispatch(pipeline, buffers, (1, 1, 1), PUSH)
                device.compute_queue.submit((commands.end(),))
                device.wait_idle(10)
                assert len(commands.timings()) == 1

    once()
    device.retire()
    pools = live_objects()["query pool"]
    for _ in range(20):
        once()
    assert live_objects()["query pool"] == pools


@pytest.mark.vulkan
def test_timing_is_one_of_three(device: Device) -> None:
    with pytest.raises(InvalidArgumentError, match="span"):
        device.create_command_buffer(timing="each")  # type: ignore[arg-type]
