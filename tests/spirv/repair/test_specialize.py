"""Modules whose lengths and sizes depend on specialization: shown at defaults, judged at the values in use."""

from __future__ import annotations

import struct

import pytest
from support.devices.shader_tools import assemble

from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.reflection.reflection_types import ShaderModuleReflection
from pumice.spirv.repair.specialize import specialize
from pumice.spirv.sources.constants import declares, embedded_source
from pumice.status import InvalidArgumentError

# As ggml's flash attention: shared memory of a / b elements, and a workgroup size with an id of its own.
TEXT = """
    OpCapability Shader
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main "main" %shared %block
    OpExecutionMode %main LocalSize 1 1 1
    OpName %a "rows"
    OpName %a "also_rows"
    OpName %b "split"
    OpName %count "count"
    OpDecorate %a SpecId 3
    OpDecorate %x SpecId 3
    OpDecorate %b SpecId 5
    OpDecorate %count SpecId 6
    OpDecorate %size BuiltIn WorkgroupSize
    OpDecorate %array ArrayStride 4
    OpDecorate %data Block
    OpMemberDecorate %data 0 Offset 0
    OpDecorate %block DescriptorSet 0
    OpDecorate %block Binding 0
    %void = OpTypeVoid
    %function = OpTypeFunction %void
    %uint = OpTypeInt 32 0
    %uvec3 = OpTypeVector %uint 3
    %one = OpConstant %uint 1
    %x = OpSpecConstant %uint {x}
    %a = OpSpecConstant %uint {a}
    %b = OpSpecConstant %uint {b}
    %count = OpSpecConstant %uint {count}
    %size = OpSpecConstantComposite %uvec3 %x %one %one
    %length = OpSpecConstantOp %uint UDiv %a %b
    %of_shared = OpTypeArray %uint %length
    %p_shared = OpTypePointer Workgroup %of_shared
    %array = OpTypeArray %uint %count
    %data = OpTypeStruct %array
    %p_data = OpTypePointer StorageBuffer %data
    %shared = OpVariable %p_shared Workgroup
    %block = OpVariable %p_data StorageBuffer
    %main = OpFunction %void None %function
    %label = OpLabel
    %loaded = OpLoad %of_shared %shared
    %read = OpLoad %data %block
    OpReturn
    OpFunctionEnd
"""


def module(x: int = 1, a: int = 32, b: int = 16, count: int = 4) -> bytes:
    return assemble(TEXT.format(x=x, a=a, b=b, count=count))


def with_values(code: bytes, **values: int) -> ShaderModuleReflection:
    ids = {"a": 3, "b": 5, "count": 6}
    return reflect(specialize(code, {ids[name]: struct.pack("<I", value) for name, value in values.items()}))


def test_a_length_of_none_at_defaults_is_no_error_before_values_are_known() -> None:
    code = module(a=1)
    (reason,) = reflect(code).unsettled
    assert "length 0" in reason and reason.endswith("that set it: 3 (rows), 5 (split)")
    assert reflect(code).entry_points[0].workgroup_memory_bytes is None
    settled = with_values(code, a=64, b=4)
    assert settled.unsettled == ()
    assert settled.entry_points[0].workgroup_memory_bytes == 64
    assert settled.entry_points[0].local_size == (64, 1, 1)


def test_values_that_give_no_length_are_named() -> None:
    code = module()
    assert reflect(code).unsettled == ()
    assert "length 0" in with_values(code, a=8).unsettled[0]
    (by_zero,) = with_values(code, b=0).unsettled
    assert "divides by zero" in by_zero and "5 (split)" in by_zero
    assert [one.split(" has ")[1] for one in with_values(code, count=0).unsettled] == [
        "length 0, expected at least 1; specialization constants that set it: 6 (count)"
    ]


def test_a_length_may_divide_by_zero_where_another_one_is_chosen() -> None:
    """As ggml writes shared memory for kernels that may go without subgroups."""
    chosen = """
    %zero = OpConstant %uint 0
    %bool = OpTypeBool
    %without = OpSpecConstantOp %bool IEqual %b %zero
    %parts = OpSpecConstantOp %uint UDiv %a %b
    %length = OpSpecConstantOp %uint Select %without %a %parts"""
    code = assemble(
        TEXT.replace("%length = OpSpecConstantOp %uint UDiv %a %b", chosen.strip()).format(x=1, a=32, b=16, count=4)
    )
    assert [with_values(code, b=b).entry_points[0].workgroup_memory_bytes for b in (0, 4)] == [128, 32]
    assert "divides by zero" not in str(with_values(code, b=0).unsettled)


def test_a_workgroup_size_of_none_waits_for_a_value() -> None:
    code = module(x=0)
    (reason,) = reflect(code).unsettled
    assert "is 0 in x" in reason and "3" in reason
    assert reflect(code).entry_points[0].local_size == (0, 1, 1)
    assert with_values(code, a=32).unsettled == ()


def test_a_fixed_length_of_none_stays_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="length 0"):
        reflect(assemble(TEXT.format(x=1, a=1, b=1, count=1).replace("OpSpecConstant %uint 1", "OpConstant %uint 0")
                         .replace("OpSpecConstantOp %uint UDiv %a %b", "OpConstant %uint 0")
                         .replace("OpSpecConstantComposite", "OpConstantComposite")))  # fmt: skip


def test_constants_of_one_id_keep_all_names_types_and_defaults() -> None:
    rows, split, count = reflect(module()).specialization_constants
    assert (rows.constant_id, rows.name, rows.default) == (3, "rows", 32)
    assert rows.names == ("rows", "also_rows") and rows.defaults == (1, 32)
    assert str(rows) == "3 (rows, also_rows)"
    assert split.defaults == (16,) and count.names == ("count",)
    assert rows.to_json()["defaults"] == [1, 32]
    both = reflect(specialize(module(), {3: struct.pack("<I", 8)})).specialization_constants[0]
    assert both.defaults == (8,)


@pytest.mark.parametrize(
    ("text", "names", "ids"),
    [
        ("layout(constant_id = 4) const uint rows = 1;", {"rows"}, {4}),
        ("layout (constant_id=4) const float16_t a=1;\nlayout(local_size_x_id = 7) in;", {"a"}, {4, 7}),
        ("[[vk::constant_id(4)]] const int rows = 3;", {"rows"}, {4}),
        ("[vk::constant_id(4)]\nstatic const bool on;", {"on"}, {4}),
        ("@id(4) override rows: u32 = 3;", {"rows"}, {4}),
        ("const uint rows = 1;", set(), set()),
    ],
)
def test_what_sources_declare(text: str, names: set[str], ids: set[int]) -> None:
    assert {name for name in ("rows", "a", "on", "uint", "vk") if declares(text, name)} == names
    assert {number for number in range(10) if declares(text, number)} == ids


def test_ids_that_a_source_leaves_open_may_be_any() -> None:
    for text in ("layout(constant_id = ID) const uint a = 1;", "[SpecializationConstant] const int a = 3;",
                 "override a: u32 = 3;"):  # fmt: skip
        assert declares(text, 9) and declares(text, "a") and not declares(text, "b")


def test_sources_in_debug_information() -> None:
    source = '%file = OpString "a.comp"\nOpSource GLSL 450 %file "layout(constant_id = 9) const uint gone = 1;\n}"\n'
    text = TEXT.format(x=1, a=1, b=1, count=1).replace('OpName %a "rows"', source + 'OpName %a "rows"')
    assert declares(embedded_source(assemble(text)), "gone")
    assert embedded_source(module()) == ""
