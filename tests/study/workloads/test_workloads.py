"""Workloads of every kind: their results are right, their times are in order and sum, and closing them frees
everything.

If host and device clocks did not agree, a device would begin before the submit call or end after the host's wake-up:
each sample with device times is checked for that.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.study.workloads import ADDRESS, MUL, SAXPY, has, kernel, opened, take

from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.status import (
    DeadlineExceededError,
    InvalidArgumentError,
    NotFoundError,
    PumiceError,
    UnavailableError,
)
from pumice.study.definition.point import Point
from pumice.study.definition.settings import Sampling
from pumice.study.definition.target_settings import KINDS
from pumice.study.workloads.clock import resolve
from pumice.study.workloads.openers import open_workload
from pumice.study.workloads.workload import Workload, WorkloadContext
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.writer import write_module

pytestmark = pytest.mark.vulkan

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


_GRAPH = """
import numpy as np
from pumice import shaders

def record(device):
    mul = device.load_kernel(shaders.path("mul"))
    a, b, c = (device.asarray(np.ones(64, np.float32)) for _ in range(3))
    with device.record("step") as step:
        mul(a, b, c)
        mul(c, b, a)
    return step

def wrong(device):
    return 5

def fails(device):
    raise ValueError("no")
"""


def graph(context: WorkloadContext, folder: Path, **settings: object) -> Workload:
    (folder / "step.py").write_text(_GRAPH)
    return opened("graph", replace(context, folder=folder), source="step.py", **settings)


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("calls", ["native", "run"])
def test_runs_of_a_recording(context: WorkloadContext, tmp_path: Path, calls: str, batch: int) -> None:
    workload = graph(context, tmp_path, calls=calls, batch=batch)
    samples = take(workload)
    workload.close()
    workload.close()
    timed = workload.device.hal.plan.timestamp_bits and calls == "native"
    for number, sample in enumerate(samples):
        made = set() if number else {"create", "record"}
        assert has(sample) == made | {"submit"} | ({"queue", "execute", "wake"} if timed else set())
        assert sample.dispatches == 2 * batch


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        ("wrong", InvalidArgumentError, "returns a recording of it"),
        ("none", InvalidArgumentError, "got NoneType"),
        ("fails", PumiceError, "fails raised ValueError: no"),
    ],
)
def test_functions_that_make_no_recording(
    context: WorkloadContext, tmp_path: Path, function: str, error: type[PumiceError], message: str
) -> None:
    workload = graph(context, tmp_path, function=function)
    with pytest.raises(error, match=message):
        workload.first()
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
