"""Streams of calls: their order, how many are in flight, and what becomes of the rest when one ends early."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.runtime.async_calls import Host, is_idle, leaves_nothing, load, objects, run_on, until

import pumice
from pumice.status import InvalidArgumentError

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("on_both")]
CHAIN = Path(__file__).parents[3] / "examples" / "chain"


@pytest.fixture(params=["asyncio", "uvloop"])
def kind(request: pytest.FixtureRequest) -> str:
    """The event loop."""
    return str(request.param)


@pytest.fixture
def session(device: pumice.Device) -> Iterator[pumice.Session]:
    """A concurrent one: calls of another follow each other, and would come in order by themselves."""
    with pumice.Session(device, options=pumice.SessionOptions(concurrent=True)) as made:
        yield made


@pytest.fixture
def host(session: pumice.Session) -> Host:
    return load(session)


def test_results_come_in_the_order_of_the_calls(kind: str, session: pumice.Session, host: Host) -> None:
    gated = session.lookup("host.gated")

    async def main() -> None:
        async def open_backwards() -> None:
            await until(lambda: host.now == 4)
            for index in (3, 2, 1, 0, 7, 6, 5, 4):
                host.open(index)

        opening = asyncio.create_task(open_backwards())
        assert [y async for y in gated.stream(range(8), depth=4)] == list(range(8))
        await opening
        # Tuples are several arguments.
        both = session.lookup("program.both")
        x = np.ones(4, np.float32)
        assert [n async for n, _ in both.stream([(x, 1), (x, 2)])] == [1, 2]
        assert [y async for y in gated.stream([])] == []

    run_on(kind, main())


def test_results_come_in_the_order_of_the_ends(kind: str, session: pumice.Session, host: Host) -> None:
    async def main() -> None:
        order = [3, 1, 2, 0]
        async with contextlib.aclosing(session.lookup("host.gated").stream(range(4), depth=4, ordered=False)) as stream:
            for index in order:
                host.open(index)
                assert await anext(stream) == index
            with pytest.raises(StopAsyncIteration):
                await anext(stream)

    run_on(kind, main())


class _FailsAtOnce:
    """Its ``__anext__`` raises in the call, not when awaited."""

    def __aiter__(self) -> AsyncIterator[object]:
        return self  # type: ignore[return-value]

    def __anext__(self) -> object:
        raise ValueError("the source failed")


def test_a_source_that_fails_at_once(kind: str, session: pumice.Session, host: Host) -> None:
    """CPython 3.11 ends with a segmentation fault if such an iterator is given to ``anext`` with a default."""
    gated = session.lookup("host.gated")

    async def main() -> None:
        with pytest.raises(ValueError, match="the source failed"):
            async for _ in gated.stream(_FailsAtOnce()):
                pass
        assert [y async for y in gated.stream([])] == []

    run_on(kind, main())


@pytest.mark.sample(7)
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("depth", [1, 3])
def test_the_depth_is_kept(kind: str, session: pumice.Session, host: Host, depth: int, ordered: bool) -> None:
    read = taken = 0

    def calls() -> Iterator[int]:
        nonlocal read
        for index in range(30):
            read += 1
            assert read - taken <= depth, "read ahead"
            yield index

    async def main() -> None:
        nonlocal taken
        results = []

        async def open_each() -> None:
            for index in range(30):
                # As many as may be are under way before one of them ends.
                await until(lambda: host.now == min(depth, 30 - index))
                host.open(index)
                await until(lambda: taken > index)

        opening = asyncio.create_task(open_each())
        async for y in session.lookup("host.gated").stream(calls(), depth=depth, ordered=ordered):
            taken += 1
            results.append(y)
        await opening
        assert results == list(range(30))

    run_on(kind, main())
    assert host.most == depth


@pytest.mark.sample(7)
@pytest.mark.parametrize("how", ["closed", "failed", "source failed", "task cancelled"])
def test_what_ends_early_cancels_the_rest(
    kind: str, how: str, device: pumice.Device, session: pumice.Session, host: Host
) -> None:
    gated = session.lookup("host.gated")

    async def calls() -> AsyncIterator[object]:
        for index in range(100):
            yield index
            if how == "source failed" and index == 2:
                await until(lambda: host.now == 3)
                raise LookupError("no more")
            if how == "failed" and index == 2:
                yield "three"  # no number

    async def consume() -> None:
        async with contextlib.aclosing(gated.stream(calls(), depth=5, ordered=False)) as stream:
            if how == "closed":
                host.open(0)
                assert await anext(stream) == 0
                return
            async for _ in stream:
                raise AssertionError("nothing is open")

    async def scenario() -> None:
        host.close_all()
        if how == "closed":
            await consume()
        elif how == "task cancelled":
            task = asyncio.create_task(consume())
            await until(lambda: host.now == 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            with pytest.raises(LookupError if how == "source failed" else InvalidArgumentError):
                await consume()
        await until(lambda: is_idle(session) and host.now == 0)

    run_on(kind, leaves_nothing(device, scenario))


@pytest.mark.only_vulkan
def test_results_are_let_go_when_they_were_taken(device: pumice.Device, session: pumice.Session) -> None:
    session.load(CHAIN / "smooth.vmfb")
    smooth = session.lookup("smooth.run")
    wave = np.ones(256, np.float32)

    async def main() -> None:
        most = taken = 0
        async for y in smooth.stream([wave] * 60, depth=2):
            del y
            taken += 1
            if taken % 15 == 0:  # a collection takes a quarter of a second in a process that has run many tests
                most = max(most, objects(device).get("allocation", 0))
        assert 0 < most < 30, "the stream keeps what it gave"

    run_on("asyncio", main())


def test_an_asynchronous_source_may_take_its_time(kind: str, session: pumice.Session, host: Host) -> None:
    host.open_all()

    async def main() -> None:
        arguments: asyncio.Queue[int] = asyncio.Queue()

        async def calls() -> AsyncIterator[int]:
            while (index := await arguments.get()) >= 0:
                yield index

        async with contextlib.aclosing(session.lookup("host.gated").stream(calls(), depth=4)) as stream:
            # Results come while the source is waited for.
            for index in range(3):
                arguments.put_nowait(index)
                assert await anext(stream) == index
            arguments.put_nowait(-1)
            with pytest.raises(StopAsyncIteration):
                await anext(stream)

    run_on(kind, main())


@pytest.mark.parametrize("depth", [0, -1, True, 1.5, None])
def test_a_depth_is_a_positive_number(session: pumice.Session, depth: object, host: Host) -> None:
    with pytest.raises(InvalidArgumentError, match="depth is the most calls in flight, at least 1"):
        session.lookup("host.gated").stream([1], depth=depth)  # type: ignore[arg-type]


def test_what_is_no_iterable(session: pumice.Session, host: Host) -> None:
    with pytest.raises(InvalidArgumentError, match="a stream takes an iterable of calls, got int"):
        session.lookup("host.gated").stream(5)  # type: ignore[arg-type]
