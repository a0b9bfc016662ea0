"""Tuning on a device: strategies that are measured, stored, resumed and refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import pumice
from pumice.compiler.kernels.kernel import Kernel
from pumice.compiler.kernels.region import KernelRegion
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.kernels.strategy import Strategy
from pumice.compiler.origin import Origin
from pumice.compiler.pipeline import compile_data
from pumice.compiler.strategies.movement.elements import Elements
from pumice.status import InvalidArgumentError, PermissionDeniedError
from pumice.tuning import duel
from pumice.tuning.database import Finding, TuningDatabase
from pumice.tuning.regions import TunableRegion, tunable_regions
from pumice.tuning.tuner import tune

pytestmark = pytest.mark.vulkan

MATMUL = """
func.func @main(%a: tensor<64x48xf32>, %b: tensor<48x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<64x48xf32>, tensor<48x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.tanh %0 : tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}
"""
PROFILE = pumice.list_devices()[0]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes duels short: their outcome does not matter here."""
    monkeypatch.setattr(duel, "_MAX_ROUNDS", 6)


@pytest.fixture
def region() -> TunableRegion:
    (found,) = tunable_regions(MATMUL.encode(), "x.mlir", target_of(PROFILE), Origin())
    return replace(found, candidates=(found.candidates[0], found.candidates[1], Elements()))


class Steps:
    """Progress that interrupts before a step."""

    def __init__(self, last: int = 100) -> None:
        self.begun: list[str] = []
        self.done: list[Finding] = []
        self._last = last

    def measuring(self, region: str, strategy: str, done: int, total: int) -> None:
        """See ``tuner.Progress``."""
        if len(self.begun) == self._last:
            raise KeyboardInterrupt
        self.begun.append(strategy)

    def finished(self, region: str, finding: Finding) -> None:
        """See ``tuner.Progress``."""
        self.done.append(finding)


def test_a_file_that_cannot_be_written_is_an_error_before_anything_is_measured(
    region: TunableRegion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, steps = tmp_path / "tuning.json", Steps()
    TuningDatabase.open(PROFILE, path).store()
    path.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda *arguments, **options: False)  # the superuser may write it
    with pytest.raises(PermissionDeniedError, match=r"tuning\.json cannot be written"):
        tune([region], "vulkan", TuningDatabase.open(PROFILE, path), progress=steps)
    assert not steps.begun


def test_an_interrupted_run_goes_on(region: TunableRegion, tmp_path: Path) -> None:
    texts = [each.text() for each in region.candidates]
    path = tmp_path / "tuning.json"
    with pytest.raises(KeyboardInterrupt):
        tune([region], "vulkan", TuningDatabase.open(PROFILE, path), progress=Steps(1))
    assert TuningDatabase.open(PROFILE, path).findings[region.name].tried == tuple(texts[:2])
    steps = Steps()
    done = tune([region], "vulkan", TuningDatabase.open(PROFILE, path), progress=steps)
    assert (done.regions, done.left, done.measured, done.refused) == (1, 0, 1, ())
    assert steps.begun == texts[2:] and steps.done[0].tried == tuple(texts)
    assert steps.done[0].winner in texts
    again = tune([region], "vulkan", TuningDatabase.open(PROFILE, path), progress=Steps(0))
    assert (again.regions, again.measured) == (1, 0)


def test_what_is_much_too_slow_is_not_measured() -> None:
    text = """
func.func @main(%a: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %none) applies stablehlo.add across dimensions = [1]
    : (tensor<64x1024xf32>, tensor<f32>) -> tensor<64xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<64xf32>) -> tensor<64x1024xf32>
  %2 = stablehlo.divide %a, %1 : tensor<64x1024xf32>
  return %2 : tensor<64x1024xf32>
}
"""
    found = tunable_regions(text.encode(), "x.mlir", target_of(PROFILE), Origin())
    assert not any(isinstance(each, Elements) for region in found for each in region.candidates)


def test_no_time_is_nothing_measured(region: TunableRegion, tmp_path: Path) -> None:
    done = tune([region], "vulkan", TuningDatabase.open(PROFILE, tmp_path / "x.json"), seconds=0.0)
    assert (done.regions, done.left, done.measured) == (0, 1, 0)
    assert not (tmp_path / "x.json").exists()


def test_kernels_that_load_more_than_words_are_measured(tmp_path: Path) -> None:
    text = """
func.func @main(%a: tensor<512x512xf32>) -> tensor<512xf32> {
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %none) applies stablehlo.add across dimensions = [1]
    : (tensor<512x512xf32>, tensor<f32>) -> tensor<512xf32>
  return %0 : tensor<512xf32>
}
"""
    (found,) = tunable_regions(text.encode(), "x.mlir", target_of(PROFILE), Origin())
    few = replace(found, candidates=(*found.candidates[:2], Elements()))
    done = tune([few], "vulkan", TuningDatabase.open(PROFILE, tmp_path / "x.json"))
    assert (done.regions, done.measured, done.refused) == (1, 2, ())


@dataclass(frozen=True, slots=True)
class OtherResult(Strategy):
    """Computes the region without its last operation but one."""

    NAME: ClassVar[str] = "other_result"

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, Strategy]]:
        return iter(())

    def takes(self, region: KernelRegion) -> bool:
        return True

    def emit(self, region: KernelRegion) -> Kernel:
        text = MATMUL.replace("tanh", "negate")
        (other,) = tunable_regions(text.encode(), "x.mlir", region.target, Origin())
        return Elements().emit(other.region)


def test_a_strategy_that_computes_something_else_is_refused(region: TunableRegion, tmp_path: Path) -> None:
    wrong = replace(region, candidates=(region.candidates[0], OtherResult()))
    database = TuningDatabase.open(PROFILE, tmp_path / "x.json")
    done = tune([wrong], "vulkan", database)
    assert len(done.refused) == 1 and done.refused[0].startswith("other_result: not the results of")
    assert database.findings[region.name].winner == region.candidates[0].text()


def test_the_compiler_takes_what_was_found(region: TunableRegion) -> None:
    best, other, last = region.candidates

    def compiled(text: str) -> bytes:
        target = replace(region.region.target, tuned=((region.name, text),))
        return compile_data(MATMUL.encode(), "x.mlir", target).module

    assert len({compiled(each.text()) for each in (best, other, last)}) == 3
    # A strategy that is unknown, or does not take this region, is skipped.
    for text in ("gone rows=4", "contraction_tile rows=4", "contraction_tile rows=x", "", " "):
        assert compiled(text) == compiled(best.text())
    assert compiled("contraction_tile rows=4096 columns=4 across=8 down=8") == compiled(best.text())


def test_what_adds_in_the_same_order_gives_the_same_bits(region: TunableRegion) -> None:
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(shape, np.float32) for shape in ((64, 48), (48, 64))]
    found = []
    with pumice.open_device("vulkan") as device:
        for each in region.candidates:
            target = replace(region.region.target, tuned=((region.name, each.text()),))
            with pumice.Session(device) as session:
                session.load(compile_data(MATMUL.encode(), "x.mlir", target).module)
                found.append(session.call("module.main", *arguments).numpy().tobytes())
    assert len(set(found)) == 1


def test_jit_tunes_what_it_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax", reason="needs jax: pip install 'pumice[jax]'")
    monkeypatch.setenv("PUMICE_CACHE", "1")
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(tmp_path))
    values = np.random.default_rng(0).standard_normal((48, 64), np.float32)
    with pumice.open_device("vulkan") as device:
        function = pumice.jit(lambda a, b: a @ b, device=device, tune=30.0)
        np.testing.assert_allclose(function(values.T, values).numpy(), values.T @ values, rtol=1e-4, atol=1e-4)
        function.clear_cache()
    assert len(TuningDatabase.open(PROFILE).findings) == 1
    for wrong in ("yes", -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidArgumentError, match="tune is"):
            pumice.jit(lambda x: x, tune=wrong)
