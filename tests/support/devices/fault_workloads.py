"""Workloads for planted faults: what users do with a device, each with its expected results.

A workload may be called again after it failed, with the same device and the same objects as far as it had made them.
"""

from __future__ import annotations

import asyncio
import functools
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pytest
from support.devices.path_workloads import imported, incoherent, sets

import pumice
from pumice import shaders
from pumice.hal.command_buffer import BindingSlot
from pumice.hal_vulkan import MemoryTypeFlags
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.pipelines import self_test
from pumice.hal_vulkan.submit.prepared_submission import PreparedSubmission
from pumice.spirv.sources.glsl import compile_glsl

__all__ = ["WORKLOADS", "Keep", "Workload"]

Value = TypeVar("Value")
TIMEOUT: Final = 20.0
A: Final = np.arange(24, dtype=np.float32)
B: Final = A[::-1] + 0.5
DIGITS: Final = Path(pumice.__file__).parent / "examples" / "digits"
HOST: Final = MemoryTypeFlags.DEVICE_LOCAL | MemoryTypeFlags.HOST_VISIBLE

# The number of rounds depends on a value, which is read back after each.
LOOP: Final = """
module @loop {
func.func @double(%x: tensor<24xf32>, %limit: tensor<f32>) -> tensor<24xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %end = stablehlo.while(%value = %x) : tensor<24xf32>
  cond {
    %sum = stablehlo.reduce(%value init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<24xf32>, tensor<f32>) -> tensor<f32>
    %less = stablehlo.compare LT, %sum, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  } do {
    %next = stablehlo.add %value, %value : tensor<24xf32>
    stablehlo.return %next : tensor<24xf32>
  }
  return %end : tensor<24xf32>
}
}
"""
GRAPH: Final = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 24 } } } } }
node { name: "three" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 3 } } } }
node { name: "less" op: "Sub" input: "x" input: "three" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Relu" input: "less" attr { key: "T" value { type: DT_FLOAT } } }
"""
SHADER: Final = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) uniform sampler2D source;
layout(binding = 1, rgba8) writeonly uniform image2D target;
layout(binding = 2) uniform samplerBuffer table;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (all(lessThan(at, imageSize(target))))
        imageStore(target, at, texelFetch(source, at, 0) + texelFetch(table, at.x));
}
"""


class Keep(Protocol):
    """Returns the object of a name; makes it at the first call that does not fail."""

    def __call__(self, name: str, make: Callable[[], Value]) -> Value: ...


Workload = Callable[[Keep], None]


def _device(keep: Keep, **options: Any) -> pumice.Device:
    return keep("device", lambda: pumice.open_device(**options))


def _same(got: npt.ArrayLike, expected: npt.ArrayLike) -> None:
    np.testing.assert_array_equal(np.asarray(got), expected)


def kernels(keep: Keep, **options: Any) -> None:
    """Calls kernels with arrays of both sides, with results that stay, that come back, and that are overwritten."""
    device = _device(keep, **options)
    mul = keep("mul", lambda: device.load_kernel(shaders.path("mul")))
    saxpy = keep("saxpy", lambda: device.load_kernel(shaders.path("examples/saxpy")))
    x = keep("x", lambda: device.asarray(A))
    _same(mul(A, B, pumice.empty(A.shape)), A * B)
    out = device.empty(A.shape)
    mul(x, B, out)
    y = saxpy(x, out, a=2.0)
    _same(y.numpy(), 2 * A + A * B)
    _same(mul(x[:7], x[3:10], device.empty(7)).numpy(), A[:7] * A[3:10])
    big = device.zeros(200_000)
    _same(big.copy_from(np.ones(200_000, np.float32)).numpy()[::50_000], np.ones(4))
    _same(np.from_dlpack(y.copy()), 2 * A + A * B)
    big.close()


def staged(keep: Keep) -> None:
    """Calls kernels on the path of discrete GPUs."""
    kernels(keep, staging=True)


def polling(keep: Keep) -> None:
    """Calls kernels, and polls for their end."""
    kernels(keep, wait="spin")


def images(keep: Keep) -> None:
    """Samples an image with levels through a sampler, and a texel buffer, into a storage image."""
    device = _device(keep)
    add = keep("add", lambda: device.load_kernel(_spirv()))
    source = np.arange(12 * 10 * 4, dtype=np.uint8).reshape(12, 10, 4) // 2
    table = np.zeros((10, 4), np.float32)
    table[:, 0] = 1 / 255
    expected = source + np.array([1, 0, 0, 0], np.uint8)
    _same(add(source, pumice.empty(source.shape, np.uint8), table), expected)
    image = keep("image", lambda: device.asimage(source, mips=True))
    sampler = device.sampler("nearest", "repeat")
    target = device.empty_image(source.shape, "rgba8unorm")
    _same(add(image.with_sampler(sampler), target, table).numpy(), expected)
    _same(image.view(levels=0).numpy(), source)
    target.close()


def programs(keep: Keep) -> None:
    """Calls a compiled program, one of the peer's compiler, and one that reads back in a loop; with a profile."""
    device = _device(keep)
    session = keep("session", lambda: pumice.Session(device))
    keep("digits", lambda: session.load(DIGITS / "digits.vmfb"))
    keep("layer", lambda: session.load(_layer()))
    keep("loop", lambda: session.load(_loop()))
    three = np.load(DIGITS / "three.npy")
    _same(session.call("module.classify", three, timeout=TIMEOUT)[1].numpy(), [3])
    x, w, b = np.ones((2, 4), np.float32), np.ones((4, 3), np.float32), np.zeros(3, np.float32)
    _same(session.call("layer.main", x, w, b, timeout=TIMEOUT).numpy(), np.full((2, 3), 4))
    _same(session.call("loop.double", A, np.float32(2000), timeout=TIMEOUT).numpy(), A * 8)
    out = device.empty((2, 3))
    session.call("layer.main", x, w, b, out=out, timeout=TIMEOUT)
    _same(out.numpy(), np.full((2, 3), 4))
    with session.profile() as profile:
        session.call("module.classify", three, timeout=TIMEOUT)
    assert profile.calls
    session.trim()


def asynchronous(keep: Keep) -> None:
    """Awaits calls in the session's thread and in the event loop, many at a time, and streams."""
    device = _device(keep)
    session = keep("session", lambda: pumice.Session(device, options=pumice.SessionOptions(concurrent=True)))
    keep("digits", lambda: session.load(DIGITS / "digits.vmfb"))
    keep("loop", lambda: session.load(_loop()))

    async def main() -> None:
        classify = session.lookup("module.classify")
        three, seven = np.load(DIGITS / "three.npy"), np.load(DIGITS / "seven.npy")
        odds, digit = await classify.call_async(three)
        _same(digit.numpy(), [3])
        calls = (classify.call_async(image) for image in [three, seven] * 2)
        _same([int(digit.numpy()[0]) for _, digit in await asyncio.gather(*calls)], [3, 7, 3, 7])
        loop = pumice.vm.AsyncioLoop()
        result = await session.call_async("loop.double", A, np.float32(2000), loop=loop)
        _same(result.numpy(), A * 8)
        _same([int(d.numpy()[0]) async for _, d in classify.stream([three, seven, three], depth=2)], [3, 7, 3])

    asyncio.run(asyncio.wait_for(main(), TIMEOUT))


def recorded(keep: Keep) -> None:
    """Records commands once, submits them with tables, waits for host signals, and prepares a submission."""
    device = _device(keep)
    hal = device.vulkan
    queue = hal.compute_queue
    pipeline = keep("pipeline", lambda: hal.create_pipeline(shaders.spirv("mul")))
    slots = keep("slots", lambda: hal.create_command_buffer(binding_capacity=3, name="slots"))
    slots.begin()
    slots.dispatch(pipeline, [BindingSlot(0), BindingSlot(0), BindingSlot(1)], (1, 1, 1))
    slots.execution_barrier()
    slots.dispatch(pipeline, [BindingSlot(0), BindingSlot(1), BindingSlot(2)], (1, 1, 1))
    slots.end()
    gate, done = hal.create_semaphore(name="gate"), hal.create_semaphore(name="done")
    with (
        hal.create_buffer(A.nbytes, memory_type=HOST) as source,
        hal.create_buffer(A.nbytes) as square,
        hal.create_buffer(A.nbytes, memory_type=HOST) as cube,
    ):
        source.write(A.tobytes())
        told: list[object] = []
        done.notify(2, told.append)
        try:
            queue.submit([slots], bindings=[source, square, cube], waits=[(gate, 1)], signals=[(done, 1)])
            queue.fill(source, bytes(4), 0, 4, waits=[(done, 1)], signals=[(done, 2)])
            gate.signal(1)
            done.wait(2, TIMEOUT)
        finally:
            if done.failure is None and done.scheduled < 2:
                gate.fail(pumice.PumiceError("given up"))
        _same(np.frombuffer(cube.read(), np.float32), A**3)
        with hal.create_command_buffer(name="once", one_shot=True) as once:
            once.begin().copy(cube, square, 40, source_offset=4)
            once.fill(cube, b"\1", 1, 3)
            queue.submit([once.end()])
        queue.wait_idle(TIMEOUT)
        with hal.create_command_buffer(name="timed", timing=True) as timed:
            timed.begin().dispatch(pipeline, [square, square, cube], (1, 1, 1))
            prepared = PreparedSubmission(queue, [timed.end()])
            prepared.run(TIMEOUT)
            assert len(timed.timings()) == 1
        _same(np.frombuffer(cube.read(), np.float32)[:10], A[1:11] ** 6)
    gate.close()
    done.close()
    hal.calibrate()
    hal.trim()


def jit(keep: Keep) -> None:
    """Traces a function, calls it with arrays of both sides, and gives an argument's memory away."""
    device = _device(keep)
    import jax.numpy as jnp

    def function(x: Any, w: Any) -> Any:
        return {"y": jnp.maximum(x @ w - 1.0, 0.0), "sum": x.sum(), "next": x + 1.0}

    layer = keep("layer", lambda: pumice.jit(function, device=device, donate_argnums=0))
    x, w = np.ones((2, 3), np.float32), np.full((3, 4), 0.5, np.float32)
    first = layer(device.asarray(x), w)
    _same(first["y"].numpy(), np.full((2, 4), 0.5))
    _same(first["sum"].numpy(), 6)
    _same(first["next"].numpy(), x + 1)
    second = layer(first["y"], np.eye(4, dtype=np.float32) * 4)
    _same(second["y"].numpy(), np.ones((2, 4)))


def idle_jit(keep: Keep) -> None:
    """Calls a traced function while the device has nothing to do, and twice before anything is read."""
    device = _device(keep)
    function = keep("function", lambda: pumice.jit(lambda x: x * 2.0 + 1.0, device=device))
    x = keep("x", lambda: device.asarray(A))
    for _ in range(2):
        device.wait()
        _same(function(x).numpy(), A * 2 + 1)
    first, second = function(x), function(function(x))
    _same(second.numpy(), (A * 2 + 1) * 2 + 1)
    _same(first.numpy(), A * 2 + 1)


def graphs(keep: Keep) -> None:
    """Calls a program of TensorFlow's."""
    session = keep("session", lambda: pumice.Session(_device(keep)))
    keep("graph", lambda: session.load(_graph()))
    _same(session.call("graph.graph", A, timeout=TIMEOUT).numpy(), np.maximum(A - 3, 0))


def study(keep: Keep) -> None:
    """Measures a kernel at two sizes, on a device that the study opens."""
    from pumice.study import Axis, Results, Sampling, Study, Target, run_study

    sampling = Sampling(
        *(),
        warmup_count=1, warmup_time=0, min_samples=4, max_samples=6, block=2, reference=False, noise_limit=1e9,
        resolution=9,
    )  # fmt: skip
    settings = {"source": "builtin:mul", "bindings": [{"shape": "$n"}] * 3}
    target = Target("mul", "kernel", settings, measure="total")
    made = Study("mul", (target,), (Axis("n", (64, 128)),), sampling=sampling)
    folder = keep("folder", lambda: tempfile.TemporaryDirectory(prefix="pumice-faults-"))
    outcome = run_study(made, Path(folder.name) / "results")
    if outcome.failed:
        raise pumice.PumiceError(next(iter(outcome.failed.values())))
    with Results.open(Path(folder.name) / "results") as results:
        assert all(len(point.values()) >= 4 for point in results.points)


def closing(keep: Keep) -> None:
    """Closes a device with all that was made from it, while it works and while work waits on the host."""
    with pumice.open_device() as device:
        hal = device.vulkan
        queue, target = hal.compute_queue, hal.create_buffer(64)
        done, never = hal.create_semaphore(), hal.create_semaphore()
        told: list[object] = []
        never.notify(1, told.append)
        done.notify(3, told.append)
        for value in range(1, 4):
            with hal.create_buffer(4 << 20) as buffer:
                queue.fill(buffer, bytes([value]), signals=[(done, value)])
        queue.fill(target, b"\1", waits=[(never, 1)])
        device.empty(100).close()
    assert len(told) == 2


def testing(keep: Keep) -> None:
    """Tests the driver with kernels of all kinds, on a device of the test's own."""
    device = _device(keep)
    self_test._verdicts.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PUMICE_CACHE", "off")
        self_test.driver_faults(device.vulkan)
    kernels(keep)


def opening(keep: Keep) -> None:
    """Makes an instance and a device of its own."""
    with Driver() as driver, pumice.hal_vulkan.Device(driver) as opened:
        buffer = opened.create_buffer(64, memory_type=HOST)
        opened.compute_queue.fill(buffer, b"\7")
        opened.wait_idle(TIMEOUT)
        assert buffer.read() == b"\7" * 64


WORKLOADS: Final[Mapping[str, Workload]] = {
    work.__name__: work
    for work in (
        opening,
        closing,
        testing,
        kernels,
        staged,
        polling,
        images,
        programs,
        asynchronous,
        recorded,
        jit,
        idle_jit,
        graphs,
        incoherent,
        imported,
        sets,
        study,
    )
}


@functools.cache
def _spirv() -> bytes:
    return compile_glsl(SHADER)


@functools.cache
def _layer() -> bytes:
    return pumice.compile(DIGITS.parent / "layer" / "layer.mlir")


@functools.cache
def _graph() -> bytes:
    return pumice.compile(GRAPH, from_="graphdef", file_name="graph.pbtxt")


@functools.cache
def _loop() -> bytes:
    return pumice.compile(LOOP, file_name="loop.mlir")
