"""The wrappers of the SPIRV-Tools: round trips through the tools, and every way they can refuse."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.devices.shader_tools import assemble, kernel_assembly, needs_tools

from pumice.spirv.checks import tools as spirv_tools
from pumice.status import (
    DeadlineExceededError,
    InvalidArgumentError,
    PumiceError,
    UnavailableError,
    UnknownError,
)

EMPTY_KERNEL = kernel_assembly(decorations='OpName %unused "unused"', types="%unused = OpTypeInt 32 0")


posix = pytest.mark.skipif(sys.platform == "win32", reason="makes an executable out of a shell script")


@pytest.fixture
def code() -> bytes:
    return assemble(EMPTY_KERNEL)


def script(folder: Path, name: str, body: str) -> Path:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return file


@needs_tools
def test_assemble_validate_disassemble_round_trip(code: bytes) -> None:
    spirv_tools.validate(code)
    text = spirv_tools.disassemble(code)
    assert re.search(r'OpEntryPoint GLCompute %\w+ "main"', text)
    again = assemble(text)
    assert spirv_tools.disassemble(again) == text


@needs_tools
@pytest.mark.parametrize(("target", "version"), [("vulkan1.1", 0x10300), ("vulkan1.2", 0x10500), ("spv1.0", 0x10000)])
def test_target_env_fixes_the_version(target: str, version: int) -> None:
    code = assemble(EMPTY_KERNEL, target_env=target)
    assert int.from_bytes(code[4:8], sys.byteorder) == version
    spirv_tools.validate(code, target_env=target)


@needs_tools
def test_a_newer_module_is_invalid_in_an_older_environment() -> None:
    code = assemble(EMPTY_KERNEL, target_env="vulkan1.3")
    with pytest.raises(InvalidArgumentError, match=r"spirv-val: .*[Vv]ersion"):
        spirv_tools.validate(code, target_env="vulkan1.1")


@needs_tools
def test_optimize_removes_what_is_unused(code: bytes) -> None:
    smaller = spirv_tools.optimize(code, "vulkan1.2")
    assert len(smaller) < len(code)
    spirv_tools.validate(smaller)
    assert "OpName %unused" not in spirv_tools.disassemble(smaller)


@needs_tools
def test_assembly_and_its_errors() -> None:
    code = spirv_tools.assemble(EMPTY_KERNEL, "spv1.3")
    assert code[4:8] == (0x10300).to_bytes(4, sys.byteorder)
    assert spirv_tools.assemble(spirv_tools.disassemble(code), "spv1.3")[4:8] == code[4:8]
    with pytest.raises(InvalidArgumentError, match=r"spirv-as: error: 2: 1: Invalid Opcode name 'OpFoo'"):
        spirv_tools.assemble("OpCapability Shader\nOpFoo\n", "spv1.0")


@needs_tools
def test_validate_says_what_the_tool_says(code: bytes) -> None:
    broken = assemble(EMPTY_KERNEL.replace("OpReturn", "OpNop"))
    with pytest.raises(InvalidArgumentError, match=r"spirv-val: (?s:.)*block"):
        spirv_tools.validate(broken)


@pytest.mark.parametrize("wrong", [b"", b"\x03\x02\x23\x07", bytes(19), bytes(21), bytes(23)])
def test_what_cannot_be_a_module_is_refused_at_once(wrong: bytes) -> None:
    for call in (spirv_tools.validate, spirv_tools.disassemble):
        with pytest.raises(InvalidArgumentError, match=f"got {len(wrong)} bytes"):
            call(wrong)


@needs_tools
def test_wrong_magic_is_refused() -> None:
    for call in (spirv_tools.validate, spirv_tools.disassemble):
        with pytest.raises(InvalidArgumentError):
            call(bytes(40))
    with pytest.raises(InvalidArgumentError):
        spirv_tools.optimize(bytes(40), "vulkan1.2")


@needs_tools
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_modules_raise_nothing_but_pumice_errors(code: bytes, data: st.DataObject) -> None:
    damaged = bytearray(code)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(code) - 1))] = data.draw(st.integers(0, 255))
    try:
        spirv_tools.validate(bytes(damaged))
        spirv_tools.disassemble(bytes(damaged))
    except PumiceError:
        pass


@needs_tools
@pytest.mark.parametrize("target", ["vulkan9.9", "", "--help", "a\0b"])
def test_unknown_target_env(code: bytes, target: str) -> None:
    with pytest.raises(InvalidArgumentError):
        spirv_tools.validate(code, target_env=target)


@needs_tools
def test_names_that_are_not_utf8_are_replaced(code: bytes) -> None:
    assert b"unused\0" in code
    assert '"un\ufffdsed"' in spirv_tools.disassemble(code.replace(b"unused\0", b"un\xffsed\0"))


@needs_tools
def test_version() -> None:
    assert spirv_tools.version().startswith("SPIRV-Tools v")


def test_missing_tool_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PUMICE_SPIRV_TOOLS", raising=False)
    with pytest.raises(UnavailableError, match=r"(?s)on PATH.*Install SPIRV-Tools.*PUMICE_SPIRV_TOOLS"):
        spirv_tools.validate(bytes(20))


def test_an_override_is_the_only_place_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_SPIRV_TOOLS", str(tmp_path))
    with pytest.raises(UnavailableError, match="spirv-dis was not found in the folder"):
        spirv_tools.find_tool("spirv-dis")


@posix
class TestTools:
    """Executables that misbehave."""

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PUMICE_SPIRV_TOOLS", str(tmp_path))

    def test_the_override_is_used(self, tmp_path: Path) -> None:
        script(tmp_path, "spirv-dis", "cat >/dev/null; echo from here")
        assert spirv_tools.disassemble(bytes(20)) == "from here\n"

    def test_message_of_any_encoding_and_length(self, tmp_path: Path) -> None:
        script(tmp_path, "spirv-val", r"printf 'bad \377 byte' >&2; head -c 100000 /dev/zero | tr '\0' x >&2; exit 1")
        with pytest.raises(InvalidArgumentError, match="bad \ufffd byte") as info:
            spirv_tools.validate(bytes(20))
        assert len(info.value.message) < 5000

    def test_silent_failure(self, tmp_path: Path) -> None:
        script(tmp_path, "spirv-val", "exit 3")
        with pytest.raises(InvalidArgumentError, match="exit status 3"):
            spirv_tools.validate(bytes(20))

    def test_crash(self, tmp_path: Path) -> None:
        script(tmp_path, "spirv-val", "kill -SEGV $$")
        with pytest.raises(UnknownError, match="signal 11"):
            spirv_tools.validate(bytes(20))

    def test_not_executable_code(self, tmp_path: Path) -> None:
        file = tmp_path / "spirv-val"
        file.write_bytes(b"\x7fELF nonsense")
        file.chmod(0o755)
        with pytest.raises(UnavailableError, match="could not be started"):
            spirv_tools.validate(bytes(20))

    @pytest.mark.slow
    def test_hang(self, tmp_path: Path) -> None:
        file = script(tmp_path, "spirv-val", "exec sleep 60")
        with pytest.raises(DeadlineExceededError, match=r"0\.2 s"):
            spirv_tools.run_tool(file, [], timeout=0.2)

    def test_version_is_asked_for_once_for_each_state_of_the_file(self, tmp_path: Path) -> None:
        body = f"echo x >> {tmp_path}/calls; echo SPIRV-Tools v"
        script(tmp_path, "spirv-val", body + "1")
        assert [spirv_tools.version(), spirv_tools.version()] == ["SPIRV-Tools v1"] * 2
        assert (tmp_path / "calls").read_text() == "x\n"
        (tmp_path / "spirv-val").unlink()
        script(tmp_path, "spirv-val", body + "2")
        assert spirv_tools.version() == "SPIRV-Tools v2"
