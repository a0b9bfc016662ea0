"""A kernel's parameters: which arrays each binding takes, and why it refuses others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from ...hal_vulkan import Binding, DeviceLimits
from ...status import InvalidArgumentError, OutOfRangeError
from ..arrays.array import DeviceArray
from ..arrays.spec import ArraySpec, check_dtype

KernelArgument: TypeAlias = np.ndarray | DeviceArray | ArraySpec | Sequence[object] | np.generic | int | float

_UNIFORM_BUFFER: Final = 6  # VkDescriptorType


class Parameter:
    """One binding, or one element of an array of bindings.

    Attributes:
        index: among the parameters.
        binding: as the shader declares it.
        written: whether the kernel writes it.
        dtype: of an element; ``None`` where NumPy has none.
        label: for messages.
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

    def prepare(self, value: KernelArgument, kernel: str) -> np.ndarray | DeviceArray | ArraySpec:
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
