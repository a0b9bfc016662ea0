"""Invocations that a coroutine drives: results, errors, waits, and every way to end one."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from support.vm.wait_sources import Quick, waiting_module

from pumice.status import (
    AbortedError,
    CancelledError,
    ClosedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PumiceError,
)
from pumice.vm import REFUSE, AsyncioLoop, BytecodeModule, Context, NativeModule, Wait
from pumice.vm.assembly.assembler import assemble
from pumice.vm.execution.admission import ContextGate, Ticket, Turn
from pumice.vm.invocation.awaited import AwaitedInvocation

LOOP = """
vm.module @program
vm.export @loop
vm.func @loop() -> () {
^bb0:
  vm.br ^bb0
}
"""


def context_of(*sources: Any, concurrent: bool = True) -> Context:
    module = waiting_module(sources)

    @module.function("yields", "0i_i")
    def yields(count: int) -> Any:
        return Wait(resume=lambda _: yields(count - 1)) if count else 7

    @module.function("fails", "0v_v")
    def fails() -> None:
        raise NotFoundError("on purpose")

    return Context([module], concurrent=concurrent)


def awaited(context: Context, name: str, *values: int, **options: Any) -> AwaitedInvocation:
    function = context.lookup(f"m.{name}")
    return AwaitedInvocation(options.pop("loop", None) or AsyncioLoop(), context, function, values, **options)


def is_empty(context: Context) -> bool:
    return not context.invocations and context.gate.in_flight == 0


def test_results_and_errors() -> None:
    async def main() -> None:
        context = context_of()
        assert await awaited(context, "yields", 3) == 7
        with pytest.raises(NotFoundError, match="on purpose"):
            await awaited(context, "fails")
        assert is_empty(context)
        context.close()

    asyncio.run(main())


def test_one_that_never_waits_gives_others_their_turn() -> None:
    async def main() -> None:
        context = context_of()
        loop = AsyncioLoop()
        others: list[int] = []

        async def other() -> None:
            for step in range(5):
                others.append(step)
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        for _ in range(6):
            await awaited(context, "yields", 0, loop=loop)
        assert len(others) == 5
        await task
        context.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("seconds", "outcomes"), [(None, []), (0.0, ["missed"]), (0.005, ["missed"]), (30.0, ["found"])]
)
def test_a_source_is_looked_at_for_as_long_as_it_says(seconds: float | None, outcomes: list[str]) -> None:
    async def main() -> None:
        source = Quick(seconds)
        context = context_of(source)
        if not outcomes or outcomes == ["found"]:
            asyncio.get_running_loop().call_later(0.01, source.set)
        assert await awaited(context, "wait", 0) == 0
        assert source.outcomes == outcomes
        assert source.queries == 2 or seconds
        assert not source.has_listeners and is_empty(context)
        context.close()

    asyncio.run(main())


def test_the_mode_block_does_not_look() -> None:
    async def main() -> None:
        source = Quick(30.0)
        context = context_of(source)
        asyncio.get_running_loop().call_later(0.01, source.set)
        assert await awaited(context, "wait", 0, wait="block") == 0
        assert source.queries == 0 and not source.outcomes
        context.close()

    asyncio.run(main())


@pytest.mark.parametrize("seconds", [None, 30.0])
def test_a_source_that_fails(seconds: float | None) -> None:
    async def main() -> None:
        source = Quick(seconds)
        context = context_of(source)
        asyncio.get_running_loop().call_later(0.01, source.fail, NotFoundError("gone"))
        with pytest.raises(NotFoundError, match="gone"):
            await awaited(context, "wait", 0)
        assert is_empty(context)
        context.close()

    asyncio.run(main())


@pytest.mark.parametrize("seconds", [None, 30.0])
def test_deadlines(seconds: float | None) -> None:
    async def main() -> None:
        source = Quick(seconds)
        context = context_of(source)
        begin = time.monotonic()
        with pytest.raises(DeadlineExceededError, match=r"m\.wait was not done within its timeout of 0\.02 s"):
            await awaited(context, "wait", 0, timeout=0.02)
        assert time.monotonic() - begin < 20
        assert not source.has_listeners and is_empty(context)
        context.close()

    asyncio.run(main())


def ended_by(end: Callable[[asyncio.Task[Any], Context, AsyncioLoop], object], seconds: float | None) -> BaseException:
    """Returns the error of an endless wait that ``end`` ends; checks that nothing of the invocation is left."""

    async def main() -> BaseException:
        source = Quick(seconds)
        context = context_of(source)
        loop = AsyncioLoop()

        async def call() -> Any:
            return await awaited(context, "wait", 0, loop=loop)

        task = asyncio.create_task(call())
        while not (source.queries > 2 or source.has_listeners):
            await asyncio.sleep(0)
        end(task, context, loop)
        with pytest.raises((PumiceError, asyncio.CancelledError)) as raised:
            await task
        assert not source.has_listeners and not source.is_set()
        assert is_empty(context)
        return raised.value

    return asyncio.run(main())


def in_another_thread(action: Callable[[], object]) -> None:
    thread = threading.Thread(target=action)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("seconds", [None, 30.0])
def test_every_way_to_end_one(seconds: float | None) -> None:
    assert isinstance(ended_by(lambda task, *_: task.cancel(), seconds), asyncio.CancelledError)
    assert isinstance(ended_by(lambda _, context, __: context.close(), seconds), AbortedError)
    assert isinstance(ended_by(lambda _, context, __: in_another_thread(context.close), seconds), AbortedError)
    assert isinstance(ended_by(lambda _, __, loop: loop.close(), seconds), AbortedError)
    assert isinstance(ended_by(lambda _, __, loop: in_another_thread(loop.close), seconds), AbortedError)


def test_what_is_suspended_is_released_before_abort_returns() -> None:
    async def main() -> None:
        source = Quick(None)
        context = context_of(source)
        invocation = awaited(context, "wait", 0)
        task = asyncio.ensure_future(invocation)
        while not source.has_listeners:
            await asyncio.sleep(0)
        invocation.abort(CancelledError("enough"))
        assert context.gate.in_flight == 0
        invocation.abort(AbortedError("too late"))
        with pytest.raises(CancelledError, match="enough"):
            await task
        context.close()

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [None, 30.0])
def test_abort_against_ready(seconds: float | None) -> None:
    """Whatever comes first, in whichever thread: one end, and nothing left."""

    async def main() -> None:
        ends: list[str] = []
        for step in range(100):
            source = Quick(seconds)
            context = context_of(source)
            invocation = awaited(context, "wait", 0)
            task = asyncio.ensure_future(invocation)
            await asyncio.sleep(0)
            error = CancelledError("enough")
            racers = [
                threading.Thread(target=source.set),
                threading.Thread(target=invocation.abort, args=(error,)),
            ]
            for racer in racers if step % 2 else reversed(racers):
                racer.start()
            try:
                assert await task == 0
                ends.append("ready")
            except CancelledError:
                ends.append("aborted")
            for racer in racers:
                racer.join()
            assert is_empty(context) and not source.has_listeners
            context.close()
        assert len(ends) == 100

    asyncio.run(main())


def test_a_step_is_interrupted_by_abort() -> None:
    async def main() -> None:
        module = BytecodeModule(assemble(LOOP))
        context = Context([module], concurrent=True)
        invocation = AwaitedInvocation(AsyncioLoop(), context, context.lookup("program.loop"), ())
        timer = threading.Timer(0.05, invocation.abort, (CancelledError("enough"),))
        timer.start()
        with pytest.raises(CancelledError, match="enough"):
            await invocation
        timer.join()
        assert is_empty(context)
        context.close()
        module.close()

    asyncio.run(main())


def test_an_abort_as_a_step_begins_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes after the look at what ends the invocation, and before the step can be seen."""

    async def main() -> None:
        module, steps = NativeModule("m"), []
        module.function("step", "0v_v")(lambda: steps.append(1))
        context = Context([module], concurrent=True)
        invocation = awaited(context, "step")
        begin_step = ContextGate.begin_step

        def begun(gate: ContextGate, turn: Turn) -> Ticket | None:
            invocation.abort(CancelledError("enough"))
            return begin_step(gate, turn)

        monkeypatch.setattr(ContextGate, "begin_step", begun)
        with pytest.raises(CancelledError, match="enough"):
            await invocation
        assert not steps
        assert is_empty(context)
        context.close()

    asyncio.run(main())


def test_turns_are_taken_and_refused() -> None:
    async def main() -> None:
        source = Quick(None)
        context = context_of(source, concurrent=False)
        loop = AsyncioLoop()
        order: list[int] = []

        async def call(index: int, name: str) -> None:
            await awaited(context, name, 0, loop=loop)
            order.append(index)

        tasks = [asyncio.create_task(call(0, "wait")), asyncio.create_task(call(1, "yields"))]
        while not source.has_listeners:
            await asyncio.sleep(0)
        with pytest.raises(FailedPreconditionError, match="running another invocation"):
            await awaited(context, "yields", 0, policy=REFUSE, loop=loop)
        await asyncio.sleep(0.005)
        assert not order
        source.set()
        await asyncio.gather(*tasks)
        assert order == [0, 1] and is_empty(context)
        context.close()

    asyncio.run(main())


def test_wrong_ones_are_refused() -> None:
    async def main() -> None:
        context = context_of()
        with pytest.raises(InvalidArgumentError, match="policy"):
            await awaited(context, "yields", 0, policy="soon")
        with pytest.raises(InvalidArgumentError, match="timeout"):
            await awaited(context, "yields", 0, timeout="soon")
        closed = AsyncioLoop()
        closed.close()
        with pytest.raises(AbortedError, match="closed"):
            await awaited(context, "yields", 0, loop=closed)
        assert is_empty(context)
        context.close()
        with pytest.raises(ClosedError):
            await awaited(context, "yields", 0)
        assert is_empty(context)

    asyncio.run(main())


@pytest.mark.slow
def test_nothing_is_kept_afterwards() -> None:
    async def main() -> weakref.ref[Quick]:
        source = Quick(0.0)
        context = context_of(source)
        asyncio.get_running_loop().call_later(0.005, source.set)
        await awaited(context, "wait", 0)
        context.close()
        return weakref.ref(source)

    results = asyncio.run(main())
    gc.collect()
    assert results() is None
