"""`compile_source` for languages beside GLSL: modules, entry points, options, errors with their place, the cache."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.sources import find
from pumice.spirv.sources.commands import Glslang, Glslc
from pumice.spirv.sources.compile import compile_source
from pumice.spirv.sources.language import LANGUAGES, Language, language_of, parse_language
from pumice.status import InvalidArgumentError, NotFoundError, PumiceError, UnavailableError

SLANG = """#include "factor.h"
import parts;
struct Params { float scale; StructuredBuffer<float> x; RWStructuredBuffer<float> y; };
ParameterBlock<Params> params;
[shader("compute")] [numthreads(64, 1, 1)]
void first(uint3 id : SV_DispatchThreadID) { params.y[id.x] = FACTOR * twice(params.x[id.x]) * params.scale; }
[shader("compute")] [numthreads(32, 1, 1)]
void second(uint3 id : SV_DispatchThreadID, uniform uint n) { if (id.x < n) params.y[id.x] = params.x[id.x]; }
"""
HLSL = """cbuffer Constants : register(b0) { float scale; };
StructuredBuffer<float> x : register(t0);
RWStructuredBuffer<float> y : register(u0);
[numthreads(WIDTH, 1, 1)]
void kernel(uint3 id : SV_DispatchThreadID) { y[id.x] = scale * x[id.x]; }
"""
WGSL = """@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn copy(@builtin(global_invocation_id) id: vec3<u32>) { y[id.x] = x[id.x]; }
"""
ASSEMBLY = """; Version: 1.3
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %1 "main"
OpExecutionMode %1 LocalSize 8 1 1
%2 = OpTypeVoid
%3 = OpTypeFunction %2
%1 = OpFunction %2 None %3
%4 = OpLabel
OpReturn
OpFunctionEnd
"""
WRONG = {
    Language.SLANG: '[shader("compute")] [numthreads(1, 1, 1)]\nvoid f() {\n  int y = missing;\n}\n',
    Language.HLSL: "[numthreads(1, 1, 1)]\nvoid main() {\n  int y = missing;\n}\n",
    Language.WGSL: "@compute @workgroup_size(1)\nfn main() {\n  let y = missing;\n}\n",
    Language.ASSEMBLY: "OpCapability Shader\n\n  OpFoo missing\n",
    Language.GLSL: "#version 450\nvoid main() {\n  int y = missing;\n}\n",
}
posix = pytest.mark.skipif(sys.platform == "win32", reason="makes an executable out of a shell script")


def needs(language: Language) -> None:
    try:
        find.find_compiler(language)
    except UnavailableError as error:
        pytest.skip(f"no {language.title} compiler: {error.message[:80]}")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(folder))
    monkeypatch.delenv("PUMICE_CACHE", raising=False)
    return folder


@pytest.fixture
def slang(tmp_path: Path) -> Path:
    """A kernel in Slang, with a file that it includes and a module that it imports."""
    needs(Language.SLANG)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "factor.h").write_text("#pragma once\n#ifndef FACTOR\n#define FACTOR 3\n#endif\n")
    (tmp_path / "lib" / "parts.slang").write_text("module parts;\npublic float twice(float x) { return 2 * x; }\n")
    (tmp_path / "kernel.slang").write_text(SLANG)
    return tmp_path / "kernel.slang"


class TestSlang:
    @pytest.mark.slow
    def test_parameter_blocks_are_bindings_with_names(self, slang: Path) -> None:
        module = reflect(compile_source(slang, Language.SLANG, include_dirs=[slang.parent / "lib"]))
        assert [entry.name for entry in module.entry_points] == ["first", "second"]
        first, second = module.entry_points
        assert [(b.binding, b.name, b.writable) for b in first.bindings] == [
            (0, "params", False),
            (1, "params.x", False),
            (2, "params.y", True),
        ]
        assert second.push_constants is not None and [m.name for m in second.push_constants.members] == ["n"]

    @pytest.mark.slow
    def test_entry_point_and_target(self, slang: Path) -> None:
        code = compile_source(
            slang, Language.SLANG, include_dirs=[slang.parent / "lib"], entry_point="second", target_env="vulkan1.1"
        )
        assert [entry.name for entry in reflect(code).entry_points] == ["second"]
        assert int.from_bytes(code[4:8], sys.byteorder) == 0x10300
        with pytest.raises(InvalidArgumentError, match="'third'"):
            compile_source(slang, Language.SLANG, include_dirs=[slang.parent / "lib"], entry_point="third")

    @pytest.mark.slow
    def test_optimize(self, slang: Path) -> None:
        plain, optimized = (
            compile_source(slang, Language.SLANG, include_dirs=[slang.parent / "lib"], optimize=optimize)
            for optimize in (False, True)
        )
        assert len(optimized) < len(plain)
        assert [entry.name for entry in reflect(optimized).entry_points] == ["first", "second"]

    @pytest.mark.slow
    def test_every_file_is_in_the_key_of_the_cache(self, slang: Path) -> None:
        folders = [slang.parent / "lib"]
        first = compile_source(slang, Language.SLANG, include_dirs=folders)
        assert compile_source(slang, Language.SLANG, include_dirs=folders) == first
        (slang.parent / "lib" / "parts.slang").write_text(
            "module parts;\npublic float twice(float x) { return x + x; }"
        )
        second = compile_source(slang, Language.SLANG, include_dirs=folders)
        assert second != first
        (slang.parent / "lib" / "factor.h").write_text("#define FACTOR 5\n")
        assert compile_source(slang, Language.SLANG, include_dirs=folders) not in (first, second)
        assert compile_source(slang, Language.SLANG, include_dirs=folders, debug=True) not in (first, second)

    @pytest.mark.slow
    def test_an_error_in_an_imported_module(self, slang: Path) -> None:
        part = slang.parent / "lib" / "parts.slang"
        part.write_text("module parts;\npublic float twice(float x) { return nothing; }\n")
        with pytest.raises(InvalidArgumentError, match="'nothing'") as info:
            compile_source(slang, Language.SLANG, include_dirs=[slang.parent / "lib"])
        assert info.value.location == f"{part}:2:38"
        assert "public float twice(float x) { return nothing; }" in info.value.message

    @pytest.mark.slow
    def test_texts_and_marked_files(self, slang: Path) -> None:
        code = compile_source(SLANG, Language.SLANG, include_dirs=[slang.parent / "lib"])
        slang.write_text(SLANG, encoding="utf-8-sig")
        assert compile_source(slang, Language.SLANG, include_dirs=[slang.parent / "lib"]) == code
        other = slang.with_suffix(".txt")
        other.write_text(SLANG)
        assert compile_source(other, Language.SLANG, include_dirs=[slang.parent / "lib"]) == code


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["first", "slang", "glslangValidator"])
def test_registers_of_hlsl_are_bindings(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if compiler == "glslangValidator":
        if shutil.which(compiler) is None:
            pytest.skip("glslang is not installed")
        monkeypatch.setenv("PUMICE_HLSLC", compiler)
    elif compiler == "slang":
        needs(Language.SLANG)
        monkeypatch.setattr(find, "find_compiler", lambda language: find.slang.from_wheel())
    else:
        needs(Language.HLSL)
    code = compile_source(HLSL, Language.HLSL, entry_point="kernel", defines={"WIDTH": 32})
    (entry,) = reflect(code).entry_points
    assert (entry.name, tuple(entry.local_size)) == ("kernel", (32, 1, 1))
    assert [(b.binding, b.name) for b in entry.bindings] == [(0, "x"), (100, "y"), (300, "Constants")]
    apart = HLSL.replace("b0", "b1 /* not t2 */").replace("u0", "u2, space1")
    (entry,) = reflect(compile_source(apart, Language.HLSL, entry_point="kernel", defines={"WIDTH": 32})).entry_points
    assert [(b.set, b.binding, b.name) for b in entry.bindings] == [(0, 0, "x"), (0, 1, "Constants"), (1, 2, "y")]


@pytest.mark.sample(2)
@pytest.mark.slow
@pytest.mark.parametrize("language", Language)
def test_modules_are_kept(language: Language, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs(language)
    right = {
        Language.GLSL: "#version 450\nvoid main() {}\n",
        Language.HLSL: HLSL.replace("WIDTH", "1").replace("kernel", "main"),
        Language.SLANG: WRONG[Language.SLANG].replace("missing", "1"),
        Language.WGSL: WGSL,
        Language.ASSEMBLY: ASSEMBLY,
    }[language]
    first = compile_source(right, language)
    assert len(list(cache.glob(f"*/{language.value}/*/*.entry"))) == 1
    monkeypatch.setattr("pumice.spirv.sources.compile._run", None)
    assert compile_source(right, language) == first


def test_wgsl() -> None:
    needs(Language.WGSL)
    (entry,) = reflect(compile_source(WGSL, Language.WGSL)).entry_points
    assert (entry.name, [b.name for b in entry.bindings]) == ("copy", ["x", "y"])


def test_assembly() -> None:
    needs(Language.ASSEMBLY)
    code = compile_source(ASSEMBLY, Language.ASSEMBLY, target_env="vulkan1.1")
    assert code == spirv_tools.assemble(ASSEMBLY, "spv1.3")
    assert [entry.name for entry in reflect(code).entry_points] == ["main"]


@pytest.mark.sample(2)
@pytest.mark.slow
@pytest.mark.parametrize("language", Language)
def test_errors_have_their_place(language: Language, tmp_path: Path) -> None:
    needs(language)
    column = "" if isinstance(find.find_compiler(language), (Glslang, Glslc)) else ":11"
    column = ":3" if language is Language.ASSEMBLY else column
    for source in (WRONG[language], tmp_path / f"wrong{language.suffixes[0]}"):
        name = "<source>"
        if isinstance(source, Path):
            source.write_text(WRONG[language])
            name = str(source)
        with pytest.raises(InvalidArgumentError) as info:
            compile_source(source, language)
        assert info.value.location == f"{name}:3{column}"
        lines = str(info.value).splitlines()
        excerpt = next(i for i, line in enumerate(lines) if line.startswith("     3 | "))
        marked = "OpFoo" if language is Language.ASSEMBLY else "missing"
        assert lines[excerpt + 1].index("^") == lines[excerpt].index(marked)


class TestArguments:
    @pytest.mark.parametrize("language", [Language.WGSL, Language.ASSEMBLY])
    def test_no_preprocessor(self, language: Language, tmp_path: Path) -> None:
        for given in ({"defines": {"A": 1}}, {"include_dirs": [tmp_path]}):
            with pytest.raises(InvalidArgumentError, match="has no preprocessor"):
                compile_source("x\n", language, **given)  # type: ignore[arg-type]

    def test_entry_point(self) -> None:
        with pytest.raises(InvalidArgumentError, match="identifier as the entry point, got '1x'"):
            compile_source("x\n", Language.SLANG, entry_point="1x")

    def test_missing_file(self, tmp_path: Path) -> None:
        needs(Language.SLANG)
        with pytest.raises(NotFoundError, match="there is no Slang file"):
            compile_source(tmp_path / "none.slang", Language.SLANG)

    def test_names(self) -> None:
        assert parse_language("slang") is Language.SLANG
        assert [language_of(Path(f"a{one}")) for one in (".comp", ".HLSL", ".spvasm", ".spv", "")] == [
            Language.GLSL,
            Language.HLSL,
            Language.ASSEMBLY,
            None,
            None,
        ]
        with pytest.raises(InvalidArgumentError, match=f"{', '.join(LANGUAGES)}; got 'cuda'"):
            parse_language("cuda")

    @pytest.mark.slow
    def test_odd_sources(self) -> None:
        needs(Language.SLANG)
        for source in ("", "\0", "(" * 3000, "import ;", '#include "a'):
            with pytest.raises(PumiceError):
                compile_source(source, Language.SLANG)

    @pytest.mark.slow
    def test_no_entry_point(self) -> None:
        needs(Language.SLANG)
        with pytest.raises(InvalidArgumentError, match=r"there is no entry point: mark a function with \[shader"):
            compile_source("int f() { return 1; }\n", Language.SLANG)

    @pytest.mark.slow
    def test_a_source_of_another_language_gets_a_hint(self, tmp_path: Path) -> None:
        needs(Language.SLANG)
        with pytest.raises(InvalidArgumentError, match=r"looks like GLSL; if it is, say so: language glsl"):
            compile_source("#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n", Language.SLANG)
        path = tmp_path / "k.comp"
        path.write_text("[numthreads(1, 1, 1)] void main() {}\n")
        with pytest.raises(InvalidArgumentError, match=r"looks like HLSL or Slang"):
            compile_source(path, Language.GLSL)
        path.write_text("#version 450\nlayout(local_size_x = 1) in;\n")
        with pytest.raises(InvalidArgumentError, match=r"(?i)entry point") as info:
            compile_source(path, Language.GLSL)
        assert info.value.location == str(path)

    @pytest.mark.slow
    def test_a_file_name_in_a_text_gets_a_hint(self) -> None:
        needs(Language.SLANG)
        with pytest.raises(InvalidArgumentError, match=r"pathlib\.Path"):
            compile_source("kernels/mul.slang", Language.SLANG)


class TestFinding:
    """Which compiler is taken, and what to install where there is none."""

    @pytest.fixture
    def empty(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """PATH is a folder without compilers, and no wheel has one."""
        folder = tmp_path / "bin"
        folder.mkdir()
        monkeypatch.setenv("PATH", str(folder))
        for variable in ("PUMICE_GLSLC", "PUMICE_HLSLC", "PUMICE_SLANGC", "PUMICE_WGSLC", "PUMICE_SPIRV_TOOLS"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setattr(find.slang, "_PACKAGE", "no_such_package")
        return folder

    @pytest.mark.parametrize(
        ("language", "remedy"),
        [
            (Language.GLSL, "glslang"),
            (Language.HLSL, r"pip install 'pumice\[slang\]'.*PUMICE_HLSLC"),
            (Language.SLANG, r"pip install 'pumice\[slang\]'.*PUMICE_SLANGC"),
            (Language.WGSL, "cargo install naga-cli.*naga-wasm.*PUMICE_WGSLC"),
            (Language.ASSEMBLY, "spirv-tools"),
        ],
    )
    def test_none(self, empty: Path, language: Language, remedy: str) -> None:
        with pytest.raises(UnavailableError, match=rf"(?s){remedy}"):
            compile_source("x\n", language)

    @pytest.mark.parametrize("variable", ["PUMICE_HLSLC", "PUMICE_SLANGC", "PUMICE_WGSLC"])
    def test_a_variable_that_names_nothing(self, empty: Path, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(variable, "/nowhere/compiler")
        language = {"H": Language.HLSL, "S": Language.SLANG, "W": Language.WGSL}[variable[7]]
        with pytest.raises(UnavailableError, match=f"{variable} is '/nowhere/compiler', which is not an executable"):
            find.find_compiler(language)

    @posix
    @pytest.mark.parametrize("name", ["glslangValidator", "glslang"])
    def test_glslang_is_the_last_of_hlsl(self, empty: Path, name: str) -> None:
        for command, said in ((name, "Glslang Version: 11:15.1.0"), ("dxc", "libdxcompiler.so: 1.8")):
            script = empty / command
            script.write_text(f"#!{shutil.which('sh', path=os.defpath)}\necho '{said}'\n")
            script.chmod(0o755)
            assert find.find_compiler(Language.HLSL).path == script

    @posix
    @pytest.mark.parametrize(
        ("name", "language", "said", "location"),
        [
            ("dxc", Language.HLSL, "NAME:3:11: error: use of undeclared identifier 'missing'", "<source>:3:11"),
            ("slangc", Language.SLANG, "NAME(3): error 30015: undefined identifier 'missing'.", "<source>:3"),
            ("tint", Language.WGSL, "NAME:3:11 error: unresolved value 'missing'", "<source>:3:11"),
            ("naga", Language.WGSL, "error: no definition\n  \u250c\u2500 NAME:3:11\n", "<source>:3:11"),
        ],
    )
    def test_command_lines_and_messages(
        self, empty: Path, name: str, language: Language, said: str, location: str
    ) -> None:
        """Of compilers that may not be here, by a script that writes down its arguments and complains."""
        log = empty / "arguments"
        tool = empty / name
        tool.write_text(
            f"#!{shutil.which('sh', path=os.defpath)}\n"
            f'case "$1" in --version|-version) echo "{name} 1.2.3"; exit 0;; esac\n'
            f'echo "$@" > {log}\nfor last in "$@"; do case "$last" in source.*|/*/source.*) source=$last;; esac; done\n'
            f'printf "%s\\n" "{said}" | /bin/sed "s|NAME|$source|" >&2; exit 1\n'
        )
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        with pytest.raises(InvalidArgumentError) as info:
            compile_source(WRONG[language], language, entry_point="f", target_env="vulkan1.1")
        assert info.value.location == location
        assert "y = missing;" in info.value.message
        assert f"(compiled with {name} {name} 1.2.3)" in info.value.message
        arguments = log.read_text()
        expected = {
            "dxc": "-spirv -T cs_6_6 -E f -fspv-target-env=vulkan1.1 -Zpr",
            "slangc": "-lang slang -target spirv -profile spirv_1_3 -fvk-use-entrypoint-name -matrix-layout-row-major",
            "tint": "--format spirv -o",
            "naga": "--generate-debug-symbols source.wgsl",
        }[name]
        assert expected in arguments
