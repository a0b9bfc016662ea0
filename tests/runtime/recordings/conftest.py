"""Devices with mapped memory and with the staging path, and kernels whose calls are recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import pumice

_ADD = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Push { float dt; uint n; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < n) y[i] += dt * x[i]; }
"""
_COUNT = """
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Hits { uint hits[]; };
void main() { atomicAdd(hits[gl_WorkGroupID.x], gl_NumWorkGroups.y); }
"""
_SCALE = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) uniform Params { float factor; int offset; } params;
layout(binding = 1) buffer Z { float z[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < z.length()) z[i] = params.factor * z[i] + params.offset; }
"""


@pytest.fixture(params=["mapped", "staging"])
def device(request: pytest.FixtureRequest) -> Iterator[pumice.Device]:
    with pumice.open_device(staging=request.param == "staging") as opened:
        yield opened


@pytest.fixture
def add(device: pumice.Device, tmp_path: Path) -> pumice.Kernel:
    """``y += dt * x`` for the first n elements."""
    return _named(device, _ADD, tmp_path / "add.comp")


@pytest.fixture
def count(device: pumice.Device, tmp_path: Path) -> pumice.Kernel:
    """Adds the square of the workgroups in y to an element for each workgroup in x."""
    return _named(device, _COUNT, tmp_path / "count.comp")


@pytest.fixture
def scale(device: pumice.Device, tmp_path: Path) -> pumice.Kernel:
    """``z = factor * z + offset`` by a uniform block."""
    return _named(device, _SCALE, tmp_path / "scale.comp")


def _named(device: pumice.Device, text: str, path: Path) -> pumice.Kernel:
    path.write_text(text.lstrip())
    return device.load_kernel(path)
