"""Loops that the driver cuts are errors for readers of their results, and for nobody else."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from support.devices.features import require_cut_loops
from support.devices.shader_tools import needs_compiler

import pumice
from pumice.hal_vulkan import CommandBuffer
from pumice.status import DataLossError

pytestmark = [pytest.mark.vulkan, needs_compiler]

COUNT = """#version 450
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer Most { uint most; };
layout(binding = 1) writeonly buffer Out { uint counted[]; };
void main() {
    uint c = 0;
    for (uint i = 0; i < most; i++)
        c++;
    counted[gl_GlobalInvocationID.x] = c;
}
"""
DOUBLE = """#version 450
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer In { uint source[]; };
layout(binding = 1) writeonly buffer Out { uint twice[]; };
void main() { twice[gl_GlobalInvocationID.x] = 2 * source[gl_GlobalInvocationID.x]; }
"""
TWO_SETS = COUNT.replace("(binding = 1)", "(set = 1, binding = 3)")
MANY = 100_000


@pytest.fixture(scope="module", params=["mapped", "staging"])
def device(request: pytest.FixtureRequest) -> Iterator[pumice.Device]:
    with pumice.open_device(staging=request.param == "staging") as opened:
        require_cut_loops(opened.vulkan.driver)
        yield opened


def number(value: int) -> np.ndarray:
    return np.array([value], np.uint32)


@pytest.mark.parametrize("source", [COUNT, TWO_SETS], ids=["one set", "two sets"])
def test_calls_with_arrays_of_the_host(device: pumice.Device, source: str) -> None:
    with device.load_kernel(source) as kernel:
        for value in (65_534, 65_535):  # the longest that the driver runs to their end
            assert (kernel(number(value), pumice.empty(8, np.uint32)) == value).all()
        for value in (65_536, MANY):
            with pytest.raises(DataLossError, match=r"kernel: .* the loop at source\.comp:7") as caught:
                kernel(number(value), pumice.empty(8, np.uint32))
            assert caught.value.location == "source.comp:7"
        assert (kernel(number(10), pumice.empty(8, np.uint32)) == 10).all()
        with pytest.raises(DataLossError):
            kernel.time(number(MANY), pumice.empty(8, np.uint32))


def test_results_on_the_device(device: pumice.Device) -> None:
    many, few = device.asarray(number(MANY)), device.asarray(number(7))
    with device.load_kernel(COUNT) as kernel, device.load_kernel(DOUBLE) as double:
        cut = kernel(many, device.empty(8, np.uint32))
        assert isinstance(cut, pumice.DeviceArray)
        derived = double(cut, device.empty(8, np.uint32))
        other = double(device.asarray(np.arange(8, dtype=np.uint32)), device.empty(8, np.uint32))
        copied = cut.copy()
        part = device.zeros(16, np.uint32)
        part[8:] = cut
        assert (other.numpy() == 2 * np.arange(8)).all()  # does not depend on the cut kernel
        made_of_it = {"derived": derived, "itself": cut, "part": cut[2:4], "copied": copied, "around": part}
        for name, array in (made_of_it | made_of_it).items():
            with pytest.raises(DataLossError, match="kernel"):
                pytest.fail(f"{name}: {array.numpy()}")
        with pytest.raises(DataLossError):
            np.asarray(double(derived, pumice.empty(8, np.uint32)))
        device.wait()  # the failure was raised before
        assert (kernel(few, cut).numpy() == 7).all()
        assert (double(cut, derived).numpy() == 14).all()
        copied.copy_from(np.ones(8, np.uint32))
        assert (copied.numpy() == 1).all()


def test_waiting_for_all_raises_once(device: pumice.Device) -> None:
    many = device.asarray(number(MANY))
    with device.load_kernel(COUNT) as kernel:
        cut = kernel(many, device.empty(8, np.uint32))
        with pytest.raises(DataLossError):
            device.wait()
        device.wait()
        kernel(many, device.empty(8, np.uint32))
    with pytest.raises(DataLossError):  # its kernel is closed
        device.wait()
    with pytest.raises(DataLossError):
        cut.numpy()


def test_another_thread_that_waits_during_a_call(device: pumice.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    few = device.asarray(number(7))
    with device.load_kernel(COUNT) as kernel:
        first = kernel(few, device.empty(8, np.uint32))
        assert isinstance(first, pumice.DeviceArray)
        submit = device.submit

        def submit_and_wait(commands: tuple[CommandBuffer, ...]) -> int:
            payload = submit(commands)
            with contextlib.suppress(DataLossError):  # the cut may be known by now, and is that of both calls
                first.wait()
            return payload

        with monkeypatch.context() as patched:
            patched.setattr(device, "submit", submit_and_wait)
            cut = kernel(device.asarray(number(MANY)), device.empty(8, np.uint32))
        kernel(few, device.empty(8, np.uint32))
        with pytest.raises(DataLossError):
            np.asarray(cut)


def test_threads_get_the_errors_of_their_own_kernels(device: pumice.Device) -> None:
    good, bad = device.load_kernel(COUNT), device.load_kernel(COUNT.replace("c++", "c += 1"))
    wrong: list[object] = []

    def run(kernel: pumice.Kernel, value: int, fails: bool) -> None:
        most = device.asarray(number(value))
        for _ in range(20):
            try:
                found = kernel(most, device.empty(8, np.uint32)).numpy()
                if fails or (found != value).any():
                    wrong.append(found)
            except DataLossError as error:
                if not fails:
                    wrong.append(error)

    threads = [
        threading.Thread(target=run, args=(good, 60_000, False)),
        threading.Thread(target=run, args=(bad, MANY, True)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


def test_it_can_be_switched(monkeypatch: pytest.MonkeyPatch) -> None:
    def count() -> np.ndarray:
        with pumice.open_device() as device, device.load_kernel(COUNT) as kernel:
            found = kernel(number(MANY), pumice.empty(8, np.uint32))
            assert isinstance(found, np.ndarray)
            return found

    monkeypatch.setenv("PUMICE_LOOP_GUARD", "0")
    assert len(set(count().tolist())) == 1
    with pumice.open_device(loop_guard=True) as device:
        assert device.vulkan.plan.loop_guard
    monkeypatch.setenv("PUMICE_LOOP_GUARD", "1")
    with pumice.open_device(loop_guard=False) as device:
        assert not device.vulkan.plan.loop_guard
    with pumice.open_device() as device:
        assert device.vulkan.plan.loop_guard


@pytest.mark.parametrize("variable", ["PUMICE_LOOP_GUARD", "PUMICE_SANITIZE", "PUMICE_STAGING"])
def test_what_is_neither_on_nor_off_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "maybe")
    with pytest.raises(pumice.InvalidArgumentError, match=f"{variable} is 'maybe'; expected one of 1, true"):
        pumice.open_device()


def test_kernels_without_long_loops_are_left_alone(device: pumice.Device) -> None:
    short = COUNT.replace("i < most", "i < 1000")
    long = COUNT.replace("i < most", "i < 70000")
    for source, has_report in ((DOUBLE, False), (short, False), (long, True), (COUNT, True)):
        with device.load_kernel(source) as kernel:
            assert (kernel.pipeline.report is not None) is has_report
            assert [p.binding.name for p in kernel.parameters] == [b.name for b in kernel.pipeline.entry.bindings]
    with device.load_kernel(long) as kernel, pytest.raises(DataLossError):
        kernel(pumice.empty(8, np.uint32))
