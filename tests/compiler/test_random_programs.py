"""Random programs give the same by the definitions in NumPy, on the reference device and on Vulkan.

``support/compiler/tensor_strategies.py`` bounds the difference for each program, in units of its types' rounding.
Results without error in their bound must be equal bit by bit.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from support.compiler.modules import load_main
from support.compiler.regions import by_definition, function_of
from support.compiler.tensor_strategies import Program, programs
from support.devices.features import computes
from support.soak import SOAK, rounds

import pumice

pytestmark = [pytest.mark.vulkan, pytest.mark.slow]


@settings(
    max_examples=rounds(40, 5000),
    derandomize=not SOAK,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(program=programs())
def test_three_ways_agree(gpu: pumice.Device, program: Program) -> None:
    assume(computes(gpu, program.text))
    with np.errstate(all="ignore"):
        expected = by_definition(function_of(program.text), program.arguments)
    module = pumice.compile(program.text, targets=("vulkan", "reference"))
    for device in ("reference", gpu):
        with pumice.Session(device=device) as session:
            found = load_main(session, module)(*program.arguments)
        for one, other, error in zip(found, expected, program.errors, strict=True):
            assert one.shape == other.shape
            if not error:
                np.testing.assert_array_equal(one, other.astype(one.dtype))
            else:
                assert np.all(np.abs(one.astype(np.float64) - other.astype(np.float64)) <= 2 * error)
