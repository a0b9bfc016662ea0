"""The executable format: built blobs, blobs of the real compiler, and damaged ones of both kinds."""

import dataclasses
import random
import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest
from support.peer import compile_module

from pumice.formats.vke1 import (
    STAGE_COMPUTE,
    BdaBindingDef,
    BdaDispatchLayoutDef,
    BdaEntryType,
    DescriptorBindingDef,
    DescriptorSetLayoutDef,
    DescriptorType,
    DispatchAbi,
    ExecutableDef,
    ExportDebugInfo,
    FileLocation,
    PipelineDef,
    PipelineLayoutDef,
    PushConstantRange,
    SourceFile,
    StageLocation,
)
from pumice.formats.vke1_reader import parse_executable
from pumice.formats.vke1_writer import build_executable
from pumice.status import IncompatibleError, InvalidArgumentError, PumiceError

HEADER_BYTES = 64
SPIRV = memoryview(struct.pack("<7I", 0x07230203, 0x00010000, 0, 8, 0, 0x00020011, 1))

PROGRAMS = {
    "elementwise": """
func.func @simple_mul(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.mulf %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
""",
    "dynamic_reduction": """
func.func @row_sums(%a: tensor<?x?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %a, %c0 : tensor<?x?xf32>
  %empty = tensor.empty(%rows) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %sums = linalg.reduce ins(%a : tensor<?x?xf32>) outs(%init : tensor<?xf32>) dimensions = [1]
    (%in: f32, %acc: f32) { %s = arith.addf %in, %acc : f32 linalg.yield %s : f32 }
  return %sums : tensor<?xf32>
}
""",
    "matmul": """
func.func @matmul(%a: tensor<16x32xf32>, %b: tensor<32x8xf32>, %c: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x8xf32>) outs(%c : tensor<16x8xf32>)
    -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}
""",
}


def descriptor_executable() -> ExecutableDef:
    return ExecutableDef(
        pipelines=(
            PipelineDef(0, "first", 0),
            PipelineDef(
                1,
                "zweite",
                1,
                subgroup_size=32,
                debug_info=ExportDebugInfo(
                    "zweite",
                    FileLocation("a.mlir", 7),
                    (StageLocation("vm", FileLocation("b.mlir", -1)), StageLocation("none", None)),
                ),
            ),
        ),
        descriptor_set_layouts=(
            DescriptorSetLayoutDef(
                (DescriptorBindingDef(0), DescriptorBindingDef(3, DescriptorType.UNIFORM_BUFFER, 2))
            ),
            DescriptorSetLayoutDef(()),
        ),
        pipeline_layouts=(
            PipelineLayoutDef((0,), (PushConstantRange(STAGE_COMPUTE, 0, 16),)),
            PipelineLayoutDef((1, 0)),
        ),
        shader_modules=(SPIRV, memoryview(bytes(SPIRV) + bytes(8))),
        source_files=(SourceFile("a.mlir", memoryview(b"module {}")), SourceFile("empty", memoryview(b""))),
    )


def bda_executable() -> ExecutableDef:
    layout = BdaDispatchLayoutDef(
        constant_count=4,
        binding_count=2,
        bindings=(BdaBindingDef(16, 2**40), BdaBindingDef()),
        entry_type=BdaEntryType.ADDRESS64_LENGTH64,
    )
    return ExecutableDef(
        pipelines=(PipelineDef(0, "main", 0, dispatch_abi=DispatchAbi.BDA_V1, bda_layout=layout),),
        descriptor_set_layouts=(),
        pipeline_layouts=(PipelineLayoutDef((), (PushConstantRange(STAGE_COMPUTE, 0, 48),)),),
        shader_modules=(SPIRV,),
    )


BUILT = [descriptor_executable(), bda_executable()]


@pytest.mark.parametrize("executable", BUILT)
def test_round_trip(executable: ExecutableDef) -> None:
    blob = build_executable(executable)
    assert parse_executable(blob) == executable
    assert parse_executable(memoryview(bytearray(blob + bytes(100)))) == executable


def test_shader_code_is_a_read_only_view() -> None:
    blob = bytearray(build_executable(bda_executable()))
    (code,) = parse_executable(blob).shader_modules
    assert code.readonly
    blob[blob.index(bytes(SPIRV)) + 24] = 99
    assert code[24] == 99


def with_pipeline(executable: ExecutableDef, **changes: object) -> ExecutableDef:
    first, *rest = executable.pipelines
    return dataclasses.replace(executable, pipelines=(dataclasses.replace(first, **changes), *rest))  # type: ignore[arg-type]


def with_bda(**changes: object) -> ExecutableDef:
    executable = bda_executable()
    layout = executable.pipelines[0].bda_layout
    assert layout is not None
    return with_pipeline(executable, bda_layout=dataclasses.replace(layout, **changes))  # type: ignore[arg-type]


def with_range(*ranges: PushConstantRange) -> ExecutableDef:
    layouts = (PipelineLayoutDef((0,), ranges), PipelineLayoutDef((1, 0)))
    return dataclasses.replace(descriptor_executable(), pipeline_layouts=layouts)


def with_bindings(*bindings: DescriptorBindingDef) -> ExecutableDef:
    layouts = (DescriptorSetLayoutDef(bindings), DescriptorSetLayoutDef(()))
    return dataclasses.replace(descriptor_executable(), descriptor_set_layouts=layouts)


def with_shader(code: bytes) -> ExecutableDef:
    return dataclasses.replace(bda_executable(), shader_modules=(memoryview(code),))


@pytest.mark.parametrize(
    ("executable", "says"),
    [
        (dataclasses.replace(bda_executable(), pipelines=()), "at least one pipeline"),
        (with_pipeline(descriptor_executable(), shader_module=2), r"pipelines\[0\]\.shader_module: .*2 shader modules"),
        (with_pipeline(descriptor_executable(), pipeline_layout=2), r"pipelines\[0\]\.pipeline_layout"),
        (with_pipeline(descriptor_executable(), shader_module=-1), "shader_module"),
        (with_pipeline(descriptor_executable(), entry_point=""), "entry_point"),
        (with_pipeline(descriptor_executable(), entry_point="a\0b"), "entry_point"),
        (with_pipeline(descriptor_executable(), entry_point="\ud800"), "fit"),
        (with_pipeline(descriptor_executable(), subgroup_size=31), "subgroup_size"),
        (with_pipeline(descriptor_executable(), bda_layout=BdaDispatchLayoutDef()), "bda_layout"),
        (with_pipeline(descriptor_executable(), dispatch_abi=DispatchAbi.BDA_V1), "without descriptor sets"),
        (with_pipeline(bda_executable(), bda_layout=None), "bda_layout"),
        (
            with_pipeline(descriptor_executable(), debug_info=ExportDebugInfo("x", FileLocation("f", 2**31))),
            "fit their fields",
        ),
        (with_bda(root_length=16), "root_length"),
        (with_bda(root_offset=20, constant_count=0), "root"),
        (with_bda(root_offset=2), "root_offset"),
        (with_bda(constant_offset=28), "constant_offset"),
        (with_bda(constant_offset=33), "constant_offset"),
        (with_bda(constant_count=5), "constants"),
        (with_bda(constant_count=2**31), "constant_count"),
        (with_bda(binding_count=3), "bindings"),
        (with_bda(bindings=(BdaBindingDef(3), BdaBindingDef())), "minimum_alignment"),
        (with_bda(bindings=(BdaBindingDef(1, 2**64), BdaBindingDef())), "minimum_length"),
        (with_range(PushConstantRange(1, 0, 16)), "stage_flags"),
        (with_range(PushConstantRange(STAGE_COMPUTE, 2, 16)), "multiples of 4"),
        (with_range(PushConstantRange(STAGE_COMPUTE, 0, 0)), "above 0"),
        (with_range(PushConstantRange(STAGE_COMPUTE, 0, 2**32 - 4)), "end"),
        (with_range(PushConstantRange(STAGE_COMPUTE, 0, 4), PushConstantRange(STAGE_COMPUTE, 4, 4)), "at most one"),
        (with_bindings(DescriptorBindingDef(1), DescriptorBindingDef(1)), "once"),
        (with_bindings(DescriptorBindingDef(1, count=0)), "descriptors"),
        (with_bindings(DescriptorBindingDef(2**32)), "32-bit"),
        (with_bindings(DescriptorBindingDef(1, stage_flags=1)), "compute stage"),
        (with_shader(b""), "at least 20 bytes"),
        (with_shader(bytes(SPIRV) + b"\0"), "whole 32-bit words"),
        (with_shader(bytes(SPIRV)[::-1]), "magic"),
    ],
)
def test_broken_rules(executable: ExecutableDef, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        build_executable(executable)


def test_unknown_bda_version_is_incompatible() -> None:
    with pytest.raises(IncompatibleError, match="found 2, known is 1"):
        build_executable(with_bda(abi_version=2))


def test_unknown_header_version_is_incompatible() -> None:
    blob = bytearray(build_executable(bda_executable()))
    struct.pack_into("<I", blob, 4, 7)
    with pytest.raises(IncompatibleError, match="version 7, known is 0"):
        parse_executable(blob)


@pytest.mark.parametrize(
    ("offset", "layout", "value", "says"),
    [
        (0, "4s", b"VKE2", "VKE1.*VKE2"),
        (8, "<Q", 0, "content size"),
        (8, "<Q", 2**64 - 1, "content size"),
        (HEADER_BYTES + 4, "4s", b"IREE", "identifier"),
        (HEADER_BYTES, "<I", 2**32 - 1, "executable, byte 0"),
    ],
)
def test_broken_header(offset: int, layout: str, value: object, says: str) -> None:
    blob = bytearray(build_executable(bda_executable()))
    struct.pack_into(layout, blob, offset, value)
    with pytest.raises(InvalidArgumentError, match=says):
        parse_executable(blob)


def test_unknown_dispatch_abi_lists_the_known() -> None:
    executable = with_pipeline(bda_executable(), dispatch_abi=DispatchAbi.BDA_V1, subgroup_size=64)
    refused = set()
    blob = build_executable(executable)
    for position in range(HEADER_BYTES, len(blob)):
        if blob[position] == DispatchAbi.BDA_V1:
            changed = bytearray(blob)
            changed[position] = 9
            try:
                parse_executable(changed)
            except PumiceError as error:
                refused.add(str(error))
    wanted = r"executable.pipelines[0].dispatch_abi, byte "
    assert any(wanted in text and "0 (DESCRIPTOR), 1 (BDA_V1), got 9" in text for text in refused)


def test_strided_view_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="contiguous"):
        parse_executable(memoryview(build_executable(bda_executable()))[::2])


# ---- damage ------------------------------------------------------------------------------------------------------


def survives(blob: bytes | bytearray) -> bool:
    try:
        executable = parse_executable(blob)
    except PumiceError:
        return False
    # A valid result is one that the writer takes and that reads back the same.
    assert parse_executable(build_executable(executable)) == executable
    return True


def fuzz(blobs: list[bytes], rounds: int, seed: int) -> None:
    source = random.Random(seed)
    start = time.perf_counter()
    refused = 0
    for _ in range(rounds):
        blob = bytearray(source.choice(blobs))
        kind = source.randrange(4)
        if kind == 0:
            for _ in range(source.randint(1, 4)):
                blob[source.randrange(len(blob))] ^= 1 << source.randrange(8)
        elif kind == 1:
            del blob[source.randrange(len(blob)) :]
        elif kind == 2:
            other = source.choice(blobs)
            cut, size = source.randrange(len(other)), source.randint(1, 64)
            position = source.randrange(len(blob))
            blob[position : position + size] = other[cut : cut + size]
        else:
            position = source.randrange(0, len(blob) - 4, 4)
            struct.pack_into("<I", blob, position, source.choice([0, 1, 4, 0x7FFFFFFF, 0xFFFFFFFF]))
        refused += not survives(blob)
    assert 0 < refused < rounds
    assert time.perf_counter() - start < 60


@pytest.mark.slow
def test_fuzz_of_built_blobs() -> None:
    fuzz([build_executable(executable) for executable in BUILT], 3000, 1)


def test_every_truncation_of_a_built_blob() -> None:
    blob = build_executable(descriptor_executable())
    assert not any(survives(blob[:size]) for size in range(len(blob) - 3))


def test_shared_layouts_cannot_multiply_memory() -> None:
    bindings = tuple(DescriptorBindingDef(index) for index in range(500))
    set_layouts = (DescriptorSetLayoutDef(bindings), *[DescriptorSetLayoutDef(())] * 2000)
    blob = bytearray(build_executable(dataclasses.replace(bda_executable(), descriptor_set_layouts=set_layouts)))
    layouts = struct.pack("<I", len(set_layouts))
    start = blob.index(layouts, HEADER_BYTES) + 4
    first = start + struct.unpack_from("<I", blob, start)[0]
    # Every entry now means the one layout with 500 bindings: a million bindings from some tens of kilobytes.
    for position in range(start + 4, start + 4 * len(set_layouts), 4):
        struct.pack_into("<I", blob, position, first - position)
    with pytest.raises(InvalidArgumentError, match="used a few times"):
        parse_executable(blob)


# ---- the real compiler -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real_blobs() -> dict[str, bytes]:
    """Executables by program and ABI, each cut out of a compiled module."""
    blobs = {}
    for name, text in PROGRAMS.items():
        for abi in ("descriptor", "bda"):
            flags = ["--iree-hal-executable-debug-level=3"]
            flags += ["--iree-vulkan-dispatch-abi=bda"] if abi == "bda" else []
            data = compile_module(text, *flags, name=f"{name}.mlir").read_bytes()
            # The magic comes twice, in the header and as the FlatBuffer's identifier: the first is the blob's start.
            start = data.index(b"VKE1")
            (size,) = struct.unpack_from("<Q", data, start + 8)
            blobs[f"{name}-{abi}"] = data[start : start + HEADER_BYTES + size]
    return blobs


@pytest.mark.peer
def test_real_executables(real_blobs: dict[str, bytes], tmp_path: Path) -> None:
    validator = shutil.which("spirv-val")
    if validator is None:
        pytest.skip("needs spirv-val: install spirv-tools")
    for name, blob in real_blobs.items():
        executable = parse_executable(blob)
        assert parse_executable(build_executable(executable)) == executable
        expected_abi = DispatchAbi.BDA_V1 if name.endswith("bda") else DispatchAbi.DESCRIPTOR
        assert {pipeline.dispatch_abi for pipeline in executable.pipelines} == {expected_abi}
        info = executable.pipelines[0].debug_info
        assert info is not None and info.location is not None
        assert info.location.filename.endswith(".mlir") and info.location.line > 0
        for index, code in enumerate(executable.shader_modules):
            shader = tmp_path / f"{name}-{index}.spv"
            shader.write_bytes(code)
            command = [validator, "--target-env", "vulkan1.3", str(shader)]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        for pipeline in executable.pipelines:
            assert pipeline.entry_point.encode() in bytes(executable.shader_modules[pipeline.shader_module])


@pytest.mark.peer
def test_dynamic_shapes_use_push_constants(real_blobs: dict[str, bytes]) -> None:
    descriptor = parse_executable(real_blobs["dynamic_reduction-descriptor"])
    (constants,) = descriptor.pipeline_layouts[0].push_constant_ranges
    bda = parse_executable(real_blobs["dynamic_reduction-bda"]).pipelines[0].bda_layout
    assert bda is not None
    assert constants.size == 4 * bda.constant_count > 0
    assert bda.binding_count == len(descriptor.descriptor_set_layouts[0].bindings)


@pytest.mark.peer
def test_fuzz_of_real_blobs(real_blobs: dict[str, bytes]) -> None:
    fuzz(list(real_blobs.values()), 1500, 2)
