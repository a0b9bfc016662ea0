"""How a thread waits for a device: it blocks, it looks again and again, or it looks for a while and then blocks.

A blocked thread is woken by the operating system, which takes from five to a few hundred microseconds; a thread that
looks goes on at once, and occupies a core. The design is in docs/design/hal.md.

A device has a mode. A call that is given another one sets it for the waits that its thread performs meanwhile.
"""

from __future__ import annotations

import os
import threading
import time
from types import TracebackType
from typing import Final, Literal, Protocol, TypeAlias, get_args

from ..status import InvalidArgumentError, shown

WaitMode: TypeAlias = Literal["adaptive", "block", "spin"]
"""``"adaptive"`` looks for as long as recent waits took, some tens of microseconds at most, and then blocks;
``"block"`` blocks at once; ``"spin"`` looks until what is waited for is there, and keeps a core busy."""

WAIT_MODES: Final[tuple[WaitMode, ...]] = get_args(WaitMode)
WAIT_VARIABLE: Final = "PUMICE_WAIT"
"""The environment variable with the mode of devices that are opened without one."""


def checked_wait_mode(mode: object, what: str = "wait") -> WaitMode:
    """The mode itself; raises InvalidArgumentError for what is none."""
    if not isinstance(mode, str) or mode not in WAIT_MODES:
        raise InvalidArgumentError(f"{what}: expected one of {', '.join(WAIT_MODES)}, got {shown(mode)}")
    return mode


def wait_mode_of_environment() -> WaitMode | None:
    """What ``PUMICE_WAIT`` says; ``None`` where it is unset or empty."""
    mode = os.environ.get(WAIT_VARIABLE)
    return checked_wait_mode(mode, f"the environment variable {WAIT_VARIABLE}") if mode else None


class Look(Protocol):
    """Looks at one counter: for how long they pay, which they learn from what they find."""

    def length(self, now: float) -> float:
        """Seconds for which to look, 0 for once; ``now`` is ``time.monotonic()``."""

    def found(self, seconds: float) -> None:
        """What was waited for came after some seconds of looking."""

    def missed(self, seconds: float) -> None:
        """It did not."""


class _Chosen(threading.local):
    mode: WaitMode | None = None


chosen: Final = _Chosen()
"""The mode that this thread's calls have chosen; ``None`` leaves it to the device."""

give_way: Final = getattr(os, "sched_yield", None) or (lambda: time.sleep(0))
"""Lets another thread have the core; returns at once if none wants it."""


class waits:
    """Has the waits of this thread performed in a mode: ``with waits("spin"): …``; ``None`` changes nothing.

    Raises:
        InvalidArgumentError: not a mode.
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
