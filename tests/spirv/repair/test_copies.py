"""Logical copies taken apart: what a kernel computes that copies between layouts."""

from __future__ import annotations

import numpy as np
import pytest
from support.devices.shader_tools import needs_tools

import pumice
from pumice.spirv.binary.grammar import Op
from pumice.spirv.binary.words import read_binary
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.repair.copies import with_plain_copies

# A structure of a uniform block, copied to the layout of a storage block, and used after the copy.
ASSEMBLY = """
OpCapability Shader
OpExtension "SPV_KHR_storage_buffer_storage_class"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" %in %out
OpExecutionMode %main LocalSize 1 1 1
OpName %in "given"
OpName %out "taken"
OpDecorate %wide ArrayStride 16
OpDecorate %tight ArrayStride 4
OpMemberDecorate %from 0 Offset 0
OpMemberDecorate %from 1 Offset 32
OpMemberDecorate %to 0 Offset 0
OpMemberDecorate %to 1 Offset 8
OpDecorate %uniform Block
OpMemberDecorate %uniform 0 Offset 0
OpDecorate %storage Block
OpMemberDecorate %storage 0 Offset 0
OpMemberDecorate %storage 1 Offset 16
OpDecorate %in DescriptorSet 0
OpDecorate %in Binding 0
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 1
%void = OpTypeVoid
%float = OpTypeFloat 32
%int = OpTypeInt 32 1
%uint = OpTypeInt 32 0
%n0 = OpConstant %int 0
%n1 = OpConstant %int 1
%n2 = OpConstant %uint 2
%wide = OpTypeArray %float %n2
%tight = OpTypeArray %float %n2
%from = OpTypeStruct %wide %float
%to = OpTypeStruct %tight %float
%uniform = OpTypeStruct %from
%storage = OpTypeStruct %to %float
%to_uniform = OpTypePointer Uniform %uniform
%to_storage = OpTypePointer StorageBuffer %storage
%to_from = OpTypePointer Uniform %from
%to_to = OpTypePointer StorageBuffer %to
%to_float = OpTypePointer StorageBuffer %float
%in = OpVariable %to_uniform Uniform
%out = OpVariable %to_storage StorageBuffer
%none = OpTypeFunction %void
%main = OpFunction %void None %none
%entry = OpLabel
%1 = OpAccessChain %to_from %in %n0
%2 = OpLoad %from %1
%3 = OpCopyLogical %to %2
%4 = OpAccessChain %to_to %out %n0
OpStore %4 %3
%5 = OpCompositeExtract %tight %3 0
%6 = OpCompositeExtract %float %5 1
%7 = OpAccessChain %to_float %out %n1
OpStore %7 %6
OpReturn
OpFunctionEnd
"""


@needs_tools
class TestCopies:
    def test_a_copy_is_made_of_its_members(self) -> None:
        code = spirv_tools.assemble(ASSEMBLY, target_env="spv1.5")
        plain = with_plain_copies(code)
        assert Op.CopyLogical in {opcode for opcode, _, _ in read_binary(code)}
        assert Op.CopyLogical not in {opcode for opcode, _, _ in read_binary(plain)}
        assert with_plain_copies(plain) is plain

    @pytest.mark.vulkan
    @pytest.mark.usefixtures("driver")
    def test_values_of_a_copy(self) -> None:
        code = spirv_tools.assemble(ASSEMBLY, target_env="spv1.5")
        with pumice.open_device() as device, device.load_kernel(code) as kernel:
            taken = device.asarray(np.zeros(5, np.float32))
            kernel(given={"member0": {"member0": [1, 2], "member1": 3}}, taken=taken, groups=1)
            assert taken.numpy()[[0, 1, 2, 4]].tolist() == [1, 2, 3, 2]
            taken.close()
