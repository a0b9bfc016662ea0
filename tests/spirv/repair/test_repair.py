"""SPIR-V as IREE's compilers slip it, before and after the repair, judged by spirv-val."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.devices.shader_tools import assemble, needs_tools

from pumice import shaders
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.repair.repair import repair
from pumice.status import PumiceError

SLIPS = """
               OpCapability Shader
{extension}
               OpMemoryModel Logical GLSL450
               OpEntryPoint GLCompute %main "a name" %id %data
               OpExecutionMode %main LocalSize 1 1 1
               OpDecorate %id BuiltIn GlobalInvocationId
               OpDecorate %block BufferBlock
               OpMemberDecorate %block 0 Offset 0
               OpDecorate %data DescriptorSet 0
               OpDecorate %data Binding 0
               OpDecorate %sum NoSignedWrap
               OpDecorate %sum NoUnsignedWrap
       %void = OpTypeVoid
       %uint = OpTypeInt 32 0
       %vec3 = OpTypeVector %uint 3
       %zero = OpConstant %uint 0
        %one = OpConstant %uint 1
      %block = OpTypeStruct %uint
   %in_block = OpTypePointer Uniform %block
    %in_uint = OpTypePointer Uniform %uint
    %in_vec3 = OpTypePointer Input %vec3
         %id = OpVariable %in_vec3 Input
       %data = OpVariable %in_block Uniform
     %fntype = OpTypeFunction %void
       %main = OpFunction %void None %fntype
      %label = OpLabel
      %place = OpAccessChain %in_uint %data %zero
      %value = OpLoad %uint %place
        %sum = OpIAdd %uint %value %one
               OpStore %place %sum
               OpReturn
               OpFunctionEnd
"""


@needs_tools
@pytest.mark.parametrize("extension", ["", 'OpExtension "SPV_KHR_no_integer_wrap_decoration"'])
def test_slips_are_left_out(extension: str) -> None:
    code = assemble(SLIPS.format(extension=extension), target_env="vulkan1.0")
    with pytest.raises(PumiceError):
        spirv_tools.validate(code, target_env="vulkan1.0")
    repaired = repair(code)
    spirv_tools.validate(repaired, target_env="vulkan1.0")
    assert repair(repaired) == repaired
    before, after = (spirv_tools.disassemble(one).splitlines() for one in (code, repaired))
    lost = [line for line in before if line not in after]
    assert len(lost) == (1 if extension else 3)
    assert all("OpEntryPoint" in line or "Wrap" in line for line in lost)


@needs_tools
@pytest.mark.parametrize("environment", ["vulkan1.0", "vulkan1.3"])
def test_an_extension_by_its_old_name(environment: str) -> None:
    old = 'OpExtension "SPV_EXT_physical_storage_buffer"'
    code = assemble(SLIPS.format(extension=old), target_env=environment)
    repaired = spirv_tools.disassemble(repair(code))
    assert "SPV_EXT_physical_storage_buffer" not in repaired
    assert repaired.count('OpExtension "SPV_KHR_physical_storage_buffer"') == 1
    assert repair(repair(code)) == repair(code)
    many = assemble(SLIPS.format(extension="\n".join([old] * 3000)), target_env=environment)
    assert spirv_tools.disassemble(repair(many)).count("SPV_KHR_physical_storage_buffer") == 3000


@pytest.mark.parametrize("name", ["mul", "examples/matmul", "builtin/fill_unaligned"])
def test_what_is_right_stays(name: str) -> None:
    code = shaders.spirv(name)
    assert repair(code) == code


@given(st.binary(max_size=64), st.integers(0, 40))
def test_damage_is_left_to_the_reader(noise: bytes, cut: int) -> None:
    assert repair(noise) == noise
    head = struct.pack("<5I", 0x07230203, 0x00010000, 0, 8, 0)
    damaged = head + noise[: len(noise) - len(noise) % 4]
    assert len(repair(damaged)) <= len(damaged)
    assert repair(shaders.spirv("mul")[: 4 * cut]) == shaders.spirv("mul")[: 4 * cut]
