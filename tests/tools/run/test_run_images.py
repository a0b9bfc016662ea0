"""``pumice run`` with images: pictures in and out, samplers, cubes, expectations, and wrong arguments."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from pumice.tools.cli import main

pytestmark = pytest.mark.vulkan

INVERT = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) uniform sampler2D source;
layout(binding = 1, rgba8) writeonly uniform image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, imageSize(target)))) return;
    vec4 read = textureLod(source, (at + 0.5) / vec2(textureSize(source, 0)), 0);
    imageStore(target, at, vec4(1 - read.rgb, 1));
}"""

FACES = """#version 450
layout(local_size_x = 1) in;
layout(binding = 0) uniform samplerCube faces;
layout(binding = 1, r32f) uniform image1D values;
layout(binding = 2) uniform texture2D plain;
layout(binding = 3) uniform sampler how;
void main() {
    vec3 axis = vec3(0);
    axis[gl_GlobalInvocationID.x / 2] = gl_GlobalInvocationID.x % 2 == 0 ? 1 : -1;
    float read = textureLod(faces, axis, 0).r + 10 * textureLod(sampler2D(plain, how), vec2(1.5, 0.5), 1).r;
    imageStore(values, int(gl_GlobalInvocationID.x), vec4(read) + imageLoad(values, int(gl_GlobalInvocationID.x)));
}"""

PICTURE = np.random.default_rng(3).integers(0, 256, (10, 14, 3), np.uint8)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with two kernels and a picture."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "invert.comp").write_text(INVERT, encoding="utf-8")
    (tmp_path / "faces.comp").write_text(FACES, encoding="utf-8")
    Image.fromarray(PICTURE).save(tmp_path / "in.png")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["run", *arguments], prog_name="pumice")


def invert(*arguments: str) -> Result:
    return run("invert.comp", *arguments)


def opaque(picture: np.ndarray) -> np.ndarray:
    return np.dstack([255 - picture, np.full(picture.shape[:2], 255, np.uint8)])


@pytest.mark.parametrize("source", ["10x14xrgba8unorm=@in.png", "@in.png", "10x14xrgba32float=@in.png"])
def test_a_picture_in_and_a_picture_out(folder: Path, source: str) -> None:
    result = invert("-b", f"source={source}", "-b", "target=10x14xrgba8unorm", "-o", "target=@out.png")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    assert np.array_equal(np.asarray(Image.open(folder / "out.png")), opaque(PICTURE))


def test_a_jpeg_in(folder: Path) -> None:
    Image.fromarray(PICTURE).save(folder / "in.jpg")
    assert invert("-b", "0=@in.jpg", "-b", "1=10x14xrgba8unorm", "-o", "1=@out.png").exit_code == 0
    decoded = np.asarray(Image.open(folder / "in.jpg"))
    assert np.array_equal(np.asarray(Image.open(folder / "out.png")), opaque(decoded))


def test_arrays_and_bytes_of_texels(folder: Path) -> None:
    np.save(folder / "in.npy", PICTURE)
    (folder / "in.bin").write_bytes(np.dstack([PICTURE, PICTURE[..., :1]]).tobytes())
    for source in ("@in.npy", "@in.bin"):
        outputs = [f"1=@out{suffix}" for suffix in (".npy", ".bin")]
        arguments = [part for output in outputs for part in ("-o", output)]
        result = invert("-b", f"0=10x14xrgba8unorm={source}", "-b", "1=10x14xrgba8unorm", *arguments)
        assert result.exit_code == 0, result.stderr
        assert np.array_equal(np.load(folder / "out.npy"), opaque(PICTURE))
        assert (folder / "out.bin").read_bytes() == opaque(PICTURE).tobytes()


def test_values_are_printed_and_compared(folder: Path) -> None:
    given = ("-b", "0=1x2xr8unorm=0,51", "-b", "1=1x2xrgba8unorm")
    result = invert(*given, "--sampler", "0=filter=nearest")
    assert result.stdout == "binding[1]: 1x2xrgba8unorm=[[255 255 255 255][204 255 255 255]]\n"
    assert invert(*given, "--expect", "1=1x2xrgba8unorm=255,255,255,255,204,255,255,255").exit_code == 0
    result = invert(*given, "--expect", "1=1x2xrgba8unorm=255")
    assert result.exit_code == 1
    assert "binding[1]: 1 of 8 element(s) differ" in result.stderr and "[0,1,0]: expected 255, got 204" in result.stderr
    result = invert(*given, "--expect", "1=1x2xrgba8uint=255")
    assert result.exit_code == 2 and "the kernel declares rgba8unorm, got rgba8uint" in result.stderr
    invert("-b", "0=@in.png", "-b", "1=10x14xrgba8unorm", "-o", "1=@out.png")
    assert invert("-b", "0=@in.png", "-b", "1=10x14xrgba8unorm", "--expect", "1=@out.png").exit_code == 0
    assert invert("-b", "0=@in.png", "-b", "1=10x14xrgba8unorm", "--expect", "1=@in.png").exit_code == 1


def test_cubes_levels_and_samplers() -> None:
    faces = "6x1x1xr32float=1,2,3,4,5,6"
    plain = "2x2xr32float:mips=1,2,3,6"
    arguments = ("-b", f"faces={faces}", "-b", "values=6xr32float=100", "-b", f"plain={plain}", "--groups", "6")
    repeated = run("faces.comp", *arguments, "--sampler", "how=address=repeat,filter=linear")
    assert repeated.stdout == "binding[1]: 6xr32float=131 132 133 134 135 136\n", repeated.stderr
    border = run("faces.comp", *arguments, "--sampler", "how=address=clamp_to_border,border=opaque_black")
    assert border.stdout == "binding[1]: 6xr32float=101 102 103 104 105 106\n"
    default = run("faces.comp", *arguments, "--time")
    assert default.stdout == repeated.stdout and "dispatch:" in default.stderr


def test_results_that_are_no_images_as_pictures(folder: Path) -> None:
    (folder / "grey.comp").write_text(
        """#version 450
layout(local_size_x = 8) in;
layout(binding = 0, std430) writeonly buffer Out { float grey[]; };
void main() { grey[gl_GlobalInvocationID.x] = gl_GlobalInvocationID.x / 64.0; }""",
        encoding="utf-8",
    )
    assert run("grey.comp", "-b", "0=8x8xf32", "-o", "0=@grey.png").exit_code == 0
    grey = np.asarray(Image.open(folder / "grey.png"))
    assert np.array_equal(grey, np.rint(np.arange(64).reshape(8, 8) / 64 * 255))
    result = run("grey.comp", "-b", "0=64xf32", "-o", "0=@flat.png")
    assert result.exit_code == 1 and "a picture has shape (height, width)" in result.stderr
    assert not (folder / "flat.png").exists()


def test_16_bits_of_grey(folder: Path) -> None:
    (folder / "copy.comp").write_text(
        INVERT.replace("rgba8", "r16").replace("vec4(1 - read.rgb, 1)", "read"), encoding="utf-8"
    )
    grey = np.arange(12, dtype=np.uint16).reshape(3, 4) * 5000
    Image.fromarray(grey).save(folder / "deep.png")
    result = run("copy.comp", "-b", "0=3x4xr16unorm=@deep.png", "-b", "1=3x4xr16unorm", "-o", "1=@out.png")
    assert result.exit_code == 0, result.stderr
    assert np.array_equal(np.asarray(Image.open(folder / "out.png")), grey)


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("-b", "0=@in.png"), "Write --binding 1=256x256xrgba8unorm for zeros or an output"),
    (("-b", "0=@none.png", "-b", "1=4x4xrgba8unorm"), "no such file: none.png"),
    (("-b", "0=@bad.png", "-b", "1=4x4xrgba8unorm"), "expected a PNG or JPEG picture"),
    (("-b", "0=3x3xrgba8unorm=@in.png", "-b", "1=4x4xrgba8unorm"), "10x14 texels (height x width), expected 3x3"),
    (("-b", "0=10x14xr8unorm=@in.png", "-b", "1=4x4xrgba8unorm"), "the picture has 3 channel(s), r8unorm 1"),
    (("-b", "0=@in.png", "-b", "1=4x4xrgba8snorm"), "the kernel declares rgba8unorm, got rgba8snorm"),
    (("-b", "0=@in.png", "-b", "1=4x4x4xrgba8unorm"), "a 2d image has shape"),
    (("-b", "0=@in.png", "-b", "1=4x4xrgba9unorm"), "expected an element type, got 'rgba9unorm'"),
    (("-b", "0=2x2xr32uint=1", "-b", "1=4x4xrgba8unorm"), "texels of r32uint are read as uints"),
    (("-b", "0=2x2xr8unorm=1,2,3", "-b", "1=4x4xrgba8unorm"), "expected 4 elements"),
    (("-b", "0=2x2xr8unorm=256", "-b", "1=4x4xrgba8unorm"), "element 0"),
    (("-b", "0=2x2xr8unorm=@in.npy", "-b", "1=4x4xrgba8unorm"), "expected shape (2, 2) for '2x2xr8unorm'"),
    (("-b", "0=2x2xr8unorm:mips0=1", "-b", "1=4x4xrgba8unorm"), "at least one level"),
    (("-b", "0=2x2xr8unorm:mips9=1", "-b", "1=4x4xrgba8unorm"), "up to 2 mip levels, got 9"),
    (("-b", "0=0x2xr8unorm", "-b", "1=4x4xrgba8unorm"), "no length of 0"),
    (("-b", "0=@in.png", "-b", "1=4x4xrgba8unorm", "--sampler", "0=cubic"), "--sampler 0: expected NAME=VALUE"),
    (("-b", "0=@in.png", "-b", "1=4x4xrgba8unorm", "--sampler", "0=filter=cubic"), "filter is one of nearest, linear"),
    (("-b", "0=@in.png", "-b", "1=4x4xrgba8unorm", "--sampler", "0=max_lod=high"), "max_lod is a number, got 'high'"),
    (("-b", "0=@in.png", "-b", "1=4x4xrgba8unorm", "--sampler", "1=filter=linear"), "is a storage_image"),
    (("-b", "0=@in.png", "-b", "1=4x4xrgba8unorm", "--sampler", "filter"), "expected BINDING=VALUE"),
    (("-b", "0=@in.png", "-b", "1=4x4xrgba8unorm", "-o", "1=@x/y.png"), "there is no folder x"),
    (("-b", "0=@in.png", "-b", "1=4x4xrgba8unorm", "-o", "1=@y.jpg"), "expected a name in .png, got y.jpg"),
    (("-b", "0=@empty.png", "-b", "1=4x4xrgba8unorm"), "PNG or JPEG picture; this is an empty file"),
    (("-b", "0=@text.png", "-b", "1=4x4xrgba8unorm"), "PNG or JPEG picture; this is neither, of 5 bytes"),
    (("-b", "0=@in.png", "-b", "1=4x4xrgba8unorm", "--expect", "0=@in.png"), "the kernel only reads"),
]


@pytest.mark.sample(10)
@pytest.mark.parametrize(("arguments", "expected"), WRONG, ids=[expected for _, expected in WRONG])
def test_wrong_arguments(folder: Path, arguments: tuple[str, ...], expected: str) -> None:
    (folder / "bad.png").write_bytes((folder / "in.png").read_bytes()[:60])
    (folder / "empty.png").write_bytes(b"")
    (folder / "text.png").write_bytes(b"a cat")
    np.save(folder / "in.npy", PICTURE)
    result = invert(*arguments)
    assert result.exit_code in (1, 2)
    assert expected in result.stderr and "internal error" not in result.stderr, result.stderr
    assert result.stdout == ""


def test_colour_of_16_bits_is_refused(folder: Path) -> None:
    # Pillow writes no such file: an IHDR of 16 bits and colour type 2, over the picture's own data.
    data = bytearray((folder / "in.png").read_bytes())
    data[24] = 16
    (folder / "deep.png").write_bytes(data)
    result = invert("-b", "0=@deep.png", "-b", "1=4x4xrgba8unorm")
    assert result.exit_code != 0 and "of which Pillow keeps 8" in result.stderr


def test_without_pillow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    result = invert("-b", "0=@in.png", "-b", "1=4x4xrgba8unorm")
    assert result.exit_code != 0 and "pip install 'pumice[images]'" in result.stderr


def test_info_shows_images() -> None:
    result = CliRunner().invoke(main, ["info", "faces.comp"], prog_name="pumice")
    rows = [line.split() for line in result.stdout.splitlines() if line.strip().startswith("0 ")]
    assert [row[1:3] + row[4:] for row in rows] == [
        ["0", "faces", "read", "cube", "f32", "-", "-"],
        ["1", "values", "read,", "write", "1d", "r32float", "-", "-"],
        ["2", "plain", "read", "2d", "f32", "-", "-"],
        ["3", "how", "read", "-", "-", "-"],
    ]
    result = CliRunner().invoke(main, ["info", "--json", "faces.comp"], prog_name="pumice")
    assert '"format": "r32f"' in result.stdout and '"dim": "cube"' in result.stdout
