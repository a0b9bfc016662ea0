"""Custom calls that JAX makes on one CPU, in terms of StableHLO: shardings, and LAPACK's linear algebra.

LAPACK's calls are those of ``jax.numpy.linalg``. Failures are reported as LAPACK does, by ``info`` or by NaN alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...dialects.builder import Builder
from ...ir.attributes import Attribute, EnumAttr, IntegerAttr
from ...ir.operation import Operation, Value, tensor_of
from ..formulas.matrix import Matrix, identity
from ..formulas.matrix_factors import eigh, lu, qr, reflected, scalars_of, svd
from ..formulas.tridiagonal import tridiagonal_solve
from .checks import check_call

Values = Sequence[Value]
Options = Mapping[str, Attribute]

_PASSED_ON: Final = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement"})
_LAPACK: Final = re.compile(r"lapack_[sdcz](\w+)_ffi")


def custom_call(builder: Builder, operation: Operation) -> Values | None:
    """Replaces a custom call; returns None for checks that the host has, which stay."""
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
    """LAPACK's ``info`` for success: the last result."""
    return builder.constant(0, tensor_of(operation.results[-1]))


def _potrf(builder: Builder, operation: Operation, options: Options) -> Values:
    """Returns the Cholesky factor; ``info`` is 1 where there is none."""
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
    """LU factors; rows count from 1."""
    factors, pivots, info = lu(Matrix(builder, operation.operands[0]))
    shape = [length or 0 for length in tensor_of(operation.results[2]).shape]
    return [factors.value, scalars_of(pivots + 1), builder.reshape(info.value, shape)]


def _geqrf(builder: Builder, operation: Operation, options: Options) -> Values:
    packed, factors = qr(Matrix(builder, operation.operands[0]))
    return [packed.value, scalars_of(factors)]


def _as_row(builder: Builder, value: Value) -> Matrix:
    """Makes a vector of each batch a row."""
    shape = [length or 0 for length in tensor_of(value).shape]
    return Matrix(builder, builder.reshape(value, [*shape[:-1], 1, shape[-1]]))


def _orgqr(builder: Builder, operation: Operation, options: Options) -> Values:
    """Returns the first columns of the unitary factor."""
    vectors, factors = operation.operands
    matrix = Matrix(builder, vectors)
    unit = identity(builder, matrix.shape, matrix.element)
    return [reflected(matrix, _as_row(builder, factors), unit).value]


def _ormqr(builder: Builder, operation: Operation, options: Options) -> Values:
    """Multiplies a matrix by the unitary factor; from the right by the adjoint of the adjoint's product."""
    vectors, factors, matrix = operation.operands
    is_left, is_adjoint = options.get("left") is True, options.get("transpose") is True
    operand = Matrix(builder, matrix)
    operand = operand if is_left else operand.adjoint()
    row = _as_row(builder, factors)
    product = reflected(Matrix(builder, vectors), row, operand, is_adjoint == is_left)
    return [(product if is_left else product.adjoint()).value]


def _gesdd(builder: Builder, operation: Operation, options: Options) -> Values:
    """Singular values and vectors; the first result, LAPACK's workspace, is the operand."""
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
    """Eigenvectors and eigenvalues from one triangle of the matrix."""
    matrix = Matrix(builder, operation.operands[0])
    rows, columns = matrix.row_numbers(), matrix.column_numbers()
    is_lower = _letter(options, "uplo") != "U"
    kept = rows > columns if is_lower else rows < columns
    diagonal = rows.equals(columns).then(matrix.real().like(matrix), matrix.constant(0))
    half = kept.then(matrix, matrix.constant(0))
    vectors, values = eigh(half + half.adjoint() + diagonal)
    return [vectors.value, scalars_of(values), _succeeded(builder, operation)]


def _gtsv(builder: Builder, operation: Operation, options: Options) -> Values:
    """Solves a tridiagonal system; returns the diagonals, which LAPACK overwrites, unchanged."""
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
