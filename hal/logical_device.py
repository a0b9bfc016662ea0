"""The part of a device that everything made from it uses."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections import deque
from typing import Protocol

from ..base.closeable import Closeable
from ..base.weak_registry import WeakRegistry
from ..status import ClosedError, PumiceError


class Closable(Protocol):
    """Something that owns native objects."""

    def close(self) -> None: ...


class Trimmable(Protocol):
    """Something that keeps free memory."""

    def trim(self) -> object: ...


class LogicalDevice(Closeable):
    """The base of ``Device`` that its buffers and semaphores use.

    Attributes:
        name: the device's name, for people.
        kind: the device's type, such as ``"cpu"``.
        uri: the URI that opens the same device again.
        staging: whether kernels' memory is not host memory, so that copies go through staging memory.
        bind_alignment: the alignment in bytes that makes an offset within memory suit every binding.
        lost: the error of a lost device, or ``None``.
        abandoned: whether this is a forked child, which must not use the device.
        caches: the caches that keep free memory; they are trimmed when an allocation fails.
        dropped: the objects that were garbage-collected without a close; finalisers only append to it.
        allocation_count: the buffers made since the device was opened, including those that programs make from kept
            memory.
        copy_count: the number of copy commands recorded since the device was opened.
    """

    name: str
    kind: str
    uri: str
    staging: bool
    bind_alignment: int
    is_closed: bool
    lost: PumiceError | None
    abandoned: bool
    caches: WeakRegistry[Trimmable]
    dropped: deque[Closable]
    allocation_count: int
    copy_count: int

    def __init__(self) -> None:
        self.is_closed = False
        self.lost: PumiceError | None = None
        self.abandoned = False
        self.caches = WeakRegistry()
        self.dropped = deque()
        self.allocation_count = 0
        self.copy_count = 0

    def check_usable(self) -> None:
        """Raises if the device was closed or lost."""
        if self.is_closed:
            raise ClosedError(f"this device ({self.name}) was closed")
        if self.lost is not None:
            raise self.lost.again()

    def close_dropped(self) -> None:
        """Closes objects that were garbage-collected without a close. The caller must hold no lock."""
        while self.dropped:
            with contextlib.suppress(IndexError):  # another thread took the last
                self.dropped.popleft().close()

    def collect_reports(self) -> None:
        """Reads the reports of instrumented shaders; called after waiting for work. It is cheap without reports."""

    @abstractmethod
    def retire(self) -> None:
        """Releases objects used by finished work."""
