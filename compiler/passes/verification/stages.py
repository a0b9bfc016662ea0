"""Verification of programs past the canonical form: their executables, and their functions.

The passes make correct programs, but a program from a file may be anything that the grammar allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...dialects.rules.requirements import OperationError
from ...ir.attributes import attribute_text
from ...ir.operation import Block, Operation, Value
from ...ir.sizes import upper_bound
from ...ir.source import SourceText
from ...ir.types import I1, I32, MemRefType, TensorType, Type
from ...strategies.choice import strategy_of, wanted_of
from ...targets import reference, vulkan
from ..dispatch.outline import UNSPECIFIED, buffer_type
from ..dispatch.regions import CONTROL
from ..dynamic.requirements import values_of
from ..sequencing.steps import Schedule
from .ll_seq import read_schedule
from .verify import (
    Entry,
    agree,
    body_of,
    buffer_of,
    check_all,
    check_rule,
    constant,
    dispatch,
    ends,
    function_type_of,
    in_place,
    infer_types,
    is_workload,
    known_trips,
    operations_of,
    size_of,
)


def entries_of(executables: Sequence[Operation], stage: str, source: SourceText) -> Mapping[str, Entry]:
    """Verifies executables; returns their entry points by the names that dispatches use.

    Raises:
        CompileError: an operation is wrong at the stage; the error is at the first.
    """
    check = _ExecutableChecker(stage, source)
    check_all(check.executable, executables, source)
    for executable in executables:
        check_all(check.longer, operations_of(executable), source)
    return check.entries


class _ExecutableChecker:
    def __init__(self, stage: str, source: SourceText) -> None:
        self._stage = stage
        self._source = source
        self.entries: dict[str, Entry] = {}

    def executable(self, operation: Operation) -> None:
        """Checks an executable's variants, one for each target and its features, which must have equal entry points."""
        if self._stage in ("canonical", "regions"):
            raise OperationError("no executables at this stage")
        variants = operations_of(operation)
        if not variants or any(variant.name != "iree.executable" for variant in variants):
            raise OperationError("operations iree.executable in it, and nothing else")
        targets = [
            (str(variant.attributes.get("target")), str(variant.attributes.get("features"))) for variant in variants
        ]
        if len(set(targets)) != len(targets):
            raise OperationError("one executable for each target and its features")
        check_all(lambda variant: self._variant(variant, str(operation.attributes["sym_name"])), variants, self._source)

    def _variant(self, operation: Operation, symbol: str) -> None:
        target = operation.attributes.get("target")
        wanted = (vulkan.TARGET, reference.TARGET) if self._stage == "targets" else (UNSPECIFIED,)
        if target not in wanted:
            raise OperationError(f"the target {' or '.join(wanted)} at the stage {self._stage}, got {target}")
        if target == vulkan.TARGET:
            kernel = vulkan.kernel_of(operation)
            results = sum(item.is_written for item in kernel.bindings)
            entry = Entry((), [item.size for item in kernel.bindings], results)
            self._enter(f"{symbol}::@{kernel.entry_point}", entry)
            return
        inside = [function for module in operations_of(operation) for function in operations_of(module)]
        if [item.name for item in inside] != ["func.func"]:
            raise OperationError("a module with one function in it")
        check_all(lambda item: self._kernel_function(item, symbol), inside, self._source)

    def longer(self, variant: Operation) -> None:
        """Checks that the executable for longer lengths has the same number of buffers."""
        longer = variant.attributes.get("longer")
        if longer is None:
            return
        kernel = vulkan.kernel_of(variant)
        other = self.entries.get(str(longer))
        if other is None or len(other.sizes) != len(kernel.bindings):
            raise OperationError(f"an entry point of the program with {len(kernel.bindings)} buffers, got {longer}")

    def _enter(self, name: str, entry: Entry) -> None:
        """Records an entry point; entry points for several targets share a name, and must need the same buffers."""
        symbol = name.partition("::@")[0]
        for right, known in self.entries.items():
            if right.partition("::@")[0] == symbol:
                if right != name or len(known.sizes) != len(entry.sizes):
                    raise OperationError(f"one entry point with one list of buffers for all targets, got @{name}")
                # Code has 0 for call-dependent sizes.
                pairs = zip(known.sizes, entry.sizes, strict=True)
                sizes = [upper_bound(left, right) if left and right else left or right for left, right in pairs]
                entry = Entry(known.types or entry.types, sizes, max(known.results, entry.results))
        self.entries[name] = entry

    def _kernel_function(self, function: Operation, symbol: str) -> None:
        """Checks a kernel's function: loads of the first arguments, StableHLO operations, stores to the others."""
        block = body_of(function)
        types = function_type_of(function, block).inputs
        loads = [item for item in block.operations if item.name == "iree.load_input"]
        stores = [item for item in block.operations if item.name == "iree.store_output"]
        if not block.operations or block.terminator.name != "iree.return" or block.terminator.operands:
            raise OperationError("iree.return without operands at its end")
        places = [item.operands[:1] for item in loads] + [item.operands[1:] for item in stores]
        if places != [[item] for item in block.arguments] or not stores:
            raise OperationError("a load of each of its first arguments, and a store to each other one, in order")
        in_place(function, "iree.executable.in_place", len(loads))
        check_all(_kernel_operation, block.operations[:-1], self._source)
        fixed = function.attributes.get("iree.executable.strategy")
        if fixed is not None and strategy_of(fixed) is None:
            raise OperationError(f"{wanted_of(fixed)}; got {attribute_text(fixed)}")
        entry = Entry(types, [size_of(item) for item in types], len(stores))
        self._enter(f"{symbol}::@{function.attributes['sym_name']}", entry)


def _kernel_operation(operation: Operation) -> None:
    if operation.name == "iree.load_input":
        _memref_of(operation.result.type, operation.operands[0].type)
    elif operation.name == "iree.store_output":
        _memref_of(operation.operands[0].type, operation.operands[1].type)
    else:
        infer_types(operation)


def _memref_of(type: Type, buffer: Type) -> None:
    if not isinstance(type, TensorType) or buffer_type(type) is not buffer:
        raise OperationError(f"a tensor and its buffer, got {type} and {buffer}")


_CONTROL: Final = frozenset({f"stablehlo.{name}" for name in CONTROL} | {"stablehlo.return"})
_RETURNS: Final = {"canonical": "func.return", "regions": "func.return", "hl_seq": "iree_hl_seq.return"}


def verify_stage(stage: str, operations: Sequence[Operation], source: SourceText) -> Mapping[str, Schedule]:
    """Checks every operation of a program at a stage from ``canonical`` to ``targets``.

    Args:
        stage: the stage.
        operations: the executables, and the functions.
        source: the program's text, for errors.

    Returns:
        The functions' schedules by name, from the stage ``ll_seq`` on.

    Raises:
        CompileError: an operation is wrong at the stage; the error is at the first.
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
        """Checks an operation outside dispatch regions."""
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
    """Checks a call-dependent workload."""
    if not is_workload(operation.attributes.get("sizes")) or operation.operands or len(operation.results) != 1:
        raise OperationError("three numbers as sizes, and one result")


def _canonical(operation: Operation) -> None:
    if operation.name != "func.return":
        infer_types(operation)


_WORKLOADS: Final = {"arith.constant": "value", "iree.workload": "sizes"}


def _after_workload(operation: Operation) -> Sequence[Value]:
    """Returns the operands after the first, which must be a constant workload."""
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
