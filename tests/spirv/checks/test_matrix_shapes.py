"""Cooperative matrix products of modules, and devices that do not offer them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.profiles import recorded_profile

from pumice.hal_vulkan.instance.profile import CooperativeMatrix
from pumice.hal_vulkan.pipelines.pipeline_interface import check_matrices
from pumice.spirv.binary.builder import Builder
from pumice.spirv.binary.declarations import F16, F32, S8, Kind
from pumice.spirv.binary.matrices import matrix, multiplied, zeros
from pumice.spirv.checks.matrix_shapes import MatrixProduct, matrix_products
from pumice.status import UnimplementedError

S32 = Kind("s", 32)


def product(element: Kind, total: Kind, m: int, n: int, k: int) -> bytes:
    builder = Builder()
    a, b = matrix(builder, element, m, k, 0), matrix(builder, element, k, n, 1)
    multiplied(zeros(builder, a), zeros(builder, b), zeros(builder, matrix(builder, total, m, n, 2)))
    return builder.finish("main", (32, 1, 1))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (product(F16, F32, 16, 8, 4), MatrixProduct(16, 8, 4, "f16", "f16", "f32", "f32")),
        (product(S8, S32, 8, 16, 32), MatrixProduct(8, 16, 32, "s8", "s8", "s32", "s32")),
    ],
)
def test_shapes_and_types(code: bytes, expected: MatrixProduct) -> None:
    assert matrix_products(code) == {expected}
    offered = CooperativeMatrix(*expected)
    profile = replace(recorded_profile("nvidia_rtx_4060"), cooperative_matrices=(offered,))
    check_matrices(profile, code)
    for other in (replace(offered, k=64), replace(offered, result_type="f64")):
        with pytest.raises(UnimplementedError, match=f"{expected.m} x {expected.k} and {expected.k} x {expected.n}"):
            check_matrices(replace(profile, cooperative_matrices=(other,)), code)


def test_other_modules_multiply_none() -> None:
    assert matrix_products(Builder().finish("main", (1, 1, 1))) == frozenset()
