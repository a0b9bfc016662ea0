"""Arguments of kernel calls: which arrays each binding takes, and the workgroup counts that follow from them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from ...hal_vulkan import Binding, DeviceLimits
from ...status import InvalidArgumentError, OutOfRangeError
from ..arrays.array import DeviceArray
from ..arrays.spec import ArraySpec, check_dtype, check_out

KernelArgument: TypeAlias = np.ndarray | DeviceArray | ArraySpec | Sequence[object] | np.generic | int | float
Prepared: TypeAlias = np.ndarray | DeviceArray | ArraySpec
ResultArray: TypeAlias = np.ndarray | DeviceArray
Out: TypeAlias = ResultArray | Sequence[ResultArray] | None
Groups: TypeAlias = int | tuple[int, ...]
Counts: TypeAlias = tuple[int, int, int]

_UNIFORM_BUFFER: Final = 6  # VkDescriptorType


class Parameter:
    """One binding, or one element of an array of bindings.

    Attributes:
        dtype: of an element; ``None`` where NumPy has none.
        max_bytes: that the device binds at once.
        accepted: (dtype, bytes) pairs that are known to fit.
    """

    __slots__ = ("accepted", "binding", "dtype", "index", "label", "max_bytes", "written")

    def __init__(self, index: int, binding: Binding, limits: DeviceLimits) -> None:
        uniform = binding.descriptor_type == _UNIFORM_BUFFER
        self.max_bytes = limits.max_uniform_buffer_range if uniform else limits.max_storage_buffer_range
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
        """The shader's declaration, for messages."""
        element = self.binding.element
        if element is None:
            return f"a block of {self.binding.fixed_size} bytes"
        kind = str(element.dtype or "struct")
        if element.columns > 1:
            kind += f" {element.columns}x{element.components} matrix"
        elif element.components > 1:
            kind += f" vec{element.components}"
        fixed = self.binding.fixed_size
        head = f"{fixed} bytes, then " if fixed and element.array == "runtime" else ""
        length = {"runtime": "any number of", "fixed": str(element.length), "none": "one"}[element.array]
        return f"{head}{length} {kind}"

    def check(self, dtype: np.dtype[np.generic], shape: tuple[int, ...], nbytes: int, kernel: str) -> None:
        """Raises if the binding cannot take an array of this dtype and size; remembers those it can."""
        self._check_dtype(dtype, kernel)
        binding, element = self.binding, self.binding.element
        if nbytes > self.max_bytes:
            raise OutOfRangeError(
                f"{kernel}: {self.label} got {nbytes:,} bytes; this device binds at most {self.max_bytes:,} at once "
                "(maxStorageBufferRange, maxUniformBufferRange): pass parts of the array"
            )
        if not nbytes:
            raise InvalidArgumentError(
                f"{kernel}: {self.label} got an empty array; Vulkan cannot bind an empty range. Shader declares: "
                f"{self.declared()}"
            )
        rest, needed = nbytes - binding.fixed_size, f"{binding.fixed_size} bytes"
        if element is not None and element.array == "runtime":
            needed = f"{element.stride} bytes each"
            rest = -1 if rest < 0 or (element.stride and rest % element.stride) else rest
        if rest < 0:
            raise InvalidArgumentError(
                f"{kernel}: {self.label} got {nbytes} bytes; the shader declares {self.declared()}, {needed}"
            )
        if element is not None and element.dtype is not None and element.stride:
            inner = element.components * element.columns * element.dtype.itemsize
            if element.stride != inner:
                # Padded elements (a vec3 takes as much as a vec4): unpadded rows would be misread.
                if dtype == element.dtype and shape and shape[-1] == element.components:
                    raise InvalidArgumentError(
                        f"{kernel}: {self.label} got shape {shape}; the shader declares {self.declared()}, each padded "
                        f"to {element.stride} bytes. Pad the last axis to {element.stride // element.dtype.itemsize}"
                    )
                return
        if len(self.accepted) < 256:
            self.accepted.add((dtype, nbytes))

    def _check_dtype(self, dtype: np.dtype[np.generic], kernel: str) -> None:
        declared = self.dtype
        if declared is None or dtype == declared or dtype.names is not None:
            return
        # Shaders keep types that GLSL has no name for in unsigned integers of the same size. Raw bytes always pass.
        raw = declared.kind == "u" and dtype.itemsize == declared.itemsize and dtype.kind not in "if"
        if not (raw or dtype == np.uint8):
            raise InvalidArgumentError(
                f"{kernel}: {self.label} got dtype {dtype}; the shader declares {self.declared()}. "
                f"Convert with .astype(np.{declared}), or .view() to keep the bits"
            )

    def prepare(self, value: KernelArgument, kernel: str) -> Prepared:
        """An argument as an array or a specification of one, with a dtype that any shader could take."""
        if isinstance(value, DeviceArray):
            value._check_open()
            return value
        if isinstance(value, ArraySpec):
            if not self.written:
                raise InvalidArgumentError(
                    f"{kernel}: {self.label} got {value}, but the kernel only reads it; give it an array"
                )
            return value
        if isinstance(value, (np.ndarray, np.generic)):
            array = np.asarray(value)
        else:
            if value is None or isinstance(value, (str, bytes)):
                raise InvalidArgumentError(
                    f"{kernel}: {self.label} got {type(value).__name__}; it takes {self.declared()} as an array"
                )
            try:
                array = np.asarray(value, self.dtype)
            except (TypeError, ValueError, OverflowError) as error:
                raise InvalidArgumentError(
                    f"{kernel}: {self.label} takes {self.declared()}; {type(value).__name__} cannot become that: "
                    f"{error}"
                ) from None
        check_dtype(array.dtype)
        # ascontiguousarray makes 0-dimensional arrays 1-dimensional.
        return array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(array.shape)


def declared(parameters: Sequence[Parameter]) -> str:
    """What a shader declares, for messages."""
    shown = [f"{p.label}: {p.declared()}{', written' if p.written else ''}" for p in parameters]
    return "; ".join(shown) or "no bindings"


def place_outs(
    parameters: Sequence[Parameter], arrays: Sequence[KernelArgument], out: Out, kernel: str
) -> tuple[KernelArgument, ...]:
    """One argument a binding: ``out`` where written bindings have no positional array."""
    if out is None:
        if len(arrays) > len(parameters):
            raise InvalidArgumentError(
                f"{kernel} takes {len(parameters)} array(s), got {len(arrays)}; it declares {declared(parameters)}"
            )
        missing = ", ".join(p.label for p in parameters[len(arrays) :])
        raise InvalidArgumentError(f"{kernel}: {missing} missing; the shader declares {declared(parameters)}")
    outs = _listed(out)
    written = [p.index for p in parameters if p.written]
    if len(arrays) + len(outs) == len(parameters) and len(outs) <= len(written):
        replaced = dict(zip(written[len(written) - len(outs) :], outs, strict=True))
        given = iter(arrays)
        return tuple(replaced[i] if i in replaced else next(given) for i in range(len(parameters)))
    raise InvalidArgumentError(
        f"{kernel}: {len(arrays)} array(s) and {len(outs)} in out= do not fill {len(parameters)} binding(s), "
        f"{len(written)} of them written: {declared(parameters)}"
    )


def prepare_arguments(
    parameters: Sequence[Parameter], arrays: Sequence[KernelArgument], kernel: str
) -> tuple[list[Prepared], bool]:
    """The arguments as arrays, and whether each is known to fit its binding."""
    values: list[Prepared] = []
    fit = True
    for parameter, value in zip(parameters, arrays, strict=True):
        # The usual case without a call.
        if type(value) is np.ndarray and value.flags.c_contiguous and (value.dtype, value.nbytes) in parameter.accepted:
            values.append(value)
        else:
            prepared = parameter.prepare(value, kernel)
            values.append(prepared)
            if (prepared.dtype, prepared.nbytes) not in parameter.accepted:
                fit = False
    return values, fit


def targets_of(out: Out, kernel: str) -> list[int]:
    """The ids of the arrays in ``out=``, which results are copied into."""
    for one in _listed(out):
        if isinstance(one, np.ndarray):
            check_out(one, one.shape, one.dtype, f"{kernel}: out=")
        elif not isinstance(one, DeviceArray):
            raise InvalidArgumentError(f"{kernel}: out= takes arrays to write into, got {type(one).__name__}")
    return [id(one) for one in _listed(out)]


def _listed(out: Out) -> list[ResultArray]:
    if out is None:
        return []
    return list(out) if isinstance(out, (tuple, list)) else [out]  # type: ignore[list-item]  # checked by targets_of


# -- workgroup counts --------------------------------------------------------------------------------


def given_counts(groups: Groups, kernel: str) -> Counts:
    """Workgroup counts as three ints."""
    counts = tuple(groups) if isinstance(groups, (tuple, list)) else (groups,)
    try:
        if not counts or any(isinstance(n, bool) for n in counts):
            raise TypeError
        x, y, z = (*(operator.index(n) for n in counts), 1, 1)[:3]
    except TypeError:
        x = -1
    if not 1 <= len(counts) <= 3 or x < 0 or y < 0 or z < 0:
        raise InvalidArgumentError(f"{kernel}: groups is an int or up to three, none negative; got {groups!r}")
    return x, y, z


def inferred_counts(
    parameters: Sequence[Parameter], arrays: Sequence[DeviceArray], local: Counts, kernel: str
) -> Counts:
    """One invocation an element of the largest written array (of the largest array, if none is written).

    With a one-dimensional local size elements are counted, otherwise the axes of the array are those of the grid, the
    last axis first.

    Raises:
        InvalidArgumentError: there are no arrays.
    """
    pairs = list(zip(arrays, parameters, strict=True))
    candidates = [pair for pair in pairs if pair[1].written] or pairs
    if not candidates:
        raise InvalidArgumentError(f"{kernel} has no arrays to infer workgroup counts from; give groups=")
    array, parameter = max(candidates, key=lambda pair: pair[0].nbytes)
    element = parameter.binding.element
    if local[1] == local[2] == 1:
        count = array.size
        if element is not None and element.stride:
            head = parameter.binding.fixed_size if element.array == "runtime" else 0
            count = -(-(array.nbytes - head) // element.stride)
        return max(1, -(-count // local[0])), 1, 1
    shape = array.shape
    if element is not None and element.components > 1 and shape and shape[-1] == element.components:
        shape = shape[:-1]
    extents = [*reversed(shape), 1, 1, 1]
    for extra in extents[3:]:
        extents[2] *= extra
    x, y, z = (max(1, -(-extent // size)) for extent, size in zip(extents[:3], local, strict=True))
    return x, y, z
