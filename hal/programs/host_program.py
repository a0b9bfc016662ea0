"""The base class of the Python programs that ``pumice codegen --hal`` writes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ...base.closeable import Closeable
from ...formats.element_type import ElementType
from ...status import (
    ClosedError,
    DeadlineExceededError,
    InvalidArgumentError,
    PumiceError,
    StatusCode,
    error_for,
    shorten,
)
from ..buffer_view import BufferView
from ..device import Device
from ..fence import Fence
from ..program import BindingReference, ProgramCommandBuffer
from ..semaphore import Semaphore
from .device_context import DeviceTable
from .fence import HalFence, OptionalFence, check_fence
from .file import read_bytes, upload

if TYPE_CHECKING:
    from .device_context import DeviceContext

Semaphores: TypeAlias = HalFence | Fence | Sequence[tuple[Semaphore, int]] | None
"""Timeline semaphores at payloads to wait for, or to signal; or a fence; ``None`` and ``()`` mean none."""


class HostProgram(Closeable):
    """A program on a device.

    Calling sequence: ``create`` → ``to_device`` → methods → ``to_host`` → ``close``, or the end of a ``with`` block.
    Methods called later raise ClosedError. Close it before its device. Thread rule: one call at a time; make one
    program for each thread.

    Attributes:
        device: the device that runs it.
        context: the program's timeline, its memory and its access to the device's queue.
    """

    def __init__(self, device: Device) -> None:
        self._table = DeviceTable((device,))
        self.device = device
        self.context: DeviceContext = self._table.contexts[device]

    @classmethod
    def create(cls, device: Device) -> Self:
        """Returns the program, ready to run: executables made, commands recorded, constants in device memory.

        Args:
            device: a device of ``pumice.hal_vulkan`` or ``pumice.hal_reference``; the caller closes it.

        Raises:
            InvalidArgumentError: the device is not a HAL device.
            NotFoundError: the program has no executables that the device runs.
            UnavailableError: the device lacks a feature that the executables need.
        """
        if not isinstance(device, Device):
            raise InvalidArgumentError(
                f"expected a Device of pumice.hal_vulkan or pumice.hal_reference.device, got {type(device).__module__}."
                f"{type(device).__name__}; that of pumice.open_device() is its attribute hal"
            )
        program = cls(device)
        try:
            program._load()
        except BaseException:
            program.close()
            raise
        return program

    def _load(self) -> None:
        """Makes executables and records commands for the methods."""

    def to_device(self, array: npt.NDArray[np.generic]) -> BufferView:
        """Returns a copy of a NumPy array in the memory of the device.

        Raises:
            InvalidArgumentError: no element type holds the array's dtype.
            ResourceExhaustedError: there is no memory.
        """
        array = np.asarray(array)
        kind = ElementType.from_dtype(array.dtype)
        data = memoryview(kind.pack(np.ascontiguousarray(array).reshape(array.shape)))
        buffer = self.context.allocator.adopt(self.device.create_buffer(data.nbytes))
        done = HalFence(self.device)
        upload(self.context, None, done, data, buffer, 0)
        done.wait_until()
        return BufferView(buffer, array.shape, kind)

    def to_host(self, view: BufferView) -> npt.NDArray[np.generic]:
        """Returns a copy of a view's elements as a NumPy array. Their writer must be done.

        Raises:
            InvalidArgumentError: the value is not a view.
        """
        if not isinstance(view, BufferView):
            raise InvalidArgumentError(f"expected a BufferView, got {type(view).__name__}")
        return view.element_type.unpack(read_bytes(self.context, view.buffer, 0, view.byte_length), view.shape)

    def close(self) -> None:
        """Releases its objects on the device; idempotent. Returned views stay valid."""
        table = vars(self).get("_table")
        if table is not None:
            table.close()
        vars(self).clear()

    if not TYPE_CHECKING:  # for type checkers an unknown attribute stays an error

        def __getattr__(self, name: str) -> object:
            if "_table" in vars(self):
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}", name=name, obj=self)
            raise ClosedError(f"this program ({type(self).__name__}) was closed")

    def _record(self, *, binding_capacity: int = 0, one_shot: bool = False) -> ProgramCommandBuffer:
        commands = self.device.program_commands(one_shot=one_shot, binding_capacity=binding_capacity)
        commands.begin()
        return commands


def fence_of(points: Semaphores) -> OptionalFence:
    """Returns one fence for semaphores at payloads.

    Raises:
        InvalidArgumentError: the argument is neither a semaphore with a payload, nor a sequence of these, nor a fence.
    """
    if points is None or isinstance(points, (HalFence, Fence)):
        return points
    try:
        pairs = list(points)
        is_known = all(isinstance(semaphore, Semaphore) for semaphore, _ in pairs)
    except (TypeError, ValueError):
        is_known = False
    if not is_known:
        raise InvalidArgumentError(f"expected (semaphore, payload) pairs, or a fence, got {shorten(repr(points))}")
    return Fence(pairs) if pairs else None


def slot(index: int, offset: int = 0, size: int = -1) -> BindingReference:
    """Returns bytes of the buffer in a slot of the binding table; a size of -1 means up to its end."""
    return (0, index, None, offset, size)


def answer_of(answer: int | None) -> tuple[int, int]:
    """Returns (1, answer) of a device query, or (0, 0) for an unknown one."""
    return (0, 0) if answer is None else (1, answer)


def await_fences(fences: Iterable[OptionalFence], milliseconds: int = -1) -> int:
    """Blocks until all fences are reached; returns 0, or the code of DEADLINE_EXCEEDED. Raises the first failure."""
    deadline = None if milliseconds == -1 else time.monotonic() + (milliseconds & 0xFFFFFFFF) / 1000
    try:
        for fence in fences:
            if fence is not None:
                check_fence(fence).wait_until(deadline)
    except DeadlineExceededError:
        if deadline is None:
            raise
        return int(StatusCode.DEADLINE_EXCEEDED)
    return 0


def failure(code: int, message: str) -> PumiceError:
    """Returns the error for a status code with which a program fails; UNKNOWN for an unknown code."""
    try:
        status = StatusCode(code)
    except ValueError:
        return error_for(StatusCode.UNKNOWN, f"{message or 'the program failed'} (status {code})")
    return error_for(status, message or "the program failed without a message")
