"""From the high-level to the low-level sequencer: where every buffer lies, what is copied, and what waits for what.

A function becomes steps in order: dispatches, copies, loops and branches. Values that loops carry and branches give
have a buffer each, into which copies go; a copy whose two buffers are never needed at the same time is elided by making
them one. What is left of transient buffers shares one arena. A barrier stands where a step needs what an earlier one
wrote, or writes what an earlier one needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.attributes import DenseElements
from ..ir.operation import Block, Operation, Value
from ..ir.types import MemRefType
from .coalesce import elide_copies
from .liveness import Liveness
from .memory import Interval, plan_memory
from .steps import Branch, Buffer, Check, Copy, Dispatch, Loop, Schedule, Step


def schedule(function: Operation) -> Schedule:
    """The schedule of a function of the ``iree_hl_seq`` dialect."""
    found = _Sequencer().run(function)
    elide_copies(found)
    place(found)
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
            if buffer.kind == "transient":
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
    positions = {target: index for index, target in enumerate(targets)}
    for index, source in enumerate(sources):
        if positions.get(source, index) < index:
            kept = Buffer(source.type, "transient")
            steps.append(Copy(source, kept, at))
            saved.append(kept)
        else:
            saved.append(source)
    for source, target in zip(saved, targets, strict=True):
        if source is not target:
            steps.append(Copy(source, target, at))


def place(found: Schedule) -> None:
    """Numbers results, flags and transient buffers, and plans the arena."""
    live = Liveness(found)
    results = [buffer for buffer in dict.fromkeys(found.results) if buffer.kind == "result"]
    found.flags = [buffer for buffer in live.intervals if buffer.kind == "flag"]
    found.transients = [buffer for buffer in live.intervals if buffer.kind == "transient"]
    for buffers in (results, found.flags, found.transients):
        for number, buffer in enumerate(buffers):
            buffer.number = number
    found.plan = plan_memory([Interval(each.size, *live.hull(each)) for each in found.transients])
