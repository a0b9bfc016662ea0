"""WGSL by naga, where it is installed, and its module for Node.js."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import numpy as np
import pytest
from support.devices.features import require_features

import pumice
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.sources import find, wgsl
from pumice.spirv.sources.compile import compile_source
from pumice.spirv.sources.language import Language
from pumice.spirv.sources.source_compiler import Job
from pumice.status import UnavailableError


@pytest.fixture
def compiler() -> None:
    try:
        find.find_compiler(Language.WGSL)
    except UnavailableError as error:
        pytest.skip(error.message)


def node(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the folder of modules of a Node.js that does nothing."""
    program = folder / "bin" / "node"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.delenv("PUMICE_WGSLC", raising=False)
    package = folder / "lib" / "node_modules" / "naga-wasm"
    package.mkdir(parents=True)
    return package


def test_the_placeholder_is_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = node(tmp_path, monkeypatch)
    (package / "package.json").write_text(json.dumps({"name": "naga-wasm", "version": "0.0.0"}))
    for value in ("", str(package)):
        monkeypatch.setenv("PUMICE_WGSLC", value)
        with pytest.raises(UnavailableError, match=r"0\.0\.0, a placeholder.*from 18 on.*naga-wasm@30\.1\.0"):
            find.find_compiler(Language.WGSL)
    module = package / "dist" / "node.js"
    module.parent.mkdir()
    module.write_text("")
    assert find.find_compiler(Language.WGSL).version == "naga-wasm 0.0.0"


def test_an_old_node_is_named() -> None:
    compiler = wgsl.NagaWasm(Path("node"), "naga-wasm 1", Path("naga-wasm"))
    assert "Node.js 18 or later" in compiler.advice(
        "CompileError: WebAssembly.Module(): invalid value type 'externref'"
    )
    assert not compiler.advice("error: expected identifier")


@pytest.mark.parametrize(
    ("directive", "kept"),
    [
        ("enable subgroups;", ""),
        ("enable f16, subgroups;", "enable f16;"),
        ("  enable subgroups , f16;", "enable f16;"),
        ("enable f16;", "enable f16;"),
    ],
)
def test_naga_is_not_told_of_subgroups(directive: str, kept: str) -> None:
    job = Job(
        language=Language.WGSL,
        stage="comp",
        entry_point=None,
        macros=(),
        folders=(),
        target_env="vulkan1.2",
        debug=False,
    )
    text = wgsl.Naga(Path("naga"), "naga").prepared(f"{directive}\nfn f() {{}}\n".encode(), job, None)
    assert text.decode() == f"{kept}\nfn f() {{}}\n"


@pytest.mark.usefixtures("compiler")
def test_subgroups_are_of_spirv_1_3() -> None:
    source = "@compute @workgroup_size(1)\nfn main() { _ = subgroupAdd(1); }"
    for target, version in (("vulkan1.2", "1.3"), ("vulkan1.0", "1.0")):
        text = spirv_tools.disassemble(
            compile_source(source.replace("subgroupAdd", "abs"), Language.WGSL, target_env=target)
        )
        assert f"; Version: {version}" in text
    spirv_tools.validate(compile_source("enable subgroups;" + source, Language.WGSL), target_env="vulkan1.2")


@pytest.mark.usefixtures("compiler")
def test_layers_of_storage_images() -> None:
    code = compile_source(
        "@group(0) @binding(0) var t: texture_storage_2d_array<r32uint, write>;\n"
        "@group(0) @binding(1) var<storage, read_write> n: u32;\n"
        "@compute @workgroup_size(1) fn main() { n = textureNumLayers(t) + textureDimensions(t).x; }",
        Language.WGSL,
    )
    spirv_tools.validate(code, target_env="vulkan1.2")


KERNEL = """
enable f16;
struct Inner { w: vec4<f32>, x: vec2<f32> };
struct Params { gain: f32, at: vec3<f32>, inner: array<Inner, 2> };
struct State { calls: atomic<u32>, size: vec2<f32> };
override twice = n * 2u;
override n: u32 = 1;
@id(3) override block: u32;
var<workgroup> shared_: array<f32, twice>;
@group(0) @binding(0) var<storage, read_write> v: array<f32>;
@group(0) @binding(1) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read_write> state: State;
@group(0) @binding(3) var<storage, read_write> h: array<f16>;
@compute @workgroup_size(block)
fn main(@builtin(global_invocation_id) g: vec3<u32>) {
  if (g.x < arrayLength(&v)) {
    v[g.x] = v[g.x] * p.gain + p.at.y + p.inner[1].x.y + shared_[0] + f32(twice);
    h[g.x] = h[g.x] * 2.0h;
    atomicAdd(&state.calls, 1u);
  }
}
"""


@pytest.mark.vulkan
@pytest.mark.usefixtures("compiler", "driver")
def test_a_kernel() -> None:
    with pumice.open_device() as device:
        require_features(device.vulkan, "shaderFloat16", "storageBuffer16BitAccess")
        with device.load_kernel(KERNEL, language="wgsl", specialization={"n": 5, 3: 32}) as kernel:
            assert kernel.entry.local_size == (32, 1, 1)
            zero = {"w": [0] * 4, "x": [0, 0]}
            v, state, h = kernel(
                np.arange(4, dtype=np.float32),
                {"gain": 3, "at": [0, 100, 0], "inner": [zero, {"w": [0] * 4, "x": [0, 1000]}]},
                {"calls": 5, "size": [1, 2]},
                np.arange(4, dtype=np.float16),
            )
    np.testing.assert_array_equal(v, np.arange(4) * 3 + 1110)
    np.testing.assert_array_equal(h, np.arange(4) * 2)
    assert state["calls"] == 9
    np.testing.assert_array_equal(state["size"], [1, 2])


NAMELESS = """
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main"
OpExecutionMode %main LocalSize 1 1 1
OpName %params "params"
OpMemberName %inner 0 "gain"
OpMemberName %inner 1 "at"
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpMemberDecorate %inner 0 Offset 0
OpMemberDecorate %inner 1 Offset 16
OpDecorate %params DescriptorSet 0
OpDecorate %params Binding 0
%void = OpTypeVoid
%float = OpTypeFloat 32
%vector = OpTypeVector %float 3
%uint = OpTypeInt 32 0
%zero = OpConstant %uint 0
%inner = OpTypeStruct %float %vector
%block = OpTypeStruct %inner
%pointer = OpTypePointer Uniform %block
%params = OpVariable %pointer Uniform
%part = OpTypePointer Uniform %float
%function = OpTypeFunction %void
%main = OpFunction %void None %function
%label = OpLabel
%place = OpAccessChain %part %params %zero %zero
%value = OpLoad %float %place
OpReturn
OpFunctionEnd
"""


def test_members_of_a_nameless_structure_have_their_plain_names() -> None:
    (binding,) = reflect(spirv_tools.assemble(NAMELESS, "spv1.3")).entry_points[0].bindings
    assert [(member.name, member.offset) for member in binding.members] == [("gain", 0), ("at", 16)]
    stripped = "\n".join(line for line in NAMELESS.splitlines() if not line.startswith("OpMemberName"))
    (binding,) = reflect(spirv_tools.assemble(stripped, "spv1.3")).entry_points[0].bindings
    assert [(member.name, len(member.members)) for member in binding.members] == [("", 2)]
