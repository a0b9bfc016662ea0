"""Verification of executables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...dialects.rules.requirements import OperationError
from ...ir.attributes import attribute_text
from ...ir.operation import Operation
from ...ir.sizes import upper_bound
from ...ir.source import SourceText
from ...ir.types import TensorType, Type
from ...strategies.choice import strategy_of, wanted_of
from ...targets import reference, vulkan
from ..dispatch.outline import UNSPECIFIED, buffer_type
from .stage_rules import Entry, body_of, check_all, function_type_of, in_place, infer_types, operations_of, size_of


def entries_of(executables: Sequence[Operation], stage: str, source: SourceText) -> Mapping[str, Entry]:
    """Verifies executables; returns their entry points by the names that dispatches use.

    Raises:
        CompileError: at the first operation that is wrong at the stage.
    """
    check = _Checker(stage, source)
    check_all(check.executable, executables, source)
    for executable in executables:
        check_all(check.longer, operations_of(executable), source)
    return check.entries


class _Checker:
    def __init__(self, stage: str, source: SourceText) -> None:
        self._stage = stage
        self._source = source
        self.entries: dict[str, Entry] = {}

    def executable(self, operation: Operation) -> None:
        """Checks the variants of an executable, one for each target and its features; all have the same entry point."""
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
        """Records an entry point; those of several targets share a name, and need the same buffers."""
        symbol = name.partition("::@")[0]
        for right, known in self.entries.items():
            if right.partition("::@")[0] == symbol:
                if right != name or len(known.sizes) != len(entry.sizes):
                    raise OperationError(f"one entry point with one list of buffers for all targets, got @{name}")
                # Code whose sizes depend on the call has 0 for them.
                pairs = zip(known.sizes, entry.sizes, strict=True)
                sizes = [upper_bound(left, right) if left and right else left or right for left, right in pairs]
                entry = Entry(known.types or entry.types, sizes, max(known.results, entry.results))
        self.entries[name] = entry

    def _kernel_function(self, function: Operation, symbol: str) -> None:
        """Checks a kernel's function: loads of the first arguments, operations of StableHLO, stores to the others."""
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
