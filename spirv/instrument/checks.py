"""The common part of all access checks: noted failures, comparisons, and bound ranges."""

from __future__ import annotations

import dataclasses
from typing import Final

from ...base.lazy_dataclass import dataclass
from ..binary.grammar import ENUMERATIONS, Decoration, Op, StorageClass
from ..reflection.module import Module
from .editor import Editor, opcode_of
from .paths import Path, Paths
from .reporter import Reporter
from .reports import Site
from .rewrite import Writer

_CAPABILITY: Final = ENUMERATIONS["Capability"]
_NARROW: Final = {
    (Op.TypeInt, 8): _CAPABILITY.Int8,
    (Op.TypeInt, 16): _CAPABILITY.Int16,
    (Op.TypeFloat, 16): _CAPABILITY.Float16,
}
#: Capabilities of arithmetic on narrow types, by the Vulkan feature that allows them.
NARROW_CAPABILITIES: Final = {
    "shaderInt8": _CAPABILITY.Int8,
    "shaderInt16": _CAPABILITY.Int16,
    "shaderFloat16": _CAPABILITY.Float16,
}
# By the size in bytes of the smallest type that a buffer may hold.
_STORED: Final = {
    1: (_CAPABILITY.StorageBuffer8BitAccess, _CAPABILITY.UniformAndStorageBuffer8BitAccess),
    2: (_CAPABILITY.StorageBuffer16BitAccess, _CAPABILITY.UniformAndStorageBuffer16BitAccess),
}


@dataclass(frozen=True, slots=True)
class SanitizeOptions:
    """Facts about the device and the host.

    Attributes:
        workgroup_bytes: the size of the device's workgroup memory, in bytes.
        zero_workgroup: whether the device zeroes workgroup memory that has an initializer.
        capabilities: the device's capabilities, of Float16, Int8 and Int16.
        descriptors: the number of descriptors bound at the (set, binding) of each run-time array.
    """

    workgroup_bytes: int = 32768
    zero_workgroup: bool = True
    capabilities: frozenset[int] = frozenset(_NARROW.values())
    descriptors: dict[tuple[int, int], int] = dataclasses.field(default_factory=dict)


class Checks:
    """The state of the pass over one module.

    Attributes:
        unwatched: the descriptions of unchecked accesses.
    """

    def __init__(self, editor: Editor, code: bytes, reporter: Reporter, options: SanitizeOptions) -> None:
        self.editor = editor
        self.reporter = reporter
        self.options = options
        self.unwatched: dict[str, None] = {}
        self.module: Module = Module(code)
        self.paths: Paths = Paths(editor, self.module.constants, options.descriptors)
        self._aliases: dict[int, tuple[int, int]] = {}

    def note(self, writer: Writer, is_well: int, site: Site, low: int, high: int, limit: int) -> None:
        """Notes a failure unless a condition holds; all arguments but the site are ids."""
        is_bad = writer.op(Op.LogicalNot, self.editor.bool_type(), is_well)
        self.reporter.note(writer, is_bad, self.reporter.number_of(site), low, high, limit)

    def compare(self, writer: Writer, value: int, limit: int, site: Site, axis: int | None = None) -> int:
        """Emits ``value < limit`` and notes a failure, with ``axis`` in place of the value's high word; returns the
        condition.
        """
        editor = self.editor
        low, high, is_wide = self.as_u32(writer, value)
        is_below = writer.op(Op.ULessThan, editor.bool_type(), low, limit)
        if is_wide:
            is_short = writer.op(Op.IEqual, editor.bool_type(), high, editor.constant_u32(0))
            is_below = writer.op(Op.LogicalAnd, editor.bool_type(), is_below, is_short)
        self.note(writer, is_below, site, low, high if axis is None else editor.constant_u32(axis), limit)
        return is_below

    def may_compute(self, types: list[int]) -> bool:
        """Whether values of these types may be computed with, and pointers to them formed.

        Types of 8 and 16 bits need a capability for that; it is declared here.
        """
        needed: set[int] = set()
        seen: set[int] = set()
        pending = list(types)
        while pending:
            of = self.editor.defs.get(pending.pop(), ())
            if not of or of[1] in seen:
                continue
            seen.add(of[1])
            opcode = opcode_of(of)
            if opcode in (Op.TypeInt, Op.TypeFloat):
                needed |= {_NARROW[opcode, of[2]]} if (opcode, of[2]) in _NARROW else set()
            elif opcode == Op.TypeStruct:
                pending += of[2:]
            elif opcode in (Op.TypeVector, Op.TypeMatrix, Op.TypeArray, Op.TypeRuntimeArray):
                pending.append(of[2])
            elif opcode == Op.TypePointer:
                pending.append(of[3])
        needed = {capability for capability in needed if not self.editor.has_capability(capability)}
        if not needed <= self.options.capabilities:
            self.unwatched["accesses to types of 8 and 16 bits, with which the device does not compute"] = None
            return False
        for capability in needed:
            self.editor.capability(capability)
        return True

    def range_of(self, writer: Writer, path: Path, descriptor: int) -> int:
        """Returns the bytes bound to a storage buffer's variable; ``descriptor`` is an index in range."""
        editor = self.editor
        alias, unit = self._alias(path.variable)
        pointer = alias
        if path.descriptor:
            block = editor.defs[editor.defs[editor.defs[alias][1]][3]][2]
            kind = editor.pointer(editor.defs[alias][3], block)
            pointer = writer.op(Op.AccessChain, kind, alias, descriptor)
            if editor.decoration(path.descriptor, Decoration.NonUniform) is not None:
                editor.decorate(pointer, Decoration.NonUniform)
        length = writer.op(Op.ArrayLength, editor.u32(), pointer, 0)
        return writer.op(Op.IMul, editor.u32(), length, editor.constant_u32(unit))

    def _alias(self, variable: int) -> tuple[int, int]:
        """Returns an array of bytes or words at a variable's binding, and the bytes of an element."""
        aliasing = self._aliases.get(variable)
        if aliasing is not None:
            return aliasing
        editor = self.editor
        unit = next((size for size, of in _STORED.items() if any(map(editor.has_capability, of))), 4)
        storage = editor.defs[variable][3]
        element = editor.u32() if unit == 4 else editor.type(Op.TypeInt, 8 * unit, 0)
        pointee = editor.words_block(stride=unit, element=element, is_uniform=storage == StorageClass.Uniform)
        of = editor.defs[editor.defs[editor.defs[variable][1]][3]]
        if opcode_of(of) == Op.TypeArray:
            pointee = editor.type(Op.TypeArray, pointee, of[3])
        elif opcode_of(of) == Op.TypeRuntimeArray:
            pointee = editor.type(Op.TypeRuntimeArray, pointee)
        alias = editor.variable(storage, pointee, name="pumice_range")
        for decoration in (Decoration.DescriptorSet, Decoration.Binding):
            editor.decorate(alias, decoration, editor.decoration(variable, decoration) or 0)
        self._aliases[variable] = alias, unit
        return alias, unit

    def as_u32(self, writer: Writer, value: int) -> tuple[int, int, bool]:
        """Returns the low and high word of an integer, and whether its high word may be more than its sign."""
        editor = self.editor
        declared = editor.defs[self.paths.type_of(value)]
        width, is_signed = declared[2], bool(declared[3])
        u32, zero = editor.u32(), editor.constant_u32(0)
        if width == 64:
            high = writer.op(Op.ShiftRightLogical, declared[1], value, editor.constant_u32(32))
            return writer.op(Op.UConvert, u32, value), writer.op(Op.UConvert, u32, high), True
        if width < 32:
            value = writer.op(Op.SConvert if is_signed else Op.UConvert, u32, value)
        elif is_signed:
            value = writer.op(Op.Bitcast, u32, value)
        if not is_signed:
            return value, zero, False
        return value, writer.op(Op.ShiftRightArithmetic, u32, value, editor.constant_u32(31)), False
