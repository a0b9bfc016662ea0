"""Checks of device addresses: null, misaligned, and outside of every live buffer.

Two words of the report are the address of the table of live buffers; zero means that no table exists. The table has
entries of four words. In the first entry, the low 12 bits of the first word are the number of ranges, the bits above
are the first entry in use, counted from the second, and a nonzero second word means that the buffers are unknown. The
other entries, sorted, are the start and the end of a buffer, the low word first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..binary.grammar import Decoration, Op, StorageClass
from .checks import Checks
from .paths import Path
from .reports import COUNT_BITS, MAX_RANGES, TABLE_WORDS, Site
from .rewrite import Writer

_ALIGNED: Final = 2


class AddressChecks:
    """The checks of one module's accesses through device addresses.

    Attributes:
        function: the function that searches the table, 0 before it is needed.
    """

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._editor = checks.editor
        self.function: int = 0

    def check(self, writer: Writer, path: Path, pointer: int, alignment: int, site: Callable[[str], Site]) -> list[int]:
        """Returns the conditions for an access through a pointer; each notes its failure."""
        editor, note = self._editor, self._checks.note
        boolean, u32, zero = editor.bool_type(), editor.u32(), editor.constant_u32(0)
        low, high = self._words(writer, pointer)
        root_low, root_high = (low, high) if path.root == pointer else self._words(writer, path.root)
        either = writer.op(Op.BitwiseOr, u32, root_low, root_high)
        conditions = [writer.op(Op.INotEqual, boolean, either, zero)]
        note(writer, conditions[0], site("null"), low, high, zero)
        if alignment > 1:
            rest = writer.op(Op.BitwiseAnd, u32, low, editor.constant_u32(alignment - 1))
            conditions.append(writer.op(Op.IEqual, boolean, rest, zero))
            note(writer, conditions[-1], site("misaligned"), low, high, editor.constant_u32(alignment))
        size = editor.constant_u32(path.size or 1)
        conditions.append(writer.call(self.function or self._write_search(), boolean, low, high, size))
        note(writer, conditions[-1], site("wild"), low, high, size)
        return conditions

    def _words(self, writer: Writer, pointer: int) -> tuple[int, int]:
        both = writer.op(Op.Bitcast, self._editor.vector(2), pointer)
        u32 = self._editor.u32()
        return writer.op(Op.CompositeExtract, u32, both, 0), writer.op(Op.CompositeExtract, u32, both, 1)

    def _write_search(self) -> int:
        """Returns the function that tells whether bytes lie within a live buffer:

        (low word, high word, size) of the range.
        """
        editor = self._editor
        u32, boolean, two, four = editor.u32(), editor.bool_type(), editor.vector(2), editor.vector(4)
        constant = editor.constant_u32
        physical = StorageClass.PhysicalStorageBuffer
        entries = editor.type(Op.TypeRuntimeArray, four)
        editor.decorate(entries, Decoration.ArrayStride, 16)
        to_table = editor.pointer(physical, editor.block(entries))
        to_entry = editor.pointer(physical, four)
        self.function, (low, high, size), body = editor.function(boolean, u32, u32, u32)
        writer = Writer(editor)
        writer.block(editor.fresh())
        words = [
            writer.op(Op.Load, u32, self._checks.reporter.word(writer, constant(number))) for number in TABLE_WORDS
        ]
        either = writer.op(Op.BitwiseOr, u32, *words)
        is_absent = writer.op(Op.IEqual, boolean, either, constant(0))
        absent, present = editor.fresh(), editor.fresh()
        writer.do(Op.SelectionMerge, present, 0)
        writer.do(Op.BranchConditional, is_absent, absent, present)
        writer.block(absent)
        writer.do(Op.ReturnValue, editor.boolean(True))
        writer.block(present)
        address = writer.op(Op.Bitcast, to_table, writer.op(Op.CompositeConstruct, two, *words))

        def entry(number: int) -> list[int]:
            pointer = writer.op(Op.AccessChain, to_entry, address, constant(0), number)
            match = writer.op(Op.Load, four, pointer, _ALIGNED, 16)
            return [writer.op(Op.CompositeExtract, u32, match, index) for index in range(4)]

        head, is_unknown, *_ = entry(constant(0))
        count = writer.op(Op.BitwiseAnd, u32, head, constant(MAX_RANGES))
        first = writer.op(Op.ShiftRightLogical, u32, head, constant(COUNT_BITS))
        first = writer.op(Op.IAdd, u32, first, constant(1))

        def less(a: tuple[int, int], b: tuple[int, int]) -> int:
            above = writer.op(Op.ULessThan, boolean, a[1], b[1])
            same = writer.op(Op.IEqual, boolean, a[1], b[1])
            below = writer.op(Op.ULessThan, boolean, a[0], b[0])
            return writer.op(Op.LogicalOr, boolean, above, writer.op(Op.LogicalAnd, boolean, same, below))

        # The number of entries that start at or before the address, by bisection.
        passed = constant(0)
        step = (MAX_RANGES + 1) // 2
        while step:
            tried = writer.op(Op.IAdd, u32, passed, constant(step))
            is_there = writer.op(Op.ULessThanEqual, boolean, tried, count)
            before = writer.op(Op.ISub, u32, writer.op(Op.Select, u32, is_there, tried, constant(1)), constant(1))
            start = entry(writer.op(Op.IAdd, u32, first, before))
            starts_after = less((low, high), (start[0], start[1]))
            takes = writer.op(Op.LogicalAnd, boolean, is_there, writer.op(Op.LogicalNot, boolean, starts_after))
            passed = writer.op(Op.Select, u32, takes, tried, passed)
            step //= 2
        is_some = writer.op(Op.INotEqual, boolean, passed, constant(0))
        number = writer.op(Op.Select, u32, is_some, writer.op(Op.ISub, u32, passed, constant(1)), constant(0))
        match = entry(writer.op(Op.IAdd, u32, first, number))
        carry = writer.op(Op.IAddCarry, editor.type(Op.TypeStruct, u32, u32), low, size)
        end_low = writer.op(Op.CompositeExtract, u32, carry, 0)
        end_high = writer.op(Op.IAdd, u32, high, writer.op(Op.CompositeExtract, u32, carry, 1))
        is_past = less((match[2], match[3]), (end_low, end_high))
        is_within = writer.op(Op.LogicalAnd, boolean, is_some, writer.op(Op.LogicalNot, boolean, is_past))
        is_unchecked = writer.op(Op.INotEqual, boolean, is_unknown, constant(0))
        writer.do(Op.ReturnValue, writer.op(Op.LogicalOr, boolean, is_within, is_unchecked))
        writer.do(Op.FunctionEnd)
        body += writer.out
        return self.function
