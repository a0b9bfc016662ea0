"""Marks for tests that need a GLSL compiler or SPIRV-Tools, and the assembler."""

from __future__ import annotations

import subprocess

import pytest

from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.sources import glsl
from pumice.status import UnavailableError

__all__ = ["assemble", "kernel_assembly", "needs_compiler", "needs_tools"]


def _installed(*tools: str) -> bool:
    try:
        for name in tools:
            if name == "glsl":
                glsl.find_compiler()
            else:
                spirv_tools.find_tool(name)
    except UnavailableError:
        return False
    return True


def assemble(text: str, target_env: str = "vulkan1.2") -> bytes:
    """The module of an assembly text, not validated; skips the test where spirv-as is not installed."""
    if not _installed("spirv-as"):
        pytest.skip("spirv-as is not installed")
    command = [spirv_tools.find_tool("spirv-as"), "--target-env", target_env, "-o", "-", "-"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout


def kernel_assembly(
    declarations: str = "", *, decorations: str = "", types: str = "", body: str = "", control: str = "None"
) -> str:
    """The assembly text of a compute shader that does nothing but ``body``."""
    return f"""OpCapability Shader
        {declarations}
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main "main"
        OpExecutionMode %main LocalSize 1 1 1
        {decorations}
        %void = OpTypeVoid
        %function = OpTypeFunction %void
        {types}
        %main = OpFunction %void {control} %function
        %label = OpLabel
        {body}
        OpReturn
        OpFunctionEnd
    """


needs_compiler = pytest.mark.skipif(not _installed("glsl"), reason="no GLSL compiler is installed")
needs_tools = pytest.mark.skipif(not _installed(*spirv_tools.SPIRV_TOOLS), reason="SPIRV-Tools are not installed")
