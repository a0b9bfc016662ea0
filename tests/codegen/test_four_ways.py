"""Modules give the same in each way that they can run, with and without storages of the caller.

The ways on one device give the same bits, since they run the same kernels. Vulkan and the reference device agree within
what the results' types allow. ``pytest -s`` prints a line for each program. Without a C compiler C programs are left
out, and the tests end as skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.codegen.c_programs import CANNOT_BUILD
from support.codegen.module_cases import JAX_NAMES, STORED, ModuleCase, jax_case
from support.codegen.module_ways import Results, by_c, by_hal_code, by_hal_code_of_convention, by_session
from support.devices.features import require_types

import pumice

pytestmark = [pytest.mark.vulkan, pytest.mark.slow]

_CASES = {case.name: case for case in STORED}
# Relative and absolute; what is not here is equal in every bit.
_TOLERANCES = {
    "float16": (2e-3, 2e-3),
    "bfloat16": (1e-2, 1e-2),
    "float32": (2e-5, 2e-5),
    "complex64": (2e-5, 2e-5),
    "float64": (1e-12, 1e-12),
}


@pytest.fixture
def vulkan() -> Iterator[pumice.Device]:
    with pumice.open_device() as device:
        yield device


@pytest.fixture
def reference() -> Iterator[pumice.Device]:
    with pumice.open_device("reference") as device:
        yield device


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", [*_CASES, *JAX_NAMES])
def test_every_way_gives_the_same(name: str, vulkan: pumice.Device, reference: pumice.Device, tmp_path: Path) -> None:
    if name in JAX_NAMES:
        pytest.importorskip("jax", reason="needs jax: pip install -e '.[dev]'")
    case = jax_case(name) if name in JAX_NAMES else _CASES[name]
    require_types(vulkan, case.text())
    module = pumice.compile(
        case.text().encode() if case.file_name else case.text(),
        file_name=case.file_name or name,
        targets=("vulkan", "reference"),
    )
    expected = by_session(case, module, vulkan)
    defined = by_session(case, module, reference)
    apart = max((_far_apart(*pair, case) for pair in _pairs(expected, defined)), default=0.0)
    ways = {
        "the session, out=": (by_session(case, module, vulkan, expected), expected),
        "the session on the reference device, out=": (by_session(case, module, reference, defined), defined),
    }
    for title, device, same in (
        ("HAL code", vulkan, expected),
        ("HAL code on the reference device", reference, defined),
    ):
        forms = zip(("", ", out=", ", asynchronous"), by_hal_code(case, module, device, same), strict=True)
        ways |= {f"{title}{form}": (found, same) for form, found in forms}
    if not CANNOT_BUILD:
        own, given = by_c(case, module, tmp_path, expected)
        ways |= {"the C program": (own, expected), "the C program, storages": (given, expected)}
    for way, (found, same) in ways.items():
        for one, other in _pairs(found, same):
            assert _same_bits(one, other), f"{way}: got {one}, expected {other}"
    print(f"\n{name}: {2 + len(ways)} ways agree, the reference device within {apart:.2g}", end="")
    if CANNOT_BUILD:
        pytest.skip(f"without the C program, which {CANNOT_BUILD}")


@pytest.mark.sample(4)
@pytest.mark.parametrize("convention", ["outs", "values", "buffers", "outs,values", "values,buffers"])
@pytest.mark.parametrize("name", ["newton", "layer", "doubles_and_long_integers"])
def test_every_way_honours_the_calling_convention(
    name: str, convention: str, vulkan: pumice.Device, reference: pumice.Device, tmp_path: Path
) -> None:
    case = _CASES[name]
    require_types(vulkan, case.text())
    targets = ("vulkan", "reference")
    expected = by_session(case, pumice.compile(case.text(), file_name=name, targets=targets), vulkan)
    module = pumice.compile(case.text(), file_name=name, targets=targets, calling_convention=convention)
    ways = {
        "the session": by_session(case, module, vulkan),
        "HAL code": by_hal_code_of_convention(case, module, vulkan, expected),
    }
    if not CANNOT_BUILD:
        ways["the C program"], ways["the C program, storages"] = by_c(case, module, tmp_path, expected)
    for way, found in ways.items():
        for one, other in _pairs(found, expected):
            assert _same_bits(one.astype(other.dtype), other), f"{way}: got {one}, expected {other}"
    for one, other in _pairs(by_session(case, module, reference), expected):
        _far_apart(one.astype(other.dtype), other, case)
    if CANNOT_BUILD:
        pytest.skip(f"without the C program, which {CANNOT_BUILD}")


def _pairs(one: Results, other: Results) -> list[tuple[np.ndarray, np.ndarray]]:
    assert [len(call) for call in one] == [len(call) for call in other]
    return [pair for call in zip(one, other, strict=True) for pair in zip(*call, strict=True)]


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def _far_apart(found: np.ndarray, defined: np.ndarray, case: ModuleCase) -> float:
    """The largest difference, which is held against the type's tolerance."""
    assert found.dtype == defined.dtype and found.shape == defined.shape
    if found.dtype.name not in _TOLERANCES:
        assert _same_bits(found, defined)
        return 0.0
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    one, other = found.astype(wide), defined.astype(wide)
    relative, absolute = case.tolerance or _TOLERANCES[found.dtype.name]
    np.testing.assert_allclose(one, other, relative, absolute)
    differences = np.abs(one - other)
    return float(differences[np.isfinite(differences)].max(initial=0.0))


def test_there_are_many() -> None:
    names = [*_CASES, *JAX_NAMES]
    assert len(set(names)) == len(names) >= 48
