"""A SPIR-V module as sections and functions of whole instructions, for passes that add to it.

Calling sequence: ``Editor`` → types, constants, variables and functions by its methods, bodies in ``functions`` →
``code``. An instruction is a tuple of words, the first word included.
"""

from __future__ import annotations

from typing import Final

from ..binary.grammar import Decoration, Op, StorageClass, opcodes_of
from ..binary.words import BOUND, HEADER_WORDS, encode, pack, read_binary, string_words

Words = tuple[int, ...]

_ANNOTATIONS: Final = frozenset(opcodes_of("Annotation"))
_RANKS: Final = {
    Op.Capability: 0,
    Op.Extension: 1,
    Op.ExtInstImport: 2,
    Op.MemoryModel: 3,
    Op.EntryPoint: 4,
    Op.ExecutionMode: 5,
    Op.ExecutionModeId: 5,
    Op.String: 6,
    Op.SourceExtension: 6,
    Op.Source: 6,
    Op.SourceContinued: 6,
    Op.Name: 7,
    Op.MemberName: 7,
    Op.ModuleProcessed: 8,
    **dict.fromkeys(_ANNOTATIONS, 9),
}
_GLOBAL: Final = 10
_STORAGE_EXTENSION: Final = "SPV_KHR_storage_buffer_storage_class"


def opcode_of(instruction: Words) -> int:
    return instruction[0] & 0xFFFF


class Editor:
    """One module that is being changed.

    Attributes:
        version: the module's SPIR-V version.
        functions: the instructions of each function, from ``OpFunction`` to ``OpFunctionEnd``.
        defs: the declarations outside functions by their result id: types, constants, variables.
        decorations: the decorations by target, each as (decoration, operands …).
        member_decorations: the decorations by structure and member.
        names, member_names: the names that debug instructions give to ids and to members.
        strings: the literals of ``OpString``.
        sets: the imported instruction sets.
        memory_model: the memory model that ``OpMemoryModel`` declares.
    """

    def __init__(self, code: bytes) -> None:
        binary = read_binary(code)
        self.version: tuple[int, int] = binary.version
        self.functions: list[list[Words]] = []
        self.defs: dict[int, Words] = {}
        self.decorations: dict[int, list[Words]] = {}
        self.member_decorations: dict[tuple[int, int], list[Words]] = {}
        self.names: dict[int, str] = {}
        self.member_names: dict[tuple[int, int], str] = {}
        self.strings: dict[int, str] = {}
        self.sets: dict[int, str] = {}
        self.memory_model: int = 0
        self._header = binary.words[:HEADER_WORDS]
        self._bound = binary.bound
        self._sections: list[list[Words]] = [[] for _ in range(_GLOBAL + 1)]
        self._found: dict[Words, int] = {}
        self._capabilities: set[int] = set()
        self._extensions: set[str] = set()
        body: list[Words] | None = None
        for opcode, start, end in binary:
            instruction = binary.words[start:end]
            if opcode == Op.Function:
                body = []
                self.functions.append(body)
            if body is not None:
                body.append(instruction)
                continue
            self._sections[_RANKS.get(opcode, _GLOBAL)].append(instruction)
            match opcode:
                case Op.Capability:
                    self._capabilities.add(instruction[1])
                case Op.Extension:
                    self._extensions.add(binary.string(start + 1, end, "replace")[0])
                case Op.MemoryModel:
                    self.memory_model = instruction[2]
                case Op.ExtInstImport:
                    self.sets[instruction[1]] = binary.string(start + 2, end, "replace")[0]
                case Op.String:
                    self.strings[instruction[1]] = binary.string(start + 2, end, "replace")[0]
                case Op.Name:
                    self.names[instruction[1]] = binary.string(start + 2, end, "replace")[0]
                case Op.MemberName:
                    self.member_names[instruction[1], instruction[2]] = binary.string(start + 3, end, "replace")[0]
                case Op.Decorate | Op.DecorateId:
                    self.decorations.setdefault(instruction[1], []).append(instruction[2:])
                case Op.MemberDecorate:
                    self.member_decorations.setdefault(instruction[1:3], []).append(instruction[3:])  # type: ignore[arg-type]
                case Op.GroupDecorate:
                    for target in instruction[2:]:
                        self.decorations.setdefault(target, []).extend(self.decorations.get(instruction[1], ()))
                case _:
                    self._define(opcode, instruction)

    def _define(self, opcode: int, instruction: Words) -> None:
        if _RANKS.get(opcode, _GLOBAL) != _GLOBAL or opcode in (Op.Line, Op.NoLine, Op.TypeForwardPointer):
            return
        is_type = opcode in _TYPES
        result = instruction[1] if is_type else instruction[2]
        self.defs[result] = instruction
        if is_type and opcode not in _DISTINCT and result not in self.decorations:
            self._found.setdefault((opcode, *instruction[2:]), result)
        elif opcode in (Op.Constant, Op.ConstantNull):
            self._found.setdefault((opcode, instruction[1], *instruction[3:]), result)

    # -- queries ---------------------------------------------------------------------------------

    def decoration(self, target: int, decoration: int) -> int | None:
        """Returns the operand of a decoration, 0 if it has none, ``None`` if the target lacks the decoration."""
        for entry in self.decorations.get(target, ()):
            if entry[0] == decoration:
                return entry[1] if len(entry) > 1 else 0
        return None

    def member_decoration(self, struct: int, member: int, decoration: int) -> int | None:
        """Returns the operand of a structure member's decoration, as ``decoration`` does."""
        for entry in self.member_decorations.get((struct, member), ()):
            if entry[0] == decoration:
                return entry[1] if len(entry) > 1 else 0
        return None

    def has_capability(self, capability: int) -> bool:
        return capability in self._capabilities

    @property
    def entry_points(self) -> list[Words]:
        """The ``OpEntryPoint`` instructions."""
        return list(self._sections[4])

    # -- additions -------------------------------------------------------------------------------------

    def fresh(self) -> int:
        """Returns an id that is not in use."""
        self._bound += 1
        return self._bound - 1

    def capability(self, capability: int) -> None:
        if capability not in self._capabilities:
            self._capabilities.add(capability)
            self._sections[0].append(encode(Op.Capability, capability))

    def extension(self, name: str) -> None:
        if name not in self._extensions:
            self._extensions.add(name)
            self._sections[1].append(encode(Op.Extension, *string_words(name)))

    def instruction_set(self, name: str) -> int:
        """Returns the id of an imported instruction set: the module's own if there is one."""
        for set_id, imported in self.sets.items():
            if imported == name:
                return set_id
        set_id = self.fresh()
        self.sets[set_id] = name
        self._sections[2].append(encode(Op.ExtInstImport, set_id, *string_words(name)))
        return set_id

    def type(self, opcode: int, *operands: int) -> int:
        """Returns the id of a type: the module's own if there is one; structures and arrays are always new."""
        key = (opcode, *operands)
        type_id = None if opcode in _DISTINCT else self._found.get(key)
        if type_id is None:
            type_id = self.fresh()
            self._globally(encode(opcode, type_id, *operands))
        return type_id

    def u32(self) -> int:
        return self.type(Op.TypeInt, 32, 0)

    def vector(self, count: int) -> int:
        return self.type(Op.TypeVector, self.u32(), count)

    def bool_type(self) -> int:
        return self.type(Op.TypeBool)

    def void(self) -> int:
        return self.type(Op.TypeVoid)

    def pointer(self, storage: int, pointee: int) -> int:
        return self.type(Op.TypePointer, storage, pointee)

    def constant(self, type_id: int, *words: int) -> int:
        """Returns the constant with these words."""
        return self._kept(Op.Constant, type_id, *words)

    def composite(self, type_id: int, *members: int) -> int:
        """Returns the composite of these constants."""
        return self._kept(Op.ConstantComposite, type_id, *members)

    def constant_u32(self, value: int) -> int:
        """Returns an unsigned 32-bit constant."""
        return self.constant(self.u32(), value & 0xFFFFFFFF)

    def null(self, type_id: int) -> int:
        return self._kept(Op.ConstantNull, type_id)

    def boolean(self, value: bool) -> int:
        return self._kept(Op.ConstantTrue if value else Op.ConstantFalse, self.bool_type())

    def _kept(self, opcode: int, type_id: int, *words: int) -> int:
        constant_id = self._found.get((opcode, type_id, *words))
        if constant_id is None:
            constant_id = self._found[opcode, type_id, *words] = self.fresh()
            self._globally(encode(opcode, type_id, constant_id, *words))
        return constant_id

    def variable(self, storage: int, pointee: int, initializer: int | None = None, name: str = "") -> int:
        """Returns a variable of the module, listed in the entry points' interfaces as the version demands."""
        variable_id = self.fresh()
        initial = () if initializer is None else (initializer,)
        self._globally(encode(Op.Variable, self.pointer(storage, pointee), variable_id, storage, *initial))
        if name:
            self._sections[7].append(encode(Op.Name, variable_id, *string_words(name)))
        for index in range(len(self._sections[4])):
            self._list(index, variable_id)
        return variable_id

    def share_inputs(self) -> None:
        """Makes all entry points use one variable for each built-in input, so that code of any may read it."""
        first: dict[tuple[int, int], int] = {}
        renamed: dict[int, int] = {}
        for variable, words in self.defs.items():
            built_in = self.decoration(variable, Decoration.BuiltIn)
            if opcode_of(words) == Op.Variable and words[3] == StorageClass.Input and built_in is not None:
                shared = first.setdefault((built_in, words[1]), variable)
                if shared != variable:
                    renamed[variable] = shared
        if not renamed:
            return
        for body in self.functions:
            for at, words in enumerate(body):
                start = _POINTERS.get(opcode_of(words))
                if start is not None and not renamed.keys().isdisjoint(words[start:]):
                    body[at] = (*words[:start], *(renamed.get(operand, operand) for operand in words[start:]))
        for at, words in enumerate(self._sections[4]):
            listed = interface_of(words)
            kept = dict.fromkeys(renamed.get(variable, variable) for variable in listed)
            self._sections[4][at] = encode(Op.EntryPoint, *words[1 : len(words) - len(listed)], *kept)

    def drop_initializer(self, variable: int) -> int:
        """Removes the initializer of a variable of the module, and returns it."""
        words = self.defs[variable]
        self.defs[variable] = encode(Op.Variable, *words[1:4])
        declared = self._sections[_GLOBAL]
        declared[declared.index(words)] = self.defs[variable]
        return words[4]

    def retype(self, variable: int, pointee: Words) -> int:
        """Gives a variable of the module another type, and returns that type.

        Args:
            pointee: the declaration of the type, without its id.
        """
        declared, words = self._sections[_GLOBAL], self.defs[variable]
        kind = self._before(words, pointee)
        pointer = self._before(words, (Op.TypePointer, words[3], kind))
        self.defs[variable] = (words[0], pointer, *words[2:])
        declared[declared.index(words)] = self.defs[variable]
        return kind

    def _before(self, later: Words, words: Words) -> int:
        """Returns the id of a type that is declared before an instruction."""
        declared = self._sections[_GLOBAL]
        known = self._found.get(words)
        type_id = self.fresh() if known is None else known
        if known is not None:
            if declared.index(self.defs[known]) < declared.index(later):
                return known
            declared.remove(self.defs[known])
        instruction = encode(words[0], type_id, *words[1:])
        declared.insert(declared.index(later), instruction)
        self._define(words[0], instruction)
        return type_id

    def _list(self, index: int, variable: int) -> None:
        instruction = self._sections[4][index]
        storage = self.defs[variable][3]
        if self.version < (1, 4) and storage not in (StorageClass.Input, StorageClass.Output):
            return
        if variable not in interface_of(instruction):
            self._sections[4][index] = encode(Op.EntryPoint, *instruction[1:], variable)

    def storage_buffer(self, structure: int, set_index: int, binding: int, name: str = "") -> int:
        """Returns a variable of a block in the storage class StorageBuffer."""
        if self.version < (1, 3):
            self.extension(_STORAGE_EXTENSION)
        buffer = self.variable(StorageClass.StorageBuffer, structure, name=name)
        self.decorate(buffer, Decoration.DescriptorSet, set_index)
        self.decorate(buffer, Decoration.Binding, binding)
        return buffer

    def words_block(self, *, stride: int = 4, element: int | None = None, is_uniform: bool = False) -> int:
        """Returns a block of one run-time array; ``is_uniform`` for the storage class Uniform of old modules."""
        array = self.type(Op.TypeRuntimeArray, self.u32() if element is None else element)
        self.decorate(array, Decoration.ArrayStride, stride)
        return self.block(array, is_uniform=is_uniform)

    def block(self, member: int, *, is_uniform: bool = False) -> int:
        """Returns a block of one member at offset 0; ``is_uniform`` for the storage class Uniform of old modules."""
        block = self.type(Op.TypeStruct, member)
        self.decorate(block, Decoration.BufferBlock if is_uniform else Decoration.Block)
        self._sections[9].append(encode(Op.MemberDecorate, block, 0, Decoration.Offset, 0))
        self.member_decorations[block, 0] = [(Decoration.Offset, 0)]
        return block

    def built_in(self, built_in: int, type_id: int, entry: int) -> int:
        """Returns the variable of a built-in input for an entry point, by index: the module's own if it has one."""
        listed = interface_of(self._sections[4][entry])
        known = [candidate for candidate in self.defs if self.decoration(candidate, Decoration.BuiltIn) == built_in]
        known = [candidate for candidate in known if opcode_of(self.defs[candidate]) == Op.Variable]
        for variable in (*(candidate for candidate in known if candidate in listed), *known):
            self._list(entry, variable)
            return variable
        variable = self.variable(StorageClass.Input, type_id)
        self.decorate(variable, Decoration.BuiltIn, built_in)
        return variable

    def decorate(self, target: int, decoration: int, *operands: int) -> None:
        self.decorations.setdefault(target, []).append((decoration, *operands))
        self._sections[9].append(encode(Op.Decorate, target, decoration, *operands))

    def _globally(self, instruction: Words) -> None:
        self._sections[_GLOBAL].append(instruction)
        self._define(opcode_of(instruction), instruction)

    def function(self, result_type: int, *parameters: int) -> tuple[int, list[int], list[Words]]:
        """Returns a new function: its id, its parameters' ids, and its instructions up to the first label."""
        type_id = self.type(Op.TypeFunction, result_type, *parameters)
        function_id = self.fresh()
        names = [self.fresh() for _ in parameters]
        body = [encode(Op.Function, result_type, function_id, 0, type_id)]
        body += [encode(Op.FunctionParameter, kind, name) for kind, name in zip(parameters, names, strict=True)]
        self.functions.append(body)
        return function_id, names, body

    def wrap(self, entry: int) -> list[Words]:
        """Makes the entry point of that index a new function, which calls the old entry point.

        Returns:
            The function's instructions up to that call. The caller appends more, and finally ``OpReturn`` and
                ``OpFunctionEnd``.
        """
        instruction = self._sections[4][entry]
        inner = instruction[2]
        outer, _, body = self.function(self.void())
        self._sections[4][entry] = (*instruction[:2], outer, *instruction[3:])
        shared = any(words[2] == inner for words in self._sections[4])
        modes = [words for words in self._sections[5] if words[1] == inner]
        if not shared:
            self._sections[5] = [words for words in self._sections[5] if words[1] != inner]
        self._sections[5] += [(words[0], outer, *words[2:]) for words in modes]
        body += [encode(Op.Label, self.fresh()), encode(Op.FunctionCall, self.void(), self.fresh(), inner)]
        return body

    def code(self) -> bytes:
        """Returns the module."""
        words = [*self._header]
        words[BOUND] = self._bound
        for section in self._sections:
            for instruction in section:
                words += instruction
        for body in self.functions:
            for instruction in body:
                words += instruction
        return pack(words)


def interface_of(entry_point: Words) -> Words:
    """Returns the variables that an ``OpEntryPoint`` lists."""
    at = 3
    while entry_point[at] >> 24:
        at += 1
    return entry_point[at + 1 :]


_TYPES: Final = frozenset(opcodes_of("Type-Declaration")) - {Op.TypeForwardPointer}
# Where instructions have pointers to inputs: from this operand on.
_POINTERS: Final = {
    **dict.fromkeys((Op.Load, Op.AccessChain, Op.InBoundsAccessChain, Op.CopyObject), 3),
    Op.FunctionCall: 4,
}
# Types that may be declared more than once, with decorations of their own.
_DISTINCT: Final = frozenset({Op.TypeStruct, Op.TypeArray, Op.TypeRuntimeArray})
