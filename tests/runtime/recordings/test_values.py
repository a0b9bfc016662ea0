"""Values of a recording by name: push constants and arguments that change between runs."""

from __future__ import annotations

import numpy as np
import pytest

import pumice
from pumice.status import ClosedError, InvalidArgumentError, NotFoundError

pytestmark = pytest.mark.vulkan


def filled(device: pumice.Device, value: float, count: int = 100) -> pumice.DeviceArray:
    return device.asarray(np.full(count, value, np.float32))


def test_push_constants_change_for_a_run_or_for_all(device: pumice.Device, add: pumice.Kernel) -> None:
    x, y, z = filled(device, 1), device.zeros(100), device.zeros(100)
    with device.record() as step:
        add(x, y, dt=0.5, n=100)
        add(x, z, dt=0.5, n=100)
    step.run(dt=2)
    assert (y.numpy()[0], z.numpy()[0]) == (2, 2)
    step.run()
    assert y.numpy()[0] == 2.5
    step.update(dt=10, n=50)
    step.run(times=2)
    assert (y.numpy()[0], y.numpy()[50]) == (22.5, 2.5)
    step.run({"add[1].dt": 0})
    assert (y.numpy()[0], z.numpy()[0]) == (32.5, 22.5)


def test_many_values_in_flight_keep_to_their_runs(device: pumice.Device, add: pumice.Kernel) -> None:
    """Values change faster than the device runs: each run has its own."""
    count = 20_000
    x, y = filled(device, 1, count), device.zeros(count)
    with device.record() as step:
        for _ in range(5):
            add(x, y, dt=0, n=count)
    generator = np.random.default_rng(3)
    expected = np.zeros(count, np.float32)
    for _ in range(100):
        dt, n = int(generator.integers(0, 100)), int(generator.integers(0, count))
        if generator.random() < 0.2:
            step.run()
        else:
            step.run(dt=dt, n=n)
            expected[:n] += 5 * dt
    np.testing.assert_array_equal(y.numpy(), expected)


def test_values_of_different_calls_need_a_qualified_name(
    device: pumice.Device, add: pumice.Kernel, scale: pumice.Kernel
) -> None:
    x, y, z = filled(device, 1), device.zeros(100), device.zeros(100)
    with device.record() as step:
        add(x, y, dt=1, n=100)
        add(x, z, dt=2, n=100)
        scale({"factor": 2, "offset": 1}, z)
    with pytest.raises(InvalidArgumentError, match=r"different values in add\[0\].dt and add\[1\].dt"):
        step.run(dt=3)
    with pytest.raises(InvalidArgumentError, match=r"different values in add\[0\].Y and add\[1\].Y"):
        step.update(Y=x)
    step.update({"add[1].dt": 4, "add.n": 100, "scale.params": {"factor": 3, "offset": 2}})
    step.run()
    assert (y.numpy()[0], z.numpy()[0]) == (1, 14)
    with pytest.raises(NotFoundError, match="no value 'speed'; it has: dt, n, X, "):
        step.run(speed=1)
    with pytest.raises(NotFoundError, match="no value"):
        step.run({"add[2].dt": 1})
    with pytest.raises(InvalidArgumentError, match="dt"):
        step.run({"add[0].dt": "fast"})
    step.run()  # what was refused changed nothing
    assert y.numpy()[0] == 2


def test_an_array_takes_the_place_of_another_everywhere(device: pumice.Device, add: pumice.Kernel) -> None:
    x, y, z = filled(device, 1), device.zeros(100), device.zeros(100)
    with device.record() as step:
        add(x, y, dt=1, n=100)
        add(y, z, dt=1, n=100)
        y.copy_from(z)
    other = filled(device, 100)
    step.run({"add[1].X": other})  # y, which the first call and the copy write too
    assert (y.numpy()[0], z.numpy()[0], other.numpy()[0]) == (0, 101, 101)
    step.run()
    assert (y.numpy()[0], z.numpy()[0]) == (102, 102)
    step.update({"add[1].X": other})
    step.update({"add[0].Y": y})  # back, by another of its names
    step.run()
    assert (y.numpy()[0], z.numpy()[0], other.numpy()[0]) == (205, 205, 101)


def test_arrays_of_other_sizes_get_their_own_workgroups(device: pumice.Device, add: pumice.Kernel) -> None:
    x, y = filled(device, 1, 10), device.zeros(10)
    with device.record() as step:
        add(x, y, dt=1, n=10)
    large, result = filled(device, 2, 1000), device.zeros(1000)
    step.run(X=large, Y=result, n=1000)
    np.testing.assert_array_equal(result.numpy(), np.full(1000, 2))


def test_values_of_the_host_take_the_place_of_such(
    device: pumice.Device, add: pumice.Kernel, scale: pumice.Kernel
) -> None:
    y = filled(device, 1)
    with device.record() as step:
        add(np.ones(100, np.float32), y, dt=1, n=100)
        scale({"factor": 2, "offset": 0}, y)
    step.run()
    assert y.numpy()[0] == 4
    step.run(X=np.full(100, 3, np.float32), params={"factor": 1, "offset": 5})
    assert y.numpy()[0] == 12
    step.update(params={"factor": 0, "offset": 1})
    step.update(params={"factor": 0, "offset": 2})
    step.run()
    assert y.numpy()[0] == 2
    with pytest.raises(InvalidArgumentError, match="Y was recorded with an array on the device"):
        step.run(Y=np.zeros(100, np.float32))


def test_what_cannot_be_replaced_is_refused(device: pumice.Device, add: pumice.Kernel) -> None:
    x, y = filled(device, 1), device.zeros(100)
    with device.record() as step:
        add(x, y, dt=1, n=100)
        add(filled(device, 1, 36), x[64:], dt=1, n=36)
    with pytest.raises(InvalidArgumentError, match="another view of the same array"):
        step.run({"add[0].X": filled(device, 2)})
    with pytest.raises(InvalidArgumentError, match="float32"):
        step.run({"add[1].X": device.zeros(36, np.int32)})
    with pumice.open_device("reference") as reference, pytest.raises(InvalidArgumentError, match="another device"):
        step.run({"add[1].X": reference.zeros(36)})
    closed = filled(device, 1, 36)
    closed.close()
    with pytest.raises(ClosedError, match="was closed"):
        step.run({"add[1].X": closed})
    step.run()
    assert (y.numpy()[0], x.numpy()[99]) == (1, 2)


def test_counts_on_the_device_are_replaced(device: pumice.Device, count: pumice.Kernel) -> None:
    hits = device.zeros(8, np.uint32)
    groups = device.asarray(np.array([2, 1, 1], np.uint32))
    with device.record() as step:
        count(hits, groups=groups)
    step.run()
    groups.copy_from(np.array([5, 1, 1], np.uint32))
    step.run()
    assert hits.numpy().tolist() == [2, 2, 1, 1, 1, 0, 0, 0]


def test_random_changes_equal_fresh_calls(device: pumice.Device, add: pumice.Kernel) -> None:
    generator = np.random.default_rng(11)
    pool = [filled(device, i) for i in range(4)]
    mirror = [np.full(100, i, np.float32) for i in range(4)]
    current = [0, 1]  # the arrays that stand for x and y
    with device.record() as step:
        add(pool[0], pool[1], dt=1, n=100)
    dt = 1
    for _ in range(60):
        what = generator.integers(0, 3)
        if what == 0:
            dt = int(generator.integers(0, 3))
            step.update(dt=dt)
        elif what == 1:
            role = int(generator.integers(0, 2))
            other = int(generator.choice([i for i in range(4) if i not in current]))
            current[role] = other
            step.update({"XY"[role]: pool[other]})
        step.run()
        mirror[current[1]] += dt * mirror[current[0]]
        for array in mirror:
            array %= 1024
        for array, expected in zip(pool, mirror, strict=True):
            if not (expected < 512).all():
                array.copy_from(expected)
    for array, expected in zip(pool, mirror, strict=True):
        np.testing.assert_array_equal(array.numpy() % 1024, expected)


def test_uniforms_outside_of_blocks_change_like_push_constants(device: pumice.Device) -> None:
    kernel = device.load_kernel(
        """
#version 430
layout(local_size_x = 64) in;
layout(binding = 0) buffer Y { float y[]; };
uniform float dt;
uniform int n;
void main() { uint i = gl_GlobalInvocationID.x; if (i < n) y[i] += dt; }
"""
    )
    y = device.zeros(100)
    with device.record() as step:
        kernel(y, dt=1, n=100)
    step.run(dt=2)
    step.update(n=50)
    step.run()
    assert y.numpy().tolist() == [3.0] * 50 + [2.0] * 50


def test_changed_push_constants_are_read_from_memory(device: pumice.Device, add: pumice.Kernel) -> None:
    """Runs with other values record no commands: they take blocks in memory."""
    x, y = filled(device, 1), device.zeros(100)
    with device.record() as step:
        for _ in range(3):
            add(x, y, dt=1, n=100)
    step.run()
    step.run(dt=2)
    blocks, commands = step._blocks, step._commands
    assert blocks is not None and len(blocks.parts) == 3
    recording = commands._recording  # type: ignore[union-attr]  # of Vulkan
    step.update(dt=5)
    for number in range(200):
        step.run({"add[1].dt": number})
    assert commands._recording is recording  # type: ignore[union-attr]
    assert [call.call.push[:4] for call in step.steps] == 3 * [np.float32(5).tobytes()]  # type: ignore[attr-defined]
    step.run(times=2)
    assert y.numpy()[0] == 3 + 6 + (200 * 10 + sum(range(200))) + 30
    other = device.zeros(100)
    step.run(Y=other, dt=3)  # an array and a value at once
    step.run()
    assert (other.numpy()[0], y.numpy()[0] - 21939) == (9, 15)


_BLOCK = """
#version 450
layout(local_size_x = 1) in;
struct Pair { vec3 a; float b; };
layout(push_constant) uniform Push { mat2x3 m; Pair pairs[2]; ivec2 i; uint flags[3]; double d; } p;
layout(binding = 0) writeonly buffer Y { float y[]; };
void main() {
    uint k = 0;
    for (int c = 0; c < 2; c++) for (int r = 0; r < 3; r++) y[k++] = p.m[c][r];
    for (int j = 0; j < 2; j++) { for (int r = 0; r < 3; r++) y[k++] = p.pairs[j].a[r]; y[k++] = p.pairs[j].b; }
    y[k++] = p.i.x; y[k++] = p.i.y;
    for (int j = 0; j < 3; j++) y[k++] = p.flags[j];
    y[k] = float(p.d);
}
"""


@pytest.mark.features("shaderFloat64")
def test_blocks_of_every_kind_of_member(device: pumice.Device) -> None:
    kernel = device.load_kernel(_BLOCK)
    generator = np.random.default_rng(7)

    def values() -> dict[str, object]:
        return {
            "m": generator.integers(0, 9, (3, 2)).astype(float).tolist(),
            "pairs": [{"a": generator.integers(0, 9, 3).tolist(), "b": int(generator.integers(9))} for _ in range(2)],
            "i": generator.integers(-9, 9, 2).tolist(),
            "flags": generator.integers(0, 9, 3).tolist(),
            "d": float(generator.random()),
        }

    y, z = device.zeros(20), device.zeros(20)
    first = values()
    try:
        kernel(y, push=first, groups=1)
    except InvalidArgumentError:  # matrices by columns
        first = {**first, "m": np.asarray(first["m"]).T.tolist()}
    with device.record() as step:
        kernel(y, push=first, groups=1)
    for number in range(8):
        changed = values()
        changed["m"] = np.asarray(changed["m"]).reshape(np.shape(first["m"])).tolist()
        some = {name: changed[name] for name in list(changed)[number % 5 :]}
        step.run(some)
        kernel(z, push={**first, **some}, groups=1)
        np.testing.assert_array_equal(y.numpy(), z.numpy())
    assert step._blocks is not None and step._blocks.parts


def test_kernels_whose_push_constants_stay_in_commands(device: pumice.Device) -> None:
    """A shader that reports, as the driver cuts long loops, is recorded anew for other values."""
    kernel = device.load_kernel(
        """
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Y { uint y[]; };
layout(push_constant) uniform Push { uint n; };
void main() { uint s = 0; for (uint i = 0; i < n; i++) s += i; y[0] = s; }
"""
    )
    y = device.zeros(1, np.uint32)
    with device.record() as step:
        kernel(y, n=3, groups=1)
    for n in (10, 20, 3):
        step.run(n=n)
        assert y.numpy()[0] == n * (n - 1) // 2
