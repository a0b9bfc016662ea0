"""IREE's own end-to-end tests, read from the tree that ``PUMICE_IREE_TREE`` names; skipped without one.

The last test prints how many checks passed in each folder. ``PUMICE_SOAK=1`` adds what a CPU takes minutes for.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest
from conformance.iree.e2e_harness import compile_source, run_source
from conformance.iree.e2e_tree import (
    LIT_TESTS,
    SLOW_ON_CPU,
    E2ESource,
    e2e_sources,
    expected_failure,
    named_tree,
    opened_tree,
    with_current_syntax,
)
from support.iree_releases import available_compilers
from support.soak import SOAK

import pumice
from pumice.runtime.modules.check.report import Outcome

pytestmark = pytest.mark.peer

NO_TREE = "PUMICE_IREE_TREE names no tree of IREE: a checkout or a git directory"
NO_COMPILER = "no iree-compile: install the peer extra, or set PUMICE_IREE_COMPILERS"


@functools.cache
def sources() -> Mapping[str, E2ESource]:
    """Every source that compiles for Vulkan, by name; none without a tree or a compiler."""
    tree = named_tree()
    if tree is None or not available_compilers():
        return {}
    with opened_tree(tree) as root:
        return {source.name: source for source in e2e_sources(root) if source.reason_not_compiled is None}


def _names() -> list[object]:
    if not sources():
        reason = NO_TREE if named_tree() is None else NO_COMPILER
        return [pytest.param("", marks=pytest.mark.skip(reason=reason))]
    return [name for name in sources() if name not in LIT_TESTS and (SOAK or name not in SLOW_ON_CPU)]


PASSED: Counter[str] = Counter()
TOTAL: Counter[str] = Counter()


@pytest.mark.vulkan
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", _names())
def test_every_check_of_the_tree_holds(name: str) -> None:
    compiled = compile_source(sources()[name], available_compilers()[0])
    # Functions with arguments are no checks.
    results = [result for result in run_source(compiled) if result.outcome is not Outcome.SKIPPED]
    failed = [result for result in results if result.outcome is not Outcome.PASSED]
    TOTAL[compiled.source.folder] += len(results)
    PASSED[compiled.source.folder] += len(results) - len(failed)
    assert not [f"{one.name}: {one.summary}" for one in failed if expected_failure(name, one.name) is None]


@pytest.mark.vulkan
@pytest.mark.skipif(not sources(), reason=NO_TREE)
@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("parameters/encode_parameters.mlir", None, np.full(256, 42, np.int32)),
        ("parameters/export_parameters.mlir", np.ones((1, 2), np.float32), np.float32([[182, 204]])),
        ("parameters/generate_splat_archive.mlir", np.ones((1, 2), np.int32), np.int32([[0, 0]])),
    ],
)
def test_programs_with_parameters(name: str, argument: np.ndarray | None, expected: np.ndarray) -> None:
    compiled = compile_source(sources()[name], available_compilers()[0])
    assert compiled.error is None
    parameters = {
        "model": {"param_global": np.zeros(256, np.int32)},
        "scope": {f"global_{i}": np.zeros((1 + i % 2, 2), np.int32) for i in range(4)},
    }
    options = pumice.SessionOptions(parameters=parameters)
    with pumice.open_device() as device, pumice.Session(device, options=options) as session:
        session.load(compiled.paths[0])
        result = session.call("module.main", *(() if argument is None else (argument,)))
        assert np.array_equal(np.asarray(result), expected)


@pytest.mark.skipif(not sources(), reason=NO_TREE)
def test_the_tree_has_what_it_had() -> None:
    print(*(f"\n{folder:20} {PASSED[folder]:5} of {total:5}" for folder, total in sorted(TOTAL.items())))
    assert len(sources()) >= 190
    assert sum(source.calls is not None for source in sources().values()) == 13


@pytest.mark.parametrize(
    ("text", "current"),
    [
        (
            "%r = tosa.clamp %0 {min_val = 1.0 : f32, max_val = 4.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>",
            '%r = "tosa.clamp"(%0) <{min_val = 1.0 : f32, max_val = 4.0 : f32}> : (tensor<4xf32>) -> tensor<4xf32>',
        ),
        (
            "%r = tosa.arithmetic_right_shift %0, %1 {round = 0 : i1} : (tensor<i32>, tensor<i32>) -> tensor<i32>",
            '%r = "tosa.arithmetic_right_shift"(%0, %1) <{round = false}> : (tensor<i32>, tensor<i32>) -> tensor<i32>',
        ),
        (
            "%r = linalg.add ins(%a, %b : t, t) outs(%c : t) -> t",
            "%r = linalg.elementwise <add> ins(%a, %b : t, t) outs(%c : t) -> t",
        ),
        ("%r = linalg.matmul ins(%a, %b : t, t)", "%r = linalg.matmul ins(%a, %b : t, t)"),
        ("%r = tosa.add %0, %1 : (t, t) -> t", "%r = tosa.add %0, %1 : (t, t) -> t"),
    ],
)
def test_old_spellings_are_rewritten(text: str, current: str) -> None:
    assert with_current_syntax(text) == current
