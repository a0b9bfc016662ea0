"""What tests need of the device: features and extensions by name, and those of each type of elements.

A whole test says it with a mark, ``@pytest.mark.features("shaderInt64")``; a case of many, by its type, in the test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pytest

from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.logical_device import LogicalDevice
from pumice.hal_vulkan.instance.plan import plan_device
from pumice.testing.requirements import missing_features

_OF_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "int8": ("shaderInt8", "storageBuffer8BitAccess"),
    "uint8": ("shaderInt8", "storageBuffer8BitAccess"),
    "bool": ("shaderInt8", "storageBuffer8BitAccess"),
    "int16": ("shaderInt16", "storageBuffer16BitAccess"),
    "uint16": ("shaderInt16", "storageBuffer16BitAccess"),
    "float16": ("shaderFloat16", "storageBuffer16BitAccess"),
    "int64": ("shaderInt64",),
    "uint64": ("shaderInt64",),
    "float64": ("shaderFloat64",),
}


def type_features(dtype: np.typing.DTypeLike) -> tuple[str, ...]:
    """The features that a kernel with elements of this type in a buffer needs."""
    return _OF_TYPES.get(np.dtype(dtype).name, ())


def require_features(device: Driver | LogicalDevice, *names: str) -> None:
    """Skips the test where the device, or the best one of the driver, lacks a feature or an extension."""
    profile = device.profiles[device.select()] if isinstance(device, Driver) else device.profile
    plan = plan_device(profile) if isinstance(device, Driver) else device.plan
    missing = missing_features(profile, names)
    missing += [name for name in names if name in profile.features and name not in plan.features]
    if missing:
        pytest.skip(f"{profile.name} lacks {', '.join(missing)}")
