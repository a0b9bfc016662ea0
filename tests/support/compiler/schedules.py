"""Runs schedules of the low-level sequencer in memory of bytes, with executables evaluated in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pumice.compiler.analysis.reference_program import ProgramWriter
from pumice.compiler.ir.attributes import type_shape
from pumice.compiler.ir.operation import Operation
from pumice.compiler.ir.types import I1
from pumice.compiler.passes.sequencing.steps import Branch, Buffer, Check, Copy, Dispatch, Loop, Repeat, Schedule, Step
from pumice.hal_reference.operations import evaluate
from pumice.hal_reference.program import Array, Body

Call = Callable[[Operation, Sequence[Array]], None]


class ScheduleRunner:
    """A schedule and the executables that it dispatches.

    Args:
        plan: the schedule.
        executables: as outlining gives them.
        call: what custom calls do.
    """

    def __init__(self, plan: Schedule, executables: Sequence[Operation], call: Call | None = None) -> None:
        self._plan = plan
        self._call = call
        self._programs: Mapping[str, Body] = {
            f"{executable.attributes['sym_name']}::@{op.attributes['sym_name']}": ProgramWriter({}).executable(op)
            for executable in (*executables, *plan.executables)
            for op in executable.walk()
            if op.name == "func.func"
        }
        self._memory: dict[str, list[np.ndarray[tuple[int], np.dtype[np.uint8]]]] = {}
        self._arena = np.zeros(0, np.uint8)

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """Results for arguments; the arena starts with garbage."""
        plan = self._plan
        self._arena = np.full(plan.plan.size, 0xA5, np.uint8)
        self._memory = {"argument": [_bytes(value) for value in arguments]}
        self._memory["constant"] = [_bytes(value.array) for _, value in plan.constants]
        for _, entries in plan.tables:
            self._memory["constant"].append(_bytes(np.ones((1 + len(entries), 3), np.uint32)))
        self._memory["flag"] = [np.full(each.size, 0x5A, np.uint8) for each in plan.flags]
        self._memory["result"] = [np.full(each.size, 0x5A, np.uint8) for each in plan.results if each.kind == "result"]
        self._steps(plan.steps)
        return [self._array(each) for each in plan.results]

    def _view(self, buffer: Buffer) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        root = buffer.root
        if root.kind == "transient":
            start = self._plan.plan.offsets[root.number]
            return self._arena[start : start + root.size]
        return self._memory[root.kind][root.number]

    def _array(self, buffer: Buffer) -> Array:
        dtype = buffer.type.scalar.dtype
        shape = type_shape(buffer.type)
        count = int(np.prod(shape))
        return self._view(buffer)[: count * dtype.itemsize].view(dtype).reshape(shape).copy()

    def _steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Copy):
                count = step.target.bytes
                self._view(step.target)[:count] = self._view(step.source)[:count]
            elif isinstance(step, Dispatch):
                self._dispatch(step)
            elif isinstance(step, Check):
                assert self._call is not None
                self._call(step.operation, [self._array(each) for each in step.buffers])
            elif isinstance(step, Repeat):
                trips = step.trips if isinstance(step.trips, int) else int(self._array(step.trips).view(np.uint32))
                for _ in range(trips):
                    self._steps(step.body)
            elif isinstance(step, Loop):
                self._steps(step.condition)
                while bool(self._array(step.flag)):
                    self._steps(step.body)
                    self._steps(step.condition)
            elif isinstance(step, Branch):
                index = int(self._array(step.index))
                chosen = 1 - index if step.index.type.scalar is I1 else index
                last = len(step.branches) - 1
                self._steps(step.branches[chosen if 0 <= chosen <= last else last])

    def _dispatch(self, step: Dispatch) -> None:
        if step.guard is not None:
            counts, row = step.guard
            if not self._array(counts)[row].all():
                return
        count = len(step.buffers) - step.results
        inputs = [self._array(each) for each in step.buffers[:count]]
        results = evaluate(self._programs[step.entry], inputs)
        for buffer, value in zip(step.buffers[count:], results, strict=True):
            target = self._view(buffer)
            whole = _bytes(np.broadcast_to(value, type_shape(buffer.type)))
            target[: whole.size] = whole


def _bytes(array: Array) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return np.pad(data, (0, -data.size % 4))
