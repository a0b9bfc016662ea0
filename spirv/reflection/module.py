"""A SPIR-V module taken apart: declarations by id, function bodies as instruction lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError
from ..binary.grammar import Decoration, ExecutionMode, Op, SourceLanguage, opcodes_of, parameters_of
from ..binary.words import Instruction, read_binary
from .constants import Constant, ConstantValue, Scalar, decode_scalar, divides_by_zero, fold_spec_constant_op
from .type_table import TypeKind, TypeTable

if TYPE_CHECKING:
    from ..binary.words import Binary
    from .type_table import Type

_TYPES: Final = frozenset(opcodes_of("Type-Declaration")) - {Op.TypeForwardPointer}
_SPEC_SCALARS: Final = (Op.SpecConstantTrue, Op.SpecConstantFalse, Op.SpecConstant)
_VARYING: Final = (*_SPEC_SCALARS, Op.SpecConstantComposite, Op.SpecConstantOp)
_CONSTANTS: Final = Op.numbers("ConstantTrue ConstantFalse Constant ConstantComposite ConstantNull") | {*_VARYING}
_MAX_UNSETTLED: Final = 64
_MAX_DEPENDENCIES: Final = 4096
# The decorations that reflection looks at.
_DECORATIONS: Final = Decoration.numbers(
    "SpecId Block BufferBlock RowMajor ArrayStride MatrixStride BuiltIn NonWritable NonReadable Binding DescriptorSet "
    "Offset"
)
# Languages whose matrices are SPIR-V's transposed: m[i] is a row there, and a column of SPIR-V's matrix.
_LANGUAGES_OF_ROWS: Final = frozenset({SourceLanguage.HLSL, SourceLanguage.Slang})
_GENERATORS_OF_ROWS: Final = frozenset({14, 40})  # dxc and Slang, in SPIRV-Headers' spir-v.xml
_WITH_OPERAND: Final = frozenset(
    decoration for decoration in _DECORATIONS if any(parameters_of("Decoration", decoration))
)


@dataclass(frozen=True, slots=True)
class Variable:
    """A module-scope variable; ``pointee`` is the id of its type, 0 if untyped."""

    id: int
    storage_class: int
    pointee: int


@dataclass(frozen=True, slots=True)
class Function:
    """A function: parameter ids and every instruction between `OpFunction` and `OpFunctionEnd`."""

    id: int
    parameters: list[int]
    body: list[Instruction]


class Module:
    """The index of one module.

    Raises:
        InvalidArgumentError: the code is not well-formed SPIR-V.
        IncompatibleError: the SPIR-V version is not 1.0 to 1.6.
    """

    def __init__(self, code: bytes) -> None:
        self.binary: Binary = read_binary(code)
        self.words: tuple[int, ...] = self.binary.words
        self.capabilities: list[int] = []
        self.extensions: list[str] = []
        self.instruction_sets: dict[int, str] = {}
        self.addressing_model: int = -1
        self.memory_model: int = -1
        self.entry_points: list[tuple[int, int, str]] = []
        self.local_sizes: dict[int, tuple[int, int, int]] = {}
        self.local_size_ids: dict[int, tuple[int, int, int]] = {}
        self.source_language: int = SourceLanguage.Unknown
        self.names: dict[int, str] = {}
        self.more_names: dict[int, list[str]] = {}
        self.member_names: dict[tuple[int, int], str] = {}
        self.decorations: dict[int, dict[int, int]] = {}
        self.member_decorations: dict[tuple[int, int], dict[int, int]] = {}
        self.constants: dict[int, Constant] = {}
        self.unsettled: dict[int, str] = {}
        """Types and sizes, by id, that are invalid at the module's values but not at all others. See `unsettle`."""
        self._types = TypeTable(self.constants, self.unsettle)
        self.types: dict[int, Type] = self._types.types
        self.type: Callable[[int], Type] = self._types.get
        self.variables: dict[int, Variable] = {}
        self.functions: dict[int, Function] = {}
        self._defined: set[int] = set()
        self._read()

    def decoration(self, target: int, decoration: int) -> int | None:
        """Returns the operand of an id's decoration, 0 if the decoration has none; ``None`` if not so decorated."""
        return self.decorations.get(target, {}).get(decoration)

    def member_decoration(self, struct_id: int, member: int, decoration: int) -> int | None:
        """Returns the operand of a decoration of a structure's member, or ``None`` if not so decorated."""
        return self.member_decorations.get((struct_id, member), {}).get(decoration)

    @property
    def has_matrices_of_rows(self) -> bool:
        """Whether the source's language indexes matrices by row first, as HLSL and Slang do: SPIR-V's columns are its
        rows. Where the module does not name its language, its generator decides.
        """
        if self.source_language != SourceLanguage.Unknown:
            return self.source_language in _LANGUAGES_OF_ROWS
        return self.binary.generator >> 16 in _GENERATORS_OF_ROWS

    def unsettle(self, target: int, noun: str, constant: int) -> None:
        """Notes that a length or size needs other values of the specialization constants that it depends on."""
        if target in self.unsettled or len(self.unsettled) >= _MAX_UNSETTLED:  # a forged module may have many
            return
        pending, seen = [constant], set[int]()
        setting: dict[int, str] = {}
        while pending and len(seen) < _MAX_DEPENDENCIES:
            decoration = pending.pop()
            declared = self.constants.get(decoration)
            if declared is None or decoration in seen:
                continue
            seen.add(decoration)
            pending.extend(declared.constituents)
            spec_id = self.decoration(decoration, Decoration.SpecId) if declared.is_spec else None
            if spec_id is not None:
                setting[spec_id] = self.names.get(decoration, "") or setting.get(spec_id, "")
        named = [f"{spec_id} ({name})" if name else str(spec_id) for spec_id, name in sorted(setting.items())]
        settable = f"; specialization constants that set it: {', '.join(named)}" if named else ""
        self.unsettled[target] = noun + settable

    def check_id(self, value: int) -> int:
        """Returns an id after checking that it lies within the header's bound."""
        bound = self.binary.bound
        if not 0 < value < bound:
            raise InvalidArgumentError(
                f"SPIR-V id {value} is outside the header's bound (1 to {bound - 1}); the module is damaged"
            )
        return value

    def _read(self) -> None:
        words = self.words
        function: Function | None = None
        for opcode, start, end in self.binary:
            if opcode == Op.Function:
                if function is not None:
                    raise InvalidArgumentError(f"OpFunction at word {start} lies within another function")
                function = Function(self._define(words[start + 2]), [], [])
                self.functions[function.id] = function
            elif function is None:
                self._declare(opcode, start, end)
            elif opcode == Op.FunctionParameter:
                function.parameters.append(self._define(words[start + 2]))
            elif opcode == Op.FunctionEnd:
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
        return self.binary.string(start, end, errors)[0]

    def _declare(self, opcode: int, start: int, end: int) -> None:
        words = self.words
        if opcode in _TYPES:
            self._types.define(opcode, self._define(words[start + 1]), words[start + 2 : end])
            return
        if opcode in _CONSTANTS:
            self._constant(opcode, start, end)
            return
        match opcode:
            case Op.Name:
                name = self._string(start + 2, end, "replace")
                if self.names.setdefault(words[start + 1], name) != name:
                    self.more_names.setdefault(words[start + 1], []).append(name)
            case Op.MemberName:
                self.member_names[words[start + 1], words[start + 2]] = self._string(start + 3, end, "replace")
            case Op.Decorate:
                self._note(self.decorations.setdefault(self.check_id(words[start + 1]), {}), start + 2, end)
            case Op.MemberDecorate:
                key = self.check_id(words[start + 1]), words[start + 2]
                self._note(self.member_decorations.setdefault(key, {}), start + 3, end)
            case Op.Variable | Op.UntypedVariableKHR:
                self._variable(opcode, start, end)
            case Op.Source:
                self.source_language = self.source_language or words[start + 1]
            case Op.Capability:
                self.capabilities.append(words[start + 1])
            case Op.Extension:
                self.extensions.append(self._string(start + 1, end))
            case Op.ExtInstImport:
                self.instruction_sets[self._define(words[start + 1])] = self._string(start + 2, end, "replace")
            case Op.MemoryModel:
                self.addressing_model, self.memory_model = words[start + 1 : start + 3]
            case Op.EntryPoint:
                model, function = words[start + 1 : start + 3]
                self.entry_points.append((model, self.check_id(function), self._string(start + 3, end)))
            case Op.ExecutionMode | Op.ExecutionModeId:
                self._execution_mode(start, end)
            case Op.GroupDecorate:
                group = self.decorations.get(words[start + 1], {})
                for target in words[start + 2 : end]:
                    self.decorations.setdefault(self.check_id(target), {}).update(group)
            case Op.GroupMemberDecorate:
                group = self.decorations.get(words[start + 1], {})
                for index in range(start + 2, end - 1, 2):
                    key = self.check_id(words[index]), words[index + 1]
                    self.member_decorations.setdefault(key, {}).update(group)
            case Op.TypeForwardPointer:
                self._types.forward_pointers.add(self.check_id(words[start + 1]))

    def _execution_mode(self, start: int, end: int) -> None:
        function, mode = self.words[start + 1 : start + 3]
        if mode in (ExecutionMode.LocalSize, ExecutionMode.LocalSizeId):
            self._check_length(start, end, 6, "LocalSize")
            x, y, z = self.words[start + 3 : start + 6]
            (self.local_sizes if mode == ExecutionMode.LocalSize else self.local_size_ids)[function] = (x, y, z)

    def _note(self, values: dict[int, int], start: int, end: int) -> None:
        decoration = self.words[start]
        if decoration not in _DECORATIONS:
            return
        value = 0
        if decoration in _WITH_OPERAND:
            self._check_length(start, end, 2, f"decoration {Decoration.name(decoration)}")
            value = self.words[start + 1]
        # Drivers take the first, the last, or crash.
        if values.setdefault(decoration, value) != value:
            raise InvalidArgumentError(
                f"the SPIR-V decoration {Decoration.name(decoration)} at word {start} gives a second value, {value} "
                f"after {values[decoration]}; the module is damaged"
            )

    def _check_length(self, start: int, end: int, minimum: int, noun: str) -> None:
        if end - start < minimum:
            raise InvalidArgumentError(
                f"{noun} at word {start} has {end - start} words, expected at least {minimum}; the module is damaged"
            )

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
                constituents = tuple(self.binary.used_ids(start, end))
                value = fold_spec_constant_op(operands[0], scalar, operands[1:], self.constants)
        self.constants[result] = Constant(
            result,
            scalar,
            value,
            constituents,
            is_spec=opcode in _SPEC_SCALARS,
            varies=opcode in _VARYING,
            divides_by_zero=value is None
            and divides_by_zero(operands[0] if operands else 0, constituents, self.constants),
        )

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
