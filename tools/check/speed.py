"""Cases that measure without judging: peaks of the device, calls, copies, and kernels written by the compiler."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from ... import shaders
from ...compiler.compile import compile
from ...hal_vulkan import DeviceType
from ...runtime.device import Device
from ...runtime.sessions.session import Session
from ...study.workloads.peaks import measure_peaks
from .case import Case, Figures, SkipCase

_SECONDS: Final = 0.5  # for a figure
_LEAST: Final = 5
_SUM = """
func.func public @main(%a: tensor<4096x4096xf32>) -> tensor<4096xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4096x4096xf32>, tensor<f32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
"""  # noqa: E501
_PRODUCT = """
func.func public @main(%a: tensor<1024x1024x$T>, %b: tensor<1024x1024x$T>) -> tensor<1024x1024x$T> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1024x1024x$T>, tensor<1024x1024x$T>) -> tensor<1024x1024x$T>
  return %0 : tensor<1024x1024x$T>
}
"""  # noqa: E501
_CHAIN = """
func.func public @main(%a: tensor<8388608xf32>, %b: tensor<8388608xf32>) -> tensor<8388608xf32> {
  %0 = stablehlo.multiply %a, %b : tensor<8388608xf32>
  %1 = stablehlo.add %0, %a : tensor<8388608xf32>
  return %1 : tensor<8388608xf32>
}
"""
_TRANSPOSE = """
func.func public @main(%a: tensor<2048x4096xf32>) -> tensor<4096x2048xf32> {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2048x4096xf32>) -> tensor<4096x2048xf32>
  return %0 : tensor<4096x2048xf32>
}
"""
_SORT = """
func.func public @main(%a: tensor<1048576xi32>) -> tensor<1048576xi32> {
  %0 = "stablehlo.sort"(%a) ({
  ^bb0(%x: tensor<i32>, %y: tensor<i32>):
    %1 = stablehlo.compare LT, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<1048576xi32>) -> tensor<1048576xi32>
  return %0 : tensor<1048576xi32>
}
"""


def _seconds(call: Callable[[], object]) -> float:
    """Returns the median time of a call, without the first."""
    call()
    times: list[float] = []
    end = time.perf_counter() + _SECONDS
    while len(times) < _LEAST or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
        if len(times) >= 2 and sum(times) > 4 * _SECONDS:
            break
    return statistics.median(times)


def _peaks(device: Device) -> Figures:
    if device.profile.device_type is DeviceType.CPU:
        raise SkipCase("a software driver takes half a minute for them")
    return dict(measure_peaks(device).peaks)


def _submit_wait(device: Device) -> Figures:
    """Submits and awaits a prerecorded dispatch, and a dispatch that is recorded each time."""
    hal = device.vulkan
    with device.load_kernel(shaders.path("mul")) as kernel, device.zeros((3, 64)) as arrays:
        dispatch = kernel.prepare(arrays[0], arrays[1], arrays[2], groups=1)
        with hal.create_command_buffer(name="check") as commands, hal.create_semaphore() as semaphore:
            commands.begin().dispatch(*dispatch)
            commands.end()
            value = 0

            def submit() -> None:
                nonlocal value
                value += 1
                hal.compute_queue.submit((commands,), signals=((semaphore, value),))
                semaphore.wait(value, 30)

            def record() -> None:
                commands.begin().dispatch(*dispatch)
                commands.end()
                submit()

            return {"prerecorded, us": _seconds(submit) * 1e6, "recorded each time, us": _seconds(record) * 1e6}


def _kernel_call(device: Device) -> Figures:
    """Calls a kernel with arrays on the host and on the device."""
    figures = {}
    with device.load_kernel(shaders.path("mul")) as kernel:
        for size in (4, 1 << 20):
            a, out = np.ones(size, np.float32), np.empty(size, np.float32)
            figures[f"{size:,} floats of the host, us"] = _seconds(functools.partial(kernel, a, a, out)) * 1e6
            with device.asarray(a) as x, device.empty(size) as z:

                def call() -> None:
                    kernel(x, x, z)
                    device.vulkan.wait_idle(30)

                figures[f"{size:,} floats of the device, us"] = _seconds(call) * 1e6
    return figures


def _copies(device: Device) -> Figures:
    """Copies 64 MiB between host and device."""
    values = np.ones(1 << 24, np.float32)
    with device.empty(1 << 24) as array:

        def upload() -> None:
            array.copy_from(values)
            device.vulkan.wait_idle(30)

        up, down = _seconds(upload), _seconds(array.numpy)
    return {"to the device, GB/s": values.nbytes / up / 1e9, "from the device, GB/s": values.nbytes / down / 1e9}


def _program(text: str, shapes: list[tuple[int, ...]], work: float, unit: str, dtype: str = "f4") -> Case:
    title = unit.partition(", ")[0]

    def run(device: Device) -> Figures:
        begin = time.perf_counter()
        module = compile(text, device=device.profile)
        compiled = time.perf_counter() - begin
        with Session(device) as session:
            function = session.lookup(f"{session.load(module).name}.main")
            arrays = [device.asarray(np.ones(shape, dtype)) for shape in shapes]
            begin = time.perf_counter()

            def call() -> None:
                result = function(*arrays, timeout=30)
                device.vulkan.wait_idle(30)
                result.close()

            call()
            first = time.perf_counter() - begin
            seconds = _seconds(call)
            for array in arrays:
                array.close()
        return {
            unit.partition(", ")[2]: work / seconds / 1e9,
            "a call, us": seconds * 1e6,
            "compiled in, ms": compiled * 1e3,
            "first call, ms": first * 1e3,
        }

    return Case("speed", title, run)


def speed_cases() -> Iterator[Case]:
    """Yields the cases of the area ``speed``."""
    yield Case("speed", "peaks", _peaks)
    yield Case("speed", "submit and wait", _submit_wait)
    yield Case("speed", "kernel calls", _kernel_call)
    yield Case("speed", "copies", _copies)
    square = (1024, 1024)
    yield _program(_PRODUCT.replace("$T", "f32"), [square, square], 2 * 1024**3, "product of 1024 x 1024 f32, GFLOP/s")
    yield _program(
        _PRODUCT.replace("$T", "f16"), [square, square], 2 * 1024**3, "product of 1024 x 1024 f16, GFLOP/s", "f2"
    )
    yield _program(_CHAIN, [(1 << 23,), (1 << 23,)], 3 * 4 * 2**23, "elementwise, GB/s")
    yield _program(_SUM, [(4096, 4096)], 4 * 4096**2, "sums of rows, GB/s")
    yield _program(_TRANSPOSE, [(2048, 4096)], 2 * 4 * 2**23, "transpose, GB/s")
    yield _program(_SORT, [(1 << 20,)], 2**20, "sort of a million, billion elements/s", "i4")
