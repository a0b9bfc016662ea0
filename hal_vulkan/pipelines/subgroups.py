"""Checks that a device supports the subgroups that a pipeline requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ...status import InvalidArgumentError, UnimplementedError
from ..instance.logical_device import LogicalDevice

_ALLOW_VARYING_SIZE: Final = 0x1  # VkPipelineShaderStageCreateFlagBits
_REQUIRE_FULL: Final = 0x2


def subgroup_flags(
    device: LogicalDevice, name: str, local_size: Sequence[int], size: int | None, *, full: bool, varying: bool
) -> int:
    """Returns the shader stage's flags for full subgroups and a varying size.

    ``name`` is the pipeline's, ``local_size`` the workgroup's. Source:
    VUID-VkPipelineShaderStageCreateInfo-flags-02758, -02759, -08988 and -02784 to -02787.

    Raises:
        UnimplementedError: the device lacks a feature.
        InvalidArgumentError: the flags exclude ``size``, or the workgroup's size does not allow them.
    """
    where = f"{name} on {device.profile.name}"
    if (full or varying) and "subgroupSizeControl" not in device.plan.features:
        raise UnimplementedError(f"{where}: the device lacks the feature subgroupSizeControl")
    if full and "computeFullSubgroups" not in device.plan.features:
        raise UnimplementedError(f"{where}: full subgroups need the feature computeFullSubgroups, which it lacks")
    if varying and size:
        raise InvalidArgumentError(f"{where}: a subgroup size that varies and one of {size} exclude each other")
    if full:
        profile = device.profile.subgroup
        multiple = size or (profile.max_size if varying else profile.size)
        # A size that the device lacks is refused by check_subgroup_size.
        if local_size[0] % multiple and profile.min_size <= multiple <= profile.max_size:
            raise InvalidArgumentError(
                f"{where}: full subgroups need a workgroup size whose x is a multiple of {multiple}, got "
                f"{local_size[0]}"
            )
    return varying * _ALLOW_VARYING_SIZE | full * _REQUIRE_FULL


def check_subgroup_size(device: LogicalDevice, name: str, local_size: Sequence[int], size: int) -> None:
    """Raises for a size that the device lacks (UnimplementedError) or the workgroup excludes (InvalidArgumentError)."""
    profile, where = device.profile.subgroup, f"{name}: subgroup size {size} was asked for"
    sizes = [profile.size]
    if device.plan.required_subgroup_size:
        sizes = [1 << n for n in range(32) if profile.min_size <= 1 << n <= profile.max_size]
    if size not in sizes:
        there = " and ".join(filter(None, (", ".join(map(str, sizes[:-1])), str(sizes[-1]))))
        only = "" if len(sizes) > 1 else " only"
        raise UnimplementedError(f"{where}; {device.profile.name} has {there}{only}")
    most, invocations = profile.max_compute_workgroup_subgroups, math.prod(local_size)
    if device.plan.required_subgroup_size and most and invocations > size * most:
        raise InvalidArgumentError(
            f"{where}; a workgroup has {invocations} invocations, which is more than {most} such subgroups"
        )
