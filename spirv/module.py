"""A SPIR-V module taken apart: declarations by id, function bodies as instruction lists.

Every operand of a type or constant must be defined before, except pointers announced by `OpTypeForwardPointer`; so
types form no cycles and nothing here recurses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

from ..status import InvalidArgumentError
from .constants import Constant, ConstantValue, Scalar, decode_scalar, fold_spec_constant_op
from .grammar import Decoration, ExecutionMode, Op, opcodes_of, parameters_of
from .type_table import Type, TypeKind, TypeTable
from .words import Instruction, read_binary

_FUNCTION: Final = Op.Function
_FUNCTION_PARAMETER: Final = Op.FunctionParameter
_FUNCTION_END: Final = Op.FunctionEnd
# The decorations that reflection looks at.
_DECORATIONS: Final = frozenset(
    {
        Decoration.SpecId,
        Decoration.Block,
        Decoration.BufferBlock,
        Decoration.RowMajor,
        Decoration.ArrayStride,
        Decoration.MatrixStride,
        Decoration.BuiltIn,
        Decoration.NonWritable,
        Decoration.NonReadable,
        Decoration.Binding,
        Decoration.DescriptorSet,
        Decoration.Offset,
    }
)
_WITH_OPERAND: Final = frozenset(one for one in _DECORATIONS if any(parameters_of("Decoration", one)))


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
        self._binary = binary = read_binary(code)
        self.words = binary.words
        self.version = binary.version
        self.generator = binary.generator
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
        self.decorations: dict[int, dict[int, int]] = {}
        self.member_decorations: dict[tuple[int, int], dict[int, int]] = {}
        self.constants: dict[int, Constant] = {}
        self._types = TypeTable(self.constants)
        self.variables: dict[int, Variable] = {}
        self.functions: dict[int, Function] = {}
        self._defined: set[int] = set()
        self._read()

    def decoration(self, target: int, decoration: int) -> int | None:
        """The operand of a decoration of an id (0 for one without operand), or ``None`` if not so decorated."""
        found = self.decorations.get(target)
        return None if found is None else found.get(decoration)

    def member_decoration(self, struct_id: int, member: int, decoration: int) -> int | None:
        """The operand of a decoration of a structure's member, or ``None`` if not so decorated."""
        found = self.member_decorations.get((struct_id, member))
        return None if found is None else found.get(decoration)

    def check_id(self, value: int) -> int:
        """Passes on an id that lies within the header's bound."""
        bound = self._binary.bound
        if not 0 < value < bound:
            raise InvalidArgumentError(
                f"SPIR-V id {value} is outside the header's bound (1 to {bound - 1}); the module is damaged"
            )
        return value

    def check_length(self, start: int, end: int, minimum: int, what: str) -> None:
        """Raises if an instruction is shorter than its fixed operands."""
        if end - start < minimum:
            raise InvalidArgumentError(
                f"{what} at word {start} has {end - start} words, expected at least {minimum}; the module is damaged"
            )

    def used_ids(self, start: int, end: int) -> list[int]:
        """The ids that the instruction at a word takes."""
        return self._binary.used_ids(start, end)

    @property
    def types(self) -> dict[int, Type]:
        """The types by id, in the order of their definition."""
        return self._types.types

    def type(self, type_id: int) -> Type:
        """The type of that id, which must be defined by now."""
        return self._types.get(type_id)

    def _read(self) -> None:
        words = self.words
        function: Function | None = None
        for opcode, start, end in self._binary:
            if opcode == _FUNCTION:
                if function is not None:
                    raise InvalidArgumentError(f"OpFunction at word {start} lies within another function")
                function = Function(self._define(words[start + 2]), [], [])
                self.functions[function.id] = function
            elif function is None:
                handler = _HANDLERS.get(opcode)
                if handler is not None:
                    handler(self, opcode, start, end)
            elif opcode == _FUNCTION_PARAMETER:
                function.parameters.append(self._define(words[start + 2]))
            elif opcode == _FUNCTION_END:
                function = None
            else:
                function.body.append((opcode, start, end))
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
        return self._binary.string(start, end, errors)[0]

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
        if mode in (ExecutionMode.LocalSize, ExecutionMode.LocalSizeId):
            self.check_length(start, end, 6, "LocalSize")
            x, y, z = self.words[start + 3 : start + 6]
            (self.local_sizes if mode == ExecutionMode.LocalSize else self.local_size_ids)[function] = (x, y, z)

    def _name(self, opcode: int, start: int, end: int) -> None:
        self.names[self.words[start + 1]] = self._string(start + 2, end, "replace")

    def _member_name(self, opcode: int, start: int, end: int) -> None:
        struct_id, member = self.words[start + 1 : start + 3]
        self.member_names[struct_id, member] = self._string(start + 3, end, "replace")

    def _note(self, found: dict[int, int], start: int, end: int) -> None:
        decoration = self.words[start]
        if decoration not in _DECORATIONS:
            return
        value = 0
        if decoration in _WITH_OPERAND:
            self.check_length(start, end, 2, f"decoration {Decoration.name(decoration)}")
            value = self.words[start + 1]
        # Drivers take the first, the last, or crash.
        if found.setdefault(decoration, value) != value:
            raise InvalidArgumentError(
                f"the SPIR-V decoration {Decoration.name(decoration)} at word {start} gives a second value, {value} "
                f"after {found[decoration]}; the module is damaged"
            )

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
            case Op.ConstantTrue | Op.ConstantFalse | Op.SpecConstantTrue | Op.SpecConstantFalse:
                if scalar is None or scalar.kind != "bool":
                    raise InvalidArgumentError(f"SPIR-V boolean constant {result} is not of a boolean type")
                value = opcode in (Op.ConstantTrue, Op.SpecConstantTrue)
            case Op.Constant | Op.SpecConstant:
                if scalar is None or scalar.kind == "bool":
                    raise InvalidArgumentError(f"SPIR-V constant {result} is not of an integer or float type")
                value = decode_scalar(scalar, operands)
            case Op.ConstantComposite | Op.SpecConstantComposite:
                constituents = operands
                if of.kind is TypeKind.VECTOR:
                    value = self._components(operands)
            case Op.ConstantNull:
                zero: Scalar = False if scalar and scalar.kind == "bool" else 0
                if scalar is not None:
                    value = 0.0 if scalar.kind == "float" else zero
                elif of.kind is TypeKind.VECTOR and of.count is not None and of.count <= 4:
                    value = (0,) * of.count
            case Op.SpecConstantOp:
                value = fold_spec_constant_op(operands[0], scalar, operands[1:], self.constants)
        self.constants[result] = Constant(result, scalar, value, constituents, is_spec=opcode in _SPEC_SCALARS)

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
        if opcode == Op.Variable:
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


_SPEC_SCALARS: Final = (Op.SpecConstantTrue, Op.SpecConstantFalse, Op.SpecConstant)
_CONSTANTS: Final = (
    *_SPEC_SCALARS,
    Op.ConstantTrue,
    Op.ConstantFalse,
    Op.Constant,
    Op.ConstantComposite,
    Op.ConstantNull,
    Op.SpecConstantComposite,
    Op.SpecConstantOp,
)
_HANDLERS: Final[dict[int, Callable[[Module, int, int, int], None]]] = {
    **dict.fromkeys(opcodes_of("Type-Declaration"), Module._type),
    **dict.fromkeys(_CONSTANTS, Module._constant),
    Op.TypeForwardPointer: Module._forward_pointer,
    Op.Name: Module._name,
    Op.MemberName: Module._member_name,
    Op.Extension: Module._extension,
    Op.ExtInstImport: Module._instruction_set,
    Op.MemoryModel: Module._memory_model,
    Op.EntryPoint: Module._entry_point,
    Op.ExecutionMode: Module._execution_mode,
    Op.ExecutionModeId: Module._execution_mode,
    Op.Capability: Module._capability,
    Op.Variable: Module._variable,
    Op.UntypedVariableKHR: Module._variable,
    Op.Decorate: Module._decorate,
    Op.MemberDecorate: Module._member_decorate,
    Op.GroupDecorate: Module._group_decorate,
    Op.GroupMemberDecorate: Module._group_member_decorate,
}
