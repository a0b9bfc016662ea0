"""The work that an array waits for, noted by threads in any order."""

from __future__ import annotations

import threading

import pytest

from pumice.runtime.arrays.uses import Uses, note_uses
from pumice.status import DataLossError


class Fence:
    """A program's fence, reached or failed as the test sets it."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.is_reached = False

    def query(self) -> bool:
        if self.error is not None:
            raise self.error
        return self.is_reached

    def wait_until(self, deadline: object = None) -> None:
        if self.error is not None:
            raise self.error


class Array:
    """An array for ``note_uses``."""

    def __init__(self) -> None:
        self.uses = Uses(threading.Lock())


def test_the_latest_payload_stays() -> None:
    uses = Uses(threading.Lock())
    uses.note(5, written=True)
    uses.note(7, written=False)
    uses.note(3, written=True)
    assert (uses.ready, uses.last) == (5, 7)
    uses.forget_write(3)
    assert uses.ready == 5
    uses.forget_write(5)
    assert (uses.ready, uses.last) == (0, 7)


def test_a_submission_is_noted_in_all_of_its_arrays() -> None:
    arrays = [Array() for _ in range(3)]
    arrays[2].uses.note(9, written=True)
    note_uses(threading.Lock(), arrays, (1, 2), 4)
    assert [(array.uses.ready, array.uses.last) for array in arrays] == [(0, 4), (4, 4), (9, 9)]


def test_fences_of_parts_add_up_until_they_are_reached() -> None:
    uses, first, second, failed = Uses(threading.Lock()), Fence(), Fence(), Fence(DataLossError("lost"))
    for fence in (first, failed):
        uses.add_fence(fence)  # type: ignore[arg-type]
    assert uses.fences == (first, failed)
    first.is_reached = True
    uses.add_fence(second)  # type: ignore[arg-type]
    assert uses.fences == (failed, second)
    with pytest.raises(DataLossError):
        uses.wait_for_fences(None)
    uses.settle_fences()
    assert uses.fences == ()
    assert uses.wait_for_fences(1.0) is not None
