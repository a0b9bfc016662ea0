"""Prints of shaders into a ring: ``debugPrintfEXT`` of GLSL, ``printf`` of Slang and HLSL.

Each print becomes a call of a function that writes a record; ``printed.py`` describes its form.
"""

from __future__ import annotations

from typing import Final

from ..binary.grammar import BuiltIn, ExecutionModel, Op, StorageClass
from .editor import Editor, Words, opcode_of
from .lines import Lines
from .paths import result_of
from .printed import HEADER_WORDS, PRINT_SET, RECORD_WORDS, RING_WORDS, PrintedValue, PrintSite
from .reporter import Reporter
from .rewrite import Writer

_DEBUG_PRINTF: Final = 1
# Composites are shown up to this many components.
_MAX_SCALARS: Final = 64
# A damaged type may have itself as a member.
_MAX_STEPS: Final = 1024


class Printer:
    """The pass that makes the prints of a module write to a ring. Calling sequence: ``rewrite``.

    Attributes:
        sites: the prints by their number in a record.
    """

    def __init__(self, editor: Editor, reporter: Reporter) -> None:
        self._editor = editor
        self._reporter = reporter
        self._sets = {number for number, name in editor.sets.items() if name == PRINT_SET}
        self._lines = Lines(editor)
        self._functions: dict[int, int] = {}
        self._ring = 0
        self._invocation = 0
        self.sites: list[PrintSite] = []

    def rewrite(self) -> None:
        """Replaces the prints of all functions."""
        editor = self._editor
        functions = [body for body in editor.functions if any(map(self._prints, body))]
        if not functions:
            return
        self._ring = editor.storage_buffer(
            editor.words_block(), self._reporter.set, self._reporter.binding + 1, "pumice_prints"
        )
        self._invocation = editor.variable(StorageClass.Private, editor.vector(3), name="pumice_invocation")
        for body in functions:
            self._rewrite(body)
        for index, entry in enumerate(editor.entry_points):
            if entry[1] == ExecutionModel.GLCompute:
                self._keep_invocation(index, entry[2])

    def _prints(self, instruction: Words) -> bool:
        return opcode_of(instruction) == Op.ExtInst and instruction[3] in self._sets and instruction[4] == _DEBUG_PRINTF

    def _keep_invocation(self, index: int, function: int) -> None:
        """Stores the invocation's id at the start of an entry point: each may have a variable of its own for it."""
        editor = self._editor
        body = next(body for body in editor.functions if body[0][2] == function)
        at = next(i for i, line in enumerate(body) if opcode_of(line) == Op.Label) + 1
        while opcode_of(body[at]) in (Op.Variable, Op.UntypedVariableKHR, Op.Line, Op.NoLine):
            at += 1
        writer = Writer(editor)
        variable = editor.built_in(BuiltIn.GlobalInvocationId, editor.vector(3), index)
        vector = editor.defs[editor.defs[variable][1]][3]
        value = writer.op(Op.Load, vector, variable)
        if vector != editor.vector(3):
            value = writer.op(Op.Bitcast, editor.vector(3), value)
        writer.do(Op.Store, self._invocation, value)
        body[at:at] = writer.out

    def _rewrite(self, body: list[Words]) -> None:
        types = {result_of(line): line[1] for line in body if result_of(line)}
        out: list[Words] = []
        for instruction in body:
            self._lines.pass_over(instruction)
            if not self._prints(instruction):
                out.append(instruction)
                continue
            writer = Writer(self._editor)
            self._call(writer, instruction, types)
            out += writer.out
        body[:] = out

    def _call(self, writer: Writer, instruction: Words, types: dict[int, int]) -> None:
        editor = self._editor
        forms: list[PrintedValue | str] = []
        words: list[int] = []
        for argument in instruction[6:]:
            if argument in editor.strings:
                forms.append(editor.strings[argument])
                continue
            form, values = self._words_of(writer, argument, types.get(argument) or editor.defs[argument][1])
            forms.append(form)
            words += values
        site = PrintSite(editor.strings.get(instruction[5], "?"), tuple(forms), self._lines.file, self._lines.line)
        self.sites.append(site)
        number = editor.constant_u32(len(self.sites))
        writer.call(self._function(len(words)), editor.void(), number, *words)

    def _words_of(self, writer: Writer, value: int, type_id: int) -> tuple[PrintedValue | str, list[int]]:
        """Emits the words of an argument; returns its form with them."""
        editor = self._editor
        scalars: list[tuple[int, int]] = []
        pending = [(value, type_id)]
        for _ in range(_MAX_STEPS):
            if not pending or len(scalars) >= _MAX_SCALARS:
                break
            part, part_type = pending.pop()
            of = editor.defs[part_type]
            opcode = opcode_of(of)
            if opcode in (Op.TypeVector, Op.TypeMatrix, Op.TypeArray):
                count = editor.defs[of[3]][3] if opcode == Op.TypeArray else of[3]
                members = [of[2]] * min(count, _MAX_SCALARS)
            elif opcode == Op.TypeStruct:
                members = list(of[2 : 2 + _MAX_SCALARS])
            else:
                scalars.append((part, part_type))
                continue
            parts = [(writer.op(Op.CompositeExtract, kind, part, i), kind) for i, kind in enumerate(members)]
            pending += reversed(parts)
        forms = []
        words: list[int] = []
        for scalar, scalar_type in scalars:
            form, scalar_words = self._scalar(writer, scalar, scalar_type)
            forms.append(form)
            words += scalar_words
        first = forms[0] if forms else None
        if first is None or any(form != first for form in forms):
            return "?", []  # types that have no numbers, or of several
        return PrintedValue(first.kind, first.width, len(forms)), words

    def _scalar(self, writer: Writer, value: int, type_id: int) -> tuple[PrintedValue | None, list[int]]:
        editor, u32 = self._editor, self._editor.u32()
        of = editor.defs[type_id]
        opcode = opcode_of(of)
        if opcode == Op.TypeBool:
            number = writer.op(Op.Select, u32, value, editor.constant_u32(1), editor.constant_u32(0))
            return PrintedValue("b", 32, 1), [number]
        is_pointer = opcode == Op.TypePointer and of[2] == StorageClass.PhysicalStorageBuffer
        if opcode not in (Op.TypeInt, Op.TypeFloat) and not is_pointer:
            return None, []
        width = 64 if is_pointer else of[2]
        kind = "f" if opcode == Op.TypeFloat else "i" if opcode == Op.TypeInt and of[3] else "u"
        if width == 64:
            pair = writer.op(Op.Bitcast, editor.vector(2), value)
            return PrintedValue(kind, 64, 1), [writer.op(Op.CompositeExtract, u32, pair, i) for i in (0, 1)]
        if opcode == Op.TypeFloat and width < 32:
            value, width = writer.op(Op.FConvert, editor.type(Op.TypeFloat, 32), value), 32
        elif opcode == Op.TypeInt and width < 32:
            return PrintedValue(kind, width, 1), [writer.op(Op.SConvert if of[3] else Op.UConvert, u32, value)]
        word = value if type_id == u32 else writer.op(Op.Bitcast, u32, value)
        return PrintedValue(kind, width, 1), [word]

    def _function(self, count: int) -> int:
        """Returns the function that writes a record of that number of values."""
        if count in self._functions:
            return self._functions[count]
        editor, reporter = self._editor, self._reporter
        u32, boolean, constant = editor.u32(), editor.bool_type(), editor.constant_u32
        function, (site, *values), body = editor.function(editor.void(), *[u32] * (1 + count))
        self._functions[count] = function
        writer = Writer(editor)
        writer.block(editor.fresh())
        scope, relaxed, size = reporter.scope(), constant(0), constant(RECORD_WORDS + count)
        writer.op(Op.AtomicIAdd, u32, self._word(writer, constant(1)), scope, relaxed, constant(1))
        read = writer.op(Op.Load, u32, self._word(writer, constant(2)))
        taken = writer.op(Op.AtomicLoad, u32, self._word(writer, constant(0)), scope, relaxed)
        ahead = writer.op(Op.ISub, u32, taken, read)
        # Without this comparison, the number of words that were asked for could pass all 32 bits.
        has_room = writer.op(Op.ULessThan, boolean, ahead, constant(RING_WORDS))

        def take() -> None:
            at = writer.op(Op.AtomicIAdd, u32, self._word(writer, constant(0)), scope, relaxed, size)
            end = writer.op(Op.IAdd, u32, writer.op(Op.ISub, u32, at, read), size)
            writer.when(writer.op(Op.ULessThanEqual, boolean, end, constant(RING_WORDS)), lambda: write(at))

        def write(at: int) -> None:
            kernel = writer.op(Op.Load, u32, reporter.kernel_word(writer))
            invocation = writer.op(Op.Load, editor.vector(3), self._invocation)
            ids = [writer.op(Op.CompositeExtract, u32, invocation, axis) for axis in range(3)]
            for offset, value in enumerate((site, kernel, *ids, *values)):
                index = writer.op(Op.IAdd, u32, at, constant(offset))
                index = writer.op(Op.BitwiseAnd, u32, index, constant(RING_WORDS - 1))
                index = writer.op(Op.IAdd, u32, index, constant(HEADER_WORDS))
                writer.do(Op.Store, self._word(writer, index), value)

        writer.when(has_room, take)
        writer.do(Op.Return)
        writer.do(Op.FunctionEnd)
        body += writer.out
        return function

    def _word(self, writer: Writer, index: int) -> int:
        kind = self._editor.pointer(StorageClass.StorageBuffer, self._editor.u32())
        return writer.op(Op.AccessChain, kind, self._ring, self._editor.constant_u32(0), index)
