"""Cholesky factorisation and triangular systems: unrolled row by row if small, else by blocks in a loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ...dialects.builder import Builder, Values
from ...ir.attributes import EnumAttr
from ...ir.operation import Operation, Value
from ...ir.sizes import number_of
from ...ir.types import F32, TensorType
from ..formulas.expression import Matrix, loop

_BLOCK: Final = 16
"""Rows that are unrolled; the block size of larger matrices."""


def triangular_solve(builder: Builder, operation: Operation) -> Values:
    """Solves a triangular system."""
    matrix, right = (_wide(Matrix(builder, value)) for value in operation.operands)
    lower, unit, left = (operation.flag(name) for name in ("lower", "unit_diagonal", "left_side"))
    mode = operation.attributes.get("transpose_a")
    case = mode.case if isinstance(mode, EnumAttr) else "NO_TRANSPOSE"
    if case == "ADJOINT":
        matrix = matrix.conjugate()
    if (case in ("TRANSPOSE", "ADJOINT")) != (not left):
        matrix, lower = matrix.transposed(), not lower
    if not left:
        right = right.transposed()
    if 0 in right.lengths:
        return [operation.operands[1]]
    solve = _solved if number_of(matrix.lengths[-1]) <= _BLOCK else _solved_by_blocks
    solution = solve(matrix, right, lower, unit)
    solution = solution if left else solution.transposed()
    return [solution.convert(operation.tensor.scalar).value]


def _solved(matrix: Matrix, right: Matrix, lower: bool, unit: bool) -> Matrix:
    """Solves row by row, each from the previous rows."""
    size = number_of(matrix.lengths[-1])
    rows: list[Matrix] = []
    for index in range(size) if lower else range(size - 1, -1, -1):
        row = right.rows(index, index + 1)
        if rows:
            known = rows[0].above(*rows[1:])
            start, stop = (0, index) if lower else (index + 1, size)
            row = row - matrix.rows(index, index + 1).columns(start, stop).times(known)
        if not unit:
            row = row / matrix.rows(index, index + 1).columns(index, index + 1)
        rows = [*rows, row] if lower else [row, *rows]
    return rows[0].above(*rows[1:])


def _solved_by_blocks(matrix: Matrix, right: Matrix, lower: bool, unit: bool) -> Matrix:
    """Solves block by block: subtracts the known part of the solution, then solves a small system."""
    size = number_of(matrix.lengths[-1])
    matrix = _squared_up(matrix)
    row, column = matrix.row_numbers(), matrix.column_numbers()
    matrix = (row >= column if lower else row <= column).then(matrix, 0)
    right = right.lengthened(-size % _BLOCK, 0)
    blocks = -(-size // _BLOCK)

    def step(number: Value, values: Sequence[Matrix]) -> Sequence[Matrix]:
        (solution,) = values
        inner = solution.builder
        number = number if lower else inner.elementwise("subtract", blocks - 1, number)
        start = inner.elementwise("multiply", number, _BLOCK)
        rows = matrix.at(inner).row(start, _BLOCK)
        rest = right.at(inner).row(start, _BLOCK) - rows.times(solution)
        block = _solved(rows.column(start, _BLOCK), rest, lower, unit)
        return [solution.of(inner.put_along(solution.value, block.value, len(solution.lengths) - 2, start))]

    (solution,) = loop(matrix.builder, blocks, [right.constant(0)], step)
    return solution.rows(0, size)


def cholesky(builder: Builder, operation: Operation) -> Values:
    """Returns the Cholesky factor; NaN if the matrix is not positive definite."""
    (value,) = operation.operands
    lower, matrix = operation.flag("lower"), _wide(Matrix(builder, value))
    if not lower:
        matrix = matrix.adjoint()
    if 0 in matrix.lengths:
        return [value]
    factor = (_factored if number_of(matrix.lengths[-1]) <= _BLOCK else _factored_by_blocks)(matrix)
    if not lower:
        factor = factor.adjoint()
    return [factor.convert(operation.tensor.scalar).value]


def _factored(matrix: Matrix) -> Matrix:
    """Computes the columns of the lower factor in order."""
    *batch, _, size = matrix.lengths
    columns: list[Matrix] = []
    for index in range(number_of(size)):
        column = matrix.rows(index, number_of(size)).columns(index, index + 1)
        if columns:
            known = columns[0].beside(*columns[1:])
            below = known.rows(index, number_of(size))
            row = known.rows(index, index + 1).conjugate()
            column = column - below.times(row.transposed())
        pivot = column.rows(0, 1)
        real = pivot.real()
        column = column / (real > 0.0).then(real, math.nan).call("sqrt").like(pivot)
        if index:
            zeros = matrix.builder.constant(0, TensorType((*batch, index, 1), matrix.element))
            column = matrix.of(zeros).above(column)
        columns.append(column)
    return columns[0].beside(*columns[1:])


def _factored_by_blocks(matrix: Matrix) -> Matrix:
    """Computes blocks of columns in order: a small factor on the diagonal, and a small system for the rows below."""
    size = number_of(matrix.lengths[-1])
    matrix = _squared_up(matrix)

    def step(number: Value, values: Sequence[Matrix]) -> Sequence[Matrix]:
        (done,) = values
        inner = done.builder
        start = inner.elementwise("multiply", number, _BLOCK)
        known = done.times(done.row(start, _BLOCK).adjoint())
        columns = matrix.at(inner).column(start, _BLOCK) - known
        factor = _factored(columns.row(start, _BLOCK))
        columns = _solved(factor, columns.adjoint(), True, False).adjoint()
        below = columns.row_numbers() - columns.column_numbers() >= columns.of(start)
        columns = below.then(columns, 0)
        return [done.of(inner.put_along(done.value, columns.value, len(done.lengths) - 1, start))]

    (done,) = loop(matrix.builder, -(-size // _BLOCK), [matrix.constant(0)], step)
    return done.rows(0, size).columns(0, size)


def _squared_up(matrix: Matrix) -> Matrix:
    """Pads a matrix to whole blocks, with ones on the rest of the diagonal."""
    size = number_of(matrix.lengths[-1])
    missing = -size % _BLOCK
    if not missing:
        return matrix
    padded = matrix.lengthened(missing, missing)
    row = padded.row_numbers()
    return (row.equals(padded.column_numbers()) & (row >= size)).then(1, padded)


def _wide(value: Matrix) -> Matrix:
    """Converts narrow floats to f32."""
    return value.convert(F32) if value.element.bits < 32 else value
