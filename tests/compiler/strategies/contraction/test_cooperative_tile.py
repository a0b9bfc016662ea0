"""Contractions by cooperative matrices: checked by spirv-val, and run with matrices of one invocation each.

No driver here has them. The validator may be older than ``SPV_KHR_cooperative_matrix``, so it checks the same shader
with the instructions of ``SPV_NV_cooperative_matrix``, which take the same operands in another order. To run it, a
subgroup is one invocation, whose matrices are arrays.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.compiler.regions import by_definition, contraction, function_of, region_of, run_region
from support.profiles import recorded_profile

import pumice
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.strategies.choice import candidates_of, compile_region
from pumice.compiler.strategies.contraction.cooperative_tile import CooperativeTile
from pumice.spirv.binary import matrices
from pumice.spirv.binary.builder import Builder
from pumice.spirv.binary.declarations import F32, U32, Kind
from pumice.spirv.binary.expression import Id
from pumice.spirv.binary.grammar import ENUMERATIONS, Op
from pumice.spirv.binary.shared_memory import SharedMemory
from pumice.spirv.binary.words import encode, pack, read_binary, string_words
from pumice.spirv.checks.matrix_shapes import MatrixProduct
from pumice.spirv.checks.validation import ensure_valid

HALVES = MatrixProduct(16, 8, 16, "f16", "f16", "f32", "f32")
BYTES = MatrixProduct(16, 16, 32, "s8", "s8", "s32", "s32")
NVIDIA = dataclasses.replace(target_of(recorded_profile("nvidia_rtx_4060")), cooperative_matrices=(HALVES, BYTES))


PLAIN, TRANSPOSED = "contracting_dims = [1] x [0]", "contracting_dims = [0] x [1]"
CASES = {
    "plain": (contraction("512x256xf16", "256x512xf16", "512x512xf16", PLAIN), HALVES),
    "transposed, edges": (contraction("520x333xf16", "264x520xf16", "333x264xf32", TRANSPOSED), HALVES),
    "bytes": (contraction("256x512xi8", "512x256xi8", "256x256xi32", PLAIN), BYTES),
}


@pytest.mark.parametrize("name", CASES)
def test_matrices_are_taken_where_the_device_has_them(name: str) -> None:
    text, matrix = CASES[name]
    region = region_of(text, NVIDIA)
    chosen, *_ = candidates_of(region)
    assert isinstance(chosen, CooperativeTile) and (chosen.m, chosen.n, chosen.k) == matrix[:3]
    kernel = compile_region(region)
    assert kernel.workgroup_size[0] % NVIDIA.subgroup_size == 0 and kernel.workgroup_size[1:] == (1, 1)
    assert ensure_valid(_in_older_words(kernel.code), "vulkan1.1")


def _in_older_words(code: bytes) -> bytes:
    """Translates a shader to the instructions of ``SPV_NV_cooperative_matrix``."""
    binary = read_binary(code)
    words = list(binary.words)
    bound = words[3]
    no, yes = bound, bound + 1
    made = [*words[:3], bound + 2, words[4]]
    constants: dict[int, int] = {}
    capability = ENUMERATIONS["Capability"]
    for opcode, start, end in binary:
        operands = words[start + 1 : end]
        if opcode == Op.Capability and operands == [capability.CooperativeMatrixKHR]:
            operands = [capability.CooperativeMatrixNV]
        elif opcode == Op.Extension:
            operands = list(string_words("SPV_NV_cooperative_matrix"))
        elif opcode == Op.Constant:
            constants[operands[1]] = operands[2]
        elif opcode == Op.TypeCooperativeMatrixKHR:
            opcode, operands = Op.TypeCooperativeMatrixNV, operands[:-1]
        elif opcode == Op.CooperativeMatrixLoadKHR:
            *first, layout, stride = operands
            opcode, operands = Op.CooperativeMatrixLoadNV, [*first, stride, yes if constants[layout] else no]
        elif opcode == Op.CooperativeMatrixStoreKHR:
            *first, layout, stride = operands
            opcode, operands = Op.CooperativeMatrixStoreNV, [*first, stride, yes if constants[layout] else no]
        elif opcode == Op.CooperativeMatrixMulAddKHR:
            opcode, operands = Op.CooperativeMatrixMulAddNV, operands[:5]
        elif opcode == Op.Function:
            declared = next(word for kind, at, _ in binary if kind == Op.TypeBool for word in [words[at + 1]])
            made += encode(Op.ConstantFalse, declared, no) + encode(Op.ConstantTrue, declared, yes)
        made += encode(opcode, *operands)
    return pack(made)


class _Emulation:
    """Cooperative matrices of one invocation: arrays of numbers, row by row."""

    def __init__(self) -> None:
        self.shapes: dict[Kind, tuple[Kind, int, int]] = {}

    def matrix(self, builder: Builder, component: Kind, rows: int, columns: int, use: int) -> Kind:
        kind = Kind("f", 32, -1 - rows * columns)
        declared = builder.declarations
        declared._known[kind] = declared.type_of(
            Op.TypeArray, declared.type(F32), declared.constant(U32, rows * columns)
        )
        self.shapes[kind] = component, rows, columns
        return kind

    def zeros(self, builder: Builder, kind: Kind) -> Id:
        _, rows, columns = self.shapes[kind]
        return builder.emit(Op.CompositeConstruct, kind, *[builder.constant(F32, 0)] * (rows * columns))

    def load(self, kind: Kind, memory: SharedMemory, first: Id, pitch: int, is_column_major: bool) -> Id:
        _, rows, columns = self.shapes[kind]
        builder = memory.builder
        elements = []
        for row in range(rows):
            for column in range(columns):
                major, minor = (column, row) if is_column_major else (row, column)
                (word,) = memory.load(first + (major * pitch + minor // 2))
                halves = builder.extended(62, Kind("f", 32, 2), word)  # UnpackHalf2x16
                elements.append(builder.emit(Op.CompositeExtract, F32, halves, minor % 2))
        return builder.emit(Op.CompositeConstruct, kind, *elements)

    def store(self, matrix: Id, memory: SharedMemory, first: Id, pitch: int) -> None:
        _, rows, columns = self.shapes[matrix.kind]
        for row in range(rows):
            for column in range(columns):
                value = memory.builder.emit(Op.CompositeExtract, F32, matrix, row * columns + column)
                memory.store(first + (row * pitch + column), [value.bits(U32)])

    def multiplied(self, left: Id, right: Id, total: Id) -> Id:
        (_, rows, depth), (_, _, columns) = self.shapes[left.kind], self.shapes[right.kind]
        builder = total.builder
        elements = []
        for row in range(rows):
            for column in range(columns):
                value = builder.emit(Op.CompositeExtract, F32, total, row * columns + column)
                for at in range(depth):
                    factor = builder.emit(Op.CompositeExtract, F32, left, row * depth + at)
                    value = value + factor * builder.emit(Op.CompositeExtract, F32, right, at * columns + column)
                elements.append(value)
        return builder.emit(Op.CompositeConstruct, total.kind, *elements)


@pytest.mark.sample(1)
@pytest.mark.vulkan
@pytest.mark.parametrize("numbers", [PLAIN, TRANSPOSED, "contracting_dims = [1] x [1]"])
def test_matrices_of_one_invocation(gpu: pumice.Device, monkeypatch: pytest.MonkeyPatch, numbers: str) -> None:
    """Runs overlapping tiles at the edges, and a partial part at the end."""
    emulation = _Emulation()
    for name in ("matrix", "load", "store", "zeros", "multiplied"):
        monkeypatch.setattr(matrices, name, getattr(emulation, name))
    monkeypatch.setattr(Builder, "subgroup", lambda self: self.built_in("LocalInvocationId")[0])
    left = "40x20xf16" if "[0] x" in numbers else "20x40xf16"
    right = "24x40xf16" if "x [1]" in numbers else "40x24xf16"
    function = function_of(contraction(left, right, "20x24xf16", numbers))
    matrix = MatrixProduct(8, 8, 8, "f16", "f16", "f32", "f32")
    target = Target(family="nvidia", cooperative_matrices=(matrix,), subgroup_operations=("basic",))
    tile = CooperativeTile(8, 8, 8, 1, 2, 2, 1, 16)
    random = np.random.default_rng(0)
    arguments = [
        random.standard_normal(value.tensor.shape).astype(np.float16) for value in function.regions[0].block.arguments
    ]
    (actual,) = run_region(gpu, function, arguments, target, tile)
    (expected,) = by_definition(function, arguments)
    np.testing.assert_allclose(actual.astype(np.float32), expected.astype(np.float32), rtol=2e-3, atol=2e-3)
