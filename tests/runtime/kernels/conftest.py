"""A device with mapped memory and one with the staging path, for tests of kernels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pumice
from pumice import shaders


@pytest.fixture(params=["mapped", "staging"])
def device(request: pytest.FixtureRequest) -> Iterator[pumice.Device]:
    with pumice.open_device(staging=request.param == "staging") as opened:
        yield opened


@pytest.fixture
def mul(device: pumice.Device) -> pumice.Kernel:
    return device.load_kernel(shaders.source_path("mul"))
