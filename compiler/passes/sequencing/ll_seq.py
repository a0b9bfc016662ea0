"""Schedules in text form, as functions of the ``iree_ll_seq`` dialect.

A function first declares its buffers: constants, results, flags that the host reads, and the arena with a view of each
transient buffer in it. Its operations then are the steps. ``verification/ll_seq.py`` reads such functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.attributes import Attribute, DenseArray, DenseElements, IntegerAttr, SymbolRef
from ...ir.operation import Block, Operation, Region, Value
from ...ir.types import I64, MemRefType, ScalarType, Type
from .steps import Barrier, Branch, Buffer, Check, Copy, Dispatch, Loop, Repeat, Schedule, Step


def sequence_of(function: Operation, schedule: Schedule) -> Operation:
    """Converts a schedule to a function with the attributes of the scheduled function."""
    return _Writer(function).run(schedule)


class _Writer:
    def __init__(self, function: Operation) -> None:
        self._function = function
        self._location = function.location
        self._values: dict[Buffer, Value] = {}
        self._block = Block()

    def run(self, schedule: Schedule) -> Operation:
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
            arena = self._add("alloc_arena", types=[MemRefType([plan.size], ScalarType("i8"))], attributes=attributes)
            for buffer, offset, life in zip(schedule.transients, plan.offsets, plan.buffers, strict=True):
                where = "offset" if isinstance(life.size, int) else "slot"
                lifetime = DenseArray(I64, (life.first, life.last))
                self._declare(
                    buffer, "subview", {where: IntegerAttr(offset, I64), "lifetime": lifetime}, [arena.result]
                )
        self._steps(schedule.steps)
        self._location = function.regions[0].block.terminator.location
        self._add("return", [self._values[item] for item in schedule.results])
        return Operation(
            function.name, (), (), dict(function.attributes), [Region([block])], location=function.location
        )

    def _declare(
        self,
        buffer: Buffer,
        name: str,
        attributes: Mapping[str, Attribute] | None = None,
        operands: Sequence[Value] = (),
    ) -> None:
        self._values[buffer] = self._add(name, operands, [buffer.type], attributes).result

    def _add(
        self,
        name: str,
        operands: Sequence[Value] = (),
        types: Sequence[Type] = (),
        attributes: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> Operation:
        made = Operation(
            f"iree_ll_seq.{name}", operands, types, dict(attributes or {}), regions, location=self._location
        )
        return self._block.append(made)

    def _values_of(self, buffers: Sequence[Buffer]) -> list[Value]:
        """Returns the values of buffers; a view for a buffer merged with a buffer of another type."""
        values = []
        for buffer in buffers:
            value = self._values[buffer.root]
            if buffer.type is not value.type:
                value = self._add("view", [value], [buffer.type]).result
            values.append(value)
        return values

    def _region(self, steps: Sequence[Step]) -> Region:
        around, self._block = self._block, Block()
        self._steps(steps)
        region = Region([self._block])
        self._block = around
        return region

    def _steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            around = self._location
            self._location = self._function.location if isinstance(step, Barrier) else step.operation.location
            self._step(step)
            self._location = around

    def _step(self, step: Step) -> None:
        attributes: dict[str, Attribute] = {}
        match step:
            case Barrier():
                self._add("barrier")
            case Dispatch():
                attributes = {**step.operation.attributes, "workload": step.workload}
                buffers = [*step.buffers]
                if step.guard is not None:
                    buffers.append(step.guard[0])
                    attributes["guard_row"] = IntegerAttr(step.guard[1], I64)
                name = "static_dispatch" if isinstance(step.workload, DenseElements) else "dispatch"
                self._add(name, self._values_of(buffers), attributes=attributes)
            case Copy():
                self._add("copy", self._values_of([step.source, step.target]))
            case Check():
                self._add("check", self._values_of(step.buffers), attributes=step.operation.attributes)
            case Repeat(trips=int() as trips):
                self._add("repeat", attributes={"trips": IntegerAttr(trips, I64)}, regions=[self._region(step.body)])
            case Repeat(trips=Buffer() as trips):
                self._add("repeat", self._values_of([trips]), regions=[self._region(step.body)])
            case Loop():
                regions = [self._region(step.condition), self._region(step.body)]
                attributes = {"repeatable": None} if step.is_repeatable else {}
                self._add("loop", self._values_of([step.flag]), attributes=attributes, regions=regions)
            case Branch():
                regions = [self._region(branch) for branch in step.branches]
                self._add("branch", self._values_of([step.index]), regions=regions)
