"""The native module io_parameters: load, gather and scatter, on mapped and on staged memory, and its errors."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pumice.hal.programs.fence import HalFence
from pumice.hal_vulkan import Buffer, BufferUsage, Device, Fence, MemoryTypeFlags
from pumice.runtime.modules.parameters.module import io_parameters_module
from pumice.runtime.modules.parameters.upload import repeat_pattern
from pumice.runtime.parameters.entry import ParameterEntry
from pumice.runtime.parameters.index import ParameterIndex
from pumice.status import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    PumiceError,
)
from pumice.vm.types.buffer import VmBuffer
from pumice.vm.types.list import VmList

CONVENTIONS = {"load": "0rIrrrIiirrr_r", "gather": "0rIrrrrrrr_v", "scatter": "0rIrrrrrrr_v"}
DEVICE_LOCAL = int(MemoryTypeFlags.DEVICE_LOCAL)
STORAGE = 0xC03  # transfer and storage, as compilers ask for
DEADLINE = 30.0


class Module:
    """The module's functions as an import calls them: by name and calling convention, on one state."""

    def __init__(self, **scopes: ParameterIndex) -> None:
        module = io_parameters_module({("" if name == "global_" else name): index for name, index in scopes.items()})
        self.exports = module.exports
        state = module.new_state()
        bound = {name: overloads[0].bind(state) for name, overloads in self.exports.items()}
        self.load, self.gather, self.scatter = bound["load"], bound["gather"], bound["scatter"]


def keys(*names: str) -> tuple[VmBuffer, VmBuffer]:
    text = b"".join(name.encode() for name in names)
    table, position = b"", 0
    for name in names:
        table += struct.pack("<II", position, len(name.encode()))
        position += len(name.encode())
    return VmBuffer.wrap(table), VmBuffer.wrap(text)


def spans(*ranges: tuple[int, int, int]) -> VmBuffer:
    return VmBuffer.wrap(b"".join(struct.pack("<QQQ", *one) for one in ranges))


def scope(name: str) -> VmBuffer:
    return VmBuffer.wrap(name.encode())


def read(device: Device, buffer: Buffer) -> bytes:
    """A buffer's bytes, whether or not the host sees it."""
    if buffer.host_visible:
        return buffer.read()
    with (
        device.create_buffer(buffer.size, memory_type=MemoryTypeFlags.HOST_LOCAL) as staged,
        device.create_semaphore() as semaphore,
    ):
        device.compute_queue.copy(buffer, staged, signals=((semaphore, 1),))
        semaphore.wait(1, DEADLINE)
        return staged.read()


def write(device: Device, buffer: Buffer, data: bytes) -> None:
    with device.create_semaphore() as semaphore:
        device.compute_queue.update(buffer, data, signals=((semaphore, 1),))
        semaphore.wait(1, DEADLINE)


def load(module: Module, device: Device, name: str, wanted: Sequence[tuple[str, int, int]]) -> list[Buffer]:
    """Loads (key, offset, length) and waits."""
    done = HalFence(device)
    found = module.load(
        device, -1, None, done, scope(name), -1, DEVICE_LOCAL, STORAGE,
        *keys(*(key for key, _, _ in wanted)), spans(*((offset, 0, length) for _, offset, length in wanted)),
    )  # fmt: skip
    wait(done)
    assert isinstance(found, VmList)
    return [buffer for buffer in found.values() if isinstance(buffer, Buffer)]


def wait(fence: HalFence) -> None:
    fence.wait_until(time.monotonic() + DEADLINE)


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {"small": rng.integers(0, 256, 1001, np.uint8), "matrix": rng.standard_normal((64, 33), np.float32)}


@pytest.fixture
def index(arrays: dict[str, np.ndarray]) -> ParameterIndex:
    splats = [
        ParameterEntry.of_splat("s1", b"\x07", 1001),
        ParameterEntry.of_splat("s4", b"\x01\x02\x03\x04", 4096),
        ParameterEntry.of_splat("s8", bytes(range(8)), 4 << 20),
        ParameterEntry.of_splat("s16", bytes(range(16)), 160),
    ]
    return ParameterIndex([*ParameterIndex.from_arrays(arrays).values(), *splats])


# -- without a device --------------------------------------------------------------------------------


def test_exports() -> None:
    module = Module()
    assert {name: [e.convention.text for e in found] for name, found in module.exports.items()} == {
        name: [convention] for name, convention in CONVENTIONS.items()
    }


def test_scopes_are_indices() -> None:
    with pytest.raises(InvalidArgumentError, match="scope 'model': expected a ParameterIndex, got dict"):
        io_parameters_module({"model": {}})  # type: ignore[dict-item]


@pytest.mark.parametrize("start", [0, 1, 7, 8, 13])
def test_repeat_pattern(start: int) -> None:
    pattern = bytes(range(8))
    assert repeat_pattern(pattern, start, 20) == bytes(
        np.resize(np.frombuffer(pattern, np.uint8), 99)[start : start + 20]
    )


def test_arguments_that_are_no_objects_of_their_type() -> None:
    module = Module()
    rest = (*keys(), spans())
    with pytest.raises(InvalidArgumentError, match="expected a !hal.device, got null"):
        module.gather(None, -1, None, None, None, None, *rest)
    with pytest.raises(InvalidArgumentError, match="expected a !hal.fence, got str"):
        module.gather(None, -1, "fence", None, None, None, *rest)


# -- load --------------------------------------------------------------------------------------------


@pytest.mark.vulkan
def test_loads_data_and_splats(any_device: Device, index: ParameterIndex, arrays: dict[str, np.ndarray]) -> None:
    module = Module(model=index)
    wanted = [(name, 0, entry.length) for name, entry in index.items()]
    loaded = dict(zip(index, load(module, any_device, "model", wanted), strict=True))
    for name, array in arrays.items():
        assert read(any_device, loaded[name]) == array.tobytes()
    for name in ("s1", "s4", "s8", "s16"):
        splat = index[name].splat
        assert splat is not None
        assert read(any_device, loaded[name]) == splat * (index[name].length // len(splat))


@pytest.mark.vulkan
def test_loads_parts(any_device: Device, index: ParameterIndex, arrays: dict[str, np.ndarray]) -> None:
    module = Module(global_=index)
    wanted = [("small", 3, 7), ("s8", 5, 21), ("s4", 1, 6), ("s16", 9, 3), ("small", 1001, 0)]
    found = [read(any_device, buffer) for buffer in load(module, any_device, "", wanted)]
    tiled = {
        name: bytes(np.resize(np.frombuffer(index[name].splat or b"", np.uint8), 64)) for name in ("s4", "s8", "s16")
    }
    assert found == [arrays["small"].tobytes()[3:10], tiled["s8"][5:26], tiled["s4"][1:7], tiled["s16"][9:12], b""]


@pytest.mark.vulkan
def test_loads_more_than_is_staged_at_a_time(
    any_device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unaligned, so that nothing is imported; pieces are many."""
    monkeypatch.setattr("pumice.runtime.modules.parameters.upload._PIECE_BYTES", 100_000)
    monkeypatch.setattr("pumice.runtime.modules.parameters.upload._IMPORT_BYTES", 1 << 40)
    data = np.random.default_rng(5).integers(0, 256, 1_234_567, np.uint8)
    path = tmp_path / "big.irpa"
    ParameterIndex.from_arrays({"pad": data[:1], "big": data}).save(path)
    (buffer,) = load(Module(m=ParameterIndex.from_file(path)), any_device, "m", [("big", 0, len(data))])
    assert read(any_device, buffer) == data.tobytes()


@pytest.mark.vulkan
@pytest.mark.parametrize("start", [0, 5], ids=["imported", "staged"])
def test_large_parameters(any_device: Device, tmp_path: Path, start: int) -> None:
    """An aligned one is imported where there is staging; one that is not goes the other way."""
    data = np.random.default_rng(6).integers(0, 256, 3 << 20, np.uint8)
    path = tmp_path / "big.irpa"
    ParameterIndex.from_arrays({"big": data}).save(path)
    (buffer,) = load(Module(m=ParameterIndex.from_file(path)), any_device, "m", [("big", start, (3 << 20) - start)])
    assert read(any_device, buffer) == data.tobytes()[start:]


@pytest.mark.vulkan
def test_asks_for_the_memory_it_was_asked_for(device: Device, index: ParameterIndex) -> None:
    done = HalFence(device)
    memory = int(MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE)
    usage = 0x80C03
    found = Module(m=index).load(
        device, -1, None, done, scope("m"), -1, memory, usage, *keys("small"), spans((0, 0, 1001))
    )
    wait(done)
    (buffer,) = found.values()
    assert buffer.memory_type & MemoryTypeFlags.HOST_LOCAL == MemoryTypeFlags.HOST_LOCAL
    assert buffer.usage == BufferUsage(usage) and buffer.host_visible


@pytest.mark.vulkan
def test_the_signal_comes_after_the_wait(any_device: Device, index: ParameterIndex) -> None:
    module = Module(m=index)
    before, after = HalFence(any_device), HalFence(any_device)
    module.load(
        any_device, -1, before, after, scope("m"), -1, DEVICE_LOCAL, STORAGE, *keys("small", "s4"),
        spans((0, 0, 1001), (0, 0, 64)),
    )  # fmt: skip
    assert not after.query()
    before.signal()
    wait(after)


@pytest.mark.vulkan
def test_a_wait_that_fails_fails_the_signal(any_device: Device, index: ParameterIndex) -> None:
    module = Module(m=index)
    for early in (True, False):
        before, after = HalFence(any_device), HalFence(any_device)
        if early:
            before.fail(AbortedError("ended"))
        buffer = any_device.create_buffer(64)
        module.gather(any_device, -1, before, after, scope("m"), buffer, *keys("small"), spans((0, 0, 64)))
        if not early:
            before.fail(AbortedError("ended"))
        with pytest.raises(AbortedError, match="ended"):
            wait(after)
        buffer.close()


# -- gather and scatter ------------------------------------------------------------------------------


@pytest.mark.vulkan
@pytest.mark.parametrize("pending", [False, True], ids=["ready", "pending"])
def test_gather(any_device: Device, index: ParameterIndex, arrays: dict[str, np.ndarray], pending: bool) -> None:
    module = Module(m=index)
    with any_device.create_buffer(4096) as buffer:
        write(any_device, buffer, b"\xee" * 4096)
        before, after = HalFence(any_device), HalFence(any_device)
        if not pending:
            before.signal()
        module.gather(
            any_device, -1, before, after, scope("m"), buffer, *keys("small", "matrix", "s4", "s8"),
            spans((1, 3, 500), (0, 1024, 256), (2, 2048, 64), (3, 3001, 100)),
        )  # fmt: skip
        if pending:
            assert not after.query() and read(any_device, buffer) == b"\xee" * 4096
            before.signal()
        wait(after)
        expected = bytearray(b"\xee" * 4096)
        expected[3:503] = arrays["small"].tobytes()[1:501]
        expected[1024:1280] = arrays["matrix"].tobytes()[:256]
        expected[2048:2112] = repeat_pattern(b"\x01\x02\x03\x04", 2, 64)
        expected[3001:3101] = repeat_pattern(bytes(range(8)), 3, 100)
        assert read(any_device, buffer) == expected


@pytest.mark.vulkan
def test_gather_into_host_memory_waits_for_what_uses_it(device: Device, index: ParameterIndex) -> None:
    """The target is written where it lies only once the wait is reached."""
    module = Module(m=index)
    with device.create_buffer(64, memory_type=MemoryTypeFlags.HOST_LOCAL) as buffer:
        buffer.write(bytes(64))
        semaphore = device.create_semaphore()
        before, after = Fence([(semaphore, 1)]), HalFence(device)
        module.gather(device, -1, before, after, scope("m"), buffer, *keys("s1"), spans((0, 0, 64)))
        assert buffer.read() == bytes(64)
        threading.Timer(0.05, semaphore.signal, (1,)).start()
        wait(after)
        assert buffer.read() == b"\x07" * 64
        semaphore.close()


@pytest.mark.vulkan
@pytest.mark.parametrize("pending", [False, True], ids=["ready", "pending"])
def test_scatter(any_device: Device, tmp_path: Path, pending: bool) -> None:
    path = tmp_path / "w.irpa"
    ParameterIndex.from_arrays({"a": np.zeros(100, np.uint8), "b": np.zeros(50, np.uint8)}).save(path)
    array = np.zeros(16, np.uint8)
    files = ParameterIndex.from_file(path, writable=True)
    both = ParameterIndex([*files.values(), *ParameterIndex.from_arrays({"c": array}, writable=True).values()])
    module = Module(m=both)
    source = bytes(range(256))
    with any_device.create_buffer(256) as buffer:
        write(any_device, buffer, source)
        before, after = HalFence(any_device), HalFence(any_device)
        if not pending:
            before.signal()
        module.scatter(
            any_device, -1, before, after, buffer, scope("m"), *keys("a", "b", "c", "a"),
            spans((10, 0, 30), (0, 200, 50), (3, 101, 5), (100, 256, 0)),
        )  # fmt: skip
        if pending:
            assert not after.query() and not array.any()
            before.signal()
        wait(after)
    expected = np.zeros(16, np.uint8)
    expected[3:8] = np.arange(101, 106)
    np.testing.assert_array_equal(array, expected)
    again = ParameterIndex.from_file(path)
    assert bytes(again["a"].view()) == bytes(10) + source[:30] + bytes(60)
    assert bytes(again["b"].view()) == source[200:250]


@pytest.mark.vulkan
def test_what_is_loaded_comes_back(any_device: Device, index: ParameterIndex, arrays: dict[str, np.ndarray]) -> None:
    result = np.zeros_like(arrays["matrix"])
    module = Module(source=index, result=ParameterIndex.from_arrays({"x": result}, writable=True))
    (buffer,) = load(module, any_device, "source", [("matrix", 0, result.nbytes)])
    done = HalFence(any_device)
    module.scatter(any_device, -1, None, done, buffer, scope("result"), *keys("x"), spans((0, 0, result.nbytes)))
    wait(done)
    np.testing.assert_array_equal(result, arrays["matrix"])


# -- errors ------------------------------------------------------------------------------------------


@pytest.mark.vulkan
@pytest.mark.parametrize(
    ("name", "table", "text", "ranges", "error", "message"),
    [
        ("modle", *keys("small"), spans((0, 0, 1)), NotFoundError, "scope 'modle'; the closest scopes: 'model'"),
        ("model", *keys("smal"), spans((0, 0, 1)), NotFoundError, "named 'smal'; the closest parameters: 'small'"),
        ("model", *keys("small"), spans((0, 0, 1002)), OutOfRangeError, r"wants bytes \[0, 1002\), it has 1001"),
        ("model", *keys("small"), spans((2**64 - 1, 0, 2)), OutOfRangeError, "wants bytes"),
        ("model", *keys("s1"), spans((0, 0, 2**63)), OutOfRangeError, "wants bytes"),
        ("model", *keys("small"), VmBuffer.wrap(bytes(23)), InvalidArgumentError, "spans of 24 bytes"),
        ("model", *keys("small"), spans((0, 0, 1), (0, 0, 1)), InvalidArgumentError, "expected 2 keys"),
        ("model", VmBuffer.wrap(struct.pack("<II", 1, 5)), VmBuffer.wrap(b"small"), spans((0, 0, 1)), OutOfRangeError,
         r"bytes \[1, 6\) of a text of 5"),
        ("model", VmBuffer.wrap(struct.pack("<II", 2**32 - 1, 2**32 - 1)), VmBuffer.wrap(b"small"), spans((0, 0, 1)),
         OutOfRangeError, "of a text of 5"),
        ("model", None, VmBuffer.wrap(b""), spans(), InvalidArgumentError, "expected a !vm.buffer, got null"),
    ],
)  # fmt: skip
def test_errors_are_raised_and_fail_the_signal(
    device: Device,
    index: ParameterIndex,
    name: str,
    table: VmBuffer | None,
    text: VmBuffer,
    ranges: VmBuffer,
    error: type[PumiceError],
    message: str,
) -> None:
    module = Module(model=index)
    with device.create_buffer(16) as buffer:
        calls = (
            lambda done: module.load(
                device, -1, None, done, scope(name), -1, DEVICE_LOCAL, STORAGE, table, text, ranges
            ),
            lambda done: module.gather(device, -1, None, done, scope(name), buffer, table, text, ranges),
            lambda done: module.scatter(device, -1, None, done, buffer, scope(name), table, text, ranges),
        )
        for call in calls:
            done = HalFence(device)
            with pytest.raises(error, match=message):
                call(done)
            with pytest.raises(error, match=message):
                wait(done)


@pytest.mark.vulkan
def test_what_a_buffer_and_an_entry_cannot_do(device: Device, index: ParameterIndex) -> None:
    module = Module(m=index)
    with device.create_buffer(16) as buffer:
        with pytest.raises(OutOfRangeError, match=r"bytes \[10, 20\) do not lie within the buffer of 16 bytes"):
            module.gather(device, -1, None, None, scope("m"), buffer, *keys("small"), spans((0, 10, 10)))
        with pytest.raises(PermissionDeniedError, match="'small' is read-only"):
            module.scatter(device, -1, None, None, buffer, scope("m"), *keys("small"), spans((0, 0, 10)))
        with pytest.raises(FailedPreconditionError, match="splat"):
            module.scatter(device, -1, None, None, buffer, scope("m"), *keys("s1"), spans((0, 0, 10)))
        with pytest.raises(InvalidArgumentError, match="its buffer offset is 0, not 8"):
            module.load(device, -1, None, None, scope("m"), -1, DEVICE_LOCAL, STORAGE, *keys("small"), spans((0, 8, 8)))
        with pytest.raises(InvalidArgumentError, match=r"got null"):
            module.gather(device, -1, None, None, scope("m"), None, *keys("small"), spans((0, 0, 8)))
