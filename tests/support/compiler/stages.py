"""Checks of the text of every stage of a program."""

from __future__ import annotations

from pumice.compiler.abi.calling_convention import CallingConvention
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text
from pumice.compiler.stages import GraphFile, ModuleFile, Program

_BOTH = Target(kinds=("vulkan", "reference"))


def check_stages(text: str, file_name: str = "program.mlir", convention: CallingConvention | None = None) -> list[str]:
    """Checks that each stage's text prints the same once it is read, and makes the same module; returns the stages."""
    texts: dict[str, str] = {}

    def reached(stage: str, program: Program | GraphFile | ModuleFile) -> None:
        texts[stage] = program.text()

    module = compile_text(text, file_name, _BOTH, reached=reached, convention=convention).module
    for stage, printed in texts.items():
        assert compile_text(printed, stage, _BOTH, stage, stage).program.text() == printed, stage
        told = stage if stage == "canonical" else None
        assert compile_text(printed, stage, _BOTH, from_=told).module == module, stage
    return list(texts)
