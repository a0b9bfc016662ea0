"""Sessions as users see them: loading, calling, threads, the end.

Arrays in and out are in test_session_arrays.py, asynchronous functions in test_session_fences.py, compiled programs in
test_session_programs.py.
"""

from __future__ import annotations

import array
import dataclasses
import gc
import io
import mmap
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.runtime.sessions import ASYNC, COUNTER, function, identity, module, with_program

import pumice
from pumice.status import (
    AlreadyExistsError,
    ClosedError,
    DeadlineExceededError,
    FailedPreconditionError,
    IncompatibleError,
    InvalidArgumentError,
    NotFoundError,
    PumiceError,
    UnavailableError,
)
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.writer import write_module
from pumice.vm.execution.bytecode_module import BytecodeModule
from pumice.vm.native.module import NativeModule

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("on_both")]
X = np.arange(4, dtype=np.float32)


# -- making one --------------------------------------------------------------------------------------


def test_a_session_opens_a_device_when_it_needs_one() -> None:
    with pumice.Instance() as instance, pumice.Session(instance=instance) as session:
        with_program(session, COUNTER)
        assert session.call("program.next") == 1
        assert instance.devices == ()
        assert session.devices == (session.device,) == instance.devices
        assert "program" in repr(session) and session.device.name in repr(session)


def test_devices_are_uris_or_open_ones_one_or_several(device: pumice.Device) -> None:
    with pumice.Session(device.uri) as session:
        assert session.device.uri == device.uri and session.device is not device
    with pumice.open_device() as other, pumice.Session([device, other]) as session:
        assert session.devices == (device, other) and session.device is device
    # The same one twice: for programs made for two, on a machine that has one.
    with pumice.Session(["vulkan://0", "vulkan://0"]) as session:
        assert len(session.devices) == 2 and session.devices[0] is session.devices[1]


@pytest.mark.parametrize(
    ("device", "error", "message"),
    [
        (5, InvalidArgumentError, "a device is a URI or an open pumice.Device, got int"),
        ([None], InvalidArgumentError, "got NoneType"),
        ([], InvalidArgumentError, "one device or several, got an empty sequence"),
        ("vulkan://none such", NotFoundError, "no device is"),
        (["vulkan://0", "vulkan://none such"], NotFoundError, "no device is"),
    ],
)
def test_what_is_no_device(device: object, error: type[PumiceError], message: str) -> None:
    with pytest.raises(error, match=message):
        pumice.Session(device)  # type: ignore[arg-type]


def test_a_closed_device_is_refused() -> None:
    with pumice.open_device() as device:
        pass
    with pytest.raises(ClosedError, match="was closed; open it again"):
        pumice.Session(device)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: pumice.Session(options={"concurrent": True}),
            InvalidArgumentError,
            "options is a pumice.SessionOptions, got dict",
        ),
        (lambda: pumice.Session(instance="vulkan"), InvalidArgumentError, "instance is a pumice.Instance, got str"),
        (
            lambda: pumice.SessionOptions(builtin_modules=frozenset({"hal", "halo"})),
            NotFoundError,
            "no built-in module 'halo', only hal, io",
        ),
        (lambda: pumice.SessionOptions(builtin_modules="hal"), InvalidArgumentError, "a set of names, got 'hal'"),
        (lambda: pumice.SessionOptions(parameters=["a.irpa"]), InvalidArgumentError, "parameters maps scopes to files"),
        (
            lambda: pumice.SessionOptions(parameters={"a": 5}),
            InvalidArgumentError,
            r"parameters\['a'\] is an index, a path or arrays",
        ),
        (
            lambda: pumice.Session(options=pumice.SessionOptions(max_stack_depth=0)),
            InvalidArgumentError,
            "max_stack_depth",
        ),
    ],
)
def test_options_are_checked(make: Callable[[], object], error: type[PumiceError], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


# -- loading -----------------------------------------------------------------------------------------

TEXT = "vm.rodata[0] = 68656c6c6f\n" + function(
    "text", "", "  %r0 = vm.const.ref.rodata 0\n  vm.return %r0", "", "!vm.buffer"
)
BYTES = write_module(assemble(f"vm.module @program\n{TEXT}"))


def text_of(session: pumice.Session) -> bytes:
    return bytes(session.call("program.text").as_memoryview())


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@pytest.mark.sample(16)
@pytest.mark.parametrize(
    "source",
    [
        str,
        Path,
        lambda path: path.read_bytes(),
        lambda path: bytearray(path.read_bytes()),
        lambda path: memoryview(path.read_bytes()),
        lambda path: np.frombuffer(path.read_bytes(), np.uint8),
        lambda path: array.array("b", path.read_bytes()),
        lambda path: io.BytesIO(path.read_bytes()),
        lambda path: path.open("rb"),
        _mapped,
    ],
)
@pytest.mark.parametrize("polyglot", [False, True])
def test_where_modules_come_from(tmp_path: Path, source: Callable[[Path], object], polyglot: bool) -> None:
    path = tmp_path / "program.vmfb"
    path.write_bytes(write_module(assemble(f"vm.module @program\n{TEXT}"), polyglot=polyglot))
    arguments = source(path)
    with pumice.Session() as session:
        loaded = session.load(arguments)  # type: ignore[arg-type]
        assert session.modules == (loaded,) and loaded.name == "program"
        assert text_of(session) == b"hello"
    # The session and the module gone, nothing holds on to the memory that was given.
    del session, loaded
    gc.collect()
    if hasattr(arguments, "close"):
        arguments.close()


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for load in (lambda session: session.load("-"), lambda session: session.append_module_from_stdin()):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BYTES)))
        with pumice.Session() as session:
            load(session)
            assert text_of(session) == b"hello"
    for broken in (None, io.StringIO("text")):
        monkeypatch.setattr("sys.stdin", broken)
        with pumice.Session() as session, pytest.raises(UnavailableError, match="standard input"):
            session.load("-")


@pytest.mark.parametrize("what", ["rename", "delete", "replace"])
def test_a_loaded_file_may_go(tmp_path: Path, what: str) -> None:
    path = tmp_path / "program.vmfb"
    path.write_bytes(BYTES)
    with pumice.Session() as session:
        session.append_module_from_file(path)
        if what == "rename":
            path.rename(tmp_path / "other.vmfb")
        else:
            path.unlink()
            if what == "replace":
                path.write_bytes(b"\0" * len(BYTES))
        assert text_of(session) == b"hello"


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("/none/such.vmfb", NotFoundError, "there is none"),
        ("/", InvalidArgumentError, "got a directory"),
        (b"", InvalidArgumentError, "got 0"),
        (b"\0" * 1000, InvalidArgumentError, "expected a module file"),
        (BYTES[: len(BYTES) // 2], InvalidArgumentError, ""),
        (io.StringIO("text"), InvalidArgumentError, "opened in binary mode"),
        (memoryview(BYTES)[::2], InvalidArgumentError, "load takes contiguous bytes"),
        (5, InvalidArgumentError, "a path, bytes or a binary file, got int"),
        (None, InvalidArgumentError, "got NoneType"),
    ],
)
def test_what_is_no_module(source: object, error: type[PumiceError], message: str) -> None:
    with pumice.Session() as session:
        with pytest.raises(error, match=message or None):
            session.load(source)  # type: ignore[arg-type]
        session.load(BYTES)  # the session is as it was
        with pytest.raises(AlreadyExistsError, match="has a module 'program' already"):
            session.load(BYTES)


def test_a_version_that_nobody_knows_is_incompatible() -> None:
    future = dataclasses.replace(assemble(f"vm.module @program\n{COUNTER}"), bytecode_version=99 << 16)
    with pumice.Session() as session, pytest.raises(IncompatibleError, match="99"):
        session.load(write_module(future))


def test_built_in_modules_come_when_imported(session: pumice.Session) -> None:
    uses_hal = 'vm.import @hal.devices.count cconv "0v_i"\n' + function(
        "count", "", "  %i0 = vm.call @hal.devices.count()\n  vm.return %i0", "", "i32"
    )
    session.append_module(module(uses_hal))
    session.append_module(module(uses_hal, "other"))
    assert [entry.name for entry in session.modules] == ["hal", "program", "other"]
    assert session.call("program.count") == session.call("other.count") == 1
    with (
        pumice.Session(options=pumice.SessionOptions(builtin_modules=frozenset())) as bare,
        pytest.raises(NotFoundError, match="there is no module 'hal'"),
    ):
        bare.append_module(module(uses_hal))
    with pumice.Session() as own:
        fake = NativeModule("hal", version=7)
        fake.function("devices.count", "0v_i")(lambda: 77)
        own.append_module(fake)
        own.append_module(module(uses_hal))
        assert own.call("program.count") == 77


def test_freezing_ends_adding(session: pumice.Session) -> None:
    with_program(session, COUNTER).freeze()
    session.freeze()
    with pytest.raises(
        FailedPreconditionError, match="cannot add module 'other': this session is frozen; add modules before"
    ):
        session.append_module(module(COUNTER, "other"))
    assert session.call("program.next") == 1
    assert "frozen" in repr(session)


def test_an_initializer_that_does_not_end(session: pumice.Session) -> None:
    endless = "vm.export @__init\nvm.func @__init() -> () {\n  vm.br ^bb1()\n^bb1:\n  vm.br ^bb1()\n}\n"
    data = write_module(assemble(f"vm.module @program\n{endless}"))
    for load in (session.load, session.append_module_from_memory):
        with pytest.raises(DeadlineExceededError, match=r"program\.__init was not done within its timeout of 0\.05 s"):
            load(data, timeout=0.05)  # type: ignore[operator]
    with pytest.raises(DeadlineExceededError):
        session.append_module(BytecodeModule.from_bytes(data), timeout=0.05)
    assert session.modules == ()


# -- calling -----------------------------------------------------------------------------------------


def test_functions_by_name_and_looked_up(session: pumice.Session) -> None:
    with_program(session, COUNTER)
    next_ = session.lookup("program.next")
    assert next_ is session.lookup("program.next")
    assert [next_(), session.call("program.next"), session.call(next_), next_(timeout=60)] == [1, 2, 3, 4]
    assert repr(next_) == "<SessionFunction program.next() -> (count: i32)>"
    assert session.functions() == (next_,) == session.functions("program")
    assert next_.function is session.context.lookup("program.next")
    with pytest.raises(NotFoundError, match="no function 'next': .* did you mean program.next"):
        session.call("next")
    with pytest.raises(InvalidArgumentError, match="a function's full name is a str"):
        session.call(["program.next"])  # type: ignore[arg-type]
    with pytest.raises(NotFoundError):
        session.functions("other")


def test_functions_of_another_session_are_refused(session: pumice.Session, device: pumice.Device) -> None:
    with_program(session, COUNTER)
    with pumice.Session(device) as other, pytest.raises(InvalidArgumentError, match="was looked up in another session"):
        other.call(session.lookup("program.next"))


def test_sessions_have_state_of_their_own(session: pumice.Session, device: pumice.Device) -> None:
    shared = module(COUNTER)
    session.append_module(shared)
    with pumice.Session(device) as other:
        other.append_module(shared)
        assert [session.call("program.next") for _ in range(3)] == [1, 2, 3]
        assert other.call("program.next") == 1


def test_native_modules_in_both_styles(session: pumice.Session) -> None:
    plain = NativeModule("plain")

    @plain.function("scale", "0fi_f")
    def scale(value: float, factor: int) -> float:
        return value * factor

    class Log:
        def __init__(self) -> None:
            self.lines: list[int] = []

        @pumice.export("add", "0i_i")
        def add(self, value: int) -> int:
            self.lines.append(value)
            return len(self.lines)

    session.append_module(plain)
    session.append_module(NativeModule("log", state=Log))
    assert session.call("plain.scale", 1.5, 4) == 6.0
    assert [session.call("log.add", n) for n in (5, 6)] == [1, 2]
    state = session.context.module_state("log")
    assert isinstance(state, Log) and state.lines == [5, 6]
    assert (
        str(session.lookup("plain.scale").signature) == "plain.scale(argument0: f32, argument1: i32) -> (result0: f32)"
    )


def test_a_native_function_calls_its_session(session: pumice.Session) -> None:
    host = NativeModule("host")
    host.function("twice", "0v_i")(lambda: session.call("program.next") + session.call("program.next"))
    session.append_module(host)
    with_program(
        session,
        'vm.import @host.twice cconv "0v_i"\n'
        + COUNTER
        + function("main", "", "  %i0 = vm.call @host.twice()\n  vm.return %i0", "", "i32"),
    )
    assert session.call("program.main") == 1 + 2
    assert session.call("program.next") == 3


def test_arguments_by_name(session: pumice.Session) -> None:
    subtract = "  %i0 = vm.sub.i32 %i0, %i1\n  vm.return %i0"
    with_program(
        session,
        function("f", "sync func @f(%left: i32, %right: i32) -> (%d: i32)", subtract, "%i0: i32, %i1: i32", "i32"),
    )
    assert (
        session.call("program.f", 7, 5)
        == session.call("program.f", right=5, left=7)
        == session.lookup("program.f")(7, right=5)
        == 2
    )
    with pytest.raises(InvalidArgumentError, match=r"takes 2 arguments; missing: right: i32"):
        session.call("program.f", left=7)
    with pytest.raises(
        InvalidArgumentError,
        match=r"^INVALID_ARGUMENT: program\.f\(left: i32, right: i32\) -> \(d: i32\) takes 2 arguments, got 1",
    ):
        session.call("program.f", 7)


def test_direct_calls_pass_what_they_are_given(session: pumice.Session) -> None:
    with_program(session, identity("4xf32") + COUNTER)
    anything = object()
    assert session.call_direct("program.identity", [anything]) is anything
    assert session.lookup("program.identity").call_direct((None,), timeout=60) is None
    assert session.call_direct(session.lookup("program.next"), ()) == 1
    for values in ((), (1, 2)):
        with pytest.raises(InvalidArgumentError, match=rf"program\.identity takes 1 value \(0r_r\), got {len(values)}"):
            session.call_direct("program.identity", values)
    with pytest.raises(InvalidArgumentError, match="values is a sequence, got int"):
        session.call_direct("program.identity", 5)  # type: ignore[arg-type]


def test_results_of_every_number(session: pumice.Session) -> None:
    results = "i32, i64, f32, !hal.buffer_view"
    body = "  vm.return %i0, %i2:3, %i4, %r0"
    arguments = "%i0: i32, %i2:3: i64, %i4: f32, %r0: !hal.buffer_view"
    with_program(
        session,
        function("none", "sync func @none() -> ()", "  vm.return", "", "")
        + function(
            "many",
            "sync func @many(%a: i1, %b: i64, %c: f32, %d: tensor<2xi8>) -> "
            "(%a: i1, %b: i64, %c: f32, %d: tensor<2xi8>)",
            body,
            arguments,
            results,
        ),
    )
    assert session.call("program.none") is None
    a, b, c, d = session.call("program.many", True, -5, 0.5, [1, -2])
    assert a is True and (b, c) == (-5, 0.5) and d.numpy().tolist() == [1, -2]
    assert session.call_direct("program.many", (1, 2, 3.0, None)) == (1, 2, 3.0, None)


def test_errors_say_where(session: pumice.Session) -> None:
    with_program(session, function("f", "", '  vm.fail %i0, "bad luck"', "%i0: i32", "i32"))
    with pytest.raises(NotFoundError, match=r"^NOT_FOUND: program\.f pc \d+: bad luck$") as caught:
        session.call("program.f", 5)
    assert caught.value.location is not None


@pytest.mark.parametrize("timeout", ["1", True, float("nan")])
def test_a_timeout_is_a_number(session: pumice.Session, timeout: object) -> None:
    with_program(session, COUNTER)
    with pytest.raises(InvalidArgumentError, match="timeout is a number of seconds or None"):
        session.call("program.next", timeout=timeout)  # type: ignore[arg-type]


# -- threads and the end -----------------------------------------------------------------------------


class _Busy:
    """A session with a call under way in another thread."""

    def __init__(self, options: pumice.SessionOptions | None = None) -> None:
        self.entered, self.leave = threading.Event(), threading.Event()
        host = NativeModule("host")
        host.function("wait", "0v_i")(self._wait)
        self.session = pumice.Session(options=options)
        self.session.append_module(host)
        with_program(self.session, COUNTER)
        self.results: list[object] = []
        self.thread = threading.Thread(
            target=lambda: self.results.append(self.session.call("host.wait")), name="the busy one"
        )
        self.thread.start()
        assert self.entered.wait(60)

    def _wait(self) -> int:
        self.entered.set()
        assert self.leave.wait(60)
        return 42

    def finish(self) -> None:
        self.leave.set()
        self.thread.join()
        assert self.results == [42]


@pytest.mark.parametrize(
    "use",
    [
        lambda session: session.call("program.next"),
        lambda session: session.lookup("program.next")(timeout=1),
        lambda session: session.call_direct("program.next", ()),
        lambda session: session.append_module(module(COUNTER, "other")),
        lambda session: session.load(BYTES),
        lambda session: session.trim(),
        lambda session: session.close(),
    ],
)
def test_one_thread_at_a_time(use: Callable[[pumice.Session], object]) -> None:
    busy = _Busy()
    with pytest.raises(FailedPreconditionError, match="this session is in use by thread 'the busy one'"):
        use(busy.session)
    busy.finish()
    assert busy.session.call("program.next") == 1  # one after the other, from whatever thread
    busy.session.close()


def test_concurrent_sessions_let_calls_overlap() -> None:
    busy = _Busy(pumice.SessionOptions(concurrent=True))
    assert busy.session.call("program.next") == 1
    busy.finish()
    busy.session.close()


def test_several_sessions_run_at_once(device: pumice.Device) -> None:
    results: list[list[float]] = []

    def run(n: int) -> None:
        with pumice.Session(device) as session:
            with_program(session, identity("4xf32") + ASYNC)
            for _ in range(20):
                y = session.call("program.pass", np.full(4, n, np.float32))
            results.append(session.call("program.identity", y).tolist())

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [[n] * 4 for n in range(4)]


@pytest.mark.only_vulkan
def test_trimming_reaches_modules_and_devices(session: pumice.Session) -> None:
    trimmed = []

    class State:
        @pumice.export("f", "0v_v")
        def f(self) -> None: ...

        def trim(self) -> None:
            trimmed.append(True)

    session.append_module(NativeModule("state", state=State))
    with_program(session, ASYNC)
    session.call("program.pass", X)
    gc.collect()
    reserved = session.allocator.statistics().reserved
    session.trim()
    assert trimmed == [True]
    assert session.allocator.statistics().reserved <= reserved
    np.testing.assert_array_equal(session.call("program.pass", X).numpy(), X)


@pytest.mark.only_vulkan
def test_accessors(session: pumice.Session, device: pumice.Device) -> None:
    with_program(session, COUNTER)
    assert session.device is device and session.devices == (device,)
    assert session.allocator is device.hal.allocator
    assert session.context.modules == session.modules
    assert session.options == pumice.SessionOptions()
    assert isinstance(session.instance, pumice.Instance)
    assert not session.is_closed


def test_a_closed_session_says_so(device: pumice.Device) -> None:
    session = with_program(pumice.Session(device), COUNTER)
    next_ = session.lookup("program.next")
    session.close()
    session.close()
    for use in (
        next_,
        lambda: session.call("program.next"),
        lambda: session.call(next_),
        lambda: next_.call_direct(()),
        lambda: session.lookup("program.next"),
        lambda: session.append_module(module(COUNTER)),
        lambda: session.load(BYTES),
        session.trim,
    ):
        with pytest.raises(ClosedError, match="this session was closed"):
            use()
    assert (session.is_closed, session.modules, repr(session)) == (True, (), "<closed Session>")


def test_a_session_is_not_closed_within_its_own_call(session: pumice.Session) -> None:
    host = NativeModule("host")
    host.function("close", "0v_v")(session.close)
    session.append_module(host)
    with pytest.raises(FailedPreconditionError, match="close it when its calls have returned"):
        session.call("host.close")
    assert not session.is_closed


def test_a_session_that_was_only_dropped_leaves_its_device_usable(device: pumice.Device) -> None:
    session = with_program(pumice.Session(device), identity("4xf32") + ASYNC)
    y = session.call("program.pass", X)
    del session
    gc.collect()
    np.testing.assert_array_equal(y.numpy(), X)
    with pumice.Session(device) as other:
        np.testing.assert_array_equal(with_program(other, identity("4xf32")).call("program.identity", y).numpy(), X)
