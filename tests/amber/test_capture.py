"""Runs of kernels as scripts: they pass where they were made, and fail where a result differs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from support.devices.shader_tools import needs_compiler, needs_tools

from pumice.amber import Outcome, Script, parse, run
from pumice.spirv.sources.glsl import compile_glsl
from pumice.tools.cli import main

pytestmark = [pytest.mark.vulkan, needs_compiler, pytest.mark.usefixtures("driver")]


def pumice(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], prog_name="pumice")


def captured(folder: Path, source: str, *arguments: str, suffix: str = ".comp") -> Script:
    """The script of a run, which passes."""
    kernel, script = folder / f"kernel{suffix}", folder / "run.amber"
    text = f"#version 450\n{source}"
    if suffix == ".spv":
        kernel.write_bytes(compile_glsl(text))
    else:
        kernel.write_text(text)
    result = pumice("run", kernel, *arguments, "--to-amber", script)
    assert result.exit_code == 0, result.stderr
    report = run(script)
    assert report.outcome is Outcome.PASSED and report.expectations > 0, report.format()
    return parse(script)


MIXED = """layout(local_size_x = 2) in;
layout(constant_id = 1) const float scale = 1; layout(constant_id = 2) const bool twice = false;
layout(constant_id = 3) const double offset = 0;
layout(push_constant) uniform P { int n; float x; };
layout(set = 0, binding = 0) readonly buffer A { float a[]; } parts[2];
layout(set = 1, binding = 3) uniform U { vec4 u; };
layout(set = 0, binding = 2) buffer R { float r[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  r[i] = (parts[0].a[i] + parts[1].a[i]) * scale * (twice ? 2 : 1) + float(offset) + x + u.y + n;
}
"""
ARGUMENTS = ("-b", "0[0]=4xf32=1,2,3,4", "-b", "0[1]=4xf32=10", "-b", "2=4xf32", "-b", "1.3=4xf32=0,0.1,0,0")
CONSTANTS = ("--spec", "scale=0.5", "--spec", "twice=true", "--push", "n=3", "--push", "x=0.25")


@needs_tools
@pytest.mark.features("shaderFloat64")
@pytest.mark.parametrize("suffix", [".comp", ".spv"])
def test_everything_that_a_run_takes(tmp_path: Path, suffix: str) -> None:
    script = captured(tmp_path, MIXED, *ARGUMENTS, *CONSTANTS, suffix=suffix)
    shader = script.shaders["kernel"]
    assert shader.format == ("GLSL" if suffix == ".comp" else "SPIRV-ASM")
    pipeline = script.pipelines["pipeline"]
    assert {id: one.value for id, one in pipeline.specialization.items()} == {1: 0.5, 2: 1}
    assert pipeline.bindings[0, 0].resources == ("binding_0_0", "binding_0_0_1")
    assert np.frombuffer(script.buffers["push_constants"].data, np.float32)[1] == 0.25
    result = np.frombuffer(script.buffers["expected_binding_0_2"].data, np.float32)
    np.testing.assert_array_equal(result, np.float32([14.35, 15.35, 16.35, 17.35]))


@needs_tools
@pytest.mark.features("shaderFloat64")
def test_constants_that_scripts_cannot_give_are_of_the_module(tmp_path: Path) -> None:
    script = captured(tmp_path, MIXED, *ARGUMENTS, *CONSTANTS, "--spec", "offset=100")
    assert script.shaders["kernel"].format == "SPIRV-ASM" and not script.pipelines["pipeline"].specialization
    result = np.frombuffer(script.buffers["expected_binding_0_2"].data, np.float32)
    assert result[1] == np.float32(115.35)


def test_values_that_text_would_change_are_written_as_bits(tmp_path: Path) -> None:
    source = "layout(binding = 0) buffer B { uint b[]; }; void main() { b[gl_GlobalInvocationID.x] += 1; }"
    script = captured(tmp_path, source, "-b", "0=2xi32=-5,2143289345")
    assert str(script.buffers["binding_0_0"].type) == "uint32"
    nan = "layout(binding = 0) buffer B { float b[]; }; void main() { uint i = gl_GlobalInvocationID.x; "
    script = captured(tmp_path, nan + "b[i] = uintBitsToFloat(0x7fc00123u); }", "-b", "0=2xf32")
    assert script.buffers["expected_binding_0_0"].data == np.uint32([0x7FC00123] * 2).tobytes()


def test_expected_values_go_before_results(tmp_path: Path) -> None:
    source = "layout(binding = 0) buffer B { float b[]; }; void main() { b[gl_GlobalInvocationID.x] *= 2; }"
    kernel, script = tmp_path / "k.comp", tmp_path / "r.amber"
    kernel.write_text(f"#version 450\n{source}")
    wrong = pumice("run", kernel, "-b", "0=20xf32=1", "--expect", "0=20xf32=3", "--atol", "0.5", "--to-amber", script)
    assert wrong.exit_code == 1
    report = run(script)
    assert report.outcome is Outcome.FAILED and report.expectations == 2  # of sixteen values each
    assert "got 2.0, expected == 3.0 within 0.5" in report.failures[0].message


def test_sources_that_take_more_than_their_text(tmp_path: Path) -> None:
    source = "layout(binding = 0) buffer B { int b[]; }; void main() { b[0] = N; }"
    script = captured(tmp_path, source, "-b", "0=1xi32", "-D", "N=7")
    assert script.shaders["kernel"].format.startswith("SPIRV")


IMAGES = """layout(local_size_x = 4, local_size_y = 4) in;
layout(set = 0, binding = 0) uniform sampler2D both;
layout(set = 0, binding = 1, rgba8) writeonly uniform image2D result;
layout(set = 0, binding = 2) uniform texture2D alone;
layout(set = 0, binding = 3) uniform sampler s;
layout(set = 0, binding = 4, r32f) uniform imageBuffer texels;
void main() {
  ivec2 p = ivec2(gl_GlobalInvocationID.xy);
  vec2 c = (vec2(p) + 0.5) / 8.0;
  imageStore(result, p, textureLod(both, c, 0) * 0.5 + textureLod(sampler2D(alone, s), c + 0.25, 0) * 0.5);
  if (p.y == 0) imageStore(texels, p.x, imageLoad(texels, p.x) + p.x);
}
"""


def test_images_and_samplers(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    np.save(tmp_path / "a.npy", rng.integers(0, 256, (4, 4, 4), dtype=np.uint8))
    np.save(tmp_path / "b.npy", rng.random((4, 4, 4), dtype=np.float32))
    images = ("-b", f"0=4x4xrgba8unorm=@{tmp_path}/a.npy", "-b", f"2=4x4xrgba32float=@{tmp_path}/b.npy")
    script = captured(
        tmp_path,
        IMAGES,
        *(*images, "-b", "1=8x8xrgba8unorm", "-b", "4=8xr32float=1.5"),
        *("--sampler", "3=filter=linear,address=repeat"),
    )
    assert script.buffers["binding_0_1"].extent == script.buffers["expected_binding_0_1"].extent
    assert script.samplers["sampler_binding_0_3"].address_mode_u == "repeat"
    assert script.pipelines["pipeline"].bindings[0, 4].kind == "storage_texel_buffer"
    # Another sampler gives other texels: the expectation is about them.
    text = (tmp_path / "run.amber").read_text()
    (tmp_path / "run.amber").write_text(text.replace("ADDRESS_MODE_U repeat", "ADDRESS_MODE_U clamp_to_edge"))
    assert run(tmp_path / "run.amber").outcome is Outcome.FAILED


def test_what_scripts_cannot_say(tmp_path: Path) -> None:
    source = "layout(binding = 0, r32f) uniform image2DArray i; void main() { imageStore(i, ivec3(0), vec4(1)); }"
    kernel = tmp_path / "k.comp"
    kernel.write_text(f"#version 450\n{source}")
    result = pumice("run", kernel, "-b", "0=2x4x4xr32float", "--to-amber", tmp_path / "r.amber")
    assert result.exit_code == 1 and "without layers" in result.stderr and not (tmp_path / "r.amber").exists()
    kernel.write_text("#version 450\nvoid main() {}")
    result = pumice("run", kernel, "--groups", "1", "--to-amber", tmp_path / "r.amber")
    assert result.exit_code == 1 and "nothing to report" in result.stderr
