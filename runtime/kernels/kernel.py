"""Kernels: a compute shader called like a function of arrays.

Calling sequence: ``Device.load_kernel`` → call it, any number of times → ``close``, or close its device.

Thread rule: a kernel may be called from any thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, cast

import numpy as np

from ...base.closeable import Closeable
from ...base.notebook import html_table
from ...hal_vulkan import ComputePipeline, DispatchTiming, Executable, ShaderModuleReflection, SpecializationValue
from ...hal_vulkan.pipelines.pipeline import log_unwatched
from ...hal_vulkan.pipelines.resources import Resource
from ...hal_vulkan.pipelines.specialization import pack_constants
from ...spirv.instrument.wide_grid import split_counts, with_wide_grid
from ...spirv.reflection.block_dtype import member_names
from ...spirv.reflection.block_names import Layouts, with_names
from ...status import InvalidArgumentError
from ...waits.wait_mode import WaitMode, waits
from ..arrays.array import DeviceArray
from ..arrays.array_device import ArrayDevice
from ..arrays.transfer import Placed
from ..images.bound import ABSENT
from .bound_call import Binder, BoundCall
from .dispatcher import OF_HOST, Dispatcher
from .parameters.arguments import Counts, Groups, HostGroups, Out, PerElement, declared, prepare_arguments
from .parameters.block import describe, type_name
from .parameters.names import dtype_of_block
from .parameters.parameter import KernelArgument, KernelResult, Parameter
from .parameters.parameters import parameters_of
from .parameters.push import Defaults, Named, Push, PushValue
from .parameters.uniforms import with_initial_values
from .push_memory import PushMemory
from .specialization import specialization_by_id
from .wide_grids import WideGridError

if TYPE_CHECKING:
    from ...spirv.reflection.reflection_types import EntryPoint


_Result = TypeVar("_Result")
_MAX_WIDE: Final = 16


class PreparedDispatch(NamedTuple):
    """One dispatch of a kernel: arguments of ``CommandBuffer.dispatch``, including inferred workgroup counts."""

    pipeline: ComputePipeline
    buffers: tuple[Resource | None, ...]
    groups: Counts
    push: bytes


class KernelSource(NamedTuple):
    """The source of a kernel: SPIR-V, and the options that it was loaded with."""

    code: bytes
    entry_point: str | None
    specialization: Mapping[int | str, SpecializationValue]
    subgroup_size: int | None


class Kernel(Closeable):
    """A compute shader, callable with arrays in binding order.

    Attributes:
        device: the device that it runs on.
        name: the name in messages and profiles.
        made_from: the module, with the requested entry point and constants.
        reflection: the reflection of everything that the module declares.
        pipeline: the HAL pipeline.
        entry: the reflection of the entry point, specialised, with the names in ``layouts``.
        parameters: the parameters, in the order of a call.
    """

    def __init__(
        self,
        device: ArrayDevice,
        code: bytes,
        *,
        name: str,
        entry_point: str | None = None,
        specialization: Mapping[int | str, SpecializationValue] | None = None,
        subgroup_size: int | None = None,
        push_defaults: Defaults = None,
        layouts: Layouts | None = None,
        source: Callable[[], str] = str,
        sanitize: bool | None = None,
    ) -> None:
        """Loads a module.

        Args:
            device: the device to run on.
            code: the SPIR-V module.
            name: the name in messages and profiles.
            entry_point, specialization, subgroup_size, push_defaults, layouts, sanitize: the same as for
                ``Device.load_kernel``.
            source: a function that returns the text that the module was compiled from, ``""`` for none.
        """
        self.device = device
        vulkan = device.vulkan
        executable = vulkan.create_executable(code, sanitize=sanitize)
        try:
            self.reflection: ShaderModuleReflection = executable.reflections[0]
            constants = specialization_by_id(self.reflection, specialization or {}, code, name, source)
            self.pipeline: ComputePipeline = executable.pipeline(
                entry_point, specialization=constants, subgroup_size=subgroup_size
            )
            executable.close_modules()
            entry = self.pipeline.entry if layouts is None else with_names(self.pipeline.entry, layouts)
            self.entry: EntryPoint = entry
            self.name: str = (name or "kernel") if entry.name == "main" else entry.name
            self.pipeline.rename(self.name)
            log_unwatched(self.pipeline)
            self.parameters: tuple[Parameter, ...] = parameters_of(entry, vulkan.profile.limits)
            if entry.loose_uniforms is not None:
                push_defaults = with_initial_values(push_defaults, entry, source())
            self._binder = Binder(device, self.reflection, entry, self.parameters, self.name, push_defaults)

            kernel_name = self.name  # not ``self``: a cycle would keep a dropped kernel

            def made_of(module: bytes) -> tuple[Executable, ComputePipeline]:
                other = vulkan.create_executable(module, sanitize=sanitize)
                pipeline = other.pipeline(entry_point, specialization=constants, subgroup_size=subgroup_size)
                pipeline.rename(kernel_name)
                return other, pipeline

            packed = pack_constants(self.reflection.specialization_constants, constants)
            parameters, binder = self.parameters, self._binder

            def dispatcher_of(module: bytes, of: Executable, pipeline: ComputePipeline) -> Dispatcher:
                memory = PushMemory(module, pipeline, packed, subgroup_size, made_of)
                return Dispatcher(device, of, pipeline, parameters, binder, kernel_name, memory)

            self._dispatcher = dispatcher_of(code, executable, self.pipeline)
            self._variant: Callable[[bytes], Dispatcher] = lambda module: dispatcher_of(module, *made_of(module))
            self._wide_lock = threading.Lock()
            self._wide: dict[Counts, Dispatcher] = {}
        except BaseException:
            executable.close()
            raise
        self.made_from: KernelSource = KernelSource(code, entry_point, dict(specialization or {}), subgroup_size)

    # -- calls ---------------------------------------------------------------------------------------

    def __call__(
        self,
        *arrays: KernelArgument,
        out: Out = None,
        groups: Groups | None = None,
        push: Push = None,
        uses: DeviceArray | Sequence[DeviceArray] | None = None,
        wait: WaitMode | None = None,
        **named: KernelArgument | PushValue,
    ) -> KernelResult:
        """Runs the kernel.

        Args:
            arrays: the arguments, one for each binding, in order of (set, binding): NumPy arrays (or anything that
                NumPy makes an array of), arrays of this device, or ``pumice.empty(shape, dtype)`` for a result, of
                zeros if the kernel reads it as well.
            out: the arrays for the last written bindings that are not in ``named``, in binding order. ``arrays`` are
                for the first bindings that ``out`` does not fill.
            groups: the workgroup counts: an int or up to three, or an array of three uint32 on the device, read when
                the call runs. The name of an argument makes one invocation for each of its elements, by axis where the
                local size has several dimensions; ``None`` takes the written array of most bytes for it.
            push: the push constants, as bytes of the whole block, values in order, or values by name.
            uses: the arrays whose addresses the call passes as numbers, or that memory it passes points to. They are
                held and waited for like arguments, as are arrays that are given for pointers themselves.
            wait: the wait mode of the call: ``"adaptive"``, ``"block"`` or ``"spin"``, see ``open_device``;
                ``None`` as the device was opened.
            named: the arrays by the names of the bindings' variables or blocks, as with the parameters of any Python
                function, and push constants by the names of the block's members. An array of bindings takes a sequence
                of arrays. An ambiguous name is an error.

        Returns:
            The written arrays in binding order: ``None`` for none, the array for one, else a tuple. A DeviceArray
            argument is written in place and returned; for a NumPy argument the result is a new array. If no argument is
            a DeviceArray, the results are NumPy arrays and complete; else they are DeviceArrays, and work that writes
            them may still be under way.

        Raises:
            InvalidArgumentError: the number, dtype or size of arrays, or push constants are wrong; the message names
                the binding and the shader's declaration. Or ``groups`` is ``None`` and the written array's size says
                nothing, as for a sum or a histogram: too few invocations would run for an input.
        """
        if not named and out is None and groups is None and push is None and uses is None and wait is None:
            result = self._dispatcher.repeat(arrays)  # type: ignore[arg-type]  # it knows what is on the device only
            if result is not None:
                return result
        call = self._binder.bind(arrays, named, out=out, groups=groups, push=push, uses=uses)
        try:
            if wait is None:
                return self._dispatcher.run(call)
            with waits(wait):
                return self._dispatcher.run(call)
        except WideGridError as error:
            dispatcher = self._split(call, error.counts)
        with waits(wait) if wait is not None else contextlib.nullcontext():
            return dispatcher.run(call)

    def _split(self, call: BoundCall, counts: Counts) -> Dispatcher:
        """Splits a call with too many workgroups in x over more rows; returns the dispatcher that runs it."""
        most = self.device.vulkan.profile.limits.max_compute_work_group_count
        split = split_counts(counts, most, self.pipeline.local_size[0])
        assert split is not None
        with self._wide_lock:
            dispatcher = self._wide.get(counts)
            if dispatcher is None:
                if len(self._wide) == _MAX_WIDE:
                    self._wide.pop(next(iter(self._wide))).close()
                code, size = self.made_from.code, self.pipeline.local_size
                dispatcher = self._variant(with_wide_grid(code, self.entry.name, size, counts, split))
                self._wide[counts] = dispatcher
        call.groups = split
        return dispatcher

    def prepare(
        self,
        *arrays: KernelArgument,
        groups: Groups | None = None,
        push: Push = None,
        **named: KernelArgument | PushValue,
    ) -> PreparedDispatch:
        """Returns the dispatch of a call, for callers that record command buffers themselves.

        All arguments must be on the device, and stay open as long as the commands are in use. They are not marked as in
        use, so wait for the commands before the host reads or writes them. Arguments and errors are those of a call.
        """
        call = self._binder.bind(arrays, named, groups=groups, push=push)
        if call.indirect is not None:
            raise InvalidArgumentError(
                f"{self.name}: prepare() takes groups as numbers; give 1, and the array's buffer to "
                "CommandBuffer.dispatch_indirect"
            )
        descriptors, recorder = self._dispatcher.descriptors, self._dispatcher.recorder
        parameters, apart = descriptors.take_apart(call.arrays)
        values, fit = prepare_arguments(parameters, apart, self.name)
        for value, parameter in zip(values, parameters, strict=True):
            if isinstance(value, OF_HOST) or (isinstance(value, DeviceArray) and value.device is not self.device):
                raise InvalidArgumentError(f"{self.name}: {parameter.label} takes an array on {self.device.name}")
            if value is ABSENT:
                descriptors.check_absent(parameter)
        if not fit:
            descriptors.check(parameters, values)
        bound, declarations = descriptors.bound(parameters, cast("list[Placed]", values), values)
        counts = recorder.counts(bound, call.groups, declarations)
        recorder.check_push(call.push)
        buffers = cast("tuple[Resource | None, ...]", tuple([resource.buffer for resource in bound]))
        return PreparedDispatch(self.pipeline, buffers, counts, call.push)

    def grid(self, groups: HostGroups | None) -> Counts | PerElement | None:
        """Returns the meaning of ``groups``, for tools that save calls."""
        return None if groups is None else self._binder.grid(groups)

    def placed(
        self, arrays: Sequence[KernelArgument], *, out: Out = None, push: Push = None, named: Named | None = None
    ) -> tuple[Sequence[Parameter], Sequence[KernelArgument], bytes]:
        """Returns parameters and arguments by descriptor, and push constants as bytes, for tools that save calls.

        Arguments and errors are those of a call.
        """
        call = self._binder.bind(arrays, named or {}, out=out, push=push)
        return *self._dispatcher.descriptors.take_apart(call.arrays), call.push

    def time(
        self,
        *arrays: KernelArgument,
        out: Out = None,
        groups: Groups | None = None,
        push: Push = None,
        uses: DeviceArray | Sequence[DeviceArray] | None = None,
        **named: KernelArgument | PushValue,
    ) -> tuple[KernelResult, DispatchTiming]:
        """Calls the kernel, waits for it, and measures its dispatch with the device's clock.

        Returns:
            The results of the call, and the device time of the dispatch.

        Raises:
            UnimplementedError: the device writes no timestamps.
        """
        call = self._binder.bind(arrays, named, out=out, groups=groups, push=push, uses=uses)
        try:
            return self._dispatcher.time(call)
        except WideGridError as error:
            return self._split(call, error.counts).time(call)

    def dtype(self, name: str, length: int | None = None) -> np.dtype[np.generic]:
        """Returns the dtype of arrays for a binding, with the offsets, strides and sizes that the shader declares.

        Members without a name are ``member0``, ``member1``, … A padded element, such as a vec3 of std430, has one
        field,
        ``value``. A matrix has its layout in memory, column after column or row after row.

        Args:
            name: the name of the binding's variable or block, or of a pointer's target block.
            length: the length of a run-time sized array after other members; then the dtype is that of the whole block.

        Returns:
            The dtype of an element if an array is the block's only member, else that of the whole block.

        Raises:
            NotFoundError: there is no such binding; the message lists those that exist.
            InvalidArgumentError: ``length`` is missing, or the block has no such array.
            UnimplementedError: NumPy has no dtype for the block.
        """
        return dtype_of_block(name, length, self._binder.names, self.parameters, self.reflection, self.name)

    def close(self) -> None:
        """Unloads the kernel once work in flight is done; idempotent."""
        with self._wide_lock:
            for dispatcher in self._wide.values():
                dispatcher.close()
            self._wide.clear()
        self._dispatcher.close()

    def __repr__(self) -> str:
        loose = self.entry.loose_uniforms
        uniforms = f"; uniforms: {describe(loose.members)}" if loose is not None else ""
        return (
            f"<Kernel {self.name}: {declared(self._shown_parameters)}{uniforms}; local size {self.pipeline.local_size}>"
        )

    @property
    def _shown_parameters(self) -> Sequence[Parameter]:
        """The parameters whose arguments are bindings of their own, not uniforms by name."""
        return [parameter for parameter in self.parameters if parameter.binding is not self.entry.loose_uniforms]

    def _repr_html_(self) -> str:
        """Returns the signature as a table for notebooks; an array of bindings is one row."""
        rows = {
            parameter.label: (parameter.label, parameter.declared(), "yes" if parameter.written else "no")
            for parameter in self._shown_parameters
        }
        constants = self.entry.constants
        if constants is not None:
            for name, member in member_names(constants.members).items():
                rows[f"push {name}"] = (f"{constants.noun} {name}", type_name(member), "no")
        local_size = f"local size {self.pipeline.local_size}"
        columns = ("parameter", "takes", "written")
        return html_table(columns, rows.values(), title=f"Kernel {self.name}", notes=[local_size], texts=columns)
