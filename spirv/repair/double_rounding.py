"""Rounding of doubles by ``Floor`` and ``Ceil``, for a driver whose other rounding instructions are wrong.

Mesa's llvmpipe rounds by an instruction of the CPU if a vector of eight values has the size of its registers. Otherwise
it rounds through integers, with constants that are meant for 32-bit floats: from 2**24 on a double keeps its fraction,
1.5 becomes 1, and zero loses its sign. Eight doubles are 512 bits, so every x86 without AVX-512 is affected. ``Floor``
and ``Ceil`` are always right. Source: ``arch_rounding_available``, ``lp_build_trunc`` and ``lp_build_iround`` in Mesa's
src/gallium/auxiliary/gallivm/lp_bld_arit.c; tried with version 22.3, the same in 26.1.

The wrong instructions are ``Trunc``, ``RoundEven`` and ``Round``; ``OpFRem``, which truncates a quotient; and
``OpConvertSToF`` of a result of ``OpConvertFToS``, which Mesa fuses to a truncation unless the second has to be exact.
"""

from __future__ import annotations

from typing import Final

from ..binary.grammar import Decoration, Op
from ..instrument.editor import Editor, Words, opcode_of
from ..instrument.rewrite import Writer
from ..reflection.reflection_types import ShaderModuleReflection

_SET: Final = "GLSL.std.450"
_TRUNC: Final = 3
_NEAREST: Final = (1, 2)  # Round and RoundEven
_FLOOR: Final = 8
_CEIL: Final = 9
_HALF: Final = (0, 0x3FE00000)


def with_exact_rounding(code: bytes, reflection: ShaderModuleReflection) -> bytes:
    """Returns a valid module that rounds doubles by ``Floor`` and ``Ceil`` only; the same bytes if it already does."""
    if "Float64" not in reflection.capabilities:
        return code
    editor = Editor(code)
    rounding = _Rounding(editor)
    editor.functions[:] = [rounding.rewritten(body) for body in editor.functions]
    return editor.code() if rounding.has_changed else code


class _Rounding:
    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._truncates = any(
            opcode_of(instruction) == Op.ConvertFToS for body in editor.functions for instruction in body
        )
        self._writer = Writer(editor)
        self.has_changed = False

    def rewritten(self, body: list[Words]) -> list[Words]:
        """Returns the rewritten instructions of a function."""
        self._writer = Writer(self._editor)
        for instruction in body:
            if self._replaces(instruction):
                self.has_changed = True
            else:
                self._writer.put(instruction)
        return self._writer.out

    def _replaces(self, instruction: Words) -> bool:
        """Whether the driver gets an instruction wrong; if so, emits correct instructions for its result."""
        opcode = opcode_of(instruction)
        if opcode not in (Op.ExtInst, Op.FRem, Op.ConvertSToF) or not self._is_double(instruction[1]):
            return False
        kind, result, *operands = instruction[1:]
        match operands:
            case [imported, function, x] if opcode == Op.ExtInst and self._editor.sets.get(imported) == _SET:
                if function == _TRUNC:
                    self._truncate(kind, x, result)
                elif function in _NEAREST:
                    self._round(kind, x, result)
                else:
                    return False
            case [x, y] if opcode == Op.FRem:
                whole = self._truncate(kind, self._writer.op(Op.FDiv, kind, x, y))
                self._exact(Op.FSub, kind, x, self._exact(Op.FMul, kind, y, whole), result=result)
            case [x] if self._truncates and self._editor.decoration(result, Decoration.NoContraction) is None:
                # Mesa 25 fuses the two to a truncation nevertheless, whose zeros may be negative.
                converted = self._exact(opcode, kind, x)
                self._exact(Op.FAdd, kind, converted, self._editor.null(kind), result=result)
            case _:
                return False
        return True

    def _truncate(self, kind: int, x: int, result: int = 0) -> int:
        is_negative = self._writer.op(Op.FOrdLessThan, self._boolean(kind), x, self._editor.null(kind))
        return self._writer.op(
            Op.Select, kind, is_negative, self._whole(_CEIL, kind, x), self._whole(_FLOOR, kind, x), result=result
        )

    def _round(self, kind: int, x: int, result: int) -> None:
        """Emits the nearer of the integers below and above, or the even integer on a tie.

        Distances are exact except from a number within 1/2 of zero to 1 or -1, and that distance is the larger in any
        case.
        """
        boolean = self._boolean(kind)
        lower, upper = self._whole(_FLOOR, kind, x), self._whole(_CEIL, kind, x)
        below, above = self._exact(Op.FSub, kind, x, lower), self._exact(Op.FSub, kind, upper, x)
        half = self._exact(Op.FMul, kind, lower, self._half(kind))
        is_even = self._writer.op(Op.FOrdEqual, boolean, half, self._whole(_FLOOR, kind, half))
        is_nearer = self._writer.op(Op.FOrdLessThan, boolean, below, above)
        is_near = self._writer.op(Op.FOrdLessThanEqual, boolean, below, above)
        is_tie = self._writer.op(Op.LogicalAnd, boolean, is_even, is_near)
        takes_lower = self._writer.op(Op.LogicalOr, boolean, is_nearer, is_tie)
        self._writer.op(Op.Select, kind, takes_lower, lower, upper, result=result)

    # -- instructions ----------------------------------------------------------------------------------

    def _exact(self, opcode: int, kind: int, *operands: int, result: int = 0) -> int:
        result = self._writer.op(opcode, kind, *operands, result=result)
        if self._editor.decoration(result, Decoration.NoContraction) is None:
            self._editor.decorate(result, Decoration.NoContraction)
        return result

    def _whole(self, function: int, kind: int, x: int) -> int:
        return self._writer.op(Op.ExtInst, kind, self._editor.instruction_set(_SET), function, x)

    # -- types -----------------------------------------------------------------------------------------

    def _is_double(self, kind: int) -> bool:
        declared = self._editor.defs[kind]
        if opcode_of(declared) == Op.TypeVector:
            return self._is_double(declared[2])
        return opcode_of(declared) == Op.TypeFloat and declared[2] == 64

    def _boolean(self, kind: int) -> int:
        declared = self._editor.defs[kind]
        boolean = self._editor.bool_type()
        is_vector = opcode_of(declared) == Op.TypeVector
        return self._editor.type(Op.TypeVector, boolean, declared[3]) if is_vector else boolean

    def _half(self, kind: int) -> int:
        declared = self._editor.defs[kind]
        if opcode_of(declared) != Op.TypeVector:
            return self._editor.constant(kind, *_HALF)
        return self._editor.composite(kind, *[self._half(declared[2])] * declared[3])
