"""Custom calls in terms of StableHLO: checks, and JAX's custom calls on one CPU: shardings and LAPACK.

The host compares bits, compares within tolerances, and looks for zeros. Distances in units of the last place are
computed by the program, which then checks that its result is true. LAPACK's calls are those of ``jax.numpy.linalg``;
failures are reported as by LAPACK, by ``info`` or by NaN only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from ...dialects.builder import Builder, Values
from ...dialects.rules.requirements import OperationError
from ...ir.attributes import Attribute, EnumAttr, FloatAttr, IntegerAttr
from ...ir.element_types import element_type
from ...ir.operation import Operation, Value, tensor_of
from ...ir.types import F32, ScalarType
from ..formulas.expression import Expression, Matrix, identity
from ..formulas.matrix_factors import eigh, lu, qr, reflected, scalars_of, svd, tridiagonal_solve

Options = Mapping[str, Attribute]

_PASSED_ON: Final = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement"})
_LAPACK: Final = re.compile(r"lapack_[sdcz](\w+)_ffi")


def custom_call(builder: Builder, operation: Operation) -> Values | None:
    """Replaces a custom call; returns None for checks that the host supports, which are kept."""
    target = str(operation.attributes.get("call_target_name"))
    if target.startswith("check."):
        return check_call(builder, operation)
    if target in _PASSED_ON:
        return operation.operands
    name = _LAPACK.fullmatch(target)
    if name is None:
        return None
    config = operation.attributes.get("mhlo.backend_config")
    return _CALLS[name[1]](builder, operation, config if isinstance(config, Mapping) else {})


def _letter(options: Options, key: str) -> str:
    value = options.get(key)
    return chr(value.value) if isinstance(value, IntegerAttr) else ""


def _succeeded(builder: Builder, operation: Operation) -> Value:
    """Returns LAPACK's ``info`` for success: the last result."""
    return builder.constant(0, tensor_of(operation.results[-1]))


def _potrf(builder: Builder, operation: Operation, options: Options) -> Values:
    """Returns the Cholesky factor; ``info`` is 1 if there is none."""
    (value,) = operation.operands
    attributes: dict[str, Attribute] = {"lower": _letter(options, "uplo") == "L"}
    factor = Matrix(builder, builder.append("cholesky", [value], [value.type], attributes).result)
    info = tensor_of(operation.results[1])
    real = factor.real()
    failed = real.differs(real).convert(info.scalar).largest(-2, -1)
    return [factor.value, builder.reshape(failed.value, [length or 0 for length in info.shape])]


def _trsm(builder: Builder, operation: Operation, options: Options) -> Values:
    """Solves a triangular system."""
    mode = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[_letter(options, "trans_x") or "N"]
    attributes: dict[str, Attribute] = {
        "left_side": _letter(options, "side") == "L",
        "lower": _letter(options, "uplo") == "L",
        "unit_diagonal": _letter(options, "diag") == "U",
        "transpose_a": EnumAttr("stablehlo", "transpose", mode),
    }
    type = operation.results[0].type
    return [builder.append("triangular_solve", operation.operands, [type], attributes).result]


def _getrf(builder: Builder, operation: Operation, options: Options) -> Values:
    """Computes LU factors; rows count from 1."""
    factors, pivots, info = lu(Matrix(builder, operation.operands[0]))
    shape = [length or 0 for length in tensor_of(operation.results[2]).shape]
    return [factors.value, scalars_of(pivots + 1), builder.reshape(info.value, shape)]


def _geqrf(builder: Builder, operation: Operation, options: Options) -> Values:
    packed, factors = qr(Matrix(builder, operation.operands[0]))
    return [packed.value, scalars_of(factors)]


def _as_row(builder: Builder, value: Value) -> Matrix:
    """Reshapes a batch of vectors to rows."""
    shape = [length or 0 for length in tensor_of(value).shape]
    return Matrix(builder, builder.reshape(value, [*shape[:-1], 1, shape[-1]]))


def _orgqr(builder: Builder, operation: Operation, options: Options) -> Values:
    """Returns the first columns of the unitary factor."""
    vectors, factors = operation.operands
    matrix = Matrix(builder, vectors)
    unit = identity(builder, matrix.shape, matrix.element)
    return [reflected(matrix, _as_row(builder, factors), unit).value]


def _ormqr(builder: Builder, operation: Operation, options: Options) -> Values:
    """Multiplies a matrix by the unitary factor; a product from the right is the adjoint of the adjoints' product."""
    vectors, factors, matrix = operation.operands
    is_left, is_adjoint = options.get("left") is True, options.get("transpose") is True
    operand = Matrix(builder, matrix)
    operand = operand if is_left else operand.adjoint()
    row = _as_row(builder, factors)
    product = reflected(Matrix(builder, vectors), row, operand, is_adjoint == is_left)
    return [(product if is_left else product.adjoint()).value]


def _gesdd(builder: Builder, operation: Operation, options: Options) -> Values:
    """Computes singular values and vectors; the first result, LAPACK's workspace, is the operand."""
    (value,) = operation.operands
    matrix = Matrix(builder, value)
    *_, rows, columns = matrix.shape
    types = [tensor_of(result) for result in operation.results]
    is_full = types[2].shape[-1] == rows and types[3].shape[-2] == columns
    is_wide = rows < columns
    tall = matrix.adjoint() if is_wide else matrix
    left, values, right = svd(tall, is_full)
    if is_wide:
        left, right = right, left
    return [value, scalars_of(values), left.value, right.adjoint().value, _succeeded(builder, operation)]


def _syevd(builder: Builder, operation: Operation, options: Options) -> Values:
    """Computes eigenvectors and eigenvalues from one triangle of the matrix."""
    matrix = Matrix(builder, operation.operands[0])
    rows, columns = matrix.row_numbers(), matrix.column_numbers()
    is_lower = _letter(options, "uplo") != "U"
    kept = rows > columns if is_lower else rows < columns
    diagonal = rows.equals(columns).then(matrix.real().like(matrix), matrix.constant(0))
    half = kept.then(matrix, matrix.constant(0))
    vectors, values = eigh(half + half.adjoint() + diagonal)
    return [vectors.value, scalars_of(values), _succeeded(builder, operation)]


def _gtsv(builder: Builder, operation: Operation, options: Options) -> Values:
    """Solves a tridiagonal system; returns the diagonals, which LAPACK would overwrite, unchanged."""
    lower, diagonal, upper, right = operation.operands
    solution = tridiagonal_solve(builder, lower, diagonal, upper, right)
    return [lower, diagonal, upper, solution, _succeeded(builder, operation)]


_CALLS: Final[Mapping[str, Callable[[Builder, Operation, Options], Values]]] = {
    "geqrf": _geqrf,
    "gesdd": _gesdd,
    "getrf": _getrf,
    "gtsv": _gtsv,
    "heevd": _syevd,
    "orgqr": _orgqr,
    "ormqr": _ormqr,
    "potrf": _potrf,
    "syevd": _syevd,
    "trsm": _trsm,
    "ungqr": _orgqr,
    "unmqr": _ormqr,
}


TOLERANCE: Final = 1e-3
MAX_ULPS: Final = 3
"""The default tolerance: sufficient for the programs of ``stablehlo/testdata``, and what they allow."""


_UNBOUNDED: Final = (1 << 64) - 1


def check_call(builder: Builder, operation: Operation) -> Sequence[Value] | None:
    """Replaces a check; returns None if the host supports it."""
    target = operation.attributes["call_target_name"]
    operands = operation.operands
    if target == "check.expect_close" and len(operands) == 2:
        _expect_close(builder, operation)
        return []
    if target == "check.eq" and len(operands) == 2 and len(operation.results) == 1:
        same = builder.compare("EQ", *operands)
        return [builder.reduce("and", same, True, range(tensor_of(same).rank))]
    if len(operands) != 2 or "rtol" in operation.attributes:
        return None
    element = tensor_of(operands[0]).scalar
    if element_type(element) is None or element.bits in (2, 4):
        # Buffer views lack these element types, but have wider types that hold all their values.
        wider = ScalarType(f"{'u' if element.kind == 'uint' else ''}i32") if element.is_integer else F32
        operands = [builder.convert(value, wider) for value in operands]
        if element.is_integer:
            _call(builder, "expect_eq", operands)
            return []
    is_inexact = tensor_of(operands[0]).scalar.kind in ("float", "complex")
    if target not in ("check.expect_almost_eq", "check.expect_eq") or not is_inexact:
        return None
    tolerance = operation.attributes.get("atol", operation.attributes.get("tolerance"))
    absolute, relative = (tolerance.value, 0.0) if isinstance(tolerance, FloatAttr) else (TOLERANCE, TOLERANCE)
    if target == "check.expect_eq":
        # Compared as numbers: zeros of both signs are equal, as are all NaNs.
        absolute = relative = 0.0
    tolerances = {"atol": FloatAttr(_upward(absolute), F32), "rtol": FloatAttr(_upward(relative), F32)}
    _call(builder, "expect_almost_eq", operands, {**tolerances})
    return []


def _upward(number: float) -> float:
    """Returns the smallest f32 that is not below a number."""
    rounded = np.float32(number)
    return float(rounded if float(rounded) >= number else np.nextafter(rounded, np.float32(math.inf)))


def _call(builder: Builder, name: str, operands: Sequence[Value], extra: dict[str, Attribute] | None = None) -> None:
    attributes: dict[str, Attribute] = {"call_target_name": f"check.{name}", "has_side_effect": True, **(extra or {})}
    builder.append("custom_call", operands, [], attributes)


def _expect_close(builder: Builder, operation: Operation) -> None:
    """Expects every element within a distance in units in the last place; of complex numbers, both parts."""
    type = tensor_of(operation.operands[0])
    if type.scalar.kind not in ("float", "complex"):
        raise OperationError(f"floats or complex numbers, got {type}", 0)
    most, least = operation.integer("max_ulp_difference", MAX_ULPS), operation.integer("min_ulp_difference")
    parts = ("real", "imag") if type.scalar.kind == "complex" else ("",)
    verdicts = []
    for part in parts:
        values = [builder.part(part, value) if part else value for value in operation.operands]
        distance, is_defined = _distance(*(Expression(builder, value) for value in values))
        limit = (1 << distance.element.bits) - 1
        is_near, is_far = distance <= min(most, limit), distance >= min(least, limit)
        if most >= _UNBOUNDED:
            verdicts.append((is_defined.constant(True), ~is_defined if least >= _UNBOUNDED else ~is_defined | is_far))
        else:
            verdicts.append((is_defined & is_near, ~is_defined | is_far))
    (is_near, is_far), *others = verdicts
    for near, far in others:
        is_near, is_far = is_near & near, is_far | far
    _call(builder, "expect_all_true", [(is_near & is_far).value])


def _distance(x: Expression, y: Expression) -> tuple[Expression, Expression]:
    """Returns the distance in units in the last place, and whether it is defined: if both are finite, or equal."""
    # By bits, since a device may flush subnormal numbers to zero.
    bits = ScalarType(f"ui{x.element.bits}")
    raws = [value.bitcast(bits) for value in (x, y)]
    sign = raws[0].constant(1 << (bits.bits - 1))
    infinity = Expression(x.builder, x.builder.like(x.value, math.inf)).bitcast(bits)
    sizes = [raw & ~sign for raw in raws]
    pairs = zip(raws, sizes, strict=True)
    left, right = ((raw & sign).equals(0).then(sign + size, sign - size) for raw, size in pairs)
    distance = (left > right).then(left - right, right - left)
    is_equal = left.equals(right) | ((sizes[0] > infinity) & (sizes[1] > infinity))
    are_finite = (sizes[0] < infinity) & (sizes[1] < infinity)
    return is_equal.then(distance.constant(0), distance), is_equal | are_finite
