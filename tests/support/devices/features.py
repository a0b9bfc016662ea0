"""What tests need of the device: features and extensions by name, and those of each type of elements.

A whole test says it with a mark, ``@pytest.mark.features("shaderInt64")``; a case of many, by its type, in the test.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import numpy as np
import pytest

import pumice
from pumice.hal.memory import MemoryTypeFlags
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.logical_device import LogicalDevice
from pumice.hal_vulkan.instance.plan import PlanOptions, plan_device
from pumice.hal_vulkan.vulkan.functions import new
from pumice.spirv.sources.glsl import compile_glsl
from pumice.status import UnimplementedError
from pumice.testing.requirements import missing_features

_HOST: Final = MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.DEVICE_LOCAL
_COUNT: Final = """#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Counted { uint most; uint count; };
void main() {
    uint c = 0;
    for (uint i = 0; i < most; i++)
        c++;
    count = c;
}
"""
_STORAGE_BUFFER: Final = 0x20  # VkBufferUsageFlagBits
_HOST_ALLOCATION: Final = 0x80  # VkExternalMemoryHandleTypeFlagBits
_IMPORTABLE: Final = 0x4
_HOW_TO_IMPORT: Final = _IMPORTABLE | 0x1  # and not for dedicated allocations alone

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


def require_import(device: LogicalDevice) -> int:
    """Returns the alignment of imported host memory; skips the test where the driver imports none into buffers."""
    info = new("VkPhysicalDeviceExternalBufferInfo", usage=_STORAGE_BUFFER, handleType=_HOST_ALLOCATION)
    answer = new("VkExternalBufferProperties")
    device.driver.functions.vkGetPhysicalDeviceExternalBufferProperties(device.physical_device, info, answer)
    is_importable = answer.externalMemoryProperties.externalMemoryFeatures & _HOW_TO_IMPORT == _IMPORTABLE
    if device.plan.host_import_alignment is None or not is_importable:
        pytest.skip(f"{device.profile.name} imports no host memory into buffers")
    return device.plan.host_import_alignment


def computes(device: pumice.Device, text: str) -> bool:
    """Whether the device computes in the types of a program: doubles have no substitute."""
    hal = device.hal
    return "f64" not in text or not isinstance(hal, LogicalDevice) or "shaderFloat64" in hal.plan.features


def require_types(device: pumice.Device, text: str) -> None:
    """Skips the test where the device does not compute in the types of a program."""
    if not computes(device, text):
        pytest.skip(f"{device.name} lacks shaderFloat64")


@contextmanager
def skipped_if_lacking() -> Iterator[None]:
    """Skips the test where a module of another compiler needs a feature that the device lacks."""
    try:
        yield
    except UnimplementedError as error:
        if "needs the feature" not in error.message:
            raise
        pytest.skip(error.message)


@functools.cache
def _counted(driver: Driver) -> int:
    """What a loop of 70,000 passes counts on the best device."""
    with Device(driver, options=PlanOptions(loop_guard=False)) as device:
        code = compile_glsl(_COUNT)
        with device.create_pipeline(code) as pipeline, device.create_buffer(8, memory_type=_HOST) as buffer:
            buffer.write(struct.pack("<II", 70_000, 0))
            with device.create_command_buffer() as commands:
                commands.begin().dispatch(pipeline, [buffer], (1, 1, 1))
                device.compute_queue.submit((commands.end(),))
                device.wait_idle(20)
            return int(struct.unpack("<II", buffer.read())[1])


def require_cut_loops(driver: Driver) -> None:
    """Skips the test where the best device's driver ends no loop before its time."""
    profile = driver.profiles[driver.select()]
    if not plan_device(profile).loop_guard or _counted(driver) == 70_000:
        pytest.skip(f"the driver of {profile.name} cuts no loops")
