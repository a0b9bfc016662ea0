"""Arrays in and out of programs: passed in place, converted or refused, and who keeps the memory."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest
from support.runtime.sessions import allocations, elements, function, identity, with_program

import pumice
from pumice.hal.programs.fence import HalFence
from pumice.hal_vulkan import BufferView, ElementType
from pumice.runtime.arrays.array import DeviceArray
from pumice.status import (
    ClosedError,
    InvalidArgumentError,
)

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("on_both")]


KINDS = {
    "i1": np.bool_,
    "i8": np.int8,
    "si8": np.int8,
    "ui8": np.uint8,
    "i16": np.int16,
    "ui16": np.uint16,
    "i32": np.int32,
    "si32": np.int32,
    "ui32": np.uint32,
    "i64": np.int64,
    "ui64": np.uint64,
    "index": np.int64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
}


@pytest.mark.parametrize("shape", [(2, 3), (), (0, 3), (1,)])
def test_arrays_of_every_type_and_shape(session: pumice.Session, shape: tuple[int, ...]) -> None:
    static, dynamic = "".join(f"{length}x" for length in shape), "?x" * len(shape)
    names = {kind: "".join(filter(str.isalnum, kind)) for kind in KINDS}
    with_program(
        session,
        "".join(
            identity(static + kind, name) + identity(dynamic + kind, f"dynamic_{name}") for kind, name in names.items()
        ),
    )
    for kind, name in names.items():
        x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(KINDS[kind])
        for function_name in (name, f"dynamic_{name}"):
            # An empty list has no more axes to say.
            for arguments in (x, session.device.asarray(x), *([x.tolist()] if x.size else [])):
                y = session.call(f"program.{function_name}", arguments)
                assert type(y) is DeviceArray
                assert (y.dtype, y.shape, y.device) == (x.dtype, shape, session.device)
                np.testing.assert_array_equal(y.numpy(), x)


def test_unsigned_arrays_where_signedness_is_not_said(session: pumice.Session) -> None:
    widths = (8, 16, 32, 64)
    with_program(session, "".join(identity(f"3xi{bits}", f"i{bits}") for bits in widths))
    for bits in widths:
        x = np.array([0, 1, (1 << bits) - 1], f"u{bits // 8}")
        for arguments in (x, session.device.asarray(x), x.tolist()):
            y = session.call(f"program.i{bits}", arguments)
            assert y.dtype == np.dtype(f"i{bits // 8}")
            np.testing.assert_array_equal(y.numpy().view(x.dtype), x)


def test_four_bit_integers_are_packed(session: pumice.Session) -> None:
    cases = [(kind, count) for kind in ("i4", "ui4", "si4") for count in (0, 1, 7, 8)]
    with_program(session, "".join(identity(f"{count}x{kind}", f"{kind}_{count}") for kind, count in cases))
    for kind, count in cases:
        wide = np.arange(count) if kind == "ui4" else np.arange(count) - 3
        x = wide.astype(ml_dtypes.uint4 if kind == "ui4" else ml_dtypes.int4)
        for arguments in (x, session.device.asarray(x), wide.tolist()):
            y = session.call(f"program.{kind}_{count}", arguments)
            assert isinstance(y, BufferView) and y.byte_length == (count + 1) // 2
            np.testing.assert_array_equal(elements(session, y), x)


class _WithArray:
    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.arange(4, dtype=np.float32)


class _WithDlpack:
    def __dlpack__(self, **options: object) -> object:
        return np.arange(4, dtype=np.float32).__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize(
    "given",
    [
        np.arange(8, dtype=np.float32)[::2] / 2,
        np.asfortranarray(np.arange(4, dtype=np.float32)),
        np.arange(4, dtype=np.float32)[::-1][::-1],
        np.broadcast_to(np.float32(0), 4) + np.arange(4, dtype=np.float32),
        [0, 1, 2, 3],
        (0.0, 1, 2, 3.0),
        [False, True, 2, 3],
        [np.float32(0), np.int8(1), 2, 3.0],
        _WithArray(),
        _WithDlpack(),
    ],
)
def test_what_has_elements(session: pumice.Session, given: object) -> None:
    with_program(session, identity("4xf32"))
    np.testing.assert_array_equal(session.call("program.identity", given).numpy(), np.arange(4, dtype=np.float32))


def test_read_only_and_two_dimensional_parts(session: pumice.Session) -> None:
    x = np.arange(24, dtype=np.int16).reshape(4, 6)
    x.setflags(write=False)
    with_program(session, identity("2x3xi16"))
    for arguments in (x[1:3, 2:5], x.T[:2, :3], x[::2, ::2]):
        np.testing.assert_array_equal(session.call("program.identity", arguments).numpy(), arguments)


def test_python_numbers_for_a_tensor_of_rank_0(session: pumice.Session) -> None:
    with_program(
        session,
        identity("f32") + identity("i8", "integer") + identity("i1", "boolean") + identity("complex<f32>", "complex"),
    )
    for name, value in (
        ("identity", 1.5),
        ("identity", 2),
        ("integer", -3),
        ("integer", 200),
        ("boolean", True),
        ("complex", 1 + 2j),
    ):
        y = session.call(f"program.{name}", value)
        assert y.shape == () and y.numpy().astype(y.dtype if value != 200 else np.uint8).item() == value


def test_device_arrays_are_passed_as_they_are(session: pumice.Session) -> None:
    with_program(session, identity("4xf32"))
    x = session.device.asarray(np.arange(4, dtype=np.float32))
    held = allocations()
    y = session.call("program.identity", x)
    assert allocations() == held
    x.copy_from(np.full(4, 7, np.float32))
    np.testing.assert_array_equal(y.numpy(), np.full(4, 7))  # the same memory: the program returned what it got


def test_parts_of_device_arrays(session: pumice.Session) -> None:
    whole = np.arange(4096, dtype=np.float32)
    x = session.device.asarray(whole)
    with_program(session, identity("4xf32") + identity("2x2xf32", "square"))
    for start in (0, 1, 3, 64, 1001, 4092):
        np.testing.assert_array_equal(
            session.call("program.identity", x[start : start + 4]).numpy(), whole[start : start + 4]
        )
    np.testing.assert_array_equal(
        session.call("program.square", x.reshape(1024, 4)[5].reshape(2, 2)).numpy(), whole[20:24].reshape(2, 2)
    )
    with pytest.raises(InvalidArgumentError, match="an array of shape .4096,. and dtype float32; expected shape .4,."):
        session.call("program.identity", x)
    with pytest.raises(InvalidArgumentError, match="dtype int32; expected dtype float32"):
        session.call("program.identity", x[:4].view(np.int32))


def test_arrays_that_are_closed_or_elsewhere(session: pumice.Session) -> None:
    with_program(session, identity("4xf32"))
    x = session.device.asarray(np.zeros(4, np.float32))
    session.call("program.identity", x)
    x.close()
    for _ in range(2):
        with pytest.raises(
            ClosedError,
            match=r"program\.identity: argument 0 \(x: tensor<4xf32>\): this array of shape \(4,\) was closed",
        ):
            session.call("program.identity", x)
    with pumice.open_device() as other:
        elsewhere = other.asarray(np.zeros(4, np.float32))
        with pytest.raises(
            InvalidArgumentError,
            match=r"argument 0 .* is on another device object, .* make both with one pumice\.Instance",
        ):
            session.call("program.identity", elsewhere)
        assert session.call("program.identity", session.device.asarray(elsewhere.numpy())).shape == (4,)
        # And a session of both takes it, where it is.
        with pumice.Session([session.device, other]) as both:
            assert with_program(both, identity("4xf32")).call("program.identity", elsewhere).device is other


def test_buffer_views(session: pumice.Session) -> None:
    with_program(session, identity("4xi32") + identity("?xi32", "dynamic"))
    x = session.device.asarray(np.arange(4, dtype=np.int32))
    view = x.buffer_view(ElementType.INT_32)
    assert session.call_direct("program.identity", (view,)) is view
    np.testing.assert_array_equal(session.call("program.identity", view).numpy(), x.numpy())
    unsigned = BufferView(view.buffer, (4,), ElementType.UINT_32)
    assert session.call("program.identity", unsigned).dtype == np.int32
    with pytest.raises(InvalidArgumentError, match=r"got a buffer view 4xf32; expected elements of type i32"):
        session.call("program.identity", BufferView(view.buffer, (4,), ElementType.FLOAT_32))
    with pytest.raises(InvalidArgumentError, match=r"got a buffer view 2x2xi32; expected shape \(4,\)"):
        session.call("program.identity", BufferView(view.buffer, (2, 2), ElementType.INT_32))


def test_declared_references(session: pumice.Session) -> None:
    with_program(
        session,
        function("view", "sync func @view(%x: !hal.buffer_view) -> (%y: !hal.buffer_view)")
        + function("buffer", "sync func @buffer(%x: !hal.buffer) -> (%y: !hal.buffer)")
        + function("fence", "sync func @fence(%x: !hal.fence) -> (%y: !hal.fence)")
        + function("any", ""),
    )
    x = np.arange(3, dtype=np.float64)
    for name in ("view", "any"):
        for arguments in (x, session.device.asarray(x)):
            y = session.call(f"program.{name}", arguments)
            assert y.dtype == np.float64 and y.tolist() == x.tolist()
    on_device = session.device.asarray(x)
    buffer = session.call("program.buffer", on_device)
    assert buffer.size == x.nbytes and session.call("program.buffer", buffer) is buffer
    fence = HalFence(session.device.hal)
    assert session.call("program.fence", fence) is fence and session.call("program.fence", None) is None
    for name, arguments, wanted in (
        ("fence", x, "!hal.fence"),
        ("buffer", "text", "!hal.buffer"),
        ("view", [1, 2], "!hal.buffer_view"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"expected a {wanted}"):
            session.call(f"program.{name}", arguments)


KEEPER = "vm.global.ref private mutable @kept : !hal.buffer_view\n" + (
    function(
        "keep",
        "sync func @keep(%x: tensor<4xf32>) -> ()",
        "  vm.global.store.ref %r0, @kept : !hal.buffer_view\n  vm.return",
        results="",
    )
    + function(
        "get",
        "sync func @get() -> (%y: tensor<4xf32>)",
        "  %r0 = vm.global.load.ref @kept : !hal.buffer_view\n  vm.return %r0",
        "",
    )
)


@pytest.mark.parametrize("part", [False, True])
def test_what_a_program_keeps_outlives_the_callers_array(session: pumice.Session, part: bool) -> None:
    with_program(session, KEEPER)
    whole = np.arange(64, dtype=np.float32)
    x = session.device.asarray(whole)
    arguments = x[32:36] if part else session.device.asarray(whole[32:36])
    session.call("program.keep", arguments)
    del x, arguments
    gc.collect()
    overwritten = [session.device.asarray(np.full(64, -1, np.float32)) for _ in range(8)]
    np.testing.assert_array_equal(session.call("program.get").numpy(), whole[32:36])
    del overwritten


@pytest.mark.only_vulkan
def test_a_numpy_argument_lives_as_long_as_the_program_keeps_it(session: pumice.Session) -> None:
    with_program(session, KEEPER)
    session.device.hal.retire()
    before = allocations()
    for n in range(5):
        session.call("program.keep", np.full(4, n, np.float32))
    assert session.call("program.get").tolist() == [4] * 4
    session.device.hal.close_dropped()
    session.device.hal.retire()
    assert allocations() == before + 1


def test_the_same_buffer_twice(session: pumice.Session) -> None:
    twice = "sync func @twice(%x: tensor<4xf32>) -> (%y: tensor<4xf32>, %z: tensor<4xf32>)"
    with_program(
        session, function("twice", twice, "  vm.return %r0, %r0", results="!hal.buffer_view, !hal.buffer_view")
    )
    y, z = session.call("program.twice", [1, 2, 3, 4])
    y.copy_from(np.zeros(4, np.float32))
    assert z.tolist() == [0] * 4
    y.close()
    assert z.is_closed
    y.close()


def test_results_outlive_their_session(device: pumice.Device) -> None:
    with pumice.Session(device) as session:
        y = with_program(session, identity("4xf32")).call("program.identity", [1, 2, 3, 4])
    assert y.tolist() == [1, 2, 3, 4]
    with pumice.Session(device) as other:
        assert with_program(other, identity("4xf32")).call("program.identity", y).tolist() == [1, 2, 3, 4]
    # Unless the session's own device goes with it.
    with pumice.Session() as owner:
        z = with_program(owner, identity("4xf32")).call("program.identity", [1, 2, 3, 4])
    with pytest.raises(ClosedError, match="this array of shape"):
        z.numpy()


@pytest.mark.only_vulkan
def test_memory_of_a_thousand_calls_is_flat(session: pumice.Session) -> None:
    with_program(session, identity("1024xf32"))
    x = np.zeros(1024, np.float32)
    for _ in range(20):
        session.call("program.identity", x)
    before = session.allocator.statistics().allocated
    for n in range(1000):
        session.call("program.identity", x, timeout=600 if n % 2 else None)
    assert session.allocator.statistics().allocated <= before + 64 * x.nbytes
