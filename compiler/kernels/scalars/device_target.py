"""The target of one device, from the facts that its driver reports.

Only this module distinguishes vendors; strategies use families.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol

from ....spirv.checks.matrix_shapes import MatrixProduct
from ....status import InvalidArgumentError, shown
from .target import Target

CPU: Final = 4
"""``VK_PHYSICAL_DEVICE_TYPE_CPU``."""


class Family(NamedTuple):
    """A group of similar devices.

    Attributes:
        name: the name of the family.
        compute_units: the number to assume if the driver does not report it.
    """

    name: str
    compute_units: int


FAMILIES: Final[Mapping[int, Family]] = {
    0x10DE: Family("nvidia", 32),
    0x1002: Family("amd", 32),
    0x8086: Family("intel", 16),
    0x106B: Family("apple", 10),
    0x13B5: Family("arm", 4),
    0x5143: Family("adreno", 4),
}
"""Families by the vendor's PCI number; devices of type CPU belong to ``cpu``, whatever the vendor."""

_CPU: Final = Family("cpu", 4)
_DEFAULT: Final = Family("default", 8)

FAMILY_NAMES: Final = tuple(family.name for family in (_CPU, *FAMILIES.values(), _DEFAULT))


class Limits(Protocol):
    """The fields of ``VkPhysicalDeviceLimits`` that targets use."""

    @property
    def max_compute_shared_memory_size(self) -> int: ...
    @property
    def max_compute_work_group_invocations(self) -> int: ...
    @property
    def max_compute_work_group_size(self) -> tuple[int, int, int]: ...


class Subgroups(Protocol):
    """The fields of ``VkPhysicalDeviceSubgroupProperties`` that targets use."""

    @property
    def size(self) -> int: ...
    @property
    def supported_operations(self) -> Collection[str]: ...
    @property
    def compute_stage(self) -> bool: ...


class Matrices(Protocol):
    """The fields of ``VkCooperativeMatrixPropertiesKHR`` that targets use."""

    @property
    def m(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def k(self) -> int: ...
    @property
    def a_type(self) -> str: ...
    @property
    def b_type(self) -> str: ...
    @property
    def c_type(self) -> str: ...
    @property
    def result_type(self) -> str: ...
    @property
    def saturating(self) -> bool: ...
    @property
    def scope(self) -> str: ...


class DeviceFacts(Protocol):
    """The facts that a driver reports, as in ``Device.profile`` and ``pumice.list_devices``."""

    @property
    def device_type(self) -> int: ...
    @property
    def vendor_id(self) -> int: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def subgroup(self) -> Subgroups: ...
    @property
    def features(self) -> Collection[str]: ...
    @property
    def properties(self) -> Collection[str]: ...
    @property
    def compute_units(self) -> int: ...
    @property
    def cooperative_matrices(self) -> Collection[Matrices]: ...


class HasProfile(Protocol):
    """An open device."""

    @property
    def profile(self) -> DeviceFacts: ...


def target_of(device: DeviceFacts | HasProfile, kinds: tuple[str, ...] = ("vulkan",)) -> Target:
    """Returns the target of one device. Other devices may reject its modules, with an error.

    Raises:
        InvalidArgumentError: it is neither a device nor a profile.
    """
    facts: Any = getattr(device, "profile", device)
    if not isinstance(getattr(facts, "device_type", None), int):
        raise InvalidArgumentError(f"device: expected a Vulkan device or its profile, got {shown(device)}")
    family = _CPU if facts.device_type == CPU else FAMILIES.get(facts.vendor_id, _DEFAULT)
    limits, subgroup = facts.limits, facts.subgroup
    return replace(
        Target.of_features({*facts.features, *facts.properties}),
        kinds=kinds,
        family=family.name,
        compute_units=facts.compute_units or family.compute_units,
        subgroup_size=subgroup.size if subgroup.compute_stage else 1,
        subgroup_operations=tuple(sorted(subgroup.supported_operations)) if subgroup.compute_stage else (),
        shared_memory=limits.max_compute_shared_memory_size,
        max_workgroup_invocations=min(limits.max_compute_work_group_invocations, limits.max_compute_work_group_size[0]),
        whole_vectors=family is _CPU
        and subgroup.size == 8
        and {"bufferDeviceAddress", "shaderInt64"} <= set(facts.features)
        and {"basic", "shuffle"} <= set(subgroup.supported_operations),
        int8_dot="shaderIntegerDotProduct" in facts.features,
        cooperative_matrices=tuple(
            MatrixProduct(matrix.m, matrix.n, matrix.k, matrix.a_type, matrix.b_type, matrix.c_type, matrix.result_type)
            for matrix in facts.cooperative_matrices
            if matrix.scope == "subgroup" and not matrix.saturating
        ),
    )
