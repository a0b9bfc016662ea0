"""Steps of the low-level sequencer: dispatches, copies, loops and branches over buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ...ir.attributes import DenseElements, SymbolRef
from ...ir.operation import Operation
from ...ir.sizes import Dim, is_multiple, quotient
from ...ir.types import MemRefType
from .memory import Plan, plan_memory

MAX_RECORDED: Final = 1000
"""Steps of one command buffer; more go into several."""

MAX_WORK: Final = 1 << 34
"""Arithmetic operations or bytes of a command buffer with several rounds: some 20 ms of a large device."""

MAX_REPEATED: Final = 128
"""Commands of a repetition up to which it is a part of a command buffer with others."""


@dataclass(eq=False, slots=True)
class Buffer:
    """A buffer of the sequence.

    Attributes:
        type: of what it holds first.
        kind: ``argument``, ``constant``, ``result``, ``flag`` (read by the host) or ``transient``.
        number: among those of its kind; set when the plan is made.
        merged: the buffer that it has become part of, if any.
    """

    type: MemRefType
    kind: str
    number: int = -1
    merged: Buffer | None = None

    @property
    def root(self) -> Buffer:
        """The buffer itself, or what it has become part of."""
        found = self
        while found.merged is not None:
            if found.merged.merged is not None:
                found.merged = found.merged.merged
            found = found.merged
        return found

    @property
    def bytes(self) -> Dim:
        """Bytes of the elements; integers of 2 and 4 bits are packed, as ``ElementType.pack`` does it."""
        scalar = self.type.scalar
        bits = self.type.count * (max(scalar.bits, 8) if scalar.kind in ("bool", "float") else scalar.bits)
        return -(-bits // 8) if isinstance(bits, int) else quotient(bits, 8)

    @property
    def size(self) -> Dim:
        """Bytes in whole 32-bit words, as kernels read and write them; where that depends on the call, no fewer."""
        size = self.bytes
        if isinstance(size, int):
            return -(-size // 4) * 4
        return size if is_multiple(size, 4) else size + 3

    @property
    def is_whole(self) -> bool:
        """Whether it ends with a word, so that kernels may read and write it where it is the caller's."""
        return is_multiple(self.bytes, 4)


@dataclass(eq=False, slots=True)
class Dispatch:
    """A kernel over buffers.

    Attributes:
        operation: of the sequence, with the entry point.
        buffers: read, and at the end written.
        results: how many are written.
        guard: a buffer of workgroup counts and a row there, three 32-bit numbers; nothing runs where they are zeros.
    """

    operation: Operation
    buffers: Sequence[Buffer]
    results: int
    guard: tuple[Buffer, int] | None = None

    @property
    def entry(self) -> str:
        """The executable and its entry point: ``executable::@entry``."""
        entry = self.operation.attributes["entry"]
        assert isinstance(entry, SymbolRef)
        return entry.name


@dataclass(eq=False, slots=True)
class Copy:
    """As many bytes as the target has from the beginning of one buffer to another."""

    source: Buffer
    target: Buffer
    operation: Operation


@dataclass(eq=False, slots=True)
class Barrier:
    """Later steps of the same command buffer wait for earlier ones and see what these wrote."""


@dataclass(eq=False, slots=True)
class Check:
    """A custom call of the host over buffers."""

    operation: Operation
    buffers: Sequence[Buffer]


@dataclass(eq=False, slots=True)
class Repeat:
    """Steps that run a known number of times; each round ends with a barrier.

    Attributes:
        operation: where it comes from.
        trips: how often they run, or a flag with the number, which the host reads once, before them.
        body: the steps.
    """

    operation: Operation
    trips: int | Buffer
    body: list[Step]


@dataclass(eq=False, slots=True)
class Loop:
    """Steps that repeat while a condition that others compute is true.

    Attributes:
        operation: where it comes from.
        condition: steps before each test.
        flag: tested by the host, and false to end.
        body: steps after a test that says yes.
        is_repeatable: whether the condition's steps do nothing once the flag is false, so that they may run several
            times before a test.
        guard: workgroup counts for steps that the device decides about, alive while the loop runs.
    """

    operation: Operation
    condition: list[Step]
    flag: Buffer
    body: list[Step]
    is_repeatable: bool = False
    guard: Buffer | None = None


@dataclass(eq=False, slots=True)
class Branch:
    """One of several lists of steps, chosen by a buffer.

    Attributes:
        operation: where it comes from.
        index: a boolean, where the first list is for true, or a number, whose default is the last list.
        branches: the lists.
        guards: workgroup counts of each list, where the device chooses; alive during all of them.
    """

    operation: Operation
    index: Buffer
    branches: Sequence[list[Step]]
    guards: Sequence[Buffer] = ()


Step: TypeAlias = Dispatch | Copy | Barrier | Check | Repeat | Loop | Branch


@dataclass(slots=True)
class Schedule:
    """The steps of a function and the places of its buffers.

    Attributes:
        steps: in order.
        arguments: one a function's argument.
        results: one a function's result, in memory of the caller's.
        constants: with their values.
        transients: those in the arena, as the plan numbers them.
        flags: those that the host reads.
        plan: of the arena.
        tables: constants that hold workgroup counts: a row of ones, then one for each of some entry points.
        executables: kernels that only the schedule needs.
    """

    steps: list[Step]
    arguments: Sequence[Buffer]
    results: Sequence[Buffer]
    constants: Sequence[tuple[Buffer, DenseElements]]
    transients: Sequence[Buffer] = ()
    flags: Sequence[Buffer] = ()
    plan: Plan = field(default_factory=lambda: plan_memory([]))
    tables: list[tuple[Buffer, Sequence[str]]] = field(default_factory=list)
    executables: list[Operation] = field(default_factory=list)


def uses(step: Step) -> tuple[list[Buffer], list[Buffer]]:
    """Buffers that a step by itself reads and writes."""
    if isinstance(step, Dispatch):
        count = len(step.buffers) - step.results
        guards = [] if step.guard is None else [step.guard[0]]
        return [*step.buffers[:count], *guards], list(step.buffers[count:])
    if isinstance(step, Copy):
        return [step.source], [step.target]
    if isinstance(step, Check):
        return list(step.buffers), []
    found = decider(step)
    return ([] if found is None else [found]), []


def decider(step: Step) -> Buffer | None:
    """The buffer that a step's control flow depends on."""
    if isinstance(step, Branch):
        return step.index
    if isinstance(step, Repeat):
        return step.trips if isinstance(step.trips, Buffer) else None
    return step.flag if isinstance(step, Loop) else None


def lists_of(step: Step) -> Sequence[list[Step]]:
    """The lists of steps inside a step."""
    if isinstance(step, Repeat):
        return (step.body,)
    if isinstance(step, Loop):
        return step.condition, step.body
    return step.branches if isinstance(step, Branch) else ()


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """All steps, those inside others too, in order."""
    for step in steps:
        yield step
        for inner in lists_of(step):
            yield from walk(inner)


def held(step: Step) -> list[Buffer]:
    """Buffers that a step reads while it writes others, so that it must not write into them."""
    if not isinstance(step, Dispatch):
        return []
    shared = step.operation.integers("in_place")
    return [buffer for index, buffer in enumerate(uses(step)[0]) if index not in shared]


def recorded_size(steps: Sequence[Step]) -> int | None:
    """Commands that steps are, recorded as often as they run; None where the host has to decide in between."""
    total = 0
    for step in steps:
        if isinstance(step, Dispatch | Copy):
            total += 1
        elif isinstance(step, Repeat) and isinstance(step.trips, int):
            size = recorded_size(step.body)
            if size is None:
                return None
            total += step.trips * size
        elif not isinstance(step, Barrier):
            return None
    return total


def rounds_together(body: Sequence[Step], wanted: int) -> int:
    """How many rounds of recorded steps go into one command buffer: some of those wanted, and one at least.

    A submission must not take so long that a driver's watchdog ends it, so that the arithmetic operations and the bytes
    of one are bounded, too.
    """
    work = sum(max(step.operation.integer("flops"), step.operation.integer("bytes")) for step in dispatches(body))
    return max(1, min(wanted, MAX_RECORDED // (recorded_size(body) or 1), MAX_WORK // (work or 1)))


def dispatches(steps: Sequence[Step]) -> Iterator[Dispatch]:
    """Dispatches of steps, as often as they are recorded."""
    for step in steps:
        if isinstance(step, Dispatch):
            yield step
        elif isinstance(step, Repeat) and isinstance(step.trips, int):
            for _ in range(step.trips):
                yield from dispatches(step.body)


def is_recorded(step: Step) -> bool:
    """Whether a step is a part of a command buffer with others."""
    size = recorded_size([step])
    if size is None or not isinstance(step, Repeat) or not isinstance(step.trips, int):
        return size is not None
    return size <= MAX_REPEATED and rounds_together(step.body, step.trips) == step.trips
