"""A pipeline's descriptors, by set and binding, and push constants, with checks against a device's limits."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...spirv.reflection.reflection_types import EntryPoint, ShaderModuleReflection
from ...status import InvalidArgumentError, NotFoundError, UnimplementedError
from ..instance.logical_device import LogicalDevice
from ..instance.profile import DeviceProfile
from .descriptors import LayoutKey
from .resources import KINDS, STORAGE_BUFFER, UNIFORM_BUFFER, most_descriptors

# Drivers make tables as long as the highest number, so a forged number would take all memory. Compilers number from 0.
_LAST_SET: Final = 0x3FF
_LAST_BINDING: Final = 0xFFFF
# The descriptors of a run-time sized array: enough for tables of textures, and little memory.
_RUNTIME_ARRAY: Final = 1024
_WITH_TEXELS: Final = {
    "sampled_images": ", uniform texel buffers included,",
    "storage_images": ", storage texel buffers included,",
}
PUSHED_NUMBERS: Final = struct.pack("<16I", *range(16))
"""The words 0 to 15: a shader looks up a four-bit number in it to get one that every driver sees as uniform."""
NO_SIZES: Final[Mapping[tuple[int, int], int]] = MappingProxyType({})
"""No descriptors of run-time sized arrays, by (set, binding)."""


@dataclass(frozen=True, slots=True)
class PipelineInterface:
    """A pipeline's descriptors and push constants.

    Attributes:
        set_layouts: for each descriptor set, (binding, VkDescriptorType, count) sorted by binding; a set that the
            shader skips is empty.
        partial: the (set, binding) of the arrays that may have absent elements.
        pushes_addresses: whether the push constants end with the device addresses of all bindings, which have
            descriptors as well, and the words of ``PUSHED_NUMBERS``.
        buffer_device_addresses: whether the dispatch ABI passes bindings as a table of device addresses, not as
            descriptors.
        table_set: the set whose binding 0 is that table; ``None`` if a root in the push constants refers to it.
        constant_offset: the start of HAL constants in the push-constant range.
        whole_words: whether bound ranges are rounded up to whole 32-bit words. Compilers emulate narrow types in words,
            so their kernels access the whole last word, which devices that check bounds would prevent.
    """

    set_layouts: tuple[LayoutKey, ...]
    push_constant_bytes: int
    buffer_device_addresses: bool = False
    table_set: int | None = None
    constant_offset: int = 0
    binding_count: int = 0
    whole_words: bool = False
    partial: frozenset[tuple[int, int]] = frozenset()
    pushes_addresses: bool = False

    @property
    def pushed_by_caller(self) -> int:
        """The bytes of push constants that a dispatch passes."""
        addresses = len(PUSHED_NUMBERS) + 8 * self.binding_count if self.pushes_addresses else 0
        return self.push_constant_bytes - self.constant_offset - addresses

    def with_report(self, set_index: int, bindings: Sequence[int]) -> PipelineInterface:
        """Returns the layout with reports: more storage buffers, the last bindings of the last set."""
        sets = [*self.set_layouts, *[()] * (set_index + 1 - len(self.set_layouts))]
        assert set_index == len(sets) - 1
        sets[set_index] = (*sets[set_index], *[(binding, STORAGE_BUFFER, 1) for binding in bindings])
        return replace(self, set_layouts=tuple(sets))

    @classmethod
    def from_reflection(
        cls, entry: EntryPoint, sizes: Mapping[tuple[int, int], int] = NO_SIZES, *, partially_bound: bool = False
    ) -> PipelineInterface:
        """Returns the interface that a shader declares.

        Args:
            entry: the reflection of the entry point.
            sizes: the descriptor counts of run-time sized arrays, by (set, binding).
            partially_bound: whether arrays may have absent elements.

        Raises:
            UnimplementedError: pumice does not bind a descriptor type.
        """
        sets: dict[int, list[tuple[int, int, int]]] = {}
        partial: set[tuple[int, int]] = set()
        counts = []
        for binding in entry.bindings:
            if binding.set > _LAST_SET:
                raise InvalidArgumentError(
                    f"{entry.name}: set {binding.set} is past {_LAST_SET}, and more than any device binds; number the "
                    "sets from 0"
                )
            key = binding.set, binding.binding
            count = binding.count or sizes.get(key, 0)
            if binding.descriptor_type not in KINDS or count < 1:
                noun = binding.descriptor_type_name if count else "a descriptor array without a size"
                raise UnimplementedError(
                    f"set {binding.set} binding {binding.binding} ({binding.name or 'unnamed'}) is {noun}; pumice "
                    "binds buffers, images, samplers and texel buffers"
                )
            if partially_bound and binding.count != 1:
                partial.add(key)
            counts.append(count)
            sets.setdefault(binding.set, []).append((binding.binding, binding.descriptor_type, count))
        set_count = max(sets, default=-1) + 1
        return cls(
            set_layouts=tuple(tuple(sorted(sets.get(i, ()))) for i in range(set_count)),
            push_constant_bytes=entry.push_constants.size if entry.push_constants else 0,
            binding_count=sum(counts),
            partial=frozenset(partial),
        )

    def one_a_descriptor(self, resources: Sequence[object], name: str) -> Sequence[object]:
        """Returns the resources with arrays flattened, one for each descriptor; ``None`` for absent elements.

        Raises:
            InvalidArgumentError: the number of resources is wrong; the message begins with ``name``.
        """
        flat: list[object] = []
        at = 0
        for index, key in enumerate(self.set_layouts if not self.buffer_device_addresses else ()):
            for binding, _, count in key:
                if at < len(resources) and isinstance(elements := resources[at], (list, tuple)):
                    at += 1
                    if len(elements) > count:
                        raise InvalidArgumentError(
                            f"{name}: set {index} binding {binding} takes up to {count} elements, got {len(elements)}"
                            + ("; load it with larger array_sizes" if (index, binding) in self.partial else "")
                        )
                    flat += [*elements, *(None,) * (count - len(elements))]
                else:
                    flat += resources[at : at + count]
                    at += count
        if self.buffer_device_addresses and len(resources) == self.binding_count:
            return resources
        if at != len(resources) or self.buffer_device_addresses:
            kinds = {kind for key in self.set_layouts for _, kind, _ in key}
            noun = "buffer(s)" if kinds <= {UNIFORM_BUFFER, STORAGE_BUFFER} else "resource(s)"
            takes = f"{name} takes {self.binding_count} {noun}"
            bindings = sum(map(len, self.set_layouts))
            if not self.buffer_device_addresses and bindings < self.binding_count:
                takes += f", or one for each of {bindings} bindings, arrays as lists"
            raise InvalidArgumentError(f"{takes}, got {len(resources)}")
        return flat

    def check_covers(self, entry: EntryPoint) -> None:
        """Raises if a shader uses more than this layout has; drivers may crash then.

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
                actual = "none" if kind is None else f"{count} of descriptor type {kind}"
                raise InvalidArgumentError(
                    f"{entry.name} uses {used.count or 'any number'} of {used.descriptor_type_name} "
                    f"(descriptor type {used.descriptor_type}) at set {used.set} binding {used.binding}, where its "
                    f"pipeline layout has {actual}; the executable is damaged"
                )
        if entry.push_constants is not None and entry.push_constants.size > self.push_constant_bytes:
            raise InvalidArgumentError(
                f"{entry.name} reads {entry.push_constants.size} bytes of push constants, its pipeline layout has "
                f"{self.push_constant_bytes}; the executable is damaged"
            )


def check_capabilities(device: LogicalDevice, reflection: ShaderModuleReflection) -> None:
    """Raises for a module that needs features that the device lacks."""
    from ...spirv.checks.capabilities import (
        missing_requirements,
    )  # not for cached modules

    profile = device.profile
    missing = missing_requirements(
        reflection,
        api_version=profile.version,
        features=device.plan.features | profile.properties,
        extensions=frozenset(device.plan.extensions),
        subgroup_operations=profile.subgroup.supported_operations,
        offered=profile.features | profile.extensions,
    )
    if missing:
        raise UnimplementedError(f"{profile.name} cannot run this shader: {'; '.join(missing)}")


def check_matrices(profile: DeviceProfile, code: bytes) -> None:
    """Raises for a module with cooperative matrix products whose shapes or types the device lacks."""
    from ...spirv.checks.matrix_shapes import matrix_products

    offered = {
        (shape.m, shape.n, shape.k, shape.a_type, shape.b_type, shape.c_type, shape.result_type)
        for shape in profile.cooperative_matrices
    }
    if not offered or "cooperativeMatrixFlexibleDimensions" in profile.features:
        return
    for m, n, k, *kinds in sorted(matrix_products(code) - offered):
        raise UnimplementedError(
            f"this shader multiplies cooperative matrices of {m} x {k} and {k} x {n} elements ({', '.join(kinds)}), "
            f"which {profile.name} does not offer: compile the program for this device, or for none in particular"
        )


def check_settled(reflection: ShaderModuleReflection, name: str) -> None:
    """Raises for a module whose array lengths or workgroup size are invalid at its specialization constants' values."""
    if reflection.unsettled:
        more = f" (and {len(reflection.unsettled) - 1} more)" if len(reflection.unsettled) > 1 else ""
        raise InvalidArgumentError(
            f"{name} cannot run with these values of its specialization constants: {reflection.unsettled[0]}{more}. "
            "Pass others"
        )


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
    used_of: dict[str, int] = {}
    resources = 0
    for index, key in enumerate(interface.set_layouts):
        for binding, kind, count in key:
            if kind not in KINDS:
                raise UnimplementedError(
                    f"{name}: set {index} binding {binding} is of descriptor type {kind}, which pumice does not bind"
                )
            if binding > _LAST_BINDING:
                raise InvalidArgumentError(
                    f"{name}: binding number {binding} is past {_LAST_BINDING}, the highest that pumice passes to a "
                    "driver; number bindings from 0"
                )
            resources += count
            for limit in KINDS[kind].limits:
                used_of[limit] = used_of.get(limit, 0) + count
    for block in entry.bindings:
        if block.descriptor_type == UNIFORM_BUFFER and block.fixed_size > limits.max_uniform_buffer_range:
            raise InvalidArgumentError(
                f"{name}: the uniform block {block.name or f'of binding {block.binding}'} has "
                f"{block.fixed_size:,} bytes, more than {profile.name} binds for one "
                f"({limits.max_uniform_buffer_range:,}, maxUniformBufferRange): declare it as a storage buffer "
                "(readonly buffer), or make its arrays shorter"
            )
    for used, most, noun in (
        (
            interface.push_constant_bytes,
            limits.max_push_constants_size,
            "bytes of push constants, which a uniform or storage buffer can take,",
        ),
        (entry.workgroup_memory_bytes or 0, limits.max_compute_shared_memory_size, "bytes of shared memory"),
        (len(interface.set_layouts), limits.max_bound_descriptor_sets, "descriptor sets"),
        *(
            (used, most_descriptors(limits, limit), limit.replace("_", " ") + _WITH_TEXELS.get(limit, ""))
            for limit, used in used_of.items()
        ),
        (resources, limits.max_per_stage_resources, "descriptors of all kinds"),
    ):
        if used > most:
            raise InvalidArgumentError(f"{name}: {used} {noun} are more than {profile.name} allows ({most})")


def runtime_array_sizes(
    device: LogicalDevice, entry: EntryPoint, wanted: Mapping[tuple[int, int], int]
) -> dict[tuple[int, int], int]:
    """Returns the descriptor counts of an entry point's run-time sized arrays, by (set, binding).

    Without a ``wanted`` count, it is 1024, or less if the limits require.

    Raises:
        NotFoundError: a count was passed for a binding that is not a run-time sized array.
    """
    limits = device.profile.limits
    arrays = {(b.set, b.binding): b for b in entry.bindings if not b.count and b.descriptor_type in KINDS}
    for key, size in wanted.items():
        if key not in arrays:
            known = ", ".join(map(str, arrays)) or "none"
            raise NotFoundError(f"{entry.name} has no run-time sized array at (set, binding) {key}; it has: {known}")
        if type(size) is not int or size < 1:
            raise InvalidArgumentError(f"{entry.name}: the size of the array at {key} is a positive int, got {size!r}")
    left = {limit: most_descriptors(limits, limit) for kind in KINDS.values() for limit in kind.limits}
    left["all"] = limits.max_per_stage_resources
    sharing: dict[str, int] = {}
    for binding in entry.bindings:
        key = binding.set, binding.binding
        for limit in (*KINDS[binding.descriptor_type].limits, "all") if binding.descriptor_type in KINDS else ():
            left[limit] -= binding.count or wanted.get(key, 0)
            sharing[limit] = sharing.get(limit, 0) + (key in arrays and key not in wanted)
    return {
        key: wanted.get(key)
        or max(
            1,
            min(
                _RUNTIME_ARRAY,
                *(left[limit] // sharing[limit] for limit in (*KINDS[binding.descriptor_type].limits, "all")),
            ),
        )
        for key, binding in arrays.items()
    }
