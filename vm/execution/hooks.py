"""Hooks that traces and breakpoints of programs call."""

from __future__ import annotations

from collections.abc import Callable, Mapping


class Hooks:
    """The hooks of one context; assign to set one. Thread rule: as the context's.

    Attributes:
        break_: called with function, pc and the live registers by name at a ``break``, and at a ``cond_break`` whose
            condition holds; ``None`` ignores them.
        on_trace, on_print: called with an event's name and its values; ``None`` ignores them.
    """

    __slots__ = ("break_", "on_print", "on_trace")

    def __init__(self) -> None:
        self.break_: Callable[[str, int, Mapping[str, object]], None] | None = None
        self.on_trace: Callable[[str, tuple[object, ...]], None] | None = None
        self.on_print: Callable[[str, tuple[object, ...]], None] | None = None

    def trace(self, event: str, values: tuple[object, ...]) -> None:
        """Called by ``vm.trace``."""
        if self.on_trace is not None:
            self.on_trace(event, values)

    def print(self, event: str, values: tuple[object, ...]) -> None:
        """Called by ``vm.print``."""
        if self.on_print is not None:
            self.on_print(event, values)
