"""The native side of a command buffer: pool, VkCommandBuffer, barriers, and recordings with their resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from ...base.lazy_dataclass import dataclass
from ..images.image import Image
from ..instance.logical_device import DeviceQueue, LogicalDevice
from ..memory.buffer import Buffer
from ..pipelines.descriptors import DescriptorSet, DescriptorSetLayout
from ..pipelines.pipeline import BoundSets, ComputePipeline
from ..pipelines.reports import ReportSlot
from ..pipelines.resources import Resource
from ..vulkan.functions import NULL, CData, new
from .timestamps import TimestampRecorder

if TYPE_CHECKING:
    from ..vulkan.functions import NativeFunction

_STAGE_INDIRECT: Final = 0x2
_STAGE_COMPUTE: Final = 0x800
_STAGE_TRANSFER: Final = 0x1000
_STAGE_HOST: Final = 0x4000
_ACCESS_INDIRECT_READ: Final = 0x1
_ACCESS_SHADER: Final = 0x8 | 0x20 | 0x40
_ACCESS_SHADER_WRITE: Final = 0x40
_ACCESS_TRANSFER: Final = 0x800 | 0x1000
_ACCESS_TRANSFER_WRITE: Final = 0x1000
_ACCESS_HOST: Final = 0x2000 | 0x4000


# Resources that commands name.
Named: TypeAlias = Resource | Image | ComputePipeline


@dataclass(eq=False, slots=True)
class NativeCommands:
    """A VkCommandPool with its one VkCommandBuffer: reset together, recycled by ``CommandContext``."""

    pool: CData
    handle: CData
    family: int


class Barriers:
    """The two barriers of a queue family: ``record(handle, *between)`` and ``record(handle, *at_end)``.

    With synchronization2 a barrier has two arguments instead of ten, and a native call's cost grows with its arguments.
    """

    __slots__ = ("at_end", "between", "record")

    def __init__(self, device: LogicalDevice, family: int) -> None:
        compute = device.profile.queue_families[family].has_compute
        work = _STAGE_TRANSFER | (_STAGE_COMPUTE if compute else 0)
        after = work | (_STAGE_INDIRECT if compute else 0)
        writes = _ACCESS_TRANSFER_WRITE | (_ACCESS_SHADER_WRITE if compute else 0)
        reads = _ACCESS_TRANSFER | (_ACCESS_SHADER | _ACCESS_INDIRECT_READ if compute else 0)
        between = (work, after, writes, reads)
        at_end = (work, after | _STAGE_HOST, writes, reads | _ACCESS_HOST)
        self.between: tuple[object, ...]
        self.at_end: tuple[object, ...]
        self.record: NativeFunction
        if "synchronization2" in device.plan.features:
            core = device.profile.version >= (1, 3)
            self.record = device.fn.vkCmdPipelineBarrier2 if core else device.fn.vkCmdPipelineBarrier2KHR
            self.between, self.at_end = _dependency(*between), _dependency(*at_end)
        else:
            self.record = device.fn.vkCmdPipelineBarrier
            self.between, self.at_end = _legacy_barrier(*between), _legacy_barrier(*at_end)


def _dependency(work: int, after: int, writes: int, reads: int) -> tuple[object, ...]:
    # The stages and accesses used here have the same bits in both generations.
    barrier = new("VkMemoryBarrier2", srcStageMask=work, srcAccessMask=writes, dstStageMask=after, dstAccessMask=reads)
    return (new("VkDependencyInfo", memoryBarrierCount=1, pMemoryBarriers=barrier),)


def _legacy_barrier(work: int, after: int, writes: int, reads: int) -> tuple[object, ...]:
    barrier = new("VkMemoryBarrier", srcAccessMask=writes, dstAccessMask=reads)
    return (work, after, 0, 1, barrier, 0, NULL, 0, NULL)


class Recording:
    """Native commands with everything they name, which a queue keeps until they have retired."""

    __slots__ = (
        "_named",
        "_owned",
        "native",
        "number",
        "pinned",
        "queue",
        "reports",
        "resources",
        "scratch",
        "timestamps",
    )

    def __init__(self, native: NativeCommands) -> None:
        self.native: NativeCommands = native
        self.resources: list[Named] = []
        self.reports: tuple[ReportSlot, ...] = ()  # of instrumented pipelines
        self.scratch: list[Buffer] = []
        self.timestamps: TimestampRecorder | None = None
        self.pinned: list[tuple[DescriptorSetLayout, DescriptorSet]] = []
        self._named: set[DescriptorSet] = set()
        self.queue: DeviceQueue | None = None  # the queue of its last submission, with the submission's number
        self.number: int = 0
        self._owned = [True]

    def share(self, bound: BoundSets) -> None:
        """Pins the sets, which stay the caller's, until this is recycled."""
        for layout, descriptor_set in bound.pins:
            if descriptor_set not in self._named:
                layout.pin(descriptor_set)
                self._named.add(descriptor_set)
                self.pinned.append((layout, descriptor_set))

    def take_over(self, bound: BoundSets) -> None:
        """Takes the pins of the sets over, until this is recycled."""
        for layout, descriptor_set in bound.pins:
            if descriptor_set in self._named:
                layout.unpin(descriptor_set)
            else:
                self._named.add(descriptor_set)
                self.pinned.append((layout, descriptor_set))

    def unpin(self) -> None:
        """Unpins all sets."""
        for layout, descriptor_set in self.pinned:
            layout.unpin(descriptor_set)
        self.pinned = []
        self._named.clear()

    def clear(self) -> None:
        """Releases everything it names."""
        self.resources = []  # the queue keeps its last recording, but not its resources
        self.reports = ()
        self.unpin()
        for buffer in self.scratch:
            buffer.close()
        if self.timestamps is not None:
            self.timestamps.close()

    def take(self) -> bool:
        """Returns whether this is the first call: of retirement and ``close``, only one recycles the recording."""
        try:
            return self._owned.pop()
        except IndexError:
            return False
