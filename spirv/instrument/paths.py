"""Targets of pointers: the root, the indices on the way, and the bytes within a block.

Pointers are followed back through access chains within one function. A function's parameter stands for a variable if
every call passes that variable.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from ...base.lazy_dataclass import dataclass
from ..binary.grammar import LAYOUTS, Decoration, Op, StorageClass
from ..reflection.constants import Constant
from .editor import Editor, Words, opcode_of

CHAINS: Final = frozenset({Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain})
POINTER_CHAINS: Final = frozenset({Op.PtrAccessChain, Op.InBoundsPtrAccessChain})
_WITH_RESULT: Final = frozenset(
    opcode for opcode, layout in LAYOUTS.items() if layout.operands[:2] == ("IdResultType", "IdResult")
)
_SCALARS: Final = (Op.TypeInt, Op.TypeFloat)


def result_of(instruction: Words) -> int:
    """Returns the id of an instruction's result, 0 if it has none or no type."""
    return instruction[2] if opcode_of(instruction) in _WITH_RESULT else 0


@dataclass(frozen=True, slots=True)
class Step:
    """One index of a path that may be out of range.

    Attributes:
        index: the index's id.
        length: the id of the constant that the index is less than; 0 for a run-time array.
        rule: the failed check in reports, ``index`` or ``descriptor``.
        struct, member: for a run-time array, the type of the block and the number of its member.
        chain, operand: the access chain that has the index, and the word in it.
    """

    index: int
    length: int
    rule: str
    struct: int
    member: int
    chain: int
    operand: int


@dataclass(slots=True)
class Path:
    """The target of a pointer.

    Attributes:
        root: the id that the chains start from.
        variable: the variable that the root denotes; 0 if unknown.
        storage: the storage class.
        pointee: the type of the target.
        steps: the indices that may be out of range.
        name: the name in reports.
        offset, strides: the bytes from the start of the block, a constant and (index, bytes); ``None`` if not laid out.
        size: the bytes of the target, ``None`` if unknown.
        is_runtime: whether it lies within a run-time array of the block.
        components: the offset in scalars from the start of the variable, in the form of ``offset`` and ``strides``; for
            types without layout.
        descriptor: the id of the index into an array of descriptors, or 0.
    """

    root: int
    variable: int
    storage: int
    pointee: int
    steps: list[Step] = dataclasses.field(default_factory=list)
    name: str = ""
    offset: int | None = 0
    strides: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    size: int | None = None
    is_runtime: bool = False
    component: int | None = 0
    components: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    descriptor: int = 0


class Paths:
    """The paths of a module's pointers, function by function.

    Args:
        constants: the module's constants, for the lengths of arrays.
        descriptors: the number of descriptors bound at the (set, binding) of each run-time array.
    """

    def __init__(
        self, editor: Editor, constants: dict[int, Constant], descriptors: Mapping[tuple[int, int], int]
    ) -> None:
        self._descriptors = descriptors
        self.editor = editor
        self._constants = constants
        self._locals: dict[int, Words] = {}
        self._parameters = _parameter_variables(editor)
        self._runtime_member = 0, 0

    def enter(self, body: list[Words]) -> None:
        """Switches to another function."""
        self._locals = {result: instruction for instruction in body if (result := result_of(instruction))}

    def define(self, instruction: Words) -> None:
        """Adds an instruction that a pass wrote to the current function."""
        self._locals[result_of(instruction)] = instruction

    def definition(self, value: int) -> Words:
        """Returns the instruction that defines a value, ``()`` if it is not known."""
        return self._locals.get(value) or self.editor.defs.get(value) or ()

    def binding_of(self, variable: int) -> tuple[int, int] | None:
        """Returns the descriptor set and binding of a variable, ``None`` if it has none."""
        number = self.editor.decoration(variable, Decoration.Binding)
        if number is None:
            return None
        return self.editor.decoration(variable, Decoration.DescriptorSet) or 0, number

    def type_of(self, value: int) -> int:
        """Returns the type of a value, 0 if it is not known."""
        definition = self.definition(value)
        return definition[1] if definition else 0

    def literal(self, value: int) -> int | None:
        """Returns the unsigned value of an integer constant; ``None`` if it may be specialised."""
        definition = self.editor.defs.get(value, ())
        if not definition:
            return None
        if opcode_of(definition) == Op.ConstantNull:
            return 0
        if opcode_of(definition) != Op.Constant or opcode_of(self.editor.defs[definition[1]]) != Op.TypeInt:
            return None
        return definition[3] | (definition[4] << 32 if len(definition) > 4 else 0)

    def length(self, value: int) -> int | None:
        """Returns an array's length at the constants' current values."""
        constant = self._constants.get(value)
        return constant.value if constant is not None and type(constant.value) is int else None

    def walk(self, pointer: int) -> Path | None:
        """Returns the path of a pointer, ``None`` for an unknown pointer."""
        chains: list[Words] = []
        at = pointer
        while True:
            definition = self.definition(at)
            opcode = opcode_of(definition) if definition else 0
            if opcode in CHAINS:
                chains.append(definition)
            elif opcode != Op.CopyObject:
                break
            at = definition[3]
        pointer_type = self.editor.defs.get(self.type_of(at), ())
        if not pointer_type or opcode_of(pointer_type) != Op.TypePointer:
            return None
        storage, pointee = pointer_type[2:4]
        variable = self._parameters.get(at, 0) if opcode == Op.FunctionParameter else 0
        if opcode == Op.Variable:
            variable = at
        path = Path(at, variable, storage, pointee, name=self._name(variable or at, pointee))
        if chains and opcode_of(chains[-1]) in POINTER_CHAINS and storage != StorageClass.PhysicalStorageBuffer:
            path.offset = path.component = None  # an element after the root: their number is unknown
        matrix: tuple[int, bool] = (0, False)
        for chain in reversed(chains):
            first = 5 if opcode_of(chain) in POINTER_CHAINS else 4
            if first == 5:
                path.name += "[]"
                path.offset = path.component = None
            for operand in range(first, len(chain)):
                matrix = self._step(path, chain, operand, matrix)
        path.size = self._size(path.pointee, *matrix)
        return path

    def _name(self, root: int, pointee: int) -> str:
        editor = self.editor
        of = editor.defs.get(pointee, ())
        while of and opcode_of(of) in (Op.TypeArray, Op.TypeRuntimeArray):
            of = editor.defs.get(of[2], ())
        struct = editor.names.get(of[1], "") if of and opcode_of(of) == Op.TypeStruct else ""
        return editor.names.get(root, "") or struct

    def _step(self, path: Path, chain: Words, operand: int, matrix: tuple[int, bool]) -> tuple[int, bool]:
        """Follows one index; returns a matrix's stride and order if the index selects a column or row."""
        editor = self.editor
        index, of = chain[operand], editor.defs[path.pointee]
        opcode = opcode_of(of)
        stride: int | None = None
        if opcode == Op.TypeStruct:
            member = self.literal(index) or 0
            path.pointee = of[2 + member]
            name = editor.member_names.get((of[1], member), "")
            path.name += f".{name or f'member{member}'}" if path.name else name
            start = editor.member_decoration(of[1], member, Decoration.Offset)
            path.offset = None if path.offset is None or start is None else path.offset + start
            if path.component is not None:
                counts = [self.scalars(member_type) for member_type in of[2 : 2 + member]]
                path.component = None if None in counts else path.component + sum(counts)  # type: ignore[arg-type]
            inner = editor.defs.get(path.pointee, ())
            if inner and opcode_of(inner) == Op.TypeRuntimeArray:
                self._runtime_member = (of[1], member)
            matrix_stride = editor.member_decoration(of[1], member, Decoration.MatrixStride) or 0
            return matrix_stride, editor.member_decoration(of[1], member, Decoration.RowMajor) is not None
        if opcode in (Op.TypeArray, Op.TypeRuntimeArray):
            path.pointee = of[2]
            path.name += "[]"
            block = editor.decoration(of[2], Decoration.Block) is not None
            block = block or editor.decoration(of[2], Decoration.BufferBlock) is not None
            resource = path.storage in (StorageClass.Uniform, StorageClass.StorageBuffer)
            if path.storage == StorageClass.UniformConstant or (resource and block):
                path.descriptor = index
                count = self._descriptors.get(self.binding_of(path.variable) or (-1, -1), 0)
                if opcode == Op.TypeArray:
                    self._limited(path, chain, operand, of[3], "descriptor")
                elif count:
                    self._limited(path, chain, operand, editor.constant_u32(count), "descriptor")
                return matrix
            if opcode == Op.TypeArray:
                self._limited(path, chain, operand, of[3], "index")
            else:
                path.is_runtime = True
                if path.storage != StorageClass.PhysicalStorageBuffer:
                    struct, member = self._runtime_member
                    path.steps.append(Step(index, 0, "index", struct, member, chain[2], operand))
            stride = editor.decoration(of[1], Decoration.ArrayStride)
        elif opcode == Op.TypeMatrix:
            path.pointee = of[2]
            path.name += "[]"
            self._limited(path, chain, operand, editor.constant_u32(of[3]), "index")
            scalar = self._size(editor.defs[of[2]][2])
            stride = scalar if matrix[1] else matrix[0] or None
        elif opcode == Op.TypeVector:
            path.pointee = of[2]
            if self.literal(index) is None:
                path.name += "[]"
            self._limited(path, chain, operand, editor.constant_u32(of[3]), "index")
            stride = matrix[0] if matrix[1] else self._size(of[2])
        else:
            path.offset = path.component = None
            return matrix
        self._add(path, index, stride)
        return matrix

    def _add(self, path: Path, index: int, stride: int | None) -> None:
        literal = self.literal(index)
        if path.offset is not None:
            if stride is None:
                path.offset = None
            elif literal is None:
                path.strides.append((index, stride))
            else:
                path.offset += literal * stride
        if path.component is not None:
            count = self.scalars(path.pointee)
            if count is None:
                path.component = None
            elif literal is None:
                path.components.append((index, count))
            else:
                path.component += literal * count

    def _limited(self, path: Path, chain: Words, operand: int, length: int, rule: str) -> None:
        literal, limit = self.literal(chain[operand]), self.literal(length)
        if literal is not None and limit is not None and literal < limit:
            return
        path.steps.append(Step(chain[operand], length, rule, 0, 0, chain[2], operand))

    def scalars(self, type_id: int) -> int | None:
        """Returns the number of scalars in a type, or ``None`` if it is unknown."""
        of = self.editor.defs.get(type_id, ())
        opcode = opcode_of(of) if of else 0
        if opcode in (*_SCALARS, Op.TypeBool, Op.TypePointer):
            return 1
        if opcode in (Op.TypeVector, Op.TypeMatrix):
            inner = self.scalars(of[2])
            return None if inner is None else of[3] * inner
        if opcode == Op.TypeArray:
            inner, length = self.scalars(of[2]), self.length(of[3])
            return None if inner is None or length is None else inner * length
        if opcode == Op.TypeStruct:
            counts = [self.scalars(member) for member in of[2:]]
            return None if None in counts else sum(counts)  # type: ignore[arg-type]
        return None

    def _size(self, type_id: int, matrix_stride: int = 0, row_major: bool = False) -> int | None:
        """Returns the bytes of a type in a block, up to its last byte; ``None`` if unknown."""
        editor = self.editor
        of = editor.defs.get(type_id, ())
        opcode = opcode_of(of) if of else 0
        if opcode in _SCALARS:
            return of[2] // 8
        if opcode == Op.TypePointer:
            return 8
        if opcode == Op.TypeVector:
            scalar = self._size(of[2])
            if scalar is None:
                return None
            return (of[3] - 1) * (matrix_stride if row_major and matrix_stride else scalar) + scalar
        if opcode == Op.TypeMatrix:
            column = editor.defs[of[2]]
            scalar = self._size(column[2])
            if scalar is None or not matrix_stride:
                return None
            rows, columns = (of[3], column[3]) if row_major else (column[3], of[3])
            return (columns - 1) * matrix_stride + rows * scalar
        if opcode == Op.TypeArray:
            inner, length = self._size(of[2], matrix_stride, row_major), self.length(of[3])
            stride = editor.decoration(type_id, Decoration.ArrayStride)
            return None if inner is None or length is None or stride is None else (length - 1) * stride + inner
        if opcode == Op.TypeStruct:
            end = 0
            for member, inner_type in enumerate(of[2:]):
                start = editor.member_decoration(type_id, member, Decoration.Offset)
                stride = editor.member_decoration(type_id, member, Decoration.MatrixStride) or 0
                is_rows = editor.member_decoration(type_id, member, Decoration.RowMajor) is not None
                inner = self._size(inner_type, stride, is_rows)
                if start is None or inner is None:
                    return None
                end = max(end, start + inner)
            return end
        return None


def _parameter_variables(editor: Editor) -> dict[int, int]:
    """Returns the variables that function parameters stand for, where all calls pass the same variable."""
    parameters: dict[int, list[int]] = {}
    for body in editor.functions:
        parameters[body[0][2]] = [item[2] for item in body if opcode_of(item) == Op.FunctionParameter]
    passed: dict[int, set[int]] = {}
    for body in editor.functions:
        for item in body:
            if opcode_of(item) == Op.FunctionCall:
                for parameter, argument in zip(parameters.get(item[3], ()), item[4:], strict=False):
                    passed.setdefault(parameter, set()).add(argument)
    variables: dict[int, int] = {}
    changed = True
    while changed:
        changed = False
        for parameter, arguments in passed.items():
            roots = {variables.get(item, item) for item in arguments}
            if parameter not in variables and len(roots) == 1:
                (root,) = roots
                declared = editor.defs.get(root, ())
                if declared and opcode_of(declared) == Op.Variable:
                    variables[parameter] = root
                    changed = True
    return variables
