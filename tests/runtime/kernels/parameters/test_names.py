"""Arguments by name: bindings by their variable or block, push constants by their members, with ``out=``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import pumice

pytestmark = pytest.mark.vulkan

MOVE = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Velocity { float values[]; } vel;
layout(std430, binding = 1) buffer Position { float values[]; } pos;
layout(std430, binding = 2) writeonly buffer Energy { float energy[]; };
layout(push_constant) uniform Push { float dt; float mass; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= energy.length()) return;
    pos.values[i] += vel.values[i] * dt;
    energy[i] = mass * vel.values[i] * vel.values[i];
}
"""
# A binding is named as a push constant; two blocks go by one name.
CLASHES = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Scale { float v[]; } factor;
layout(std430, binding = 1) buffer Data { float v[]; } values;
layout(std140, binding = 2) uniform values { vec4 v; } offset;
layout(std430, binding = 3) writeonly buffer Result { float v[]; } result;
layout(push_constant) uniform Push { float factor; } push;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < result.v.length()) result.v[i] = values.v[i] * factor.v[i] * push.factor + offset.v.x;
}
"""
ARRAY = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer In { float v[]; } parts[3];
layout(std430, binding = 1) writeonly buffer Sum { float sum[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < sum.length()) sum[i] = parts[0].v[i] + 10 * parts[1].v[i] + 100 * parts[2].v[i];
}
"""
V = np.arange(5, dtype=np.float32)
P = np.full(5, 10, np.float32)


@pytest.fixture
def device() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


@pytest.fixture
def move(device: pumice.Device) -> pumice.Kernel:
    return device.load_kernel(MOVE)


def test_every_mix_of_positions_names_and_out_is_one_call(device: pumice.Device, move: pumice.Kernel) -> None:
    empty = pumice.empty(5, np.float32)
    calls = [
        lambda: move(V, P, empty, dt=0.5, mass=2),
        lambda: move(vel=V, pos=P, Energy=empty, dt=0.5, mass=2),
        lambda: move(Velocity=V, Position=P, Energy=empty, push=[0.5, 2]),
        lambda: move(V, Energy=empty, pos=P, push={"dt": 0.5}, mass=2),
        lambda: move(V, Position=P, out=np.empty(5, np.float32), dt=0.5, mass=2),
        lambda: move(vel=V, out=[P.copy(), np.empty(5, np.float32)], dt=0.5, mass=2),
        lambda: move(V, Energy=empty, out=P.copy(), dt=0.5, mass=2),
        lambda: move(V, Energy=device.empty(5), out=device.asarray(P), dt=0.5, mass=2),
        lambda: move.time(vel=V, pos=P, Energy=empty, dt=0.5, mass=2)[0],
    ]
    for call in calls:
        result = call()
        assert isinstance(result, tuple)
        np.testing.assert_array_equal(result[0], P + V / 2)
        np.testing.assert_array_equal(result[1], 2 * V * V)


def test_arrays_on_the_device_by_name_are_written_in_place(device: pumice.Device, move: pumice.Kernel) -> None:
    velocity, position, energy = device.asarray(V), device.asarray(P), device.empty(5)
    for _ in range(3):
        assert move(pos=position, vel=velocity, Energy=energy, dt=1, mass=1) == (position, energy)
    np.testing.assert_array_equal(position.numpy(), P + 3 * V)


def test_prepare_takes_names(device: pumice.Device, move: pumice.Kernel) -> None:
    velocity, position, energy = device.asarray(V), device.asarray(P), device.empty(5)
    dispatch = move.prepare(velocity, Energy=energy, pos=position, dt=1.0, mass=3.0)
    assert dispatch == move.prepare(velocity, position, energy, dt=1.0, mass=3.0)
    assert dispatch.buffers == (velocity.buffer, position.buffer, energy.buffer)


def test_an_array_of_bindings_takes_a_list(device: pumice.Device) -> None:
    kernel = device.load_kernel(ARRAY)
    parts = [np.full(4, k, np.float32) for k in (1, 2, 3)]
    np.testing.assert_array_equal(kernel(parts=parts, Sum=pumice.empty(4)), [321] * 4)
    np.testing.assert_array_equal(kernel(*parts, Sum=pumice.empty(4)), [321] * 4)
    for bad in (parts[:2], parts[0], 5):
        with pytest.raises(pumice.InvalidArgumentError, match=r"an array of 3 bindings and takes a list of 3, got"):
            kernel(bad)  # type: ignore[arg-type]
        with pytest.raises(pumice.InvalidArgumentError, match=r"parts= takes a list of 3 arrays, got"):
            kernel(parts=bad, Sum=pumice.empty(4))


def test_a_name_of_two_things_says_what_to_write(device: pumice.Device) -> None:
    kernel = device.load_kernel(CLASHES)
    two, one = np.full(3, 2, np.float32), np.ones(4, np.float32)
    with pytest.raises(pumice.InvalidArgumentError, match=r"'factor' names binding 0 .* push=\{'factor': …\}"):
        kernel(two, two, one, pumice.empty(3), factor=3)
    with pytest.raises(pumice.InvalidArgumentError, match=r"'factor' names binding 0"):
        kernel(factor=two, Data=two, offset=one, result=pumice.empty(3), push=[3])
    with pytest.raises(
        pumice.InvalidArgumentError,
        match=r"'values' names binding 1 \(values\) and binding 2 \(offset\); write Data= and offset=",
    ):
        kernel(two, values=two, offset=one, result=pumice.empty(3), push=[3])
    assert np.array_equal(kernel(Scale=two, Data=two, offset=one, result=pumice.empty(3), push={"factor": 3}), [13] * 3)
    assert np.array_equal(kernel(two, two, one, out=np.empty(3, np.float32), push={"factor": 3}), [13] * 3)


@pytest.mark.parametrize(
    ("arrays", "named", "message"),
    [
        ((V, P), {"Energi": V}, "no push constant 'Energi'; it has: dt, mass; .*did you mean Energy"),
        ((V, P, V), {"Energy": V}, r"binding 2 \(Energy\) got an array by position and another by name"),
        ((V, P), {"vel": V}, r"binding 0 \(vel\) got an array by position and another by name"),
        ((V,), {"pos": P, "Position": P}, r"binding 1 \(pos\) got two arrays"),
        ((V,), {"pos": P}, r"binding 2 \(Energy\) missing"),
        ((), {"vel": V, "pos": P, "Energy": V, "out": [V]}, r"1 array\(s\) in out= for 0 written"),
        ((V, P), {"Energy": V, "out": V}, r"got an array by position and another by name|takes 3 array"),
        ((V,), {"pos": "text", "Energy": V}, r"binding 1 \(pos\) got str"),
    ],
)
def test_wrong_names(
    move: pumice.Kernel, arrays: tuple[np.ndarray, ...], named: dict[str, object], message: str
) -> None:
    with pytest.raises(pumice.PumiceError, match=message):
        move(*arrays, **named, dt=1, mass=1)  # type: ignore[arg-type]
