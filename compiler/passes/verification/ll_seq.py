"""Verification of functions of the low-level sequencer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...dialects.rules.requirements import OperationError
from ...ir.attributes import DenseElements, SymbolRef
from ...ir.operation import Block, Operation, Value
from ...ir.sizes import Size, number_of
from ...ir.source import SourceText
from ...ir.types import I1, I32, MemRefType, ScalarType
from ..sequencing.steps import Buffer
from .stage_rules import Entry, buffer_of, check_all, constant, dispatch, is_smaller, is_workload, size_of

_DECLARATIONS: Final = {
    "constant": "constant",
    "workgroup_counts": "constant",
    "alloc_heap": "result",
    "alloc_flag": "flag",
    "alloc_arena": "arena",
}
_HEAP: Final = "iree_ll_seq.alloc_heap"
_PARTIAL: Final = "partial result"


def verify_ll_seq(block: Block, entries: Mapping[str, Entry], source: SourceText) -> None:
    """Checks the operations of a function's block, whose end and types are checked already.

    Raises:
        CompileError: at the first operation that is wrong in itself.
        OperationError: the function is wrong as a whole.
    """
    _Checker(entries, source).run(block)


class _Checker:
    def __init__(self, entries: Mapping[str, Entry], source: SourceText) -> None:
        self._entries = entries
        self._source = source
        self._kinds: dict[Value, str] = {}

    def run(self, block: Block) -> None:
        """Checks a function's block."""
        self._kinds = dict.fromkeys(block.arguments, "argument")
        arenas = [operation for operation in block.operations if operation.name == "iree_ll_seq.alloc_arena"]
        if len(arenas) > 1:
            raise OperationError("one arena at most")
        check_all(self._operation, block.operations, self._source)
        returned = block.terminator.operands
        heap = [value for value in self._kinds if _name(value) == _HEAP]
        if len(returned) != len(heap) or set(returned) != set(heap):
            raise OperationError(f"to return each buffer of {_HEAP} once, and nothing else")

    def _operation(self, operation: Operation) -> None:
        rule = _LL_SEQ.get(operation.name.removeprefix("iree_ll_seq."))
        if rule is None or not operation.name.startswith("iree_ll_seq."):
            raise OperationError("an operation of the low-level sequencer")
        for value in operation.operands:
            if not isinstance(value.type, MemRefType) or None in value.type.shape:
                raise OperationError(f"buffers of known size, got a value of type {value.type}")
        rule(self, operation)

    def declare(self, operation: Operation) -> None:
        """Checks a declaration of a buffer at the start of a function."""
        type = buffer_of(operation)
        name = operation.name.removeprefix("iree_ll_seq.")
        if operation.parent is None or operation.parent.parent is None or operation.parent.parent.parent is None:
            raise OperationError("to be in a function")
        if operation.parent.parent.parent.name != "func.func":
            raise OperationError("to be in the function's own block, not in a loop or a branch")
        if name == "constant":
            constant(operation)
        elif operation.operands:
            raise OperationError("no operands")
        if name == "alloc_arena" and (type.rank != 1 or type.element is not ScalarType("i8")):
            raise OperationError(f"a type such as memref<1024xi8>, got {type}")
        if name == "alloc_flag" and (type.rank or type.element not in (I1, I32)):
            raise OperationError(f"a flag of type memref<i1> or memref<i32>, got {type}")
        if name == "workgroup_counts":
            self._table(operation, type)
        self._kinds[operation.result] = _DECLARATIONS[name]
        if name == "alloc_heap" and size_of(type) and not Buffer(type, "").is_whole:
            self._kinds[operation.result] = _PARTIAL

    def _table(self, operation: Operation, type: MemRefType) -> None:
        """Checks a table of workgroup counts: a row of ones, and one for each entry point."""
        entries = operation.attributes.get("entries")
        if not isinstance(entries, tuple):
            raise OperationError("entries, a list of entry points")
        for entry in entries:
            if not isinstance(entry, SymbolRef) or entry.name not in self._entries:
                raise OperationError(f"entry points of executables of the program, got {entry}")
        if type is not MemRefType((1 + len(entries), 3), I32):
            raise OperationError(f"memref<{1 + len(entries)}x3xi32> for {len(entries)} entry points, got {type}")

    def subview(self, operation: Operation) -> None:
        """Checks a range of the arena."""
        type = buffer_of(operation)
        arena, offset = operation.operands, operation.integer("offset", -1)
        if len(arena) != 1 or self._kinds.get(arena[0]) != "arena":
            raise OperationError("the arena as its operand")
        size = size_of(type)
        if isinstance(size, Size):
            slots = arena[0].owner.sizes("slots") if isinstance(arena[0].owner, Operation) else ()
            slot = operation.integer("slot", -1)
            if not 0 <= slot < len(slots) or is_smaller(slots[slot], size):
                raise OperationError(f"the slot of the arena that holds {size} bytes, got {slot}")
        elif offset < 0 or offset % 4 or is_smaller(size_of(arena[0].type), offset + size):
            raise OperationError(f"an offset of whole words such that it ends in {arena[0].type}, got {offset}")
        life = operation.integers("lifetime")
        if len(life) != 2 or not 0 <= life[0] <= life[1]:
            raise OperationError(f"a lifetime of two steps in order, got {list(life)}")
        self._kinds[operation.result] = "transient"

    def view(self, operation: Operation) -> None:
        """Checks a view of the same bytes as another type."""
        type = buffer_of(operation)
        if len(operation.operands) != 1 or is_smaller(size_of(operation.operands[0].type), size_of(type)):
            raise OperationError("one buffer that is as large as the result")
        self._kinds[operation.result] = self._kind(operation.operands[0])

    def _kind(self, value: Value) -> str:
        kind = self._kinds.get(value, "")
        if kind in ("", "arena"):
            raise OperationError("buffers that are declared before, and not the arena")
        return kind

    def writes(self, value: Value) -> None:
        """Checks that a buffer may be written."""
        if self._kind(value) in ("constant", "argument"):
            raise OperationError(f"to write no {self._kind(value)}")

    def dispatch(self, operation: Operation) -> None:
        """Checks a dispatch: inputs, then buffers that it writes."""
        workload = operation.attributes.get("workload")
        if not is_workload(workload):
            raise OperationError("a workload of three numbers")
        if isinstance(workload, DenseElements) != operation.name.endswith("static_dispatch"):
            raise OperationError("a workload that is known if it is static, and only then")
        operands = list(operation.operands)
        if "guard_row" in operation.attributes:
            self._guard(operands.pop() if operands else None, operation.integer("guard_row"))
        dispatch(operation, operands, self._entries)
        count = operation.integer("results", 1)
        if not 0 < count <= len(operands):
            raise OperationError(f"as many results as buffers at most, got {count}")
        for index, value in enumerate(operands):
            self._kind(value)
            if index >= len(operands) - count:
                self.writes(value)
                if self._kind(value) == _PARTIAL:
                    raise OperationError("to write a result that ends within a word by a copy")

    def _guard(self, guard: Value | None, row: int) -> None:
        """Checks that a guard is a row of workgroup counts in the arena."""
        if guard is None or self._kind(guard) != "transient":
            raise OperationError("a buffer in the arena as its last operand, with a guard_row")
        type = guard.tensor
        if type.rank != 2 or type.shape[1] != 3 or type.element is not I32:
            raise OperationError(f"workgroup counts such as memref<4x3xi32>, got {type}")
        if not 0 <= row < number_of(type.lengths[0]):
            raise OperationError(f"a guard_row of {type}, got {row}")

    def copy(self, operation: Operation) -> None:
        if len(operation.operands) != 2:
            raise OperationError("two buffers")
        source, target = operation.operands
        self._kind(source)
        self.writes(target)
        if is_smaller(size_of(source.type), size_of(target.type)):
            raise OperationError(f"to copy no more than there is, got {source.type} and {target.type}")

    def check(self, operation: Operation) -> None:
        for value in operation.operands:
            self._kind(value)

    def decision(self, operation: Operation) -> None:
        """Checks a loop or a branch: the host reads a flag."""
        is_loop = operation.name.endswith("loop")
        if len(operation.operands) != 1 or self._kind(operation.operands[0]) != "flag":
            raise OperationError("a buffer of iree_ll_seq.alloc_flag")
        is_boolean = operation.operands[0].tensor.element is I1
        if ((is_loop or is_boolean) and len(operation.regions) != 2) or not operation.regions:
            raise OperationError("two regions, but for a branch by a number")
        self._regions(operation)

    def repeat(self, operation: Operation) -> None:
        """Checks a repetition: its number is known, or a flag holds it."""
        flags = operation.operands
        if flags and (len(flags) > 1 or self._kind(flags[0]) != "flag" or flags[0].tensor.element is not I32):
            raise OperationError("a buffer of iree_ll_seq.alloc_flag of type memref<i32>")
        if not flags and not 0 < operation.integer("trips") < 1 << 32:
            raise OperationError("trips, from 1 to 4294967295")
        self._regions(operation)

    def _regions(self, operation: Operation) -> None:
        for region in operation.regions:
            check_all(self._step, region.block.operations, self._source)

    def _step(self, operation: Operation) -> None:
        if operation.name == "iree_ll_seq.return":
            raise OperationError("to be at the function's end")
        self._operation(operation)

    def nothing(self, operation: Operation) -> None:
        """Accepts an operation that needs no check."""


_LL_SEQ: Final[Mapping[str, Callable[[_Checker, Operation], None]]] = {
    **dict.fromkeys(_DECLARATIONS, _Checker.declare),
    "subview": _Checker.subview,
    "view": _Checker.view,
    "dispatch": _Checker.dispatch,
    "static_dispatch": _Checker.dispatch,
    "copy": _Checker.copy,
    "check": _Checker.check,
    "barrier": _Checker.nothing,
    "repeat": _Checker.repeat,
    "loop": _Checker.decision,
    "branch": _Checker.decision,
    "return": _Checker.nothing,
}


def _name(value: Value) -> str:
    return value.owner.name if isinstance(value.owner, Operation) else ""
