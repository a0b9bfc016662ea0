"""Compute pipelines: a specialised entry point of a shader, with its layout.

Calling sequence: ``Device.create_pipeline`` (raw SPIR-V) or ``Executable`` (VKE1) → ``bind`` →
``CommandBuffer.dispatch`` → ``close``. A pipeline is immutable and may be used from any thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...base.closeable import Closeable
from ...spirv.instrument.reports import Instrumented
from ...spirv.reflection.reflection_types import Binding, ShaderModuleReflection
from ...status import (
    ClosedError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
)
from ..instance.logical_device import LogicalDevice, guarded
from ..memory.buffer import Buffer
from ..vulkan.functions import CData, ffi, new
from .descriptors import COMPUTE_STAGE, DescriptorSetLayout, SetPins
from .pipeline_context import PipelineCache, PipelineContext
from .pipeline_interface import (
    NO_SIZES,
    PipelineInterface,
    check_capabilities,
    check_limits,
    check_settled,
    runtime_array_sizes,
)
from .pipeline_statistics import CAPTURE_STATISTICS, read_statistics
from .reports import ReportSlot
from .resources import ABSENT, STORAGE_BUFFER, UNIFORM_BUFFER, Resource, check_resource, noun_of
from .specialization import PackedConstants, specialization_info
from .subgroups import check_subgroup_size, subgroup_flags

if TYPE_CHECKING:
    from ...spirv.reflection.reflection_types import EntryPoint

_log = logging.getLogger("pumice")


class BoundSets:
    """Resources bound to a pipeline: pinned sets, pushed descriptors, or for the address ABI only the buffers.

    Made by ``ComputePipeline.bind``, for any number of dispatches of pipelines with the same layout; then ``close`` it.
    """

    __slots__ = ("_epoch", "_open", "infos", "pins", "pipeline", "resources")

    def __init__(
        self, pipeline: ComputePipeline, resources: Sequence[Resource], pins: SetPins = (), infos: CData | None = None
    ) -> None:
        self.pipeline: ComputePipeline = pipeline
        self.resources: Sequence[Resource] = resources
        self.pins: SetPins = pins
        self.infos: Any | None = infos  # with push descriptors: the pushed data, instead of sets
        self._open = True
        self._epoch = pipeline.device.close_epoch

    def check_open(self) -> None:
        """Raises ClosedError if this, or a resource that it binds, was closed."""
        if not self._open:
            raise ClosedError(f"these sets of {self.pipeline.name} were closed; bind again")
        epoch = self.pipeline.device.close_epoch
        if epoch != self._epoch:
            for resource in self.resources:
                if resource.is_closed:
                    raise ClosedError(f"{self.pipeline.name}: {noun_of(resource)} of these sets was closed; bind again")
            self._epoch = epoch

    def close(self) -> None:
        """Ends its use; recordings that name the sets keep them. Idempotent."""
        if self._open:
            self._open = False
            for layout, descriptor_set in self.pins:
                layout.unpin(descriptor_set)


class ComputePipeline(Closeable):
    """A VkPipeline with its layout.

    Attributes:
        name: the entry point or debug name, for messages and profiles.
        entry: the reflection of the entry point.
        interface: the bindings and push constants.
        local_size: the workgroup size after specialisation (x, y, z).
        offset_alignment: the alignment in bytes of every binding's offset in its block.
        report: the buffer for the shader's reports, if it is instrumented.
        unwatched: descriptions of the accesses that a sanitised shader does not check.
        tail: the descriptors after those of the buffers: of the report and the ring of prints, or none.
        shift: a function that returns the same kernel for descriptors that start by so many bytes earlier; ``None``
            unless it is a program's.
        push_template: the VkDescriptorUpdateTemplate that pushes its descriptors, or ``None`` if it uses sets.
    """

    def __init__(
        self,
        context: PipelineContext,
        shader_module: CData,
        reflection: ShaderModuleReflection,
        *,
        entry_point: str | None,
        constants: PackedConstants = (),
        interface: PipelineInterface | None = None,
        subgroup_size: int | None = None,
        full_subgroups: bool = False,
        varying_subgroup_size: bool = False,
        array_sizes: Mapping[tuple[int, int], int] = NO_SIZES,
        name: str | None = None,
        checked: bool = False,
        instrumented: Instrumented | None = None,
        sanitized: bool = False,
    ) -> None:
        self.device: LogicalDevice
        device = self.device = context.device
        self.entry: EntryPoint = reflection.entry_point(entry_point)
        if self.entry.execution_model != "GLCompute":
            raise InvalidArgumentError(
                f"entry point {self.entry.name!r} is a {self.entry.execution_model} shader; pumice runs compute "
                "shaders (GLCompute)"
            )
        self.name: str = name or self.entry.name
        if not checked:
            check_capabilities(device, reflection)
        check_settled(reflection, self.name)
        self.local_size: tuple[int, int, int] = self.entry.local_size
        if interface is None:
            interface = PipelineInterface.from_reflection(
                self.entry,
                runtime_array_sizes(device, self.entry, array_sizes),
                partially_bound="descriptorBindingPartiallyBound" in device.plan.features,
            )
        else:
            interface.check_covers(self.entry)
        self.interface = interface
        check_limits(device, self.entry, interface)
        # (set, binding, VkDescriptorType) of each resource that a dispatch takes, in order
        self._descriptor_order = tuple(
            (index, binding, kind)
            for index, key in enumerate(interface.set_layouts)
            for binding, kind, count in key
            for _ in range(count)
        )
        self._declared = {(binding.set, binding.binding): binding for binding in self.entry.bindings}
        # Uniform blocks have no length that a shader could query.
        blocks = {(block.set, block.binding): block.fixed_size for block in self.entry.bindings} if sanitized else {}
        self._uniform_sizes = {
            index: blocks[number, binding]
            for index, (number, binding, kind) in enumerate(self._descriptor_order)
            if kind == UNIFORM_BUFFER and (number, binding) in blocks
        }
        self._has_arrays = any(count > 1 for key in interface.set_layouts for _, _, count in key)
        self._only_buffers = not interface.partial and all(
            kind in (STORAGE_BUFFER, UNIFORM_BUFFER) for _, _, kind in self._descriptor_order
        )
        limits = device.profile.limits
        self.offset_alignment: int = max(
            limits.min_storage_buffer_offset_alignment,
            limits.min_uniform_buffer_offset_alignment
            if any(kind == UNIFORM_BUFFER for _, _, kind in self._descriptor_order)
            else 1,
        )
        reports = 0 if instrumented is None else len(instrumented.bindings)
        if instrumented is not None:
            interface = interface.with_report(instrumented.set, instrumented.bindings)
        push = (
            device.plan.push_descriptors
            and len(interface.set_layouts) == 1
            and not interface.partial
            and 0 < len(self._descriptor_order) <= limits.max_push_descriptors - reports
        )
        self.set_layouts: tuple[DescriptorSetLayout, ...] = tuple(
            context.set_layout(
                key, push=push, partial=frozenset(binding for number, binding in interface.partial if number == index)
            )
            for index, key in enumerate(interface.set_layouts)
        )
        self.layout: CData = context.pipeline_layout(self.set_layouts, interface.push_constant_bytes)
        self.push_template: CData | None = context.push_template(self.layout, self.set_layouts[0]) if push else None
        flags = subgroup_flags(
            device, self.name, self.local_size, subgroup_size, full=full_subgroups, varying=varying_subgroup_size
        )
        self.handle: CData = self._create(shader_module, constants, subgroup_size, flags, context.cache)
        self.is_closed: bool = False
        self.shift: Callable[[tuple[int, ...]], ComputePipeline] | None = None
        self._reports = context.reports
        self.report: ReportSlot | None = None
        self.unwatched: tuple[()] | tuple[str, ...] = () if instrumented is None else instrumented.unwatched
        self.tail: bytes = b""
        if instrumented is not None:
            self.report = context.reports.take(self.name, instrumented.sites, instrumented.prints)
            self.tail = self.report.descriptor
        device.set_name("VK_OBJECT_TYPE_PIPELINE", self.handle, self.name)

    @guarded
    def _create(
        self,
        shader_module: CData,
        constants: PackedConstants,
        subgroup_size: int | None,
        flags: int,
        cache: PipelineCache,
    ) -> CData:
        device = self.device
        stage = new(
            "VkPipelineShaderStageCreateInfo",
            flags=flags,
            stage=COMPUTE_STAGE,
            module=shader_module,
            pName=self.entry.name,
            pSpecializationInfo=specialization_info(constants),
        )
        required = None
        if subgroup_size:
            check_subgroup_size(device, self.name, self.local_size, subgroup_size)
            if device.plan.required_subgroup_size:
                required = new(
                    "VkPipelineShaderStageRequiredSubgroupSizeCreateInfo", requiredSubgroupSize=subgroup_size
                )
                stage.pNext = required
        info = new(
            "VkComputePipelineCreateInfo",
            flags=CAPTURE_STATISTICS if device.plan.pipeline_statistics else 0,
            stage=stage,
            layout=self.layout,
            basePipelineIndex=-1,
        )
        create = device.fn.vkCreateComputePipelines
        handle = device.make(
            "pipeline",
            lambda handle: create(device.handle, cache.handle, 1, info, ffi.NULL, handle),
            f"the pipeline of {self.name}",
        )
        if device.plan.pipeline_statistics:
            try:
                device.pipeline_statistics += read_statistics(device, handle, self.name)
            except BaseException:
                device.destroy("pipeline", handle)
                raise
        return handle

    def bind(self, resources: Sequence[Resource | Sequence[Resource | None] | None]) -> BoundSets:
        """Binds buffers, images, samplers and texel buffers.

        Args:
            resources: the resources, one for each descriptor, in order of (set, binding, array element). An array may
                be passed as one sequence. On devices with ``descriptorBindingPartiallyBound``, ``None`` and elements
                missing at its end are absent; the shader must not access them.

        Raises:
            InvalidArgumentError: the number of resources is wrong, a binding does not accept its resource, or a
                buffer's offset is not aligned as the device requires.
            OutOfRangeError: a buffer's range is larger than the device can bind.
            ClosedError: a resource, or this pipeline, was closed.
        """
        if self.is_closed or self.device.is_closed:
            self.device.check_usable()
            raise ClosedError(f"pipeline {self.name} was closed")
        flat: Any = resources  # one per descriptor; checked below
        if self._has_arrays or len(flat) != len(self._descriptor_order):
            flat = self.interface.one_a_descriptor(resources, self.name)
        if self.interface.buffer_device_addresses:
            for index, buffer in enumerate(flat):
                self._check_buffer(buffer, f"binding {index}")
            return BoundSets(self, tuple(flat))
        for index, least in self._uniform_sizes.items():
            self._check_uniform(flat[index], index, least)
        if self._only_buffers:
            device = self.device
            try:
                for buffer, (set_index, binding, kind) in zip(flat, self._descriptor_order, strict=True):
                    # Other resources are never bindable.
                    if buffer.bindable and not buffer._closed and buffer.parent is None and buffer.device is device:
                        continue
                    self._check(buffer, set_index, binding, kind)
            except AttributeError:  # not a resource
                self._check(buffer, set_index, binding, kind)
                raise
            if self.interface.whole_words:
                key = b"".join([b.word_descriptor() if b.size & 3 else b.descriptor for b in flat]) + self.tail
            else:
                key = b"".join([b.descriptor for b in flat]) + self.tail
            bound: tuple[Resource, ...] = tuple(flat)
        else:
            for resource, (set_index, binding, kind) in zip(flat, self._descriptor_order, strict=True):
                self._check(resource, set_index, binding, kind)
            key = (
                b"".join([ABSENT if bound_resource is None else bound_resource.descriptor for bound_resource in flat])
                + self.tail
            )
            bound = tuple(bound_resource for bound_resource in flat if bound_resource is not None)
        if self.push_template is not None:
            return BoundSets(self, bound, (), ffi.from_buffer(key))
        return BoundSets(self, bound, self.pin_sets(flat, key))

    def aligned(self, buffers: Sequence[object]) -> tuple[ComputePipeline, Sequence[object]]:
        """Returns a pipeline and buffers that do the same, and start at offsets that the device binds.

        They are this pipeline and these buffers where all are aligned, and where it cannot be done: ``bind`` raises.
        """
        mask = self.offset_alignment - 1
        shifts = tuple(buffer.offset & mask if isinstance(buffer, Buffer) else 0 for buffer in buffers)
        if (
            self.shift is None
            or not any(shifts)
            or not self.takes_plain_buffers
            or len(shifts) != self.descriptor_count
        ):
            return self, buffers
        try:
            pipeline = self.shift(shifts)
        except UnimplementedError:
            return self, buffers
        return pipeline, [
            buffer.widened(shift) if shift and isinstance(buffer, Buffer) else buffer
            for buffer, shift in zip(buffers, shifts, strict=True)
        ]

    @property
    def descriptor_order(self) -> tuple[tuple[int, int, int], ...]:
        """The set, the binding and the VkDescriptorType of each resource that a dispatch takes."""
        return self._descriptor_order

    def rename(self, name: str) -> None:
        """Sets the name in messages, profiles, reports and printed lines."""
        self.name = name
        if self.report is not None:
            self.report.rename(name)

    @property
    def descriptor_count(self) -> int:
        """The number of resources that a dispatch takes."""
        return len(self._descriptor_order)

    @property
    def takes_plain_buffers(self) -> bool:
        """Whether its descriptors are all buffers, of any size that the shader handles."""
        interface = self.interface
        takes_addresses = interface.buffer_device_addresses or interface.pushes_addresses
        return self._only_buffers and not self._uniform_sizes and not takes_addresses

    def _check(self, resource: object, set_index: int, binding: int, kind: int) -> None:
        key = set_index, binding
        if resource is None and key in self.interface.partial:
            return
        check_resource(
            self.name, f"set {set_index} binding {binding}", self.device, kind, self._declared.get(key), resource
        )

    def _check_uniform(self, buffer: Buffer | None, index: int, least: int) -> None:
        if buffer is not None and buffer.size < least:
            set_index, binding, _ = self._descriptor_order[index]
            raise OutOfRangeError(
                f"{self.name}: the uniform block of set {set_index} binding {binding} has {least} bytes, and the "
                f"buffer that is bound {buffer.size}: its members past the end have no value. Bind a larger one"
            )

    def bind_table(self, table: Buffer | None) -> BoundSets:
        """Binds the resources of an address ABI: its table of addresses if it has a ``table_set``, and its report."""
        key = self.tail
        if self.interface.table_set is not None:
            key = (self.tail if table is None else table.descriptor) + key
        return BoundSets(self, (), self.pin_sets((), key))

    def _check_buffer(self, buffer: Resource, where: str) -> None:
        if buffer.device is not self.device:
            raise InvalidArgumentError(f"{self.name}: the buffer for {where} belongs to another device; copy it over")
        if buffer.is_closed:
            raise ClosedError(f"{self.name}: the buffer for {where} was closed")

    def pin_sets(self, resources: Sequence[Resource | None], key: bytes) -> SetPins:
        """Binds resources that the caller has checked, by their key; not for push descriptors."""
        layouts = self.set_layouts
        if len(layouts) == 1:
            return ((layouts[0], layouts[0].get(resources, key)),)
        sets, start = [], 0
        for layout in layouts:
            end = start + layout.descriptor_count
            sets.append((layout, layout.get(resources[start:end], key[32 * start : 32 * end])))
            start = end
        return tuple(sets)

    @property
    def writes(self) -> tuple[bool, ...]:
        """Whether it may write each of its resources; empty if unknown, as for device addresses."""
        if self.interface.buffer_device_addresses:
            return ()
        writable = {(binding.set, binding.binding) for binding in self.entry.bindings if binding.writable}
        return tuple((index, binding) in writable for index, binding, _ in self._descriptor_order)

    def binding(self, set_index: int, binding: int) -> Binding:
        """Returns the reflection of one binding; NotFoundError lists those that exist."""
        for candidate in self.entry.bindings:
            if (candidate.set, candidate.binding) == (set_index, binding):
                return candidate
        known = ", ".join(f"({b.set}, {b.binding})" for b in self.entry.bindings) or "none"
        raise NotFoundError(f"{self.name} has no binding {binding} in set {set_index}; it has (set, binding): {known}")

    def close(self) -> None:
        """Destroys the pipeline once no queue uses it; idempotent."""
        if self.is_closed:
            return
        self.is_closed = True
        device, handle = self.device, self.handle
        device.note_closed()
        device.defer(lambda: device.destroy("pipeline", handle))
        report = self.report
        if report is not None:
            device.defer(lambda: self._reports.give_back(report))

    def __repr__(self) -> str:
        state = "closed " if self.is_closed else ""
        count = self.interface.binding_count
        return f"<{state}ComputePipeline {self.name}, local size {self.local_size}, {count} descriptors>"


def log_unwatched(pipeline: ComputePipeline) -> None:
    """Warns of accesses that a sanitised shader does not check."""
    if pipeline.unwatched:
        _log.warning("%s: sanitize does not check %s", pipeline.name, "; ".join(pipeline.unwatched))


def check_groups(pipeline: ComputePipeline, groups: tuple[int, int, int]) -> None:
    """Raises for workgroup counts that the device cannot dispatch."""
    most = pipeline.device.profile.limits.max_compute_work_group_count
    if any(count < 0 for count in groups):
        raise InvalidArgumentError(f"{pipeline.name}: workgroup counts must not be negative, got {groups}")
    if any(count > limit for count, limit in zip(groups, most, strict=True)):
        raise ResourceExhaustedError(
            f"{pipeline.name}: {groups} workgroups are more than {pipeline.device.profile.name} dispatches at once "
            f"({tuple(most)}); use more dimensions (gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * "
            "gl_NumWorkGroups.x * gl_WorkGroupSize.x counts all of a row and those above), or a larger local size"
        )
