"""Normalizations: batch normalization, softmax, local response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....ir.operation import Value
from ....ir.sizes import number_of, product
from ....passes.formulas.expression import Expression
from .node import Node, Translate
from .reductions import mean, reduced, wide
from .windows import reduced_windows


def _fused_batch_norm(node: Node) -> Sequence[Value]:
    """Normalizes a batch in f32, by statistics from operands for inference, by the batch's own for training."""
    value, scale, offset, given_mean, given_variance = node.expect(5)
    builder = node.builder
    shape = node.shape(0)
    layout = node.text("data_format", "NHWC")
    axis = 1 if layout.startswith("NC") else len(shape) - 1
    for index in range(1, 3):
        if node.shape(index) != (shape[axis],):
            raise node.error(f"expected {shape[axis]} numbers, one a channel, as input {index}, got {node.type(index)}")
    x = Expression(builder, wide(builder, value))

    def spread(vector: Value) -> Expression:
        return Expression(builder, builder.broadcast(vector, shape, [axis]))

    mean_of, variance = Expression(builder, given_mean), Expression(builder, given_variance)
    found_mean, found_variance = mean_of, variance
    if node.flag("is_training", True):
        axes = [number for number in range(len(shape)) if number != axis]
        count = number_of(product(shape[number] for number in axes))
        mean_of = Expression(builder, mean(builder, x.value, axes))
        centered = x - spread(mean_of.value)
        variance = Expression(builder, mean(builder, (centered * centered).value, axes))
        # The returned variance is the sample variance.
        sample = variance * (count / max(count - 1, 1))
        factor = node.number("exponential_avg_factor", 1.0)
        found_mean, found_variance = mean_of, sample
        if factor != 1:
            running = [Expression(builder, statistic) for statistic in (given_mean, given_variance)]
            found_mean = running[0] * (1 - factor) + mean_of * factor
            found_variance = running[1] * (1 - factor) + sample * factor
    gain = (variance + node.number("epsilon", 0.0001)).call("rsqrt") * Expression(builder, scale)
    y = (x - spread(mean_of.value)) * spread(gain.value) + spread(offset)
    results = [y.convert(node.type(0).scalar).value, found_mean.value, found_variance.value]
    reserved = [mean_of.value, variance.value, builder.like(mean_of.value, 0)]
    return [*results, *reserved[: 3 if node.op.endswith("V3") else 2]]


def _batch_norm(node: Node) -> Sequence[Value]:
    value, *vectors = node.expect(5)
    shape = node.shape(0)
    x, average, variance, beta, gamma = (
        Expression(node.builder, operand)
        for operand in (value, *(node.builder.broadcast(operand, shape, [len(shape) - 1]) for operand in vectors))
    )
    gain = (variance + node.number("variance_epsilon", 0.001)).call("rsqrt")
    if node.flag("scale_after_normalization"):
        gain = gain * gamma
    return [((x - average) * gain + beta).value]


def _softmax(node: Node) -> Sequence[Value]:
    """Computes in f32 for narrow floats. The largest element is subtracted first, so that nothing overflows."""
    (value,) = node.expect(1)
    builder, shape = node.builder, node.shape(0)
    if not shape:
        raise node.error(f"expected at least one dimension, got {node.type(0)}")
    last = len(shape) - 1
    x = Expression(builder, wide(builder, value))

    def spread(reduction: Value) -> Expression:
        return Expression(builder, builder.broadcast(reduction, shape, range(last)))

    x = x - spread(reduced(builder, x.value, [last], "maximum"))
    power = x.call("exponential")
    total = spread(reduced(builder, power.value, [last], "add"))
    result = x - total.call("log") if node.op == "LogSoftmax" else power / total
    return [result.convert(node.type(0).scalar).value]


def _local_response(node: Node) -> Sequence[Value]:
    node.expect(1)
    shape = node.shape(0)
    radius = node.integer("depth_radius", 5)
    if len(shape) != 4 or radius < 0:
        raise node.error(f"expected images of 4 dimensions and a radius, got {node.type(0)} and {radius}")
    x = Expression(node.builder, wide(node.builder, node.operand(0)))
    # Windows are clipped at both ends of the channels.
    radius = min(radius, number_of(shape[3]))
    pads = [(0, 0)] * 3 + [(radius, radius)]
    total = reduced_windows(node.builder, (x * x).value, (1, 1, 1, 2 * radius + 1), (1, 1, 1, 1), pads, "add")
    base = Expression(node.builder, total) * node.number("alpha", 1.0) + node.number("bias", 1.0)
    result = x / base.call("power", node.number("beta", 0.5))
    return [result.convert(node.type(0).scalar).value]


NORMALIZATION: Final[Mapping[str, Translate]] = {
    "BatchNormWithGlobalNormalization": _batch_norm,
    "FusedBatchNorm": _fused_batch_norm,
    "FusedBatchNormV2": _fused_batch_norm,
    "FusedBatchNormV3": _fused_batch_norm,
    "LRN": _local_response,
    "LogSoftmax": _softmax,
    "Softmax": _softmax,
}
