"""Notifications: called once or cancelled once, alone and for several sources together."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable

import pytest

from pumice.status import DataLossError, InvalidArgumentError, PumiceError
from pumice.waits.notification import Callback, Cancellable, JointNotification, Notification


class Source:
    """Keeps its notifications, to be called by a test."""

    def __init__(self, *, ready: bool = False) -> None:
        self.ready = ready
        self.armed: list[Notification] = []

    def notify(self, callback: Callback) -> Cancellable:
        self.armed.append(Notification(callback))
        if self.ready:
            self.armed[-1].call()
        return self.armed[-1]

    def call(self, error: PumiceError | None = None) -> None:
        for one in self.armed:
            one.call(error)

    @property
    def is_armed(self) -> bool:
        return not all(one.is_done for one in self.armed)


def joint(
    told: Callable[[PumiceError | None], None], *sources: Source, missing: int | None = None
) -> JointNotification:
    notification = JointNotification(told, len(sources) if missing is None else missing)
    notification.arm(sources)
    return notification


def test_it_is_called_once() -> None:
    told: list[PumiceError | None] = []
    notification, error = Notification(told.append), DataLossError("x")
    assert isinstance(notification, Cancellable) and not notification.is_done
    notification.call(error)
    notification.call()
    assert told == [error] and notification.is_done and not notification.cancel()


def test_it_is_cancelled_once() -> None:
    cancelled: list[bool] = []

    class Mine(Notification):
        def _ended(self, *, is_cancelled: bool) -> None:
            cancelled.append(is_cancelled)

    told: list[PumiceError | None] = []
    notification = Mine(told.append)
    assert notification.cancel() and not notification.cancel() and notification.is_done
    notification.call()
    assert told == [] and cancelled == [True]
    called = Mine(told.append)
    called.call()
    assert not called.cancel() and cancelled == [True, False]


def test_a_callback_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "pumice.waits.notification"):
        Notification(lambda _: 1 // 0).call()
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError]

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Notification(interrupt).call()


def test_called_or_cancelled_whatever_races() -> None:
    calls: Counter[int] = Counter()
    cancelled: Counter[int] = Counter()
    notifications = [Notification(lambda _, i=i: calls.update((i,))) for i in range(2000)]  # type: ignore[misc]
    start = threading.Barrier(4)

    def work(cancel: bool) -> None:
        start.wait()
        for index, one in enumerate(notifications):
            if not cancel:
                one.call()
            elif one.cancel():
                cancelled[index] += 1

    threads = [threading.Thread(target=work, args=(index % 2 == 0,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(calls) | set(cancelled) == set(range(2000)) and not set(calls) & set(cancelled)
    assert {*calls.values(), *cancelled.values()} == {1}


def test_all_of_several() -> None:
    told: list[PumiceError | None] = []
    sources = [Source() for _ in range(3)]
    notification = joint(told.append, *sources)
    sources[1].call()
    sources[0].call()
    assert told == []
    sources[2].call()
    assert told == [None] and not notification.cancel()


@pytest.mark.parametrize("error", [None, DataLossError("x")])
def test_one_is_enough(error: PumiceError | None) -> None:
    """With ``missing=1``, and for a failure always; the others are disarmed before the callback comes."""
    sources = [Source() for _ in range(3)]
    told: list[tuple[PumiceError | None, bool]] = []
    joint(
        lambda outcome: told.append((outcome, any(one.is_armed for one in sources))),
        *sources,
        missing=1 if error is None else 3,
    )
    sources[1].call(error)
    assert told == [(error, False)]


def test_of_none_it_comes_at_once() -> None:
    told: list[PumiceError | None] = []
    joint(told.append)
    joint(told.append, missing=1)
    assert told == [None, None]


def test_what_is_ready_at_once_leaves_the_others_alone() -> None:
    told: list[PumiceError | None] = []
    first, second, third = Source(), Source(ready=True), Source()
    joint(told.append, first, second, third, missing=1)
    assert told == [None] and first.armed and not first.is_armed and not third.armed


def test_a_callback_that_raises_leaves_nothing_armed(caplog: pytest.LogCaptureFixture) -> None:
    sources = [Source() for _ in range(3)]
    joint(lambda _: 1 // 0, *sources)
    sources[0].call(DataLossError("x"))
    assert not any(one.is_armed for one in sources) and "ZeroDivisionError" in caplog.text


def test_cancelling_disarms_every_source() -> None:
    told: list[PumiceError | None] = []
    sources = [Source() for _ in range(3)]
    notification = joint(told.append, *sources)
    sources[0].call()
    assert notification.cancel() and not notification.cancel()
    assert not any(one.is_armed for one in sources)
    for one in sources:
        one.call()
    assert told == []


def test_a_source_that_cannot_be_armed_disarms_the_others() -> None:
    class Broken(Source):
        def notify(self, callback: Callback) -> Cancellable:
            raise ValueError("mine")

    class Nothing(Source):
        def notify(self, callback: Callback) -> Cancellable:
            return None  # type: ignore[return-value]

    told: list[PumiceError | None] = []
    good = Source()
    with pytest.raises(ValueError, match="mine"):
        joint(told.append, good, Broken())
    with pytest.raises(
        InvalidArgumentError, match=r"Nothing.notify returned NoneType; it returns an object with cancel"
    ):
        joint(told.append, good, Nothing())
    assert len(good.armed) == 2 and not good.is_armed and told == []
