"""Convolutions and pools: windows that move over the spatial dimensions of an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....base.lazy_dataclass import dataclass
from ...analysis.identities import identity_of
from ...dialects.builder import Builder
from ...ir.attributes import Attribute, DenseArray, IntegerAttr, StructAttr
from ...ir.operation import Value, tensor_of
from ...ir.sizes import Dim, Size, number_of
from ...ir.types import I64, TensorType
from .known_values import lengths_of

Pads = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Layout:
    """The meaning of an image's dimensions; the first one counts images.

    Attributes:
        feature: the dimension of the channels.
        spatial: the others.
    """

    feature: int
    spatial: tuple[int, ...]

    def of(self, values: Sequence[Dim]) -> list[int]:
        """Those of a number for each dimension that belong to spatial ones."""
        return [number_of(values[axis]) for axis in self.spatial]


def spread_sizes(sizes: Sequence[int], dilations: Sequence[int]) -> list[int]:
    """Lengths of windows with gaps between their elements."""
    return [(size - 1) * dilation + 1 for size, dilation in zip(sizes, dilations, strict=True)]


def same_padding(length: Dim, size: int, stride: int) -> tuple[int, int]:
    """Returns the padding with which there is a window for every ``stride`` elements of a dimension.

    Raises:
        ValueError: windows move along a dimension whose length depends on the call.
    """
    if isinstance(length, Size):
        return _unmoved(length, size, stride)
    total = max((-(-length // stride) - 1) * stride + size - length, 0)
    return total // 2, total - total // 2


def _unmoved(length: Size, size: int, stride: int) -> tuple[int, int]:
    """Returns the padding of a dimension whose length depends on the call: its windows have one element of it."""
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
        builder: appends the operation.
        value: images.
        kernel: the filter: spatial dimensions, input features of a group, output features.
        layout: of images and results.
        pads: padding of the spatial dimensions.
        outputs: lengths of the result's spatial dimensions.
        groups: of features.
        others: attributes of the operation that are not the defaults, such as ``window_strides``.
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
        "padding": _padding(pads),
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
        "padding": _padding(pads),
    }
    result = TensorType(window_counts(lengths_of(value), sizes, strides, pads), type.element)
    operands = [value, builder.constant(0 if identity is None else identity, scalar)]
    return builder.append("reduce_window", operands, [result], attributes, [region]).result


def _padding(pads: Pads) -> tuple[DenseArray, ...]:
    return tuple(DenseArray(I64, pair) for pair in pads)
