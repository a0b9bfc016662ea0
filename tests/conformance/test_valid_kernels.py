"""Kernels of all recorded devices by every strategy, repaired and instrumented, under a spirv-val that the user names.

Without ``PUMICE_NEW_SPIRV_VAL`` all skip. The programs are those of this folder, and those of StableHLO's tree where
``PUMICE_STABLEHLO_TREE`` names it: all of them for targets of no device in particular, and for each recorded device
one in five, other ones for the next. ``PUMICE_SOAK=1`` takes all for each.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance.stablehlo import tree as stablehlo_tree
from conformance.valid_kernels import VARIABLE, EveryStrategy, Validator
from support.compiler.regions import EMULATED, NATIVE, region_of
from support.compiler.strategy_regions import REGIONS
from support.profiles import recorded_profiles
from support.soak import SOAK
from support.source_trees import named_tree, opened_tree

from pumice import shaders
from pumice.compiler.ir.source import CompileError
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.pipeline import compile_program, compile_text
from pumice.compiler.stages import Program
from pumice.compiler.targets import vulkan

pytestmark = pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no executable of spirv-val")

_PART = 5
TARGETS = {
    "emulated": EMULATED,
    "native": NATIVE,
    **{name: target_of(profile) for name, profile in recorded_profiles().items()},
}


@pytest.fixture(scope="module")
def tree() -> Iterator[Path | None]:
    named = named_tree("PUMICE_STABLEHLO_TREE")
    if named is None:
        yield None
        return
    with opened_tree(named, (stablehlo_tree.DATA_FOLDER, stablehlo_tree.INTERPRET_FOLDER)) as folder:
        yield folder


@pytest.fixture(scope="module")
def known() -> set[bytes]:
    """Digests of the modules that were checked: many are the same for several devices."""
    return set()


@pytest.fixture
def validator(known: set[bytes]) -> Iterator[Validator]:
    """Checks what a test gives it."""
    with Validator(os.environ[VARIABLE], known) as validator:
        yield validator
    print(f"\n{sum(validator.counts.values())} modules, {len(validator.wrong)} invalid: {dict(validator.counts)}")
    assert not validator.wrong, "\n".join(validator.wrong[:20])


def _stablehlo_programs(tree: Path, chosen: slice) -> Iterator[Program]:
    """Yields the programs of fixed shapes whose operations are known, of a part of all files."""
    folders = stablehlo_tree.DATA_FOLDER, stablehlo_tree.INTERPRET_FOLDER
    files = [
        path for folder in folders for path in stablehlo_tree.sources(tree, folder) if path.parent.name != "dynamic"
    ]
    for path in files[chosen]:
        try:
            programs = list(stablehlo_tree.programs(path.read_text(encoding="utf-8"), path.name))
        except CompileError:
            continue
        for _, functions, entries in programs:
            for name in entries:
                with contextlib.suppress(CompileError, KeyError, ValueError):  # the definitions refuse some
                    yield stablehlo_tree.Case(functions, entries, name, lifts_constants=True).program()


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", TARGETS)
def test_kernels_of_all_strategies(
    name: str, tree: Path | None, validator: Validator, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = TARGETS[name]
    compiler = EveryStrategy(validator)
    monkeypatch.setattr(vulkan, "compile_region", compiler)
    compiled = refused = 0
    for path in sorted((Path(__file__).parent / "programs").glob("*.mlir")):
        try:
            compile_text(path.read_text(encoding="utf-8"), path.name, target, until="targets")
            compiled += 1
        except CompileError:
            refused += 1
    number = list(TARGETS).index(name)
    chosen = slice(None) if SOAK or number < 2 else slice(number % _PART, None, _PART)
    for program in _stablehlo_programs(tree, chosen) if tree is not None else ():
        try:
            compile_program(program, "hlo", target, "targets", None)
            compiled += 1
        except CompileError:
            refused += 1
    print(f"\n{name}: {compiled} programs compiled, {refused} refused; by strategy: {dict(compiler.strategies)}")
    assert compiled >= 40


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", TARGETS)
def test_kernels_of_strategies_with_all_numbers(name: str, validator: Validator) -> None:
    compiler = EveryStrategy(validator, all_numbers=True)
    for text in REGIONS.values():
        compiler(region_of(text, TARGETS[name]))
    print(f"\n{name}: by strategy: {dict(compiler.strategies)}")
    assert len(compiler.strategies) >= 5


def test_shaders_that_come_with_the_package(validator: Validator) -> None:
    for name in shaders.names():
        validator.add_variants(shaders.spirv(name), name)
