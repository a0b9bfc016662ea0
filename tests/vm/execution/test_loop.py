"""Invocations on loops: one callback each, whatever happens to the program, the caller, the context or the loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.vm.contexts import is_idle
from support.vm.host_program import context_of
from support.waiting import until

from pumice.status import (
    AbortedError,
    CancelledError,
    ClosedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PumiceError,
    StatusCode,
    UnavailableError,
)
from pumice.vm import (
    FIFO,
    AsyncioLoop,
    AsyncioSource,
    Context,
    Event,
    InlineLoop,
    Invocation,
    InvokeState,
    Loop,
    NativeModule,
    ThreadLoop,
    Wait,
    abort_invoke,
    async_invoke,
    begin_invoke,
    invoke,
)
from pumice.vm.execution.watchdog import Guard

LONG = 60.0


class Told:
    """A callback that counts."""

    def __init__(self) -> None:
        self.calls: list[tuple[Loop, Exception | None, tuple[Any, ...] | None]] = []
        self.threads: list[int] = []
        self._event = threading.Event()

    def __call__(self, loop: Loop, error: Exception | None, outputs: tuple[Any, ...] | None) -> None:
        self.calls.append((loop, error, outputs))
        self.threads.append(threading.get_ident())
        self._event.set()

    def wait(self) -> tuple[Exception | None, tuple[Any, ...] | None]:
        assert self._event.wait(LONG)
        assert len(self.calls) == 1
        return self.calls[0][1:]

    @property
    def error(self) -> Exception | None:
        error, outputs = self.wait()
        assert (error is None) == (outputs is not None)
        return error

    @property
    def outputs(self) -> tuple[Any, ...]:
        error, outputs = self.wait()
        assert error is None and outputs is not None
        return outputs


class QueueLoop(Loop):
    """A loop of one's own: a queue that somebody runs."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: deque[Callable[[], None]] = deque()
        self.posted = threading.Event()
        self.stopped = 0

    def _post(self, callback: Callable[[], None]) -> None:
        self.queue.append(callback)
        self.posted.set()

    def _stop(self) -> None:
        self.stopped += 1
        self.posted.set()

    def run(self) -> None:
        while self.queue:
            self.queue.popleft()()


class PumpedLoop(QueueLoop):
    """The same with a thread of the test's that runs it."""

    def __init__(self) -> None:
        super().__init__()
        self.thread = threading.Thread(target=self._pump)
        self.thread.start()

    def _pump(self) -> None:
        while not self.is_closed:
            self.posted.wait(LONG)
            self.posted.clear()
            self.run()
        self.run()

    def close(self) -> None:
        super().close()
        if threading.current_thread() is not self.thread:
            self.thread.join()


class OwnAsyncioLoop(AsyncioLoop):
    """asyncio's loop in a thread of its own, for tests that block."""

    def __init__(self) -> None:
        ready: concurrent.futures.Future[asyncio.AbstractEventLoop] = concurrent.futures.Future()

        async def main() -> None:
            self._finish = asyncio.Event()
            ready.set_result(asyncio.get_running_loop())
            await self._finish.wait()

        self.thread = threading.Thread(target=lambda: asyncio.run(main()))
        self.thread.start()
        super().__init__(ready.result(LONG))

    def close(self) -> None:
        super().close()
        self.end()

    def end(self) -> None:
        """Ends the asyncio loop."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._finish.set)
        if threading.current_thread() is not self.thread:
            self.thread.join()


# Loops whose waits block nobody.
THREADED = {"thread": ThreadLoop, "asyncio": OwnAsyncioLoop, "own": PumpedLoop}
EVERY = {"inline": InlineLoop, **THREADED}


@contextlib.contextmanager
def loop_of(kind: str) -> Iterator[Loop]:
    loop = EVERY[kind]()
    try:
        yield loop
        assert "0 invocation(s)" in repr(loop)
    finally:
        loop.close()
        if isinstance(loop, OwnAsyncioLoop):
            loop.end()


@pytest.fixture(params=list(EVERY))
def loop(request: pytest.FixtureRequest) -> Iterator[Loop]:
    with loop_of(request.param) as made:
        yield made


@pytest.fixture(params=list(THREADED))
def threaded(request: pytest.FixtureRequest) -> Iterator[Loop]:
    with loop_of(request.param) as made:
        yield made


def start(
    loop: Loop, context: Context, name: str = "program.call", inputs: Any = (5,), **options: Any
) -> tuple[Any, Told]:
    told = Told()
    return async_invoke(loop, context, context.lookup(name), inputs, told, **options), told


# -- one callback, on every loop ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["program.call", "host.call", "program.yields_once"])
def test_success(loop: Loop, name: str) -> None:
    with context_of() as context:
        _, told = start(loop, context, name)
        assert told.outputs == (5,) and told.calls[0][0] is loop
        until(lambda: is_idle(context))


def test_success_after_waits(loop: Loop) -> None:
    def call(value: int) -> Wait:
        event = Event()
        timer = threading.Timer(0.01, event.set)
        timer.start()
        return Wait([event], resume=lambda _: (timer.join(), value + 1)[1])

    with context_of(call) as context:
        _, told = start(loop, context)
        assert told.outputs == (6,)
        until(lambda: is_idle(context))


def test_steps_and_callback_come_on_the_loop(threaded: Loop) -> None:
    threads: list[int] = []
    with context_of(lambda value: (threads.append(threading.get_ident()), value)[1]) as context:
        _, told = start(threaded, context)
        assert told.outputs == (5,)
        assert threads == told.threads and threads[0] != threading.get_ident()


def test_an_inline_loop_calls_back_before_it_returns() -> None:
    with context_of() as context, InlineLoop() as loop:
        _, told = start(loop, context)
        assert told.threads == [threading.get_ident()]


@pytest.mark.parametrize(
    ("name", "inputs", "options", "error"),
    [
        ("program.fails", (5,), {}, InvalidArgumentError),
        ("program.call", (0,), {}, NotFoundError),
        ("host.call", (0,), {}, NotFoundError),
        ("program.call", (1,), {}, ZeroDivisionError),
        ("program.call", (), {}, InvalidArgumentError),
        ("program.call", ("5",), {}, InvalidArgumentError),
        ("program.call", None, {}, InvalidArgumentError),
        ("program.call", (5,), {"policy": "fifo"}, InvalidArgumentError),
        ("program.call", (5,), {"timeout": 0}, DeadlineExceededError),
        ("program.call_and_loop", (5,), {"timeout": 0.05}, DeadlineExceededError),
        ("program.yields_for_ever", (5,), {"timeout": 0.05}, DeadlineExceededError),
        ("program.call", (2,), {"timeout": 0.05}, DeadlineExceededError),
        ("program.call", (3,), {}, UnavailableError),
        ("program.call", (4,), {}, InvalidArgumentError),
    ],
)
def test_failures_come_as_the_callbacks_error(
    loop: Loop, name: str, inputs: Any, options: dict[str, Any], error: type[Exception]
) -> None:
    def call(value: int) -> Any:
        if value == 0:
            raise NotFoundError("no such thing")
        if value == 1:
            return 1 // 0
        if value == 2:
            return Wait([Event()], resume=lambda _: value)
        if value == 3:
            failed = Event()
            failed.fail(UnavailableError("down"))
            return Wait([failed], resume=raise_it)
        return Wait([object()], resume=raise_it) if value == 4 else value  # type: ignore[list-item]

    def raise_it(raised: PumiceError | None) -> object:
        assert raised is not None
        raise raised

    with context_of(call) as context:
        for _ in range(2):  # usable afterwards
            _, told = start(loop, context, name, inputs, **options)
            assert type(told.error) is error
            until(lambda: is_idle(context))
        assert not loop.is_closed


def test_closed_contexts_and_functions_of_others(loop: Loop) -> None:
    with context_of() as other:
        context = context_of()
        told = Told()
        async_invoke(loop, context, other.lookup("program.call"), (5,), told)
        assert isinstance(told.error, FailedPreconditionError)
        function = context.lookup("program.call")
        context.close()
        told = Told()
        async_invoke(loop, context, function, (5,), told)
        assert isinstance(told.error, ClosedError)
        told = Told()
        async_invoke(loop, other, "program.call", (5,), told)  # type: ignore[arg-type]
        assert isinstance(told.error, InvalidArgumentError)
        until(lambda: is_idle(context) and is_idle(other))


def test_without_loop_callback_or_timeout_there_is_no_callback() -> None:
    with context_of() as context, InlineLoop() as loop:
        function = context.lookup("program.call")
        for arguments in (
            (None, context, function, (1,), print),
            (loop, context, function, (1,), None),
            (loop, 5, function, (1,), print),
        ):
            with pytest.raises(InvalidArgumentError):
                async_invoke(*arguments)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="timeout"):
            async_invoke(loop, context, function, (1,), lambda *_: pytest.fail("called back"), timeout="soon")  # type: ignore[arg-type]
        assert is_idle(context)


def test_the_timeout_counts_the_wait_for_a_turn(loop: Loop) -> None:
    with context_of(lambda value: Wait([Event()], resume=lambda _: value)) as context:
        state = InvokeState()
        begin_invoke(state, context, context.lookup("program.call"), (1,))
        _, told = start(loop, context, timeout=0.03)
        assert isinstance(told.error, DeadlineExceededError)
        until(lambda: context.gate.in_flight == 1)
        abort_invoke(state)
        assert is_idle(context)


# -- cancel ------------------------------------------------------------------------------------------


def test_cancel_while_suspended(threaded: Loop) -> None:
    event = Event()

    class Held:
        pass

    held = Held()
    alive = weakref.ref(held)
    holding = [held]
    del held

    def call(value: int) -> Wait:
        mine = holding.pop()
        return Wait([event], resume=lambda _: (mine, value)[1])

    with context_of(call) as context:
        run, told = start(threaded, context)
        until(lambda: event.has_listeners)
        assert alive() is not None
        run.cancel()
        run.cancel()
        # At once, whenever the callback comes.
        assert not event.has_listeners and context.gate.in_flight == 0
        until(lambda: alive() is None)  # at once too, unless Python without the GIL defers it to the loop's thread
        assert isinstance(told.error, CancelledError)
        event.set()
        until(lambda: is_idle(context))
        run.cancel()
        assert len(told.calls) == 1


def test_cancel_while_queued_for_a_turn(threaded: Loop) -> None:
    gate = Event()
    with context_of(lambda value: Wait([gate], resume=lambda _: value)) as context:
        _, first = start(threaded, context, inputs=(1,))
        until(lambda: gate.has_listeners)
        run, second = start(threaded, context, inputs=(2,))
        _, third = start(threaded, context, inputs=(3,))
        until(lambda: len(context.gate.waiting) == 2)
        run.cancel()
        assert isinstance(second.error, CancelledError)
        assert not first.calls and not third.calls
        gate.set()
        assert first.outputs == (1,) and third.outputs == (3,)
        until(lambda: is_idle(context))


@pytest.mark.parametrize("name", ["program.call_and_loop", "program.yields_for_ever"])
def test_cancel_in_an_endless_loop(loop: Loop, name: str) -> None:
    entered = threading.Event()
    with context_of(lambda value: (entered.set(), value)[1]) as context:
        pool = concurrent.futures.ThreadPoolExecutor(1)
        with pool:
            starting = pool.submit(start, loop, context, name)
            if name == "program.call_and_loop":
                assert entered.wait(LONG)
            until(lambda: context.gate.in_flight == 1)
            (run,) = context.invocations
            run.abort(CancelledError("by hand"))  # type: ignore[attr-defined]
            _, told = starting.result(LONG)
            assert isinstance(told.error, CancelledError)
        until(lambda: is_idle(context))
        assert not loop.is_closed
        _, told = start(loop, context)
        assert told.outputs == (5,)


def test_cancel_in_a_native_function_comes_behind_it(threaded: Loop) -> None:
    entered, leave = threading.Event(), threading.Event()

    def call(value: int) -> Wait:
        entered.set()
        assert leave.wait(LONG)
        return Wait([Event()], resume=lambda _: value)

    with context_of(call) as context:
        run, told = start(threaded, context)
        assert entered.wait(LONG)
        run.cancel()
        assert not told.calls
        leave.set()
        assert isinstance(told.error, CancelledError)
        until(lambda: is_idle(context))


def test_cancel_before_the_first_step() -> None:
    with context_of(lambda value: pytest.fail("it ran")) as context, QueueLoop() as loop:
        run, told = start(loop, context)
        run.cancel()
        assert not told.calls
        loop.run()
        assert isinstance(told.error, CancelledError) and is_idle(context)


def test_cancel_against_finish(threaded: Loop) -> None:
    outcomes = {"ok": 0, "cancelled": 0}
    with context_of(lambda value: Wait([events[value]], resume=lambda _: value)) as context:
        events = [Event() for _ in range(200)]
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            for n, event in enumerate(events):
                run, told = start(threaded, context, inputs=(n,))
                if n % 2:
                    until(lambda event=event: event.has_listeners)  # type: ignore[misc]
                barrier = threading.Barrier(2)
                setting = pool.submit(lambda barrier=barrier, event=event: (barrier.wait(LONG), event.set()))
                barrier.wait(LONG)
                run.cancel()
                setting.result()
                error, outputs = told.wait()
                if error is None:
                    assert outputs == (n,)
                    outcomes["ok"] += 1
                else:
                    assert isinstance(error, CancelledError)
                    outcomes["cancelled"] += 1
                assert not event.has_listeners
        until(lambda: is_idle(context))
        assert not threaded.is_closed
    assert sum(outcomes.values()) == 200


def test_cancel_against_every_kind_of_step(threaded: Loop) -> None:
    with context_of() as context:
        tolds = []
        for n in range(200):
            run, told = start(
                threaded,
                context,
                ["program.yields_once", "program.call", "program.call_and_loop", "program.fails"][n % 4],
            )
            tolds.append(told)
            if n % 4 == 2 or n % 3:
                run.cancel()
        for told in tolds:
            told.wait()
        until(lambda: is_idle(context))
        assert all(len(told.calls) == 1 for told in tolds) and not threaded.is_closed
        assert start(threaded, context)[1].outputs == (5,)


# -- the end of a loop -------------------------------------------------------------------------------


def test_a_loop_that_was_closed_before(loop: Loop) -> None:
    loop.close()
    with context_of(lambda value: pytest.fail("it ran")) as context:
        _, told = start(loop, context)
        assert told.threads == [threading.get_ident()]  # before it returned
        assert isinstance(told.error, AbortedError) and is_idle(context)


def test_a_loop_that_is_closed_during(threaded: Loop) -> None:
    event = Event()
    with context_of(lambda value: Wait([event], resume=lambda _: value)) as context:
        tolds = [start(threaded, context, inputs=(n,))[1] for n in range(4)]
        until(lambda: event.has_listeners and len(context.gate.waiting) == 3)
        threaded.close()
        for told in tolds:
            assert isinstance(told.error, AbortedError) and "closed" in str(told.error)
        assert is_idle(context) and not event.has_listeners
        event.set()
        assert [len(told.calls) for told in tolds] == [1] * 4
        assert threaded.is_closed and threaded.failure is None


def test_a_loop_that_is_closed_in_the_middle_of_a_step(threaded: Loop) -> None:
    entered = threading.Event()
    with context_of(lambda value: (entered.set(), value)[1]) as context:
        _, told = start(threaded, context, "program.call_and_loop")
        assert entered.wait(LONG)
        threaded.close()
        assert isinstance(told.error, AbortedError)
        until(lambda: is_idle(context))


def test_a_loop_that_is_closed_after(loop: Loop) -> None:
    with context_of() as context:
        _, told = start(loop, context)
        told.wait()
        loop.close()
        loop.close()
        assert told.outputs == (5,) and is_idle(context)


def test_a_loop_that_is_closed_by_a_callback(loop: Loop) -> None:
    with context_of(lambda value: Wait([Event()], resume=lambda _: value) if value == 1 else value) as context:
        other = Told()
        if not isinstance(loop, InlineLoop):
            _, other = start(loop, context, inputs=(1,))
            until(lambda: context.gate.in_flight == 1)
        told = Told()

        def callback(loop: Loop, error: Exception | None, outputs: tuple[Any, ...] | None) -> None:
            loop.close()
            told(loop, error, outputs)

        with context_of() as second:
            async_invoke(loop, second, second.lookup("program.call"), (5,), callback)
            assert told.outputs == (5,)
            if not isinstance(loop, InlineLoop):
                assert isinstance(other.error, AbortedError)
            until(lambda: is_idle(context) and is_idle(second))


def test_a_loop_whose_queue_is_never_run_again() -> None:
    loop = QueueLoop()
    with context_of(lambda value: Wait([Event()], resume=lambda _: value)) as context:
        _, queued = start(loop, context)
        _, begun = start(loop, context, "program.yields_for_ever")
        loop.queue.popleft()()
        _, waiting = start(loop, context)
        assert len(loop.queue) == 2
        loop.close()
        assert loop.stopped == 1
        for told in (queued, begun, waiting):
            assert isinstance(told.error, AbortedError)
        assert is_idle(context)
        loop.run()  # late, and to no effect
        assert all(len(told.calls) == 1 for told in (queued, begun, waiting)) and is_idle(context)


@pytest.mark.parametrize("raised", [ValueError("by hand"), NotFoundError("by hand")])
@pytest.mark.parametrize("inputs", [(5,), ("bad",)])
def test_a_callback_that_raises_ends_the_loop(
    loop: Loop, raised: Exception, inputs: Any, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[object] = []

    def callback(loop: Loop, error: Exception | None, outputs: tuple[Any, ...] | None) -> None:
        calls.append(error)
        raise raised

    if isinstance(loop, OwnAsyncioLoop):
        loop.loop.call_soon_threadsafe(
            loop.loop.set_exception_handler, lambda loop, context: calls.append(context["exception"])
        )
    event = Event()
    with context_of(lambda value: Wait([event], resume=lambda _: value)) as context, context_of() as second:
        others = []
        if not isinstance(loop, InlineLoop):
            others = [start(loop, context, inputs=(n,))[1] for n in range(3)]
            until(lambda: len(context.gate.waiting) == 2 and event.has_listeners)
        async_invoke(loop, second, second.lookup("program.call"), inputs, callback)
        until(lambda: loop.is_closed)
        assert loop.failure is raised and "failed" in repr(loop)
        for told in others:
            assert isinstance(told.error, AbortedError)
            assert "a callback raised" in str(told.error) and "by hand" in str(told.error)
        until(lambda: is_idle(context) and is_idle(second))
        assert isinstance(start(loop, context)[1].error, AbortedError)
        if isinstance(loop, OwnAsyncioLoop):
            until(lambda: len(calls) == 2)
            assert calls[1] is raised
        else:
            assert len(calls) == 1
    assert "ends the loop" in caplog.text


def test_a_callback_that_raises_after_the_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with context_of() as context, InlineLoop() as loop:
        loop.close()
        async_invoke(loop, context, context.lookup("program.call"), (5,), lambda *_: 1 // 0)
        assert "had ended raised" in caplog.text and loop.failure is None and is_idle(context)


@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt])
def test_a_program_that_raises_what_is_no_exception(raised: type[BaseException]) -> None:
    """``sys.exit()`` in a native function takes no thread with it unseen: everybody is called back."""

    def call(value: int) -> Any:
        if value == 1:
            raise raised
        return Wait([Event()], resume=lambda _: value)

    with context_of(call) as context, context_of(call) as second:
        with InlineLoop() as inline:
            told = Told()
            with pytest.raises(raised):
                async_invoke(inline, context, context.lookup("program.call"), (1,), told)
            assert told.error is not None and is_idle(context)
        with ThreadLoop() as loop:
            _, waiting = start(loop, second, inputs=(2,))
            until(lambda: second.gate.in_flight == 1)
            _, told = start(loop, context, inputs=(1,))
            assert told.error is not None
            assert isinstance(waiting.error, AbortedError) and isinstance(loop.failure, raised)
            until(lambda: is_idle(context) and is_idle(second))


def test_asyncios_cancellation_in_a_program_is_an_error(threaded: Loop) -> None:
    def call(value: int) -> int:
        raise asyncio.CancelledError

    with context_of(call) as context:
        _, told = start(threaded, context)
        assert isinstance(told.error, CancelledError) and not threaded.is_closed
        until(lambda: is_idle(context))


@pytest.mark.slow
def test_closing_against_starting() -> None:
    for kind in THREADED:
        for _ in range(30):
            loop = THREADED[kind]()
            with context_of() as context, concurrent.futures.ThreadPoolExecutor(1) as pool:
                barrier = threading.Barrier(2)
                closing = pool.submit(lambda barrier=barrier, loop=loop: (barrier.wait(LONG), loop.close()))
                barrier.wait(LONG)
                tolds = [start(loop, context, "program.yields_once")[1] for _ in range(5)]
                closing.result(LONG)
                for told in tolds:
                    error, outputs = told.wait()
                    assert outputs == (5,) or isinstance(error, AbortedError)
                until(lambda context=context: is_idle(context))  # type: ignore[misc]


@pytest.mark.slow
def test_a_thread_loop_that_is_dropped_ends_its_thread() -> None:
    loop = ThreadLoop("dropped")
    with context_of() as context:
        told = start(loop, context)[1]
        told.wait()
        until(lambda: is_idle(context))
    (thread,) = [entry for entry in threading.enumerate() if entry.name == "dropped"]
    told.calls.clear()
    del loop
    gc.collect()
    thread.join(LONG)
    assert not thread.is_alive()


def test_a_thread_loop_has_no_thread_before_its_first_callback() -> None:
    before = threading.active_count()
    loop = ThreadLoop()
    assert threading.active_count() == before
    loop.close()


def test_loops_call_what_is_scheduled_once(loop: Loop) -> None:
    told: list[PumiceError | None] = []
    for _ in range(10):
        loop.call(told.append)
    until(lambda: len(told) == 10)
    loop.close()
    loop.call(told.append)
    assert told[:10] == [None] * 10 and isinstance(told[10], AbortedError)


def test_an_inline_loop_does_not_grow_the_hosts_stack() -> None:
    depth: list[int] = []
    left = [3 * sys.getrecursionlimit()]

    with context_of() as context, InlineLoop() as loop:
        function = context.lookup("program.call")

        def again(loop: Loop, error: Exception | None, outputs: tuple[Any, ...] | None) -> None:
            assert error is None
            left[0] -= 1
            if left[0]:
                async_invoke(loop, context, function, (1,), again)

        async_invoke(loop, context, function, (1,), again)
        assert left == [0] and is_idle(context) and not depth


# -- asyncio -----------------------------------------------------------------------------------------


def test_asyncio_run() -> None:
    events = [Event() for _ in range(3)]

    async def main(context: Context) -> list[object]:
        loop = AsyncioLoop()
        here = threading.get_ident()
        done: asyncio.Queue[tuple[int, Exception | None, object]] = asyncio.Queue()

        def callback(loop: Loop, error: Exception | None, outputs: tuple[Any, ...] | None) -> None:
            assert threading.get_ident() == here
            done.put_nowait((len(events), error, outputs))

        for n in range(3):
            async_invoke(loop, context, context.lookup("program.call"), (n,), callback)
        for event in reversed(events):
            await asyncio.sleep(0.001)
            event.set()
        return [(await done.get())[2] for _ in range(3)]

    with context_of(lambda value: Wait([events[value]], resume=lambda _: value), concurrent=True) as context:
        assert asyncio.run(main(context)) == [(2,), (1,), (0,)]
        assert is_idle(context)


@pytest.mark.parametrize("state", ["queued", "waiting", "yielding"])
def test_asyncio_that_shuts_down_aborts_what_is_pending(state: str) -> None:
    tolds: list[Told] = []
    event = Event()

    async def main(context: Context) -> None:
        loop = AsyncioLoop()
        for _ in range(3):
            tolds.append(start(loop, context, "program.yields_for_ever" if state == "yielding" else "program.call")[1])
        if state != "queued":
            await asyncio.sleep(0.02)

    with context_of(lambda value: Wait([event], resume=lambda _: value)) as context:
        asyncio.run(main(context))
        for told in tolds:
            assert isinstance(told.error, AbortedError)
        assert is_idle(context) and not event.has_listeners
        event.set()
        assert [len(told.calls) for told in tolds] == [1] * 3


def test_asyncio_that_is_closed_without_a_word() -> None:
    event = Event()
    asyncio_loop = asyncio.new_event_loop()
    loop = AsyncioLoop(asyncio_loop)
    with context_of(lambda value: Wait([event], resume=lambda _: value)) as context:
        _, waiting = start(loop, context)
        asyncio_loop.run_until_complete(asyncio.sleep(0.001))
        _, queued = start(loop, context)
        asyncio_loop.close()
        assert not waiting.calls and not queued.calls
        event.set()  # which finds the loop closed
        assert isinstance(waiting.error, AbortedError) and isinstance(queued.error, AbortedError)
        assert isinstance(start(loop, context)[1].error, AbortedError)
        assert is_idle(context)


def test_an_asyncio_loop_needs_a_loop() -> None:
    with pytest.raises(FailedPreconditionError, match="no asyncio loop is running"):
        AsyncioLoop()
    with pytest.raises(InvalidArgumentError, match="loop is an asyncio loop"):
        AsyncioLoop(5)  # type: ignore[arg-type]


def test_a_task_of_asyncios_is_awaited_in_a_native_function() -> None:
    async def main() -> None:
        async def work(value: int) -> int:
            await asyncio.sleep(0.001)
            if value == 1:
                raise UnavailableError("down")
            if value == 2:
                raise asyncio.CancelledError
            return value * 2

        async def call(value: int) -> int:
            return int(await AsyncioSource(loop.create_task(work(value))))

        loop = asyncio.get_running_loop()
        with context_of(call) as context:
            run = AsyncioLoop()
            results = []
            for value in (5, 1, 2):
                invocation = Invocation.create(context, context.lookup("program.call"), (value,), loop=run)
                try:
                    results.append(await invocation)
                except PumiceError as error:
                    results.append(error.code)
            assert results == [(10,), StatusCode.UNAVAILABLE, StatusCode.CANCELLED]
            assert is_idle(context)

    asyncio.run(main())


# -- Invocation --------------------------------------------------------------------------------------


@pytest.fixture(params=[None, *THREADED])
def where(request: pytest.FixtureRequest) -> Iterator[Loop | None]:
    """A loop, or the context's own."""
    if request.param is None:
        yield None
        return
    with loop_of(request.param) as made:
        yield made


def create(context: Context, value: Any = 5, name: str = "program.call", **options: Any) -> Invocation:
    return Invocation.create(context, context.lookup(name), (value,), **options)


def test_an_invocation_through_its_states(where: Loop | None) -> None:
    event = Event()
    with context_of(lambda value: Wait([event], resume=lambda _: value + 1)) as context:
        invocation = create(context, loop=where)
        assert (invocation.query_status(), invocation.done()) == (StatusCode.DEFERRED, False)
        assert invocation.outputs is None and invocation.error is None
        assert repr(invocation) == "<Invocation, DEFERRED>"
        start_ = time.monotonic()
        for deadline in (start_ + 0.02, start_ - 1):
            assert invocation.wait(deadline) is StatusCode.DEADLINE_EXCEEDED
        with pytest.raises(DeadlineExceededError):
            invocation.result(0.01)
        assert invocation.query_status() is StatusCode.DEFERRED and not invocation.done()
        event.set()
        assert invocation.wait(start_ + LONG) is StatusCode.OK
        assert invocation.query_status() is StatusCode.OK and invocation.done()
        assert invocation.outputs == (6,) and invocation.error is None
        assert invocation.result() == invocation.result(0) == (6,)
        assert invocation.wait() is invocation.wait(start_ - 1) is StatusCode.OK
        until(lambda: is_idle(context))


@pytest.mark.parametrize(
    ("name", "value", "code", "error"),
    [
        ("program.fails", 1, StatusCode.INVALID_ARGUMENT, InvalidArgumentError),
        ("program.call", "x", StatusCode.INVALID_ARGUMENT, InvalidArgumentError),
        ("program.call", 0, StatusCode.UNKNOWN, ZeroDivisionError),
        ("program.call", 1, StatusCode.NOT_FOUND, NotFoundError),
    ],
)
def test_an_invocation_that_fails(
    where: Loop | None, name: str, value: Any, code: StatusCode, error: type[Exception]
) -> None:
    def call(value: int) -> int:
        if value:
            raise NotFoundError("no such thing")
        return 1 // 0

    with context_of(call) as context:
        invocation = create(context, value, name, loop=where)
        assert invocation.wait(time.monotonic() + LONG) is code
        assert invocation.query_status() is code and invocation.outputs is None
        assert type(invocation.error) is error
        for _ in range(2):
            with pytest.raises(error):
                invocation.result(LONG)
        until(lambda: is_idle(context))


def test_its_own_timeout_is_told_from_the_callers(where: Loop | None) -> None:
    with context_of(lambda value: Wait([Event()], resume=lambda _: value)) as context:
        invocation = create(context, loop=where, timeout=0.03)
        assert invocation.wait() is StatusCode.DEADLINE_EXCEEDED and invocation.done()
        assert invocation.query_status() is StatusCode.DEADLINE_EXCEEDED
        until(lambda: is_idle(context))


def test_a_cancelled_invocation(where: Loop | None) -> None:
    event = Event()
    with context_of(lambda value: Wait([event], resume=lambda _: value)) as context:
        invocation = create(context, loop=where)
        until(lambda: event.has_listeners)
        invocation.cancel()
        assert invocation.wait(time.monotonic() + LONG) is StatusCode.CANCELLED
        with pytest.raises(CancelledError):
            invocation.result()
        event.set()
        invocation.cancel()
        assert invocation.query_status() is StatusCode.CANCELLED
        until(lambda: is_idle(context))


def test_cancel_is_nothing_where_it_is_done(where: Loop | None) -> None:
    with context_of() as context:
        invocation = create(context, loop=where)
        assert invocation.result(LONG) == (5,)
        invocation.cancel()
        assert invocation.query_status() is StatusCode.OK and invocation.outputs == (5,)


def test_an_aborted_invocation() -> None:
    with context_of(lambda value: Wait([Event()], resume=lambda _: value)) as context:
        loop = ThreadLoop()
        invocation = create(context, loop=loop)
        loop.close()
        assert invocation.query_status() is StatusCode.ABORTED
        with pytest.raises(AbortedError):
            invocation.result()
        late = create(context, loop=loop)
        assert late.query_status() is StatusCode.ABORTED
        assert is_idle(context)


def test_create_refuses_what_makes_no_invocation() -> None:
    with context_of() as context, context_of() as other:
        function = context.lookup("program.call")
        with pytest.raises(FailedPreconditionError, match="another context"):
            Invocation.create(other, function, (1,))
        for arguments in ((None, function), (context, "program.call")):
            with pytest.raises(InvalidArgumentError):
                Invocation.create(*arguments, (1,))  # type: ignore[arg-type]
        for options in ({"loop": 5}, {"policy": 5}, {"timeout": "soon"}):
            with pytest.raises(InvalidArgumentError):
                Invocation.create(context, function, (1,), **options)  # type: ignore[arg-type]
        assert is_idle(context) and is_idle(other)


def test_done_callbacks_before_and_after(where: Loop | None, caplog: pytest.LogCaptureFixture) -> None:
    event = Event()
    told: list[Invocation] = []
    with context_of(lambda value: Wait([event], resume=lambda _: value)) as context:
        invocation = create(context, loop=where)
        invocation.add_done_callback(told.append)
        invocation.add_done_callback(lambda _: 1 // 0)
        invocation.add_done_callback(told.append)
        assert told == []
        event.set()
        assert invocation.result(LONG) == (5,)
        until(lambda: len(told) == 2)
        assert told == [invocation] * 2 and "a notification's callback raised" in caplog.text
        invocation.add_done_callback(told.append)
        assert len(told) == 3  # at once
        with pytest.raises(InvalidArgumentError):
            invocation.add_done_callback(5)  # type: ignore[arg-type]
        until(lambda: is_idle(context))
        assert where is None or not where.is_closed
        told.clear()


def test_await_an_invocation() -> None:
    async def main(context: Context) -> None:
        assert await create(context, 5) == (5,)
        assert await create(context, 5, loop=AsyncioLoop()) == (5,)
        with pytest.raises(NotFoundError):
            await create(context, 1)
        results = await asyncio.gather(*[as_coroutine(create(context, n)) for n in range(10, 20)])
        assert results == [(n,) for n in range(10, 20)]
        done = create(context, 7)
        done.wait()
        assert await done == await done == (7,)

    async def as_coroutine(invocation: Invocation) -> object:
        return await invocation

    def call(value: int) -> int:
        if value == 1:
            raise NotFoundError("no such thing")
        return value

    with context_of(call) as context:
        asyncio.run(main(context))
        until(lambda: is_idle(context))


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_a_cancelled_task_cancels_its_invocation(own: bool, how: str) -> None:
    event = Event()

    async def main(context: Context) -> Invocation:
        invocation = create(context, loop=AsyncioLoop() if own else None)

        async def awaiting() -> object:
            return await invocation

        if how == "timeout":
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.03):
                    await invocation
        else:
            task = asyncio.create_task(awaiting())
            await asyncio.sleep(0)  # one that never began cancels nothing
            while not event.has_listeners:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        for _ in range(1000):
            if invocation.done():
                break
            await asyncio.sleep(0.001)
        return invocation

    with context_of(lambda value: Wait([event], resume=lambda _: value)) as context:
        assert asyncio.run(main(context)).query_status() is StatusCode.CANCELLED
        assert not event.has_listeners
        until(lambda: is_idle(context))


@pytest.mark.parametrize("style", ["wait", "coroutine"])
@pytest.mark.parametrize("fails", [False, True])
def test_an_invocation_is_a_wait_source_of_another_contexts_function(style: str, fails: bool) -> None:
    event = Event()

    def inner_call(value: int) -> Wait:
        return Wait([event], resume=lambda _: 1 // 0 if fails else value * 10)

    with context_of(inner_call) as inner:

        def with_wait(value: int) -> Wait:
            invocation = create(inner, value)
            return Wait([invocation], resume=lambda error: -1 if invocation.error else invocation.outputs[0] + 1)

        async def with_await(value: int) -> int:
            try:
                return int((await create(inner, value))[0]) + 1
            except ZeroDivisionError:
                return -1

        with context_of(with_wait if style == "wait" else with_await) as outer:
            invocation = create(outer)
            until(lambda: event.has_listeners)
            event.set()
            assert invocation.result(LONG) == ((-1,) if fails else (51,))
            until(lambda: is_idle(inner) and is_idle(outer))


def test_a_cancelled_coroutine_cancels_the_invocation_that_it_awaits() -> None:
    event = Event()
    with context_of(lambda value: Wait([event], resume=lambda _: value)) as inner:
        made: list[Invocation] = []

        async def call(value: int) -> int:
            made.append(create(inner, value))
            return int((await made[0])[0])

        with context_of(call) as outer:
            invocation = create(outer)
            until(lambda: event.has_listeners)
            invocation.cancel()
            assert invocation.wait(time.monotonic() + LONG) is StatusCode.CANCELLED
            assert made[0].wait(time.monotonic() + LONG) is StatusCode.CANCELLED
            until(lambda: is_idle(inner) and is_idle(outer))


@pytest.mark.slow
def test_an_invocation_outlives_the_references_to_it(where: Loop | None) -> None:
    event, ran = Event(), threading.Event()
    with context_of(lambda value: Wait([event], resume=lambda _: (ran.set(), value)[1])) as context:
        alive = weakref.ref(create(context, loop=where))
        until(lambda: event.has_listeners)
        gc.collect()
        assert alive() is not None and len(context.invocations) == 1
        event.set()
        assert ran.wait(LONG)
        until(lambda: is_idle(context))
        until(lambda: (gc.collect(), alive() is None)[1])


@pytest.mark.slow
def test_outputs_live_as_long_as_the_invocation() -> None:
    class Held:
        pass

    host = NativeModule("host")
    host.function("make", "0v_r")(Held)
    with Context([host]) as context:
        invocation = Invocation.create(context, context.lookup("host.make"))
        alive = weakref.ref(invocation.result(LONG)[0])
        gc.collect()
        assert alive() is not None
        until(lambda: is_idle(context))
        del invocation
        until(lambda: (gc.collect(), alive() is None)[1])


def test_an_invocation_and_a_synchronous_call_in_turn() -> None:
    with context_of() as context:
        function = context.lookup("program.yields_once")
        for n in range(200):
            assert create(context, n, "program.yields_once").result(LONG) == (n,)
            assert invoke(context, function, (n,)) == (n,)
            assert invoke(context, function, (n,), policy=FIFO) == (n,)
        until(lambda: is_idle(context))


def test_many_waiters_of_one_invocation() -> None:
    event = Event()
    with (
        context_of(lambda value: Wait([event], resume=lambda _: value)) as context,
        concurrent.futures.ThreadPoolExecutor(8) as pool,
    ):
        invocation = create(context)
        results = [pool.submit(invocation.result, LONG) for _ in range(8)]
        event.set()
        assert [result.result(LONG) for result in results] == [(5,)] * 8


def test_closing_a_context_against_its_invocations() -> None:
    for _ in range(100):
        context = context_of()
        invocations = [create(context, n, "program.yields_once") for n in range(5)]
        context.close()
        for n, invocation in enumerate(invocations):
            status = invocation.wait(time.monotonic() + LONG)
            assert status is StatusCode.ABORTED or invocation.outputs == (n,)
        assert is_idle(context)


def test_closing_a_context_against_a_step_that_suspends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its driver gives the turn back only some time after the thread has left the step."""
    monkeypatch.setattr(Guard, "enter", lambda *_: None)  # the step is over before the watchdog looks
    entered, event = threading.Event(), Event()

    class SlowLoop(ThreadLoop):
        def wait(self, *arguments: Any) -> Any:
            time.sleep(0.05)
            return super().wait(*arguments)

    def call(_: int) -> Wait:
        entered.set()
        until(lambda: any(run.ending is not None for run in context.invocations))
        return Wait([event], resume=lambda _: 0)

    with SlowLoop() as loop:
        context = context_of(call)
        _, told = start(loop, context, "host.call")
        assert entered.wait(LONG)
        context.close()
        assert isinstance(told.error, AbortedError) and not event.has_listeners
        until(lambda: is_idle(context))


def test_waiting_in_the_thread_that_an_invocation_needs_is_refused() -> None:
    threaded = ThreadLoop()
    outer, module = Context(), NativeModule("m")
    said: list[str] = []
    begun: list[Invocation] = []

    @module.function("inner", "0v_v")
    def inner() -> None:
        return None

    @module.function("waits", "0v_v")
    def waits() -> None:
        begun.append(Invocation.create(outer, outer.lookup("m.inner"), loop=threaded))
        with pytest.raises(FailedPreconditionError, match="would never end") as caught:
            begun[0].result()
        said.append(caught.value.message)

    outer.add(module)
    # In a function of the same context, and in the loop's own thread.
    outer.invoke(outer.lookup("m.waits"), ())
    assert begun[0].result(60) == ()
    done = threading.Event()

    def in_the_loop(error: PumiceError | None) -> None:
        other = Invocation.create(outer, outer.lookup("m.inner"), loop=threaded)
        with pytest.raises(FailedPreconditionError, match="would never end"):
            other.wait()
        begun.append(other)
        done.set()

    threaded.call(in_the_loop)
    assert done.wait(60)
    assert begun[1].result(60) == ()
    assert len(said) == 1
    outer.close()
    threaded.close()


def test_a_contexts_loop_that_failed_is_replaced() -> None:
    context, module = Context(), NativeModule("m")

    @module.function("one", "0v_i")
    def one() -> int:
        return 1

    context.add(module)
    first = context.loop
    first.close()
    assert Invocation.create(context, context.lookup("m.one")).result(60) == (1,)
    assert context.loop is not first
    context.close()


@pytest.mark.parametrize("inputs", [lambda: (1,), print])
def test_inputs_that_are_a_function_are_refused(inputs: Any) -> None:
    context, module = Context(), NativeModule("m")
    module.function("one", "0i_i")(lambda value: value)
    context.add(module)
    with pytest.raises(InvalidArgumentError, match="a sequence of values"):
        Invocation.create(context, context.lookup("m.one"), inputs)
    with pytest.raises(InvalidArgumentError, match="a sequence of values"):
        async_invoke(InlineLoop(), context, context.lookup("m.one"), inputs, lambda *_: None)
    context.close()


def test_a_loop_of_ones_own_has_to_post() -> None:
    class Unfinished(Loop):
        pass

    with pytest.raises(TypeError, match="_post"):
        Unfinished()  # type: ignore[abstract]


@pytest.mark.parametrize("others", [False, True])
def test_an_outcome_does_not_wait_for_the_next_step_of_its_thread(others: bool) -> None:
    module, ended = NativeModule("m"), threading.Event()
    module.function("quick", "0v_i")(lambda: 3)
    module.function("long", "0v_i")(lambda: int(ended.wait(10)))
    context = Context([module], concurrent=True)

    async def main() -> None:
        with ThreadLoop() as loop:
            held = threading.Event()
            loop.call(lambda _: held.wait())
            quick, long = (
                Invocation.create(context, context.lookup(f"m.{one}"), loop=loop) for one in ("quick", "long")
            )
            asyncio.get_running_loop().call_soon(held.set)
            waiting = asyncio.gather(long) if others else None
            assert await quick == (3,)  # the thread is in ``long`` now
            assert not long.done()
            ended.set()
            assert await (waiting or long) == ([(1,)] if others else (1,))

    asyncio.run(main())
    context.close()


def test_one_wake_up_tells_many_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    module = NativeModule("m")
    module.function("quick", "0v_i")(lambda: 3)
    context = Context([module], concurrent=True)
    wakes: list[object] = []

    async def main() -> None:
        with ThreadLoop() as loop:
            running, held = asyncio.get_running_loop(), threading.Event()
            soon = running.call_soon_threadsafe
            monkeypatch.setattr(running, "call_soon_threadsafe", lambda *args: (wakes.append(args), soon(*args)))
            loop.call(lambda _: held.wait())
            calls = [Invocation.create(context, context.lookup("m.quick"), loop=loop) for _ in range(20)]
            running.call_later(0.001, held.set)
            assert await asyncio.gather(*calls) == [(3,)] * 20
            monkeypatch.undo()

    asyncio.run(main())
    assert len(wakes) < 10
    context.close()
