"""Calls that machine code left and that translated code continues without the VM's stack: calls of leaf functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from .namespace import COLD

MACHINE_TIER: Final = str(Path(__file__).with_name("machine_tier.py"))
"""The file of the code that runs machine code, which only programs with machine code import."""


class Resumable(Protocol):
    """A function as machine code (machine_tier.py)."""

    def resume(self, entry: int, registers: tuple[Any, ...]) -> object:
        """Continues a call; returns COLD if translated code must continue it."""


class LeftFunction(Protocol):
    """A function whose call machine code left (module_state.py)."""

    @property
    def tier(self) -> Resumable:
        """Its machine code."""

    def code(self, entry: int) -> Callable[..., object]:
        """Returns its translated code for an entry."""


# A call that machine code left: its function, and the entry and registers that it continues with.
Left: TypeAlias = "tuple[LeftFunction, int, tuple[Any, ...]]"


class Continuation:
    """The frame of a call that translated code continues; such a call never suspends."""

    __slots__ = ("registers", "room")

    def __init__(self, registers: tuple[Any, ...]) -> None:
        self.registers: tuple[Any, ...] = registers
        self.room: int = 0


def continue_frames(frames: list[Left], is_hot: bool, replaced: bool) -> object:
    """Continues calls that machine code left, innermost first, and returns the results of the outermost.

    In a traceback this function represents the calls in ``frames``, which wait for the running call, and also the
    Python frame below it, if it ``replaced`` that (stack.py).

    Args:
        frames: the frames, outermost first.
        is_hot: whether the innermost frame was left because its fuel ran out, and continues as machine code.
    """
    answer: object = None
    while frames:
        function, entry, registers = frames.pop()
        if is_hot:
            is_hot = False
            answer = function.tier.resume(entry, registers)
            if answer is not COLD:
                continue
            answer = None
        answer = function.code(entry)(Continuation(registers), answer)
    return answer
