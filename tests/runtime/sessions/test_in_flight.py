"""Ten thousand invocations in flight at once: on a device's semaphores, and on sources of a user's own."""

from __future__ import annotations

import random
import threading
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from support.soak import SOAK
from support.waiting import until

import pumice
from pumice.hal_vulkan import TimelineSemaphore
from pumice.status import StatusCode
from pumice.vm import (
    Context,
    InlineLoop,
    Invocation,
    InvokeState,
    NativeModule,
    Wait,
    async_invoke,
    begin_invoke,
    end_invoke,
    resume_invoke,
    wait_invoke_async,
)
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.writer import write_module
from pumice.vm.execution.bytecode_module import BytecodeModule

COUNT = 10_000

# The wait is below a function of the program's own, so that a frame with registers is suspended as well.
PROGRAM = """
vm.module @program version 0
vm.import @waits.until cconv "0i_i"
vm.export @main
vm.func @main(%i0: i32) -> (i32) {
^bb0:
  %i1 = vm.call @waits.until(%i0)
  %i2 = vm.add.i32 %i0, %i1
  vm.return %i2
}
"""


class Ready:
    """A user's source: nothing but ``when_ready``."""

    def __init__(self) -> None:
        self.callback: Callable[..., None] | None = None

    def when_ready(self, callback: Callable[..., None]) -> None:
        self.callback = callback

    def fire(self) -> None:
        assert self.callback is not None
        self.callback()


def waiter_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name in ("pumice-device-poll", "pumice-poll")]


def context_of(sources: list[object]) -> Context:
    waits = NativeModule("waits")

    @waits.function("until", "0i_i")
    def until(index: int) -> Wait:
        return Wait((sources[index],), resume=lambda error: index * 2)  # type: ignore[arg-type]

    context = Context(concurrent=True)
    context.add(waits)
    context.add(BytecodeModule.from_bytes(write_module(assemble(PROGRAM))))
    return context


def run_all(context: Context, fire: Callable[[int], None]) -> None:
    """Begins all, fires their sources in random order, checks every result; a soak prints what one takes meanwhile."""
    function = context.lookup("program.main")
    others = len(waiter_threads())  # those that tests before this one needed
    if SOAK:
        tracemalloc.start()
    flight = [Invocation.create(context, function, (index,)) for index in range(COUNT)]
    until(lambda: all(invocation._run is None or invocation._run._armed is not None for invocation in flight))
    if SOAK:
        print(f"\n{COUNT:,} invocations: {tracemalloc.get_traced_memory()[0] / COUNT:,.0f} bytes each while suspended")
        tracemalloc.stop()
    assert all(invocation.query_status() is StatusCode.DEFERRED for invocation in flight)
    assert context.gate.in_flight == COUNT
    assert len(waiter_threads()) - others <= 1, waiter_threads()
    order = list(range(COUNT))
    random.Random(4).shuffle(order)
    for index in order:
        fire(index)
    assert [invocation.result(60) for invocation in flight] == [(index * 3,) for index in range(COUNT)]
    assert len(waiter_threads()) - others <= 1, waiter_threads()
    assert context.gate.in_flight == 0 and not context.invocations


@pytest.fixture
def device() -> Iterator[pumice.Device]:
    with pumice.open_device("vulkan") as opened:
        yield opened


@pytest.mark.vulkan
@pytest.mark.parametrize("semaphores", [1, 100, 10_000] if SOAK else [1, 10_000])
def test_ten_thousand_wait_for_semaphores(device: pumice.Device, semaphores: int) -> None:
    made: list[TimelineSemaphore] = [device.hal.create_semaphore() for _ in range(semaphores)]
    per = COUNT // semaphores
    points = [made[index // per].at(index % per + 1) for index in range(COUNT)]
    left = {one: set(range(1, per + 1)) for one in made}

    def fire(index: int) -> None:
        # A payload only goes up: what is fired is the semaphore's next one, of a semaphore in random order.
        semaphore = points[index].semaphore
        value = min(left[semaphore])
        left[semaphore].remove(value)
        semaphore.signal(value)

    context = context_of(list(points))
    run_all(context, fire)
    context.close()
    for one in made:
        one.close()


@pytest.mark.slow
def test_ten_thousand_wait_for_sources_of_a_users_own() -> None:
    sources = [Ready() for _ in range(COUNT)]
    context = context_of(list(sources))
    run_all(context, lambda index: sources[index].fire())
    context.close()


@pytest.mark.slow
def test_ten_thousand_in_stages_without_any_thread() -> None:
    sources = [Ready() for _ in range(COUNT)]
    context = context_of(list(sources))
    function = context.lookup("program.main")
    before = threading.active_count()
    states = [InvokeState() for _ in range(COUNT)]
    over: list[int] = []
    for index, state in enumerate(states):
        assert begin_invoke(state, context, function, (index,)) is StatusCode.DEFERRED
        wait_invoke_async(state, state.wait_frame, None, lambda error, index=index: over.append(index))  # type: ignore[misc]
    assert threading.active_count() == before
    order = list(range(COUNT))
    random.Random(5).shuffle(order)
    for index in order:
        sources[index].fire()
    assert over == order
    for index in over:
        assert resume_invoke(states[index]) is StatusCode.OK
        assert end_invoke(states[index]).outputs == (index * 3,)
    context.close()


def test_an_inline_loop_blocks_where_they_wait() -> None:
    source = Ready()
    context = context_of([source])
    threading.Timer(0.02, source.fire).start()
    results: list[object] = []
    async_invoke(InlineLoop(), context, context.lookup("program.main"), (0,), lambda *ended: results.append(ended[1:]))
    assert results == [(None, (0,))]
    context.close()
