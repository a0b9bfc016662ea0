"""Tensor programs as text, evaluated on the host by the definitions of the reference device."""

from __future__ import annotations

from pumice.compiler.analysis.reference_program import ProgramWriter
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text
from pumice.hal_reference.operations import evaluate
from pumice.hal_reference.program import Array


def evaluated(text: str, *arguments: Array, name: str = "main") -> list[Array]:
    """Evaluates a function of a program in its canonical form.

    Raises:
        CompileError: the program is refused.
    """
    functions = compile_text(text, "x.mlir", Target(), until="canonical").program.functions
    return evaluate(ProgramWriter(functions).function(name), arguments)


def program(line: str, result: str, *arguments: str) -> str:
    """A program of one operation, whose operands are ``%a0``, ``%a1``, …"""
    taken = ", ".join(f"%a{index}: {type}" for index, type in enumerate(arguments))
    return f"func.func @main({taken}) -> {result} {{\n  %0 = {line}\n  return %0 : {result}\n}}"
