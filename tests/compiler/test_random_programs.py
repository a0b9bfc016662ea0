"""Random programs give the same by the definitions in NumPy, on the reference device and on Vulkan.

``support/compiler/tensor_strategies.py`` bounds the difference for each program, in units of its types' rounding.
Results without error in their bound must be equal bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from support.compiler.regions import by_definition, function_of
from support.compiler.tensor_strategies import Program, programs
from support.soak import SOAK, rounds

import pumice

pytestmark = [pytest.mark.vulkan, pytest.mark.slow]
Array = npt.NDArray[Any]


@pytest.fixture
def opened() -> Iterator[pumice.Device]:
    with pumice.open_device("lavapipe") as device:
        yield device


def called(module: bytes, device: object, arguments: Sequence[Array]) -> list[Array]:
    """Runs a module's ``main`` on a device."""
    with pumice.Session(device=device) as session:  # type: ignore[arg-type]
        given_back = session.call(f"{session.load(module).name}.main", *arguments, timeout=60)
        results = given_back if isinstance(given_back, tuple | list) else [given_back]
        return [np.asarray(each.numpy() if hasattr(each, "numpy") else each) for each in results]


@settings(
    max_examples=rounds(40, 5000),
    derandomize=not SOAK,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(program=programs())
def test_three_ways_agree(opened: pumice.Device, program: Program) -> None:
    with np.errstate(all="ignore"):
        expected = by_definition(function_of(program.text), program.arguments)
    module = pumice.compile(program.text, targets=("vulkan", "reference"))
    for device in ("reference", opened):
        found = called(module, device, program.arguments)
        for one, other, error in zip(found, expected, program.errors, strict=True):
            assert one.shape == other.shape
            if not error:
                np.testing.assert_array_equal(one, other.astype(one.dtype))
            else:
                assert np.all(np.abs(one.astype(np.float64) - other.astype(np.float64)) <= 2 * error)
