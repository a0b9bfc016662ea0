"""The time that the threads of processes, including a driver's workers, have waited for a core.

Source: Documentation/scheduler/sched-stats.rst of Linux, ``/proc/<pid>/task/<tid>/schedstat``. Other systems have no
such figures.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from ...base.closeable import Closeable

_PROC: Final = Path("/proc")

ThreadTimes = Mapping[str, tuple[int, int]]
"""Nanoseconds of waiting for a core and of running, by thread."""


class ThreadDelays(Closeable):
    """The time that threads of processes have waited for a core and run; ``processes`` returns process ids, by default
    this process's.

    A reading covers the threads that ``refresh`` found. One thread at a time.
    """

    def __init__(self, processes: Callable[[], Iterable[int | str]] = lambda: ("self",)) -> None:
        self._processes = processes
        self._files: dict[str, int] = {}
        self.refresh()

    def refresh(self) -> None:
        """Finds the current processes and threads."""
        tasks: dict[str, Path] = {}
        for process in self._processes():
            with contextlib.suppress(OSError):  # ended, or the system has no such files
                tasks |= {task.name: task for task in (_PROC / str(process) / "task").iterdir()}
        for gone in self._files.keys() - tasks.keys():
            os.close(self._files.pop(gone))
        for name in tasks.keys() - self._files.keys():
            with contextlib.suppress(OSError):  # ended, or the kernel does not count
                self._files[name] = os.open(tasks[name] / "schedstat", os.O_RDONLY)

    def read(self) -> ThreadTimes:
        """Returns the nanoseconds of waiting and running by thread; empty if the system does not report them."""
        times = {}
        for name, file in self._files.items():
            with contextlib.suppress(OSError, ValueError, IndexError):  # ended in between
                ran, waited = os.pread(file, 64, 0).split()[:2]
                times[name] = int(waited), int(ran)
        return times

    def close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])


def since(before: ThreadTimes, after: ThreadTimes) -> tuple[int, int] | None:
    """Returns the nanoseconds of waiting and of running between two readings.

    ``None`` if the system does not report them.
    """
    if not after:
        return None
    pairs = [(before.get(name, (0, 0)), now) for name, now in after.items()]
    return sum(now[0] - then[0] for then, now in pairs), sum(now[1] - then[1] for then, now in pairs)
