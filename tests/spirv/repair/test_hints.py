"""Modules without what means nothing for their execution: valid, and the same to reflection."""

from __future__ import annotations

import pytest
from support.devices.shader_tools import assemble, kernel_assembly, needs_tools

from pumice.spirv.checks import tools
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.repair.hints import HINT_EXTENSIONS, without_hints

pytestmark = needs_tools

TEXT = """
    OpCapability Shader
    OpExtension "SPV_GOOGLE_hlsl_functionality1"
    OpExtension "SPV_GOOGLE_user_type"
    OpExtension "SPV_GOOGLE_decorate_string"
    OpExtension "SPV_KHR_no_integer_wrap_decoration"
    OpExtension "SPV_KHR_non_semantic_info"
    OpExtension "SPV_KHR_storage_buffer_storage_class"
    %debug = OpExtInstImport "NonSemantic.Example"
    %std = OpExtInstImport "GLSL.std.450"
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main "main"
    OpExecutionMode %main LocalSize 1 1 1
    OpName %debug "debug"
    OpName %x "x"
    OpName %note "note"
    OpDecorateString %x UserTypeGOOGLE "rwstructuredbuffer:<float>"
    OpDecorate %x DescriptorSet 0
    OpDecorate %x Binding 0
    OpDecorate %array ArrayStride 4
    OpDecorate %block Block
    OpMemberDecorate %block 0 Offset 0
    OpMemberDecorateString %block 0 UserSemantic "VALUE"
    OpDecorate %sum NoSignedWrap
    %void = OpTypeVoid
    %function = OpTypeFunction %void
    %int = OpTypeInt 32 1
    %zero = OpConstant %int 0
    %array = OpTypeRuntimeArray %int
    %block = OpTypeStruct %array
    %pointer = OpTypePointer StorageBuffer %block
    %element = OpTypePointer StorageBuffer %int
    %x = OpVariable %pointer StorageBuffer
    %note = OpExtInst %void %debug 1 %zero
    %main = OpFunction %void None %function
    %label = OpLabel
    %at = OpAccessChain %element %x %zero %zero
    %old = OpLoad %int %at
    %sum = OpIAdd %int %old %old
    %new = OpExtInst %int %std SAbs %sum
    OpStore %at %new
    OpReturn
    OpFunctionEnd
"""


def test_every_hint_goes_and_the_module_stays_valid() -> None:
    code = assemble(TEXT, "vulkan1.1")
    bare = without_hints(code, HINT_EXTENSIONS)
    tools.validate(bare, target_env="vulkan1.1")
    assert reflect(bare).extensions == ("SPV_KHR_storage_buffer_storage_class",)
    assert reflect(bare).entry_points == reflect(code).entry_points
    text = tools.disassemble(bare)
    for word in ("GOOGLE", "Semantic", "NoSignedWrap", "note", "debug"):
        assert word not in text, word
    assert "SAbs" in text


def test_only_what_is_named_goes() -> None:
    code = assemble(TEXT, "vulkan1.1")
    assert without_hints(code, frozenset()) == code
    some = reflect(without_hints(code, frozenset({"SPV_GOOGLE_user_type"}))).extensions
    assert len(some) == len(reflect(code).extensions) - 1
    text = tools.disassemble(without_hints(code, frozenset({"SPV_GOOGLE_user_type"})))
    assert "UserTypeGOOGLE" not in text and "UserSemantic" in text and "NonSemantic.Example" in text


def test_what_optimizers_may_assume() -> None:
    """OpAssumeTrueKHR goes, OpExpectKHR is its value; the assembler here may be older than both."""
    used, types = "\n%used = OpLogicalNot %bool %expected", "%bool = OpTypeBool\n%true = OpConstantTrue %bool"
    hinted = assemble(
        kernel_assembly(
            'OpCapability !5629\nOpExtension "SPV_KHR_expect_assume"',
            types=types,
            body="!0x215fe %true\n%expected = OpExpectKHR %bool %true %true" + used,
        ).replace("!0x215fe", "OpAssumeTrueKHR")
    )
    bare = without_hints(hinted, HINT_EXTENSIONS)
    tools.validate(bare, target_env="vulkan1.2")
    plain = assemble(kernel_assembly(types=types, body="%expected = OpCopyObject %bool %true" + used))
    assert tools.disassemble(bare).split("OpCapability")[1] == tools.disassemble(plain).split("OpCapability")[1]


def test_the_old_name_of_buffer_addresses() -> None:
    text = TEXT.replace("SPV_KHR_storage_buffer_storage_class", "SPV_EXT_physical_storage_buffer")
    extensions = reflect(without_hints(assemble(text), frozenset())).extensions
    assert "SPV_KHR_physical_storage_buffer" in extensions and "SPV_EXT_physical_storage_buffer" not in extensions


@pytest.mark.parametrize("extension", sorted(HINT_EXTENSIONS))
def test_a_module_without_hints_is_unchanged(extension: str) -> None:
    code = assemble(kernel_assembly())
    assert without_hints(code, frozenset({extension})) is code
