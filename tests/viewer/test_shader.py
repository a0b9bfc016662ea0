"""Shaders as pictures: what they are given, what is kept, and what is shown. Pixels are compared with formulas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from support.devices.features import require_cut_loops

import pumice
import pumice.viewer.shader as shader_module
from pumice.hal_vulkan import Buffer, CommandBuffer
from pumice.hal_vulkan.instance.driver import Driver
from pumice.runtime.device import Device
from pumice.spirv.sources.find import find_compiler
from pumice.spirv.sources.glsl import compile_glsl
from pumice.spirv.sources.language import Language
from pumice.status import DataLossError, InvalidArgumentError, NotFoundError, UnavailableError
from pumice.viewer import Renderer, ShaderOptions, ShaderPicture, Uniforms, pixels_of, render

pytestmark = [pytest.mark.vulkan, pytest.mark.sample(16)]

WIDTH, HEIGHT = 20, 12
ROWS, COLUMNS = np.mgrid[0:HEIGHT, 0:WIDTH]


@pytest.fixture(scope="module")
def viewed(driver: Driver) -> Iterator[Device]:
    with pumice.open_device("vulkan") as device:
        device.vulkan.read_clock()  # keeps a kernel for it on devices without calibrated timestamps
        yield device


class Shaders:
    """Writes shaders to files and renders them."""

    def __init__(self, device: Device, folder: Path) -> None:
        self.device, self.folder = device, folder

    def picture(self, text: str, name: str = "a.comp", **options: object) -> ShaderPicture:
        path = self.folder / name
        path.write_text(text)
        return ShaderPicture(self.device, path, ShaderOptions(**options))  # type: ignore[arg-type]

    def frames(self, text: str, count: int = 1, **options: object) -> list[np.ndarray]:
        with self.picture(text, **options) as picture:
            return list(render(picture, (WIDTH, HEIGHT), count, rate=10))


@pytest.fixture
def shaders(viewed: Device, tmp_path: Path) -> Shaders:
    return Shaders(viewed, tmp_path)


def codes(*channels: np.ndarray | float) -> np.ndarray:
    """A picture of values of red, green and blue."""
    planes = [np.broadcast_to(np.asarray(one, np.float64), (HEIGHT, WIDTH)) for one in (*channels, 1.0)]
    return np.rint(255 * np.clip(np.stack(planes, -1), 0, 1)).astype(np.uint8)


def test_main_image_counts_rows_upwards_from_pixel_centres(shaders: Shaders) -> None:
    text = """void mainImage(out vec4 c, in vec2 p) {
        c = vec4(p.x - 0.5, gl_FragCoord.y - 0.5, iResolution.x, 0.2) / 255.0;
    }"""
    (frame,) = shaders.frames(text)
    np.testing.assert_array_equal(frame, codes(COLUMNS / 255, (HEIGHT - 1 - ROWS) / 255, WIDTH / 255))


def test_discarded_pixels_are_black(shaders: Shaders) -> None:
    text = """float left(float x) { if (x < 8.0) discard; return 1.0; }  // the word discard in a comment
    void mainImage(out vec4 c, in vec2 p) {
        c = vec4(left(p.x), 1.0, 0.0, 1.0);
        if (p.y > 9.0) { discard; } else if (p.y < 3.0) discard;
    }"""
    (frame,) = shaders.frames(text)
    rows = HEIGHT - 0.5 - ROWS
    kept = (COLUMNS >= 8) & (rows >= 3) & (rows <= 9)
    np.testing.assert_array_equal(frame, codes(kept, kept, 0.0))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "text",
    [
        "vec4 mainCompute(ivec2 p) { return vec4(vec2(p) / 255.0, 0, 1); }",
        "void mainCompute(ivec2 p) { imageStore(iPicture, p, vec4(vec2(p) / 255.0, 0, 1)); }",
        """#version 450
layout(local_size_x = 4, local_size_y = 8) in;
layout(binding = 3) writeonly uniform image2D target;
void main() { ivec2 p = ivec2(gl_GlobalInvocationID.xy); imageStore(target, p, vec4(vec2(p) / 255.0, 0, 1)); }""",
        """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Colors { vec4 colors[]; };
void main() {
    uint i = gl_GlobalInvocationID.x, w = uint(iResolution.x);
    if (i < colors.length()) colors[i] = vec4(float(i % w) / 255.0, float(i / w) / 255.0, 0, 1);
}""",
        """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) buffer Colors { uint colors[]; };
void main() {
    uvec2 p = gl_GlobalInvocationID.xy, size = uvec2(iResolution.xy);
    if (all(lessThan(p, size))) colors[p.y * size.x + p.x] = 0xff000000u | p.y << 8 | p.x;
}""",
    ],
    ids=["value", "store", "image", "vec4 buffer", "uint buffer"],
)
def test_other_shaders_count_rows_downwards(shaders: Shaders, text: str) -> None:
    (frame,) = shaders.frames(text)
    np.testing.assert_array_equal(frame, codes(COLUMNS / 255, ROWS / 255, 0))


def test_frames_are_told_their_time(shaders: Shaders) -> None:
    text = (
        "vec4 mainCompute(ivec2 p) { return vec4(iTime, iTimeDelta, float(iFrame + int(iDate.x) - 2000) / 255.0, 1); }"
    )
    frames = shaders.frames(text, 4)
    for number, frame in enumerate(frames):
        delta = 0.1 if number else 0
        np.testing.assert_allclose(frame.astype(int), codes(number / 10, delta, number / 255), atol=1)


def test_all_uniforms_are_where_the_shader_reads_them(shaders: Shaders) -> None:
    names = ["iMouse.x", "iMouse.w", "iDate.w", "iFrameRate", "iSampleRate / 441.0", "iChannelTime[3]"]
    names += ["iChannelResolution[1].x", "iChannelResolution[3].y", "iResolution.z"]
    values = [3, 9, 8, 30, 100, 7, 1, 1, 1]
    tests = " ".join(f"ok = ok && abs({name} - {value}.0) < 0.01;" for name, value in zip(names, values, strict=True))
    text = f"vec4 mainCompute(ivec2 p) {{ bool ok = true; {tests} return vec4(ok); }}"
    uniforms = Uniforms(time=7, rate=30, mouse=(3, 4, 5, 9), date=(1, 2, 3, 8))
    with shaders.picture(text) as picture, Renderer(shaders.device) as renderer:
        picture.resize((WIDTH, HEIGHT))
        renderer.draw(picture, uniforms)
        assert (pixels_of(picture) == 255).all()


def test_derivatives_are_those_of_a_pixel(shaders: Shaders) -> None:
    text = """void mainImage(out vec4 c, in vec2 p) {
        float x = 3.0 * p.x - 2.0 * p.y;
        c = vec4(dFdx(x) / 10.0, -dFdy(x) / 10.0, fwidth(x) / 10.0, 1);
    }"""
    (frame,) = shaders.frames(text)
    np.testing.assert_allclose(frame.astype(int), codes(0.3, 0.2, 0.5), atol=1)


@pytest.mark.parametrize(
    "text",
    [
        "void mainImage(out vec4 c, in vec2 p) { c = value(p.x + 70.0 * p.y); }",
        "vec4 mainCompute(ivec2 p) { return value(float(p.x + 70 * p.y)); }",
        "vec4 mainCompute(ivec2 p) { float i = float(p.x + 70 * p.y); return value(i) + 0.001 * fwidth(i); }",
    ],
)
def test_packed_texels_are_those_that_the_driver_stores(
    shaders: Shaders, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On both sides of each half between two codes, below 0 and above 1, and infinite; the size is no tile's."""
    text = (
        """vec4 value(float i) {
        float x = i / 510.0 - 0.1;
        return vec4(x, 1.0 - x, i < 70.0 && x != 0.0 ? x / 0.0 : x + 0.0005, 0.5 * x);
    }
    """
        + text
    )
    with shaders.picture(text) as picture:
        (packed,) = render(picture, (70, 13), 1)
        assert picture.image.format.name == "bgra8unorm"
    monkeypatch.setattr(shader_module, "WIDEST_GROUP", 1 << 30)
    with shaders.picture(text) as picture:
        (stored,) = render(picture, (70, 13), 1)
        assert picture.image.format.name == "rgba8unorm"
    assert len(np.unique(packed[..., 0])) == 256
    np.testing.assert_array_equal(packed, stored)


COUNTER = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(r32f, binding = 0) uniform image2D counts;
layout(binding = 1) buffer Total { uint total; uint rows[]; };
layout(rgba8, binding = 2) writeonly uniform image2D target;
void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(p, imageSize(target)))) return;
    float count = imageLoad(counts, p).r + STEP;
    imageStore(counts, p, vec4(count));
    if (p == ivec2(0)) total++;
    if (p.x == 0) rows[p.y] += p.y;
    imageStore(target, p, vec4(count, float(rows[p.y]), float(total), 255.0) / 255.0);
}"""


def counted(step: float, frames: int) -> np.ndarray:
    return codes(step * frames / 255)[..., 0]


def test_state_is_zero_at_first_and_kept(shaders: Shaders) -> None:
    frames = shaders.frames(COUNTER, 3, defines={"STEP": "2.0"})
    for number, frame in enumerate(frames):
        np.testing.assert_array_equal(frame[..., 0], counted(2, number + 1))


def test_a_new_version_goes_on_with_the_state_and_a_restart_does_not(shaders: Shaders) -> None:
    with (
        shaders.picture(COUNTER, defines={"STEP": "2.0"}) as before,
        shaders.picture(COUNTER, defines={"STEP": "5.0"}) as after,
        Renderer(shaders.device) as renderer,
    ):
        before.resize((WIDTH, HEIGHT))
        renderer.draw(before, Uniforms())
        after.take_over(before)
        after.resize((WIDTH, HEIGHT))
        before.close()
        renderer.draw(after, Uniforms())
        np.testing.assert_array_equal(pixels_of(after)[..., 0], counted(7, 1))
        after.restart()
        renderer.draw(after, Uniforms())
        np.testing.assert_array_equal(pixels_of(after)[..., 0], counted(5, 1))
        after.resize((WIDTH, HEIGHT))  # the same size: nothing begins anew
        renderer.draw(after, Uniforms())
        np.testing.assert_array_equal(pixels_of(after)[..., 0], counted(10, 1))
        after.resize((WIDTH + 1, HEIGHT))
        renderer.draw(after, Uniforms())
        assert pixels_of(after).shape == (HEIGHT, WIDTH + 1, 4) and (pixels_of(after)[..., 0] == 5).all()


def test_the_frame_before_is_a_channel(shaders: Shaders) -> None:
    text = """void mainImage(out vec4 c, in vec2 p) {
        vec4 before = texelFetch(iChannel2, ivec2(p), 0);
        c = vec4(before.r + 1.0 / 255.0, iFrame == 0 ? floor(p.y) / 255.0 : before.g, 0, 1);
    }"""
    frames = shaders.frames(text, 4, channels={2: "previous"})
    np.testing.assert_array_equal(frames[3], codes(4 / 255, (HEIGHT - 1 - ROWS) / 255, 0))


@pytest.mark.parametrize("upward", [True, False])
def test_files_are_channels(shaders: Shaders, tmp_path: Path, upward: bool) -> None:
    image = pytest.importorskip("PIL.Image")
    red = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    red[2:5, 3:7] = 200
    image.fromarray(red).save(tmp_path / "red.png")
    fetch = "texelFetch(iChannel1, ivec2(p), 0)"
    text = f"vec4 mainCompute(ivec2 p) {{ return {fetch}; }}"
    if upward:
        text = f"void mainImage(out vec4 c, in vec2 p) {{ c = {fetch} * iChannelResolution[1].x / {WIDTH}.0; }}"
    (frame,) = shaders.frames(text, channels={1: str(tmp_path / "red.png")})
    np.testing.assert_array_equal(frame[..., :3], red)


def test_textures_have_no_bias_but_levels(shaders: Shaders, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.tile(np.array([[[200], [0]]], np.uint8).repeat(3, 2), (8, 4, 1))).save(tmp_path / "stripes.png")
    text = """void mainImage(out vec4 c, in vec2 p) {
        vec2 place = vec2(0.5 / 8.0, 0.5);
        c = vec4(texture(iChannel0, place, -9.0).r, texture(iChannel0, place, 9.0).r, texture2D(iChannel0, place).r, 1);
    }"""
    (frame,) = shaders.frames(text, channels={0: str(tmp_path / "stripes.png")})
    np.testing.assert_allclose(frame[0, 0].astype(int), [200, 100, 200, 255], atol=2)


def test_missing_files_are_named(shaders: Shaders) -> None:
    with pytest.raises(NotFoundError, match="no such"):
        shaders.frames("vec4 mainCompute(ivec2 p) { return texelFetch(iChannel0, p, 0); }", channels={0: "none.png"})


def test_of_several_images_one_is_shown(shaders: Shaders) -> None:
    text = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(rgba8, binding = 0) uniform image2D both;
layout(rgba8, binding = 1) writeonly uniform image2D written;
void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    imageStore(both, p, imageLoad(both, p) + vec4(1, 0, 0, 1));
    imageStore(written, p, vec4(0, 1, 0, 1));
}"""
    assert shaders.frames(text)[0][0, 0].tolist() == [0, 255, 0, 255]
    assert shaders.frames(text, shown="both")[0][0, 0].tolist() == [255, 0, 0, 255]
    with pytest.raises(InvalidArgumentError, match="by the name of other"):
        shaders.frames(text, shown="other")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layout(local_size_x = 8) in;\nvoid main() {}", "expected a shader that writes a picture"),
        (
            "layout(local_size_x = 8) in;\nlayout(binding = 0, rgba8) writeonly uniform image2D t[2];\n"
            "layout(binding = 2, rgba8) writeonly uniform image2D u;\n"
            "void main() { imageStore(t[1], ivec2(0), vec4(1)); imageStore(u, ivec2(0), vec4(1)); }",
            "a shader's own bindings are",
        ),
        ("vec4 mainCompute(ivec2 p) {\n  return lost;\n}", "lost"),
    ],
)
def test_what_gives_no_picture_is_said(shaders: Shaders, text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        shaders.frames(text)


def test_included_files_are_found_beside_the_shader(shaders: Shaders, tmp_path: Path) -> None:
    (tmp_path / "half.glsl").write_text("float half_of(float x) { return 0.5 * x; }\n")
    text = '#include "half.glsl"\nvec4 mainCompute(ivec2 p) { return vec4(half_of(1.0)); }'
    assert shaders.frames(text)[0][0, 0, 0] in (127, 128)


PUSHED = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(rgba8, binding = 0) writeonly uniform image2D target;
layout(push_constant) uniform Push { vec2 iResolution; float iTime; int iFrame; vec3 tint; };
void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    imageStore(target, p, vec4(iTime, float(iFrame) / iResolution.x, tint.z, 1));
}"""


def test_push_constants_by_shadertoys_names_are_given(shaders: Shaders) -> None:
    frames = shaders.frames(PUSHED, 3, push={"tint": (0, 0, 0.6)})
    np.testing.assert_allclose(frames[2].astype(int), codes(0.2, 2 / WIDTH, 0.6), atol=1)
    assert shaders.frames(PUSHED, push={"tint": (0, 0, 1), "iTime": 1.0})[0][0, 0].tolist() == [255, 0, 255, 255]
    with pytest.raises(InvalidArgumentError, match=r"needs the push constant tint; .*--push NAME=VALUE"):
        shaders.frames(PUSHED)
    with pytest.raises(InvalidArgumentError, match="has no push constant other"):
        shaders.frames(PUSHED, push={"tint": (0, 0, 1), "other": 1})


def test_other_languages_are_shown_as_they_are(shaders: Shaders, tmp_path: Path) -> None:
    try:
        find_compiler(Language.SLANG)
    except UnavailableError as error:
        pytest.skip(error.message)
    text = """[[vk::image_format("rgba8")]] RWTexture2D<float4> target;
[shader("compute")] [numthreads(8, 8, 1)]
void draw(uint3 at : SV_DispatchThreadID, uniform float iTime) {
    target[at.xy] = float4(float2(at.xy) / 255.0, iTime, 1);
}
"""
    with shaders.picture(text, name="a.slang") as picture:
        frames = list(render(picture, (WIDTH, HEIGHT), 2, rate=10))
    np.testing.assert_allclose(frames[1].astype(int), codes(COLUMNS / 255, ROWS / 255, 0.1), atol=1)


def test_spirv_is_shown(shaders: Shaders, tmp_path: Path) -> None:
    (tmp_path / "a.spv").write_bytes(compile_glsl(PUSHED))
    with ShaderPicture(shaders.device, tmp_path / "a.spv", ShaderOptions(push={"tint": (0, 0, 1)})) as picture:
        assert next(render(picture, (8, 8), 1))[0, 0].tolist() == [0, 0, 255, 255]


def test_loops_that_the_driver_cuts_are_said(shaders: Shaders) -> None:
    require_cut_loops(shaders.device.vulkan.driver)
    text = """vec4 mainCompute(ivec2 p) {
        float x = 0.0;
        for (int i = 0; i < 1000000 + iFrame; i++) x = fract(x + 0.1);
        return vec4(x);
    }"""
    with pytest.raises(DataLossError, match="the driver ended"):
        shaders.frames(text)
    with shaders.picture(text) as picture, Renderer(shaders.device) as renderer:
        picture.resize((8, 8))
        for _ in range(3):
            renderer.draw(picture, Uniforms())
        assert isinstance(renderer.failure, DataLossError)
        with shaders.picture("vec4 mainCompute(ivec2 p) { return vec4(1); }") as good:
            good.resize((8, 8))
            for _ in range(4):  # those under way end first
                renderer.draw(good, Uniforms())
            assert renderer.failure is None


@pytest.mark.parametrize("is_pushed", [False, True])
def test_commands_are_recorded_once_where_they_are_the_same(
    shaders: Shaders, is_pushed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[float] = []
    real = ShaderPicture.record

    def record(self: ShaderPicture, commands: CommandBuffer, uniforms: Uniforms, told: Buffer) -> None:
        recorded.append(uniforms.time)
        real(self, commands, uniforms, told)

    monkeypatch.setattr(ShaderPicture, "record", record)
    text = "vec4 mainCompute(ivec2 p) { return vec4(iTime); }"
    if is_pushed:
        text = PUSHED.replace("vec3 tint; ", "").replace("tint.z", "0")
    with shaders.picture(text) as picture, Renderer(shaders.device) as renderer:
        for size in ((8, 8), (9, 7)):
            picture.resize(size)
            for frame in range(5):
                renderer.draw(picture, Uniforms(time=frame / 5), timed=frame < 3)
                assert pixels_of(picture)[0, 0, 0] == 51 * frame
    # Two frames are under way at a time, and timed commands are others.
    once = [0, 0.2, 0.6, 0.8]
    assert recorded == 2 * ([0, 0.2, 0.4, 0.6, 0.8] if is_pushed else once)


def test_frames_are_timed(shaders: Shaders) -> None:
    with shaders.picture("vec4 mainCompute(ivec2 p) { return vec4(1); }") as picture, Renderer(shaders.device) as one:
        picture.resize((WIDTH, HEIGHT))
        timings = [one.draw(picture, Uniforms()) for _ in range(260)]  # clocks are related anew on the way
        untimed = [one.draw(picture, Uniforms(), timed=False) for _ in range(4)]
    assert timings[:2] == [None, None]
    assert all(t is not None and 0 < t.gpu_ns <= t.latency_ns for t in (*timings[2:], *untimed[:2]))
    assert untimed[2:] == [None, None]


def test_frames_are_the_same_on_each_run(shaders: Shaders) -> None:
    text = "vec4 mainCompute(ivec2 p) { return fract(vec4(iTime, iDate.w, float(p.x * p.y) * 0.1, 1)); }"
    runs: list[Sequence[np.ndarray]] = [shaders.frames(text, 3) for _ in range(2)]
    np.testing.assert_array_equal(runs[0], runs[1])
