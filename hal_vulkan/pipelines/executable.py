"""Executables: the shader modules and pipelines of one compiled unit.

From raw SPIR-V, with one pipeline for each entry point, made on first use; or from a ``VKE1`` FlatBuffer, as the IREE
compiler writes it, with all its pipelines (dispatch ABIs with descriptors and with buffer device addresses).

Thread rule: an executable may be used from any thread.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ...base.closeable import Closeable
from ...formats.vke1 import BdaEntryType, DispatchAbi, ExecutableDef, PipelineDef
from ...formats.vke1_reader import parse_executable
from ...spirv.reflection.reflection_types import EntryPoint, ShaderModuleReflection
from ...status import ClosedError, InvalidArgumentError, OutOfRangeError, PumiceError, UnimplementedError
from ..vulkan.functions import ffi
from .pipeline import ComputePipeline
from .pipeline_context import PipelineContext
from .pipeline_interface import NO_SIZES, PipelineInterface
from .prepared_shader import ShaderModule, prepare_shader
from .resources import STORAGE_BUFFER, UNIFORM_BUFFER
from .specialization import PackedConstants, SpecializationValue

if TYPE_CHECKING:
    from ..instance.logical_device import LogicalDevice

_TABLE_SET: Final = 3
_log = logging.getLogger("pumice.executable")


class Executable(Closeable):
    """Shader modules and the pipelines made from them; ``source`` is the VKE1 definition, or ``None`` for SPIR-V.

    A sanitised executable makes a shader module for each pipeline: lengths and sizes follow from specialization
    constants.
    """

    def __init__(
        self,
        context: PipelineContext,
        modules: list[ShaderModule],
        source: ExecutableDef | None,
        *,
        sanitize: bool = False,
        pushes_addresses: bool = False,
    ) -> None:
        self._sanitize = sanitize
        self._pushes_addresses = pushes_addresses
        self._context = context
        self.device: LogicalDevice
        self.device = context.device
        self.source = source
        self._modules = modules
        self._pipelines: dict[tuple[object, ...], ComputePipeline] = {}
        self._lock = threading.Lock()
        self.is_closed: bool = False

    @classmethod
    def from_spirv(
        cls,
        context: PipelineContext,
        code: bytes | memoryview,
        *,
        validate: bool = True,
        watch: bool = True,
        sanitize: bool = False,
    ) -> Executable:
        """Returns an executable of one SPIR-V module; InvalidArgumentError if it is damaged."""
        prepared = prepare_shader(context.device, code, validate=validate, watch=watch and not sanitize)
        return cls(context, [ShaderModule(context.device, prepared)], None, sanitize=sanitize)

    @classmethod
    def from_vke1(
        cls,
        context: PipelineContext,
        data: bytes | memoryview,
        *,
        validate: bool = True,
        sanitize: bool = False,
        pushes_addresses: bool = False,
    ) -> Executable:
        """Returns an executable from a VKE1 blob; its pipelines are created immediately, as programs use them all.

        Args:
            context: the device's context.
            data: the blob.
            validate, sanitize: the same as for ``Device.load_executable``.
            pushes_addresses: whether its kernels also get the addresses of their bindings as push constants.

        Raises:
            InvalidArgumentError: the blob is damaged.
            IncompatibleError: the version of the format is unknown.
            UnimplementedError: the device lacks a capability; the message names it.
        """
        source = parse_executable(data)
        modules: list[ShaderModule] = []
        executable = cls(context, modules, source, sanitize=sanitize, pushes_addresses=pushes_addresses)
        try:
            for index, code in enumerate(source.shader_modules):
                prepared = prepare_shader(
                    context.device,
                    code,
                    validate=validate,
                    watch=not sanitize,
                    reserved=_reserved(source, index),
                    kernels=[
                        _kernel_name(definition) for definition in source.pipelines if definition.shader_module == index
                    ],
                )
                modules.append(ShaderModule(context.device, prepared))
            for ordinal in range(len(source.pipelines)):
                executable.pipeline_at(ordinal)
            _warn_of_misreads(source, modules)
        except PumiceError:
            executable.close()
            raise
        return executable

    @property
    def reflections(self) -> tuple[ShaderModuleReflection, ...]:
        """The reflection of each shader module."""
        return tuple(module.reflection for module in self._modules)

    def pipeline(
        self,
        entry_point: str | None = None,
        *,
        specialization: Mapping[int, SpecializationValue] | None = None,
        subgroup_size: int | None = None,
        full_subgroups: bool = False,
        varying_subgroup_size: bool = False,
        array_sizes: Mapping[tuple[int, int], int] | None = None,
    ) -> ComputePipeline:
        """Returns the pipeline of an entry point of raw SPIR-V, made on first use and then kept.

        Args:
            entry_point: the entry point's name; ``None`` for a module with a single entry point.
            specialization: the values by constant id.
            subgroup_size: the subgroup size to ask the driver for.
            full_subgroups: whether to launch subgroups with all invocations active.
            array_sizes: the descriptor counts of run-time sized arrays by (set, binding); 1024 where the limits allow
                it.
            varying_subgroup_size: whether the driver may choose the size, which ``SubgroupSize`` then holds.

        Raises:
            NotFoundError: there is no such entry point or constant; the message lists those that exist.
            UnimplementedError: the device lacks a capability; the message names it.
            InvalidArgumentError: the device's limits are exceeded.
        """
        constants = self._modules[0].pack(specialization)
        sizes = dict(array_sizes or {})

        def make() -> ComputePipeline:
            with self._prepared(self._module(0), constants, sizes) as module:
                return ComputePipeline(
                    self._context,
                    module.handle,
                    module.specialised(constants),
                    entry_point=entry_point,
                    constants=constants,
                    subgroup_size=subgroup_size,
                    checked=self._modules[0].prepared.checked,
                    instrumented=module.instrumented,
                    sanitized=self._sanitize,
                    full_subgroups=full_subgroups,
                    varying_subgroup_size=varying_subgroup_size,
                    array_sizes=sizes,
                )

        options = (subgroup_size, full_subgroups, varying_subgroup_size, tuple(sorted(sizes.items())))
        return self._kept((entry_point, constants, *options), make)

    def pipeline_at(
        self, ordinal: int, *, specialization: Mapping[int, SpecializationValue] | None = None
    ) -> ComputePipeline:
        """Returns the pipeline of a VKE1 executable by its ordinal, its position among the exports."""
        if self.source is None or not 0 <= ordinal < len(self.source.pipelines):
            count = len(self.source.pipelines) if self.source else 0
            raise OutOfRangeError(f"this executable has {count} pipeline(s) by ordinal; {ordinal} was asked for")
        definition = self.source.pipelines[ordinal]
        constants = self._modules[definition.shader_module].pack(specialization)
        key = ordinal, constants
        return self._kept(key, lambda: self._make(key, definition, self._module(definition.shader_module), constants))

    def part_at(
        self,
        ordinal: int,
        base: tuple[int, int, int],
        groups: tuple[int, int, int],
        *,
        specialization: Mapping[int, SpecializationValue] | None = None,
    ) -> ComputePipeline:
        """Returns the pipeline (``pipeline_at``) for workgroups from ``base`` of a ``groups`` grid beyond a dispatch's
        limits.
        """
        whole = self.pipeline_at(ordinal, specialization=specialization)
        assert self.source is not None
        definition = self.source.pipelines[ordinal]
        module = self._modules[definition.shader_module]
        constants = module.pack(specialization)

        def changed() -> bytes:
            from ...spirv.reflection.grid import part_of_grid  # here: few grids are too large

            return part_of_grid(module.code, base, groups, whole.local_size)

        return self._changed((ordinal, constants, base, groups), definition, constants, changed)

    def _shifted(
        self,
        key: tuple[object, ...],
        definition: PipelineDef,
        original: bytes,
        constants: PackedConstants,
        order: tuple[tuple[int, int, int], ...],
        shifts: tuple[int, ...],
    ) -> ComputePipeline:
        """Returns a pipeline for descriptors that start by so many bytes earlier; see ``ComputePipeline.aligned``."""

        def changed() -> bytes:
            from ...spirv.repair.shifted_bindings import with_shifted_bindings  # here: few devices need it

            numbers = (entry[:2] for entry in order)
            return with_shifted_bindings(original, dict(zip(numbers, shifts, strict=True)))

        return self._changed((*key, "shifted", shifts), definition, constants, changed)

    def _changed(
        self,
        key: tuple[object, ...],
        definition: PipelineDef,
        constants: PackedConstants,
        changed: Callable[[], bytes],
    ) -> ComputePipeline:
        """Returns the pipeline of a module that was changed, kept by its key."""

        def make() -> ComputePipeline:
            assert self.source is not None
            reserved = _reserved(self.source, definition.shader_module)
            prepared = prepare_shader(
                self.device, changed(), validate=False, watch=not self._sanitize, reserved=reserved
            )
            with ShaderModule(self.device, prepared) as module:
                return self._make(key, definition, module, constants)

        return self._kept(key, make)

    def _kept(self, key: tuple[object, ...], make: Callable[[], ComputePipeline]) -> ComputePipeline:
        with self._lock:
            self._check_open()
            pipeline = self._pipelines.get(key)
            if pipeline is None or pipeline.is_closed:
                pipeline = self._pipelines[key] = make()
            return pipeline

    @contextlib.contextmanager
    def _prepared(
        self,
        module: ShaderModule,
        constants: PackedConstants,
        array_sizes: Mapping[tuple[int, int], int] = NO_SIZES,
        reserved: Sequence[tuple[int, int]] = (),
    ) -> Iterator[ShaderModule]:
        if not self._sanitize:
            yield module
            return
        from ...spirv.repair.specialize import specialize

        prepared = prepare_shader(
            self.device,
            specialize(module.code, dict(constants)),
            validate=False,
            sanitize=True,
            array_sizes=array_sizes,
            reserved=reserved,
        )
        with ShaderModule(self.device, prepared) as made:
            yield made

    def _make(
        self, key: tuple[object, ...], definition: PipelineDef, original: ShaderModule, constants: PackedConstants
    ) -> ComputePipeline:
        assert self.source is not None
        reserved = _reserved(self.source, definition.shader_module)
        with self._prepared(original, constants, reserved=reserved) as module:
            reflection = module.specialised(constants)
            entry = reflection.entry_point(definition.entry_point)
            pipeline = ComputePipeline(
                self._context,
                module.handle,
                reflection,
                entry_point=definition.entry_point,
                constants=constants,
                interface=self._interface(definition, entry),
                subgroup_size=self._declared_subgroup_size(definition)
                if definition.subgroup_size
                else self._subgroup_size(module, entry, constants),
                name=definition.debug_info.name if definition.debug_info else None,
                checked=original.prepared.checked,
                instrumented=module.instrumented,
                sanitized=self._sanitize,
            )
            order = pipeline.descriptor_order
            pipeline.shift = functools.partial(self._shifted, key, definition, original.code, constants, order)
            return pipeline

    def _interface(self, definition: PipelineDef, entry: EntryPoint) -> PipelineInterface:
        source = self.source
        assert source is not None
        layout = source.pipeline_layouts[definition.pipeline_layout]
        push = max((r.offset + r.size for r in layout.push_constant_ranges), default=0)
        if definition.dispatch_abi is DispatchAbi.BDA_V1:
            bda = definition.bda_layout
            self._check_addresses(definition)
            assert bda is not None
            if bda.entry_type is not BdaEntryType.ADDRESS64 or bda.root_offset or bda.constant_offset < bda.root_length:
                raise UnimplementedError(
                    f"{definition.entry_point}: no compiler release lays out its address table or root like this "
                    "(entries with lengths, or a root that is not at offset 0); compile it again"
                )
            return PipelineInterface(
                set_layouts=(),
                push_constant_bytes=push,
                buffer_device_addresses=True,
                constant_offset=bda.constant_offset,
                binding_count=bda.binding_count,
            )
        keys = tuple(
            tuple(
                sorted(
                    (b.binding, int(b.descriptor_type), b.count)
                    for b in source.descriptor_set_layouts[ordinal].bindings
                )
            )
            for ordinal in layout.set_layouts
        )
        for index, key in enumerate(keys):
            for binding, kind, _ in key:
                if kind not in (STORAGE_BUFFER, UNIFORM_BUFFER):
                    raise UnimplementedError(
                        f"{definition.entry_point}: set {index} binding {binding} is of descriptor type {kind}; "
                        "programs bind storage and uniform buffers"
                    )
        count = sum(count for key in keys for _, _, count in key)
        if len(keys) <= _TABLE_SET and any((b.set, b.binding) == (_TABLE_SET, 0) for b in entry.bindings):
            # Format vulkan-spirv-fb-ptr, of compilers up to 3.11: the layout has the bindings, and the shader reads
            # their addresses from a table (kIndirectBindingsSetIndex in IREE's ConvertToSPIRVPass.cpp).
            self._check_addresses(definition)
            return PipelineInterface(
                ((),) * _TABLE_SET + (((0, STORAGE_BUFFER, 1),),),
                push,
                buffer_device_addresses=True,
                table_set=_TABLE_SET,
                binding_count=count,
            )
        interface = PipelineInterface(
            keys, push, binding_count=count, whole_words=True, pushes_addresses=self._pushes_addresses
        )
        if self._pushes_addresses:
            self._check_addresses(definition)
            if interface.pushed_by_caller < 0:
                raise InvalidArgumentError(
                    f"{definition.entry_point}: {push} bytes of push constants have no room for the addresses of "
                    f"{count} bindings; the executable is damaged"
                )
        return interface

    def _declared_subgroup_size(self, definition: PipelineDef) -> int | None:
        """Returns the subgroup size to require for the size that a kernel was compiled for.

        None if all subgroups have it.
        """
        size, profile = definition.subgroup_size, self.device.profile
        subgroup = profile.subgroup
        if subgroup.min_size == size == subgroup.max_size:
            return None
        can_require = self.device.plan.required_subgroup_size and subgroup.min_size <= size <= subgroup.max_size
        if size != subgroup.size and not can_require:
            raise UnimplementedError(
                f"{definition.entry_point} was compiled for subgroups of {size} invocations; {profile.name} runs "
                f"{subgroup.size}, with which its results would be wrong. Compile the program for this device, or for "
                "none in particular"
            )
        return size

    def _subgroup_size(self, module: ShaderModule, entry: EntryPoint, constants: PackedConstants) -> int | None:
        """Returns the subgroup size to require if a kernel needs larger subgroups than the device's default."""
        least = None if constants else module.prepared.subgroup_sizes.get(entry.name)
        if least is None:
            from ...spirv.binary.subgroups import least_subgroup_size

            least = least_subgroup_size(module.code, math.prod(entry.local_size))
        profile = self.device.profile
        if least <= profile.subgroup.size:
            return None
        if least > profile.subgroup.max_size or not self.device.plan.required_subgroup_size:
            raise UnimplementedError(
                f"{entry.name} was compiled for subgroups of {least} invocations or more; {profile.name} runs "
                f"{profile.subgroup.size}, with which its results would be wrong. Compile it for another target: the "
                "default one of --iree-vulkan-target uses no subgroups"
            )
        return least

    def _check_addresses(self, definition: PipelineDef) -> None:
        if not self.device.device_addresses:
            raise UnimplementedError(
                f"{definition.entry_point} needs buffer device addresses, which {self.device.profile.name} does not "
                "have (feature bufferDeviceAddress); compile with the descriptor ABI"
            )

    def _module(self, index: int) -> ShaderModule:
        module = self._modules[index]
        if module.handle == ffi.NULL:
            raise ClosedError("the shader modules of this executable were closed; it makes no more pipelines")
        return module

    def _check_open(self) -> None:
        self.device.check_usable()
        if self.is_closed:
            raise ClosedError("this executable was closed")

    def close_modules(self) -> None:
        """Destroys the shader modules; existing pipelines stay, and no more can be made."""
        for module in self._modules:
            module.close()

    def close(self) -> None:
        """Closes its pipelines and modules; idempotent. Work in flight keeps its resources."""
        if self.is_closed:
            return
        self.is_closed = True
        for pipeline in self._pipelines.values():
            pipeline.close()
        self._pipelines.clear()
        self.close_modules()

    def __repr__(self) -> str:
        state = "closed " if self.is_closed else ""
        return f"<{state}Executable {'VKE1' if self.source else 'SPIR-V'}, {len(self._pipelines)} pipelines>"


def _reserved(source: ExecutableDef, module: int) -> list[tuple[int, int]]:
    """Returns the (set, binding) pairs in the layouts of a module's pipelines; the binding is -1 for a set without
    bindings.
    """
    return [
        (number, binding)
        for pipeline in source.pipelines
        if pipeline.shader_module == module and pipeline.dispatch_abi is not DispatchAbi.BDA_V1
        for number, ordinal in enumerate(source.pipeline_layouts[pipeline.pipeline_layout].set_layouts)
        for binding in (
            -1,
            *(layout_binding.binding for layout_binding in source.descriptor_set_layouts[ordinal].bindings),
        )
    ]


def _kernel_name(pipeline: PipelineDef) -> str:
    return (pipeline.debug_info.name if pipeline.debug_info else None) or pipeline.entry_point


def _warn_of_misreads(source: ExecutableDef, modules: Sequence[ShaderModule]) -> None:
    """Warns once of kernels that read narrow elements as wider elements."""
    misread: dict[str, str] = {}
    for pipeline in source.pipelines:
        name = _kernel_name(pipeline)
        kind = modules[pipeline.shader_module].prepared.misread.get(name)
        if kind is not None:
            misread[name] = kind
    if misread:
        shown = ", ".join(list(misread)[:3]) + (f" and {len(misread) - 3} more" if len(misread) > 3 else "")
        _log.warning(
            "results will be wrong: %s read %s as wider elements, as the program was compiled for a device without "
            "narrow types. Compile it for one that has them: --iree-vulkan-target=rdna3, ampere or what the device is",
            shown,
            " and ".join(sorted(set(misread.values()))),
        )
