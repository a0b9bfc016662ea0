"""The parameters of a kernel: the values accepted by each binding, and their checks.

Each kind of descriptor has a class, named in ``KINDS``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np

from ....hal_vulkan import Binding, DeviceLimits
from ....spirv.reflection.block_dtype import (
    block_dtype,
    difference,
    element_dtype,
    fits,
    member_names,
    only_array,
    scalars_of,
    tail,
)
from ....spirv.reflection.reflection_types import BufferBlock
from ....status import InvalidArgumentError, OutOfRangeError
from ...arrays.array import DeviceArray
from ...arrays.array_device import ArrayDevice
from ...arrays.spec import ArraySpec, check_dtype
from ...arrays.transfer import Placed, Transfer
from ...images.bound import Absent, Bound, HostImage
from ...images.image import DeviceImage
from ...images.sampler import Sampler
from ...images.texel_array import TexelArray
from .block import describe, is_block_value, pack_argument, type_name
from .number_block import NumberBlock

ResultArray: TypeAlias = np.ndarray | DeviceArray | DeviceImage | TexelArray
"""A value that a kernel can write: host arrays, device arrays, images, and texel buffers."""
KernelResult: TypeAlias = ResultArray | tuple[ResultArray, ...] | None
"""The result of a call: the array that the kernel writes, several as a tuple, or None."""
KernelArgument: TypeAlias = (
    ResultArray | ArraySpec | Sampler | Sequence[object] | Mapping[str, object] | np.generic | int | float | None
)
"""A value for a binding.

``pumice.empty`` describes arrays that are only written; sequences and mappings are for blocks of several types and for
arrays of bindings; ``None`` leaves out an element of an array of bindings.
"""
Prepared: TypeAlias = ResultArray | ArraySpec | Sampler | HostImage | Absent

_UNIFORM_BUFFER: Final = 6  # VkDescriptorType


class Parameter(ABC):
    """One binding, or one element of an array of bindings.

    Calling sequence for an argument: ``prepare`` → ``check`` → ``bring``. Device arrays whose dtype and size are in
    ``accepted`` are bound without these steps.

    Attributes:
        index: the position in a call.
        label: the name in messages, ``binding 1 (Velocity)``.
        written: whether the kernel may write it.
        dtype: the dtype of an element; ``None`` if NumPy has none.
        accepted: the (dtype, bytes) pairs of arrays that are known to fit without conversion.
        device_types: the classes of arguments on the device.
        stride, head: the bytes of one element, and before the first; 0 if the size of an argument does not determine
            the element count.
    """

    __slots__ = ("accepted", "binding", "dtype", "head", "index", "label", "stride", "written")

    device_types: tuple[type, ...] = (DeviceArray,)

    def __init__(self, index: int, binding: Binding, limits: DeviceLimits) -> None:
        self.index: int = index
        self.binding: Binding = binding
        self.written: bool = binding.writable
        self.dtype: np.dtype[np.generic] | None = None
        self.accepted: set[tuple[np.dtype[np.generic], int]] = set()
        self.head: int
        self.stride: int
        self.stride = self.head = 0
        name = f" ({binding.name})" if binding.name else ""
        self.label: str = f"binding {binding.binding}{name}"
        if binding.set:
            self.label = f"set {binding.set} " + self.label

    @abstractmethod
    def declared(self) -> str:
        """Returns the shader's declaration, for messages."""

    @abstractmethod
    def prepare(self, value: KernelArgument, kernel: str) -> Prepared:
        """Converts an argument for ``check`` and ``bring``; raises for a value that suits no shader."""

    @abstractmethod
    def check(self, value: Prepared, kernel: str) -> None:
        """Raises if a prepared value does not fit the binding; adds fitting values to ``accepted``."""

    def element_axes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the axes of an argument's elements, which are also those of a multi-dimensional grid."""
        return shape

    def bring(self, transfer: Transfer, value: Prepared, into: np.ndarray | None) -> None:
        """Adds a prepared value to a transfer; ``into`` is the NumPy array that receives its result, if any."""
        transfer.bring(value, written=self.written, into=into)  # type: ignore[arg-type]  # arrays, or it is overridden

    def bind(self, placed: Placed, value: Prepared, device: ArrayDevice, kernel: str) -> DeviceArray | Bound:
        """Returns the resource to bind for an argument on the device, prepared as ``value``."""
        assert isinstance(placed, DeviceArray)
        return placed


class BufferParameter(Parameter):
    """A storage or uniform buffer, which accepts arrays, and blocks as mappings of their members.

    Attributes:
        max_bytes: the most that the device binds at once.
    """

    __slots__ = ("_rules", "max_bytes")

    def __init__(self, index: int, binding: Binding, limits: DeviceLimits) -> None:
        super().__init__(index, binding, limits)
        uniform = binding.descriptor_type == _UNIFORM_BUFFER
        self.max_bytes: int = limits.max_uniform_buffer_range if uniform else limits.max_storage_buffer_range
        self._rules = [BlockRules(block) for block in binding.blocks]
        dtypes = {rules.dtype for rules in self._rules}
        self.dtype: np.dtype[np.generic] | None = dtypes.pop() if len(dtypes) == 1 else None
        strides = {(rules.stride, rules.head) for rules in self._rules}
        if len(strides) == 1:
            self.head: int
            self.stride: int
            self.stride, self.head = strides.pop()

    def declared(self) -> str:
        return ", or ".join(rules.declared for rules in self._rules)

    def check(self, value: Prepared, kernel: str) -> None:
        dtype, shape, nbytes = value.dtype, value.shape, value.nbytes
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
        misfits = [rules.misfit(dtype, shape, nbytes) for rules in self._rules]
        if all(misfits):
            raise InvalidArgumentError(f"{kernel}: {self.label} got {'; or '.join(dict.fromkeys(misfits))}")
        # For padded elements the fit also depends on the shape.
        if len(self.accepted) < 256 and (dtype.names is not None or not any(rules.is_padded for rules in self._rules)):
            self.accepted.add((dtype, nbytes))

    def element_axes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        element = self.binding.element
        if element is not None and element.components > 1 and shape and shape[-1] == element.components:
            return shape[:-1]
        return shape

    def prepare(self, value: KernelArgument, kernel: str) -> Prepared:
        if type(value) is dict:
            return self._packed(value, kernel)
        if isinstance(value, DeviceArray):
            value._check_open()
            return value
        if isinstance(value, ArraySpec):
            if not self.written:
                raise InvalidArgumentError(
                    f"{kernel}: {self.label} got {value}, but the kernel only reads it; give it an array"
                )
            # What is read as well has no values that nobody wrote.
            return np.zeros(value.shape, value.dtype) if self.binding.readable else value
        if isinstance(value, (np.ndarray, np.generic)):
            array = np.asarray(value)
        elif is_block_value(value):
            array = self._packed(value, kernel)
        else:
            if value is None or isinstance(value, (str, bytes, DeviceImage, Sampler, TexelArray)):
                hint = {DeviceImage: "; give x.numpy()", TexelArray: "; give x.array"}.get(type(value), "")
                raise InvalidArgumentError(
                    f"{kernel}: {self.label} got {type(value).__name__}; it takes {self.declared()} as an array{hint}"
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

    def _packed(self, value: object, kernel: str) -> np.ndarray:
        """Packs a mapping of members for the first of the binding's blocks that has all of them."""
        if isinstance(value, Mapping):
            for rules in self._rules:
                data = rules.pack_numbers(value)
                if data is not None:
                    if not self.written:  # needs no dtype, which costs more than all the rest
                        return np.frombuffer(data, np.uint8)
                    return np.frombuffer(data, block_dtype(rules.block)).reshape(())
        names = set(value) if isinstance(value, Mapping) else set()
        blocks = self.binding.blocks
        fitting = (block for block in blocks if names <= member_names(block.members).keys())
        return pack_argument(next(fitting, blocks[0]), value, f"{kernel}: {self.label}")


class BlockRules:
    """The arrays that a shader's block accepts.

    Attributes:
        stride: the number of bytes from one element of its array, or of its only member, to the next; else 0.
        head: the number of bytes before a run-time sized array.
        dtype: the dtype of all its scalars; ``None`` if they differ or NumPy has none.
        is_padded: whether there are bytes between its elements, as in an array of vec3.
    """

    def __init__(self, block: BufferBlock) -> None:
        element, scalars = block.element, scalars_of(block.members)
        self._tail = tail(block.members)
        array = self._tail or only_array(block.members)
        self.block = block
        self.stride: int = element.stride if element is not None else (array and array.array_stride) or 0
        self.head: int = block.fixed_size if self._tail is not None else 0
        self.dtype: np.dtype[np.generic] | None = scalars.pop().dtype if len(scalars) == 1 else None
        self._is_mixed = len(scalars) > 1
        dtype = None if element is None else element.dtype
        self.is_padded: bool = (
            element is not None
            and dtype is not None
            and 0 < element.stride != element.components * element.columns * dtype.itemsize
        )

    @cached_property
    def _numbers(self) -> NumberBlock | None:
        block = self.block
        is_array = self._tail is not None or only_array(block.members) is not None
        return None if is_array else NumberBlock(block.members, block.fixed_size)

    def pack_numbers(self, values: Mapping[str, object]) -> bytearray | None:
        """Returns the bytes of a block of plain numbers and vectors, or ``None`` where ``pack_argument`` has to."""
        return None if self._numbers is None else self._numbers.pack(values)

    @cached_property
    def declared(self) -> str:
        """The shader's declaration, for messages."""
        block, element = self.block, self.block.element
        if element is None or element.struct or (self._is_mixed and element.array != "runtime"):
            array = only_array(block.members)
            if array is None:
                return f"a block of {block.fixed_size} bytes {{{describe(block.members)}}}"
            length = str(array.array_length) if array.array_length else "any number of"
            return f"{length} struct {{{describe(array.members)}}}" if array.members else f"{length} {type_name(array)}"
        kind = str(element.dtype or "struct")
        if element.columns > 1:
            kind += f" {element.components}x{element.columns} matrix"
        elif element.components > 1:
            kind += f" vec{element.components}"
        fixed = block.fixed_size
        head = f"{fixed} bytes, then " if fixed and element.array == "runtime" else ""
        length = {"runtime": "any number of", "fixed": str(element.length), "none": "one"}[element.array]
        return f"{head}{length} {kind}"

    def misfit(self, dtype: np.dtype[np.generic], shape: tuple[int, ...], nbytes: int, *, pointee: bool = False) -> str:
        """Returns why the block cannot take an array, in words; ``""`` if it can.

        A pointer may point to the first of several elements.
        """
        only, element = self.dtype, self.block.element
        if dtype == np.uint8:  # raw bytes have no axes: a picture of bytes is not an array of floats
            if len(shape) > 1 and only is not None and only.itemsize > 1:
                return (
                    f"dtype uint8 and shape {shape}; the shader declares {self.declared}. "
                    f"Convert with .astype(np.{only}), or give the bytes as they are by .reshape(-1)"
                )
        elif dtype.names is not None:
            return self._struct_misfit(dtype, 1 if pointee else math.prod(shape)) or self._size_misfit(nbytes)
        elif self._is_mixed:
            return (
                f"dtype {dtype}; the shader declares {self.declared}, of several types. Give a mapping of its members "
                f"(a list of them for an array), an array of kernel.dtype({self.block.name!r}), or bytes as uint8"
            )
        elif only is not None and dtype.kind == "c" and only.kind == "f":
            halves = "" if 2 * only.itemsize == dtype.itemsize else f".astype(np.complex{16 * only.itemsize})"
            return (
                f"dtype {dtype}; the shader declares {self.declared}. A complex number is two {only}: give "
                f"x{halves}.view(np.{only}).reshape(*x.shape, 2)"
            )
        elif only is not None and dtype != only and not fits(only, dtype):
            return (
                f"dtype {dtype}; the shader declares {self.declared}. "
                f"Convert with .astype(np.{only}), or .view() to keep the bits"
            )
        is_vector = element is not None and only is not None and dtype == only and shape[-1:] == (element.components,)
        if is_vector and self.is_padded and element is not None and only is not None:  # rows would be misread
            missing = self.stride // only.itemsize - element.components
            return (
                f"shape {shape}; the shader declares {self.declared}, each padded to {self.stride} bytes. Pad the last "
                f"axis to {self.stride // only.itemsize}: np.pad(x, {[(0, 0)] * (len(shape) - 1) + [(0, missing)]})"
            )
        return self._size_misfit(nbytes)

    def _size_misfit(self, nbytes: int) -> str:
        fixed, stride = self.block.fixed_size, self.stride
        if nbytes >= fixed and (self._tail is None or not stride or not (nbytes - fixed) % stride):
            return ""
        needed = f"{fixed} bytes"
        if self._tail is not None:
            needed = f"{self.head} bytes and {stride} each" if self.head else f"{stride} bytes each"
        described = self.declared if self.declared.startswith("a block of ") else f"{self.declared}, {needed}"
        return f"{nbytes} bytes; the shader declares {described}"

    def _struct_misfit(self, dtype: np.dtype[np.generic], count: int) -> str:
        block, advice = self.block, f": use kernel.dtype({self.block.name!r})"
        came = f"a structured dtype of {dtype.itemsize} bytes; the shader declares {self.declared}"
        if only_array(block.members) is not None:
            expected = element_dtype(block)
            if dtype.itemsize != self.stride:
                return f"{came}, each {self.stride} bytes{advice}"
        else:
            if count != 1:
                return f"{count} elements of {came}: give one"
            length = (
                0 if self._tail is None else (dtype.itemsize - block.fixed_size) // self.stride if self.stride else 0
            )
            if length < 0:
                return f"{came}, {block.fixed_size} bytes and more"
            expected = block_dtype(block, None if self._tail is None else length)
            if dtype.itemsize < expected.itemsize:
                return f"{came}, {expected.itemsize} bytes"
        where = "" if dtype == expected else difference(expected, dtype)
        return f"{came}; {where}{advice}" if where else ""
