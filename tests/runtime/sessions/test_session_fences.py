"""Asynchronous functions: by themselves, and with fences of the callers."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from support.runtime.sessions import ASYNC, COUNTER, with_program

import pumice
from pumice.hal.programs.fence import HalFence
from pumice.hal_vulkan import Fence
from pumice.status import (
    DeadlineExceededError,
    InvalidArgumentError,
    UnavailableError,
)
from pumice.vm.native.module import NativeModule

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("on_both")]


X = np.arange(4, dtype=np.float32)


def test_asynchronous_functions_wait_by_themselves(session: pumice.Session) -> None:
    with_program(session, ASYNC)
    assert str(session.lookup("program.pass").signature) == "async program.pass(x: tensor<4xf32>) -> (y: tensor<4xf32>)"
    for timeout in (None, 60):
        np.testing.assert_array_equal(session.call("program.pass", X, timeout=timeout).numpy(), X)
    with pytest.raises(UnavailableError):
        session.call("program.fails", X)


@pytest.mark.parametrize("kind", ["semaphores", "hal"])
def test_fences_of_the_callers(session: pumice.Session, kind: str) -> None:
    with_program(session, ASYNC)
    hal = session.device.hal
    if kind == "semaphores":
        first, second = hal.create_semaphore(0, "first"), hal.create_semaphore(0, "second")
        before, after = Fence([(first, 3)]), Fence([(second, 5)])
        set_ = lambda: first.signal(3)  # noqa: E731
    else:
        before, after = HalFence(hal), HalFence(hal)
        set_ = before.signal
    start = time.monotonic()
    threading.Timer(0.1, set_).start()
    y = session.call("program.pass", X, wait=before, signal=after, timeout=60)
    assert time.monotonic() - start >= 0.09 and after.query()
    session.await_fence(after, 60)
    np.testing.assert_array_equal(y.numpy(), X)
    # One of the two is enough to give.
    np.testing.assert_array_equal(session.call("program.pass", X, wait=before).numpy(), X)
    third = HalFence(hal)
    session.call("program.pass", X, signal=third)
    session.await_fence(third)
    if kind == "semaphores":
        first.close()
        second.close()


def test_a_call_with_a_signal_fence_returns_before_the_work_is_done(session: pumice.Session) -> None:
    with_program(session, ASYNC)
    after = HalFence(session.device.hal)
    y = session.call("program.never", X, signal=after)
    assert not after.query()
    with pytest.raises(DeadlineExceededError):
        session.await_fence(after, 0.01)
    after.signal()
    session.await_fence(after, 60)
    np.testing.assert_array_equal(y.numpy(), X)


@pytest.mark.parametrize("timeout", [0.05, 0, -1])
def test_the_timeout_holds_for_the_work_too(session: pumice.Session, timeout: float) -> None:
    with_program(session, ASYNC)
    with pytest.raises(
        DeadlineExceededError, match=r"program\.never was not done within its timeout of .*; its work continues"
    ):
        session.call("program.never", X, timeout=timeout)
    with pytest.raises(DeadlineExceededError, match=r"program\.pass was not done within its timeout"):
        session.call("program.pass", X, wait=HalFence(session.device.hal), timeout=timeout)
    np.testing.assert_array_equal(session.call("program.pass", X).numpy(), X)


def test_work_in_a_nested_call_ends_by_the_outer_timeout(session: pumice.Session) -> None:
    host = NativeModule("host")
    host.function("nested", "0v_v")(lambda: session.call("program.never", X) and None)
    session.append_module(host)
    with_program(session, ASYNC)
    with pytest.raises(DeadlineExceededError, match=r"host\.nested was not done within its timeout of 0\.1 s"):
        session.call("host.nested", timeout=0.1)


@pytest.mark.parametrize("fence", [b"fence", 5, np.zeros(1)])
def test_fences_are_fences(session: pumice.Session, fence: object) -> None:
    with_program(session, ASYNC + COUNTER)
    for name in ("wait", "signal"):
        with pytest.raises(InvalidArgumentError, match=f"program.pass: {name} is a fence.* or None, got"):
            session.call("program.pass", X, **{name: fence})
    with pytest.raises(InvalidArgumentError, match=r"program\.next: wait is a fence, one of adaptive, .* got b'spin'"):
        session.call("program.next", wait=b"spin")
    with pytest.raises(InvalidArgumentError, match=r"program\.next is synchronous: it takes no wait and signal fences"):
        session.call("program.next", signal=HalFence(session.device.hal))


@pytest.mark.parametrize("profiled", [False, True])
def test_bound_values_are_called_and_waited_for(session: pumice.Session, profiled: bool) -> None:
    with_program(session, ASYNC + COUNTER)
    wait_for, next_ = session.lookup("program.pass"), session.lookup("program.next")
    values = wait_for.bind(X)
    gate, signal = HalFence(session.device.hal), HalFence(session.device.hal)
    profile = session.profile(most_slowdown=None) if profiled else None
    threading.Timer(0.05, gate.signal).start()
    assert wait_for.call_bound(values, wait=gate) is values[0] and gate.query()
    assert wait_for.call_bound(values, signal=signal, timeout=60) is values[0]
    session.await_fence(signal, 60)
    assert next_.call_bound(()) == 1
    for call, message in (
        (lambda: wait_for.call_bound(()), "takes 1 value .*, got 0"),
        (lambda: wait_for.call_bound(5), "values is a sequence, got int"),  # type: ignore[arg-type]
        (lambda: next_.call_bound((), wait=gate), "is synchronous: it takes no wait"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            call()
    with pytest.raises(DeadlineExceededError, match="not done within its timeout"):
        session.lookup("program.never").call_bound(values, timeout=0.05)
    with pytest.raises(UnavailableError):
        session.lookup("program.fails").call_bound(values)
    if profile is not None:
        profile.stop()
        calls = [(record.name, record.error) for record in profile.calls]
        assert calls == [
            ("program.pass", ""),
            ("program.pass", ""),
            ("program.next", ""),
            ("program.never", "DeadlineExceededError"),
            ("program.fails", "UnavailableError"),
        ]
        assert profile.calls[0].waits_ns is not None and profile.calls[0].waits_ns >= 0.03e9
