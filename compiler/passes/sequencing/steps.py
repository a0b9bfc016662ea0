"""Steps of the low-level sequencer: dispatches, copies, loops and branches over buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ...ir.attributes import Attribute, DenseElements, SymbolRef
from ...ir.operation import Operation
from ...ir.sizes import Dim, is_multiple, quotient
from ...ir.types import MemRefType
from .memory import Plan, plan_memory

MAX_RECORDED: Final = 1000
"""The most commands of one command buffer; further commands go into another."""

MAX_WORK: Final = 1 << 34
"""The most arithmetic operations or bytes of a command buffer with several iterations: some 20 ms on a large device."""

MAX_REPEATED: Final = 128
"""The most commands of a repetition that share a command buffer with other steps."""


@dataclass(eq=False, slots=True)
class Buffer:
    """A buffer of the sequence.

    Attributes:
        type: the type of the first contents.
        kind: ``argument``, ``constant``, ``result``, ``flag`` (read by the host) or ``transient``.
        number: the number among the buffers of its kind, set by the plan.
        merged: the buffer that it was merged into, if any.
    """

    type: MemRefType
    kind: str
    number: int = -1
    merged: Buffer | None = None

    @property
    def root(self) -> Buffer:
        """The buffer itself, or the buffer that it was merged into."""
        root = self
        while root.merged is not None:
            if root.merged.merged is not None:
                root.merged = root.merged.merged
            root = root.merged
        return root

    @property
    def bytes(self) -> Dim:
        """Bytes of the elements; integers of 2 and 4 bits are packed as in ``ElementType.pack``."""
        scalar = self.type.scalar
        bits = self.type.count * (max(scalar.bits, 8) if scalar.kind in ("bool", "float") else scalar.bits)
        return -(-bits // 8) if isinstance(bits, int) else quotient(bits, 8)

    @property
    def size(self) -> Dim:
        """Bytes in whole 32-bit words, as kernels access them; an upper bound if call-dependent."""
        size = self.bytes
        if isinstance(size, int):
            return -(-size // 4) * 4
        return size if is_multiple(size, 4) else size + 3

    @property
    def is_whole(self) -> bool:
        """Whether it ends with a whole word, so that kernels may use it in the caller's memory."""
        return is_multiple(self.bytes, 4)


@dataclass(eq=False, slots=True)
class Dispatch:
    """A kernel over buffers.

    Attributes:
        operation: the sequence's operation, which names the entry point.
        buffers: the operands, then the results.
        results: the number of results.
        guard: a buffer of workgroup counts, and the row of three 32-bit numbers for this dispatch; zeros disable it.
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

    @property
    def workload(self) -> Attribute:
        """The numbers of elements along three dimensions; may be call-dependent."""
        if "workload" in self.operation.attributes:
            return self.operation.attributes["workload"]
        made = self.operation.operands[0].owner
        assert isinstance(made, Operation)
        return made.attributes.get("value", made.attributes.get("sizes"))


@dataclass(eq=False, slots=True)
class Copy:
    """A copy from the beginning of one buffer that fills another."""

    source: Buffer
    target: Buffer
    operation: Operation


@dataclass(eq=False, slots=True)
class Barrier:
    """Makes later steps of a command buffer wait for earlier steps and see their writes."""


@dataclass(eq=False, slots=True)
class Check:
    """A custom call that the host runs on buffers."""

    operation: Operation
    buffers: Sequence[Buffer]


@dataclass(eq=False, slots=True)
class Repeat:
    """Steps that run a known number of times; each iteration ends with a barrier.

    Attributes:
        operation: the original operation.
        trips: the number of iterations, or a flag with that number, which the host reads once, before them.
        body: the steps.
    """

    operation: Operation
    trips: int | Buffer
    body: list[Step]


@dataclass(eq=False, slots=True)
class Loop:
    """Steps that repeat while a computed condition is true.

    Attributes:
        operation: the original operation.
        condition: the steps before each test.
        flag: the flag that the host tests; false ends the loop.
        body: the steps after a successful test.
        is_repeatable: whether the condition's steps do nothing once the flag is false, so that they may run several
            times before a test.
        guard: the workgroup counts of the steps if the device decides; alive while the loop runs.
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
        operation: the original operation.
        index: a boolean (true for the first list), or a number, whose default is the last list.
        branches: the lists.
        guards: the workgroup counts of each list if the device decides; alive during all of them.
    """

    operation: Operation
    index: Buffer
    branches: Sequence[list[Step]]
    guards: Sequence[Buffer] = ()


Step: TypeAlias = Dispatch | Copy | Barrier | Check | Repeat | Loop | Branch


@dataclass(slots=True)
class Schedule:
    """The steps of a function and the offsets of its buffers.

    Attributes:
        steps: the steps, in order.
        arguments: a buffer for each of the function's arguments.
        results: a buffer for each of its results, in the caller's memory.
        constants: the constants, with their values.
        transients: the buffers in the arena, in the plan's numbering.
        flags: the buffers that the host reads.
        plan: the arena's plan.
        tables: the constants with workgroup counts: a row of ones, then a row for each listed entry point.
        executables: the kernels that only the schedule needs.
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
    """Returns the buffers that a step reads and writes, apart from nested steps."""
    if isinstance(step, Dispatch):
        count = len(step.buffers) - step.results
        guards = [] if step.guard is None else [step.guard[0]]
        return [*step.buffers[:count], *guards], list(step.buffers[count:])
    if isinstance(step, Copy):
        return [step.source], [step.target]
    if isinstance(step, Check):
        return list(step.buffers), []
    decided = decider(step)
    return ([] if decided is None else [decided]), []


def decider(step: Step) -> Buffer | None:
    """Returns the buffer that a step's control flow depends on."""
    if isinstance(step, Branch):
        return step.index
    if isinstance(step, Repeat):
        return step.trips if isinstance(step.trips, Buffer) else None
    return step.flag if isinstance(step, Loop) else None


def lists_of(step: Step) -> Sequence[list[Step]]:
    """Returns the lists of steps inside a step."""
    if isinstance(step, Repeat):
        return (step.body,)
    if isinstance(step, Loop):
        return step.condition, step.body
    return step.branches if isinstance(step, Branch) else ()


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """Yields all steps in order, including nested steps."""
    for step in steps:
        yield step
        for inner in lists_of(step):
            yield from walk(inner)


def held(step: Step) -> list[Buffer]:
    """Returns the buffers that a step reads while it writes others, which must not share memory with them."""
    if not isinstance(step, Dispatch):
        return []
    shared = step.operation.integers("in_place")
    return [buffer for index, buffer in enumerate(uses(step)[0]) if index not in shared]


def recorded_size(steps: Sequence[Step]) -> int | None:
    """Returns the number of commands in recorded steps; None if the host must decide in between."""
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
    """Returns the number of iterations of recorded steps in one command buffer, from 1 to ``wanted``.

    A driver's watchdog may end a long submission, so its arithmetic operations and bytes are bounded, too.
    """
    work = sum(max(step.operation.integer("flops"), step.operation.integer("bytes")) for step in dispatches(body))
    return max(1, min(wanted, MAX_RECORDED // (recorded_size(body) or 1), MAX_WORK // (work or 1)))


def dispatches(steps: Sequence[Step]) -> Iterator[Dispatch]:
    """Yields each dispatch once per recording of it."""
    for step in steps:
        if isinstance(step, Dispatch):
            yield step
        elif isinstance(step, Repeat) and isinstance(step.trips, int):
            for _ in range(step.trips):
                yield from dispatches(step.body)


def is_recorded(step: Step) -> bool:
    """Whether a step can share a command buffer with others."""
    size = recorded_size([step])
    if size is None or not isinstance(step, Repeat) or not isinstance(step.trips, int):
        return size is not None
    return size <= MAX_REPEATED and rounds_together(step.body, step.trips) == step.trips
