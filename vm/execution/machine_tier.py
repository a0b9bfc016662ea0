"""The second tier: a function of a context as machine code, entered when translated code finds it hot.

Translated code counts the instructions of its loops. Beyond a threshold, ``continue_at`` compiles the function's unit,
and from then on continues in machine code, at the loop's header, with the current registers. Machine code returns
results, or frames to continue:

* When its fuel is spent, after some hundred microseconds, so that signals, deadlines and other threads are served in
  Python. It is entered again where it left.
* Before an instruction that would fail. Translated code continues there and raises its usual error. So machine code has
  no errors of its own.

Thread rule: the same as for the context. Memory of a run belongs to that run.
"""

from __future__ import annotations

import math
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from ..machine_code import function_writer as context_words
from ..machine_code.function_writer import OUT_OF_FUEL, Unit
from ..machine_code.layout import Layout, callee_of
from ..machine_code.llvm import Compiler, MachineCode, compiler, is_broken
from ..machine_code.operations import IS_BUFFER
from ..machine_code.settings import ASK_AGAIN, NEVER, Settings
from ..types.buffer import VmBuffer
from ..types.numerics import bitcast_f32_i32, bitcast_i32_f32
from .interruption import Interrupted, deadlines
from .left_frames import Continuation, Left, LeftFunction, continue_frames
from .namespace import COLD, RESUME

FUEL: Final = 1 << 20  # about one per addition; see operations.py
HOST_STACK: Final = 1 << 18  # the most bytes for calls in machine code; threads have at least twice that
_SHORT: Final = 500  # fuel: with less, continuing in Python is faster than entering and leaving
_MAX_DELAY: Final = 1 << 20  # instructions
_CONTEXT_WORDS: Final = 8
_MAX_SPARE: Final = 4
_NULL: Final = (0, 0, 0, (1 << IS_BUFFER) - 1)


class TieredState(Protocol):
    """A module's state in a context, in the form for machine code (module_state.py)."""

    refs: Any

    @property
    def rodata(self) -> Sequence[VmBuffer]: ...
    @property
    def globals_address(self) -> int: ...
    def ref_classes(self, number: int) -> tuple[type, ...] | None: ...
    def function(self, ordinal: int) -> TieredFunction: ...
    def machine_code(self, ordinal: int, llvm: Compiler) -> tuple[Unit, MachineCode] | None: ...


class TieredFunction(LeftFunction, Protocol):
    """A bytecode function of a context, in the form for machine code (module_state.py)."""

    ordinal: int

    @property
    def state(self) -> TieredState: ...
    def translated(self, entry: int) -> Callable[..., object]: ...
    def set_limit(self, limit: int) -> None: ...
    def delay(self, count: int) -> None: ...


class _Memory:
    """Words for the context and the frames of one run."""

    def __init__(self, size: int) -> None:
        self.words = array("q", bytes(8 * (_CONTEXT_WORDS + size)))
        self.context = self.words.buffer_info()[0]
        self.frame = self.context + 8 * _CONTEXT_WORDS
        view = memoryview(self.words).cast("B")
        self.i32 = view.cast("i")
        self.f32 = view.cast("f")
        self.f64 = view.cast("d")
        self.frames = view[8 * _CONTEXT_WORDS :]


class _Compiled(NamedTuple):
    """The machine code of a function and the parts of its unit that it needs.

    Attributes:
        size: the words of the frames of a run.
        host_stack: the most bytes for calls.
        classes: the classes of each type that the unit tests for, by their bit in the masks.
    """

    unit: Unit
    code: MachineCode
    size: int
    host_stack: int
    classes: Sequence[tuple[int, tuple[type, ...] | None]]


class MachineTier:
    """One function of one context as machine code."""

    def __init__(self, function: TieredFunction) -> None:
        self.function = function
        self._is_hopeless = False
        self._delay = 0
        self._compiled: _Compiled | None = None  # set once, as a whole, as other threads may read it
        self._spare: list[_Memory] = []

    @property
    def is_compiled(self) -> bool:
        """Whether there is machine code."""
        return self._compiled is not None

    # -- getting hot ---------------------------------------------------------------------------------

    def continue_at(self, frame: Any, entry: int, registers: tuple[Any, ...]) -> object:
        """Continues a call of translated code at a header, or begins the call.

        Args:
            frame: the frame of the call, if it is on the VM's stack.

        Returns:
            The results of the call, or RESUME; COLD if translated code must continue.
        """
        if self._compiled is None and not self._compile():
            return COLD
        return self._run(frame, entry, registers, replaced=True)

    def start(self, frame: Any, arguments: tuple[Any, ...]) -> object:
        """Calls the function; used as its code if ``Settings.hot == 0``."""
        answer = COLD
        if self._compiled is not None or self._compile():
            answer = self._run(frame, 0, arguments, replaced=False)
        return self.function.translated(0)(frame, arguments) if answer is COLD else answer

    def resume(self, entry: int, registers: tuple[Any, ...]) -> object:
        """Continues a call that machine code left because its fuel ran out; results as for ``continue_at``."""
        if self._compiled is None and not self._compile():
            return COLD
        return self._run(None, entry, registers, replaced=False)

    def _compile(self) -> bool:
        """Compiles the function; returns whether there is machine code now."""
        if self._is_hopeless:
            return False
        llvm = compiler(wait=not Settings.hot)
        if llvm is None and not is_broken.is_set():
            return False  # being loaded
        compiled = None if llvm is None else self.function.state.machine_code(self.function.ordinal, llvm)
        if compiled is None:
            self._is_hopeless = True
            self.function.set_limit(NEVER)
            return False
        unit, code = compiled
        # Mutually recursive functions may fill the stack to its limit; other functions are on it once.
        size = sum(layout.size for layout in unit.layouts.values()) + (HOST_STACK // 8 if unit.deep else 0)
        classes = [(1 << bit, self.function.state.ref_classes(number)) for number, bit in unit.types.items()]
        self._compiled = _Compiled(unit, code, size, HOST_STACK, classes)
        self.function.set_limit(ASK_AGAIN if Settings.hot else 0)
        return True

    # -- running -------------------------------------------------------------------------------------

    def _run(self, frame: Any, entry: int, registers: tuple[Any, ...], *, replaced: bool) -> object:
        """Runs from an entry.

        Args:
            replaced: whether the caller's Python frame belongs to the same call, which ends with this.
        """
        assert self._compiled is not None
        unit, code, size, host_stack, classes = self._compiled
        layout = unit.layouts[self.function.ordinal]
        try:
            memory = self._spare.pop()
        except IndexError:
            memory = _Memory(size)
        try:
            references = References(classes)
            memory.frames[: 8 * layout.size] = bytes(8 * layout.size)
            for number in unit.rodata:
                references.add(self.function.state.rodata[number])
            try:
                _enter(memory, layout, entry, registers, references)
            except (TypeError, ValueError, OverflowError):
                return COLD  # values foreign to the VM
            words, call = memory.words, code.call
            words[context_words.GLOBALS] = self.function.state.globals_address
            words[context_words.BUDGET] = host_stack
            words[context_words.ROOM] = 0 if frame is None else frame.room
            deadline = deadlines.get(threading.get_ident(), math.inf)
            begun, spent = entry, 0
            while True:
                words[context_words.FUEL] = FUEL
                slots = references.slots([self.function.state.refs[number] for number in unit.references])
                words[context_words.TABLE], words[context_words.REFERENCES] = references.table(), slots.buffer_info()[0]
                depth = call(memory.context, memory.frame, entry)
                spent += FUEL - words[context_words.FUEL]
                if depth == 0:
                    self._judge(begun, spent)
                    return _results(memory, layout, references)
                # The watchdog would have to wait for the interpreter lock.
                if words[context_words.FUEL] < 0 and time.monotonic() >= deadline:
                    raise Interrupted
                where = words[_CONTEXT_WORDS]
                if depth > 1 or not where & OUT_OF_FUEL:
                    break
                entry = where & (OUT_OF_FUEL - 1)
            self._judge(begun, spent)
            frames, is_hot = self._left(memory, depth, references)
        finally:
            if len(self._spare) < _MAX_SPARE:
                self._spare.append(memory)
        if frame is None or type(frame) is Continuation:
            return continue_frames(frames, is_hot, replaced)
        frame.arguments = tuple(frames)
        return RESUME

    def _judge(self, begun: int, spent: int) -> None:
        """Adapts the frequency of entering loops after a run: the less each run does, the rarer."""
        if spent >= _SHORT:
            self._delay = 0
        elif begun and Settings.hot:
            self._delay = min(max(2 * self._delay, _SHORT), _MAX_DELAY)
            self.function.delay(self._delay)

    def _left(self, memory: _Memory, depth: int, references: References) -> tuple[list[Left], bool]:
        """Returns the frames that were left, outermost first, and whether the innermost ran out of fuel."""
        assert self._compiled is not None
        frames: list[Left] = []
        ordinal, base, where = self.function.ordinal, _CONTEXT_WORDS, 0
        for _ in range(depth):
            layout = self._compiled.unit.layouts[ordinal]
            where = memory.words[base]
            entry = where & (OUT_OF_FUEL - 1)
            function = self.function.state.function(ordinal)
            homes = layout.homes_at(entry)
            registers = tuple([_value(memory, base + word, kind, references) for kind, word in homes])
            frames.append((function, entry, registers))
            callee = callee_of(layout.analysis.instructions[entry - 1])
            ordinal = ordinal if callee is None else callee
            base += layout.size
        return frames, bool(where & OUT_OF_FUEL)


class References:
    """The references of one run: objects by ordinal, and their descriptors (machine_code/operations.py)."""

    def __init__(self, classes: Sequence[tuple[int, tuple[type, ...] | None]]) -> None:
        self._classes = classes
        self.objects: list[object] = [None]
        self._ordinals = {id(None): 0}
        self._words = array("q", _NULL)
        self._slots = array("q")

    def add(self, value: object) -> int:
        """Returns the ordinal of an object, always the same for the same object."""
        ordinal = self._ordinals.get(id(value))
        if ordinal is None:
            ordinal = self._ordinals[id(value)] = len(self.objects)
            self.objects.append(value)
            self._words.extend(self._descriptor(value))
        return ordinal

    def _descriptor(self, value: object) -> tuple[int, int, int, int]:
        mask = sum(bit for bit, classes in self._classes if classes is None or isinstance(value, classes))
        if type(value) is not VmBuffer:
            return 0, 0, 0, mask
        length = value.length
        return value.address, length, length if value.writable else 0, mask - (1 << IS_BUFFER)

    def slots(self, values: Iterable[object]) -> array[int]:
        """Returns the ordinals of values, in memory that is valid until the next call."""
        self._slots = array("q", map(self.add, values))
        return self._slots

    def table(self) -> int:
        """Returns the address of the descriptors; valid until an object is added."""
        return self._words.buffer_info()[0]


def _enter(memory: _Memory, layout: Layout, entry: int, values: Sequence[Any], references: References) -> None:
    """Stores arguments, or the registers of an entry, in the homes of a function's frame."""
    for (kind, word), value in zip(layout.homes_at(entry), values, strict=True):
        _store(memory, _CONTEXT_WORDS + word, kind, value, references)


def _store(memory: _Memory, word: int, kind: str, value: Any, references: References) -> None:
    if kind == "r":
        memory.words[word] = references.add(value)
    elif kind == "F":
        memory.f64[word] = value
    elif kind != "f":
        memory.words[word] = value
    elif value == value:
        memory.f32[2 * word] = value
    else:
        memory.i32[2 * word] = bitcast_f32_i32(value)


def _value(memory: _Memory, word: int, kind: str, references: References) -> Any:
    if kind == "i":
        return memory.i32[2 * word]
    if kind == "I":
        return memory.words[word]
    if kind == "F":
        return memory.f64[word]
    if kind == "r":
        return references.objects[memory.words[word]]
    value = memory.f32[2 * word]
    return value if value == value else bitcast_i32_f32(memory.i32[2 * word])


def _results(memory: _Memory, layout: Layout, references: References) -> Any:
    kinds = layout.analysis.function.signature.results
    if len(kinds) == 1:
        return _value(memory, _CONTEXT_WORDS + 1, kinds[0], references)
    if not kinds:
        return None
    return tuple(
        [_value(memory, _CONTEXT_WORDS + position, kind, references) for position, kind in enumerate(kinds, 1)]
    )
