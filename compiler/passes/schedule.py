"""From the high-level to the low-level sequencer: where every buffer lies, what is copied, and what waits for what.

A function becomes steps in order: dispatches, copies, loops and branches. Values that loops carry and branches give
have a buffer each, into which copies go; a copy whose two buffers are never needed at the same time is elided by making
them one. What is left of transient buffers shares one arena. A barrier stands where a step needs what an earlier one
wrote, or writes what an earlier one needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ..ir.attributes import DenseElements
from ..ir.operation import Block, Operation, Value
from ..ir.types import MemRefType
from .memory import Interval, Plan, plan_memory


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
            found = found.merged
        return found

    @property
    def bytes(self) -> int:
        """Bytes of the elements."""
        return self.type.count * max(self.type.scalar.bits // 8, 1)

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


def schedule(function: Operation) -> Schedule:
    """The schedule of a function of the ``iree_hl_seq`` dialect."""
    found = _Sequencer().run(function)
    _coalesce(found)
    _place(found)
    return found


class _Sequencer:
    """Makes steps of operations."""

    def __init__(self) -> None:
        self._buffers: dict[Value, Buffer] = {}
        self._constants: list[tuple[Buffer, DenseElements]] = []

    def run(self, function: Operation) -> Schedule:
        block = function.regions[0].block
        arguments = [Buffer(_type(value), "argument", index) for index, value in enumerate(block.arguments)]
        steps: list[Step] = []
        for value, argument in zip(block.arguments, arguments, strict=True):
            self._buffers[value] = argument
            if argument.bytes % 4:
                # The caller's buffer may end within a word.
                self._buffers[value] = Buffer(argument.type, "transient")
                steps.append(Copy(argument, self._buffers[value], function))
        self._block(block, steps)
        results: list[Buffer] = []
        last = block.terminator
        for value in last.operands:
            buffer = self._buffers[value]
            if buffer.kind == "transient" and buffer not in results:
                target = Buffer(buffer.type, "result")
                steps.append(Copy(buffer, target, last))
                buffer = target
            results.append(buffer)
        return Schedule(steps, arguments, results, self._constants)

    def _block(self, block: Block, steps: list[Step]) -> None:
        for operation in block.operations[:-1]:
            handle = _HANDLERS.get(operation.name)
            if handle is not None:
                handle(self, operation, steps)

    def allocate(self, operation: Operation, steps: list[Step]) -> None:
        """A new buffer."""
        self._buffers[operation.result] = Buffer(_type(operation.result), "transient")

    def constant(self, operation: Operation, steps: list[Step]) -> None:
        """A buffer of the module's constants; equal ones are one."""
        value = operation.attributes["value"]
        assert isinstance(value, DenseElements)
        buffer = Buffer(_type(operation.result), "constant", len(self._constants))
        self._constants.append((buffer, value))
        self._buffers[operation.result] = buffer

    def dispatch(self, operation: Operation, steps: list[Step]) -> None:
        """A dispatch: the buffers that it writes were allocated just before, and are its last operands."""
        buffers = [self._buffers[value] for value in operation.operands if isinstance(value.type, MemRefType)]
        steps.append(Dispatch(operation, buffers, operation.integer("results", 1)))

    def check(self, operation: Operation, steps: list[Step]) -> None:
        """A call of the host."""
        steps.append(Check(operation, [self._buffers[value] for value in operation.operands]))

    def loop(self, operation: Operation, steps: list[Step]) -> None:
        """A loop: each value that it carries has one buffer, which the body's results are copied to."""
        condition, body = (region.block for region in operation.regions)
        carried = [Buffer(_type(value), "transient") for value in operation.results]
        for value, buffer in zip(operation.operands, carried, strict=True):
            steps.append(Copy(self._buffers[value], buffer, operation))
        for block in (condition, body):
            self._buffers.update(zip(block.arguments, carried, strict=True))
        tested: list[Step] = []
        self._block(condition, tested)
        repeated: list[Step] = []
        self._block(body, repeated)
        given = [self._buffers[value] for value in body.terminator.operands]
        _copy_together(given, carried, repeated, body.terminator)
        flag = _flag(self._buffers[condition.terminator.operands[0]], tested, condition.terminator)
        steps.append(Loop(operation, tested, flag, repeated))
        self._buffers.update(zip(operation.results, carried, strict=True))

    def branch(self, operation: Operation, steps: list[Step]) -> None:
        """A branch: each result has one buffer, which every branch copies to."""
        results = [Buffer(_type(value), "transient") for value in operation.results]
        branches = []
        for region in operation.regions:
            chosen: list[Step] = []
            self._block(region.block, chosen)
            given = [self._buffers[value] for value in region.block.terminator.operands]
            _copy_together(given, results, chosen, region.block.terminator)
            branches.append(chosen)
        index = _flag(self._buffers[operation.operands[0]], steps, operation)
        steps.append(Branch(operation, index, branches))
        self._buffers.update(zip(operation.results, results, strict=True))


def _flag(buffer: Buffer, steps: list[Step], at: Operation) -> Buffer:
    """A copy of a buffer that the host can read."""
    flag = Buffer(buffer.type, "flag")
    steps.append(Copy(buffer, flag, at))
    return flag


def _type(value: Value) -> MemRefType:
    assert isinstance(value.type, MemRefType)
    return value.type


_HANDLERS = {
    "iree_hl_seq.alloc_heap": _Sequencer.allocate,
    "iree_hl_seq.constant": _Sequencer.constant,
    "iree_hl_seq.dispatch": _Sequencer.dispatch,
    "stablehlo.case": _Sequencer.branch,
    "stablehlo.custom_call": _Sequencer.check,
    "stablehlo.if": _Sequencer.branch,
    "stablehlo.while": _Sequencer.loop,
}


def _copy_together(sources: Sequence[Buffer], targets: Sequence[Buffer], steps: list[Step], at: Operation) -> None:
    """Copies as if all at once: what a copy would overwrite too early is saved first."""
    saved = []
    for index, source in enumerate(sources):
        if source in targets[:index]:
            kept = Buffer(source.type, "transient")
            steps.append(Copy(source, kept, at))
            saved.append(kept)
        else:
            saved.append(source)
    for source, target in zip(saved, targets, strict=True):
        if source is not target:
            steps.append(Copy(source, target, at))


# -- lifetimes -------------------------------------------------------------------------------------------


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


@dataclass(slots=True)
class _Life:
    """Numbers of the steps that touch a buffer.

    Attributes:
        first: the first that does.
        last: the last that does, or the end of a loop around it that begins later than the first.
        writes: all that write it.
        reads: all that read it.
    """

    first: int
    last: int
    writes: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)


class _Lives:
    """Lives of all buffers, with steps numbered as they are recorded: a loop's condition, its flag, its body."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.of: dict[Buffer, _Life] = {}
        self.numbers: dict[int, int] = {}
        self.loops: list[tuple[int, int]] = []
        self._count = 0
        self._steps(steps)
        for start, end in self.loops:
            for life in self.of.values():
                if life.first < start <= life.last:
                    life.last = max(life.last, end)

    def _steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Loop):
                start = self._count
                self._steps(step.condition)
                self._touch(step)
                self._steps(step.body)
                # Inner loops come first: an outer one may extend what an inner one has extended.
                self.loops.append((start, self._count - 1))
                continue
            self._touch(step)
            if isinstance(step, Branch):
                for branch in step.branches:
                    self._steps(branch)

    def _touch(self, step: Step) -> None:
        number = self._count
        self._count += 1
        self.numbers[id(step)] = number
        for is_write, buffers in enumerate(uses(step)):
            for buffer in buffers:
                life = self.of.setdefault(buffer.root, _Life(number, number))
                life.last = number
                (life.writes if is_write else life.reads).append(number)


def _coalesce(found: Schedule) -> None:
    """Elides copies whose source and target are never needed at the same time, until there are no more."""
    changed = True
    while changed:
        lives = _Lives(found.steps)
        changed = _coalesce_steps(found.steps, lives, (-1, -1))
        _drop_elided(found.steps)


def _coalesce_steps(steps: Sequence[Step], lives: _Lives, loop: tuple[int, int]) -> bool:
    """Merges the buffers of one copy, if one can be elided."""
    for step in steps:
        if isinstance(step, Copy):
            source, target = step.source.root, step.target.root
            if source is target or not _may_merge(step, lives, loop):
                continue
            kept, gone = (target, source) if source.kind == "transient" else (source, target)
            gone.merged = kept
            return True
        if isinstance(step, Loop):
            number = lives.numbers[id(step)]
            around = next(each for each in lives.loops if each[0] <= number <= each[1])
            if _coalesce_steps(step.condition, lives, around) or _coalesce_steps(step.body, lives, around):
                return True
        elif isinstance(step, Branch) and any(_coalesce_steps(branch, lives, loop) for branch in step.branches):
            return True
    return False


def _may_merge(step: Copy, lives: _Lives, loop: tuple[int, int]) -> bool:
    source, target = step.source.root, step.target.root
    if (
        source.kind != "transient"
        or source.size != target.size
        or target.kind == "argument"
        or target.kind == "constant"
    ):
        return False
    at = lives.numbers[id(step)]
    one, other = lives.of[source], lives.of[target]
    if one.last <= at <= other.first:
        return True
    # The last of a loop's steps: the source is the loop's own, and nothing reads the target's old value once the
    # source is being written.
    start, end = loop
    inside = start <= one.first and one.last <= at <= end
    old_reads = [number for number in other.reads if start <= number <= end]
    new_writes = [number for number in other.writes if start <= number <= end]
    return inside and new_writes == [at] and max(old_reads, default=-1) < one.first


def _drop_elided(steps: Sequence[Step]) -> None:
    assert isinstance(steps, list)
    steps[:] = [step for step in steps if not (isinstance(step, Copy) and step.source.root is step.target.root)]
    for step in steps:
        if isinstance(step, Loop):
            _drop_elided(step.condition)
            _drop_elided(step.body)
        elif isinstance(step, Branch):
            for branch in step.branches:
                _drop_elided(branch)


def _place(found: Schedule) -> None:
    """Numbers results and transient buffers, and plans the arena."""
    lives = _Lives(found.steps)
    found.results = [buffer.root for buffer in found.results]
    count = 0
    for buffer in found.results:
        if buffer.kind == "result" and buffer.number < 0:
            buffer.number = count
            count += 1
    found.flags = [buffer for buffer in lives.of if buffer.kind == "flag"]
    for number, buffer in enumerate(found.flags):
        buffer.number = number
    transients = [buffer for buffer in lives.of if buffer.kind == "transient"]
    for number, buffer in enumerate(transients):
        buffer.number = number
    found.transients = transients
    found.plan = plan_memory([Interval(each.size, lives.of[each].first, lives.of[each].last) for each in transients])
