"""Factorisations by the definitions of the reference device, against NumPy and LAPACK by the
properties of the factors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from pumice.compiler.analysis.reference_program import ProgramWriter
from pumice.compiler.dialects.builder import Builder
from pumice.compiler.ir.operation import Block, Operation, tensor_of
from pumice.compiler.ir.types import ScalarType, TensorType
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.passes.canonical.canonicalize import canonicalize
from pumice.compiler.passes.decomposition.decompose import decompose
from pumice.compiler.passes.formulas.expression import Matrix, identity
from pumice.compiler.passes.formulas.matrix_factors import eigh, lu, qr, reflected, svd, tridiagonal_solve
from pumice.hal_reference.operations import evaluate
from pumice.hal_reference.program import Array

ELEMENTS = {"float32": "f32", "float64": "f64", "complex64": "complex<f32>", "complex128": "complex<f64>"}
DTYPES = list(ELEMENTS)


def run(function: Callable[[Builder, Sequence[Matrix]], Sequence[Matrix]], *operands: Array) -> list[Array]:
    types = [TensorType(value.shape, ScalarType(ELEMENTS[value.dtype.name])) for value in operands]
    block = Block(types)
    builder = Builder(block)
    found = function(builder, [Matrix(builder, value) for value in block.arguments])
    block.append(Operation("func.return", [each.value for each in found]))
    canonicalize(block)
    decompose(block, Target())
    for each in found:
        assert tensor_of(each.value).is_static
    return evaluate(ProgramWriter({}).block(block), operands)


def matrices(dtype: str, *shape: int) -> Array:
    rng = np.random.default_rng(sum(shape))
    found = rng.normal(size=shape)
    return np.asarray(found + 1j * rng.normal(size=shape) if dtype.startswith("c") else found).astype(dtype)


def close(found: Array, expected: Array, scale: float = 1.0) -> None:
    epsilon = float(np.finfo(found.dtype).eps)
    np.testing.assert_allclose(found, expected, 100 * epsilon, 200 * epsilon * scale)


def adjoint(matrix: Array) -> Array:
    return matrix.swapaxes(-1, -2).conj()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 5), (6, 3), (1, 1)])
def test_lu_is_the_matrix_with_its_rows_swapped(dtype: str, shape: tuple[int, ...]) -> None:
    given = matrices(dtype, *shape)
    packed, pivots, info = run(lambda builder, values: lu(values[0]), given)
    steps = min(shape[-2:])
    lower = np.tril(packed, -1)[..., :, :steps] + np.eye(shape[-2], steps)
    swapped = given.copy().reshape(-1, *shape[-2:])
    for matrix, row in zip(swapped, pivots.reshape(-1, steps), strict=True):
        for index, other in enumerate(row):
            assert other >= index
            matrix[[index, other]] = matrix[[other, index]]
    close((lower @ np.triu(packed)[..., :steps, :]).astype(dtype), swapped.reshape(shape), 5)
    assert not info.any()


def test_lu_tells_the_first_zero_pivot() -> None:
    given = np.array([[1, 2, 3], [2, 4, 6], [0, 1, 1]], np.float32)
    packed, _, info = run(lambda builder, values: lu(values[0]), given)
    assert info.item() == 3 and packed[2, 2] == 0 and np.isfinite(packed).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5), (1, 1)])
def test_qr_is_unitary_and_upper(dtype: str, shape: tuple[int, ...]) -> None:
    given = matrices(dtype, *shape) * np.array(1e3, dtype)
    given[..., 0] *= 1e-6

    def both(builder: Builder, values: Sequence[Matrix]) -> Sequence[Matrix]:
        packed, factors = qr(values[0])
        unit = identity(builder, (*shape[:-1], shape[-2]), packed.element)
        whole = reflected(packed, factors, unit)
        return [packed, whole, reflected(packed, factors, values[0], is_adjoint=True)]

    packed, unitary, upper = run(both, given)
    close(unitary @ adjoint(unitary), np.broadcast_to(np.eye(shape[-2]), unitary.shape))
    close(unitary @ np.triu(packed), given, 1e4)
    close(upper, np.triu(packed), 1e4)
    assert not np.diagonal(packed, axis1=-2, axis2=-1).imag.any() or shape[-2] <= shape[-1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "is_full"), [((5, 3), True), ((5, 3), False), ((2, 6, 4), False), ((3, 1), True)])
def test_singular_vectors_and_values(dtype: str, shape: tuple[int, ...], is_full: bool) -> None:
    given = matrices(dtype, *shape) * np.array(1e12, dtype)
    left, values, right = run(lambda builder, operands: svd(operands[0], is_full), given)
    size = shape[-1]
    close(adjoint(left) @ left, np.broadcast_to(np.eye(left.shape[-1]), (*shape[:-2], *left.shape[-1:] * 2)))
    close(adjoint(right) @ right, np.broadcast_to(np.eye(size), right.shape))
    close((left[..., :size] * values) @ adjoint(right), given, 1e13)
    close(values[..., 0, :], np.linalg.svd(given, compute_uv=False), 1e13)


@pytest.mark.parametrize("is_full", [True, False])
def test_vectors_of_values_that_are_zero_are_orthogonal_too(is_full: bool) -> None:
    given = np.outer(np.arange(1, 7), [1, 2, 3, 4]).astype(np.float32)
    left, values, right = run(lambda builder, operands: svd(operands[0], is_full), given)
    close(adjoint(left) @ left, np.eye(left.shape[-1], dtype=np.float32))
    close((left[:, :4] * values) @ adjoint(right), given, 100)
    assert values[0, 0] > 50 and (values[0, 1:] < 1e-4).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 5), (1, 1), (2, 2)])
def test_eigenvectors_and_values_of_hermitian_matrices(dtype: str, shape: tuple[int, ...]) -> None:
    given = matrices(dtype, *shape)
    given = given + adjoint(given)
    vectors, values = run(lambda builder, operands: eigh(operands[0]), given)
    close(values[..., 0, :], np.linalg.eigvalsh(given), 10)
    close(given @ vectors, vectors * values, 10)
    close(adjoint(vectors) @ vectors, np.broadcast_to(np.eye(shape[-1]), shape))


def test_eigenvalues_of_both_signs_and_more_than_once() -> None:
    given = np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 2, 0], [0, 0, 0, 2]], np.float32)
    vectors, values = run(lambda builder, operands: eigh(operands[0]), given)
    close(values[0], np.array([-1, 1, 2, 2], np.float32))
    close(given @ vectors, vectors * values)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5,), (2, 4), (1,)])
def test_tridiagonal_systems_with_zeros_on_the_diagonal(dtype: str, shape: tuple[int, ...]) -> None:
    lower, diagonal, upper = matrices(dtype, 3, *shape)
    size = shape[-1]
    if size > 1:
        diagonal[..., 0] = 0
    right = matrices(dtype, *shape, 2)
    full = np.zeros((*shape, size), dtype)
    for index in range(size):
        full[..., index, index] = diagonal[..., index]
        if index:
            full[..., index, index - 1] = lower[..., index]
            full[..., index - 1, index] = upper[..., index - 1]

    def solve(builder: Builder, operands: Sequence[Matrix]) -> Sequence[Matrix]:
        return [Matrix(builder, tridiagonal_solve(builder, *(operand.value for operand in operands)))]

    (found,) = run(solve, lower, diagonal, upper, right)
    close(full @ found, right, 20)
