"""Programs at each stage as text: reading it again gives the same program, and the same module."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compiler.stages import check_stages
from support.compiler.tensor_programs import BATCH, CHOICE, LAYER, POWERS, SIMPLE_MUL

from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text
from pumice.compiler.stages import STAGES, read_program, stage_of
from pumice.status import InvalidArgumentError

ROOT = Path(__file__).parents[2]


@pytest.mark.sample(2)
@pytest.mark.slow
@pytest.mark.parametrize("text", [SIMPLE_MUL, LAYER, POWERS, CHOICE, BATCH])
def test_each_stage_reads_the_same_and_makes_the_same_module(text: str) -> None:
    assert check_stages(text) == list(STAGES[1:])


PROGRAMS = (
    *("collatz_scalar", "elementwise_f16", "internal_calls", "jacobi", "many_results", "multi_function"),
    *("nested_loops", "newton", "scalar_math", "unused_and_identity"),
)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_control_flow_and_scalars(name: str) -> None:
    path = ROOT / "tests" / "conformance" / "programs" / f"{name}.mlir"
    assert check_stages(path.read_text(encoding="utf-8"), path.name) == list(STAGES[1:])


def test_the_stage_is_told_by_the_operations() -> None:
    for stage in STAGES[1:-1]:
        printed = compile_text(LAYER, "x.mlir", Target(), stage).program.text()
        assert stage_of(read_program(printed, "x.mlir")) == ("hlo" if stage == "canonical" else stage)


def test_a_program_past_the_last_stage_is_refused() -> None:
    regions = compile_text(SIMPLE_MUL, "x.mlir", Target(), "regions").program.text()
    with pytest.raises(
        InvalidArgumentError, match="expected a program at the stage graphdef or hlo or canonical, got one at regions"
    ):
        compile_text(regions, "x.mlir", Target(), "canonical")
