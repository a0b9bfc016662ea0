"""Kernels: a compute shader called like a function of arrays.

``Device.load_kernel`` → call it, any number of times, from any thread. A kernel stays loaded until its device is
closed, or earlier by ``close``.
"""

from __future__ import annotations

import operator
import struct
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from ...hal_vulkan import (
    Buffer,
    CommandBuffer,
    ComputePipeline,
    DispatchTiming,
    SetPins,
    ShaderModuleReflection,
    SpecializationValue,
    check_groups,
)
from ...status import ClosedError, InvalidArgumentError
from ..arrays.array import DeviceArray
from ..arrays.array_device import ArrayDevice
from ..arrays.spec import ArraySpec, check_out
from ..arrays.transfer import Transfer
from .parameter import KernelArgument, Parameter
from .push import PushValue, pack_push
from .shader_source import specialization_by_id

__all__ = ["Groups", "Kernel", "KernelResult", "PreparedDispatch"]

ResultArray: TypeAlias = np.ndarray | DeviceArray
KernelResult: TypeAlias = ResultArray | tuple[ResultArray, ...] | None
Groups: TypeAlias = int | tuple[int, ...]
Counts: TypeAlias = tuple[int, int, int]

_MAX_RECORDINGS: Final = 64
_DOUBLE: Final = struct.Struct("=d")


class PreparedDispatch(NamedTuple):
    """One dispatch of a kernel: the arguments of ``CommandBuffer.dispatch``.

    Attributes:
        pipeline: the kernel's.
        buffers: one a binding.
        groups: workgroup counts, inferred ones too.
        push: the push constants' bytes.
    """

    pipeline: ComputePipeline
    buffers: tuple[Buffer, ...]
    groups: tuple[int, int, int]
    push: bytes


class Kernel:
    """A compute shader, callable with arrays in binding order.

    Attributes:
        device: where it runs.
        name: for messages and profiles.
        reflection: everything the module declares.
        pipeline: the HAL pipeline.
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
    ) -> None:
        self.device = device
        executable = device.hal.create_executable(code)
        try:
            self.reflection: ShaderModuleReflection = executable.reflections[0]
            self.pipeline = executable.pipeline(
                entry_point,
                specialization=specialization_by_id(self.reflection, specialization or {}),
                subgroup_size=subgroup_size,
            )
        except BaseException:
            executable.close()
            raise
        self._executable = executable
        executable.close_modules()
        entry = self.pipeline.entry
        self.name = name if entry.name == "main" else entry.name
        self.pipeline.name = self.name
        self._parameters = tuple(
            Parameter(i, binding, device.profile.limits)
            for i, binding in enumerate(b for b in entry.bindings for _ in range(b.count))
        )
        self._written = tuple(p.index for p in self._parameters if p.written)
        self._push_block = entry.push_constants
        self._alignment_mask = self.pipeline.offset_alignment - 1
        local = self.pipeline.local_size
        self._groups_by_shape = local[1] != 1 or local[2] != 1 or any(b.element is None for b in entry.bindings)
        # Push descriptors are read while they are recorded, so one array serves all recordings under the lock.
        self._pushes = self.pipeline.push_template is not None
        self._counts: dict[int, tuple[int, int, int]] = {}
        self._lock = threading.Lock()
        self._recordings: dict[tuple[object, ...], CommandBuffer] = {}
        self._push_cache: dict[object, bytes] = {}

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What it takes, in the order of a call."""
        return self._parameters

    # -- calls ---------------------------------------------------------------------------------------

    def __call__(
        self,
        *arrays: KernelArgument,
        out: ResultArray | Sequence[ResultArray] | None = None,
        groups: Groups | None = None,
        push: bytes | Sequence[PushValue] | Mapping[str, PushValue] | None = None,
        **push_fields: PushValue,
    ) -> KernelResult:
        """Runs the kernel.

        Args:
            arrays: one a binding, in order of (set, binding): NumPy arrays (or what becomes one), arrays of this
                device, or ``pumice.empty(shape, dtype)`` where the kernel only writes.
            out: arrays for written bindings that are not among ``arrays``, in binding order.
            groups: workgroup counts: an int or up to three; ``None`` infers one invocation an element of the written
                arrays, by axis where the local size has several dimensions.
            push: push constants as bytes of the whole block, values in order, or values by name.
            push_fields: push constants by the names the shader gives them.

        Returns:
            What the kernel wrote, in binding order: ``None`` for none, the array for one, else a tuple. A DeviceArray
            argument is written in place and returned; for a NumPy argument the result is a new array. Results are NumPy
            arrays if no argument is a DeviceArray, and then complete; DeviceArrays may still be being written.

        Raises:
            InvalidArgumentError: wrong number, dtype or size of arrays, or wrong push constants; the message names the
                binding and what the shader declares.
        """
        parameters = self._parameters
        counts = None if groups is None else self._three(groups)
        if len(arrays) != len(parameters) or out is not None:
            arrays = self._with_out(arrays, out)
        for array, parameter in zip(arrays, parameters, strict=True):
            if type(array) is not DeviceArray or (array.dtype, array.nbytes) not in parameter.accepted:
                return self._call_general(arrays, out, counts, self._pack(push, push_fields))
            if array.buffer.offset & self._alignment_mask:
                return self._call_general(arrays, out, counts, self._pack(push, push_fields))
        return self._call_arrays(arrays, counts, self._pack(push, push_fields))  # type: ignore[arg-type]

    def _pack(
        self, push: bytes | Sequence[PushValue] | Mapping[str, PushValue] | None, fields: Mapping[str, PushValue]
    ) -> bytes:
        if self._push_block is None and push is None and not fields:
            return b""
        if push is None and all(type(value) in (int, float) for value in fields.values()):
            # By bits: 1 and 1.0 differ, so do 0.0 and -0.0, and NaN is equal to itself.
            key = tuple(
                [(name, value if type(value) is int else _DOUBLE.pack(value)) for name, value in fields.items()]
            )
            cached = self._push_cache.get(key)
            if cached is None:
                cached = pack_push(self._push_block, push, fields, self.name)
                if len(self._push_cache) < 256:
                    self._push_cache[key] = cached
            return cached
        return pack_push(self._push_block, push, fields, self.name)

    def _call_arrays(self, arrays: Sequence[DeviceArray], groups: Counts | None, push: bytes) -> KernelResult:
        """The hot path: arrays whose dtype and size are known to fit."""
        with self._lock:
            payload = self.device.submit((self._recorded(arrays, groups, push),))
        written = self._written
        with self.device.mark_lock:  # another thread may have noted a later payload
            for array, parameter in zip(arrays, self._parameters, strict=True):
                root = array if array._base is None else array._base
                if root._last_use < payload:
                    root._last_use = payload
                if parameter.written and root._ready < payload:
                    root._ready = payload
        if len(written) == 1:
            return arrays[written[0]]
        return tuple(arrays[i] for i in written) or None

    def _recorded(self, arrays: Sequence[DeviceArray], groups: Counts | None, push: bytes) -> CommandBuffer:
        """The commands for these buffers, groups and push constants; recorded when first seen, replayed after.

        Call it, and submit what it returns, under the lock: the oldest commands are recorded anew for others.
        """
        device = self.device
        for array in arrays:
            buffer = array.buffer
            if buffer._closed or (buffer.parent is not None and buffer.is_closed) or array.device is not device:
                array._check_open()
                raise InvalidArgumentError(
                    f"{self.name} runs on {device.name}; an array is on {array.device.name}: copy it with device.asarray(x)"
                )
        ranges = b"".join([array.buffer.descriptor for array in arrays])
        key: tuple[object, ...] = (ranges, groups, push)
        if groups is None and self._groups_by_shape:
            key = (*key, *[array.shape for array in arrays])
        recordings = self._recordings
        found = recordings.get(key)
        if found is not None:
            return found
        pipeline = self.pipeline
        if pipeline.is_closed:
            raise ClosedError(f"kernel {self.name} was closed")
        counts = self._checked_counts(arrays, groups)
        if len(push) != pipeline.interface.push_constant_bytes:
            raise InvalidArgumentError(
                f"{self.name} takes {pipeline.interface.push_constant_bytes} bytes of push constants, got {len(push)}"
            )
        # A block's serial is never given twice, so what is recorded for a freed one is only never asked for again.
        buffers = [array.buffer for array in arrays]
        sets: SetPins = ()
        infos = ranges if self._pushes else None
        if infos is None:
            sets = pipeline.pin_sets(buffers, ranges)
        if len(recordings) >= _MAX_RECORDINGS:
            oldest = next(iter(recordings))
            commands = recordings.pop(oldest)
        else:
            commands = device.hal.create_command_buffer(name=self.name)
        try:
            commands.record_dispatch(pipeline, sets, infos, counts, push)
        except BaseException:
            commands.close()
            raise
        recordings[key] = commands
        return commands

    def _record_timed(self, arrays: Sequence[DeviceArray], groups: Counts | None, push: bytes) -> CommandBuffer:
        if self.pipeline.is_closed:
            raise ClosedError(f"kernel {self.name} was closed")
        counts = self._group_counts(arrays, groups)
        commands = self.device.hal.create_command_buffer(name=self.name, timing=True)
        try:
            commands.begin().dispatch(self.pipeline, [a.buffer for a in arrays], counts, push)
            commands.end()
        except BaseException:
            commands.close()
            raise
        return commands

    def _three(self, groups: Groups) -> tuple[int, int, int]:
        """Workgroup counts as three ints."""
        counts = tuple(groups) if isinstance(groups, (tuple, list)) else (groups,)
        try:
            if not counts or any(isinstance(n, bool) for n in counts):
                raise TypeError
            x, y, z = (*(operator.index(n) for n in counts), 1, 1)[:3]
        except TypeError:
            x = -1
        if not 1 <= len(counts) <= 3 or x < 0 or y < 0 or z < 0:
            raise InvalidArgumentError(f"{self.name}: groups is an int or up to three, none negative; got {groups!r}")
        return x, y, z

    def _checked_counts(self, arrays: Sequence[DeviceArray], groups: Counts | None) -> tuple[int, int, int]:
        """``_group_counts`` that the device can dispatch, kept where they follow from one array's size."""
        if groups is None and not self._groups_by_shape and len(self._written) == 1:
            nbytes = arrays[self._written[0]].nbytes
            counts = self._counts.get(nbytes)
            if counts is None:
                counts = self._group_counts(arrays, groups)
                check_groups(self.pipeline, counts)
                if len(self._counts) < 256:
                    self._counts[nbytes] = counts
            return counts
        counts = self._group_counts(arrays, groups)
        check_groups(self.pipeline, counts)
        return counts

    def _group_counts(self, arrays: Sequence[DeviceArray], groups: Counts | None) -> tuple[int, int, int]:
        """Workgroup counts as asked for, or inferred: one invocation an element of the largest written array."""
        if groups is not None:
            return groups
        local = self.pipeline.local_size
        candidates = [(arrays[i], self._parameters[i]) for i in self._written] or list(
            zip(arrays, self._parameters, strict=True)
        )
        if not candidates:
            raise InvalidArgumentError(f"{self.name} has no arrays to infer workgroup counts from; give groups=")
        array, parameter = max(candidates, key=lambda pair: pair[0].nbytes)
        element = parameter.binding.element
        if local[1] == local[2] == 1:
            count = array.size
            if element is not None and element.stride:
                count = -(
                    -(array.nbytes - (parameter.binding.fixed_size if element.array == "runtime" else 0))
                    // element.stride
                )
            return max(1, -(-count // local[0])), 1, 1
        shape = array.shape
        if element is not None and element.components > 1 and shape and shape[-1] == element.components:
            shape = shape[:-1]
        extents = [*reversed(shape), 1, 1, 1]
        for extra in extents[3:]:
            extents[2] *= extra
        x, y, z = (max(1, -(-extent // size)) for extent, size in zip(extents[:3], local, strict=True))
        return x, y, z

    # -- everything but the hot path -----------------------------------------------------------------

    def _with_out(
        self, arrays: Sequence[KernelArgument], out: ResultArray | Sequence[ResultArray] | None
    ) -> tuple[KernelArgument, ...]:
        """Puts ``out`` arrays where written bindings have no positional array."""
        if out is None:
            if len(arrays) > len(self._parameters):
                raise InvalidArgumentError(
                    f"{self.name} takes {len(self._parameters)} array(s), got {len(arrays)}; it declares {self._declared()}"
                )
            missing = ", ".join(p.label for p in self._parameters[len(arrays) :])
            raise InvalidArgumentError(f"{self.name}: {missing} missing; the shader declares {self._declared()}")
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(arrays) + len(outs) == len(self._parameters):
            places = self._written[-len(outs) :] if outs else ()
            if len(places) == len(outs):
                given = iter(arrays)
                replaced = dict(zip(places, outs, strict=True))
                return tuple(replaced[i] if i in replaced else next(given) for i in range(len(self._parameters)))
        raise InvalidArgumentError(
            f"{self.name}: {len(arrays)} array(s) and {len(outs)} in out= do not fill {len(self._parameters)} binding(s), "
            f"{len(self._written)} of them written: {self._declared()}"
        )

    def _declared(self) -> str:
        return (
            "; ".join(f"{p.label}: {p.declared()}{', written' if p.written else ''}" for p in self._parameters)
            or "no bindings"
        )

    def _call_general(
        self,
        arrays: Sequence[KernelArgument],
        out: ResultArray | Sequence[ResultArray] | None,
        groups: Counts | None,
        push: bytes,
        *,
        timings: list[DispatchTiming] | None = None,
    ) -> KernelResult:
        """Arguments of any kind: checks all, moves what must move, runs, brings the results back."""
        values = [p.prepare(a, self.name) for p, a in zip(self._parameters, arrays, strict=True)]
        if groups is None and values and not any(value.nbytes for value in values):
            return self._shape_results(
                [v if isinstance(v, DeviceArray) else np.empty(v.shape, v.dtype) for v in values]
            )
        for parameter, value in zip(self._parameters, values, strict=True):
            if (value.dtype, value.nbytes) not in parameter.accepted:
                parameter.check(value.dtype, value.shape, value.nbytes, self.name)
        given_outs = () if out is None else out if isinstance(out, (tuple, list)) else (out,)
        for one in given_outs:
            if isinstance(one, np.ndarray):
                check_out(one, one.shape, one.dtype, f"{self.name}: out=")
            elif not isinstance(one, DeviceArray):
                raise InvalidArgumentError(f"{self.name}: out= takes arrays to write into, got {type(one).__name__}")
        outs = [id(one) for one in given_outs]
        to_host = not any(isinstance(value, DeviceArray) for value in values)
        with Transfer(self.device, self.pipeline.offset_alignment) as transfer:
            moved: list[DeviceArray] = []
            results: list[ResultArray | None] = []
            for parameter, value, given in zip(self._parameters, values, arrays, strict=True):
                array, result = transfer.bring(
                    value,
                    written=parameter.written,
                    to_host=to_host or (isinstance(value, np.ndarray) and id(given) in outs),
                    into=value if isinstance(value, np.ndarray) and id(given) in outs else None,
                )
                moved.append(array)
                results.append(result)
            if timings is None:
                with self._lock:
                    payload = transfer.run(self._recorded(moved, groups, push))
                self._mark(moved, payload)
                self._mark(values, payload)
                transfer.finish(payload)
            else:
                with self._record_timed(moved, groups, push) as commands:
                    payload = transfer.run(commands)
                    self._mark(moved, payload)
                    self._mark(values, payload)
                    transfer.finish(payload)
                    self.device.wait(payload)
                    timings.extend(commands.timings())
        return self._shape_results(results)

    def _mark(self, arrays: Sequence[np.ndarray | DeviceArray | ArraySpec], payload: int) -> None:
        for index, array in enumerate(arrays):
            if isinstance(array, DeviceArray):
                array.mark(payload, written=index in self._written)

    def _shape_results(self, results: Sequence[ResultArray | None]) -> KernelResult:
        written = [result for index in self._written if (result := results[index]) is not None]
        return written[0] if len(written) == 1 else tuple(written) or None

    def prepare(
        self,
        *arrays: DeviceArray,
        groups: Groups | None = None,
        push: bytes | Sequence[PushValue] | Mapping[str, PushValue] | None = None,
        **push_fields: PushValue,
    ) -> PreparedDispatch:
        """What a call with arrays on the device would dispatch, for who records command buffers themselves.

        The arrays must stay open as long as the commands are in use, and nothing marks them as in use: wait for the commands
        before the host reads or writes them. Arguments, and errors, are those of a call.
        """
        if len(arrays) != len(self._parameters):
            arrays = self._with_out(arrays, None)  # type: ignore[assignment]  # always raises
        for array, parameter in zip(arrays, self._parameters, strict=True):
            if not isinstance(array, DeviceArray) or array.device is not self.device:
                raise InvalidArgumentError(f"{self.name}: {parameter.label} takes an array on {self.device.name}")
            array._check_open()
            if (array.dtype, array.nbytes) not in parameter.accepted:
                parameter.check(array.dtype, array.shape, array.nbytes, self.name)
        counts = self._checked_counts(arrays, None if groups is None else self._three(groups))
        data = self._pack(push, push_fields)
        if len(data) != self.pipeline.interface.push_constant_bytes:
            raise InvalidArgumentError(
                f"{self.name} takes {self.pipeline.interface.push_constant_bytes} bytes of push constants, got {len(data)}"
            )
        return PreparedDispatch(self.pipeline, tuple([array.buffer for array in arrays]), counts, data)

    def time(
        self,
        *arrays: KernelArgument,
        out: ResultArray | Sequence[ResultArray] | None = None,
        groups: Groups | None = None,
        push: bytes | Sequence[PushValue] | Mapping[str, PushValue] | None = None,
        **push_fields: PushValue,
    ) -> tuple[KernelResult, DispatchTiming]:
        """Calls the kernel and measures its dispatch on the device's own clock; waits for it.

        Returns:
            What the call returns, and the device time of the dispatch.

        Raises:
            UnimplementedError: the device writes no timestamps.
        """
        if len(arrays) != len(self._parameters) or out is not None:
            arrays = self._with_out(arrays, out)
        timings: list[DispatchTiming] = []
        result = self._call_general(
            arrays, out, None if groups is None else self._three(groups), self._pack(push, push_fields), timings=timings
        )
        if not timings:
            raise InvalidArgumentError(f"{self.name}: there is nothing to time: all arrays are empty")
        return result, timings[0]

    def close(self) -> None:
        """Unloads the kernel once work under way has finished; idempotent."""
        with self._lock:
            self._executable.close()
            for commands in self._recordings.values():
                commands.close()
            self._recordings.clear()

    def __del__(self) -> None:
        # A convenience that nothing relies on. The garbage collector may come under any lock: it only takes a note.
        if hasattr(self, "_recordings") and not self.pipeline.is_closed:
            self.device.hal.dropped.append(self)

    def __enter__(self) -> Kernel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Kernel {self.name}: {self._declared()}; local size {self.pipeline.local_size}>"
