"""Conditions of loops that are tested at the head: repeated after the loop, and bounds of its trip count."""

from __future__ import annotations

from typing import Final

from ...base.lazy_dataclass import dataclass
from ..binary.grammar import LAYOUTS, Decoration, Op, StorageClass, operand_kinds
from .blocks import Flow, Loop
from .editor import Editor, Words, opcode_of
from .reporter import Reporter
from .rewrite import Writer

_PURE: Final = frozenset({"Arithmetic", "Bit", "Relational_and_Logical", "Conversion", "Composite"})
_PASSED_OVER: Final = (Op.Label, Op.LoopMerge, Op.Branch, Op.BranchConditional, Op.Line, Op.NoLine)
_VARYING: Final = (StorageClass.Function, StorageClass.Private)
_STEADY: Final = (
    StorageClass.PushConstant,
    StorageClass.Uniform,
    StorageClass.UniformConstant,
    StorageClass.Input,
    StorageClass.StorageBuffer,
)
_RESULT: Final = 2


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a loop.

    Attributes:
        id: the truth value that the loop tests.
        continues_on: the value on which the loop continues.
        slice: the instructions that compute it, in order, including phis of the header.
    """

    id: int
    continues_on: bool
    slice: tuple[Words, ...]


def condition_of(editor: Editor, flow: Flow, loop: Loop) -> Condition | None:
    """Returns the condition of a loop whose single exit follows its head, if it may be tested again."""
    exits = [label for label in loop.blocks if loop.merge in flow.blocks[label].targets]
    label = loop.header
    code: list[Words] = []
    while True:
        block = flow.blocks[label]
        code += block.code
        if len(block.targets) != 1:
            break
        label = block.targets[0]
        if label not in loop.blocks or label == loop.header or len(code) > 64:
            return None
    end = next((instr for instr in flow.blocks[label].code if opcode_of(instr) == Op.BranchConditional), None)
    if exits != [label] or end is None:
        return None
    made = {instr[_RESULT]: instr for instr in code if opcode_of(instr) not in _PASSED_OVER and len(instr) > _RESULT}
    if any(not _is_pure(editor, instr, made) for instr in code if opcode_of(instr) not in _PASSED_OVER):
        return None
    wanted, pending = {end[1]}, [end[1]]
    while pending:
        instruction = made.get(pending.pop())
        if instruction is not None and opcode_of(instruction) != Op.Phi:
            more = {instr for instr in instruction[3:] if instr in made} - wanted
            wanted |= more
            pending += more
    parts = tuple(instr for number, instr in made.items() if number in wanted)
    return Condition(end[1], end[2] != loop.merge, parts) if parts else None


def _is_pure(editor: Editor, instruction: Words, made: dict[int, Words]) -> bool:
    opcode = opcode_of(instruction)
    if opcode == Op.Phi:
        return _is_integer(editor, instruction[1])
    if opcode == Op.AccessChain:
        return True
    if opcode == Op.Load:
        base = instruction[3]
        passed: set[int] = set()  # of a damaged module, where a pointer is made of itself
        while base in made and base not in passed:
            passed.add(base)
            base = made[base][3]
        variable = editor.defs.get(base)
        # Variables of functions are not among the declarations.
        storage = StorageClass.Function if variable is None else variable[3]
        if storage in _VARYING:
            return _is_integer(editor, instruction[1])
        known = {decoration[0] for decoration in editor.decorations.get(base, ())}
        return storage in _STEADY and not known & {Decoration.Coherent, Decoration.Volatile} and len(instruction) == 4
    layout = LAYOUTS.get(opcode)
    return layout is not None and layout.group in _PURE


def _is_integer(editor: Editor, type_id: int) -> bool:
    definition = editor.defs.get(type_id, (0,))
    return opcode_of(definition) == Op.TypeInt and definition[2] == 32


def ask_again(writer: Writer, reporter: Reporter, condition: Condition) -> int:
    """Tests a condition once more; returns whether the loop would have continued.

    A compiler knows that it would not. Therefore the loop's values are combined with a zero that compilers cannot fold.
    """
    editor = reporter.editor
    zero = reporter.zero(writer, 0)
    names: dict[int, int] = {}
    for instruction in condition.slice:
        opcode, type_id, result = opcode_of(instruction), instruction[1], instruction[_RESULT]
        value = result
        if opcode != Op.Phi:
            words = [*instruction]
            for at, kind in operand_kinds(instruction, 0, len(instruction)):
                if kind == "IdRef":
                    words[at] = names.get(words[at], words[at])
            value = writer.op(opcode, type_id, *words[3:])
        if opcode in (Op.Phi, Op.Load) and _is_integer(editor, type_id):
            value = writer.op(Op.BitwiseXor, type_id, value, zero)
        names[result] = value
    answer = names[condition.id]
    return answer if condition.continues_on else writer.op(Op.LogicalNot, editor.bool_type(), answer)
