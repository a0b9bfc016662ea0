"""The hal module's state on a fresh device."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pumice.hal_vulkan import Device
from pumice.runtime.modules.hal.module import HalState


@pytest.fixture
def state(device: Device) -> Iterator[HalState]:
    """The state of one context, closed after the test."""
    made = HalState((device,))
    yield made
    made.close()
