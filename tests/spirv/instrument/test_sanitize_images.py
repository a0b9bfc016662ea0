"""Texels outside of an image are reported and skipped: storage, sampled, multisampled images and texel buffers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
import pytest
from support.devices.device_images import glsl, picture, run, upload
from support.devices.host_buffers import HOST
from support.devices.shader_tools import needs_compiler

from pumice.formats.image_format import ImageFormat
from pumice.hal_vulkan.device import Device
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.instrument.checks import SanitizeOptions
from pumice.spirv.instrument.passes import instrument
from pumice.spirv.instrument.reports import Report, ReportKind

pytestmark = [pytest.mark.vulkan, needs_compiler]

Make = Callable[[Device, ExitStack], object]


def image(extent: tuple[int, ...], **options: object) -> Make:
    """An image of r32ui texels that are all 7."""

    def make(device: Device, stack: ExitStack) -> object:
        made = stack.enter_context(device.create_image("r32uint", extent, **options))  # type: ignore[arg-type]
        for level in range(made.levels):
            count = int(np.prod(made.level_extent(level))) * made.layers
            upload(device, made, np.full(count, 7, np.uint32), level)
        return made.view()

    return make


def texels(count: int) -> Make:
    """A texel buffer of r32ui texels that are all 7."""

    def make(device: Device, stack: ExitStack) -> object:
        buffer = stack.enter_context(device.create_buffer(4 * count, memory_type=HOST))
        buffer.write(np.full(count, 7, np.uint32).tobytes())
        return device.texel_buffer(buffer, ImageFormat.parse("r32uint"))

    return make


@dataclasses.dataclass(frozen=True)
class Case:
    """Code that sets ``r`` and is right with ``at`` = 1, and wrong with ``at`` = ``wrong``."""

    declared: str
    body: str
    wrong: int
    make: Make
    reported: tuple[str, int, int]


STORAGE = "layout(binding = 0, r32ui) uniform"
CASES = {
    "read": Case(f"{STORAGE} uimage2D i;", "r = imageLoad(i, ivec2(at, 0)).x;", 8, image((8, 4)), ("coordinate", 8, 8)),
    "second axis": Case(
        f"{STORAGE} uimage2D i;",
        "r = imageLoad(i, ivec2(0, at)).x;",
        4,
        image((8, 4)),
        ("coordinate", 1 << 32 | 4, 4),
    ),
    "negative": Case(
        f"{STORAGE} uimage2D i;",
        "r = imageLoad(i, ivec2(1 - int(at), 0)).x;",
        2,
        image((8, 4)),
        ("coordinate", 0xFFFFFFFF, 8),
    ),
    "write to a texel buffer": Case(
        f"{STORAGE} uimageBuffer i;", "imageStore(i, int(at), uvec4(7)); r = 7;", 9, texels(5), ("coordinate", 9, 5)
    ),
    "layer": Case(
        f"{STORAGE} uimage2DArray i;",
        "r = imageLoad(i, ivec3(0, 0, at)).x;",
        3,
        image((8, 4), layers=3),
        ("coordinate", 2 << 32 | 3, 3),
    ),
    "three dimensions": Case(
        f"{STORAGE} uimage3D i;",
        "r = imageLoad(i, ivec3(0, 0, at)).x;",
        2,
        image((8, 4, 2)),
        ("coordinate", 2 << 32 | 2, 2),
    ),
    "atomic": Case(
        f"{STORAGE} uimage2D i;", "r = imageAtomicMax(i, ivec2(at, 1), 3);", 8, image((8, 4)), ("coordinate", 8, 8)
    ),
    "fetch": Case(
        "layout(binding = 0) uniform utexture2D i;",
        "r = texelFetch(i, ivec2(at, 0), 0).x;",
        8,
        image((8, 4)),
        ("coordinate", 8, 8),
    ),
    "fetch of a level": Case(
        "layout(binding = 0) uniform utexture2D i;",
        "r = texelFetch(i, ivec2(at, 0), 1).x;",
        4,
        image((8, 4), levels=0),
        ("coordinate", 4, 4),
    ),
    "level": Case(
        "layout(binding = 0) uniform utexture2D i;",
        "r = texelFetch(i, ivec2(0, 0), int(at)).x;",
        4,
        image((8, 4), levels=0),
        ("level", 4, 4),
    ),
    "offset": Case(
        "layout(binding = 0) uniform utexture2D i;",
        "r = texelFetchOffset(i, ivec2(at, 0), 0, ivec2(3, 1)).x;",
        5,
        image((8, 4)),
        ("coordinate", 8, 8),
    ),
    "texel buffer": Case(
        "layout(binding = 0) uniform utextureBuffer i;",
        "r = texelFetch(i, int(at)).x;",
        6,
        texels(6),
        ("coordinate", 6, 6),
    ),
    "storage texel buffer": Case(
        "layout(binding = 0, r32ui) uniform uimageBuffer i;",
        "r = imageLoad(i, int(at)).x;",
        6,
        texels(6),
        ("coordinate", 6, 6),
    ),
    "face of a cube": Case(
        f"{STORAGE} uimageCube i;",
        "r = imageLoad(i, ivec3(0, 0, at)).x;",
        6,
        image((4, 4), dim="cube", layers=6),
        ("coordinate", 2 << 32 | 6, 6),
    ),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", CASES)
def test_a_texel_outside_is_reported_and_skipped(device: Device, name: str) -> None:
    case = CASES[name]
    code = glsl(
        f"layout(local_size_x = 1) in;\n{case.declared}\n"
        "layout(binding = 1) buffer B { uint at; uint got; };\n"
        f"void main() {{ uint r = 9; {case.body} got = r; }}"
    )
    found = instrument(code, guard=False, sanitize=SanitizeOptions())
    assert found is not None
    spirv_tools.validate(found.code, target_env="vulkan1.2")
    with ExitStack() as stack:
        bound = case.make(device, stack)
        buffer = stack.enter_context(device.create_buffer(8, memory_type=HOST))
        report = stack.enter_context(device.create_buffer(found.report_bytes, memory_type=HOST))
        executable = stack.enter_context(device.create_executable(found.code))
        for at, is_right in ((1, True), (case.wrong, False)):
            buffer.write(np.array([at, 0], np.uint32).tobytes())
            report.write(bytes(found.report_bytes))
            run(device, executable.pipeline(), [bound, buffer, report])
            said = Report.read(report.read(), found.sites)
            got = int(np.frombuffer(buffer.read(), np.uint32)[1])
            if is_right:
                assert (said, got) == (None, 7)
            else:
                assert said is not None
                assert (said.site.kind, said.site.name) == (ReportKind.OUT_OF_BOUNDS, "i")
                assert (said.site.rule, said.index, said.limit) == case.reported
                assert got == (7 if name.startswith("write") else 0)


def test_a_write_outside_of_an_image_has_no_effect_anyway(device: Device) -> None:
    code = glsl(
        f"layout(local_size_x = 4) in;\n{STORAGE} uimage1D i;\n"
        "void main() { imageStore(i, int(gl_GlobalInvocationID.x), uvec4(5)); }"
    )
    assert instrument(code, guard=False, sanitize=SanitizeOptions()) is None


def test_an_index_into_an_array_of_images(device: Device) -> None:
    code = glsl(
        "layout(local_size_x = 1) in;\nlayout(binding = 0, r32ui) uniform uimage2D i[3];\n"
        "layout(binding = 1) buffer B { uint at; uint got; };\n"
        "void main() { imageStore(i[at], ivec2(0), uvec4(5)); got = imageLoad(i[at], ivec2(0)).x; }"
    )
    found = instrument(code, guard=False, sanitize=SanitizeOptions())
    assert found is not None
    with ExitStack() as stack:
        views = [
            stack.enter_context(picture(device, np.full((2, 2), n, np.uint32), "r32uint")).view() for n in range(3)
        ]
        buffer = stack.enter_context(device.create_buffer(8, memory_type=HOST))
        report = stack.enter_context(device.create_buffer(found.report_bytes, memory_type=HOST))
        executable = stack.enter_context(device.create_executable(found.code))
        for at in (2, 3):
            buffer.write(np.array([at, 9], np.uint32).tobytes())
            report.write(bytes(found.report_bytes))
            run(device, executable.pipeline(), [views, buffer, report])
            said = Report.read(report.read(), found.sites)
            got = int(np.frombuffer(buffer.read(), np.uint32)[1])
            if at == 2:
                assert (said, got) == (None, 5)
            else:
                assert said is not None
                assert (said.site.name, said.site.rule, said.index, said.limit) == ("i[]", "descriptor", 3, 3)
                assert got == 0
