"""What shaders read and write through images, samplers and texel buffers, against NumPy."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from support.devices.device_images import download, glsl, picture, run, texel_noise, upload
from support.devices.host_buffers import HOST, host_buffer

from pumice.formats.image_format import FORMATS, ImageFormat
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.images.format_features import STORAGE, STORAGE_TEXELS, UNIFORM_TEXELS, format_features
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.spirv.binary.grammar import ENUMERATIONS, Op
from pumice.spirv.binary.words import pack, read_binary

pytestmark = pytest.mark.vulkan
PREFIX = {"float": "", "int": "i", "uint": "u"}
WIDEST = {"float": "rg32f", "int": "rg32i", "uint": "rg32ui"}


def with_format(code: bytes, spirv_name: str) -> bytes:
    """A module with another texel format, as a compiler would write it for another layout qualifier."""
    binary = read_binary(code)
    words = list(binary.words)
    numbers = {name.lower(): number for number, name in ENUMERATIONS["ImageFormat"].names.items()}
    for opcode, start, _ in binary:
        if opcode == Op.TypeImage:
            words[start + 8] = numbers[spirv_name]
    return pack(words)


def _copy_shader(scalar: str) -> bytes:
    image, texels = f"{PREFIX[scalar]}image2D", WIDEST[scalar]
    return glsl(f"""
        layout(local_size_x = 8) in;
        layout(binding = 0, {texels}) uniform readonly {image} source;
        layout(binding = 1, {texels}) uniform writeonly {image} target;
        void main() {{
          ivec2 at = ivec2(gl_GlobalInvocationID.xy);
          imageStore(target, at, imageLoad(source, at));
        }}""")


@pytest.mark.parametrize("scalar", ["float", "int", "uint"])
def test_storage_images_of_every_format(device: Device, scalar: str) -> None:
    code = _copy_shader(scalar)
    tried = 0
    for texels in FORMATS:
        wide = texels.channel_bits == 64
        if (
            texels.scalar != scalar
            or not texels.spirv_name
            or wide
            or not format_features(device, texels).image & STORAGE
        ):
            continue
        pipeline = device.create_pipeline(with_format(code, texels.spirv_name))
        data = texel_noise(texels, 64)
        with device.create_image(texels, (8, 8)) as source, device.create_image(texels, (8, 8)) as target, pipeline:
            upload(device, source, data)
            run(device, pipeline, [source.view(), target.view()], (1, 8, 1))
            np.testing.assert_array_equal(download(device, target), data, err_msg=texels.name)
        tried += 1
    assert tried >= 7


@pytest.mark.parametrize("scalar", ["float", "int", "uint"])
def test_texel_buffers_of_every_format(device: Device, scalar: str) -> None:
    prefix = PREFIX[scalar]
    code = glsl(f"""
        layout(local_size_x = 32) in;
        layout(binding = 0) uniform {prefix}textureBuffer source;
        layout(binding = 1, {WIDEST[scalar]}) uniform {prefix}imageBuffer target;
        void main() {{
          int at = int(gl_GlobalInvocationID.x);
          if (at >= imageSize(target)) return;
          imageStore(target, at, texelFetch(source, textureSize(source) - 1 - at));
        }}""")
    tried = 0
    for texels in FORMATS:
        features = format_features(device, texels).buffer
        wanted = UNIFORM_TEXELS | STORAGE_TEXELS
        if texels.scalar != scalar or not texels.spirv_name or texels.channel_bits == 64 or features & wanted != wanted:
            continue
        data = texel_noise(texels, 27).reshape(27, -1)
        with (
            device.create_pipeline(with_format(code, texels.spirv_name)) as pipeline,
            host_buffer(device, bytes(256) + data.tobytes()) as source,
            device.create_buffer(data.nbytes, memory_type=HOST) as target,
        ):
            views = [device.texel_buffer(source.subspan(256), texels), device.texel_buffer(target, texels.name)]
            assert views[0].texels == 27
            run(device, pipeline, views)
            np.testing.assert_array_equal(np.frombuffer(target.read(), np.uint8).reshape(27, -1), data[::-1])
        tried += 1
    assert tried >= 7


SAMPLE = """
    layout(local_size_x = 1) in;
    layout(binding = 0) uniform sampler2D picture;
    layout(binding = 1) readonly buffer At { vec4 at[]; };
    layout(binding = 2) writeonly buffer Out { vec4 result[]; };
    void main() {
      uint i = gl_GlobalInvocationID.x;
      result[i] = textureLod(picture, at[i].xy, at[i].z);
    }"""


def _sampled(device: Device, view: object, at: np.ndarray, code: bytes) -> np.ndarray:
    with (
        device.create_pipeline(code) as pipeline,
        host_buffer(device, at.astype(np.float32).tobytes()) as given,
        device.create_buffer(16 * len(at), memory_type=HOST) as out,
    ):
        run(device, pipeline, [view, given, out], (len(at), 1, 1))
        return np.frombuffer(out.read(), np.float32).reshape(-1, 4)


def _addressed(index: np.ndarray, size: int, mode: str) -> np.ndarray:
    """Texel numbers after an address mode; -1 is the border (Vulkan specification, "Wrapping Operation")."""
    if mode == "repeat":
        return index % size
    if mode == "mirrored_repeat":
        folded = index % (2 * size)
        return np.where(folded < size, folded, 2 * size - 1 - folded)
    if mode == "mirror_clamp_to_edge":
        return np.clip(np.where(index >= 0, index, -1 - index), 0, size - 1)
    if mode == "clamp_to_border":
        return np.where((index < 0) | (index >= size), -1, index)
    return np.clip(index, 0, size - 1)


def _expected(data: np.ndarray, at: np.ndarray, linear: bool, mode: str, border: np.ndarray) -> np.ndarray:
    rows, columns = data.shape[:2]
    padded = np.concatenate([np.concatenate([data, np.broadcast_to(border, (rows, 1, 4))], 1)], 0)
    padded = np.concatenate([padded, np.broadcast_to(border, (1, columns + 1, 4))], 0)  # index -1 in either axis
    u, v = at[:, 0] * columns, at[:, 1] * rows
    if not linear:
        i, j = _addressed(np.floor(u).astype(int), columns, mode), _addressed(np.floor(v).astype(int), rows, mode)
        return padded[j, i]
    total = np.zeros((len(at), 4))
    fu, fv = np.floor(u - 0.5), np.floor(v - 0.5)
    a, b = u - 0.5 - fu, v - 0.5 - fv
    for di, wi in ((0, 1 - a), (1, a)):
        for dj, wj in ((0, 1 - b), (1, b)):
            i = _addressed((fu + di).astype(int), columns, mode)
            j = _addressed((fv + dj).astype(int), rows, mode)
            total += (wi * wj)[:, None] * padded[j, i]
    return total


@pytest.mark.parametrize("linear", [False, True], ids=["nearest", "linear"])
def test_samplers_against_the_specification(device: Device, linear: bool) -> None:
    rng = np.random.default_rng(0)
    data = rng.uniform(0, 1, (8, 16, 4)).astype(np.float32)
    # Coordinates that 8 bits of subtexel precision represent, away from edges between texels.
    at = np.zeros((200, 4))
    at[:, 0] = (rng.integers(-16 * 32, 32 * 32, 200) * 8 + 4) / 256 / 16
    at[:, 1] = (rng.integers(-8 * 32, 16 * 32, 200) * 8 + 4) / 256 / 8
    code = glsl(SAMPLE)
    borders = {"transparent_black": (0, 0, 0, 0), "opaque_black": (0, 0, 0, 1), "opaque_white": (1, 1, 1, 1)}
    modes = ["repeat", "mirrored_repeat", "clamp_to_edge", "mirror_clamp_to_edge"]
    cases = [(mode, "transparent_black") for mode in modes] + [("clamp_to_border", border) for border in borders]
    with picture(device, data, "rgba32float") as image:
        for mode, border in cases:
            filter = "linear" if linear else "nearest"
            with device.create_sampler(filter=filter, address=mode, border=border) as sampler:  # type: ignore[arg-type]
                got = _sampled(device, image.view().with_sampler(sampler), at, code)
            wanted = _expected(data, at, linear, mode, np.array(borders[border], np.float32))
            np.testing.assert_allclose(got, wanted, atol=0.02 if linear else 0, err_msg=f"{mode} {border}")


@pytest.mark.parametrize("alone", [False, True], ids=["combined", "alone"])
def test_borders_have_the_type_of_the_image(device: Device, alone: bool) -> None:
    code = glsl(f"""
        layout(local_size_x = 1) in;
        layout(binding = 0) uniform {"utexture2D" if alone else "usampler2D"} p;
        {"layout(binding = 1) uniform sampler s;" if alone else ""}
        layout(binding = 2) writeonly buffer Out {{ uvec4 result; }};
        void main() {{ result = textureLod({"usampler2D(p, s)" if alone else "p"}, vec2(2), 0); }}""")
    with (
        device.create_pipeline(code) as pipeline,
        device.create_image("rgba32uint", (2, 2)) as image,
        device.create_image("rgba32float", (2, 2)) as floats,
        device.create_buffer(16, memory_type=HOST) as out,
        device.create_sampler(
            filter="nearest", address="clamp_to_border", border="opaque_white", integer_border=alone
        ) as sampler,
    ):
        bound = [image.view(), sampler] if alone else [image.view().with_sampler(sampler)]
        run(device, pipeline, [*bound, out])
        assert struct.unpack("<4I", out.read()) == (1, 1, 1, 1)
        at = np.full((1, 4), 2.0) * [1, 1, 0, 0]
        got = _sampled(device, floats.view().with_sampler(sampler), at, glsl(SAMPLE))
        np.testing.assert_array_equal(got, np.ones((1, 4)))
        assert device.sampler_count == live_objects()["sampler"] == 2
    device.wait_idle(20)
    assert device.sampler_count == 0


def _bc4(blocks: np.ndarray) -> np.ndarray:
    """The texels of 4x4 blocks (Khronos Data Format Specification, "BC4 unsigned")."""
    first, second = blocks[..., 0].astype(float), blocks[..., 1].astype(float)
    bits = sum(blocks[..., 2 + n].astype(np.uint64) << np.uint64(8 * n) for n in range(6))
    wide = first > second
    palette = [first, second]
    for n in range(1, 5):
        palette.append(np.where(wide, ((7 - n) * first + n * second) / 7, ((5 - n) * first + n * second) / 5))
    palette += [np.where(wide, (2 * first + 5 * second) / 7, 0), np.where(wide, (first + 6 * second) / 7, 255)]
    texels = np.empty((*blocks.shape[:2], 4, 4))
    for texel in range(16):
        code = (bits >> np.uint64(3 * texel)) & np.uint64(7)
        texels[..., texel // 4, texel % 4] = np.choose(code.astype(int), palette)
    return texels.swapaxes(1, 2).reshape(4 * blocks.shape[0], 4 * blocks.shape[1]) / 255


def test_compressed_images_are_sampled(device: Device) -> None:
    texels = ImageFormat.parse("bc4runorm")
    if not format_features(device, texels).image & 1:
        pytest.skip(f"{device.profile.name} has no BC formats")
    blocks = np.random.default_rng(0).integers(0, 256, (2, 4, 8), np.uint8)
    y, x = np.mgrid[0:8, 0:16]
    at = np.stack([(x.ravel() + 0.5) / 16, (y.ravel() + 0.5) / 8, 0 * x.ravel(), 0 * x.ravel()], axis=1)
    with device.create_image(texels, (16, 8)) as image, device.create_sampler(filter="nearest") as sampler:
        upload(device, image, blocks)
        got = _sampled(device, image.view().with_sampler(sampler), at, glsl(SAMPLE))[:, 0].reshape(8, 16)
    np.testing.assert_allclose(got, _bc4(blocks), atol=1.01 / 255)


def test_stencils_are_read_as_uints(device: Device) -> None:
    code = glsl("""
        layout(local_size_x = 4) in;
        layout(binding = 0) uniform utexture2D stencils;
        layout(binding = 1) buffer Out { uint v[]; };
        void main() { uint i = gl_LocalInvocationID.x; v[i] = texelFetch(stencils, ivec2(i, 0), 0).x; }""")
    with (
        device.create_image("s8uint", (4, 1)) as image,
        device.create_buffer(16, memory_type=HOST) as out,
        device.create_pipeline(code) as pipeline,
    ):
        upload(device, image, np.array([3, 1, 4, 255], np.uint8))
        assert image.view().aspect == "stencil"
        run(device, pipeline, [image.view(), out])
        assert struct.unpack("<4I", out.read()) == (3, 1, 4, 255)


def test_levels_of_detail(device: Device) -> None:
    code = glsl(SAMPLE)
    with device.create_image("r8unorm", (16, 16), levels=0) as image:
        for level in range(image.levels):
            side = 16 >> level
            upload(device, image, np.full(side * side, 50 * level, np.uint8), level)
        at = np.array([[0.3, 0.3, lod, 0] for lod in (0, 0.25, 1, 2.75, 4, 9)])
        cases = {
            ("linear", None, 0.0): [0, 12.5, 50, 137.5, 200, 200],
            ("nearest", None, 0.0): [0, 0, 50, 150, 200, 200],
            ("linear", 2.0, 1.0): [50, 50, 50, 100, 100, 100],
        }
        for (mip_filter, highest, lowest), wanted in cases.items():
            with device.create_sampler(mip_filter=mip_filter, max_lod=highest, min_lod=lowest) as sampler:  # type: ignore[arg-type]
                got = _sampled(device, image.view().with_sampler(sampler), at, code)[:, 0] * 255
            np.testing.assert_allclose(got, wanted, atol=1)
        with device.create_sampler() as sampler:  # a view of some levels
            got = _sampled(device, image.view(base_level=2, levels=2).with_sampler(sampler), at, code)[:, 0] * 255
            np.testing.assert_allclose(got, [100, 100, 150, 150, 150, 150], atol=1)


def test_every_dimension_is_sampled(device: Device) -> None:
    """Each kind of image with texels that are all different, and a shader that reads some of each."""
    code = glsl("""
        layout(local_size_x = 1) in;
        layout(binding = 0) uniform sampler1D line;
        layout(binding = 1) uniform sampler1DArray lines;
        layout(binding = 2) uniform sampler2DArray layers;
        layout(binding = 3) uniform sampler3D volume;
        layout(binding = 4) uniform samplerCube cube;
        layout(binding = 5) uniform samplerCubeArray cubes;
        layout(binding = 6) writeonly buffer Out { float result[]; };
        void main() {
          result[0] = textureLod(line, 2.5 / 4, 0).x;
          result[1] = textureLod(lines, vec2(1.5 / 4, 2), 0).x;
          result[2] = textureLod(layers, vec3(1.5 / 4, 2.5 / 3, 1), 0).x;
          result[3] = textureLod(volume, vec3(3.5 / 4, 0.5 / 3, 1.5 / 2), 0).x;
          vec3 axes[6] = vec3[](vec3(1, 0.1, 0.1), vec3(-1, 0.1, 0.1), vec3(0.1, 1, 0.1), vec3(0.1, -1, 0.1),
                                vec3(0.1, 0.1, 1), vec3(0.1, 0.1, -1));
          for (int face = 0; face < 6; face++) {
            result[4 + face] = textureLod(cube, axes[face], 0).x;
            result[10 + face] = textureLod(cubes, vec4(axes[face], 1), 0).x;
          }
        }""")
    shapes = [((4,), 1, None), ((4,), 3, None), ((4, 3), 2, None), ((4, 3, 2), 1, None)]
    shapes += [((1, 1), 6, "cube"), ((1, 1), 12, "cube")]
    images = []
    for extent, layers, dim in shapes:
        images.append(device.create_image("r32float", extent, layers=layers, dim=dim))  # type: ignore[arg-type]
        upload(device, images[-1], np.arange(np.prod(extent) * layers, dtype=np.float32))
    with device.create_pipeline(code) as pipeline, device.create_buffer(64, memory_type=HOST) as out:
        with device.create_sampler(filter="nearest") as sampler:
            run(device, pipeline, [*(image.view().with_sampler(sampler) for image in images), out])
        got = np.frombuffer(out.read(), np.float32)
    np.testing.assert_array_equal(got, [2, 9, 21, 15, *range(6), *range(6, 12)])
    for image in images:
        image.close()


def test_separate_samplers_and_storage_of_layers(device: Device) -> None:
    code = glsl("""
        layout(local_size_x = 4, local_size_y = 4) in;
        layout(set = 0, binding = 0) uniform texture2D picture;
        layout(set = 1, binding = 0) uniform sampler nearest_one;
        layout(set = 1, binding = 1, r32f) uniform image2DArray faces;
        layout(set = 1, binding = 2, r32f) uniform imageCube cube;
        void main() {
          ivec3 at = ivec3(gl_GlobalInvocationID);
          float value = texture(sampler2D(picture, nearest_one), (vec2(at.xy) + 0.5) / 4).x;
          imageStore(faces, at, vec4(value * 10 + at.z));
          if (at.z == 5) imageStore(cube, ivec3(0, 0, 2), vec4(-1));
        }""")
    data = np.arange(16, dtype=np.float32).reshape(4, 4)
    with (
        device.create_pipeline(code) as pipeline,
        picture(device, data, "r32float") as image,
        device.create_image("r32float", (4, 4), dim="cube", layers=6) as faces,
        device.create_image("r32float", (4, 4), dim="cube", layers=6) as cube,
        device.create_sampler(filter="nearest") as sampler,
    ):
        upload(device, cube, np.zeros(96, np.float32))
        run(device, pipeline, [image.view(), sampler, faces.view(dim="2d", arrayed=True), cube.view()], (1, 1, 6))
        got = download(device, faces, np.float32).reshape(6, 4, 4)
        np.testing.assert_array_equal(got, data * 10 + np.arange(6)[:, None, None])
        assert download(device, cube, np.float32).nonzero()[0].tolist() == [32]


def test_atomics_on_images_and_64_bit_free_formats(device: Device) -> None:
    code = glsl("""
        layout(local_size_x = 64) in;
        layout(binding = 0, r32ui) uniform uimage2D counts;
        layout(binding = 1, r32i) uniform iimageBuffer most;
        void main() {
          imageAtomicAdd(counts, ivec2(gl_GlobalInvocationID.x % 4, 0), 2u);
          imageAtomicMax(most, 1, int(gl_GlobalInvocationID.x));
        }""")
    with (
        device.create_pipeline(code) as pipeline,
        picture(device, np.zeros((1, 4), np.uint32), "r32uint") as counts,
        host_buffer(device, bytes(8)) as most,
    ):
        run(device, pipeline, [counts.view(), device.texel_buffer(most, "r32sint")], (3, 1, 1))
        assert download(device, counts, np.uint32).tolist() == [96] * 4
        assert struct.unpack("<2i", most.read()) == (0, 191)


def test_shadow_samplers(device: Device) -> None:
    code = glsl("""
        layout(local_size_x = 8) in;
        layout(binding = 0) uniform sampler2DShadow depths;
        layout(binding = 1) writeonly buffer Out { float result[]; };
        void main() {
          uint i = gl_GlobalInvocationID.x;
          result[i] = texture(depths, vec3((float(i) + 0.5) / 8, 0.5, 0.45));
        }""")
    depths = (np.arange(8) / 8).astype(np.float32).reshape(1, 8)
    with (
        device.create_pipeline(code) as pipeline,
        picture(device, depths, "d32float") as image,
        device.create_buffer(32, memory_type=HOST) as out,
    ):
        for compare in ("less", "greater_or_equal"):
            with device.create_sampler(filter="nearest", compare=compare) as sampler:  # type: ignore[arg-type]
                run(device, pipeline, [image.view().with_sampler(sampler), out])
            wanted = depths > 0.45 if compare == "less" else depths <= 0.45
            np.testing.assert_array_equal(np.frombuffer(out.read(), np.float32), wanted[0])


def test_multisampled_images(device: Device) -> None:
    write = glsl("""
        layout(local_size_x = 4, local_size_y = 4) in;
        layout(binding = 0, rgba32f) uniform writeonly image2DMS target;
        void main() {
          ivec2 at = ivec2(gl_GlobalInvocationID.xy);
          for (int s = 0; s < 4; s++) imageStore(target, at, s, vec4(at, s, 1));
        }""")
    read = glsl("""
        layout(local_size_x = 4, local_size_y = 4) in;
        layout(binding = 0) uniform texture2DMS source;
        layout(binding = 1) buffer Out { float result[]; };
        void main() {
          ivec2 at = ivec2(gl_GlobalInvocationID.xy);
          for (int s = 0; s < 4; s++)
            result[(at.y * 4 + at.x) * 4 + s] = dot(texelFetch(source, at, s), vec4(100, 10, 1, 1000));
        }""")
    with (
        device.create_image("rgba32float", (4, 4), samples=4) as image,
        device.create_buffer(256, memory_type=HOST) as out,
        device.create_pipeline(write) as writer,
        device.create_pipeline(read) as reader,
    ):
        run(device, writer, [image.view()])
        run(device, reader, [image.view(), out])
        y, x, s = np.mgrid[0:4, 0:4, 0:4]
        np.testing.assert_array_equal(
            np.frombuffer(out.read(), np.float32).reshape(4, 4, 4), 1000 + 100 * x + 10 * y + s
        )


ARRAYS = """
    layout(local_size_x = 1) in;
    layout(binding = 0) uniform sampler2D pictures[3];
    layout(binding = 1, r32f) uniform image2D targets[2];
    layout(binding = 2) readonly buffer In { float v[]; } given[2];
    void main() {
      imageStore(targets[0], ivec2(0), textureLod(pictures[0], vec2(0.5), 0) + given[0].v[0]);
      imageStore(targets[1], ivec2(0), textureLod(pictures[1], vec2(0.5), 0) + textureLod(pictures[2], vec2(0.5), 0)
                                       + given[1].v[0]);
    }"""


@pytest.mark.parametrize(
    "push", [pytest.param(True, marks=pytest.mark.features("VK_KHR_push_descriptor")), False], ids=["pushed", "sets"]
)
def test_arrays_of_descriptors(driver: Driver, push: bool) -> None:
    with Device(driver, options=PlanOptions(push_descriptors=push)) as device:
        ones = [picture(device, np.full((1, 1), value, np.float32), "r32float") for value in (1, 2, 4, 0, 0)]
        sampler = device.create_sampler(filter="nearest")
        pictures = [image.view().with_sampler(sampler) for image in ones[:3]]
        targets = [image.view() for image in ones[3:]]
        buffers = [host_buffer(device, struct.pack("<f", value)) for value in (100, 200)]
        with device.create_pipeline(glsl(ARRAYS)) as pipeline:
            for bound, wanted in (
                ([*pictures, *targets, *buffers], (101, 206)),
                ([pictures[::-1], targets, buffers], (104, 203)),
                ([pictures, *targets[::-1], buffers], (206, 101)),
            ):
                run(device, pipeline, bound)
                assert [download(device, image, np.float32)[0] for image in ones[3:]] == list(wanted)


def test_robust_access_keeps_within_images(driver: Driver) -> None:
    code = glsl("""
        layout(local_size_x = 64) in;
        layout(binding = 0, r32ui) uniform uimage2D picture;
        layout(binding = 1) buffer Out { uint v[]; };
        void main() {
          int i = int(gl_GlobalInvocationID.x);
          v[i] = imageLoad(picture, ivec2(i * 100000 - 3200000, i)).x;
          imageStore(picture, ivec2(4 + i, 0), uvec4(9));
        }""")
    with Device(driver, options=PlanOptions(robust_buffer_access=True)) as device:
        if "robustImageAccess" not in device.plan.features:
            pytest.skip(f"{device.profile.name} bounds no accesses of images (robustImageAccess)")
        data = np.full((4, 4), 7, np.uint32)
        with device.create_pipeline(code) as pipeline, device.create_buffer(256, memory_type=HOST) as out:
            images = [picture(device, data, "r32uint") for _ in range(3)]
            run(device, pipeline, [images[1].view(), out])
            assert not any(out.read())
            for image in images:
                np.testing.assert_array_equal(download(device, image, np.uint32), data.ravel())


def test_views_of_other_formats(device: Device) -> None:
    data = np.array([[0.5, -2.0]], np.float32)
    with device.create_image("r32float", (2, 1), mutable_format=True) as image:
        upload(device, image, data)
        code = glsl("""
            layout(local_size_x = 1) in;
            layout(binding = 0, r32ui) uniform uimage2D bits;
            void main() { imageAtomicXor(bits, ivec2(gl_WorkGroupID.x, 0), 0x80000000u); }""")
        with device.create_pipeline(code) as pipeline:
            run(device, pipeline, [image.view(format=ImageFormat.parse("r32uint"))], (2, 1, 1))
        np.testing.assert_array_equal(download(device, image, np.float32), [-0.5, 2.0])
        assert image.view() is image.view() and image.view(format=ImageFormat.parse("r32uint")) is not image.view()
