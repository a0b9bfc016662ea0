"""A SPIR-V binary taken apart: header, declarations by id, function bodies as instruction lists.

Layout of the binary: SPIR-V specification 1.6, section 2.3 ("Physical Layout of a SPIR-V Module"); opcodes and
enumerants: section 3. Every operand of a type or constant must be defined before, except pointers announced by
`OpTypeForwardPointer`; so types form no cycles and nothing here recurses.
"""

from __future__ import annotations

import dataclasses
import enum
import struct
from collections.abc import Callable
from typing import Final

from ..status import IncompatibleError, InvalidArgumentError
from .constants import Constant, ConstantValue, Scalar, decode_scalar, fold_spec_constant_op
from .type_table import Type, TypeKind, TypeTable

__all__ = ["Decoration", "Function", "Instruction", "Module", "StorageClass", "Variable"]

_MAGIC: Final = 0x07230203
_MAGIC_SWAPPED: Final = 0x03022307
# SPIR-V 2.17, Universal Limits: ids stay at or below 4,194,303, so the bound is at most one more.
_MAX_BOUND: Final = 0x400000

Instruction = tuple[int, int, int]
"""Opcode, index of its first word, index past its last word."""


class StorageClass(enum.IntEnum):
    """Storage classes that reflection looks at."""

    UNIFORM_CONSTANT = 0
    UNIFORM = 2
    WORKGROUP = 4
    PUSH_CONSTANT = 9
    STORAGE_BUFFER = 12


class Decoration(enum.IntEnum):
    """Decorations that reflection looks at."""

    SPEC_ID = 1
    BLOCK = 2
    BUFFER_BLOCK = 3
    ROW_MAJOR = 4
    ARRAY_STRIDE = 6
    MATRIX_STRIDE = 7
    BUILT_IN = 11
    NON_WRITABLE = 24
    NON_READABLE = 25
    BINDING = 33
    DESCRIPTOR_SET = 34
    OFFSET = 35


_DECORATIONS: Final = {int(decoration): decoration for decoration in Decoration}
_WITH_OPERAND: Final = frozenset(
    {
        Decoration.SPEC_ID,
        Decoration.ARRAY_STRIDE,
        Decoration.MATRIX_STRIDE,
        Decoration.BUILT_IN,
        Decoration.BINDING,
        Decoration.DESCRIPTOR_SET,
        Decoration.OFFSET,
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class Variable:
    """A module-scope variable; ``pointee`` is the id of the type it holds, 0 if untyped."""

    id: int
    storage_class: int
    pointee: int


@dataclasses.dataclass(frozen=True, slots=True)
class Function:
    """A function: parameter ids and every instruction between `OpFunction` and `OpFunctionEnd`."""

    id: int
    parameters: list[int]
    body: list[Instruction]


class Module:
    """The index of one module.

    Args:
        code: a whole little-endian SPIR-V binary.

    Raises:
        InvalidArgumentError: the code is no well-formed SPIR-V.
        IncompatibleError: a SPIR-V version other than 1.0 to 1.6.
    """

    def __init__(self, code: bytes) -> None:
        self._code = code
        self.capabilities: list[int] = []
        self.extensions: list[str] = []
        self.instruction_sets: dict[int, str] = {}
        self.addressing_model = -1
        self.memory_model = -1
        self.entry_points: list[tuple[int, int, str]] = []
        self.local_sizes: dict[int, tuple[int, int, int]] = {}
        self.local_size_ids: dict[int, tuple[int, int, int]] = {}
        self.names: dict[int, str] = {}
        self.member_names: dict[tuple[int, int], str] = {}
        self.decorations: dict[int, dict[Decoration, int]] = {}
        self.member_decorations: dict[tuple[int, int], dict[Decoration, int]] = {}
        self.constants: dict[int, Constant] = {}
        self._types = TypeTable(self.constants)
        self.variables: dict[int, Variable] = {}
        self.functions: dict[int, Function] = {}
        self._defined: set[int] = set()
        self.words, self.version, self.generator, self.bound = self._header()
        self._instructions()

    def decoration(self, target: int, decoration: Decoration) -> int | None:
        """The operand of a decoration of an id (0 for one without operand), or ``None`` if not so decorated."""
        found = self.decorations.get(target)
        return None if found is None else found.get(decoration)

    def member_decoration(self, struct_id: int, member: int, decoration: Decoration) -> int | None:
        """The operand of a decoration of a structure's member, or ``None`` if not so decorated."""
        found = self.member_decorations.get((struct_id, member))
        return None if found is None else found.get(decoration)

    def check_id(self, value: int) -> int:
        """Passes on an id that lies within the header's bound."""
        if not 0 < value < self.bound:
            raise InvalidArgumentError(
                f"SPIR-V id {value} is outside the header's bound (1 to {self.bound - 1}); the module is damaged"
            )
        return value

    def check_length(self, start: int, end: int, minimum: int, what: str) -> None:
        """Raises if an instruction is shorter than its fixed operands."""
        if end - start < minimum:
            raise InvalidArgumentError(
                f"{what} at word {start} has {end - start} words, expected at least {minimum}; the module is damaged"
            )

    @property
    def types(self) -> dict[int, Type]:
        """The types by id, in the order of their definition."""
        return self._types.types

    def type(self, type_id: int) -> Type:
        """The type of that id, which must be defined by now."""
        return self._types.get(type_id)

    def _header(self) -> tuple[tuple[int, ...], tuple[int, int], int, int]:
        size = len(self._code)
        if size < 20 or size % 4:
            raise InvalidArgumentError(
                f"SPIR-V code is a multiple of 4 bytes and at least 20 (its header), got {size} bytes; "
                "pass the whole binary module, not text or a part"
            )
        words = struct.unpack(f"<{size // 4}I", self._code)
        magic, version, generator, bound, schema = words[:5]
        if magic == _MAGIC_SWAPPED:
            raise InvalidArgumentError(
                "the SPIR-V code has the wrong endianness (big-endian words); swap the bytes of every 32-bit word "
                "before passing it"
            )
        if magic != _MAGIC:
            raise InvalidArgumentError(
                f"SPIR-V code starts with the magic number 0x{_MAGIC:08x}, got 0x{magic:08x}; "
                "pass a binary module as glslangValidator -V or spirv-as writes it"
            )
        major, minor = version >> 16 & 0xFF, version >> 8 & 0xFF
        if version & 0xFF0000FF or schema:
            raise InvalidArgumentError(
                f"the SPIR-V header's version word 0x{version:08x} or schema {schema} has reserved bits set; "
                "the module is damaged"
            )
        if major != 1 or minor > 6:
            raise IncompatibleError(f"SPIR-V 1.0 to 1.6 can be read, got {major}.{minor}; target an older version")
        if not 0 < bound <= _MAX_BOUND:
            raise InvalidArgumentError(
                f"the SPIR-V header's id bound is 1 to {_MAX_BOUND}, got {bound}; compact the ids "
                "(spirv-opt --compact-ids) or rebuild the module"
            )
        return words, (major, minor), generator, bound

    def _instructions(self) -> None:
        words = self.words
        position, total = 5, len(words)
        function: Function | None = None
        while position < total:
            opcode, count = words[position] & 0xFFFF, words[position] >> 16
            end = position + count
            if count == 0 or end > total:
                raise InvalidArgumentError(
                    f"the SPIR-V instruction at word {position} (opcode {opcode}) has a word count of {count}, "
                    f"{total - position} words are left; the module is truncated or damaged"
                )
            if opcode == 54:  # OpFunction
                if function is not None:
                    raise InvalidArgumentError(f"OpFunction at word {position} lies within another function")
                self.check_length(position, end, 5, "OpFunction")
                function = Function(self._define(words[position + 2]), [], [])
                self.functions[function.id] = function
            elif function is None:
                self._global(opcode, position, end)
            elif opcode == 55:  # OpFunctionParameter
                self.check_length(position, end, 3, "OpFunctionParameter")
                function.parameters.append(self._define(words[position + 2]))
            elif opcode == 56:  # OpFunctionEnd
                function = None
            else:
                function.body.append((opcode, position, end))
            position = end
        if function is not None:
            raise InvalidArgumentError("the SPIR-V module ends within a function; it is truncated")
        if self.addressing_model < 0:
            raise InvalidArgumentError("the SPIR-V module has no OpMemoryModel; it is truncated or damaged")
        self._types.finish()

    def _define(self, result: int) -> int:
        self.check_id(result)
        if result in self._defined:
            raise InvalidArgumentError(f"SPIR-V id {result} is defined twice; the module is damaged")
        self._defined.add(result)
        return result

    def _string(self, start: int, end: int, errors: str = "strict") -> str:
        raw = self._code[start * 4 : end * 4]
        terminator = raw.find(b"\0")
        if terminator < 0:
            raise InvalidArgumentError(f"the SPIR-V string at word {start} is not terminated; the module is damaged")
        try:
            return raw[:terminator].decode("utf-8", errors)
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(f"the SPIR-V string at word {start} is not UTF-8: {error.reason}") from None

    def _global(self, opcode: int, start: int, end: int) -> None:
        handler = _HANDLERS.get(opcode)
        if handler is not None:
            handle, minimum = handler
            self.check_length(start, end, minimum, f"SPIR-V instruction {opcode}")
            handle(self, opcode, start, end)

    def _capability(self, opcode: int, start: int, end: int) -> None:
        self.capabilities.append(self.words[start + 1])

    def _extension(self, opcode: int, start: int, end: int) -> None:
        self.extensions.append(self._string(start + 1, end))

    def _instruction_set(self, opcode: int, start: int, end: int) -> None:
        self.instruction_sets[self._define(self.words[start + 1])] = self._string(start + 2, end, "replace")

    def _memory_model(self, opcode: int, start: int, end: int) -> None:
        self.addressing_model, self.memory_model = self.words[start + 1 : start + 3]

    def _entry_point(self, opcode: int, start: int, end: int) -> None:
        model, function = self.words[start + 1 : start + 3]
        self.entry_points.append((model, self.check_id(function), self._string(start + 3, end)))

    def _execution_mode(self, opcode: int, start: int, end: int) -> None:
        function, mode = self.words[start + 1 : start + 3]
        if mode in (17, 38):  # LocalSize, LocalSizeId
            self.check_length(start, end, 6, "LocalSize")
            x, y, z = self.words[start + 3 : start + 6]
            (self.local_sizes if mode == 17 else self.local_size_ids)[function] = (x, y, z)

    def _name(self, opcode: int, start: int, end: int) -> None:
        self.names[self.words[start + 1]] = self._string(start + 2, end, "replace")

    def _member_name(self, opcode: int, start: int, end: int) -> None:
        struct_id, member = self.words[start + 1 : start + 3]
        self.member_names[struct_id, member] = self._string(start + 3, end, "replace")

    def _note(self, found: dict[Decoration, int], start: int, end: int) -> None:
        decoration = _DECORATIONS.get(self.words[start])
        if decoration is None:
            return
        if decoration in _WITH_OPERAND:
            self.check_length(start, end, 2, f"the operands of decoration {decoration.name}")
            value = self.words[start + 1]
            # Drivers take the first, the last, or crash.
            if found.setdefault(decoration, value) != value:
                raise InvalidArgumentError(
                    f"the SPIR-V decoration {decoration.name} at word {start} gives a second value, {value} after "
                    f"{found[decoration]}; the module is damaged"
                )
        else:
            found[decoration] = 0

    def _decorate(self, opcode: int, start: int, end: int) -> None:
        self._note(self.decorations.setdefault(self.check_id(self.words[start + 1]), {}), start + 2, end)

    def _member_decorate(self, opcode: int, start: int, end: int) -> None:
        key = self.check_id(self.words[start + 1]), self.words[start + 2]
        self._note(self.member_decorations.setdefault(key, {}), start + 3, end)

    def _group_decorate(self, opcode: int, start: int, end: int) -> None:
        group = self.decorations.get(self.words[start + 1], {})
        for target in self.words[start + 2 : end]:
            self.decorations.setdefault(self.check_id(target), {}).update(group)

    def _group_member_decorate(self, opcode: int, start: int, end: int) -> None:
        group = self.decorations.get(self.words[start + 1], {})
        for index in range(start + 2, end - 1, 2):
            key = self.check_id(self.words[index]), self.words[index + 1]
            self.member_decorations.setdefault(key, {}).update(group)

    def _forward_pointer(self, opcode: int, start: int, end: int) -> None:
        self._types.announce(self.check_id(self.words[start + 1]))

    def _type(self, opcode: int, start: int, end: int) -> None:
        self._types.define(opcode, self._define(self.words[start + 1]), self.words[start + 2 : end])

    def _constant(self, opcode: int, start: int, end: int) -> None:
        words = self.words
        of = self.type(words[start + 1])
        result = self._define(words[start + 2])
        operands = words[start + 3 : end]
        scalar = of.scalar if of.kind is TypeKind.SCALAR else None
        value: ConstantValue = None
        constituents: tuple[int, ...] = ()
        match opcode:
            case 41 | 42 | 48 | 49:  # OpConstantTrue, OpConstantFalse and their specialization forms
                if scalar is None or scalar.kind != "bool":
                    raise InvalidArgumentError(f"SPIR-V boolean constant {result} is not of a boolean type")
                value = opcode in (41, 48)
            case 43 | 50:  # OpConstant, OpSpecConstant
                if scalar is None or scalar.kind == "bool":
                    raise InvalidArgumentError(f"SPIR-V constant {result} is not of an integer or float type")
                value = decode_scalar(scalar, operands)
            case 44 | 51:  # OpConstantComposite, OpSpecConstantComposite
                constituents = operands
                if of.kind is TypeKind.VECTOR:
                    value = self._components(operands)
            case 46:  # OpConstantNull
                zero: Scalar = False if scalar and scalar.kind == "bool" else 0
                if scalar is not None:
                    value = 0.0 if scalar.kind == "float" else zero
                elif of.kind is TypeKind.VECTOR and of.count is not None and of.count <= 4:
                    value = (0,) * of.count
            case 52:  # OpSpecConstantOp
                self.check_length(start, end, 4, "OpSpecConstantOp")
                value = fold_spec_constant_op(operands[0], scalar, operands[1:], self.constants)
        is_spec = opcode in (48, 49, 50)
        self.constants[result] = Constant(result, scalar, value, constituents, is_spec)

    def _components(self, ids: tuple[int, ...]) -> ConstantValue:
        components: list[Scalar] = []
        for component in ids:
            constant = self.constants.get(component)
            if constant is None or constant.value is None or isinstance(constant.value, tuple):
                return None
            components.append(constant.value)
        return tuple(components)

    def _variable(self, opcode: int, start: int, end: int) -> None:
        words = self.words
        type_id, result, storage_class = words[start + 1 : start + 4]
        pointer = self.type(type_id)
        if opcode == 59:  # OpVariable
            if pointer.kind is not TypeKind.POINTER or pointer.storage_class != storage_class:
                raise InvalidArgumentError(
                    f"SPIR-V variable {result} is of type {type_id}, which is no pointer to its storage class "
                    f"{storage_class}; the module is damaged"
                )
            pointee = pointer.element
        else:  # OpUntypedVariableKHR: the type of the data is an optional operand
            pointee = self.type(words[start + 4]).id if end - start > 4 else 0
        self._define(result)
        self.variables[result] = Variable(result, storage_class, pointee)


_HANDLERS: Final[dict[int, tuple[Callable[[Module, int, int, int], None], int]]] = {
    5: (Module._name, 3),
    6: (Module._member_name, 4),
    10: (Module._extension, 2),
    11: (Module._instruction_set, 3),
    14: (Module._memory_model, 3),
    15: (Module._entry_point, 4),
    16: (Module._execution_mode, 3),
    17: (Module._capability, 2),
    39: (Module._forward_pointer, 3),
    59: (Module._variable, 4),
    71: (Module._decorate, 3),
    72: (Module._member_decorate, 4),
    74: (Module._group_decorate, 2),
    75: (Module._group_member_decorate, 2),
    331: (Module._execution_mode, 3),
    4418: (Module._variable, 4),
    # OpTypeVoid … OpTypePipe, then OpTypeUntypedPointerKHR, OpTypeCooperativeMatrix and other extensions' types
    **dict.fromkeys((*range(19, 39), 4163, 4417, 4456, 4472, 5281, 5288, 5341, 5358, 5370, 5371), (Module._type, 2)),
    # OpConstantTrue … OpConstantNull, OpSpecConstantTrue … OpSpecConstantOp
    **dict.fromkeys((41, 42, 43, 44, 46, 48, 49, 50, 51, 52), (Module._constant, 3)),
}
