"""In which order the invocations of one context run: who waits for a turn, who is refused, and that no turn is lost."""

from __future__ import annotations

import concurrent.futures
import gc
import threading
import time
from typing import Any

import pytest
from support.vm.contexts import is_idle
from support.vm.host_program import context_of
from support.waiting import until

from pumice.status import (
    AbortedError,
    ClosedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    PumiceError,
    StatusCode,
)
from pumice.vm import (
    CONCURRENT,
    FIFO,
    REFUSE,
    Context,
    Event,
    InlineLoop,
    Invocation,
    InvocationPolicy,
    InvokeState,
    ThreadLoop,
    Wait,
    abort_invoke,
    async_invoke,
    begin_invoke,
    end_invoke,
    invoke,
    resume_invoke,
    wait_invoke,
    wait_invoke_async,
)

DEFERRED, OK = StatusCode.DEFERRED, StatusCode.OK

NAMES = pytest.mark.parametrize("name", ["program.call", "host.call"])


def begin(
    context: Context, value: int, policy: InvocationPolicy | None = None, name: str = "program.call"
) -> InvokeState:
    state = InvokeState()
    begin_invoke(state, context, context.lookup(name), (value,), policy=policy)
    return state


def finish(state: InvokeState) -> tuple[Any, ...]:
    status = state.status
    while status is DEFERRED:
        if state.wait_frame is not None:
            wait_invoke(state, deadline=time.monotonic() + 60)
        status = resume_invoke(state)
    return end_invoke(state).unwrap()


# -- the policy itself -------------------------------------------------------------------------------


def test_policies_are_values() -> None:
    assert InvocationPolicy() == FIFO and InvocationPolicy(refuse=True) == REFUSE
    assert InvocationPolicy(concurrent=True) == CONCURRENT and InvocationPolicy(priority=3).priority == 3


@pytest.mark.parametrize(
    "given",
    [
        {"priority": "high"},
        {"priority": True},
        {"concurrent": True, "priority": 1},
        {"concurrent": True, "refuse": True},
    ],
)
def test_policies_that_mean_nothing_are_refused(given: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        InvocationPolicy(**given)


# -- order -------------------------------------------------------------------------------------------


@NAMES
@pytest.mark.parametrize(
    ("policies", "order"),
    [
        ([FIFO] * 4, [0, 1, 2, 3]),
        ([InvocationPolicy(priority=n) for n in (0, 5, -1, 5)], [1, 3, 0, 2]),
        ([FIFO, InvocationPolicy(priority=1), FIFO, InvocationPolicy(priority=1, refuse=False)], [1, 3, 0, 2]),
    ],
)
def test_staged_invocations_run_in_the_order_of_their_policies(
    name: str, policies: list[InvocationPolicy], order: list[int]
) -> None:
    gate, ran = Event(), []

    def call(value: int) -> Any:
        ran.append(value)
        return Wait([gate], resume=lambda _: value) if value == 100 else value

    with context_of(call) as context:
        first = begin(context, 100)
        waiting = [begin(context, index, policy, name) for index, policy in enumerate(policies)]
        assert ran == [100]  # the highest priority does not interrupt
        assert context.gate.in_flight == 5
        for state in waiting:
            frame = state.wait_frame
            assert frame is not None and len(frame.sources) == 1 and not frame.sources[0].query()
        gate.set()
        assert finish(first) == (100,)
        done: set[int] = set()
        while len(done) < 4:
            ready = [i for i, state in enumerate(waiting) if i not in done and state.wait_frame.sources[0].query()]  # type: ignore[union-attr]
            assert len(ready) == 1  # one at a time
            assert finish(waiting[ready[0]]) == (ready[0],)
            done.add(ready[0])
        assert ran == [100, *order]
        assert is_idle(context)


def test_asynchronous_invocations_run_in_the_order_of_their_policies() -> None:
    gate, ran = Event(), []

    def call(value: int) -> Any:
        ran.append(value)
        return Wait([gate], resume=lambda _: value) if value == 100 else value

    with context_of(call) as context, ThreadLoop() as loop:
        function = context.lookup("program.call")
        first = begin(context, 100)
        priorities = [0, 2, 1, 2, 0]
        invocations = [
            Invocation.create(context, function, (index,), policy=InvocationPolicy(priority=priority), loop=loop)
            for index, priority in enumerate(priorities)
        ]
        until(lambda: len(context.gate.waiting) == len(priorities))
        gate.set()
        finish(first)
        assert [invocation.result(60) for invocation in invocations] == [(index,) for index in range(5)]
        assert ran == [100, 1, 3, 2, 0, 4]
        assert is_idle(context)


def test_the_turn_is_held_over_waits_and_between_calls() -> None:
    events = [Event() for _ in range(2)]
    ran: list[int] = []

    def call(value: int) -> Wait:
        ran.append(value)
        return Wait([events[0]] if value < 10 else [], resume=lambda _: value + 1)

    with context_of(call) as context:
        first = begin(context, 0, name="program.twice")
        second = begin(context, 10, FIFO, "program.twice")
        events[0].set()
        wait_invoke(first)
        assert resume_invoke(first) is DEFERRED  # in its second call
        assert second.wait_frame is not None and not second.wait_frame.sources[0].query()
        assert ran == [0, 1]
        assert finish(first) == (2,)
        assert finish(second) == (12,)


def test_a_turn_can_be_waited_for_without_a_thread() -> None:
    gate = Event()
    with context_of(lambda value: Wait([gate], resume=lambda _: value)) as context:
        first, second = begin(context, 1), begin(context, 2, FIFO)
        told: list[object] = []
        wait_invoke_async(second, second.wait_frame, None, told.append)
        gate.set()
        finish_first = finish(first)
        assert finish_first == (1,) and told == [None]
        assert finish(second) == (2,) and is_idle(context)


def test_a_turn_comes_to_another_thread() -> None:
    gate = Event()
    with (
        context_of(lambda value: Wait([gate], resume=lambda _: value)) as context,
        concurrent.futures.ThreadPoolExecutor(2) as pool,
    ):
        first = begin(context, 1)
        waiting = [pool.submit(invoke, context, context.lookup("program.call"), (n,), policy=FIFO) for n in (2, 3)]
        until(lambda: len(context.gate.waiting) == 2)
        gate.set()
        assert finish(first) == (1,)
        assert [waiter.result(60) for waiter in waiting] == [(2,), (3,)]
        assert is_idle(context)


# -- refusal -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [None, REFUSE])
def test_where_another_is_under_way_refusal_begins_nothing(policy: InvocationPolicy | None) -> None:
    gate = Event()
    with context_of(lambda value: Wait([gate], resume=lambda _: value)) as context:
        first = begin(context, 1)
        with pytest.raises(FailedPreconditionError, match=r"running another invocation.*policy=FIFO"):
            begin(context, 2, policy)
        with pytest.raises(FailedPreconditionError, match="is running|another invocation"):
            invoke(context, context.lookup("program.call"), (2,), policy=policy)
        with pytest.raises(FailedPreconditionError):
            context.invoke(context.lookup("program.call"), (2,))
        assert context.gate.in_flight == 1
        gate.set()
        assert finish(first) == (1,)
        assert invoke(context, context.lookup("program.call"), (2,), policy=policy) == (2,)
        assert finish(begin(context, 3, policy)) == (3,)
        assert is_idle(context)


@pytest.mark.parametrize("policy", [None, REFUSE, FIFO])
def test_while_a_synchronous_call_runs_in_another_thread(policy: InvocationPolicy | None) -> None:
    entered, leave = threading.Event(), threading.Event()

    def call(value: int) -> int:
        if value == 1:
            entered.set()
            assert leave.wait(60)
        return value

    with context_of(call) as context, concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(invoke, context, context.lookup("program.call"), (1,))
        try:
            assert entered.wait(60)
            if policy is FIFO:
                state = begin(context, 2, FIFO)
                assert state.status is DEFERRED
            else:
                with pytest.raises(FailedPreconditionError):
                    begin(context, 2, policy)
        finally:
            leave.set()
        assert running.result(60) == (1,)
        if policy is FIFO:
            assert finish(state) == (2,)
        assert is_idle(context)


def test_an_asynchronous_invocation_that_is_refused_says_so() -> None:
    with context_of(lambda value: Wait([Event()], resume=lambda _: value)) as context:
        first = begin(context, 1)
        refused = Invocation.create(context, context.lookup("program.call"), (2,), policy=REFUSE)
        assert refused.wait(time.monotonic() + 60) is StatusCode.FAILED_PRECONDITION
        abort_invoke(first)
        assert is_idle(context)


# -- concurrency -------------------------------------------------------------------------------------


def test_concurrent_is_refused_where_the_context_was_not_made_for_it() -> None:
    with context_of() as context:
        with pytest.raises(FailedPreconditionError, match="concurrent=True"):
            begin(context, 1, CONCURRENT)
        with pytest.raises(FailedPreconditionError, match="concurrent=True"):
            invoke(context, context.lookup("program.call"), (1,), policy=CONCURRENT)
        invocation = Invocation.create(context, context.lookup("program.call"), (1,), policy=CONCURRENT)
        assert invocation.wait(time.monotonic() + 60) is StatusCode.FAILED_PRECONDITION
        assert is_idle(context)


@pytest.mark.parametrize("policy", [None, CONCURRENT])
def test_concurrent_invocations_overlap(policy: InvocationPolicy | None) -> None:
    gates = [Event() for _ in range(3)]
    with context_of(lambda value: Wait([gates[value]], resume=lambda _: value), concurrent=True) as context:
        states = [begin(context, n, policy) for n in range(3)]
        assert context.gate.in_flight == 3 and context.gate.holder is None
        for n in (2, 0, 1):
            gates[n].set()
            assert finish(states[n]) == (n,)
        assert is_idle(context)


def test_in_a_concurrent_context_ordered_invocations_take_turns_and_others_overlap() -> None:
    gate, ran = Event(), []

    def call(value: int) -> Any:
        ran.append(value)
        return Wait([gate], resume=lambda _: value) if value == 0 else value

    with context_of(call, concurrent=True) as context:
        first, second = begin(context, 0, FIFO), begin(context, 1, FIFO)
        assert second.status is DEFERRED
        with pytest.raises(FailedPreconditionError):
            begin(context, 9, REFUSE)
        assert finish(begin(context, 2)) == (2,)
        assert finish(begin(context, 3, CONCURRENT)) == (3,)
        assert invoke(context, context.lookup("program.call"), (4,)) == (4,)
        assert ran == [0, 2, 3, 4]
        gate.set()
        assert finish(first) == (0,)
        assert finish(second) == (1,)
        assert is_idle(context)


def test_an_ordered_call_waits_for_its_turn_though_this_thread_was_the_last_in_the_context() -> None:
    entered, leave, gate = threading.Event(), threading.Event(), Event()

    def call(value: int) -> Any:
        if value == 1:
            entered.set()
            assert leave.wait(60)
        return Wait([gate], resume=lambda _: value) if value == 2 else value

    with context_of(call, concurrent=True) as context, concurrent.futures.ThreadPoolExecutor(1) as pool:
        function = context.lookup("program.call")
        running = pool.submit(invoke, context, function, (1,))
        try:
            assert entered.wait(60)
            first = begin(context, 2, FIFO)
            assert invoke(context, function, (3,)) == (3,)
            with pytest.raises(DeadlineExceededError):
                invoke(context, function, (4,), policy=FIFO, timeout=0.05)
        finally:
            leave.set()
        assert running.result(60) == (1,)
        gate.set()
        assert finish(first) == (2,)
        assert is_idle(context)


# -- synchronous calls that wait ---------------------------------------------------------------------


def test_a_synchronous_call_that_waits_gives_up_its_turn_by_its_timeout() -> None:
    gate = Event()
    with context_of(lambda value: Wait([gate], resume=lambda _: value)) as context:
        first, third = begin(context, 1), begin(context, 3, InvocationPolicy(priority=-1))
        with pytest.raises(DeadlineExceededError, match=r"not done within its timeout of 0\.03 s"):
            invoke(context, context.lookup("program.call"), (2,), policy=FIFO, timeout=0.03)
        assert context.gate.in_flight == 2
        gate.set()
        assert finish(first) == (1,) and finish(third) == (3,)
        assert is_idle(context)


def test_a_call_inside_a_native_function_ends_by_the_outer_deadline() -> None:
    with context_of(lambda value: Wait([Event()], resume=lambda _: value)) as inner:

        def call(value: int) -> int:
            return int(invoke(inner, inner.lookup("program.call"), (1,), policy=FIFO)[0])

        with context_of(call) as outer:
            start = time.monotonic()
            with pytest.raises(
                DeadlineExceededError, match=r"program\.call was not done within its timeout of 0\.05 s"
            ):
                invoke(outer, outer.lookup("program.call"), (1,), timeout=0.05)
            assert time.monotonic() - start < 30
            assert is_idle(outer) and is_idle(inner)


@pytest.mark.parametrize("end", ["abort", "deadline", "drop", "fails", "ends"])
def test_whoever_ends_lets_the_next_one_in(end: str) -> None:
    gate = Event()

    def call(value: int) -> Any:
        return Wait(
            [gate] if value == 1 else [], resume=lambda error: 1 // 0 if end == "fails" and value == 1 else value
        )

    with context_of(call) as context:
        first, second, third = begin(context, 1), begin(context, 2, FIFO), begin(context, 3, FIFO)
        assert second.wait_frame is not None and third.wait_frame is not None
        turn = second.wait_frame.sources[0]
        if end == "abort":
            abort_invoke(first)
        elif end == "drop":
            del first
            gc.collect()
        else:
            if end == "deadline":
                wait_invoke(first, deadline=time.monotonic())
            gate.set()
            if first.wait_frame is not None and not first.wait_frame.done:
                wait_invoke(first)
            assert resume_invoke(first) is OK
        assert turn.query() and not third.wait_frame.sources[0].query()
        abort_invoke(second)  # admitted, and never resumed
        assert finish(third) == (3,)
        if end not in ("abort", "drop"):
            end_invoke(first)
        assert is_idle(context)


@pytest.mark.parametrize("which", [1, 2, 3])
def test_one_that_waits_for_its_turn_can_be_aborted(which: int) -> None:
    gate = Event()
    with context_of(lambda value: Wait([gate], resume=lambda _: value)) as context:
        states = [begin(context, n, FIFO) for n in range(4)]
        abort_invoke(states[which])
        gate.set()
        for n, state in enumerate(states):
            if n != which:
                assert finish(state) == (n,)
        assert is_idle(context)


def test_a_deadline_on_the_wait_for_a_turn_is_the_invocations_result() -> None:
    gate = Event()
    with context_of(lambda value: Wait([gate], resume=lambda _: value)) as context:
        first, second, third = (begin(context, n, FIFO) for n in range(3))
        assert wait_invoke(second, deadline=time.monotonic()) is OK
        assert resume_invoke(second) is OK  # the function was never entered
        result = end_invoke(second)
        assert result.status is StatusCode.DEADLINE_EXCEEDED
        gate.set()
        assert finish(first) == (0,) and finish(third) == (2,)
        assert is_idle(context)


# -- inside native functions -------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [None, FIFO, REFUSE])
def test_native_functions_invoke_functions_of_their_context(policy: InvocationPolicy | None) -> None:
    def call(value: int) -> int:
        if value == 0:
            return 100
        return int(invoke(contexts[0], contexts[0].lookup("program.call"), (value - 1,), policy=policy)[0]) + 1

    contexts: list[Context] = []
    with context_of(call) as context:
        contexts.append(context)
        assert invoke(context, context.lookup("program.call"), (3,)) == (103,)
        assert finish(begin(context, 3)) == (103,)
        assert Invocation.create(context, context.lookup("program.call"), (3,)).result(60) == (103,)
        assert is_idle(context)
        contexts.clear()


@pytest.mark.parametrize("concurrent_", [False, True])
def test_waiting_for_a_turn_inside_ones_own_contexts_function_is_refused(concurrent_: bool) -> None:
    errors: list[PumiceError] = []

    def call(value: int) -> int:
        if value == 1:
            context = contexts[0]
            with pytest.raises(FailedPreconditionError, match="would never end") as caught:
                if not concurrent_:
                    finish(begin(context, 2, FIFO))
                else:
                    invoke(context, context.lookup("program.call"), (2,), policy=FIFO)
            errors.append(caught.value)
        return value

    contexts: list[Context] = []
    with context_of(call, concurrent=concurrent_) as context:
        contexts.append(context)
        assert finish(begin(context, 1, FIFO)) == (1,)
        assert len(errors) == 1 and is_idle(context)
        if not concurrent_:
            assert invoke(context, context.lookup("program.call"), (1,)) == (1,)
            assert len(errors) == 2
        assert is_idle(context)
        contexts.clear()


def test_on_an_inline_loop_too() -> None:
    told: list[Exception | None] = []

    def call(value: int) -> int:
        if value == 1:
            context = contexts[0]
            loop = InlineLoop()
            async_invoke(
                loop, context, context.lookup("program.call"), (2,), lambda loop, error, outputs: told.append(error)
            )
        return value

    contexts: list[Context] = []
    with context_of(call) as context:
        contexts.append(context)
        assert finish(begin(context, 1, FIFO)) == (1,)
        assert len(told) == 1 and isinstance(told[0], FailedPreconditionError)
        assert is_idle(context)
        contexts.clear()


def test_an_invocation_begun_inside_runs_after_what_began_it() -> None:
    inner: list[InvokeState] = []

    def call(value: int) -> int:
        if value == 1:
            inner.append(begin(contexts[0], 2, FIFO))
            with pytest.raises(FailedPreconditionError, match="another invocation"):
                begin(contexts[0], 3)
        return value

    contexts: list[Context] = []
    with context_of(call) as context:
        contexts.append(context)
        for begin_it in (
            lambda: finish(begin(context, 1)),
            lambda: invoke(context, context.lookup("program.call"), (1,)),
        ):
            assert begin_it() == (1,)
            assert finish(inner.pop()) == (2,)
            assert is_idle(context)
        contexts.clear()


# -- close -------------------------------------------------------------------------------------------


def test_close_is_refused_while_a_staged_invocation_is_in_flight() -> None:
    gate = Event()
    context = context_of(lambda value: Wait([gate], resume=lambda _: value))
    first, second = begin(context, 1), begin(context, 2, FIFO)
    with pytest.raises(FailedPreconditionError, match="2 invocations of this context are in flight"):
        context.close()
    gate.set()
    assert finish(first) == (1,)
    with pytest.raises(FailedPreconditionError, match="1 invocation of this context is in flight"):
        context.close()
    assert finish(second) == (2,)
    context.close()
    assert context.is_closed


def test_close_is_refused_inside_a_function() -> None:
    def call(value: int) -> int:
        with pytest.raises(FailedPreconditionError, match="in use"):
            contexts[0].close()
        return value

    contexts: list[Context] = []
    with context_of(call) as context:
        contexts.append(context)
        assert invoke(context, context.lookup("program.call"), (1,)) == (1,)
        assert finish(begin(context, 1)) == (1,)
        contexts.clear()


def test_close_aborts_asynchronous_invocations_wherever_they_are() -> None:
    context = context_of(lambda value: Wait([Event()], resume=lambda _: value))
    function = context.lookup("program.call")
    invocations = [Invocation.create(context, function, (n,)) for n in range(5)]
    until(lambda: len(context.gate.waiting) == 4)
    context.close()
    for invocation in invocations:
        assert invocation.wait(time.monotonic() + 60) is StatusCode.ABORTED
        assert isinstance(invocation.error, AbortedError) and invocation.outputs is None
    assert is_idle(context)
    with pytest.raises(ClosedError):
        Invocation.create(context, function, (1,))


def test_an_ended_state_does_not_keep_the_context_from_closing() -> None:
    context = context_of()
    state = begin(context, 1)
    assert state.status is OK
    context.close()
    assert end_invoke(state).outputs == (1,)


# -- races -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_turn_is_lost_between_synchronous_calls_closes_and_turns() -> None:
    """A call that holds the gate only to look at it does not lose a ticket that is due meanwhile."""
    with context_of() as context, ThreadLoop() as loop:
        function = context.lookup("program.call")
        stop = threading.Event()
        refused = [0, 0]

        def disturb(index: int) -> None:
            while not stop.is_set():
                try:
                    if index:
                        invoke(context, function, (1,))
                    else:
                        finish(begin(context, 1, REFUSE))
                except FailedPreconditionError:
                    refused[index] += 1

        threads = [threading.Thread(target=disturb, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(30):
                invocations = [Invocation.create(context, function, (n,), loop=loop) for n in range(20)]
                for n, invocation in enumerate(invocations):
                    assert invocation.result(60) == (n,)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert is_idle(context)


def test_many_threads_take_turns() -> None:
    inside: list[int] = []
    most: list[int] = []

    def call(value: int) -> int:
        inside.append(value)
        most.append(len(inside))
        inside.remove(value)
        return value

    with context_of(call) as context, concurrent.futures.ThreadPoolExecutor(8) as pool:
        function = context.lookup("program.twice")

        def work(index: int) -> None:
            for turn in range(40):
                if (index + turn) % 4 == 0:
                    abort_invoke(begin(context, index, FIFO))
                elif (index + turn) % 4 == 1:
                    assert finish(begin(context, index, FIFO, "program.twice")) == (index,)
                else:
                    assert invoke(context, function, (index,), policy=InvocationPolicy(priority=turn % 3)) == (index,)

        for future in [pool.submit(work, index) for index in range(8)]:
            future.result(60)
        assert max(most) == 1 and is_idle(context)
