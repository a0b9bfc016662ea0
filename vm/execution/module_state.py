"""A bytecode module's state in one context: globals, linked imports, and the functions bound to both.

Thread rule: as the context's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from types import CellType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ...base.locks import RLock
from ...status import ResourceExhaustedError
from ..machine_code.settings import ASK, Settings, is_available
from ..types.buffer import VmBuffer
from ..types.ref_types import ref_type_class
from .bytecode_module import BytecodeModule
from .namespace import COLD
from .watchdog import rebind

# Imported at its use: only programs with machine code need it.
if TYPE_CHECKING:
    from ..machine_code.function_writer import Unit
    from ..machine_code.llvm import Compiler, MachineCode
    from .bytecode_module import Translation
    from .machine_tier import MachineTier

_MAX_DENSE_REFS: Final = 1 << 16


class Hooks:
    """The hooks of one context; assign to set them. Thread rule: the same as for the context.

    Attributes:
        break_: a function called with the function, pc and the live registers by name at a ``break``, and at a
            ``cond_break`` whose condition holds; ``None`` ignores them.
        on_trace, on_print: the functions called with an event's name and its values; ``None`` ignores them.
    """

    __slots__ = ("break_", "on_print", "on_trace")

    def __init__(self) -> None:
        self.break_: Callable[[str, int, Mapping[str, object]], None] | None = None
        self.on_trace: Callable[[str, tuple[object, ...]], None] | None = None
        self.on_print: Callable[[str, tuple[object, ...]], None] | None = None

    def trace(self, event: str, values: tuple[object, ...]) -> None:
        """Forwards a ``vm.trace``."""
        if self.on_trace is not None:
            self.on_trace(event, values)

    def print(self, event: str, values: tuple[object, ...]) -> None:
        """Forwards a ``vm.print``."""
        if self.on_print is not None:
            self.on_print(event, values)


class LinkedImport(NamedTuple):
    """The function that an import calls, and its provider's declarations.

    Attributes:
        function: the function to call for the import.
        is_resolved: whether a module provides it; otherwise ``function`` raises.
        is_native: whether a native module provides it.
        suspends: whether it may return a ``Wait``.
        trusted: whether its module is trusted, so that its functions leave checks of operands to Python.
    """

    function: Callable[..., object]
    is_resolved: bool = True
    is_native: bool = False
    suspends: bool = True
    trusted: bool = False


class ContextFunction:
    """A bytecode function bound to one context's state.

    Attributes:
        translation: the translated code, shared with other contexts.
        start: the Python function for entry 0, after ``code`` made it.
    """

    __slots__ = ("_due", "_entries", "_heat", "_limit", "_tier", "ordinal", "start", "state", "translation")

    def __init__(self, state: ModuleState, ordinal: int) -> None:
        self.state: ModuleState = state
        self.ordinal: int = ordinal
        self.translation: Translation = state.module.translation(ordinal, state.non_suspending)
        self._entries: dict[int, Callable[..., object]] = {}
        self._tier: MachineTier | None = None
        self._heat = 0
        self._due = Settings.hot
        self._limit = ASK if Settings.hot else 0
        self.start: Callable[..., object] | None = None

    def code(self, entry: int) -> Callable[..., object]:
        """Returns the function for an entry."""
        if entry:  # usually present; without a call (benchmarks/call_latency.py)
            return self._entries.get(entry) or self.translated(entry)
        if self.start is None:
            translated = self.translated(0)
            self.start = self.tier.start if not Settings.hot and is_available() else translated
        return self.start

    def translated(self, entry: int) -> Callable[..., object]:
        """Returns the Python function for an entry."""
        code = self._entries.get(entry)
        if code is None:
            source, make = self.translation.variant(entry)
            with self.state.lock:  # imports replaced meanwhile are replaced in it, too
                code = self._entries.get(entry)
                if code is None:
                    code = self._entries[entry] = make(*[self._bind(name) for name in source.names])
        return code

    @property
    def tier(self) -> MachineTier:
        """The function's machine code; only for functions that have some."""
        if self._tier is None:
            from .machine_tier import MachineTier

            with self.state.lock:
                if self._tier is None:
                    self._tier = MachineTier(self)
        return self._tier

    def _bind(self, name: str) -> object:
        if name == "tier":
            return self._ask_tier
        if name == "limit":
            return self._limit
        return self.state.bind(name)

    def _ask_tier(self, frame: object, entry: int, count: int, registers: tuple[object, ...]) -> object:
        """Passes a call to machine code, from an entry on. Translated code calls this from time to time.

        Args:
            frame: the frame of the call, if it is on the VM's stack.
            count: the instructions of the function since the last time.

        Returns:
            The results of the call, or RESUME; COLD if translated code must continue.
        """
        self._heat += count  # counts lost by overlapping threads only delay the second tier
        return COLD if self._heat < self._due else self.tier.continue_at(frame, entry, registers)

    def delay(self, count: int) -> None:
        """Makes no machine code call for this number of instructions."""
        self._due = self._heat + count

    def set_limit(self, limit: int) -> None:
        """Sets the number of a call's instructions after which its code asks for machine code."""
        self._limit = limit
        for name, cell in self._cells():
            if name == "limit":
                cell.cell_contents = limit

    def rebind_import(self, number: int, function: Callable[..., object]) -> None:
        """Rebinds an import in the existing code."""
        for name, cell in self._cells():
            if name == f"im{number}":
                rebind(cell, function)

    def call_cells(self) -> list[CellType]:
        """Returns the cells through which its code calls imports. For the watchdog."""
        return [cell for name, cell in self._cells() if name.startswith("im")]

    def _cells(self) -> Iterator[tuple[str, CellType]]:
        for function in self._entries.copy().values():
            yield from zip(function.__code__.co_freevars, getattr(function, "__closure__", None) or (), strict=False)


class _SparseRefs(dict[int, object]):
    """Reference globals of a module that declares very many; only those in use take memory."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, index: int) -> object:
        return None

    def __len__(self) -> int:
        return self._count


class ModuleState:
    """A bytecode module's state in one context.

    Attributes:
        links: the provider of each import.
        imports: the current function of each import; a profile replaces some.
        non_suspending: the ordinals of the imports that never return a ``Wait``.
        refs: the reference globals.

    Raises:
        ResourceExhaustedError: there is no memory for the globals.
    """

    def __init__(self, module: BytecodeModule, hooks: Hooks, links: Sequence[LinkedImport]) -> None:
        self.module = module
        self.links: tuple[LinkedImport, ...] = tuple(links)
        self.imports: list[Callable[..., object]] = [link.function for link in links]
        self.non_suspending: frozenset[int] = frozenset(
            number for number, link in enumerate(links) if not link.suspends
        )
        self._hooks = hooks
        definition = module.definition
        size = -(-definition.global_bytes // 8) * 8
        try:
            memory = np.zeros(size, np.uint8).data  # only pages in use take memory
        except (ValueError, MemoryError) as error:
            raise ResourceExhaustedError(f"no memory for {size} bytes of globals of module {module.name}") from error
        self._primitive: dict[str, memoryview[int] | memoryview[float]] = {
            "i32": memory.cast("i"),
            "i64": memory.cast("q"),
            "f32": memory.cast("f"),
            "f64": memory.cast("d"),
        }
        count = definition.global_refs
        self.refs: list[object] | _SparseRefs = [None] * count if count <= _MAX_DENSE_REFS else _SparseRefs(count)
        self._functions: dict[int, ContextFunction] = {}
        self.lock: threading.RLock = RLock()  # held while code is bound to the state, and while an import is replaced

    def function(self, ordinal: int) -> ContextFunction:
        """Returns a function of the module in this context."""
        function = self._functions.get(ordinal)
        return function or self._functions.setdefault(ordinal, ContextFunction(self, ordinal))

    def replace_import(self, number: int, function: Callable[..., object]) -> None:
        """Replaces the function of an import, even in current invocations. For profiles."""
        with self.lock:
            self.imports[number] = function
            for caller in self._functions.copy().values():
                caller.rebind_import(number, function)

    def bind(self, name: str) -> object:
        """Returns the object of this context for a name in translated source."""
        if name.startswith("g_"):
            return self.refs if name == "g_ref" else self._primitive[name[2:]]
        if name == "hooks":
            return self._hooks
        kind, number = name[:2], int(name[2:])
        module = self.module
        if kind == "im":
            return self.imports[number]
        if kind == "is":
            return int(self.links[number].is_resolved)
        if kind == "fn":
            return self.function(number)
        if kind == "lf":
            return self.function(number).code(0)
        if kind == "ro":
            return module.rodata[number]
        if kind == "ty":
            return self.ref_classes(number)
        if kind == "tn":
            return module.definition.types[number]
        raise AssertionError(name)

    def ref_classes(self, number: int) -> tuple[type, ...] | None:
        """Returns the classes of a module's type; ``None`` if the context knows none."""
        text = self.module.definition.types[number]
        return ref_type_class(text) if text.startswith("!") else ()

    @property
    def rodata(self) -> tuple[VmBuffer, ...]:
        """The module's constants."""
        return self.module.rodata

    def machine_code(self, ordinal: int, llvm: Compiler) -> tuple[Unit, MachineCode] | None:
        """Returns the machine code of a function and its callees; ``None`` if there can be none."""
        with self.module.translation_lock:
            units = self.module.machine_code
            code = None if units is None else units.compiled(ordinal, llvm)
            return None if units is None or code is None else (units.unit(ordinal), code)

    @cached_property
    def globals_address(self) -> int:
        """The address of the primitive globals."""
        return int(np.asarray(self._primitive["i32"]).ctypes.data)

    def release(self) -> None:
        """Drops every reference that the state holds."""
        if isinstance(self.refs, list):
            self.refs[:] = [None] * len(self.refs)
        else:
            self.refs.clear()
