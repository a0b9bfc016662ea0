"""The parameters of a kernel: what each binding takes, and whether a value fits it.

Each kind of descriptor has a class, named in ``KINDS``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, TypeAlias, cast

import numpy as np

from ...hal_vulkan import Binding, DeviceLimits
from ...status import InvalidArgumentError, OutOfRangeError
from ..arrays.array import DeviceArray
from ..arrays.array_device import ArrayDevice
from ..arrays.spec import ArraySpec, check_dtype
from ..arrays.transfer import Placed, Transfer
from ..images.bound import Absent, Bound
from ..images.host_image import HostImage
from ..images.image import DeviceImage
from ..images.sampler import Sampler
from ..images.texel_array import TexelArray

ResultArray: TypeAlias = np.ndarray | DeviceArray | DeviceImage | TexelArray
KernelArgument: TypeAlias = ResultArray | ArraySpec | Sampler | Sequence[object] | np.generic | int | float | None
Prepared: TypeAlias = ResultArray | ArraySpec | Sampler | HostImage | Absent

_UNIFORM_BUFFER: Final = 6  # VkDescriptorType
_STORAGE_BUFFER: Final = 7


class Parameter(ABC):
    """One binding, or one element of an array of bindings.

    A call takes its argument through ``prepare`` → ``check`` → ``bring``; arrays of the device whose dtype and
    size are in ``accepted`` are bound without either.

    Attributes:
        index: position in a call.
        label: for messages, ``binding 1 (Velocity)``.
        written: the kernel may write it.
        dtype: of an element; ``None`` where NumPy has none.
        accepted: (dtype, bytes) pairs that are known to fit.
        device_types: the classes of arguments that are on the device already.
    """

    __slots__ = ("accepted", "binding", "dtype", "index", "label", "written")

    device_types: tuple[type, ...] = (DeviceArray,)

    def __init__(self, index: int, binding: Binding, limits: DeviceLimits) -> None:
        self.index = index
        self.binding = binding
        self.written = binding.writable
        self.dtype: np.dtype[np.generic] | None = None
        self.accepted: set[tuple[np.dtype[np.generic], int]] = set()
        name = f" ({binding.name})" if binding.name else ""
        self.label = f"binding {binding.binding}{name}"
        if binding.set:
            self.label = f"set {binding.set} " + self.label

    @abstractmethod
    def declared(self) -> str:
        """The shader's declaration, for messages."""

    @abstractmethod
    def prepare(self, value: KernelArgument, kernel: str) -> Prepared:
        """An argument as what ``check`` and ``bring`` take; raises for what no shader could take."""

    @abstractmethod
    def check(self, value: Prepared, kernel: str) -> None:
        """Raises if the binding cannot take a prepared value; remembers in ``accepted`` those it can."""

    def bring(self, transfer: Transfer, value: Prepared, into: np.ndarray | None) -> None:
        """Adds a prepared value to a call's moves; ``into`` is the NumPy array that takes its result, if any."""
        transfer.bring(cast("np.ndarray | DeviceArray | ArraySpec", value), written=self.written, into=into)

    def bind(self, placed: Placed, value: Prepared, device: ArrayDevice, kernel: str) -> DeviceArray | Bound:
        """What the pipeline binds for an argument on the device; ``value`` is what it was prepared as."""
        assert isinstance(placed, DeviceArray)
        return placed


class BufferParameter(Parameter):
    """A storage or uniform buffer, which takes arrays.

    Attributes:
        max_bytes: that the device binds at once.
    """

    __slots__ = ("max_bytes",)

    def __init__(self, index: int, binding: Binding, limits: DeviceLimits) -> None:
        super().__init__(index, binding, limits)
        uniform = binding.descriptor_type == _UNIFORM_BUFFER
        self.max_bytes = limits.max_uniform_buffer_range if uniform else limits.max_storage_buffer_range
        self.dtype = binding.element.dtype if binding.element is not None else None

    def declared(self) -> str:
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

    def check(self, value: Prepared, kernel: str) -> None:
        dtype, shape, nbytes = value.dtype, value.shape, value.nbytes
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
