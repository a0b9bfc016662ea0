"""The strategy of a region: the cheapest, or the one that its function's attribute fixes at any stage."""

from __future__ import annotations

import pytest
from support.compiler.regions import region_of

from pumice.compiler.ir.source import CompileError
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text
from pumice.compiler.strategies.choice import STRATEGIES, candidates_of, compile_region, strategy_of
from pumice.compiler.strategies.contraction.contraction_tile import ContractionTile
from pumice.compiler.strategies.movement.elements import Elements
from pumice.compiler.strategies.rows.rows import Rows

MATMUL = """
func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
"""
EXPORTED = "iree.executable.export"
SIZE = '"LocalSize", 4, 2, 1'
TILE = (
    'iree.executable.strategy = {name = "contraction_tile", rows = 2 : i64, columns = 4 : i64, across = 4 : i64, '
    "down = 2 : i64, depth = 4 : i64, shuffled = 0 : i64}"
)

_NAMES = r"expects a strategy with one of the names contraction_tile, .*elements; got \{name"
_NUMBERS = (
    "expects the strategy contraction_tile with all its numbers, each from 0 to 65,535: "
    r"rows, columns, across, down, depth, shuffled \(0 or 1\); got"
)


def at_stage(text: str, stage: str) -> str:
    """Returns a program's text at a stage."""
    return compile_text(text, "program.mlir", Target(), stage).program.text(False)


@pytest.mark.parametrize("stage", ["hl_seq", "ll_seq"])
def test_an_attribute_fixes_the_strategy_at_any_stage(stage: str) -> None:
    text = at_stage(MATMUL, stage)
    fixed = text.replace(EXPORTED, f"{TILE}, {EXPORTED}", 1)
    assert TILE in at_stage(fixed, "ll_seq")
    assert [SIZE in at_stage(program_text, "targets") for program_text in (fixed, text)] == [True, False]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "contraction_tile",
            "contraction_tail",
            _NAMES,
        ),
        ("rows = 2 : i64, ", "", _NUMBERS),
        ("depth = 4", "depth = -4", _NUMBERS),
        ("rows = 2 : i64", "rows = true", _NUMBERS),
        ("shuffled = 0", "shuffled = 7", _NUMBERS),
        ("rows = 2", "rows = 65", r"contraction_tile rows=65 .* does not apply to the region; leave the attribute out"),
        ("across = 4", "across = 4000", "does not apply to the region"),
        (
            "depth = 4",
            "depth = 40000",
            r"expected a strategy of at most 262,144 words of code, got about [0-9,]+ of contraction_tile rows=2 .*; "
            "choose smaller numbers, or leave the attribute out",
        ),
    ],
)
def test_wrong_strategies_are_refused_with_their_place(old: str, new: str, message: str) -> None:
    text = at_stage(MATMUL, "ll_seq").replace(EXPORTED, f"{TILE}, {EXPORTED}", 1)
    with pytest.raises(CompileError, match=message) as caught:
        compile_text(text.replace(old, new, 1), "stage.mlir", Target())
    assert caught.value.message.startswith(f"stage.mlir:{caught.value.line}:") and caught.value.message.endswith("^")


def test_rows_of_much_code_are_refused() -> None:
    text = """
        func.func @main(%a: tensor<64x8192xf32>) -> tensor<64x8192xf32> {
          %low = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.reduce(%a init: %low) applies stablehlo.add across dimensions = [1]
            : (tensor<64x8192xf32>, tensor<f32>) -> tensor<64xf32>
          %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<64xf32>) -> tensor<64x8192xf32>
          %2 = stablehlo.power %1, %a : tensor<64x8192xf32>
          return %2 : tensor<64x8192xf32>
        }
    """
    region = region_of(text, Target())
    assert Rows(1, 1, 4, 1).takes(region)
    with pytest.raises(CompileError, match="expected a strategy of at most 262,144 words of code"):
        compile_region(region, Rows(1, 1, 4, 1))


def test_strategies_have_names_of_their_own() -> None:
    assert strategy_of({"name": "elements"}) == Elements()
    assert len({strategy.name() for strategy in STRATEGIES}) == len(STRATEGIES)


def test_small_regions_are_left_to_the_element_generator() -> None:
    assert candidates_of(region_of(MATMUL.replace("64x64", "16x16"), Target())) == [Elements()]
    assert isinstance(candidates_of(region_of(MATMUL, Target()))[0], ContractionTile)
