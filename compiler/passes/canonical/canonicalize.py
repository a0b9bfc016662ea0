"""The canonical form: calls inlined, constants folded, equal operations merged, unused operations dropped."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Never

import numpy as np

from ....hal_reference.operations import DEFINITIONS, evaluate
from ....hal_reference.program import Body, Node
from ...analysis.reference_program import flat_attributes, plain, spec_of
from ...dialects.builder import Builder
from ...dialects.rules.hlo import infer
from ...ir.attributes import Attribute, DenseElements, IntegerAttr, SymbolRef, type_shape
from ...ir.copying import copy_operations, copy_region
from ...ir.operation import Block, Operation, Region, Value, tensor_of
from ...ir.parser import MAX_OPERATIONS
from ...ir.source import SourceText
from ...ir.type_parser import MAX_DEPTH
from ...ir.types import I64, TensorType
from .legacy import RULES, constant_of

MAX_FOLDED: Final = 4096
"""The most elements of a constant made by folding."""

_EFFECTS: Final = frozenset({"stablehlo.custom_call", "func.return", "stablehlo.return", "func.call"})
_NOT_FOLDED: Final = frozenset({"constant", "rng", "while", "if", "case", "custom_call"})


def inlined(function: Operation, functions: Mapping[str, Operation], source: SourceText) -> Operation:
    """Copies a function with all calls inlined.

    Raises:
        CompileError: functions are recursive.
    """
    inliner = _Inliner(functions, source)
    regions = [copy_region(region, {}, inliner.replace) for region in function.regions]
    return Operation(function.name, (), (), dict(function.attributes), regions, location=function.location)


class _Inliner:
    """Replaces each call by the callee's body."""

    def __init__(self, functions: Mapping[str, Operation], source: SourceText) -> None:
        self._functions = functions
        self._source = source
        self._open: list[str] = []
        self._count = 0

    def replace(self, operation: Operation, operands: Sequence[Value], into: Block) -> Sequence[Value] | None:
        self._count += 1
        if self._count > MAX_OPERATIONS:
            self._refuse(operation, f"with calls written out, the program has over {MAX_OPERATIONS:,} operations")
        if operation.attributes.get("call_target_name") == "ApproxTopK":
            return self._top_k(operation, operands, into)
        if operation.name not in ("func.call", "stablehlo.composite"):
            return None
        callee = operation.attributes.get("callee", operation.attributes.get("decomposition"))
        name = callee.name if isinstance(callee, SymbolRef) else ""
        function = self._functions.get(name)
        if function is None or not function.regions:
            self._refuse(operation, f"{operation.name} calls @{name}, which has no body")
        if name in self._open:
            circle = " -> ".join([*self._open[self._open.index(name) :], name])
            self._refuse(operation, f"functions call each other in a circle: {circle}")
        if len(self._open) >= MAX_DEPTH:
            self._refuse(operation, f"calls are nested more than {MAX_DEPTH} levels deep")
        self._open.append(name)
        block = function.regions[0].block
        values = dict(zip(block.arguments, operands, strict=True))
        copy_operations(block.operations[:-1], into, values, self.replace)
        self._open.pop()
        return [values[value] for value in block.terminator.operands]

    def _top_k(self, operation: Operation, operands: Sequence[Value], into: Block) -> Sequence[Value]:
        """Replaces XLA's approximate top-k by an exact one."""
        config, called = (operation.attributes.get(key) for key in ("mhlo.backend_config", "called_computations"))
        callee = called[0] if isinstance(called, tuple) and len(called) == 1 else None
        function = self._functions.get(callee.name) if isinstance(callee, SymbolRef) else None
        count = len(operation.results)
        numbers = config if isinstance(config, Mapping) else {}
        axis, chosen = (getattr(numbers.get(key), "value", -1) for key in ("reduction_dim", "top_k"))
        types = [tensor_of(value) for value in operands[:count]]
        results = [tensor_of(value) for value in operation.results]
        if function is None or len(operands) != 2 * count or not all(0 <= axis < type.rank for type in types):
            self._refuse(operation, "ApproxTopK expects operands with initial values, a dimension, and a comparison")
        if any(type.shape[axis] != chosen for type in results):
            self._refuse(operation, f"ApproxTopK expects {chosen} results along dimension {axis} (aggregate_to_topk)")
        compared = function.regions[0].block
        body = Block([value.type for value in compared.arguments])
        inside = dict(zip(compared.arguments, body.arguments, strict=True))
        copy_operations(compared.operations[:-1], body, inside, self.replace)
        body.append(Operation("stablehlo.return", [inside[value] for value in compared.terminator.operands]))
        builder = Builder(into, operation.location)
        attributes: dict[str, Attribute] = {"dimension": IntegerAttr(axis, I64), "is_stable": True}
        ordered = builder.append("sort", operands[:count], types, attributes, [Region([body])]).results
        return [builder.piece(value, axis, 0, chosen) for value in ordered]

    def _refuse(self, operation: Operation, message: str) -> Never:
        raise self._source.error(operation.location.offset, message)


def canonicalize(block: Block) -> None:
    """Folds, merges and drops operations of a block and its nested regions, in place."""
    _Simplifier().block(block, {}, {})
    drop_unused(block)


Key = tuple[object, ...]


class _Simplifier:
    """One walk in order: each operation is folded to a constant, merged with an equal earlier operation, or kept."""

    def block(self, block: Block, replaced: dict[Value, Value], known: Mapping[Key, Operation]) -> None:
        operations, block.operations = block.operations, []
        builder = Builder(block)
        seen = dict(known)
        for operation in operations:
            builder.location = operation.location
            operands = [replaced.get(value, value) for value in operation.operands]
            operation.operands = [self._without_elements(builder, value, seen) for value in operands]
            for region in operation.regions:
                for inner in region.blocks:
                    self.block(inner, replaced, seen)
            values = self._simpler(builder, operation, seen)
            if values is None:
                block.append(operation)
            else:
                replaced.update(zip(operation.results, values, strict=True))

    def _simpler(self, builder: Builder, operation: Operation, seen: dict[Key, Operation]) -> Sequence[Value] | None:
        identity = _IDENTITIES.get(operation.name)
        simpler = identity(operation) if identity is not None else None
        if simpler is not None:
            return [simpler]
        name = operation.name.removeprefix("stablehlo.")
        rule = _spread if name == "constant" else RULES.get(name)
        values = rule(builder, operation) if rule is not None else None
        if values is not None:
            return values
        _refine(operation)
        folded = _folded(operation)
        if folded is not None:
            return [self._once(builder.append("constant", (), [item.type], {"value": item}), seen) for item in folded]
        if operation.regions or operation.name in _EFFECTS or not operation.results:
            return None
        earlier = seen.setdefault(_key(operation), operation)
        return None if earlier is operation else earlier.results

    def _without_elements(self, builder: Builder, value: Value, seen: dict[Key, Operation]) -> Value:
        """Replaces a value without elements by a constant, so that it needs no computation and no buffer."""
        type = value.type
        if not isinstance(type, TensorType) or 0 not in type.shape or constant_of(value) is not None:
            return value
        if not type.is_static or not isinstance(type.count, int):
            return value
        nothing = DenseElements.of(0, type)
        return self._once(builder.append("constant", (), [type], {"value": nothing}), seen)

    def _once(self, constant: Operation, seen: dict[Key, Operation]) -> Value:
        earlier = seen.setdefault(_key(constant), constant)
        if earlier is not constant:
            assert constant.parent is not None
            constant.parent.operations.pop()
        return earlier.result


def _refine(operation: Operation) -> None:
    """Refines result types with the known lengths."""
    if all(not isinstance(value.type, TensorType) or value.type.is_static for value in operation.results):
        return
    for value, type in zip(operation.results, infer(operation), strict=True):
        if isinstance(type, TensorType) and isinstance(value.type, TensorType):
            pairs = zip(type.shape, value.type.shape, strict=True)
            value.type = TensorType(
                [known if known is not None else inferred for known, inferred in pairs], type.element
            )


def _key(operation: Operation) -> Key:
    attributes = tuple((name, _attribute_key(value)) for name, value in sorted(operation.attributes.items()))
    types = tuple(value.type for value in operation.results)
    return operation.name, tuple(operation.operands), types, attributes


def _attribute_key(value: Attribute) -> object:
    if isinstance(value, DenseElements):
        shown = value.array[(0,) * value.array.ndim] if value.is_splat else value.array
        return value.type, value.is_splat, np.ascontiguousarray(shown).tobytes()
    return str(value)


def _folded(operation: Operation) -> list[DenseElements] | None:
    """Folds an operation with constant operands and small results; returns None for other operations."""
    name = operation.name.removeprefix("stablehlo.")
    if name in _NOT_FOLDED or name not in DEFINITIONS or not operation.results or operation.regions:
        return None
    constants = [constant_of(value) for value in operation.operands]
    arrays = [constant.array for constant in constants if constant is not None]
    types = [value.type for value in operation.results if isinstance(value.type, TensorType)]
    if not arrays or len(arrays) < len(constants) or len(types) < len(operation.results):
        return None
    if not all(type.is_static for type in types):
        return None
    if max([array.size for array in arrays] + [math.prod(type_shape(type)) for type in types]) > MAX_FOLDED:
        return None
    count = len(arrays)
    attributes = {key: plain(value) for key, value in flat_attributes(operation).items()}
    numbers = tuple(range(count, count + len(types)))
    node = Node(name, tuple(range(count)), numbers, tuple(spec_of(type) for type in types), attributes)
    results = evaluate(Body(tuple(range(count)), (node,), numbers), arrays)
    return [
        DenseElements(type, np.broadcast_to(array, type_shape(type)))
        for type, array in zip(types, results, strict=True)
    ]


def _spread(builder: Builder, operation: Operation) -> Sequence[Value] | None:
    """Replaces a large splat constant by a broadcast scalar, so that no module holds its elements."""
    value = operation.attributes["value"]
    if not isinstance(value, DenseElements) or not value.is_splat or value.array.size <= MAX_FOLDED:
        return None
    scalar = DenseElements(TensorType((), value.type.element), value.array[(0,) * value.array.ndim])
    element = builder.append("constant", (), [scalar.type], {"value": scalar}).result
    return [builder.broadcast(element, type_shape(value.type), ())]


def _same_type(operation: Operation) -> Value | None:
    (value, *_) = operation.operands
    return value if value.type is operation.results[0].type else None


def _transposed(operation: Operation) -> Value | None:
    order = operation.integers("permutation")
    return operation.operands[0] if order == tuple(range(len(order))) else None


def _chosen(operation: Operation) -> Value | None:
    predicate, chosen, other = operation.operands
    constant = constant_of(predicate)
    if chosen is other:
        return chosen
    if constant is None or not (constant.is_splat or constant.array.ndim == 0):
        return None
    return chosen if bool(constant.array.reshape(-1)[0]) else other


_IDENTITIES: Final[Mapping[str, Callable[[Operation], Value | None]]] = {
    "stablehlo.bitcast_convert": _same_type,
    "stablehlo.concatenate": lambda operation: operation.operands[0] if len(operation.operands) == 1 else None,
    "stablehlo.convert": _same_type,
    "stablehlo.reshape": _same_type,
    "stablehlo.select": _chosen,
    "stablehlo.slice": _same_type,
    "stablehlo.transpose": _transposed,
}


def drop_unused(block: Block) -> None:
    """Drops operations without used results, from the last to the first."""
    used: set[Value] = set()
    _keep(block, used)


def _keep(block: Block, used: set[Value]) -> None:
    kept = []
    for operation in reversed(block.operations):
        has_effects = any(inner.name == "stablehlo.custom_call" for inner in operation.walk())
        if operation.results and not has_effects and not any(value in used for value in operation.results):
            continue
        used.update(operation.operands)
        for region in operation.regions:
            for inner in region.blocks:
                _keep(inner, used)
        kept.append(operation)
    block.operations = kept[::-1]
