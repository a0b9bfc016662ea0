"""Rules of operations that combine many elements: reductions, windows, contractions, convolutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...ir.attributes import DenseArray, DenseElements, EnumAttr, StructAttr
from ...ir.operation import Operation
from ...ir.sizes import Dim, is_at_least, is_multiple, quotient
from ...ir.types import TensorType, Type
from .bodies import combined, selected
from .requirements import Length, OperationError, Rule, axes, integer, ints, merged, same_length, sizes, tensors


def _inputs(operation: Operation) -> tuple[list[TensorType], list[TensorType]]:
    """Returns the types of the inputs and of their initial values."""
    types = tensors(operation)
    count = len(types) // 2
    if not types or len(types) % 2:
        raise OperationError(f"as many inputs as initial values, got {len(types)} operands")
    inputs, starts = types[:count], types[count:]
    for index, (value, start) in enumerate(zip(inputs, starts, strict=True)):
        merged(value.shape, inputs[0].shape, f"inputs of one shape, got {inputs[0]} and {value}", index)
        if start.rank:
            raise OperationError(f"initial values without dimensions, got {start}", count + index)
    return inputs, starts


def _reduce(operation: Operation) -> Sequence[Type]:
    inputs, starts = _inputs(operation)
    dimensions = ints(operation, "dimensions")
    axes(dimensions, inputs[0].rank, "dimensions")
    shape = [length for axis, length in enumerate(inputs[0].shape) if axis not in dimensions]
    return [TensorType(shape, element) for element in combined(operation, inputs, starts)]


def windows(length: Length, size: Dim, stride: int, base: int, dilation: int, low: Dim, high: Dim) -> Length:
    """Returns the number of windows along a dimension.

    Raises:
        OperationError: the number is not a polynomial in the lengths of arguments.
    """
    if length is None:
        return None
    dilated = (length - 1) * base + 1 if length else 0
    window = (size - 1) * dilation + 1 if size else 0
    padded = low + dilated + high
    rest = padded - window
    if isinstance(padded, int) and isinstance(rest, int):
        return 0 if padded <= 0 or rest < 0 else rest // stride + 1
    if not is_multiple(rest, stride):
        raise OperationError(
            f"a stride of which {rest}, by how much the padded dimension is longer than the window, is a multiple in "
            f"every call, got {stride}; use a stride of 1 along dimensions that are not known, or export the program "
            "for fixed lengths"
        )
    return quotient(rest, stride) + 1


def window_sizes(operation: Operation, rank: int) -> tuple[Dim, ...]:
    """Returns the sizes of a window, each at least 1."""
    window = sizes(operation, "window_dimensions")
    if len(window) != rank or any(is_at_least(size, 1) is False for size in window):
        raise OperationError(f"a window of 1 or more elements along each of {rank} dimensions, got {list(window)}")
    return window


def window_lists(operation: Operation, rank: int, names: Sequence[str]) -> list[tuple[int, ...]]:
    """Returns strides and dilations of every dimension, 1 by default and at least 1."""
    lists = [ints(operation, name, (1,) * rank) for name in names]
    for name, values in zip(names, lists, strict=True):
        if len(values) != rank or any(value < 1 for value in values):
            raise OperationError(f"{name} with a number of 1 or more for each of {rank} dimensions, got {list(values)}")
    return lists


def padding_pairs(operation: Operation, rank: int) -> list[tuple[Dim, Dim]]:
    """Returns the padding before and after each dimension, 0 by default."""
    value = operation.attributes.get("padding")
    flat: list[Dim] = []
    if isinstance(value, tuple):
        for item in value:
            pair = Operation("", attributes={"pair": item}).sizes("pair")
            if len(pair) != 2:
                raise OperationError(f"pairs of padding before and after, got {list(pair)}")
            flat.extend(pair)
    else:
        flat.extend(operation.sizes("padding", (0,) * (2 * rank)))
        if isinstance(value, DenseElements) and value.type.shape != (rank, 2):
            raise OperationError(f"padding of shape {[rank, 2]}, got {value.type}")
    if len(flat) != 2 * rank:
        raise OperationError(f"padding before and after each of {rank} dimensions, got {len(flat)} numbers")
    return list(zip(flat[::2], flat[1::2], strict=True))


def _reduce_window(operation: Operation) -> Sequence[Type]:
    inputs, starts = _inputs(operation)
    rank = inputs[0].rank
    lengths = window_sizes(operation, rank)
    strides, base, dilation = window_lists(operation, rank, ("window_strides", "base_dilations", "window_dilations"))
    pairs = padding_pairs(operation, rank)
    shape = [
        windows(inputs[0].shape[axis], lengths[axis], strides[axis], base[axis], dilation[axis], *pairs[axis])
        for axis in range(rank)
    ]
    return [TensorType(shape, element) for element in combined(operation, inputs, starts)]


def _select_and_scatter(operation: Operation) -> Sequence[Type]:
    value, source, start = tensors(operation, 3)
    if start is not TensorType((), value.element) or source.element is not value.element:
        raise OperationError(f"a source and an initial value of {value.element}, got {source} and {start}", 1)
    rank = value.rank
    lengths = window_sizes(operation, rank)
    (strides,) = window_lists(operation, rank, ("window_strides",))
    pairs = padding_pairs(operation, rank)
    shape = [windows(value.shape[axis], lengths[axis], strides[axis], 1, 1, *pairs[axis]) for axis in range(rank)]
    merged(shape, source.shape, f"a source with an element for each window, of shape {shape}, got {source}", 1)
    selected(operation, value.element)
    (element,) = combined(operation, [value], [source])
    return [TensorType(value.shape, element)]


_PRECISIONS: Final = frozenset({"DEFAULT", "HIGH", "HIGHEST"})
_ALGORITHMS: Final = frozenset(
    {
        *(("f16", "f16", 1), ("f16", "f32", 1), ("bf16", "bf16", 1), ("bf16", "f32", 1), ("bf16", "f32", 3)),
        *(("bf16", "f32", 6), ("bf16", "f32", 9), ("tf32", "f32", 1), ("tf32", "f32", 3), ("f32", "f32", 1)),
        ("f64", "f64", 1),
    }
)
"""Known algorithms of products: the operands' precision, the accumulator's, and the number of summed products."""


def check_precision(operation: Operation) -> None:
    """Checks that the precision of a contraction lists one value for each operand."""
    value = operation.attributes.get("precision_config")
    items = value if isinstance(value, tuple) else ()
    known = all(isinstance(item, EnumAttr) and item.case in _PRECISIONS for item in items)
    if value is not None and (not isinstance(value, tuple) or len(items) > 2 or not known):
        raise OperationError(f"precision_config with {', '.join(sorted(_PRECISIONS))} for each of two operands")
    algorithm = operation.attributes.get("algorithm")
    if algorithm is None:
        return
    if any(isinstance(item, EnumAttr) and item.case != "DEFAULT" for item in items):
        raise OperationError("no other precision than DEFAULT where an algorithm is given")
    fields = algorithm.fields if isinstance(algorithm, StructAttr) else {}
    left, right = (str(fields.get(f"{side}_precision_type")) for side in ("lhs", "rhs"))
    sum_type, imprecise = str(fields.get("accumulation_type")), fields.get("allow_imprecise_accumulation")
    counts = [fields.get(f"{side}_component_count") for side in ("lhs", "rhs")]
    products = fields.get("num_primitive_operations")
    narrow = left.startswith("f8") and right.startswith("f8") and (sum_type, products) == ("f32", 1)
    known = narrow or (left == right and not imprecise and (left, sum_type, products) in _ALGORITHMS)
    if counts != [1, 1] or not known:
        raise OperationError(f"an algorithm that some hardware has, got {algorithm}")


def _dot_general(operation: Operation) -> Sequence[Type]:
    left, right = tensors(operation, 2)
    check_precision(operation)
    numbers = operation.attributes.get("dot_dimension_numbers")
    if not isinstance(numbers, StructAttr):
        raise OperationError("the attribute dot_dimension_numbers")
    lists = {
        f"{side}_{kind}_dimensions": numbers.ints(f"{side}_{kind}_dimensions")
        for side in ("lhs", "rhs")
        for kind in ("batching", "contracting")
    }
    return [TensorType(contraction(left, right, lists), operation.results[0].tensor.element)]


def contraction(left: TensorType, right: TensorType, lists: Mapping[str, Sequence[int]]) -> list[Length]:
    """Returns the shape of a contraction with dimensions such as ``lhs_batching_dimensions``."""
    pairs = [(lists[f"lhs_{kind}_dimensions"], lists[f"rhs_{kind}_dimensions"]) for kind in ("batching", "contracting")]
    axes([*pairs[0][0], *pairs[1][0]], left.rank, "the left operand's batching and contracting dimensions")
    axes([*pairs[0][1], *pairs[1][1]], right.rank, "the right operand's batching and contracting dimensions")
    batch: list[Length] = []
    for index, (lefts, rights) in enumerate(pairs):
        if len(lefts) != len(rights):
            raise OperationError(f"as many dimensions on the left as on the right, got {list(lefts)} x {list(rights)}")
        for left_axis, other in zip(lefts, rights, strict=True):
            expected = f"dimension {left_axis} of {left} as long as dimension {other} of {right}"
            length = same_length(left.shape[left_axis], right.shape[other], expected, 1)
            if index == 0:
                batch.append(length)
    used_left, used_right = {*pairs[0][0], *pairs[1][0]}, {*pairs[0][1], *pairs[1][1]}
    free = [length for axis, length in enumerate(left.shape) if axis not in used_left]
    free += [length for axis, length in enumerate(right.shape) if axis not in used_right]
    return [*batch, *free]


def _dot(operation: Operation) -> Sequence[Type]:
    left, right = tensors(operation, 2)
    check_precision(operation)
    if not 1 <= left.rank <= 2 or not 1 <= right.rank <= 2:
        raise OperationError(f"vectors or matrices, got {left} and {right}")
    same_length(left.shape[-1], right.shape[0], f"the last length of {left} as the first of {right}", 1)
    return [TensorType((*left.shape[:-1], *right.shape[1:]), operation.results[0].tensor.element)]


def _convolution(operation: Operation) -> Sequence[Type]:
    value, kernel = tensors(operation, 2)
    return convolved(operation, value, kernel, padding_pairs(operation, max(value.rank - 2, 0)))


def convolved(
    operation: Operation, value: TensorType, kernel: TensorType, pairs: Sequence[tuple[Dim, Dim]] | None
) -> Sequence[Type]:
    """Returns the type of a convolution, whose padding may be unknown."""
    if value.element is not kernel.element:
        raise OperationError(f"an input and a kernel of one element type, got {value} and {kernel}", 1)
    check_precision(operation)
    numbers = operation.attributes.get("dimension_numbers")
    if not isinstance(numbers, StructAttr):
        raise OperationError("the attribute dimension_numbers")
    spatial, kernel_spatial = numbers.ints("input_spatial_dimensions"), numbers.ints("kernel_spatial_dimensions")
    output_spatial = numbers.ints("output_spatial_dimensions")
    rank = value.rank - 2
    if kernel.rank != value.rank or not len(spatial) == len(kernel_spatial) == len(output_spatial) == rank:
        raise OperationError(
            f"an input and a kernel of one rank with {rank} spatial dimensions, got {value} and {kernel}", 1
        )
    batch, feature = numbers.int("input_batch_dimension"), numbers.int("input_feature_dimension")
    inner, outer = numbers.int("kernel_input_feature_dimension"), numbers.int("kernel_output_feature_dimension")
    output = (numbers.int("output_batch_dimension"), numbers.int("output_feature_dimension"))
    axes([batch, feature, *spatial], value.rank, "the input's dimensions")
    axes([inner, outer, *kernel_spatial], value.rank, "the kernel's dimensions")
    axes([*output, *output_spatial], value.rank, "the output's dimensions")
    groups, batch_groups = integer(operation, "feature_group_count", 1), integer(operation, "batch_group_count", 1)
    if groups < 1 or batch_groups < 1 or (groups > 1 and batch_groups > 1):
        raise OperationError(f"one of the group counts to be 1, got {groups} and {batch_groups}")
    features, batches, filters = value.shape[feature], value.shape[batch], kernel.shape[outer]
    depth = kernel.shape[inner]
    if depth is not None:
        expected = f"{groups} groups of {depth} input features, got {features} features"
        same_length(features, groups * depth, expected, 0)
    if filters is not None and not is_multiple(filters, groups * batch_groups):
        raise OperationError(f"output features that {groups * batch_groups} groups share evenly, got {filters}", 1)
    if batches is not None and not is_multiple(batches, batch_groups):
        raise OperationError(f"batches that {batch_groups} groups share evenly, got {batches}", 0)
    names = ("window_strides", "lhs_dilation", "rhs_dilation")
    strides, base, dilation = window_lists(operation, rank, names)
    reversal = operation.attributes.get("window_reversal")
    if isinstance(reversal, DenseArray | DenseElements) and len(operation.integers("window_reversal")) != rank:
        raise OperationError(f"window_reversal with a boolean for each of {rank} dimensions")
    if 0 in [kernel.shape[axis] for axis in kernel_spatial]:
        raise OperationError(f"a window of 1 or more elements along each dimension, got {kernel}", 1)
    shape: list[Length] = [None] * value.rank
    shape[output[0]] = None if batches is None else quotient(batches, batch_groups)
    shape[output[1]] = filters
    for axis in range(rank):
        size = kernel.shape[kernel_spatial[axis]]
        count = (
            None
            if size is None or pairs is None
            else windows(value.shape[spatial[axis]], size, strides[axis], base[axis], dilation[axis], *pairs[axis])
        )
        shape[output_spatial[axis]] = count
    return [TensorType(shape, operation.results[0].tensor.element)]


REDUCTIONS: Final[Mapping[str, Rule]] = {
    "convolution": _convolution,
    "dot": _dot,
    "dot_general": _dot_general,
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "select_and_scatter": _select_and_scatter,
}
