"""Bare timeline semaphores, as queues and the notifier use them."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

from ...hal.timeouts import timeout_nanoseconds
from ...status import DeadlineExceededError
from ...waits.wait_mode import give_way
from ..instance.logical_device import LogicalDevice
from ..vulkan.functions import CData, chain, ffi, new, words_of
from ..vulkan.results import VK_SUCCESS, VK_TIMEOUT

# Ctrl-C cannot interrupt a native wait, so long waits are split into slices of this length.
SLICE_NS: Final = 250_000_000


class WaitInfo:
    """A VkSemaphoreWaitInfo for one semaphore at a time."""

    __slots__ = ("counter", "handle", "info", "semaphores", "values")

    def __init__(self, handle: CData = ffi.NULL) -> None:
        self.handle: CData = handle
        self.semaphores: CData = ffi.new("VkSemaphore[1]", [handle])
        values = ffi.new("uint64_t[1]")
        self.values: memoryview[int] = words_of(values)
        self.counter: CData = ffi.new("uint64_t *")  # for polling
        self.info: CData = new("VkSemaphoreWaitInfo", semaphoreCount=1, pSemaphores=self.semaphores, pValues=values)


def create_timeline(device: LogicalDevice, name: str | None, initial_value: int = 0) -> CData:
    """Creates a VkSemaphore of timeline type, which ``device.destroy("semaphore", …)`` destroys."""
    kind = new("VkSemaphoreTypeCreateInfo", semaphoreType=1, initialValue=initial_value)  # TIMELINE
    handle = device.create("semaphore", chain(new("VkSemaphoreCreateInfo"), kind), name or "")
    if name:
        device.set_name("VK_OBJECT_TYPE_SEMAPHORE", handle, name)
    return handle


def poll(device: LogicalDevice, wait: WaitInfo, value: int, until: float, check: Callable[[], None]) -> float:
    """Polls a payload until it reaches ``value`` or ``monotonic()`` reaches ``until``; returns the time then.

    ``wait.counter`` holds the payload then. ``check`` is called between polls, and may raise.
    """
    query, owner, handle, counter = device.fn.vkGetSemaphoreCounterValue, device.handle, wait.handle, wait.counter
    while True:
        result = query(owner, handle, counter)
        if result:
            device.check(result, "polling a semaphore")
        now = monotonic()
        if counter[0] >= value or now >= until:
            return now
        check()
        give_way()


def block(
    device: LogicalDevice, wait: WaitInfo, value: int, timeout: float | None, subject: str, check: Callable[[], None]
) -> bool:
    """Sleeps until a payload is at ``value``; ``False`` after ``timeout`` seconds.

    ``check`` is called at least every ``SLICE_NS``, and may raise.
    """
    wait.values[0] = value
    remaining = -1 if timeout is None else timeout_nanoseconds(timeout)
    while True:
        step = SLICE_NS if remaining < 0 or remaining > SLICE_NS else remaining
        with device.guard.lock:
            device.check_not_ended()
            result = device.fn.vkWaitSemaphores(device.handle, wait.info, step)
        if result == VK_SUCCESS:
            return True
        if result != VK_TIMEOUT:
            device.check(result, f"waiting for {subject}")
        check()
        if remaining >= 0:
            remaining -= step
            if remaining <= 0:
                return False


def wait_timeline(device: LogicalDevice, handle: CData, value: int, timeout: float | None, subject: str) -> None:
    """Blocks until a timeline semaphore is at ``value``; DeadlineExceededError after ``timeout`` seconds."""
    if not block(device, WaitInfo(handle), value, timeout, subject, lambda: None):
        raise DeadlineExceededError(f"waited {timeout} s for {subject}")
