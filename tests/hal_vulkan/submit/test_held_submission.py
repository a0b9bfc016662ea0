"""Held submissions end submitted or failed, despite Ctrl-C at any point and errors of any kind."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.sync.semaphore import TimelineSemaphore
from pumice.status import DataLossError, InternalError, PumiceError, ResourceExhaustedError

pytestmark = pytest.mark.vulkan
ROOMS = ("hal_vulkan/submit/", "hal_vulkan/sync/semaphore", "hal_vulkan/sync/notifi")


def interrupted_at(step: int, call: Callable[[], object]) -> bool:
    """Runs a call with a KeyboardInterrupt where CPython raises one: on entry to a function, after one written in C.

    Returns whether the call came as far as ``step``.
    """
    left = step

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        if event in ("call", "c_return") and any(room in frame.f_code.co_filename for room in ROOMS):
            left -= 1
            if left < 0:
                raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return left < 0


class Chain:
    """Submissions that wait for a gate: three in a row, one of them with a command buffer, and one beside them."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.gate = device.create_semaphore(name="gate")
        self.outs = [device.create_semaphore(name=f"out {index}") for index in range(4)]
        self.told: list[PumiceError | None] = []
        self.buffer = device.create_buffer(64)
        queue, (first, second, third, beside) = device.compute_queue, self.outs
        third.notify(1, self.told.append)
        queue.barrier(waits=((self.gate, 1),), signals=((first, 1),))
        queue.fill(self.buffer, b"\1", waits=((first, 1),), signals=((second, 1),))
        queue.barrier(waits=((second, 1), (first, 1)), signals=((third, 1),))
        queue.barrier(waits=((self.gate, 1),), signals=((beside, 1),))

    def check(self, error: PumiceError | None = None) -> None:
        for out in self.outs:
            try:
                out.wait(1, 5)
                assert error is None
            except DataLossError:
                assert error is not None
        assert self.device.held == 0
        for semaphore in (self.gate, *self.outs):
            assert not semaphore.held and not semaphore.held_by_value
            semaphore.close()
        self.buffer.close()


@pytest.mark.parametrize("end", ["signal", "submit", "fail"])
def test_ctrl_c_at_any_point_of_what_releases_them(device: Device, end: str) -> None:
    step = 0
    while True:
        chain = Chain(device)
        gate = chain.gate
        error = DataLossError("x") if end == "fail" else None
        if end == "signal":
            reached = interrupted_at(step, lambda: gate.signal(1))
        elif end == "submit":
            reached = interrupted_at(step, lambda: device.compute_queue.barrier(signals=((gate, 1),)))
        else:
            reached = interrupted_at(step, lambda: gate.fail(DataLossError("x")))
        if gate.scheduled == 0 and gate.failure is None:  # it came before anything happened
            assert device.held == 4
            if error is None:
                gate.signal(1)
            else:
                gate.fail(error)
        chain.check(error)
        if not reached:
            break
        step += 1
    assert step > 30
    device.wait_idle(5)


def test_ctrl_c_at_any_point_of_holding_one(device: Device) -> None:
    """It is held, or it is not there; its semaphores and its command buffer can be used in either case."""
    step = 0
    while True:
        gate, out, done = (device.create_semaphore() for _ in range(3))
        commands = device.create_command_buffer(one_shot=True).begin()
        commands.end()
        queue = device.compute_queue

        def hold() -> None:
            queue.submit((commands,), waits=((gate, 1),), signals=((out, 1),))

        reached = interrupted_at(step, hold)
        assert device.held <= 1
        held = bool(device.held)
        assert held or not (gate.held or gate.held_by_value)
        gate.signal(1)
        if held:
            out.wait(1, 5)
        else:
            assert out.scheduled == 0
            queue.submit((commands,), waits=((gate, 1),), signals=((out, 1), (done, 1)))
            out.wait(1, 5)
        device.wait_idle(5)
        for thing in (gate, out, done, commands):
            thing.close()
        if not reached:
            break
        step += 1
    assert step > 12


@pytest.mark.parametrize(
    ("raised", "expected"), [(MemoryError(), ResourceExhaustedError), (ZeroDivisionError("mine"), InternalError)]
)
def test_an_error_of_any_kind_fails_the_signals(
    device: Device, monkeypatch: pytest.MonkeyPatch, raised: Exception, expected: type[PumiceError]
) -> None:
    gate, out, beside = (device.create_semaphore() for _ in range(3))
    queue = device.compute_queue
    far = 1 << 32  # far enough that its distance is checked
    queue.barrier(waits=((gate, 1),), signals=((out, far),))
    queue.barrier(waits=((out, far),), signals=((beside, 1),))

    def fail(*_: object) -> None:
        raise raised

    with monkeypatch.context() as patch:
        patch.setattr(TimelineSemaphore, "check_difference", fail)
        gate.scheduled = 1  # as if work had been submitted that signals it
        gate.after_schedule()
    for semaphore in (out, beside):
        with pytest.raises(expected):
            semaphore.wait(1, 5)
        assert semaphore.failure is not None and semaphore.failure.__cause__ is raised
    assert device.held == 0 and queue.is_idle
