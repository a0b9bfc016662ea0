"""Systems with a tridiagonal matrix."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.builder import Builder
from ...ir.operation import Value, tensor_of
from .matrix import Matrix, loop


def tridiagonal_solve(builder: Builder, lower: Value, diagonal: Value, upper: Value, right: Value) -> Value:
    """Solves by elimination with partial pivoting, which may fill a second upper diagonal, and substitution.

    Args:
        builder: appends the operations.
        lower: the lower diagonal: an element for each row, the first unused.
        diagonal: the diagonal.
        upper: the upper diagonal: an element for each row, the last unused.
        right: the right sides, as columns.
    """
    b = Matrix(builder, right)
    size = b.shape[-2]
    d = _column(builder, diagonal)
    zero, rows = d.constant(0), b.row_numbers()
    dl = _column(builder, lower).rows(1, size).above(zero.rows(0, 1))
    du = rows.equals(size - 1).then(zero, _column(builder, upper))

    def eliminate(number: Value, values: Sequence[Matrix]) -> Sequence[Matrix]:
        d, du, du2, b = values
        after = d.builder.elementwise("add", number, 1)
        below = dl.at(d.builder).row(number)
        next_x, upper_one, right_one = d.row(number), du.row(number), b.row(number)
        other, upper_other, right_other = d.row(after), du.row(after), b.row(after)
        swaps = _size(below) > _size(next_x)
        pivot = swaps.then(below, next_x)
        safe = pivot.equals(0.0).then(pivot.constant(1), pivot)
        factor = swaps.then(next_x, below) / safe
        first = [pivot, swaps.then(other, upper_one), swaps.then(upper_other, upper_other.constant(0))]
        first.append(swaps.then(right_other, right_one))
        second = [
            swaps.then(upper_one, other) - factor * first[1],
            swaps.then(upper_other.constant(0), upper_other) - factor * first[2],
            du2.row(after),
            swaps.then(right_one, right_other) - factor * first[3],
        ]
        numbers = rows.at(d.builder)
        here, there = numbers.equals(d.of(number)), numbers.equals(d.of(after))
        return [
            here.then(mine, there.then(next_, value)) for value, mine, next_ in zip(values, first, second, strict=True)
        ]

    d, du, du2, b = loop(builder, size - 1, [d, du, zero, b], eliminate)
    none = b.rows(0, 1).constant(0)
    x = b.constant(0).above(none, none)

    def substitute(number: Value, values: Sequence[Matrix]) -> Sequence[Matrix]:
        (x,) = values
        inner = x.builder
        index = inner.elementwise("subtract", size - 1, number)
        next_x, after_next = (x.row(inner.elementwise("add", index, step)) for step in (1, 2))
        row = [value.at(inner).row(index) for value in (d, du, du2, b)]
        solution = (row[3] - row[1] * next_x - row[2] * after_next) / row[0]
        return [x.row_numbers().equals(x.of(index)).then(solution, x)]

    (x,) = loop(builder, size, [x], substitute)
    return x.rows(0, size).value


def _column(builder: Builder, value: Value) -> Matrix:
    shape = [length or 0 for length in tensor_of(value).shape]
    return Matrix(builder, builder.reshape(value, [*shape, 1]))


def _size(value: Matrix) -> Matrix:
    return abs(value.real()) + abs(value.imaginary()) if value.is_complex else abs(value)
