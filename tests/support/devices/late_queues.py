"""Logical queues, and a family for copies, of a driver that has one queue: their work comes late, in any order.

Each queue has a thread that keeps copies of submissions. It submits one to the driver's queue once what that waits for
has come, after a pause of random length. So queues overtake each other, signals come late, and what was destroyed or
recorded anew too early is used after that, which the validation layers tell.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from typing import Any, Final

import pytest

from pumice.hal_vulkan.vulkan.functions import NULL, CData, _Functions, chain, ffi, handle_value, new

__all__ = ["LateQueues", "make_late"]

_SLICE_NS: Final = 50_000_000
_TRANSFER: Final = 0x4  # VK_QUEUE_TRANSFER_BIT
_FIRST: Final = 0x7000_0000_0000  # a handle that no driver has


class LateQueues:
    """The queues of the devices that a test opens; ``count`` in each family, and in one more that only copies.

    Attributes:
        errors: results of late submissions that failed.
        overtaken: how often a submission came before one that another queue had got earlier.
    """

    def __init__(self, count: int, longest: float, seed: int) -> None:
        self.count = count
        self.longest = longest
        self.errors: list[int] = []
        self.overtaken = 0
        self.random: random.Random = random.Random(seed)
        self.lock: threading.Lock = threading.Lock()  # around the driver's queue
        self._queues: dict[int, _LateQueue] = {}
        self._number = 0
        self._last = 0
        self._copies = 0  # the family that only copies

    def replace(self, functions: _Functions, name: str, real: Any) -> Any:
        """Returns the function to call for a native one."""
        make = getattr(self, f"_{name}", None)
        return real if make is None else make(functions, real)

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def submitted(self, number: int) -> None:
        self.overtaken += number < self._last
        self._last = max(self._last, number)

    def _vkGetPhysicalDeviceQueueFamilyProperties2(self, functions: _Functions, real: Any) -> Any:
        def call(physical: CData, count: CData, items: CData) -> None:
            real(physical, count, NULL)
            self._copies = count[0]
            if items != NULL:
                real(physical, count, items)
                for index in range(count[0] + 1):
                    items[index].queueFamilyProperties.queueCount = self.count
                added = items[count[0]].queueFamilyProperties
                added.queueFlags = _TRANSFER
            count[0] += 1

        return call

    def _vkCreateDevice(self, functions: _Functions, real: Any) -> Any:
        def call(physical: CData, info: CData, allocator: CData, handle: CData) -> int:
            infos = ffi.cast("VkDeviceQueueCreateInfo *", info.pQueueCreateInfos)
            for index in range(info.queueCreateInfoCount):
                infos[index].queueCount = 1
            if infos[info.queueCreateInfoCount - 1].queueFamilyIndex == self._copies:
                info.queueCreateInfoCount -= 1
            return int(real(physical, info, allocator, handle))

        return call

    def _vkGetDeviceQueue(self, functions: _Functions, real: Any) -> Any:
        def call(device: CData, family: int, index: int, handle: CData) -> None:
            real(device, family % self._copies, 0, handle)
            number = _FIRST + 16 * len(self._queues)
            self._queues[number] = _LateQueue(self, functions, device, handle[0])
            handle[0] = ffi.cast("VkQueue", number)

        return call

    def _vkCreateCommandPool(self, functions: _Functions, real: Any) -> Any:
        def call(device: CData, info: CData, allocator: CData, handle: CData) -> int:
            info.queueFamilyIndex %= self._copies
            return int(real(device, info, allocator, handle))

        return call

    def _vkCreateBuffer(self, functions: _Functions, real: Any) -> Any:
        def call(device: CData, info: CData, allocator: CData, handle: CData) -> int:
            info.sharingMode = info.queueFamilyIndexCount = 0  # the families are one
            return int(real(device, info, allocator, handle))

        return call

    _vkCreateImage = _vkCreateBuffer

    def _vkSetDebugUtilsObjectNameEXT(self, functions: _Functions, real: Any) -> Any:
        return lambda device, info: 0 if info.objectHandle in self._queues else real(device, info)

    def _vkQueueSubmit(self, functions: _Functions, real: Any) -> Any:
        def call(queue: CData, count: int, info: CData, fence: CData) -> int:
            late = self._queues[handle_value(queue)]
            if fence != NULL:  # the driver's self-test
                with self.lock:
                    return int(real(late.handle, count, info, fence))
            assert count == 1
            late.add(real, info)
            return 0

        return call

    def _vkQueueWaitIdle(self, functions: _Functions, real: Any) -> Any:
        def call(queue: CData) -> int:
            late = self._queues[handle_value(queue)]
            late.drain()
            with self.lock:
                return int(real(late.handle))

        return call

    def _vkDeviceWaitIdle(self, functions: _Functions, real: Any) -> Any:
        def call(device: CData) -> int:
            for queue in self._of(device):
                queue.drain()
            with self.lock:
                return int(real(device))

        return call

    def _vkDestroyDevice(self, functions: _Functions, real: Any) -> Any:
        def call(device: CData, allocator: CData) -> None:
            for queue in self._of(device):
                queue.end()
            real(device, allocator)

        return call

    def _of(self, device: CData) -> list[_LateQueue]:
        return [queue for queue in self._queues.values() if queue.device == device]


class _LateQueue:
    """A logical queue, with the thread that submits its work."""

    def __init__(self, owner: LateQueues, functions: _Functions, device: CData, handle: CData) -> None:
        self.owner = owner
        self.device = device
        self.handle = handle
        self._wait = functions.vkWaitSemaphores
        self._work: deque[tuple[int, Any, CData]] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def add(self, submit: Any, info: CData) -> None:
        copied = _copied(info)
        with self._changed:
            self._work.append((self.owner.next_number(), submit, copied))
            self._changed.notify_all()

    def drain(self) -> None:
        """Returns when all that was added has been submitted."""
        with self._changed:
            self._changed.wait_for(lambda: not self._work)

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        owner = self.owner
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._work or self._ended)
                if not self._work:
                    return
                number, submit, info = self._work[0]
            if info.waitSemaphoreCount:
                values = ffi.cast("VkTimelineSemaphoreSubmitInfo *", info.pNext).pWaitSemaphoreValues
                wait = new("VkSemaphoreWaitInfo", semaphoreCount=info.waitSemaphoreCount)
                wait.pSemaphores, wait.pValues = info.pWaitSemaphores, values
                while self._wait(self.device, wait, _SLICE_NS):
                    pass
            time.sleep(owner.random.random() ** 3 * owner.longest)
            with owner.lock:
                owner.submitted(number)
                result = int(submit(self.handle, 1, info, NULL))
            if result:
                owner.errors.append(result)
            with self._changed:
                self._work.popleft()
                self._changed.notify_all()


def _copied(info: CData) -> CData:
    timeline = ffi.cast("VkTimelineSemaphoreSubmitInfo *", info.pNext)
    assert timeline.sType == new("VkTimelineSemaphoreSubmitInfo").sType and timeline.pNext == NULL
    waits, signals = info.waitSemaphoreCount, info.signalSemaphoreCount
    return chain(
        new(
            "VkSubmitInfo",
            waitSemaphoreCount=waits,
            pWaitSemaphores=[info.pWaitSemaphores[index] for index in range(waits)],
            pWaitDstStageMask=[info.pWaitDstStageMask[index] for index in range(waits)],
            commandBufferCount=info.commandBufferCount,
            pCommandBuffers=[info.pCommandBuffers[index] for index in range(info.commandBufferCount)],
            signalSemaphoreCount=signals,
            pSignalSemaphores=[info.pSignalSemaphores[index] for index in range(signals)],
        ),
        new(
            "VkTimelineSemaphoreSubmitInfo",
            waitSemaphoreValueCount=waits,
            pWaitSemaphoreValues=[timeline.pWaitSemaphoreValues[index] for index in range(waits)],
            signalSemaphoreValueCount=signals,
            pSignalSemaphoreValues=[timeline.pSignalSemaphoreValues[index] for index in range(signals)],
        ),
    )


def make_late(monkeypatch: pytest.MonkeyPatch, count: int = 1, longest: float = 0.003, seed: int = 0) -> LateQueues:
    """Makes the work of drivers late that are opened from now on.

    Args:
        monkeypatch: undoes it.
        count: queues in each family.
        longest: pause in seconds before a submission; most are much shorter.
        seed: of the pauses.
    """
    late, resolve = LateQueues(count, longest, seed), _Functions.__getattr__

    def resolve_late(self: _Functions, name: str) -> Any:
        function = late.replace(self, name, resolve(self, name))
        setattr(self, name, function)
        return function

    monkeypatch.setattr(_Functions, "__getattr__", resolve_late)
    return late
