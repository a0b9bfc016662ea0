"""Scripts that are run: what passes, what fails and why, what is skipped."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.devices.shader_tools import needs_compiler, needs_tools

from pumice.amber import Outcome, ScriptReport, format_script, parse_text, run
from pumice.amber.running import Devices
from pumice.hal_vulkan.device import Device as HalDevice
from pumice.hal_vulkan.instance.driver import Driver
from pumice.runtime.device import Device
from pumice.runtime.opening import open_device
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.sources.find import find_compiler
from pumice.spirv.sources.glsl import compile_glsl
from pumice.spirv.sources.language import Language
from pumice.status import UnavailableError

pytestmark = [pytest.mark.vulkan, needs_compiler]
HEAD = """#!amber
SHADER compute add GLSL
#version 450
layout(local_size_x = 4) in;
layout(constant_id = 3) const int bias = 0;
layout(constant_id = 4) const bool twice = false;
layout(push_constant) uniform P { float scale; };
layout(set = 0, binding = 0) buffer A { float a[]; };
layout(set = 1, binding = 2) uniform U { vec4 u[2]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  a[i] = a[i] * scale + u[1].x + bias;
  if (twice) a[i] *= 2;
}
END
BUFFER a DATA_TYPE float SIZE 4 SERIES_FROM 1 INC_BY 1
BUFFER u DATA_TYPE float[] STD140 DATA 100 200 END
BUFFER p DATA_TYPE float DATA 10 END
PIPELINE compute main
  ATTACH add SPECIALIZE 3 AS int32 -50 SPECIALIZE 4 AS uint32 1 SPECIALIZE 9 AS float 1
  BIND BUFFER p AS push_constant
  BIND BUFFER a AS storage DESCRIPTOR_SET 0 BINDING 0
  BIND BUFFER u AS uniform DESCRIPTOR_SET 1 BINDING 2
END
"""
RESULTS = "320.0 340.0 360.0 380.0"  # 2 (10 a + 200 - 50)


@pytest.fixture
def devices(driver: Driver) -> Iterator[Devices]:
    with Devices(None) as devices:
        yield devices


def check(devices: Devices, text: str) -> ScriptReport:
    return devices.run(parse_text(text, "x.amber"))


def test_buffers_push_and_specialization_constants(devices: Devices) -> None:
    report = check(devices, f"{HEAD}RUN TIMED_EXECUTION main 1 1 1\nEXPECT a IDX 0 EQ {RESULTS}\n")
    assert (report.outcome, report.expectations, report.reason) == (Outcome.PASSED, 1, "")
    assert report.timings[0].pipeline == "main" and report.timings[0].nanoseconds > 0
    assert report.format().startswith("x.amber: passed, 1 expectation\n")


def test_repeated_runs_and_copies(devices: Devices) -> None:
    text = f"""{HEAD}
BUFFER kept DATA_TYPE float SIZE 4 FILL 0
RUN main 1 1 1
COPY a TO kept
REPEAT 2
  RUN main 1 1 1
  EXPECT a IDX 0 GT 380
END
EXPECT kept IDX 0 EQ {RESULTS}
EXPECT a IDX 0 NE 320
"""
    report = check(devices, text)
    assert report.outcome is Outcome.PASSED and report.expectations == 4


@pytest.mark.parametrize(
    ("expectation", "holds"),
    [
        ("EQ 320", True),
        ("EQ 321", False),
        ("NE 320", False),
        ("LT 320.5", True),
        ("LE 319", False),
        ("GE 320", True),
        ("GT 320", False),
        ("TOLERANCE 2 EQ 318 342", True),
        ("TOLERANCE 1 EQ 318", False),
        ("TOLERANCE 1% EQ 323", True),
        ("TOLERANCE 0.5% EQ 323", False),
        ("TOLERANCE 10 0 EQ 330 340", True),
        ("EQ nan", False),
    ],
)
def test_comparisons(devices: Devices, expectation: str, holds: bool) -> None:
    report = check(devices, f"{HEAD}RUN main 1 1 1\nEXPECT a IDX 0 {expectation}\n")
    assert report.outcome is (Outcome.PASSED if holds else Outcome.FAILED), report.format()
    if not holds:
        assert report.failures[0].where == "x.amber:26"
        assert report.failures[0].message.startswith("a: value 0: got 320.0, expected ")


@pytest.mark.parametrize(
    ("expectation", "message"),
    [
        ("EQ_BUFFER same", ""),
        ("EQ_BUFFER other", r"a: 1 of 16 bytes differ from other; the first is byte 14, in element 3: got 380\.0"),
        ("RMSE_BUFFER other TOLERANCE 10", ""),
        ("RMSE_BUFFER other TOLERANCE 9", "a: the root mean square error to other is 10, expected at most 9"),
    ],
)
def test_comparisons_of_buffers(devices: Devices, expectation: str, message: str) -> None:
    text = f"{HEAD}BUFFER same DATA_TYPE float DATA {RESULTS} END\nBUFFER other DATA_TYPE float DATA "
    text += f"320 340 360 400 END\nRUN main 1 1 1\nEXPECT a {expectation}\n"
    report = check(devices, text)
    assert report.outcome is (Outcome.FAILED if message else Outcome.PASSED), report.format()
    if message:
        assert re.match(message, report.failures[0].message)


def test_the_older_form(devices: Devices) -> None:
    older = """[compute shader]
#version 450
layout(push_constant) uniform P { int n; };
layout(binding = 1) buffer B { vec3 b[]; };
layout(binding = 2) uniform U { mat2 m; };
void main() { b[n] = vec3(m[0].x, m[1].x, m[1].y); }
[test]
ssbo 1 64
uniform int 0 2
uniform ubo 2 mat2 0 1 2 3 4
compute 1 1 1
probe ssbo vec3 1 32 == 1 3 4
tolerance 1%
probe ssbo float 0:1 32 ~= 1.005
"""
    report = check(devices, older)
    assert report.outcome is Outcome.PASSED and report.expectations == 2, report.format()


def test_what_the_device_lacks(devices: Devices) -> None:
    names = {
        "DEVICE_FEATURE SubgroupSupportedOperations.noSuch": "the device lacks the subgroup operation noSuch",
        "DEVICE_FEATURE Float16Int8Features.shaderFloat17": "the device lacks the feature shaderFloat17",
        "DEVICE_EXTENSION VK_XYZ_none": "the device lacks the extension VK_XYZ_none",
        "INSTANCE_EXTENSION VK_XYZ_none": "the Vulkan loader lacks the instance extension VK_XYZ_none",
        "DEVICE_PROPERTY FloatControlsProperties.none": "the device lacks the property none",
    }
    report = check(devices, HEAD.replace("#!amber\n", "#!amber\n" + "\n".join(names) + "\n"))
    assert report.outcome is Outcome.SKIPPED and report.reason == "; ".join(names.values())
    fine = "#!amber\nDEVICE_FEATURE SubgroupSupportedStages.compute\n"
    fine += "DEVICE_EXTENSION VK_KHR_storage_buffer_storage_class\n"
    report = check(devices, f"{HEAD.replace('#!amber', fine)}RUN main 1 1 1\n")
    assert report.outcome is Outcome.PASSED, report.reason


def test_bounded_accesses_where_a_script_asks_for_them(device: HalDevice) -> None:
    script = HEAD.replace("#!amber\n", "#!amber\nDEVICE_FEATURE robustBufferAccess\n")
    report = run(parse_text(f"{script}RUN main 100 1 1\nEXPECT a IDX 0 EQ {RESULTS}\n"))
    if "robustBufferAccess" not in device.profile.features:
        assert report.outcome is Outcome.SKIPPED
    else:
        assert report.outcome is Outcome.PASSED, report.format()
    with_own = run(parse_text(f"{script}RUN main 1 1 1\n"), device=Device(device))
    assert with_own.outcome is Outcome.SKIPPED and "robust" in with_own.reason


BIND_U = "  BIND BUFFER u AS uniform DESCRIPTOR_SET 1 BINDING 2\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            BIND_U,
            "",
            r"19:18: the pipeline main binds nothing at DESCRIPTOR_SET 1 BINDING 2, where .* uniform_buffer U",
        ),
        ("AS uniform", "AS storage", r"23:3: this is bound AS storage, and the shader declares the uniform_buffer U"),
        ("BUFFER u AS", "BUFFER_ARRAY u u AS", r"23:3: the shader declares 1 descriptor\(s\) .* 2 are bound"),
        ("  BIND BUFFER p AS push_constant\n", "", "19:18: the shader reads 4 bytes of push constants, .* has 0"),
        ("a[i] *= 2;", "a[j] *= 2;", "13: shader add: (?s:.*)'j' : undeclared identifier"),
        ("GLSL\n", "GLSL TARGET_ENV vulkan9.9\n", "2:16: shader add: expected a target_env of "),
        ("ATTACH add", "ATTACH add ENTRY_POINT mian", "19:18: the pipeline main: .*mian"),
    ],
)
def test_scripts_that_are_wrong_when_they_run(devices: Devices, old: str, new: str, message: str) -> None:
    assert old in HEAD
    report = check(devices, f"{HEAD.replace(old, new, 1)}RUN main 1 1 1\n")
    assert report.outcome is Outcome.ERROR, report.format()
    assert re.match(message, report.reason), report.reason


@needs_tools
def test_errors_in_assembly_are_located_in_the_script(devices: Devices) -> None:
    text = "#!amber\nSHADER compute s SPIRV-ASM\n  OpCapability Shader\n  OpFoo %x\nEND\n"
    text += "PIPELINE compute p\n  ATTACH s\nEND\n"
    report = check(devices, text + "RUN p 1 1 1")
    assert report.outcome is Outcome.ERROR
    assert report.reason == "4:3: shader s: spirv-as: Invalid Opcode name 'OpFoo'\n    OpFoo %x\n    ^"
    report = check(devices, text.replace("SPIRV-ASM", "SPIRV-HEX") + "RUN p 1 1 1")
    assert "expected a 32-bit word such as 0x07230203, got 'OpCapability'" in report.reason


def test_files(devices: Devices, tmp_path: Path) -> None:
    path = tmp_path / "x.amber"
    path.write_text("#!amber\nRUN p 1 1 1\n")
    report = devices.run(path)
    assert report.outcome is Outcome.ERROR
    assert report.format().startswith(f"{path}: error: 2:5: expected the name of a PIPELINE, got 'p'")
    assert devices.run(tmp_path / "y.amber").outcome is Outcome.ERROR
    path.write_text("#!amber\nSHADER vertex v PASSTHROUGH\n")
    assert devices.run(path).outcome is Outcome.UNSUPPORTED


HLSL = """#!amber
VIRTUAL_FILE lib/add.hlsl
uint added(uint x) { return x + 5; }
END
SHADER compute s HLSL
#include "lib/add.hlsl"
RWStructuredBuffer<uint> b : register(u1);
[numthreads(4, 1, 1)] void other(uint3 i : SV_DispatchThreadID) { b[i.x] = added(b[i.x]); }
END
BUFFER b DATA_TYPE uint32 SIZE 4 SERIES_FROM 0 INC_BY 1
PIPELINE compute p
  ATTACH s ENTRY_POINT other
  BIND BUFFER b AS storage DESCRIPTOR_SET 0 BINDING 1
END
RUN p 1 1 1
EXPECT b IDX 0 EQ 5 6 7 8
"""


def test_hlsl_with_files_of_the_script(devices: Devices) -> None:
    try:
        find_compiler(Language.HLSL)
    except UnavailableError as error:
        pytest.skip(error.message)
    assert check(devices, HLSL).outcome is Outcome.PASSED
    report = check(devices, HLSL.replace("added(b", "addde(b"))
    assert report.outcome is Outcome.ERROR and report.reason.startswith("8: shader s: "), report.reason


def test_a_compiler_that_is_not_installed(devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_GLSLC", "/nowhere/glslc")
    report = check(devices, f"{HEAD}RUN main 1 1 1\n")
    assert report.outcome is Outcome.UNSUPPORTED and "/nowhere/glslc" in report.reason


REPORTED = """#!amber
SHADER compute s GLSL
#version 450
layout(binding = 0) buffer B { uint b[]; };
void main() {
  BODY
}
END
BUFFER b DATA_TYPE uint32 DATA 0 100000 END
PIPELINE compute p
  ATTACH s
  BIND BUFFER b AS storage DESCRIPTOR_SET 0 BINDING 0
END
RUN p 1 1 1
"""


def test_what_instrumented_shaders_report(driver: Driver) -> None:
    loop = REPORTED.replace("BODY", "for (uint i = 0; i < b[1]; i++) b[0] += 1;")
    with open_device(loop_guard=True) as device:
        report = run(parse_text(loop, "x.amber"), device=device)
        expected = [100000] if report.outcome is Outcome.PASSED else []  # a driver that cuts no loops
        assert expected or (report.outcome is Outcome.FAILED and report.reason.startswith("6: main: ")), report.format()
    with open_device(sanitize=True) as device:
        report = run(parse_text(REPORTED.replace("BODY", "b[b[1]] = 1;"), "x.amber"), device=device)
        assert report.outcome is Outcome.FAILED
        assert report.reason.startswith("6: main: element 100000 of B.b[]"), report.format()


COUNTED = """
BUFFER b DATA_TYPE uint32 SIZE 64 FILL 0
PIPELINE compute p
  ATTACH s TYPE compute ENTRY_POINT main
  SHADER_OPTIMIZATION s
    eliminate-dead-code-aggressive
    --strip-debug
  END
  SUBGROUP s
    FULLY_POPULATED on
    REQUIRED_SIZE MAX
  END
  BIND BUFFER b AS storage DESCRIPTOR_SET 0 BINDING 0
END
RUN p 2 1 1
"""


@needs_tools
@pytest.mark.parametrize("format", ["SPIRV-ASM", "SPIRV-HEX", "SPIRV-BIN"])
def test_modules_subgroups_and_optimizations(devices: Devices, tmp_path: Path, format: str) -> None:
    size = devices.device().profile.subgroup.max_size
    glsl = "#version 450\n#extension GL_KHR_shader_subgroup_basic : require\n"
    glsl += f"layout(local_size_x = {size}) in; layout(binding = 0) buffer B {{ uint b[]; }};\n"
    code = compile_glsl(glsl + "void main() { b[gl_GlobalInvocationID.x] = gl_SubgroupSize; }", target_env="vulkan1.2")
    if format == "SPIRV-ASM":
        text = f"SHADER multi s {format} TARGET_ENV vulkan1.2\n{spirv_tools.disassemble(code)}END\n"
    elif format == "SPIRV-HEX":
        words = " ".join(f"{word:#010x}" for word in struct.unpack(f"={len(code) // 4}I", code))
        text = f"SHADER multi s {format} TARGET_ENV vulkan1.2\n{words}\nEND\n"
    else:
        (tmp_path / "s.spv").write_bytes(code)
        text = f"SHADER multi s {format} TARGET_ENV vulkan1.2 FILE s.spv\n"
    path = tmp_path / "x.amber"
    path.write_text(f"#!amber\n{text}{COUNTED}EXPECT b IDX 0 EQ {' '.join([str(size)] * 2 * size)}\n")
    report = devices.run(path)
    assert report.outcome is Outcome.PASSED, report.format()
    path.write_text(path.read_text().replace("REQUIRED_SIZE MAX", f"REQUIRED_SIZE {2 * size}"))
    report = devices.run(path)
    assert report.outcome is Outcome.SKIPPED and f"subgroup size {2 * size}" in report.reason
    path.write_text(path.read_text().replace("eliminate-dead-code-aggressive", "no-such-pass"))
    report = devices.run(path)
    assert report.outcome is Outcome.ERROR and "no-such-pass" in report.reason


def test_structures(devices: Devices) -> None:
    text = """#!amber
STRUCT inner
  int32 a
  vec3<float> b
END
STRUCT outer
  float x
  inner y
  mat2x2<float> m
  int32[3] z
END
SHADER compute s GLSL
#version 450
struct Inner { int a; vec3 b; };
struct Outer { float x; Inner y; mat2 m; int z[3]; };
layout(std140, binding = 0) uniform U { Outer u[2]; };
layout(std430, binding = 1) buffer B { Outer o[2]; };
void main() { uint i = gl_GlobalInvocationID.x; o[i] = u[i]; o[i].y.b.z += 0.5; o[i].z[2] *= 2; }
END
BUFFER u DATA_TYPE outer STD140 DATA
  1  2 3 4 5  6 7 8 9  10 11 12
  -1 -2 -3 -4 -5  -6 -7 -8 -9  -10 -11 -12
END
BUFFER o DATA_TYPE outer SIZE 2 FILL 0
PIPELINE compute p
  ATTACH s
  BIND BUFFER u AS uniform DESCRIPTOR_SET 0 BINDING 0
  BIND BUFFER o AS storage DESCRIPTOR_SET 0 BINDING 1
END
RUN p 2 1 1
EXPECT o IDX 0 EQ 1 2 3 4 5.5 6 7 8 9 10 11 24  -1 -2 -3 -4 -4.5 -6 -7 -8 -9 -10 -11 -24
"""
    report = devices.run(parse_text(text, "x.amber"))
    assert report.outcome is Outcome.PASSED, report.format()
    assert parse_text(format_script(parse_text(text))).buffers["u"].data == parse_text(text).buffers["u"].data
