"""JAX's functions, compiled by pumice from the StableHLO that JAX prints, against JAX's own results."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.compiler.stages import check_stages
from support.soak import SOAK

import pumice
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text
from pumice.compiler.stages import Program
from pumice.tools.programs import device_kinds

jax = pytest.importorskip("jax", reason="needs jax: pip install -e '.[dev]'")
jax_functions = pytest.importorskip("conformance.jax.functions", reason="needs jax")
pytestmark = pytest.mark.vulkan


# On the reference device every fourth function, since that is slow; all of them in the long form of the tests.
NAMES = list(jax_functions.FUNCTIONS)
CASES = [(name, "vulkan") for name in NAMES] + [(name, "reference") for name in NAMES[:: 1 if SOAK else 4]]


@pytest.fixture
def opened(request: pytest.FixtureRequest) -> Iterator[pumice.Device]:
    with pumice.open_device(None if request.param == "vulkan" else request.param) as device:
        yield device


@pytest.mark.sample(24)
@pytest.mark.parametrize(("name", "opened"), CASES, indirect=["opened"])
def test_results_are_jaxs(name: str, opened: pumice.Device) -> None:
    function, arguments = jax_functions.FUNCTIONS[name]
    compiled = jax.jit(function)
    expected = [np.asarray(value) for value in jax.tree.leaves(compiled(*arguments))]
    module = pumice.compile(
        compiled.lower(*arguments).as_text(), file_name=name, targets=[device_kinds([opened.uri])[0]]
    )
    with pumice.Session(device=opened) as session:
        loaded = session.load(module)
        given = session.call(f"{loaded.name}.main", *arguments, timeout=60)
        results = given if isinstance(given, tuple | list) else [given]
        found = [np.asarray(value.numpy() if hasattr(value, "numpy") else value) for value in results]
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        if other.dtype.kind not in "fc":
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one, other, 2e-4, 2e-5)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", list(jax_functions.FUNCTIONS)[::8])
def test_every_stage_reads_the_same_and_makes_the_same_module(name: str) -> None:
    """With the places in Python's source that JAX gives."""
    function, arguments = jax_functions.FUNCTIONS[name]
    check_stages(jax.jit(function).lower(*arguments).as_text(debug_info=True), name)


def test_arenas_are_small() -> None:
    """Within a tenth of the most bytes that are alive at any step, each; with sharing, half of what they would take."""
    total = shared = 0
    for name, (function, arguments) in jax_functions.FUNCTIONS.items():
        text = jax.jit(function).lower(*arguments).as_text()
        program = compile_text(text, name, Target(), until="ll_seq").program
        assert isinstance(program, Program)
        for plan in (schedule.plan for schedule in program.schedules.values()):
            assert plan.size <= 1.1 * plan.lower_bound, name
            total, shared = total + plan.total, shared + plan.size
    assert 0 < shared < 0.7 * total
