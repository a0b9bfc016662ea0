"""Control flow decided by the device, so that the host does not wait for it.

The workgroup counts of the dispatches in a loop or a branch lie in a buffer of the device, and the dispatches are
indirect. A small kernel, the guard, fills the buffer from a table, or with zeros to disable the steps. So branches are
recorded one after another, and loops run ahead: several iterations are submitted before the host tests whether to
continue. Once a guard has ended a loop, neither its condition nor its body runs again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...dialects.builder import Builder
from ...ir.attributes import Attribute, SymbolRef
from ...ir.operation import Block, Location, Operation, Value
from ...ir.sizes import number_of
from ...ir.types import I1, I32, MemRefType, TensorType
from ..dispatch.outline import executable_function, executable_of
from ..dispatch.regions import workload_of
from .steps import (
    Branch,
    Buffer,
    Copy,
    Dispatch,
    Loop,
    Repeat,
    Schedule,
    Step,
    lists_of,
    recorded_size,
    rounds_together,
    uses,
    walk,
)

MAX_GUARDED: Final = 64
"""With more commands in an iteration or in all branches, the host decides, as idle commands would take longer."""

MAX_AHEAD: Final = 8
"""Iterations of a loop that are recorded together."""


def choose_deciders(plan: Schedule) -> None:
    """Gives guards to loops and branches that the device decides, and flags for the host to the others."""
    _choose(plan.steps, False)


def _choose(steps: list[Step], is_guarded: bool) -> None:
    chosen: list[Step] = []
    for step in steps:
        is_small = isinstance(step, Branch | Loop) and (is_guarded or _size([step]) <= MAX_GUARDED)
        if isinstance(step, Branch):
            if is_small:
                step.guards = [Buffer(_counts(branch), "transient") for branch in step.branches]
            else:
                step.index = _flag(step.index, chosen, step.operation)
        elif isinstance(step, Loop):
            if is_small:
                step.guard = Buffer(_counts([*step.condition, *step.body]), "transient")
            else:
                step.flag = _flag(step.flag, step.condition, step.operation)
        elif isinstance(step, Repeat) and isinstance(step.trips, Buffer):
            step.trips = _flag(step.trips, chosen, step.operation)
        for inner in lists_of(step):
            _choose(inner, is_guarded or is_small)
        chosen.append(step)
    steps[:] = chosen


def _size(steps: Sequence[Step]) -> int:
    """Returns the number of commands in steps; more than a guard's maximum if the device cannot decide them."""
    total = 0
    for step in steps:
        inner = sum(map(_size, lists_of(step)))
        if isinstance(step, Repeat):
            total += inner * step.trips if isinstance(step.trips, int) else MAX_GUARDED + 1
        elif isinstance(step, Branch | Loop):
            has_loop = any(isinstance(nested, Loop) for nested in walk([step]) if nested is not step)
            total += inner + 1 + has_loop * MAX_GUARDED
        else:
            total += 1 if _is_dispatched(step) else MAX_GUARDED + 1
    return total


def _is_dispatched(step: Step) -> bool:
    """Whether a step can be a dispatch with a known number of workgroups."""
    return isinstance(step, Dispatch | Copy) and all(buffer.type.is_static for side in uses(step) for buffer in side)


def _flag(buffer: Buffer, steps: list[Step], at: Operation) -> Buffer:
    """Returns a copy of a buffer that the host can read."""
    flag = Buffer(buffer.type, "flag")
    steps.append(Copy(buffer, flag, at))
    return flag


def _counts(steps: Sequence[Step]) -> MemRefType:
    """Returns the type of a table with the workgroup counts of steps, after a row of ones."""
    return MemRefType((1 + len(_guarded(steps)), 3), I32)


def _guarded(steps: Sequence[Step]) -> list[Dispatch | Copy]:
    """Returns the steps of one guard; nested branches have guards of their own."""
    guarded: list[Dispatch | Copy] = []
    for step in steps:
        if isinstance(step, Dispatch | Copy):
            guarded.append(step)
        elif isinstance(step, Repeat):
            guarded.extend(_guarded(step.body))
    return guarded


def apply_guards(plan: Schedule, name: str) -> None:
    """Replaces loops and branches that have guards by guarded steps.

    Args:
        plan: the schedule.
        name: the function's name, a prefix of the kernels' names.
    """
    maker = _Predicator(plan, name)
    plan.steps[:] = maker.steps(plan.steps, None)


class _Predicator:
    def __init__(self, plan: Schedule, name: str) -> None:
        self._plan = plan
        self._name = name
        self._entries: dict[tuple[object, ...], tuple[str, Operation]] = {}
        self._rows: dict[Buffer, list[str]] = {}

    def steps(self, steps: Sequence[Step], guard: Buffer | None) -> list[Step]:
        """Puts steps under a guard, if there is one."""
        guarded: list[Step] = []
        for step in steps:
            if isinstance(step, Branch) and step.guards:
                self._branch(step, guard, guarded)
            elif isinstance(step, Loop) and step.guard is not None:
                self._loop(step, step.guard, guarded)
            elif isinstance(step, Dispatch | Copy) and guard is not None:
                guarded.append(self._guarded(step, guard))
            else:
                for inner in lists_of(step):
                    inner[:] = self.steps(inner, guard)
                guarded.append(step)
        return guarded

    def _loop(self, step: Loop, guard: Buffer, into: list[Step]) -> None:
        """Repeats the condition, the guard and the body; the host reads the guard's first row."""
        table = self._table(guard, [*step.condition, *step.body])
        into.append(Copy(table, guard, step.operation))
        body = self.steps(step.condition, guard)
        body.append(self._guard(guard, step.flag, None, None, table, step.operation))
        body.extend(self.steps(step.body, guard))
        rounds = rounds_together(body, min(MAX_AHEAD, MAX_GUARDED // (recorded_size(body) or 1)))
        flag = Buffer(MemRefType((), I32), "flag")
        ahead: list[Step] = [Repeat(step.operation, rounds, body), Copy(guard, flag, step.operation)]
        into.append(Loop(step.operation, ahead, flag, [], is_repeatable=True))

    def _branch(self, step: Branch, around: Buffer | None, into: list[Step]) -> None:
        count = len(step.branches)
        for number, (guard, branch) in enumerate(zip(step.guards, step.branches, strict=True)):
            choice = (step.index.type.scalar is I1, number, number == count - 1)
            table = self._table(guard, branch)
            into.append(self._guard(guard, step.index, choice, around, table, step.operation))
        for branch, guard in zip(step.branches, step.guards, strict=True):
            into.extend(self.steps(branch, guard))

    def _guarded(self, step: Dispatch | Copy, guard: Buffer) -> Dispatch:
        """Makes a step a guarded dispatch; copies become kernels."""
        rows = self._rows[guard]
        made = self._copy(step) if isinstance(step, Copy) else step
        rows.append(made.entry)
        made.guard = (guard, len(rows))
        return made

    def _table(self, guard: Buffer, steps: Sequence[Step]) -> Buffer:
        """Makes the table whose content a guard has while its steps run."""
        guard.type = _counts(steps)  # copies may have been elided since the guard was made
        table = Buffer(guard.type, "constant", len(self._plan.constants) + len(self._plan.tables))
        self._rows[guard] = []
        self._plan.tables.append((table, self._rows[guard]))
        return table

    # -- kernels ---------------------------------------------------------------------------------------

    def _guard(
        self,
        guard: Buffer,
        index: Buffer,
        choice: tuple[bool, int, bool] | None,
        around: Buffer | None,
        table: Buffer,
        at: Operation,
    ) -> Dispatch:
        """Makes the dispatch of a guard's kernel.

        Args:
            guard: the buffer to write.
            index: a boolean, or the number of a branch.
            choice: whether the index is a boolean, the number of the guard's branch, and whether it is the last;
                ``None`` for a loop.
            around: the enclosing guard, whose steps run if its first row is not zero.
            table: the contents if the steps run.
            at: the operation to which it belongs.
        """
        types = [index.type, table.type, *([] if around is None else [around.type])]
        key = ("guard", *types, choice)
        if key not in self._entries:
            block = Block([TensorType(type.shape, type.element) for type in types])
            builder = Builder(block, at.location)
            runs = _chosen(builder, block.arguments[0], choice)
            if around is not None:
                first = builder.reshape(builder.slice(block.arguments[2], [(0, 1, 1), (0, 1, 1)]), ())
                runs = builder.elementwise("and", runs, builder.compare("NE", first, 0))
            self._add(key, block, builder.select(runs, block.arguments[1], 0), at.location)
        return self._dispatch(key, [index, table, *([] if around is None else [around]), guard], at)

    def _copy(self, step: Copy) -> Dispatch:
        """Makes a copy a dispatch of a word-copying kernel."""
        words = number_of(step.target.size) // 4
        key = ("copy", words)
        if key not in self._entries:
            block = Block([TensorType((words,), I32)])
            self._add(key, block, block.arguments[0], step.operation.location)
        type = MemRefType((words,), I32)
        views = [Buffer(type, buffer.root.kind, merged=buffer.root) for buffer in (step.source, step.target)]
        return self._dispatch(key, views, step.operation)

    def _add(self, key: tuple[object, ...], block: Block, result: Value, location: Location) -> None:
        block.append(Operation("iree.return", [result], location=location))
        entry = f"{self._name}_{key[0]}_{len(self._entries)}"
        executable = f"{self._name}_ex_{key[0]}_{len(self._entries)}"
        self._plan.executables.append(executable_of(executable_function(block, entry, location), executable))
        self._entries[key] = (f"{executable}::@{entry}", workload_of([result.type], location))

    def _dispatch(self, key: tuple[object, ...], buffers: Sequence[Buffer], at: Operation) -> Dispatch:
        entry, workload = self._entries[key]
        attributes: dict[str, Attribute] = {"entry": SymbolRef(entry)}
        operation = Operation("iree_hl_seq.dispatch", [workload.result], (), attributes, location=at.location)
        return Dispatch(operation, buffers, 1)


def _chosen(builder: Builder, index: Value, choice: tuple[bool, int, bool] | None) -> Value:
    """Whether an index continues a loop, or chooses a branch."""
    if choice is None:
        return index
    is_boolean, number, is_last = choice
    if is_boolean:
        return builder.append("not", [index], [TensorType((), I1)]).result if number else index
    if not is_last:
        return builder.compare("EQ", index, number)
    below = builder.compare("LT", index, 0)
    return builder.elementwise("or", below, builder.compare("GE", index, number))
