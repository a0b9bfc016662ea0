"""Random fused regions, compared with their definitions bit for bit: elements are small whole numbers."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.random_regions import RandomRegion
from support.compiler.regions import EMULATED, NATIVE, by_definition, function_of, run_region

import pumice
from pumice.compiler.ir.types import ScalarType


@pytest.mark.sample(2)
@pytest.mark.vulkan
@pytest.mark.parametrize("first", range(0, 200, 40))
def test_random_regions(first: int) -> None:
    with pumice.open_device("vulkan") as device:
        for seed in range(first, first + 40):
            region = RandomRegion(seed)
            random = np.random.default_rng(seed)
            dtype = ScalarType(region.type).dtype
            low = 0 if region.type.startswith("u") else -3
            arguments = [random.integers(low, 4, shape).astype(dtype) for shape in (region.shape, region.shape, ())]
            arguments.append(np.array(random.integers(-2, 5), np.int32))
            function = function_of(region.text)
            actual = run_region(device, function, arguments, NATIVE if seed % 2 else EMULATED)
            for left, other in zip(actual, by_definition(function, arguments), strict=True):
                assert np.array_equal(left, other, equal_nan=region.type.startswith("f")), f"{seed}:\n{region.text}"
