"""Marks for tests that need a GLSL compiler or SPIRV-Tools."""

from __future__ import annotations

import pytest

from pumice.spirv import glsl
from pumice.spirv import tools as spirv_tools
from pumice.status import UnavailableError

__all__ = ["needs_compiler", "needs_tools"]


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


needs_compiler = pytest.mark.skipif(not _installed("glsl"), reason="no GLSL compiler is installed")
needs_tools = pytest.mark.skipif(not _installed(*spirv_tools.SPIRV_TOOLS), reason="SPIRV-Tools are not installed")
