"""Kernels with images against NumPy, SciPy and the formulas of the Vulkan specification."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import ndimage

import pumice
from pumice.formats.image_format import ImageFormat
from pumice.formats.image_texels import srgb_to_linear, to_texels, values_of

pytestmark = pytest.mark.vulkan

HEAD = """#version 450
#extension GL_EXT_shader_image_load_formatted : require
layout(local_size_x = 8, local_size_y = 8) in;
"""
RANDOM = np.random.default_rng(12)


@pytest.fixture(scope="module", params=["mapped", "staging"])
def device(request: pytest.FixtureRequest) -> Iterator[pumice.Device]:
    with pumice.open_device(staging=request.param == "staging") as opened:
        yield opened


@pytest.fixture(scope="module")
def mapped() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


# -- storage images ----------------------------------------------------------------------------------

STORED = [
    *("rgba32float", "rgba16float", "r32float", "rg16float", "rgba8unorm", "rgba8snorm", "rg8unorm", "r16unorm"),
    *("rgba16snorm", "rg11b10float", "rgb10a2unorm", "r8snorm"),
    *("rgba32uint", "rgba8uint", "r32uint", "rg16uint", "rgb10a2uint", "rgba16sint", "r32sint", "rg8sint"),
]


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", STORED)
def test_shaders_write_and_read_what_numpy_makes_of_a_format(mapped: pumice.Device, name: str) -> None:
    one = ImageFormat.parse(name)
    letter = {"float": "", "int": "i", "uint": "u"}[one.scalar]
    glsl = {"rg11b10float": "r11f_g11f_b10f", "rgb10a2unorm": "rgb10_a2", "rgb10a2uint": "rgb10_a2ui"}.get(
        name, one.spirv_name.replace("snorm", "_snorm")
    )
    kernel = mapped.load_kernel(
        HEAD
        + f"""
layout(binding = 0, std430) readonly buffer In {{ {letter}vec4 given[]; }};
layout(binding = 1, {glsl}) uniform {letter}image2D image;
layout(binding = 2, std430) writeonly buffer Out {{ {letter}vec4 read[]; }};
void main() {{
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, imageSize(image)))) return;
    uint i = at.y * imageSize(image).x + at.x;
    if (i % 2 == 0) imageStore(image, at, given[i]);
    read[i] = imageLoad(image, at);
}}"""
    )
    shape = (6, 10, 4)
    if one.scalar == "float":
        given = RANDOM.uniform(-1.5, 1.5, shape).astype(np.float32)
        given[0, 0] = (0.5, 1, -1, 0)
    else:
        most = 3 if name == "rgb10a2uint" else 127
        given = RANDOM.integers(0, most + 1, shape).astype(np.uint32 if one.scalar == "uint" else np.int32)
    before = given[::-1, ::-1, : one.channels]
    if one.scalar == "float" and one.kind != "float":
        before = np.clip(before, 0 if one.kind in ("unorm", "ufloat") else -1, 1)
    before = before[..., 0] if one.channels == 1 else before
    image = mapped.asimage(np.ascontiguousarray(before), name)
    read = mapped.empty(shape, given.dtype)
    kernel(mapped.asarray(given), image, read, groups=(2, 1))
    new = (np.arange(60) % 2 == 0).reshape(6, 10)
    flat = given[..., : one.channels] if one.channels > 1 else given[..., 0]
    expected = np.where(new if one.channels == 1 else new[..., None], flat, before)
    texels = to_texels(np.ascontiguousarray(expected), one)
    got = image.texels()
    step = 0.0 if one.scalar != "float" else 0.5**6 if name == "rg11b10float" else 0.5**10
    if one.scalar == "float":
        # A shader may round the last bit of what it stores either way.
        assert np.allclose(
            values_of(got, one), values_of(texels, one), rtol=step, atol=1 / 127 if "8" in name else step
        )
    else:
        assert np.array_equal(got, texels)
    assert np.array_equal(got[~new], to_texels(np.ascontiguousarray(before), one)[~new])
    values = values_of(got, one).reshape(6, 10, one.channels)
    assert np.allclose(read.numpy()[..., : one.channels], values, rtol=1e-6, atol=1e-6)
    rest = {"rg11b10float": (1,)}.get(name, (0, 0, 1)[one.channels - 1 :] if one.channels < 4 else ())
    assert np.array_equal(read.numpy()[0, 0, one.channels :], rest)


BOX = (
    HEAD
    + """
layout(binding = 0, rgba8) readonly uniform image2D source;
layout(binding = 1, rgba32f) writeonly uniform image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy), most = imageSize(source) - 1;
    if (any(greaterThan(at, most))) return;
    vec4 sum = vec4(0);
    for (int y = -2; y <= 2; y++)
        for (int x = -2; x <= 2; x++) sum += imageLoad(source, clamp(at + ivec2(x, y), ivec2(0), most));
    imageStore(target, at, sum / 25);
}"""
)


def test_an_image_filter_is_scipys(device: pumice.Device) -> None:
    kernel = device.load_kernel(BOX)
    picture = RANDOM.integers(0, 256, (33, 47, 4), np.uint8)
    expected = ndimage.uniform_filter(picture / 255, (5, 5, 1), mode="nearest")
    got = kernel(picture, pumice.empty(picture.shape, np.float32))
    assert isinstance(got, np.ndarray) and got.dtype == np.float32
    assert np.allclose(got, expected, atol=1e-6)
    image = device.asimage(picture)
    result = kernel(source=image, target=pumice.empty(picture.shape, np.float32))
    assert isinstance(result, pumice.DeviceImage) and result.format.name == "rgba32float"
    assert np.allclose(result.numpy(), expected, atol=1e-6)
    out = np.empty(picture.shape, np.float32)
    assert kernel(picture, out=out) is out and np.allclose(out, expected, atol=1e-6)
    narrow = np.empty(picture.shape, np.float16)
    assert kernel(picture, out=narrow) is narrow and np.allclose(narrow, expected, atol=1e-3)
    into = device.empty_image(picture.shape, "rgba32float")
    assert kernel(image, out=into) is into and np.allclose(into.numpy(), expected, atol=1e-6)


def test_a_histogram_of_atomics(device: pumice.Device) -> None:
    kernel = device.load_kernel(
        HEAD
        + """
layout(binding = 0) uniform usampler2D source;
layout(binding = 1, r32ui) uniform uimage1D bins;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (all(lessThan(at, textureSize(source, 0)))) imageAtomicAdd(bins, int(texelFetch(source, at, 0).x), 1u);
}"""
    )
    values = RANDOM.integers(0, 32, (40, 51), np.uint8)
    bins = kernel(values, np.zeros(32, np.uint32), groups=(7, 5))
    assert np.array_equal(bins, np.bincount(values.ravel(), minlength=32))
    counted = kernel(device.asimage(values, "uint"), device.asimage(bins), groups=(7, 5))
    assert np.array_equal(counted.numpy(), 2 * bins)


def test_volumes_and_layers(device: pumice.Device) -> None:
    kernel = device.load_kernel(
        """#version 450
layout(local_size_x = 4, local_size_y = 4, local_size_z = 4) in;
layout(binding = 0, r32f) readonly uniform image3D volume;
layout(binding = 1, r32f) writeonly uniform image2DArray layers;
void main() {
    ivec3 at = ivec3(gl_GlobalInvocationID);
    if (all(lessThan(at, imageSize(volume)))) imageStore(layers, at, imageLoad(volume, at) + 100 * at.z);
}"""
    )
    volume = RANDOM.random((5, 6, 7), np.float32)
    got = kernel(volume, pumice.empty(volume.shape, np.float32))
    assert np.array_equal(got, volume + np.float32(100) * np.arange(5, dtype=np.float32)[:, None, None])
    layers = device.empty_image(volume.shape, "r32float", dim="2d_array")
    kernel(device.asimage(volume, dim="3d"), layers)
    assert np.array_equal(layers.layer(3).numpy(), got[3])
    assert np.array_equal(layers.view(layers=slice(1, 3)).numpy(), got[1:3])


# -- sampling ----------------------------------------------------------------------------------------

SAMPLE = (
    HEAD
    + """
layout(binding = 0) uniform sampler{dim} source;
layout(binding = 1, std430) readonly buffer At {{ vec4 at[]; }};
layout(binding = 2, std430) writeonly buffer Out {{ vec4 read[]; }};
void main() {{
    uint i = gl_GlobalInvocationID.x + 8 * gl_GlobalInvocationID.y;
    if (i < at.length()) read[i] = textureLod(source, at[i].{axes}, {lod});
}}"""
)


def sample(
    device: pumice.Device, dim: str, image: object, at: np.ndarray, lod: str = "0", axes: str | None = None
) -> np.ndarray:
    """Returns the texels that a kernel reads at normalised coordinates, one for each row of ``at``."""
    axes = axes or {"1D": "x", "2D": "xy", "2DArray": "xyz", "3D": "xyz", "Cube": "xyz", "CubeArray": "xyzw"}[dim]
    kernel = device.load_kernel(SAMPLE.format(dim=dim, axes=axes, lod=lod))
    padded = np.zeros((len(at), 4), np.float32)
    padded[:, : at.shape[1]] = at
    return np.asarray(kernel(image, padded, pumice.empty(padded.shape, np.float32), groups=(1, len(at) // 64 + 1)))


def interpolated(array: np.ndarray, at: np.ndarray, mode: str = "nearest") -> np.ndarray:
    """SciPy's linear interpolation at normalised coordinates x, y, z."""
    axes = at.shape[1]
    index = at[:, ::-1].T * np.array(array.shape[:axes])[:, None] - 0.5
    return ndimage.map_coordinates(array.astype(np.float64), index, order=1, mode=mode)


@pytest.mark.parametrize(("dim", "shape"), [("1D", (9,)), ("2D", (7, 9)), ("3D", (5, 6, 7))])
def test_linear_filters_are_scipys(mapped: pumice.Device, dim: str, shape: tuple[int, ...]) -> None:
    array = RANDOM.random(shape, np.float32)
    at = RANDOM.uniform(-0.2, 1.2, (200, len(shape))).astype(np.float32)
    image = mapped.asimage(array, dim=dim.lower())
    # Weights have at least 8 bits (subTexelPrecisionBits); lavapipe's are exact.
    assert np.allclose(sample(mapped, dim, image, at)[:, 0], interpolated(array, at), atol=2 / 255)
    wrapped = image.with_sampler(mapped.sampler(address="repeat"))
    assert np.allclose(sample(mapped, dim, wrapped, at)[:, 0], interpolated(array, at, "grid-wrap"), atol=2 / 255)
    mirrored = (image, mapped.sampler(address="mirrored_repeat"))
    assert np.allclose(sample(mapped, dim, mirrored, at)[:, 0], interpolated(array, at, "reflect"), atol=2 / 255)


def test_the_nearest_texel_and_a_border(mapped: pumice.Device) -> None:
    array = RANDOM.random((4, 4, 4), np.float32)
    at = np.array([[0.1, 0.1], [0.9, 0.6], [1.2, 0.5], [0.5, -0.3]], np.float32)
    border = mapped.sampler("nearest", "clamp_to_border", border="opaque_white")
    got = sample(mapped, "2D", (array, border), at)
    assert np.array_equal(got, [array[0, 0], array[2, 3], np.ones(4), np.ones(4)])


def test_levels_are_halved_and_blended(mapped: pumice.Device) -> None:
    array = RANDOM.random((16, 8), np.float32)
    image = mapped.asimage(array, mips=True)
    levels = [array]
    while levels[-1].size > 1:
        last = levels[-1]
        high, wide = max(1, last.shape[0] // 2), max(1, last.shape[1] // 2)
        levels.append(last.reshape(high, last.shape[0] // high, wide, last.shape[1] // wide).mean((1, 3)))
    assert image.levels == len(levels) == 5
    for index, expected in enumerate(levels):
        assert np.allclose(image.level(index).numpy(), expected, atol=1e-6)
    at = RANDOM.random((64, 2), np.float32)
    got = sample(mapped, "2D", image, at, lod="1.25")[:, 0]
    expected = 0.75 * interpolated(levels[1], at) + 0.25 * interpolated(levels[2], at)
    assert np.allclose(got, expected, atol=2 / 255)
    image.level(2).copy_from(np.full((4, 2), 7, np.float32))
    assert np.allclose(sample(mapped, "2D", image, at, lod="2")[:, 0], 7)
    assert np.allclose(sample(mapped, "2D", image.view(levels=slice(2, 4)), at)[:, 0], 7)


def test_faces_of_a_cube(mapped: pumice.Device) -> None:
    # One colour a face; directions along the axes in the specification's order of faces.
    faces = np.broadcast_to(np.arange(6, dtype=np.float32)[:, None, None], (6, 8, 8))
    directions = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], np.float32)
    assert np.array_equal(sample(mapped, "Cube", np.ascontiguousarray(faces), directions)[:, 0], np.arange(6))
    # Within +z, s grows with x and t against y (table "Cube map face and coordinate selection").
    gradient = np.zeros((6, 2, 2), np.float32)
    gradient[4] = [[1, 2], [3, 4]]
    corners = np.array([[-0.5, 0.5, 1], [0.5, 0.5, 1], [-0.5, -0.5, 1], [0.5, -0.5, 1]], np.float32)
    assert np.array_equal(sample(mapped, "Cube", gradient, corners)[:, 0], [1, 2, 3, 4])
    two = np.concatenate([faces, faces + 10])
    at = np.array([[0, 1, 0, 0], [0, 1, 0, 1]], np.float32)
    assert np.array_equal(sample(mapped, "CubeArray", two, at)[:, 0], [2, 12])
    image = mapped.asimage(np.ascontiguousarray(faces), dim="cube")
    layered = sample(mapped, "2DArray", image, np.array([[0.5, 0.5, 3], [0.5, 0.5, 5]], np.float32))
    assert np.array_equal(layered[:, 0], [3, 5])


def test_srgb_is_read_as_linear_light(mapped: pumice.Device) -> None:
    codes = np.arange(256, dtype=np.uint8).reshape(16, 16)
    rgba = np.repeat(codes[..., None], 4, axis=2)
    image = mapped.asimage(rgba, "srgb")
    assert image.format.name == "rgba8srgb"
    y, x = np.divmod(np.arange(256), 16)
    got = sample(mapped, "2D", image, np.stack([(x + 0.5) / 16, (y + 0.5) / 16], 1).astype(np.float32))
    assert np.allclose(got[:, 0], srgb_to_linear(np.arange(256) / 255), atol=2e-3)
    assert np.allclose(got[:, 3], np.arange(256) / 255, atol=1e-6)
    assert np.allclose(image.numpy(dtype=np.float32)[..., 1].ravel(), got[:, 1], atol=2e-3)


def test_shadows_compare_with_a_reference(mapped: pumice.Device) -> None:
    kernel = mapped.load_kernel(
        HEAD
        + """
layout(binding = 0) uniform sampler2DShadow depths;
layout(binding = 1, r32f) writeonly uniform image2D lit;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (all(lessThan(at, imageSize(lit)))) imageStore(lit, at, vec4(textureLod(depths, vec3((at + 0.5) / 8, 0.5), 0)));
}"""
    )
    depths = RANDOM.random((8, 8), np.float32)
    nearest = mapped.sampler("nearest", compare="less")
    assert np.array_equal(kernel((depths, nearest), pumice.empty((8, 8), np.float32)), depths > 0.5)
    assert np.array_equal(kernel(depths, pumice.empty((8, 8), np.float32)) >= 0.5, depths >= 0.5)


def test_gather_takes_the_four_texels_of_a_filter(mapped: pumice.Device) -> None:
    kernel = mapped.load_kernel(
        HEAD
        + """
layout(binding = 0) uniform sampler2D source;
layout(binding = 1, rgba32f) writeonly uniform image2D gathered;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (all(lessThan(at, imageSize(gathered))))
        imageStore(gathered, at, textureGather(source, (at + 1.0) / textureSize(source, 0), 1));
}"""
    )
    array = RANDOM.random((6, 5, 2), np.float32)
    got = kernel(array, pumice.empty((5, 4, 4), np.float32))
    green = array[..., 1]
    # From the lower left corner counterclockwise.
    assert np.array_equal(got, np.stack([green[1:, :-1], green[1:, 1:], green[:-1, 1:], green[:-1, :-1]], axis=-1))


def test_an_image_and_samplers_of_their_own(device: pumice.Device) -> None:
    kernel = device.load_kernel(
        HEAD
        + """
layout(binding = 0) uniform texture2D source;
layout(binding = 1) uniform sampler smooth_one;
layout(binding = 2) uniform sampler sharp;
layout(binding = 3, rg32f) writeonly uniform image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    vec2 place = (at + 0.5) / imageSize(target);
    if (all(lessThan(at, imageSize(target))))
        imageStore(target, at, vec4(textureLod(sampler2D(source, smooth_one), place, 0).x,
                                    textureLod(sampler2D(source, sharp), place, 0).x, 0, 0));
}"""
    )
    array = RANDOM.random((8, 8), np.float32)
    y, x = np.divmod(np.arange(256), 16)
    at = np.stack([(x + 0.5) / 16, (y + 0.5) / 16], 1)
    linear, nearest = device.sampler(), device.sampler("nearest")
    got = kernel(array, linear, nearest, pumice.empty((16, 16, 2), np.float32))
    assert np.allclose(got[..., 0], interpolated(array, at).reshape(16, 16), atol=2 / 255)
    assert np.array_equal(got[..., 1], array.repeat(2, 0).repeat(2, 1))
    again = kernel(source=device.asimage(array), sharp=nearest, smooth_one=linear, target=device.asimage(got))
    assert isinstance(again, pumice.DeviceImage) and np.array_equal(again.numpy(), got)


# -- texel buffers and arrays of bindings ------------------------------------------------------------

TEXELS = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) uniform samplerBuffer source;
layout(binding = 1, r32ui) uniform uimageBuffer target;
void main() {
    int i = int(gl_GlobalInvocationID.x);
    if (i < imageSize(target)) imageStore(target, i, uvec4(1000 * texelFetch(source, i).x) + imageLoad(target, i));
}"""


def test_arrays_of_the_device_are_texels_in_each_call(device: pumice.Device) -> None:
    kernel = device.load_kernel(
        """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) uniform samplerBuffer source;
layout(binding = 1) writeonly buffer Target { float target[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < target.length()) target[i] = texelFetch(source, int(i)).r;
}"""
    )
    for _ in range(3):
        array = RANDOM.random(10, np.float32)
        got = kernel(device.asarray(array), device.zeros(10))
        assert isinstance(got, pumice.DeviceArray) and np.array_equal(got.numpy(), array)


def test_texel_buffers(device: pumice.Device) -> None:
    kernel = device.load_kernel(TEXELS)
    codes = RANDOM.integers(0, 256, (200, 4), np.uint8)
    before = np.arange(200, dtype=np.uint32)
    expected = before + np.floor(1000 * (codes[:, 0] / np.float32(255))).astype(np.uint32)
    got = kernel(codes, before)
    assert isinstance(got, np.ndarray) and np.abs(got.astype(int) - expected).max() <= 1
    floats = (codes / np.float32(255)).astype(np.float32)
    target = device.asarray(before)
    assert kernel(floats, target) is target
    assert np.abs(target.numpy().astype(int) - expected).max() <= 1
    single = device.texel_buffer(floats[:, 0].copy(), "r32float")
    assert np.abs(kernel(single, before).numpy().astype(int) - expected).max() <= 1
    words = device.texel_buffer(codes.view(np.uint32).ravel(), "rgba8unorm")
    assert np.array_equal(kernel(words, before).numpy(), got)


def test_arrays_of_images_and_of_samplers(device: pumice.Device) -> None:
    kernel = device.load_kernel(
        """#version 450
layout(local_size_x = 4) in;
layout(binding = 0) uniform texture2D sources[4];
layout(binding = 1) uniform sampler filters[2];
layout(binding = 2, std430) writeonly buffer Out { float read[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    float sum = 0;
    for (int k = 0; k < 4; k++)
        if (k == int(i)) sum = textureLod(sampler2D(sources[k], filters[k % 2]), vec2(0.5), 0).x;
    read[i] = sum;
}"""
    )
    images = [np.full((2, 2), k + 1, np.float32) for k in range(4)]
    filters = [device.sampler(), device.sampler("nearest")]
    got = kernel(images, filters, pumice.empty(4, np.float32))
    assert got.tolist() == [1, 2, 3, 4]
    named = kernel(sources=images[::-1], filters=filters, Out=pumice.empty(4, np.float32))
    assert named.tolist() == [4, 3, 2, 1]
    on_device = [device.asimage(image) for image in images]
    assert kernel(*on_device, *filters, pumice.empty(4, np.float32)).numpy().tolist() == [1, 2, 3, 4]


BINDLESS = """#version 450
#extension GL_EXT_nonuniform_qualifier : require
layout(local_size_x = 4) in;
layout(binding = 0) uniform sampler2D sources[];
layout(binding = 1, std430) readonly buffer Which { int which[]; };
layout(binding = 2, std430) writeonly buffer Out { float read[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < which.length()) read[i] = textureLod(sources[nonuniformEXT(which[i])], vec2(0.5), 0).x;
}"""


@pytest.mark.features("runtimeDescriptorArray", "descriptorBindingPartiallyBound")
def test_run_time_sized_arrays_with_gaps(device: pumice.Device) -> None:
    kernel = device.load_kernel(BINDLESS)
    images = [device.asimage(np.full((2, 2), k, np.float32)) for k in range(3)]
    table = [images[0], None, images[1], None, images[2]]
    which = np.array([4, 2, 0, 2], np.int32)
    assert kernel(table, which, pumice.empty(4, np.float32)).tolist() == [2, 1, 0, 1]
    assert kernel(sources=table, Which=which, Out=pumice.empty(4, np.float32)).tolist() == [2, 1, 0, 1]
    hosts = [np.full((2, 2), 9, np.float32), images[2]]
    assert kernel(hosts, which // 4, pumice.empty(4, np.float32)).tolist() == [2, 9, 9, 9]
    with pytest.raises(pumice.InvalidArgumentError, match="takes a list, each a 2d image with a sampler"):
        kernel(images[0], which, pumice.empty(4, np.float32))


def test_the_grid_is_that_of_the_written_image(device: pumice.Device) -> None:
    kernel = device.load_kernel(
        """#version 450
layout(local_size_x = 4, local_size_y = 2) in;
layout(binding = 0, r32ui) writeonly uniform uimage2DArray target;
void main() {
    uvec3 at = gl_GlobalInvocationID;
    if (all(lessThan(at, uvec3(imageSize(target)))))
        imageStore(target, ivec3(at), uvec4(at.x + 10 * at.y + 100 * at.z + 1));
}"""
    )
    got = kernel(pumice.empty((3, 5, 9), np.uint32))
    z, y, x = np.indices((3, 5, 9))
    assert np.array_equal(got, x + 10 * y + 100 * z + 1)


def test_images_read_as_other_formats(device: pumice.Device) -> None:
    kernel = device.load_kernel(
        HEAD
        + """
layout(binding = 0, r32ui) uniform uimage2D words;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (all(lessThan(at, imageSize(words)))) imageStore(words, at, imageLoad(words, at) ^ 0xff00ff00u);
}"""
    )
    picture = RANDOM.integers(0, 256, (5, 6, 4), np.uint8)
    image = device.asimage(picture)
    kernel(image.view(format="r32uint"))
    assert np.array_equal(image.numpy(), picture ^ np.array([0, 255, 0, 255], np.uint8))
