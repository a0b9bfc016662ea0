"""``out=``: results in arrays of the caller, in place where the program takes storages, else copied on the device."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from support.peer import compile_module
from support.runtime.outputs import MOVES, PEER, SAME, SOURCE, STEP, arrays, compiled, counted
from support.runtime.sessions import COUNTER, elements, module, with_program

import pumice
from pumice.formats.element_type import ElementType
from pumice.hal.memory import MemoryAccess
from pumice.hal.programs.fence import HalFence
from pumice.runtime.arrays.array import DeviceArray
from pumice.status import ClosedError, InvalidArgumentError, PermissionDeniedError, PumiceError, UnavailableError

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("on_both")]

X = np.arange(4, dtype=np.float32)
SHAPES = {"mul": ((4,), (4,)), "mlp": ((8, 16), (16, 32), (32, 4)), "newton": ((8,),), "tanh": ((5,),)}


@pytest.fixture
def program(session: pumice.Session) -> pumice.Session:
    session.load(compiled())
    return session


@pytest.fixture
def peer(session: pumice.Session) -> pumice.Session:
    session.load(compile_module(PEER))
    return session


def several(value: object) -> Sequence[DeviceArray]:
    return value if isinstance(value, tuple) else (value,)  # type: ignore[return-value]


# -- in place --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES)
def test_results_are_written_in_place(program: pumice.Session, name: str) -> None:
    device, call = program.device, program.lookup(f"program.{name}")
    arguments = [device.asarray(array) for array in arrays(*SHAPES[name])]
    plain = several(call(*arguments))
    outs = tuple(device.zeros(array.shape) for array in plain)
    for _ in range(4):  # recordings for each range of memory are kept
        call(*arguments)
        call(*arguments, out=outs)
    for out in outs:
        out.copy_from(np.zeros(out.shape, np.float32))
    hal = device.hal
    before = hal.allocation_count, hal.copy_count
    call(*arguments)
    # What the program does for itself, such as with the state and flags of a loop, it still does.
    own = hal.allocation_count - before[0] - len(plain), hal.copy_count - before[1]
    assert name == "newton" or own == (0, 0)
    with counted(device, allocations=own[0], copies=own[1]):
        results = call(*arguments, out=outs if len(outs) > 1 else outs[0])
    for array, wanted, out in zip(several(results), plain, outs, strict=True):
        assert array is out
        np.testing.assert_array_equal(out.numpy(), wanted.numpy())


@pytest.mark.only_vulkan
@pytest.mark.peer
@pytest.mark.parametrize("model", ["async-internal", "async-external"])
@pytest.mark.parametrize("name", ["buffer", "tensor"])
def test_storages_of_other_compilers_are_written_in_place(session: pumice.Session, name: str, model: str) -> None:
    session.load(compile_module(PEER, f"--iree-execution-model={model}"))
    device, call = session.device, session.lookup(f"peer.{name}")
    assert call.signature.is_async == (model == "async-external")
    a, out = device.asarray(X), device.zeros(4)
    call(a, out=out)
    out.copy_from(0 * X)
    with counted(device, allocations=0, copies=0):
        assert call(a, out=out) is out
    np.testing.assert_array_equal(out.numpy(), X * X)
    # Left out, a storage is allocated; given by position, it is an argument as it always was.
    with counted(device, allocations=1, copies=0):
        result = call(a)
    np.testing.assert_array_equal(result.numpy(), X * X)
    other = device.zeros(4)
    np.testing.assert_array_equal(call(*((other, a) if name == "tensor" else (a, other))).numpy(), X * X)
    np.testing.assert_array_equal(other.numpy(), X * X)
    names = {"input0": other, "input1": a} if name == "tensor" else {"input0": a, "input1": other}
    np.testing.assert_array_equal(call(**names).numpy(), X * X)


@pytest.mark.only_vulkan
@pytest.mark.peer
def test_storages_of_some_results(peer: pumice.Session) -> None:
    device, call = peer.device, peer.lookup("peer.second")
    outs = device.zeros(4), device.zeros(4)
    call(X, out=outs)
    a = device.asarray(X)
    with counted(device, allocations=1, copies=1):
        assert all(one is two for one, two in zip(call(a, out=outs), outs, strict=True))
    np.testing.assert_array_equal(outs[0].numpy(), X * X)
    np.testing.assert_array_equal(outs[1].numpy(), X + X)


@pytest.mark.only_vulkan
@pytest.mark.peer
def test_without_storages_results_are_copied_on_the_device(peer: pumice.Session) -> None:
    device = peer.device
    a, out = device.asarray(X), device.zeros(4)
    with counted(device, allocations=1, copies=1):
        assert peer.call("peer.plain", a, out=out) is out
    np.testing.assert_array_equal(out.numpy(), X * X)
    # A result that is the argument's own memory, and a number beside it.
    peer.load(compile_module(SAME))
    results = peer.call("same.same", a, out=out)
    assert results[0] is out and results[1] == 7
    np.testing.assert_array_equal(out.numpy(), X)
    with pytest.raises(InvalidArgumentError, match="takes 1 array"):
        peer.call("same.same", a, out=(out, device.zeros(4)))


@pytest.mark.only_vulkan
@pytest.mark.peer
def test_with_a_signal_fence_copies_come_before_it(session: pumice.Session) -> None:
    session.load(compile_module(PEER, "--iree-execution-model=async-external"))
    device = session.device
    before, after = HalFence(device.hal), HalFence(device.hal)
    out = device.zeros(4)
    assert session.call("peer.plain", X, out=out, wait=before, signal=after) is out
    assert not after.query()
    before.signal()
    np.testing.assert_array_equal(out.numpy(), X * X)  # waits for the fence
    session.await_fence(after, 60)
    failed = HalFence(device.hal)
    before = HalFence(device.hal)
    session.call("peer.plain", X + 1, out=out, wait=before, signal=failed)
    before.fail(UnavailableError("no input"))
    with pytest.raises(UnavailableError):
        session.await_fence(failed, 60)
    with pytest.raises(UnavailableError):
        out.numpy()
    out.copy_from(X)
    np.testing.assert_array_equal(out.numpy(), X)


def test_reading_waits_for_a_program_that_is_under_way(program: pumice.Session) -> None:
    device = program.device
    before, after = HalFence(device.hal), HalFence(device.hal)
    whole = device.zeros(128)
    part = whole[64:68]
    call = program.lookup("program.mul$async")
    assert call(X, X, out=part, wait=before, signal=after) is part
    with pytest.raises(pumice.DeadlineExceededError):
        part.wait(0.01)
    with pytest.raises(pumice.DeadlineExceededError):
        whole.wait(0.01)
    before.signal()
    np.testing.assert_array_equal(whole.numpy()[64:68], X * X)
    # What is closed, or dropped, under way is written all the same.
    before, after = HalFence(device.hal), HalFence(device.hal)
    call(X, X, out=device.zeros(4), wait=before, signal=after)
    closed = device.zeros(4)
    call(X, X, out=closed, wait=before, signal=HalFence(device.hal))
    closed.close()
    before.signal()
    program.await_fence(after, 60)


def test_parts_that_cannot_be_bound_are_copied_to(program: pumice.Session) -> None:
    device, call = program.device, program.lookup("program.mul")
    whole = device.zeros(9)
    part = whole[1:5]
    copies = 0 if part.buffer.bindable else 1
    call(X, X, out=part)
    a = device.asarray(X)
    with counted(device, allocations=copies, copies=copies):
        assert call(a, a, out=part) is part
    np.testing.assert_array_equal(whole.numpy(), [0, *(X * X), 0, 0, 0, 0])


def test_functions_with_storages_alone(program: pumice.Session) -> None:
    device, call = program.device, program.lookup("program.mlp$async")
    arguments = [device.asarray(array) for array in arrays(*SHAPES["mlp"])]
    wanted = program.call("program.mlp", *arguments)
    with counted(device, allocations=2, copies=0):
        results = call(*arguments)
    outs = device.zeros((8, 4)), device.zeros((8, 32))
    assert call(*arguments, *outs) is None  # given by position they are arguments
    for array, two, three in zip(wanted, results, outs, strict=True):
        np.testing.assert_array_equal(array.numpy(), two.numpy())
        np.testing.assert_array_equal(array.numpy(), three.numpy())
    with pytest.raises(InvalidArgumentError, match=r"only the program knows the shape of result 0"):
        program.call("program.tanh$async", X)


def test_either_signedness_and_buffer_views(program: pumice.Session) -> None:
    device, bytes_ = program.device, np.array([1, 2, 3, 100], np.uint8)
    for dtype in (np.int8, np.uint8):
        out = device.zeros(4, dtype)
        program.call("program.bytes", bytes_, out=out)
        np.testing.assert_array_equal(out.numpy(), (bytes_ + bytes_).view(dtype))
    view = device.zeros(4).buffer_view(ElementType.FLOAT_32)
    assert program.call("program.mul", X, X, out=view) is view
    np.testing.assert_array_equal(elements(program, view), X * X)


# -- calls of every kind ---------------------------------------------------------------------------------


def test_every_kind_of_call(program: pumice.Session) -> None:
    device, call = program.device, program.lookup("program.mul")
    calls: list[Callable[[DeviceArray], object]] = [
        lambda out: call(X, X, out=out),
        lambda out: call(X, input1=X, out=(out,)),
        lambda out: program.call("program.mul", X, X, out=out, timeout=60),
        lambda out: call.submit(X, X, out=out).result(60),
        lambda out: program.submit(call, X, X, out=[out]).result(60),
        lambda out: asyncio.run(call.call_async(X, X, out=out)),
        lambda out: asyncio.run(program.call_async(call, X, X, out=out)),
    ]
    for entry, observed in itertools.product(calls, (False, True)):
        out = device.zeros(4)
        if observed:
            with program.profile() as profile:
                assert entry(out) is out
            assert [record.name for record in profile.calls] == ["program.mul"]
        else:
            assert entry(out) is out
        np.testing.assert_array_equal(out.numpy(), X * X)


@pytest.mark.parametrize("concurrent", [False, True])
def test_streams_write_into_arrays_in_turn(device: pumice.Device, concurrent: bool) -> None:
    with pumice.Session(device, options=pumice.SessionOptions(concurrent=concurrent)) as session:
        session.load(compiled())
        call = session.lookup("program.mul")
        ring = [device.zeros(4) for _ in range(3)]

        async def run(ordered: bool, count: int, outs: object) -> list[np.ndarray]:
            results = []
            calls = ((X + index, X) for index in range(count))
            async for one in call.stream(calls, out=outs, depth=3, ordered=ordered):  # type: ignore[arg-type]
                assert any(one is two for two in ring)
                results.append(one.numpy())
            return results

        for index, value in enumerate(asyncio.run(run(True, 20, itertools.cycle(ring)))):
            np.testing.assert_array_equal(value, (X + index) * X)
        assert len(asyncio.run(run(False, 3, ring))) == 3
        with pytest.raises(InvalidArgumentError, match="came again while a call that writes it was in flight"):
            asyncio.run(run(True, 20, itertools.cycle(ring[:2])))
        with pytest.raises(InvalidArgumentError, match="ended before its calls"):
            asyncio.run(run(True, 20, ring))
        with pytest.raises(InvalidArgumentError, match="out of a stream is an iterable"):
            asyncio.run(run(True, 20, 3))


def test_overlapping_calls_and_cancellation_leave_arrays_alone(device: pumice.Device) -> None:
    with pumice.Session(device, options=pumice.SessionOptions(concurrent=True)) as session:
        session.load(compiled())
        call = session.lookup("program.newton")
        arguments = [invocation + index for index, invocation in enumerate(arrays(*[(8,)] * 12))]
        outs = [device.zeros(8) for _ in arguments]
        running = [call.submit(invocation, out=out) for invocation, out in zip(arguments, outs, strict=True)]
        for invocation in running[::3]:
            invocation.cancel()
        for index, (invocation, two) in enumerate(zip(running, outs, strict=True)):
            if index % 3:
                assert invocation.result(60) is two
                np.testing.assert_allclose(two.numpy(), np.sqrt(arguments[index]), rtol=1e-5)
        for out in outs[::3]:
            out.copy_from(np.ones(8, np.float32))
            out.close()


# -- errors ----------------------------------------------------------------------------------------------


def test_wrong_arrays_are_refused_and_nothing_is_written(program: pumice.Session) -> None:
    device = program.device
    a = device.asarray(X)
    readonly, closed = device.zeros(4), device.zeros(4)
    readonly.buffer.access = MemoryAccess.READ
    closed.close()
    # Arrays are made first: nothing is allocated or copied afterwards.
    with pumice.open_device() as other:
        wrong: list[tuple[object, type[PumiceError], str]] = [
            (device.zeros(5), InvalidArgumentError, r"out for result 0 \(output0: tensor<4xf32>\) is an array"),
            (device.zeros((2, 2)), InvalidArgumentError, r"shape \(2, 2\) and float32; expected shape \(4,\)"),
            (device.zeros(4, np.int32), InvalidArgumentError, "expected dtype float32"),
            (other.zeros(4), InvalidArgumentError, "on another device object"),
            (np.zeros(4, np.float32), InvalidArgumentError, "got a NumPy array; make one with session.device.empty"),
            (3, InvalidArgumentError, "got int"),
            ((), InvalidArgumentError, "out takes 1 array, for output0: tensor<4xf32>; got 0"),
            ((device.zeros(4), device.zeros(4)), InvalidArgumentError, "out takes 1 array"),
            (a, InvalidArgumentError, r"shares memory with argument 0 \(input0: tensor<4xf32>\)"),
            (a.reshape(4), InvalidArgumentError, "shares memory with argument 0"),
            (closed, ClosedError, "it was closed"),
            (readonly, PermissionDeniedError, "its memory may only be read"),
            (device.zeros(4).view(np.int32), InvalidArgumentError, "expected dtype float32"),
            (device.zeros(4)[1:], InvalidArgumentError, "expected shape"),
        ]
        for out, error, text in wrong:
            with counted(device, allocations=0, copies=0), pytest.raises(error, match=text):
                program.call("program.mul", a, a, out=out)
            for one in out if isinstance(out, tuple) else (out,):
                if isinstance(one, DeviceArray) and not one.is_closed and one.buffer is not a.buffer:
                    assert not np.any(one.numpy() != (X if one.buffer.overlaps(a.buffer) else 0))


def test_overlaps_are_refused(program: pumice.Session) -> None:
    device, call = program.device, program.lookup("program.mul")
    whole = device.asarray(np.arange(256, dtype=np.float32))
    before = whole.numpy()
    for start in (61, 62, 64, 66, 67):
        with pytest.raises(InvalidArgumentError, match="shares memory with argument 1"):
            call(X, whole[64:68], out=whole[start : start + 4])
    outs = whole[:32].reshape(8, 4), whole[31 : 31 + 256 - 64]
    arguments = arrays(*SHAPES["mlp"])
    with pytest.raises(InvalidArgumentError, match="expected shape"):
        program.call("program.mlp", *arguments, out=outs)
    big = device.zeros(8 * 32 + 31)
    with pytest.raises(InvalidArgumentError, match=r"out for result 1 .* and out for result 0 .* share memory"):
        program.call("program.mlp", *arguments, out=(big[:32].reshape(8, 4), big[31:].reshape(8, 32)))
    assert not big.numpy().any()
    # A program's result is memory like any other, and so is what it was made of.
    y = call(X, X)
    with pytest.raises(InvalidArgumentError, match="shares memory"):
        call(X, y, out=y)
    call(X, whole[64:68], out=whole[128:132])
    np.testing.assert_array_equal(whole.numpy()[:128], before[:128])


def test_lengths_that_only_the_program_knows(program: pumice.Session) -> None:
    device = program.device
    x = device.asarray(arrays((5,))[0])
    for count in (4, 6):
        out = device.zeros(count)
        with pytest.raises(InvalidArgumentError, match=f"expected shape `5`, actual shape `{count}`"):
            program.call("program.tanh", x, out=out)
        assert not out.numpy().any()
    with pytest.raises(InvalidArgumentError, match=r"expected shape \(\?,\)"):
        program.call("program.tanh", x, out=device.zeros((5, 1)))


@pytest.mark.only_vulkan
@pytest.mark.peer
def test_lengths_that_only_a_program_of_others_knows(peer: pumice.Session) -> None:
    device = peer.device
    out = device.zeros(3)
    with pytest.raises(InvalidArgumentError, match="byte length 12 less than expected minimum 16"):
        peer.call("peer.dynamic", X, out=out)
    assert not out.numpy().any()
    with pytest.raises(InvalidArgumentError, match="the program's result is 4xf32 on .*; its first bytes were written"):
        peer.call("peer.dynamic", X, out=device.zeros(8))
    np.testing.assert_array_equal(peer.call("peer.dynamic", X, out=device.zeros(4)).numpy(), X * X)


def test_functions_without_tensors_have_no_out(session: pumice.Session) -> None:
    with_program(session, MOVES)
    session.append_module(module(COUNTER, "numbers"))
    with pytest.raises(InvalidArgumentError, match="no tensor among its results that out= could take"):
        session.call("numbers.next", out=session.device.zeros(4))
    out = session.device.zeros(4)
    with pytest.raises(InvalidArgumentError, match="it is not in the storage that the program was given"):
        session.call("program.elsewhere", X, out=out)
    with pytest.raises(PumiceError, match="not today"):
        session.call("program.fails", X, out=out)
    assert not out.numpy().any()
    with pytest.raises(InvalidArgumentError, match="takes no wait and signal fences"):
        session.call("program.one", X, out=out, signal=HalFence(session.device.hal))


# -- conventions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("convention", ["outs", "buffers", "values", "outs,buffers"])
def test_every_convention_takes_arrays_for_results(session: pumice.Session, convention: str) -> None:
    source = SOURCE[: SOURCE.index("  func.func @mlp")] + "}\n"
    targets = ("reference",) if session.device.uri == "reference" else ("vulkan",)
    session.load(pumice.compile(source, targets=targets, calling_convention=convention))
    device, call = session.device, session.lookup("program.mul")
    a, out = device.asarray(X), device.zeros(4)
    np.testing.assert_array_equal(call(a, a).numpy(), X * X)
    call(a, a, out=out)
    with counted(device, allocations=0, copies=0):
        assert call(a, a, out=out) is out
    np.testing.assert_array_equal(out.numpy(), X * X)
    with pytest.raises(InvalidArgumentError, match=r"expected shape \(4,\)"):
        call(a, a, out=device.zeros(5))
    b = device.asarray(X)
    np.testing.assert_array_equal(call(a, b, donate=1).numpy(), X * X)
    assert b.is_closed


def test_numbers_stay_numbers_beside_arrays_in_place(session: pumice.Session) -> None:
    targets = ("reference",) if session.device.uri == "reference" else ("vulkan",)
    session.load(pumice.compile(STEP, targets=targets, calling_convention="values"))
    device, call = session.device, session.lookup("program.step")
    w, out = device.asarray(X), device.zeros(4)
    call(w, 0.5)
    before = device.hal.allocation_count
    plain = call(w, 0.5)
    allocations = device.hal.allocation_count - before
    call(w, 0.5, out=out)
    reads = 2 * device.staging  # the numbers come through staging memory
    with counted(device, allocations=allocations - 1 + reads, copies=reads):
        results = call(w, 0.5, out=out)
    assert results[0] is out and results[1:] == plain[1:] == (0.25, False)
    assert [type(one) for one in results[1:]] == [float, bool]
    np.testing.assert_array_equal(out.numpy(), plain[0].numpy())
    address = w.buffer.descriptor
    y, rate, _ = call(w, 0.5, donate="input0")
    assert y.buffer.descriptor == address and w.is_closed and rate == 0.25
    np.testing.assert_array_equal(y.numpy(), out.numpy())
    with pytest.raises(InvalidArgumentError, match=r"out takes 1 array, for output0"):
        call(X, 0.5, out=(out, out))


def test_results_of_native_functions_are_copied(session: pumice.Session) -> None:
    native = pumice.NativeModule("native")

    @native.function("same", "0r_ri")
    def same(view: object) -> tuple[object, int]:
        return view, 3

    session.append_module(native)
    device = session.device
    x, out = device.asarray(X), device.zeros(4)
    with counted(device, allocations=0, copies=1):
        results = session.call("native.same", x, out=out)
    assert results[0] is out and results[1] == 3
    np.testing.assert_array_equal(out.numpy(), X)
    for wrong in (device.zeros(5), device.zeros(4, np.int32)):
        with pytest.raises(InvalidArgumentError, match="the program's result is 4xf32 on .*; nothing was written"):
            session.call("native.same", x, out=wrong)
        assert not wrong.numpy().any()
    y, _ = session.call("native.same", x, donate=0)
    assert x.is_closed
    np.testing.assert_array_equal(y.numpy(), X)
