"""Redundant operations, each as its general form.

They are older forms (``dot``, ``broadcast``, ``einsum``), batch normalisation, tuples and barriers, and collective
operations of a single process, which receives its own values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...dialects.builder import Builder, Values
from ...ir.attributes import DenseElements, FloatAttr
from ...ir.copying import copy_operations
from ...ir.operation import Block, Operation, Value, tensor_of
from ...ir.sizes import Size
from ...ir.types import TensorType
from ..formulas.expression import Expression
from .custom_calls import custom_call


def _same(builder: Builder, operation: Operation) -> Values:
    return operation.operands


def _reduced(builder: Builder, operation: Operation) -> Values:
    """Reduces a value after converting it to the computation's type."""
    pairs = zip(operation.operands, operation.results, strict=True)
    return [builder.convert(value, tensor_of(result).scalar) for value, result in pairs]


def _moved(attribute: str) -> Callable[[Builder, Operation], Values]:
    """Replaces sends: a process that receives nothing gets zeros."""

    def rule(builder: Builder, operation: Operation) -> Values:
        if operation.integers(attribute):
            return operation.operands
        return [builder.like(value, 0) for value in operation.operands]

    return rule


def _async_start(builder: Builder, operation: Operation) -> Values:
    """Runs the body immediately; the future is a tuple of its results."""
    body = operation.regions[0].block
    inside = dict(zip(body.arguments, operation.operands, strict=True))
    copy_operations(body.operations[:-1], builder.block, inside)
    results = [inside.get(value, value) for value in body.terminator.operands]
    return builder.append("tuple", results, [operation.results[0].type]).results


def _async_done(builder: Builder, operation: Operation) -> Values | None:
    owner = operation.operands[0].owner
    if isinstance(owner, Operation) and owner.name == "stablehlo.tuple":
        return owner.operands
    return None


DISTRIBUTION: Final[Mapping[str, Callable[[Builder, Operation], Values | None]]] = {
    "all_gather": _same,
    "all_reduce": _reduced,
    "all_to_all": _same,
    "async_done": _async_done,
    "async_start": _async_start,
    "collective_broadcast": _moved("replica_groups"),
    "collective_permute": _moved("source_target_pairs"),
    "collective_reduce": _reduced,
    "reduce_scatter": _reduced,
}
"""Rewrites of collectives for one process. Keys are operation names without the dialect's prefix."""


Rule = Callable[[Builder, Operation], Values | None]

IN_MEMORY: Final = "in_memory"
"""The attribute of constants that kernels read from memory, so that regions differing in a number share a kernel."""


def constant_of(value: Value) -> DenseElements | None:
    """Returns the constant that defines a value; None if there is none, or if kernels read it from memory."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "stablehlo.constant" and IN_MEMORY not in owner.attributes:
        elements = owner.attributes["value"]
        return elements if isinstance(elements, DenseElements) else None
    return None


def constant_integer(value: Value) -> int | None:
    """Returns the integer of a constant with one element; None for other values."""
    constant = constant_of(value)
    return int(constant.array.reshape(-1)[0]) if constant is not None and constant.array.size == 1 else None


def _dot(builder: Builder, operation: Operation) -> Values:
    left, right = operation.operands
    return [builder.contract(left, right, ((tensor_of(left).rank - 1,), (0,)), element=operation.tensor.element)]


def _broadcast(builder: Builder, operation: Operation) -> Values:
    (value,) = operation.operands
    type = tensor_of(operation.results[0])
    return [builder.broadcast(value, type.shape, range(type.rank - tensor_of(value).rank, type.rank))]


def _einsum(builder: Builder, operation: Operation) -> Values:
    config = str(operation.attributes["einsum_config"]).replace(" ", "")
    inputs, _, output = config.partition("->")
    if operation.name.endswith("unary_einsum"):
        (value,) = operation.operands
        summed = [axis for axis, name in enumerate(inputs) if name not in output]
        names = [name for name in inputs if name in output]
        return [_ordered(builder, _summed(builder, value, summed), names, output)]
    left_names, right_names = inputs.split(",")
    left, right = operation.operands
    batch = [name for name in left_names if name in right_names and name in output]
    summed_names = [name for name in left_names if name in right_names and name not in output]
    sides = (left_names, right_names)
    axes, batches = ([[names.index(name) for name in chosen] for names in sides] for chosen in (summed_names, batch))
    used = {*batch, *summed_names}
    names = [*batch, *(n for n in left_names if n not in used), *(n for n in right_names if n not in used)]
    product = builder.contract(left, right, axes, batches, operation.tensor.element)
    rest = [axis for axis, name in enumerate(names) if name not in output]
    return [_ordered(builder, _summed(builder, product, rest), [n for n in names if n in output], output)]


def _summed(builder: Builder, value: Value, axes: Sequence[int]) -> Value:
    return builder.reduce("add", value, 0, axes) if axes else value


def _ordered(builder: Builder, value: Value, names: Sequence[str], output: str) -> Value:
    return builder.transpose(value, [names.index(name) for name in output])


def _torch_index_select(builder: Builder, operation: Operation) -> Values:
    value, indices = operation.operands
    axis, batch = operation.integer("dim"), operation.integer("batch_dims")
    rank, index_rank = tensor_of(value).rank, tensor_of(indices).rank
    sizes = [1 if i < batch or i == axis else length or 0 for i, length in enumerate(tensor_of(value).shape)]
    spread = index_rank - batch
    offset = [i if i < axis else i + spread - 1 for i in range(rank) if i != axis and i >= batch]
    numbers = {
        "offset_dims": tuple(offset),
        "collapsed_slice_dims": (axis,),
        "operand_batching_dims": tuple(range(batch)),
        "start_indices_batching_dims": tuple(range(batch)),
        "start_index_map": (axis,),
        "index_vector_dim": index_rank,
    }
    return [builder.gather(value, indices, numbers, sizes, operation.tensor.shape)]


def _get_tuple_element(builder: Builder, operation: Operation) -> Values | None:
    owner = operation.operands[0].owner
    if isinstance(owner, Operation) and owner.name == "stablehlo.tuple":
        return [owner.operands[operation.integer("index")]]
    return None


def _dimension_size(builder: Builder, operation: Operation) -> Values | None:
    length = tensor_of(operation.operands[0]).shape[operation.integer("dimension")]
    return [builder.constant(length, tensor_of(operation.results[0]))] if isinstance(length, int) else None


def _zero(builder: Builder, operation: Operation) -> Values:
    return [builder.constant(0, tensor_of(operation.results[0]))]


def over_tensors(builder: Builder, block: Block, operands: Sequence[Value]) -> Values:
    """Applies a body of scalars to tensors: operations become element-wise, and constants are broadcast."""
    shape = tensor_of(operands[0]).shape
    inside: dict[Value, Value] = dict(zip(block.arguments, operands, strict=True))
    for inner in block.operations[:-1]:
        if inner.name == "stablehlo.constant":
            constant = builder.append("constant", (), [inner.results[0].type], inner.attributes).result
            inside[inner.result] = builder.broadcast(constant, shape, ())
            continue
        types = [TensorType(shape, tensor_of(value).element) for value in inner.results]
        used = [inside.get(value, value) for value in inner.operands]
        whole = [value if tensor_of(value).shape == shape else builder.broadcast(value, shape, ()) for value in used]
        if inner.name.endswith((".reshape", ".broadcast_in_dim")):
            inside[inner.result] = whole[0]
            continue
        made = builder.append(inner.name.removeprefix("stablehlo."), whole, types, inner.attributes)
        inside.update(zip(inner.results, made.results, strict=True))
    found_values = [inside.get(value, value) for value in block.terminator.operands]
    return [v if tensor_of(v).shape == shape else builder.broadcast(v, shape, ()) for v in found_values]


# -- batch normalisation ---------------------------------------------------------------------------------


def _features(operation: Operation, value: Expression) -> Expression:
    """Broadcasts a per-feature value to the operand's shape."""
    axes = (operation.integer("feature_index"),)
    return Expression(value.builder, value.builder.broadcast(value.value, tensor_of(operation.operands[0]).shape, axes))


def _normalized(operation: Operation, mean: Expression, deviation: Expression) -> tuple[Expression, Expression]:
    """Returns the operand minus the mean, and the standard deviation, in the operand's shape."""
    spread = deviation.call("sqrt")
    centered = Expression(mean.builder, operation.operands[0]) - _features(operation, mean)
    return centered, _features(operation, spread)


def _with_epsilon(operation: Operation, variance: Expression) -> Expression:
    epsilon = operation.attributes["epsilon"]
    assert isinstance(epsilon, FloatAttr)
    return variance + epsilon.value


def _scaled(operation: Operation, mean: Expression, variance: Expression) -> Value:
    centered, spread = _normalized(operation, mean, _with_epsilon(operation, variance))
    scale, offset = (_features(operation, Expression(mean.builder, value)) for value in operation.operands[1:3])
    unit = centered / spread
    return (scale * unit + offset).value


def _batch_norm_inference(builder: Builder, operation: Operation) -> Values:
    mean, variance = (Expression(builder, value) for value in operation.operands[3:5])
    return [_scaled(operation, mean, variance)]


def _others(operation: Operation) -> list[int]:
    """Returns all dimensions except the feature dimension."""
    return [axis for axis in range(operation.operands[0].tensor.rank) if axis != operation.integer("feature_index")]


def _total(operation: Operation, value: Expression) -> Expression:
    """Returns the sum over all dimensions except the feature dimension."""
    return Expression(value.builder, _summed(value.builder, value.value, _others(operation)))


def _count(operation: Operation, like: Expression) -> Expression | float:
    """Returns the number of elements per feature, in another value's type."""
    builder, value = like.builder, operation.operands[0]
    lengths, type = tensor_of(value).lengths, tensor_of(like.value)
    number = float(math.prod(length or 1 for axis in _others(operation) if isinstance(length := lengths[axis], int)))
    count: Value | None = None
    for axis in _others(operation):
        if isinstance(lengths[axis], Size):
            dynamic = builder.convert(builder.dimension(value, axis), type.scalar)
            count = builder.elementwise("multiply", dynamic, number if count is None else count)
    return number if count is None else Expression(builder, builder.broadcast(count, type.shape, ()))


def _batch_norm_training(builder: Builder, operation: Operation) -> Values:
    def mean_of(values: Expression) -> Expression:
        total = _total(operation, values)
        return total / _count(operation, total)

    value = Expression(builder, operation.operands[0])
    mean = mean_of(value)
    centered = value - _features(operation, mean)
    variance = mean_of(centered * centered)
    return [_scaled(operation, mean, variance), mean.value, variance.value]


def _batch_norm_grad(builder: Builder, operation: Operation) -> Values:
    value, scale, mean, variance, gradient = (Expression(builder, operand) for operand in operation.operands)
    count, deviation = _count(operation, value), _with_epsilon(operation, variance)
    centered, spread = _normalized(operation, mean, deviation)
    offset_gradient, product = _total(operation, gradient), _total(operation, gradient * centered)
    second = gradient * count - _features(operation, offset_gradient)
    third = second - centered * _features(operation, product / deviation)
    factor = _features(operation, scale) / spread
    whole = factor * (third / count)
    return [whole.value, (product / deviation.call("sqrt")).value, offset_gradient.value]


RULES: Final[Mapping[str, Rule]] = {
    **DISTRIBUTION,
    "batch_norm_grad": _batch_norm_grad,
    "batch_norm_inference": _batch_norm_inference,
    "batch_norm_training": _batch_norm_training,
    "broadcast": _broadcast,
    "custom_call": custom_call,
    "dot": _dot,
    "einsum": _einsum,
    "get_dimension_size": _dimension_size,
    "get_tuple_element": _get_tuple_element,
    "map": lambda builder, operation: over_tensors(builder, operation.regions[0].block, operation.operands),
    "optimization_barrier": _same,
    "partition_id": _zero,
    "replica_id": _zero,
    "torch_index_select": _torch_index_select,
    "unary_einsum": _einsum,
}
"""Rewrites of older operations; None declines. Keys are operation names without the dialect's prefix."""
