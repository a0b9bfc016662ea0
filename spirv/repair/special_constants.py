"""Zeros, infinities and NaNs as float constants, hidden from a driver that folds them incorrectly.

Mesa's llvmpipe folds ``x * 0`` and ``0 / x`` to 0 and ``x + 0`` to x, and treats ``x / 0`` as undefined, so that a
store of it disappears. This concerns every operand that turns out to be constant: literally, through a variable or a
phi, or as the converted counter of an unrolled loop. Source: ``lp_build_add``, ``lp_build_mul`` and ``lp_build_div`` in
Mesa's src/gallium/auxiliary/gallivm/lp_bld_arit.c.

Uses of such a constant by instructions that compute, move or store it are replaced, and conversions of possibly
constant integers are hidden. Values that become zero only by the driver's own folding of other constants are not found:
compilers fold these beforehand.
"""

from __future__ import annotations

from typing import Final

from ..binary.grammar import LAYOUTS, Op, StorageClass, opcodes_of, operand_kinds
from ..instrument.editor import Editor, Words, opcode_of
from ..instrument.rewrite import Writer
from ..reflection.reflection_types import ShaderModuleReflection
from .opaque import Hider, can_hide

_SET: Final = "GLSL.std.450"
_SPECIALIZED: Final = Op.numbers("SpecConstant SpecConstantComposite SpecConstantOp")
_USERS: Final = frozenset(
    (*opcodes_of("Arithmetic", "Relational_and_Logical"), Op.FunctionCall, Op.ReturnValue, Op.Store, Op.CopyObject)
) | Op.numbers("CompositeConstruct CompositeInsert CompositeExtract VectorShuffle VectorExtractDynamic FConvert Phi")
_CONVERSIONS: Final = (Op.ConvertSToF, Op.ConvertUToF, Op.Bitcast)
_UNKNOWN: Final = (Op.Phi, Op.FunctionParameter, Op.FunctionCall)
_MEMORY: Final = (StorageClass.Function, StorageClass.Private)
_PURE: Final = frozenset((*opcodes_of("Arithmetic", "Bit", "Conversion", "Composite", "Relational_and_Logical"),))
# The exponent and the mantissa of a scalar's most significant word, by bits.
_EXPONENTS: Final = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF00000}


def with_hidden_specials(code: bytes, reflection: ShaderModuleReflection) -> bytes:
    """Returns a valid module whose special constants a driver does not know; the same bytes if it has none."""
    editor = Editor(code)
    if not can_hide(editor):
        return code
    hiding = _Hiding(editor)
    bodies = [hiding.rewritten(body) for body in editor.functions]
    if not hiding.has_changed:
        return code
    editor.functions[:] = bodies
    return editor.code()


class _Hiding:
    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._sets = {id for id, name in editor.sets.items() if name == _SET}
        self._specials = {id: words[1] for id, words in editor.defs.items() if self._is_special(words)}
        self._defs: dict[int, Words] = {}
        self.has_changed = False

    def rewritten(self, body: list[Words]) -> list[Words]:
        """Returns a function's body with hidden constants."""
        hider, writer = Hider(self._editor), Writer(self._editor)
        self._defs = {words[2]: words for words in body if len(words) > 2 and _has_result(words)}
        changed = False
        for instruction in body:
            opcode = opcode_of(instruction)
            if opcode in _USERS or (opcode == Op.ExtInst and instruction[3] in self._sets):
                replaced = self._replaced(instruction, hider)
                changed = changed or replaced != instruction
                instruction = replaced
            elif opcode in _CONVERSIONS and self._bits(instruction[1]) and self._may_be_constant(instruction[3], set()):
                kind, result, value = instruction[1:]
                hider.hidden(writer, kind, writer.op(opcode, kind, value), result)
                changed = True
                continue
            writer.put(instruction)
        if not changed:
            return body
        self.has_changed = True
        return hider.started(writer.out)

    def _replaced(self, instruction: Words, hider: Hider) -> Words:
        if self._specials.keys().isdisjoint(instruction[1:]):
            return instruction
        words = list(instruction)
        for at, kind in operand_kinds(instruction, 0, len(instruction)):
            if kind == "IdRef" and (type_id := self._specials.get(words[at])) is not None:
                words[at] = hider.constant(words[at], type_id)
        return tuple(words)

    def _may_be_constant(self, value: int, passed: set[int]) -> bool:
        """Whether a driver may find an integer to be constant, by propagation or by unrolling a loop."""
        if value in passed:
            return True
        words = self._defs.get(value)
        if words is None:
            return value in self._editor.defs
        passed.add(value)
        opcode = opcode_of(words)
        if opcode == Op.Load:
            return self._storage_of(words[3]) in _MEMORY
        if opcode in _PURE:
            ids = [words[at] for at, kind in operand_kinds(words, 0, len(words)) if kind == "IdRef"]
            return all(self._may_be_constant(id, passed) for id in ids)
        return opcode in _UNKNOWN

    def _storage_of(self, pointer: int) -> int:
        words = self._defs.get(pointer) or self._editor.defs.get(pointer)
        if words is None:
            return StorageClass.Function  # a parameter
        return self._editor.defs[words[1]][2]

    # -- constants -------------------------------------------------------------------------------------

    def _is_special(self, words: Words) -> bool:
        opcode = opcode_of(words)
        if opcode in (Op.Constant, Op.ConstantNull, Op.ConstantComposite) or opcode in _SPECIALIZED:
            bits = self._bits(words[1])
            if not bits:
                return False
            if opcode == Op.ConstantComposite:
                return any(self._is_special(self._editor.defs[member]) for member in words[3:])
            return opcode != Op.Constant or _is_special(words[3:], bits)
        return False

    def _bits(self, type_id: int) -> int:
        """Returns the width of a float, or of a vector's floats; 0 for other types, including bfloat16."""
        declared = self._editor.defs[type_id]
        if opcode_of(declared) == Op.TypeVector:
            return self._bits(declared[2])
        is_plain = opcode_of(declared) == Op.TypeFloat and len(declared) == 3 and declared[2] in _EXPONENTS
        return declared[2] if is_plain else 0


def _is_special(words: Words, bits: int) -> bool:
    exponent = words[-1] & _EXPONENTS[bits]
    is_zero = not any(words[:-1]) and not words[-1] & ((1 << min(bits, 32) - 1) - 1)
    return is_zero or exponent == _EXPONENTS[bits]


def _has_result(words: Words) -> bool:
    layout = LAYOUTS.get(opcode_of(words))
    return layout is not None and layout.operands[:2] == ("IdResultType", "IdResult")
