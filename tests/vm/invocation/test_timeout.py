"""``timeout=`` in every phase of an invocation: loops, waits, native functions, nested calls; and Ctrl-C."""

from __future__ import annotations

import contextlib
import gc
import math
import signal as signals
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from support.interrupts import interrupted, points
from support.soak import SOAK
from support.vm import host_program
from support.vm.wait_sources import Signal

from pumice.status import ClosedError, DeadlineExceededError, InvalidArgumentError
from pumice.vm.assembly.assembler import assemble
from pumice.vm.execution.bytecode_module import BytecodeModule
from pumice.vm.execution.context import Context
from pumice.vm.execution.deadlines import timeout_seconds
from pumice.vm.execution.interruption import Interrupted, deadlines
from pumice.vm.execution.watchdog import Guard, watchdog
from pumice.vm.native.module import NativeModule, export
from pumice.waits.source import LONGEST_WAIT
from pumice.waits.wait_frame import Wait

# What a slow and busy machine may need to notice; the timeouts are much shorter.
_LATE = 20.0


@contextlib.contextmanager
def context_of(call: Callable[[int], object] | None = None) -> Iterator[Context]:
    with host_program.context_of(call) as context:
        yield context
    assert threading.get_ident() not in deadlines


def invoke(context: Context, name: str, timeout: float | None, value: object = 3) -> object:
    return context.invoke(context.lookup(f"program.{name}"), (value,), timeout=timeout)


@contextlib.contextmanager
def ends_in_time(message: str = "was not done within its timeout") -> Iterator[None]:
    start = time.monotonic()
    with pytest.raises(DeadlineExceededError, match=message):
        yield
    assert time.monotonic() - start < _LATE


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", ["loop", "yields_for_ever", "calls_for_ever", "recurses_for_ever"])
@pytest.mark.parametrize("timeout", [0.05, 0, -1, -math.inf, np.float32(0.05)])
def test_what_never_ends_is_ended(name: str, timeout: float) -> None:
    with context_of() as context:
        for _ in range(2):  # usable afterwards
            with ends_in_time(
                rf"program\.{name} was not done within its timeout of .* s; everything of the call was released"
            ):
                invoke(context, name, timeout)
        assert invoke(context, "call", timeout) == 3  # what is done at once is done


PROFILED = """
import sys
from pumice.status import DeadlineExceededError
from pumice.vm import BytecodeModule, Context
from pumice.vm.assembly.assembler import assemble

with Context([BytecodeModule(assemble(sys.stdin.read()))]) as context:
    try:
        context.invoke(context.lookup("program.loop"), (3,), timeout=0.05)
    except DeadlineExceededError:
        calls = []
        sys.setprofile(lambda frame, event, argument: calls.append(event))
        (lambda: None)()
        sys.setprofile(None)
        print(len(calls))
"""


@pytest.mark.slow
def test_an_interruption_leaves_nothing_pending_in_the_interpreter() -> None:
    """A pending exception that is only taken back makes every call slower, and CPython 3.11 hang under a profiler."""
    program = """
vm.module @program
vm.export @loop
vm.func @loop(%i0: i32) -> (i32) {
  vm.br ^bb1()
^bb1:
  %i0 = vm.add.i32 %i0, %i0
  vm.br ^bb1()
}
"""
    done = subprocess.run(
        [sys.executable, "-c", PROFILED], input=program, capture_output=True, text=True, timeout=60, check=True
    )
    assert int(done.stdout) >= 2


def test_a_loop_that_is_nearly_always_in_native_code_is_ended() -> None:
    with context_of(lambda value: time.sleep(0.01) or value) as context, ends_in_time():
        invoke(context, "calls_for_ever", 0.1)


def test_a_wait_is_ended() -> None:
    never = Signal()
    with context_of(lambda value: Wait([never], resume=lambda error: value)) as context:
        for timeout in (0.05, 0, -1):
            with ends_in_time():
                invoke(context, "call", timeout)
        assert never.callbacks == []


def test_short_waits_without_end_are_ended() -> None:
    with context_of(lambda value: Wait([Signal(0.001)], resume=lambda error: value)) as context, ends_in_time():
        invoke(context, "calls_for_ever", 0.05)


@pytest.mark.parametrize("timeout", [1e-3, 5, 1e9, 1e300, math.inf, 10**400, None])
def test_a_call_that_is_done_in_time_gives_its_results(timeout: float | None) -> None:
    with context_of(lambda value: value + 1) as context:
        assert invoke(context, "call", timeout if timeout != 1e-3 else 30) == 4


@pytest.mark.parametrize("timeout", ["1", b"1", True, math.nan, [1], 1j, object()])
def test_a_timeout_is_a_number(timeout: object) -> None:
    with context_of() as context:
        with pytest.raises(InvalidArgumentError, match="timeout is a number of seconds or None"):
            invoke(context, "call", timeout)  # type: ignore[arg-type]
        assert invoke(context, "call", None) == 3


def test_seconds_are_held_to_what_can_be_waited_for() -> None:
    assert [timeout_seconds(one) for one in (2, 0.5, np.int8(3), -4, -math.inf)] == [2.0, 0.5, 3.0, 0.0, 0.0]
    assert {timeout_seconds(one) for one in (1e300, math.inf, 10**400)} == {LONGEST_WAIT}
    assert timeout_seconds(-(10**400)) == 0.0


# -- nested invocations ------------------------------------------------------------------------------


def nested(inner: str, inner_timeout: float | None, outer_timeout: float, call: Callable[[int], object]) -> None:
    """Invokes a function whose native function invokes ``inner`` once, and ``call`` from there on."""
    depth = 0

    def host(value: int) -> object:
        nonlocal depth
        depth += 1
        return invoke(context, inner, inner_timeout) if depth == 1 else call(value)

    with context_of(host) as context:
        invoke(context, "call", outer_timeout)


@pytest.mark.parametrize("inner", ["loop", "yields_for_ever", "calls_for_ever"])
@pytest.mark.parametrize("inner_timeout", [None, 60])
def test_a_nested_call_ends_by_the_outer_timeout(inner: str, inner_timeout: float | None) -> None:
    with ends_in_time(r"program\.call was not done within its timeout of 0\.1 s"):
        nested(inner, inner_timeout, 0.1, lambda value: value)


@pytest.mark.parametrize("inner_timeout", [None, 60])
def test_a_nested_wait_ends_by_the_outer_timeout(inner_timeout: float | None) -> None:
    never = Signal()
    with ends_in_time(r"program\.call was not done within its timeout of 0\.1 s"):
        nested("call", inner_timeout, 0.1, lambda value: Wait([never], resume=lambda error: value))
    assert never.callbacks == []


@pytest.mark.slow
@pytest.mark.parametrize("inner", ["loop", "yields_for_ever", "calls_for_ever"])
def test_a_nested_timeout_is_the_native_functions_to_handle(inner: str) -> None:
    handled = []

    def host(value: int) -> int:
        if value < 0:
            return value
        try:
            invoke(context, inner, 0.05, -1)
        except DeadlineExceededError as error:
            handled.append(error.message)
        return 7

    with context_of(host) as context:
        assert invoke(context, "call", 60) == 7
        assert invoke(context, "call", None) == 7
        # And the outer one still has its own.
        with ends_in_time(r"program\.calls_for_ever was not done within its timeout of 0\.3 s"):
            invoke(context, "calls_for_ever", 0.3)
    assert (
        handled[:2]
        == [f"program.{inner} was not done within its timeout of 0.05 s; everything of the call was released"] * 2
    )


@pytest.mark.slow
def test_contexts_in_other_threads_are_not_bound() -> None:
    results = []

    def host(value: int) -> int:
        def other() -> None:
            with context_of(lambda inner: time.sleep(0.2) or inner) as context:
                results.append(invoke(context, "call", None))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return value

    with context_of(host) as context, contextlib.suppress(DeadlineExceededError):
        invoke(context, "twice", 0.05)
    assert results and set(results) == {3}


# -- what is left ------------------------------------------------------------------------------------


def test_nothing_of_a_call_is_kept_until_its_timeout() -> None:
    class Held:
        pass

    with context_of() as context:
        function = context.lookup("program.echo")
        alive = []
        for _ in range(500):
            held = Held()
            alive.append(weakref.ref(held))
            assert context.invoke(function, (1, held), timeout=600) == (1, held)
            del held
        assert sum(ref() is not None for ref in alive) == 0
        assert len(watchdog._heap) < 300  # guards of calls that are done are dropped in time


@pytest.mark.slow
def test_references_are_released_when_the_timeout_passes() -> None:
    class Held:
        pass

    text = """
vm.module @program
vm.export @main
vm.func @main(%r0: !vm.buffer) -> () {
  vm.br ^bb1()
^bb1:
  %i0 = vm.cmp.nz.ref %r0
  vm.br ^bb1()
}
"""
    held = Held()
    alive = weakref.ref(held)
    with Context([BytecodeModule(assemble(text))]) as context:
        arguments = (held,)
        del held
        with pytest.raises(DeadlineExceededError):
            context.invoke(context.lookup("program.main"), arguments, timeout=0.05)
        del arguments
        gc.collect()  # the error's traceback had it
        assert alive() is None


def test_an_initializer_has_a_timeout() -> None:
    text = """
vm.module @program
vm.export @__init
vm.func @__init() -> () {
  vm.br ^bb1()
^bb1:
  vm.br ^bb1()
}
"""
    with Context() as context:
        module = BytecodeModule(assemble(text))
        with ends_in_time(r"program\.__init was not done"):
            context.add(module, timeout=0.05)
        assert context.modules == ()


# -- Ctrl-C ------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(signals, "setitimer"), reason="needs POSIX timers")
@pytest.mark.parametrize("name", ["loop", "yields_for_ever", "calls_for_ever"])
@pytest.mark.parametrize("timeout", [None, 60])
def test_ctrl_c_ends_a_loop(name: str, timeout: float | None) -> None:
    before = signals.signal(signals.SIGALRM, signals.default_int_handler)
    try:
        with context_of() as context:
            signals.setitimer(signals.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt):
                invoke(context, name, timeout)
            assert invoke(context, "call", timeout) == 3
    finally:
        signals.setitimer(signals.ITIMER_REAL, 0)
        signals.signal(signals.SIGALRM, before)


INTERRUPTED = (
    *(f"vm/execution/{name}.py" for name in ("admission", "context", "deadlines", "run", "watchdog")),
    *("/threading.py", "/contextlib.py"),
)


def is_traced(path: str) -> bool:
    return path.endswith(INTERRUPTED)


@pytest.mark.parametrize("timeout", [None, 30])
def test_ctrl_c_at_any_point_of_a_call_loses_nothing(timeout: float | None) -> None:
    """Its driver and the gate; the loop yields twice and a native function waits."""
    calls = 0

    def host(value: int) -> object:
        nonlocal calls
        calls += 1
        if calls % 3:
            return Wait([], resume=lambda error: value)
        raise ValueError("over")

    def run(context: Context) -> None:
        nonlocal calls
        calls = 0
        with pytest.raises(ValueError):
            invoke(context, "calls_for_ever", timeout)

    with context_of(host) as context:
        numbers = points(lambda: run(context), is_traced)
    assert len(numbers) > 50
    for number in numbers if SOAK else numbers[:: 1 + len(numbers) // 60]:
        with context_of(host) as context:  # closes it, which is refused while it counts a thread inside
            interrupted(number, lambda context=context: run(context), is_traced)
            calls = 0
            assert invoke(context, "call", timeout) == 3
            other = threading.Thread(target=invoke, args=(context, "call", timeout))
            other.start()
            other.join(_LATE)
            assert not other.is_alive()  # no lock is held


def test_ctrl_c_at_any_point_of_a_context_leaves_one_that_closes() -> None:
    """Made with a module that has ``__init`` and ``__deinit``, held, called and closed: then it can be closed."""
    text = """
vm.module @program
vm.import @host.note cconv "0i_i"
vm.export @__init
vm.export @__deinit
vm.func @__init() -> () {
  %i0 = vm.const.i32 1
  %i0 = vm.call @host.note(%i0)
  vm.return
}
vm.func @__deinit() -> () {
  %i0 = vm.const.i32 2
  %i0 = vm.call @host.note(%i0)
  vm.return
}
"""
    program = BytecodeModule(assemble(text))
    closed: list[str] = []
    made: list[Context] = []

    class State:
        @export("note", "0i_i")
        def note(self, value: int) -> int:
            return value

        def close(self) -> None:
            closed.append("state")

    host = NativeModule("host", state=State)

    def use() -> None:
        context = Context()
        made.append(context)
        context.add(host)
        context.add(program)
        with context.hold():
            pass
        context.close()

    for number in points(use, is_traced, None if SOAK else 60):
        closed.clear()
        made.clear()
        interrupted(number, use, is_traced)
        for context in made:  # the last reference to what a traceback kept is gone
            added = len(context.modules)
            context.close()
            assert context.is_closed and context.modules == ()
            with pytest.raises(ClosedError):
                context.lookup("host.note")
            other = threading.Thread(target=context.close)
            other.start()
            other.join(_LATE)
            assert not other.is_alive()
            assert len(closed) <= 1 and (closed or not added)


@pytest.mark.slow
def test_a_native_function_that_takes_longer_is_late() -> None:
    host = NativeModule("host")

    @host.function("nap", "0v_i")
    def nap() -> int:
        time.sleep(0.1)
        return 5

    with Context([host]) as context:
        function = context.lookup("host.nap")
        assert context.invoke(function, (), timeout=30) == 5
        with pytest.raises(DeadlineExceededError, match=r"host\.nap was not done within its timeout of 0\.05 s"):
            context.invoke(function, (), timeout=0.05)
        assert context.invoke(function, (), timeout=0) == 5  # what is there without waiting


def test_leaving_a_nested_guard_keeps_the_interruption_of_the_outer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def spin() -> None:
        end = time.monotonic() + 10
        while time.monotonic() < end:
            pass

    monkeypatch.setattr("pumice.vm.execution.watchdog._is_interruptible", lambda code: code is spin.__code__)
    deadline = time.monotonic() + 0.05
    outer, inner = Guard(deadline), Guard(deadline)
    outer.enter()
    try:
        inner.enter()
        with contextlib.suppress(Interrupted):  # both passed: a thread gets one exception for them
            spin()
        inner.leave()
        with pytest.raises(Interrupted):
            spin()
    finally:
        outer.leave()
    assert not watchdog.posted


def test_a_native_function_that_swallows_a_nested_interruption_does_not_run_for_ever() -> None:
    end = time.monotonic() + 20
    with context_of() as inner:

        def call(value: int) -> int:
            assert time.monotonic() < end, "never interrupted"
            with contextlib.suppress(BaseException):
                inner.invoke(inner.lookup("program.loop"), (1,), timeout=0.1)
            return value

        with context_of(call) as outer, pytest.raises(DeadlineExceededError, match="calls_for_ever"):
            outer.invoke(outer.lookup("program.calls_for_ever"), (1,), timeout=0.1)
