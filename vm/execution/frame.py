"""Frames: one for each function that an invocation is in, on the invocation's own stack.

A suspended frame holds everything that its function needs to continue: the entry and its live registers. It does not
use the host's stack. Thread rule: the same as for the invocation: any thread, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .module_state import ContextFunction


class Frame:
    """A bytecode function's activation.

    Attributes:
        pc: the program counter of the instruction at which it is suspended; 0 before it runs, and stale while it runs.
        entry: the entry at which it continues (see translator.py).
        registers: the live values there; ``register_values`` names them.
        callee, arguments: the called function and its arguments, between the return to the interpreter and the call
            itself.
        room: the number of frames that may follow it on the stack.
    """

    __slots__ = ("arguments", "callee", "entry", "function", "pc", "registers", "room")

    def __init__(self, function: ContextFunction, room: int = 0) -> None:
        self.function: ContextFunction = function
        self.room: int = room
        self.pc: int = 0
        self.entry: int = 0
        self.registers: tuple[Any, ...] = ()
        self.callee: ContextFunction | None = None
        self.arguments: tuple[Any, ...] | None = None

    @property
    def name(self) -> str:
        """The function's full name."""
        return self.function.translation.full_name

    @property
    def register_values(self) -> Mapping[str, object]:
        """The live registers by name.

        ``i3`` is slot 3 as i32, ``I4`` slots 4 and 5 as i64, ``f``/``F`` f32/f64, ``r0`` a reference; ``s3`` the bits
        of slot 3 in functions that mix register types.
        """
        return dict(zip(self.function.translation.register_names(self.entry), self.registers, strict=False))

    @property
    def source_location(self) -> str | None:
        """The location of the pc in the source program, if the module has debug information for it."""
        return self.function.translation.source_location(self.pc)

    def __repr__(self) -> str:
        return f"<Frame {self.function.translation.place(self.pc)}>"


class NativeFrame:
    """A native function that waits; ``resume`` computes its results from the wait's outcome."""

    __slots__ = ("_origin", "resume")

    def __init__(self, name: str | Frame, resume: Callable[..., object]) -> None:
        # The name is computed from the caller only when needed, as waits are frequent but errors are not.
        self._origin = name if isinstance(name, str) else (name.function, name.pc)
        self.resume: Callable[..., object] = resume

    @property
    def name(self) -> str:
        """The function's full name."""
        if isinstance(self._origin, str):
            return self._origin
        function, pc = self._origin
        imported = function.translation.import_at(pc)
        return "?" if imported is None else imported[1]

    def __repr__(self) -> str:
        return f"<NativeFrame {self.name}>"
