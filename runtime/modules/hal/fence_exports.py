"""Exports of the ``hal`` module about fences."""

from __future__ import annotations

import time
from typing import Final

from ....hal.programs.checks import Ref
from ....hal.programs.device_context import DeviceTable
from ....hal.programs.fence import HalFence, check_fence, fail_with, join, status_of
from ....status import DeadlineExceededError, PumiceError, StatusCode
from ....vm.native.module import export
from ....waits.wait_frame import Wait, step_mode

_DEADLINE_EXCEEDED: Final = int(StatusCode.DEADLINE_EXCEEDED)


class FenceExports(DeviceTable):
    """``hal.fence.*``."""

    @export("fence.create", "0rI_r", "0ri_r")
    def fence_create(self, device: Ref, flags: int) -> HalFence:
        """Returns an unsignalled fence."""
        if device not in self.contexts:
            self.device_context(device)
        return HalFence(device)

    @export("fence.join", "0ICrD_r", "0CrD_r")
    def fence_join(self, *arguments: Ref) -> HalFence | None:
        """Returns a fence that is ready when all fences are; null if all are null. Version 5 has no flags argument."""
        fences: tuple[Ref, ...] = arguments[-1]
        return None if fences.count(None) == len(fences) else join(fences)

    @export("fence.query", "0r_i")
    def fence_query(self, fence: Ref) -> int:
        """Returns 0 if reached, DEFERRED if not, else its failure's code."""
        return status_of(check_fence(fence))

    @export("fence.signal", "0r_v")
    def fence_signal(self, fence: Ref) -> None:
        """Signals from the host."""
        check_fence(fence).signal()

    @export("fence.fail", "0ri_v")
    def fence_fail(self, fence: Ref, code: int) -> None:
        """Fails with a status code."""
        fail_with(check_fence(fence), code)

    @export("fence.await", "0iICrD_i", suspends=True)
    def fence_await(self, timeout: int, flags: int, fences: tuple[Ref, ...]) -> int | Wait:
        """Returns 0 once all are reached; DEADLINE_EXCEEDED after ``timeout`` ms (-1: never).

        Raises the failure of a failed fence.

        Payloads not known to be reached are not queried first, as the wait makes the same native call.
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
        on_wait = step_mode.on_wait
        if on_wait != "suspend" and len(pending) == 1:
            if on_wait == "block" and timeout == -1:
                pending[0].wait_until()
                return 0
            if on_wait == "ask" and pending[0].query():
                step_mode.on_wait = "suspend"  # at the next wait other invocations get their turn
                return 0
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
