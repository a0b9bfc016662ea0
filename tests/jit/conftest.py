"""The devices that functions of JAX run on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pumice


@pytest.fixture(scope="module", params=[pytest.param("vulkan", marks=pytest.mark.vulkan), "reference"])
def device(request: pytest.FixtureRequest) -> Iterator[pumice.Device]:
    with pumice.open_device(request.param) as opened:
        yield opened
