"""What holds for the text of every stage of a program."""

from __future__ import annotations

from pumice.compiler.codegen.target import Target
from pumice.compiler.pipeline import compile_text
from pumice.compiler.stages import Program, read_program

_BOTH = Target(kinds=("vulkan", "reference"))


def check_stages(text: str, file_name: str = "program.mlir") -> list[str]:
    """Holds that each stage's text prints the same once it is read, and makes the same module; gives the stages."""
    texts: dict[str, str] = {}

    def reached(stage: str, program: Program) -> None:
        texts[stage] = program.text()

    module = compile_text(text, file_name, _BOTH, reached=reached).module
    for stage, printed in texts.items():
        assert read_program(printed, f"{stage}.mlir").text() == printed, stage
        assert compile_text(printed, f"{stage}.mlir", _BOTH, from_=stage).module == module, stage
    return list(texts)
