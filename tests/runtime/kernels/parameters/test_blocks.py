"""Blocks of several types: mappings, structured dtypes, defaults of push constants, and aliases of one binding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.devices.stripping import without_names

import pumice
from pumice.spirv.sources.glsl import compile_glsl

pytestmark = pytest.mark.vulkan

# The shader reads every member by its own layout, so that an expected value does not rest on pumice's.
SCENE = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 1) in;
struct Light { vec3 place; float power; ivec2 cell; mat2 turn; };
layout(LAYOUT, binding = 0) KIND Scene {
    uint count;
    mat3 view;
    layout(row_major) mat2x3 skew;
    Light lights[2];
    float weights[3];
    double exact;
} scene;
layout(std430, binding = 1) writeonly buffer Seen { double seen[]; };
void main() {
    uint n = 0;
    seen[n++] = scene.count;
    for (int r = 0; r < 3; r++) for (int c = 0; c < 3; c++) seen[n++] = scene.view[c][r];
    for (int r = 0; r < 3; r++) for (int c = 0; c < 2; c++) seen[n++] = scene.skew[c][r];
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 3; k++) seen[n++] = scene.lights[i].place[k];
        seen[n++] = scene.lights[i].power;
        for (int k = 0; k < 2; k++) seen[n++] = scene.lights[i].cell[k];
        for (int r = 0; r < 2; r++) for (int c = 0; c < 2; c++) seen[n++] = scene.lights[i].turn[c][r];
    }
    for (int k = 0; k < 3; k++) seen[n++] = scene.weights[k];
    seen[n++] = scene.exact;
}
"""
PARTICLES = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x = 4) in;
struct Particle { vec3 place; uint kind; float16_t mass; uint8_t flags[3]; };
layout(std430, binding = 0) buffer Particles { Particle items[]; } particles;
layout(push_constant) uniform Push { float step; uint kind; vec2 wind; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= particles.items.length()) return;
    particles.items[i].place += vec3(wind * step, particles.items[i].mass);
    particles.items[i].kind += kind;
    particles.items[i].flags[2] = uint8_t(i);
}
"""
HEADED = """#version 450
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer Table { uint count; float scale; vec2 rows[]; } table;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < table.count) table.rows[i] *= table.scale;
}
"""
ALIASED = """#version 450
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer Words { uint words[]; };
layout(std430, binding = 0) buffer Floats { float floats[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < words.length()) { if (i % 2 == 0) words[i] += 1; else floats[i] += 1.0; }
}
"""


def scene_shader(layout: str, kind: str) -> str:
    return SCENE.replace("LAYOUT", layout).replace("KIND", kind)


def light(k: int) -> dict[str, object]:
    turn = [[k + 6, k + 7], [k + 8, k + 9]]
    return {"place": [k, k + 1, k + 2], "power": k + 3, "cell": (k + 4, k + 5), "turn": turn}


def scene() -> dict[str, object]:
    return {
        "count": 7,
        "view": np.arange(9).reshape(3, 3) + 10,
        "skew": [[20, 21], [22, 23], [24, 25]],
        "lights": [light(30), light(50)],
        "weights": [70, 71, 72],
        "exact": 1 / 3,
    }


SEEN = [7, *range(10, 19), *range(20, 26), *range(30, 40), *range(50, 60), 70, 71, 72, 1 / 3]


@pytest.fixture(scope="module")
def device() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


@pytest.mark.features("shaderFloat64")
@pytest.mark.parametrize(("layout", "kind"), [("std140", "uniform"), ("std140", "buffer"), ("std430", "buffer")])
def test_blocks_of_everything_from_mappings(device: pumice.Device, layout: str, kind: str) -> None:
    kernel = device.load_kernel(scene_shader(layout, kind))
    out = pumice.empty(len(SEEN), np.float64)
    np.testing.assert_array_equal(kernel(scene(), out), SEEN)
    np.testing.assert_array_equal(kernel(Scene=scene(), Seen=out), SEEN)


@pytest.mark.features("shaderFloat64")
@pytest.mark.parametrize("layout", ["std140", "std430"])
def test_a_block_as_an_element_of_its_dtype(device: pumice.Device, layout: str) -> None:
    kernel = device.load_kernel(scene_shader(layout, "buffer"))
    block = np.zeros((), kernel.dtype("scene"))
    assert block.dtype == kernel.dtype("Scene")
    values = scene()
    block["count"], block["exact"] = values["count"], values["exact"]
    block["view"]["value"] = np.transpose(values["view"])  # the columns, each padded to a vec4
    skew = block["skew"]  # row_major: rows of two floats, padded to 16 bytes in std140
    (skew if skew.dtype.names is None else skew["value"])[...] = values["skew"]
    weights = block["weights"]
    (weights if weights.dtype.names is None else weights["value"])[...] = values["weights"]
    for index, k in enumerate((30, 50)):
        one = light(k)
        for name in ("place", "power", "cell"):
            block["lights"][index][name] = one[name]
        turn = block["lights"][index]["turn"]
        (turn if turn.dtype.names is None else turn["value"])[...] = np.transpose(one["turn"])
    out = pumice.empty(len(SEEN), np.float64)
    np.testing.assert_array_equal(kernel(block, out), SEEN)
    np.testing.assert_array_equal(kernel(device.asarray(block), out).numpy(), SEEN)  # type: ignore[union-attr]


@pytest.mark.features("storageBuffer16BitAccess", "storageBuffer8BitAccess")
def test_arrays_of_mixed_structures(device: pumice.Device) -> None:
    kernel = device.load_kernel(PARTICLES)
    dtype = kernel.dtype("particles")
    assert (dtype.names, dtype.itemsize) == (("place", "kind", "mass", "flags"), 32)
    particles = np.zeros(6, dtype)
    particles["place"], particles["mass"], particles["kind"] = [1, 2, 3], np.arange(6) / 2, 5
    moved = kernel(particles, step=2, kind=3, wind=[0.5, 1])
    assert isinstance(moved, np.ndarray)
    assert moved.dtype == dtype
    np.testing.assert_array_equal(moved["place"], [[2, 4, 3 + k / 2] for k in range(6)])
    np.testing.assert_array_equal(moved["kind"], [8] * 6)
    np.testing.assert_array_equal(moved["flags"], [[0, 0, k] for k in range(6)])
    rows = [{"place": [1, 2, 3], "kind": 5, "mass": k / 2, "flags": [0, 0, 0]} for k in range(6)]
    push = {"step": 2, "kind": 3, "wind": [0.5, 1]}
    np.testing.assert_array_equal(kernel(rows, push=push), moved)
    np.testing.assert_array_equal(kernel(particles={"items": rows}, push=push), moved)
    on_device = device.asarray(particles)
    assert kernel(on_device, push=push) is on_device
    np.testing.assert_array_equal(on_device.numpy(), moved)
    raw = kernel(particles.view(np.uint8), push=push)
    assert isinstance(raw, np.ndarray)
    np.testing.assert_array_equal(raw.view(dtype), moved)


@pytest.mark.features("storageBuffer16BitAccess", "storageBuffer8BitAccess")
def test_a_dtype_of_ones_own_that_lies_as_the_shader_has_it(device: pumice.Device) -> None:
    kernel = device.load_kernel(PARTICLES)
    own = np.dtype([("xyz", "f4", 3), ("k", "u4"), ("m", "f2"), ("f", "u1", 3), ("pad", "u1", 11)])
    assert own.itemsize == kernel.dtype("Particles").itemsize
    result = kernel(np.zeros(3, own), push=[1, 1, [1, 1]])
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result["xyz"], [[1, 1, 0]] * 3)
    packed = np.dtype([("place", "f4", 3), ("kind", "u4"), ("mass", "f2"), ("flags", "u1", 3)])
    swapped = np.dtype([("kind", "u4"), ("place", "f4", 3), ("m", "f2"), ("f", "u1", 3), ("pad", "u1", 11)])
    narrow = np.dtype([("xyz", "f4", 2), ("p", "V4"), ("k", "u4"), ("m", "f2"), ("f", "u1", 3), ("pad", "u1", 11)])
    for bad, message in [(packed, "32 bytes: use kernel.dtype"), (swapped, "byte 0 is uint32"), (narrow, "byte 8 is")]:
        with pytest.raises(pumice.InvalidArgumentError, match=message):
            kernel(np.zeros(3, bad), push=[1, 1, [1, 1]])


def test_members_before_an_array_of_any_length(device: pumice.Device) -> None:
    kernel = device.load_kernel(HEADED)
    result = kernel({"count": 3, "scale": 10, "rows": [[1, 2], [3, 4], [5, 6], [7, 8]]})
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result["rows"], [[10, 20], [30, 40], [50, 60], [7, 8]])
    table = np.zeros((), kernel.dtype("Table", length=9))
    table["count"], table["scale"], table["rows"] = 9, 2, 1
    result = kernel(table)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result["rows"], np.full((9, 2), 2))
    with pytest.raises(pumice.InvalidArgumentError, match="give length="):
        kernel.dtype("table")
    with pytest.raises(pumice.NotFoundError, match="no block 'tabel'; it has: table, Table"):
        kernel.dtype("tabel")


@pytest.mark.features("shaderFloat64")
def test_a_block_of_several_types_takes_no_plain_array(device: pumice.Device) -> None:
    kernel = device.load_kernel(scene_shader("std140", "uniform"))
    size = kernel.parameters[0].binding.fixed_size
    out = pumice.empty(len(SEEN), np.float64)
    for dtype in (np.float32, np.uint32, np.float64):
        with pytest.raises(pumice.InvalidArgumentError, match=r"of several types.*kernel\.dtype\('scene'\)"):
            kernel(np.zeros(size // np.dtype(dtype).itemsize, dtype), out)
    assert isinstance(kernel(np.zeros(size, np.uint8), out), np.ndarray)
    with pytest.raises(pumice.InvalidArgumentError, match=f"got {size - 8} bytes"):
        kernel(np.zeros(size - 8, np.uint8), out)


@pytest.mark.features("shaderFloat64")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cuont": 1}, "no member 'cuont'; it has: count, view"),
        ({"count": -1}, "member count takes uint"),
        ({"count": 1.5}, "member count takes uint"),
        ({"view": np.zeros((2, 2))}, "member view takes float 3x3 matrix, shape"),
        ({"lights": [light(1)]}, "member lights takes 2 structures, got 1"),
        ({"lights": [light(1), 5]}, "member lights is a structure"),
        ({"lights": [light(1), {"power": 1}]}, r"float vec3 place, int vec2 cell, .* not given"),
        ({"lights": [light(1), {**light(1), "cell": [1 << 31, 0]}]}, "lights: member cell takes int vec2"),
    ],
)
def test_wrong_members(device: pumice.Device, change: dict[str, object], message: str) -> None:
    kernel = device.load_kernel(scene_shader("std140", "uniform"))
    with pytest.raises(pumice.PumiceError, match=message) as caught:
        kernel({**scene(), **change}, pumice.empty(len(SEEN), np.float64))
    assert "binding 0 (scene)" in str(caught.value)
    with pytest.raises(pumice.InvalidArgumentError, match=r"uint count not given"):
        kernel({k: v for k, v in scene().items() if k != "count"}, pumice.empty(len(SEEN), np.float64))


@pytest.mark.features("storageBuffer16BitAccess", "storageBuffer8BitAccess")
def test_defaults_of_push_constants(device: pumice.Device) -> None:
    start = np.zeros(2, device.load_kernel(PARTICLES).dtype("particles"))
    full = device.load_kernel(PARTICLES)(start, step=2, kind=3, wind=[1, 1])
    some = device.load_kernel(PARTICLES, push_defaults={"kind": 3, "wind": [1, 1]})
    np.testing.assert_array_equal(some(start, step=2), full)
    np.testing.assert_array_equal(some(start, step=2, kind=3), full)
    np.testing.assert_array_equal(some(start, push={"step": 2, "kind": 3}), full)
    with pytest.raises(pumice.InvalidArgumentError, match="float step not given"):
        some(start, kind=4)
    zeros = device.load_kernel(PARTICLES, push_defaults=0)
    np.testing.assert_array_equal(zeros(start, kind=5)["kind"], [5, 5])  # type: ignore[index,call-overload]
    for wrong, message in [
        ({"sped": 1}, "push_defaults has no push constant 'sped'"),
        ({"wind": 1}, "push_defaults: push constant wind takes float vec2"),
        (1, "push_defaults is a mapping"),
    ]:
        with pytest.raises(pumice.PumiceError, match=message):
            device.load_kernel(PARTICLES, push_defaults=wrong)  # type: ignore[arg-type]


@pytest.mark.features("storageBuffer16BitAccess", "storageBuffer8BitAccess")
def test_names_for_a_stripped_module(device: pumice.Device) -> None:
    code = without_names(compile_glsl(PARTICLES, target_env="vulkan1.2"))
    start = np.zeros(2, device.load_kernel(PARTICLES).dtype("particles"))
    expected = device.load_kernel(PARTICLES)(start, step=2, kind=3, wind=[1, 1])
    bare = device.load_kernel(code)
    np.testing.assert_array_equal(bare(start, member0=2, member1=3, member2=[1, 1]), expected)
    declarations = "\n".join(line for line in PARTICLES.splitlines() if line.startswith(("layout", "struct")))
    kernel = device.load_kernel(code, layouts=declarations, push_defaults={"kind": 3})
    assert kernel.dtype("particles") == start.dtype
    np.testing.assert_array_equal(kernel(Particles=start, step=2, wind=[1, 1]), expected)
    with pytest.raises(pumice.InvalidArgumentError, match="declared int, the module has float32"):
        device.load_kernel(code, layouts={"push": "int step; uint kind; vec2 wind;"})


def test_aliases_take_any_of_their_types(device: pumice.Device) -> None:
    kernel = device.load_kernel(ALIASED)
    (binding,) = kernel.reflection.entry_point().bindings
    assert [(b.name, b.element.dtype) for b in binding.blocks if b.element] == [
        ("Words", np.uint32),
        ("Floats", np.float32),
    ]
    words = np.array([1, 0, 3, 0], np.uint32)
    result = kernel(Words=words)
    np.testing.assert_array_equal(result, [2, 0x3F800000, 4, 0x3F800000])
    np.testing.assert_array_equal(kernel(Floats=words.view(np.float32)), np.asarray(result).view(np.float32))
    np.testing.assert_array_equal(kernel({"words": [1, 0, 3, 0]}), result)
    with pytest.raises(pumice.InvalidArgumentError, match=r"got dtype float64.*uint32.*; or .*float32"):
        kernel(np.zeros(4))
