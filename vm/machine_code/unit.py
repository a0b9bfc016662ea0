"""A unit of machine code: a function and all its callees, compiled together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, cast

from ..bytecode.decoder import Instruction, field_value
from ..bytecode.isa import IMPORT_BIT, FieldKind
from ..bytecode.verifier import VerifiedModule
from ..translation.analysis import FunctionAnalysis
from ..translation.flow import Warmth
from ..translation.module_analysis import ModuleAnalysis
from .function_writer import FunctionWriter, Unit
from .layout import MAX_BYTES, MAX_INSTRUCTIONS, MAX_TYPES, Layout, Loops, callee_of, is_known
from .llvm import Compiler, MachineCode
from .operations import SUPPORT

_DECLARED: Final = re.compile(r"call (\S+) (@(?:llvm\.|pumice_)[\w.]+)\(([^)]*)\)")
_STACK: Final = re.compile(r"STACK_(\d+)")


class UnitModule:
    """The machine code of one module's functions; each unit is compiled on first use.

    A function is *closed* if machine code supports every instruction of it and of all its callees. Only closed
    functions are called; other functions exit machine code at an unsupported instruction.

    Thread rule: the caller holds the module's translation lock.
    """

    def __init__(self, verified: VerifiedModule, analysis: ModuleAnalysis) -> None:
        self._verified = verified
        self._analysis = analysis
        self._layouts: dict[int, Layout] = {}
        self._closures: dict[int, frozenset[int] | None] = {}
        self._compiled: dict[int, MachineCode | None] = {}

    # -- what can be machine code --------------------------------------------------------------------

    def closure(self, ordinal: int) -> frozenset[int] | None:
        """Returns a function and all its callees; ``None`` if it is not closed, or is too long."""
        if ordinal not in self._closures:
            self._closures[ordinal] = self._find_closure(ordinal)
        return self._closures[ordinal]

    def _find_closure(self, ordinal: int) -> frozenset[int] | None:
        closure = {ordinal}
        pending = [ordinal]
        count = 0
        while pending:
            instructions = self._verified.functions[pending.pop()].instructions
            count += len(instructions)
            if count > MAX_INSTRUCTIONS:
                return None
            for instruction in instructions:
                callee = callee_of(instruction)
                if not is_known(instruction) or (callee is not None and callee & IMPORT_BIT):
                    return None
                if callee is not None and callee not in closure:
                    closure.add(callee)
                    pending.append(callee)
        return frozenset(closure)

    def _is_native(self, instruction: Instruction) -> bool:
        callee = callee_of(instruction)
        if callee is None:
            return is_known(instruction)
        return not callee & IMPORT_BIT and self.closure(callee) is not None

    def warmth(self, analysis: FunctionAnalysis) -> Warmth:
        """Returns the events counted by a function's translation: loop iterations, and calls of recursive functions."""
        ordinal, instructions = analysis.function.ordinal, analysis.instructions
        if len(instructions) > MAX_INSTRUCTIONS or self._verified.definition.global_bytes > MAX_BYTES:
            return Warmth({})
        loops = Loops(analysis.blocks)
        lengths: dict[int, int | None] = {}  # lengths of blocks in loops; ``None`` if machine code would exit
        for index in frozenset().union(*loops.bodies.values()):
            block = analysis.blocks[index]
            is_native = all(map(self._is_native, instructions[block.start : block.end]))
            lengths[index] = block.end - block.start if is_native else None
        turns: dict[tuple[int, int], int] = {}
        for edge, body in loops.bodies.items():
            counts = [lengths[block] for block in body]
            if None not in counts:
                turns[edge] = sum(cast("list[int]", counts))
        callees = {callee for callee in map(callee_of, instructions) if callee is not None and not callee & IMPORT_BIT}
        is_recursive = any(ordinal in (self.closure(callee) or ()) for callee in callees)
        return Warmth(turns, len(instructions) if is_recursive else 0)

    # -- making it -----------------------------------------------------------------------------------

    def _layout(self, ordinal: int) -> Layout:
        layout = self._layouts.get(ordinal)
        if layout is None:
            analysis = FunctionAnalysis(self._verified.functions[ordinal], self._analysis)
            layout = self._layouts[ordinal] = Layout(analysis)
        return layout

    def unit(self, ordinal: int) -> Unit:
        """Returns the unit of a function and its callees."""
        called: set[int] = set()
        for callee in map(callee_of, self._verified.functions[ordinal].instructions):
            if callee is not None and not callee & IMPORT_BIT:
                called |= self.closure(callee) or frozenset()
        layouts = {instruction: self._layout(instruction) for instruction in sorted({ordinal, *called})}
        instructions = [instruction for layout in layouts.values() for instruction in layout.analysis.instructions]

        def numbered(ordinals: set[object], first: int) -> dict[int, int]:
            return {
                instruction: position for position, instruction in enumerate(sorted(cast("set[int]", ordinals)), first)
            }

        def first_values(mnemonic: str) -> set[object]:
            return {instruction.values[0] for instruction in instructions if instruction.operation.mnemonic == mnemonic}

        references = [
            instruction
            for instruction in instructions
            if instruction.operation.mnemonic.endswith(".ref") and is_known(instruction)
        ]
        types = {field_value(instruction, FieldKind.TYPE) for instruction in references} - {None}
        return Unit(
            layouts,
            frozenset(called),
            frozenset(called) - self._analysis.leaves,
            numbered(first_values("const.ref.rodata"), 1),
            numbered(first_values("global.load.ref"), 0),
            numbered(types, 0),
            -(-self._verified.definition.global_bytes // 8) * 8,
        )

    def compiled(self, ordinal: int, compiler: Compiler) -> MachineCode | None:
        """Compiles a function's unit; returns ``None`` if that is not possible."""
        if ordinal not in self._compiled:
            unit = self.unit(ordinal)
            length = sum(len(layout.analysis.instructions) for layout in unit.layouts.values())
            self._compiled[ordinal] = None
            is_typed = all(layout.is_typed for layout in unit.layouts.values())
            if is_typed and len(unit.types) <= MAX_TYPES and length <= MAX_INSTRUCTIONS:
                self._compiled[ordinal] = compiler.compile(unit_text(unit, ordinal), f"f{ordinal}")
        return self._compiled[ordinal]


def unit_text(unit: Unit, ordinal: int) -> str:
    """Returns the LLVM IR of a unit in which function ``ordinal`` is callable from outside."""
    lines: list[str] = []
    stack: dict[str, int] = {}
    for member, layout in unit.layouts.items():
        with layout.lock:
            written = "\n".join(FunctionWriter(unit, member).write("" if member == ordinal else "internal "))
        # Without optimisation each value has at most one word of the host's stack.
        stack[str(member)] = 8 * (layout.size + written.count("\n")) + 128
        lines.append(written)
    text = _STACK.sub(lambda match: str(stack[match[1]]), "\n".join(lines))
    if "@round_to_" in text:
        text += SUPPORT
    return "\n".join((text, *_declarations(text), "!0 = !{}", ""))


def _declarations(text: str) -> Iterable[str]:
    declared = {}
    for result, name, operands in _DECLARED.findall(text):
        declared[name] = f"declare {result} {name}({', '.join(operand.split()[0] for operand in operands.split(', '))})"
    return declared.values()
