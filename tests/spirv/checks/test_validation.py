"""Verdicts of spirv-val: real violations stay refused, words that it is too old for are no verdict."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.devices.shader_tools import assemble, kernel_assembly, needs_tools

from pumice.base.cache import usage
from pumice.spirv.binary.grammar import ENUMERATIONS
from pumice.spirv.binary.words import read_binary
from pumice.spirv.checks import validation
from pumice.spirv.checks.tools import find_tool
from pumice.spirv.checks.validation import Judgement, ensure_valid
from pumice.spirv.checks.vocabulary import newer_than_validator, without_new_languages
from pumice.spirv.repair.hints import without_debug_info
from pumice.status import InvalidArgumentError, UnavailableError

pytestmark = needs_tools

BLOCK_OF_VEC3 = {
    "decorations": """
        OpDecorate %array ArrayStride 12
        OpDecorate %block Block
        OpMemberDecorate %block 0 Offset 0
        OpDecorate %x DescriptorSet 0
        OpDecorate %x Binding 0""",
    "types": """
        %float = OpTypeFloat 32
        %vec3 = OpTypeVector %float 3
        %array = OpTypeRuntimeArray %vec3
        %block = OpTypeStruct %array
        %pointer = OpTypePointer StorageBuffer %block
        %x = OpVariable %pointer StorageBuffer""",
}
BFLOAT16 = ENUMERATIONS["Capability"].BFloat16TypeKHR


def module(declarations: str = "", **parts: str) -> bytes:
    return assemble(kernel_assembly(declarations, **parts), "vulkan1.1")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No verdict is remembered from elsewhere."""
    monkeypatch.setenv("PUMICE_CACHE", "0")
    monkeypatch.delenv("PUMICE_REQUIRE_SPIRV_VAL", raising=False)
    monkeypatch.setattr(validation, "_passed", {})
    monkeypatch.setattr(validation, "_unjudged", {})
    validation._warn_once.cache_clear()
    yield
    validation._warn_once.cache_clear()


def tool_knows(number: int) -> bool:
    try:
        ensure_valid(module(declarations=f"OpCapability !{number}"), "vulkan1.1")
    except InvalidArgumentError:
        return True
    return not validation._unjudged


# -- what the device was opened with -----------------------------------------------------------------


def test_an_array_of_vec3_at_stride_12_needs_scalar_layout() -> None:
    code = module(**BLOCK_OF_VEC3)
    with pytest.raises(InvalidArgumentError, match="spirv-val"):
        ensure_valid(code, "vulkan1.1")
    ensure_valid(code, "vulkan1.1", frozenset({"scalarBlockLayout"}))
    # What passed with one device's rules has not passed with another's.
    with pytest.raises(InvalidArgumentError, match="spirv-val"):
        ensure_valid(code, "vulkan1.1", frozenset({"uniformBufferStandardLayout"}))


def test_stamps_hold_for_the_options_that_they_were_made_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_CACHE", "1")
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(tmp_path))
    code = module(**BLOCK_OF_VEC3)
    ensure_valid(code, "vulkan1.1", frozenset({"scalarBlockLayout"}))
    assert usage() == [("spirv-val", 1, 47)]
    monkeypatch.setattr(validation, "_passed", {})
    with pytest.raises(InvalidArgumentError, match="spirv-val"):
        ensure_valid(code, "vulkan1.1")
    ensure_valid(code, "vulkan1.1", frozenset({"scalarBlockLayout"}))


# -- vocabulary --------------------------------------------------------------------------------------


def test_a_capability_that_the_tool_does_not_know_is_no_verdict(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tool_knows(BFLOAT16):
        pytest.skip("the installed spirv-val knows BFloat16TypeKHR")
    code = module(declarations=f'OpCapability !{BFLOAT16}\nOpExtension "SPV_KHR_bfloat16"')
    validation._warn_once.cache_clear()
    caplog.clear()
    with caplog.at_level(logging.WARNING, "pumice.spirv"):
        ensure_valid(code, "vulkan1.1")
        ensure_valid(code, "vulkan1.1")
    (record,) = caplog.records
    assert "capability BFloat16TypeKHR" in record.getMessage()
    assert "install a newer one" in record.getMessage()
    monkeypatch.setenv("PUMICE_REQUIRE_SPIRV_VAL", "1")
    with pytest.raises(UnavailableError, match=r"PUMICE_REQUIRE_SPIRV_VAL.*BFloat16TypeKHR.*cannot judge"):
        ensure_valid(code, "vulkan1.1")


@pytest.mark.parametrize(
    "parts",
    [
        {"declarations": "OpCapability !60000"},
        {"control": "!524288"},
        {"decorations": "OpDecorate %main !9999"},
        {"types": "%set = OpTypePointer !77 %void"},
        {"declarations": "OpCapability ComputeDerivativeGroupQuadsNV"},
        {"body": "OpReturn"},
        {"types": "%u3 = OpTypeInt 3 0"},
    ],
    ids=["capability", "mask", "decoration", "class", "extension", "block", "width"],
)
def test_what_breaks_a_rule_stays_refused(parts: dict[str, str]) -> None:
    """Numbers that mean nothing, and rules of any other kind."""
    with pytest.raises(InvalidArgumentError, match="spirv-val"):
        ensure_valid(module(**parts), "vulkan1.1")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"\xfd\x00\x01\x00", b"\xfd\x00\x02\x00\x01\x00\x00\x00"),  # OpReturn with an operand
        (b"\xfd\x00\x01\x00", struct.pack("<I", 1 << 16 | 4999)),
        (b"GLSL.std.450", b"GLSL.std.453"),
    ],
    ids=["operands", "opcode", "set"],
)
def test_words_that_no_release_has_stay_refused(old: bytes, new: bytes) -> None:
    code = module(declarations='%set = OpExtInstImport "GLSL.std.450"').replace(old, new)
    with pytest.raises(InvalidArgumentError, match="spirv-val"):
        ensure_valid(code, "vulkan1.1")


def test_source_languages_that_the_tool_does_not_know_hide_nothing() -> None:
    """A shader of Slang's is judged, not waved through."""
    slang = ENUMERATIONS["SourceLanguage"].Slang
    ensure_valid(module(decorations=f"OpSource !{slang} 1"), "vulkan1.1")
    assert not validation._unjudged
    with pytest.raises(InvalidArgumentError, match="Block|Return"):
        ensure_valid(module(decorations=f"OpSource !{slang} 1", body="OpReturn"), "vulkan1.1")
    with pytest.raises(InvalidArgumentError, match="source language"):
        ensure_valid(module(decorations="OpSource !4000 1"), "vulkan1.1")
    known = module(decorations="OpSource GLSL 450")
    assert without_new_languages(known) == known


def test_an_extension_under_its_later_name() -> None:
    """The tool knows the number, but asks for the name that the extension had."""
    message = (
        "spirv-val: error: line 2: 1st operand of Capability: operand ComputeDerivativeGroupQuadsNV(5288) requires one "
        "of these extensions: SPV_NV_compute_shader_derivatives"
    )
    declarations = "OpCapability ComputeDerivativeGroupQuadsNV"
    assert newer_than_validator(
        module(declarations=f'{declarations}\nOpExtension "SPV_KHR_compute_shader_derivatives"'), message
    )
    assert not newer_than_validator(module(declarations=declarations), message)
    assert not newer_than_validator(module(declarations=f'{declarations}\nOpExtension "SPV_KHR_8bit_storage"'), message)


@pytest.mark.parametrize(
    ("message", "newer"),
    [
        ("error: line 2: Invalid capability operand: 5116", "capability BFloat16TypeKHR"),
        ("error: line 3: Invalid opcode: 4433", "opcode 4433"),
        ("error: line 3: Invalid execution mode operand: 6023", "execution mode 6023"),
        ("error: line 3: Invalid opcode: 4163", ""),
        ("error: line 3: Invalid decoration operand: 5636", ""),
        ("error: 2: Invalid extended instruction import 'NonSemantic.Shader.DebugInfo'", "DebugInfo"),
        ("error: 2: Invalid extended instruction import 'GLSL.std.450'", "GLSL.std.450"),
        ("error: 2: Invalid extended instruction import 'Evil'", ""),
        ("error: line 9: Invalid instruction OpTypeFloat starting at word 29: expected no more operands after 3 words, "
         "but stated word count is 4.", ""),
        ("error: line 4: ID 5 has not been defined", ""),
        ("error: line 8: Invalid number of bits (4) used for OpTypeInt.", ""),
        ("error: 31: Block must end with a branch instruction.", ""),
    ],
)  # fmt: skip
def test_only_complaints_about_words_are_doubted(message: str, newer: str) -> None:
    declared = ("SPV_KHR_relaxed_extended_instruction", "SPV_KHR_maximal_reconvergence")
    extensions = "\n".join(f'OpExtension "{name}"' for name in declared)
    found = newer_than_validator(module(declarations=f"OpCapability !{BFLOAT16}\n{extensions}"), message)
    assert newer in found and bool(found) == bool(newer)


# -- older and stranger tools ------------------------------------------------------------------------


def _wrapped(folder: Path, usage: str) -> None:
    tool = folder / "spirv-val"
    tool.write_text(
        "#!/bin/sh\n"
        f'case "$1" in --help) echo "{usage}"; exit 0;; esac\n'
        f'echo "$@" >> {folder}/calls\n'
        f'exec {find_tool("spirv-val")} "$@"\n'
    )
    tool.chmod(0o755)


def test_tools_without_the_environment_check_by_the_newest_that_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _wrapped(tmp_path, "--target-env {vulkan1.1spv1.4|vulkan1.0|vulkan1.1|vulkan1.2} --scalar-block-layout")
    code = module()
    monkeypatch.setenv("PUMICE_SPIRV_TOOLS", str(tmp_path))
    ensure_valid(code, "vulkan1.4", frozenset({"scalarBlockLayout", "maintenance4"}))
    (call, *_) = (tmp_path / "calls").read_text().splitlines()
    assert call == "--target-env vulkan1.2 --scalar-block-layout -"
    words = list(read_binary(code).words)
    words[1] = 0x10600
    newest = struct.pack(f"<{len(words)}I", *words)
    ensure_valid(newest, "vulkan1.4")
    (reason,) = validation._unjudged.values()
    assert "SPIR-V 1.6" in reason


# -- debug information -------------------------------------------------------------------------------

# A pointer to a vector, which releases before 2023.3 refuse, and to a number that is no type, which all refuse.
DEBUG_POINTER = {
    "declarations": """OpExtension "SPV_KHR_non_semantic_info"
        %debug = OpExtInstImport "NonSemantic.Shader.DebugInfo.100"
        %print = OpExtInstImport "NonSemantic.DebugPrintf\"""",
    "decorations": """%text = OpString "uint"
        %format = OpString "printed\"""",
    "types": """
        %uint = OpTypeInt 32 0
        %n3 = OpConstant %uint 3
        %n6 = OpConstant %uint 6
        %n8 = OpConstant %uint 8
        %n32 = OpConstant %uint 32
        %basic = OpExtInst %void %debug DebugTypeBasic %text %n32 %n6 %n8
        %vector = OpExtInst %void %debug DebugTypeVector %basic %n3
        %pointer = OpExtInst %void %debug DebugTypePointer BASE %n8 %n8""",
}


def with_pointer(base: str, body: str = "") -> bytes:
    return module(**{key: text.replace("BASE", base) for key, text in DEBUG_POINTER.items()}, body=body)


@pytest.mark.parametrize("base", ["%vector", "%text"])
def test_debug_information_decides_nothing(base: str) -> None:
    """spirv-val of 2023 refuses what compilers write since then; a broken rule beside it stays one."""
    judgement = ensure_valid(with_pointer(base), "vulkan1.1")
    assert judgement is Judgement.WITHOUT_DEBUG_INFO or (base == "%vector" and judgement is Judgement.VALID)
    assert ensure_valid(with_pointer(base), "vulkan1.1") is judgement
    assert ensure_valid(with_pointer("%basic"), "vulkan1.1") is Judgement.VALID
    assert not validation._unjudged
    with pytest.raises(InvalidArgumentError, match="Unreachable|Return|block"):
        ensure_valid(with_pointer(base, body="OpReturn"), "vulkan1.1")


def test_a_kept_judgement_is_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PUMICE_CACHE")
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        assert ensure_valid(with_pointer("%text"), "vulkan1.1") is Judgement.WITHOUT_DEBUG_INFO
        assert ensure_valid(with_pointer("%basic"), "vulkan1.1") is Judgement.VALID
        monkeypatch.setattr(validation, "_passed", {})


def test_a_module_without_debug_information_prints_as_before() -> None:
    body = "%printed = OpExtInst %void %print 1 %format"
    code = without_debug_info(with_pointer("%text", body=body))
    assert b"DebugPrintf" in code and b"DebugInfo" not in code
    assert ensure_valid(code, "vulkan1.1") is Judgement.VALID
    plain = module()
    assert without_debug_info(plain) is plain
