"""Deferred waits: asked once, and armed only if they are not ready then."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support.vm.wait_sources import Quick, waiting_module
from support.waiting import until

from pumice.status import CancelledError, DeadlineExceededError, NotFoundError, StatusCode
from pumice.vm import AsyncioLoop, Context, Invocation, Loop, ThreadLoop, async_invoke


@pytest.fixture
def loop() -> Iterator[ThreadLoop]:
    with ThreadLoop() as made:
        assert isinstance(made, ThreadLoop)
        yield made


def context_of(sources: list[Any], *, deadline: float | None = None) -> Context:
    return Context([waiting_module(sources, deadline)], concurrent=True)


def test_what_is_ready_is_never_armed(loop: Loop) -> None:
    source = Quick(ready=True)
    context = context_of([source])
    assert Invocation.create(context, context.lookup("m.wait"), (0,), loop=loop).result(30) == (0,)
    assert (source.queries, source.notifications) == (1, 0)
    context.close()


def test_what_is_not_ready_is_armed_once(loop: Loop) -> None:
    source = Quick()
    context = context_of([source])
    call = Invocation.create(context, context.lookup("m.wait"), (0,), loop=loop)
    until(lambda: source.notifications == 1)
    assert call.query_status() is StatusCode.DEFERRED and source.queries == 1
    source.set()
    assert call.result(30) == (0,)
    assert source.notifications == 1
    context.close()


def test_behind_the_first_that_is_not_ready_nothing_is_asked(loop: Loop) -> None:
    sources = [Quick(ready=True), Quick(), Quick(ready=True), Quick()]
    context = context_of(sources)
    hold = threading.Event()
    loop.call(lambda error: _discard(hold.wait(30)))  # so that all four are deferred before the loop looks
    calls = [Invocation.create(context, context.lookup("m.wait"), (index,), loop=loop) for index in range(4)]
    hold.set()
    assert calls[0].result(30) == (0,) and calls[2].result(30) == (4,)
    until(lambda: sources[3].notifications == 1)
    assert [one.queries for one in sources] == [1, 1, 0, 0]
    assert [one.notifications for one in sources] == [0, 1, 1, 1]
    for one in sources:
        one.set()
    assert [one.result(30) for one in calls] == [(0,), (2,), (4,), (6,)]
    context.close()


def test_a_busy_loop_looks_all_the_same(loop: Loop) -> None:
    source = Quick(ready=True)
    context = context_of([source])
    stop = threading.Event()

    def again(error: Exception | None) -> None:
        if error is None and not stop.is_set():
            loop.call(again)

    loop.call(again)
    try:
        assert Invocation.create(context, context.lookup("m.wait"), (0,), loop=loop).result(30) == (0,)
    finally:
        stop.set()
    context.close()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_failure_is_the_programs(loop: Loop, when: str) -> None:
    source = Quick()
    if when == "before":
        source.fail(NotFoundError("gone"))
    context = context_of([source])
    call = Invocation.create(context, context.lookup("m.wait"), (0,), loop=loop)
    if when == "after":
        until(lambda: source.notifications == 1)
        source.fail(NotFoundError("gone"))
    with pytest.raises(NotFoundError, match="gone"):
        call.result(30)
    context.close()


@pytest.mark.parametrize("method", ["query", "notify"])
def test_a_source_that_raises_what_it_should_not(loop: Loop, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Quick()

    def fail(*_: object) -> Any:
        raise ValueError("on purpose")

    monkeypatch.setattr(Quick, method, fail)
    context = context_of([source])
    call = Invocation.create(context, context.lookup("m.wait"), (0,), loop=loop)
    with pytest.raises(ValueError, match="on purpose"):
        call.result(30)
    assert context.gate.in_flight == 0 and not loop.is_closed
    context.close()


@pytest.mark.parametrize("whose", ["wait", "invocation"])
def test_deadlines(loop: Loop, whose: str) -> None:
    source = Quick()
    context = context_of([source], deadline=time.monotonic() + 0.02 if whose == "wait" else None)
    timeout = 0.02 if whose == "invocation" else None
    call = Invocation.create(context, context.lookup("m.wait"), (0,), loop=loop, timeout=timeout)
    with pytest.raises(DeadlineExceededError):
        call.result(30)
    assert not source.has_listeners
    context.close()


@pytest.mark.parametrize("armed", [False, True])
def test_cancelling(loop: Loop, armed: bool) -> None:
    source = Quick()
    context = context_of([source])
    call = Invocation.create(context, context.lookup("m.wait"), (0,), loop=loop)
    if armed:
        until(lambda: source.notifications == 1)
    call.cancel()
    with pytest.raises(CancelledError):
        call.result(30)
    source.set()
    assert context.gate.in_flight == 0 and not source.has_listeners
    context.close()


@pytest.mark.slow
def test_cancel_against_look_and_ready(loop: Loop) -> None:
    """Whatever comes first: one end, and nothing left."""
    for step in range(300):
        source = Quick()
        context = context_of([source])
        ends: list[object] = []
        done = threading.Event()

        def callback(_: Loop, error: Exception | None, outputs: object) -> None:
            ends.append(error or outputs)
            done.set()

        invoked = async_invoke(loop, context, context.lookup("m.wait"), (0,), callback)
        racers = [threading.Thread(target=source.set), threading.Thread(target=invoked.cancel)]
        for racer in racers if step % 2 else reversed(racers):
            racer.start()
        for racer in racers:
            racer.join()
        assert done.wait(30)
        assert len(ends) == 1
        assert context.gate.in_flight == 0 and not context.invocations
        context.close()


def test_in_asyncios_loop() -> None:
    async def main() -> None:
        loop = AsyncioLoop()
        sources = [Quick(ready=True), Quick(), Quick()]
        context = context_of(sources)
        function = context.lookup("m.wait")
        calls = [Invocation.create(context, function, (index,), loop=loop) for index in range(3)]
        asyncio.get_running_loop().call_later(0.01, sources[1].set)
        assert await calls[0] == (0,) and await calls[1] == (2,)
        assert [one.queries for one in sources] == [1, 1, 0]
        assert [one.notifications for one in sources] == [0, 1, 1]
        calls[2].cancel()
        with pytest.raises(CancelledError):
            await calls[2]
        assert not sources[2].has_listeners
        context.close()

    asyncio.run(main())


def _discard(_: object) -> None:
    return None
