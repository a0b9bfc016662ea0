"""The built shaders: current, valid, portable, and with the interface that Python and the cases state."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support import shader_references as references
from support.shader_tools import needs_compiler, needs_tools

from pumice import shaders
from pumice.shaders import build
from pumice.spirv import glsl
from pumice.spirv import tools as spirv_tools
from pumice.status import InvalidArgumentError, NotFoundError, OutOfRangeError

every_shader = pytest.mark.parametrize("name", shaders.names())

# What every Vulkan device takes: minimum limits of the Vulkan 1.1 specification, "Required Limits".
MIN_INVOCATIONS = 128
MIN_LOCAL_SIZE = (128, 128, 64)
MIN_SHARED_BYTES = 16384
MIN_PUSH_BYTES = 128
# Shaders that are there to try what not every device has; their results are checked where they are used.
EXTRA_CAPABILITIES = {"timing/mul_address": {"PhysicalStorageBufferAddresses"}}


@dataclass
class Interface:
    """What spirv-dis shows of a module's interface."""

    bindings: dict[int, bool]
    """Whether the shader may write it, by binding number."""
    push_offsets: list[int]
    local_size: tuple[int, int, int]
    spec_ids: set[int]
    capabilities: set[str]


def interface(code: bytes) -> Interface:
    text = spirv_tools.disassemble(code)

    def group(pattern: str) -> list[tuple[str, ...]]:
        return [match.groups() for match in re.finditer(pattern, text)]

    numbers = {name: int(number) for name, number in group(r"OpDecorate (%\S+) Binding (\d+)")}
    assert {number for _, number in group(r"OpDecorate (%\S+) DescriptorSet (\d+)")} <= {"0"}
    types = {pair[0]: pair[1] for pair in group(r"(%\S+) = OpVariable (%\S+) StorageBuffer")}
    pointed = {pair[0]: pair[1] for pair in group(r"(%\S+) = OpTypePointer \S+ (%\S+)")}
    read_only = {name for name, _ in group(r"OpMemberDecorate (%\S+) (\d+) NonWritable")}
    read_only |= {name for (name,) in group(r"OpDecorate (%\S+) NonWritable")}
    bindings = {
        numbers[variable]: pointed[pointer] not in read_only and variable not in read_only
        for variable, pointer in types.items()
    }
    push = {pointed[pointer] for _, pointer in group(r"(%\S+) = OpVariable (%\S+) PushConstant")}
    offsets = [int(offset) for struct, offset in group(r"OpMemberDecorate (%\S+) \d+ Offset (\d+)") if struct in push]
    size = re.search(r"LocalSize (\d+) (\d+) (\d+)", text)
    assert size is not None
    return Interface(
        bindings,
        sorted(offsets),
        (int(size[1]), int(size[2]), int(size[3])),
        {int(number) for _, number in group(r"OpDecorate (%\S+) SpecId (\d+)")},
        {name for (name,) in group(r"OpCapability (\w+)")},
    )


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PUMICE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("PUMICE_CACHE", raising=False)
        yield


class TestNames:
    def test_names_are_the_sources(self) -> None:
        folder = shaders.source_path("mul").parent
        assert set(shaders.names()) == {
            p.relative_to(folder).with_suffix("").as_posix() for p in folder.rglob("*.comp")
        }
        assert {kernel.name for kernel in shaders.BUILTIN_KERNELS} <= set(shaders.names())

    @pytest.mark.parametrize("name", ["", "nothing", "mul.comp", "../mul", "/mul"])
    def test_unknown(self, name: str) -> None:
        for function in (shaders.path, shaders.source_path, shaders.spirv):
            with pytest.raises(NotFoundError, match="builtin/fill_unaligned"):
                function(name)


@every_shader
class TestBuilt:
    def test_hashes_are_those_of_the_manifest(self, name: str) -> None:
        entry = build.read_manifest()[name]
        assert entry.source_sha256 == build.source_hash(name)
        assert entry.spirv_sha256 == hashlib.sha256(shaders.path(name).read_bytes()).hexdigest()
        assert shaders.spirv(name) == shaders.path(name).read_bytes()

    @needs_tools
    @pytest.mark.parametrize("target", ["vulkan1.1", "vulkan1.2"])
    def test_valid(self, name: str, target: str) -> None:
        spirv_tools.validate(shaders.spirv(name), target_env=target)

    @needs_tools
    def test_portable(self, name: str) -> None:
        found = interface(shaders.spirv(name))
        assert found.capabilities == {"Shader"} | EXTRA_CAPABILITIES.get(name, set())
        assert np.prod(found.local_size) <= MIN_INVOCATIONS
        assert all(size <= limit for size, limit in zip(found.local_size, MIN_LOCAL_SIZE, strict=True))
        assert 4 * len(found.push_offsets) <= MIN_PUSH_BYTES
        assert "float64" not in spirv_tools.disassemble(shaders.spirv(name))

    @needs_compiler
    @needs_tools
    def test_valid_when_optimized(self, name: str) -> None:
        code = glsl.compile_glsl(shaders.source_path(name), target_env=build.TARGET_ENV, optimize=True)
        spirv_tools.validate(code, target_env=build.TARGET_ENV)

    def test_header(self, name: str) -> None:
        text = shaders.source_path(name).read_text(encoding="utf-8")
        header = text[: text.index("#version")]
        for word in ("Binding", "Push constants", "Groups"):
            assert word in header
        assert header.startswith("// ")


class TestBuild:
    @pytest.fixture
    def copy(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        folder = tmp_path / "shaders"
        shutil.copytree(shaders.source_path("mul").parent, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
        monkeypatch.setattr(shaders, "_FOLDER", folder)
        monkeypatch.setattr(build, "MANIFEST", folder / "manifest.json")
        shaders.names.cache_clear()
        shaders.spirv.cache_clear()
        yield folder
        shaders.names.cache_clear()
        shaders.spirv.cache_clear()

    @pytest.mark.slow
    def test_current(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert build.stale() == {}
        assert build.main(["--check"]) == 0
        assert f"0 stale of {len(shaders.names())}" in capsys.readouterr().out

    def test_line_endings_do_not_count(self, copy: Path) -> None:
        for file in (*copy.rglob("*.comp"), *copy.rglob("*.glsl")):
            file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
        manifest = build.read_manifest()
        assert {name: build.source_hash(name) for name in shaders.names()} == {
            name: entry.source_sha256 for name, entry in manifest.items()
        }

    @pytest.mark.slow
    def test_a_changed_include_makes_what_includes_it_stale(self, copy: Path) -> None:
        file = copy / "builtin" / "byte_range.glsl"
        file.write_text(file.read_text() + "// more\n")
        assert build.stale().keys() == {"builtin/fill_unaligned", "builtin/copy_unaligned"}

    def test_each_kind_of_staleness(self, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (copy / "mul.comp").write_text((copy / "mul.comp").read_text() + "// more\n")
        (copy / "builtin" / "empty.spv").unlink()
        code = bytearray((copy / "examples" / "gemv.spv").read_bytes())
        code[-1] ^= 1
        (copy / "examples" / "gemv.spv").write_bytes(code)
        (copy / "new.comp").write_text((copy / "builtin" / "empty.comp").read_text())
        (copy / "examples" / "saxpy.comp").unlink()
        shaders.names.cache_clear()
        reasons = build.stale()
        assert {name: re.findall("source|missing|recorded|not in", reason)[0] for name, reason in reasons.items()} == {
            "mul": "source",
            "builtin/empty": "missing",
            "examples/gemv": "recorded",
            "new": "not in",
            "examples/saxpy": "source",
        }
        assert build.main(["--check"]) == 1
        assert "5 stale" in capsys.readouterr().out

    @needs_compiler
    def test_build_repairs_only_what_is_stale(self, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
        original = (copy / "builtin" / "empty.spv").read_bytes()
        (copy / "builtin" / "empty.spv").unlink()
        (copy / "examples" / "saxpy.comp").unlink()
        shaders.names.cache_clear()
        assert build.main([]) == 0
        assert capsys.readouterr().out == "built builtin/empty\n"
        assert build.stale() == {}
        assert "examples/saxpy" not in build.read_manifest()
        if build.read_manifest()["mul"].compiler == glsl.find_compiler().version:
            assert (copy / "builtin" / "empty.spv").read_bytes() == original

    @pytest.mark.slow
    @needs_compiler
    def test_build_all_is_reproducible(self, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PUMICE_CACHE", "0")
        build.build(everything=True)
        first = {path: path.read_bytes() for path in copy.rglob("*.spv")}
        assert build.build(everything=True) == shaders.names()
        assert {path: path.read_bytes() for path in copy.rglob("*.spv")} == first
        assert build.stale() == {}

    @needs_compiler
    def test_a_recorded_module_that_the_same_compiler_does_not_make(self, copy: Path) -> None:
        build.build(everything=True)
        code = (copy / "builtin" / "empty.spv").read_bytes()
        (copy / "mul.spv").write_bytes(code)
        text = (copy / "manifest.json").read_text()
        manifest = build.read_manifest()
        text = text.replace(manifest["mul"].spirv_sha256, hashlib.sha256(code).hexdigest())
        (copy / "manifest.json").write_text(text)
        assert list(build.stale()) == ["mul"]
        assert "another SPIR-V" in build.stale()["mul"]
        # Another compiler version makes no such promise.
        (copy / "manifest.json").write_text(text.replace(manifest["mul"].compiler, "glslang of another day"))
        assert build.stale() == {}

    def test_check_needs_no_compiler(self, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PUMICE_GLSLC", str(copy / "absent"))
        assert build.stale() == {}
        (copy / "mul.spv").unlink()
        assert list(build.stale()) == ["mul"]
        assert build.main([]) == 2
        with pytest.raises(NotFoundError, match=r"pumice\.shaders\.build"):
            shaders.spirv("mul")

    @pytest.mark.parametrize(
        "text", ["", "[]", "{}", '{"format": 2, "shaders": {}}', '{"format": 1, "shaders": {"mul": {}}}', "\udcff"]
    )
    def test_a_damaged_manifest_makes_all_stale(self, copy: Path, text: str) -> None:
        (copy / "manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
        assert build.read_manifest() == {}
        assert build.stale().keys() == set(shaders.names())

    @needs_compiler
    def test_a_source_that_does_not_compile(self, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (copy / "mul.comp").write_text("#version 450\nvoid main() { x; }\n")
        assert build.main([]) == 2
        assert "mul.comp:2" in capsys.readouterr().err


class TestBuiltinKernels:
    @needs_tools
    @pytest.mark.parametrize("kernel", shaders.BUILTIN_KERNELS, ids=lambda kernel: kernel.name)
    def test_interface_is_that_of_the_module(self, kernel: shaders.BuiltinKernel) -> None:
        found = interface(kernel.spirv())
        assert found.local_size == kernel.local_size
        assert sorted(found.bindings) == list(range(len(kernel.bindings)))
        assert found.push_offsets == [4 * index for index in range(len(kernel.push_fields))]
        assert found.spec_ids == set()
        assert kernel.push_size == 4 * len(found.push_offsets)
        names = re.findall(r'OpMemberName %Push \d+ "(\w+)"', spirv_tools.disassemble(kernel.spirv()))
        assert tuple(names) == kernel.push_fields

    def test_pack_push(self) -> None:
        packed = shaders.COPY_UNALIGNED.pack_push(size=3, source_offset=1, target_offset=0xFFFFFFFF)
        assert np.frombuffer(packed, "<u4").tolist() == [1, 0xFFFFFFFF, 3]
        assert shaders.EMPTY.pack_push() == b""

    @pytest.mark.parametrize("values", [{}, {"offset": 1, "size": 1}, {"offset": 1, "size": 1, "pattern": 1, "x": 1}])
    def test_pack_push_wants_each_field_once(self, values: dict[str, int]) -> None:
        with pytest.raises(InvalidArgumentError, match="offset, size, pattern"):
            shaders.FILL_UNALIGNED.pack_push(**values)

    @pytest.mark.parametrize("value", [-1, 2**32])
    def test_pack_push_range(self, value: int) -> None:
        with pytest.raises(OutOfRangeError, match="size"):
            shaders.FILL_UNALIGNED.pack_push(offset=0, size=value, pattern=0)

    @pytest.mark.parametrize("size", [1, 2, 4])
    def test_repeat_pattern(self, size: int) -> None:
        pattern = bytes(range(0x81, 0x81 + size))
        words = np.array([shaders.repeat_pattern(pattern)], "<u4")
        assert words.tobytes() == np.resize(np.frombuffer(pattern, np.uint8), 4).tobytes()

    @pytest.mark.parametrize("pattern", [b"", b"123", b"12345678"])
    def test_repeat_pattern_lengths(self, pattern: bytes) -> None:
        with pytest.raises(InvalidArgumentError, match=f"got {len(pattern)} bytes"):
            shaders.repeat_pattern(pattern)

    @pytest.mark.parametrize("offset", range(5))
    def test_groups_cover_the_words(self, offset: int) -> None:
        for size in (0, 1, 2, 3, 4, 255, 256, 257, 1021):
            words = {byte // 4 for byte in range(offset, offset + size)}
            groups = shaders.FILL_UNALIGNED.groups(offset, size)
            assert groups >= 1
            assert groups * 64 >= len(words)
            assert groups == 1 or (groups - 1) * 64 < len(words)

    def test_groups_limits(self) -> None:
        assert shaders.COPY_UNALIGNED.groups(0, 2**32 - 1) == 65535
        assert shaders.COPY_UNALIGNED.groups(0, 2**32 - 1, limit=2**31) == 65535
        assert shaders.COPY_UNALIGNED.groups(0, 2**20, limit=7) == 7
        for offset, size in ((0, 2**32), (1, 2**32 - 1), (-1, 4), (0, -1)):
            with pytest.raises(OutOfRangeError, match="split"):
                shaders.FILL_UNALIGNED.groups(offset, size)


class TestCases:
    """The cases fit the modules, so that a device that runs them differs only by what it computes."""

    def test_every_shader_with_buffers_has_a_case(self) -> None:
        assert {case.shader for case in references.CASES} == set(shaders.names()) - {
            "builtin/empty",
            *EXTRA_CAPABILITIES,
        }
        assert len({case.name for case in references.CASES}) == len(references.CASES)

    @needs_tools
    @pytest.mark.parametrize("name", sorted({case.shader for case in references.CASES}))
    def test_cases_fit_the_interface(self, name: str) -> None:
        found = interface(shaders.spirv(name))
        for case in references.CASES:
            if case.shader != name:
                continue
            assert sorted(found.bindings) == list(range(len(case.bindings)))
            assert set(case.spec) <= found.spec_ids
            changed = case.reference([buffer.copy() for buffer in case.buffers])
            assert set(changed) == {case.bindings[number] for number, written in found.bindings.items() if written}
            for index, result in changed.items():
                assert (result.shape, result.dtype) == (case.buffers[index].shape, case.buffers[index].dtype)
            for step in case.passes:
                assert len(step.push) == 4 * len(found.push_offsets)
                assert all(1 <= count <= 65535 for count in step.groups)
            assert all(buffer.nbytes % 4 == 0 and buffer.nbytes > 0 for buffer in case.buffers)

    @pytest.mark.parametrize("name", sorted({case.shader for case in references.CASES}))
    def test_check_notices_a_difference(self, name: str) -> None:
        case = next(
            case
            for case in references.CASES
            if case.shader == name and any(buffer.nbytes > 32 for buffer in case.buffers)
        )
        results = [array.tobytes() for array in case.expected()]
        case.check(results)
        largest = max(range(len(results)), key=lambda index: len(results[index]))
        damaged = bytearray(results[largest])
        damaged[len(damaged) // 8 * 4 + 3] ^= 0x40
        results[largest] = bytes(damaged)
        with pytest.raises(AssertionError, match=f"buffer {largest}"):
            case.check(results)
