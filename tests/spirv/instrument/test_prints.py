"""Arguments of prints in modules: of every type, and of types that no valid module has."""

from __future__ import annotations

import pytest
from support.devices.shader_tools import assemble, kernel_assembly, needs_tools

from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.instrument.passes import instrument
from pumice.spirv.instrument.printed import PrintedValue

pytestmark = needs_tools

TYPES = """
    %float = OpTypeFloat 32
    %uint = OpTypeInt 32 0
    %two = OpConstant %uint 2
    %hundred = OpConstant %uint 100
    %vec3 = OpTypeVector %float 3
    %mat2x3 = OpTypeMatrix %vec3 2
    %pair = OpTypeArray %mat2x3 %two
    %long = OpTypeArray %uint %hundred
    %inner = OpTypeStruct %uint %uint
    %outer = OpTypeStruct %inner %uint
    %mixed = OpTypeStruct %uint %float"""
DAMAGED = {"endless": "%endless = OpTypeStruct %endless", "wide": "%wide = OpTypeStruct %wide %wide"}


@pytest.mark.parametrize(
    ("type_name", "form"),
    [
        ("vec3", PrintedValue("f", 32, 3)),
        ("mat2x3", PrintedValue("f", 32, 6)),
        ("pair", PrintedValue("f", 32, 12)),
        ("long", PrintedValue("u", 32, 64)),  # up to there
        ("outer", PrintedValue("u", 32, 3)),
        ("mixed", "?"),
        ("endless", "?"),
        ("wide", "?"),
    ],
)
def test_composites(type_name: str, form: PrintedValue | str) -> None:
    code = assemble(
        kernel_assembly(
            'OpExtension "SPV_KHR_non_semantic_info"\n%print = OpExtInstImport "NonSemantic.DebugPrintf"',
            decorations='%format = OpString "%f"',
            types=f"{TYPES}\n{DAMAGED.get(type_name, '')}\n%value = OpUndef %{type_name}",
            body="%printed = OpExtInst %void %print 1 %format %value",
        ),
        "vulkan1.1",
    )
    found = instrument(code, prints=True)
    assert found is not None
    assert [site.arguments for site in found.prints] == [(form,)]
    if type_name not in DAMAGED:
        spirv_tools.validate(found.code, target_env="vulkan1.1")
