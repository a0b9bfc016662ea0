"""The staged calls: what each returns, in which order they come, what they hold and what they let go of."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from support.vm.contexts import is_idle
from support.vm.host_program import context_of, outcome
from support.vm.wait_sources import Signal

from pumice.status import (
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
    AsyncioSource,
    Context,
    Event,
    FutureSource,
    InvokeResult,
    InvokeState,
    VmList,
    Wait,
    abort_invoke,
    begin_invoke,
    end_invoke,
    invoke,
    resume_invoke,
    wait_invoke,
    wait_invoke_async,
)
from pumice.vm.execution.frame import Frame, NativeFrame
from pumice.waits.armed_wait import ArmedWait
from pumice.waits.wait_frame import WaitFrame

DEFERRED, OK = StatusCode.DEFERRED, StatusCode.OK


def begin(context: Context, name: str = "call", *values: object, state: InvokeState | None = None) -> InvokeState:
    """A suspended invocation."""
    state = state or InvokeState()
    assert begin_invoke(state, context, context.lookup(f"program.{name}"), values or (5,)) is DEFERRED
    return state


def finish(state: InvokeState) -> InvokeResult:
    status = state.status
    while status is DEFERRED:
        if state.wait_frame is not None:
            assert wait_invoke(state) is OK
        status = resume_invoke(state)
    return end_invoke(state)


# -- synchronous -------------------------------------------------------------------------------------


def test_invoke_returns_and_appends_outputs() -> None:
    thing = object()
    with context_of() as context:
        outputs: list[object] = ["before"]
        inputs = [3, thing]
        assert invoke(context, context.lookup("program.echo"), inputs, outputs) == (3, thing)
        assert outputs == ["before", 3, thing] and inputs == [3, thing]
        assert invoke(context, context.lookup("program.nothing")) == ()
        assert invoke(context, context.lookup("program.call"), VmList.of("i32", [9])) == (9,)
        assert is_idle(context)


def test_invoke_blocks_until_the_wait_is_over() -> None:
    with context_of(lambda value: Wait([Signal(0.02)], resume=lambda _: value + 1)) as context:
        assert invoke(context, context.lookup("program.call"), (1,)) == (2,)
        assert invoke(context, context.lookup("host.call"), (1,), timeout=60) == (2,)


def test_invoke_raises_what_the_program_failed_with() -> None:
    with context_of() as context:
        outputs: list[object] = []
        with pytest.raises(InvalidArgumentError, match=r"program\.fails pc \d+"):
            invoke(context, context.lookup("program.fails"), (1,), outputs)
        assert outputs == [] and is_idle(context)


@pytest.mark.parametrize("timeout", ["soon", float("nan"), True])
def test_invoke_takes_a_number_as_timeout(timeout: Any) -> None:
    with context_of() as context, pytest.raises(InvalidArgumentError, match="timeout is a number"):
        invoke(context, context.lookup("program.call"), (1,), timeout=timeout)


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("call", (), "takes 1 value"),
        ("call", (1, 2), "got 2"),
        ("call", ("1",), "argument 0 is i32"),
        ("call", (1.5,), "argument 0 is i32"),
        ("call", (1 << 32,), "argument 0 is i32"),
        ("call", (None,), "argument 0 is i32"),
        ("call", 5, "inputs is a sequence"),
    ],
)
def test_inputs_that_do_not_match_begin_nothing(name: str, inputs: Any, message: str) -> None:
    with context_of() as context:
        function = context.lookup(f"program.{name}")
        state = InvokeState()
        for call in (
            lambda: begin_invoke(state, context, function, inputs),
            lambda: invoke(context, function, inputs),
        ):
            with pytest.raises(InvalidArgumentError, match=message):
                call()
        assert state.status is None and is_idle(context)


def test_functions_of_other_contexts_and_other_things_are_refused() -> None:
    state = InvokeState()
    with context_of() as context, context_of() as other:
        function = other.lookup("program.call")
        with pytest.raises(FailedPreconditionError, match="another context"):
            begin_invoke(state, context, function, (1,))
        with pytest.raises(FailedPreconditionError, match="another context"):
            invoke(context, function, (1,))
        with pytest.raises(InvalidArgumentError, match="expected a Context"):
            begin_invoke(state, None, function, (1,))  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="expected a Function"):
            begin_invoke(state, other, "program.call", (1,))  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="takes an InvokeState"):
            begin_invoke(None, other, function, (1,))  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="policy is an InvocationPolicy"):
            begin_invoke(state, other, function, (1,), policy="fifo")  # type: ignore[arg-type]
        assert state.status is None and is_idle(context) and is_idle(other)
    with pytest.raises(ClosedError):
        begin_invoke(state, other, function, (1,))
    assert state.status is None and state.context is None


# -- the sequence ------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [resume_invoke, wait_invoke, end_invoke, abort_invoke])
def test_other_things_than_states_are_refused(call: Callable[[Any], object]) -> None:
    with pytest.raises(InvalidArgumentError, match="takes an InvokeState, got int"):
        call(5)


def test_a_function_that_ends_at_once() -> None:
    thing = object()
    with context_of() as context:
        state = InvokeState()
        assert begin_invoke(state, context, context.lookup("program.echo"), (3, thing)) is OK
        assert (state.status, state.wait_frame, state.context) == (OK, None, context)
        outputs: list[object] = []
        result = end_invoke(state, outputs)
        assert result == InvokeResult(OK, (3, thing), None) and outputs == [3, thing]
        assert result.unwrap() == (3, thing)
        assert (state.status, state.context, state.function, state.frames) == (None, None, None, ())
        assert is_idle(context)


@pytest.mark.parametrize("name", ["program.fails", "host.call", "program.call"])
def test_a_program_that_fails_is_an_invocation_that_ended(name: str) -> None:
    def fail(value: int) -> int:
        raise ZeroDivisionError("by hand")

    with context_of(fail) as context:
        state = InvokeState()
        assert begin_invoke(state, context, context.lookup(name), (1,)) is OK
        outputs: list[object] = []
        result = end_invoke(state, outputs)
        native = name != "program.fails"
        assert result.status is (StatusCode.UNKNOWN if native else StatusCode.INVALID_ARGUMENT)
        assert result.outputs is None and outputs == [] and is_idle(context)
        with pytest.raises(ZeroDivisionError if native else InvalidArgumentError):
            result.unwrap()


def test_a_program_that_fails_after_a_wait() -> None:
    def fail(error: PumiceError | None) -> object:
        raise NotFoundError("no such thing")

    with context_of(lambda value: Wait([Signal(0.01)], resume=fail)) as context:
        result = finish(begin(context))
        assert result.status is StatusCode.NOT_FOUND and result.error is not None
        assert str(result.error).startswith("NOT_FOUND: program.call pc ")


def test_yields_are_deferred_without_a_wait_frame() -> None:
    with context_of() as context:
        state = begin(context, "yields_twice", 7)
        assert state.wait_frame is None and len(state.frames) == 1
        for call in (wait_invoke, lambda one: wait_invoke_async(one, None, None, lambda _: None)):
            with pytest.raises(FailedPreconditionError, match="yielded and waits for nothing"):
                call(state)
        assert resume_invoke(state) is DEFERRED
        assert resume_invoke(state) is OK
        assert end_invoke(state).outputs == (7,)


def test_a_wait_on_nothing_is_resumed_as_it_is() -> None:
    with context_of(lambda value: Wait(resume=lambda error: value + outcome(error))) as context:
        state = begin(context)
        assert state.wait_frame is not None
        assert resume_invoke(state) is OK
        assert end_invoke(state).outputs == (5,)


def test_the_frames_of_a_suspended_invocation() -> None:
    with context_of(lambda value: Wait([Signal()], resume=outcome)) as context:
        state = begin(context)
        outer, native, wait = state.frames
        assert isinstance(outer, Frame) and isinstance(native, NativeFrame) and isinstance(wait, WaitFrame)
        assert (outer.name, native.name, wait) == ("program.call", "host.call", state.wait_frame)
        assert repr(state) == "<InvokeState of program.call, suspended>"
        abort_invoke(state)
        assert repr(state) == "<InvokeState, no invocation>" and is_idle(context)


# -- inputs and outputs ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [list, lambda values: VmList.of("any", values)])
def test_inputs_are_captured_at_begin(make: Callable[[list[object]], Any]) -> None:
    first, second = object(), object()

    class Late:
        pass

    held = Late()
    gone = weakref.ref(held)
    with context_of(keep=lambda value: Wait([Signal(0.01)], resume=lambda _: value)) as context:
        inputs = make([first])
        state = InvokeState()
        assert begin_invoke(state, context, context.lookup("program.long"), inputs) is DEFERRED
        if isinstance(inputs, VmList):
            inputs.set_ref(0, second)
        else:
            inputs[0] = held
            inputs.append(second)
        del inputs, held
        assert gone() is None
        assert finish(state).outputs == (first,)


def test_inputs_are_captured_while_it_waits_for_its_turn() -> None:
    from pumice.vm import FIFO

    never = Event()
    with context_of(lambda value: Wait([never], resume=lambda _: value)) as context:
        first, second = begin(context, "call", 1), InvokeState()
        inputs = [2]
        function = context.lookup("program.call")
        assert begin_invoke(second, context, function, inputs, policy=FIFO) is DEFERRED
        inputs[0] = 99
        never.set()
        assert finish(first).outputs == (1,)
        assert finish(second).outputs == (2,)


def test_an_iterator_is_enough_for_inputs() -> None:
    with context_of() as context:
        assert invoke(context, context.lookup("program.call"), (n for n in [4])) == (4,)


def test_outputs_are_appended_to_a_vm_list() -> None:
    thing = object()
    with context_of() as context:
        function = context.lookup("program.echo")
        outputs = VmList.of("any", [1.5])
        state = InvokeState()
        assert begin_invoke(state, context, function, (3, thing)) is OK
        end_invoke(state, outputs)
        assert outputs.values() == (1.5, 3, thing) and outputs.kind_of(1) == "i32"


@pytest.mark.parametrize(
    ("outputs", "size"), [(VmList("i32"), 0), (VmList.of("i64", [4, 5]), 2), ("text", 4), ((), 0), (7, None)]
)
def test_outputs_that_do_not_fit_leave_the_result_to_be_asked_for(outputs: Any, size: int | None) -> None:
    thing = object()
    with context_of() as context:
        state = InvokeState()
        assert begin_invoke(state, context, context.lookup("program.echo"), (3, thing)) is OK
        with pytest.raises((InvalidArgumentError, FailedPreconditionError)):
            end_invoke(state, outputs)
        assert size is None or len(outputs) == size  # all of them or none
        assert state.status is OK
        good: list[object] = []
        assert end_invoke(state, good).outputs == (3, thing) and good == [3, thing]


def test_results_are_not_kept_by_the_state() -> None:
    class Held:
        pass

    held = Held()
    alive = weakref.ref(held)
    with context_of() as context:
        state = InvokeState()
        begin_invoke(state, context, context.lookup("program.echo"), (3, held))
        result = end_invoke(state)
        del held
        assert alive() is not None
        del result
        assert alive() is None


# -- order -------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[InvokeState, Context], object]] = {
    "begin": lambda state, context: begin_invoke(state, context, context.lookup("program.call"), (1,)),
    "resume": lambda state, context: resume_invoke(state),
    "wait": lambda state, context: wait_invoke(state),
    "wait_async": lambda state, context: wait_invoke_async(state, None, None, lambda _: pytest.fail("called back")),
    "end": lambda state, context: end_invoke(state),
}
WRONG = {
    "idle": ["resume", "wait", "wait_async", "end"],
    "waiting": ["begin", "resume", "end"],  # the wait was not performed
    "waited": ["begin", "end"],
    "yielded": ["begin", "wait", "wait_async", "end"],
    "ended": ["begin", "resume", "wait", "wait_async"],
    "failed": ["begin", "resume", "wait", "wait_async"],
}


@pytest.mark.parametrize(("phase", "call"), [(phase, call) for phase, calls in WRONG.items() for call in calls])
def test_calls_out_of_order_are_refused_and_change_nothing(phase: str, call: str) -> None:
    ready = Event()
    with context_of(lambda value: Wait([ready], resume=lambda error: value + outcome(error))) as context:
        state = InvokeState()
        if phase == "yielded":
            begin(context, "yields_twice", 5, state=state)
        elif phase in ("waiting", "waited"):
            begin(context, state=state)
            if phase == "waited":
                ready.set()
                wait_invoke(state)
        elif phase in ("ended", "failed"):
            function = context.lookup("program.fails" if phase == "failed" else "program.echo")
            assert begin_invoke(state, context, function, (5,) if phase == "failed" else (5, None)) is OK
        before = (state.status, state.frames, state.wait_frame, state.function, context.gate.in_flight)
        for _ in range(2):
            with pytest.raises(FailedPreconditionError, match=call.replace("wait_async", "wait") + "_invoke"):
                CALLS[call](state, context)
        assert (
            state.status,
            state.frames,
            state.wait_frame,
            state.function,
            context.gate.in_flight,
        ) == before
        ready.set()
        if phase == "idle":
            begin(context, state=state)
        result = finish(state)  # and on it goes
        if phase == "failed":
            assert result.status is StatusCode.INVALID_ARGUMENT
        else:
            assert result.outputs is not None and result.outputs[0] == 5
        assert is_idle(context)


def test_a_wait_frame_of_another_invocation_is_refused() -> None:
    with context_of(lambda value: Wait([Signal()], resume=outcome), concurrent=True) as context:
        one, two = begin(context), begin(context)
        with pytest.raises(FailedPreconditionError, match="not the one on top"):
            wait_invoke(one, two.wait_frame)
        with pytest.raises(FailedPreconditionError, match="not the one on top"):
            wait_invoke_async(one, two.wait_frame, None, lambda _: None)
        abort_invoke(one)
        abort_invoke(two)


@pytest.mark.parametrize("name", ["call", "host"])
def test_a_second_step_at_the_same_time_is_refused(name: str) -> None:
    entered, leave = threading.Event(), threading.Event()

    def block(value: int) -> int:
        entered.set()
        assert leave.wait(60)
        return value

    with context_of(block) as context:
        function = context.lookup("host.call" if name == "host" else "program.call")
        state = InvokeState()
        statuses: list[StatusCode] = []
        thread = threading.Thread(target=lambda: statuses.append(begin_invoke(state, context, function, (5,))))
        thread.start()
        try:
            assert entered.wait(60)
            for name, call in [*CALLS.items(), ("abort", lambda state, context: abort_invoke(state))]:
                with pytest.raises(
                    FailedPreconditionError, match=rf"{name}_invoke.*: another call is in progress|in progress"
                ):
                    call(state, context)
        finally:
            leave.set()
            thread.join()
        assert statuses == [OK]
        assert end_invoke(state).outputs == (5,)
        assert is_idle(context)


def test_a_second_call_while_one_waits_is_refused() -> None:
    ready, blocked = Signal(), threading.Event()

    class Told(Signal):  # type: ignore[misc, valid-type]
        def wait_until(self, deadline: float | None = None) -> None:
            blocked.set()
            ready.wait_until(deadline)

    with context_of(lambda value: Wait([Told()], resume=lambda error: value + outcome(error))) as context:
        state = begin(context)
        thread = threading.Thread(target=wait_invoke, args=(state,))
        thread.start()
        try:
            assert blocked.wait(60)
            for call in CALLS.values():
                with pytest.raises(FailedPreconditionError):
                    call(state, context)
            with pytest.raises(FailedPreconditionError):
                abort_invoke(state)
        finally:
            ready.set()
            thread.join()
        assert finish(state).outputs == (5,)


def test_of_two_resumes_at_once_one_wins() -> None:
    with context_of() as context:
        function = context.lookup("program.yields_twice")
        barrier = threading.Barrier(2)
        rounds = 300
        states = [InvokeState() for _ in range(rounds)]
        won = [[0, 0] for _ in range(rounds)]

        def race(me: int) -> None:
            for index, state in enumerate(states):
                if me == 0:
                    begin_invoke(state, context, function, (index,))
                barrier.wait(60)
                for _ in range(2):
                    try:
                        resume_invoke(state)
                    except FailedPreconditionError:
                        continue
                    won[index][me] += 1
                barrier.wait(60)
                if me == 0:
                    finish_result = finish(state)
                    assert finish_result.outputs == (index,), finish_result

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for future in [pool.submit(race, 0), pool.submit(race, 1)]:
                future.result()
        assert all(1 <= sum(pair) <= 2 for pair in won)
        assert is_idle(context)


def test_a_resume_that_another_one_overtakes_is_refused() -> None:
    with context_of() as context:
        state = begin(context, "yields_twice", 7)
        assert resume_invoke(state) is DEFERRED
        real = state._busy

        class Overtaken:
            """The step is made by another call just before this one has the state."""

            def acquire(self, blocking: bool) -> bool:
                state._busy = real
                assert resume_invoke(state) is OK
                return real.acquire(blocking)

        state._busy = Overtaken()  # type: ignore[assignment]
        with pytest.raises(FailedPreconditionError, match="takes a state that is suspended"):
            resume_invoke(state)
        assert end_invoke(state).outputs == (7,) and is_idle(context)


# -- waits -------------------------------------------------------------------------------------------


def test_a_wait_frame_stays_valid_until_resume() -> None:
    source = Signal()
    with context_of(lambda value: Wait([source], resume=lambda error: value + outcome(error))) as context:
        state = begin(context)
        frame = state.wait_frame
        assert frame is not None and frame.sources == (source,) and not frame.done
        source.set()
        assert wait_invoke(state, frame) is OK
        assert state.wait_frame is frame and frame.done and frame.error is None
        assert wait_invoke(state, frame) is OK  # performed already
        assert resume_invoke(state) is OK
        assert state.wait_frame is None and frame.sources == ()
        with pytest.raises(FailedPreconditionError, match="this wait is over"):
            frame.resume(None)
        assert end_invoke(state).outputs == (5,)


@pytest.mark.parametrize("error", [None, UnavailableError("by hand")])
def test_a_wait_of_ones_own(error: PumiceError | None) -> None:
    with context_of(lambda value: Wait([Signal()], resume=outcome)) as context:
        state = begin(context)
        assert state.wait_frame is not None
        state.wait_frame.complete(error)
        assert resume_invoke(state) is OK
        assert end_invoke(state).outputs == (outcome(error),)


def wait_sync(state: InvokeState, deadline: float | None) -> PumiceError | None:
    frame = state.wait_frame
    assert frame is not None
    assert wait_invoke(state, None, deadline) is OK
    assert frame.done
    return frame.error


def wait_async(state: InvokeState, deadline: float | None) -> PumiceError | None:
    frame = state.wait_frame
    assert frame is not None
    told: list[PumiceError | None] = []
    done = threading.Event()

    def callback(error: PumiceError | None) -> None:
        told.append(error)
        done.set()

    wait_invoke_async(state, frame, deadline, callback)
    assert done.wait(60)
    assert frame.done and told == [frame.error]
    return frame.error


WAITS = pytest.mark.parametrize("perform", [wait_sync, wait_async])


@WAITS
@pytest.mark.parametrize(("own", "callers"), [(0.03, 60.0), (60.0, 0.03), (0.03, None), (None, 0.03), (-1.0, 60.0)])
@pytest.mark.parametrize("count", [1, 2])
def test_deadlines_combine(perform: Any, own: float | None, callers: float | None, count: int) -> None:
    sources = [Signal() for _ in range(count)]
    start = time.monotonic()

    def call(value: int) -> Wait:
        deadline = None if own is None else start + own
        return Wait(sources, deadline=deadline, resume=outcome)

    with context_of(call) as context:
        state = begin(context)
        error = perform(state, None if callers is None else start + callers)
        assert isinstance(error, DeadlineExceededError)
        assert min(x for x in (own, callers) if x is not None) <= time.monotonic() - start < 30
        assert resume_invoke(state) is OK  # the program sees it, and is not ended by it
        assert end_invoke(state).outputs == (StatusCode.DEADLINE_EXCEEDED,)
        assert all(not source.callbacks for source in sources)


@WAITS
def test_a_failed_source_is_seen_by_the_program(perform: Any) -> None:
    sources = [Signal(), Signal(0.01, UnavailableError("the link is down"))]
    with context_of(lambda value: Wait(sources, resume=outcome)) as context:
        state = begin(context)
        assert isinstance(perform(state, None), UnavailableError)
        assert finish(state).outputs == (StatusCode.UNAVAILABLE,)


@WAITS
def test_what_is_no_source_fails_the_call_and_not_the_invocation(perform: Any) -> None:
    with context_of(lambda value: Wait([Signal()], resume=outcome)) as context:
        state = begin(context)
        frame = state.wait_frame
        assert frame is not None
        frame.sources = (object(),)  # type: ignore[assignment]
        with pytest.raises(InvalidArgumentError, match="source 0 of a Wait"):
            perform(state, None)
        assert state.status is DEFERRED and not frame.done
        frame.complete()
        assert resume_invoke(state) is OK
        assert end_invoke(state).outputs == (0,)


class Then:
    """A source with nothing but ``when_ready``."""

    def __init__(self, at_once: bool = False, error: BaseException | None = None) -> None:
        self.callbacks: list[Callable[..., None]] = []
        self.at_once = at_once
        self.error = error

    def when_ready(self, callback: Callable[..., None]) -> None:
        self.callbacks.append(callback)
        if self.at_once:
            self.fire()

    def fire(self) -> None:
        for callback in self.callbacks:
            callback(*(() if self.error is None else (self.error,)))


def test_the_callback_may_come_before_the_call_returns() -> None:
    event = Event()
    event.set()
    with context_of(lambda value: Wait([event, Then(at_once=True)], resume=outcome)) as context:
        state = begin(context)
        told: list[PumiceError | None] = []
        armed = wait_invoke_async(state, state.wait_frame, None, told.append)
        assert told == [None] and armed.is_done and not armed.cancel()
        # Of what has been waited for it comes again, with the same.
        wait_invoke_async(state, None, None, told.append)
        assert told == [None, None]
        assert finish(state).outputs == (0,)


@pytest.mark.parametrize("callback", [None, 5])
def test_a_callback_that_cannot_be_called_is_refused(callback: Any) -> None:
    with context_of(lambda value: Wait([Signal()], resume=outcome)) as context:
        state = begin(context)
        with pytest.raises(InvalidArgumentError, match="callback is called with None or an error"):
            wait_invoke_async(state, None, None, callback)
        abort_invoke(state)


def test_a_callback_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    event = Event()
    with context_of(lambda value: Wait([event], resume=outcome)) as context:
        state = begin(context)
        wait_invoke_async(state, None, None, lambda _: 1 // 0)
        event.set()
        assert "a notification's callback raised" in caplog.text
        assert finish(state).outputs == (0,)


def test_known_and_unknown_sources_in_one_frame() -> None:
    event, then, signal = Event(), Then(), Signal()
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    with context_of(lambda value: Wait([event, then, future, signal], resume=outcome)) as context:  # type: ignore[list-item]
        state = begin(context)
        told: list[PumiceError | None] = []
        wait_invoke_async(state, None, None, told.append)
        for ready in (then.fire, lambda: future.set_result(1), signal.set):
            ready()
            assert told == []
            with pytest.raises(FailedPreconditionError, match="not performed"):
                resume_invoke(state)
        event.set()
        assert told == [None]
        then.fire()  # again, which is not ours to forbid
        event.set()
        assert told == [None]
        assert len(then.callbacks) == 1  # asked once
        assert finish(state).outputs == (0,)


@pytest.mark.parametrize("which", range(4))
def test_any_of_known_and_unknown_sources(which: int) -> None:
    event, then, signal = Event(), Then(), Signal()
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    sources: list[Any] = [event, then, future, signal]
    ready = [event.set, then.fire, lambda: future.set_result(1), signal.set]
    with context_of(lambda value: Wait(sources, any=True, resume=outcome)) as context:
        state = begin(context)
        told: list[PumiceError | None] = []
        wait_invoke_async(state, None, None, told.append)
        ready[which]()
        assert told == [None]
        assert not event.has_listeners and not signal.callbacks
        for one in ready[:which] + ready[which + 1 :]:
            one()
        assert told == [None]
        assert finish(state).outputs == (0,)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnavailableError("down"), StatusCode.UNAVAILABLE),
        (OSError("cable"), StatusCode.UNKNOWN),
        (asyncio.CancelledError(), StatusCode.CANCELLED),
    ],
)
def test_a_source_of_ones_own_that_fails(error: BaseException, code: StatusCode) -> None:
    for at_once in (False, True):
        then = Then(at_once, error)
        with context_of(lambda value, then=then: Wait([then, Signal()], resume=outcome)) as context:
            state = begin(context)
            told: list[PumiceError | None] = []
            wait_invoke_async(state, None, None, told.append)
            if not at_once:
                then.fire()
            assert len(told) == 1 and told[0] is not None and told[0].code is code
            assert finish(state).outputs == (code,)


def test_when_ready_may_raise_or_call_back_with_nonsense() -> None:
    class Raises:
        def when_ready(self, callback: Callable[..., None]) -> None:
            raise OSError("no cable")

    class Nonsense:
        def when_ready(self, callback: Callable[..., None]) -> None:
            callback("ready")

    for source, code in ((Raises(), StatusCode.UNKNOWN), (Nonsense(), StatusCode.INVALID_ARGUMENT)):
        for perform in (wait_sync, wait_async):
            with context_of(lambda value, source=source: Wait([source], resume=outcome)) as context:  # type: ignore[list-item]
                state = begin(context)
                perform(state, None)
                assert finish(state).outputs == (code,)


@pytest.mark.parametrize("end", ["result", "error", "cancel"])
@WAITS
def test_futures_are_sources(perform: Any, end: str) -> None:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    with context_of(lambda value: Wait([future], resume=outcome)) as context:  # type: ignore[list-item]
        state = begin(context)
        if end == "result":
            future.set_result(1)
        elif end == "error":
            future.set_exception(UnavailableError("down"))
        else:
            future.cancel()
        perform(state, None)
        expected = {"result": OK, "error": StatusCode.UNAVAILABLE, "cancel": StatusCode.CANCELLED}[end]
        assert finish(state).outputs == (expected,)


def test_a_cancelled_wait_never_calls_back_and_can_be_made_again() -> None:
    event, then, signal = Event(), Then(), Signal()
    with context_of(lambda value: Wait([event, then, signal], any=True, resume=outcome)) as context:  # type: ignore[list-item]
        state = begin(context)
        frame = state.wait_frame
        assert frame is not None
        armed = wait_invoke_async(state, frame, time.monotonic() + 60, lambda _: pytest.fail("called back"))
        assert armed.cancel() and not armed.cancel() and armed.is_done
        assert not event.has_listeners and not signal.callbacks and not frame.done
        told: list[PumiceError | None] = []
        wait_invoke_async(state, frame, None, told.append)
        event.set()
        then.fire()
        signal.set()
        assert told == [None]
        assert finish(state).outputs == (0,)


@pytest.mark.slow
def test_cancel_against_ready_calls_back_or_was_cancelled() -> None:
    cancelled = 0
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for _ in range(300):
            event, others = Event(), [Event() for _ in range(2)]
            with context_of(
                lambda value, event=event, others=others: Wait([event, *others], any=True, resume=outcome)
            ) as context:
                state = begin(context)
                told: list[object] = []
                barrier = threading.Barrier(2)
                armed = wait_invoke_async(state, None, None, told.append)
                setting = pool.submit(lambda barrier=barrier, event=event: (barrier.wait(60), event.set()))
                barrier.wait(60)
                was_cancelled = armed.cancel()
                setting.result()
                cancelled += was_cancelled
                assert len(told) == (not was_cancelled)
                assert not any(future.has_listeners for future in (event, *others))
                abort_invoke(state)


@pytest.mark.slow
def test_arming_while_sources_become_ready_leaves_nothing_armed() -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for _ in range(300):
            events = [Event() for _ in range(8)]
            with context_of(lambda value, events=events: Wait(events, any=True, resume=outcome)) as context:
                state = begin(context)
                told: list[object] = []
                barrier = threading.Barrier(2)
                setting = pool.submit(lambda barrier=barrier, events=events: (barrier.wait(60), events[0].set()))
                barrier.wait(60)
                wait_invoke_async(state, None, None, told.append)
                setting.result()
                assert told == [None]
                assert not any(future.has_listeners for future in events)
                assert finish(state).outputs == (0,)


def test_arming_that_is_overtaken_disarms_the_one_in_hand() -> None:
    first = Event()

    class Overtakes(Event):
        """While it is armed the first one becomes ready."""

        def notify(self, callback: Any) -> Any:
            armed = super().notify(callback)
            first.set()
            return armed

    second, third = Overtakes(), Event()
    with context_of(lambda value: Wait([first, second, third], any=True, resume=outcome)) as context:
        state = begin(context)
        told: list[object] = []
        wait_invoke_async(state, None, None, told.append)
        assert told == [None] and not second.has_listeners and not third.has_listeners
        assert finish(state).outputs == (0,)


def test_a_source_that_is_ready_while_the_next_one_is_noted_leaves_that_one_disarmed() -> None:
    first, second, third = Event(), Event(), Event()

    class Notes(list[Any]):
        def append(self, one: Any) -> None:
            if len(self) == 1:
                first.set()
            super().append(one)

    told: list[object] = []
    armed = ArmedWait(3, True, told.append)
    armed._armed = Notes()
    armed.arm((first, second, third))
    assert told == [None] and not second.has_listeners and not third.has_listeners


def test_wait_invoke_returns_when_another_thread_sets_the_event() -> None:
    event = Event()
    with context_of(lambda value: Wait([event], resume=outcome)) as context:
        state = begin(context)
        timer = threading.Timer(0.02, event.set)
        timer.start()
        assert wait_invoke(state, deadline=time.monotonic() + 60) is OK
        timer.join()
        assert finish(state).outputs == (0,)


# -- ends, and what they release ---------------------------------------------------------------------


def test_a_state_is_used_again_after_end_and_after_abort() -> None:
    with context_of(lambda value: Wait([Signal(0.001)], resume=lambda _: value * 2)) as context:
        state = InvokeState()
        for value in range(20):
            begin(context, "call", value, state=state)
            if value % 3 == 0:
                abort_invoke(state)
                abort_invoke(state)  # idempotent
                assert state.status is None
            elif value % 3 == 1:
                assert finish(state).outputs == (value * 2,)
            else:
                assert begin_fails(state, context)
                assert finish(state).outputs == (value * 2,)
            assert is_idle(context)


def begin_fails(state: InvokeState, context: Context) -> bool:
    with pytest.raises(FailedPreconditionError):
        begin(context, state=state)
    return True


@pytest.mark.slow
def test_a_dropped_state_releases_its_turn_and_its_objects() -> None:
    class Held:
        pass

    held = Held()
    alive = weakref.ref(held)
    with context_of(keep=lambda value: Wait([Event()], resume=lambda _: value)) as context:
        state = begin(context, "long", held)
        del held
        assert alive() is not None and context.gate.in_flight == 1
        del state
        gc.collect()
        assert alive() is None and is_idle(context)


@pytest.mark.slow
def test_a_state_that_the_collector_drops_calls_nobody_back_inside_it() -> None:
    collecting: set[int] = set()
    called: list[bool] = []
    done = threading.Event()

    def watch(phase: str, _: dict[str, int]) -> None:
        (collecting.add if phase == "start" else collecting.discard)(threading.get_ident())

    def call(value: int) -> Any:
        return Wait([Event()], resume=lambda _: value) if value == 1 else value

    def notified(_: PumiceError | None) -> None:
        called.append(threading.get_ident() in {*collecting, main})
        done.set()

    main = threading.get_ident()

    with context_of(call) as context:
        first, second = InvokeState(), InvokeState()
        assert begin_invoke(first, context, context.lookup("program.call"), (1,)) is DEFERRED
        assert begin_invoke(second, context, context.lookup("program.call"), (2,), policy=FIFO) is DEFERRED
        assert second.wait_frame is not None
        second.wait_frame.sources[0].notify(notified)
        cycle: list[object] = [first]
        cycle.append(cycle)
        del first
        gc.callbacks.append(watch)
        try:
            del cycle
            gc.collect()
        finally:
            gc.callbacks.remove(watch)
        assert done.wait(20)
        assert called == [False]
        assert wait_invoke(second) is OK and resume_invoke(second) is OK and end_invoke(second).outputs == (2,)
        assert is_idle(context)


def test_a_call_finds_that_the_invocation_before_it_was_dropped() -> None:
    with context_of(lambda value: Wait([Event()], resume=lambda _: value) if value == 1 else value) as context:
        state = InvokeState()
        begin_invoke(state, context, context.lookup("program.call"), (1,))
        with pytest.raises(FailedPreconditionError, match="is running"):
            context.invoke(context.lookup("program.call"), (2,))
        del state
        assert context.invoke(context.lookup("program.call"), (2,)) == 2


def test_an_ended_invocation_has_given_up_its_turn_before_the_result_is_asked_for() -> None:
    with context_of() as context:
        one, two = InvokeState(), InvokeState()
        assert begin_invoke(one, context, context.lookup("program.call"), (1,)) is OK
        assert begin_invoke(two, context, context.lookup("program.call"), (2,)) is OK
        assert (end_invoke(two).outputs, end_invoke(one).outputs) == ((2,), (1,))


@pytest.mark.slow
def test_a_state_retains_its_context() -> None:
    context = context_of(lambda value: Wait([Signal(0.01)], resume=lambda _: value))
    state = begin(context)
    alive = weakref.ref(context)
    del context
    gc.collect()
    kept = alive()
    assert kept is not None and state.context is kept
    assert finish(state).outputs == (5,)
    kept.close()
    del kept
    gc.collect()
    assert alive() is None


def test_resumed_in_another_thread_each_time() -> None:
    threads: list[int] = []

    def keep(value: object) -> Wait:
        threads.append(threading.get_ident())
        return Wait([Signal(0.001)], resume=lambda _: value)

    thing = object()
    with context_of(keep=keep) as context:
        state = begin(context, "long", thing)
        results: list[Any] = []

        def step() -> None:
            if state.wait_frame is not None:
                wait_invoke(state)
            results.append(resume_invoke(state))

        keepers = []  # ids are not given again while their threads live
        stop = threading.Event()
        while state.status is DEFERRED:
            done = threading.Event()

            def run(done: threading.Event = done) -> None:
                step()
                done.set()
                stop.wait(60)

            keepers.append(threading.Thread(target=run))
            keepers[-1].start()
            assert done.wait(60)
        stop.set()
        for keeper in keepers:
            keeper.join()
        assert end_invoke(state).outputs == (thing,)
        assert len(set(threads)) == 5 and is_idle(context)


class Counted:
    """Counts those that live."""

    alive = 0

    def __init__(self) -> None:
        Counted.alive += 1

    def __del__(self) -> None:
        Counted.alive -= 1


def native_keep(value: object) -> Wait:
    mine, source = Counted(), Event()
    source.set()
    return Wait([source], resume=lambda _: (mine, value)[1])


closed: list[int] = []


async def coroutine_keep(value: object) -> object:
    mine, source = Counted(), Event()
    try:
        source.set()
        await source
        inner = Counted()
        await AsyncYield()
        return (mine, inner, value)[2]
    finally:
        closed.append(1)


class AsyncYield(Event):
    """Ready at once."""

    def __init__(self) -> None:
        super().__init__()
        self.set()


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("keep", [native_keep, coroutine_keep])
@pytest.mark.parametrize("how", ["abort", "drop", "abort with the frame in hand", "abort while armed"])
def test_abort_at_every_suspension_point(keep: Any, trusted: bool, how: str) -> None:
    with context_of(keep=keep, trusted=trusted) as context:
        assert Counted.alive == 0
        thing = Counted()
        state = begin(context, "long", thing)
        points = 0
        while state.status is DEFERRED:
            points += 1
            if state.wait_frame is not None:
                wait_invoke(state)
            resume_invoke(state)
        assert end_invoke(state).outputs == (thing,)
        assert points == (8 if keep is native_keep else 13)
        del thing, state
        assert Counted.alive == 0
        for stop in range(points):
            closed.clear()
            thing = Counted()
            alive = weakref.ref(thing)
            state = begin(context, "long", thing)
            del thing
            for _ in range(stop):
                if state.wait_frame is not None:
                    wait_invoke(state)
                assert resume_invoke(state) is DEFERRED
            assert alive() is not None and context.gate.in_flight == 1
            frame = state.wait_frame if how != "drop" else None
            if how == "abort while armed" and frame is not None:
                frame.sources = (Event(),)
                armed = wait_invoke_async(state, None, None, lambda _: None)
            if how == "drop":
                del state
            else:
                abort_invoke(state)
                assert state.status is None and state.frames == ()
            assert alive() is None and Counted.alive == 0, f"at point {stop}"
            assert is_idle(context)
            if keep is coroutine_keep and frame is not None:
                assert closed
            if how == "abort while armed" and frame is not None:
                assert armed.cancel()
        assert invoke(context, context.lookup("program.call"), (1,)) == (1,)


# -- native coroutines -------------------------------------------------------------------------------

TRUSTED = pytest.mark.parametrize("trusted", [False, True])


@TRUSTED
@pytest.mark.parametrize("name", ["program.call", "host.call"])
def test_a_native_coroutine_waits_and_returns(trusted: bool, name: str) -> None:
    async def call(value: int) -> int:
        for _ in range(3):
            await Event_after(0.001)
            value += 1
        return value

    with context_of(call, trusted=trusted) as context:
        assert invoke(context, context.lookup(name), (5,)) == (8,)
        state = InvokeState()
        status = begin_invoke(state, context, context.lookup(name), (5,))
        waits = 0
        while status is DEFERRED:
            if state.wait_frame is not None and not state.wait_frame.done:
                waits += 1
                wait_invoke(state)
            status = resume_invoke(state)
        assert end_invoke(state).outputs == (8,) and waits == 3


def Event_after(seconds: float) -> Event:
    event = Event()
    timer = threading.Timer(seconds, event.set)
    timer.daemon = True
    timer.start()
    return event


@TRUSTED
def test_a_native_coroutine_without_await(trusted: bool) -> None:
    async def call(value: int) -> int:
        return value * 2

    with context_of(call, trusted=trusted) as context:
        assert invoke(context, context.lookup("program.call"), (5,)) == (10,)
        assert invoke(context, context.lookup("host.call"), (5,)) == (10,)


@TRUSTED
def test_a_failure_is_thrown_where_the_coroutine_waits(trusted: bool) -> None:
    async def call(value: int) -> int:
        failed = Event()
        failed.fail(UnavailableError("down"))
        try:
            await failed
        except UnavailableError as error:
            await Event_after(0.001)
            return int(error.code)
        return 0

    with context_of(call, trusted=trusted) as context:
        assert finish(begin(context)).outputs == (StatusCode.UNAVAILABLE,)


@TRUSTED
def test_the_callers_deadline_is_thrown_where_the_coroutine_waits(trusted: bool) -> None:
    async def call(value: int) -> int:
        try:
            await Event()
        except DeadlineExceededError:
            return -1
        return 0

    with context_of(call, trusted=trusted) as context:
        state = begin(context)
        wait_invoke(state, deadline=time.monotonic())
        assert resume_invoke(state) is OK
        assert end_invoke(state).outputs == (-1,)


@TRUSTED
def test_what_a_coroutine_raises_is_the_result(trusted: bool) -> None:
    async def call(value: int) -> int:
        await Event_after(0.001)
        raise NotFoundError("no such thing")

    with context_of(call, trusted=trusted) as context:
        result = finish(begin(context))
        assert result.status is StatusCode.NOT_FOUND
        assert "program.call pc" in str(result.error)


def test_results_of_a_coroutine_are_checked() -> None:
    async def call(value: int) -> Any:
        await Event_after(0.001)
        return "five"

    with context_of(call) as context:
        result = finish(begin(context))
        assert result.status is StatusCode.INVALID_ARGUMENT and "returned str" in str(result.error)


def test_finally_blocks_run_in_order_on_abort_and_only_then() -> None:
    order: list[str] = []

    async def deeper() -> None:
        try:
            await Event()
        finally:
            order.append("deeper")

    async def call(value: int) -> int:
        try:
            await deeper()
        except PumiceError:
            order.append("error")
        finally:
            order.append("call")
        return value

    with context_of(call) as context:
        state = begin(context)
        frame = state.wait_frame
        assert order == []
        abort_invoke(state)
        assert order == ["deeper", "call"] and frame is not None


def test_await_on_futures_gives_their_results_and_errors() -> None:
    pool = concurrent.futures.ThreadPoolExecutor(1)

    async def call(value: int) -> int:
        total = await FutureSource(pool.submit(lambda: value * 2))
        try:
            await FutureSource(pool.submit(lambda: 1 // 0))
        except ZeroDivisionError:
            total += 100
        return int(total)

    with pool, context_of(call) as context:
        assert invoke(context, context.lookup("program.call"), (5,)) == (110,)


def test_awaiting_asyncios_own_things_is_refused() -> None:
    async def call(value: int) -> int:
        await asyncio.sleep(0)
        return value

    with context_of(call) as context:
        state = InvokeState()
        assert begin_invoke(state, context, context.lookup("program.call"), (1,)) is OK
        result = end_invoke(state)
        assert result.status is StatusCode.FAILED_PRECONDITION and "AsyncioSource" in str(result.error)


def test_an_asyncio_future_is_waited_for_from_another_thread() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()

        async def call(value: int) -> int:
            return value + int(await AsyncioSource(future))

        with context_of(call) as context:
            calling = loop.run_in_executor(None, invoke, context, context.lookup("program.call"), (5,))
            loop.call_later(0.02, future.set_result, 7)
            assert await calling == (12,)

    asyncio.run(main())


def test_an_event_fails_with_other_errors_as_unknown() -> None:
    event = Event()
    event.fail(CancelledError("given up"))
    event.set()
    with context_of(lambda value: Wait([event], resume=outcome)) as context:
        assert finish(begin(context)).outputs == (StatusCode.CANCELLED,)


def test_ctrl_c_in_a_step_aborts_and_is_raised() -> None:
    def call(value: int) -> int:
        raise KeyboardInterrupt

    with context_of(call) as context:
        state = InvokeState()
        with pytest.raises(KeyboardInterrupt):
            begin_invoke(state, context, context.lookup("program.call"), (1,))
        assert state.status is None and is_idle(context)
        assert invoke(context, context.lookup("program.echo"), (1, None)) == (1, None)
