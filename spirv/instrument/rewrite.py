"""Rewrites the body of a function, one instruction at a time; an instruction may become several blocks.

Structured control flow stays structured. A split loop header keeps its phis and its merge instruction, and its rest
becomes a new block; if the header is its own continue target, the continue target becomes a new block, too. Phis refer
to the last part of a split block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..binary.grammar import Decoration, Op
from ..binary.words import encode
from .editor import Editor, Words, opcode_of

_MERGES: Final = (Op.LoopMerge, Op.SelectionMerge)
TERMINATORS: Final = Op.numbers(
    "Branch BranchConditional Switch Return ReturnValue Unreachable Kill TerminateInvocation"
)
_FIRST: Final = (Op.Phi, Op.Variable, Op.UntypedVariableKHR)


class Writer:
    """The instructions of a body that is being written.

    Attributes:
        label: the label of the block that is being written.
    """

    def __init__(self, editor: Editor) -> None:
        self.editor = editor
        self.out: list[Words] = []
        self.label: int = 0
        self._line: Words = ()

    def put(self, instruction: Words) -> None:
        """Appends an unchanged instruction."""
        opcode = opcode_of(instruction)
        if opcode in (Op.Line, Op.NoLine):
            self._line = instruction
        self.out.append(instruction)

    def do(self, opcode: int, *operands: int) -> None:
        self.out.append(encode(opcode, *operands))

    def op(self, opcode: int, type_id: int, *operands: int, result: int = 0) -> int:
        """Appends an instruction, and returns its result: a new id unless one is given."""
        result = result or self.editor.fresh()
        self.out.append(encode(opcode, type_id, result, *operands))
        return result

    def call(self, function: int, result_type: int, *arguments: int) -> int:
        return self.op(Op.FunctionCall, result_type, function, *arguments)

    def enter(self, label: int) -> None:
        """Starts a block of the original body; the source line of the previous block ends."""
        self._line = ()
        self.block(label)

    def block(self, label: int) -> None:
        self.out.append(encode(Op.Label, label))
        self.label = label

    def when(self, condition: int, then: Callable[[], None]) -> int:
        """Runs the instructions that ``then`` appends only if the condition holds; returns the previous block."""
        inside, after = self.editor.fresh(), self.editor.fresh()
        self.do(Op.SelectionMerge, after, 0)
        self.do(Op.BranchConditional, condition, inside, after)
        self.block(inside)
        self._restore_line()
        then()
        inside = self.label
        self.do(Op.Branch, after)
        self.block(after)
        self._restore_line()
        return inside

    def _restore_line(self) -> None:
        if self._line:
            self.out.append(self._line)

    def all_of(self, conditions: list[int]) -> int:
        """Emits the conjunction of conditions, of which there is at least one."""
        combined = conditions[0]
        for condition in conditions[1:]:
            if condition != combined:
                combined = self.op(Op.LogicalAnd, self.editor.bool_type(), combined, condition)
        return combined

    def guarded(self, condition: int, instruction: Words, has_result: bool) -> None:
        """Emits an instruction that runs where the condition holds; elsewhere its result is zero."""
        before = self.label
        if not has_result:
            self.when(condition, lambda: self.put(instruction))
            return
        editor = self.editor
        type_id, result = instruction[1:3]
        inner = editor.fresh()
        if opcode_of(editor.defs[type_id]) == Op.TypePointer:
            zero = self.op(Op.Bitcast, type_id, editor.null(editor.vector(2)))
        else:
            zero = editor.null(type_id)
        came = self.when(condition, lambda: self.put((*instruction[:2], inner, *instruction[3:])))
        phi = encode(Op.Phi, type_id, result, inner, came, zero, before)
        self.out.insert(len(self.out) - (opcode_of(self.out[-1]) in (Op.Line, Op.NoLine)), phi)
        if editor.decoration(result, Decoration.NonUniform) is not None:
            editor.decorate(inner, Decoration.NonUniform)


def rewrite(
    editor: Editor, body: list[Words], splits: Callable[[Words], bool], visit: Callable[[Words, Writer], None]
) -> list[Words]:
    """Returns a function's new body.

    Args:
        editor: the module's editor.
        body: the function's instructions.
        splits: a predicate: whether ``visit`` may write several blocks for an instruction.
        visit: a function that writes the replacement of an instruction. It is called with a block's label, after which
            it may write more, and with all instructions of the block except phis, variables, merge instructions and
            terminators, which are copied unchanged.
    """
    writer = Writer(editor)
    tails: dict[int, int] = {}
    phis: list[int] = []
    first = next((i for i, line in enumerate(body) if opcode_of(line) == Op.Label), len(body))
    for instruction in body[:first]:
        writer.put(instruction)
    last = next((i for i, line in enumerate(body) if opcode_of(line) == Op.FunctionEnd), len(body))
    for block in _blocks(body[first:last]):
        label = block[0][1]
        start = max((i + 1 for i, line in enumerate(block) if opcode_of(line) in _FIRST), default=1)
        end = len(block) - (2 if opcode_of(block[-2]) in _MERGES else 1)
        writer.enter(label)
        visit(block[0], writer)
        for instruction in block[1:start]:
            if opcode_of(instruction) == Op.Phi:
                phis.append(len(writer.out))
            writer.put(instruction)
        middle, merge, terminator = block[start:end], block[end:-1], block[-1]
        loop = merge[0] if merge and opcode_of(merge[0]) == Op.LoopMerge else None
        resumes = 0
        if loop is not None and any(splits(line) for line in middle):
            after, continues = loop[1:3]
            if continues == label:
                continues = resumes = editor.fresh()
            inner = editor.fresh()
            writer.do(Op.LoopMerge, after, continues, *loop[3:])
            writer.do(Op.Branch, inner)
            writer.block(inner)
            merge = []
            is_exit = not {after, continues}.isdisjoint(terminator[2:4])
            if opcode_of(terminator) == Op.BranchConditional and not resumes and not is_exit:
                merge = [encode(Op.SelectionMerge, editor.fresh(), 0)]
        for instruction in middle:
            visit(instruction, writer)
        if resumes:
            writer.do(Op.Branch, resumes)
            writer.block(resumes)
        for instruction in merge:
            writer.put(instruction)
        writer.put(terminator)
        tails[label] = writer.label
        if loop is not None and merge and opcode_of(merge[0]) == Op.SelectionMerge:
            writer.do(Op.Label, merge[0][1])
            writer.do(Op.Unreachable)
    writer.out += body[last:]
    for at in phis:
        phi = list(writer.out[at])
        for operand in range(4, len(phi), 2):
            phi[operand] = tails.get(phi[operand], phi[operand])
        writer.out[at] = tuple(phi)
    return writer.out


def _blocks(body: list[Words]) -> list[list[Words]]:
    """Returns the blocks of a body. Line instructions between blocks, which belong to no instruction, are dropped."""
    blocks: list[list[Words]] = []
    is_open = False
    for instruction in body:
        opcode = opcode_of(instruction)
        if opcode == Op.Label:
            blocks.append([instruction])
            is_open = True
        elif is_open:
            blocks[-1].append(instruction)
            is_open = opcode not in TERMINATORS
    return blocks
