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
from support.devices import shader_references as references
from support.devices.shader_tools import needs_compiler, needs_tools

from pumice import shaders
from pumice.shaders import build
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.sources import glsl
from pumice.status import NotFoundError

every_shader = pytest.mark.parametrize("name", shaders.names())

# What every Vulkan device takes: minimum limits of the Vulkan 1.1 specification, "Required Limits".
MIN_INVOCATIONS = 128
MIN_LOCAL_SIZE = (128, 128, 64)
MIN_SHARED_BYTES = 16384
MIN_PUSH_BYTES = 128
# Shaders that are there to try what not every device has; their results are checked where they are used.
EXTRA_CAPABILITIES = {
    "timing/mul_address": {"PhysicalStorageBufferAddresses"},
    "check/atomics_int64": {"Int64", "Int64Atomics"},
    "check/bytes": {"Int8", "Int16", "StorageBuffer8BitAccess", "StorageBuffer16BitAccess"},
    "check/float16": {"Float16", "StorageBuffer16BitAccess"},
    "check/float64": {"Float64"},
    "check/image_3d": {"ImageQuery"},
    "check/image_atomics": {"ImageQuery"},
    "check/image_filter": {"ImageQuery"},
    "check/int64": {"Int64"},
    "check/subgroup_arithmetic": {"GroupNonUniform", "GroupNonUniformArithmetic"},
    "check/subgroup_ballot": {"GroupNonUniform", "GroupNonUniformBallot"},
    "check/subgroup_clustered": {"GroupNonUniform", "GroupNonUniformClustered"},
    "check/subgroup_quad": {"GroupNonUniform", "GroupNonUniformQuad"},
    "check/subgroup_shuffle": {"GroupNonUniform", "GroupNonUniformShuffle"},
    "check/subgroup_shuffle_relative": {"GroupNonUniform", "GroupNonUniformShuffleRelative"},
    "check/subgroup_vote": {"GroupNonUniform", "GroupNonUniformVote"},
    "check/texels": {"SampledBuffer", "ImageBuffer", "ImageQuery"},
    "builtin/mip_1d": {"Sampled1D", "Image1D", "ImageQuery", "StorageImageWriteWithoutFormat"},
    "builtin/mip_2d": {"ImageQuery", "StorageImageWriteWithoutFormat"},
    "builtin/mip_3d": {"ImageQuery", "StorageImageWriteWithoutFormat"},
}


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

    def test_no_constant_has_two_defaults(self, name: str) -> None:
        constants = reflect(shaders.spirv(name)).specialization_constants
        assert [constant for constant in constants if len(constant.defaults) > 1] == []

    @pytest.mark.sample(8)
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

    @pytest.mark.slow
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

    @pytest.mark.slow
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

    @pytest.mark.sample(0)
    @pytest.mark.slow
    @needs_compiler
    def test_build_all_is_reproducible(self, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PUMICE_CACHE", "0")
        # With the compiler that made those which ship, they are the first build.
        if {entry.compiler for entry in build.read_manifest().values()} != {glsl.find_compiler().version}:
            build.build(everything=True)
        first = {path: path.read_bytes() for path in copy.rglob("*.spv")}
        assert build.build(everything=True) == shaders.names()
        assert {path: path.read_bytes() for path in copy.rglob("*.spv")} == first
        assert build.stale() == {}

    @pytest.mark.slow
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

    @pytest.mark.slow
    @needs_compiler
    def test_a_source_that_does_not_compile(self, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (copy / "mul.comp").write_text("#version 450\nvoid main() { x; }\n")
        assert build.main([]) == 2
        assert "mul.comp:2" in capsys.readouterr().err


@needs_tools
@pytest.mark.parametrize(
    ("name", "local_size", "bindings", "fields"),
    [
        ("fill_unaligned", (64, 1, 1), 1, ["offset", "size", "pattern"]),
        ("copy_unaligned", (64, 1, 1), 2, ["source_offset", "target_offset", "size"]),
        ("empty", (1, 1, 1), 0, []),
    ],
)
def test_the_interface_of_built_in_kernels(
    name: str, local_size: tuple[int, int, int], bindings: int, fields: list[str]
) -> None:
    code = shaders.spirv(f"builtin/{name}")
    found = interface(code)
    assert found.local_size == local_size
    assert sorted(found.bindings) == list(range(bindings))
    assert found.push_offsets == [4 * index for index in range(len(fields))]
    assert found.spec_ids == set()
    assert re.findall(r'OpMemberName %Push \d+ "(\w+)"', spirv_tools.disassemble(code)) == fields


class TestCases:
    """The cases fit the modules, so that a device that runs them differs only by what it computes."""

    def test_every_shader_with_buffers_has_a_case(self) -> None:
        # Those of `check` are the cases of `pumice check`: tests/tools/check runs them.
        elsewhere = {"builtin/empty", *EXTRA_CAPABILITIES, *(name for name in shaders.names() if "check/" in name)}
        assert {case.shader for case in references.CASES} == set(shaders.names()) - elsewhere
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
