"""What a pipeline takes, buffers by set and binding and push constants, and whether a device can run it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ...spirv.capabilities import missing_requirements
from ...spirv.reflection_types import EntryPoint, ShaderModuleReflection
from ...status import InvalidArgumentError, UnimplementedError
from ..instance.logical_device import LogicalDevice
from .descriptors import LayoutKey

UNIFORM_BUFFER: Final = 6  # VkDescriptorType
STORAGE_BUFFER: Final = 7
# Drivers make tables as long as the highest number, and a forged one would take all memory. Compilers number from 0.
_LAST_SET: Final = 0x3FF
_LAST_BINDING: Final = 0xFFFF


@dataclass(frozen=True, slots=True)
class PipelineInterface:
    """What a pipeline takes.

    Attributes:
        set_layouts: for each descriptor set, (binding, VkDescriptorType, count) sorted by binding; a set that the
            shader skips is empty.
        buffer_device_addresses: the dispatch ABI: bindings come as a table of device addresses, not as descriptors.
        table_set: the set whose binding 0 is that table; ``None`` where a root in the push constants names it.
        constant_offset: where HAL constants start in the push-constant range.
        whole_words: whether bound ranges are rounded up to whole 32-bit words. Compilers emulate narrow types in words,
            so their kernels access all of the last one, which devices that check bounds would prevent.
    """

    set_layouts: tuple[LayoutKey, ...]
    push_constant_bytes: int
    buffer_device_addresses: bool = False
    table_set: int | None = None
    constant_offset: int = 0
    binding_count: int = 0
    whole_words: bool = False

    @classmethod
    def from_reflection(cls, entry: EntryPoint) -> PipelineInterface:
        """The interface that a shader declares; UnimplementedError if it binds anything but buffers."""
        sets: dict[int, list[tuple[int, int, int]]] = {}
        for binding in entry.bindings:
            if binding.set > _LAST_SET:
                raise InvalidArgumentError(
                    f"{entry.name}: set {binding.set} is past {_LAST_SET}, and more than any device binds; number the "
                    "sets from 0"
                )
            if binding.descriptor_type not in (UNIFORM_BUFFER, STORAGE_BUFFER) or binding.count < 1:
                what = "an unsized descriptor array" if binding.count < 1 else binding.descriptor_type_name
                raise UnimplementedError(
                    f"set {binding.set} binding {binding.binding} ({binding.name or 'unnamed'}) is {what}; "
                    "pumice binds storage and uniform buffers: pass the data in a buffer"
                )
            sets.setdefault(binding.set, []).append((binding.binding, binding.descriptor_type, binding.count))
        count = max(sets, default=-1) + 1
        return cls(
            set_layouts=tuple(tuple(sorted(sets.get(i, ()))) for i in range(count)),
            push_constant_bytes=entry.push_constants.size if entry.push_constants else 0,
            binding_count=sum(binding.count for binding in entry.bindings),
        )

    def check_covers(self, entry: EntryPoint) -> None:
        """Raises if a shader uses more than is laid out here; drivers may crash on one that does.

        Source: VUID-VkComputePipelineCreateInfo-layout-07987 (push constants), -07988 (bindings), -07990 (types) and
        -07991 (counts).
        """
        laid_out = {
            (index, binding): (kind, count)
            for index, key in enumerate(self.set_layouts)
            for binding, kind, count in key
        }
        for used in entry.bindings:
            kind, count = laid_out.get((used.set, used.binding), (None, 0))
            if kind != used.descriptor_type or not 1 <= used.count <= count:
                found = "none" if kind is None else f"{count} of descriptor type {kind}"
                raise InvalidArgumentError(
                    f"{entry.name} uses {used.count or 'any number'} of {used.descriptor_type_name} "
                    f"(descriptor type {used.descriptor_type}) at set {used.set} binding {used.binding}, where its "
                    f"pipeline layout has {found}; the executable is damaged"
                )
        if entry.push_constants is not None and entry.push_constants.size > self.push_constant_bytes:
            raise InvalidArgumentError(
                f"{entry.name} reads {entry.push_constants.size} bytes of push constants, its pipeline layout has "
                f"{self.push_constant_bytes}; the executable is damaged"
            )


def check_capabilities(device: LogicalDevice, reflection: ShaderModuleReflection) -> None:
    """Raises for a module that needs what the device lacks."""
    profile = device.profile
    missing = missing_requirements(
        reflection,
        api_version=profile.api_version[:2],
        features=device.plan.features | profile.properties,
        extensions=frozenset(device.plan.extensions),
        subgroup_operations=profile.subgroup.supported_operations,
        offered=profile.features | profile.extensions,
    )
    if missing:
        raise UnimplementedError(f"{profile.name} cannot run this shader: {'; '.join(missing)}")


def check_limits(device: LogicalDevice, entry: EntryPoint, interface: PipelineInterface) -> None:
    """Raises for an entry point that exceeds a limit of the device."""
    limits, profile = device.profile.limits, device.profile
    size, name = entry.local_size, entry.name
    invocations = math.prod(size)
    if any(s > m for s, m in zip(size, limits.max_compute_work_group_size, strict=True)) or (
        invocations > limits.max_compute_work_group_invocations
    ):
        raise InvalidArgumentError(
            f"{name}: workgroup size {size} ({invocations} invocations) is more than {profile.name} allows: "
            f"{tuple(limits.max_compute_work_group_size)} and {limits.max_compute_work_group_invocations} invocations. "
            "Specialise a smaller local size"
        )
    if 0 in size:
        raise InvalidArgumentError(f"{name}: workgroup size {size} has a zero; every dimension is at least 1")
    descriptors = {STORAGE_BUFFER: 0, UNIFORM_BUFFER: 0}
    for index, key in enumerate(interface.set_layouts):
        for binding, kind, count in key:
            if kind not in descriptors:
                raise UnimplementedError(
                    f"{name}: set {index} binding {binding} is of descriptor type {kind}; pumice binds storage and "
                    "uniform buffers: pass the data in a buffer"
                )
            if binding > _LAST_BINDING:
                raise InvalidArgumentError(
                    f"{name}: binding number {binding} is past {_LAST_BINDING}, the highest that pumice passes to a "
                    "driver; number bindings from 0"
                )
            descriptors[kind] += count
    storage_most = min(limits.max_per_stage_descriptor_storage_buffers, limits.max_descriptor_set_storage_buffers)
    uniform_most = min(limits.max_per_stage_descriptor_uniform_buffers, limits.max_descriptor_set_uniform_buffers)
    for used, most, what in (
        (
            interface.push_constant_bytes,
            limits.max_push_constants_size,
            "bytes of push constants, which a uniform or storage buffer can take,",
        ),
        (entry.workgroup_memory_bytes or 0, limits.max_compute_shared_memory_size, "bytes of shared memory"),
        (len(interface.set_layouts), limits.max_bound_descriptor_sets, "descriptor sets"),
        (descriptors[STORAGE_BUFFER], storage_most, "storage buffers"),
        (descriptors[UNIFORM_BUFFER], uniform_most, "uniform buffers"),
    ):
        if used > most:
            raise InvalidArgumentError(f"{name}: {used} {what} are more than {profile.name} allows ({most})")
