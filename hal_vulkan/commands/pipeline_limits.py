"""Checks that a device can run a pipeline: capabilities and limits."""

from __future__ import annotations

from typing import Final

from ...spirv.capabilities import missing_requirements
from ...spirv.reflection_types import EntryPoint, ShaderModuleReflection
from ...status import InvalidArgumentError, UnimplementedError
from ..instance.logical_device import LogicalDevice
from .pipeline_interface import STORAGE_BUFFER, UNIFORM_BUFFER, PipelineInterface

# Drivers make tables as long as the highest number, and a forged one would take all memory. Compilers number from 0.
_LAST_BINDING: Final = 0xFFFF


def check_capabilities(device: LogicalDevice, reflection: ShaderModuleReflection) -> None:
    """Raises for a module that needs what the device lacks."""
    profile = device.profile
    missing = missing_requirements(
        reflection,
        api_version=profile.api_version[:2],
        features=device.plan.features,
        extensions=frozenset(device.plan.extensions),
        subgroup_operations=profile.subgroup.supported_operations,
    )
    if missing:
        raise UnimplementedError(f"{profile.name} cannot run this shader: {'; '.join(missing)}")


def check_limits(device: LogicalDevice, entry: EntryPoint, interface: PipelineInterface) -> None:
    """Raises for an entry point that exceeds a limit of the device."""
    limits = device.profile.limits
    size, name = entry.local_size, entry.name
    invocations = size[0] * size[1] * size[2]
    if any(s > m for s, m in zip(size, limits.max_compute_work_group_size, strict=True)) or (
        invocations > limits.max_compute_work_group_invocations
    ):
        raise InvalidArgumentError(
            f"{name}: workgroup size {size} ({invocations} invocations) is more than {device.profile.name} allows: "
            f"{tuple(limits.max_compute_work_group_size)} and {limits.max_compute_work_group_invocations} invocations. "
            "Specialise a smaller local size"
        )
    if 0 in size:
        raise InvalidArgumentError(f"{name}: workgroup size {size} has a zero; every dimension is at least 1")
    push = interface.push_constant_bytes
    if push > limits.max_push_constants_size:
        raise InvalidArgumentError(
            f"{name}: {push} bytes of push constants are more than {device.profile.name} allows "
            f"({limits.max_push_constants_size}); pass them in a uniform or storage buffer"
        )
    shared = entry.workgroup_memory_bytes
    if shared is not None and shared > limits.max_compute_shared_memory_size:
        raise InvalidArgumentError(
            f"{name}: {shared} bytes of shared memory are more than {device.profile.name} allows "
            f"({limits.max_compute_shared_memory_size})"
        )
    if len(interface.set_layouts) > limits.max_bound_descriptor_sets:
        raise InvalidArgumentError(
            f"{name}: {len(interface.set_layouts)} descriptor sets are more than the device binds "
            f"({limits.max_bound_descriptor_sets})"
        )
    for index, key in enumerate(interface.set_layouts):
        for binding, kind, _ in key:
            if kind not in (UNIFORM_BUFFER, STORAGE_BUFFER):
                raise UnimplementedError(
                    f"{name}: set {index} binding {binding} is of descriptor type {kind}; pumice binds storage and "
                    "uniform buffers: pass the data in a buffer"
                )
    highest = max((binding for key in interface.set_layouts for binding, _, _ in key), default=0)
    if highest > _LAST_BINDING:
        raise InvalidArgumentError(
            f"{name}: binding number {highest} is past {_LAST_BINDING}, the highest that pumice passes to a driver; "
            "number bindings from 0"
        )
    storage_most = min(limits.max_per_stage_descriptor_storage_buffers, limits.max_descriptor_set_storage_buffers)
    uniform_most = min(limits.max_per_stage_descriptor_uniform_buffers, limits.max_descriptor_set_uniform_buffers)
    for what, kind, most in (
        ("storage", STORAGE_BUFFER, storage_most),
        ("uniform", UNIFORM_BUFFER, uniform_most),
    ):
        used = sum(count for key in interface.set_layouts for _, of, count in key if of == kind)
        if used > most:
            raise InvalidArgumentError(f"{name}: {used} {what} buffers are more than the device binds ({most})")
