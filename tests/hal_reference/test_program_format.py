"""Executables of the reference device: the round trip, and the refusal of damaged ones."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.compiler.targets.reference import encode
from pumice.hal_reference.device import Device
from pumice.hal_reference.executable import Executable
from pumice.hal_reference.layout import load, storage_bytes, store
from pumice.hal_reference.program import Body, Node, TensorSpec
from pumice.hal_reference.program_format import HEADER, MAGIC, Function, decode
from pumice.status import (
    IncompatibleError,
    InvalidArgumentError,
    OutOfRangeError,
    PermissionDeniedError,
    PumiceError,
    UnimplementedError,
)

F32 = TensorSpec(np.dtype(np.float32), (2, 3))
BOOL = TensorSpec(np.dtype(np.bool_), (2, 3))
TABLE = np.arange(6, dtype=np.float32).reshape(2, 3)


def function() -> Function:
    """Returns (x + table, x > table), with the table as a constant and a body that uses outer values."""
    maximum = Node("maximum", (20, 21), (22,), (TensorSpec(F32.dtype, ()),), {})
    zero = TensorSpec(F32.dtype, ())
    nodes = (
        Node("constant", (), (1,), (F32,), {"value": TABLE}),
        Node("constant", (), (7,), (zero,), {"value": np.float32(0)}),
        Node("add", (0, 1), (2,), (F32,), {}),
        Node("compare", (0, 1), (3,), (BOOL,), {"comparison_direction": "GT"}),
        Node("reduce", (2, 7), (4,), (zero,), {"dimensions": [0, 1]}, (Body((20, 21), (maximum,), (22,)),)),
    )
    return Function("f", (F32,), (F32, BOOL, zero), Body((0,), nodes, (2, 3, 4)))


def flat(body: Body) -> object:
    """Returns a body as values that compare, with arrays as bytes."""
    nodes = [
        (
            node.name,
            node.operands,
            node.results,
            node.types,
            {
                key: value.tobytes() if isinstance(value, np.ndarray | np.generic) else value
                for key, value in node.attributes.items()
            },
            [flat(inner) for inner in node.bodies],
        )
        for node in body.nodes
    ]
    return body.arguments, nodes, body.results


def test_what_is_written_is_read() -> None:
    inputs = function()
    data = encode([inputs])
    (actual,) = decode(memoryview(data))
    assert (actual.name, actual.inputs, actual.outputs) == (inputs.name, inputs.inputs, inputs.outputs)
    assert flat(actual.body) == flat(inputs.body)
    assert encode([actual]) == data == encode([function()])


def test_a_function_runs_over_bytes() -> None:
    with Device() as device:
        executable = Executable(device, memoryview(encode([function()])))
        assert executable.lookup("f") == 0
        x = np.array([[5, 0, 5], [0, 5, 9]], np.float32)
        bindings = [np.frombuffer(x.tobytes(), np.uint8), *(np.zeros(size, np.uint8) for size in (24, 8, 4))]
        executable.run(executable.function(0), bindings)
        np.testing.assert_array_equal(bindings[1].view(np.float32).reshape(2, 3), x + TABLE)
        np.testing.assert_array_equal(bindings[2][:6].view(np.bool_).reshape(2, 3), x > TABLE)
        assert bindings[3].view(np.float32)[0] == (x + TABLE).max()
        with pytest.raises(OutOfRangeError, match="result 0 is .* 24 bytes; its binding has 20"):
            executable.run(executable.function(0), [bindings[0], bindings[1][:20], *bindings[2:]])


def test_dispatches_are_checked_when_they_are_recorded() -> None:
    with Device() as device:
        executable = device.program_executable("pumice-reference", memoryview(encode([function()])), b"")
        whole = [(0, 0, device.create_buffer(24), 0, -1) for _ in range(4)]
        constant = (0, 0, device.import_buffer(bytes(24)), 0, -1)
        commands = device.program_commands().begin()
        commands.dispatch_function(executable, 0, (1, 1, 1), 0, (), [constant, *whole[1:]])
        for bindings, error, message in (
            ([whole[0], constant, *whole[2:]], PermissionDeniedError, "f: result 0 may only be read"),
            (whole[:3], InvalidArgumentError, "f takes 1 inputs and 3 results, got 3 bindings"),
            ([(0, 0, None, 0, -1), *whole[1:]], InvalidArgumentError, "created with no binding capacity"),
        ):
            with pytest.raises(error, match=message):
                commands.dispatch_function(executable, 0, (1, 1, 1), 0, (), bindings)
        with pytest.raises(OutOfRangeError, match=r"1 function\(s\); 1 was asked for"):
            commands.dispatch_function(executable, 1, (1, 1, 1), 0, (), whole)


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.bfloat16, np.bool_, np.int8]
)
@pytest.mark.parametrize("count", [0, 1, 5, 8])
def test_tensors_lie_in_memory_as_on_vulkan(dtype: type, count: int) -> None:
    """Checks that integers of 2 and 4 bits are packed, the first in the lowest bits, and survive the round trip."""
    spec = TensorSpec(np.dtype(dtype), (count,))
    values = np.array([-2, 1, 0, -1, 1, -2, 1, 0][:count])
    if not np.dtype(dtype).name.startswith(("int", "bfloat")):
        values = np.abs(values)
    tensor = values.astype(dtype)
    memory = np.full(storage_bytes(spec), 0xAA, np.uint8)
    store(memory, tensor, spec, "x")
    np.testing.assert_array_equal(load(memory, spec, "x"), tensor)
    bits = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}.get(np.dtype(dtype).name)
    if bits is not None:
        word = sum((int(value) & ((1 << bits) - 1)) << (bits * at) for at, value in enumerate(values))
        assert int.from_bytes(memory.tobytes(), "little") == word


def bytes_or_self(value: object) -> object:
    return value.tobytes() if isinstance(value, np.ndarray | np.generic) else value


def damaged(change: object, **replaced: object) -> memoryview:
    """Returns the executable with a part of its JSON replaced; ``change`` is a path of keys and indices, and the new
    value.
    """
    data = encode([function()])
    length = HEADER.unpack_from(data)[2]
    root = json.loads(data[HEADER.size : HEADER.size + length])
    *path, last = change  # type: ignore[misc]
    node = root["functions"][0]
    for key in path:
        node = node[key]
    node[last] = replaced["by"]
    text = json.dumps(root).encode()
    return memoryview(HEADER.pack(MAGIC, 1, len(text)) + text + data[HEADER.size + length :])


@pytest.mark.parametrize(
    ("change", "by", "error", "message"),
    [
        (("name",), 7, InvalidArgumentError, "a name is text, got 7"),
        (("inputs",), [["float32", [2]]], InvalidArgumentError, None),
        (("inputs",), [["object", [2, 3]]], InvalidArgumentError, "object"),
        (("inputs",), [["float32", [2, -3]]], InvalidArgumentError, "a tensor of shape"),
        (("inputs",), [["float32", [1 << 50, 1 << 50]]], InvalidArgumentError, "a tensor of shape"),
        (("outputs",), [["float32", [2, 3]]], InvalidArgumentError, "zip"),
        (("outputs", 1), ["float32", [2, 3]], InvalidArgumentError, "results of"),
        (("body",), [], InvalidArgumentError, "unpack"),
        (("body", 0), [0, 5], InvalidArgumentError, "zip"),
        (("body", 0), ["x"], InvalidArgumentError, "numbers of values are integers"),
        (("body", 2), [2, 3, 99], InvalidArgumentError, "value 99 is used before it is defined"),
        (("body", 1, 2, 0), "launch_missiles", UnimplementedError, "no operation 'launch_missiles'"),
        (("body", 1, 2, 1), [0, 2], InvalidArgumentError, "value 2 is used before it is defined"),
        (("body", 1, 2, 3), [], InvalidArgumentError, "zip"),
        (("body", 1, 0, 4, "value"), {"type": ["float32", [2, 3]], "at": 1 << 40}, InvalidArgumentError, "a constant"),
        (("body", 1, 0, 4, "value"), {"type": ["float32", [2, 3]], "at": -8}, InvalidArgumentError, "a constant"),
        (("body", 1, 0, 4, "value"), {"at": 0}, InvalidArgumentError, "type"),
    ],
)
def test_damage_is_refused(change: object, by: object, error: type[PumiceError], message: str | None) -> None:
    blob = damaged(change, by=by)
    if message is None:  # it is read, and fails when it runs
        with Device() as device, pytest.raises(error):
            executable = Executable(device, blob)
            executable.run(executable.function(0), [np.zeros(64, np.uint8)] * 4)
        return
    with pytest.raises(error, match=message):
        decode(blob)


def test_other_versions_are_incompatible() -> None:
    data = bytearray(encode([function()]))
    data[4] = 9
    with pytest.raises(IncompatibleError, match="version 1 of the format pumice-reference, got 9"):
        decode(memoryview(data))
    deep = b'{"functions":' + b"[" * 100_000
    with pytest.raises(InvalidArgumentError, match="damaged"):
        decode(memoryview(HEADER.pack(MAGIC, 1, len(deep)) + deep))


@pytest.mark.slow
@given(st.data())
@settings(max_examples=300)
def test_random_damage_is_an_error_of_ours(data: st.DataObject) -> None:
    """Changes bytes at random: the executable is refused, fails when it runs, or runs."""
    blob = bytearray(encode([function()]))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(blob) - 1))
        blob[at] = data.draw(st.one_of(st.integers(0, 255), st.sampled_from(list(b'0129[]{}",-'))))
    with Device() as device:
        try:
            executable = Executable(device, memoryview(blob))
            actual = executable.function(0)
            bindings = [np.zeros(storage_bytes(spec), np.uint8) for spec in (*actual.inputs, *actual.outputs)]
            executable.run(actual, bindings)
        except PumiceError:
            pass
