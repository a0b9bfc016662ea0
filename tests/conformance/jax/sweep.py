"""Running a call of JAX as JAX does and as pumice does, from the StableHLO that JAX prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from conformance.jax.numpy_cases import Array, Case

import pumice

_WIDE = ("float64", "int64", "uint64", "complex128")
_TOLERANCES = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-9, "complex128": 1e-9}


def run_case(name: str, case: Case, device: pumice.Device) -> None:
    """Compares the results of a call.

    Raises:
        AssertionError: they differ.
        CompileError: the program is refused.
    """
    function, arguments = case
    with jax.enable_x64(any(np.asarray(value).dtype.name in _WIDE for value in arguments)):
        lowered = jax.jit(function).lower(*arguments)
        expected = [np.asarray(value) for value in jax.tree.leaves(lowered.compile()(*arguments))]
    compare(expected, compiled_results(lowered, arguments, name, device))


def compiled_results(lowered: Any, arguments: Sequence[Array], name: str, device: pumice.Device) -> list[Array]:
    """Returns pumice's results; drops the unused arguments that JAX drops."""
    kept = sorted(lowered._lowering.compile_args["kept_var_idx"])
    flat = jax.tree.leaves(arguments)
    module = pumice.compile(lowered.as_text(), file_name=name)
    with pumice.Session(device=device) as session:
        loaded = session.load(module)
        given = session.call(f"{loaded.name}.main", *(np.asarray(flat[index]) for index in kept), timeout=60)
        results = given if isinstance(given, tuple | list) else [given]
        return [np.asarray(value.numpy() if hasattr(value, "numpy") else value) for value in results]


def compare(expected: Sequence[Array], found: Sequence[Array]) -> None:
    """Checks arrays against JAX's: exactly, or within a tolerance of the type."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        if other.dtype.kind in "biu" or "int" in other.dtype.name:
            np.testing.assert_array_equal(one, other)
            continue
        tolerance = _TOLERANCES.get(other.dtype.name, 2e-4)
        wide = np.complex128 if other.dtype.kind == "c" else np.float64
        scale = np.max(np.abs(other.astype(wide)), initial=0.0, where=np.isfinite(other.astype(wide)))
        np.testing.assert_allclose(one.astype(wide), other.astype(wide), tolerance, tolerance / 10 * max(scale, 1.0))
