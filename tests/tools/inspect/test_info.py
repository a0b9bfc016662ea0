"""``pumice info``: the tables and JSON are those of the reflection, which has tests of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pumice import shaders
from pumice.formats.vke1 import (
    DescriptorBindingDef,
    DescriptorSetLayoutDef,
    ExecutableDef,
    ExportDebugInfo,
    PipelineDef,
    PipelineLayoutDef,
    PushConstantRange,
    SourceFile,
)
from pumice.formats.vke1_writer import build_executable
from pumice.hal_vulkan import compile_glsl, reflect
from pumice.spirv.sources.glsl import find_compiler
from pumice.status import UnavailableError
from pumice.tools.cli import main

EVERYTHING = """
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
layout(local_size_x = 8, local_size_y = 4, local_size_y_id = 3) in;
layout(constant_id = 3) const uint rows = 4;
layout(constant_id = 7) const float factor = 0.5;
layout(constant_id = 9) const bool negate = true;
struct Inner { int low; int high; };
layout(set = 0, binding = 0) readonly buffer Header { uint count; vec4 rows[]; } head;
layout(set = 1, binding = 4) writeonly buffer Out { float16_t y[16]; };
layout(set = 1, binding = 5) uniform Settings { Inner inner; mat3 turn; } settings;
layout(push_constant) uniform Push { int n; vec3 axis; Inner inner; float list[2][3]; mat2x3 turn; } push;
shared uint cells[SIZE];
void main() {
    cells[gl_LocalInvocationIndex % SIZE] = rows + uint(settings.inner.low);
    y[0] = float16_t(head.rows[push.n].x * push.axis.y * factor * (negate ? 1 : -1) * settings.turn[0][0]
        + push.inner.high + push.list[1][2] + push.turn[1][2] + cells[0] + head.count);
}
"""

STRUCTURES = """#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 4) in;
layout(buffer_reference) buffer Node;
layout(buffer_reference, std430) buffer Node { float v; Node next; Node many[2]; };
struct Particle { vec3 place; uint kind; };
layout(std430, binding = 0) buffer Words { uint words[]; };
layout(std430, binding = 0) buffer Floats { float floats[]; };
layout(std430, binding = 1) buffer Particles { uint count; Particle items[]; } particles;
layout(push_constant) uniform Push { Node root; float scale; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    floats[i] = float(words[i]) * scale + root.next.v * particles.items[i].place.x + particles.count;
}
"""


def info(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["info", *map(str, arguments)])


def rows(text: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


@pytest.fixture
def everything(tmp_path: Path) -> Path:
    try:
        find_compiler()
    except UnavailableError as error:
        pytest.skip(error.message)
    path = tmp_path / "everything.comp"
    path.write_text(EVERYTHING, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", shaders.names())
def test_json_is_the_reflection(name: str) -> None:
    result = info(shaders.path(name), "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout) == reflect(shaders.spirv(name)).to_json()


@pytest.mark.parametrize("name", shaders.names())
def test_tables_have_every_binding_and_push_constant(name: str) -> None:
    result = info(shaders.path(name))
    assert (result.exit_code, result.stderr) == (0, "")
    shown = rows(re.sub(r" \(constant \d+\)", "", result.stdout))
    entry = reflect(shaders.spirv(name)).entry_point()
    assert ["local size", " x ".join(map(str, entry.local_size))] in shown
    for binding in entry.bindings:
        head = [str(binding.set), str(binding.binding), binding.name or "-", binding.descriptor_type_name]
        assert head in [row[:4] for row in shown]
    members = entry.push_constants.members if entry.push_constants else ()
    for member in members:
        assert [str(member.offset), str(member.size), member.name] in [row[:3] for row in shown]


@pytest.mark.slow
def test_glsl_with_everything(everything: Path) -> None:
    result = info(everything, "-D", "SIZE=32")
    assert (result.exit_code, result.stderr) == (0, "")
    shown = rows(result.stdout)
    for row in (
        ["local size", "8 x 4 (constant 3) x 1"],
        ["shared memory", "128 bytes"],
        ["0", "0", "head", "storage_buffer", "read", "4xf32[]", "16", "16"],
        ["1", "4", "Out", "storage_buffer", "write", "f16[16]", "2", "32"],
        ["1", "5", "settings", "uniform_buffer", "read", "block", "-", "64"],
        ["0", "4", "count", "ui32"],
        ["16", "0", "rows", "4xf32[]"],
        ["4", "4", "inner.high", "i32"],
        ["16", "48", "turn", "3x3xf32"],
        ["0", "4", "n", "i32"],
        ["16", "12", "axis", "3xf32"],
        ["28", "8", "inner", "struct"],
        ["32", "4", "inner.high", "i32"],
        ["36", "24", "list", "2x3xf32"],
        ["64", "32", "turn", "3x2xf32"],
        ["3", "rows", "ui32", "4"],
        ["7", "factor", "f32", "0.5"],
        ["9", "negate", "bool", "true"],
    ):
        assert row in shown, result.stdout
    assert "StorageBuffer16BitAccess" in result.stdout
    code = compile_glsl(everything, defines={"SIZE": "32"})
    assert json.loads(info(everything, "-D", "SIZE=32", "--json").stdout) == reflect(code).to_json()


@pytest.mark.slow
def test_aliases_structures_and_pointers(tmp_path: Path) -> None:
    source = tmp_path / "structures.comp"
    source.write_text(STRUCTURES)
    try:
        result = info(source)
    except UnavailableError as error:
        pytest.skip(str(error))
    assert (result.exit_code, result.stderr) == (0, "")
    shown = rows(result.stdout)
    for row in (
        ["0", "0", "Words", "storage_buffer", "read, write", "ui32[]", "4", "0"],
        ["0", "0", "Floats", "storage_buffer", "read, write", "f32[]", "4", "0"],
        ["0", "1", "particles", "storage_buffer", "read", "struct[]", "16", "16"],
        ["members of particles"],
        ["16", "0", "items", "struct[]"],
        ["16", "12", "items.place", "3xf32"],
        ["28", "4", "items.kind", "ui32"],
        ["0", "8", "root", "Node*"],
        ["pointers to Node"],
        ["16", "16", "many", "2xNode*"],
    ):
        assert row in shown, result.stdout
    described = json.loads(info(source, "--json").stdout)
    assert [block["name"] for block in described["pointees"]] == ["Node"]
    assert sorted(b["name"] for b in described["entry_points"][0]["bindings"][0]["aliases"]) == ["Floats", "Words"]


@pytest.fixture
def executable(tmp_path: Path) -> Path:
    definition = ExecutableDef(
        pipelines=(
            PipelineDef(0, "main", 0, debug_info=ExportDebugInfo("product")),
            PipelineDef(1, "main", 1, subgroup_size=8),
        ),
        descriptor_set_layouts=(
            DescriptorSetLayoutDef(tuple(DescriptorBindingDef(i) for i in range(3))),
            DescriptorSetLayoutDef(tuple(DescriptorBindingDef(i) for i in range(2))),
        ),
        pipeline_layouts=(PipelineLayoutDef((0,)), PipelineLayoutDef((1,), (PushConstantRange(0x20, 0, 4),))),
        shader_modules=(memoryview(shaders.spirv("mul")), memoryview(shaders.spirv("examples/saxpy"))),
        source_files=(SourceFile("mul.mlir", memoryview(b"module {}")),),
    )
    path = tmp_path / "two.bin"
    path.write_bytes(build_executable(definition))
    return path


def test_executable(executable: Path) -> None:
    result = info(executable)
    assert (result.exit_code, result.stderr) == (0, "")
    shown = rows(result.stdout)
    assert ["0", "main", "0", "descriptor", "64 x 1 x 1", "any", "3", "0 bytes"] in shown
    assert ["1", "main", "1", "descriptor", "64 x 1 x 1", "8", "2", "4 bytes"] in shown
    assert ["0", "2", "Product"] in [row[:3] for row in shown]
    data = json.loads(info(executable, "--json").stdout)
    assert [p["bindings"] for p in data["pipelines"]] == [3, 2]
    assert [p["name"] for p in data["pipelines"]] == ["product", ""]
    assert data["shader_modules"] == [reflect(shaders.spirv(n)).to_json() for n in ("mul", "examples/saxpy")]
    assert data["source_files"] == [{"path": "mul.mlir", "size": 9}]


def test_no_file_is_a_message(tmp_path: Path, executable: Path) -> None:
    spirv = shaders.spirv("mul")
    files = {
        "cut.spv": spirv[: len(spirv) // 2 // 4 * 4],
        "odd.spv": spirv[:-1],
        "empty.spv": b"",
        "empty.comp": b"",
        "text.txt": b"hello",
        "empty.bin": b"",
        "cut.bin": executable.read_bytes()[:100],
        "module.vmfb": b"PK\x03\x04" + bytes(60),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for name in [*files, "missing.spv", "."]:
        result = info(tmp_path / name)
        if name == "empty.comp" and "no GLSL compiler" in result.stderr:
            continue
        assert (result.exit_code, result.stdout) == (1, ""), name
        assert result.stderr.startswith("error: ") and "internal" not in result.stderr, result.stderr


@pytest.mark.parametrize("arguments", [["-D", "N=1"], ["-D", "1N=2"], ["--what"]])
def test_wrong_usage(arguments: list[str]) -> None:
    result = info(shaders.path("mul"), *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")


@pytest.mark.slow
def test_constants_of_one_id_are_listed_once(everything: Path) -> None:
    # The local size and the constant `rows` are two constants in SPIR-V, with one id.
    source = everything.read_text(encoding="utf-8")
    everything.write_text(source.replace("rows = 4", "rows = 6"), encoding="utf-8")
    constants = json.loads(info(everything, "--define", "SIZE=16", "--json").stdout)["specialization_constants"]
    assert [(c["constant_id"], c["name"]) for c in constants] == [(3, "rows"), (7, "factor"), (9, "negate")]
    assert constants[0]["default"] == 6
    unnamed = everything.with_name("unnamed.comp")
    unnamed.write_text("#version 450\nlayout(local_size_x_id = 0, local_size_y_id = 0) in;\nvoid main() {}\n")
    constants = json.loads(info(unnamed, "--json").stdout)["specialization_constants"]
    assert [(c["constant_id"], c["name"]) for c in constants] == [(0, "")]
