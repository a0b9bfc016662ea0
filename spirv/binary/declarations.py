"""The declarations ahead of a module's functions: capabilities, types, constants, variables, decorations."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from .grammar import ENUMERATIONS, Decoration, ExecutionMode, ExecutionModel, Op, StorageClass
from .words import encode, pack, string_words

_MAGIC: Final = 0x07230203
_VERSION: Final = 0x00010300
_LOGICAL: Final = 0
_PHYSICAL: Final = 5348  # PhysicalStorageBuffer64
_ADDRESSES: Final = "PhysicalStorageBufferAddresses"
_GLSL450: Final = 1


class Kind(NamedTuple):
    """The type of an expression: its letter, its bits, and its component count.

    Letters are ``u`` for integers, ``s`` for signed integers of matrices, ``f`` for floats and ``b`` for booleans.
    """

    letter: str
    bits: int
    width: int = 1


BOOL: Final = Kind("b", 1)
U32: Final = Kind("u", 32)
U64: Final = Kind("u", 64)
S8: Final = Kind("s", 8)
U8: Final = Kind("u", 8)
U16: Final = Kind("u", 16)
S32: Final = Kind("s", 32)
F16: Final = Kind("f", 16)
F32: Final = Kind("f", 32)
F64: Final = Kind("f", 64)
SUBGROUP: Final = 3
"""The Subgroup scope."""

_CAPABILITIES: Final = {S8: "Int8", U8: "Int8", U16: "Int16", U64: "Int64", F16: "Float16", F64: "Float64"}
_FLOATS: Final = {16: "<e", 32: "<f", 64: "<d"}


def bits_of(kind: Kind, value: float) -> int:
    """Returns the bits of a constant; integers wrap around."""
    if kind.letter == "f":
        return int.from_bytes(struct.pack(_FLOATS[kind.bits], value), "little")
    return int(value) & ((1 << kind.bits) - 1)


class Declarations:
    """The declarations of a module, without duplicates, and the module assembled from them and one function.

    Attributes:
        extended: the id of the instruction set GLSL.std.450.
    """

    def __init__(self) -> None:
        self._next = 1
        self._known: dict[tuple[object, ...], int] = {}
        self._words: list[int] = []
        self._decorations: list[int] = []
        self._names: list[int] = []
        self._capabilities: dict[str, None] = {"Shader": None}
        self._extensions: dict[str, None] = {}
        self._matrices: list[Kind] = []
        self._inputs: list[int] = []
        self._buffers: dict[int, tuple[int, str, int]] = {}
        self._modes: Sequence[str] = ()
        self.extended: int = self.fresh()

    def require(self, capability: str, extension: str = "") -> None:
        self._capabilities[capability] = None
        if extension:
            self._extensions[extension] = None

    def exact_floats(self) -> None:
        """Declares round-to-nearest-even and preserved subnormals for floats of all widths."""
        self._modes = "RoundingModeRTE", "DenormPreserve"
        for mode in self._modes:
            self.require(mode, "SPV_KHR_float_controls")

    def matrix(self, component: Kind, rows: int, columns: int, use: int) -> Kind:
        """Returns the type of cooperative matrices of a subgroup; its width is negative."""
        key = ("matrix", component, rows, columns, use)
        if key not in self._known:
            self.require("CooperativeMatrixKHR", "SPV_KHR_cooperative_matrix")
            numbers = (self.constant(U32, number) for number in (SUBGROUP, rows, columns, use))
            self._matrices.append(component._replace(width=-len(self._matrices) - 1))
            type = self.type_of(Op.TypeCooperativeMatrixKHR, self.type(component), *numbers)
            self._known[key] = self._known[self._matrices[-1]] = type
            self._known["number of", key] = len(self._matrices) - 1
        return self._matrices[self._known["number of", key]]

    def fresh(self) -> int:
        """Returns an unused id."""
        self._next += 1
        return self._next - 1

    def type_of(self, opcode: int, *operands: int) -> int:
        """Returns the id of a type instruction's result."""
        key = (opcode, *operands)
        type_id = self._known.get(key)
        if type_id is None:
            type_id = self._known[key] = self.fresh()
            self._words += encode(opcode, type_id, *operands)
        return type_id

    def type(self, kind: Kind) -> int:
        """Returns the id of an expression's type."""
        type_id = self._known.get(kind)
        if type_id is not None:
            return type_id
        if kind in _CAPABILITIES:
            self._capabilities[_CAPABILITIES[kind]] = None
        if kind.width > 1:
            type_id = self.type_of(Op.TypeVector, self.type(Kind(kind.letter, kind.bits)), kind.width)
        elif kind.letter in "us":
            type_id = self.type_of(Op.TypeInt, kind.bits, int(kind.letter == "s"))
        elif kind.letter == "f":
            type_id = self.type_of(Op.TypeFloat, kind.bits)
        else:
            type_id = self.type_of(Op.TypeBool)
        self._known[kind] = type_id
        return type_id

    def pointer(self, storage: int, to: int) -> int:
        return self.type_of(Op.TypePointer, storage, to)

    def constant(self, kind: Kind, bits: int) -> int:
        key = ("constant", kind, bits)
        constant_id = self._known.get(key)
        if constant_id is None:
            type = self.type(kind)
            constant_id = self._known[key] = self.fresh()
            if kind.letter == "b":
                self._words += encode(Op.ConstantTrue if bits else Op.ConstantFalse, type, constant_id)
            else:
                words = (bits,) if kind.bits <= 32 else (bits & 0xFFFFFFFF, bits >> 32)
                self._words += encode(Op.Constant, type, constant_id, *words)
        return constant_id

    def decorate(self, target: int, decoration: int, *values: int) -> None:
        self._decorations += encode(Op.Decorate, target, decoration, *values)

    def buffer(self, binding: int, name: str, access: int) -> int:
        """Returns the variable of a storage buffer of words in set 0, decorated with its access."""
        variable = self._buffer(binding, name, access, U32)
        self._buffers[variable] = binding, name, access
        return variable

    def view(self, buffer: int, kind: Kind) -> int:
        """Returns the variable of the same buffer as vectors of words, or of pairs of words."""
        key = ("view", buffer, kind)
        variable = self._known.get(key)
        if variable is None:
            binding, name, access = self._buffers[buffer]
            variable = self._known[key] = self._buffer(
                binding, f"{name}_by_{kind.width * kind.bits // 32}", access, kind
            )
            # Words and vectors alias the same memory.
            for alias in (buffer, variable) if access != Decoration.Aliased else ():
                if ("aliased", alias) not in self._known:
                    self._known["aliased", alias] = alias
                    self.decorate(alias, Decoration.Aliased)
        return variable

    def _buffer(self, binding: int, name: str, access: int, kind: Kind) -> int:
        array = self._known.get(("buffer", kind))
        if array is None:
            array = self._known["buffer", kind] = self.type_of(Op.TypeRuntimeArray, self.type(kind))
            structure = self.type_of(Op.TypeStruct, array)
            self.decorate(array, Decoration.ArrayStride, kind.bits // 8 * kind.width)
            self.decorate(structure, Decoration.Block)
            self._decorations += encode(Op.MemberDecorate, structure, 0, Decoration.Offset, 0)
        pointer = self.pointer(StorageClass.StorageBuffer, self.type_of(Op.TypeStruct, array))
        variable = self._variable(pointer, StorageClass.StorageBuffer)
        self.decorate(variable, Decoration.DescriptorSet, 0)
        self.decorate(variable, Decoration.Binding, binding)
        self.decorate(variable, access)
        self._names += encode(Op.Name, variable, *string_words(name))
        return variable

    def push_constants(self, count: int) -> int:
        """Returns the variable of push constants: a structure of ``count`` words."""
        variable = self._known.get(("push constants",))
        if variable is None:
            structure = self.type_of(Op.TypeStruct, *([self.type(U32)] * count))
            self.decorate(structure, Decoration.Block)
            for number in range(count):
                self._decorations += encode(Op.MemberDecorate, structure, number, Decoration.Offset, 4 * number)
            pointer = self.pointer(StorageClass.PushConstant, structure)
            variable = self._known[("push constants",)] = self._variable(pointer, StorageClass.PushConstant)
        return variable

    def push_array(self, count: int) -> int:
        """Returns the variable of push constants: a structure with an array of ``count`` words."""
        variable = self._known.get(("push array",))
        if variable is None:
            array = self.type_of(Op.TypeArray, self.type(U32), self.constant(U32, count))
            self.decorate(array, Decoration.ArrayStride, 4)
            structure = self.type_of(Op.TypeStruct, array)
            self.decorate(structure, Decoration.Block)
            self._decorations += encode(Op.MemberDecorate, structure, 0, Decoration.Offset, 0)
            pointer = self.pointer(StorageClass.PushConstant, structure)
            variable = self._known[("push array",)] = self._variable(pointer, StorageClass.PushConstant)
        return variable

    def table(self, words: Sequence[int]) -> int:
        """Returns a private variable that contains constant words."""
        key = ("table", *words)
        variable = self._known.get(key)
        if variable is None:
            type = self.type_of(Op.TypeArray, self.type(U32), self.constant(U32, len(words)))
            members = [self.constant(U32, word) for word in words]
            composite = self.fresh()
            self._words += encode(Op.ConstantComposite, type, composite, *members)
            pointer = self.pointer(StorageClass.Private, type)
            variable = self._known[key] = self._variable(pointer, StorageClass.Private, composite)
        return variable

    def shared(self, element: Kind, count: int) -> int:
        """Returns a new variable of an array in workgroup memory."""
        type = self.type_of(Op.TypeArray, self.type(element), self.constant(U32, count))
        return self._variable(self.pointer(StorageClass.Workgroup, type), StorageClass.Workgroup)

    def input(self, kind: Kind, built_in: int) -> int:
        """Returns the variable of a built-in input; an entry point may list each built-in once."""
        variable = self._known.get(("input", built_in))
        if variable is None:
            pointer = self.pointer(StorageClass.Input, self.type(kind))
            variable = self._known["input", built_in] = self._variable(pointer, StorageClass.Input)
            self.decorate(variable, Decoration.BuiltIn, built_in)
            self._inputs.append(variable)
        return variable

    def _variable(self, pointer: int, storage: int, *initial: int) -> int:
        variable = self.fresh()
        self._words += encode(Op.Variable, pointer, variable, storage, *initial)
        return variable

    def module(self, name: str, workgroup_size: tuple[int, int, int], label: int, body: Sequence[int]) -> bytes:
        """Returns the module with one entry point.

        Args:
            name: the entry point's name.
            workgroup_size: the workgroup's size, in invocations.
            label: the id of the first block.
            body: the instructions after it, up to the return.
        """
        void = self.type_of(Op.TypeVoid)
        type = self.type_of(Op.TypeFunction, void)
        function = self.fresh()
        words: list[int] = []
        for capability in self._capabilities:
            words += encode(Op.Capability, getattr(ENUMERATIONS["Capability"], capability))
        for extension in self._extensions:
            words += encode(Op.Extension, *string_words(extension))
        words += encode(Op.ExtInstImport, self.extended, *string_words("GLSL.std.450"))
        words += encode(Op.MemoryModel, _PHYSICAL if _ADDRESSES in self._capabilities else _LOGICAL, _GLSL450)
        words += encode(Op.EntryPoint, ExecutionModel.GLCompute, function, *string_words(name), *self._inputs)
        words += encode(Op.ExecutionMode, function, ExecutionMode.LocalSize, *workgroup_size)
        # The same for all widths, as few devices distinguish them.
        for width in (16, 32, *([64] if "Float64" in self._capabilities else [])):
            for mode in self._modes:
                words += encode(Op.ExecutionMode, function, getattr(ExecutionMode, mode), width)
        words += self._names
        words += self._decorations
        words += self._words
        words += encode(Op.Function, void, function, 0, type)
        words += encode(Op.Label, label)
        words += body
        words += encode(Op.Return)
        words += encode(Op.FunctionEnd)
        return pack((_MAGIC, _VERSION, 0, self._next, 0, *words))
