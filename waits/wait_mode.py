"""Modes of waiting for a device: to block, to poll, or to poll for a while and then block.

A blocked thread is woken by the operating system, which takes from five to a few hundred microseconds. A polling thread
continues immediately, but occupies a core. The design is in docs/design/hal.md.

A device has a mode. A call with another mode sets it for its thread's waits during the call.
"""

from __future__ import annotations

import os
import threading
import time
from types import TracebackType
from typing import Final, Literal, Protocol, TypeAlias, get_args

from ..status import InvalidArgumentError, shown

WaitMode: TypeAlias = Literal["adaptive", "block", "spin"]
"""``"adaptive"`` polls for as long as recent waits took, some tens of microseconds at most, and then blocks;
``"block"`` blocks at once; ``"spin"`` polls until the wait is over, and keeps a core busy."""

WAIT_MODES: Final[tuple[WaitMode, ...]] = get_args(WaitMode)
WAIT_VARIABLE: Final = "PUMICE_WAIT"
"""The environment variable with the mode of devices opened without a mode."""


def checked_wait_mode(mode: object, where: str = "wait") -> WaitMode:
    """Returns the mode itself; raises InvalidArgumentError for other values."""
    if not isinstance(mode, str) or mode not in WAIT_MODES:
        raise InvalidArgumentError(f"{where}: expected one of {', '.join(WAIT_MODES)}, got {shown(mode)}")
    return mode


def wait_mode_of_environment() -> WaitMode | None:
    """Returns the mode in ``PUMICE_WAIT``; ``None`` if it is unset or empty."""
    mode = os.environ.get(WAIT_VARIABLE)
    return checked_wait_mode(mode, f"the environment variable {WAIT_VARIABLE}") if mode else None


class Look(Protocol):
    """A *look*: polling a counter before blocking. It learns the polling time from its successes."""

    def length(self, now: float) -> float:
        """Returns the seconds to poll, 0 for a single query; ``now`` is ``time.monotonic()``."""

    def found(self, seconds: float) -> None:
        """Notes that the wait ended after some seconds of polling."""

    def missed(self, seconds: float) -> None:
        """Notes that some seconds of polling were unsuccessful."""


class _Chosen(threading.local):
    mode: WaitMode | None = None


chosen: Final = _Chosen()
"""The mode chosen by this thread's calls; ``None`` means the device's mode."""

give_way: Final = getattr(os, "sched_yield", None) or (lambda: time.sleep(0))
"""Yields the core to another thread; returns immediately if no thread wants it."""


class waits:
    """Sets the mode of this thread's waits: ``with waits("spin"): …``; ``None`` changes nothing.

    Raises:
        InvalidArgumentError: the text is no wait mode.
    """

    __slots__ = ("_before", "_mode")

    def __init__(self, mode: WaitMode | None) -> None:
        self._mode = None if mode is None else checked_wait_mode(mode)
        self._before: WaitMode | None = None

    def __enter__(self) -> None:
        self._before = chosen.mode
        if self._mode is not None:
            chosen.mode = self._mode

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        chosen.mode = self._before
