"""Values that a driver cannot know before a kernel runs: constants, and results, combined with a hidden zero.

The zero is computed from ``NumWorkgroups``, whose components are never zero while a kernel runs. It costs a load, a
comparison and a selection in each function that needs it, and an exclusive or for each value.
"""

from __future__ import annotations

from typing import Final

from ..binary.grammar import BuiltIn, Decoration, ExecutionModel, Op
from ..instrument.editor import Editor, Words, opcode_of
from ..instrument.rewrite import Writer

_FIRST: Final = (Op.Variable, Op.UntypedVariableKHR, Op.Line, Op.NoLine)


def can_hide(editor: Editor) -> bool:
    """Whether a module's values can be hidden: its compute shaders must declare ``NumWorkgroups`` at most once.

    Entry points that list different variables could not share a function; no compiler is known to write such modules.
    """
    counts = [
        variable
        for variable in editor.defs
        if opcode_of(editor.defs[variable]) == Op.Variable
        and editor.decoration(variable, Decoration.BuiltIn) == BuiltIn.NumWorkgroups
    ]
    entries = editor.entry_points
    return len(counts) <= 1 and bool(entries) and all(entry[1] == ExecutionModel.GLCompute for entry in entries)


class Hider:
    """Writes hidden values into one function.

    Calling sequence: ``Hider`` → ``hidden`` for each value → ``prologue``, whose instructions belong at the start of
    the function's first block: they define the zero, and the constants that ``constant`` has hidden.
    """

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._start = Writer(editor)
        self._zero = 0
        self._count = 0
        self._pair = 0
        self._constants: dict[int, int] = {}

    def constant(self, constant: int, type_id: int) -> int:
        """Returns the hidden value of a constant of 32-bit or other floats, or of vectors of them."""
        value = self._constants.get(constant)
        if value is None:
            value = self._constants[constant] = self.hidden(self._start, type_id, constant)
        return value

    def hidden(self, writer: Writer, type_id: int, value: int, result: int = 0) -> int:
        """Emits the same value, unknown to the driver.

        Args:
            writer: the writer of the block that needs the value.
            type_id: a float or an integer of 32 or 64 bits, a float of 16 bits, or a vector of one of these.
            value: the value.
            result: the id of the result; 0 for a new one.
        """
        editor = self._editor
        declared = editor.defs[type_id]
        if opcode_of(declared) == Op.TypeVector:
            parts = [
                self.hidden(writer, declared[2], writer.op(Op.CompositeExtract, declared[2], value, index))
                for index in range(declared[3])
            ]
            return writer.op(Op.CompositeConstruct, type_id, *parts, result=result)
        if declared[2] == 16:  # the module need not have integers of 16 bits
            single = editor.type(Op.TypeFloat, 32)
            wide = self.hidden(writer, single, writer.op(Op.FConvert, single, value))
            return writer.op(Op.FConvert, type_id, wide, result=result)
        words, zero = (editor.vector(2), self._zeros()) if declared[2] == 64 else (editor.u32(), self._one_zero())
        if type_id == words:
            return writer.op(Op.BitwiseXor, words, value, zero, result=result)
        bits = writer.op(Op.BitwiseXor, words, writer.op(Op.Bitcast, words, value), zero)
        return writer.op(Op.Bitcast, type_id, bits, result=result)

    def never(self, number: int) -> int:
        """Returns a condition that is false; the driver knows neither that nor that others are the same."""
        self._one_zero()
        editor, start = self._editor, Writer(self._editor)
        kind = next(words[1] for words in self._start.out if words[2] == self._count)
        factor = editor.constant(kind, 2 * number + 1)  # odd: the product of no other count is zero
        product = start.op(Op.IMul, kind, self._count, factor)
        condition = start.op(Op.IEqual, editor.bool_type(), product, editor.null(kind))
        self._start.out[self._defining : self._defining] = start.out
        return condition

    def _one_zero(self) -> int:
        if not self._zero:
            editor, start = self._editor, Writer(self._editor)
            vector = editor.vector(3)
            variable = 0
            for entry in range(len(editor.entry_points)):
                variable = editor.built_in(BuiltIn.NumWorkgroups, vector, entry)
            kind = editor.defs[editor.defs[variable][1]][3]  # the module's own may have signed integers
            count = start.op(Op.CompositeExtract, editor.defs[kind][2], start.op(Op.Load, kind, variable), 0)
            self._count = count
            none = start.op(Op.IEqual, editor.bool_type(), count, editor.null(editor.defs[kind][2]))
            self._zero = start.op(Op.Select, editor.u32(), none, editor.constant_u32(1), editor.constant_u32(0))
            self._start.out[:0] = start.out
            self._defining = len(start.out)
        return self._zero

    def _zeros(self) -> int:
        if not self._pair:
            zero = self._one_zero()
            start = Writer(self._editor)
            self._pair = start.op(Op.CompositeConstruct, self._editor.vector(2), zero, zero)
            self._start.out[self._defining : self._defining] = start.out
        return self._pair

    def started(self, body: list[Words]) -> list[Words]:
        """Returns a function's body with its hidden definitions in the first block."""
        first = next((at + 1 for at, words in enumerate(body) if opcode_of(words) == Op.Label), 0)
        while opcode_of(body[first]) in _FIRST:
            first += 1
        return [*body[:first], *self._start.out, *body[first:]]
