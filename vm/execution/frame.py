"""Frames: one for each function that an invocation is inside of, on the invocation's own stack.

A suspended frame holds all that its function needs to go on: the entry to come back by and the registers that are live there. Nothing
of it is on the host's stack. Thread rule: as the invocation's, any thread, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..wait.frame import Wait

if TYPE_CHECKING:
    from .bytecode_module import ContextFunction

__all__ = ["CALL", "YIELD", "Frame", "NativeFrame"]

# What translated functions return when they give way, next to a ``Wait`` of a native function.
CALL = Wait(resume=lambda error: None)
YIELD = Wait(resume=lambda error: None)


class Frame:
    """A bytecode function's activation.

    Attributes:
        function: which function, in which context.
        pc: of the instruction at which it gave way; 0 before it runs, and stale while it runs.
        entry: where it goes on (see translator.py).
        registers: values that are live there; ``register_values`` names them.
        callee, arguments: what it calls, between its giving way and the call.
    """

    __slots__ = ("arguments", "callee", "entry", "function", "pc", "registers")

    def __init__(self, function: ContextFunction) -> None:
        self.function = function
        self.pc = 0
        self.entry = 0
        self.registers: tuple[Any, ...] = ()
        self.callee: ContextFunction | None = None
        self.arguments: tuple[Any, ...] | None = None

    @property
    def name(self) -> str:
        """The function's full name."""
        return self.function.full_name

    @property
    def register_values(self) -> Mapping[str, object]:
        """The live registers by name: ``i3`` is slot 3 as i32, ``I4`` slots 4 and 5 as i64, ``f``/``F`` f32/f64, ``r0`` a reference;
        ``s3`` the bits of slot 3 in functions that mix kinds."""
        return dict(zip(self.function.translation.spilled(self.entry), self.registers, strict=False))

    @property
    def source_location(self) -> str | None:
        """Where in the compiled program the pc is, where the module has debug information."""
        return self.function.source_location(self.pc)

    def __repr__(self) -> str:
        where = self.source_location
        return f"<Frame {self.name} pc {self.pc}{f' ({where})' if where else ''}>"


class NativeFrame:
    """A native function that waits.

    Attributes:
        resume: what turns the wait's outcome into results.
    """

    __slots__ = ("_caller", "_name", "resume")

    def __init__(self, name: str | Frame, resume: Callable[..., object]) -> None:
        # Of whoever called it, where that is to be asked: names are looked at when something is wrong, waits are many.
        self._name = name if isinstance(name, str) else None
        self._caller = None if isinstance(name, str) else (name.function, name.pc)
        self.resume = resume

    @property
    def name(self) -> str:
        """The function's full name."""
        if self._name is None:
            assert self._caller is not None
            function, pc = self._caller
            self._name = function.state.module.mnemonic_at(function.ordinal, pc)[1] or "?"
        return self._name

    def __repr__(self) -> str:
        return f"<NativeFrame {self.name}>"
