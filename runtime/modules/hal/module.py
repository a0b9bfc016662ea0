"""The ``hal`` module: what compiled modules call to use devices, with the calling conventions of its versions 5, 6 and 7.

``hal_module(devices)`` makes it. The functions check their arguments and pass them on: fences (hal_fence.py), buffers
(hal_buffer.py), command buffers (hal_command_buffer.py), executables (hal_executable.py), files (hal_file.py) and the way of
work to a device's queue (hal_device.py). Where two versions differ in a trailing flags word alone, one method serves both.

Facts: ``compiler/src/iree/compiler/Dialect/HAL/hal.imports.mlir`` and ``runtime/src/iree/modules/hal/{exports.inl,module.c}``,
IREE 3.1 to 3.13. Queue affinities are accepted and not needed: a context uses one queue a device.

Offsets and sizes are signed 64-bit integers; negative ones are out of every range, but for a length of -1, which stands
for all that follows.
"""

from __future__ import annotations

import functools
import struct
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TextIO, TypeAlias

from ....formats.element_type import format_shape
from ....hal_vulkan import (
    Buffer,
    BufferUsage,
    BufferView,
    Device,
    ElementType,
    EncodingType,
    Fence,
    MemoryAccess,
    MemoryTypeFlags,
    TimelineSemaphore,
)
from ....hal_vulkan.instance.logical_device import LogicalDevice
from ....status import (
    DeadlineExceededError,
    InvalidArgumentError,
    OutOfRangeError,
    PermissionDeniedError,
    PumiceError,
    StatusCode,
    UnimplementedError,
    error_for,
)
from ....vm.native.module import NativeModule, export
from ....vm.types.ref_types import register_ref_type
from ....vm.wait.frame import Wait
from ...values.format import format_value
from .buffer import HalAllocator, HalBuffer, check_buffer, root_of, subspan
from .command_buffer import BindingReference, HalCommandBuffer, TableEntry
from .device_context import DeviceContext
from .device_query import query_device
from .executable import HalExecutable, create_executable
from .fence import HalFence, alias, check_fence, join
from .file import HalFile, read_bytes, write_bytes

__all__ = ["VERSION", "Channel", "Event", "HalState", "hal_declaration", "hal_module"]

VERSION: Final = 7

# What a register of the VM holds. Functions that run at each call look at it by using it: a check costs as much as the use.
Ref: TypeAlias = Any

_DEADLINE_EXCEEDED: Final = int(StatusCode.DEADLINE_EXCEEDED)
_DEFERRED: Final = int(StatusCode.DEFERRED)
_ONE_SHOT: Final = 0x1
_IMMUTABLE: Final = int(BufferUsage.SHARING_IMMUTABLE)
_MOST_SHAPES: Final = 1024
_IMPORT_AT_LEAST: Final = 64 << 10
# IntFlag's own operators are Python functions; this is the integer's.
_and = int.__and__


class Channel:
    """A collective channel. There are none: what would make one says so."""


class Event:
    """An event within a command buffer; no module makes one."""


def hal_module(devices: Sequence[Device], *, trace: TextIO | None = None) -> NativeModule:
    """The ``hal`` module over these devices, in the order in which ``devices.get`` numbers them.

    Args:
        devices: open devices; they stay their owner's to close.
        trace: where ``buffer_view.trace`` prints; ``None`` is standard error.

    Raises:
        InvalidArgumentError: no device.
    """
    if not devices:
        raise InvalidArgumentError("the hal module needs a device; open one with pumice.open_device()")
    return _module(functools.partial(HalState, tuple(devices), trace))


def hal_declaration() -> NativeModule:
    """The ``hal`` module without devices, for tools that only look at programs."""
    return _module(functools.partial(HalState, ()))


def _module(state: Callable[[], object]) -> NativeModule:
    return NativeModule("hal", version=VERSION, state=state, trusted=True, suspends=False)


class HalState:
    """The state of one context: a way to each device's queue."""

    def __init__(self, devices: tuple[Device, ...], trace: TextIO | None = None) -> None:
        self._devices = devices
        self._trace = trace
        self._contexts: dict[LogicalDevice, DeviceContext] = {device: DeviceContext(device) for device in devices}
        if len(self._contexts) > 1:
            for context in self._contexts.values():
                context.peers = self._contexts
        self._shapes: dict[tuple[int, int, tuple[int, ...]], tuple[ElementType, EncodingType, int]] = {}

    def device_context(self, device: Ref) -> DeviceContext:
        """The context's way to a device.

        Raises:
            InvalidArgumentError: not a device, or one that the context was not made with.
        """
        try:
            return self._contexts[device]
        except (KeyError, TypeError):
            what = "null" if device is None else repr(device)
            raise InvalidArgumentError(
                f"expected a !hal.device of this context ({len(self._devices)} device(s)), got {what}"
            ) from None

    def _context_of(self, buffer: Buffer, device: Ref) -> DeviceContext:
        """The way to the device of a buffer, for what any queue may do with it; to ``device`` if it is of no other one."""
        context = self.device_context(device)
        return context.peers.get(buffer.device, context)

    @property
    def device_contexts(self) -> tuple[DeviceContext, ...]:
        """The ways to all its devices."""
        return tuple(self._contexts.values())

    def close(self) -> None:
        """Frees what is kept for next uses; idempotent. What was handed out lives on."""
        for context in self._contexts.values():
            context.peers = {}
            context.close()

    def __del__(self) -> None:
        # The garbage collector may come at any point, under any lock: only a note is taken (docs/design/hal.md).
        for device, context in getattr(self, "_contexts", {}).items():
            if not context.allocator.is_closed:
                device.dropped.append(context.allocator)

    # -- devices -------------------------------------------------------------------------------------

    @export("devices.count", "0v_i")
    def devices_count(self) -> int:
        """How many devices there are."""
        return len(self._devices)

    @export("devices.get", "0i_r")
    def devices_get(self, index: int) -> Device | None:
        """A device by its number; null past the last."""
        return self._devices[index] if 0 <= index < len(self._devices) else None

    @export("device.allocator", "0r_r")
    def device_allocator(self, device: Ref) -> HalAllocator:
        """The device's allocator."""
        try:
            return self._contexts[device].allocator
        except (KeyError, TypeError):
            return self.device_context(device).allocator

    @export("device.query.i64", "0rrr_iI")
    def device_query_i64(self, device: Ref, category: Ref, key: Ref) -> tuple[int, int]:
        """(1, value), or (0, 0) for a query that is not known."""
        value = query_device(self.device_context(device).device, _text(category, "category"), _text(key, "key"))
        return (0, 0) if value is None else (1, value)

    # -- allocators ----------------------------------------------------------------------------------

    @export("allocator.select", "0iiICrID_rI")
    def allocator_select(
        self, memory_types: int, usage: int, flags: int, pairs: tuple[tuple[Ref, int], ...]
    ) -> tuple[Device, int]:
        """The first of the devices: all are as good as each other until a policy says otherwise."""
        if not pairs:
            raise InvalidArgumentError("allocator.select needs at least one device")
        device, affinity = pairs[0]
        return self.device_context(device).device, affinity

    @export("allocator.allocate", "0rIiiI_r")
    def allocator_allocate(self, allocator: Ref, affinity: int, memory_types: int, usage: int, size: int) -> HalBuffer:
        """A buffer with undefined contents."""
        return _allocator(allocator).allocate(memory_types, usage, size)

    @export("allocator.import", "0riIiirII_r")
    def allocator_import(
        self,
        allocator: Ref,
        attempt: int,
        affinity: int,
        memory_types: int,
        usage: int,
        source: Ref,
        offset: int,
        size: int,
    ) -> HalBuffer | None:
        """A buffer over host memory in place; null where that is not to be had and ``attempt`` is set."""
        found = _allocator(allocator)
        view = _memory(source, "source")
        if size == -1:
            size = view.nbytes
        if offset < 0 or size < 0 or offset + size > view.nbytes:
            raise InvalidArgumentError(
                f"allocator.import: bytes [{offset}, {offset + size}) do not lie within the {view.nbytes} bytes given"
            )
        if view.readonly and not usage & _IMMUTABLE:
            raise PermissionDeniedError("allocator.import: constant data can only be imported for constant use")
        device = found.device
        # Kernels would read imported memory over the bus where the device has memory of its own.
        if attempt and (device.plan.staging or size < _IMPORT_AT_LEAST):
            return None
        buffer = device.import_buffer(view[offset : offset + size], copy=not attempt)
        if buffer is None:
            return None
        adopted = found.adopt(buffer)
        adopted.memory_type |= MemoryTypeFlags(memory_types)
        adopted.usage = BufferUsage(usage)
        if usage & _IMMUTABLE:
            adopted.access = MemoryAccess.READ
        return adopted

    # -- buffers -------------------------------------------------------------------------------------

    @export("buffer.assert", "0rrrIii_v")
    def buffer_assert(
        self, buffer: Ref, message: Ref, allocator: Ref, length: int, memory_types: int, usage: int
    ) -> None:
        """Raises unless a buffer has the length, memory type and usage that a program was compiled for."""
        try:
            if (
                buffer.size >= length
                and _and(buffer.memory_type, memory_types) == memory_types
                and _and(buffer.usage, usage) == usage
                and not buffer._closed
                and buffer.parent is None
            ):
                return
        except (AttributeError, TypeError):
            pass
        name = _text(message, "message")
        found = check_buffer(buffer, name)
        if found.size < length:
            raise InvalidArgumentError(f"{name} buffer byte length {found.size} less than expected minimum {length}")
        if int(found.memory_type) & memory_types != memory_types:
            raise PermissionDeniedError(
                f"{name} buffer memory type is not compatible; buffer has {found.memory_type!r}, operation requires "
                f"{MemoryTypeFlags(memory_types)!r}"
            )
        if int(found.usage) & usage != usage:
            raise PermissionDeniedError(
                f"{name} requested usage was not specified when the buffer was allocated; buffer allows {found.usage!r}, "
                f"operation requires {BufferUsage(usage)!r}"
            )

    @export("buffer.length", "0r_I")
    def buffer_length(self, buffer: Ref) -> int:
        """Bytes."""
        return check_buffer(buffer, "buffer.length").size

    @export("buffer.subspan", "0rII_r")
    def buffer_subspan(self, buffer: Ref, offset: int, size: int) -> Buffer:
        """A part of a buffer."""
        return subspan(check_buffer(buffer, "buffer.subspan"), offset, size)

    @export("buffer.load", "0rIi_i")
    def buffer_load(self, buffer: Ref, offset: int, size: int) -> int:
        """Up to four bytes as an integer, the missing ones 0."""
        found = check_buffer(buffer, "buffer.load")
        if not 0 <= size <= 4:
            raise InvalidArgumentError(f"buffer.load takes 0 to 4 bytes, got {size}")
        value = int.from_bytes(read_bytes(self.device_context(found.device), found, offset, size), "little")
        return value - (1 << 32) if value >= 1 << 31 else value

    @export("buffer.store", "0irIi_v")
    def buffer_store(self, value: int, buffer: Ref, offset: int, size: int) -> None:
        """Writes the low ``size`` bytes of a value."""
        found = check_buffer(buffer, "buffer.store")
        if not 0 <= size <= 4:
            raise InvalidArgumentError(f"buffer.store takes 0 to 4 bytes, got {size}")
        write_bytes(self.device_context(found.device), found, offset, struct.pack("<i", value)[:size])

    @export("buffer.allocation.preserve", "0r_v")
    def buffer_allocation_preserve(self, buffer: Ref) -> None:
        """One owner more."""
        root = root_of(check_buffer(buffer, "buffer.allocation.preserve"))
        if isinstance(root, HalBuffer):
            root.owners += 1

    @export("buffer.allocation.discard", "0r_i")
    def buffer_allocation_discard(self, buffer: Ref) -> int:
        """One owner less; 1 if it was the last. Buffers of the caller's stay the caller's."""
        root = root_of(check_buffer(buffer, "buffer.allocation.discard"))
        if not isinstance(root, HalBuffer):
            return 0
        root.owners -= 1
        return int(root.owners == 0)

    @export("buffer.allocation.is_terminal", "0r_i")
    def buffer_allocation_is_terminal(self, buffer: Ref) -> int:
        """Whether there is one owner."""
        root = root_of(check_buffer(buffer, "buffer.allocation.is_terminal"))
        return int(isinstance(root, HalBuffer) and root.owners == 1)

    # -- buffer views --------------------------------------------------------------------------------

    @export("buffer_view.create", "0rIIiiCID_r")
    def buffer_view_create(
        self, buffer: Ref, offset: int, length: int, element_type: int, encoding: int, shape: tuple[int, ...]
    ) -> BufferView:
        """A view of a range of a buffer."""
        known = self._shapes.get((element_type, encoding, shape))
        if known is None:
            known = self._shape(element_type, encoding, shape)
        if type(buffer) is not HalBuffer or buffer._closed or offset or length != buffer.size:
            buffer = subspan(check_buffer(buffer, "buffer_view.create"), offset, length)
        if known[2] > buffer.size:
            raise OutOfRangeError(
                f"buffer_view.create: {known[2]} bytes of elements do not fit the range of {buffer.size} bytes"
            )
        return BufferView.of_checked(buffer, shape, known[0], known[1])

    def _shape(self, element_type: int, encoding: int, shape: tuple[int, ...]) -> tuple[ElementType, EncodingType, int]:
        kind = ElementType(element_type)
        try:
            layout = EncodingType(encoding)
        except ValueError:
            raise InvalidArgumentError(
                f"encoding type {encoding:#010x} is not known; 1 is dense row-major, 0 opaque"
            ) from None
        if shape and min(shape) < 0:
            raise InvalidArgumentError(f"a shape's lengths must not be negative, got {format_shape(shape)}")
        count = 1
        for length in shape:
            count *= length
        known = (kind, layout, kind.storage_bytes(count) if layout is EncodingType.DENSE_ROW_MAJOR else 0)
        if len(self._shapes) >= _MOST_SHAPES:
            self._shapes.clear()
        self._shapes[element_type, encoding, shape] = known
        return known

    @export("buffer_view.assert", "0rriiCID_v")
    def buffer_view_assert(
        self, view: Ref, message: Ref, element_type: int, encoding: int, shape: tuple[int, ...]
    ) -> None:
        """Raises unless a view has the element type, encoding and shape that a program was compiled for."""
        if (
            type(view) is BufferView
            and view.shape == shape
            and view.element_type == element_type
            and view.encoding == encoding
        ):
            return
        _check_view_is(view, _text(message, "message"), element_type, encoding, shape)

    @export("buffer_view.buffer", "0r_r")
    def buffer_view_buffer(self, view: Ref) -> Buffer:
        """The view's buffer."""
        return view.buffer if type(view) is BufferView else _view(view).buffer

    @export("buffer_view.element_type", "0r_i")
    def buffer_view_element_type(self, view: Ref) -> int:
        """The code of the element type."""
        return int(_view(view).element_type)

    @export("buffer_view.encoding_type", "0r_i")
    def buffer_view_encoding_type(self, view: Ref) -> int:
        """The code of the encoding."""
        return int(_view(view).encoding)

    @export("buffer_view.rank", "0r_i")
    def buffer_view_rank(self, view: Ref) -> int:
        """Number of axes."""
        return len(_view(view).shape)

    @export("buffer_view.dim", "0ri_I")
    def buffer_view_dim(self, view: Ref, index: int) -> int:
        """The length of an axis; 0 for one that there is not, as in other runtimes."""
        shape = _view(view).shape
        return shape[index] if 0 <= index < len(shape) else 0

    @export("buffer_view.trace", "0rCrD_v")
    def buffer_view_trace(self, key: Ref, views: tuple[Ref, ...]) -> None:
        """Prints views with a heading."""
        lines = [f"=== {_text(key, 'key')} ==="]
        for ref in views:
            view = _view(ref)
            data = read_bytes(self.device_context(view.buffer.device), view.buffer, 0, view.byte_length)
            array = view.element_type.unpack(data, view.shape)
            lines.append(format_value(array, max_elements=None, element_type=view.element_type))
        print("\n".join(lines), end="\n\n", file=sys.stderr if self._trace is None else self._trace)

    # -- channels ------------------------------------------------------------------------------------

    @export("channel.create", "0rIIrrii_r", "0rIirrii_r")
    def channel_create(
        self, device: Ref, affinity: int, flags: int, identifier: Ref, group: Ref, rank: int, count: int
    ) -> Channel:
        """Collectives between devices are not there."""
        raise _no_collectives("channel.create")

    @export("channel.split", "0riiI_r", "0riii_r")
    def channel_split(self, channel: Ref, color: int, key: int, flags: int) -> Channel:
        """Collectives between devices are not there."""
        raise _no_collectives("channel.split")

    @export("channel.rank_and_count", "0r_ii")
    def channel_rank_and_count(self, channel: Ref) -> tuple[int, int]:
        """Collectives between devices are not there."""
        raise _no_collectives("channel.rank_and_count")

    # -- command buffers -----------------------------------------------------------------------------

    @export("command_buffer.create", "0riiIi_r")
    def command_buffer_create(
        self, device: Ref, modes: int, categories: int, affinity: int, binding_capacity: int
    ) -> HalCommandBuffer:
        """A command buffer, being recorded."""
        context = self.device_context(device)
        one_shot, timed = bool(modes & _ONE_SHOT), context.timed
        commands = HalCommandBuffer(
            context.device,
            one_shot=one_shot,
            binding_capacity=binding_capacity,
            peers=context.peers,
            timing=timed is not None and one_shot and not binding_capacity,
            muted=timed is not None and not timed.has_credit(),
        )
        commands.begin()
        return commands

    @export("command_buffer.finalize", "0r_v")
    def command_buffer_finalize(self, commands: Ref) -> None:
        """Ends recording."""
        _commands(commands).end()

    @export("command_buffer.begin_debug_group", "0rr_v")
    def command_buffer_begin_debug_group(self, commands: Ref, label: Ref) -> None:
        """Opens a label for tools."""
        _commands(commands).begin_label(_text(label, "label"))

    @export("command_buffer.end_debug_group", "0r_v")
    def command_buffer_end_debug_group(self, commands: Ref) -> None:
        """Closes the last label."""
        _commands(commands).end_label()

    @export("command_buffer.execution_barrier", "0riiI_v", "0riii_v")
    def command_buffer_execution_barrier(self, commands: Ref, source: int, target: int, flags: int) -> None:
        """What follows waits for, and sees, all before."""
        _commands(commands).execution_barrier()

    @export("command_buffer.advise_buffer", "0rrIIIi_v")
    def command_buffer_advise_buffer(
        self, commands: Ref, buffer: Ref, flags: int, first: int, second: int, slot: int
    ) -> None:
        """Advice that Vulkan has no use for."""
        _commands(commands)._check_recording()

    @export("command_buffer.fill_buffer", "0rrIIiIiI_v", "0rrIIiii_v")
    def command_buffer_fill_buffer(
        self,
        commands: Ref,
        target: Ref,
        offset: int,
        size: int,
        slot: int,
        pattern: int,
        pattern_size: int,
        flags: int = 0,
    ) -> None:
        """Fills a range with the low bytes of a pattern."""
        found = _commands(commands)
        found.fill(found.reference(slot, target, offset, size), _pattern(pattern, pattern_size))

    @export("command_buffer.update_buffer", "0rrIrIIiI_v", "0rrIrIIi_v")
    def command_buffer_update_buffer(
        self,
        commands: Ref,
        source: Ref,
        source_offset: int,
        target: Ref,
        offset: int,
        size: int,
        slot: int,
        flags: int = 0,
    ) -> None:
        """Writes bytes of the host, captured now."""
        found = _commands(commands)
        data = HalFile(_memory(source, "source")).range(source_offset, size, "update_buffer")
        found.update(found.reference(slot, target, offset, size), data.tobytes())

    @export("command_buffer.copy_buffer", "0riirIrIII_v", "0riirIrII_v")
    def command_buffer_copy_buffer(
        self,
        commands: Ref,
        source_slot: int,
        target_slot: int,
        source: Ref,
        source_offset: int,
        target: Ref,
        target_offset: int,
        size: int,
        flags: int = 0,
    ) -> None:
        """Copies a range."""
        found = _commands(commands)
        found.copy(
            found.reference(source_slot, source, source_offset, size, written=False),
            found.reference(target_slot, target, target_offset, size),
            None if size == -1 else size,
        )

    @export("command_buffer.collective", "0rriiiirrIIIII_v")
    def command_buffer_collective(self, *arguments: Ref) -> None:
        """Collectives between devices are not there."""
        raise _no_collectives("command_buffer.collective")

    @export("command_buffer.dispatch", "0rrIiiiICiDCiirIID_v", "0rriiiiICiDCiirIID_v")
    def command_buffer_dispatch(
        self,
        commands: Ref,
        executable: Ref,
        function: int,
        x: int,
        y: int,
        z: int,
        flags: int,
        constants: tuple[int, ...],
        bindings: tuple[BindingReference, ...],
    ) -> None:
        """Runs a function of an executable over x * y * z workgroups."""
        _commands(commands).record_dispatch_of(_executable(executable), function, (x, y, z), flags, constants, bindings)

    @export("command_buffer.dispatch.indirect", "0rrIirIICiDCiirIID_v", "0rriirIICiDCiirIID_v")
    def command_buffer_dispatch_indirect(
        self,
        commands: Ref,
        executable: Ref,
        function: int,
        workgroups_slot: int,
        workgroups: Ref,
        workgroups_offset: int,
        flags: int,
        constants: tuple[int, ...],
        bindings: tuple[BindingReference, ...],
    ) -> None:
        """Runs a function over workgroup counts in a buffer."""
        found = _commands(commands)
        counts = found.reference(workgroups_slot, workgroups, workgroups_offset, 12, written=False)
        found.record_dispatch_indirect_of(_executable(executable), function, counts, flags, constants, bindings)

    # -- executables ---------------------------------------------------------------------------------

    @export("executable.create", "0rIrrr_r")
    def executable_create(
        self, device: Ref, affinity: int, executable_format: Ref, data: Ref, constants: Ref
    ) -> HalExecutable:
        """An executable from its blob."""
        return create_executable(
            self.device_context(device).device,
            _text(executable_format, "executable format"),
            _memory(data, "executable data"),
            b"" if constants is None else _memory(constants, "constants").tobytes(),
        )

    @export("executable.create", "0rrrr_r")
    def executable_create_v5(self, device: Ref, executable_format: Ref, data: Ref, constants: Ref) -> HalExecutable:
        """``executable.create`` of version 5, which has no queue affinity."""
        return self.executable_create(device, -1, executable_format, data, constants)

    @export("executable.lookup.function", "0rr_I")
    def executable_lookup_function(self, executable: Ref, name: Ref) -> int:
        """What ``command_buffer.dispatch`` takes for a name."""
        return _executable(executable).lookup(_text(name, "function name"))

    # -- files ---------------------------------------------------------------------------------------

    @export("ex.file.from_memory", "0rIirIIi_r")
    def file_from_memory(
        self, device: Ref, affinity: int, access: int, buffer: Ref, offset: int, size: int, flags: int
    ) -> HalFile:
        """A file over bytes of the host, in place."""
        self.device_context(device)
        if access & ~int(MemoryAccess.READ):
            raise PermissionDeniedError("ex.file.from_memory: files over memory may only be read")
        file = HalFile(_memory(buffer, "buffer").toreadonly())
        return HalFile(file.range(offset, file.view.nbytes - offset if size == -1 else size, "ex.file.from_memory"))

    # -- queues --------------------------------------------------------------------------------------

    @export("device.queue.alloca", "0rIrrIiiII_r", "0rIrriiiI_r")
    def queue_alloca(
        self,
        device: Ref,
        affinity: int,
        wait: Ref,
        target: Ref,
        pool: int,
        memory_types: int,
        usage: int,
        size: int,
        flags: int = 0,
    ) -> HalBuffer:
        """A buffer for use once the signal fence is reached, which is when the wait fence is: its memory is there at once."""
        try:
            context = self._contexts[device]
        except (KeyError, TypeError):
            context = self.device_context(device)
        if pool:
            raise UnimplementedError(f"queue.alloca: allocation pool {pool} was asked for; there are none")
        buffer = context.allocator.allocate(memory_types, usage, size)
        if wait is not None or type(target) is not HalFence or not target.bind(()):
            alias(_fence(wait), _fence(target))
        return buffer

    @export("device.queue.dealloca", "0rIrrrI_v", "0rIrrr_v")
    def queue_dealloca(self, device: Ref, affinity: int, wait: Ref, target: Ref, buffer: Ref, flags: int = 0) -> None:
        """The program is done with a buffer once the wait fence is reached; its memory goes back with the last reference.

        Compilers drop their last reference here. One release, 3.11, also deallocates buffers that its loops use again.
        """
        self.device_context(device)
        check_buffer(buffer, "queue.dealloca")
        alias(_fence(wait), _fence(target))

    @export("device.queue.barrier", "0rIrrI_v")
    def queue_barrier(self, device: Ref, affinity: int, wait: Ref, target: Ref, flags: int) -> None:
        """Signals when the wait fence is reached."""
        self.device_context(device)
        alias(_fence(wait), _fence(target))

    @export("device.queue.flush", "0rI_v")
    def queue_flush(self, device: Ref, affinity: int) -> None:
        """Nothing is ever pending: submissions go out at once."""
        self.device_context(device)

    @export("device.queue.execute.indirect", "0rIrrrICrIID_v")
    def queue_execute_indirect(
        self,
        device: Ref,
        affinity: int,
        wait: Ref,
        target: Ref,
        commands: Ref,
        flags: int,
        table: tuple[TableEntry, ...],
    ) -> None:
        """Runs a command buffer with a binding table."""
        try:
            context = self._contexts[device]
        except (KeyError, TypeError):
            context = self.device_context(device)
        if type(commands) is not HalCommandBuffer:
            _commands(commands)
        context.submit((commands,), wait, target, table if commands.binding_capacity else None)

    @export("device.queue.execute.indirect", "0rIrrrCrIID_v")
    def queue_execute_indirect_v5(
        self, device: Ref, affinity: int, wait: Ref, target: Ref, commands: Ref, table: tuple[TableEntry, ...]
    ) -> None:
        """``queue.execute.indirect`` of version 5, which has no flags."""
        self.queue_execute_indirect(device, affinity, wait, target, commands, 0, table)

    @export("device.queue.execute", "0rIrrrI_v")
    def queue_execute(self, device: Ref, affinity: int, wait: Ref, target: Ref, commands: Ref, flags: int) -> None:
        """Runs a command buffer."""
        self.device_context(device).submit((_commands(commands),), _fence(wait), _fence(target))

    @export("device.queue.execute", "0rIrrCrD_v")
    def queue_execute_v5(
        self, device: Ref, affinity: int, wait: Ref, target: Ref, command_buffers: tuple[Ref, ...]
    ) -> None:
        """``queue.execute`` of version 5, of any number of command buffers in order."""
        if not command_buffers:
            self.queue_barrier(device, affinity, wait, target, 0)
            return
        self.device_context(device).submit(
            tuple(_commands(commands) for commands in command_buffers), _fence(wait), _fence(target)
        )

    @export("device.queue.fill", "0rIrrrIIIiI_v")
    def queue_fill(
        self,
        device: Ref,
        affinity: int,
        wait: Ref,
        target: Ref,
        buffer: Ref,
        offset: int,
        size: int,
        pattern: int,
        pattern_size: int,
        flags: int,
    ) -> None:
        """Fills a range of a buffer."""
        data = _pattern(pattern, pattern_size)
        found = subspan(check_buffer(buffer, "queue.fill"), offset, size)
        self._context_of(found, device).once(
            "fill", lambda commands: commands.fill(found, data), _fence(wait), _fence(target)
        )

    @export("device.queue.update", "0rIrrrIrIII_v")
    def queue_update(
        self,
        device: Ref,
        affinity: int,
        wait: Ref,
        target: Ref,
        source: Ref,
        source_offset: int,
        buffer: Ref,
        offset: int,
        size: int,
        flags: int,
    ) -> None:
        """Writes bytes of the host, captured now."""
        data = HalFile(_memory(source, "source")).range(source_offset, size, "queue.update").tobytes()
        found = check_buffer(buffer, "queue.update")
        self._context_of(found, device).once(
            "update", lambda commands: commands.update(found, data, offset), _fence(wait), _fence(target)
        )

    @export("device.queue.copy", "0rIrrrIrIII_v")
    def queue_copy(
        self,
        device: Ref,
        affinity: int,
        wait: Ref,
        target: Ref,
        source: Ref,
        source_offset: int,
        buffer: Ref,
        offset: int,
        size: int,
        flags: int,
    ) -> None:
        """Copies a range."""
        here = check_buffer(source, "queue.copy source")
        there = check_buffer(buffer, "queue.copy target")

        def record(commands: HalCommandBuffer) -> None:
            commands.copy(
                commands.reference(0, here, source_offset, size, written=False),
                commands.reference(0, there, offset, size),
                None if size == -1 else size,
            )

        self.device_context(device).once("copy", record, _fence(wait), _fence(target))

    @export("device.queue.read", "0rIrrrIrIII_v", "0rIrrrIrIIi_v")
    def queue_read(
        self,
        device: Ref,
        affinity: int,
        wait: Ref,
        target: Ref,
        file: Ref,
        file_offset: int,
        buffer: Ref,
        offset: int,
        size: int,
        flags: int,
    ) -> None:
        """Reads bytes of a file into a buffer."""
        found = check_buffer(buffer, "queue.read")
        _file(file).read(
            self._context_of(found, device),
            _fence(wait),
            _fence(target),
            file_offset,
            found,
            offset,
            size,
        )

    @export("device.queue.write", "0rIrrrIrIII_v", "0rIrrrIrIIi_v")
    def queue_write(
        self,
        device: Ref,
        affinity: int,
        wait: Ref,
        target: Ref,
        buffer: Ref,
        offset: int,
        file: Ref,
        file_offset: int,
        size: int,
        flags: int,
    ) -> None:
        """Writes bytes of a buffer to a file."""
        found = check_buffer(buffer, "queue.write")
        _file(file).write(
            self._context_of(found, device),
            _fence(wait),
            _fence(target),
            found,
            offset,
            file_offset,
            size,
        )

    # -- fences --------------------------------------------------------------------------------------

    @export("fence.create", "0rI_r", "0ri_r")
    def fence_create(self, device: Ref, flags: int) -> HalFence:
        """A fence that nothing signals yet."""
        if device not in self._contexts:
            self.device_context(device)
        return HalFence(device)

    @export("fence.join", "0ICrD_r")
    def fence_join(self, flags: int, fences: tuple[Ref, ...]) -> HalFence | None:
        """A fence that is ready when all are; null if all are null."""
        found = [check_fence(fence) for fence in fences if fence is not None]
        return join(found) if found else None

    @export("fence.join", "0CrD_r")
    def fence_join_v5(self, fences: tuple[Ref, ...]) -> HalFence | None:
        """``fence.join`` of version 5, which has no flags."""
        return self.fence_join(0, fences)

    @export("fence.query", "0r_i")
    def fence_query(self, fence: Ref) -> int:
        """0 when reached, DEFERRED when not, else the code it failed with."""
        found = check_fence(fence)
        try:
            return 0 if found.query() else _DEFERRED
        except PumiceError as error:
            return int(error.code)

    @export("fence.signal", "0r_v")
    def fence_signal(self, fence: Ref) -> None:
        """Signals from the host."""
        check_fence(fence).signal()

    @export("fence.fail", "0ri_v")
    def fence_fail(self, fence: Ref, code: int) -> None:
        """Fails with a status code."""
        found = check_fence(fence)
        try:
            status = StatusCode(code & 0x1F)
        except ValueError:
            status = StatusCode.UNKNOWN
        found.fail(
            error_for(
                StatusCode.UNKNOWN if status is StatusCode.OK else status,
                "the program failed this fence (hal.fence.fail)",
            )
        )

    @export("fence.await", "0iICrD_i", suspends=True)
    def fence_await(self, timeout: int, flags: int, fences: tuple[Ref, ...]) -> int | Wait:
        """0 once all are reached; DEADLINE_EXCEEDED after ``timeout`` ms (-1: never). Raises the failure of one.

        Payloads not known to be reached are not asked for first: whoever waits finds out by the same native call.
        """
        pending = []
        for fence in fences:
            if type(fence) is HalFence and fence.failure is None:
                points = fence.bound
                if points is None:
                    pending.append(fence)
                    continue
                for semaphore, value in points:
                    if semaphore._reached < value or semaphore._failure is not None:
                        pending.append(fence)
                        break
            elif fence is not None and not check_fence(fence).query():
                pending.append(fence)
        if not pending:
            return 0
        if not timeout:
            reached = [fence.query() for fence in pending]  # all of them: any may have failed
            return 0 if all(reached) else _DEADLINE_EXCEEDED
        deadline = None if timeout == -1 else time.monotonic() + (timeout & 0xFFFFFFFF) / 1000
        return Wait(pending, deadline=deadline, resume=_awaited)

    @export("fence.await", "0iCrD_i", suspends=True)
    def fence_await_v5(self, timeout: int, fences: tuple[Ref, ...]) -> int | Wait:
        """``fence.await`` of version 5, which has no flags."""
        return self.fence_await(timeout, 0, fences)


def _awaited(error: PumiceError | None) -> int:
    if error is None:
        return 0
    if isinstance(error, DeadlineExceededError):
        return _DEADLINE_EXCEEDED
    raise error


def _got(value: object) -> str:
    return "null" if value is None else type(value).__name__


def _memory(buffer: Ref, what: str) -> memoryview:
    """The bytes of a VM buffer, in place."""
    try:
        view: memoryview = buffer.as_memoryview()
    except AttributeError:
        raise InvalidArgumentError(f"{what}: expected a !vm.buffer, got {_got(buffer)}") from None
    return view


def _text(buffer: Ref, what: str) -> str:
    return _memory(buffer, what).tobytes().decode("utf-8", "replace")


def _allocator(allocator: Ref) -> HalAllocator:
    if not isinstance(allocator, HalAllocator):
        raise InvalidArgumentError(f"expected a !hal.allocator, got {_got(allocator)}")
    return allocator


def _view(view: Ref) -> BufferView:
    if not isinstance(view, BufferView):
        raise InvalidArgumentError(f"expected a !hal.buffer_view, got {_got(view)}")
    return view


def _commands(commands: Ref) -> HalCommandBuffer:
    if not isinstance(commands, HalCommandBuffer):
        raise InvalidArgumentError(f"expected a !hal.command_buffer, got {_got(commands)}")
    return commands


def _executable(executable: Ref) -> HalExecutable:
    if not isinstance(executable, HalExecutable):
        raise InvalidArgumentError(f"expected a !hal.executable, got {_got(executable)}")
    return executable


def _file(file: Ref) -> HalFile:
    if not isinstance(file, HalFile):
        raise InvalidArgumentError(f"expected a !hal.file, got {_got(file)}")
    return file


def _fence(fence: Ref) -> HalFence | Fence | None:
    return None if fence is None else check_fence(fence)


def _pattern(pattern: int, size: int) -> bytes:
    if size not in (1, 2, 4):
        raise InvalidArgumentError(f"a fill pattern has 1, 2 or 4 bytes, got {size}")
    return (pattern & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def _no_collectives(what: str) -> UnimplementedError:
    return UnimplementedError(
        f"{what}: collectives between devices are not implemented; compile the program for one device a context"
    )


def _check_view_is(view: Ref, name: str, element_type: int, encoding: int, shape: tuple[int, ...]) -> None:
    """What ``buffer_view.assert`` asks, where it is not plainly so: opaque views pass, integers may differ in sign."""
    found = _view(view)
    if found.encoding is not EncodingType.OPAQUE and found.encoding != encoding:
        raise InvalidArgumentError(
            f"{name} encoding mismatch; expected {encoding:08X} but have {int(found.encoding):08X}"
        )
    have = found.element_type
    if have != element_type and not have.is_opaque:
        expected = ElementType(element_type)
        if not (have.is_integer and expected.is_integer and have.bits == expected.bits):
            raise InvalidArgumentError(
                f"{name} element type mismatch; expected {expected.short_name} ({element_type:08X}) but have "
                f"{have.short_name} ({int(have):08X})"
            )
    if len(found.shape) != len(shape):
        raise InvalidArgumentError(
            f"{name} shape rank mismatch; expected {_rank(shape)} but have {_rank(found.shape)}; "
            f"expected shape `{format_shape(shape)}`, actual shape `{format_shape(found.shape)}`"
        )
    for axis, (actual, wanted) in enumerate(zip(found.shape, shape, strict=True)):
        if actual != wanted:
            raise InvalidArgumentError(
                f"{name} shape dimension {axis} mismatch; expected {wanted} but have {actual}; "
                f"expected shape `{format_shape(shape)}`, actual shape `{format_shape(found.shape)}`"
            )


def _rank(shape: tuple[int, ...]) -> str:
    return f"{len(shape)}{'' if shape else ' (scalar)'}"


register_ref_type("hal.allocator", HalAllocator)
register_ref_type("hal.buffer", Buffer)
register_ref_type("hal.buffer_view", BufferView)
register_ref_type("hal.channel", Channel)
register_ref_type("hal.command_buffer", HalCommandBuffer)
register_ref_type("hal.device", Device)
register_ref_type("hal.event", Event)
register_ref_type("hal.executable", HalExecutable)
register_ref_type("hal.fence", HalFence, Fence)
register_ref_type("hal.file", HalFile)
register_ref_type("hal.semaphore", TimelineSemaphore)
