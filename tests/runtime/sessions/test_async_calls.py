"""Calls from coroutines: results, errors, cancelling, order, fences, and an event loop that goes on meanwhile.

Streams of calls are in test_call_stream.py, invocations by themselves in tests/vm.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.runtime.async_calls import LONG, is_idle, leaves_nothing, load, run_on, until
from support.runtime.sessions import identity, module

import pumice
from pumice.hal.programs.fence import HalFence
from pumice.status import (
    AbortedError,
    CancelledError,
    ClosedError,
    DeadlineExceededError,
    DeviceLostError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
)
from pumice.vm import CONCURRENT, REFUSE, AsyncioLoop

pytestmark = pytest.mark.vulkan
CHAIN = Path(__file__).parents[3] / "examples" / "chain"
X = np.arange(4, dtype=np.float32)
WAVE = np.sin(np.arange(256, dtype=np.float32))


@pytest.fixture(params=["asyncio", "uvloop"])
def kind(request: pytest.FixtureRequest) -> str:
    """The event loop."""
    return str(request.param)


@pytest.fixture
def concurrent(device: pumice.Device) -> Iterator[pumice.Session]:
    with pumice.Session(device, options=pumice.SessionOptions(concurrent=True)) as made:
        yield made


# -- results and errors ------------------------------------------------------------------------------


def test_results_are_those_of_a_synchronous_call(kind: str, session: pumice.Session) -> None:
    host = load(session)
    host.open_all()
    both = session.lookup("program.both")

    async def main() -> None:
        assert await session.call_async("program.next") == 1
        assert await session.lookup("program.next").call_async() == 2
        assert await session.submit("program.next") == 3
        assert await session.call_async("host.gated", 7) == 7
        count, y = await both.call_async(X, n=5)
        expected, x = both(X, 5)
        assert count == expected == 5
        assert isinstance(y, pumice.DeviceArray) and y.dtype == x.dtype
        np.testing.assert_array_equal(y.numpy(), X)
        np.testing.assert_array_equal((await session.call_async(both, y, 1))[1].numpy(), X)
        np.testing.assert_array_equal((await session.call_async("program.pass", X)).numpy(), X)
        # In the event loop's own thread, where somebody wants that.
        with AsyncioLoop() as loop:
            assert await session.call_async("host.gated", 8, loop=loop) == 8
            np.testing.assert_array_equal((await session.call_async("program.pass", X, loop=loop)).numpy(), X)

    run_on(kind, main())
    assert session.submit("program.next").result(LONG) == 4


def test_errors_come_at_the_await(kind: str, device: pumice.Device, session: pumice.Session) -> None:
    load(session)
    both = session.lookup("program.both")

    async def scenario() -> None:
        # What is wrong with arguments is the call's error, not that of submitting it.
        for arguments, message in (((X,), "got 1"), ((X, 1, 2), "got 3"), ((X.astype(int), 1), "dtype int64")):
            call = both.submit(*arguments)
            with pytest.raises(InvalidArgumentError, match=message):
                await call
            with pytest.raises(InvalidArgumentError, match=message):
                both(*arguments)
        with pytest.raises(InvalidArgumentError, match="wrong"):
            await both.call_async(X, wrong=1)
        with pytest.raises(UnavailableError):
            await session.call_async("program.fails", X)
        with pytest.raises(ValueError, match="no 3"):
            await session.call_async("host.fails", 3)
        with pytest.raises(DeadlineExceededError, match=r"program\.forever was not done within its timeout of 0\.05 s"):
            await session.call_async("program.forever", timeout=0.05)
        with pytest.raises(DeadlineExceededError, match=r"program\.never was not done"):
            await session.call_async("program.never", X, timeout=0.05)
        results = await asyncio.gather(
            *(session.call_async(f"host.{name}", 1, timeout=LONG) for name in ("fails", "fails")),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [ValueError, ValueError]
        await until(lambda: is_idle(session))

    run_on(kind, leaves_nothing(device, scenario))
    with pytest.raises(InvalidArgumentError, match="wait is a fence, one of adaptive, block, spin, or None, got"):
        session.submit("program.pass", X, wait=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="synchronous: it takes no wait and signal fences"):
        session.submit("program.next", signal=HalFence(session.device.hal))
    session.close()
    with pytest.raises(ClosedError):
        both.submit(X, 1)


# -- cancelling --------------------------------------------------------------------------------------


async def by_timeout(call: asyncio.Task[object], ready: Callable[[], bool]) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await call


async def by_task(call: asyncio.Task[object], ready: Callable[[], bool]) -> None:
    await until(ready)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


@pytest.mark.sample(8)
@pytest.mark.parametrize("cancel", [by_timeout, by_task])
@pytest.mark.parametrize("where", ["queued", "fence", "loop", "coroutine", "work"])
def test_cancelling_releases_everything(
    kind: str, where: str, cancel: Callable[..., object], device: pumice.Device, session: pumice.Session
) -> None:
    host = load(session)
    session.load(CHAIN / "smooth.vmfb")
    hal = session.device.hal
    admission = session.context.gate

    async def scenario() -> None:
        host.close_all()
        if where == "queued":
            first = asyncio.create_task(session.call_async("host.gated", 1))
            await until(lambda: host.now == 1)
            second = asyncio.create_task(session.call_async("program.both", X, 5))
            await cancel(second, lambda: len(admission.waiting) == 1)
            await until(lambda: admission.in_flight == 1 and not admission.waiting)
            host.open(1)
            assert await first == 1
        elif where == "loop":
            forever = asyncio.create_task(session.call_async("program.forever"))
            await cancel(forever, lambda: admission.holder is not None)
        elif where == "coroutine":
            await cancel(asyncio.create_task(session.call_async("host.gated", 2)), lambda: host.now == 1)
            await until(lambda: host.now == 0)  # its ``finally`` ran
        else:
            name, x = ("program.pass", X) if where == "fence" else ("smooth.run", WAVE)
            with hal.create_semaphore(0, "mine") as mine:
                call = asyncio.create_task(session.call_async(name, x, wait=pumice.Fence([(mine, 1)])))
                # A compiled function has submitted its work, which waits on the device and is not recalled.
                await cancel(call, lambda: bool(mine.notifications or mine.held))
                await until(lambda: is_idle(session))
                mine.signal(1)
                await asyncio.to_thread(hal.compute_queue.wait_idle)
        await until(lambda: is_idle(session))
        assert await session.call_async("program.both", X, 1)

    run_on(kind, leaves_nothing(device, scenario))


def test_who_cancels_the_invocation_is_told_from_who_cancels_the_task(session: pumice.Session) -> None:
    host = load(session)

    async def main() -> None:
        call = session.submit("host.gated", 1)
        await until(lambda: host.now == 1)
        call.cancel()
        with pytest.raises(CancelledError):
            await call
        assert call.done() and host.closed == 1

    run_on("asyncio", main())


# -- many at once ------------------------------------------------------------------------------------


def test_calls_of_a_concurrent_session_overlap(kind: str, concurrent: pumice.Session) -> None:
    host = load(concurrent)
    concurrent.load(CHAIN / "smooth.vmfb")

    async def main() -> None:
        calls = asyncio.gather(*(concurrent.call_async("host.gated", i) for i in range(50)))
        await until(lambda: host.now == 50)
        host.open_all()
        assert await calls == list(range(50))
        waves = [WAVE * i for i in range(20)]
        results = await asyncio.gather(*(concurrent.call_async("smooth.run", wave) for wave in waves))
        for wave, result in zip(waves, results, strict=True):
            np.testing.assert_allclose(result.numpy(), np.convolve(wave, np.ones(3), "same") / 3, rtol=1e-5, atol=1e-5)

    run_on(kind, main())
    assert host.most == 50


def test_calls_of_an_ordinary_session_follow_each_other(kind: str, session: pumice.Session) -> None:
    host = load(session)
    admission = session.context.gate

    async def main() -> None:
        calls = asyncio.gather(*(session.call_async("host.gated", i) for i in range(20)))
        await until(lambda: len(admission.waiting) == 19 and host.now == 1)
        host.open_all()
        assert await calls == list(range(20))
        assert host.begun == list(range(20)) and host.most == 1
        counts = await asyncio.gather(*(session.call_async("program.next") for _ in range(20)))
        assert counts == list(range(1, 21))

    run_on(kind, main())


def test_policies_and_priorities(session: pumice.Session, concurrent: pumice.Session) -> None:
    host, other = load(session), load(concurrent)
    admission = session.context.gate

    async def main() -> None:
        first = session.submit("host.gated", 0)
        await until(lambda: host.now == 1)
        with pytest.raises(FailedPreconditionError, match="is running another invocation"):
            await session.call_async("host.gated", 9, policy=REFUSE)
        with pytest.raises(FailedPreconditionError, match="was not made for concurrent invocations"):
            await session.call_async("host.gated", 9, policy=CONCURRENT)
        with pytest.raises(FailedPreconditionError):
            session.call("host.gated", 9)  # synchronous calls take no turn
        calls = [session.submit("host.gated", i, policy=pumice.InvocationPolicy(priority=i % 3)) for i in range(1, 7)]
        await until(lambda: len(admission.waiting) == 6)
        host.open_all()
        assert await asyncio.gather(first, *calls) == list(range(7))
        assert host.begun == [0, 2, 5, 1, 4, 3, 6]
        # In a concurrent session those with a policy that is not CONCURRENT take turns among themselves.
        fifo = pumice.InvocationPolicy()
        pair = [concurrent.submit("host.gated", i, policy=fifo) for i in (1, 2)]
        free = concurrent.submit("host.gated", 3)
        await until(lambda: other.now == 2)
        assert sorted(other.begun) == [1, 3]
        other.open_all()
        assert await asyncio.gather(*pair, free) == [1, 2, 3]

    run_on("asyncio", main())


def test_two_event_loops_on_one_session(session: pumice.Session) -> None:
    load(session)
    counts: list[int] = []

    async def main() -> None:
        counts.extend(await asyncio.gather(*(session.call_async("program.next") for _ in range(50))))
        for n in range(10):
            m, y = await session.call_async("program.both", X * n, n)
            assert m == n
            np.testing.assert_array_equal(y.numpy(), X * n)

    threads = [threading.Thread(target=run_on, args=("asyncio", main())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()
    assert sorted(counts) == list(range(1, 101))


# -- fences ------------------------------------------------------------------------------------------


def test_two_programs_chain_without_a_wait_of_the_host(kind: str, session: pumice.Session) -> None:
    session.load(CHAIN / "smooth.vmfb")
    session.load(CHAIN / "energy.vmfb")

    async def main() -> None:
        with session.device.hal.create_semaphore(0, "timeline") as timeline:
            arguments, smoothed, done = (pumice.Fence([(timeline, value)]) for value in (1, 2, 3))
            y = await session.call_async("smooth.run", WAVE, wait=arguments, signal=smoothed)
            energy = await session.call_async("energy.run", y, wait=smoothed, signal=done)
            # Both have returned, and nothing of either has run.
            assert timeline.query() == 0 and not done.query()
            waiting = asyncio.ensure_future(until(lambda: timeline.query() >= 1))
            timeline.signal(1)
            await done
            await waiting
            assert timeline.query() == 3
            expected = np.convolve(WAVE, np.ones(3), "same") / 3
            np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(energy.numpy(), np.sum(expected**2), rtol=1e-4)

    run_on(kind, main())


def test_fences_and_semaphores_are_awaited(kind: str, device: pumice.Device) -> None:
    hal = device.hal

    async def wait(source: object) -> None:
        await source  # type: ignore[misc]

    async def main() -> None:
        with hal.create_semaphore(0, "a") as a, hal.create_semaphore(0, "b") as b:
            both, own = pumice.Fence([(a, 2), (b, 1)]), HalFence(hal)
            tasks = [asyncio.create_task(wait(one)) for one in (a.at(1), both, own)]
            await asyncio.sleep(0)
            threading.Thread(target=a.signal, args=(1,)).start()
            await tasks[0]
            assert not tasks[1].done() and not tasks[2].done()
            a.signal(2)
            b.signal(1)
            own.signal()
            await asyncio.gather(*tasks)
            await both  # what is reached is no wait
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await a.at(3)
            b.fail(UnavailableError("gone"))
            with pytest.raises(UnavailableError, match="gone"):
                await b.at(2)

    run_on(kind, main())


# -- the event loop ----------------------------------------------------------------------------------


class Ticker:
    """Wakes up all the time and notes the longest time that it could not, in seconds."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def __aenter__(self) -> Ticker:
        self._task = asyncio.create_task(self._tick())
        await asyncio.sleep(0.02)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0.005)
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _tick(self) -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.002)
            now = time.monotonic()
            self.longest = max(self.longest, now - last)
            last = now


@pytest.mark.timing
def test_the_event_loop_goes_on_while_a_program_computes(kind: str, session: pumice.Session) -> None:
    host = load(session)

    async def main() -> None:
        # A blocked loop stalls as long as the call takes; one that is not for some milliseconds, as threads take turns
        # each 5. A machine that others keep busy stalls too, but not each time.
        for _ in range(4):
            async with Ticker() as ticker:
                start = time.monotonic()
                host.stop_at = start + 1.2
                assert await session.call_async("program.busy") == 10000
                took = time.monotonic() - start
            print(f"longest stall {ticker.longest * 1e3:.1f} ms in a call of {took:.2f} s")
            assert took > 1
            if ticker.longest < 0.25:
                return
        raise AssertionError("the event loop stood still while a program computed")

    run_on(kind, main())


@pytest.mark.timing
def test_large_arrays_are_copied_in_pieces(session: pumice.Session) -> None:
    """One copy would keep all other threads from running as long as it takes: some 0.2 s here."""
    x = np.ones(48 << 20, np.float32)
    session.append_module(module(identity(f"{x.size}xf32"), "large"))

    async def main() -> None:
        # A machine under load stalls too, but not each time.
        for _ in range(5):
            async with Ticker() as ticker:
                start = time.monotonic()
                y = await session.call_async("large.identity", x)
                took = time.monotonic() - start
            assert y.shape == x.shape
            y.close()
            print(f"longest stall {ticker.longest * 1e3:.1f} ms in a call of {took:.2f} s")
            if ticker.longest < took / 2:
                return
        raise AssertionError("the event loop stood still while an array was copied")

    run_on("asyncio", main())


# -- the end -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["loop", "gated", "work"])
def test_closing_aborts_what_is_in_flight(kind: str, where: str, device: pumice.Device) -> None:
    async def scenario() -> None:
        session = pumice.Session(device)
        host = load(session)
        session.load(CHAIN / "smooth.vmfb")
        with device.hal.create_semaphore(0, "mine") as mine:
            if where == "work":
                fence = pumice.Fence([(mine, 1)])
                calls = [asyncio.create_task(session.call_async("smooth.run", WAVE, wait=fence))]
                await until(lambda: bool(mine.held))
            else:
                name = ("program.forever", ()) if where == "loop" else ("host.gated", (1,))
                calls = [asyncio.create_task(session.call_async(name[0], *name[1]))]
                await until(lambda: session.context.gate.holder is not None)
                calls += [asyncio.create_task(session.call_async("program.next")) for _ in range(3)]
                await until(lambda: len(session.context.invocations) == 4)
            session.close()
            for call in calls:
                with pytest.raises(AbortedError, match="session was closed"):
                    await call
            assert is_idle(session) and host.now == 0
            with pytest.raises(ClosedError):
                await session.call_async("program.next")
            mine.signal(1)
            await asyncio.to_thread(device.hal.compute_queue.wait_idle)
        assert not [thread for thread in threading.enumerate() if thread.name == "pumice-session"]

    run_on(kind, leaves_nothing(device, scenario))


def test_a_lost_device_reaches_everybody(kind: str) -> None:
    before = pumice.live_objects()
    with pumice.open_device() as device, pumice.Session(device) as session:
        load(session)
        hal = device.hal
        mine = hal.create_semaphore(0, "mine")
        fence = pumice.Fence([(mine, 1)])

        async def wait(source: object) -> None:
            await source  # type: ignore[misc]

        async def main() -> None:
            options = pumice.SessionOptions(concurrent=True)
            with pumice.Session(device, options=options) as concurrent:
                load(concurrent)
                concurrent.load(CHAIN / "smooth.vmfb")
                await concurrent.call_async("smooth.run", WAVE)
                tasks = [
                    asyncio.create_task(result)
                    for result in (
                        wait(mine.at(1)),
                        wait(fence),
                        session.call_async("program.pass", X, wait=fence),
                        *(concurrent.call_async("program.pass", X, wait=fence) for _ in range(5)),
                        *(concurrent.call_async("smooth.run", WAVE, wait=fence) for _ in range(5)),
                    )
                ]
                await until(lambda: len(mine.notifications) >= 8)
                assert not any(task.done() for task in tasks)
                real = hal.fn.vkQueueSubmit
                hal.fn.vkQueueSubmit = lambda *_: -4
                try:
                    with pytest.raises(DeviceLostError):
                        hal.compute_queue.barrier()
                finally:
                    hal.fn.vkQueueSubmit = real
                results = await asyncio.gather(*tasks, return_exceptions=True)
                assert [type(result) for result in results] == [DeviceLostError] * len(tasks)
                # What is begun later is told as well.
                with pytest.raises(DeviceLostError):
                    await concurrent.call_async("smooth.run", WAVE)

        run_on(kind, main())
        mine.close()
    assert pumice.live_objects() == before


def test_a_session_that_is_not_concurrent_says_how_it_becomes_so(session: pumice.Session) -> None:
    program = pumice.NativeModule("host")
    program.function("none", "0v_v")(lambda: None)
    session.append_module(program)
    with pytest.raises(FailedPreconditionError, match=r"options=SessionOptions\(concurrent=True\)"):
        session.submit("host.none", policy=CONCURRENT).result(60)
