"""Exports of the ``hal`` module about fences."""

from __future__ import annotations

import time
from typing import Final

from ....status import DeadlineExceededError, PumiceError, StatusCode, error_for
from ....vm.native.module import export
from ....vm.wait.frame import Wait
from .device_context import DeviceTable
from .fence import HalFence, check_fence, join
from .reference import Ref

_DEADLINE_EXCEEDED: Final = int(StatusCode.DEADLINE_EXCEEDED)
_DEFERRED: Final = int(StatusCode.DEFERRED)


class FenceExports(DeviceTable):
    """``hal.fence.*``."""

    @export("fence.create", "0rI_r", "0ri_r")
    def fence_create(self, device: Ref, flags: int) -> HalFence:
        """An unsignalled fence."""
        if device not in self.contexts:
            self.device_context(device)
        return HalFence(device)

    @export("fence.join", "0ICrD_r", "0CrD_r")
    def fence_join(self, *arguments: Ref) -> HalFence | None:
        """A fence that is ready when all are; null if all are null. Version 5 has no flags before the fences."""
        found = [check_fence(fence) for fence in arguments[-1] if fence is not None]
        return join(found) if found else None

    @export("fence.query", "0r_i")
    def fence_query(self, fence: Ref) -> int:
        """0 when reached, DEFERRED when not, else its failure's code."""
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

        Payloads not known to be reached are not queried first: the wait makes the same native call.
        """
        pending = []
        for fence in fences:
            if type(fence) is HalFence and fence.failure is None:
                points = fence.bound
                if points is None:
                    pending.append(fence)
                    continue
                for semaphore, value in points:
                    if semaphore.reached < value or semaphore.failure is not None:
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
