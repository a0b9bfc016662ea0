"""The VkDevice: the part of a device that all objects made from it use.

It has the handle, functions, plan and limits. It refuses work once the device is closed or lost, destroys native
objects, and defers the destruction of closed objects until the queues no longer use it. ``Device`` (device.py) is a
logical device with memory, semaphores, command buffers and queues; the rooms below it import this file.

Thread rule: every method may be called from any thread.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from ...base.lazy_dataclass import dataclass
from ...base.locks import RLock
from ...base.rundown import Rundown, busy
from ...base.switches import switch, warn_of_misspelt
from ...hal.logical_device import LogicalDevice as AnyDevice
from ...status import ClosedError, DeviceLostError, InvalidArgumentError, PumiceError, UnavailableError
from ...waits.wait_mode import wait_mode_of_environment
from ..vulkan.functions import CData, DeviceFunctions, NativeFunction, chain, enum_value, ffi, handle_value, new
from ..vulkan.live_objects import live
from ..vulkan.results import VK_ERROR_DEVICE_LOST, VK_SUCCESS, check, error_from_result, pending_validation
from .driver import Driver, shared_driver
from .features import FeatureChain
from .plan import DevicePlan, PlanOptions, plan_device
from .profile import DeviceProfile

_numbers = itertools.count(1)


class DeviceQueue(Protocol):
    """The part of a queue that the rooms below ``submit`` use; ``Queue`` documents it."""

    timeline: CData
    completed: int

    @property
    def submitted(self) -> int: ...

    @property
    def in_flight(self) -> tuple[str, ...]: ...

    @property
    def is_idle(self) -> bool: ...

    def next_completion(self) -> int | None: ...

    def pending_signals(self, semaphore: object) -> list[tuple[int, bool]]: ...

    def retire(self) -> int: ...

    def defer(self, action: Callable[[], None]) -> None: ...

    def after_next(self, action: Callable[[], None]) -> None: ...

    def wait_idle(self, timeout: float | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class PipelineStatistic:
    """One statistic of an executable, as its driver reports it; a pipeline has one or several executables.

    Attributes:
        pipeline: the pipeline's name.
        executable, name, description: the driver's own texts.
        value: the figure, in the driver's type.
    """

    pipeline: str
    executable: str
    name: str
    value: bool | int | float
    description: str


class Reports(Protocol):
    """The part of ``ReportTable`` that the rooms below ``commands`` use; ``ReportTable`` documents it."""

    def collect(self) -> None: ...


class LogicalDevice(AnyDevice):
    """A VkDevice.

    Attributes:
        profile: the physical device's properties.
        plan: the queues, features and extensions in use, and the reasons.
        bind_limits: the alignment (as a mask) and size that every binding accepts.
        groups_max: the largest number of workgroups of one dispatch (x, y, z).
        on_lost: a function that is called once with the error of a lost device.
        reports: the reports of instrumented shaders.
        sampler_count: the number of live samplers; devices limit it.
        pipeline_statistics: the driver's statistics of each pipeline, in the order of creation; empty unless the
            plan has them.
        close_epoch: a count that increases whenever a resource is closed or the device is lost; users of resources
            check them again if it has changed. ``note_closed`` increases it.
        lock: a lock that is held while payloads are claimed, signalled from the host or submitted. Code under it takes
            no other lock and makes no callback.
        in_use: the actions that ``defer`` keeps for threads inside the guard, with the threads' locks.
        guard: the guard whose lock is held around every other use of native objects; see ``guarded``.
    """

    queues: Sequence[DeviceQueue]
    reports: Reports

    def __init__(self, driver: Driver | None, index: int | str | None, options: PlanOptions | None) -> None:
        """Makes a VkDevice; see ``Device`` for the arguments and errors."""
        super().__init__()
        self.driver: Driver = shared_driver() if driver is None else driver
        if not isinstance(index, int):
            index = self.driver.select(index)
        if not 0 <= index < len(self.driver.profiles):
            raise InvalidArgumentError(f"device index {index} is outside 0..{len(self.driver.profiles) - 1}")
        self.profile: DeviceProfile = self.driver.profiles[index]
        problems = self.profile.problems()
        if problems:
            raise UnavailableError(f"{self.profile.name} cannot be used: {'; '.join(problems)}")
        self.index = index
        self.name: str = self.profile.name
        self.kind = self.profile.device_type.name.lower()
        self.uri: str = f"vulkan://GPU-{self.profile.device_uuid}"
        warn_of_misspelt()
        options = options or PlanOptions()
        if options.staging is None:  # the path of discrete GPUs, on any device
            options = replace(options, staging=switch("PUMICE_STAGING"))
        if options.loop_guard is None:
            options = replace(options, loop_guard=switch("PUMICE_LOOP_GUARD"))
        if options.sanitize is None:
            options = replace(options, sanitize=switch("PUMICE_SANITIZE"))
        if options.repairs is None:
            options = replace(options, repairs=switch("PUMICE_REPAIRS"))
        if options.wait is None:
            options = replace(options, wait=wait_mode_of_environment())
        self.plan: DevicePlan = plan_device(self.profile, options)
        self.staging: bool = self.plan.staging
        self.device_addresses: bool = "bufferDeviceAddress" in self.plan.features
        self.validation: bool = self.driver.validation
        self.debug_utils: bool = self.driver.debug_utils
        self.physical_device: CData = self.driver.physical_devices[index]
        self.queues = ()
        self.on_lost: Callable[[PumiceError], None] | None = None
        self.close_epoch: int = 0
        self.pipeline_statistics: list[PipelineStatistic] = []
        self.sampler_count = 0
        limits = self.profile.limits
        self.bind_limits: tuple[int, int] = (
            max(limits.min_storage_buffer_offset_alignment, limits.min_uniform_buffer_offset_alignment) - 1,
            min(limits.max_storage_buffer_range, limits.max_uniform_buffer_range),
        )
        self.bind_alignment: int = self.bind_limits[0] + 1
        self.groups_max: tuple[int, int, int] = limits.max_compute_work_group_count
        self.lock: threading.RLock = RLock()
        self._owned: dict[tuple[str, int], CData] = {}
        self.pending: OrderedDict[int, None] = OrderedDict()
        self._last_pending = 0
        self._parked: deque[tuple[int, Callable[[], None]]] = deque()
        self.number: int = next(_numbers)
        self.is_destroyed = False
        self._is_sealed = False
        self.in_use: deque[tuple[list[threading.RLock], Callable[[], None]]] = deque()
        self.rundown: Rundown = Rundown()
        self.guard = self.rundown.guard
        try:
            self.driver.retain(self.number)
            self.handle: CData = self._create()
            counted = "device", self.number, 0
            live[counted] = None
            self.fn: DeviceFunctions = DeviceFunctions(self.driver.functions, self.handle, self._resolve)
        except BaseException:
            if hasattr(self, "handle"):
                self.fn = DeviceFunctions(self.driver.functions, self.handle)
                self.destroy_native()
            self.driver.release(self.number)
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
        features = FeatureChain(self.profile.version, frozenset(plan.extensions))
        # A name may occur in several structures, of which the device supports one.
        self.driver.functions.vkGetPhysicalDeviceFeatures2(
            self.physical_device, ffi.cast("VkPhysicalDeviceFeatures2 *", features.head)
        )
        features.keep(plan.features)
        info = new(
            "VkDeviceCreateInfo",
            queueCreateInfoCount=len(infos),
            pQueueCreateInfos=infos,
            enabledExtensionCount=len(plan.extensions),
            ppEnabledExtensionNames=plan.extensions,
        )
        asked = []  # features for tools; every device with their extension has them
        if plan.pipeline_statistics:
            asked.append(new("VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR", pipelineExecutableInfo=1))
        if plan.performance_counters:
            asked.append(new("VkPhysicalDevicePerformanceQueryFeaturesKHR", performanceCounterQueryPools=1))
        chained = chain(info, *asked, features.head)
        handle = ffi.new("VkDevice *")
        functions, result = self.driver.functions, VK_SUCCESS
        try:
            result = functions.vkCreateDevice(self.physical_device, chained, ffi.NULL, handle)
            check(result, f"creating a device on {self.profile.name}")
        except BaseException:  # Ctrl-C during the call is raised after it has returned
            if result >= 0 and handle[0] != ffi.NULL:  # a failed call may leave garbage there
                DeviceFunctions(functions, handle[0]).vkDestroyDevice(handle[0], ffi.NULL)
            raise
        return handle[0]

    def check(self, result: int, action: str) -> None:
        """Calls ``functions.check``, and records the loss of the device."""
        if result == VK_ERROR_DEVICE_LOST and not pending_validation:
            raise self.lose(error_from_result(result, action))
        check(result, action)

    def lose(self, cause: PumiceError) -> PumiceError:
        """Marks the device as lost, notifies every waiter, and returns the sticky error."""
        with self.lock:
            if self.lost is not None:
                return self.lost
            flying = [name for queue in self.queues for name in queue.in_flight]
            shown = ", ".join(flying[:8]) + (f" and {len(flying) - 8} more" if len(flying) > 8 else "")
            lost = self.lost = DeviceLostError(
                f"{self.profile.name} was lost ({cause.message}). In flight: {shown or 'nothing'}. Close the device "
                "and open it again; a kernel that runs too long for the driver's watchdog or reads outside its "
                "buffers is the usual cause",
                vk_result=cause.vk_result,
            )
            self.close_epoch += 1
        if self.on_lost is not None:
            self.on_lost(lost)
        return lost

    def create(self, kind: str, info: CData, noun: str = "") -> CData:
        """Returns a native object (``"semaphore"``, ``"command pool"``, …).

        ``destroy`` or the device's end destroys it.
        """
        create = getattr(self.fn, _native_names(kind)[1])
        return self.make(kind, lambda handle: create(self.handle, info, ffi.NULL, handle), noun or f"a {kind}")

    def make(self, kind: str, create: Callable[[CData], int], noun: str) -> CData:
        """Makes a native object by a call that writes it to a pointer, checks the result, and owns the object.

        Raises:
            PumiceError: the call failed, or the validation layers object; in that case the object is destroyed.
            ClosedError: the device was closed.
        """
        pointer, _, destroy = _native_names(kind)
        handle, result = ffi.new(pointer), VK_SUCCESS
        with self.guard.lock:
            self.check_not_ended()
            key = None
            try:
                result = create(handle)
                if result >= 0 and handle[0] != ffi.NULL:  # a failed call may leave garbage there
                    key = kind, handle_value(handle[0])
                    self._own(key, handle[0])
                self.check(result, f"creating {noun}")
            except BaseException:  # Ctrl-C during the call is raised after it has returned and made the object
                if key in self._owned:
                    self.destroy(kind, handle[0])
                elif result >= 0 and handle[0] != ffi.NULL:
                    getattr(self.fn, destroy)(self.handle, handle[0], ffi.NULL)
                raise
            return handle[0]

    def _resolve(self, name: CData) -> CData:
        """Looks up a function; callers also do so before they enter the guard."""
        with self.guard.lock:
            if self._is_sealed:
                raise ClosedError(f"this device ({self.name}) was closed")
            return self.driver.functions.vkGetDeviceProcAddr(self.handle, name)

    def _own(self, key: tuple[str, int], handle: CData) -> None:
        # Only assignments: both are made, or neither.
        counted = key[0], self.number, key[1]
        live[counted] = None
        self._owned[key] = handle

    def destroy(self, kind: str, handle: CData) -> None:
        """Destroys a native object made by this device, unless ``close`` has done so or will."""
        key = kind, handle_value(handle)
        destroy = getattr(self.fn, _native_names(kind)[2])
        with self.guard.lock:
            if self.rundown.is_over:
                return
            self._destroy(key, handle, destroy)

    def _destroy(self, key: tuple[str, int], handle: CData, destroy: NativeFunction) -> None:
        counted = key[0], self.number, key[1]
        try:
            del self._owned[key]  # only one of two threads continues; no interrupt comes before the next call ends
        except KeyError:
            return
        try:
            destroy(self.handle, handle, ffi.NULL)
        finally:
            live.pop(counted, None)

    def check_not_ended(self) -> None:
        """Raises ClosedError if ``close`` no longer lets uses of native objects begin. For uses inside the guard."""
        if self.rundown.is_over:
            raise ClosedError(f"this device ({self.name}) was closed")

    def set_name(self, object_type: str, handle: CData, name: str) -> None:
        """Names a native object for validation messages and tools; does nothing without VK_EXT_debug_utils."""
        if self.debug_utils and handle != ffi.NULL:
            info = new(
                "VkDebugUtilsObjectNameInfoEXT",
                objectType=enum_value("VkObjectType", object_type),
                objectHandle=handle_value(handle),
                pObjectName=name,
            )
            with self.guard.lock:
                self.check_not_ended()
                self.fn.vkSetDebugUtilsObjectNameEXT(self.handle, info)

    def destroy_native(self) -> None:
        """Destroys the remaining objects that ``make`` made, and the VkDevice; idempotent, also after an interrupt.

        No thread may be inside the guard.
        """
        for key, handle in list(self._owned.items()):
            self._destroy(key, handle, getattr(self.fn, _native_names(key[0])[2]))
        destroy, counted = self.fn.vkDestroyDevice, ("device", self.number, 0)
        self._is_sealed = True
        self.rundown.end(None)  # threads that look up a function
        if not self.is_destroyed:
            self.is_destroyed = True  # no interrupt comes before the next call ends
            try:
                destroy(self.handle, ffi.NULL)
            finally:
                live.pop(counted, None)
        self.driver.release(self.number)

    def note_closed(self) -> None:
        """Notes that a resource was closed, so that users of resources check them again."""
        with self.lock:
            self.close_epoch += 1

    def defer(self, action: Callable[[], None]) -> None:
        """Runs ``action`` once all work submitted or pending now has retired, and threads now inside the guard have
        left.
        """
        if self.abandoned:
            return
        if self.in_use:
            self._run_unused()
        inside = self.rundown.inside()
        if inside:
            self.in_use.append((inside, action))
        else:
            self._defer_unused(action)

    def _run_unused(self) -> None:
        """Defers the actions that waited for threads inside the guard, once these threads have left it."""
        for _ in range(len(self.in_use)):
            try:
                inside, action = self.in_use.popleft()
            except IndexError:  # another thread took the last
                return
            left = busy(inside)
            if left:
                self.in_use.append((left, action))
            else:
                self._defer_unused(action)

    def _defer_unused(self, action: Callable[[], None]) -> None:
        """Runs ``action`` once all work submitted or pending now has retired."""
        with self.lock:
            if self.pending:
                self._parked.append((self._last_pending, action))
                return
        self._defer_submitted(action, self.queues)

    def _defer_submitted(self, action: Callable[[], None], queues: Sequence[DeviceQueue]) -> None:
        """Runs ``action`` once each queue has retired the work submitted to it so far."""
        for index, queue in enumerate(queues):
            if not queue.is_idle:
                queue.defer(functools.partial(self._defer_submitted, action, queues[index + 1 :]))
                return
        action()

    @property
    def held(self) -> int:
        """Pending submissions: those in preparation, and those held back on the host."""
        return len(self.pending)

    def begin_pending(self) -> int:
        """Keeps objects that are closed from now on for a submission. Returns its serial; the caller holds the lock."""
        self._last_pending += 1
        self.pending[self._last_pending] = None
        return self._last_pending

    def end_pending(self, serial: int) -> None:
        """Ends a pending submission, which was noted or dropped; may be repeated after an interrupt."""
        while True:
            with self.lock:
                self.pending.pop(serial, None)
                # The oldest pending submission does not use objects closed before it began.
                oldest = next(iter(self.pending), None)
                if not self._parked or (oldest is not None and self._parked[0][0] >= oldest):
                    return
                action = self._parked.popleft()[1]
            self._defer_submitted(action, self.queues)

    def collect_reports(self) -> None:
        self.reports.collect()

    def retire(self) -> None:
        self.close_dropped()
        if self.in_use:
            self._run_unused()
        for queue in self.queues:
            queue.retire()

    def abandon(self, error: PumiceError) -> None:
        self.abandoned = True
        self.lost: PumiceError | None = error
        self.close_epoch += 1
        self.lock = RLock()

    def __repr__(self) -> str:
        state = "closed " if self.is_closed else "lost " if self.lost is not None else ""
        return f"<{state}Device {self.index}: {self.profile.name} ({self.profile.device_type.name.lower()})>"


class _OfDevice(Protocol):
    @property
    def device(self) -> LogicalDevice: ...


_Owner = TypeVar("_Owner", bound=_OfDevice)
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def guarded(
    method: Callable[Concatenate[_Owner, _Arguments], _Result],
) -> Callable[Concatenate[_Owner, _Arguments], _Result]:
    """Makes a method a use of its device's native objects: it checks and calls inside the device's guard.

    ``close`` waits for such uses before it tears down, and later uses get ClosedError; objects closed during a use are
    kept until it ends. The method must not wait for other threads, or for work of the device.
    """

    @functools.wraps(method)
    def use(owner: _Owner, /, *arguments: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        device = owner.device
        with device.guard.lock:
            if device.rundown.is_over:
                device.check_not_ended()
            return method(owner, *arguments, **options)

    return use


@functools.cache
def _native_names(kind: str) -> tuple[str, str, str]:
    """Returns the pointer type for native objects of a kind, and the functions that create and destroy one."""
    name = kind.title().replace(" ", "").replace("Khr", "KHR")
    return f"Vk{name} *", f"vkCreate{name}", f"vkDestroy{name}"
