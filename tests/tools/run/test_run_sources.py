"""``pumice run`` and ``info`` on sources: languages, macros, folders to include from, entry points, and wrong usage."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.devices.shader_tools import kernel_assembly

from pumice.spirv.sources.find import find_compiler
from pumice.spirv.sources.language import Language
from pumice.status import UnavailableError
from pumice.tools.cli import main

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("driver")]

GLSL = """#version 450
#include "scale.h"
layout(local_size_x = 4) in;
layout(binding = 0) buffer X { float x[]; };
void main() { x[gl_GlobalInvocationID.x] *= SCALE * TWICE; }
"""
HLSL = """#include "scale.h"
RWStructuredBuffer<float> x : register(u0);
[numthreads(4, 1, 1)] void first(uint3 id : SV_DispatchThreadID) { x[id.x] *= SCALE * TWICE; }
[numthreads(4, 1, 1)] void second(uint3 id : SV_DispatchThreadID) { x[id.x] += SCALE * TWICE; }
"""
SLANG = HLSL.replace("[numthreads", '[shader("compute")] [numthreads')
WGSL = """@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(4) fn first(@builtin(global_invocation_id) id: vec3<u32>) { x[id.x] *= 6.0; }
"""
TEXTS = {
    Language.GLSL: GLSL,
    Language.HLSL: HLSL,
    Language.SLANG: SLANG,
    Language.WGSL: WGSL,
    Language.ASSEMBLY: kernel_assembly(),
}
OPTIONS = ("-D", "SCALE=3", "--define", "TWICE=2", "-I", "inc")


def pumice(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)], prog_name="pumice")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "scale.h").write_text("#ifndef SCALE\n#define SCALE 0\n#endif\n")
    for language, text in TEXTS.items():
        (tmp_path / f"k{language.suffixes[0]}").write_text(text)
        (tmp_path / f"{language.value}.txt").write_text(text)
    return tmp_path


@pytest.mark.sample(2)
@pytest.mark.parametrize("language", [one for one in Language if one is not Language.ASSEMBLY])
def test_run(language: Language) -> None:
    try:
        find_compiler(language)
    except UnavailableError as error:
        pytest.skip(error.message)
    options = OPTIONS if language.has_preprocessor else ()
    entry = ("--entry", "first") if language.compiles_entry_point else ()
    for file in ((f"k{language.suffixes[0]}",), (f"{language.value}.txt", "--language", language.value)):
        done = pumice("run", *file, *options, *entry, "-b", "0=4xf32=1,2,3,4")
        assert (done.exit_code, done.stdout) == (0, "binding[0]: 4xf32=6 12 18 24\n"), done.stderr
    shown = pumice("info", f"k{language.suffixes[0]}", *options, *entry)
    assert shown.exit_code == 0 and "storage_buffer" in shown.stdout, shown.stderr
    if language.compiles_entry_point:
        done = pumice("run", f"k{language.suffixes[0]}", *OPTIONS, "--entry", "second", "-b", "x=4xf32=0")
        assert (done.exit_code, done.stdout) == (0, "binding[0]: 4xf32=6 6 6 6\n"), done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("run", "k.comp", "-I", "nowhere"), 2, "nowhere"),
        (("run", "k.comp", "-I", "k.comp"), 2, "k.comp"),
        (("run", "k.comp", "--language", "c"), 2, "'c'"),
        (("run", "k.spvasm", "-D", "A"), 2, "--define: SPIR-V assembly has no preprocessor"),
        (("info", "k.wgsl", "-I", "inc"), 2, "--include: WGSL has no preprocessor"),
        (("run", "glsl.txt"), 1, "SPIR-V assembly (.spvasm)"),
        (("run", "k.comp", "-I", "inc", "-b", "0=4xf32"), 1, "k.comp:5"),
        (("info", "k.comp"), 1, "scale.h"),
        (("info", "module.spv", "--language", "glsl"), 2, "--language is for shader sources"),
        (("info", "module.spv", "--include", "inc"), 2, "--include is for shader sources"),
        (("info", "module.spv", "--entry", "main"), 2, "--entry is for shader sources"),
    ],
)
def test_wrong_usage(folder: Path, arguments: tuple[str, ...], status: int, message: str) -> None:
    (folder / "module.spv").write_bytes(b"\x03\x02\x23\x07" + b"\0" * 16)
    try:
        find_compiler(Language.GLSL)
    except UnavailableError as error:
        pytest.skip(error.message)
    done = pumice(*arguments)
    assert (done.exit_code, done.stdout) == (status, ""), done.stdout
    assert message in done.stderr, done.stderr


def test_arguments_for_what_the_shader_does_not_use(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "pass.comp").write_text("""#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer X { float x[]; };
layout(binding = 1) buffer W { float w[]; };
layout(push_constant) uniform Pass { float gain; };
void main() { x[gl_GlobalInvocationID.x] *= 2; }
""")
    result = pumice("run", "pass.comp", "-b", "X=4xf32=3", "-b", "1=4xf32", "--push", "gain=2", "--device", "lavapipe")
    assert result.stdout == "binding[0]: 4xf32=6 6 6 6\n"
    assert "arguments for gain are ignored" in caplog.text
    assert pumice("run", "pass.comp", "-b", "X=4xf32=3", "-b", "2=4xf32").exit_code == 2


def test_groups_by_name(folder: Path) -> None:
    (folder / "sum.comp").write_text(
        """#version 450
        layout(local_size_x = 64) in;
        layout(binding = 0) readonly buffer X { uint x[]; };
        layout(binding = 1) buffer S { uint total; };
        void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) atomicAdd(total, x[i]); }"""
    )
    arguments = ("run", "sum.comp", "-b", "X=10000xui32=1", "-b", "S=1xui32")
    refused = pumice(*arguments)
    assert refused.exit_code == 2 and "groups='X' or groups=157" in refused.stderr
    done = pumice(*arguments, "--groups", "X", "--to-amber", "sum.amber")
    assert (done.exit_code, done.stdout) == (0, "binding[1]: 1xui32=10000\n"), done.stderr
    assert "RUN pipeline 157 1 1" in " ".join((folder / "sum.amber").read_text().split())
    wrong = pumice(*arguments, "--groups", "Z")
    assert wrong.exit_code == 2 and "got 'Z'" in wrong.stderr


def test_lines_of_the_shader_go_to_stdout(folder: Path) -> None:
    (folder / "loud.comp").write_text(
        """#version 450
        #extension GL_EXT_debug_printf : enable
        layout(local_size_x = 2) in;
        layout(binding = 0) buffer X { uint x[]; };
        void main() { uint i = gl_GlobalInvocationID.x; debugPrintfEXT("x is %u", x[i]); x[i] = 7; }"""
    )
    done = pumice("run", "loud.comp", "-b", "X=2xui32=3,4")
    assert done.stdout == "loud (0, 0, 0): x is 3\nloud (1, 0, 0): x is 4\nbinding[0]: 2xui32=7 7\n", done.stderr
