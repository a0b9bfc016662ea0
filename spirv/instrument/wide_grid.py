"""Grids of more workgroups in x than a device dispatches: the rest of each row runs in further rows of the grid.

The shader sees the grid that was asked for. Its built-ins that tell a workgroup's place become variables, which a new
entry point computes before it calls the old one; workgroups past the end of a row return at once. All of it is decided
by the workgroup, so barriers hold.
"""

from __future__ import annotations

from typing import Final

from ...status import UnimplementedError
from ..binary.grammar import BuiltIn, Decoration, ExecutionModel, Op, StorageClass, opcodes_of
from ..binary.words import BOUND, HEADER_WORDS, encode, pack
from ..reflection.module import Module

Counts = tuple[int, int, int]

_MAX_NUMBERS: Final = 1 << 32
_CHAINS: Final = frozenset({Op.AccessChain, Op.InBoundsAccessChain})
_ANNOTATED: Final = frozenset(opcodes_of("Type-Declaration"))
_BUILT_INS: Final = (BuiltIn.WorkgroupId, BuiltIn.NumWorkgroups, BuiltIn.GlobalInvocationId)


def split_counts(counts: Counts, most: Counts, width: int) -> Counts | None:
    """Returns the workgroup counts of a grid that is split over y; ``None`` where it needs no split, or too many.

    Args:
        counts, most: the workgroups that are asked for, and those that a device dispatches at most.
        width: the local size in x. More invocations than 2**32 have no numbers of their own.
    """
    x, y, z = counts
    if x <= most[0] or x * width > _MAX_NUMBERS:
        return None
    parts = -(-x // most[0])
    split = -(-x // parts), y * parts, z
    return None if any(count > limit for count, limit in zip(split, most, strict=True)) else split


def with_wide_grid(code: bytes, entry_point: str, local_size: Counts, counts: Counts, split: Counts) -> bytes:
    """Returns a module whose one entry point runs a grid of ``counts`` workgroups where ``split`` ones are dispatched.

    Raises:
        UnimplementedError: the shader passes a built-in on by its address.
    """
    return _WideGrid(Module(code), entry_point, local_size, counts, split).code()


class _WideGrid:
    """Rewrites one module; used once."""

    def __init__(self, module: Module, entry_point: str, local_size: Counts, counts: Counts, split: Counts) -> None:
        self._module = module
        self._local_size, self._counts, self._split = local_size, counts, split
        model = ExecutionModel.GLCompute
        entries = [function for kind, function, name in module.entry_points if (kind, name) == (model, entry_point)]
        self._entry = entries[0]
        self._next = module.binary.bound
        self._globals: list[int] = []
        self._annotations: list[int] = []
        self._constants: dict[int, int] = {}
        of = {module.decoration(variable.id, Decoration.BuiltIn): variable for variable in module.variables.values()}
        self._inputs = {b: of[b].id for b in _BUILT_INS if b in of and of[b].storage_class == StorageClass.Input}

    def code(self) -> bytes:
        module, words = self._module, self._module.words
        self._declare_types()
        if BuiltIn.WorkgroupId not in self._inputs:
            pointer = self._global(Op.TypePointer, StorageClass.Input, self._vector)
            added = self._inputs[BuiltIn.WorkgroupId] = self._global(Op.Variable, pointer, None, StorageClass.Input)
            self._annotations += encode(Op.Decorate, added, Decoration.BuiltIn, BuiltIn.WorkgroupId)
        self._private = self._global(Op.TypePointer, StorageClass.Private, self._vector)
        self._component = self._global(Op.TypePointer, StorageClass.Private, self._uint)
        places = {
            self._inputs[b]: self._global(Op.Variable, self._private, None, StorageClass.Private) for b in self._inputs
        }
        wrapper, body = self._new(), self._wrapper(places)
        result = list(words[:HEADER_WORDS])
        annotated = in_functions = False
        for opcode, start, end in module.binary:
            instruction = list(words[start:end])
            if opcode == Op.EntryPoint:
                if instruction[2] != self._entry:
                    continue
                instruction = self._entry_point(instruction, wrapper, places)
            elif opcode in (Op.ExecutionMode, Op.ExecutionModeId):
                if instruction[1] != self._entry:
                    continue
                instruction[1] = wrapper
            elif not annotated and opcode in _ANNOTATED:
                annotated = True
                result += self._annotations
            elif opcode == Op.Function and not in_functions:
                in_functions = True
                result += self._globals
            if in_functions:
                instruction = self._moved(opcode, instruction, places)
            result += instruction
        result += self._function(wrapper, body)
        result[BOUND] = self._next
        return pack(result)

    # -- declarations --------------------------------------------------------------------------------

    def _new(self) -> int:
        self._next += 1
        return self._next - 1

    def _global(self, opcode: int, *operands: int | None) -> int:
        """Declares something; ``None`` stands for its id where that is not the first operand."""
        result = self._new()
        filled = [result if operand is None else operand for operand in operands]
        self._globals += encode(opcode, *(filled if None in operands else [result, *filled]))
        return result

    def _declare_types(self) -> None:
        words = self._module.words
        known: dict[tuple[int, ...], int] = {}
        for opcode, start, end in self._module.binary:
            if opcode in (Op.TypeInt, Op.TypeVector, Op.TypeBool, Op.TypeVoid):
                known[opcode, *words[start + 2 : end]] = words[start + 1]
            elif opcode == Op.Function and words[start + 2] == self._entry:
                self._void, self._signature = words[start + 1], words[start + 4]
        self._uint = known.get((Op.TypeInt, 32, 0)) or self._global(Op.TypeInt, 32, 0)
        self._vector = known.get((Op.TypeVector, self._uint, 3)) or self._global(Op.TypeVector, self._uint, 3)
        self._bool = known.get((Op.TypeBool,)) or self._global(Op.TypeBool)

    def _constant(self, value: int) -> int:
        if value not in self._constants:
            self._constants[value] = self._global(Op.Constant, self._uint, None, value)
        return self._constants[value]

    # -- the shader's own code -----------------------------------------------------------------------

    def _entry_point(self, instruction: list[int], wrapper: int, places: dict[int, int]) -> list[int]:
        instruction[2] = wrapper
        at = 3
        while all(instruction[at] >> shift & 0xFF for shift in (0, 8, 16, 24)):  # the name
            at += 1
        at += 1
        interface = dict.fromkeys([*instruction[at:], self._inputs[BuiltIn.WorkgroupId]])
        if self._module.binary.version >= (1, 4):
            interface |= dict.fromkeys(places.values())
        return list(encode(Op.EntryPoint, *instruction[1:at], *interface))

    def _moved(self, opcode: int, instruction: list[int], places: dict[int, int]) -> list[int]:
        """Returns an instruction that reads the variables in place of the built-ins."""
        if opcode == Op.Load and instruction[3] in places:
            instruction[3] = places[instruction[3]]
        elif opcode in _CHAINS and instruction[3] in places:
            instruction[1], instruction[3] = self._component, places[instruction[3]]
        elif opcode in (Op.FunctionCall, Op.CopyObject, Op.CopyMemory, Op.PtrAccessChain, Op.Select, Op.Phi) and not (
            places.keys().isdisjoint(instruction[2:])
        ):
            raise UnimplementedError("the shader passes a built-in variable on by its address")
        return instruction

    # -- the new entry point -------------------------------------------------------------------------

    def _wrapper(self, places: dict[int, int]) -> list[int]:
        """Returns the code that computes the built-ins' values and calls the shader, without the function around it."""
        code: list[int] = []

        def emit(opcode: int, of: int, *operands: int) -> int:
            result = self._new()
            code.extend(encode(opcode, of, result, *operands))
            return result

        def part(vector: int, index: int) -> int:
            return emit(Op.CompositeExtract, self._uint, vector, index)

        group = emit(Op.Load, self._vector, self._inputs[BuiltIn.WorkgroupId])
        x, row, z = (part(group, axis) for axis in range(3))
        parts = self._constant(self._split[1] // self._counts[1])
        y = emit(Op.UDiv, self._uint, row, parts)
        moved = emit(Op.IMul, self._uint, emit(Op.UMod, self._uint, row, parts), self._constant(self._split[0]))
        whole = emit(Op.IAdd, self._uint, x, moved)
        values = {
            BuiltIn.WorkgroupId: (whole, y, z),
            BuiltIn.NumWorkgroups: tuple(self._constant(count) for count in self._counts),
        }
        if BuiltIn.GlobalInvocationId in self._inputs:
            invocation = emit(Op.Load, self._vector, self._inputs[BuiltIn.GlobalInvocationId])
            along = emit(Op.IMul, self._uint, moved, self._constant(self._local_size[0]))
            above = emit(Op.ISub, self._uint, row, y)
            above = emit(Op.IMul, self._uint, above, self._constant(self._local_size[1]))
            values[BuiltIn.GlobalInvocationId] = (
                emit(Op.IAdd, self._uint, part(invocation, 0), along),
                emit(Op.ISub, self._uint, part(invocation, 1), above),
                part(invocation, 2),
            )
        inside = emit(Op.ULessThan, self._bool, whole, self._constant(self._counts[0]))
        run, end = self._new(), self._new()
        code += encode(Op.SelectionMerge, end, 0)
        code += encode(Op.BranchConditional, inside, run, end)
        code += encode(Op.Label, run)
        for built_in, variable in self._inputs.items():
            value = emit(Op.CompositeConstruct, self._vector, *values[built_in])
            code += encode(Op.Store, places[variable], value)
        emit(Op.FunctionCall, self._void, self._entry)
        code += encode(Op.Branch, end)
        return [*code, *encode(Op.Label, end), *encode(Op.Return)]

    def _function(self, wrapper: int, body: list[int]) -> list[int]:
        head = [*encode(Op.Function, self._void, wrapper, 0, self._signature), *encode(Op.Label, self._new())]
        return [*head, *body, *encode(Op.FunctionEnd)]
