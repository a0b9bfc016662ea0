"""Rundown: uses are waited for, later ones refused, and nothing is counted that an interrupt could lose."""

from __future__ import annotations

import gc
import threading
import time

from support.interrupts import interrupt_at
from support.waiting import Blocked, until

from pumice.base.rundown import Rundown, busy


def test_end_waits_for_the_threads_inside() -> None:
    rundown, leave = Rundown(), threading.Event()
    seen: list[bool] = []

    def use() -> None:
        with rundown.guard.lock:
            seen.append(rundown.is_over)
            with rundown.guard.lock:  # nested
                leave.wait(20)

    blocked = Blocked(use)
    until(lambda: bool(rundown.inside()))
    assert not rundown.is_inside() and not rundown.end(0.05)
    assert rundown.is_over  # from the first call on
    ending = Blocked(lambda: rundown.end(None))
    time.sleep(0.02)
    assert not ending.ended
    leave.set()
    ending.join()
    blocked.join()
    assert ending.result is True and seen == [False] and rundown.end(0)


def test_a_thread_does_not_wait_for_itself() -> None:
    rundown = Rundown()
    with rundown.guard.lock:
        assert rundown.is_inside() and len(rundown.inside()) == 1
        start = time.monotonic()
        assert not rundown.end(20)
        assert time.monotonic() - start < 5
    assert rundown.end(0)


def test_locks_of_threads_that_ended_are_dropped() -> None:
    rundown = Rundown()

    def use() -> None:
        with rundown.guard.lock:
            pass

    for _ in range(50):
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
    gc.collect()
    assert len(rundown._locks) < 10 and not rundown.inside()


def test_busy_locks_are_those_that_are_held() -> None:
    free, held = threading.RLock(), threading.RLock()
    with held:
        assert busy([free, held]) == [held]
    assert busy([free, held]) == []


def test_ctrl_c_at_any_point_leaves_nobody_inside() -> None:
    number = 0
    while True:
        number += 1
        rundown = Rundown()

        def use(rundown: Rundown = rundown) -> None:
            for _ in range(2):
                with rundown.guard.lock:
                    len([])

        try:
            if not interrupt_at(number, use, lambda path: path.endswith(("/rundown.py", "test_rundown.py"))):
                break
        except KeyboardInterrupt:
            pass
        assert rundown.end(0)
    assert number > 5
