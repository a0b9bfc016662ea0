"""IREE's own end-to-end tests, read from a checkout or a git directory that the user names; none of it is kept here.

``PUMICE_IREE_TREE`` names the tree. What is stated here are facts about its sources as of August 2026: which flags each
needs to compile for Vulkan (``tests/e2e/*/CMakeLists.txt`` has most of them), which do not compile for Vulkan at all
and why, which scripts of the tree generate more sources, and where later compilers spell an operation differently.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from support import source_trees

__all__ = [
    "E2E_FOLDER",
    "LIT_TESTS",
    "SLOW_ON_CPU",
    "VM_FOLDER",
    "E2ESource",
    "e2e_sources",
    "expected_failure",
    "named_tree",
    "opened_tree",
]

E2E_FOLDER = "tests/e2e"
VM_FOLDER = "runtime/src/iree/vm"

# Sources for other devices; collectives need several devices.
SKIPPED_FOLDERS = {"collectives", "rocm_specific"}

FOLDER_FLAGS: Mapping[str, tuple[str, ...]] = {
    "stablehlo_ops": ("--iree-input-demote-f64-to-f32",),
    "stablehlo_models": ("--iree-input-type=stablehlo",),
    "vulkan_specific": ("--iree-input-type=stablehlo", "--iree-vulkan-target=valhall"),
}
# Beside the folder's: what the default target (an Android baseline of 32-bit types) lacks.
SOURCE_FLAGS: Mapping[str, tuple[str, ...]] = {
    "linalg/large_linalg_matmul.mlir": ("--iree-vulkan-target=ampere",),
    "math/math_ops.mlir": ("--iree-vulkan-target=ampere",),
    "stablehlo_ops/exponential_fp16.mlir": ("--iree-vulkan-target=valhall",),
    "stablehlo_ops/fft.mlir": ("--iree-vulkan-target=ampere",),
    "stablehlo_ops/fft_complex.mlir": ("--iree-vulkan-target=ampere",),
    "vulkan_specific/add_i64.mlir": ("--iree-input-demote-i64-to-i32=false",),
    "vulkan_specific/mul_i64.mlir": ("--iree-input-demote-i64-to-i32=false",),
}

_ATTENTION = "attention does not lower for Vulkan (operands become buffers)"
_PACK = "pack and unpack are not tiled to invocations for Vulkan"
NOT_FOR_VULKAN: Mapping[str, str] = {
    "attention/small.mlir": _ATTENTION,
    "linalg/fp4_f32_conversion.mlir": "scaled 4-bit floats have no SPIR-V lowering",
    "linalg/pack.mlir": _PACK,
    "linalg/pack_dynamic_inner_tiles.mlir": _PACK,
    "linalg/pack_i8.mlir": _PACK,
    "linalg/unpack.mlir": _PACK,
    "linalg_ext_ops/attention.mlir": _ATTENTION,
    "linalg_ext_ops/attention_i1_mask.mlir": _ATTENTION,
    "linalg_ext_ops/dynamic_attention.mlir": _ATTENTION,
    "linalg_ext_ops/scan_configured.mlir": "its lowering configuration is another device's",
    "regression/dynamic_gather_attention.mlir": _ATTENTION,
    "regression/stablehlo/lowering_config.mlir": "its lowering configuration is another device's",
    "regression/vector_distribute_64bit_amdgpu.mlir": "for another device; the verifier refuses it",
}

_HALF = "the default target reads halves as pairs: IREE's own runtime gives the same wrong values"
_SUBGROUPS = (
    "assumes subgroups of 32 or 64 invocations; wrong on devices with less, such as lavapipe, in IREE's runtime too"
)
_LIMITS = "larger than what some devices bind or dispatch at once (maxStorageBufferRange, maxComputeWorkGroupCount)"
_MATRICES = "needs cooperative matrices"
_ROUNDING = "the order of additions decides; IREE's own runtime gives the same values on lavapipe"
_NARROW_SUM = "wraps around in eight bits; IREE's own runtime gives the same values"
# Functions that fail for a reason which is not the runtime's, by source and function ("*" for all of a source).
EXPECTED_FAILURES: Mapping[tuple[str, str], str] = {
    ("linalg/large_linalg_matmul.mlir", "*"): _MATRICES,
    ("regression/dynamic_batch_matmul_gfx1100.mlir", "dynamic_batch_matmul_transposed_rhs"): _HALF,
    ("regression/large_reduction.mlir", "half_reduction_aligned"): _HALF,
    ("regression/large_reduction.mlir", "quarter_reduction_aligned_smaller"): _NARROW_SUM,
    ("regression/large_reduction.mlir", "reduction_aligned_larger"): _ROUNDING,
    ("regression/linalg_ops_dynamic.mlir", "batch_matmul_dynamic_reduction_size_B2_M1_N3_K5"): _HALF,
    ("regression/linalg_ops_dynamic.mlir", "batch_matmul_dynamic_reduction_size_B32_M1_N128_K3"): _HALF,
    ("regression/softmax_large.mlir", "softmax"): _LIMITS,
    ("regression/split_reduction_using_tiling.mlir", "*"): _LIMITS,
    ("stablehlo_ops/fft.mlir", "*"): _SUBGROUPS,
    ("stablehlo_ops/fft_complex.mlir", "*"): _SUBGROUPS,
}


def expected_failure(source: str, function: str) -> str | None:
    """Why a function is known to fail, or ``None``."""
    return EXPECTED_FAILURES.get((source, function)) or EXPECTED_FAILURES.get((source, "*"))


# Shaders unrolled so far that llvmpipe takes minutes and gigabytes to compile each of them.
SLOW_ON_CPU = frozenset({"matmul/f32_large.mlir"})

# Run by commands of their own, with inputs and parameters, not by checks inside.
LIT_TESTS = frozenset(
    f"parameters/{name}.mlir" for name in ("encode_parameters", "export_parameters", "generate_splat_archive")
)


@dataclass(frozen=True)
class GeneratedSource:
    """What a script of the tree writes: a module, and with ``has_calls`` a second one that calls and checks it."""

    name: str
    script: str
    arguments: tuple[str, ...]
    flags: tuple[str, ...] = ()
    has_calls: bool = True


def _matmuls() -> Iterator[GeneratedSource]:
    script = f"{E2E_FOLDER}/matmul/generate_e2e_matmul_tests.py"
    for operand, accumulator, shapes in (
        ("f32", "f32", "small"),
        ("f32", "f32", "easy_large_static"),
        ("f32", "f32", "large"),
        ("i8", "i32", "small"),
    ):
        types = (f"--lhs_rhs_type={operand}", f"--acc_type={accumulator}", f"--shapes={shapes}")
        yield GeneratedSource(f"matmul/{operand}_{shapes}.mlir", script, types)
    for target, schedule in (("valhall", "SPIRVVectorizeMali"), ("ampere", "SPIRVVectorizeNVIDIA")):
        for operand, accumulator in (("i8", "i32"), ("f16", "f32"), ("f32", "f32")):
            yield GeneratedSource(
                f"matmul/{operand}_{target}.mlir",
                script,
                (
                    f"--lhs_rhs_type={operand}",
                    f"--acc_type={accumulator}",
                    "--shapes=easy_large_static",
                    f"--compilation_info={schedule}",
                ),
                (f"--iree-vulkan-target={target}",),
            )


def _convolutions() -> Iterator[GeneratedSource]:
    for shapes in ("small", "medium", "large"):
        yield GeneratedSource(
            f"convolution/{shapes}.mlir",
            f"{E2E_FOLDER}/convolution/generate_e2e_conv2d_tests.py",
            ("--input_type=f32", "--kernel_type=f32", "--acc_type=f32", f"--shapes={shapes}"),
        )


GENERATED: tuple[GeneratedSource, ...] = (
    *_matmuls(),
    *_convolutions(),
    GeneratedSource(
        "math/math_ops.mlir",
        f"{E2E_FOLDER}/math/generate.py",
        (f"--testcases={E2E_FOLDER}/math/math_ops_llvm-cpu.json",),
        has_calls=False,
    ),
)

# Spellings of the tree that the 3.13 compiler no longer takes. Attributes written in braces became part of each TOSA
# operation's own syntax; the generic form is understood by all.
_TOSA_WITH_ATTRIBUTES = re.compile(r"= (tosa\.[a-z0-9_]+) ([^{\n:]*?)\s*\{([^}\n]*)\}\s*:\s*(\(.*)$", re.MULTILINE)
_NAMED_ELEMENTWISE = re.compile(
    r"\blinalg\.(add|sub|mul|div|exp|log|negf|abs|tanh|square|sqrt|rsqrt|floor|ceil)\b(?=\s*ins\()"
)
_INLINING_POLICY = re.compile(r" \{inlining_policy = #util\.inline\.never\}")


def with_current_syntax(text: str) -> str:
    """The same program as ``iree-compile`` 3.13 spells it."""
    text = _TOSA_WITH_ATTRIBUTES.sub(
        lambda m: (
            f'= "{m[1]}"({m[2].strip().strip("()")}) '
            f"<{{{m[3].replace('0 : i1', 'false').replace('1 : i1', 'true')}}}> : {m[4]}"
        ),
        text,
    )
    text = _NAMED_ELEMENTWISE.sub(lambda m: f"linalg.elementwise <{m[1]}>", text)
    return _INLINING_POLICY.sub("", text)


@dataclass(frozen=True)
class E2ESource:
    """One module of the tree.

    Attributes:
        name: path below ``tests/e2e`` (a generated source has no file there).
        text: MLIR source in the spelling of the 3.13 compiler.
        flags: ``iree-compile`` flags beside those of the device.
        calls: for a generated source, the text of the module that calls this one through the test harness's module.
        reason_not_compiled: why it cannot be compiled for Vulkan, or ``None``.
    """

    name: str
    text: str
    flags: tuple[str, ...] = ()
    calls: str | None = None
    reason_not_compiled: str | None = None

    @property
    def folder(self) -> str:
        return self.name.split("/")[0]


def named_tree() -> Path | None:
    """The tree that ``PUMICE_IREE_TREE`` names, or ``None``."""
    return source_trees.named_tree("PUMICE_IREE_TREE")


def opened_tree(tree: Path) -> AbstractContextManager[Path]:
    """A folder with the tree's tests and VM sources, for as long as the context lives."""
    return source_trees.opened_tree(tree, (E2E_FOLDER, VM_FOLDER))


def _flags(name: str) -> tuple[str, ...]:
    return FOLDER_FLAGS.get(name.split("/")[0], ()) + SOURCE_FLAGS.get(name, ())


def _generate(tree: Path, source: GeneratedSource) -> E2ESource:
    with TemporaryDirectory(prefix="iree-generated-") as folder:
        module, calls = Path(folder, "module.mlir"), Path(folder, "calls.mlir")
        outputs: tuple[str, ...] = ()
        if source.has_calls:
            kind = "matmul" if "matmul" in source.script else "conv2d"
            outputs = (f"--output_{kind}_mlir={module}", f"--output_calls_mlir={calls}")
        environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
        printed = subprocess.run(
            [sys.executable, source.script, *outputs, *source.arguments],
            cwd=tree,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        if not source.has_calls:
            return E2ESource(source.name, printed, _flags(source.name) + source.flags)
        return E2ESource(source.name, module.read_text(), _flags(source.name) + source.flags, calls.read_text())


def e2e_sources(tree: Path) -> Iterator[E2ESource]:
    """Every source of an opened tree that is meant for any device or for Vulkan, by name; generated ones come last."""
    root = tree / E2E_FOLDER
    for path in sorted(root.rglob("*.mlir")):
        name = path.relative_to(root).as_posix()
        if name.split("/")[0] in SKIPPED_FOLDERS:
            continue
        yield E2ESource(
            name, with_current_syntax(path.read_text()), _flags(name), reason_not_compiled=NOT_FOR_VULKAN.get(name)
        )
    for generated in GENERATED:
        yield _generate(tree, generated)
