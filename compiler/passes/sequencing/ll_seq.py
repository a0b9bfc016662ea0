"""Conversion of schedules to functions of the ``iree_ll_seq`` dialect, and back.

A function first declares its buffers: constants, results, flags that the host reads, and the arena with a view of each
transient buffer in it. Its operations then are the steps. Each kind of step is a class in ``steps``, with a function
here that writes it and one that reads it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ...ir.attributes import Attribute, DenseArray, DenseElements, IntegerAttr, SymbolRef
from ...ir.operation import Block, Location, Operation, Region, Value
from ...ir.sizes import Size, number_of
from ...ir.types import I32, I64, MemRefType, ScalarType, Type
from .memory import Interval, Plan
from .steps import Barrier, Branch, Buffer, Check, Copy, Dispatch, Loop, Repeat, Schedule, Step

_BYTE: Final = ScalarType("i8")


def sequence_of(function: Operation, schedule: Schedule, ordinal: int) -> Operation:
    """Converts a schedule to a function.

    Args:
        function: the scheduled function of the ``iree_hl_seq`` dialect.
        schedule: its schedule.
        ordinal: of the function in the module.
    """
    return _Writer(function).run(schedule, ordinal)


def schedule_of(function: Operation) -> Schedule:
    """Reads the schedule of a verified function of the ``iree_ll_seq`` dialect."""
    return _Reader().run(function.regions[0].block)


class _Writer:
    def __init__(self, function: Operation) -> None:
        self._function = function
        self._values: dict[Buffer, Value] = {}
        self._block = Block()

    def run(self, schedule: Schedule, ordinal: int) -> Operation:
        function, block = self._function, Block([item.type for item in schedule.arguments])
        self._block = block
        self._values.update(zip(schedule.arguments, block.arguments, strict=True))
        for buffer, value in schedule.constants:
            self._declare(buffer, "constant", {"value": value})
        for buffer, entries in schedule.tables:
            self._declare(buffer, "workgroup_counts", {"entries": tuple(SymbolRef(entry) for entry in entries)})
        for buffer in schedule.results:
            self._declare(buffer, "alloc_heap")
        for buffer in schedule.flags:
            self._declare(buffer, "alloc_flag")
        plan = schedule.plan
        if schedule.transients:
            attributes: dict[str, Attribute] = {
                "peak_before": IntegerAttr(plan.total, I64),
                "lower_bound": IntegerAttr(plan.lower_bound, I64),
            }
            if plan.slots:
                attributes["slots"] = DenseArray(I64, tuple(plan.slots))
            arena = self.add("alloc_arena", (), [MemRefType([plan.size], _BYTE)], attributes, function.location).result
            for buffer, offset, life in zip(schedule.transients, plan.offsets, plan.buffers, strict=True):
                place: dict[str, Attribute] = {
                    "offset" if isinstance(life.size, int) else "slot": IntegerAttr(offset, I64),
                    "lifetime": DenseArray(I64, (life.first, life.last)),
                }
                self._declare(buffer, "subview", place, [arena])
        self._steps(schedule.steps)
        results = [self._values[item] for item in schedule.results]
        self.add("return", results, (), {}, function.regions[0].block.terminator.location)
        types = {**function.attributes, "iree.ordinal": IntegerAttr(ordinal, I32)}
        return Operation(function.name, (), (), types, [Region([block])], location=function.location)

    def _declare(
        self,
        buffer: Buffer,
        name: str,
        attributes: dict[str, Attribute] | None = None,
        operands: Sequence[Value] = (),
    ) -> None:
        made = self.add(name, operands, [buffer.type], attributes or {}, self._function.location)
        self._values[buffer] = made.result

    def add(
        self,
        name: str,
        operands: Sequence[Value],
        types: Sequence[Type],
        attributes: dict[str, Attribute],
        location: Location,
        regions: Sequence[Region] = (),
    ) -> Operation:
        """Appends an operation to the block."""
        made = Operation(f"iree_ll_seq.{name}", operands, types, attributes, regions, location=location)
        return self._block.append(made)

    def values(self, buffers: Sequence[Buffer], location: Location) -> list[Value]:
        """Returns values of buffers; a view where a buffer was merged with one of another type."""
        values = []
        for buffer in buffers:
            value = self._values[buffer.root]
            if buffer.type is not value.type:
                value = self.add("view", [value], [buffer.type], {}, location).result
            values.append(value)
        return values

    @property
    def location(self) -> Location:
        return self._function.location

    def region(self, steps: Sequence[Step]) -> Region:
        """Writes steps into a region."""
        around, self._block = self._block, Block()
        self._steps(steps)
        region = Region([self._block])
        self._block = around
        return region

    def _steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            _WRITERS[type(step)](self, step)


class _Reader:
    def __init__(self) -> None:
        self._buffers: dict[Value, Buffer] = {}
        self._declared: dict[str, list[tuple[Buffer, Operation]]] = {kind: [] for kind in _KINDS.values()}

    def run(self, block: Block) -> Schedule:
        arguments = [Buffer(_type(value), "argument", index) for index, value in enumerate(block.arguments)]
        self._buffers.update(zip(block.arguments, arguments, strict=True))
        steps = self.steps(block.operations[:-1])
        constants = self._declared["constant"]
        places = self._declared["transient"]
        lives = [Interval(buffer.size, *operation.integers("lifetime")) for buffer, operation in places]
        plan = Plan([operation.integer("slot", operation.integer("offset")) for _, operation in places], 0, 0, 0, lives)
        for buffer, arena in self._declared["arena"]:
            peaks = arena.integer("lower_bound"), arena.integer("peak_before")
            slots = [size for size in arena.sizes("slots") if isinstance(size, Size)]
            size = number_of(buffer.bytes)
            plan = dataclasses.replace(plan, size=size, lower_bound=peaks[0], total=peaks[1], slots=slots)
        results = self.buffers(block.terminator)
        for number, result in enumerate(results):
            result.number = number
        return Schedule(
            steps,
            arguments,
            results,
            [
                (buffer, value)
                for buffer, operation in constants
                if isinstance(value := operation.attributes.get("value"), DenseElements)
            ],
            [buffer for buffer, _ in places],
            [buffer for buffer, _ in self._declared["flag"]],
            plan,
            [
                (buffer, _entries(operation))
                for buffer, operation in constants
                if operation.name.endswith("workgroup_counts")
            ],
        )

    def buffers(self, operation: Operation) -> list[Buffer]:
        return [self._buffers[value] for value in operation.operands]

    def steps(self, operations: Sequence[Operation]) -> list[Step]:
        """Reads the steps among operations; skips declarations."""
        steps = []
        for operation in operations:
            name = operation.name.removeprefix("iree_ll_seq.")
            if name in _KINDS:
                listed = self._declared[_KINDS[name]]
                buffer = Buffer(_type(operation.result), _KINDS[name], len(listed))
                listed.append((buffer, operation))
                self._buffers[operation.result] = buffer
            elif name == "view":
                (viewed,) = self.buffers(operation)
                self._buffers[operation.result] = Buffer(_type(operation.result), viewed.kind, merged=viewed)
            elif name in _READERS:
                steps.append(_READERS[name](self, operation))
        return steps

    def region(self, operation: Operation, index: int) -> list[Step]:
        """Reads the steps in a region of an operation."""
        return self.steps(operation.regions[index].block.operations)


def _type(value: Value) -> MemRefType:
    assert isinstance(value.type, MemRefType)
    return value.type


def _entries(operation: Operation) -> list[str]:
    entries = operation.attributes["entries"]
    assert isinstance(entries, tuple)
    return [entry.name for entry in entries if isinstance(entry, SymbolRef)]


_KINDS: Final = {
    "constant": "constant",
    "workgroup_counts": "constant",
    "alloc_heap": "result",
    "alloc_flag": "flag",
    "alloc_arena": "arena",
    "subview": "transient",
}
"""Kinds of buffers by the operations that declare them."""


# -- kinds of steps --------------------------------------------------------------------------------------


def _write_dispatch(writer: _Writer, step: Dispatch) -> None:
    operation = step.operation
    attributes = dict(operation.attributes)
    workload = operation.operands[0].owner
    assert isinstance(workload, Operation)
    attributes["workload"] = workload.attributes.get("value", workload.attributes.get("sizes"))
    buffers = [*step.buffers]
    if step.guard is not None:
        buffers.append(step.guard[0])
        attributes["guard_row"] = IntegerAttr(step.guard[1], I64)
    operands = writer.values(buffers, operation.location)
    is_static = isinstance(attributes["workload"], DenseElements)
    writer.add("static_dispatch" if is_static else "dispatch", operands, (), attributes, operation.location)


def _read_dispatch(reader: _Reader, operation: Operation) -> Step:
    buffers = reader.buffers(operation)
    row = operation.integer("guard_row", -1)
    guard = None if row < 0 else (buffers.pop(), row)
    return Dispatch(operation, buffers, operation.integer("results", 1), guard)


def _write_barrier(writer: _Writer, step: Barrier) -> None:
    writer.add("barrier", (), (), {}, writer.location)


def _read_barrier(reader: _Reader, operation: Operation) -> Step:
    return Barrier()


def _write_copy(writer: _Writer, step: Copy) -> None:
    location = step.operation.location
    writer.add("copy", writer.values([step.source, step.target], location), (), {}, location)


def _read_copy(reader: _Reader, operation: Operation) -> Step:
    source, target = reader.buffers(operation)
    return Copy(source, target, operation)


def _write_check(writer: _Writer, step: Check) -> None:
    location = step.operation.location
    writer.add("check", writer.values(step.buffers, location), (), step.operation.attributes, location)


def _read_check(reader: _Reader, operation: Operation) -> Step:
    return Check(operation, reader.buffers(operation))


def _write_repeat(writer: _Writer, step: Repeat) -> None:
    location = step.operation.location
    attributes: dict[str, Attribute] = {"trips": IntegerAttr(step.trips, I64)} if isinstance(step.trips, int) else {}
    operands = [] if isinstance(step.trips, int) else writer.values([step.trips], location)
    writer.add("repeat", operands, (), attributes, location, [writer.region(step.body)])


def _read_repeat(reader: _Reader, operation: Operation) -> Step:
    (*flags,) = reader.buffers(operation)
    return Repeat(operation, flags[0] if flags else operation.integer("trips"), reader.region(operation, 0))


def _write_loop(writer: _Writer, step: Loop) -> None:
    location = step.operation.location
    regions = [writer.region(step.condition), writer.region(step.body)]
    attributes: dict[str, Attribute] = {"repeatable": None} if step.is_repeatable else {}
    writer.add("loop", writer.values([step.flag], location), (), attributes, location, regions)


def _read_loop(reader: _Reader, operation: Operation) -> Step:
    (flag,) = reader.buffers(operation)
    condition, body = reader.region(operation, 0), reader.region(operation, 1)
    return Loop(operation, condition, flag, body, operation.flag("repeatable"))


def _write_branch(writer: _Writer, step: Branch) -> None:
    location = step.operation.location
    regions = [writer.region(branch) for branch in step.branches]
    writer.add("branch", writer.values([step.index], location), (), {}, location, regions)


def _read_branch(reader: _Reader, operation: Operation) -> Step:
    (index,) = reader.buffers(operation)
    return Branch(operation, index, [reader.region(operation, number) for number in range(len(operation.regions))])


_WRITERS: Final[Mapping[type[Step], Callable[[_Writer, Any], None]]] = {
    Dispatch: _write_dispatch,
    Barrier: _write_barrier,
    Copy: _write_copy,
    Check: _write_check,
    Repeat: _write_repeat,
    Loop: _write_loop,
    Branch: _write_branch,
}
_READERS: Final[Mapping[str, Callable[[_Reader, Operation], Step]]] = {
    "dispatch": _read_dispatch,
    "static_dispatch": _read_dispatch,
    "barrier": _read_barrier,
    "copy": _read_copy,
    "check": _read_check,
    "repeat": _read_repeat,
    "loop": _read_loop,
    "branch": _read_branch,
}
