"""A Vulkan device: the owner of everything made from it.

Calling sequence: ``Device(driver, index)`` → ``create_buffer``/``create_executable``/``create_command_buffer``/
``create_semaphore`` → ``compute_queue.submit`` → ``close``, which waits for the queues and destroys what is
left. Device loss is sticky: from then on every use raises ``DeviceLostError`` that says what was in flight, and
every waiter has been told.

Thread rule: a device may be used from any thread. So may its buffers, pipelines, semaphores and queues; a
command buffer is recorded by one thread at a time.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Protocol

from ..status import (
    ClosedError,
    DeadlineExceededError,
    DeviceLostError,
    InvalidArgumentError,
    PumiceError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from .commands.builtins import Builtins
from .commands.command_buffer import CommandBuffer, CommandBufferState
from .commands.descriptors import DescriptorSetLayout, LayoutKey
from .commands.executable import Executable
from .commands.pipeline import ComputePipeline, SpecializationValue
from .commands.pipeline_cache import PipelineCache
from .commands.recording import Barriers, NativeCommands, Recording
from .commands.timestamps import ClockCalibration, calibrate, create_query_pool
from .instance.driver import Driver, shared_driver
from .instance.physical_device import feature_structures
from .instance.plan import DevicePlan, PlanOptions, plan_device
from .instance.profile import DeviceProfile
from .memory.allocator import Allocation, Allocator, Block
from .memory.buffer import Buffer, check_size, contiguous
from .memory.memory_type import BufferUsage, MemoryAccess, MemoryTypeFlags
from .submit.queue import Queue
from .sync.notifier import Notifier
from .sync.semaphore import _SLICE_NS, TimelineSemaphore, _nanoseconds, _WaitInfo, deadline_after
from .vulkan import fork, live_objects
from .vulkan.functions import (
    VK_ERROR_DEVICE_LOST,
    VK_SUCCESS,
    VK_TIMEOUT,
    CData,
    DeviceFunctions,
    _pending_validation,
    chain,
    check,
    enum_value,
    error_from_result,
    ffi,
    handle_value,
    new,
    raise_pending_validation,
    string_array,
)

if TYPE_CHECKING:
    pass

__all__ = ["Closable", "Device", "Trimmable"]

_DESTROY: Final = {
    "semaphore": "vkDestroySemaphore",
    "shader module": "vkDestroyShaderModule",
    "pipeline": "vkDestroyPipeline",
    "pipeline layout": "vkDestroyPipelineLayout",
    "query pool": "vkDestroyQueryPool",
    "command pool": "vkDestroyCommandPool",
    "descriptor update template": "vkDestroyDescriptorUpdateTemplate",
}
_MAGIC_VKE1: Final = b"VKE1"
_WAITERS_LEAVE_S: Final = 2.0


class Closable(Protocol):
    """Something that owns native objects."""

    def close(self) -> None:
        """Gives them back."""
        ...


class Trimmable(Protocol):
    """Something that keeps memory it does not use."""

    def trim(self) -> None:
        """Gives it back."""
        ...


class Device:
    """A VkDevice with its queues, memory and caches.

    Attributes:
        driver: the driver it was made from.
        profile: what the physical device is and can do.
        plan: which queues, features and extensions of it are in use, and why.
        uri: how to ask for this very device again.
        queues: all queues; ``compute_queue`` is the first, ``transfer_queue`` a DMA queue or the compute queue.
        allocator: device memory.
        notifier: the thread that serves notifications.
        lost: the error of a lost device, or ``None``.
        abandoned: whether this is a forked child, where the device may not be touched.
    """

    def __init__(
        self,
        driver: Driver | None = None,
        index: int | str | None = None,
        *,
        options: PlanOptions | None = None,
        persistent_cache: bool = True,
    ) -> None:
        """Makes a VkDevice.

        Args:
            driver: ``None`` takes the process's shared driver.
            index: of the driver's devices, or a device URI; ``None`` asks ``PUMICE_DEVICE``, then takes the best.
            options: choices for the device plan.
            persistent_cache: keep compiled pipelines on disk.

        Raises:
            NotFoundError: no such device; the message lists those that exist.
            UnavailableError: no driver, or the device lacks something that pumice needs.
        """
        self.driver = shared_driver() if driver is None else driver
        if not isinstance(index, int):
            index = self.driver.select(index)
        if not 0 <= index < len(self.driver.profiles):
            raise InvalidArgumentError(f"device index {index} is outside 0..{len(self.driver.profiles) - 1}")
        self.profile: DeviceProfile = self.driver.profiles[index]
        problems = self.profile.problems()
        if problems:
            raise UnavailableError(f"{self.profile.name} cannot be used: {'; '.join(problems)}")
        self.index = index
        self.uri = f"vulkan://GPU-{self.profile.device_uuid}"
        self.plan: DevicePlan = plan_device(self.profile, _with_environment(options or PlanOptions()))
        self.validation = self.driver.validation
        self.debug_utils = self.driver.debug_utils
        self.physical_device: CData = self.driver.physical_devices[index]
        self.lost: PumiceError | None = None
        self.close_epoch = 0
        self.schedule_lock = threading.RLock()
        self.signal_lock = threading.RLock()
        self.wait_infos: list[_WaitInfo] = []
        self.waiting: dict[_WaitInfo, TimelineSemaphore] = {}
        # By id, weakly: one that nobody holds any more is not recorded any further.
        self.recording: dict[int, weakref.ref[CommandBuffer]] = {}
        self._lock = threading.RLock()
        # Whoever keeps memory for a next use: asked for it when there is none left.
        self.caches: weakref.WeakSet[Trimmable] = weakref.WeakSet()
        # Objects that were garbage-collected without a close: their finalisers only put them here.
        self.dropped: deque[Closable] = deque()
        self._closed = False
        self._views = 0
        self._teardown_pending = False
        self._owned: dict[tuple[str, int], CData] = {}
        self._semaphores: weakref.WeakSet[TimelineSemaphore] = weakref.WeakSet()
        self._set_layouts: dict[tuple[LayoutKey, bool], DescriptorSetLayout] = {}
        self._pipeline_layouts: dict[tuple[object, ...], CData] = {}
        self._push_templates: dict[int, CData] = {}
        self._barriers: dict[int, Barriers] = {}
        limits = self.profile.limits
        # What any binding takes: alignment (as a mask) and size.
        self.bind_limits = (
            max(limits.min_storage_buffer_offset_alignment, limits.min_uniform_buffer_offset_alignment) - 1,
            min(limits.max_storage_buffer_range, limits.max_uniform_buffer_range),
        )
        x, y, z = self.profile.limits.max_compute_work_group_count
        self.groups_max = (x, y, z)
        self.begin_once = new("VkCommandBufferBeginInfo", flags=0x1)  # ONE_TIME_SUBMIT
        self.begin_again = new("VkCommandBufferBeginInfo", flags=0x4)  # SIMULTANEOUS_USE
        self._free_commands: dict[int, list[NativeCommands]] = {}
        self._free_query_pools: list[CData] = []
        self._held: OrderedDict[int, None] = OrderedDict()
        self._last_held = 0
        self._parked: deque[tuple[int, Callable[[], None]]] = deque()
        self.abandoned = False
        self.driver.retain()
        try:
            self.handle: CData = self._create()
        except BaseException:
            self.driver.release()
            raise
        self.fn = DeviceFunctions(self.driver.functions, self.handle)
        self.queues: tuple[Queue, ...] = ()
        try:
            self.queues = self._get_queues()
            self.compute_queue = self.queues[0]
            self.transfer_queue = next(
                (q for q in self.queues if q.family == self.plan.transfer_family), self.queues[0]
            )
            self.allocator = Allocator(self)
            self.allocator.on_block_freed = self._block_freed
            self.notifier = Notifier(self)
            self.pipeline_cache = PipelineCache(self, persistent=persistent_cache)
            self.builtins = Builtins(self)
            fork.watch(self)
        except BaseException:
            self._destroy_owned()
            self.fn.vkDestroyDevice(self.handle, ffi.NULL)
            live_objects.destroyed("device")
            self.driver.release()
            raise

    def _create(self) -> CData:
        plan = self.plan
        families = {plan.compute_family: plan.compute_queue_count}
        if plan.transfer_family is not None:
            families[plan.transfer_family] = plan.transfer_queue_count
        infos = [
            new(
                "VkDeviceQueueCreateInfo",
                queueFamilyIndex=family,
                queueCount=count,
                pQueuePriorities=ffi.new("float[]", [1.0] * count),
            )
            for family, count in families.items()
        ]
        names = string_array(plan.extensions)
        features = feature_structures(
            plan.features, minor=self.profile.api_version[1], extensions=frozenset(plan.extensions)
        )
        info = new(
            "VkDeviceCreateInfo",
            queueCreateInfoCount=len(infos),
            pQueueCreateInfos=infos,
            enabledExtensionCount=len(names),
            ppEnabledExtensionNames=names or None,
        )
        handle = ffi.new("VkDevice *")
        check(
            self.driver.functions.vkCreateDevice(self.physical_device, chain(info, features), ffi.NULL, handle),
            f"creating a device on {self.profile.name}",
        )
        live_objects.created("device")
        return handle[0]

    def _get_queues(self) -> tuple[Queue, ...]:
        plan = self.plan
        queues = [Queue(self, plan.compute_family, i, f"compute {i}") for i in range(plan.compute_queue_count)]
        if plan.transfer_family is not None:
            queues += [Queue(self, plan.transfer_family, i, f"transfer {i}") for i in range(plan.transfer_queue_count)]
        return tuple(queues)

    # -- making things -------------------------------------------------------------------------------

    def create_buffer(
        self,
        size: int,
        *,
        memory_type: MemoryTypeFlags = MemoryTypeFlags.DEVICE_LOCAL,
        usage: BufferUsage = BufferUsage.DEFAULT
        | BufferUsage.DISPATCH_UNIFORM_READ
        | BufferUsage.DISPATCH_INDIRECT_PARAMETERS,
        access: MemoryAccess = MemoryAccess.ALL,
    ) -> Buffer:
        """A buffer of ``size`` bytes; its contents are undefined.

        Raises:
            InvalidArgumentError: a negative size, or a memory type that the device does not have.
            ResourceExhaustedError: no memory; the message has sizes and heaps, nothing is made.
        """
        allocation = self.allocate(check_size(size), memory_type)
        return Buffer(self, allocation, allocation.offset, size, memory_type, usage, access)

    def allocate(self, size: int, memory_type: MemoryTypeFlags) -> Allocation:
        """The memory of ``create_buffer``, for whoever makes the buffer of it; ``retire_allocation`` gives it back.

        Raises:
            InvalidArgumentError: a negative size, or a memory type that the device does not have.
            ResourceExhaustedError: no memory, even after caches were emptied and work in flight was waited for.
        """
        if self.lost is not None or self._closed:
            self.check_usable()
        if self.dropped:
            self.close_dropped()
        try:
            return self.allocator.allocate(size, memory_type)
        except ResourceExhaustedError:
            for cache in list(self.caches):
                cache.trim()
            # What was closed while in use is given back at retirement; that may be all the room there is.
            for queue in self.queues:
                self.wait_native(queue.timeline, queue._submitted, None, "memory to be given back")
                queue.retire()
            return self.allocator.allocate(size, memory_type)

    def import_buffer(self, data: memoryview | bytearray | bytes, *, copy: bool = True) -> Buffer | None:
        """A buffer over host memory in place, where the device and the alignment allow it.

        Args:
            data: C-contiguous memory; kept alive by the buffer. Read-only memory is imported with read access only.
            copy: make a host-visible copy where it cannot be imported; else return ``None`` then.
        """
        self.check_usable()
        view = contiguous(data)
        access = MemoryAccess.READ if view.readonly else MemoryAccess.ALL
        memory_type = MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE
        pointer = ffi.from_buffer(view)
        address = int(ffi.cast("uintptr_t", pointer))
        allocation = self.allocator.import_host(address, view.nbytes, (pointer, view))
        if allocation is not None:
            return Buffer(self, allocation, allocation.offset, view.nbytes, memory_type, BufferUsage.DEFAULT, access)
        if not copy:
            return None
        buffer = self.create_buffer(view.nbytes, memory_type=memory_type)
        buffer.write(view)
        buffer.access = access
        return buffer

    def create_semaphore(self, initial_value: int = 0, name: str | None = None) -> TimelineSemaphore:
        """A timeline semaphore at a payload."""
        self.check_usable()
        return TimelineSemaphore(self, initial_value, name)

    def create_executable(self, code: bytes | bytearray | memoryview, *, validate: bool = True) -> Executable:
        """An executable from SPIR-V or from a VKE1 blob, told apart by their magic numbers.

        Args:
            code: the module or the blob.
            validate: let ``spirv-val`` check modules not seen before; drivers may crash on invalid ones.

        Raises:
            InvalidArgumentError: neither, or damaged.
        """
        self.check_usable()
        view = contiguous(code)
        if bytes(view[:4]) == _MAGIC_VKE1:
            return Executable.from_vke1(self, view, validate=validate)
        return Executable.from_spirv(self, bytes(view), validate=validate)

    def create_pipeline(
        self,
        spirv: bytes,
        entry_point: str | None = None,
        *,
        specialization: Mapping[int, SpecializationValue] | None = None,
        subgroup_size: int | None = None,
    ) -> ComputePipeline:
        """A pipeline straight from SPIR-V; see ``Executable.pipeline``."""
        self.check_usable()
        executable = Executable.from_spirv(self, spirv)
        try:
            return executable.pipeline(entry_point, specialization=specialization, subgroup_size=subgroup_size)
        finally:
            executable.close_modules()

    def create_command_buffer(
        self,
        *,
        one_shot: bool = False,
        binding_capacity: int = 0,
        timing: bool | Literal["span"] = False,
        name: str = "commands",
    ) -> CommandBuffer:
        """A command buffer for the compute queue; see ``CommandBuffer``."""
        self.check_usable()
        return CommandBuffer(self, one_shot=one_shot, binding_capacity=binding_capacity, timing=timing, name=name)

    def calibrate(self) -> ClockCalibration:
        """Relates device timestamps to the host's monotonic clock."""
        self.check_usable()
        return calibrate(self)

    # -- errors --------------------------------------------------------------------------------------

    def check(self, result: int, what: str) -> None:
        """``native.check`` that also makes device loss sticky."""
        if _pending_validation:
            raise_pending_validation()
        if result == VK_ERROR_DEVICE_LOST:
            raise self.lose(error_from_result(result, what))
        if result < 0:
            raise error_from_result(result, what)

    def check_usable(self) -> None:
        """Raises if the device was closed or lost."""
        if self._closed:
            raise ClosedError(f"this device ({self.profile.name}) was closed")
        if self.lost is not None:
            raise self.lost.again()

    def lose(self, cause: PumiceError) -> PumiceError:
        """Marks the device as lost, tells every waiter, and returns the sticky error."""
        with self._lock:
            if self.lost is None:
                flying = [name for queue in self.queues for name in queue.in_flight]
                shown = ", ".join(flying[:8]) + (f" and {len(flying) - 8} more" if len(flying) > 8 else "")
                self.lost = DeviceLostError(
                    f"{self.profile.name} was lost ({cause.message}). In flight: {shown or 'nothing'}. Close the device "
                    "and open it again; a kernel that runs too long for the driver's watchdog or reads outside its "
                    "buffers is the usual cause",
                    vk_result=cause.vk_result,
                )
                semaphores = list(self._semaphores)  # under the lock that registration takes
            else:
                semaphores = []
            lost = self.lost
        for semaphore in semaphores:
            semaphore.fail(lost)
        return lost

    # -- lifetimes -----------------------------------------------------------------------------------

    def defer(self, action: Callable[[], None]) -> None:
        """Runs ``action`` once everything submitted or held back now has retired; at once when nothing is."""
        if self.abandoned:
            return
        with self.schedule_lock:
            if self._held:
                self._parked.append((self._last_held, action))
                return
        self._defer_submitted(action)

    def _defer_submitted(self, action: Callable[[], None]) -> None:
        busy = [queue for queue in self.queues if queue.is_preparing or not queue.is_idle]
        if not busy:
            action()
            return
        left = len(busy)
        lock = threading.Lock()

        def one() -> None:
            nonlocal left
            with lock:
                left -= 1
                last = left == 0
            if last:
                action()

        for queue in busy:
            queue.defer(one)

    @property
    def held(self) -> int:
        """Submissions held back on the host."""
        return len(self._held)

    def register_held(self) -> int:
        """A submission is to be held back: what is closed from now on is kept for it. For ``HeldSubmission``."""
        with self.schedule_lock:
            self._last_held += 1
            self._held[self._last_held] = None
            return self._last_held

    def released_held(self, serial: int) -> None:
        """A held submission was submitted or dropped. For ``HeldSubmission``."""
        ready: list[Callable[[], None]] = []
        with self.schedule_lock:
            del self._held[serial]
            # What was closed before the oldest one still held was registered is none of its business.
            oldest = next(iter(self._held), None)
            while self._parked and (oldest is None or self._parked[0][0] < oldest):
                ready.append(self._parked.popleft()[1])
        for action in ready:
            self._defer_submitted(action)

    def is_waited_for(self, semaphore: TimelineSemaphore | None = None) -> bool:
        """Whether a thread blocks on the semaphore, or on any."""
        waiting = list(self.waiting.values())
        return bool(waiting) if semaphore is None else any(one is semaphore for one in waiting)

    def wait_for_waiters(self, semaphore: TimelineSemaphore | None = None) -> None:
        """Returns when no thread blocks on the (failed) semaphore any more, or on any of the device."""
        # A waiter wakes at once or at the end of its slice; the limit is for one stopped in a debugger.
        deadline = time.monotonic() + _WAITERS_LEAVE_S
        while self.is_waited_for(semaphore) and time.monotonic() < deadline:
            time.sleep(0.0002)

    def close_dropped(self) -> None:
        """Closes what was garbage-collected without a close. Call it with no lock held."""
        while self.dropped:
            with contextlib.suppress(IndexError):  # another thread took the last
                self.dropped.popleft().close()

    def retire(self) -> None:
        """Lets go of what finished work used."""
        self.close_dropped()
        for queue in self.queues:
            queue.retire()

    def wait_idle(self, timeout: float | None = None) -> None:
        """Blocks until every queue is idle.

        Raises:
            DeadlineExceededError: the time passed first.
        """
        self.check_usable()
        deadline = deadline_after(timeout)
        for queue in self.queues:
            queue.wait_idle(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def wait_native(self, handle: CData, value: int, timeout: float | None, what: str) -> None:
        """Blocks on a native timeline semaphore."""
        semaphores = ffi.new("VkSemaphore[1]", [handle])
        values = ffi.new("uint64_t[1]", [value])
        info = new("VkSemaphoreWaitInfo", semaphoreCount=1, pSemaphores=semaphores, pValues=values)
        remaining = -1 if timeout is None else _nanoseconds(timeout)
        while True:
            step = _SLICE_NS if remaining < 0 else min(remaining, _SLICE_NS)
            result = self.fn.vkWaitSemaphores(self.handle, info, step)
            if result == VK_SUCCESS:
                return
            if result != VK_TIMEOUT:
                self.check(result, f"waiting for {what}")
            if remaining >= 0:
                remaining -= step
                if remaining <= 0:
                    raise DeadlineExceededError(f"waited {timeout} s for {what}")

    def retire_allocation(self, allocation: Allocation) -> None:
        """Frees an allocation when no queue uses it. For ``Buffer.close``."""
        self.close_epoch += 1
        if not self._closed:
            self.defer(lambda: self.allocator.free(allocation))

    def retain_for_view(self) -> None:
        """A host view of mapped memory was made. For ``Allocator``."""
        with self._lock:
            self._views += 1

    def abandon(self, error: PumiceError) -> None:
        """In a forked child: refuses every use from now on, without a native call. For ``fork.py``."""
        self.abandoned = True
        self.lost = error
        self._lock = threading.RLock()
        self.schedule_lock = threading.RLock()
        self.signal_lock = threading.RLock()
        self.allocator.abandon()
        self.notifier.abandon()
        for queue in self.queues:
            queue.abandon()
        for semaphore in list(self._semaphores):
            semaphore.abandon(error)

    def release_for_view(self) -> None:
        """The last reference to a host view went. For ``Allocator``."""
        if self.abandoned:
            return
        with self._lock:
            self._views -= 1
            teardown = self._teardown_pending and not self._views
        if teardown:
            self._teardown()

    def register_semaphore(self, semaphore: TimelineSemaphore) -> None:
        """For ``TimelineSemaphore``."""
        self.own("semaphore", semaphore.handle)
        with self._lock:
            self._semaphores.add(semaphore)

    def unregister_semaphore(self, semaphore: TimelineSemaphore) -> None:
        """For ``TimelineSemaphore``."""
        with self._lock:
            self._semaphores.discard(semaphore)

    def own(self, kind: str, handle: CData) -> None:
        """Notes a native object for ``close`` to destroy, and counts it."""
        live_objects.created(kind)
        self._owned[kind, handle_value(handle)] = handle

    def destroy(self, kind: str, handle: CData) -> None:
        """Destroys a native object made by this device, unless ``close`` has done so."""
        if self._owned.pop((kind, handle_value(handle)), None) is not None:
            getattr(self.fn, _DESTROY[kind])(self.handle, handle, ffi.NULL)
            live_objects.destroyed(kind)

    def destroy_semaphore(self, handle: CData, queues: Sequence[Queue]) -> None:
        """Destroys a semaphore once ``queues``, which have waited for it, are a submission further.

        Mesa's queue thread lets go of what a submission waited for only after it has signalled (22.3, lavapipe: a mutex
        in freed memory), so that a signal alone does not say that the semaphore is out of use.
        """
        if queues:
            queues[0].after_next(lambda: self.destroy_semaphore(handle, queues[1:]))
        else:
            self.destroy("semaphore", handle)

    def create_native_timeline(self, name: str) -> CData:
        """A bare timeline semaphore for the HAL's own use."""
        handle = ffi.new("VkSemaphore *")
        kind = new("VkSemaphoreTypeCreateInfo", semaphoreType=1)
        info = chain(new("VkSemaphoreCreateInfo"), kind)
        self.check(self.fn.vkCreateSemaphore(self.handle, info, ffi.NULL, handle), f"creating {name}")
        self.own("semaphore", handle[0])
        self.set_name("VK_OBJECT_TYPE_SEMAPHORE", handle[0], name)
        return handle[0]

    # -- recycled native objects ---------------------------------------------------------------------

    def take_commands(self, family: int) -> NativeCommands:
        """A command pool with its command buffer, reset."""
        try:
            return self._free_commands[family].pop()
        except (KeyError, IndexError):
            pass
        pool = ffi.new("VkCommandPool *")
        info = new("VkCommandPoolCreateInfo", flags=0x3, queueFamilyIndex=family)  # TRANSIENT, RESET_COMMAND_BUFFER
        self.check(self.fn.vkCreateCommandPool(self.handle, info, ffi.NULL, pool), "creating a command pool")
        self.own("command pool", pool[0])
        handle = ffi.new("VkCommandBuffer *")
        allocate = new("VkCommandBufferAllocateInfo", commandPool=pool[0], commandBufferCount=1)
        result = self.fn.vkAllocateCommandBuffers(self.handle, allocate, handle)
        if result:
            self.destroy("command pool", pool[0])
            self.check(result, "allocating a command buffer")
        return NativeCommands(pool[0], handle[0], family)

    def recycle_commands(self, native: NativeCommands) -> None:
        """Resets native commands that no queue runs any more and keeps them for the next recording."""
        if self._closed:
            return
        result = self.fn.vkResetCommandPool(self.handle, native.pool, 0)
        if result:
            self.destroy("command pool", native.pool)
            return
        self._free_commands.setdefault(native.family, []).append(native)

    def recycle_recording(self, recording: Recording) -> None:
        """Gives back a recording that no queue runs any more."""
        if not recording.take():
            return
        for bound in recording.bound:
            bound.release()
        recording.bound.clear()
        recording.resources = []  # the queue remembers its last recording, but not what that used
        for layout, descriptor_set in recording.pinned:
            layout.unpin(descriptor_set)
        recording.pinned = ()
        for buffer in recording.scratch:
            buffer.close()
        if recording.timestamps is not None:
            recording.timestamps.close()
        self.recycle_commands(recording.native)

    def release_recording(self, recording: Recording) -> None:
        """``recycle_recording`` once nothing submitted uses it."""
        self.defer(lambda: self.recycle_recording(recording))

    def take_query_pool(self, count: int) -> CData:
        """A query pool of timestamps."""
        try:
            pool = self._free_query_pools.pop()
        except IndexError:
            return create_query_pool(self, count)
        if "hostQueryReset" in self.plan.features:
            self.fn.vkResetQueryPool(self.handle, pool, 0, count)  # results of its last use are not this one's
        return pool

    def recycle_query_pool(self, pool: CData) -> None:
        """Keeps a query pool for the next recording."""
        self._free_query_pools.append(pool)

    def barriers(self, family: int) -> Barriers:
        """The barriers of a queue family."""
        found = self._barriers.get(family)
        if found is None:
            found = self._barriers[family] = Barriers(self, family)
        return found

    def check_timestamps(self, family: int) -> None:
        """Raises if queues of the family write no timestamps."""
        if not self.profile.queue_families[family].timestamp_valid_bits:
            raise UnimplementedError(f"{self.profile.name} writes no timestamps on queue family {family}")

    # -- layouts -------------------------------------------------------------------------------------

    def descriptor_set_layout(self, key: LayoutKey, *, push: bool = False) -> DescriptorSetLayout:
        """The layout for these bindings, for sets or for push descriptors; made on first use."""
        with self._lock:
            found = self._set_layouts.get((key, push))
            if found is None:
                found = self._set_layouts[key, push] = DescriptorSetLayout(self, key, push=push)
            return found

    def push_template(self, layout: CData, set_layout: DescriptorSetLayout) -> CData:
        """The template that pushes a set's descriptors for a pipeline layout; made on first use."""
        key = handle_value(layout)
        with self._lock:
            found = self._push_templates.get(key)
            if found is None:
                found = set_layout.make_template(pipeline_layout=layout)
                self._push_templates[key] = found
                self.own("descriptor update template", found)
            return found

    def pipeline_layout(self, set_layouts: tuple[DescriptorSetLayout, ...], push_bytes: int) -> CData:
        """The pipeline layout for these sets and push constants, made on first use."""
        key = (tuple(handle_value(layout.handle) for layout in set_layouts), push_bytes)
        with self._lock:
            found = self._pipeline_layouts.get(key)
            if found is None:
                ranges = [new("VkPushConstantRange", stageFlags=0x20, size=-(-push_bytes // 4) * 4)]
                handles = ffi.new("VkDescriptorSetLayout[]", [layout.handle for layout in set_layouts])
                info = new(
                    "VkPipelineLayoutCreateInfo",
                    setLayoutCount=len(set_layouts),
                    pSetLayouts=handles,
                    pushConstantRangeCount=1 if push_bytes else 0,
                    pPushConstantRanges=ranges if push_bytes else None,
                )
                layout = ffi.new("VkPipelineLayout *")
                self.check(
                    self.fn.vkCreatePipelineLayout(self.handle, info, ffi.NULL, layout), "creating a pipeline layout"
                )
                self.own("pipeline layout", layout[0])
                found = self._pipeline_layouts[key] = layout[0]
            return found

    def _block_freed(self, block: Block) -> None:
        for layout in list(self._set_layouts.values()):
            layout.drop_block(block.serial)

    def set_name(self, object_type: str, handle: CData, name: str) -> None:
        """Names a native object for validation messages and tools; does nothing without VK_EXT_debug_utils."""
        if self.debug_utils and handle != ffi.NULL:
            info = new(
                "VkDebugUtilsObjectNameInfoEXT",
                objectType=enum_value("VkObjectType", object_type),
                objectHandle=handle_value(handle),
                pObjectName=name,
            )
            self.fn.vkSetDebugUtilsObjectNameEXT(self.handle, info)

    # -- end -----------------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    def trim(self) -> int:
        """Frees memory blocks, semaphores and command pools that nothing uses any more; returns the bytes of the blocks.

        It may wait for work in flight.
        """
        self.check_usable()
        for cache in list(self.caches):
            cache.trim()
        self.retire()
        for queue in self.queues:
            queue.pass_idle()
        for free in list(self._free_commands.values()):
            with contextlib.suppress(IndexError):  # until it is empty
                while True:
                    self.destroy("command pool", free.pop().pool)
        return self.allocator.trim()

    def close(self) -> None:
        """Waits for the queues and destroys the device and all that was made from it; idempotent.

        Submissions still held back are dropped and their semaphores fail with CANCELLED. Host views of mapped memory
        (``Buffer.map``, DLPack) stay valid: the memory goes with the last of them.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self.abandoned:
            return
        from ..status import CancelledError

        closing = CancelledError("the device was closed")
        for queue in self.queues:
            queue.close_to_submissions()
        for reference in list(self.recording.values()):
            commands = reference()
            if commands is not None:
                commands.state = CommandBufferState.CLOSED
        self.recording.clear()
        with self._lock:
            semaphores = list(self._semaphores)
        for semaphore in semaphores:
            for submission in list(semaphore.held):
                submission.fail(closing)
        if self.lost is None:
            with contextlib.suppress(PumiceError):
                for queue in self.queues:
                    self.wait_native(queue.timeline, queue._submitted, None, f"{queue.name} to become idle")
        # The queues have signalled, but a driver's threads may still be at the end of the last submission. On a lost
        # device, too, this returns in finite time.
        self.fn.vkDeviceWaitIdle(self.handle)
        for semaphore in semaphores:
            semaphore.fail(closing)
        self.wait_for_waiters()
        self.notifier.close()
        for queue in self.queues:
            queue.end_retirement()
        with self._lock:
            if self._views:
                self._teardown_pending = True
                return
        self._teardown()

    def _teardown(self) -> None:
        self._teardown_pending = False
        self.builtins.close()
        for layout in self._set_layouts.values():
            layout.close()
        self._set_layouts.clear()
        self.pipeline_cache.close()
        self.allocator.close()
        self._destroy_owned()
        self.fn.vkDestroyDevice(self.handle, ffi.NULL)
        live_objects.destroyed("device")
        self.driver.release()
        if _pending_validation:
            raise_pending_validation()

    def _destroy_owned(self) -> None:
        for (kind, _), handle in list(self._owned.items()):
            self.destroy(kind, handle)

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed " if self._closed else "lost " if self.lost is not None else ""
        return f"<{state}Device {self.index}: {self.profile.name} ({self.profile.device_type.name.lower()})>"


def _with_environment(options: PlanOptions) -> PlanOptions:
    """``PUMICE_STAGING=1`` takes the discrete GPU's path (staging copies) on any device."""
    from dataclasses import replace

    if options.staging is None and os.environ.get("PUMICE_STAGING"):
        return replace(options, staging=os.environ["PUMICE_STAGING"] != "0")
    return options
