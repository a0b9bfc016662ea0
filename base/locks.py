"""Reentrant locks that an interrupted ``with`` leaves as they were.

Up to Python 3.13, ``with lock:`` takes a lock and enters the block in one step. Python 3.14 looks for signals in
between, so that Ctrl-C there leaves the lock taken for ever. It also looks after each call of a C function.
"""

from __future__ import annotations

import _thread
import sys

__all__ = ["RLock"]

if sys.version_info >= (3, 14):

    class RLock(_thread.RLock):
        """``threading.RLock`` whose ``with`` block is entered with the lock, or not at all."""

        __slots__ = ()

        def __enter__(self) -> bool:
            depth = self._recursion_count()
            try:
                return self.acquire()
            except BaseException:  # of a signal's handler, before or after it was taken
                if self._recursion_count() > depth:
                    self.release()
                raise

else:
    RLock = _thread.RLock
