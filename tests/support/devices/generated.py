"""Tests of kernels that are generated as GLSL need a compiler of it."""

from __future__ import annotations

import pytest

from pumice.spirv.sources.glsl import find_compiler
from pumice.status import UnavailableError


def _reason() -> str:
    try:
        find_compiler()
    except UnavailableError as error:
        return error.message
    return ""


needs_glsl = pytest.mark.skipif(bool(_reason()), reason=_reason())
