"""Compiled programs suspended on the device: inspected, resumed elsewhere, aborted, cancelled while it works."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from conformance.program_corpus import compile_all, load_corpus
from support.iree_releases import CompileError, Compiler, installed_compiler
from support.soak import rounds
from support.waiting import until

import pumice
from pumice.hal_vulkan import ElementType
from pumice.hal_vulkan.programs.command_buffer import ProgramCommandBuffer
from pumice.status import CancelledError, StatusCode
from pumice.vm import (
    Frame,
    InvokeState,
    NativeFrame,
    WaitFrame,
    abort_invoke,
    begin_invoke,
    end_invoke,
    resume_invoke,
    wait_invoke,
)

pytestmark = [
    pytest.mark.peer,
    pytest.mark.vulkan,
    pytest.mark.skipif(installed_compiler() is None, reason="no iree-compile: install the peer extra"),
]

# Some 10^9 multiplications: a software device takes a good part of a second.
LARGE = """
func.func @large(%a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1024x1024xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<1024x1024xf32>, tensor<1024x1024xf32>)
    outs(%fill : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %0 : tensor<1024x1024xf32>
}
"""


@pytest.fixture(scope="module")
def collatz() -> bytes:
    compiler = installed_compiler()
    assert isinstance(compiler, Compiler)
    program = next(one for one in load_corpus() if one.name == "collatz")
    path = compile_all([program], compiler)["collatz"]
    assert not isinstance(path, CompileError), path
    return path.read_bytes()


@pytest.fixture
def device() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


def counts(device: pumice.Device) -> dict[str, int]:
    """Live native objects once the device has nothing to do, but those that are kept to be quicker next time."""
    gc.collect()
    device.hal.wait_idle()
    device.hal.trim()
    return {kind: count for kind, count in pumice.live_objects().items() if kind != "command pool"}


def steps_of(start: int) -> int:
    count = 0
    while start != 1:
        start = start // 2 if start % 2 == 0 else 3 * start + 1
        count += 1
    return count


def test_a_program_is_looked_at_and_resumed_in_other_threads(device: pumice.Device, collatz: bytes) -> None:
    with pumice.Session(device) as session:
        session.load(collatz)
        function = session.lookup("module.steps").function
        view = device.asarray(np.int32(7)).buffer_view(ElementType.INT_32)
        state = InvokeState()
        status = [begin_invoke(state, session.context, function, (view,))]
        suspensions = 0
        while status[-1] is StatusCode.DEFERRED:
            *outer, native, wait = state.frames
            assert isinstance(wait, WaitFrame) and isinstance(native, NativeFrame) and native.name == "hal.fence.await"
            assert outer and all(isinstance(one, Frame) for one in outer)
            assert outer[0].name == "module.steps" and outer[0].pc > 0 and outer[0].register_values  # type: ignore[union-attr]
            # The wait in one thread, the step in another.
            for call in (lambda: wait_invoke(state), lambda: status.append(resume_invoke(state))):
                thread = threading.Thread(target=call)
                thread.start()
                thread.join()
            suspensions += 1
        (result,) = end_invoke(state).unwrap()
        assert int(np.asarray(session.wrap_view(result))) == steps_of(7)
        assert suspensions >= steps_of(7)


def test_a_program_is_aborted_at_every_suspension(device: pumice.Device, collatz: bytes) -> None:
    with pumice.Session(device) as session:
        session.load(collatz)
        steps = session.lookup("module.steps")
        assert int(np.asarray(steps(np.int32(6)))) == steps_of(6)
        view = device.asarray(np.int32(6)).buffer_view(ElementType.INT_32)
        state = InvokeState()
        baseline = None
        for point in range(0, 1000, rounds(5, 1)):
            status = begin_invoke(state, session.context, steps.function, (view,))
            for _ in range(point):
                if status is not StatusCode.DEFERRED:
                    break
                wait_invoke(state)
                status = resume_invoke(state)
            over = status is not StatusCode.DEFERRED
            abort_invoke(state)
            assert session.context.gate.in_flight == 0 and state.frames == ()
            session.trim()
            now = counts(device)
            baseline = baseline or now
            assert now == baseline, f"aborted at suspension {point}"
            if over:
                break
        assert point > steps_of(6)
        assert int(np.asarray(steps(np.int32(6)))) == steps_of(6)


def test_a_call_is_cancelled_while_the_device_works(device: pumice.Device) -> None:
    compiler = pytest.importorskip("iree.compiler")
    module = compiler.compile_str(LARGE, extra_args=["--iree-hal-target-device=vulkan"])
    a = np.random.default_rng(1).random((1024, 1024), np.float32)
    with pumice.Session(device) as session:
        session.load(module)
        large = session.lookup("module.large")
        x = device.asarray(a)
        expected = large(x, x).numpy()
        session.trim()
        before = counts(device)
        for _ in range(3):
            call = large.submit(x, x)
            until(lambda call=call: call._run is None or call._run._armed is not None)  # type: ignore[misc]
            assert call.query_status() is StatusCode.DEFERRED, "the device was done too soon for this test"
            call.cancel()
            assert session.context.gate.in_flight == 0, "it is released when cancel returns"
            with pytest.raises(CancelledError):
                call.result(60)
            assert call.query_status() is StatusCode.CANCELLED and call.outputs is None
        del call
        # What its work used is there until the device is done with it, and gone then.
        session.trim()
        assert counts(device) == before
        np.testing.assert_array_equal(large(x, x).numpy(), expected)
        x.close()


def test_calls_one_by_one_find_their_commands_recorded_after_many_at_once(
    device: pumice.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory of results is handed out so that the same commands serve again."""
    compiler = installed_compiler()
    assert isinstance(compiler, Compiler)
    program = next(one for one in load_corpus() if one.name == "simple_mul")
    path = compile_all([program], compiler)["simple_mul"]
    assert not isinstance(path, CompileError), path
    recorded: list[object] = []
    record = ProgramCommandBuffer._record
    monkeypatch.setattr(
        ProgramCommandBuffer, "_record", lambda self, *given: recorded.append(1) or record(self, *given)
    )
    with pumice.Session(device, options=pumice.SessionOptions(concurrent=True)) as session:
        session.load(path)
        function = session.lookup("module.simple_mul")
        x = device.asarray(np.arange(4, dtype=np.float32))
        function(x, x)
        assert recorded, "this program records what it dispatches"
        calls = [function.submit(x, x) for _ in range(64)]
        for call in calls:
            np.testing.assert_array_equal(call.result(60).numpy(), np.arange(4) ** 2)
        del call, calls
        gc.collect()
        device.hal.wait_idle()
        function(x, x)
        recorded.clear()
        for _ in range(100):
            function(x, x)
        assert not recorded
        x.close()
