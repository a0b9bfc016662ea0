"""A context for workloads on the driver's first device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pumice.hal_vulkan.instance.driver import Driver
from pumice.study.workloads.workload import DevicePool, WorkloadContext


@pytest.fixture
def context(driver: Driver, tmp_path: Path) -> Iterator[WorkloadContext]:
    with DevicePool() as pool:
        yield WorkloadContext(pool, "vulkan", folder=tmp_path, timeout=20.0)
