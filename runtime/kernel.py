"""Kernels: a compute shader called like a function of arrays.

``Device.load_kernel`` → call it, any number of times, from any thread. A kernel stays loaded until its device is
closed, or earlier by ``close``.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from ..hal_vulkan import (
    Binding,
    CommandBuffer,
    DeviceLimits,
    DispatchTiming,
    SetPins,
    ShaderModuleReflection,
    SpecializationValue,
    check_groups,
    compile_glsl,
    fill_infos,
)
from ..status import (
    ClosedError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    UnavailableError,
)
from .array import ArraySpec, DeviceArray, check_dtype
from .push import PushValue, pack_push
from .transfer import Transfer

if TYPE_CHECKING:
    from .device import Device

__all__ = ["Groups", "Kernel", "KernelArgument", "KernelResult"]

KernelArgument: TypeAlias = np.ndarray | DeviceArray | ArraySpec | Sequence[object] | np.generic | int | float
ResultArray: TypeAlias = np.ndarray | DeviceArray
KernelResult: TypeAlias = ResultArray | tuple[ResultArray, ...] | None
Groups: TypeAlias = int | tuple[int, ...]

_MOST_RECORDINGS: Final = 64
_UNIFORM_BUFFER: Final = 6  # VkDescriptorType
_GLSL_SUFFIXES: Final = (".comp", ".glsl")


def load_shader(
    source: str | Path | bytes,
    *,
    defines: Mapping[str, str | int],
    include_dirs: Sequence[str | Path],
    minor: int = 2,
) -> tuple[bytes, str]:
    """SPIR-V and a name for a kernel's source; see ``Device.load_kernel``.

    Raises:
        NotFoundError: no such file.
        InvalidArgumentError: neither GLSL nor SPIR-V, or GLSL that does not compile.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source), "kernel"
    target = f"vulkan1.{min(minor, 3)}"
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("#version")):
        return compile_glsl(source, defines=defines, include_dirs=include_dirs, target_env=target), "kernel"
    path = Path(source)
    if path.suffix in _GLSL_SUFFIXES:
        if not path.is_file():
            raise NotFoundError(f"no such file: {path}")
        return compile_glsl(path, defines=defines, include_dirs=include_dirs, target_env=target), path.stem
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"no such file: {path}") from None
    except PermissionError as error:
        raise PermissionDeniedError(f"{path} cannot be read: {error.strerror}") from None
    except OSError as error:
        raise UnavailableError(f"{path} cannot be read: {error.strerror or error}") from None
    if path.suffix != ".spv" and data[:4] not in (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03"):
        raise InvalidArgumentError(f"{path} is no kernel: expected SPIR-V (.spv) or GLSL ({', '.join(_GLSL_SUFFIXES)})")
    return data, path.stem


class _Parameter:
    """One binding as an argument: what arrays it takes."""

    __slots__ = ("accepted", "binding", "dtype", "index", "label", "most_bytes", "written")

    def __init__(self, index: int, binding: Binding, limits: DeviceLimits) -> None:
        uniform = binding.descriptor_type == _UNIFORM_BUFFER
        self.most_bytes = limits.max_uniform_buffer_range if uniform else limits.max_storage_buffer_range
        self.index = index
        self.binding = binding
        self.written = binding.writable
        self.dtype = binding.element.dtype if binding.element is not None else None
        self.accepted: set[tuple[np.dtype[np.generic], int]] = set()
        name = f" ({binding.name})" if binding.name else ""
        self.label = f"binding {binding.binding}{name}"
        if binding.set:
            self.label = f"set {binding.set} " + self.label

    def declared(self) -> str:
        """What the shader declares, for messages."""
        element = self.binding.element
        if element is None:
            return f"a block of {self.binding.fixed_size} bytes"
        kind = f"{element.dtype or 'struct'}"
        if element.columns > 1:
            kind += f" {element.columns}x{element.components} matrix"
        elif element.components > 1:
            kind += f" vec{element.components}"
        head = (
            f"{self.binding.fixed_size} bytes, then " if self.binding.fixed_size and element.array == "runtime" else ""
        )
        length = {"runtime": "any number of", "fixed": str(element.length), "none": "one"}[element.array]
        return f"{head}{length} {kind}"

    def check(self, dtype: np.dtype[np.generic], nbytes: int, kernel: str) -> None:
        """Raises if the binding cannot take an array of this dtype and size; remembers those it can."""
        self._check_dtype(dtype, kernel)
        binding, element = self.binding, self.binding.element
        if nbytes > self.most_bytes:
            raise OutOfRangeError(
                f"{kernel}: {self.label} got {nbytes:,} bytes; this device binds at most {self.most_bytes:,} at once "
                "(maxStorageBufferRange, maxUniformBufferRange): pass parts of the array"
            )
        if not nbytes:
            raise InvalidArgumentError(
                f"{kernel}: {self.label} got an empty array; Vulkan cannot bind an empty range. Shader declares: "
                f"{self.declared()}"
            )
        if element is not None and element.array == "runtime":
            rest = nbytes - binding.fixed_size
            if rest < 0 or (element.stride and rest % element.stride):
                raise InvalidArgumentError(
                    f"{kernel}: {self.label} got {nbytes} bytes; the shader declares {self.declared()}, "
                    f"{element.stride} bytes each"
                )
        elif nbytes < binding.fixed_size:
            raise InvalidArgumentError(
                f"{kernel}: {self.label} got {nbytes} bytes; the shader declares {self.declared()}, "
                f"{binding.fixed_size} bytes"
            )
        if len(self.accepted) < 256:
            self.accepted.add((dtype, nbytes))

    def _check_dtype(self, dtype: np.dtype[np.generic], kernel: str) -> None:
        declared = self.dtype
        if declared is None or dtype == declared or dtype.names is not None:
            return
        # Shaders keep bits in unsigned integers: types that GLSL has no name for pass as such, and raw bytes as all.
        raw = declared.kind == "u" and dtype.itemsize == declared.itemsize and dtype.kind not in "if"
        if not (raw or dtype == np.uint8):
            raise InvalidArgumentError(
                f"{kernel}: {self.label} got dtype {dtype}; the shader declares {self.declared()}. "
                f"Convert with .astype(np.{declared}), or .view() to keep the bits"
            )


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
        device: Device,
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
                specialization=_by_id(self.reflection, specialization or {}),
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
            _Parameter(i, binding, device.profile.limits)
            for i, binding in enumerate(b for b in entry.bindings for _ in range(b.count))
        )
        self._written = tuple(p.index for p in self._parameters if p.written)
        self._push_block = entry.push_constants
        self._alignment_mask = self.pipeline.offset_alignment - 1
        local = self.pipeline.local_size
        self._groups_by_shape = local[1] != 1 or local[2] != 1 or any(b.element is None for b in entry.bindings)
        # Push descriptors are read while they are recorded, so one array serves all recordings under the lock.
        self._infos = self.pipeline.set_layouts[0].new_infos() if self.pipeline.push_template is not None else None
        self._counts: dict[int, tuple[int, int, int]] = {}
        self._lock = threading.Lock()
        self._recordings: dict[tuple[object, ...], CommandBuffer] = {}
        self._push_cache: dict[object, bytes] = {}

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
        if len(arrays) != len(parameters) or out is not None:
            arrays = self._with_out(arrays, out)
        for array, parameter in zip(arrays, parameters, strict=True):
            if type(array) is not DeviceArray or (array.dtype, array.nbytes) not in parameter.accepted:
                return self._call_general(arrays, out, groups, self._pack(push, push_fields))
            if array.buffer.offset & self._alignment_mask:
                return self._call_general(arrays, out, groups, self._pack(push, push_fields))
        return self._call_arrays(arrays, groups, self._pack(push, push_fields))  # type: ignore[arg-type]

    def _pack(
        self, push: bytes | Sequence[PushValue] | Mapping[str, PushValue] | None, fields: Mapping[str, PushValue]
    ) -> bytes:
        if self._push_block is None and push is None and not fields:
            return b""
        if push is None:
            try:
                key = tuple(fields.items())
                cached = self._push_cache.get((key, tuple(map(type, fields.values()))))
            except TypeError:
                return pack_push(self._push_block, push, fields, self.name)
            if cached is None:
                cached = pack_push(self._push_block, push, fields, self.name)
                if len(self._push_cache) < 256:
                    self._push_cache[key, tuple(map(type, fields.values()))] = cached
            return cached
        return pack_push(self._push_block, push, fields, self.name)

    def _call_arrays(self, arrays: Sequence[DeviceArray], groups: Groups | None, push: bytes) -> KernelResult:
        """The hot path: arrays whose dtype and size are known to fit."""
        with self._lock:
            payload = self.device.submit((self._recorded(arrays, groups, push),))
        written = self._written
        for array, parameter in zip(arrays, self._parameters, strict=True):
            root = array if array._base is None else array._base
            root._last_use = payload
            if parameter.written:
                root._ready = payload
        if len(written) == 1:
            return arrays[written[0]]
        return tuple(arrays[i] for i in written) or None

    def _recorded(self, arrays: Sequence[DeviceArray], groups: Groups | None, push: bytes) -> CommandBuffer:
        """The commands for these buffers, groups and push constants; recorded when first seen, replayed after.

        Call it, and submit what it returns, under the lock: the oldest commands are recorded anew for others.
        """
        device = self.device
        parts: list[int] = []
        for array in arrays:
            buffer = array.buffer
            if buffer._closed or array.device is not device:
                array._check_open()
                raise InvalidArgumentError(
                    f"{self.name} runs on {device.name}; an array is on {array.device.name}: copy it with device.asarray(x)"
                )
            parts += (buffer.block_serial, buffer.offset, buffer.size)
        ranges = tuple(parts)
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
        infos = self._infos
        if infos is None:
            sets = pipeline.pin_sets(buffers, ranges)
        else:
            fill_infos(infos, buffers)
        if len(recordings) >= _MOST_RECORDINGS:
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

    def _record_timed(self, arrays: Sequence[DeviceArray], groups: Groups | None, push: bytes) -> CommandBuffer:
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

    def _checked_counts(self, arrays: Sequence[DeviceArray], groups: Groups | None) -> tuple[int, int, int]:
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

    def _group_counts(self, arrays: Sequence[DeviceArray], groups: Groups | None) -> tuple[int, int, int]:
        """Workgroup counts as asked for, or inferred: one invocation an element of the largest written array."""
        if groups is not None:
            counts = tuple(groups) if isinstance(groups, (tuple, list)) else (groups,)
            if not 1 <= len(counts) <= 3 or not all(isinstance(n, int) and n >= 0 for n in counts):
                raise InvalidArgumentError(
                    f"{self.name}: groups is an int or up to three, none negative; got {groups!r}"
                )
            x, y, z = (*counts, 1, 1)[:3]
            return x, y, z
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
        groups: Groups | None,
        push: bytes,
        *,
        timings: list[DispatchTiming] | None = None,
    ) -> KernelResult:
        """Arguments of any kind: checks all, moves what must move, runs, brings the results back."""
        values = [_prepare(p, a, self.name) for p, a in zip(self._parameters, arrays, strict=True)]
        if groups is None and values and not any(value.nbytes for value in values):
            return self._shape_results(
                [v if isinstance(v, DeviceArray) else np.empty(v.shape, v.dtype) for v in values]
            )
        for parameter, value in zip(self._parameters, values, strict=True):
            if (value.dtype, value.nbytes) not in parameter.accepted:
                parameter.check(value.dtype, value.nbytes, self.name)
        outs = [] if out is None else [id(o) for o in (out if isinstance(out, (tuple, list)) else (out,))]
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
        result = self._call_general(arrays, out, groups, self._pack(push, push_fields), timings=timings)
        if not timings:
            raise InvalidArgumentError(f"{self.name}: there is nothing to time: all arrays are empty")
        return result, timings[0]

    def close(self) -> None:
        """Unloads the kernel once work under way has finished; idempotent."""
        for commands in self._recordings.values():
            commands.close()
        self._recordings.clear()
        self._executable.close()

    def __enter__(self) -> Kernel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Kernel {self.name}: {self._declared()}; local size {self.pipeline.local_size}>"


def _prepare(parameter: _Parameter, value: KernelArgument, kernel: str) -> np.ndarray | DeviceArray | ArraySpec:
    """An argument as one of the three kinds, checked for what does not depend on the shader."""
    if isinstance(value, DeviceArray):
        value._check_open()
        return value
    if isinstance(value, ArraySpec):
        if not parameter.written:
            raise InvalidArgumentError(
                f"{kernel}: {parameter.label} got {value}, but the kernel only reads it; give it an array"
            )
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
    else:
        if value is None or isinstance(value, (str, bytes)):
            raise InvalidArgumentError(
                f"{kernel}: {parameter.label} got {type(value).__name__}; it takes {parameter.declared()} as an array"
            )
        try:
            array = np.asarray(value, parameter.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgumentError(
                f"{kernel}: {parameter.label} takes {parameter.declared()}; {type(value).__name__} cannot become that: {error}"
            ) from None
    check_dtype(array.dtype)
    # ascontiguousarray makes 0-dimensional arrays 1-dimensional.
    return array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(array.shape)


def _by_id(
    reflection: ShaderModuleReflection, values: Mapping[int | str, SpecializationValue]
) -> dict[int, SpecializationValue]:
    """Specialization values with names replaced by ids."""
    ids = {c.name: c.constant_id for c in reflection.specialization_constants if c.name}
    by_id: dict[int, SpecializationValue] = {}
    for key, value in values.items():
        if isinstance(key, str):
            if key not in ids:
                known = ", ".join(
                    f"{c.constant_id} ({c.name or 'unnamed'})" for c in reflection.specialization_constants
                )
                raise NotFoundError(f"the shader has no specialization constant {key!r}; it has: {known or 'none'}")
            key = ids[key]
        by_id[key] = value
    return by_id
