"""Dispatch regions: groups of operations that run as one dispatch.

Operations are visited from the last to the first. If all users of an operation lie in one region, it joins that region
unless expensive work would be recomputed. Every other operation starts a new region. Only a region's root has users
outside, so regions cannot depend on each other in a cycle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from ...analysis.rows import computed_of_rows
from ...analysis.scans import scratch_words
from ...analysis.special_forms import is_direct, products_per_element
from ...analysis.weights import MOVES, bits_of, name_of
from ...dialects.builder import Builder
from ...ir.attributes import Attribute, DenseArray, DenseElements, IntegerAttr
from ...ir.operation import Block, Location, Operation, Region, Value
from ...ir.sizes import Dim, Size, product
from ...ir.types import I32, I64, ScalarType, TensorType, Type
from ..canonical.canonicalize import drop_unused
from ..canonical.legacy import constant_of
from .cluster import Cluster, is_small

MAX_REPEATED: Final = 8
"""The most users of a view that each get a copy of it."""

CONTROL: Final = frozenset({"while", "if", "case", "custom_call", "after_all", "create_token"})
"""Operations of the sequencer, which stay outside regions."""

_VIEWS: Final = frozenset({"broadcast_in_dim", "iota", "reshape", "reverse", "slice"})
"""Operations whose elements cost no more to compute than to read from the operand."""


def form_regions(block: Block) -> None:
    """Moves computations of a block, loops and branches included, into dispatch regions, in place."""
    _form(block)
    # Small constants have moved into the regions.
    drop_unused(block)


def _form(block: Block) -> None:
    _fill(block)
    _repeat_views(block)
    users: dict[Value, list[Operation]] = defaultdict(list)
    for operation in block.operations:
        for inner in operation.walk():
            for value in inner.operands:
                users[value].append(operation)
    of_rows = computed_of_rows(block)
    cluster_of: dict[Operation, Cluster] = {}
    for operation in reversed(block.operations):
        name = name_of(operation)
        if not operation.name.startswith("stablehlo.") or name in CONTROL or name in ("constant", "return"):
            continue
        using = {user for value in operation.results for user in users[value]}
        clusters = {cluster_of.get(user) for user in using}
        cluster = clusters.pop() if len(clusters) == 1 else None
        if cluster is not None and cluster.takes(operation, using, of_rows.get(operation)):
            cluster.add(operation, using)
        else:
            cluster = Cluster(operation)
        cluster_of[operation] = cluster
    _rebuild(block, cluster_of)


def _fill(block: Block) -> None:
    """Materialises constant operands of direct scatters, in place."""
    operations, block.operations = block.operations, []
    builder = Builder(block)
    for operation in operations:
        if is_direct(operation) and is_small(operation.operands[0]):
            builder.location = operation.location
            value, *others = operation.operands
            elements = constant_of(value)
            assert elements is not None
            scalar = builder.constant(elements.array.reshape(-1)[0], TensorType((), value.tensor.scalar))
            operation.operands = [builder.broadcast(scalar, value.tensor.lengths, ()), *others]
        block.append(operation)


def _repeat_views(block: Block) -> None:
    """Copies views for each user, in place: a view is cheap to compute, and storing it takes a dispatch."""
    users: dict[Value, list[tuple[Operation, int]]] = defaultdict(list)
    kept: list[Operation] = []
    for operation in reversed(block.operations):
        using = users[operation.results[0]] if _is_view(operation) else []
        for user, position in using[1:MAX_REPEATED]:
            copy = Operation(
                operation.name,
                list(operation.operands),
                [operation.results[0].type],
                operation.attributes,
                location=operation.location,
            )
            copy.parent = block
            user.operands = [*user.operands[:position], copy.result, *user.operands[position + 1 :]]
            kept.append(copy)
            _use(users, copy)
        kept.append(operation)
        _use(users, operation)
    block.operations = kept[::-1]


def _is_view(operation: Operation) -> bool:
    """Whether recomputing an operation costs no more than loading its result, as it only reads a small operand."""
    if name_of(operation) not in ("bitcast_convert", "convert"):
        return name_of(operation) in _VIEWS
    narrow, wide = (bits_of(value.tensor.scalar) for value in (operation.operands[0], operation.results[0]))
    return narrow < wide or (narrow == wide and name_of(operation) == "bitcast_convert")


def _use(users: dict[Value, list[tuple[Operation, int]]], operation: Operation) -> None:
    for position, value in enumerate(operation.operands):
        users[value].append((operation, position))


def _rebuild(block: Block, cluster_of: Mapping[Operation, Cluster]) -> None:
    operations, block.operations = block.operations, []
    builder = Builder(block)
    replaced: dict[Value, Value] = {}
    for operation in operations:
        builder.location = operation.location
        cluster = cluster_of.get(operation)
        if cluster is None:
            for inner in operation.walk():
                inner.operands = [replaced.get(value, value) for value in inner.operands]
            for region in operation.regions:
                for body in region.blocks:
                    _form(body)
            block.append(operation)
        elif cluster.operations[0] is operation:
            replaced.update(zip(operation.results, _region(builder, cluster, replaced), strict=True))


def _region(builder: Builder, cluster: Cluster, replaced: Mapping[Value, Value]) -> list[Value]:
    """Appends the region of a cluster; returns its results."""
    operations = cluster.operations[::-1]
    root = operations[-1]
    inputs = list(cluster.inputs)
    body = Block([value.type for value in inputs])
    inside = dict(zip(inputs, body.arguments, strict=True))
    for operation in operations:
        for inner in operation.walk():
            for value in inner.operands:
                owner = value.owner
                if value not in inside and is_small(value) and isinstance(owner, Operation):
                    copy = Operation(owner.name, (), [value.type], owner.attributes, location=owner.location)
                    inside[value] = body.append(copy).result
            inner.operands = [inside.get(value, value) for value in inner.operands]
        body.append(operation)
    results = list(root.results)
    words = scratch_words(operations)
    if words:
        type = TensorType((words,), ScalarType("ui32"))
        inputs.append(builder.constant(0, type))
        body.arguments.append(Value(type, body, len(body.arguments)))
        results.append(body.arguments[-1])
    body.append(Operation("iree.return", results, location=root.location))
    types = [value.type for value in results]
    workload = builder.block.append(workload_of(types, root.location)).result
    operands = [workload, *(replaced.get(value, value) for value in inputs)]
    cost: dict[str, Attribute] = {
        "bytes": _cost(_bytes([*inputs, *root.results])),
        "flops": _cost(_flops(operations)),
    }
    made = Operation("iree.dispatch_region", operands, types, cost, [Region([body])], location=root.location)
    return builder.block.append(made).results[: len(root.results)]


def workload_of(types: Sequence[Type], location: Location) -> Operation:
    """Returns the result's shape as up to three numbers, innermost dimension first; a constant if all are known."""
    (first, *_) = types
    shape = [length or 1 for length in first.shape] if isinstance(first, TensorType) else []
    every = [*shape[::-1], 1, 1, 1]
    sizes = [every[0], every[1], product(every[2:])]
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) < len(sizes):
        attributes: dict[str, Attribute] = {"sizes": DenseArray(I64, tuple(sizes))}
        return Operation("iree.workload", (), [TensorType((3,), I64)], attributes, location=location)
    type = TensorType((3,), I32 if max(numbers) < 2**31 else I64)
    return Operation("arith.constant", (), [type], {"value": DenseElements.of(numbers, type)}, location=location)


def _cost(number: Dim) -> Attribute:
    return str(number) if isinstance(number, Size) else IntegerAttr(number, I64)


def _bytes(values: Sequence[Value]) -> Dim:
    total: Dim = 0
    for value in values:
        type = value.type
        if isinstance(type, TensorType):
            total += type.count * max(type.scalar.bits // 8, 1)
    return total


def _flops(operations: Sequence[Operation]) -> Dim:
    """Returns the number of arithmetic operations on elements; a multiply-add counts twice."""
    total: Dim = 0
    for operation in operations:
        name = name_of(operation)
        count = operation.results[0].tensor.count
        if name in ("dot_general", "convolution"):
            total += 2 * count * products_per_element(operation)
        elif name in ("reduce", "reduce_window"):
            total += operation.operands[0].tensor.count
        elif name not in MOVES and name not in ("constant", "iota", "convert"):
            total += count
    return total
