"""The watchdog for ``timeout=``: ends invocations that run too long, at no prior cost.

A program may loop without end and never suspend, and a check in each iteration would slow tight loops. So one thread
keeps the deadlines of all invocations. When one passes it raises an exception *in* the thread that runs the invocation,
by ``PyThreadState_SetAsyncExc``; CPython delivers it at the next backward jump or call, like Ctrl-C. It is only raised
while that thread is in translated bytecode (seen in ``sys._current_frames``), never inside a native function, whose
waits have their own deadlines; otherwise the watchdog retries every millisecond.

A loop that mostly calls native functions is rarely seen in its own code: threads switch when a native function releases
the interpreter lock, and then the native function is seen. So from the deadline on, each cell through which the running
function's code calls imports contains a ``_Trap``, whose call raises ``Interrupted``; for calls through the stack, the
stack is full.

Calling sequence: ``guard = Guard(deadline, calls)``, ``guard.enter()``, run, ``guard.leave()``. In between the running
thread may get ``Interrupted``; not after ``leave`` has returned. Guards of one thread may be nested. Thread rule: a
guard belongs to the thread that enters it.
"""

from __future__ import annotations

import contextlib
import ctypes
import heapq
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterable
from types import CellType, CodeType, FrameType
from typing import Any, Final

from ..types import buffer, elements, float_numerics, numerics
from .bytecode_module import translated_function
from .interruption import Interrupted
from .left_frames import MACHINE_TIER

_MAX_LEFT: Final = 64
_RETRY: Final = 0.001  # seconds between looks at a thread that is past its deadline but not in translated code
# Operations that may be interrupted halfway, as they only change buffers of the program.
_OPERATIONS: Final = frozenset(
    (MACHINE_TIER, *(str(module.__file__) for module in (buffer, elements, float_numerics, numerics)))
)


def _interrupt(thread: int) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Interrupted))


def _is_interruptible(code: CodeType) -> bool:
    return translated_function(code, 0) is not None or code.co_filename in _OPERATIONS


class _Trap:
    """Replaces, in a cell, the function that the code calls through it."""

    __slots__ = ("function", "guards")

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        self.guards: list[Guard] = []

    def __call__(self, *arguments: Any) -> object:
        me = threading.get_ident()
        if any(guard.thread == me for guard in self.guards):
            raise Interrupted
        return self.function(*arguments)


class Guard:
    """One invocation's deadline, in ``time.monotonic()`` seconds.

    ``calls`` is called in the watchdog's thread after the deadline: the cells through which the running function calls.
    """

    def __init__(self, deadline: float, calls: Callable[[], Iterable[CellType]] = tuple) -> None:
        self._calls = calls
        self._trapped: list[CellType] = []
        self.is_active: bool = False
        self.is_posted: bool = False
        self.deadline = deadline
        self.thread: int = 0

    def enter(self, thread: int | None = None) -> None:
        """Arms the guard: this thread, or ``thread``, may get ``Interrupted`` until it calls ``leave``."""
        self.thread = threading.get_ident() if thread is None else thread
        self.is_active = True
        watchdog.watch(self)

    def leave(self) -> None:
        """Disarms the guard, and swallows a pending ``Interrupted``. Idempotent."""
        try:
            with watchdog.lock:
                if self.is_active:
                    self.is_active = False
                    watchdog.left += 1
                    self._calls = tuple  # the heap may keep the guard until its deadline, and with it the invocation
                self._untrap()
                self.is_posted = False
                posted = any(guard.thread == self.thread for guard in watchdog.posted)
            if posted:
                # It was already raised, or this replaces it; one of these jumps delivers it. Withdrawing it with NULL
                # would make the interpreter check for it at every jump and call forever.
                _interrupt(self.thread)
                for _ in range(16):
                    pass
        except Interrupted:
            self.is_active = False
            self.is_posted = False
            with watchdog.lock:
                self._untrap()
            watchdog.post_again(self.thread)

    def interrupt(self) -> bool:
        """Raises in the thread if it runs translated code; returns ``False`` to try again. Requires the lock."""
        if not self.is_active or self.is_posted:
            return True
        frame: FrameType | None = sys._current_frames().get(self.thread)
        if frame is None:
            return True
        self._trap()  # even in a nested invocation, whose end may swallow the exception
        if not _is_interruptible(frame.f_code):
            return False
        self.is_posted = True
        watchdog.posted.append(self)
        _interrupt(self.thread)
        return True

    def _trap(self) -> None:
        """Puts traps into the cells of the running function; called with the watchdog's lock held."""
        for cell in self._calls():
            if any(cell is trapped for trapped in self._trapped):
                continue
            content = cell.cell_contents
            trap = content if type(content) is _Trap else _Trap(content)
            trap.guards.append(self)
            cell.cell_contents = trap
            self._trapped.append(cell)

    def _untrap(self) -> None:
        for cell in self._trapped:
            trap = cell.cell_contents
            if type(trap) is _Trap:
                with contextlib.suppress(ValueError):
                    trap.guards.remove(self)
                if not trap.guards:
                    cell.cell_contents = trap.function
        self._trapped.clear()


def rebind(cell: CellType, function: Callable[..., object]) -> None:
    """Replaces the function in a cell, or the function wrapped by the cell's trap."""
    with watchdog.lock:
        content = cell.cell_contents
        if type(content) is _Trap:
            content.function = function
        else:
            cell.cell_contents = function


class _Watchdog:
    """A thread that watches deadlines; the first deadline starts it."""

    def __init__(self) -> None:
        self.lock: threading.Lock = threading.Lock()
        # Entered through its lock: an interrupt in Condition.__enter__, which is not a native function, would leave it
        # locked.
        self._wake = threading.Condition(self.lock)
        self._heap: list[tuple[float, int, Guard]] = []
        self._thread: threading.Thread | None = None
        self.left: int = 0  # guards in the heap, at most, that have ended; changed with the lock held
        self.posted: list[Guard] = []  # guards whose exception was raised, until they end; changed with the lock held

    def watch(self, guard: Guard) -> None:
        """Watches a guard."""
        with self.lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="pumice watchdog", daemon=True)
                self._thread.start()
            if self.left > _MAX_LEFT and 2 * self.left > len(self._heap):
                # Most invocations end long before their deadlines.
                self._heap = [entry for entry in self._heap if entry[2].is_active]
                heapq.heapify(self._heap)
                self.left = 0
            heapq.heappush(self._heap, (guard.deadline, next(_serials), guard))
            if self._heap[0][2] is guard:
                self._wake.notify()

    def post_again(self, thread: int) -> None:
        """Interrupts a thread again for the other guards that were due when a guard ended.

        A thread holds one asynchronous exception at a time, so the ended guard also withdrew or swallowed the
        exceptions of the others.
        """
        with self.lock:
            due = [guard for guard in self.posted if guard.is_posted and guard.thread == thread]
            self.posted = [guard for guard in self.posted if guard.is_posted and guard not in due]
            for guard in due:
                guard.is_posted = False
                heapq.heappush(self._heap, (time.monotonic(), next(_serials), guard))
            self._wake.notify()

    def _run(self) -> None:
        with self.lock:
            while True:
                while self._heap and not self._heap[0][2].is_active:
                    heapq.heappop(self._heap)
                if not self._heap:
                    self._wake.wait()
                    continue
                left = self._heap[0][0] - time.monotonic()
                if left > 0:
                    self._wake.wait(left)
                    continue
                _, serial, guard = heapq.heappop(self._heap)
                if not guard.interrupt():
                    heapq.heappush(self._heap, (time.monotonic() + _RETRY, serial, guard))


_serials: Final = itertools.count()  # keeps entries with equal deadlines in order
watchdog: Final = _Watchdog()
