"""Sessions of several threads that come and go, profiles and failed calls leave nothing behind."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.flat import hold_flat
from support.soak import SOAK

import pumice

pytestmark = [pytest.mark.vulkan, pytest.mark.sample(2)]

_CALLS = 25_000 if SOAK else 300
DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.vmfb"
PICTURE = np.zeros((1, 28, 28, 1), np.float32)


def _hold_flat(device: pumice.Device, call: Callable[[int], object], calls: int) -> None:
    def block() -> None:
        for step in range(calls):
            call(step)

    def idle() -> None:
        device.hal.wait_idle()
        device.hal.trim()

    hold_flat(block, idle)


def test_three_threads_with_sessions_that_come_and_go() -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with pumice.Session(device) as session:
                session.load(DIGITS)
                session.call("module.classify", PICTURE)
        except BaseException as error:
            failures.append(error)

    def round_of_three(step: int) -> None:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []

    with pumice.open_device() as device:
        _hold_flat(device, round_of_three, 400 if SOAK else 25)


def test_profiles() -> None:
    with pumice.open_device() as device, pumice.Session(device) as session:
        session.load(DIGITS)

        def call(step: int) -> None:
            with session.profile() as profile:
                session.call("module.classify", PICTURE)
            if step % 10 == 0:
                assert len(profile.calls) == 1
                profile.as_dict()

        _hold_flat(device, call, _CALLS // 3)


def test_calls_that_fail() -> None:
    with pumice.open_device() as device, pumice.Session(device) as session:
        session.load(DIGITS)
        classify = session.lookup("module.classify")
        closed = device.asarray(PICTURE)
        closed.close()
        failing: list[Callable[[], object]] = [
            lambda: classify(PICTURE[0]),
            lambda: classify(closed),
            lambda: classify(),
            lambda: classify("x"),
            lambda: session.call("module.classif", PICTURE),
            lambda: classify.submit(PICTURE[0]).result(),
        ]
        late: list[Callable[[], object]] = [
            lambda: classify(PICTURE, timeout=0),
            lambda: classify.submit(PICTURE, timeout=0).result(),
        ]

        def call(step: int) -> None:
            with contextlib.suppress(pumice.PumiceError):
                failing[step % len(failing)]()
                pytest.fail("did not fail")
            with contextlib.suppress(pumice.DeadlineExceededError):
                late[step % len(late)]()

        _hold_flat(device, call, _CALLS)
