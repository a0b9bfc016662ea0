"""Uniformly quantized tensors as their stored integers, per tensor or per dimension.

Operations that only move elements move the stored integers. All other operations follow the specification: operands are
dequantized to the expressed type, and results are saturated and rounded to nearest even.
"""

from __future__ import annotations

import functools
import re
from typing import Final, NamedTuple

import numpy as np

from ..dialects.builder import Builder
from ..dialects.rules.requirements import OperationError
from ..ir.operation import Operation, Value, tensor_of
from ..ir.types import DialectType, ScalarType, TensorType, Type
from ..passes.formulas.expression import Expression

_TEXT: Final = re.compile(
    r"!quant\.uniform<(i|u)(\d{1,2})(?:<(-?\d{1,19}):(-?\d{1,19})>)?:(\w{2,10})(?::(\d{1,3}))?,\s*(.*)>", re.ASCII
)
_PARAMETER: Final = re.compile(r"\s*(-?[0-9.eE+-]{1,40})(?::(-?\d{1,19}))?\s*", re.ASCII)

STORED: Final = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("bitcast_convert", "broadcast_in_dim", "case", "composite", "concatenate", "constant", "dynamic_slice"),
        *("dynamic_update_slice", "gather", "get_tuple_element", "if", "optimization_barrier", "pad", "reshape"),
        *("return", "reverse", "select", "slice", "transpose", "tuple", "while"),
    )
)
"""Operations on stored elements."""


class Quantized(NamedTuple):
    """A quantized element type.

    Attributes:
        storage: the type of stored elements.
        low: the smallest stored number.
        high: the largest.
        expressed: the type of the represented numbers.
        axis: the dimension with parameters for each element, or None.
        scales: a single scale, or one for each element of the dimension.
        zeros: the zero points, one for each scale.
    """

    storage: ScalarType
    low: int
    high: int
    expressed: ScalarType
    axis: int | None
    scales: tuple[float, ...]
    zeros: tuple[int, ...]

    def same_numbers(self, other: Quantized) -> bool:
        """Whether stored elements represent the same numbers, whatever the dimension."""
        return self._replace(axis=None) == other._replace(axis=None)


def is_quantized(type: Type) -> bool:
    """Whether a tensor's elements are quantized in any way."""
    element = type.element if isinstance(type, TensorType) else type
    return isinstance(element, DialectType) and "!quant." in str(element)


def quantized_of(type: Type) -> Quantized | None:
    """Returns the quantized element type of a tensor's type, if it has one.

    Raises:
        OperationError: the type is not uniform per tensor or per dimension.
    """
    element = type.element if isinstance(type, TensorType) else type
    return _parsed(str(element)) if is_quantized(element) else None


@functools.cache
def _parsed(text: str) -> Quantized:
    match = _TEXT.fullmatch(text)
    if match is None:
        raise OperationError(f"elements quantized uniformly per tensor or along one dimension, got {text}")
    sign, bits, low, high, expressed, axis, rest = match.groups()
    is_signed = sign == "i"
    width = int(bits)
    if width not in (2, 4, 8, 16, 32) or expressed not in ("f16", "bf16", "f32", "f64"):
        raise OperationError(f"storage of 2 to 32 bits and numbers of f16, bf16, f32 or f64, got {text}")
    least = -(1 << (width - 1)) if is_signed else 0
    most = (1 << (width - 1)) - 1 if is_signed else (1 << width) - 1
    listed = rest.strip()
    if listed.startswith("{") != (axis is not None) or listed.startswith("{") != listed.endswith("}"):
        raise OperationError(f"a scale, or a dimension and a scale for each of its elements, got {text}")
    parameters = [_PARAMETER.fullmatch(part) for part in listed.strip("{}").split(",")]
    pairs = [(float(parameter[1]), int(parameter[2] or 0)) for parameter in parameters if parameter is not None]
    if len(pairs) != len(parameters) or any(not scale > 0 for scale, _ in pairs):
        raise OperationError(f"positive scales with zero points, got {text}")
    storage = ScalarType(f"{'' if is_signed else 'u'}i{bits}")
    bounds = (least if low is None else int(low), most if high is None else int(high))
    if not least <= bounds[0] <= bounds[1] <= most:
        raise OperationError(f"bounds within the storage type, got {text}")
    scales, zeros = zip(*pairs, strict=True)
    return Quantized(storage, *bounds, ScalarType(expressed), None if axis is None else int(axis), scales, zeros)


def keeps_storage(operation: Operation) -> bool:
    """Whether an operation only moves stored elements, all with the same parameters."""
    if operation.name not in STORED:
        return False
    types = [quantized_of(value.type) for value in (*operation.operands, *operation.results)]
    known = [type for type in types if type is not None]
    is_moved = operation.name not in ("stablehlo.bitcast_convert", "stablehlo.constant", "stablehlo.return")
    return not is_moved or bool(operation.regions) or all(type.same_numbers(known[0]) for type in known)


def dequantized(builder: Builder, value: Value, type: Quantized) -> Value:
    scales, zeros = _parameters(builder, value, type)
    wide = Expression(builder, builder.convert(value, type.expressed))
    return ((wide - zeros) * scales).value


def quantize(builder: Builder, value: Value, type: Quantized) -> Value:
    """Quantizes numbers: saturates, and rounds to nearest even."""
    value = builder.convert(value, type.expressed)
    scales, zeros = _parameters(builder, value, type)
    scaled = Expression(builder, value) / scales + zeros
    bounded = scaled.call("maximum", float(type.low)).call("minimum", float(type.high))
    return builder.convert(bounded.call("round_nearest_even").value, type.storage)


def _parameters(builder: Builder, value: Value, type: Quantized) -> tuple[Expression, Expression]:
    """Returns the scales and zero points, broadcast to a value's shape."""
    shape = tensor_of(value).lengths
    if type.axis is not None and (type.axis >= len(shape) or shape[type.axis] != len(type.scales)):
        raise OperationError(f"a scale for each element of dimension {type.axis}, got {len(type.scales)}")
    vector = () if type.axis is None else (len(type.scales),)
    axes = () if type.axis is None else (type.axis,)
    parameters = []
    for numbers in (type.scales, type.zeros):
        constant = builder.constant(np.array(numbers).reshape(vector), TensorType(vector, type.expressed))
        parameters.append(Expression(builder, builder.broadcast(constant, shape, axes)))
    return parameters[0], parameters[1]
