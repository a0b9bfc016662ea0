"""The state that the command buffers of one device share: pools of native objects, barriers and the built-in kernels.

Thread rule: it may be used from any thread.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING, Final, Protocol

from ...status import UnimplementedError
from ..instance.logical_device import LogicalDevice, guarded
from ..memory.allocator import Allocator
from ..pipelines.builtins import Builtins
from ..pipelines.pipeline_context import PipelineContext
from ..vulkan.functions import ffi, new
from .recording import Barriers, NativeCommands, Recording
from .recording_cache import RecordingCache
from .timestamps import QueryPools

if TYPE_CHECKING:
    from ..vulkan.functions import CData

_MAX_KEPT: Final = 128


class _Recorder(Protocol):
    """A command buffer that is being recorded."""

    def device_closed(self) -> None: ...


class CommandContext:
    """The shared state of a device's command buffers.

    Attributes:
        recording: the weak references to the command buffers being recorded, by id.
        barriers: the barriers by queue family.
        kept: the recordings of one-shot commands, by their contents (hal_vulkan/programs/dispatch_list.py).
        begin_once, begin_again: the VkCommandBufferBeginInfo of one-shot and of reusable commands.
    """

    def __init__(self, device: LogicalDevice, allocator: Allocator, pipelines: PipelineContext) -> None:
        self.device = device
        self.allocator = allocator
        self.builtins: Builtins = Builtins(pipelines, allocator)
        self.query_pools: QueryPools = QueryPools(device)
        self.recording: dict[int, weakref.ref[_Recorder]] = {}
        self.begin_once: CData = new("VkCommandBufferBeginInfo", flags=0x1)  # ONE_TIME_SUBMIT
        self.begin_again: CData = new("VkCommandBufferBeginInfo", flags=0x4)  # SIMULTANEOUS_USE
        families = (device.plan.compute_family, device.plan.transfer_family)
        self.barriers: dict[int, Barriers] = {
            family: Barriers(device, family) for family in families if family is not None
        }
        self.kept: RecordingCache[tuple[object, ...], Recording] = RecordingCache(_MAX_KEPT, self.release)
        self._free: dict[int, list[NativeCommands]] = {}

    def check_timestamps(self, family: int) -> None:
        """Raises if queues of the family write no timestamps."""
        profile = self.device.profile
        if not profile.queue_families[family].timestamp_valid_bits:
            raise UnimplementedError(f"{profile.name} writes no timestamps on queue family {family}")

    @guarded
    def take(self, family: int) -> NativeCommands:
        """Returns a command pool with its command buffer, reset."""
        try:
            return self._free[family].pop()
        except (KeyError, IndexError):
            pass
        device = self.device
        info = new("VkCommandPoolCreateInfo", flags=0x3, queueFamilyIndex=family)  # TRANSIENT, RESET_COMMAND_BUFFER
        pool = device.create("command pool", info)
        handle = ffi.new("VkCommandBuffer *")
        allocate = new("VkCommandBufferAllocateInfo", commandPool=pool, commandBufferCount=1)
        try:
            result = device.fn.vkAllocateCommandBuffers(device.handle, allocate, handle)
            device.check(result, "allocating a command buffer")
        except BaseException:
            device.destroy("command pool", pool)
            raise
        return NativeCommands(pool, handle[0], family)

    def give_back(self, native: NativeCommands) -> None:
        """Resets native commands that no queue runs any more and keeps them for the next recording."""
        device = self.device
        with device.guard.lock:
            if device.is_closed:
                return
            if device.fn.vkResetCommandPool(device.handle, native.pool, 0):
                device.destroy("command pool", native.pool)
                return
            self._free.setdefault(native.family, []).append(native)

    def recycle(self, recording: Recording) -> None:
        """Gives back a recording that no queue runs any more."""
        if recording.take():
            recording.clear()
            self.give_back(recording.native)

    def release(self, recording: Recording) -> None:
        """Recycles a recording once no submitted work uses it."""
        self.device.defer(lambda: self.recycle(recording))

    def trim(self) -> None:
        """Drops the kept recordings, and destroys the free command pools."""
        with contextlib.suppress(KeyError):  # until it is empty
            while True:
                self.release(self.kept.popitem()[1])
        for free in list(self._free.values()):
            with contextlib.suppress(IndexError):  # until it is empty
                while True:
                    self.device.destroy("command pool", free.pop().pool)

    def stop_recording(self) -> None:
        """Ends all recording, as the device is being closed."""
        for reference in list(self.recording.values()):
            commands = reference()
            if commands is not None:
                commands.device_closed()
        self.recording.clear()
