"""Source lines of loops: from OpLine, or from NonSemantic.Shader.DebugInfo.100."""

from __future__ import annotations

from typing import Final

from ..binary.grammar import Op
from .blocks import Flow
from .editor import Editor, Words, opcode_of

_DEBUG_SOURCE: Final = 35
_DEBUG_LINE: Final = 103


class Lines:
    """The source lines of a module.

    Attributes:
        file, line: the source position of the last instruction passed over; ``""`` and 0 if unknown.
    """

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._debug_sets = {
            set_id for set_id, name in editor.sets.items() if name.startswith("NonSemantic.Shader.DebugInfo")
        }
        self.file: str = ""
        self.line: int = 0

    def of(self, flow: Flow, header: int) -> tuple[str, int]:
        """Returns the file and line of the loop with this header."""
        for block in flow.blocks.values():
            for instruction in block.code:
                self.pass_over(instruction)
                if opcode_of(instruction) == Op.LoopMerge and block.label == header:
                    return self.file, self.line
        return "", 0

    def pass_over(self, instruction: Words) -> None:
        """Updates the position from an instruction; instructions come in order."""
        match opcode_of(instruction):
            case Op.Line:
                self.file, self.line = self._editor.strings.get(instruction[1], ""), instruction[2]
            case Op.Function:
                self.file, self.line = "", 0
            case Op.ExtInst if instruction[3] in self._debug_sets and instruction[4] == _DEBUG_LINE:
                self.file, self.line = self._source(instruction[5]), self._constant(instruction[6])

    def _source(self, number: int) -> str:
        definition: Words = self._editor.defs.get(number, ())
        if len(definition) > 5 and definition[4] == _DEBUG_SOURCE:
            return self._editor.strings.get(definition[5], "")
        return ""

    def _constant(self, number: int) -> int:
        definition = self._editor.defs.get(number, ())
        return definition[3] if len(definition) == 4 and opcode_of(definition) == Op.Constant else 0
