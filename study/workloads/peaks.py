"""What a device can reach: bandwidth of memory and rate of arithmetic, measured by kernels that do nothing else.

They are not the figures of a data sheet but what a plain kernel gets: the copy kernel and vkCmdCopyBuffer over arrays that no cache holds, and
fused multiply-adds of 32-bit floats in independent chains. Each is the median of repeated runs in the best of several launches.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ... import shaders
from ...hal_vulkan import CommandBuffer
from ...hal_vulkan.submit.prepared_submission import PreparedSubmission
from ...runtime.device import Device
from ...runtime.kernels.kernel import Kernel
from ...status import ResourceExhaustedError
from .cache_sweep import sweep_bytes

__all__ = ["Peaks", "measure_peaks"]

_RUNS: Final = 9
_LEAST_RUNS: Final = 3
_ENOUGH_NS: Final = 5e7
_LOCAL_SIZES: Final = (64, 128, 256)
_GROUPS_PER_LAUNCH: Final = (256, 1024, 4096)
_WANTED_NS: Final = 2e6
_FLOPS_PER_ITERATION: Final = 64
_LEAST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Peaks:
    """Measured peaks.

    Attributes:
        peaks: ``"GB/s"``, bytes read and written together, and ``"GFLOP/s"`` of 32-bit floats, a multiply-add being two.
        details: how each was reached.
    """

    peaks: Mapping[str, float]
    details: Mapping[str, object]


def measure_peaks(device: Device) -> Peaks:
    """Measures the peaks of a device; a second or so on most.

    Raises:
        ResourceExhaustedError: no memory even for arrays of 1 MiB.
    """
    runner = _Runner(device)
    copied, copy_details = _bandwidth(device, runner)
    computed, compute_details = _arithmetic(device, runner)
    return Peaks(
        {"GB/s": copied, "GFLOP/s": computed},
        {"GB/s": copy_details, "GFLOP/s": compute_details, "timed by": runner.source, "runs": _RUNS},
    )


class _Runner:
    """Times command buffers: on the device, or on the host where it has no timestamps."""

    def __init__(self, device: Device) -> None:
        self._device = device
        family = device.profile.queue_families[device.hal.plan.compute_family]
        self._timed = family.timestamp_valid_bits > 0
        self.source = "device timestamps" if self._timed else "host clock, submit to awake"

    def create(self, name: str) -> CommandBuffer:
        return self._device.hal.create_command_buffer(timing="span" if self._timed else False, name=name).begin()

    def seconds(self, commands: CommandBuffer, runs: int = _RUNS) -> float:
        """The median of repeated runs, the first left out."""
        submission = PreparedSubmission(self._device.hal.compute_queue, (commands,))
        times: list[float] = []
        while len(times) < runs + 1:
            if len(times) == 2:  # slow ones need not be repeated as often
                runs = min(runs, max(_LEAST_RUNS, int(_ENOUGH_NS / max(times[1], 1.0))))
            number, called, _ = submission.submit()
            awake = submission.wait(number)
            times.append(commands.timings()[0].duration_ns if self._timed else float(awake - called))
        return max(statistics.median(times[1:]), 1.0) / 1e9


def _bandwidth(device: Device, runner: _Runner) -> tuple[float, Mapping[str, object]]:
    hal = device.hal
    nbytes = sweep_bytes(device)
    while True:
        try:
            buffers = [device.empty(nbytes // 16 * 4, "float32") for _ in range(2)]
            break
        except ResourceExhaustedError:
            if nbytes <= _LEAST_BYTES:
                raise
            nbytes //= 2
    best, how = 0.0, ""
    source, target = buffers
    for array in buffers:
        hal.compute_queue.fill(array.buffer, b"\0\0\0\0")
    hal.compute_queue.wait_idle()
    with runner.create("copy command") as commands:
        commands.copy(source.buffer, target.buffer)
        commands.end()
        best, how = 2 * source.nbytes / runner.seconds(commands), "vkCmdCopyBuffer"
    for local_size in _local_sizes(device):
        kernel = Kernel(device, shaders.spirv("timing/copy"), name="copy", specialization={0: local_size})
        for groups in _GROUPS_PER_LAUNCH:
            pipeline, bound, counts, push = kernel.prepare(source, target, groups=groups)
            with runner.create("copy kernel") as commands:
                commands.dispatch(pipeline, bound, counts, push)
                commands.end()
                rate = 2 * source.nbytes / runner.seconds(commands)
            if rate > best:
                best, how = rate, f"kernel timing/copy, {groups} groups of {local_size}"
        kernel.close()
    for array in buffers:
        array.close()
    return best / 1e9, {"bytes": 2 * nbytes, "by": how}


def _arithmetic(device: Device, runner: _Runner) -> tuple[float, Mapping[str, object]]:
    best, how = 0.0, ""
    for local_size in _local_sizes(device):
        kernel = Kernel(device, shaders.spirv("timing/fma"), name="fma", specialization={0: local_size})
        for groups in _GROUPS_PER_LAUNCH:
            with device.empty((groups * local_size, 4), "float32") as array:
                iterations = 16
                while True:
                    pipeline, bound, counts, push = kernel.prepare(
                        array, groups=groups, iterations=iterations, factor=1.0
                    )
                    with runner.create("fma") as commands:
                        commands.dispatch(pipeline, bound, counts, push)
                        commands.end()
                        taken = runner.seconds(commands, 1)
                        if taken * 1e9 >= _WANTED_NS:
                            taken = runner.seconds(commands)
                            break
                    iterations = min(4 * iterations, max(2 * iterations, int(iterations * _WANTED_NS / (taken * 1e9))))
                rate = groups * local_size * iterations * _FLOPS_PER_ITERATION / taken
            if rate > best:
                best, how = rate, f"kernel timing/fma, {groups} groups of {local_size}, {iterations} iterations"
        kernel.close()
    return best / 1e9, {"by": how, "type": "float32, fused multiply-add"}


def _local_sizes(device: Device) -> list[int]:
    limits = device.profile.limits
    most = min(limits.max_compute_work_group_invocations, limits.max_compute_work_group_size[0])
    return [size for size in _LOCAL_SIZES if size <= most]
