"""The memory bandwidth and the arithmetic rate of a device, measured by kernels that do nothing else.

The figures are not a data sheet's, but those of plain kernels: the copy kernel and vkCmdCopyBuffer over arrays that
exceed all caches, and fused multiply-adds of 32-bit floats in independent chains. Each is the median of repeated runs
in the best of several launches.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from contextlib import closing
from typing import Final

from ... import shaders
from ...base.lazy_dataclass import dataclass
from ...runtime.device import Device
from ...runtime.kernels.kernel import Kernel
from ...status import ResourceExhaustedError
from .timed_commands import TimedCommands, sweep_bytes

_RUNS: Final = 9
_MIN_RUNS: Final = 3
_ENOUGH_NS: Final = 5e7
_LOCAL_SIZES: Final = (64, 128, 256)
_GROUPS_PER_LAUNCH: Final = (256, 1024, 4096)
_WANTED_NS: Final = 2e6
_FLOPS_PER_ITERATION: Final = 64
_MIN_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Peaks:
    """Measured peaks.

    Attributes:
        peaks: ``"GB/s"``, bytes read and written together, and ``"GFLOP/s"`` of 32-bit floats, a multiply-add being
            two.
        details: the conditions under which each peak was reached.
    """

    peaks: Mapping[str, float]
    details: Mapping[str, object]


def measure_peaks(device: Device) -> Peaks:
    """Measures the peaks of a device, in about a second on most.

    Raises:
        ResourceExhaustedError: there is no memory even for arrays of 1 MiB.
    """
    copied, copy_details = _bandwidth(device)
    computed, compute_details = _arithmetic(device)
    source = "device timestamps" if device.vulkan.plan.timestamp_bits else "host clock, submit to awake"
    return Peaks(
        {"GB/s": copied, "GFLOP/s": computed},
        {"GB/s": copy_details, "GFLOP/s": compute_details, "timed by": source, "runs": _RUNS},
    )


def _seconds(commands: TimedCommands) -> float:
    """Returns the median of repeated runs, without the first, in seconds."""
    times: list[float] = []
    runs = _RUNS
    while len(times) < runs + 1:
        if len(times) == 2:  # slow commands need fewer repetitions
            runs = min(runs, max(_MIN_RUNS, int(_ENOUGH_NS / max(times[1], 1.0))))
        times.append(commands.run())
    return max(statistics.median(times[1:]), 1.0) / 1e9


def _bandwidth(device: Device) -> tuple[float, Mapping[str, object]]:
    hal = device.vulkan
    nbytes = sweep_bytes(device)
    while True:
        try:
            source, target = buffers = [device.empty(nbytes // 16 * 4, "float32") for _ in range(2)]
            break
        except ResourceExhaustedError:
            if nbytes <= _MIN_BYTES:
                raise
            nbytes //= 2
    for array in buffers:
        hal.compute_queue.fill(array.buffer, b"\0\0\0\0")
    hal.compute_queue.wait_idle()
    with TimedCommands(device, "copy", lambda commands: commands.copy(source.buffer, target.buffer)) as copy:
        best, how = 2 * source.nbytes / _seconds(copy), "vkCmdCopyBuffer"
    for local_size in _local_sizes(device):
        code = shaders.spirv("timing/copy")
        with closing(Kernel(device, code, name="copy", specialization={0: local_size})) as kernel:
            for groups in _GROUPS_PER_LAUNCH:
                dispatch = kernel.prepare(source, target, groups=groups)
                with TimedCommands.dispatch(device, "copy", dispatch) as copy:
                    rate = 2 * source.nbytes / _seconds(copy)
                if rate > best:
                    best, how = rate, f"kernel timing/copy, {groups} groups of {local_size}"
    for array in buffers:
        array.close()
    return best / 1e9, {"bytes": 2 * nbytes, "by": how}


def _arithmetic(device: Device) -> tuple[float, Mapping[str, object]]:
    best, how = 0.0, ""
    for local_size in _local_sizes(device):
        code = shaders.spirv("timing/fma")
        with closing(Kernel(device, code, name="fma", specialization={0: local_size})) as kernel:
            for groups in _GROUPS_PER_LAUNCH:
                iterations, seconds = _multiply_adds(device, kernel, groups, local_size)
                rate = groups * local_size * iterations * _FLOPS_PER_ITERATION / seconds
                if rate > best:
                    best, how = rate, f"kernel timing/fma, {groups} groups of {local_size}, {iterations} iterations"
    return best / 1e9, {"by": how, "type": "float32, fused multiply-add"}


def _multiply_adds(device: Device, kernel: Kernel, groups: int, local_size: int) -> tuple[int, float]:
    """Returns the number of iterations that takes long enough to be timed, and its time in seconds."""
    iterations = 16
    with device.empty((groups * local_size, 4), "float32") as array:
        while True:
            dispatch = kernel.prepare(array, groups=groups, iterations=iterations, factor=1.0)
            with TimedCommands.dispatch(device, "fma", dispatch) as commands:
                commands.run()
                taken = commands.run()
                if taken >= _WANTED_NS:
                    return iterations, _seconds(commands)
            iterations = min(4 * iterations, max(2 * iterations, int(iterations * _WANTED_NS / max(taken, 1.0))))


def _local_sizes(device: Device) -> list[int]:
    limits = device.profile.limits
    most = min(limits.max_compute_work_group_invocations, limits.max_compute_work_group_size[0])
    return [size for size in _LOCAL_SIZES if size <= most]
