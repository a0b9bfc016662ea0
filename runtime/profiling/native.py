"""Native functions of programs, timed: while a profile runs, a wrapper replaces each import.

Timing a native call has a known cost. While the total cost exceeds a profile's ``most_slowdown``, as a share of the
calls' time, programs call their imports directly, as without a profile.

A wrapper has the function's number of parameters, because passing ``*arguments`` costs as much as the rest of the
wrapper (``benchmarks/profile_overhead.py``).
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from ...hal.queue import TimedQueue
from ...status import PumiceError
from ...vm.execution.module_state import ModuleState
from ...waits.wait_frame import Wait

_BURST: Final = 16  # calls between two checks of the cost of timing
_FREE_NS: Final = 5e6  # the cost always allowed for timing
_NATIVE_NS: Final = 700.0  # the cost of timing a native function in a program: benchmarks/profile_overhead.py
_SWITCH_NS: Final = 2000.0

# For functions that neither suspend nor call back: only two readings of the clock per call.
_WRAPPER: Final = """
def make(function, times, append, now):
    def call({arguments}):
        try:
            append(now())
            answer = function({arguments})
            append(now())
        except BaseException:
            if len(times) & 1:
                append(now())
            raise
        return answer
    return call
"""


class NativeTimes:
    """The calls of one import.

    Attributes:
        name: the name of the native function, as the program imports it.
        state: the state of the module that imports it.
        pairs: the begin and end of successive calls, for functions that neither suspend nor call back, in contexts that
            run one invocation at a time.
        calls: the thread, begin and end of each call of other functions.
        waits: the thread, begin and end of each wait that a call asked for.
    """

    def __init__(self, state: ModuleState, number: int, *, concurrent: bool) -> None:
        self.name: str = state.module.definition.imports[number].name
        self.state = state
        self._number = number
        self._function = state.imports[number]
        self.pairs: list[int] = []
        self.calls: list[tuple[int, int, int]] = []
        self.waits: list[tuple[int, int, int]] = []
        self._made = self._watched(self._function)
        if number in state.non_suspending and not concurrent:
            make = _maker(len(state.module.imports[number].arguments))
            self._made = make(self._function, self.pairs, self.pairs.append, time.monotonic_ns)

    def switch(self, *, timed: bool) -> None:
        """Switches programs to the timing wrapper, or to the function itself."""
        self.state.replace_import(self._number, self._made if timed else self._function)

    @property
    def count(self) -> int:
        """The number of calls timed so far."""
        return len(self.pairs) // 2 + len(self.calls)

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function with its calls and waits timed."""
        note, now, get_ident = self.calls.append, time.monotonic_ns, threading.get_ident

        def call(*arguments: Any) -> Any:
            begin = now()
            try:
                answer = function(*arguments)
            except BaseException:
                note((get_ident(), begin, now()))
                raise
            end = now()
            note((get_ident(), begin, end))
            if type(answer) is Wait:
                answer.resume = self._resumed(answer.resume, get_ident(), end)
            return answer

        return call

    def _resumed(
        self, resume: Callable[[PumiceError | None], object], thread: int, begin: int
    ) -> Callable[..., object]:
        """Returns the continuation of a native function after a wait; it may wait again."""

        def resumed(error: PumiceError | None) -> object:
            self.waits.append((thread, begin, time.monotonic_ns()))
            return self._watched(resume)(error)

        return resumed


@functools.cache
def _maker(count: int) -> Callable[..., Callable[..., object]]:
    """Returns a maker of timing wrappers for functions of ``count`` arguments."""
    namespace: dict[str, Any] = {}
    exec(_WRAPPER.format(arguments=", ".join(f"a{number}" for number in range(count))), namespace)
    made: Callable[..., Callable[..., object]] = namespace["make"]
    return made


class NativeSampling:
    """The native functions of a profile, timed while the cost stays within its share of the calls' time.

    Attributes:
        phase: the number of times that timing was switched off or on; functions are timed while it is even.
        natives: the times of all functions that were timed.
        queues: the queues whose timestamps also have a share of the calls' time.
    """

    def __init__(self, most_slowdown: float | None) -> None:
        """Divides ``most_slowdown`` equally among native functions and timestamps; ``None`` times everything."""
        self.phase: int = 0
        self.natives: list[NativeTimes] = []
        self.queues: list[TimedQueue] = []
        self._share = None if most_slowdown is None else most_slowdown / 2
        self._switched: list[NativeTimes] = []  # without those of removed modules
        self._lock = threading.Lock()
        self._is_stopped = False
        self._calls = self._took_ns = self._ended_ns = 0

    def add_module(self, state: ModuleState, *, concurrent: bool) -> None:
        """Adds the native imports of a module."""
        added = [
            NativeTimes(state, number, concurrent=concurrent)
            for number, link in enumerate(state.links)
            if link.is_native
        ]
        with self._lock:
            self.natives += added
            self._switched += added
            if self._is_timing:
                _switch(added, timed=True)

    def remove_module(self, state: object) -> None:
        """Ends the timing of a module's native functions."""
        with self._lock:
            _switch([native for native in self._switched if native.state is state], timed=False)
            self._switched = [native for native in self._switched if native.state is not state]

    @property
    def _is_timing(self) -> bool:
        return not self.phase & 1

    def call_ended(self, begin_ns: int, end_ns: int, phase: int) -> bool:
        """Notes a call that began in ``phase``; returns whether native functions were timed throughout."""
        with self._lock:
            is_detailed = phase == self.phase and self._is_timing
            if self._share is not None:
                # Calls that overlap are counted once.
                self._took_ns += max(0, end_ns - max(begin_ns, self._ended_ns))
                self._ended_ns = max(end_ns, self._ended_ns)
                self._calls += 1
                if not self._calls % _BURST and not self._is_stopped:
                    self._choose(self._share)
        return is_detailed

    def _choose(self, share: float) -> None:
        """Times native functions while its cost is within the share. The caller holds the lock."""
        for queue in self.queues:
            queue.took_ns = self._took_ns
        cost_ns = sum(native.count for native in self.natives) * _NATIVE_NS
        cost_ns += self.phase * len(self._switched) * _SWITCH_NS
        if (cost_ns <= _FREE_NS + share * self._took_ns) != self._is_timing:
            self.phase += 1
            _switch(self._switched, timed=self._is_timing)

    def stop(self) -> None:
        """Ends the timing of all native functions."""
        with self._lock:
            self._is_stopped = True
            if self._is_timing:
                _switch(self._switched, timed=False)


def _switch(natives: Iterable[NativeTimes], *, timed: bool) -> None:
    for native in natives:
        native.switch(timed=timed)
