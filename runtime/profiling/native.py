"""Times the native functions that programs call: while a profile runs, each import is replaced by a timing wrapper.

Without a profile programs call their imports directly. A wrapper has as many parameters as the function, because
passing on ``*arguments`` costs as much as the rest of it (``benchmarks/profile_overhead.py``).
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from ...status import PumiceError
from ...vm.execution.module_state import ModuleState
from ...vm.wait.frame import Wait

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
        pairs: alternately begin and end of each call, for functions that neither suspend nor call back, in contexts
            that run one invocation at a time.
        calls: thread, begin and end of each call of other functions.
        waits: thread, begin and end of each wait that a call asked for.
    """

    __slots__ = ("_function", "_made", "_number", "_state", "calls", "name", "pairs", "waits")

    def __init__(self, state: ModuleState, number: int, *, concurrent: bool) -> None:
        self.name = state.module.definition.imports[number].name
        self._state = state
        self._number = number
        self._function = state.imports[number]
        self.pairs: list[int] = []
        self.calls: list[tuple[int, int, int]] = []
        self.waits: list[tuple[int, int, int]] = []
        count = len(state.module.verified.imports[number].arguments)
        if number in state.non_suspending and not concurrent:
            made = _maker(count)(self._function, self.pairs, self.pairs.append, time.monotonic_ns)
        else:
            made = self._watched(self._function)
        self._made: Callable[..., Any] = made

    @classmethod
    def of(cls, state: ModuleState, *, concurrent: bool) -> list[NativeTimes]:
        """All native imports of a module; ``insert`` begins the timing of one, ``restore`` ends it."""
        return [cls(state, number, concurrent=concurrent) for number, link in enumerate(state.links) if link.is_native]

    def insert(self) -> None:
        """Has programs call the timing wrapper."""
        self._state.replace_import(self._number, self._made)

    @property
    def count(self) -> int:
        """Calls timed so far."""
        return len(self.pairs) // 2 + len(self.calls)

    def restore(self) -> None:
        """Has programs call the function itself."""
        self._state.replace_import(self._number, self._function)

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
