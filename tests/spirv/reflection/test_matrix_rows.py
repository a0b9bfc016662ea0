"""Rows and columns of matrices: by the language that a module names, or else by its generator."""

from __future__ import annotations

import pytest
from support.devices.shader_tools import needs_tools

from pumice.spirv.binary.words import pack, read_binary
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.reflection.reflection_types import BlockMember

# A matrix of three columns of four floats in SPIR-V's terms, by itself and in the structures that Slang wraps around
# arrays, and around matrices before 2026.
ASSEMBLY = """
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main"
OpExecutionMode %main LocalSize 1 1 1
{source}
OpName %array "_Array_std140_matrix<float,3,4>2"
OpName %rows "_MatrixStorage_float3x4_RowMajorstd140"
OpName %columns "_MatrixStorage_float3x4_ColMajorstd140"
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpMemberDecorate %block 0 ColMajor
OpMemberDecorate %block 0 MatrixStride 16
OpMemberDecorate %block 1 Offset 48
OpMemberDecorate %block 2 Offset 144
OpMemberDecorate %block 3 Offset 192
OpMemberDecorate %array 0 Offset 0
OpMemberDecorate %array 0 ColMajor
OpMemberDecorate %array 0 MatrixStride 16
OpMemberDecorate %rows 0 Offset 0
OpMemberDecorate %columns 0 Offset 0
OpDecorate %two ArrayStride 48
OpDecorate %three_rows ArrayStride 16
OpDecorate %four_columns ArrayStride 16
OpDecorate %in DescriptorSet 0
OpDecorate %in Binding 0
%void = OpTypeVoid
%float = OpTypeFloat 32
%int = OpTypeInt 32 1
%n0 = OpConstant %int 0
%n2 = OpConstant %int 2
%n3 = OpConstant %int 3
%n4 = OpConstant %int 4
%v3 = OpTypeVector %float 3
%v4 = OpTypeVector %float 4
%matrix = OpTypeMatrix %v4 3
%two = OpTypeArray %matrix %n2
%three_rows = OpTypeArray %v4 %n3
%four_columns = OpTypeArray %v3 %n4
%array = OpTypeStruct %two
%rows = OpTypeStruct %three_rows
%columns = OpTypeStruct %four_columns
%block = OpTypeStruct %matrix %array %rows %columns
%to_block = OpTypePointer Uniform %block
%to_matrix = OpTypePointer Uniform %matrix
%in = OpVariable %to_block Uniform
%none = OpTypeFunction %void
%main = OpFunction %void None %none
%entry = OpLabel
%1 = OpAccessChain %to_matrix %in %n0
OpReturn
OpFunctionEnd
"""


def members(source: str, generator: int = 0) -> tuple[BlockMember, ...]:
    words = list(read_binary(spirv_tools.assemble(ASSEMBLY.format(source=source), "spv1.3")).words)
    words[2] = generator << 16
    (binding,) = reflect(pack(words)).entry_point().bindings
    return binding.members


@needs_tools
@pytest.mark.parametrize(
    ("source", "generator", "are_rows"),
    [
        ("OpSource HLSL 660", 0, True),
        ("OpSource GLSL 450", 40, False),
        ("OpSource Unknown 1", 40, True),  # Slang, whose number older tools do not know
        ("", 40, True),
        ("", 14, True),  # dxc
        ("", 8, False),  # glslang
        ("", 0, False),
    ],
)
def test_columns_are_rows_where_the_language_has_rows(source: str, generator: int, are_rows: bool) -> None:
    matrix, array, by_row, by_column = members(source, generator)
    expected = (3, 4, True) if are_rows else (4, 3, False)
    assert (matrix.components, matrix.columns, matrix.row_major, matrix.size) == (*expected, 48)
    assert (array.components, array.columns, array.row_major, array.size) == (*expected, 96)
    assert (array.array_shape, array.array_strides, array.matrix_stride) == ((2,), (48,), 16)
    # The names of these structures say what their arrays are.
    assert (by_row.components, by_row.columns, by_row.row_major, by_row.size) == (3, 4, True, 48)
    assert (by_column.components, by_column.columns, by_column.row_major, by_column.size) == (3, 4, False, 64)
