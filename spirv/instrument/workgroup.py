"""Checks of reads of uninitialised workgroup memory.

One bit for each scalar, also in workgroup memory, records whether it was written. A read is reported only if none of
its scalars was written, because programs may read a whole vector or structure of which they wrote a part.
"""

from __future__ import annotations

from typing import Final

from ...base.lazy_dataclass import dataclass
from ..binary.grammar import Decoration, Op, StorageClass, operand_kinds
from .checks import Checks
from .editor import Words, opcode_of
from .paths import CHAINS, POINTER_CHAINS, Path
from .reports import Site
from .rewrite import Writer

# The most scalars of one access: more would take too much code.
_MAX_SCALARS: Final = 1024
_WORKGROUP_SCOPE: Final = 2
# Word indices of the pointers in memory accesses.
_ACCESSES: Final[dict[int, tuple[int, ...]]] = {Op.Load: (3,), Op.Store: (1,), Op.CopyMemory: (1, 2)}


@dataclass(frozen=True, slots=True)
class _Shadow:
    """The bits of a variable: their first word, and the number of scalars."""

    first: int
    scalars: int


class WorkgroupChecks:
    """The checks of one module's reads of workgroup memory."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._editor = checks.editor
        self._shadows: dict[int, _Shadow] = {}
        self._variable = 0

    def watches(self, path: Path) -> bool:
        """Whether accesses of a path are checked."""
        return path.variable in self._shadows and path.component is not None

    def choose(self, functions: list[list[Words]]) -> None:
        """Chooses the watched variables, and adds their bits."""
        editor, paths, unwatched = self._editor, self._checks.paths, self._checks.unwatched
        variables = [
            variable
            for variable, definition in editor.defs.items()
            if opcode_of(definition) == Op.Variable and definition[3] == StorageClass.Workgroup
        ]
        if not variables:
            return
        refused = self._refused(functions, set(variables))
        used = 0
        sizes = {}
        for variable in variables:
            pointee = editor.defs[editor.defs[variable][1]][3]
            of = self._checks.module.types.get(pointee)
            size = of.natural_size if of is not None else None
            used += size or 0
            scalars = paths.scalars(pointee)
            is_block = editor.decoration(pointee, Decoration.Block) is not None
            if variable in refused or is_block or scalars is None or size is None or len(editor.defs[variable]) > 4:
                unwatched[f"reads of workgroup memory {editor.names.get(variable, '')}".rstrip()] = None
            else:
                sizes[variable] = scalars
        words = 0
        options = self._checks.options
        for variable, scalars in sizes.items():
            needed = scalars // 32 + 2  # an access may reach into the word past the last
            if not options.zero_workgroup or used + 4 * (words + needed) > options.workgroup_bytes:
                unwatched[f"reads of workgroup memory {editor.names.get(variable, '')}, for want of room".rstrip()] = (
                    None
                )
                continue
            self._shadows[variable] = _Shadow(words, scalars)
            words += needed
        if words:
            array = editor.type(Op.TypeArray, editor.u32(), editor.constant_u32(words))
            self._variable = editor.variable(StorageClass.Workgroup, array, editor.null(array), "pumice_written")

    def _refused(self, functions: list[list[Words]], variables: set[int]) -> set[int]:
        """Returns the variables with accesses that the pass cannot follow."""
        paths = self._checks.paths
        refused: set[int] = set()
        for body in functions:
            paths.enter(body)
            pointers = {item: item for item in variables}
            for item in body:
                opcode = opcode_of(item)
                if opcode in CHAINS or opcode == Op.CopyObject:
                    root = pointers.get(item[3])
                    if root is not None:
                        pointers[item[2]] = root
                        if opcode in POINTER_CHAINS:
                            refused.add(root)
                    if opcode == Op.CopyObject:
                        continue
                accessed = _ACCESSES.get(opcode, ())
                if not accessed and opcode in _ATOMICS:
                    accessed = (1,) if opcode == Op.AtomicStore else (3,)
                if opcode in CHAINS:
                    accessed = (3,)
                for word in accessed:
                    root = pointers.get(item[word])
                    if root is not None and opcode not in CHAINS:
                        path = paths.walk(item[word])
                        count = None if path is None else paths.scalars(path.pointee)
                        if path is None or path.component is None or count is None or count > _MAX_SCALARS:
                            refused.add(root)
                for at, kind in operand_kinds(item, 0, len(item)):
                    if kind == "IdRef" and at not in accessed and item[at] in pointers:
                        refused.add(pointers[item[at]])
        return refused

    def check(self, writer: Writer, path: Path, site: Site, conditions: list[int]) -> None:
        """Notes a read of scalars that were never written, where the conditions hold."""
        editor = self._editor
        u32, boolean, zero = editor.u32(), editor.bool_type(), editor.constant_u32(0)
        shadow = self._shadows[path.variable]
        is_in_range = writer.all_of(conditions) if conditions else 0
        bits = 0
        for word, mask in self._words(writer, path, is_in_range):
            bit = writer.op(
                Op.AtomicLoad, u32, self._pointer(writer, word), editor.constant_u32(_WORKGROUP_SCOPE), zero
            )
            bit = writer.op(Op.BitwiseAnd, u32, bit, mask)
            bits = writer.op(Op.BitwiseOr, u32, bits, bit) if bits else bit
        is_well = writer.op(Op.INotEqual, boolean, bits, zero)
        if is_in_range:
            outside = writer.op(Op.LogicalNot, boolean, is_in_range)
            is_well = writer.op(Op.LogicalOr, boolean, is_well, outside)
        start = self._component(writer, path)
        self._checks.note(writer, is_well, site, start, zero, editor.constant_u32(shadow.scalars))

    def mark(self, writer: Writer, path: Path, conditions: list[int]) -> None:
        """Marks the scalars of a path as written, where the conditions hold."""
        editor = self._editor
        u32, zero = editor.u32(), editor.constant_u32(0)

        def write() -> None:
            for word, mask in self._words(writer, path, 0):
                scope = editor.constant_u32(_WORKGROUP_SCOPE)
                writer.op(Op.AtomicOr, u32, self._pointer(writer, word), scope, zero, mask)

        if conditions:
            writer.when(writer.all_of(conditions), write)
        else:
            write()

    def _pointer(self, writer: Writer, word: int) -> int:
        kind = self._editor.pointer(StorageClass.Workgroup, self._editor.u32())
        return writer.op(Op.AccessChain, kind, self._variable, word)

    def _component(self, writer: Writer, path: Path) -> int:
        editor, u32 = self._editor, self._editor.u32()
        assert path.component is not None
        component = editor.constant_u32(path.component)
        for index, count in path.components:
            value = self._checks.as_u32(writer, index)[0]
            value = writer.op(Op.IMul, u32, value, editor.constant_u32(count))
            component = writer.op(Op.IAdd, u32, component, value)
        return component

    def _words(self, writer: Writer, path: Path, is_in_range: int) -> list[tuple[int, int]]:
        """Returns the words and masks of a path's bits; word 0 if ``is_in_range`` is passed and false."""
        editor, u32, paths = self._editor, self._editor.u32(), self._checks.paths
        constant = editor.constant_u32
        count = paths.scalars(path.pointee) or 1
        first = 32 * self._shadows[path.variable].first
        if not path.components:
            assert path.component is not None
            start = first + path.component
            words = []
            for word in range(start // 32, (start + count - 1) // 32 + 1):
                low, high = max(start - 32 * word, 0), min(start + count - 32 * word, 32)
                words.append((constant(word), constant((1 << high) - (1 << low))))
            return words
        start_id = writer.op(Op.IAdd, u32, self._component(writer, path), constant(first))
        if is_in_range:
            start_id = writer.op(Op.Select, u32, is_in_range, start_id, constant(0))
        words = []
        shift = writer.op(Op.BitwiseAnd, u32, start_id, constant(31))
        word_id = writer.op(Op.ShiftRightLogical, u32, start_id, constant(5))
        for at in range(0, count, 32):
            mask = constant((1 << min(count - at, 32)) - 1)
            word_index = writer.op(Op.IAdd, u32, word_id, constant(at // 32))
            words.append((word_index, writer.op(Op.ShiftLeftLogical, u32, mask, shift)))
            if count > 1:
                # The bits beyond the word; none for a shift of 0.
                half = writer.op(Op.ShiftRightLogical, u32, mask, constant(1))
                rest = writer.op(Op.ShiftRightLogical, u32, half, writer.op(Op.ISub, u32, constant(31), shift))
                words.append((writer.op(Op.IAdd, u32, word_index, constant(1)), rest))
        return words


_ATOMICS: Final = frozenset(
    opcode for opcode, name in Op.names.items() if name.startswith("Atomic") and not name.startswith("AtomicFlag")
)
