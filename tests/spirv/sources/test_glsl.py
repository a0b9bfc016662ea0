"""`compile_glsl`: options, errors with their place, includes, and the cache."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.waiting import in_threads

from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.sources import glsl
from pumice.spirv.sources.commands import Glslc
from pumice.spirv.sources.glsl import compile_glsl
from pumice.spirv.sources.includes import included_files
from pumice.status import InvalidArgumentError, NotFoundError, PumiceError, UnavailableError

KERNEL = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n"
INCLUDING = """#version 450
#extension GL_GOOGLE_include_directive : require
#include "part.glsl"
layout(local_size_x = WIDTH) in;
void main() {}
"""


def _have_compiler() -> bool:
    try:
        glsl.find_compiler()
        spirv_tools.find_tool("spirv-dis")
    except UnavailableError:
        return False
    return True


needs_compiler = pytest.mark.skipif(not _have_compiler(), reason="no GLSL compiler or no SPIRV-Tools installed")
posix = pytest.mark.skipif(sys.platform == "win32", reason="makes an executable out of a shell script")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(folder))
    monkeypatch.delenv("PUMICE_CACHE", raising=False)
    return folder


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Grows by one entry each time that a compiler is started to compile."""
    started: list[Path] = []
    run = spirv_tools.run_tool

    def counted(executable: Path, *args: object, **options: object) -> object:
        # Only a compile chooses its working directory.
        if options.get("cwd") is not None:
            started.append(executable)
        return run(executable, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(spirv_tools, "run_tool", counted)
    return started


def entries(cache: Path) -> list[Path]:
    return sorted(cache.glob("*/glsl/*/*.entry"))


def local_size(code: bytes) -> str:
    line = next(line for line in spirv_tools.disassemble(code).splitlines() if "LocalSize" in line)
    return line.split("LocalSize")[1].strip()


@needs_compiler
class TestOptions:
    @pytest.mark.parametrize(
        ("target", "version"),
        [("vulkan1.0", 0x10000), ("vulkan1.1", 0x10300), ("spirv1.0", 0x10000), ("spirv1.4", 0x10400)],
    )
    def test_target_env(self, target: str, version: int) -> None:
        code = compile_glsl(KERNEL, target_env=target)
        spirv_tools.validate(code, target_env=target.replace("spirv", "spv"))
        assert int.from_bytes(code[4:8], sys.byteorder) == version

    def test_default_target(self) -> None:
        code = compile_glsl(KERNEL)
        spirv_tools.validate(code)
        assert int.from_bytes(code[4:8], sys.byteorder) == 0x10500

    def test_defines(self) -> None:
        source = """#version 450
        #if !defined(FLAG) || ON != 1
        #error not defined
        #endif
        layout(local_size_x = A, local_size_y = B) in;
        void main() {}
        """
        code = compile_glsl(source, defines={"A": 3, "B": "(1 + 4)", "FLAG": "", "ON": True})
        assert local_size(code) == "3 5 1"

    def test_stage(self) -> None:
        code = compile_glsl("#version 450\nvoid main() { gl_Position = vec4(0); }\n", stage="vert")
        assert "OpEntryPoint Vertex" in spirv_tools.disassemble(code)

    @pytest.mark.slow
    def test_optimize(self) -> None:
        source = KERNEL.replace("{}", "{ uint a = 1; for (uint i = 0; i < 4; ++i) a += i; }")
        plain, optimized = compile_glsl(source), compile_glsl(source, optimize=True)
        spirv_tools.validate(optimized)
        assert len(optimized) < len(plain)

    @pytest.mark.slow
    def test_debug_keeps_the_source_and_no_temporary_path(self) -> None:
        text = spirv_tools.disassemble(compile_glsl(KERNEL, debug=True))
        assert "OpLine" in text
        assert "local_size_x" in text
        assert "pumice-glsl-" not in text
        assert "OpLine" not in spirv_tools.disassemble(compile_glsl(KERNEL))

    def test_text_and_file_give_the_same_module(self, tmp_path: Path) -> None:
        file = tmp_path / "with space é.comp"
        file.write_text(KERNEL, encoding="utf-8")
        assert compile_glsl(file) == compile_glsl(KERNEL)

    @pytest.mark.slow
    @pytest.mark.parametrize("debug", [False, True])
    def test_a_byte_order_mark_is_passed_over(self, tmp_path: Path, debug: bool) -> None:
        for name, width in (("near", 3), ("far", 5)):
            (tmp_path / name).mkdir()
            (tmp_path / name / "part.glsl").write_text(f"#define WIDTH {width}\n", encoding="utf-8")
        plain, marked = tmp_path / "near" / "plain.comp", tmp_path / "near" / "marked.comp"
        plain.write_text(INCLUDING, encoding="utf-8")
        marked.write_text(INCLUDING, encoding="utf-8-sig")
        code = compile_glsl(marked, include_dirs=[tmp_path / "far"], debug=debug)
        if debug:
            assert b"pumice-glsl-" not in code  # the temporary folder
        else:
            assert code == compile_glsl(plain, include_dirs=[tmp_path / "far"])
        assert compile_glsl("\ufeff" + KERNEL, debug=debug) == compile_glsl(KERNEL, debug=debug)
        # A change of the neighbour shows, although the file is compiled elsewhere.
        (tmp_path / "near" / "part.glsl").write_text("#define WIDTH 7\n", encoding="utf-8")
        assert compile_glsl(marked, include_dirs=[tmp_path / "far"], debug=debug) != code
        assert list(included_files(marked)) == [tmp_path / "near" / "part.glsl"]

    @pytest.mark.slow
    @pytest.mark.parametrize("debug", [False, True])
    def test_include_needs_no_extension(self, tmp_path: Path, debug: bool) -> None:
        (tmp_path / "part.glsl").write_text("#define WIDTH 3\n")
        file = tmp_path / "plain.comp"
        plain = INCLUDING.replace("#extension GL_GOOGLE_include_directive : require\n", "// #version 100\n")
        file.write_text("/* #version\n1 */ // x\n" + plain)
        assert local_size(compile_glsl(file, debug=debug)) == "3 1 1"
        assert local_size(compile_glsl(plain, include_dirs=[tmp_path], debug=debug)) == "3 1 1"
        file.write_text(file.read_text().replace("{}", "{ missing; }"))
        with pytest.raises(InvalidArgumentError, match="'missing' : undeclared") as info:
            compile_glsl(file, debug=debug)
        assert info.value.location == f"{file}:7"
        assert "7 | void main() { missing; }" in info.value.message

    def test_debug_names_a_file_that_includes(self, tmp_path: Path) -> None:
        (tmp_path / "part.glsl").write_text("#define WIDTH 3\nfloat part() { return 1.0; }\n")
        file = tmp_path / "k.comp"
        file.write_text(INCLUDING.replace("#extension GL_GOOGLE_include_directive : require\n", ""))
        text = spirv_tools.disassemble(compile_glsl(file, debug=True))
        assert f'OpString "{file}"' in text
        assert f'OpString "{tmp_path / "part.glsl"}"' in text
        assert "OpLine" in text
        assert " 4 " in next(line for line in reversed(text.splitlines()) if "OpLine" in line)

    def test_relative_path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "k.comp").write_text(KERNEL)
        monkeypatch.chdir(tmp_path)
        assert compile_glsl(Path("k.comp")) == compile_glsl(KERNEL)


@needs_compiler
class TestErrors:
    def test_line_excerpt_and_caret(self) -> None:
        source = KERNEL.replace("{}", "{\n\tfloat y = missing + 1;\n}")
        with pytest.raises(InvalidArgumentError, match="'missing' : undeclared identifier") as info:
            compile_glsl(source)
        assert info.value.location == "<source>:4"
        lines = str(info.value).splitlines()
        excerpt = next(i for i, line in enumerate(lines) if "float y" in line)
        assert lines[excerpt].lstrip().startswith("4 |")
        column = lines[excerpt].index("missing")
        assert lines[excerpt + 1].index("^") == column
        assert lines[excerpt + 1].count("^") == len("missing")

    def test_location_is_the_file_as_given(self, tmp_path: Path) -> None:
        file = tmp_path / "bad.comp"
        file.write_text(KERNEL.replace("{}", "{ int x = ; }"))
        with pytest.raises(InvalidArgumentError) as info:
            compile_glsl(file)
        assert info.value.location == f"{file}:3"
        assert "int x = ;" in info.value.message

    def test_error_inside_an_included_file(self, tmp_path: Path) -> None:
        (tmp_path / "part.glsl").write_text("#define WIDTH 1\n\nint f() { return nothing; }\n")
        with pytest.raises(InvalidArgumentError, match=r"part\.glsl:3") as info:
            compile_glsl(INCLUDING, include_dirs=[tmp_path])
        assert "int f() { return nothing; }" in info.value.message

    @pytest.mark.slow
    def test_byte_order_marks(self, tmp_path: Path) -> None:
        path = tmp_path / "kernel.comp"
        path.write_text("#version 450\nvoid main() {\n  nonsense;\n}\n", encoding="utf-8-sig")
        with pytest.raises(InvalidArgumentError, match="nonsense") as caught:
            compile_glsl(path)
        assert caught.value.location == f"{path}:3"
        path.write_text(INCLUDING, encoding="utf-8")
        part = tmp_path / "part.glsl"
        part.write_text("#define WIDTH 3\n", encoding="utf-8-sig")
        with pytest.raises(InvalidArgumentError, match=rf"{part} starts with a byte order mark"):
            compile_glsl(path)

    def test_missing_include(self) -> None:
        with pytest.raises(InvalidArgumentError, match=r"part\.glsl"):
            compile_glsl(INCLUDING)

    def test_failures_without_a_line(self) -> None:
        with pytest.raises(InvalidArgumentError, match="does not compile"):
            compile_glsl("")
        with pytest.raises(InvalidArgumentError, match=r"(?i)entry point"):
            compile_glsl("#version 450\nlayout(local_size_x = 1) in;\n")

    def test_a_file_name_in_a_str_gets_a_hint(self) -> None:
        with pytest.raises(InvalidArgumentError, match=r"pathlib\.Path"):
            compile_glsl("kernels/mul.comp")

    def test_many_errors_are_cut(self) -> None:
        source = KERNEL.replace("{}", "{\n" + "".join(f"float({i}) = v{i};\n" for i in range(40)) + "}")
        with pytest.raises(InvalidArgumentError) as info:
            compile_glsl(source)
        assert len(info.value.message) < 8000

    @pytest.mark.parametrize("source", ["\0", "#version 450\n\xff\n", "#line 99999999\nx", "#version 99", "(" * 5000])
    def test_odd_sources(self, source: str) -> None:
        with pytest.raises(PumiceError):
            compile_glsl(source)

    def test_failures_are_not_cached(self, cache: Path) -> None:
        with pytest.raises(InvalidArgumentError):
            compile_glsl("nonsense")
        assert entries(cache) == []


class TestArguments:
    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(NotFoundError, match=r"nothing\.comp"):
            included_files(tmp_path / "nothing.comp")

    def test_folder_instead_of_file(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match="readable"):
            included_files(tmp_path)

    @pytest.mark.parametrize("name", ["", "1A", "A B", "A=1", "A\n", "-D"])
    def test_define_name(self, name: str) -> None:
        with pytest.raises(InvalidArgumentError, match="identifier"):
            compile_glsl(KERNEL, defines={name: 1})

    @pytest.mark.parametrize("value", ["1\n#error", "\r", "\0"])
    def test_define_value(self, value: str) -> None:
        with pytest.raises(InvalidArgumentError, match="one line"):
            compile_glsl(KERNEL, defines={"A": value})

    def test_stage_and_target(self) -> None:
        with pytest.raises(InvalidArgumentError, match="stage"):
            compile_glsl(KERNEL, stage="compute")
        with pytest.raises(InvalidArgumentError, match="target_env"):
            compile_glsl(KERNEL, target_env="opengl")

    def test_text_beyond_utf8(self) -> None:
        with pytest.raises(InvalidArgumentError, match="UTF-8"):
            included_files("// \ud800")


class TestIncludedFiles:
    def test_nested_in_comments_and_missing(self, tmp_path: Path) -> None:
        (tmp_path / "inner").mkdir()
        (tmp_path / "inner" / "a.glsl").write_text('#include "b.glsl"\n')
        (tmp_path / "inner" / "b.glsl").write_text("")
        (tmp_path / "c.glsl").write_text("")
        (tmp_path / "no.glsl").write_text("")
        source = '#inc\\\nlude "inner/a.glsl"\n # include <c.glsl>\n// #include "no.glsl"\n/*\n#include "no.glsl"\n*/\n'
        files = included_files(source + '#include "missing.glsl"\n', [tmp_path])
        assert [path.relative_to(tmp_path).as_posix() for path in files] == ["c.glsl", "inner/a.glsl", "inner/b.glsl"]

    def test_all_candidates_count(self, tmp_path: Path) -> None:
        for name in ("x", "y"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "part.glsl").write_text(name)
        files = included_files('#include "part.glsl"', [tmp_path / "x", tmp_path / "y"])
        assert sorted(files.values()) == [b"x", b"y"]

    def test_a_ring_without_guard_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a.glsl").write_text('#include "b.glsl"\n')
        (tmp_path / "b.glsl").write_text('#include "a.glsl"\n')
        with pytest.raises(InvalidArgumentError, match=r"a\.glsl, .*b\.glsl.*include guard"):
            included_files('#include "a.glsl"', [tmp_path])
        with pytest.raises(InvalidArgumentError, match="include guard"):
            compile_glsl(INCLUDING.replace("part", "a"), include_dirs=[tmp_path])

    def test_a_file_that_includes_itself(self, tmp_path: Path) -> None:
        file = tmp_path / "self.comp"
        file.write_text('#include "self.comp"\n')
        with pytest.raises(InvalidArgumentError, match=r"self\.comp.*include guard"):
            included_files(file)

    @needs_compiler
    def test_a_guarded_ring_compiles(self, tmp_path: Path) -> None:
        (tmp_path / "part.glsl").write_text(
            '// guard\n#ifndef P\n#define P\n#include "b.glsl"\n#define WIDTH 6\n#endif\n'
        )
        (tmp_path / "b.glsl").write_text('#include "part.glsl"\n')
        assert local_size(compile_glsl(INCLUDING, include_dirs=[tmp_path])) == "6 1 1"


@needs_compiler
class TestCache:
    def test_second_compile_starts_nothing(self, compiles: list[Path], cache: Path) -> None:
        first = compile_glsl(KERNEL)
        assert compile_glsl(KERNEL) == first
        assert len(compiles) == 1
        assert len(entries(cache)) == 1

    @pytest.mark.slow
    def test_every_option_counts(self, compiles: list[Path], tmp_path: Path) -> None:
        compile_glsl(KERNEL)
        compile_glsl(KERNEL + " ")
        compile_glsl(KERNEL, debug=True)
        compile_glsl(KERNEL, optimize=True)
        compile_glsl(KERNEL, target_env="vulkan1.1")
        compile_glsl(KERNEL, defines={"A": 1})
        compile_glsl(KERNEL, defines={"A": 2})
        compile_glsl(KERNEL, include_dirs=[tmp_path])
        assert len(compiles) == 8

    def test_order_of_defines_does_not_count(self, compiles: list[Path]) -> None:
        compile_glsl(KERNEL, defines={"A": 1, "B": 2})
        compile_glsl(KERNEL, defines={"B": 2, "A": 1})
        assert len(compiles) == 1

    def test_switched_off(self, compiles: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PUMICE_CACHE", "0")
        assert compile_glsl(KERNEL) == compile_glsl(KERNEL)
        assert len(compiles) == 2
        assert not cache.exists()

    @pytest.mark.slow
    def test_an_included_file_that_changes(self, tmp_path: Path) -> None:
        part = tmp_path / "part.glsl"
        for width in (4, 5):
            part.write_text(f"#define WIDTH {width}\n")
            assert local_size(compile_glsl(INCLUDING, include_dirs=[tmp_path])) == f"{width} 1 1"

    @pytest.mark.slow
    def test_an_included_file_that_appears_earlier_in_the_path(self, tmp_path: Path) -> None:
        early, late = tmp_path / "early", tmp_path / "late"
        early.mkdir()
        late.mkdir()
        (late / "part.glsl").write_text("#define WIDTH 4\n")
        assert local_size(compile_glsl(INCLUDING, include_dirs=[early, late])) == "4 1 1"
        (early / "part.glsl").write_text("#define WIDTH 5\n")
        assert local_size(compile_glsl(INCLUDING, include_dirs=[early, late])) == "5 1 1"

    @pytest.mark.parametrize("damage", [b"", b"short", None])
    def test_a_damaged_entry_is_rebuilt(self, compiles: list[Path], cache: Path, damage: bytes | None) -> None:
        first = compile_glsl(KERNEL)
        (entry,) = entries(cache)
        good = entry.read_bytes()
        entry.write_bytes(good[:-1] + bytes([good[-1] ^ 1]) if damage is None else damage)
        assert compile_glsl(KERNEL) == first
        assert len(compiles) == 2
        assert entries(cache) == [entry]
        assert entry.read_bytes() == good

    @pytest.mark.slow
    def test_a_cache_that_cannot_be_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = tmp_path / "file"
        file.write_text("")
        monkeypatch.setenv("PUMICE_CACHE_DIR", str(file))
        spirv_tools.validate(compile_glsl(KERNEL))

    def test_a_file_that_changes_during_the_compile_is_not_cached(
        self, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "k.comp"
        file.write_text(KERNEL)
        run = spirv_tools.run_tool

        def changing(executable: Path, *args: object, **options: object) -> object:
            if options.get("cwd") is not None:
                file.write_text(KERNEL + "// later\n")
            return run(executable, *args, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(spirv_tools, "run_tool", changing)
        compile_glsl(file)
        assert entries(cache) == []

    @pytest.mark.slow
    def test_threads(self, cache: Path) -> None:
        results: list[bytes] = []
        in_threads(lambda _: results.append(compile_glsl(KERNEL)), range(6))
        assert len(results) == 6
        assert len(set(results)) == 1
        assert len(entries(cache)) == 1


class TestFindCompiler:
    def test_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("PUMICE_GLSLC", raising=False)
        with pytest.raises(UnavailableError, match=r"(?s)glslangValidator.*Install.*PUMICE_GLSLC"):
            compile_glsl(KERNEL)

    def test_wrong_override(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PUMICE_GLSLC", str(tmp_path / "absent"))
        with pytest.raises(UnavailableError, match="absent"):
            glsl.find_compiler()

    @posix
    def test_an_override_that_is_no_compiler(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fake = tmp_path / "fake"
        fake.write_text("#!/bin/sh\necho something else 1.0\n")
        fake.chmod(0o755)
        monkeypatch.setenv("PUMICE_GLSLC", str(fake))
        with pytest.raises(UnavailableError, match="something else"):
            glsl.find_compiler()

    @needs_compiler
    def test_version_is_asked_for_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first = glsl.find_compiler()

        def unexpected(*_: object, **__: object) -> None:
            raise AssertionError("a process was started")

        monkeypatch.setattr(spirv_tools, "run_tool", unexpected)
        assert glsl.find_compiler() == first


@posix
@needs_compiler
class TestGlslc:
    """glslc's command line and messages, by a script in its place that compiles with the installed compiler."""

    @pytest.fixture(autouse=True)
    def glslc(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.delenv("PUMICE_GLSLC", raising=False)
        real = glsl.find_compiler()
        if isinstance(real, Glslc):
            pytest.skip("glslc is the installed compiler: the other tests are about it")
        log = tmp_path / "arguments"
        fake = tmp_path / "fake-glslc"
        fake.write_text(f"""#!/bin/sh
if [ "$1" = --version ]; then
    printf 'shaderc v2023.2 v2023.2\\nspirv-tools v2023.1\\nglslang 11.1.0-1\\n\\nTarget: SPIR-V 1.0\\n'; exit 0
fi
echo "$@" > {log}
out=; last=
for a in "$@"; do [ "$last" = -o ] && out=$a; last=$a; done
if grep -q bad "$last"; then
    echo "$last:3: error: 'bad' : undeclared identifier" >&2; echo '1 error generated.' >&2; exit 1
fi
exec {real.path} -V -S comp -o "$out" "$last"
""")
        fake.chmod(0o755)
        monkeypatch.setenv("PUMICE_GLSLC", str(fake))
        return log

    def test_arguments(self, glslc: Path) -> None:
        compiler = glsl.find_compiler()
        assert isinstance(compiler, Glslc)
        assert compiler.version.startswith("shaderc v2023.2")
        spirv_tools.validate(compile_glsl(KERNEL, target_env="vulkan1.1", defines={"A": 1}, include_dirs=["inc"]))
        said = glslc.read_text().split()
        assert said[:3] == ["-fshader-stage=comp", "--target-env=vulkan1.1", "-fauto-bind-uniforms"]
        assert "-DA=1" in said
        assert f"-I{Path.cwd() / 'inc'}" in said

    def test_errors(self, tmp_path: Path) -> None:
        file = tmp_path / "wrong.comp"
        file.write_text(KERNEL.replace("{}", "{ bad; }"))
        with pytest.raises(InvalidArgumentError, match="'bad' : undeclared") as info:
            compile_glsl(file)
        assert info.value.location == f"{file}:3"
        assert "void main() { bad; }" in info.value.message
