"""``donate=``: arguments whose memory the program may take, and which are closed afterwards."""

from __future__ import annotations

import asyncio
import gc

import numpy as np
import pytest
from support.peer import compile_module
from support.runtime.outputs import MOVES, PEER, SAME, compiled, counted
from support.runtime.sessions import ASYNC, allocations, identity, with_program

import pumice
from pumice.hal.programs.fence import HalFence
from pumice.runtime.arrays.array import DeviceArray
from pumice.runtime.sessions.output_call import OutputCall
from pumice.status import ClosedError, FailedPreconditionError, InvalidArgumentError, PumiceError

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("on_both")]

X = np.arange(4, dtype=np.float32)
GONE = r"was donated to program\.one as argument 0 \(x\): its memory is the program's"


@pytest.fixture
def moves(session: pumice.Session) -> pumice.Session:
    return with_program(session, MOVES)


def test_the_result_is_in_the_memory_of_the_argument(moves: pumice.Session) -> None:
    device, call = moves.device, moves.lookup("program.one")
    x = call(device.asarray(X), donate=0)
    for index, donate in enumerate((0, (0,), [0], "x", ("x", 0))):
        address = x.buffer.descriptor
        with counted(device, allocations=0, copies=0):
            y = call(x, donate=donate)
        assert y.buffer.descriptor == address and not y.is_closed
        np.testing.assert_array_equal(y.numpy(), X)  # the program writes nothing: what the argument held
        assert x.is_closed and "closed" in repr(x), index
        x = y
    x.close()
    assert allocations() == 0


def test_what_was_donated_says_so(moves: pumice.Session) -> None:
    device, call = moves.device, moves.lookup("program.one")
    x = device.asarray(X)
    part, shape, other = x[1:3], x.reshape(2, 2), call(x)
    y = call(x, donate=0)
    touched = [
        lambda: x.numpy(),
        lambda: part.numpy(),
        lambda: shape.numpy(),
        lambda: x[0],
        lambda: x.copy_from(X),
        lambda: x.copy(),
        lambda: x.map(),
        lambda: call(x),
        lambda: call(x, donate=0),
        lambda: call(shape.reshape(4)),
        lambda: call(X, out=x),
        lambda: device.zeros(4).copy_from(x),
    ]
    for touch in touched:
        with pytest.raises(ClosedError, match=GONE):
            touch()
    with pytest.raises(ClosedError):  # a program returned it: it is the same memory
        other.numpy()
    x.close()
    part.close()
    np.testing.assert_array_equal(y.numpy(), X)


def test_as_many_results_as_possible_are_in_donated_memory(moves: pumice.Session) -> None:
    device, call = moves.device, moves.lookup("program.several")
    a, b = device.asarray(X), device.asarray(X + 1)
    places = a.buffer.descriptor, b.buffer.descriptor
    with counted(device, allocations=1, copies=0):  # the third result is of another size
        x, y, z = call(a, b, donate=(0, 1))
    assert (x.buffer.descriptor, y.buffer.descriptor) == places[::-1]
    np.testing.assert_array_equal(x.numpy(), X + 1)
    np.testing.assert_array_equal(y.numpy(), X.view(np.int32).reshape(2, 2))
    assert z.shape == (8,) and a.is_closed and b.is_closed
    # What the caller gives for results comes first, and what no result can use is freed.
    a, b = device.asarray(X), device.asarray(X)
    outs = device.zeros(4), device.zeros((2, 2), np.int32), device.zeros(8)
    with counted(device, allocations=0, copies=0):
        call(a, b, out=outs, donate=(0, 1))
    assert a.is_closed and b.is_closed
    c = device.zeros(8)
    with pytest.raises(InvalidArgumentError, match="expected shape"):
        call(c, b, donate=0)
    assert not c.is_closed


def test_compiled_programs_compute_in_donated_memory(session: pumice.Session) -> None:
    session.load(compiled())
    device, call = session.device, session.lookup("program.mul")
    weight = device.asarray(X)
    step = device.asarray(np.full(4, 2, np.float32))
    address = weight.buffer.descriptor
    for index in range(5):
        before = weight
        with counted(device, allocations=0, copies=0):
            weight = call(weight, step, donate=0)
        assert before.is_closed and weight.buffer.descriptor == address
        np.testing.assert_array_equal(weight.numpy(), X * 2 ** (index + 1))
    x = device.asarray(X)
    y = session.call("program.tanh", x, donate=0)  # a length that only the program knows
    assert x.is_closed
    np.testing.assert_allclose(y.numpy(), np.tanh(X), rtol=1e-6)


@pytest.mark.only_vulkan
@pytest.mark.peer
def test_modules_of_others_release_what_they_are_given(session: pumice.Session) -> None:
    session.load(compile_module(PEER))
    session.load(compile_module(SAME))
    device = session.device
    x = device.asarray(X)
    session.call("peer.plain", X)
    live = allocations()
    y = session.call("peer.plain", x, donate=0)
    with pytest.raises(ClosedError, match=r"was donated to peer\.plain as argument 0 \(input0\)"):
        x.numpy()
    np.testing.assert_array_equal(y.numpy(), X * X)
    y.close()
    device.hal.trim()
    session.trim()
    assert allocations() < live
    # A program that returns its argument returns its memory.
    x = device.asarray(X)
    address = x.buffer.descriptor
    y, number = session.call("same.same", x, donate=0)
    assert x.is_closed and number == 7 and y.buffer.descriptor == address
    np.testing.assert_array_equal(y.numpy(), X)


def test_results_that_are_the_argument(session: pumice.Session) -> None:
    with_program(session, identity("4xf32"))
    device = session.device
    x = device.asarray(X)
    y = session.call("program.identity", x, donate=0)
    z = session.call("program.identity", y, donate=0)
    assert x.is_closed and y.is_closed
    np.testing.assert_array_equal(z.numpy(), X)
    del z
    gc.collect()
    device.hal.trim()
    assert allocations() == 0


def test_wrong_donations_are_refused_and_lose_nothing(moves: pumice.Session) -> None:
    device, call = moves.device, moves.lookup("program.one")
    x, y = device.asarray(X), device.asarray(X)
    whole = device.asarray(np.arange(256, dtype=np.float32))
    imported = device.hal.import_buffer(np.arange(4, dtype=np.float32).data.cast("B"))
    assert imported is not None
    host = DeviceArray(device, imported, (4,), np.dtype(np.float32), 16)
    cases: list[tuple[tuple[object, ...], dict[str, object], type[PumiceError], str]] = [
        ((x,), {"donate": 1}, InvalidArgumentError, r"has no argument 1 to donate; it takes x: tensor<4xf32>"),
        ((x,), {"donate": -1}, InvalidArgumentError, "no argument -1"),
        ((x,), {"donate": "w"}, InvalidArgumentError, "no argument 'w'"),
        ((x,), {"donate": True}, InvalidArgumentError, "donate takes numbers or names of arguments, got True"),
        ((x,), {"donate": 1.5}, InvalidArgumentError, "got 1.5"),
        ((x,), {"donate": (None,)}, InvalidArgumentError, r"got \(None,\)"),
        ((whole[64:68],), {"donate": 0}, InvalidArgumentError, "it is a view of another array; donate that one"),
        ((x.reshape(4),), {"donate": 0}, InvalidArgumentError, "it is a view of another array"),
        ((x,), {"donate": 0, "out": x}, InvalidArgumentError, "shares memory with argument 0"),
        ((np.zeros(5, np.float32),), {"donate": 0}, InvalidArgumentError, "expected shape"),
    ]
    if host.buffer.imported:
        cases.append(((host,), {"donate": 0}, InvalidArgumentError, "its memory is the host's; donate a copy"))
    for arguments, named, error, text in cases:
        with pytest.raises(error, match=text):
            call(*arguments, **named)
        np.testing.assert_array_equal(x.numpy(), X)
    several = moves.lookup("program.several")
    for arguments in ((x, x), (x, x.reshape(4))):
        for donate in (0, (0, 1)):
            with pytest.raises(InvalidArgumentError, match=r"argument . shares its memory|it is a view"):
                several(*arguments, donate=donate)
    with pytest.raises(PumiceError, match="not today"):  # before it wrote anything
        moves.call("program.fails", x, donate=0)
    with pytest.raises(pumice.DeadlineExceededError):
        with_program(pumice.Session(device), ASYNC).call("program.never", y, donate=0, timeout=0.01)
    np.testing.assert_array_equal(x.numpy(), X)
    np.testing.assert_array_equal(y.numpy(), X)
    # Host arrays have nothing to give: the program's copy is its own already.
    np.testing.assert_array_equal(several(X, x, donate=(0, 1))[0].numpy(), X)
    assert x.is_closed


def test_every_kind_of_call(moves: pumice.Session) -> None:
    device, call = moves.device, moves.lookup("program.one")
    x = device.asarray(X)
    x = moves.call("program.one", x, donate=0)
    x = call.submit(x, donate=0).result(60)
    x = moves.submit("program.one", x, donate="x").result(60)
    x = asyncio.run(call.call_async(x, donate=0))
    with moves.profile() as profile:
        x = moves.call(call, x, donate=0)
    assert [record.name for record in profile.calls] == ["program.one"]

    async def stream(given: list[DeviceArray]) -> list[DeviceArray]:
        return [record async for record in call.stream(given, donate=0, depth=2)]

    given = [device.asarray(X + index) for index in range(5)]
    for index, record in enumerate(asyncio.run(stream(given))):
        np.testing.assert_array_equal(record.numpy(), X + index)
        assert given[index].is_closed
    np.testing.assert_array_equal(x.numpy(), X)


def test_donated_memory_lives_until_held_work_has_run(session: pumice.Session) -> None:
    session.load(compiled())
    device, call = session.device, session.lookup("program.mul$async")
    before, after = HalFence(device.hal), HalFence(device.hal)
    x, y = device.asarray(X), device.asarray(X)
    result = call(x, y, donate=(0, 1), wait=before, signal=after)
    assert x.is_closed and y.is_closed
    del x, y
    gc.collect()
    fill = [device.zeros(4) for _ in range(8)]  # would take the memory, were it free
    before.signal()
    session.await_fence(after, 60)
    np.testing.assert_array_equal(result.numpy(), X * X)
    assert not any(one.numpy().any() for one in fill)
    with pumice.open_device() as other:
        elsewhere = HalFence(other.hal)
        with pytest.raises(FailedPreconditionError, match="cannot wait for a fence of another device"):
            call(device.asarray(X), X, donate=0, wait=elsewhere)


def test_a_thousand_steps_leave_memory_where_it_was(session: pumice.Session) -> None:
    session.load(compiled())
    device, call = session.device, session.lookup("program.mul")
    weight, one = device.asarray(X), device.asarray(np.ones(4, np.float32))
    for _ in range(10):
        weight = call(weight, one, donate=0)
    live = allocations()
    for _ in range(1000):
        weight = call(weight, one, donate=0)
    assert allocations() == live
    np.testing.assert_array_equal(weight.numpy(), X)


def test_calls_that_overlap_cannot_take_the_same_memory(moves: pumice.Session) -> None:
    device, call = moves.device, moves.lookup("program.one")
    x = device.asarray(X)
    alias = call(x)  # the program returned its argument: the same memory
    outputs = call._writer_for(None).outputs
    calls = [OutputCall(outputs, (entry,), {}, None, 0, None, None) for entry in (x, x, alias)]
    calls[0].bind()
    for entry in calls[1:]:
        with pytest.raises(FailedPreconditionError, match="it is donated to a call in progress"):
            entry.bind()
        entry.end()
    with pytest.raises(FailedPreconditionError, match="in progress"):
        call(x, donate=0)
    calls[0].end()
    y = call(x, donate=0)
    np.testing.assert_array_equal(call(y, donate=0).numpy(), X)
    # Closed while a call is under way: its result has no memory.
    x = device.asarray(X)
    late = OutputCall(outputs, (x,), {}, None, 0, None, None)
    late.bind()
    x.close()
    with pytest.raises(ClosedError):
        late.finish(None)
    late.end()


def test_failed_calls_give_their_claims_up(session: pumice.Session) -> None:
    with_program(session, ASYNC)
    x = session.device.asarray(X)
    for _ in range(2):
        with pytest.raises(pumice.UnavailableError):
            session.call("program.fails", x, donate=0)
        with pytest.raises(pumice.UnavailableError):
            session.submit("program.fails", x, donate=0).result(60)
        with pytest.raises(pumice.DeadlineExceededError):
            session.submit("program.never", x, donate=0, timeout=0.01).result(60)
        running = session.submit("program.never", x, donate=0)
        running.cancel()
        with pytest.raises(pumice.CancelledError):
            running.result(60)
    session.call("program.pass", x, donate=0)
    assert x.is_closed
