"""A builder that appends StableHLO operations with inferred types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy.typing as npt

from ..ir.attributes import Attribute, DenseArray, DenseElements, EnumAttr, IntegerAttr, StructAttr
from ..ir.operation import NOWHERE, Block, Location, Operation, Region, Value, tensor_of
from ..ir.sizes import Dim
from ..ir.types import I1, I32, I64, ScalarType, TensorType, Type
from .rules.requirements import strided

Values: TypeAlias = Sequence[Value]


class Builder:
    """Appends operations to a block.

    Operands of element-wise operations have the same shape; numbers among them become constants of the first value's
    type.

    Attributes:
        block: the block to append to.
        location: the location of new operations.
    """

    def __init__(self, block: Block, location: Location = NOWHERE) -> None:
        self.block = block
        self.location = location

    def append(
        self,
        name: str,
        operands: Sequence[Value],
        types: Sequence[Type],
        attributes: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> Operation:
        """Appends an operation of the StableHLO dialect."""
        made = Operation(
            f"stablehlo.{name}", list(operands), types, dict(attributes or {}), regions, location=self.location
        )
        return self.block.append(made)

    def constant(self, value: npt.ArrayLike, type: TensorType) -> Value:
        """Appends a constant tensor; a scalar fills it, even if lengths are call-dependent."""
        if not type.is_static:
            return self.broadcast(self.constant(value, TensorType((), type.element)), type.shape, ())
        return self.append("constant", (), [type], {"value": DenseElements.of(value, type)}).result

    def like(self, value: Value, number: complex | npt.ArrayLike) -> Value:
        """Appends a constant of the shape and type of a value."""
        return self.constant(number, tensor_of(value))

    def elementwise(self, name: str, *operands: Value | complex) -> Value:
        """Appends an operation whose result has its operands' type."""
        first = next(operand for operand in operands if isinstance(operand, Value))
        values = [operand if isinstance(operand, Value) else self.like(first, operand) for operand in operands]
        return self.append(name, values, [first.type]).result

    def compare(self, direction: str, left: Value, right: Value | complex) -> Value:
        """Appends a comparison: EQ, NE, LT, LE, GT or GE."""
        type = tensor_of(left)
        other = right if isinstance(right, Value) else self.like(left, right)
        kind = {"float": "FLOAT", "complex": "FLOAT", "uint": "UNSIGNED", "bool": "UNSIGNED"}.get(type.scalar.kind)
        attributes = {
            "comparison_direction": EnumAttr("stablehlo", "comparison_direction", direction),
            "compare_type": EnumAttr("stablehlo", "comparison_type", kind or "SIGNED"),
        }
        return self.append("compare", [left, other], [type.of(I1)], attributes).result

    def select(self, predicate: Value, chosen: Value | complex, other: Value | complex) -> Value:
        """Appends a selection by a predicate; ``chosen`` or ``other`` is a value."""
        first = chosen if isinstance(chosen, Value) else other
        assert isinstance(first, Value)
        values = [item if isinstance(item, Value) else self.like(first, item) for item in (chosen, other)]
        return self.append("select", [predicate, *values], [first.type]).result

    def convert(self, value: Value, element: ScalarType) -> Value:
        """Converts elements to another type; returns the value itself if they already have it."""
        type = tensor_of(value)
        return value if type.element is element else self.append("convert", [value], [type.of(element)]).result

    def bitcast(self, value: Value, element: ScalarType) -> Value:
        """Reinterprets the bits of elements as a type of the same width."""
        return self.append("bitcast_convert", [value], [tensor_of(value).of(element)]).result

    def part(self, name: str, value: Value) -> Value:
        """Appends ``real`` or ``imag``."""
        type = tensor_of(value)
        return self.append(name, [value], [type.of(type.scalar.part)]).result

    def complex(self, real: Value, imaginary: Value) -> Value:
        """Builds complex numbers from their parts."""
        type = tensor_of(real)
        return self.append("complex", [real, imaginary], [type.of(ScalarType(f"complex<{type.element}>"))]).result

    def conjugate(self, value: Value) -> Value:
        """Conjugates complex numbers; returns real numbers unchanged."""
        if tensor_of(value).scalar.kind != "complex":
            return value
        return self.complex(self.part("real", value), self.elementwise("negate", self.part("imag", value)))

    def product(self, left: Value, right: Value) -> Value:
        """Multiplies two batches of matrices, whose rows and columns are the last two dimensions."""
        rank = tensor_of(left).rank
        batch = tuple(range(rank - 2))
        return self.contract(left, right, ((rank - 1,), (rank - 2,)), (batch, batch))

    def contract(
        self,
        left: Value,
        right: Value,
        axes: Sequence[Sequence[int]],
        batch: Sequence[Sequence[int]] = ((), ()),
        element: Type | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Value:
        """Sums products along dimensions of both operands.

        Args:
            left, right: the operands.
            axes: the summed dimensions of each operand.
            batch: the batch dimensions of each operand, which come first in the result; the others follow in order.
            element: the type of the result's elements; by default that of the left operand.
            attributes: the further attributes of the operation.
        """
        fields = {
            f"{side}_{kind}_dimensions": tuple(numbers)
            for kind, both in (("batching", batch), ("contracting", axes))
            for side, numbers in zip(("lhs", "rhs"), both, strict=True)
        }
        shape = [tensor_of(left).shape[axis] for axis in batch[0]]
        for value, *used in zip((left, right), axes, batch, strict=True):
            lengths = enumerate(tensor_of(value).shape)
            shape += [length for axis, length in lengths if not any(axis in numbers for numbers in used)]
        numbers = {"dot_dimension_numbers": StructAttr("stablehlo.dot", fields), **(attributes or {})}
        return self.append(
            "dot_general", [left, right], [TensorType(shape, element or tensor_of(left).element)], numbers
        ).result

    def broadcast(self, value: Value, shape: Sequence[Dim | None], dimensions: Sequence[int]) -> Value:
        """Broadcasts a value to a shape; ``dimensions`` maps its dimensions to those of the shape."""
        type = TensorType(shape, tensor_of(value).element)
        attributes = {"broadcast_dimensions": DenseArray(I64, tuple(dimensions))}
        return self.append("broadcast_in_dim", [value], [type], attributes).result

    def reshape(self, value: Value, shape: Sequence[Dim]) -> Value:
        return self.append("reshape", [value], [TensorType(shape, tensor_of(value).element)]).result

    def slice(self, value: Value, ranges: Sequence[tuple[Dim, Dim, int]]) -> Value:
        """Appends a slice; ``ranges`` has start, limit and stride of each dimension."""
        type = tensor_of(value)
        shape = [strided(limit - start, stride) for start, limit, stride in ranges]
        keys = ("start_indices", "limit_indices", "strides")
        attributes = {key: DenseArray(I64, tuple(item[index] for item in ranges)) for index, key in enumerate(keys)}
        return self.append("slice", [value], [TensorType(shape, type.element)], attributes).result

    def piece(self, value: Value, axis: int, start: Dim, stop: Dim) -> Value:
        """Slices along one dimension."""
        ranges: list[tuple[Dim, Dim, int]] = [(0, length, 1) for length in tensor_of(value).lengths]
        ranges[axis] = (start, stop, 1)
        return self.slice(value, ranges)

    def piece_at(self, value: Value, axis: int, start: Value, length: Dim) -> Value:
        """Slices along one dimension, from a start that the program computes."""
        sizes = [length if dimension == axis else other for dimension, other in enumerate(tensor_of(value).lengths)]
        zero = self.constant(0, tensor_of(start))
        return self.part_at(value, [start if dimension == axis else zero for dimension in range(len(sizes))], sizes)

    def part_at(self, value: Value, starts: Sequence[Value], sizes: Sequence[Dim]) -> Value:
        """Slices along all dimensions, from starts that the program computes."""
        type = TensorType(sizes, tensor_of(value).element)
        attributes = {"slice_sizes": DenseArray(I64, tuple(sizes))}
        return self.append("dynamic_slice", [value, *starts], [type], attributes).result

    def put_at(self, value: Value, part: Value, starts: Sequence[Value]) -> Value:
        """Replaces a part of a value, from starts that the program computes."""
        return self.append("dynamic_update_slice", [value, part, *starts], [value.type]).result

    def put_along(self, value: Value, part: Value, axis: int, start: Value) -> Value:
        """Replaces a part of a value, from a start along one dimension that the program computes."""
        zero = self.constant(0, tensor_of(start))
        return self.put_at(value, part, [start if number == axis else zero for number in range(tensor_of(value).rank)])

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """Permutes dimensions."""
        if list(order) == list(range(len(order))):
            return value
        type = tensor_of(value)
        result = TensorType([type.shape[axis] for axis in order], type.element)
        return self.append("transpose", [value], [result], {"permutation": DenseArray(I64, tuple(order))}).result

    def reverse(self, value: Value, axes: Sequence[int]) -> Value:
        """Reverses elements along dimensions."""
        return self.append("reverse", [value], [value.type], {"dimensions": DenseArray(I64, tuple(axes))}).result

    def reduce(self, name: str, value: Value, start: npt.ArrayLike, axes: Sequence[int]) -> Value:
        """Reduces dimensions by an element-wise operation, and removes them."""
        scalar = TensorType((), tensor_of(value).element)
        region = self.region([scalar, scalar], lambda inner, pair: [inner.elementwise(name, *pair)])
        return self.reduction([value], [self.constant(start, scalar)], axes, region)[0]

    def reduction(
        self, values: Sequence[Value], starts: Sequence[Value], axes: Sequence[int], body: Region
    ) -> Sequence[Value]:
        """Reduces dimensions of several values together by a body, whose arguments give the results' element types."""
        shape = [length for axis, length in enumerate(tensor_of(values[0]).shape) if axis not in axes]
        types = [TensorType(shape, tensor_of(argument).element) for argument in body.block.arguments[: len(values)]]
        attributes = {"dimensions": DenseArray(I64, tuple(axes))}
        return self.append("reduce", [*values, *starts], types, attributes, [body]).results

    def sort(
        self,
        values: Sequence[Value],
        axis: int,
        compare: Callable[[Builder, Sequence[Value]], Value],
        attributes: Mapping[str, Attribute] | None = None,
        others: Sequence[Value] = (),
    ) -> Sequence[Value]:
        """Sorts values together along a dimension, stably.

        Args:
            values: the values to sort.
            axis: the dimension.
            compare: a function that returns whether an element precedes another; its arguments are pairs, one for each
                operand.
            attributes: the further attributes of the operation.
            others: further operands, which are not sorted.
        """
        types = [TensorType((), tensor_of(value).element) for value in values for _ in range(2)]
        region = self.region(types, lambda inner, pairs: [compare(inner, pairs)])
        known = {"dimension": IntegerAttr(axis, I64), "is_stable": True, **(attributes or {})}
        return self.append("sort", [*values, *others], [value.type for value in values], known, [region]).results

    def gather(
        self,
        value: Value,
        indices: Value,
        numbers: Mapping[str, object],
        sizes: Sequence[Dim],
        shape: Sequence[Dim | None],
    ) -> Value:
        """Gathers slices of a value; ``numbers`` are the fields of ``dimension_numbers``, ``shape`` is the result's."""
        attributes: dict[str, Attribute] = {
            "dimension_numbers": StructAttr("stablehlo.gather", numbers),
            "slice_sizes": DenseArray(I64, tuple(sizes)),
        }
        return self.append("gather", [value, indices], [TensorType(shape, tensor_of(value).element)], attributes).result

    def concatenate(self, values: Sequence[Value], axis: int) -> Value:
        """Joins values along a dimension."""
        shape = list(tensor_of(values[0]).lengths)
        shape[axis] = sum(tensor_of(value).lengths[axis] for value in values)
        type = TensorType(shape, tensor_of(values[0]).element)
        return self.append("concatenate", values, [type], {"dimension": IntegerAttr(axis, I64)}).result

    def pad(self, value: Value, filling: Value, low: Sequence[Dim], high: Sequence[Dim], gaps: Sequence[int]) -> Value:
        """Adds elements at the ends of dimensions and between elements; negative counts remove elements."""
        if not any((*low, *high, *gaps)):
            return value
        type = tensor_of(value)
        shape = [
            length + first + last + ((length - 1) * gap if length else 0)
            for length, first, last, gap in zip(type.lengths, low, high, gaps, strict=True)
        ]
        keys = ("edge_padding_low", "edge_padding_high", "interior_padding")
        attributes = {key: DenseArray(I64, tuple(item)) for key, item in zip(keys, (low, high, gaps), strict=True)}
        return self.append("pad", [value, filling], [TensorType(shape, type.element)], attributes).result

    def lengthen(self, value: Value, axis: int, count: Dim, filling: float | Value = 0) -> Value:
        """Adds elements at the end of a dimension."""
        none = [0] * tensor_of(value).rank
        if not isinstance(filling, Value):
            filling = self.constant(filling, TensorType((), tensor_of(value).element))
        return self.pad(value, filling, none, [*none[:axis], count, *none[axis + 1 :]], none)

    def dimension(self, value: Value, axis: int) -> Value:
        """Returns the length of a dimension as ``tensor<i32>``."""
        attributes = {"dimension": IntegerAttr(axis, I64)}
        return self.append("get_dimension_size", [value], [TensorType((), I32)], attributes).result

    def iota(self, type: TensorType, dimension: int) -> Value:
        """Appends consecutive numbers along a dimension."""
        return self.append("iota", (), [type], {"iota_dimension": IntegerAttr(dimension, I64)}).result

    def polynomial(self, value: Value, coefficients: Sequence[float]) -> Value:
        """Evaluates a polynomial by Horner's rule, highest coefficient first."""
        total: Value | float = coefficients[0]
        for coefficient in coefficients[1:]:
            total = self.elementwise("add", self.elementwise("multiply", value, total), coefficient)
        return total if isinstance(total, Value) else self.like(value, total)

    def loop(
        self,
        count: Value | int,
        starts: Sequence[Value],
        step: Callable[[Builder, Value, Sequence[Value]], Sequence[Value]],
    ) -> Sequence[Value]:
        """Appends a loop of ``step(builder, number, values)`` for each i32 number below a count; returns the values."""
        carried = [self.constant(0, TensorType((), I32)), *starts]

        def goes_on(inner: Builder, values: Sequence[Value]) -> Sequence[Value]:
            return [inner.compare("LT", values[0], count)]

        def body(inner: Builder, values: Sequence[Value]) -> Sequence[Value]:
            return [inner.elementwise("add", values[0], 1), *step(inner, values[0], values[1:])]

        return self.repeat(carried, goes_on, body)[1:]

    def repeat(
        self,
        carried: Sequence[Value],
        goes_on: Callable[[Builder, Sequence[Value]], Sequence[Value]],
        body: Callable[[Builder, Sequence[Value]], Sequence[Value]],
    ) -> Sequence[Value]:
        """Appends a loop that runs a body on the carried values while a condition is true; returns the values."""
        types = [value.type for value in carried]
        return self.append("while", carried, types, {}, [self.region(types, goes_on), self.region(types, body)]).results

    def region(self, types: Sequence[Type], body: Callable[[Builder, Sequence[Value]], Sequence[Value]]) -> Region:
        """Creates a region whose block has arguments of these types and returns the body's results."""
        block = Block(types)
        inner = Builder(block, self.location)
        block.append(Operation("stablehlo.return", list(body(inner, block.arguments)), location=self.location))
        return Region([block])
