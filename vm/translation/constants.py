"""Constants as Python literals, and those that are known in a whole function."""

from __future__ import annotations

import math

from ..bytecode.decoder import Instruction
from .analysis import FunctionAnalysis
from .basic_block import Variable


def constant_text(instruction: Instruction) -> str:
    """The literal of a constant operation."""
    mnemonic = instruction.operation.mnemonic
    if mnemonic.endswith(".zero"):
        return "0.0" if ".f" in mnemonic else "0"
    value = instruction.values[0]
    if isinstance(value, float):
        if math.isnan(value):
            return "nan" if math.copysign(1.0, value) > 0 else "(-nan)"
        if math.isinf(value):
            return "inf" if value > 0 else "(-inf)"
    text = repr(value)
    return f"({text})" if text.startswith("-") else text


def single_constants(analysis: FunctionAnalysis) -> dict[Variable, str]:
    """Constants of the entry block whose slots are written nowhere else."""
    writers: dict[int, int] = {}

    def write(variable: Variable) -> None:
        kind, number = variable
        if kind != "r":
            for slot in (number, number + 1) if kind in "IF" else (number,):
                writers[slot] = writers.get(slot, 0) + 1

    for operands in analysis.operands:
        for variable in operands.writes:
            write(variable)
    for block in analysis.blocks:
        for edge in block.edges:
            for slot in edge.values:
                writers[slot] = writers.get(slot, 0) + 1
    for variable in analysis.arguments:
        write(variable)
    found: dict[Variable, str] = {}
    seen = analysis.blocks[0].live_in
    for index in range(analysis.blocks[0].start, analysis.blocks[0].end):
        instruction = analysis.instructions[index]
        mnemonic = instruction.operation.mnemonic
        if mnemonic.startswith("const.") and "ref" not in mnemonic:
            variable = analysis.operands[index].writes[0]
            kind, number = variable
            slots = (number, number + 1) if kind in "IF" else (number,)
            if all(writers[slot] == 1 for slot in slots) and not analysis.mask((variable,)) & seen:
                found[variable] = constant_text(instruction)
    return found
