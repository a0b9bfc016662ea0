"""Factorisations of matrices as loops over whole matrices: LU, QR, singular values, eigenvalues.

A loop's body has a fixed number of operations, whatever the matrices' size. LU works by columns with partial pivoting,
QR by Householder's reflections in LAPACK's conventions. Singular values come from Hestenes's one-sided Jacobi method
with the columns in Brent and Luk's order: each round rotates disjoint pairs, so it is element-wise and works for
batches. Eigenvalues of a Hermitian matrix are the singular values of a shifted matrix without negative eigenvalues,
refined by Rayleigh's quotient. As in LAPACK, the error is a few units in the last place of the largest eigenvalue.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.builder import Builder
from ...ir.operation import Value, tensor_of
from ...ir.types import I32, TensorType
from .expression import Matrix, identity, loop
from .special_functions import limits

_MAX_SWEEPS = 24


def lu(matrix: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Returns both factors in one matrix, the row swapped at each step (from 0), and the first zero pivot.

    The pivot is counted from 1, as in LAPACK's ``info``; 0 means no zero pivot. Rows and pivots are i32.
    """
    builder = matrix.builder
    *batch, rows, columns = matrix.shape
    steps = min(rows, columns)
    pivots = Matrix(builder, builder.constant(0, TensorType((*batch, 1, steps), I32)))
    info = Matrix(builder, builder.constant(0, TensorType((*batch, 1, 1), I32)))

    def step(number: Value, values: Sequence[Matrix]) -> Sequence[Matrix]:
        a, pivots, info = values
        index = a.of(number)
        row_numbers, column_numbers = a.row_numbers(), a.column_numbers()
        column = a.column(number)
        size = abs(column.real()) + abs(column.imaginary()) if a.is_complex else abs(column)
        pivot_row = (row_numbers >= index).then(size, size.constant(-1)).place_of_largest()
        chosen = row_numbers.equals(pivot_row).then(a, a.constant(0)).sum(-2)
        a = row_numbers.equals(index).then(chosen, row_numbers.equals(pivot_row).then(a.row(number), a))
        pivot = chosen.column(number)
        is_zero = pivot.equals(0.0)
        column = a.column(number)
        factors = column / is_zero.then(pivot.constant(1), pivot)
        factors = (row_numbers > index).then(factors, factors.constant(0))
        a = a - factors * (column_numbers > index).then(chosen, chosen.constant(0))
        a = (column_numbers.equals(index) & (row_numbers > index)).then(factors, a)
        pivots = pivots.column_numbers().equals(index).then(pivot_row, pivots)
        return [a, pivots, (is_zero & info.equals(0)).then(index + 1, info)]

    a, pivots, info = loop(builder, steps, [matrix, pivots, info], step)
    return a, pivots, info


def qr(matrix: Matrix) -> tuple[Matrix, Matrix]:
    """Returns the upper factor with Householder's vectors below it, and their factors as a row: LAPACK's ``geqrf``."""
    builder = matrix.builder
    *batch, rows, columns = matrix.shape
    steps = min(rows, columns)
    factors = Matrix(builder, builder.constant(0, TensorType((*batch, 1, steps), matrix.element)))

    def step(number: Value, values: Sequence[Matrix]) -> Sequence[Matrix]:
        a, factors = values
        index = a.of(number)
        row_numbers, column_numbers = a.row_numbers(), a.column_numbers()
        column = a.column(number)
        below = (row_numbers > index).then(column, column.constant(0))
        alpha = a.row(number).column(number)
        # Scaled, so that squares neither overflow nor underflow.
        size = (abs(below) if not a.is_complex else abs(below.real()) + abs(below.imaginary())).largest(-2)
        head = abs(alpha.real()) + abs(alpha.imaginary()) if a.is_complex else abs(alpha)
        scale = (size > head).then(size, head)
        scale = scale.equals(0.0).then(scale.constant(1), scale)
        length = (below / scale.like(below)).squares().sum(-2) + (alpha / scale.like(alpha)).squares()
        length = length.call("sqrt") * scale
        keeps = size.equals(0.0)
        if a.is_complex:
            keeps = keeps & alpha.imaginary().equals(0.0)
        beta = (alpha.real() < 0.0).then(length, -length)
        safe = keeps.then(beta.constant(1), beta).like(alpha)
        factor = keeps.then(alpha.constant(0), (safe - alpha) / safe)
        divisor = keeps.then(alpha.constant(1), alpha - safe)
        vector = keeps.then(below.constant(0), below / divisor)
        vector = row_numbers.equals(index).then(vector.constant(1), vector)
        rest = (column_numbers > index).then(a, a.constant(0))
        a = a - factor.conjugate() * vector * vector.adjoint().times(rest)
        head_column = keeps.then(alpha, safe)
        replaced = row_numbers.equals(index).then(head_column, vector)
        a = (column_numbers.equals(index) & (row_numbers >= index)).then(replaced, a)
        return [a, factors.column_numbers().equals(index).then(factor, factors)]

    a, factors = loop(builder, steps, [matrix, factors], step)
    return a, factors


def reflected(vectors: Matrix, factors: Matrix, matrix: Matrix, is_adjoint: bool = False) -> Matrix:
    """Multiplies a matrix from the left by the unitary factor that ``qr`` describes, or by its adjoint.

    Args:
        vectors: Householder's vectors, as columns below the diagonal.
        factors: the factors of the vectors, as a row.
        matrix: the matrix to multiply, with the same number of rows.
        is_adjoint: whether to multiply by the adjoint.
    """
    count = factors.shape[-1]

    def step(number: Value, values: Sequence[Matrix]) -> Sequence[Matrix]:
        (c,) = values
        inner = c.builder
        number = number if is_adjoint else inner.elementwise("subtract", count - 1, number)
        index = c.of(number)
        column = vectors.at(inner).column(number)
        numbers = column.row_numbers()
        vector = numbers.equals(index).then(column.constant(1), (numbers > index).then(column, column.constant(0)))
        factor = factors.at(inner).column(number)
        factor = factor.conjugate() if is_adjoint else factor
        return [c - factor * vector * vector.adjoint().times(c)]

    (result,) = loop(matrix.builder, count, [matrix], step)
    return result


def svd(matrix: Matrix, is_full: bool) -> tuple[Matrix, Matrix, Matrix]:
    """Returns left vectors as columns, singular values as a descending row, and right vectors as columns.

    Args:
        matrix: the matrix, with no more columns than rows.
        is_full: whether to return a left vector for each row instead of each column.
    """
    builder = matrix.builder
    *batch, rows, columns = matrix.shape
    size = abs(matrix.real()) + abs(matrix.imaginary()) if matrix.is_complex else abs(matrix)
    scale = size.largest(-2, -1)
    scale = scale.equals(0.0).then(scale.constant(1), scale)
    work = _orthogonal_columns(matrix / scale.like(matrix), columns)
    lengths = work.rows(0, rows).squares().sum(-2).call("sqrt")
    order = lengths.falling_order()
    work, lengths = work.reordered(order), lengths.reordered(order)
    divisor = lengths.equals(0.0).then(lengths.constant(1), lengths)
    left, right = work.rows(0, rows) / divisor.like(work), work.rows(rows, rows + columns)
    # The vectors of values near zero are not unit vectors; the vectors of a QR factorisation are.
    packed, factors = qr(left)
    whole = identity(builder, (*batch, rows, rows if is_full else columns), matrix.element)
    unitary = reflected(packed, factors, whole)
    diagonal = packed.rows(0, columns).row_numbers().equals(packed.rows(0, columns).column_numbers())
    heads = diagonal.then(packed.rows(0, columns), packed.constant(0).rows(0, columns)).sum(-2)
    width = heads.squares().call("sqrt")
    phases = (width < 0.5).then(heads.constant(1), heads / width.like(heads))
    vectors = unitary.columns(0, columns) * phases
    if is_full and rows > columns:
        vectors = vectors.beside(unitary.columns(columns, rows))
    return vectors, lengths * scale, right


def _orthogonal_columns(matrix: Matrix, columns: int) -> Matrix:
    """Rotates a matrix until its columns are orthogonal; applies the rotations also to the rows below, an identity."""
    builder = matrix.builder
    *batch, rows, _ = matrix.shape
    work = matrix.above(identity(builder, (*batch, columns, columns), matrix.element))
    half = (columns + 1) // 2
    if columns == 1:
        return work
    if columns % 2:
        work = work.beside(Matrix(builder, builder.constant(0, TensorType((*work.shape[:-1], 1), work.element))))
    epsilon = float(limits(matrix.element.part).eps)
    tolerance = epsilon * rows**0.5

    def round_(number: Value, values: Sequence[Matrix]) -> Sequence[Matrix]:
        work, worst = values
        left, right = work.columns(0, half), work.columns(half, 2 * half)
        x, y = left.rows(0, rows), right.rows(0, rows)
        a, b = x.squares().sum(-2), y.squares().sum(-2)
        product = (x.conjugate() * y).sum(-2)
        c = product.squares().call("sqrt")
        root = a.call("sqrt") * b.call("sqrt")
        is_zero = c <= root * (epsilon * epsilon)
        safe = is_zero.then(c.constant(1), c)
        zeta = (b - a) / (safe * 2.0)
        size = abs(zeta)
        # The square would overflow; the tangent is then half the reciprocal.
        tangent = 1.0 / (size + (1.0 + (size > 1e8).then(size.constant(0), size * size)).call("sqrt"))
        tangent = (size > 1e8).then(0.5 / size, tangent)
        tangent = is_zero.then(c.constant(0), (zeta < 0.0).then(-tangent, tangent))
        cosine = 1.0 / (1.0 + tangent * tangent).call("sqrt")
        sine = cosine * tangent
        phase = is_zero.then(product.constant(1), product / safe.like(product))
        turned = phase.conjugate() * right
        cosine, sine = cosine.like(right), sine.like(right)
        left, right = cosine * left - sine * turned, sine * left + cosine * turned
        # A column that is tiny compared with another is noise in any direction.
        shortest, longest = (a < b).then(a, b), (a < b).then(b, a)
        counts = ~is_zero & (shortest > longest * (tolerance * tolerance))
        angle = counts.then(c / root, c.constant(0)).largest(*range(len(c.shape)))
        moved = left.columns(0, 1).beside(right.columns(0, 1), left.columns(1, half - 1)) if half > 1 else left
        rest = right.columns(1, half).beside(left.columns(half - 1, half)) if half > 1 else right
        return [moved.beside(rest), (worst > angle).then(worst, angle)]

    worst = TensorType((1,) * len(work.shape), matrix.element.part)
    starts = [builder.constant(0, TensorType((), I32)), work.value, builder.constant(1, worst)]
    types = [value.type for value in starts]

    def goes_on(inner: Builder, values: Sequence[Value]) -> Sequence[Value]:
        unfinished = inner.compare("GT", inner.reshape(values[2], ()), tolerance)
        return [inner.elementwise("and", inner.compare("LT", values[0], _MAX_SWEEPS), unfinished)]

    def sweep(inner: Builder, values: Sequence[Value]) -> Sequence[Value]:
        zero = Matrix(inner, inner.constant(0, worst))
        rotated = loop(inner, 2 * half - 1, [Matrix(inner, values[1]), zero], round_)
        return [inner.elementwise("add", values[0], 1), *(part.value for part in rotated)]

    regions = [builder.region(types, goes_on), builder.region(types, sweep)]
    rotated = Matrix(builder, builder.append("while", starts, types, {}, regions).results[1])
    return rotated.columns(0, columns)


def eigh(matrix: Matrix) -> tuple[Matrix, Matrix]:
    """Returns eigenvectors as columns and eigenvalues as an ascending row, of Hermitian matrices."""
    builder = matrix.builder
    *_, size, _ = matrix.shape
    sizes = matrix.squares().call("sqrt")
    shift = sizes.sum(-1).largest(-2)
    unit = identity(builder, matrix.shape, matrix.element)
    shifted = matrix + unit * shift.like(matrix)
    work = _orthogonal_columns(shifted, size)
    vectors = work.rows(size, 2 * size)
    lengths = vectors.squares().sum(-2)
    values = (vectors.conjugate() * matrix.times(vectors)).sum(-2).real() / lengths
    order = (-values).falling_order()
    vectors = vectors / lengths.call("sqrt").like(vectors)
    return vectors.reordered(order), values.reordered(order)


def scalars_of(value: Matrix) -> Value:
    """Drops the dimensions of length 1 from batches of rows, or of matrices with one element."""
    shape = [length or 0 for length in tensor_of(value.value).shape]
    return value.builder.reshape(value.value, [*shape[:-2], *shape[-1:]])


def tridiagonal_solve(builder: Builder, lower: Value, diagonal: Value, upper: Value, right: Value) -> Value:
    """Solves by elimination with partial pivoting, which may fill a second upper diagonal, and substitution.

    Args:
        builder: the builder that appends the operations.
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
