"""Times the native functions that programs call: while a profile runs, each import is replaced by a timing wrapper.

To keep within a profile's ``most_slowdown`` it is replaced in some calls only: calls earn a share of their time as
credit; timing a native function costs a known time. Native functions are timed in even phases; odd phases last until
there is credit again. Without a profile programs call their imports directly.

A wrapper has as many parameters as the function, because passing on ``*arguments`` costs as much as the rest of it
(``benchmarks/profile_overhead.py``).
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from ...hal.queue import TimedQueue
from ...status import PumiceError
from ...vm.execution.module_state import ModuleState
from ...waits.wait_frame import Wait

_BURST: Final = 16  # calls, at least, of a phase
_CREDIT_NS: Final = 5e6  # of slowdown before the limit is looked at
_NATIVE_NS: Final = 700.0  # what timing a native function costs in a program: benchmarks/profile_overhead.py
_SWITCH_NS: Final = 2000.0

# For functions that neither suspend nor call back: two readings of the clock a call and nothing else.
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
        name: of the native function, as the program imports it.
        state: of the module that imports it.
        pairs: alternately begin and end of each call, for functions that neither suspend nor call back, in contexts
            that run one invocation at a time.
        calls: thread, begin and end of each call of other functions.
        waits: thread, begin and end of each wait that a call asked for.
    """

    def __init__(self, state: ModuleState, number: int, *, concurrent: bool) -> None:
        self.name = state.module.definition.imports[number].name
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
        """Has programs call the timing wrapper, or the function itself."""
        self.state.replace_import(self._number, self._made if timed else self._function)

    @property
    def count(self) -> int:
        """Calls timed so far."""
        return len(self.pairs) // 2 + len(self.calls)

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with its calls and waits timed."""
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
        """The continuation of a native function after a wait; it may wait again."""

        def resumed(error: PumiceError | None) -> object:
            self.waits.append((thread, begin, time.monotonic_ns()))
            return self._watched(resume)(error)

        return resumed


@functools.cache
def _maker(count: int) -> Callable[..., Callable[..., object]]:
    """Makes timing wrappers for functions of so many arguments."""
    namespace: dict[str, Any] = {}
    exec(_WRAPPER.format(arguments=", ".join(f"a{number}" for number in range(count))), namespace)
    made: Callable[..., Callable[..., object]] = namespace["make"]
    return made


class NativeSampling:
    """The native functions of a profile, timed while ``phase`` is even."""

    def __init__(self, most_slowdown: float | None) -> None:
        """Native functions get half of ``most_slowdown``, timestamps the other half; ``None`` times everything."""
        self.phase = 0
        self.natives: list[NativeTimes] = []
        self._switched: list[NativeTimes] = []  # without those of modules that were removed
        self._most_slowdown = most_slowdown
        self.queues: list[TimedQueue] = []  # calls earn their timestamps too
        self._switching = threading.Lock()
        self._stopped = False
        self._burst = self._noted = self._earned_to = self._took = 0
        self._credit_ns = _CREDIT_NS

    def add_module(self, state: ModuleState, *, concurrent: bool) -> None:
        """Adds the native imports of a module."""
        added = [
            NativeTimes(state, number, concurrent=concurrent)
            for number, link in enumerate(state.links)
            if link.is_native
        ]
        with self._switching:
            self.natives += added
            self._switched += added
            if not self.phase & 1:
                for native in added:
                    native.switch(timed=True)

    def remove_module(self, state: object) -> None:
        """Has a module call its native functions directly from now on."""
        with self._switching:
            for native in self._switched:
                if native.state is state:
                    native.switch(timed=False)
            self._switched = [native for native in self._switched if native.state is not state]

    def call_ended(self, begin_ns: int, end_ns: int, phase: int) -> bool:
        """Earns credit for a call that began in ``phase``; whether native functions were timed during all of it."""
        detailed = phase == self.phase and not phase & 1
        if self._most_slowdown is not None:
            # Calls that overlap are counted once.
            self._took += end_ns - (begin_ns if begin_ns > self._earned_to else self._earned_to)
            self._earned_to = end_ns
            self._burst += 1
            if self._burst >= _BURST:
                self._settle(self._most_slowdown / 2)
        return detailed

    def _settle(self, share: float) -> None:
        """Adds the credit of calls, and switches the phase where it is used up or there again."""
        if not self._switching.acquire(False):
            return
        try:
            took, self._took, self._burst = self._took, 0, 0
            for queue in self.queues:
                queue.earn(took)
            self._credit_ns += share * took
            if self._stopped:
                return
            if not self.phase & 1:
                count = sum(native.count for native in self.natives)
                self._credit_ns -= (count - self._noted) * _NATIVE_NS + 2 * len(self._switched) * _SWITCH_NS
                self._noted = count
                if self._credit_ns < 0:
                    self._switch(timed=False)
                    self.phase += 1
            elif self._credit_ns > 0:
                self._switch(timed=True)
                self.phase += 1
        finally:
            self._switching.release()

    def _switch(self, *, timed: bool) -> None:
        for native in self._switched:
            native.switch(timed=timed)

    def stop(self) -> None:
        """Has programs call their native functions directly."""
        with self._switching:
            self._stopped = True
            if not self.phase & 1:
                self._switch(timed=False)
