"""Schedules read from functions of the ``iree_ll_seq`` dialect, with checks of their operations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...dialects.rules.requirements import OperationError
from ...ir.attributes import DenseElements, SymbolRef
from ...ir.operation import Block, Operation, Value
from ...ir.sizes import Size, number_of
from ...ir.source import SourceText
from ...ir.types import I1, I32, MemRefType, ScalarType
from ..sequencing.memory import Interval, Plan
from ..sequencing.steps import Barrier, Branch, Buffer, Check, Copy, Dispatch, Loop, Repeat, Schedule, Step
from .verify import Entry, buffer_of, check_all, constant, dispatch, is_smaller, is_workload, size_of


def read_schedule(block: Block, entries: Mapping[str, Entry], source: SourceText) -> Schedule:
    """Reads the schedule of a function from its block, whose end and types are already checked.

    Raises:
        CompileError: a single operation is wrong; the error is at the first.
        OperationError: the function is wrong as a whole.
    """
    return _Reader(entries, source).run(block)


class _Reader:
    def __init__(self, entries: Mapping[str, Entry], source: SourceText) -> None:
        self._entries = entries
        self._source = source
        self._buffers: dict[Value, Buffer] = {}
        self._declared: dict[str, list[tuple[Buffer, Operation]]] = defaultdict(list)
        self._constants: list[tuple[Buffer, DenseElements]] = []
        self._tables: list[tuple[Buffer, Sequence[str]]] = []
        self._depth = 0

    def run(self, block: Block) -> Schedule:
        arguments = []
        for index, value in enumerate(block.arguments):
            size_of(value.type)
            assert isinstance(value.type, MemRefType)
            arguments.append(Buffer(value.type, "argument", index))
        self._buffers.update(zip(block.arguments, arguments, strict=True))
        if sum(operation.name == "iree_ll_seq.alloc_arena" for operation in block.operations) > 1:
            raise OperationError("one arena at most")
        steps = self._steps(block.operations[:-1])
        heap = [buffer for buffer, _ in self._declared["result"]]
        results = [buffer for value in block.terminator.operands if (buffer := self._buffers.get(value)) in heap]
        if not len(results) == len(heap) == len(block.terminator.operands) == len(set(results)):
            raise OperationError("to return each buffer of iree_ll_seq.alloc_heap once, and nothing else")
        for number, result in enumerate(results):
            result.number = number
        return Schedule(
            steps,
            arguments,
            results,
            self._constants,
            [buffer for buffer, _ in self._declared["transient"]],
            [buffer for buffer, _ in self._declared["flag"]],
            self._plan(),
            self._tables,
        )

    def _plan(self) -> Plan:
        places = self._declared["transient"]
        lives = [Interval(buffer.size, *operation.integers("lifetime")) for buffer, operation in places]
        offsets = [operation.integer("slot", operation.integer("offset")) for _, operation in places]
        if not self._declared["arena"]:
            return Plan(offsets, 0, 0, 0, lives)
        ((buffer, arena),) = self._declared["arena"]
        slots = [size for size in arena.sizes("slots") if isinstance(size, Size)]
        peaks = arena.integer("lower_bound"), arena.integer("peak_before")
        return Plan(offsets, number_of(buffer.bytes), *peaks, lives, slots)

    def _steps(self, operations: Sequence[Operation]) -> list[Step]:
        """Reads operations in order; returns those that are steps."""
        steps: list[Step] = []

        def read(operation: Operation) -> None:
            step = self._operation(operation)
            if step is not None:
                steps.append(step)

        check_all(read, operations, self._source)
        return steps

    def _regions(self, operation: Operation) -> list[list[Step]]:
        self._depth += 1
        steps = [self._steps(region.block.operations) for region in operation.regions]
        self._depth -= 1
        return steps

    def _operation(self, operation: Operation) -> Step | None:
        rule = _RULES.get(operation.name.removeprefix("iree_ll_seq."))
        if rule is None or not operation.name.startswith("iree_ll_seq."):
            raise OperationError("an operation of the low-level sequencer")
        for value in operation.operands:
            if not isinstance(value.type, MemRefType) or None in value.type.shape:
                raise OperationError(f"buffers of known size, got a value of type {value.type}")
        return rule(self, operation)

    def _buffer(self, value: Value) -> Buffer:
        buffer = self._buffers.get(value)
        if buffer is None or buffer.kind == "arena":
            raise OperationError("buffers that are declared before, and not the arena")
        return buffer

    def _written(self, value: Value) -> Buffer:
        """Returns the buffer of a writable value."""
        buffer = self._buffer(value)
        if buffer.kind in ("constant", "argument"):
            raise OperationError(f"to write no {buffer.kind}")
        return buffer

    # -- declarations ----------------------------------------------------------------------------------

    def declare(self, operation: Operation) -> None:
        """Reads a declaration of a buffer at the start of a function."""
        type = buffer_of(operation)
        name = operation.name.removeprefix("iree_ll_seq.")
        if self._depth:
            raise OperationError("to be in the function's own block, not in a loop or a branch")
        if operation.operands and name != "constant":
            raise OperationError("no operands")
        if name == "alloc_arena" and (type.rank != 1 or type.element is not ScalarType("i8")):
            raise OperationError(f"a type such as memref<1024xi8>, got {type}")
        if name == "alloc_flag" and (type.rank or type.element not in (I1, I32)):
            raise OperationError(f"a flag of type memref<i1> or memref<i32>, got {type}")
        buffer = self._declare(operation, type, _KINDS[name])
        if name == "constant":
            self._constants.append((buffer, constant(operation)))
        if name == "workgroup_counts":
            self._tables.append((buffer, self._entries_in(operation)))

    def _entries_in(self, operation: Operation) -> list[str]:
        """Returns the entry points of a table of workgroup counts: a row of ones, and one for each of them."""
        entries, type = operation.attributes.get("entries"), operation.result.type
        if not isinstance(entries, tuple):
            raise OperationError("entries, a list of entry points")
        names = [entry.name for entry in entries if isinstance(entry, SymbolRef) and entry.name in self._entries]
        if len(names) < len(entries):
            raise OperationError(f"entry points of executables of the program, got {', '.join(map(str, entries))}")
        if type is not MemRefType((1 + len(names), 3), I32):
            raise OperationError(f"memref<{1 + len(names)}x3xi32> for {len(names)} entry points, got {type}")
        return names

    def _declare(self, operation: Operation, type: MemRefType, kind: str) -> Buffer:
        listed = self._declared[kind]
        buffer = Buffer(type, kind, len(listed))
        listed.append((buffer, operation))
        self._buffers[operation.result] = buffer
        return buffer

    def subview(self, operation: Operation) -> None:
        """Reads a range of the arena."""
        type = buffer_of(operation)
        arenas = [buffer for buffer, _ in self._declared["arena"]]
        if not arenas or [self._buffers.get(value) for value in operation.operands] != arenas:
            raise OperationError("the arena as its operand")
        ((_, arena),) = self._declared["arena"]
        size, offset = size_of(type), operation.integer("offset", -1)
        if isinstance(size, Size):
            slots, slot = arena.sizes("slots"), operation.integer("slot", -1)
            if not 0 <= slot < len(slots) or is_smaller(slots[slot], size):
                raise OperationError(f"the slot of the arena that holds {size} bytes, got {slot}")
        elif offset < 0 or offset % 4 or is_smaller(size_of(arena.result.type), offset + size):
            raise OperationError(f"an offset of whole words such that it ends in {arena.result.type}, got {offset}")
        life = operation.integers("lifetime")
        if len(life) != 2 or not 0 <= life[0] <= life[1]:
            raise OperationError(f"a lifetime of two steps in order, got {list(life)}")
        self._declare(operation, type, "transient")

    def view(self, operation: Operation) -> None:
        """Reads a view of the same bytes as another type."""
        type = buffer_of(operation)
        if len(operation.operands) != 1 or is_smaller(size_of(operation.operands[0].type), size_of(type)):
            raise OperationError("one buffer that is as large as the result")
        viewed = self._buffer(operation.operands[0])
        self._buffers[operation.result] = Buffer(type, viewed.kind, merged=viewed)

    # -- steps -----------------------------------------------------------------------------------------

    def dispatch(self, operation: Operation) -> Step:
        """Reads a dispatch: the inputs, then the buffers that it writes."""
        workload = operation.attributes.get("workload")
        if not is_workload(workload):
            raise OperationError("a workload of three numbers")
        if isinstance(workload, DenseElements) != operation.name.endswith("static_dispatch"):
            raise OperationError("a workload that is known if it is static, and only then")
        operands, guard = list(operation.operands), None
        if "guard_row" in operation.attributes:
            guard = self._guard(operands.pop() if operands else None, operation.integer("guard_row"))
        dispatch(operation, operands, self._entries)
        count = operation.integer("results", 1)
        if not 0 < count <= len(operands):
            raise OperationError(f"as many results as buffers at most, got {count}")
        buffers = [self._buffer(value) for value in operands[:-count]]
        for value in operands[-count:]:
            buffers.append(self._written(value))
            root = buffers[-1].root
            if root.kind == "result" and root.size and not root.is_whole:
                raise OperationError("to write a result that ends within a word by a copy")
        return Dispatch(operation, buffers, count, guard)

    def _guard(self, guard: Value | None, row: int) -> tuple[Buffer, int]:
        """Returns a row of workgroup counts in the arena."""
        if guard is None or self._buffer(guard).kind != "transient":
            raise OperationError("a buffer in the arena as its last operand, with a guard_row")
        type = guard.tensor
        if type.rank != 2 or type.shape[1] != 3 or type.element is not I32:
            raise OperationError(f"workgroup counts such as memref<4x3xi32>, got {type}")
        if not 0 <= row < number_of(type.lengths[0]):
            raise OperationError(f"a guard_row of {type}, got {row}")
        return self._buffer(guard), row

    def copy(self, operation: Operation) -> Step:
        if len(operation.operands) != 2:
            raise OperationError("two buffers")
        source, target = operation.operands
        made = Copy(self._buffer(source), self._written(target), operation)
        if is_smaller(size_of(source.type), size_of(target.type)):
            raise OperationError(f"to copy no more than there is, got {source.type} and {target.type}")
        return made

    def check(self, operation: Operation) -> Step:
        return Check(operation, [self._buffer(value) for value in operation.operands])

    def barrier(self, operation: Operation) -> Step:
        return Barrier()

    def decision(self, operation: Operation) -> Step:
        """Reads a loop or a branch: the host reads a flag."""
        is_loop = operation.name.endswith("loop")
        flags = [self._buffer(value) for value in operation.operands]
        if [flag.kind for flag in flags] != ["flag"]:
            raise OperationError("a buffer of iree_ll_seq.alloc_flag")
        is_boolean = flags[0].type.element is I1
        if ((is_loop or is_boolean) and len(operation.regions) != 2) or not operation.regions:
            raise OperationError("two regions, but for a branch by a number")
        steps = self._regions(operation)
        if is_loop:
            return Loop(operation, steps[0], flags[0], steps[1], operation.flag("repeatable"))
        return Branch(operation, flags[0], steps)

    def repeat(self, operation: Operation) -> Step:
        """Reads a repetition, whose number is known or in a flag."""
        flags = [self._buffer(value) for value in operation.operands]
        if flags and (len(flags) > 1 or flags[0].kind != "flag" or flags[0].type.element is not I32):
            raise OperationError("a buffer of iree_ll_seq.alloc_flag of type memref<i32>")
        if not flags and not 0 < operation.integer("trips") < 1 << 32:
            raise OperationError("trips, from 1 to 4294967295")
        if len(operation.regions) != 1:
            raise OperationError("one region")
        (body,) = self._regions(operation)
        return Repeat(operation, flags[0] if flags else operation.integer("trips"), body)

    def end(self, operation: Operation) -> None:
        raise OperationError("to be at the function's end")


_KINDS: Final = {
    "constant": "constant",
    "workgroup_counts": "constant",
    "alloc_heap": "result",
    "alloc_flag": "flag",
    "alloc_arena": "arena",
}
"""Kinds of buffers by the operations that declare them."""

_RULES: Final[Mapping[str, Callable[[_Reader, Operation], Step | None]]] = {
    **dict.fromkeys(_KINDS, _Reader.declare),
    "subview": _Reader.subview,
    "view": _Reader.view,
    "dispatch": _Reader.dispatch,
    "static_dispatch": _Reader.dispatch,
    "copy": _Reader.copy,
    "check": _Reader.check,
    "barrier": _Reader.barrier,
    "repeat": _Reader.repeat,
    "loop": _Reader.decision,
    "branch": _Reader.decision,
    "return": _Reader.end,
}
