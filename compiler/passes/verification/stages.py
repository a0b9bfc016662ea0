"""Verification of programs past the canonical form.

The passes make correct programs, but a program that was read from a file may be anything that the grammar allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...dialects.rules.requirements import OperationError
from ...ir.operation import Block, Operation, Value
from ...ir.source import SourceText
from ...ir.types import I1, I32, MemRefType
from ..dispatch.regions import CONTROL
from ..dynamic.requirements import values_of
from ..sequencing.steps import Schedule
from .executables import entries_of
from .ll_seq import read_schedule
from .stage_rules import (
    Entry,
    body_of,
    buffer_of,
    check_all,
    check_rule,
    constant,
    dispatch,
    ends,
    function_type_of,
    infer_types,
    is_workload,
    known_trips,
)
from .verify import agree

_CONTROL: Final = frozenset({f"stablehlo.{name}" for name in CONTROL} | {"stablehlo.return"})
_RETURNS: Final = {"canonical": "func.return", "regions": "func.return", "hl_seq": "iree_hl_seq.return"}


def verify_stage(stage: str, operations: Sequence[Operation], source: SourceText) -> Mapping[str, Schedule]:
    """Checks every operation of a program at a stage from ``canonical`` to ``targets``.

    Args:
        stage: the stage.
        operations: executables, and functions.
        source: the program's text, for errors.

    Returns:
        From ``ll_seq`` on, the functions' schedules by name.

    Raises:
        CompileError: at the first operation that is wrong at the stage.
    """
    executables = [operation for operation in operations if operation.name != "func.func"]
    check = _Checker(stage, entries_of(executables, stage, source), source)
    check_all(check.function, [operation for operation in operations if operation.name == "func.func"], source)
    return check.schedules


class _Checker:
    def __init__(self, stage: str, entries: Mapping[str, Entry], source: SourceText) -> None:
        self._stage = stage
        self._entries = entries
        self._source = source
        self.schedules: dict[str, Schedule] = {}

    def function(self, function: Operation) -> None:
        """Checks an exported function."""
        if not function.regions or function.attributes.get("sym_visibility") == "private":
            raise OperationError(f"a public function with a body at the stage {self._stage}")
        block = body_of(function)
        values_of(function.attributes, [value.type for value in block.arguments])
        ends(block, _RETURNS.get(self._stage, "iree_ll_seq.return"), function_type_of(function, block).results)
        rules = {"canonical": _canonical, "regions": self._region_level, "hl_seq": self._hl_seq}
        if self._stage in rules:
            check_all(rules[self._stage], block.operations, self._source)
        else:
            self.schedules[str(function.attributes["sym_name"])] = read_schedule(block, self._entries, self._source)

    def _region_level(self, operation: Operation) -> None:
        """Checks an operation outside of dispatch regions."""
        if operation.name == "iree.dispatch_region":
            _dispatch_region(operation)
        elif operation.name in ("arith.constant", "stablehlo.constant"):
            constant(operation)
        elif operation.name == "iree.workload":
            _workload(operation)
        elif operation.name in _CONTROL:
            check_rule(operation)
            for region in operation.regions:
                check_all(self._region_level, region.block.operations, self._source)
        elif operation.name != "func.return":
            raise OperationError("to be in a dispatch region")

    def _hl_seq(self, operation: Operation) -> None:
        name = operation.name.removeprefix("iree_hl_seq.")
        if name == "dispatch":
            dispatch(operation, _after_workload(operation), self._entries)
        elif name in ("arith.constant", "constant"):
            constant(operation)
        elif name == "iree.workload":
            _workload(operation)
        elif name == "alloc_heap":
            buffer_of(operation)
        elif operation.name in _CONTROL:
            _control(operation)
            for region in operation.regions:
                check_all(self._hl_seq, region.block.operations, self._source)
        elif name != "return":
            raise OperationError("an operation of the high-level sequencer")


def _workload(operation: Operation) -> None:
    """Checks a workload that depends on the call."""
    if not is_workload(operation.attributes.get("sizes")) or operation.operands or len(operation.results) != 1:
        raise OperationError("three numbers as sizes, and one result")


def _canonical(operation: Operation) -> None:
    if operation.name != "func.return":
        infer_types(operation)


_WORKLOADS: Final = {"arith.constant": "value", "iree.workload": "sizes"}


def _after_workload(operation: Operation) -> Sequence[Value]:
    """Returns the operands behind the first, which must be a constant workload."""
    owner = operation.operands[0].owner if operation.operands else None
    name = owner.name if isinstance(owner, Operation) else ""
    workload = owner.attributes.get(_WORKLOADS[name]) if isinstance(owner, Operation) and name in _WORKLOADS else None
    if not is_workload(workload):
        raise OperationError("a constant workload of three numbers")
    return operation.operands[1:]


def _dispatch_region(operation: Operation) -> None:
    inputs = _after_workload(operation)
    block = body_of(operation)
    agree([value.type for value in block.arguments], [value.type for value in inputs], "inputs")
    ends(block, "iree.return", [value.type for value in operation.results])
    if not operation.results:
        raise OperationError("results")
    for inner in block.operations[:-1]:
        if inner.name in _CONTROL:
            raise OperationError(f"operations that a kernel computes in it, got {inner.name}")
        infer_types(inner)
    _closed(block, set(block.arguments))


def _closed(block: Block, known: set[Value]) -> None:
    """Checks that a block uses no values from outside."""
    for operation in block.operations:
        for inner in operation.walk():
            for region in inner.regions:
                for body in region.blocks:
                    known.update(body.arguments)
            known.update(inner.results)
            if any(value not in known for value in inner.operands):
                raise OperationError(f"inputs for what it uses from outside; {inner.name} uses a value that is none")


def _control(operation: Operation) -> None:
    """Checks a loop or a branch over buffers."""
    name = operation.name.removeprefix("stablehlo.")
    types = [value.type for value in operation.results]
    if name == "while":
        known_trips(operation)
        agree([value.type for value in operation.operands], types, "operands")
        if len(operation.regions) != 2:
            raise OperationError("a condition and a body")
        for region in operation.regions:
            agree([value.type for value in region.block.arguments], types, "arguments")
        ends(operation.regions[0].block, "stablehlo.return", [MemRefType([], I1)])
        ends(operation.regions[1].block, "stablehlo.return", types)
    elif name in ("if", "case"):
        flag = MemRefType([], I1 if name == "if" else I32)
        agree([value.type for value in operation.operands], [flag], "operands")
        if not operation.regions or (name == "if" and len(operation.regions) != 2):
            raise OperationError("a region for each branch")
        for region in operation.regions:
            agree([value.type for value in region.block.arguments], [], "arguments")
            ends(region.block, "stablehlo.return", types)
