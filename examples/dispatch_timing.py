"""What one dispatch costs: device time of each, beside the host's time for submit and wait, on one clock."""

import time

import numpy as np

import pumice
from pumice import shaders

with pumice.open_device() as user_device:
    device = user_device.hal
    pipeline = device.create_pipeline(shaders.spirv("builtin/empty"))
    commands = device.create_command_buffer(timing=True, name="ten empty dispatches")
    commands.begin()
    for _ in range(10):
        commands.dispatch(pipeline, (), (1, 1, 1))
        commands.execution_barrier()
    commands.end()

    done = device.create_semaphore(name="done")
    spans = []
    for step in range(1, 101):
        before = time.monotonic_ns()
        device.compute_queue.submit([commands], signals=[(done, step)])
        submitted = time.monotonic_ns()
        done.wait(step)
        after = time.monotonic_ns()
        timings = commands.timings()
        spans.append((submitted - before, after - before, *(timing.duration_ns for timing in timings)))
    calibration = device.calibrate()
    first = calibration.host_time_ns(timings[0].begin_ticks)

    median = np.median(np.array(spans), axis=0) / 1e3
    print(f"{device.profile.name}: {timings[0].clock}, device type {timings[0].device_type}")
    print(f"submit call {median[0]:.1f} us, submit to host awake {median[1]:.1f} us")
    print("each dispatch on the device:", " ".join(f"{value:.1f}" for value in median[2:]), "us")
    print(
        f"last run: the device started {(first - before) / 1e3:.1f} us after the submit call began "
        f"(clocks related within {calibration.max_deviation_ns} ns)"
    )
    assert calibration.host_clock != "clock_monotonic" or before - 1e6 < first < after + 1e6
