"""Large zero values stored by loops: what the kernels compute, and in what time."""

from __future__ import annotations

import time

import numpy as np
import pytest
from support.devices.shader_tools import needs_tools

import pumice
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.repair.zeros import with_zero_loops

# As naga writes it: {place} is where the large variable is, {start} what the entry point does first.
ASSEMBLY = """
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" %local {interface}
OpExecutionMode %main LocalSize {size} 1 1
OpName %values "values"
OpDecorate %words ArrayStride 4
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %values DescriptorSet 0
OpDecorate %values Binding 0
OpDecorate %local BuiltIn {built_in}
%void = OpTypeVoid
%bool = OpTypeBool
%uint = OpTypeInt 32 0
%v3 = OpTypeVector %uint 3
%b3 = OpTypeVector %bool 3
%n0 = OpConstant %uint 0
%n1 = OpConstant %uint 1
%n2 = OpConstant %uint 2
%n3 = OpConstant %uint 3
%n5 = OpConstant %uint 5
%n30 = OpConstant %uint 30
%n264 = OpConstant %uint 264
%long = OpConstant %uint {length}
%many = OpTypeArray %uint %long
%row = OpTypeArray %v3 %n5
%grid = OpTypeArray %row %n30
%large = OpTypeStruct %many %uint %grid
%zero = OpConstantNull %large
%v3zero = OpConstantNull %v3
%words = OpTypeRuntimeArray %uint
%block = OpTypeStruct %words
%to_block = OpTypePointer StorageBuffer %block
%to_word = OpTypePointer StorageBuffer %uint
%values = OpVariable %to_block StorageBuffer
%to_local = OpTypePointer Input {local}
%local = OpVariable %to_local Input
%to_large = OpTypePointer {storage} %large
%to_part = OpTypePointer {storage} %uint
{variable}
%function = OpTypeFunction %void
%main = OpFunction %void None %function
%start = OpLabel
{own}
%loaded = OpLoad {local} %local
{index}
{first}
OpSelectionMerge %then None
OpBranchConditional %is_first %zeroing %then
%zeroing = OpLabel
{store}
OpBranch %then
%then = OpLabel
OpControlBarrier %n2 %n2 %n264
%in = OpAccessChain %to_word %values %n0 %at
%word = OpLoad %uint %in
%wrapped = OpUMod %uint %word %long
%part = OpAccessChain %to_part %state %n0 %wrapped
%middle = OpAccessChain %to_part %state %n1
%corner = OpAccessChain %to_part %state %n2 %n3 %n2 %n1
%a = OpLoad %uint %part
%b = OpLoad %uint %middle
%c = OpLoad %uint %corner
OpControlBarrier %n2 %n2 %n264
OpStore %part %word
OpStore %middle %word
OpStore %corner %word
%d = OpBitwiseOr %uint %a %b
%e = OpBitwiseOr %uint %c %d
OpStore %in %e
OpReturn
OpFunctionEnd
"""
INDEX = {
    "built_in": "LocalInvocationIndex",
    "local": "%uint",
    "index": "%at = OpIAdd %uint %loaded %n0",
    "first": "%is_first = OpIEqual %bool %loaded %n0",
}
POSITION = {
    "built_in": "LocalInvocationId",
    "local": "%v3",
    "index": "%at = OpCompositeExtract %uint %loaded 0",
    "first": "%equal = OpIEqual %b3 %loaded %v3zero\n%is_first = OpAll %bool %equal",
}
OTHER = {**INDEX, "first": "%is_first = OpULessThan %bool %loaded %n1"}
GROUP = {
    "storage": "Workgroup",
    "variable": "%state = OpVariable %to_large Workgroup",
    "own": "",
    "store": "OpStore %state %zero",
    "interface": "",
}
PRIVATE = {
    "storage": "Private",
    "variable": "%state = OpVariable %to_large Private %zero",
    "own": "",
    "store": "",
    "interface": "",
}
FUNCTION = {
    "storage": "Function",
    "variable": "",
    "own": "%state = OpVariable %to_large Function %zero",
    "store": "",
    "interface": "",
}


def module(start: dict[str, str], place: dict[str, str], size: int = 64, length: int = 77) -> bytes:
    return spirv_tools.assemble(ASSEMBLY.format(**start, **place, size=size, length=length), "spv1.3")


def loops(code: bytes) -> int:
    return spirv_tools.disassemble(code).count("OpLoopMerge")


@needs_tools
@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("start", "place", "size", "length", "count"),
    [
        (INDEX, GROUP, 64, 77, 2),  # the 450 components of the rest take a loop, too
        (POSITION, GROUP, 64, 128, 2),
        (INDEX, GROUP, 256, 200, 0),  # each invocation stores at most one element
        (OTHER, GROUP, 64, 77, 2),
        (INDEX, PRIVATE, 1, 77, 2),
        (INDEX, FUNCTION, 64, 77, 2),
    ],
    ids=["index", "position", "large group", "other test", "private", "function"],
)
def test_zeros(start: dict[str, str], place: dict[str, str], size: int, length: int, count: int) -> None:
    code = module(start, place, size, length)
    looped = with_zero_loops(code, reflect(code))
    spirv_tools.validate(looped)
    assert loops(looped) == count
    assert with_zero_loops(looped, reflect(looped)) == looped
    with pumice.open_device() as device, device.load_kernel(code) as kernel:
        dirty = np.full(size, 0x5A5A5A5A, np.uint32)
        for _ in range(3):  # what one call leaves in memory is gone in the next
            np.testing.assert_array_equal(kernel(dirty, groups=1), np.zeros(size))


@needs_tools
def test_invocations_share_the_zeros_only_where_nothing_comes_before() -> None:
    shared = module(INDEX, GROUP, 256, 200)
    early = {**INDEX, "index": INDEX["index"] + "\n%p = OpAccessChain %to_part %state %n1\n%q = OpLoad %uint %p"}
    local = {**INDEX, "index": INDEX["index"] + "\n%p = OpLoad %uint %mine"}
    local_code = ASSEMBLY.format(
        **local, **{**GROUP, "own": "%mine = OpVariable %to_mine Function"}, size=256, length=200
    )
    local_code = local_code.replace("%to_local =", "%to_mine = OpTypePointer Function %uint\n%to_local =")
    for code, count in [
        (shared, 0),
        (spirv_tools.assemble(local_code, "spv1.3"), 0),
        (module(early, GROUP, 256, 200), 2),
        (module(OTHER, GROUP, 256, 200), 2),
    ]:
        looped = with_zero_loops(code, reflect(code))
        spirv_tools.validate(looped)
        assert loops(looped) == count


@needs_tools
def test_other_modules_stay_as_they_are() -> None:
    for length in (2, 10):
        text = ASSEMBLY.format(**INDEX, **GROUP, size=64, length=length).replace(
            "%large = OpTypeStruct %many %uint %grid", "%large = OpTypeStruct %many %uint %v3"
        )
        code = spirv_tools.assemble(
            text.replace(
                "%corner = OpAccessChain %to_part %state %n2 %n3 %n2 %n1",
                "%corner = OpAccessChain %to_part %state %n2 %n1",
            ),
            "spv1.3",
        )
        assert with_zero_loops(code, reflect(code)) is code


@needs_tools
@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_much_workgroup_memory_takes_no_time_to_compile() -> None:
    code = module(INDEX, GROUP, 256, 2048)
    with pumice.open_device(persistent_cache=False) as device:
        start = time.perf_counter()
        device.load_kernel(code)(np.zeros(256, np.uint32), groups=1)
        assert time.perf_counter() - start < 8  # by one store: 15 s and more on lavapipe
