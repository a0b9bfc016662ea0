"""The device's clock related to the host's: calibrated, bracketed, and put on the monotonic clock."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.hal.clock import elapsed_ticks
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.submit import calibration
from pumice.hal_vulkan.submit.calibration import ClockCalibration
from pumice.status import UnimplementedError


@given(st.integers(20, 64), st.integers(-1000, 1000), st.sampled_from([1.0, 52.08, 83.33, 10.0]))
def test_host_time_of_a_timestamp(bits: int, offset: int, period: float) -> None:
    for device_ticks in (0, 1, (1 << bits) - 1, 1 << (bits - 1)):
        clock = ClockCalibration(device_ticks, 10**12, 5, period, bits, "clock_monotonic", True)
        ticks = (device_ticks + offset) % (1 << bits)
        assert clock.host_time_ns(ticks) == pytest.approx(10**12 + offset * period, abs=1e-3)


# ---- on the device --------------------------------------------------------------------------------------------------


@pytest.mark.timing
@pytest.mark.vulkan
def test_the_calibrated_clock_is_close_to_the_host(device: Device) -> None:
    if not device.plan.timestamp_bits:
        with pytest.raises(UnimplementedError, match="timestampValidBits"):
            device.calibrate()
        return
    for _ in range(3):
        before = time.monotonic_ns()
        clock = device.calibrate()
        after = time.monotonic_ns()
        assert clock.calibrated == (device.plan.calibrated_timestamps is not None)
        assert 0 <= clock.device_ticks < 1 << clock.valid_bits and clock.max_deviation_ns >= 0
        if clock.host_clock == "clock_monotonic":
            assert before - clock.max_deviation_ns <= clock.host_ns <= after + clock.max_deviation_ns
    first, second = device.calibrate(), device.calibrate()
    time.sleep(0.02)
    third = device.calibrate()
    ticks = elapsed_ticks(first.device_ticks, third.device_ticks, first.valid_bits) * first.ns_per_tick
    assert ticks == pytest.approx(third.host_ns - first.host_ns, rel=0.05)
    assert second.device_ticks != first.device_ticks


@pytest.mark.vulkan
def test_without_the_extension_the_reading_is_bracketed(device: Device) -> None:
    if not device.plan.timestamp_bits:
        pytest.skip("the device writes no timestamps")
    real = device.calibrate()
    object.__setattr__(device.plan, "calibrated_timestamps", None)
    before = time.monotonic_ns()
    clock = device.calibrate()
    after = time.monotonic_ns()
    assert not clock.calibrated and clock.host_clock == "clock_monotonic"
    assert before <= clock.host_ns <= after and 0 < clock.max_deviation_ns < after - before
    if real.host_clock == "clock_monotonic":
        assert abs(real.host_time_ns(clock.device_ticks) - clock.host_ns) <= clock.max_deviation_ns + 100_000
    assert math.isfinite(clock.ns_per_tick)


@pytest.mark.parametrize("domain", ["clock_monotonic_raw", "query_performance_counter"])
def test_other_host_clocks_are_put_on_the_monotonic_one(monkeypatch: pytest.MonkeyPatch, domain: str) -> None:
    """A reading of another host clock, here a second ahead, is moved, and its deviation grows accordingly."""
    ahead = 1_000_000_000
    monkeypatch.setitem(calibration._OTHER_CLOCKS, domain, lambda: time.monotonic_ns() + ahead)
    reading = ClockCalibration(7, time.monotonic_ns() + ahead, 5, 1.0, 64, domain, True)
    monkeypatch.setattr(calibration, "calibrate", lambda device, *, samples: reading)
    found = calibration.calibrate_monotonic(None)  # type: ignore[arg-type]  # no device is asked
    assert found.host_clock == "clock_monotonic"
    assert found.device_ticks == 7
    assert found.max_deviation_ns >= 5
    assert abs(found.host_ns - (reading.host_ns - ahead)) <= found.max_deviation_ns
