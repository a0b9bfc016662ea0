"""A script's requirements of a device, and those that the device lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ..hal_vulkan.device import Device
from ..status import close_to
from .script import Requirement, RequirementKind, Script

ROBUST: Final = "robustBufferAccess"
_OPERATIONS: Final = "SubgroupSupportedOperations"
_STAGES: Final = "SubgroupSupportedStages"
_CAMEL: Final = {"shuffleRelative": "shuffle_relative"}


def needs_robust_access(script: Script) -> bool:
    """Whether the device must bound the accesses of shaders."""
    return any(requirement.kind == "feature" and requirement.name == ROBUST for requirement in script.requirements)


def lacking(script: Script, device: Device) -> list[str]:
    """Returns the script's requirements that the device lacks, one text each."""
    return [text for requirement in script.requirements if (text := _CHECKS[requirement.kind](requirement, device))]


def _feature(requirement: Requirement, device: Device) -> str:
    group, _, name = requirement.name.rpartition(".")
    profile = device.profile
    if group == _OPERATIONS:
        has = _CAMEL.get(name, name) in profile.subgroup.supported_operations
        return "" if has else f"the device lacks the subgroup operation {name}"
    if group == _STAGES:
        has = name == "compute" and profile.subgroup.compute_stage
        return "" if has else f"the device lacks subgroup operations in {name} shaders"
    if name == ROBUST and name in profile.features and name not in device.plan.features:
        return f"the device was opened without {name}: open it with robust=True"
    if name in profile.features:
        return ""
    alike = close_to(name, profile.features, 1)
    hint = f" (it has {alike[0]})" if alike and alike[0].lower() == name.lower() else ""
    return f"the device lacks the feature {name}{hint}"


def _property(requirement: Requirement, device: Device) -> str:
    name = requirement.name.rpartition(".")[2]
    has = name in device.profile.features
    return "" if has else f"the device lacks the property {name}"


def _device_extension(requirement: Requirement, device: Device) -> str:
    return "" if requirement.name in device.profile.extensions else f"the device lacks the extension {requirement.name}"


def _instance_extension(requirement: Requirement, device: Device) -> str:
    has = requirement.name in device.driver.extensions
    return "" if has else f"the Vulkan loader lacks the instance extension {requirement.name}"


_CHECKS: Final[Mapping[RequirementKind, Callable[[Requirement, Device], str]]] = {
    "feature": _feature,
    "property": _property,
    "device extension": _device_extension,
    "instance extension": _instance_extension,
}
