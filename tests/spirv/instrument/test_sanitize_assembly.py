"""Forms that no GLSL compiler writes: wide indices, variable pointers, copies, loops of one block, uneven headers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.devices.device_images import run
from support.devices.features import require_features
from support.devices.host_buffers import HOST
from support.devices.shader_tools import assemble

from pumice.hal_vulkan.device import Device
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.instrument.checks import SanitizeOptions
from pumice.spirv.instrument.passes import instrument
from pumice.spirv.instrument.reports import Report

pytestmark = pytest.mark.vulkan

MODULE = """
OpCapability Shader
OpCapability Int64
OpCapability Int16
OpCapability VariablePointers
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main"
OpExecutionMode %main LocalSize 1 1 1
OpName %in "in"
OpDecorate %array ArrayStride 4
OpDecorate %pointer ArrayStride 4
OpMemberDecorate %block 0 Offset 0
OpMemberDecorate %block 1 Offset 4
OpMemberDecorate %block 2 Offset 8
OpDecorate %block Block
OpDecorate %in DescriptorSet 0
OpDecorate %in Binding 0
%void = OpTypeVoid
%bool = OpTypeBool
%uint = OpTypeInt 32 0
%ulong = OpTypeInt 64 0
%short = OpTypeInt 16 1
%array = OpTypeRuntimeArray %uint
%block = OpTypeStruct %uint %uint %array
%to_block = OpTypePointer StorageBuffer %block
%pointer = OpTypePointer StorageBuffer %uint
%in = OpVariable %to_block StorageBuffer
%c0 = OpConstant %uint 0
%c1 = OpConstant %uint 1
%c2 = OpConstant %uint 2
%c32 = OpConstant %uint 32
%c5 = OpConstant %uint 5
%function = OpTypeFunction %void
%takes = OpTypeFunction %uint %pointer
%main = OpFunction %void None %function
%entry = OpLabel
%p_at = OpAccessChain %pointer %in %c0
%at = OpLoad %uint %p_at
%got = OpAccessChain %pointer %in %c1
{body}
OpReturn
OpFunctionEnd
{more}
"""


@dataclasses.dataclass(frozen=True)
class Case:
    """Code that writes ``%got``: right with ``at`` = 1, then it is ``gives``, and wrong with ``at`` = ``wrong``."""

    body: str
    wrong: int
    index: int
    gives: int = 11
    skipped: int = 0
    limit: int = 8
    more: str = ""


CASES = {
    "index of 64 bits": Case(
        """
    %w = OpUConvert %ulong %at
    %k = OpIMul %ulong %w %w
    %p = OpAccessChain %pointer %in %c2 %k
    %v = OpLoad %uint %p
    OpStore %got %v
    """,
        1 << 17,
        1 << 34,
    ),
    "index of 16 bits, negative": Case(
        """
        %w = OpSConvert %short %at
        %p = OpAccessChain %pointer %in %c2 %w
        %v = OpLoad %uint %p
        OpStore %got %v
        """,
        0xFFFE,
        0xFFFFFFFFFFFFFFFE,
    ),
    "copy of memory": Case(
        """
        %p = OpAccessChain %pointer %in %c2 %at
        OpCopyMemory %got %p
        """,
        8,
        8,
        skipped=99,
    ),
    "selected pointer": Case(
        """
        %is_small = OpULessThan %bool %at %c5
        %p = OpAccessChain %pointer %in %c2 %at
        %q = OpAccessChain %pointer %in %c2 %c2
        %one = OpSelect %pointer %is_small %p %q
        %v = OpLoad %uint %one
        OpStore %got %v
        """,
        8,
        8,
        skipped=12,
    ),
    "pointer as an argument": Case(
        """
        %p = OpInBoundsAccessChain %pointer %in %c2 %at
        %v = OpFunctionCall %uint %loads %p
        OpStore %got %v
        """,
        9,
        9,
        skipped=10,
        more="""
        %loads = OpFunction %uint None %takes
        %parameter = OpFunctionParameter %pointer
        %start = OpLabel
        %loaded = OpLoad %uint %parameter
        OpReturnValue %loaded
        OpFunctionEnd
        """,
    ),
    "copied pointer": Case(
        """
        %p = OpAccessChain %pointer %in %c2 %at
        %q = OpCopyObject %pointer %p
        %v = OpAtomicIAdd %uint %q %c1 %c0 %c1
        OpStore %got %v
        """,
        10,
        10,
    ),
    "loop of one block": Case(
        """
        OpBranch %loop
        %loop = OpLabel
        %i = OpPhi %uint %c0 %entry %next %loop
        %sum = OpPhi %uint %c0 %entry %added %loop
        %p = OpAccessChain %pointer %in %c2 %i
        %v = OpLoad %uint %p
        %added = OpIAdd %uint %sum %v
        %next = OpIAdd %uint %i %c1
        %goes_on = OpULessThanEqual %bool %next %at
        OpLoopMerge %done %loop None
        OpBranchConditional %goes_on %loop %done
        %done = OpLabel
        %total = OpPhi %uint %added %loop
        OpStore %got %total
        """,
        9,
        8,
        gives=21,
        skipped=108,
    ),
    "header with two ways into the loop": Case(
        """
        OpBranch %header
        %header = OpLabel
        %i = OpPhi %uint %c0 %entry %next %latch
        %sum = OpPhi %uint %c0 %entry %added %latch
        %p = OpAccessChain %pointer %in %c2 %i
        %v = OpLoad %uint %p
        %is_first = OpIEqual %bool %i %c0
        OpLoopMerge %done %latch None
        OpBranchConditional %is_first %left %right
        %left = OpLabel
        %twice = OpIAdd %uint %v %v
        OpBranch %latch
        %right = OpLabel
        OpBranch %latch
        %latch = OpLabel
        %term = OpPhi %uint %twice %left %v %right
        %added = OpIAdd %uint %sum %term
        %next = OpIAdd %uint %i %c1
        %goes_on = OpULessThanEqual %bool %next %at
        OpBranchConditional %goes_on %header %done
        %done = OpLabel
        OpStore %got %added
        """,
        8,
        8,
        gives=31,
        skipped=118,
    ),
}


@pytest.mark.sample(13)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("environment", ["vulkan1.1", "vulkan1.1spv1.4", "vulkan1.2", "vulkan1.3"])
def test_a_wrong_access_is_reported(device: Device, name: str, environment: str) -> None:
    case = CASES[name]
    text = MODULE.format(body=case.body, more=case.more)
    if environment != "vulkan1.1":
        text = text.replace('"main"', '"main" %in')
    code = assemble(text, environment)
    spirv_tools.validate(code, target_env=environment)
    found = instrument(code, guard=False, sanitize=SanitizeOptions())
    assert found is not None
    spirv_tools.validate(found.code, target_env=environment)
    assert found.code[4:8] == code[4:8]
    require_features(device, "shaderInt16", "shaderInt64", "variablePointers")
    with (
        device.create_buffer(40, memory_type=HOST) as buffer,
        device.create_buffer(found.report_bytes, memory_type=HOST) as report,
        device.create_executable(found.code) as executable,
    ):
        for at, is_right in ((1, True), (case.wrong, False)):
            buffer.write(np.array([at, 99, *range(10, 18)], np.uint32).tobytes())
            report.write(bytes(found.report_bytes))
            run(device, executable.pipeline(), [buffer, report])
            said = Report.read(report.read(), found.sites)
            got = int(np.frombuffer(buffer.read(), np.uint32)[1])
            if is_right:
                assert (said, got) == (None, case.gives)
            else:
                assert said is not None
                assert (said.site.name, said.site.rule, said.index, said.limit) == (
                    "in.member2[]",
                    "index",
                    case.index,
                    case.limit,
                )
                assert got == case.skipped
