"""Convolutions and pools: windows that move over the spatial dimensions of an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from .....base.lazy_dataclass import dataclass
from ....analysis.identities import identity_of
from ....dialects.builder import Builder
from ....ir.attributes import Attribute, DenseArray, IntegerAttr, StructAttr, type_shape
from ....ir.operation import Value, tensor_of
from ....ir.sizes import Dim, Size, number_of
from ....ir.types import I1, I64, TensorType
from ....passes.formulas.expression import Expression
from .known_values import lengths_of
from .node import Node, Translate
from .reductions import wide

Pads = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Layout:
    """The meaning of an image's dimensions; the first counts images.

    Attributes:
        feature: the dimension of the channels.
        spatial: the spatial dimensions.
    """

    feature: int
    spatial: tuple[int, ...]

    def of(self, values: Sequence[Dim]) -> list[int]:
        """Selects the numbers of the spatial dimensions from a list with a number for each dimension."""
        return [number_of(values[axis]) for axis in self.spatial]


def spread_sizes(sizes: Sequence[int], dilations: Sequence[int]) -> list[int]:
    """Returns the lengths of windows with gaps between their elements."""
    return [(size - 1) * dilation + 1 for size, dilation in zip(sizes, dilations, strict=True)]


def same_padding(length: Dim, size: int, stride: int) -> tuple[int, int]:
    """Returns the padding that gives one window per ``stride`` elements of a dimension.

    Raises:
        ValueError: windows move along a dimension whose length depends on the call.
    """
    if isinstance(length, Size):
        return _unmoved(length, size, stride)
    total = max((-(-length // stride) - 1) * stride + size - length, 0)
    return total // 2, total - total // 2


def _unmoved(length: Size, size: int, stride: int) -> tuple[int, int]:
    """Returns the padding of a call-dependent dimension, along which windows must have length 1."""
    if size != 1 or stride != 1:
        raise ValueError(f"windows move along a dimension whose length depends on the call, {length}")
    return 0, 0


def window_counts(lengths: Sequence[Dim], sizes: Sequence[int], strides: Sequence[int], pads: Pads) -> list[Dim]:
    """Returns the number of windows along each dimension.

    Raises:
        ValueError: windows move along a dimension whose length depends on the call.
    """
    counts: list[Dim] = []
    for length, size, stride, (low, high) in zip(lengths, sizes, strides, pads, strict=True):
        if isinstance(length, Size):
            counts.append(length + sum(_unmoved(length, size, stride)))
        else:
            counts.append(max((length + low + high - size) // stride + 1, 0))
    return counts


def convolution(
    builder: Builder,
    value: Value,
    kernel: Value,
    layout: Layout,
    pads: Pads,
    outputs: Sequence[Dim],
    groups: int,
    others: Mapping[str, Attribute],
) -> Value:
    """Returns a convolution.

    Args:
        builder: the builder that appends the operation.
        value: the images.
        kernel: the filter: spatial dimensions, input features of a group, output features.
        layout: the layout of images and results.
        pads: the padding of the spatial dimensions.
        outputs: the lengths of the result's spatial dimensions.
        groups: the number of feature groups.
        others: further attributes of the operation, such as ``window_strides``.
    """
    count = len(layout.spatial)
    fields: dict[str, object] = {
        "kernel_input_feature_dimension": count,
        "kernel_output_feature_dimension": count + 1,
        "kernel_spatial_dimensions": tuple(range(count)),
    }
    for side in ("input", "output"):
        fields[f"{side}_batch_dimension"] = 0
        fields[f"{side}_feature_dimension"] = layout.feature
        fields[f"{side}_spatial_dimensions"] = layout.spatial
    shape = list(lengths_of(value))
    shape[layout.feature] = lengths_of(kernel)[-1]
    for axis, length in zip(layout.spatial, outputs, strict=True):
        shape[axis] = length
    attributes: dict[str, Attribute] = {
        "dimension_numbers": StructAttr("stablehlo.conv", fields),
        "padding": _padding_attribute(pads),
        "feature_group_count": IntegerAttr(groups, I64),
        "batch_group_count": IntegerAttr(1, I64),
        **others,
    }
    type = TensorType(shape, tensor_of(value).element)
    return builder.append("convolution", [value, kernel], [type], attributes).result


def reduced_windows(
    builder: Builder, value: Value, sizes: Sequence[int], strides: Sequence[int], pads: Pads, name: str
) -> Value:
    """Reduces the elements of each window by an operation.

    Raises:
        ValueError: windows move along a dimension whose length depends on the call.
    """
    type = tensor_of(value)
    scalar = TensorType((), type.element)
    region = builder.region([scalar, scalar], lambda inner, pair: [inner.elementwise(name, *pair)])
    identity = identity_of(name, type.scalar)
    attributes: dict[str, Attribute] = {
        "window_dimensions": DenseArray(I64, tuple(sizes)),
        "window_strides": DenseArray(I64, tuple(strides)),
        "padding": _padding_attribute(pads),
    }
    result = TensorType(window_counts(lengths_of(value), sizes, strides, pads), type.element)
    operands = [value, builder.constant(0 if identity is None else identity, scalar)]
    return builder.append("reduce_window", operands, [result], attributes, [region]).result


def _padding_attribute(pads: Pads) -> tuple[DenseArray, ...]:
    return tuple(DenseArray(I64, pair) for pair in pads)


def _layout(node: Node, rank: int) -> Layout:
    if rank not in (3, 4, 5):
        raise node.error(f"expected images of 3 to 5 dimensions, got {rank}")
    layout = node.text("data_format", "") or ("NHWC" if rank == 4 else "NDHWC")
    if layout.startswith("NC") and layout != "NCHW_VECT_C":
        return Layout(1, tuple(range(2, rank)))
    if not layout.endswith("C") or layout == "NCHW_VECT_C":
        raise node.error(f"expected the data_format NHWC, NCHW, NDHWC or NCDHW, got {layout}")
    return Layout(rank - 1, tuple(range(1, rank - 1)))


def _per_dimension(node: Node, name: str, rank: int, default: int | None = None) -> tuple[int, ...]:
    values = node.integers(name, () if default is None else (default,) * rank)
    if len(values) != rank or min(values) < 1:
        raise node.error(f"expected {name} with a number of at least 1 for each of {rank} dimensions, got {values}")
    return values


def _padding(
    node: Node, lengths: Sequence[Dim], sizes: Sequence[int], strides: Sequence[int], axes: Sequence[int]
) -> list[tuple[int, int]]:
    """Returns the padding around each dimension of ``axes``, whose window lengths are ``sizes``."""
    kind = node.text("padding")
    if kind == "VALID":
        return [(0, 0)] * len(lengths)
    if kind == "EXPLICIT":
        explicit = node.integers("explicit_paddings")
        if len(explicit) != 2 * node.type(0).rank and len(explicit) < 2 * (max(axes) + 1):
            raise node.error(f"expected explicit_paddings with two numbers for each dimension, got {list(explicit)}")
        return [(explicit[2 * axis], explicit[2 * axis + 1]) for axis in axes]
    if kind != "SAME":
        raise node.error(f"expected the padding SAME, VALID or EXPLICIT, got {kind}")
    return [same_padding(*dimension) for dimension in zip(lengths, sizes, strides, strict=True)]


# -- convolutions ----------------------------------------------------------------------------------------


def _convolution(node: Node) -> Sequence[Value]:
    """Translates a convolution with filters of spatial dimensions, input features of a group, and outputs."""
    value, kernel = node.expect(2)
    rank = node.type(0).rank
    layout = _layout(node, rank)
    strides = layout.of(_per_dimension(node, "strides", rank))
    dilations = layout.of(_per_dimension(node, "dilations", rank, 1))
    if node.type(1).rank != rank:
        raise node.error(f"expected a filter of {rank} dimensions, got {node.type(1)}")
    features = number_of(node.shape(0)[layout.feature])
    if node.op.startswith("Depthwise"):
        *spatial, inner, multiplier = node.fixed_shape(1)
        if inner != features:
            raise node.error(f"expected a filter for {features} channels, got {node.type(1)}")
        kernel = node.builder.reshape(kernel, (*spatial, 1, inner * multiplier))
    *sizes, inner, _ = type_shape(tensor_of(kernel))
    if not inner or features % inner:
        raise node.error(f"{features} channels do not make groups of {inner}, which the filter {node.type(1)} takes")
    spread = spread_sizes(sizes, dilations)
    lengths = layout.of(node.shape(0))
    pads = _padding(node, lengths, spread, strides, layout.spatial)
    outputs = window_counts(lengths, spread, strides, pads)
    attributes: dict[str, Attribute] = {
        "window_strides": DenseArray(I64, tuple(strides)),
        "rhs_dilation": DenseArray(I64, tuple(dilations)),
    }
    return [convolution(node.builder, value, kernel, layout, pads, outputs, features // inner, attributes)]


def _transposed_convolution(node: Node) -> Sequence[Value]:
    """Returns a convolution's gradient by its input: a convolution of the dilated output with the reversed filter."""
    _, kernel, value = node.expect(3)
    rank = node.type(2).rank
    layout = _layout(node, rank)
    strides = layout.of(_per_dimension(node, "strides", rank))
    dilations = layout.of(_per_dimension(node, "dilations", rank, 1))
    if node.type(1).rank != rank:
        raise node.error(f"expected a filter of {rank} dimensions, got {node.type(1)}")
    *sizes, inner, outer = node.fixed_shape(1)
    wanted = node.known_lengths(0, "the input's shape")
    lengths = [number_of(size) for size in wanted] if len(wanted) == rank - 2 else []
    lengths = layout.of(wanted) if len(wanted) == rank else lengths
    if not lengths:
        raise node.error(f"expected the shape of an input of {rank} dimensions, got {list(wanted)}")
    is_depthwise = node.op.startswith("Depthwise")
    depth = number_of(node.shape(2)[layout.feature])
    features = number_of(wanted[layout.feature]) if len(wanted) == rank else inner
    groups = inner if is_depthwise else features // max(inner, 1)
    if is_depthwise:
        kernel, inner, outer = node.builder.reshape(kernel, (*sizes, 1, inner * outer)), 1, inner * outer
    if depth != outer or groups < 1 or outer % groups:
        raise node.error(f"the filter {node.type(1)} does not give the {depth} channels of {node.type(2)}")
    spread = spread_sizes(sizes, dilations)
    pads = _padding(node, lengths, spread, strides, layout.spatial)
    steps = layout.of(node.shape(2))
    if window_counts(lengths, spread, strides, pads) != steps:
        raise node.error(f"an input of shape {list(wanted)} does not give {node.type(2)}")
    turned = []
    for length, size, stride, step, (low, _) in zip(lengths, spread, strides, steps, pads, strict=True):
        before = size - 1 - low
        turned.append((before, length + size - 1 - ((step - 1) * stride + 1) - before))
    count = len(sizes)
    split = node.builder.reshape(kernel, (*sizes, inner, groups, outer // groups))
    moved = node.builder.transpose(split, (*range(count), count + 2, count + 1, count))
    kernel = node.builder.reshape(moved, (*sizes, outer // groups, groups * inner))
    attributes: dict[str, Attribute] = {
        "lhs_dilation": DenseArray(I64, tuple(strides)),
        "rhs_dilation": DenseArray(I64, tuple(dilations)),
        "window_reversal": DenseArray(I1, (True,) * count),
    }
    return [convolution(node.builder, value, kernel, layout, turned, lengths, groups, attributes)]


# -- pools -----------------------------------------------------------------------------------------------


def _pool(node: Node) -> Sequence[Value]:
    (value, *rest) = node.expect(3 if node.op == "MaxPoolV2" else 1)
    shape = node.shape(0)
    _layout(node, len(shape))
    if rest:
        sizes, strides = node.known_integers(1, "ksize"), node.known_integers(2, "the strides")
        if len(sizes) != len(shape) or len(strides) != len(shape) or min(*sizes, *strides) < 1:
            raise node.error(f"expected a window and strides of {len(shape)} dimensions, got {sizes} and {strides}")
    else:
        sizes, strides = _per_dimension(node, "ksize", len(shape)), _per_dimension(node, "strides", len(shape))
    pads = _padding(node, shape, sizes, strides, range(len(shape)))
    if node.op.startswith("Max"):
        return [reduced_windows(node.builder, value, sizes, strides, pads, "maximum")]
    total = Expression(
        node.builder, reduced_windows(node.builder, wide(node.builder, value), sizes, strides, pads, "add")
    )
    counts = np.ones((), np.float32)
    # Padding is not counted.
    for length, size, stride, (low, _), count in zip(shape, sizes, strides, pads, lengths_of(total.value), strict=True):
        if isinstance(length, Size) or isinstance(count, Size):
            counts = counts[..., np.newaxis]
            continue
        starts = np.arange(node.counted(count, "the number of windows")) * stride - low
        inside = np.minimum(starts + size, length) - np.maximum(starts, 0)
        counts = np.multiply.outer(counts, inside)
    builder = node.builder
    number = builder.constant(counts, TensorType(counts.shape, tensor_of(total.value).element))
    spread = builder.broadcast(number, lengths_of(total.value), range(len(shape)))
    mean = total / Expression(builder, spread)
    return [mean.convert(node.type(0).scalar).value]


WINDOWS: Final[Mapping[str, Translate]] = {
    "AvgPool": _pool,
    "AvgPool3D": _pool,
    "Conv2D": _convolution,
    "Conv2DBackpropInput": _transposed_convolution,
    "Conv3D": _convolution,
    "Conv3DBackpropInputV2": _transposed_convolution,
    "DepthwiseConv2dNative": _convolution,
    "DepthwiseConv2dNativeBackpropInput": _transposed_convolution,
    "MaxPool": _pool,
    "MaxPool3D": _pool,
    "MaxPoolV2": _pool,
}
