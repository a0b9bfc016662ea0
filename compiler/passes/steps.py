"""Steps of the low-level sequencer: dispatches, copies, loops and branches over buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ..ir.attributes import DenseElements
from ..ir.operation import Operation
from ..ir.sizes import number_of
from ..ir.types import MemRefType
from .memory import Plan, plan_memory


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
    def bytes(self) -> int:
        """Bytes of the elements."""
        return number_of(self.type.count) * max(self.type.scalar.bits // 8, 1)

    @property
    def size(self) -> int:
        """Bytes in whole 32-bit words, as kernels read and write them."""
        return -(-self.bytes // 4) * 4


@dataclass(eq=False, slots=True)
class Dispatch:
    """A kernel over buffers; the last ``results`` of them are written."""

    operation: Operation
    buffers: Sequence[Buffer]
    results: int


@dataclass(eq=False, slots=True)
class Copy:
    """All of one buffer into another."""

    source: Buffer
    target: Buffer
    operation: Operation


@dataclass(eq=False, slots=True)
class Check:
    """A custom call of the host over buffers."""

    operation: Operation
    buffers: Sequence[Buffer]


@dataclass(eq=False, slots=True)
class Loop:
    """Steps that repeat while a condition that others compute is true."""

    operation: Operation
    condition: Sequence[Step]
    flag: Buffer
    body: Sequence[Step]


@dataclass(eq=False, slots=True)
class Branch:
    """One of several lists of steps, chosen by a buffer: a boolean, or an index whose default is the last."""

    operation: Operation
    index: Buffer
    branches: Sequence[Sequence[Step]]


Step: TypeAlias = Dispatch | Copy | Check | Loop | Branch


@dataclass(slots=True)
class Schedule:
    """The steps of a function and the places of its buffers.

    Attributes:
        steps: in order.
        arguments: one a function's argument.
        results: one a function's result; an argument or a constant where the function returns it as it is.
        constants: with their values.
        transients: those in the arena, as the plan numbers them.
        flags: those that the host reads.
        plan: of the arena.
    """

    steps: Sequence[Step]
    arguments: Sequence[Buffer]
    results: Sequence[Buffer]
    constants: Sequence[tuple[Buffer, DenseElements]]
    transients: Sequence[Buffer] = ()
    flags: Sequence[Buffer] = ()
    plan: Plan = field(default_factory=lambda: plan_memory([]))


def uses(step: Step) -> tuple[list[Buffer], list[Buffer]]:
    """Buffers that a step by itself reads and writes."""
    if isinstance(step, Dispatch):
        count = len(step.buffers) - step.results
        return list(step.buffers[:count]), list(step.buffers[count:])
    if isinstance(step, Copy):
        return [step.source], [step.target]
    if isinstance(step, Check):
        return list(step.buffers), []
    return ([step.flag] if isinstance(step, Loop) else [step.index]), []


def held(step: Step) -> bool:
    """Whether a step reads while it writes, so that what it reads must not be written into."""
    return isinstance(step, Dispatch)
