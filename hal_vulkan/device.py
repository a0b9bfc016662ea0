"""A Vulkan device: the owner of everything made from it.

Calling sequence: ``Device(driver, index)`` → ``create_buffer``/``create_executable``/``create_command_buffer``/
``create_semaphore`` → ``compute_queue.submit`` → ``close``, which waits for the queues and destroys all remaining
objects. Device loss is sticky: every use from then on raises ``DeviceLostError``, which names the work in flight, and
every waiter is woken with it.

Thread rule: a device may be used from any thread. So may its buffers, pipelines, semaphores and queues; a
command buffer is recorded by one thread at a time.
"""

from __future__ import annotations

import time
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Final, Literal, Unpack

from ..formats.image_format import ImageFormat
from ..hal.clock import ClockCalibration
from ..hal.device import Device as AnyDevice
from ..hal.logical_device import LogicalDevice as AnyLogicalDevice
from ..hal.memory import BufferUsage, MemoryAccess, MemoryTypeFlags, contiguous
from ..hal.queue import TimedQueue as AnyTimedQueue
from ..hal.semaphore import Semaphore
from ..hal.timeouts import CLOSE_TIMEOUT_S, deadline_after
from ..status import CancelledError, DeadlineExceededError, PumiceError
from .commands.command_buffer import CommandBuffer
from .commands.context import CommandContext
from .images.format_features import ImageUsage
from .images.image import Image
from .images.image_view import Dim
from .images.sampler import Sampler, SamplerOptions
from .images.texel_buffer import TexelBuffer
from .instance.driver import Driver
from .instance.logical_device import LogicalDevice
from .instance.plan import PlanOptions
from .instance.process import open_devices
from .memory.allocator import Allocator
from .memory.buffer import Buffer
from .pipelines.executable import Executable
from .pipelines.pipeline import ComputePipeline
from .pipelines.pipeline_context import PipelineContext
from .pipelines.reports import ReportTable
from .pipelines.specialization import SpecializationValue
from .programs.allocator import ProgramAllocator
from .programs.command_buffer import ProgramCommandBuffer
from .programs.executable import ProgramExecutable, create_executable
from .programs.queries import query_device
from .programs.timed_queue import TimedQueue
from .submit.calibration import calibrate, calibrate_monotonic
from .submit.queue import Queue
from .sync.context import SemaphoreContext
from .sync.owned_semaphores import ProgramSemaphore
from .sync.semaphore import TimelineSemaphore
from .sync.timeline import wait_timeline
from .vulkan.functions import ffi
from .vulkan.results import VK_ERROR_DEVICE_LOST, VK_SUCCESS, pending_validation, raise_pending_validation

if TYPE_CHECKING:
    from .sync.notifier import Notifier

_MOST_TRIES: Final = 100
_PAUSE_S: Final = 0.01  # after each


class Device(LogicalDevice, AnyDevice):
    """A VkDevice with its queues, memory and caches.

    Attributes:
        queues: all queues; ``compute_queue`` is the first, ``transfer_queue`` a DMA queue or the compute queue.
        allocator: the allocator of device memory.
        reports: the reports of instrumented shaders.
        semaphore_context, pipeline_context, command_context: the state that its semaphores, pipelines and command
            buffers share.
        notifier: the callbacks of semaphores, and the thread that makes them.
    """

    close_epoch: int
    queues: tuple[Queue, ...]
    compute_queue: Queue
    reports: ReportTable

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
            driver: the driver; ``None`` uses the process's shared driver.
            index: the index among the driver's devices, or a device URI; ``None`` reads ``PUMICE_DEVICE``, then takes
                the best.
            options: the choices for the device plan.
            persistent_cache: whether to keep compiled pipelines on disk.

        Raises:
            NotFoundError: there is no such device; the message lists those that exist.
            UnavailableError: there is no driver, or the device lacks something that pumice needs.
        """
        super().__init__(driver, index, options)
        self._is_closing = self._is_unused = False
        self._is_ended = False  # except for memory that host views keep
        try:
            self.allocator: Allocator = Allocator(self)
            self.semaphore_context: SemaphoreContext = SemaphoreContext(self, self.plan.wait)
            self.notifier: Notifier = self.semaphore_context.notifier
            self.reports = ReportTable(self.allocator)
            self.pipeline_context: PipelineContext = PipelineContext(
                self, self.reports, persistent_cache=persistent_cache
            )
            self.allocator.on_block_freed = self.pipeline_context.drop_block
            self.command_context: CommandContext = CommandContext(self, self.allocator, self.pipeline_context)
            self.queues = self._get_queues()
            self.compute_queue = self.queues[0]
            self.transfer_queue: Queue = next(
                (q for q in self.queues if q.family == self.plan.transfer_family), self.queues[0]
            )
            open_devices.add(self)
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        """Destroys a partly constructed device."""
        self.is_closed = self._is_ended = True
        if hasattr(self, "allocator"):
            self.allocator.close()
        self.destroy_native()

    def _get_queues(self) -> tuple[Queue, ...]:
        plan = self.plan
        families = [("compute", plan.compute_family, plan.compute_queue_count)]
        if plan.transfer_family is not None:
            families.append(("transfer", plan.transfer_family, plan.transfer_queue_count))
        return tuple(
            Queue(self.command_context, self.semaphore_context, family, i, f"{kind} {i}")
            for kind, family, count in families
            for i in range(count)
        )

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
        """Returns a buffer of ``size`` bytes; its contents are undefined.

        Raises:
            InvalidArgumentError: the size is negative, or the device does not have the memory type.
            ResourceExhaustedError: there is no memory; the message lists sizes and heaps.
        """
        return Buffer.create(self.allocator, size, memory_type=memory_type, usage=usage, access=access)

    def create_image(
        self,
        format: ImageFormat | str,
        extent: int | tuple[int, ...],
        *,
        dim: Dim | None = None,
        layers: int = 1,
        levels: int = 1,
        samples: int = 1,
        usage: ImageUsage | None = None,
        mutable_format: bool = False,
        name: str = "",
    ) -> Image:
        """Returns an image, whose texels are undefined.

        Args:
            format: the format of the texels, such as ``"rgba8unorm"``.
            extent: the width, height and depth in texels, one for each dimension.
            dim: the kind of dimensions: ``"1d"``, ``"2d"``, ``"3d"`` or ``"cube"``; ``None`` infers it from the extent.
            layers: the number of array layers; six per cube.
            levels: the number of mip levels; 0 for all down to one texel.
            samples: the samples per texel.
            usage: the allowed uses by queues; ``None`` allows all that the device can do with the format.
            mutable_format: whether views may have other formats of the same size, which may cost speed.

        Raises:
            InvalidArgumentError: sizes are not positive ints or do not fit the dimension.
            OutOfRangeError: the device's limits are exceeded.
            UnimplementedError: the device has no such images of the format; the message lists the formats it has.
            ResourceExhaustedError: there is no memory.
        """
        texels = format if isinstance(format, ImageFormat) else ImageFormat.parse(format)
        sizes = (extent,) if isinstance(extent, int) else extent
        image = Image(
            self.allocator,
            texels,
            sizes,
            dim=dim,
            layers=layers,
            levels=levels,
            samples=samples,
            usage=usage,
            mutable_format=mutable_format,
            name=name,
        )
        try:
            with self.create_command_buffer(one_shot=True, name="image layout") as commands:
                commands.begin().initialize_image(image)
                self.compute_queue.execute(commands.end())
            if self.plan.compute_queue_count > 1:  # other queues do not wait for this queue
                self.compute_queue.wait_idle()
        except BaseException:
            image.close()
            raise
        return image

    def create_sampler(self, **options: Unpack[SamplerOptions]) -> Sampler:
        """Returns a sampler; ``SamplerOptions`` lists the choices.

        Raises:
            InvalidArgumentError: a choice is unknown, or choices exclude each other.
            OutOfRangeError: a limit of the device is exceeded.
            UnimplementedError: the device lacks a choice; the message lists its choices.
        """
        return Sampler(self.allocator, **options)

    def texel_buffer(self, buffer: Buffer, format: ImageFormat | str) -> TexelBuffer:
        """Returns a buffer as texels of a format, for bindings of texel buffers. It is closed with the buffer.

        Raises:
            InvalidArgumentError: the bytes are not a whole number of texels, or their offset is not aligned as the
                device requires.
            OutOfRangeError: there are more texels than the device takes.
            UnimplementedError: the device has no texel buffers of the format; the message lists those it has.
        """
        return TexelBuffer(buffer, format if isinstance(format, ImageFormat) else ImageFormat.parse(format))

    def import_buffer(self, data: memoryview | bytearray | bytes, *, copy: bool = True) -> Buffer | None:
        """Returns a buffer over host memory in place, if the device and the alignment allow it.

        Args:
            data: the memory, C-contiguous; kept alive by the buffer. Read-only memory is imported with read access
                only.
            copy: whether to make a host-visible copy if it cannot be imported, instead of returning ``None``.
        """
        self.check_usable()
        view = contiguous(data)
        access = MemoryAccess.READ if view.readonly else MemoryAccess.ALL
        memory_type = MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE
        with ffi.from_buffer(view) as pointer:  # the view keeps the memory; see Buffer.write
            address = int(ffi.cast("uintptr_t", pointer))
        allocation = self.allocator.import_host(address, view.nbytes, view)
        if allocation is not None:
            return Buffer(self, allocation, allocation.offset, view.nbytes, memory_type, BufferUsage.DEFAULT, access)
        if not copy:
            return None
        buffer = self.create_buffer(view.nbytes, memory_type=memory_type)
        buffer.write(view)
        buffer.access = access
        return buffer

    def create_semaphore(self, initial_value: int = 0, name: str | None = None) -> TimelineSemaphore:
        """Returns a timeline semaphore with an initial payload."""
        self.check_usable()
        return TimelineSemaphore(self.semaphore_context, initial_value, name)

    def create_executable(
        self, code: bytes | bytearray | memoryview, *, validate: bool = True, sanitize: bool | None = None
    ) -> Executable:
        """Returns an executable from SPIR-V or a VKE1 blob, distinguished by their magic numbers; else
        InvalidArgumentError.

        Args:
            code: the module or blob.
            validate: whether to check modules with ``spirv-val``: drivers may crash on invalid ones.
            sanitize: whether shaders report accesses that go wrong; ``None`` uses the device's setting.
        """
        sanitize = self.plan.sanitize if sanitize is None else sanitize
        self.check_usable()
        view = contiguous(code)
        if bytes(view[:4]) == b"VKE1":
            return Executable.from_vke1(self.pipeline_context, view, validate=validate, sanitize=sanitize)
        return Executable.from_spirv(self.pipeline_context, bytes(view), validate=validate, sanitize=sanitize)

    def create_pipeline(
        self,
        spirv: bytes,
        entry_point: str | None = None,
        *,
        specialization: Mapping[int, SpecializationValue] | None = None,
        subgroup_size: int | None = None,
    ) -> ComputePipeline:
        """Returns a pipeline straight from SPIR-V; see ``Executable.pipeline``."""
        self.check_usable()
        executable = Executable.from_spirv(self.pipeline_context, spirv, sanitize=self.plan.sanitize)
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
        """Returns a command buffer for the compute queue; see ``CommandBuffer``."""
        self.check_usable()
        return CommandBuffer(
            self.command_context, one_shot=one_shot, binding_capacity=binding_capacity, timing=timing, name=name
        )

    # -- for programs --------------------------------------------------------------------------------

    def query(self, category: str, key: str) -> int | None:
        return query_device(self, category, key)

    def program_executable(self, format: str, data: memoryview, constants: bytes) -> ProgramExecutable:
        return create_executable(self.pipeline_context, self.allocator, format, data, constants)

    def program_allocator(self, timeline: Semaphore) -> ProgramAllocator:
        return ProgramAllocator(self.allocator, self.compute_queue, timeline)

    def program_semaphore(self, name: str) -> ProgramSemaphore:
        return ProgramSemaphore(self.semaphore_context, name)

    def program_commands(
        self,
        *,
        one_shot: bool = False,
        binding_capacity: int = 0,
        name: str = "commands",
        peers: Container[AnyLogicalDevice] = (),
        timed: AnyTimedQueue | None = None,
    ) -> ProgramCommandBuffer:
        return ProgramCommandBuffer(
            self.command_context,
            one_shot=one_shot,
            binding_capacity=binding_capacity,
            name=name,
            peers=peers,
            timing=timed is not None and one_shot and not binding_capacity,
            muted=timed is not None and not timed.may_time(),
        )

    def read_clock(self) -> ClockCalibration:
        """Calibrates with ``time.monotonic_ns`` as the host's clock; see ``calibrate``."""
        return calibrate_monotonic(self.compute_queue)

    def timed_queue(self, most_slowdown: float | None) -> TimedQueue:
        self.command_context.check_timestamps(self.compute_queue.family)
        return TimedQueue(self.compute_queue, most_slowdown)

    # -- the whole device ----------------------------------------------------------------------------

    def calibrate(self) -> ClockCalibration:
        """Relates device timestamps to the host's monotonic clock."""
        self.check_usable()
        return calibrate(self.compute_queue)

    def wait_idle(self, timeout: float | None = None) -> None:
        """Blocks until every queue is idle; DeadlineExceededError if the time (in seconds) passes first."""
        self.check_usable()
        deadline = deadline_after(timeout)
        for queue in self.queues:
            queue.wait_idle(_left(deadline))
        self.reports.prints.collect()

    def trim(self) -> int:
        """Frees unused memory blocks and command pools, and returns the blocks' bytes. It may wait for work."""
        self.check_usable()
        for cache in self.caches:
            cache.trim()
        self.retire()
        for queue in self.queues:
            queue.pass_idle()
        self.command_context.trim()
        return self.allocator.trim()

    def abandon(self, error: PumiceError) -> None:
        """Makes every later use raise ``error``, without native calls; for forked children."""
        super().abandon(error)
        self.allocator.abandon()
        for queue in self.queues:
            queue.abandon()
        self.semaphore_context.abandon(error)

    def close(self, timeout: float | None = CLOSE_TIMEOUT_S) -> None:
        """Waits for the queues, and destroys the device with everything made from it; idempotent.

        Submissions still held back are dropped, and their semaphores fail with CANCELLED. Close waits for uses in other
        threads, and later uses get ClosedError. Host views of mapped memory (``Buffer.map``, DLPack) stay valid: the
        memory is freed with the last view. After an error or Ctrl-C the device refuses every use, and another ``close``
        continues. While one thread closes it, other threads' calls return at once.

        Args:
            timeout: the seconds for work and for other threads; ``None`` waits for ever.

        Raises:
            DeadlineExceededError: the work or the other threads did not end in time; the message says which. Nothing is
                destroyed.
        """
        deadline = deadline_after(timeout)
        is_closing = False
        try:
            with self.lock:
                if not self.is_closed:
                    self.close_epoch += 1
                self.is_closed = True
                if self._is_closing or self._is_ended or self.abandoned:
                    return
                self._is_closing = is_closing = True
            self._end(deadline)
        finally:
            if is_closing:
                self._is_closing = False
        if pending_validation:
            raise_pending_validation()

    def _end(self, deadline: float | None) -> None:
        """Does the steps of ``close``, each of which may be repeated."""
        if not self._is_unused:
            self._finish_uses(deadline)
            self._is_unused = True  # from here on it may be destroyed
        self.command_context.stop_recording()  # recordings begun meanwhile
        self.allocator.when_unviewed(self._tear_down)
        self._is_ended = True

    def _finish_uses(self, deadline: float | None) -> None:
        closing = CancelledError("the device was closed")
        for queue in self.queues:
            queue.close_to_submissions()
        self.command_context.stop_recording()
        self.semaphore_context.drop_held(closing)
        running = self.finish_work(_left(deadline))
        if running:
            raise self._left_behind(f"work is still running ({running})")
        self.reports.prints.collect()
        self.semaphore_context.fail_all(closing)
        if not self.semaphore_context.wait_for_waiters(_left(deadline)):
            raise self._left_behind("a thread still waits for a semaphore")
        if not self.notifier.close(_left(deadline)):
            raise self._left_behind("a callback of a semaphore still runs, or waits for the thread that closes it")
        for queue in self.queues:
            queue.end_retirement()
        self.pipeline_context.cache.save()
        if not self.rundown.end(_left(deadline)):
            here = " in the call that a signal handler or callback of this thread has interrupted"
            raise self._left_behind(f"it is still used{here if self.rundown.is_inside() else ' in another thread'}")

    def finish_work(self, timeout: float | None) -> str:
        """Waits until no thread of the driver has work left. Called by ``close``, and at the end of the process.

        Returns:
            The names of the work still running after ``timeout`` seconds; empty if there is none.
        """
        deadline = deadline_after(timeout)
        for queue in self.queues:
            if self.lost is None and not self._finish(queue, _left(deadline)):
                flying = [name for queue in self.queues for name in queue.in_flight]
                more = f" and {len(flying) - 8} more" if len(flying) > 8 else ""
                return f"{', '.join(flying[:8]) or 'unnamed work'}{more}"
        # The queues have signalled, but the driver's threads may still be finishing the last submission. This returns
        # in finite time even on a lost device. A driver that is out of memory is asked again.
        for _ in range(_MOST_TRIES):
            if self.fn.vkDeviceWaitIdle(self.handle) in (VK_SUCCESS, VK_ERROR_DEVICE_LOST):
                break
            time.sleep(_PAUSE_S)
        return ""

    def _finish(self, queue: Queue, timeout: float | None) -> bool:
        """Waits for a queue; returns whether it is idle or the device is lost."""
        try:
            wait_timeline(self, queue.timeline, queue.submitted, timeout, f"{queue.name} to become idle")
        except DeadlineExceededError:
            return False
        except PumiceError:
            return True
        return True

    def _left_behind(self, reason: str) -> DeadlineExceededError:
        memory = self.allocator.statistics()
        return DeadlineExceededError(
            f"{self.name} could not be closed in time: {reason}. It refuses every use, and is left behind with "
            f"{memory.allocations} buffers and images ({memory.reserved:,} bytes of memory). Call close() again, which "
            "waits again, or end the process"
        )

    def _tear_down(self) -> None:
        """Destroys everything, when nothing uses it. May be repeated after an interrupt."""
        self.allocator.close()
        self.destroy_native()


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())
