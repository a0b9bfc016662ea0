"""What images, samplers and bindings refuse: each error names the binding or the limit, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from support.devices.device_images import glsl
from support.devices.host_buffers import HOST

from pumice import shaders
from pumice.formats.image_format import ImageFormat
from pumice.hal_vulkan.commands.command_buffer import CommandBuffer
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.images.format_features import (
    DEPTH_COMPARISON,
    STORAGE_READ_WITHOUT_FORMAT,
    STORAGE_WRITE_WITHOUT_FORMAT,
    ImageUsage,
    format_features,
)
from pumice.hal_vulkan.images.image import Image
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.status import (
    ClosedError,
    InvalidArgumentError,
    OutOfRangeError,
    PumiceError,
    ResourceExhaustedError,
    UnimplementedError,
)

pytestmark = pytest.mark.vulkan


@pytest.fixture
def untouched(device: Device) -> Iterator[None]:
    """Checks that refused calls leave nothing behind."""
    before = live_objects()
    yield
    assert live_objects() == before


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("texels", "extent", "options", "error", "match"),
    [
        ("rgba8", (0, 4), {}, InvalidArgumentError, "positive ints; got .0, 4."),
        ("rgba8", (), {}, InvalidArgumentError, "one to three"),
        ("rgba8", (1, 2, 3, 4), {}, InvalidArgumentError, "one to three"),
        ("rgba8", (4.0, 4), {}, InvalidArgumentError, "positive ints"),
        ("rgba8", (4, 4), {"dim": "3d"}, InvalidArgumentError, "3d image's extent has 3"),
        ("rgba8", (4, 4), {"dim": "4d"}, InvalidArgumentError, "1d, 2d, 3d, cube"),
        ("rgba8", (4, 4), {"dim": "cube", "layers": 5}, InvalidArgumentError, "sixes"),
        ("rgba8", (4, 8), {"dim": "cube", "layers": 6}, InvalidArgumentError, "square"),
        ("rgba8", (4, 4, 4), {"layers": 2}, InvalidArgumentError, "no layers"),
        ("rgba8", (4, 4), {"layers": 0}, InvalidArgumentError, "layers are a positive"),
        ("rgba8", (4, 4), {"levels": 4}, InvalidArgumentError, "up to 3 mip levels"),
        ("rgba8", (4, 4), {"levels": -1}, InvalidArgumentError, "levels are a positive"),
        ("rgba8", (4, 4), {"samples": 3}, UnimplementedError, r"have \[1.*got 3"),
        ("rgba8", (4, 4), {"samples": 4, "levels": 2}, InvalidArgumentError, "one mip level"),
        ("rgba8", (1 << 20, 4), {}, OutOfRangeError, "have up to 16384x16384 texels, got 1048576x4"),
        ("rgba8", (4, 4), {"layers": 1 << 20}, OutOfRangeError, "layers, got 1048576"),
        ("rgba8888", (4, 4), {}, InvalidArgumentError, "expected an image format.*rgba8unorm"),
        ("rgba8unorm-srgb", (4, 4), {"usage": ImageUsage.STORAGE}, UnimplementedError, "for STORAGE.*rgba8unorm"),
        ("rgba8", (4, 4), {"usage": ImageUsage(0)}, InvalidArgumentError, "usage names what it is for"),
    ],
    ids=lambda value: None if isinstance(value, type) else str(value)[:24],
)
def test_images_that_cannot_be(
    device: Device,
    texels: str,
    extent: tuple[int, ...],
    options: dict[str, object],
    error: type[PumiceError],
    match: str,
) -> None:
    with pytest.raises(error, match=match):
        device.create_image(texels, extent, **options)  # type: ignore[arg-type]


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"filter": "cubic"}, InvalidArgumentError, "filter is one of nearest, linear, got 'cubic'"),
        ({"mip_filter": None}, InvalidArgumentError, "mip_filter"),
        ({"address": "wrap"}, InvalidArgumentError, "address is one of repeat"),
        ({"address": ("repeat", "edge")}, InvalidArgumentError, "'edge'"),
        ({"address": 5}, InvalidArgumentError, "one mode, or one to three, got 5"),
        ({"address": ()}, InvalidArgumentError, "one to three"),
        ({"address": (["repeat"],)}, InvalidArgumentError, "address is one of repeat"),
        ({"lod_bias": float("nan")}, InvalidArgumentError, "lod_bias is a finite number"),
        ({"max_lod": "3"}, InvalidArgumentError, "max_lod is a finite number, got '3'"),
        ({"anisotropy": 0.5}, InvalidArgumentError, "anisotropy is 1"),
        ({"anisotropy": 1e6}, UnimplementedError, "anisotropy up to"),
        ({"lod_bias": 1e6}, OutOfRangeError, "by up to"),
        ({"min_lod": 3.0, "max_lod": 2.0}, InvalidArgumentError, "at least min_lod"),
        ({"compare": "bigger"}, InvalidArgumentError, "compare is one of never, less"),
        pytest.param(
            *({"compare": "less", "reduction": "min"}, InvalidArgumentError, "no reduction"),
            marks=pytest.mark.features("samplerFilterMinmax"),
        ),
        ({"border": "red"}, InvalidArgumentError, "border is one of transparent_black"),
        ({"unnormalized": True, "address": "repeat"}, InvalidArgumentError, "clamp_to_edge"),
        ({"unnormalized": True, "compare": "less"}, InvalidArgumentError, "comparison"),
    ],
    ids=str,
)
def test_samplers_that_cannot_be(
    device: Device, options: dict[str, object], error: type[PumiceError], match: str
) -> None:
    with pytest.raises(error, match=match):
        device.create_sampler(**options)  # type: ignore[arg-type]


def test_more_samplers_than_the_device_has(device: Device) -> None:
    device.profile = replace(device.profile, limits=replace(device.profile.limits, max_sampler_allocation_count=3))
    samplers = [device.create_sampler() for _ in range(3)]
    with pytest.raises(ResourceExhaustedError, match="up to 3 samplers"):
        device.create_sampler()
    samplers.pop().close()
    samplers.append(device.create_sampler())
    for sampler in samplers:
        sampler.close()


@pytest.mark.usefixtures("untouched")
def test_images_that_no_memory_holds(device: Device) -> None:
    with pytest.raises((ResourceExhaustedError, OutOfRangeError)):
        device.create_image("rgba32float", (16384, 16384), layers=64)


def test_devices_that_report_narrow_features(device: Device) -> None:
    """Before Vulkan 1.3 a format's features have 32 bits, and features of the device say the rest."""
    texels, depth = ImageFormat.parse("rgba8unorm"), ImageFormat.parse("d32float")
    wide = format_features(device, texels)
    with Device(device.driver) as older:
        older.profile = replace(device.profile, api_version=(1, 2, 0), extensions=frozenset())
        features = older.plan.features | {"shaderStorageImageReadWithoutFormat"}
        older.plan = replace(older.plan, features=features - {"shaderStorageImageWriteWithoutFormat"})
        narrow = format_features(older, texels)
        assert narrow.image & 0xFFFF == wide.image & 0xFFFF and narrow.usage == wide.usage
        assert narrow.image & STORAGE_READ_WITHOUT_FORMAT and not narrow.image & STORAGE_WRITE_WITHOUT_FORMAT
        assert format_features(older, depth).image & DEPTH_COMPARISON
        assert not narrow.image & DEPTH_COMPARISON


@pytest.fixture
def image(device: Device) -> Iterator[Image]:
    with device.create_image("r32float", (8, 8), layers=6, levels=2, dim="cube") as made:
        yield made


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"base_level": 2}, OutOfRangeError, "mip levels"),
        ({"levels": 3}, OutOfRangeError, r"mip levels \[0, 3\)"),
        ({"layers": 7}, OutOfRangeError, "layers .0, 7"),
        ({"base_layer": -1}, OutOfRangeError, "layers"),
        ({"dim": "3d"}, InvalidArgumentError, "seen as cube or 2d, not as '3d'"),
        ({"layers": 3}, InvalidArgumentError, "six layers"),
        ({"dim": "2d", "arrayed": False}, InvalidArgumentError, "has one layer, got 6"),
        ({"format": ImageFormat.parse("r32uint")}, InvalidArgumentError, "mutable_format"),
    ],
    ids=str,
)
def test_views_that_cannot_be(
    device: Device, image: Image, options: dict[str, object], error: type[PumiceError], match: str
) -> None:
    before = live_objects()
    with pytest.raises(error, match=match):
        image.view(**options)  # type: ignore[arg-type]
    assert live_objects() == before


def test_views_with_formats_of_another_size(device: Device) -> None:
    with (
        device.create_image("r32float", (8, 8), mutable_format=True) as made,
        pytest.raises(InvalidArgumentError, match="4 bytes a texel.*8 bytes"),
    ):
        made.view(format=ImageFormat.parse("rg32float"))


@pytest.mark.parametrize(
    ("record", "error", "match"),
    [
        (lambda c, i, b: c.copy_buffer_to_image(b, i), OutOfRangeError, "do not lie within the buffer of 64"),
        (lambda c, i, b: c.copy_buffer_to_image(b, i, level=2), OutOfRangeError, "mip levels"),
        (lambda c, i, b: c.copy_buffer_to_image(b, i, base_layer=6), OutOfRangeError, "layers"),
        (lambda c, i, b: c.copy_buffer_to_image(b, i, offset=(8, 0, 0)), OutOfRangeError, "texels .8, 0, 0."),
        (lambda c, i, b: c.copy_image_to_buffer(i, b, extent=(8, 8, 2)), OutOfRangeError, "8x8x2"),
        (lambda c, i, b: c.copy_image_to_buffer(i, i), InvalidArgumentError, "takes a buffer, got Image"),
        (lambda c, i, b: c.copy_buffer_to_image(b, b), InvalidArgumentError, "takes an image, got Buffer"),
        (lambda c, i, b: c.copy_image(i, i, layers=2), InvalidArgumentError, "overlap"),
        (lambda c, i, b: c.copy_image(i, i, target_level=1), OutOfRangeError, "level 1"),
        (lambda c, i, b: c.clear_image(i, (1, 2, 3, 4, 5)), InvalidArgumentError, "one to four channels"),
        (lambda c, i, b: c.clear_image(i, levels=3), OutOfRangeError, "mip levels"),
        (lambda c, i, b: c.blit_image(i, i), InvalidArgumentError, "overlap"),
        (lambda c, i, b: c.blit_image(i, i, filter="cubic", target_level=1), InvalidArgumentError, "nearest or linear"),
    ],
)
def test_commands_that_cannot_be(
    device: Device,
    image: Image,
    record: Callable[[CommandBuffer, object, object], None],
    error: type[PumiceError],
    match: str,
) -> None:
    with device.create_buffer(64, memory_type=HOST) as buffer, device.create_command_buffer() as commands:
        commands.begin()
        with pytest.raises(error, match=match):
            record(commands, image, buffer)


def test_copies_between_images_that_differ(device: Device) -> None:
    with (
        device.create_image("r32float", (4, 4)) as one,
        device.create_image("rgba32float", (4, 4)) as wide,
        device.create_image("r32uint", (4, 4)) as numbers,
        device.create_image("r32float", (4, 4, 4)) as volume,
        device.create_image("d32float", (4, 4)) as depth,
        device.create_image("r32float", (4, 4), usage=ImageUsage.SAMPLED) as sampled,
        device.create_command_buffer() as commands,
    ):
        commands.begin()
        for record, match in (
            (lambda: commands.copy_image(one, wide), "r32float texels of 1 .*rgba32float"),
            (lambda: commands.copy_image(one, volume), "is 2d and .* 3d"),
            (lambda: commands.copy_image(one, depth), "r32float.*d32float"),
            (lambda: commands.copy_image(one, sampled), "made for SAMPLED; make it with usage TRANSFER_TARGET"),
            (lambda: commands.blit_image(one, numbers), "r32float is read as floats, r32uint as uints"),
        ):
            with pytest.raises(InvalidArgumentError, match=match):
                record()
        with pytest.raises(UnimplementedError, match="clear neither depth and stencil"):
            commands.clear_image(depth, 1)
        with pytest.raises(OutOfRangeError, match="32-bit uints"):
            commands.clear_image(numbers, -1)


def test_texel_buffers_that_cannot_be(device: Device) -> None:
    with device.create_buffer(64) as buffer:
        for size, texels, error, match in (
            (63, "r32uint", InvalidArgumentError, "multiple of 4 bytes, got 63"),
            (0, "r32uint", InvalidArgumentError, "multiple of 4"),
            (64, "d32float", UnimplementedError, "no texel buffers of format d32float"),
        ):
            with pytest.raises(error, match=match):
                device.texel_buffer(buffer.subspan(0, size), texels)
        with pytest.raises(InvalidArgumentError, match="starts at a multiple of"):
            device.texel_buffer(buffer.subspan(1, 4), "r32uint")
    with pytest.raises(ClosedError):
        device.texel_buffer(buffer, "r32uint")


BOUND = """
    layout(local_size_x = 1) in;
    layout(binding = 0) uniform sampler2D smooth_one;
    layout(binding = 1, rgba8) uniform image2D stored;
    layout(binding = 2) uniform utexture2DArray numbers;
    layout(binding = 3) uniform sampler how;
    layout(binding = 4) uniform samplerBuffer texels;
    layout(binding = 5) buffer Out { vec4 v[]; };
    layout(binding = 6) uniform sampler2DShadow shadow;
    layout(binding = 7) uniform texture2DMS samples;
    void main() {
      v[0] = textureLod(smooth_one, vec2(0), 0) + imageLoad(stored, ivec2(0)) + texelFetch(texels, 0)
        + vec4(texelFetch(usampler2DArray(numbers, how), ivec3(0), 0)) + texture(shadow, vec3(0))
        + texelFetch(samples, ivec2(0), 0);
      imageStore(stored, ivec2(0), v[0]);
    }"""


def test_every_mismatch_names_the_binding(device: Device) -> None:
    sampler, compares = device.create_sampler(), device.create_sampler(compare="less")
    nearest = device.create_sampler(filter="nearest")
    images = {
        "color": device.create_image("rgba8unorm", (4, 4)),
        "wide": device.create_image("rgba32float", (4, 4)),
        "line": device.create_image("rgba8unorm", (4,)),
        "volume": device.create_image("rgba8unorm", (4, 4, 4)),
        "numbers": device.create_image("r32uint", (4, 4), layers=2),
        "signed": device.create_image("r32sint", (4, 4), layers=2),
        "depth": device.create_image("d32float", (4, 4)),
        "samples": device.create_image("rgba8unorm", (4, 4), samples=4),
        "target": device.create_image("rgba8unorm", (4, 4), usage=ImageUsage.TRANSFER_TARGET | ImageUsage.SAMPLED),
    }
    views = {name: image.view() for name, image in images.items()}
    buffer = device.create_buffer(64, memory_type=HOST)
    floats, uints = device.texel_buffer(buffer, "rgba32float"), device.texel_buffer(buffer, "rgba32uint")
    good = [
        views["color"].with_sampler(sampler),
        views["color"],
        views["numbers"],
        sampler,
        floats,
        buffer,
        views["depth"].with_sampler(compares),
        views["samples"],
    ]
    with device.create_pipeline(glsl(BOUND)) as pipeline:
        pipeline.bind(good).close()  # type: ignore[arg-type]
        for at, wrong, match in (
            (0, buffer, r"binding 0 takes an image with a sampler \(2d, float\), got a buffer of 64 bytes"),
            (0, views["color"], "with a sampler .*got a 2d image of format rgba8unorm"),
            (0, views["volume"].with_sampler(sampler), "got a 3d image.*dimensions differ.*dim='2d'"),
            (0, views["line"].with_sampler(sampler), "1d image"),
            (0, images["color"].view(arrayed=True).with_sampler(sampler), "array of 1 layers"),
            (1, views["wide"], r"binding 1 takes a storage image .*format rgba8\).*has to be rgba8"),
            (1, good[0], "got a 2d image of format rgba8unorm with a sampler"),
            (1, views["target"], "used for TRANSFER_TARGET.SAMPLED, not for STORAGE"),
            (2, views["signed"], r"sampled image \(2d array, uint\).*r32sint are read as ints"),
            (2, views["color"], "dimensions differ"),
            (3, good[0], "binding 3 takes a sampler, got"),
            (3, buffer, "takes a sampler, got a buffer"),
            (4, buffer, r"binding 4 takes an uniform texel buffer|binding 4 takes a uniform texel buffer"),
            (4, uints, "rgba32uint are read as uints"),
            (5, floats, "binding 5 takes a storage buffer, got a texel buffer of 4 rgba32float"),
            (5, views["color"], "takes a storage buffer, got a 2d image"),
            (5, images["color"], "got Image"),
            (5, None, "got nothing"),
            (5, 3.5, "got float"),
            (6, views["depth"].with_sampler(nearest), "the sampler does not; make it with compare="),
            (7, views["color"], "binding 7 takes a sampled image .2d, multisampled, float.*one is multisampled"),
        ):
            bound = [*good]
            bound[at] = wrong  # type: ignore[call-overload]
            with pytest.raises(InvalidArgumentError, match=match) as caught:
                pipeline.bind(bound)  # type: ignore[arg-type]
            assert f"set 0 binding {at}" in str(caught.value)
        for bound, match in (
            (good[:-1], "takes 8 resource"),
            ([*good, sampler], "got 9"),
            ([good], "up to 1 elements"),
        ):
            with pytest.raises(InvalidArgumentError, match=match):
                pipeline.bind(bound)  # type: ignore[arg-type]
        sampler.close()
        with pytest.raises(ClosedError, match="the image for set 0 binding 0 was closed"):
            pipeline.bind(good)  # type: ignore[arg-type]
    for one in (*images.values(), buffer, compares, nearest):
        one.close()


def test_what_is_no_resource_is_named_where_buffers_are_bound(device: Device) -> None:
    with (
        device.create_buffer(64) as buffer,
        device.create_image("r32float", (4, 4)) as image,
        device.create_pipeline(shaders.spirv("mul")) as pipeline,
    ):
        for wrong, match in (
            (3.5, "got float"),
            (None, "got nothing"),
            (image.view(), "got a 2d image"),
            (image, "Image"),
        ):
            with pytest.raises(InvalidArgumentError, match=f"set 0 binding 1 takes a storage buffer, .*{match}"):
                pipeline.bind([buffer, wrong, buffer])  # type: ignore[list-item]
        with pytest.raises(InvalidArgumentError, match="set 0 binding 0 takes a storage buffer, got list"):
            pipeline.bind([[buffer], buffer, buffer])


def test_resources_of_another_device(device: Device) -> None:
    with Device(device.driver) as other, device.create_pipeline(glsl(BOUND)) as pipeline:
        sampler = other.create_sampler()
        with other.create_image("rgba8unorm", (4, 4)) as image, device.create_image("rgba8unorm", (4, 4)) as own:
            with pytest.raises(InvalidArgumentError, match="belongs to another device"):
                pipeline.bind([image.view().with_sampler(sampler), *[sampler] * 7])
            with pytest.raises(InvalidArgumentError, match="another device than the image"):
                own.view().with_sampler(sampler)


def test_filters_that_the_format_lacks(device: Device) -> None:
    with device.create_image("r32uint", (4, 4)) as numbers, device.create_sampler() as linear:
        assert not format_features(device, numbers.format).image & 0x1000
        with pytest.raises(UnimplementedError, match="does not filter r32uint linearly.*nearest"):
            numbers.view().with_sampler(linear)


def test_more_descriptors_than_the_device_has(device: Device) -> None:
    most = device.profile.limits.max_per_stage_descriptor_samplers
    many = " + ".join(f"textureLod(s[{i}], vec2(0), 0).x" for i in range(3))
    code = glsl(f"""
        layout(local_size_x = 1) in;
        layout(binding = 0) uniform sampler2D s[{most + 1}];
        layout(binding = 1) buffer Out {{ float v[]; }};
        void main() {{ v[0] = {many}; }}""")
    with pytest.raises(InvalidArgumentError, match=rf"{most + 1} samplers are more than .* allows \({most}\)"):
        device.create_pipeline(code)
