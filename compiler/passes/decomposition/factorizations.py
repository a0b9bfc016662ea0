"""Cholesky factorisation and triangular systems: small ones unrolled row by row, others by blocks in a loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from ...dialects.builder import Builder
from ...ir.attributes import EnumAttr
from ...ir.operation import Operation, Value, tensor_of
from ...ir.sizes import Dim, number_of
from ...ir.types import F32, I32, TensorType

Values = Sequence[Value]

_BLOCK: Final = 16
"""Rows that are unrolled; the block size of larger matrices."""


def triangular_solve(builder: Builder, operation: Operation) -> Values:
    """Solves a triangular system."""
    matrix, right = (_wide(builder, value) for value in operation.operands)
    lower, unit, left = (operation.flag(name) for name in ("lower", "unit_diagonal", "left_side"))
    mode = operation.attributes.get("transpose_a")
    case = mode.case if isinstance(mode, EnumAttr) else "NO_TRANSPOSE"
    if case == "ADJOINT":
        matrix = builder.conjugate(matrix)
    transposes = (case in ("TRANSPOSE", "ADJOINT")) != (not left)
    if transposes:
        matrix, lower = _transposed(builder, matrix), not lower
    if not left:
        right = _transposed(builder, right)
    if 0 in _shape(right):
        return [operation.operands[1]]
    if number_of(_shape(matrix)[-1]) <= _BLOCK:
        solution = _solved(builder, matrix, right, lower, unit)
    else:
        solution = _solved_by_blocks(builder, matrix, right, lower, unit)
    solution = solution if left else _transposed(builder, solution)
    return [builder.convert(solution, tensor_of(operation.results[0]).scalar)]


def _solved(builder: Builder, matrix: Value, right: Value, lower: bool, unit: bool) -> Value:
    """Solves row by row, each from those before it."""
    size, rank = number_of(_shape(matrix)[-1]), len(_shape(right))
    rows: list[Value] = []
    for index in range(size) if lower else range(size - 1, -1, -1):
        row = _row(builder, right, index)
        if rows:
            known = builder.concatenate(rows if lower else rows[::-1], rank - 2)
            start, stop = (0, index) if lower else (index + 1, size)
            factors = builder.piece(_row(builder, matrix, index), rank - 1, start, stop)
            row = builder.elementwise("subtract", row, builder.product(factors, known))
        if not unit:
            pivot = builder.piece(_row(builder, matrix, index), rank - 1, index, index + 1)
            row = builder.elementwise("divide", row, builder.broadcast(pivot, _shape(row), range(rank)))
        rows.append(row)
    return builder.concatenate(rows if lower else rows[::-1], rank - 2)


def _solved_by_blocks(builder: Builder, matrix: Value, right: Value, lower: bool, unit: bool) -> Value:
    """Solves block by block: subtracts the known part of the solution, then solves a small system."""
    size = number_of(_shape(matrix)[-1])
    matrix = _masked(builder, _squared_up(builder, matrix), lower)
    right = _lengthened(builder, right)
    blocks = number_of(_shape(matrix)[-1]) // _BLOCK

    def step(inner: Builder, index: Value, solution: Value) -> Value:
        number = index if lower else inner.elementwise("subtract", inner.like(index, blocks - 1), index)
        start = inner.elementwise("multiply", number, _BLOCK)
        rows = _rows(inner, matrix, start)
        rest = inner.elementwise("subtract", _rows(inner, right, start), inner.product(rows, solution))
        block = _solved(inner, _columns(inner, rows, start), rest, lower, unit)
        return _updated(inner, solution, block, start, 2)

    solution = _repeated(builder, blocks, builder.like(right, 0), step)
    return builder.piece(solution, len(_shape(solution)) - 2, 0, size)


def cholesky(builder: Builder, operation: Operation) -> Values:
    """Returns the Cholesky factor; NaN where the matrix is not positive definite."""
    (value,) = operation.operands
    lower = operation.flag("lower")
    matrix = _wide(builder, value)
    if not lower:
        matrix = _adjoint(builder, matrix)
    if 0 in _shape(matrix):
        return [value]
    factor = (_factored if number_of(_shape(matrix)[-1]) <= _BLOCK else _factored_by_blocks)(builder, matrix)
    if not lower:
        factor = _adjoint(builder, factor)
    return [builder.convert(factor, tensor_of(value).scalar)]


def _factored(builder: Builder, matrix: Value) -> Value:
    """Computes the columns of the lower factor in order."""
    shape = _shape(matrix)
    rank, size = len(shape), number_of(shape[-1])
    columns: list[Value] = []
    for index in range(size):
        column = builder.piece(builder.piece(matrix, rank - 2, index, size), rank - 1, index, index + 1)
        if columns:
            known = builder.concatenate(columns, rank - 1)
            below = builder.piece(known, rank - 2, index, size)
            row = builder.conjugate(_row(builder, known, index))
            column = builder.elementwise("subtract", column, builder.product(below, _transposed(builder, row)))
        pivot = builder.piece(column, rank - 2, 0, 1)
        real = builder.part("real", pivot) if tensor_of(pivot).scalar.kind == "complex" else pivot
        good = builder.compare("GT", real, 0.0)
        root = builder.elementwise("sqrt", builder.select(good, real, math.nan))
        if tensor_of(pivot).scalar.kind == "complex":
            root = builder.complex(root, builder.like(root, 0))
        column = builder.elementwise("divide", column, builder.broadcast(root, _shape(column), range(rank)))
        if index:
            above = (*shape[:-2], index, 1)
            zeros = builder.constant(0, TensorType(above, tensor_of(column).element))
            column = builder.concatenate([zeros, column], rank - 2)
        columns.append(column)
    return builder.concatenate(columns, rank - 1)


def _factored_by_blocks(builder: Builder, matrix: Value) -> Value:
    """Computes blocks of columns in order: a small factor on the diagonal, and a small system for the rows below."""
    size, rank = number_of(_shape(matrix)[-1]), len(_shape(matrix))
    matrix = _squared_up(builder, matrix)
    whole = _shape(matrix)

    def step(inner: Builder, index: Value, columns_done: Value) -> Value:
        start = inner.elementwise("multiply", index, _BLOCK)
        known = inner.product(columns_done, _adjoint(inner, _rows(inner, columns_done, start)))
        columns = inner.elementwise("subtract", _columns(inner, matrix, start), known)
        factor = _factored(inner, _rows(inner, columns, start))
        columns = _adjoint(inner, _solved(inner, factor, _adjoint(inner, columns), True, False))
        grid = TensorType(_shape(columns), I32)
        row, column = inner.iota(grid, rank - 2), inner.iota(grid, rank - 1)
        first = inner.elementwise("add", column, inner.broadcast(start, _shape(columns), ()))
        columns = inner.select(inner.compare("GE", row, first), columns, 0)
        return _updated(inner, columns_done, columns, start, 1)

    columns_done = _repeated(builder, number_of(whole[-1]) // _BLOCK, builder.like(matrix, 0), step)
    return builder.piece(builder.piece(columns_done, rank - 2, 0, size), rank - 1, 0, size)


# -- blocks ----------------------------------------------------------------------------------------------


def _shape(value: Value) -> tuple[Dim, ...]:
    return tensor_of(value).lengths


def _repeated(builder: Builder, count: int, start: Value, step: Callable[[Builder, Value, Value], Value]) -> Value:
    """Applies ``step(builder, number, value)`` ``count`` times, in a loop."""
    return builder.loop(count, [start], lambda inner, number, values: [step(inner, number, *values)])[0]


def _rows(builder: Builder, value: Value, start: Value) -> Value:
    """Returns a block of rows from ``start`` on."""
    return builder.piece_at(value, len(_shape(value)) - 2, start, _BLOCK)


def _columns(builder: Builder, value: Value, start: Value) -> Value:
    """Returns a block of columns from ``start`` on."""
    return builder.piece_at(value, len(_shape(value)) - 1, start, _BLOCK)


def _updated(builder: Builder, value: Value, block: Value, start: Value, distance: int) -> Value:
    """Replaces a block that starts at ``start`` in the last dimension but ``distance - 1``."""
    return builder.put_along(value, block, len(_shape(value)) - distance, start)


def _lengthened(builder: Builder, value: Value, axes: Sequence[int] = (-2,)) -> Value:
    """Pads dimensions with zeros to whole blocks."""
    shape = _shape(value)
    high = [0] * len(shape)
    for axis in axes:
        high[axis] = -number_of(shape[axis]) % _BLOCK
    none = [0] * len(shape)
    return builder.pad(value, builder.constant(0, TensorType((), tensor_of(value).element)), none, high, none)


def _squared_up(builder: Builder, matrix: Value) -> Value:
    """Pads a matrix to whole blocks, with ones on the rest of the diagonal."""
    size = number_of(_shape(matrix)[-1])
    padded = _lengthened(builder, matrix, (-2, -1))
    if padded is matrix:
        return matrix
    row, column = _places(builder, padded)
    is_new = builder.elementwise("and", builder.compare("EQ", row, column), builder.compare("GE", row, size))
    return builder.select(is_new, 1, padded)


def _masked(builder: Builder, matrix: Value, lower: bool) -> Value:
    """Keeps one triangle of a matrix; zeros elsewhere."""
    row, column = _places(builder, matrix)
    return builder.select(builder.compare("GE" if lower else "LE", row, column), matrix, 0)


def _places(builder: Builder, matrix: Value) -> tuple[Value, Value]:
    type = TensorType(_shape(matrix), I32)
    return builder.iota(type, type.rank - 2), builder.iota(type, type.rank - 1)


# -- matrices --------------------------------------------------------------------------------------------


def _transposed(builder: Builder, value: Value) -> Value:
    rank = len(_shape(value))
    return builder.transpose(value, (*range(rank - 2), rank - 1, rank - 2))


def _adjoint(builder: Builder, value: Value) -> Value:
    return builder.conjugate(_transposed(builder, value))


def _wide(builder: Builder, value: Value) -> Value:
    """Converts narrow floats to f32."""
    type = tensor_of(value)
    return builder.convert(value, F32) if type.scalar.bits < 32 else value


def _row(builder: Builder, value: Value, index: int) -> Value:
    return builder.piece(value, len(_shape(value)) - 2, index, index + 1)
