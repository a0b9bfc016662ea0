"""Contexts: linking, initializers, state of its own, lookup, the thread rule, errors that say where, and the end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import pytest

from pumice.status import (
    AlreadyExistsError,
    ClosedError,
    FailedPreconditionError,
    IncompatibleError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    PumiceError,
    ResourceExhaustedError,
    StatusCode,
)
from pumice.vm.assembly.assembler import assemble
from pumice.vm.execution.bytecode_module import BytecodeModule
from pumice.vm.execution.context import Context
from pumice.vm.execution.module_state import ModuleState
from pumice.vm.invocation.stages import begin_invoke, end_invoke
from pumice.vm.invocation.state import InvokeState
from pumice.vm.native.module import NativeModule, export
from pumice.vm.types.buffer import VmBuffer
from pumice.waits.wait_frame import step_mode


def module(text: str) -> BytecodeModule:
    return BytecodeModule(assemble(text))


def function(name: str, body: str, arguments: str = "", results: str = "i32") -> str:
    """An exported function in VM assembly."""
    return f"vm.export @{name}\nvm.func @{name}({arguments}) -> ({results}) {{\n^bb0:\n{body}\n}}\n"


COUNTER = "vm.module @counter version 3\nvm.global.i32 private mutable @count = 0 : i32\n" + function(
    "next",
    """  %i0 = vm.global.load.i32 @count
  %i1 = vm.const.i32 1
  %i0 = vm.add.i32 %i0, %i1
  vm.global.store.i32 %i0, @count
  vm.return %i0""",
)
TWICE = 'vm.module @twice\nvm.import @counter.next cconv "0v_i"\n' + function(
    "sum",
    "  %i0 = vm.call @counter.next()\n  %i1 = vm.call @counter.next()\n  %i0 = vm.add.i32 %i0, %i1\n  vm.return %i0",
)


def call(context: Context, name: str, *arguments: object, timeout: float | None = 60) -> object:
    return context.invoke(context.lookup(name), arguments, timeout=timeout)


def host(functions: dict[tuple[str, str], Callable[..., object]]) -> NativeModule:
    made = NativeModule("host")
    for (name, convention), body in functions.items():
        made.function(name, convention)(body)
    return made


# -- linking -----------------------------------------------------------------------------------------


def test_a_module_calls_another() -> None:
    with Context([module(COUNTER), module(TWICE)]) as context:
        assert call(context, "twice.sum") == 1 + 2
        assert call(context, "counter.next") == 3
        assert call(context, "twice.sum") == 4 + 5


def test_references_pass_between_modules() -> None:
    maker = "vm.module @maker\nvm.rodata[0] = 68656c6c6f\n" + function(
        "text", "  %r0 = vm.const.ref.rodata 0\n  vm.return %r0", results="!vm.buffer"
    )
    user = 'vm.module @user\nvm.import @maker.text cconv "0v_r"\nvm.import @host.keep cconv "0r_r"\n' + function(
        "main", "  %r0 = vm.call @maker.text()\n  %r1 = vm.call @host.keep(%r0)\n  vm.return %r1", results="!vm.buffer"
    )
    kept: list[object] = []
    keep = host({("keep", "0r_r"): lambda value: kept.append(value) or value})
    with Context([module(maker), keep, module(user)]) as context:
        result = call(context, "user.main")
        assert isinstance(result, VmBuffer) and bytes(result.as_memoryview()) == b"hello"
        assert kept == [result]


@pytest.mark.slow
def test_calls_between_modules_take_no_host_stack() -> None:
    """Two modules that call each other by way of a native function's name would recurse; modules in a row do not."""
    texts = ["vm.module @m0\n" + function("f", "  vm.return %i0", "%i0: i32")]
    for index in range(1, 1500):
        texts.append(
            f'vm.module @m{index}\nvm.import @m{index - 1}.f cconv "0i_i"\n'
            + function(
                "f",
                f"  %i1 = vm.const.i32 1\n  %i0 = vm.add.i32 %i0, %i1\n  %i0 = vm.call @m{index - 1}.f(%i0)\n"
                "  vm.return %i0",
                "%i0: i32",
            )
        )
    with Context([module(text) for text in texts]) as context:
        assert call(context, "m1499.f", 1) == 1500
    with Context([module(text) for text in texts[:40]], max_stack_depth=39) as context:
        assert call(context, "m38.f", 1) == 39
        with pytest.raises(ResourceExhaustedError, match="39 frames deep, the most that max_stack_depth allows"):
            call(context, "m39.f", 1)


def test_what_is_imported_comes_first() -> None:
    with Context() as context:
        with pytest.raises(
            NotFoundError, match=r"'twice' imports counter\.next, but there is no module 'counter'; there are none"
        ):
            context.add(module(TWICE))
        context.add(module(COUNTER))
        context.add(module(TWICE))  # after the failure, by the same name
        assert [entry.name for entry in context.modules] == ["counter", "twice"]


def test_a_missing_function_names_close_ones() -> None:
    user = 'vm.module @user\nvm.import @counter.nxt cconv "0v_i"\n' + function(
        "f", "  %i0 = vm.call @counter.nxt()\n  vm.return %i0"
    )
    with (
        Context([module(COUNTER)]) as context,
        pytest.raises(NotFoundError, match="has no function 'nxt'; close to it: next"),
    ):
        context.add(module(user))
    with (
        Context([host({("nexus", "0v_i"): lambda: 1})]) as context,
        pytest.raises(NotFoundError, match="module 'host' .version 0. has no function 'next'"),
    ):
        context.add(module(user.replace("counter.nxt", "host.next")))


@pytest.mark.parametrize("provider", ["bytecode", "native"])
def test_another_calling_convention_is_incompatible(provider: str) -> None:
    made = module(COUNTER) if provider == "bytecode" else NativeModule("counter", version=3)
    if isinstance(made, NativeModule):
        made.function("next", "0v_i")(lambda: 1)
    user = 'vm.module @user\nvm.import @counter.next cconv "0v_I"\n' + function(
        "f", "  %i0 = vm.const.i32 0\n  vm.return %i0"
    )
    with (
        Context([made]) as context,
        pytest.raises(IncompatibleError, match=r"with calling convention 0v_I, .* \(version 3\) has it with 0v_i"),
    ):
        context.add(module(user))


def test_an_import_takes_the_overload_that_it_declares() -> None:
    both = host({("f", "0i_i"): lambda a: a + 1, ("f", "0I_I"): lambda a: a + 2})
    texts = [
        f'vm.module @user{letter}\nvm.import @host.f cconv "0{letter}_{letter}"\n'
        + function(
            "g", f"  {register} = vm.call @host.f({register})\n  vm.return {register}", f"{register}: {kind}", kind
        )
        for letter, register, kind in (("i", "%i0", "i32"), ("I", "%i0:1", "i64"))
    ]
    with Context([both, *map(module, texts)]) as context:
        assert (call(context, "useri.g", 1), call(context, "userI.g", 1)) == (2, 3)


def test_optional_imports_can_be_asked_for_and_fail_clearly_when_called() -> None:
    user = (
        'vm.module @user\nvm.import optional @host.f cconv "0v_i"\n'
        + function("has", "  %i0 = vm.import.resolved @host.f\n  vm.return %i0")
        + function("use", "  %i0 = vm.call @host.f()\n  vm.return %i0")
    )
    for modules, there in (([], 0), ([host({("g", "0v_i"): lambda: 1})], 0), ([host({("f", "0v_i"): lambda: 7})], 1)):
        with Context([*modules, module(user)]) as context:
            assert call(context, "user.has") == there
            if there:
                assert call(context, "user.use") == 7
            else:
                with pytest.raises(
                    NotFoundError, match=r"user\.use pc \d+: host\.f is an optional import that no module provides"
                ):
                    call(context, "user.use")


@pytest.mark.parametrize(
    ("dependency", "error", "message"),
    [
        ("vm.dependency @counter version 3", None, ""),
        ("vm.dependency @counter version 4", IncompatibleError, "of version 4 or later, this one has version 3"),
        ("vm.dependency optional @counter version 4", IncompatibleError, "of version 4 or later"),
        ("vm.dependency @other", NotFoundError, "needs module 'other', which was not added; there are 'counter'"),
        ("vm.dependency optional @other version 9", None, ""),
    ],
)
def test_dependencies(dependency: str, error: type[PumiceError] | None, message: str) -> None:
    user = f"vm.module @user\n{dependency}\n" + function("f", "  %i0 = vm.const.i32 5\n  vm.return %i0")
    with Context([module(COUNTER)]) as context:
        if error is None:
            context.add(module(user))
            assert call(context, "user.f") == 5
        else:
            with pytest.raises(error, match=message):
                context.add(module(user))
            assert len(context.modules) == 1


def test_one_name_is_added_once() -> None:
    with (
        Context([module(COUNTER)]) as context,
        pytest.raises(AlreadyExistsError, match="has a module 'counter' already"),
    ):
        context.add(module(COUNTER))


def test_a_module_is_a_module() -> None:
    with Context() as context, pytest.raises(InvalidArgumentError, match="got str"):
        context.add("counter")  # type: ignore[arg-type]


def test_names_may_have_dots() -> None:
    dotted = NativeModule("a.b")
    dotted.function("c.d", "0v_i")(lambda: 9)
    plain = NativeModule("a")
    plain.function("b.e", "0v_i")(lambda: 8)
    user = 'vm.module @user\nvm.import @a.b.c.d cconv "0v_i"\n' + function(
        "f", "  %i0 = vm.call @a.b.c.d()\n  vm.return %i0"
    )
    with Context([dotted, module(user), plain]) as context:
        assert call(context, "user.f") == 9
        assert (call(context, "a.b.c.d"), call(context, "a.b.e")) == (9, 8)
        with pytest.raises(NotFoundError, match="module 'a' has no function 'b.c.e'"):
            context.lookup("a.b.c.e")


def test_native_functions_may_block_only_where_the_call_says_so() -> None:
    seen: list[bool] = []

    def probe() -> int:
        seen.append(step_mode.on_wait == "block")
        return 0

    def outer() -> int:
        probe()
        call(inner, "host.probe", timeout=None)  # a call within that waits may look at
        state = InvokeState()
        begin_invoke(state, inner, inner.lookup("host.probe"), ())
        end_invoke(state)
        return probe()

    with Context([host({("probe", "0v_i"): probe})]) as inner, Context([host({("outer", "0v_i"): outer})]) as context:
        function = context.lookup("host.outer")
        for timeout, blocks in ((None, True), (None, False), (60, True)):
            seen.clear()
            context.invoke(function, (), timeout=timeout, blocks=blocks)
            may = blocks and timeout is None
            assert seen == [may, False, False, may]
        assert step_mode.on_wait == "suspend"


# -- state -------------------------------------------------------------------------------------------


def test_contexts_share_a_module_and_no_state() -> None:
    shared = module(COUNTER)
    with Context([shared]) as one, Context([shared]) as other:
        assert [call(one, "counter.next") for _ in range(3)] == [1, 2, 3]
        assert call(other, "counter.next") == 1
        assert one.module_state("counter") is not other.module_state("counter")


INIT = 'vm.module @user\nvm.import @host.log cconv "0i_v"\n' + "".join(
    f"vm.export @{name}\nvm.func @{name}() -> () {{\n  %i0 = vm.const.i32 {code}\n"
    "  vm.call @host.log(%i0)\n  vm.return\n}\n"
    for name, code in (("__init", 1), ("__deinit", 2), ("main", 3))
)


def test_initializers_run_when_added_and_deinitializers_at_the_end() -> None:
    log: list[object] = []
    other = INIT.replace("@user", "@user2").replace("vm.const.i32 ", "vm.const.i32 1")
    context = Context([host({("log", "0i_v"): lambda value: log.append(value)}), module(INIT), module(other)])
    assert log == [1, 11]
    assert [one.name for one in context.functions("user")] == ["main"]
    call(context, "user.main")
    context.close()
    context.close()
    assert log == [1, 11, 3, 12, 2]


def test_a_failing_initializer_leaves_nothing(caplog: pytest.LogCaptureFixture) -> None:
    fail = True

    def log(value: int) -> None:
        if fail:
            raise NotFoundError("no log")

    context = Context([host({("log", "0i_v"): log})])
    user = module(INIT)
    with pytest.raises(NotFoundError, match=r"user\.__init pc \d+: no log"):
        context.add(user)
    assert len(context.modules) == 1
    fail = False
    context.add(user)
    fail = True
    with caplog.at_level(logging.WARNING, "pumice"):
        context.close()  # what its __deinit fails with keeps nothing from being closed
    assert "user.__deinit failed" in caplog.text and "no log" in caplog.text
    assert context.is_closed


def test_an_initializer_takes_no_arguments() -> None:
    with Context() as context, pytest.raises(InvalidArgumentError, match="expected no arguments"):
        context.add(module("vm.module @user\n" + function("__init", "  vm.return %i0", "%i0: i32")))


def test_states_are_closed_in_reverse_whatever_one_of_them_raises() -> None:
    log: list[str] = []

    def native(name: str, fails: bool) -> NativeModule:
        class State:
            @export("f", "0v_v")
            def f(self) -> None: ...

            def close(self) -> None:
                log.append(name)
                if fails:
                    raise OSError(name)

        return NativeModule(name, state=State)

    context = Context([native("a", True), native("b", False), native("c", True), native("d", False)])
    with pytest.raises(OSError, match="c"):
        context.close()
    assert log == ["d", "c", "b", "a"]
    assert context.is_closed and context.modules == ()


def test_freezing_ends_adding() -> None:
    with Context([module(COUNTER)]) as context:
        context.freeze()
        context.freeze()
        assert context.is_frozen and repr(context) == "<frozen Context of 'counter'>"
        with pytest.raises(FailedPreconditionError, match="is frozen; add modules before"):
            context.add(module(TWICE))
        assert call(context, "counter.next") == 1


# -- lookup ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("counter.nxt", NotFoundError, "module 'counter' has no function 'nxt'; close to it: next"),
        ("counter.zzz", NotFoundError, "it has: next"),
        ("next", NotFoundError, r"did you mean counter\.next\?"),
        ("conter.next", NotFoundError, r"did you mean counter\.next\?"),
        ("", NotFoundError, "the modules are 'counter'"),
        (".", NotFoundError, "the modules are 'counter'"),
        (7, InvalidArgumentError, "a function's full name is a str"),
        (None, InvalidArgumentError, "got None"),
    ],
)
def test_lookup_says_what_there_is(name: object, error: type[PumiceError], message: str) -> None:
    with Context([module(COUNTER)]) as context, pytest.raises(error, match=message):
        context.lookup(name)  # type: ignore[arg-type]


def test_a_function_is_looked_up_once() -> None:
    with Context([module(COUNTER)]) as context:
        results = context.lookup("counter.next")
        assert results is context.lookup("counter.next") and results in {results}
        assert (results.full_name, results.module_name, results.name) == ("counter.next", "counter", "next")
        assert repr(results) == "<Function counter.next 0v_i>"
        with pytest.raises(NotFoundError, match="no module 'other' in this context"):
            context.functions("other")
        with pytest.raises(NotFoundError):
            context.module_state("other")
        assert isinstance(context.module_state("counter"), ModuleState)


def test_functions_have_their_reflection() -> None:
    text = (
        'vm.module @user\nvm.export @f\nvm.func @f(%i0: i32) -> (i32) attributes {"iree.abi.declaration" = '
        '"sync func @f(%count: i32) -> (%next: i32)", note = "x"} {\n  vm.return %i0\n}\n'
    )
    with Context([module(text)]) as context:
        results = context.lookup("user.f")
        assert results.attributes["note"] == "x"
        assert results.declaration is not None and results.declaration.format() == "f(count: i32) -> (next: i32)"


# -- errors ------------------------------------------------------------------------------------------

FAILING = (
    'vm.module @user\nvm.import @host.f cconv "0i_i"\n'
    + function("inner", "  %i0 = vm.call @host.f(%i0)\n  vm.return %i0", "%i0: i32")
    + function("outer", "  %i1 = vm.const.i32 1\n  %i0 = vm.call @inner(%i0)\n  vm.return %i0", "%i0: i32")
    + function("fail", '  vm.fail %i0, "the program says so"', "%i0: i32")
    + function("recurse", "  %i0 = vm.call @recurse(%i0)\n  vm.return %i0", "%i0: i32")
)


@pytest.mark.parametrize("code", [code for code in StatusCode if code is not StatusCode.OK])
def test_a_programs_failure_has_its_code_and_place(code: StatusCode) -> None:
    with Context([host({("f", "0i_i"): lambda value: value}), module(FAILING)]) as context:
        with pytest.raises(PumiceError, match="the program says so") as caught:
            call(context, "user.fail", int(code))
        assert caught.value.code is code
        assert caught.value.location is not None and caught.value.location.startswith("user.fail pc ")


def test_an_error_of_a_native_function_names_the_callers() -> None:
    def f(value: int) -> int:
        raise NotFoundError("nothing there") if value else KeyError("users own")

    with Context([host({("f", "0i_i"): f}), module(FAILING)]) as context:
        with pytest.raises(NotFoundError) as caught:
            call(context, "user.outer", 1)
        location = caught.value.location or ""
        notes = "\n".join(getattr(caught.value, "__notes__", ()))
        assert "user.inner pc" in location + notes and "user.outer" in location + notes
        assert "nothing there" in str(caught.value)
        # What a user's function raises is the user's own, and stays what it is.
        with pytest.raises(KeyError, match="users own") as foreign:
            call(context, "user.outer", 0)
        assert "in a native function called from user." in "\n".join(foreign.value.__notes__)


@pytest.mark.parametrize("timeout", [None, 60])
def test_recursion_is_bounded_by_the_setting(timeout: float | None) -> None:
    with Context([host({("f", "0i_i"): lambda value: value}), module(FAILING)], max_stack_depth=50) as context:
        for _ in range(2):
            with pytest.raises(ResourceExhaustedError, match="50 frames deep") as caught:
                call(context, "user.recurse", 1, timeout=timeout)
        assert len(caught.value.__notes__) < 20
        assert call(context, "user.outer", 4) == 4


def test_nested_calls_that_recurse_through_native_code_end_in_an_error() -> None:
    with Context(
        [host({("f", "0i_i"): lambda value: call(context, "user.outer", value, timeout=None)}), module(FAILING)]
    ) as context:
        with pytest.raises((ResourceExhaustedError, InternalError)):
            call(context, "user.outer", 1)
        with pytest.raises(FailedPreconditionError, match="another context"), Context() as other:
            other.invoke(context.lookup("user.fail"), (1,))


@pytest.mark.parametrize("depth", [0, -1, True, 1.5, "many", None])
def test_max_stack_depth_is_a_number_of_frames(depth: object) -> None:
    with pytest.raises(InvalidArgumentError, match="max_stack_depth is a number of frames"):
        Context(max_stack_depth=depth)  # type: ignore[arg-type]


# -- threads -----------------------------------------------------------------------------------------


class _Busy:
    """A context with a call under way in another thread."""

    def __init__(self, *, concurrent: bool = False) -> None:
        self.entered, self.leave = threading.Event(), threading.Event()
        self.results: list[object] = []
        native = host({("f", "0i_i"): self._wait})
        self.context = Context([native, module(FAILING), module(COUNTER)], concurrent=concurrent)
        self.thread = threading.Thread(target=self._run, name="the busy one")
        self.thread.start()
        assert self.entered.wait(60)

    def _wait(self, value: int) -> int:
        if value == 42:
            self.entered.set()
            assert self.leave.wait(60)
        return value

    def _run(self) -> None:
        self.results.append(call(self.context, "user.outer", 42))

    def finish(self) -> None:
        self.leave.set()
        self.thread.join()
        assert self.results == [42]


@pytest.mark.parametrize(
    "use",
    [
        lambda context: call(context, "counter.next", timeout=None),
        lambda context: call(context, "counter.next", timeout=60),
        lambda context: context.add(module(TWICE)),
        lambda context: context.close(),
        lambda context: context.hold().__enter__(),
    ],
)
def test_a_second_thread_is_told_who_is_there(use: Callable[[Context], object]) -> None:
    busy = _Busy()
    with pytest.raises(FailedPreconditionError, match="this context is in use by thread 'the busy one'"):
        use(busy.context)
    busy.finish()
    assert call(busy.context, "counter.next") == 1  # one after the other is fine, in whatever thread
    use(busy.context)
    busy.context.close()


def test_concurrent_contexts_let_calls_overlap() -> None:
    busy = _Busy(concurrent=True)
    assert call(busy.context, "counter.next") == 1
    busy.context.add(module(TWICE))
    with pytest.raises(FailedPreconditionError, match="close it when its calls have returned"):
        busy.context.close()
    busy.finish()
    busy.context.close()


def test_many_threads_in_a_concurrent_context() -> None:
    native = host({("f", "0i_i"): lambda value: time.sleep(0.001) or value})
    results: list[object] = []
    with Context([native, module(FAILING)], concurrent=True) as context:
        threads = [
            threading.Thread(target=lambda n=n: results.extend(call(context, "user.outer", n) for _ in range(20)))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(results) == sorted(n for n in range(8) for _ in range(20))  # type: ignore[type-var]


def test_native_functions_call_back() -> None:
    calls = []

    def f(value: int) -> object:
        calls.append(value)
        return call(context, "user.inner", value - 1) if value else 99

    with Context([host({("f", "0i_i"): f}), module(FAILING)]) as context:
        assert call(context, "user.outer", 4) == 99
        assert calls == [4, 3, 2, 1, 0]


def test_native_functions_may_add_modules_but_not_close() -> None:
    def f(value: int) -> int:
        if value == 1:
            context.add(module(COUNTER))
        else:
            context.close()
        return value

    context = Context([host({("f", "0i_i"): f}), module(FAILING)])
    call(context, "user.outer", 1)
    assert call(context, "counter.next") == 1
    with pytest.raises(FailedPreconditionError, match="close it when its calls have returned"):
        call(context, "user.outer", 2)
    assert call(context, "counter.next") == 2
    context.close()


# -- the end -----------------------------------------------------------------------------------------


def test_a_closed_context_says_so() -> None:
    context = Context([module(COUNTER)], kind="session")
    next_ = context.lookup("counter.next")
    context.close()
    for use in (
        lambda: context.invoke(next_, ()),
        lambda: context.invoke(next_, (), timeout=1),
        lambda: context.lookup("counter.next"),
        lambda: context.add(module(COUNTER)),
    ):
        with pytest.raises(ClosedError, match="this session was closed"):
            use()
    assert repr(context) == "<closed Context of none>"


def test_a_context_that_cannot_be_made_is_closed() -> None:
    closed = []

    class State:
        @export("f", "0v_v")
        def f(self) -> None: ...

        def close(self) -> None:
            closed.append(True)

    with pytest.raises(NotFoundError):
        Context([NativeModule("state", state=State), module(TWICE)])
    assert closed == [True]


def test_traces_and_prints_reach_their_hooks() -> None:
    text = "vm.module @user\n" + function(
        "f",
        '  vm.trace "seen", %i0\n  vm.print "said", %i0, %i0\n  vm.break ^bb1()\n^bb1:\n  vm.return %i0',
        "%i0: i32",
    )
    with Context([module(text)]) as context:
        assert call(context, "user.f", 5) == 5  # nobody listens
        seen: list[object] = []
        context.hooks.on_trace = lambda event, values: seen.append(("trace", event, values))
        context.hooks.on_print = lambda event, values: seen.append(("print", event, values))
        context.hooks.break_ = lambda name, pc, registers: seen.append(("break", name, dict(registers)))
        assert call(context, "user.f", 5) == 5
        assert seen == [("trace", "seen", (5,)), ("print", "said", (5, 5)), ("break", "f", {"i0": 5})]
