"""Host-side wait sources and futures: by query, wait, notify and await."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.waiting import until

from pumice.status import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PumiceError,
    UnknownError,
)
from pumice.vm import (
    AllOf,
    AnyOf,
    AsyncioSource,
    Cancellable,
    Context,
    Delay,
    Event,
    FileReady,
    FutureSource,
    NativeModule,
    WaitSource,
    WhenReadySource,
    as_wait_source,
    invoke,
)
from pumice.waits.poll_thread import PollThread

posix = pytest.mark.skipif(sys.platform == "win32", reason="descriptors other than sockets are waited for on POSIX")


class Told:
    """A callback that notes what it is called with."""

    def __init__(self) -> None:
        self.calls: list[PumiceError | None] = []
        self.threads: list[str] = []
        self.event = threading.Event()

    def __call__(self, error: PumiceError | None) -> None:
        self.calls.append(error)
        self.threads.append(threading.current_thread().name)
        self.event.set()

    def wait(self) -> PumiceError | None:
        assert self.event.wait(30), "not called"
        return self.calls[0]


def sources_of_every_kind(quiet: socket.socket) -> list[Any]:
    return [
        Event(),
        Delay(60),
        FileReady(quiet),
        FutureSource(concurrent.futures.Future()),
        AnyOf(Event()),
        AllOf(Event()),
    ]


@pytest.fixture
def quiet() -> Iterator[socket.socket]:
    left, right = socket.socketpair()
    with left, right:
        yield left


@pytest.mark.parametrize("position", range(6))
def test_each_is_a_wait_source(position: int, quiet: socket.socket) -> None:
    source = sources_of_every_kind(quiet)[position]
    assert isinstance(source, WaitSource)
    assert source.query() is False
    with pytest.raises(DeadlineExceededError):
        source.wait_until(time.monotonic())
    with pytest.raises(DeadlineExceededError):
        source.wait_until(time.monotonic() + 0.01)
    told = Told()
    notification = source.notify(told)
    assert isinstance(notification, Cancellable)
    assert notification.cancel() is True
    assert notification.cancel() is False
    assert told.calls == []
    assert as_wait_source(source) is source
    assert repr(source).startswith("<")


# -- events ------------------------------------------------------------------------------------------


def test_an_event_is_set_once() -> None:
    event = Event()
    told, late = Told(), Told()
    event.notify(told)
    assert not event.is_set()
    event.set()
    event.set()
    event.fail(NotFoundError("too late"))
    event.notify(late)
    assert told.calls == late.calls == [None]
    assert event.is_set() and event.query()
    event.wait_until()


def test_a_failed_event_raises_for_everybody() -> None:
    event, told = Event(), Told()
    event.notify(told)
    event.fail(NotFoundError("gone"))
    event.set()
    assert isinstance(told.calls[0], NotFoundError) and len(told.calls) == 1
    for call in (event.query, event.is_set, event.wait_until):
        with pytest.raises(NotFoundError, match="gone"):
            call()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this platform has no interval timers")
def test_an_event_is_set_by_a_signal_handler_at_any_point() -> None:
    before = signal.getsignal(signal.SIGALRM)
    events: list[Event] = []
    signal.signal(signal.SIGALRM, lambda *_: [one.set() for one in events])
    try:
        for step in range(200):
            event = Event()
            events[:] = [event]
            signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + step % 20))
            while not event.is_set():
                event.notify(lambda _: None).cancel()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_callback_that_raises_keeps_nobody_from_being_told(caplog: pytest.LogCaptureFixture) -> None:
    event, told = Event(), Told()

    def fail(error: PumiceError | None) -> None:
        raise ValueError("on purpose")

    event.notify(fail)
    event.notify(told)
    event.set()
    assert told.calls == [None]
    assert "on purpose" in caplog.text


# -- times -------------------------------------------------------------------------------------------


def test_a_delay_passes() -> None:
    delay = Delay(0.02)
    assert not delay.query()
    told = Told()
    delay.notify(told)
    delay.wait_until()
    assert delay.query()
    assert told.wait() is None and told.threads == ["pumice-poll"]
    assert Delay(0).query() and Delay(-1).query()
    Delay(0).wait_until(time.monotonic() - 1)


@pytest.mark.parametrize("seconds", ["1", None, float("nan"), True, b"1"])
def test_a_delay_takes_a_number(seconds: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="a number of seconds"):
        Delay(seconds)


def test_delays_come_in_the_order_of_their_times() -> None:
    order: list[int] = []
    done = threading.Event()
    now = time.monotonic()
    thread = PollThread.shared()
    for index in (3, 1, 4, 0, 2):
        thread.call_at(now + 0.05 + index * 0.01, lambda _, index=index: order.append(index))  # type: ignore[misc]
    thread.call_at(now + 0.2, lambda _: done.set())
    assert done.wait(30)
    assert order == [0, 1, 2, 3, 4]


def test_ten_thousand_timers_are_one_thread_and_are_let_go() -> None:
    thread = PollThread.shared()
    watches = [thread.call_at(time.monotonic() + 3600 + index, lambda _: None) for index in range(10_000)]
    assert sum(one.name == "pumice-poll" for one in threading.enumerate()) == 1
    assert all(watch.cancel() for watch in watches)
    assert len(thread._timers) < 200, "cancelled timers are swept"


# -- descriptors -------------------------------------------------------------------------------------


@posix
def test_a_pipe() -> None:
    readable, writable = os.pipe()
    try:
        source, told = FileReady(readable), Told()
        source.notify(told)
        assert not source.query()
        os.write(writable, b"x")
        assert told.wait() is None and told.threads == ["pumice-poll"]
        assert source.query()
        os.read(readable, 1)
        assert source.query(), "what is ready stays so"
        assert not FileReady(readable).query()
        assert FileReady(writable, read=False, write=True).query()
    finally:
        os.close(readable)
        os.close(writable)


def test_a_socket_both_ways() -> None:
    left, right = socket.socketpair()
    with left, right:
        assert FileReady(left, read=False, write=True).query()
        either, told = FileReady(left, read=True, write=True), Told()
        either.notify(told)
        assert told.wait() is None
        reading = FileReady(left)
        threading.Timer(0.02, right.send, (b"x",)).start()
        reading.wait_until(time.monotonic() + 30)
        # That the other side goes away is something to read too.
        left.recv(1)
        closing, gone = FileReady(left), Told()
        closing.notify(gone)
        right.close()
        assert gone.wait() is None


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="this platform has no eventfd")
def test_an_eventfd_of_several_waiters() -> None:
    descriptor = os.eventfd(0)
    try:
        tolds = [Told() for _ in range(50)]
        notifications = [FileReady(descriptor).notify(told) for told in tolds]
        cancelled = notifications[::2]
        assert all(one.cancel() for one in cancelled)
        os.eventfd_write(descriptor, 1)
        for told in tolds[1::2]:
            assert told.wait() is None
        assert not any(told.calls for told in tolds[::2])
        until(lambda: descriptor not in PollThread.shared()._watches)
    finally:
        os.close(descriptor)


@posix
def test_a_number_that_is_used_again_for_another_file() -> None:
    """Kernels forget a closed descriptor by themselves, and who waited for it; its number serves the next file."""
    first, other = os.pipe()
    FileReady(first).notify(lambda _: None).cancel()
    abandoned = FileReady(first)
    abandoned.notify(Told())
    os.close(first)
    os.close(other)
    again = os.pipe()
    try:
        assert first in again
        source, told = FileReady(again[0]), Told()
        source.notify(told)
        os.write(again[1], b"x")
        assert told.wait() is None
    finally:
        for one in again:
            os.close(one)


def test_a_file_is_always_ready(tmp_path: Any) -> None:
    with (tmp_path / "file").open("wb") as file:
        source, told = FileReady(file), Told()
        if select is not None and sys.platform.startswith("linux"):
            source.notify(told)
            assert told.wait() is None
            assert FileReady(file).query()


@posix
def test_a_descriptor_that_is_none() -> None:
    readable, writable = os.pipe()
    os.close(readable)
    os.close(writable)
    told = Told()
    FileReady(readable).notify(told)
    assert isinstance(told.wait(), InvalidArgumentError)
    with pytest.raises(InvalidArgumentError, match="cannot be waited for"):
        FileReady(readable).query()


@pytest.mark.parametrize("file", [None, "stdin", -1, True, 1.5])
def test_what_has_no_descriptor(file: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="file descriptor"):
        FileReady(file)


def test_nothing_to_wait_for() -> None:
    with pytest.raises(InvalidArgumentError, match="got neither"):
        FileReady(0, read=False)


@pytest.mark.slow
@posix
def test_a_forked_child_has_a_waiter_of_its_own() -> None:
    script = """
import os, sys, time
from pumice.vm import Delay, FileReady
Delay(0.001).notify(lambda _: None)
time.sleep(0.05)
child = os.fork()
if not child:
    done = []
    Delay(0.001).notify(done.append)
    end = time.monotonic() + 20
    while not done and time.monotonic() < end:
        time.sleep(0.001)
    os._exit(0 if done == [None] else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr.decode()


# -- any and all -------------------------------------------------------------------------------------


def test_all_of_several() -> None:
    a, b = Event(), Event()
    both, told = AllOf(a, b), Told()
    both.notify(told)
    a.set()
    assert not both.query() and told.calls == []
    b.set()
    assert both.query() and told.calls == [None]
    both.wait_until()
    assert AllOf().query()
    AllOf().wait_until(time.monotonic())


def test_any_of_several() -> None:
    a, b = Event(), Event()
    one, told = AnyOf(a, b, Delay(60)), Told()
    one.notify(told)
    assert not one.query()
    threading.Timer(0.02, b.set).start()
    one.wait_until(time.monotonic() + 30)
    assert one.query() and told.wait() is None and told.calls == [None]
    assert not a.has_listeners, "the others are disarmed"
    assert AnyOf().query()
    AnyOf().wait_until(time.monotonic())


@pytest.mark.parametrize("kind", [AnyOf, AllOf])
def test_the_first_failure_ends_both(kind: Callable[..., Any]) -> None:
    a, b = Event(), Event()
    source, told = kind(a, b), Told()
    source.notify(told)
    b.fail(NotFoundError("gone"))
    assert isinstance(told.calls[0], NotFoundError)
    with pytest.raises(NotFoundError):
        source.query()
    with pytest.raises(NotFoundError):
        source.wait_until()
    assert not a.has_listeners


def test_they_nest_and_take_what_is_no_source_yet() -> None:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    event = Event()

    class Mine:
        def when_ready(self, callback: Callable[..., None]) -> None:
            event.notify(lambda _: callback())

    source = AllOf(AnyOf(future, Delay(60)), Mine())
    assert isinstance(source.sources[1], WhenReadySource)
    told = Told()
    source.notify(told)
    event.set()
    assert told.calls == []
    future.set_result(5)
    assert told.calls == [None]
    with pytest.raises(InvalidArgumentError, match="int is not a wait source"):
        AnyOf(5)


# -- futures -----------------------------------------------------------------------------------------


def test_futures_end_in_four_ways() -> None:
    futures: list[concurrent.futures.Future[int]] = [concurrent.futures.Future() for _ in range(4)]
    sources = [FutureSource(one) for one in futures]
    tolds = [Told() for _ in sources]
    for source, told in zip(sources, tolds, strict=True):
        source.notify(told)
    futures[0].set_result(1)
    futures[1].set_exception(NotFoundError("gone"))
    futures[2].set_exception(ValueError("wrong"))
    futures[3].cancel()
    assert [type(told.calls[0]) for told in tolds] == [type(None), NotFoundError, UnknownError, CancelledError]
    assert sources[0].query() and sources[0].result() == 1
    with pytest.raises(UnknownError, match="ValueError: wrong"):
        sources[2].wait_until()
    with pytest.raises(ValueError, match="wrong"):
        sources[2].result()


def test_asyncio_futures_from_another_thread() -> None:
    async def main() -> list[object]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()
        source = AsyncioSource(future)
        with pytest.raises(FailedPreconditionError, match="deadlocks; use await"):
            source.wait_until()
        waiting = loop.run_in_executor(None, source.wait_until, time.monotonic() + 30)
        loop.call_later(0.02, future.set_result, 7)
        await waiting
        return [source.query(), await source]

    assert asyncio.run(main()) == [True, 7]


# -- await -------------------------------------------------------------------------------------------


def test_each_is_awaited_in_asyncio() -> None:
    async def main() -> None:
        event = Event()
        asyncio.get_running_loop().call_later(0.01, event.set)
        await event
        await Delay(0.01)
        left, right = socket.socketpair()
        with left, right:
            right.send(b"x")
            await FileReady(left)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            assert await FutureSource(pool.submit(lambda: 5)) == 5
            with pytest.raises(ZeroDivisionError):
                await FutureSource(pool.submit(lambda: 1 // 0))
        await AllOf(Delay(0.01), AnyOf(event, Event()))
        never = Event()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_of(never), 0.01)
        assert not never.has_listeners, "who gave up is forgotten"

    asyncio.run(main())


async def _of(source: Any) -> None:
    await source


def test_await_needs_a_loop_or_an_invocation() -> None:
    coroutine = _of(Event())
    with pytest.raises(FailedPreconditionError, match="a running asyncio loop"):
        coroutine.send(None)


def test_a_native_coroutine_awaits_each() -> None:
    left, right = socket.socketpair()
    module = NativeModule("m")

    @module.function("read", "0v_i")
    async def read() -> int:
        await Delay(0.001)
        await FileReady(left)
        await AnyOf(Event(), Delay(0.001))
        return left.recv(1)[0]

    with left, right:
        threading.Timer(0.02, right.send, (b"*",)).start()
        context = Context([module])
        assert invoke(context, context.lookup("m.read")) == (42,)
        context.close()
