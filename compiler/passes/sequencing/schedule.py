"""Scheduling, from the high-level to the low-level sequencer: offsets of buffers, copies, and barriers.

A function becomes steps in order: dispatches, copies, loops and branches. Each value that a loop carries or a branch
returns is copied into a buffer; a copy between buffers that are never live together is elided by merging them. The
remaining transient buffers share one arena. A barrier stands between conflicting steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ...ir.attributes import DenseElements
from ...ir.operation import Block, Operation, Value
from ...ir.types import MemRefType
from .barriers import add_barriers
from .liveness import Liveness, elide_copies
from .memory import Interval, plan_memory
from .predicate import apply_guards, choose_deciders
from .steps import Branch, Buffer, Check, Copy, Dispatch, Loop, Repeat, Schedule, Step, decider, lists_of, uses, walk


def schedule(function: Operation) -> Schedule:
    """Returns the schedule of a function of the ``iree_hl_seq`` dialect."""
    plan = _Sequencer().run(function)
    finish(plan, str(function.attributes["sym_name"]))
    return plan


def finish(plan: Schedule, name: str) -> None:
    """Optimises the steps of a schedule, plans the arena and adds barriers, in place.

    Args:
        plan: the schedule, whose buffers have no offsets yet.
        name: the function's name.
    """
    _drop_unneeded(plan)
    choose_deciders(plan)
    elide_copies(plan)
    live = Liveness(plan)
    apply_guards(plan, name)
    _place(plan, live)
    add_barriers(plan)


class _Sequencer:
    """Converts operations to steps."""

    def __init__(self) -> None:
        self._buffers: dict[Value, Buffer] = {}
        self._constants: list[tuple[Buffer, DenseElements]] = []

    def run(self, function: Operation) -> Schedule:
        block = function.regions[0].block
        arguments = [Buffer(_type(value), "argument", index) for index, value in enumerate(block.arguments)]
        steps: list[Step] = []
        for value, argument in zip(block.arguments, arguments, strict=True):
            self._buffers[value] = argument
            if not argument.is_whole:
                # The caller's buffer may end within a word.
                self._buffers[value] = Buffer(argument.type, "transient")
                steps.append(Copy(argument, self._buffers[value], function))
        self._block(block, steps)
        results: list[Buffer] = []
        last = block.terminator
        sources = {**self._buffers, **dict(zip(block.arguments, arguments, strict=True))}
        for number, value in enumerate(last.operands):
            # Results are in the caller's memory, so each result has its own buffer, which is written as a whole.
            results.append(Buffer(_type(value), "result", number))
            steps.append(Copy(sources[value], results[-1], last))
        return Schedule(steps, arguments, results, self._constants)

    def _block(self, block: Block, steps: list[Step]) -> None:
        for operation in block.operations[:-1]:
            handle = _HANDLERS.get(operation.name)
            if handle is not None:
                handle(self, operation, steps)

    def allocate(self, operation: Operation, steps: list[Step]) -> None:
        self._buffers[operation.result] = Buffer(_type(operation.result), "transient")

    def constant(self, operation: Operation, steps: list[Step]) -> None:
        """Declares a constant of the module; equal constants share a buffer."""
        value = operation.attributes["value"]
        assert isinstance(value, DenseElements)
        buffer = Buffer(_type(operation.result), "constant", len(self._constants))
        self._constants.append((buffer, value))
        self._buffers[operation.result] = buffer

    def dispatch(self, operation: Operation, steps: list[Step]) -> None:
        """Adds a dispatch. Its last operands are the buffers that it writes, which were allocated immediately before.

        A result of which only a slice is written starts as a copy of the operand, and so does scratch memory that is
        both an input and the last result. A dispatch that only views its operand as another type becomes a copy, which
        may be elided.
        """
        buffers = [self._buffers[value] for value in operation.operands if isinstance(value.type, MemRefType)]
        if "view" in operation.attributes:
            steps.append(Copy(buffers[0], buffers[-1], operation))
            return
        if "updates" in operation.attributes:
            steps.append(Copy(buffers[0], buffers[-1], operation))
            buffers[0] = buffers[-1]
        if "scratch" in operation.attributes:
            last = len(buffers) - operation.integer("results", 1) - 1
            steps.append(Copy(buffers[last], buffers[-1], operation))
            buffers[last] = buffers[-1]
        steps.append(Dispatch(operation, buffers, operation.integer("results", 1)))

    def check(self, operation: Operation, steps: list[Step]) -> None:
        steps.append(Check(operation, [self._buffers[value] for value in operation.operands]))

    def loop(self, operation: Operation, steps: list[Step]) -> None:
        """Adds a loop. Each carried value has one buffer, to which the body's result is copied."""
        trips = operation.integer("trip_count", -1)
        starts = [self._buffers[value] for value in operation.operands]
        if trips == 0:
            self._buffers.update(zip(operation.results, starts, strict=True))
            return
        condition, body = (region.block for region in operation.regions)
        carried = [Buffer(_type(value), "transient") for value in operation.results]
        for start, buffer in zip(starts, carried, strict=True):
            steps.append(Copy(start, buffer, operation))
        for block in (condition, body):
            self._buffers.update(zip(block.arguments, carried, strict=True))
        made: Repeat | Loop
        if trips > 0:
            made = Repeat(operation, trips, [])
        elif "trip_count_operand" in operation.attributes:
            made = Repeat(operation, starts[operation.integer("trip_count_operand")], [])
        else:
            tested: list[Step] = []
            self._block(condition, tested)
            made = Loop(operation, tested, self._buffers[condition.terminator.operands[0]], [])
        self._block(body, made.body)
        following = [self._buffers[value] for value in body.terminator.operands]
        _sink(made.body, following)
        _copy_together(following, carried, made.body, body.terminator)
        steps.append(made)
        self._buffers.update(zip(operation.results, carried, strict=True))

    def branch(self, operation: Operation, steps: list[Step]) -> None:
        """Adds a branch. Each result has one buffer, to which every branch copies."""
        results = [Buffer(_type(value), "transient") for value in operation.results]
        branches = []
        for region in operation.regions:
            chosen: list[Step] = []
            self._block(region.block, chosen)
            returned = [self._buffers[value] for value in region.block.terminator.operands]
            _copy_together(returned, results, chosen, region.block.terminator)
            branches.append(chosen)
        index = self._buffers[operation.operands[0]]
        steps.append(Branch(operation, index, branches))
        self._buffers.update(zip(operation.results, results, strict=True))


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


def _sink(steps: list[Step], following: Sequence[Buffer]) -> None:
    """Moves steps that only compute a loop's next values to the end, after the last use of the old values."""
    wanted = set(following) - {buffer for step in walk(steps) for buffer in uses(step)[0]}
    last = [isinstance(step, Dispatch) and wanted.issuperset(uses(step)[1]) for step in steps]
    early = [step for step, is_last in zip(steps, last, strict=True) if not is_last]
    steps[:] = early + [step for step, is_last in zip(steps, last, strict=True) if is_last]


def _copy_together(sources: Sequence[Buffer], targets: Sequence[Buffer], steps: list[Step], at: Operation) -> None:
    """Copies as if simultaneously: first saves sources that a copy would overwrite too early."""
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


def _drop_unneeded(plan: Schedule) -> None:
    """Drops steps on whose results no output, decision or host call depends."""
    needed: set[Buffer] = set(plan.results)
    pending = list(needed)
    sources: dict[Buffer, list[Buffer]] = defaultdict(list)
    for step in walk(plan.steps):
        reads, writes = uses(step)
        for buffer in writes:
            sources[buffer].extend(reads)
        if not isinstance(step, Dispatch | Copy):
            pending.extend(reads)
    while pending:
        buffer = pending.pop()
        needed.add(buffer)
        pending.extend(set(sources.pop(buffer, ())) - needed)
    for steps in (plan.steps, *(inner for step in [*walk(plan.steps)] for inner in lists_of(step))):
        steps[:] = [
            step
            for step in steps
            if not isinstance(step, Dispatch | Copy) or any(buffer in needed for buffer in uses(step)[1])
        ]


def _place(plan: Schedule, live: Liveness) -> None:
    """Numbers flags and transient buffers, and plans the arena by lifetimes."""
    deciders = [decider(step) for step in walk(plan.steps)]
    plan.flags = list(dict.fromkeys(item.root for item in deciders if item is not None))
    plan.transients = [buffer for buffer in live.intervals if buffer.kind == "transient"]
    for buffers in (plan.flags, plan.transients):
        for number, buffer in enumerate(buffers):
            buffer.number = number
    plan.plan = plan_memory([Interval(item.size, *live.hull(item)) for item in plan.transients])
