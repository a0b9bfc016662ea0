"""Host and device clocks: planted drifts and wraps are removed, and segments sum to the total for all events."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.hal_vulkan import ClockCalibration
from pumice.runtime.profiling.clock import ClockRelation
from pumice.study.definition.sample import SEGMENTS, Sample
from pumice.study.workloads.clock import RawSample, resolve

BITS = st.sampled_from([32, 36, 64])
PERIODS = st.sampled_from([1.0, 10.0, 52.083, 83.333])
DRIFTS = st.floats(-500, 500)
STARTS = st.floats(0, 1, exclude_max=True)
HOST = 10**14  # an uptime of more than a day


class PlantedClock:
    """A device clock that began at ``start`` and runs ``drift`` ppm fast relative to the host's."""

    def __init__(self, bits: int, period: float, drift: float, start: int) -> None:
        self.bits, self.period, self.drift, self.start = bits, period, drift, start

    def ticks(self, host_ns: float) -> int:
        return (self.start + round((host_ns - HOST) * (1 + self.drift * 1e-6) / self.period)) % (1 << self.bits)

    def read(self, host_ns: int, deviation: int = 0, *, off: int = 0, calibrated: bool = True) -> ClockCalibration:
        """Returns a reading whose host time is wrong by ``off`` nanoseconds."""
        ticks = self.ticks(host_ns)
        return ClockCalibration(ticks, host_ns + off, deviation, self.period, self.bits, "clock_monotonic", calibrated)


def relate(*readings: ClockCalibration) -> ClockRelation:
    return ClockRelation("a device", readings)


def host_ns(relation: ClockRelation, ticks: int) -> float:
    return relation.base_ns + float(relation.host_ns([ticks], [relation.base_ns])[0])


# ---- ClockRelation --------------------------------------------------------------------------------------------------


@settings(deadline=None)  # asserts no times
@given(BITS, PERIODS, DRIFTS, STARTS, st.integers(2_000_000, 1_000_000_000), st.floats(-0.5, 1.5))
def test_a_drift_between_two_readings_costs_nothing(
    bits: int, period: float, drift: float, start: float, length: int, where: float
) -> None:
    clock = PlantedClock(bits, period, drift, int(start * 2**bits))
    relation = relate(clock.read(HOST), clock.read(HOST + length))
    truth = HOST + length * where
    # Two readings and the timestamp itself are each rounded to a tick.
    assert host_ns(relation, clock.ticks(truth)) == pytest.approx(truth, abs=2 * period + 1)


@pytest.mark.parametrize("bits", [32, 36, 64])
def test_the_counter_wraps_between_the_readings_and_within_a_dispatch(bits: int) -> None:
    clock = PlantedClock(bits, 1.0, 100.0, 2**bits - 5_000_000)  # wraps after 5 ms
    relation = relate(clock.read(HOST), clock.read(HOST + 20_000_000))
    assert relation.readings[1].device_ticks < relation.readings[0].device_ticks
    begin, end = clock.ticks(HOST + 4_900_000), clock.ticks(HOST + 5_100_000)
    assert end < begin
    assert host_ns(relation, begin) == pytest.approx(HOST + 4_900_000, abs=2)
    assert host_ns(relation, end) == pytest.approx(HOST + 5_100_000, abs=2)
    raw = RawSample(HOST, called=HOST, returned=HOST, awake=HOST + 6_000_000, device_begin=begin, device_end=end)
    assert resolve([raw], relation)[0].execute == pytest.approx(200_000 * 1.0001, abs=2)
    # A timestamp before the first reading: the dispatch began while the clocks were read.
    assert host_ns(relation, clock.ticks(HOST - 1_000_000)) == pytest.approx(HOST - 1_000_000, abs=2)


def test_readings_that_say_nothing_of_the_rate_are_not_asked_for_it() -> None:
    clock = PlantedClock(64, 1.0, 0.0, 12345)
    # Brackets of 100 µs around 10 ms would change a true rate of 1 by 1 %.
    before = clock.read(HOST, 100_000, calibrated=False)
    after = clock.read(HOST + 10_000_000, 100_000, off=100_000, calibrated=False)
    relation = relate(before, after)
    assert host_ns(relation, clock.ticks(HOST + 9_000_000)) == HOST + 9_000_000
    assert relation.deviation_ns == 100_000
    # So would any two readings less than a millisecond apart.
    relation = relate(clock.read(HOST, 10), clock.read(HOST + 500_000, 10, off=5_000))
    assert host_ns(relation, clock.ticks(HOST + 400_000)) == HOST + 400_000
    # Far enough apart, brackets do determine the rate.
    fast = PlantedClock(64, 1.0, 400.0, 0)
    relation = relate(fast.read(HOST, 20_000), fast.read(HOST + 400_000_000, 20_000))
    assert host_ns(relation, fast.ticks(HOST + 200_000_000)) == pytest.approx(HOST + 200_000_000, abs=2)


# ---- the fitted line ------------------------------------------------------------------------------------------


def planted_readings(clock: PlantedClock, host_times: Sequence[int], noise: float = 0.0) -> list[ClockCalibration]:
    random = np.random.default_rng(0)
    return [clock.read(t, round(3 * noise), off=round(random.normal(0, noise))) for t in host_times]


@settings(deadline=None)
@given(BITS, PERIODS, st.floats(-300, 300), STARTS)
def test_a_fit_recovers_a_planted_drift(bits: int, period: float, drift: float, start: float) -> None:
    """Over a minute in steps of half a second: 32 bits of nanoseconds wrap fourteen times."""
    clock = PlantedClock(bits, period, drift, int(start * 2**bits))
    relation = relate(*planted_readings(clock, range(HOST, HOST + 60_000_000_000, 500_000_000), noise=100))
    assert len(relation.readings) == 120 and relation.calibrated and relation.deviation_ns == 300
    assert relation.drift_ppm == pytest.approx(drift, abs=0.01)
    assert relation.residual_ns is not None and relation.residual_ns < 600 + period


def test_a_fit_over_gaps_of_many_wraps() -> None:
    """A point may run for longer than the counter takes to wrap; the host's clock determines the number of wraps."""
    clock = PlantedClock(32, 1.0, 50.0, 7)
    relation = relate(*planted_readings(clock, [HOST + 10**9 * s for s in (0, 3, 40, 41, 300)]))
    assert relation.drift_ppm == pytest.approx(50, abs=0.001)
    assert relation.residual_ns is not None and relation.residual_ns < 2


def test_a_fit_of_few_readings() -> None:
    clock = PlantedClock(64, 1.0, 50.0, 7)
    two = relate(clock.read(HOST, 5), clock.read(HOST + 10**9, 8, calibrated=False))
    assert two.drift_ppm == pytest.approx(50, abs=0.001) and two.residual_ns is None
    assert two.deviation_ns == 8 and not two.calibrated
    same = relate(*[clock.read(HOST)] * 4)
    assert same.drift_ppm is None and same.drift_uncertainty_ppm is None and same.residual_ns is None


def test_a_fit_shows_a_clock_that_jumped() -> None:
    clock = PlantedClock(64, 1.0, 0.0, 0)
    readings = planted_readings(clock, range(HOST, HOST + 10**10, 10**9))
    readings[5] = clock.read(HOST + 5 * 10**9, off=40_000)
    relation = relate(*readings)
    assert relation.residual_ns is not None and relation.residual_ns > 30_000


# ---- resolve --------------------------------------------------------------------------------------------------------


def segment_sum(sample: Sample) -> float:
    """Returns the sum that the module's documentation defines as the total."""
    parts = [getattr(sample, name) for name in SEGMENTS] + [-sample.overlap]
    return sum(part for part in parts if not math.isnan(part))


HOST_EVENTS = ("created", "updated", "recorded")


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(st.integers(1, 10**6), min_size=7, max_size=7),
    st.integers(-50_000, 10**5),
    st.integers(0, 10**5),
    BITS,
    DRIFTS,
    STARTS,
)
def test_segments_sum_to_the_total_for_every_combination_of_events(
    steps: list[int], after_call: int, execute: int, bits: int, drift: float, start: float
) -> None:
    clock = PlantedClock(bits, 1.0, drift, int(start * 2**bits))
    relation = relate(clock.read(HOST - 10**6, 40), clock.read(HOST + 10**7, 60))
    for made, submitted, timed, read in itertools.product(
        itertools.product((False, True), repeat=3), (False, True), (False, True), (False, True)
    ):
        if not (any(made) or submitted or read) or (timed and not submitted):
            continue
        now, events = HOST, {"begin": HOST}
        step = iter(steps)
        for name, there in zip(HOST_EVENTS, made, strict=True):
            length = next(step)
            if there:
                events[name] = now = now + length
        device_begin = device_end = -1
        if submitted:
            # The host may work between the last event and the call; without events the sample begins at the call.
            events["called"] = now = now + (next(step) if any(made) else 0)
            events["returned"] = now = now + next(step)
            if timed:
                began = now + after_call
                device_begin, device_end = clock.ticks(began), clock.ticks(began + execute)
                now = max(now, began + execute)
            events["awake"] = now = now + next(step)
        if read:
            events["done"] = now = now + next(step)
        raw = RawSample(**events, device_begin=device_begin, device_end=device_end)
        (sample,) = resolve([raw], relation)
        assert sample.started == HOST and sample.total == now - HOST
        known = {name for name in SEGMENTS if not math.isnan(getattr(sample, name))}
        expected = {name for name, there in zip(("create", "update", "record"), made, strict=True) if there}
        expected |= {"submit"} if submitted else set()
        expected |= {"queue", "execute", "wake"} if timed else set()
        expected |= {"read"} if read else set()
        assert known == expected
        if timed or not submitted:
            assert segment_sum(sample) == pytest.approx(sample.total, abs=0.1)
        else:
            assert segment_sum(sample) + sample.device == pytest.approx(sample.total, abs=0.1)
        if timed:
            assert sample.deviation == 60
            assert sample.execute == pytest.approx(execute, abs=execute * 5e-4 + 2)
            assert sample.queue == pytest.approx(max(0, after_call), abs=3)
            assert sample.overlap == pytest.approx(max(0, -after_call), abs=3)
            assert sample.queue == 0 or sample.overlap == 0
            # ``device`` is an upper bound of execution and wake-up, except for what overlapped the call.
            assert sample.queue + sample.execute + sample.wake - sample.overlap == pytest.approx(sample.device, abs=0.1)
        else:
            assert math.isnan(sample.deviation) and math.isnan(sample.overlap)


def test_the_device_began_before_the_submit_call_had_returned() -> None:
    clock = PlantedClock(64, 1.0, 0.0, 10**6)
    relation = relate(clock.read(HOST - 10**7), clock.read(HOST + 10**7))
    raw = RawSample(
        HOST,
        called=HOST,
        returned=HOST + 5_000,
        awake=HOST + 9_000,
        device_begin=clock.ticks(HOST + 2_000),
        device_end=clock.ticks(HOST + 4_000),
    )
    sample = resolve([raw], relation)[0]
    # The kernel had ended when the call returned: all of it overlaps, and the wake-up counts from its end.
    assert (sample.submit, sample.queue, sample.execute, sample.wake) == (5_000, 0, 2_000, 5_000)
    assert sample.overlap == 3_000 and sample.device == 4_000 and sample.total == 9_000 == segment_sum(sample)


def test_without_a_relation_the_device_is_bounded() -> None:
    raw = RawSample(HOST, called=HOST, returned=HOST + 10, awake=HOST + 50, device_begin=5, device_end=9)
    sample = resolve([raw], None)[0]
    assert sample.device == 40 and sample.submit == 10 and sample.total == 50
    assert all(math.isnan(value) for value in (sample.queue, sample.execute, sample.wake, sample.deviation))
    assert (sample.device_begin, sample.device_end) == (5, 9)


def test_a_signal_of_the_host_is_all_waking() -> None:
    (sample,) = resolve([RawSample(HOST, awake=HOST + 700)], None)
    assert sample.wake == sample.total == 700 and math.isnan(sample.submit)


def test_what_the_host_does_before_the_call_belongs_to_what_it_did_last() -> None:
    raw = RawSample(HOST, created=HOST + 5, recorded=HOST + 9, called=HOST + 11, returned=HOST + 12, awake=HOST + 20)
    sample = resolve([raw], None)[0]
    assert (sample.create, sample.record, sample.submit, sample.device, sample.total) == (5, 6, 1, 8, 20)
