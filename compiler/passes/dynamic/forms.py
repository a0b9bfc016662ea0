"""Static forms of operations with shapes as operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...dialects.builder import Builder, Values
from ...dialects.rules.hlo import infer
from ...dialects.rules.requirements import OperationError, same_count, same_length
from ...ir.attributes import Attribute, DenseArray, SymbolRef
from ...ir.copying import copy_region
from ...ir.operation import Operation, Region, Value, tensor_of
from ...ir.sizes import Dim
from ...ir.types import I64, TensorType, Type
from .known_sizes import Known, Sizes, is_size


def _array(values: Sequence[Dim]) -> DenseArray:
    return DenseArray(I64, tuple(values))


def _added(
    builder: Builder,
    operation: Operation,
    name: str,
    operands: Sequence[Value],
    attributes: Mapping[str, Attribute],
    regions: Sequence[Region] = (),
) -> Values:
    """Appends an operation with inferred types, which must agree with the declared ones."""
    made = Operation(
        f"stablehlo.{name}",
        list(operands),
        [value.type for value in operation.results],
        dict(attributes),
        regions,
        location=builder.location,
    )
    for value, type in zip(made.results, infer(made), strict=True):
        value.type = agreed(type, value.type)
    return builder.block.append(made).results


def agreed(inferred: Type, declared: Type) -> Type:
    """Unifies an inferred and a declared type; different sizes give an equation.

    Raises:
        OperationError: neither type has a length, or they cannot agree.
        UnequalError: the types agree only if sizes are equal.
    """
    if not isinstance(inferred, TensorType) or not isinstance(declared, TensorType):
        return inferred
    if inferred.rank != declared.rank:
        raise OperationError(f"a result of type {inferred}, got {declared}")
    shape: list[Dim] = []
    for axis, (left, right) in enumerate(zip(inferred.shape, declared.shape, strict=True)):
        length = same_length(left, right, f"a result of type {inferred}, got {declared}")
        if length is None:
            raise OperationError(
                f"a result whose dimension {axis} is a polynomial in the lengths of arguments' dimensions, got "
                f"{declared}; export the program for fixed lengths"
            )
        shape.append(length)
    return TensorType(shape, inferred.element)


def _declared(operation: Operation, shape: Sequence[Dim]) -> TensorType:
    """Returns the type with a shape, which must agree with the result's."""
    declared = tensor_of(operation.results[0])
    type = agreed(TensorType(shape, declared.element), declared)
    assert isinstance(type, TensorType)
    return type


def _reshape(builder: Builder, operation: Operation, known: Known) -> Values:
    value, shape = operation.operands
    type = _declared(operation, known.lengths(shape, "a shape", tensor_of(operation.results[0]).shape))
    before = tensor_of(value)
    same_count(before.count, type.count, f"as many elements in the result as in {before}, got {type}", 0)
    return [builder.reshape(value, type.lengths)]


def _iota(builder: Builder, operation: Operation, known: Known) -> Values:
    type = _declared(operation, known.lengths(operation.operands[0], "a shape", tensor_of(operation.results[0]).shape))
    return [builder.iota(type, operation.integer("iota_dimension"))]


def _broadcast(builder: Builder, operation: Operation, known: Known) -> Values:
    value, shape = operation.operands
    type = _declared(operation, known.lengths(shape, "a shape", tensor_of(operation.results[0]).shape))
    made = builder.broadcast(value, type.shape, operation.integers("broadcast_dimensions"))
    assert isinstance(made.owner, Operation)
    infer(made.owner)
    return [made]


def _pad(builder: Builder, operation: Operation, known: Known) -> Values:
    value, padding, *lists = operation.operands
    keys = ("edge_padding_low", "edge_padding_high", "interior_padding")
    numbers = [known.lengths(item, "padding") for item in lists]
    return _added(builder, operation, "pad", [value, padding], dict(zip(keys, map(_array, numbers), strict=True)))


def _slice(builder: Builder, operation: Operation, known: Known) -> Values:
    value, *lists = operation.operands
    starts, limits = (known.elements(item) for item in lists[:2])
    if starts is not None and limits is not None and not all(map(is_size, (*starts, *limits))):
        return _slice_at(builder, operation, known, limits - starts)
    keys = ("start_indices", "limit_indices", "strides")
    numbers = [known.lengths(item, "a slice") for item in lists]
    return _added(builder, operation, "slice", [value], dict(zip(keys, map(_array, numbers), strict=True)))


def _slice_at(builder: Builder, operation: Operation, known: Known, sizes: Sizes) -> Values:
    """Returns a slice with a start computed from data, and a size as its length."""
    value, starts, _, strides = operation.operands
    steps = known.lengths(strides, "strides")
    declared = tensor_of(operation.results[0]).shape
    lengths = [size if is_size(size) else length for size, length in zip(sizes, declared, strict=True)]
    taken = [size for size, step in zip(lengths, steps, strict=True) if is_size(size) and step == 1]
    if len(taken) < len(sizes):
        expected = "a stride of 1 and a length known before the call where a slice starts at a computed place"
        raise known.not_known(sizes, expected)
    scalars = [builder.reshape(builder.piece(starts, 0, axis, axis + 1), ()) for axis in range(len(taken))]
    return _added(builder, operation, "dynamic_slice", [value, *scalars], {"slice_sizes": _array(taken)})


def _gather(builder: Builder, operation: Operation, known: Known) -> Values:
    value, indices, sizes = operation.operands
    attributes = {**operation.attributes, "slice_sizes": _array(known.lengths(sizes, "slice sizes"))}
    return _added(builder, operation, "gather", [value, indices], attributes)


def _convolution(builder: Builder, operation: Operation, known: Known) -> Values:
    value, kernel, padding = operation.operands
    numbers = known.lengths(padding, "padding")
    rows = tuple(_array(numbers[index : index + 2]) for index in range(0, len(numbers), 2))
    attributes: dict[str, Attribute] = {**operation.attributes, "padding": rows}
    return _added(builder, operation, "convolution", [value, kernel], attributes)


def _set_dimension_size(builder: Builder, operation: Operation, known: Known) -> Values:
    """Slices a dimension to its first elements."""
    value, size = operation.operands
    axis = operation.integer("dimension")
    (length,) = known.lengths(size, "a size")
    ranges = [(0, whole, 1) for whole in tensor_of(value).lengths]
    ranges[axis] = (0, length, 1)
    return [value] if length == tensor_of(value).lengths[axis] else [builder.slice(value, ranges)]


FORMS: Final[Mapping[str, Callable[[Builder, Operation, Known], Values]]] = {
    "dynamic_broadcast_in_dim": _broadcast,
    "dynamic_conv": _convolution,
    "dynamic_gather": _gather,
    "dynamic_iota": _iota,
    "dynamic_pad": _pad,
    "dynamic_reshape": _reshape,
    "real_dynamic_slice": _slice,
    "set_dimension_size": _set_dimension_size,
}
"""Static forms of operations. Keys are operation names without the dialect's prefix."""


def static_window(builder: Builder, operation: Operation, known: Known, functions: Mapping[str, Operation]) -> Values:
    """Returns a windowed reduction whose windows are operands, in JAX's form: inputs, initial values, five lists."""
    *values, sizes, strides, base, dilations, padding = operation.operands
    called = operation.attributes.get("called_computations")
    name = called[0] if isinstance(called, tuple) and len(called) == 1 else None
    function = functions.get(name.name) if isinstance(name, SymbolRef) else None
    if function is None:
        raise OperationError("one function of this program in called_computations")
    region = copy_region(function.regions[0], {})
    last = region.block.operations.pop()
    region.block.append(Operation("stablehlo.return", last.operands, location=last.location))
    keys = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    lists = (sizes, strides, base, dilations)
    attributes: dict[str, Attribute] = {
        key: _array(known.lengths(item, "windows")) for key, item in zip(keys, lists, strict=True)
    }
    numbers = known.lengths(padding, "padding")
    attributes["padding"] = tuple(_array(numbers[index : index + 2]) for index in range(0, len(numbers), 2))
    return _added(builder, operation, "reduce_window", values, attributes, [region])
