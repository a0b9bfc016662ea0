"""Kernels of regions: fusion, shapes, workgroups, several results."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.regions import by_definition, function_of, run_region

import pumice

pytestmark = pytest.mark.vulkan


@pytest.fixture
def gpu() -> Iterator[pumice.Device]:
    with pumice.open_device("lavapipe") as device:
        yield device


def test_a_chain_of_operations_is_one_expression(gpu: pumice.Device) -> None:
    function = function_of("""
        func.func @main(%a: tensor<5x7xf32>, %b: tensor<7xf32>) -> tensor<7x5xf32> {
          %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<7xf32>) -> tensor<5x7xf32>
          %1 = stablehlo.add %a, %0 : tensor<5x7xf32>
          %2 = stablehlo.exponential %1 : tensor<5x7xf32>
          %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<5x7xf32>) -> tensor<7x5xf32>
          %4 = stablehlo.multiply %3, %3 : tensor<7x5xf32>
          return %4 : tensor<7x5xf32>
        }
    """)
    random = np.random.default_rng(0)
    arguments = [random.standard_normal(shape).astype(np.float32) for shape in ((5, 7), (7,))]
    (found,), (expected,) = run_region(gpu, function, arguments), by_definition(function, arguments)
    np.testing.assert_allclose(found, expected, 1e-6)
