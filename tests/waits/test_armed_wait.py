"""Native functions that wait: what ends a wait, what the function gets, and that nothing is left armed."""

from __future__ import annotations

import signal as signals
import threading
import time
import weakref
from collections.abc import Callable

import pytest
from support.vm.host_program import context_of, outcome
from support.vm.wait_sources import Signal

from pumice.status import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PumiceError,
    UnavailableError,
)
from pumice.vm.bytecode.calling_convention import CallingConvention
from pumice.vm.execution.frame import Frame, NativeFrame
from pumice.vm.native.calls import checked_native
from pumice.waits.armed_wait import perform_wait
from pumice.waits.source import WaitSource
from pumice.waits.wait_frame import Wait, WaitFrame

DRIVEN = ["program.call_yieldable", "program.call", "host.call"]


def run(
    wait: Callable[[int], object], name: str = "program.call", value: int = 5, timeout: float | None = 60
) -> object:
    with context_of(wait) as context:
        return context.invoke(context.lookup(name), (value,), timeout=timeout)


def test_a_users_class_is_a_wait_source() -> None:
    assert isinstance(Signal(), WaitSource)


@pytest.mark.parametrize("name", DRIVEN)
@pytest.mark.parametrize("timeout", [None, 60])
def test_results_come_when_the_source_is_ready(name: str, timeout: float | None) -> None:
    done = []

    def wait(value: int) -> Wait:
        return Wait([Signal(0.02)], resume=lambda error: done.append(error) or value + 1)

    assert run(wait, name, timeout=timeout) == 6
    assert done == [None]


def test_a_function_waits_each_time_it_is_called() -> None:
    assert run(lambda value: Wait([Signal(0.01)], resume=lambda _: value * 3), "program.twice") == 45


def test_no_sources_only_yield() -> None:
    assert run(lambda value: Wait(resume=lambda error: value + outcome(error))) == 5
    assert run(lambda value: Wait(any=True, resume=lambda error: value + outcome(error))) == 5


def test_all_sources_are_waited_for() -> None:
    sources = [Signal(0.05), Signal(0.01), Signal(0.03)]
    assert run(lambda value: Wait(sources, resume=lambda _: sum(source.query() for source in sources))) == 3


def test_any_source_is_enough_and_the_others_are_left_alone() -> None:
    sources = [Signal(), Signal(0.02), Signal()]
    seen = run(lambda value: Wait(sources, any=True, resume=lambda _: sum(source.query() for source in sources)))
    assert seen == 1
    assert [source.callbacks for source in sources] == [[], [], []]


@pytest.mark.parametrize("is_any", [False, True])
def test_the_first_failure_ends_the_wait(is_any: bool) -> None:
    # The first source never becomes ready: whoever waited for the sources in turn would be here for ever.
    sources = [Signal(), Signal(0.01, UnavailableError("the link is down")), Signal()]
    told: list[PumiceError | None] = []
    run(lambda value: Wait(sources, any=is_any, resume=lambda error: told.append(error) or 1))
    assert [type(error) for error in told] == [UnavailableError]
    assert [source.callbacks for source in sources] == [[], [], []]


def test_a_failure_after_a_ready_source_is_too_late_for_any() -> None:
    ready, failed = Signal(), Signal(failure=UnavailableError("gone"))
    ready.set()
    failed.set()
    assert run(lambda value: Wait([ready, failed], any=True, resume=outcome)) == 0
    assert run(lambda value: Wait([ready, failed], resume=outcome)) == UnavailableError.default_code


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("is_any", [False, True])
@pytest.mark.parametrize("timeout", [None, 60])
def test_a_waits_own_deadline_is_told_to_resume(count: int, is_any: bool, timeout: float | None) -> None:
    sources = [Signal() for _ in range(count)]
    start = time.monotonic()

    def wait(value: int) -> Wait:
        return Wait(sources, any=is_any, deadline=time.monotonic() + 0.05, resume=outcome)

    assert run(wait, timeout=timeout) == DeadlineExceededError.default_code
    assert time.monotonic() - start >= 0.05
    assert all(not source.callbacks for source in sources)


def test_a_deadline_that_has_passed_still_sees_what_is_ready() -> None:
    ready = Signal()
    ready.set()
    past = time.monotonic() - 1
    assert run(lambda value: Wait([ready], deadline=past, resume=outcome)) == 0
    assert run(lambda value: Wait([ready, ready], deadline=past, resume=outcome)) == 0
    assert run(lambda value: Wait([Signal()], deadline=past, resume=outcome)) == 4


@pytest.mark.parametrize("deadline", [float("inf"), 1e300, 10**30])
@pytest.mark.parametrize("count", [1, 2])
def test_a_deadline_beyond_the_platforms_is_none(deadline: float, count: int) -> None:
    assert run(lambda value: Wait([Signal(0.01)] * count, deadline=deadline, resume=outcome)) == 0


def test_the_callers_timeout_comes_before_a_later_deadline() -> None:
    never = Signal()
    with pytest.raises(DeadlineExceededError, match=r"program\.call was not done within its timeout of 0\.05 s"):
        run(lambda value: Wait([never], deadline=time.monotonic() + 60, resume=outcome), timeout=0.05)


def test_resume_may_wait_again() -> None:
    def again(left: int) -> Callable[[int], object]:
        return lambda value: Wait([Signal(0.001)], resume=lambda _: again(left - 1)(value) if left else value + 100)

    for name in DRIVEN:
        assert run(again(20), name) == 105


def test_a_wait_may_be_returned_again() -> None:
    same = Wait([Signal(0.01)], resume=lambda _: 1 << 31)  # unsigned, which the check makes signed
    for _ in range(3):
        assert run(lambda value: same) == -(1 << 31)


def test_resume_raises_what_the_function_fails_with() -> None:
    def fail(error: PumiceError | None) -> object:
        raise NotFoundError("no such thing")

    with pytest.raises(NotFoundError, match=r"program\.call pc \d+: no such thing"):
        run(lambda value: Wait([Signal(0.01)], resume=fail))
    with pytest.raises(ZeroDivisionError) as caught:
        run(lambda value: Wait([Signal(0.01)], resume=lambda _: 1 // 0))
    assert "program.call pc" in "".join(caught.value.__notes__)


@pytest.mark.parametrize("name", DRIVEN)
def test_results_after_a_wait_are_checked(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"host\.call returned str where its convention 0i_i says i"):
        run(lambda value: Wait([Signal(0.01)], resume=lambda _: "five"), name)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Wait(5, resume=outcome), "a sequence of wait sources, got int"),  # type: ignore[arg-type]
        (lambda: Wait(resume=None), "got NoneType"),  # type: ignore[arg-type]
        (lambda: Wait(deadline="soon", resume=outcome), "got 'soon'"),  # type: ignore[arg-type]
        (lambda: Wait(deadline=float("nan"), resume=outcome), "got nan"),
        (lambda: Wait([object()], resume=outcome), "source 0 of a Wait is object"),  # type: ignore[list-item]
        (lambda: Wait([Signal(), None], resume=outcome), "source 1 of a Wait is NoneType"),  # type: ignore[list-item]
    ],
)
def test_a_wait_that_is_none_is_refused_where_the_program_called(make: Callable[[], Wait], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        run(lambda value: make())
    assert caught.value.location is not None and caught.value.location.startswith("program.call pc ")


def test_what_a_source_raises_says_where_the_program_waits() -> None:
    class Broken(Signal):  # type: ignore[misc, valid-type]
        def wait_until(self, deadline: float | None = None) -> None:
            raise OSError("cable cut")

    with pytest.raises(OSError, match="cable cut") as caught:
        run(lambda value: Wait([Broken()], resume=outcome), "program.call_yieldable")
    assert caught.value.__notes__ == ["  while waiting in host.call", "  called from program.call_yieldable pc 1"]


def test_arming_that_fails_disarms_what_was_armed() -> None:
    class Broken(Signal):  # type: ignore[misc, valid-type]
        def notify(self, callback: object) -> object:
            raise OSError("cable cut")

    good = Signal()
    with pytest.raises(OSError, match="cable cut"):
        run(lambda value: Wait([good, Broken()], resume=outcome))
    assert good.callbacks == []


def test_a_wait_where_nothing_can_wait_is_refused() -> None:
    function = checked_native(lambda: Wait(resume=outcome), "host.now", CallingConvention.parse("0v_i"), may_wait=False)
    with pytest.raises(FailedPreconditionError, match=r"host\.now returned a Wait"):
        function()


@pytest.mark.skipif(not hasattr(signals, "setitimer"), reason="needs POSIX timers")
@pytest.mark.parametrize("count", [1, 2])
def test_ctrl_c_ends_a_wait(count: int) -> None:
    sources = [Signal() for _ in range(count)]
    before = signals.signal(signals.SIGALRM, signals.default_int_handler)
    try:
        with context_of(lambda value: Wait(sources, resume=outcome)) as context:
            signals.setitimer(signals.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt) as caught:
                context.invoke(context.lookup("program.call"), (1,))
            assert caught.value.__notes__[0] == "  while waiting in host.call"
            assert all(not source.callbacks for source in sources)
            for source in sources:
                source.set()
            assert context.invoke(context.lookup("program.call"), (1,)) == 0  # usable afterwards
    finally:
        signals.setitimer(signals.ITIMER_REAL, 0)
        signals.signal(signals.SIGALRM, before)


# -- stacks stepped by hand --------------------------------------------------------------------------


def test_a_suspended_invocation_can_be_looked_at_and_resumed_in_another_thread() -> None:
    ready = Signal()
    with context_of(lambda value: Wait([ready], resume=lambda _: value * 2)) as context:
        stack = context.stack_for(context.lookup("program.call_yieldable"), (21,))
        assert not stack.step()
        outer, native, wait = stack.frames
        assert isinstance(outer, Frame) and isinstance(native, NativeFrame) and isinstance(wait, WaitFrame)
        assert (outer.name, outer.pc, native.name) == ("program.call_yieldable", 1, "host.call")
        assert repr(wait) == "<WaitFrame all of 1 source(s), pending>"
        with pytest.raises(FailedPreconditionError, match="the invocation waits"):
            stack.step()
        stack = context.stack_for(context.lookup("program.call_yieldable"), (21,))
        assert not stack.step()
        ready.set()
        results = []

        def resume() -> None:
            assert stack.wait_frame is not None
            perform_wait(stack.wait_frame, None)
            assert stack.step()
            results.append(stack.results)

        thread = threading.Thread(target=resume)
        thread.start()
        thread.join()
        assert results == [42]


def test_a_wait_that_the_caller_gave_up_can_be_waited_for_again() -> None:
    late = Signal()
    frame = WaitFrame(Wait([late], resume=outcome))
    perform_wait(frame, time.monotonic() + 0.02)
    assert not frame.done
    late.set()
    perform_wait(frame, time.monotonic() + 60)
    assert frame.done and frame.error is None


def test_an_aborted_stack_holds_nothing() -> None:
    class Held:
        pass

    held = Held()
    alive = weakref.ref(held)
    with context_of(keep=lambda value: Wait([Signal()], resume=lambda _: value)) as context:
        stack = context.stack_for(context.lookup("program.long"), (held,))
        del held
        assert not stack.step()
        assert alive() is not None
        stack.abort()
        assert alive() is None
        assert stack.frames == []
