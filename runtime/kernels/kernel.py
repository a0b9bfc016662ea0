"""Kernels: a compute shader called like a function of arrays.

Calling sequence: ``Device.load_kernel`` → call it, any number of times → ``close``, or close its device.

Thread rule: a kernel may be called from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np

from ...base.closeable import Closing
from ...base.notebook import html_table
from ...hal_vulkan import ComputePipeline, DispatchTiming, ShaderModuleReflection, SpecializationValue
from ...hal_vulkan.pipelines.pipeline import log_unwatched
from ...hal_vulkan.pipelines.resources import Resource
from ...spirv.reflection.block_dtype import member_names
from ...spirv.reflection.block_names import Layouts, with_names
from ...status import InvalidArgumentError
from ...waits.wait_mode import WaitMode, waits
from ..arrays.array import DeviceArray
from ..arrays.array_device import ArrayDevice
from ..arrays.staging import StagingPool
from ..arrays.transfer import Placed, Transfer
from ..images.bound import ABSENT, Bound
from .descriptors import KernelDescriptors
from .parameters.arguments import Counts, Groups, Out, declared, given_counts, prepare_arguments, targets_of
from .parameters.block import type_name
from .parameters.block_dtypes import dtype_of_block
from .parameters.names import Named, Names
from .parameters.parameter import KernelArgument, Parameter
from .parameters.parameters import parameters_of
from .parameters.pointers import Pointers
from .parameters.push import Defaults, Push, PushConstants, PushValue
from .recorder import DispatchRecorder
from .repeated_call import RepeatedCall, RepeatedCalls
from .results import OF_HOST, KernelResult, mark_placed, marked, results_of
from .specialization import specialization_by_id
from .verdicts import hold, hold_arrays


class PreparedDispatch(NamedTuple):
    """One dispatch of a kernel: the arguments of ``CommandBuffer.dispatch``, inferred workgroup counts too."""

    pipeline: ComputePipeline
    buffers: tuple[Resource | None, ...]
    groups: Counts
    push: bytes


class KernelSource(NamedTuple):
    """What a kernel was made from: SPIR-V, and what of it was chosen."""

    code: bytes
    entry_point: str | None
    specialization: Mapping[int | str, SpecializationValue]
    subgroup_size: int | None


class Kernel(Closing):
    """A compute shader, callable with arrays in binding order.

    Attributes:
        device: where it runs.
        name: for messages and profiles.
        made_from: the module, with the entry point and the constants that were asked for.
        reflection: everything the module declares.
        pipeline: the HAL pipeline.
        entry: reflection of its entry point, specialised, with the names that ``layouts`` gave.
        parameters: in the order of a call.
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
            device: where it runs.
            code: SPIR-V.
            name: for messages and profiles.
            entry_point, specialization, subgroup_size, push_defaults, layouts, sanitize: as for ``Device.load_kernel``.
            source: gives the text that the module was compiled from, where there is one.
        """
        self.device = device
        vulkan = device.vulkan
        executable = vulkan.create_executable(code, sanitize=sanitize)
        try:
            self.reflection: ShaderModuleReflection = executable.reflections[0]
            self.pipeline = executable.pipeline(
                entry_point,
                specialization=specialization_by_id(self.reflection, specialization or {}, code, name, source),
                subgroup_size=subgroup_size,
            )
            self._executable = executable
            executable.close_modules()
            entry = self.pipeline.entry if layouts is None else with_names(self.pipeline.entry, layouts)
            self.entry = entry
            self.name = name if entry.name == "main" else entry.name
            self.pipeline.name = self.name
            self._report = self.pipeline.report
            if self._report is not None:
                self._report.name = self.name
            log_unwatched(self.pipeline)
            self.parameters = parameters_of(entry, vulkan.profile.limits)
            constants = member_names(entry.push_constants.members) if entry.push_constants else ()
            self._names = Names(self.parameters, tuple(constants), self.name)
            self._device_types = frozenset(one for p in self.parameters for one in p.device_types)
            self._descriptors = KernelDescriptors(device, self.pipeline, self.parameters, self.name)
            self._pointers = Pointers(device, self.reflection, entry, self.name, push_defaults)
            self._has_pointers = self._pointers.present
            self._written = tuple(p.index for p in self.parameters if p.written)
            self._push = PushConstants(entry.push_constants, self.name, self._names.check_push, push_defaults)
        except BaseException:
            executable.close()
            raise
        self.made_from = KernelSource(code, entry_point, dict(specialization or {}), subgroup_size)
        self._takes_push = entry.push_constants is not None
        self._alignment_mask = self.pipeline.offset_alignment - 1
        self._single = self._written[0] if len(self._written) == 1 else None
        self._hal = vulkan
        self._queue = vulkan.compute_queue
        self._repeated = RepeatedCalls()
        self._lock = threading.Lock()
        self._staging = StagingPool(device)
        self._recorder = DispatchRecorder(
            device, self.pipeline, self.parameters, self.name, only_buffers=self._descriptors.only_buffers
        )
        self._is_plain = self._recorder.is_plain and not self._has_pointers

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
            arrays: one a binding, in order of (set, binding): NumPy arrays (or anything that NumPy makes an array of),
                arrays of this device, or ``pumice.empty(shape, dtype)`` where the kernel only writes.
            out: arrays for the last written bindings that ``named`` does not give, in binding order. ``arrays`` are
                for the first bindings that ``out`` does not fill.
            groups: workgroup counts: an int or up to three; ``None`` infers one invocation an element of the written
                arrays, by axis where the local size has several dimensions.
            push: push constants as bytes of the whole block, values in order, or values by name.
            uses: arrays whose addresses the call passes as numbers, or that memory it passes points to. They are held
                and waited for like arguments. Arrays given in the place of pointers are anyway.
            wait: how the call waits, if it has to: ``"adaptive"``, ``"block"`` or ``"spin"``, see ``open_device``;
                ``None`` as the device was opened.
            named: arrays by the names of the bindings' variables or blocks, as with the parameters of any Python
                function, and push constants by the names of the block's members. An array of bindings takes a sequence
                of arrays. A name that stands for two things is refused.

        Returns:
            The written arrays in binding order: ``None`` for none, the array for one, else a tuple. A DeviceArray
            argument is written in place and returned; for a NumPy argument the result is a new array. If no argument is
            a DeviceArray, the results are NumPy arrays and complete; else they are DeviceArrays, and work that writes
            them may still be under way.

        Raises:
            InvalidArgumentError: wrong number, dtype or size of arrays, or wrong push constants; the message names the
                binding and the shader's declaration.
        """
        if wait is not None:
            with waits(wait):
                return self(*arrays, out=out, groups=groups, push=push, uses=uses, wait=None, **named)
        # The hot path (benchmarks/submit_wait.py) is written out: after a wait the caches are cold, and each Python
        # operation costs more than usual. It takes arrays that were here before; for others see ``_call_arrays``.
        if arrays and type(arrays[0]) is DeviceArray and not named and out is None and push is None and uses is None:
            known: RepeatedCall | None = None
            if groups is None:
                count = len(arrays)
                try:
                    if count == 3:
                        first, second, third = arrays
                        known = self._repeated.get((first.serial, second.serial, third.serial))  # type: ignore[union-attr]
                    elif count == 2:
                        first, second = arrays
                        known = self._repeated.get((first.serial, second.serial))  # type: ignore[union-attr]
                    else:
                        known = self._repeated.get(tuple([array.serial for array in arrays]))  # type: ignore[union-attr]
                except AttributeError:  # one of them is no array of a device
                    pass
                else:
                    if known is None and self._is_plain and count == len(self.parameters):
                        payload = self._submit_new(arrays)  # type: ignore[arg-type]  # they have serials
                        if payload:
                            return marked(self.parameters, arrays, payload)  # type: ignore[arg-type]
            if known is not None:
                hal = self._hal
                if hal.dropped:
                    hal.close_dropped()
                # The epoch is that of an open device, in this process, whose arrays are open.
                is_open = known.epoch == hal.close_epoch
                payload = self._queue.resubmit(known.commands, known.generation) if is_open else 0
                if payload:
                    device = self.device
                    if device.verdicts:
                        hold_arrays(device.verdicts, self.parameters, arrays, None, payload, device.reached)  # type: ignore[arg-type]
                    result = self._single
                    if known.is_whole and result is not None:
                        # See DeviceArray.mark.
                        for array in arrays:
                            if array._last_use < payload:  # type: ignore[union-attr]  # the serials are of arrays
                                array._last_use = payload  # type: ignore[union-attr]
                        target = arrays[result]
                        if target._ready < payload:  # type: ignore[union-attr]
                            target._ready = payload  # type: ignore[union-attr]
                        return target  # type: ignore[return-value]
                    return marked(self.parameters, arrays, payload)  # type: ignore[arg-type]
        if self.device.hal.abandoned:  # a forked child, where a thread that is gone may hold the locks
            self.device.hal.check_usable()
        parameters = self.parameters
        counts = None if groups is None else given_counts(groups, self.name)
        if len(arrays) != len(parameters) or out is not None:
            arrays, named = self._names.place(arrays, out, named)
        if uses is not None or self._has_pointers:
            return self._call_pointing(uses, arrays, out, counts, push, named)
        for array, parameter in zip(arrays, parameters, strict=True):
            if type(array) is not DeviceArray or (array.dtype, array.nbytes) not in parameter.accepted:
                return self._call_general(arrays, out, counts, self._push.pack(push, named))
            if array.buffer.offset & self._alignment_mask:
                return self._call_general(arrays, out, counts, self._push.pack(push, named))
        data = self._push.pack(push, named) if self._takes_push or named or push is not None else b""
        return self._call_arrays(arrays, counts, data)  # type: ignore[arg-type]

    def _submit_new(self, arrays: Sequence[DeviceArray]) -> int:
        """Submits a call with arrays that were not here before: a buffer for each binding, and nothing else.

        Returns the payload; 0, and has done nothing, if anything is unusual. (Measured in benchmarks/submit_wait.py.)
        """
        hal, recorder = self._hal, self._recorder
        if self.device.verdicts or hal.abandoned:
            return 0
        if hal.dropped:
            hal.close_dropped()
        with self._lock:
            epoch, recordings = hal.close_epoch, recorder.count
            commands = recorder.recorded_plain(arrays)
            if commands is None:
                return 0
            payload = self._queue.resubmit(commands, commands.generation) or self.device.submit((commands,))
            if recorder.count == recordings:
                self._repeated.note(commands, epoch, arrays)
        return payload

    def _call_pointing(
        self,
        uses: object,
        arrays: Sequence[KernelArgument],
        out: Out,
        groups: Counts | None,
        push: Push,
        named: Named,
        *,
        timings: list[DispatchTiming] | None = None,
    ) -> KernelResult:
        """A call that passes addresses, and notes its work in the arrays that these are of."""
        pointed = self._pointers.collect(uses, arrays, push, named)
        verdicts = self.device.verdicts
        held = frozenset().union(*[verdicts.get(one.ready, ()) for one in pointed]) if verdicts else frozenset()
        data = self._push.pack(push, self._pointers.with_addresses(named))
        mask = self._alignment_mask
        try:
            ready = timings is None and all(
                type(array) is DeviceArray
                and (array.dtype, array.nbytes) in parameter.accepted
                and not array.buffer.offset & mask
                for array, parameter in zip(arrays, self.parameters, strict=True)
            )
            if ready:
                return self._call_arrays(arrays, groups, data)  # type: ignore[arg-type]
            return self._call_general(arrays, out, groups, data, timings=timings)
        finally:
            # What a kernel does with an address is not known. Later work of other threads may be counted, too.
            payload = self.device.submitted
            verdicts.hold(payload, held, 0)
            for array in pointed:
                array.mark(payload, written=True)

    def _call_arrays(self, arrays: Sequence[DeviceArray], groups: Counts | None, push: bytes) -> KernelResult:
        """A call with arrays whose dtype and size are known to fit."""
        with self._lock:
            verdict = None if self._report is None else self._report.next_verdict()
            epoch = self._hal.close_epoch
            recordings = self._recorder.count
            commands = self._recorder.recorded(arrays, groups, push)
            payload = self.device.submit((commands,))
            if verdict is not None:
                verdict.payload = payload
            elif groups is None and not self._takes_push and self._recorder.count == recordings:
                self._repeated.note(commands, epoch, arrays)
        verdicts = self.device.verdicts
        if verdict is not None or verdicts:
            hold_arrays(verdicts, self.parameters, arrays, verdict, payload, self.device.reached)
        return marked(self.parameters, arrays, payload)

    # -- any arguments -------------------------------------------------------------------------------

    def _call_general(
        self,
        arrays: Sequence[KernelArgument],
        out: Out,
        groups: Counts | None,
        push: bytes,
        *,
        timings: list[DispatchTiming] | None = None,
    ) -> KernelResult:
        """Checks the arguments, moves those of the host to the device, runs, and brings the results back."""
        descriptors = self._descriptors
        only_buffers = descriptors.only_buffers
        parameters, arrays = descriptors.take_apart(arrays)
        values, fit = prepare_arguments(parameters, arrays, self.name)
        if not fit:
            if groups is None and values and not any(value.nbytes for value in values):
                return results_of(
                    parameters, [np.empty(v.shape, v.dtype) if isinstance(v, OF_HOST) else v for v in values]
                )
            for parameter, value in zip(parameters, values, strict=True):
                if value is ABSENT:
                    descriptors.check_absent(parameter)
                else:
                    parameter.check(value, self.name)
        outs = () if out is None else targets_of(out, self.name)
        to_host = self._device_types.isdisjoint(map(type, values))
        with Transfer(self.device, self._staging, self.pipeline.offset_alignment, to_host=to_host) as transfer:
            for parameter, value, given in zip(parameters, values, arrays, strict=True):
                into = given if outs and id(given) in outs and isinstance(given, np.ndarray) else None
                if only_buffers:
                    transfer.bring(value, written=parameter.written, into=into)  # type: ignore[arg-type]  # arrays
                elif value is ABSENT:
                    transfer.carry(ABSENT, None)
                else:
                    parameter.bring(transfer, value, into)
            placed = transfer.place()
            bound: Sequence[DeviceArray | Bound] = placed  # type: ignore[assignment]  # arrays, if there are only buffers
            declarations = parameters
            if not only_buffers:
                bound, declarations = descriptors.bound(parameters, placed, values)
            if timings is None:
                with self._lock:
                    verdict = None if self._report is None else self._report.next_verdict()
                    payload = transfer.run(self._recorder.recorded(bound, groups, push, declarations))
                    if verdict is not None:
                        verdict.payload = payload
                if verdict is not None or self.device.verdicts:
                    hold(self.device.verdicts, parameters, values, verdict, payload, self.device.reached)
                if not to_host:
                    mark_placed(parameters, placed, values, payload)
                transfer.finish()
                if to_host and payload in self.device.verdicts:
                    self.device.finish(payload)
            else:
                with self._recorder.timed(bound, groups, push, declarations) as commands:
                    with self._lock:
                        verdict = None if self._report is None else self._report.next_verdict()
                        payload = transfer.run(commands)
                        if verdict is not None:
                            verdict.payload = payload
                    hold(self.device.verdicts, parameters, values, verdict, payload, self.device.reached)
                    mark_placed(parameters, placed, values, payload)
                    transfer.finish()
                    self.device.finish(payload)
                    timings.extend(commands.timings())
        return results_of(parameters, transfer.results)

    def prepare(
        self,
        *arrays: KernelArgument,
        groups: Groups | None = None,
        push: Push = None,
        **named: KernelArgument | PushValue,
    ) -> PreparedDispatch:
        """The dispatch of a call with what is on the device, for callers that record command buffers themselves.

        The arrays must stay open as long as the commands are in use. They are not marked as in use: wait for the
        commands before the host reads or writes them. Arguments and errors are those of a call.
        """
        given: Sequence[KernelArgument] = arrays
        if len(arrays) != len(self.parameters):
            given, named = self._names.place(arrays, None, named)
        parameters, given = self._descriptors.take_apart(given)
        values, fit = prepare_arguments(parameters, given, self.name)
        for value, parameter in zip(values, parameters, strict=True):
            if isinstance(value, OF_HOST) or (isinstance(value, DeviceArray) and value.device is not self.device):
                raise InvalidArgumentError(f"{self.name}: {parameter.label} takes an array on {self.device.name}")
            if value is ABSENT:
                self._descriptors.check_absent(parameter)
            elif not fit:
                parameter.check(value, self.name)
        bound, declarations = self._descriptors.bound(parameters, cast("list[Placed]", values), values)
        counts = self._recorder.counts(bound, None if groups is None else given_counts(groups, self.name), declarations)
        if self._has_pointers:
            self._pointers.collect(None, given, push, named)
        data = self._push.pack(push, named)
        self._recorder.check_push(data)
        buffers = cast("tuple[Resource | None, ...]", tuple([one.buffer for one in bound]))
        return PreparedDispatch(self.pipeline, buffers, counts, data)

    def placed(
        self, arrays: Sequence[KernelArgument], *, out: Out = None, push: Push = None, named: Named | None = None
    ) -> tuple[Sequence[Parameter], Sequence[KernelArgument], bytes]:
        """What a call would bind, one a descriptor, and its push constants as bytes; for tools that note calls.

        Arguments and errors are those of a call.
        """
        rest: Named = named or {}
        given: Sequence[KernelArgument] = arrays
        if len(arrays) != len(self.parameters) or out is not None:
            given, rest = self._names.place(arrays, out, rest)
        parameters, given = self._descriptors.take_apart(given)
        return parameters, given, self._push.pack(push, rest)

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
        if len(arrays) != len(self.parameters) or out is not None:
            arrays, named = self._names.place(arrays, out, named)
        timings: list[DispatchTiming] = []
        counts = None if groups is None else given_counts(groups, self.name)
        result = self._call_pointing(uses, arrays, out, counts, push, named, timings=timings)
        if not timings:
            raise InvalidArgumentError(f"{self.name}: there is nothing to time: all arrays are empty")
        return result, timings[0]

    def dtype(self, name: str, length: int | None = None) -> np.dtype[np.generic]:
        """The dtype of arrays for a binding, with the offsets, strides and sizes that the shader has.

        Members without a name are ``member0``, ``member1``, … An element that is padded, such as a vec3 of std430, has
        one field, ``value``. A matrix has its columns one after the other, or its rows where it is row_major.

        Args:
            name: of the binding's variable or block, or of a block that a pointer points to.
            length: of a run-time sized array after other members, which the dtype of the whole block then has.

        Returns:
            The dtype of an element where an array is the block's only member, else that of the whole block.

        Raises:
            NotFoundError: no such binding; the message lists those that exist.
            InvalidArgumentError: ``length`` is missing, or there is nothing that it could be the length of.
            UnimplementedError: NumPy has no such dtype.
        """
        return dtype_of_block(name, length, self._names, self.parameters, self.reflection, self.name)

    def close(self) -> None:
        """Unloads the kernel once work under way has finished; idempotent."""
        with self._lock:
            self._executable.close()
            self._recorder.close()
        self._staging.close()

    def __del__(self) -> None:
        # For convenience only. The garbage collector may run under any lock, so the kernel is closed in the device's
        # next call.
        if hasattr(self, "_recorder") and not self.pipeline.is_closed:
            self.device.hal.dropped.append(self)

    def __repr__(self) -> str:
        return f"<Kernel {self.name}: {declared(self.parameters)}; local size {self.pipeline.local_size}>"

    def _repr_html_(self) -> str:
        """The signature as a table for notebooks; elements of an array of bindings are one row."""
        rows = {one.label: (one.label, one.declared(), "yes" if one.written else "no") for one in self.parameters}
        constants = self.entry.push_constants
        for name, member in member_names(constants.members if constants else ()).items():
            rows[f"push {name}"] = (f"push constant {name}", type_name(member), "no")
        local_size = f"local size {self.pipeline.local_size}"
        columns = ("parameter", "takes", "written")
        return html_table(columns, rows.values(), title=f"Kernel {self.name}", notes=[local_size], texts=columns)
