"""The types of a SPIR-V module: their parts and natural sizes.

A type's parts must be defined before it, except pointers announced by `OpTypeForwardPointer`; so types form no cycles
and nothing here recurses.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final, cast

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError
from ..binary.grammar import ENUMERATIONS, Dim, FPEncoding, Op
from .constants import Constant
from .reflection_types import ImageDim, ImageType, ScalarType

_MAX_SIZE: Final = 1 << 63
_FLOAT_ENCODINGS: Final = {
    FPEncoding.BFloat16KHR: "bfloat16",
    FPEncoding.Float8E4M3EXT: "float8_e4m3",
    FPEncoding.Float8E5M2EXT: "float8_e5m2",
}
_SAMPLED_STORAGE: Final = 2
_FLOAT_WIDTHS: Final = {"": (16, 32, 64), "bfloat16": (16,), "float8_e4m3": (8,), "float8_e5m2": (8,)}


class TypeKind(enum.Enum):
    """The kinds of types that reflection distinguishes."""

    SCALAR = enum.auto()
    VECTOR = enum.auto()
    MATRIX = enum.auto()
    ARRAY = enum.auto()
    RUNTIME_ARRAY = enum.auto()
    STRUCT = enum.auto()
    POINTER = enum.auto()
    IMAGE = enum.auto()
    SAMPLER = enum.auto()
    SAMPLED_IMAGE = enum.auto()
    ACCELERATION_STRUCTURE = enum.auto()
    TENSOR = enum.auto()
    OTHER = enum.auto()


_OPAQUE: Final = {
    Op.TypeSampler: TypeKind.SAMPLER,
    Op.TypeAccelerationStructureKHR: TypeKind.ACCELERATION_STRUCTURE,
    Op.TypeTensorARM: TypeKind.TENSOR,
}


@dataclass(frozen=True, slots=True)
class Type:
    """A type.

    Attributes:
        id: the result id.
        kind: the kind of type, such as a scalar or a vector.
        scalar: for scalars, vectors and matrices, the scalar type at the bottom.
        count: the number of components or columns, or the array length; ``None`` for a length that is not known.
        length: the id of the constant that is an array's length, else 0.
        element: the id of the component, column, element, pointed-to type, or a sampled image's image type; else 0.
        members: the ids of a structure's member types.
        natural_size: the number of bytes by std430 rules with 4-byte booleans, ``None`` if there is no such size.
        natural_align: the alignment by the same rules.
        is_opaque: whether it contains an image, a sampler or another opaque type.
        storage_class: the storage class of a pointer, else -1.
        image: the properties of an image.
    """

    id: int
    kind: TypeKind
    scalar: ScalarType | None = None
    count: int | None = 1
    element: int = 0
    members: tuple[int, ...] = ()
    natural_size: int | None = None
    natural_align: int = 1
    is_opaque: bool = False
    storage_class: int = -1
    image: ImageType | None = None
    length: int = 0


def _round_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def _bounded(size: int) -> int | None:
    return size if size < _MAX_SIZE else None


class TypeTable:
    """The types defined so far, by id, in the order of their definition.

    ``constants`` are for array lengths. ``unsettle`` is called for an array type whose length is not positive but may
    be under another specialization, with its id, a sentence, and the length's id.
    """

    def __init__(self, constants: dict[int, Constant], unsettle: Callable[[int, str, int], None]) -> None:
        self.types: dict[int, Type] = {}
        self._constants = constants
        self._unsettle = unsettle
        self.forward_pointers: set[int] = set()
        """Ids of announced pointer types, so that structures may use them before their definition."""

    def get(self, type_id: int) -> Type:
        """Returns the type of that id, which must be defined already."""
        type_ = self.types.get(type_id)
        if type_ is None:
            raise InvalidArgumentError(f"SPIR-V id {type_id} is used as a type but no type is defined under it before")
        return type_

    def define(self, opcode: int, result: int, operands: tuple[int, ...]) -> None:
        """Adds the type that an instruction declares; `operands` are its words after the result id."""
        if result in self.forward_pointers and opcode != Op.TypePointer:
            raise InvalidArgumentError(f"SPIR-V id {result} is announced as a pointer type but is another type")
        self.types[result] = self._new_type(opcode, result, operands)

    def finish(self) -> None:
        """Checks that every announced pointer type was defined."""
        for pointer in self.forward_pointers:
            if pointer not in self.types:
                raise InvalidArgumentError(f"SPIR-V id {pointer} is announced as a pointer type but never defined")

    def _new_type(self, opcode: int, result: int, operands: tuple[int, ...]) -> Type:
        match opcode:
            case Op.TypeBool:
                return Type(result, TypeKind.SCALAR, ScalarType("bool", 32), natural_size=4, natural_align=4)
            case Op.TypeInt | Op.TypeFloat:
                return self._scalar_type(opcode, result, operands)
            case Op.TypeVector | Op.TypeMatrix:
                return self._vector_type(opcode, result, operands)
            case Op.TypeImage:
                return Type(result, TypeKind.IMAGE, is_opaque=True, image=self._image_type(result, operands))
            case Op.TypeSampledImage:
                return Type(result, TypeKind.SAMPLED_IMAGE, element=self.get(operands[0]).id, is_opaque=True)
            case Op.TypeArray | Op.TypeRuntimeArray:
                return self._array_type(opcode, result, operands)
            case Op.TypeStruct:
                return self._struct_type(result, operands)
            case Op.TypePointer:
                pointee = self._part(operands[1])
                return Type(result, TypeKind.POINTER, None, 1, pointee.id, (), 8, 8, storage_class=operands[0])
        return Type(result, _OPAQUE.get(opcode, TypeKind.OTHER), is_opaque=opcode in _OPAQUE)

    def _scalar_type(self, opcode: int, result: int, operands: tuple[int, ...]) -> Type:
        bits = operands[0]
        if opcode == Op.TypeInt:
            scalar = ScalarType("int" if operands[1] else "uint", bits)
            widths: tuple[int, ...] = (4, 8, 16, 32, 64)
        else:
            encoding = _FLOAT_ENCODINGS.get(operands[1], f"encoding {operands[1]}") if len(operands) > 1 else ""
            scalar = ScalarType("float", bits, encoding)
            widths = _FLOAT_WIDTHS.get(encoding, (4, 6, 8, 16))
        if bits not in widths:
            raise InvalidArgumentError(f"the SPIR-V {scalar.kind} type {result} is {bits} bits wide, expected {widths}")
        size = max(bits // 8, 1)
        return Type(result, TypeKind.SCALAR, scalar, natural_size=size, natural_align=size)

    def _image_type(self, result: int, operands: tuple[int, ...]) -> ImageType:
        sampled_type, dim, depth, arrayed, multisampled, sampled, texel_format = operands[:7]
        scalar = self.get(sampled_type).scalar
        if scalar is None:
            raise InvalidArgumentError(
                f"the SPIR-V image type {result} is sampled as id {sampled_type}, expected an integer or float type; "
                "compile the shader for Vulkan"
            )
        return ImageType(
            dim=cast("ImageDim", Dim.name(dim).lower()),
            arrayed=bool(arrayed),
            multisampled=bool(multisampled),
            depth=depth == 1,
            sampled=scalar,
            storage=sampled == _SAMPLED_STORAGE,
            format=ENUMERATIONS["ImageFormat"].name(texel_format).lower(),
        )

    def _vector_type(self, opcode: int, result: int, operands: tuple[int, ...]) -> Type:
        element, count = self.get(operands[0]), operands[1]
        kind, of = (TypeKind.VECTOR, TypeKind.SCALAR) if opcode == Op.TypeVector else (TypeKind.MATRIX, TypeKind.VECTOR)
        if element.kind is not of or count < 1:
            raise InvalidArgumentError(
                f"the SPIR-V {kind.name.lower()} type {result} is {count} times id {element.id}, which is "
                f"{element.kind.name.lower()}; expected one or more {of.name.lower()}s"
            )
        assert element.natural_size is not None
        if kind is TypeKind.VECTOR:
            size = element.natural_size * count
            align = element.natural_align * (1 if count == 1 else 2 if count == 2 else 4)
        else:
            align = element.natural_align
            size = _round_up(element.natural_size, align) * count
        return Type(result, kind, element.scalar, count, element.id, natural_size=size, natural_align=align)

    def _part(self, type_id: int) -> Type:
        """Returns a part of a type: it is already defined, or announced as a pointer."""
        if type_id in self.forward_pointers and type_id not in self.types:
            return Type(type_id, TypeKind.POINTER, natural_size=8, natural_align=8)
        return self.get(type_id)

    def _array_type(self, opcode: int, result: int, operands: tuple[int, ...]) -> Type:
        element = self._part(operands[0])
        if opcode == Op.TypeRuntimeArray:
            return Type(result, TypeKind.RUNTIME_ARRAY, None, None, element.id, is_opaque=element.is_opaque)
        length = self._constants.get(operands[1])
        if length is None or (length.value is not None and type(length.value) is not int):
            raise InvalidArgumentError(
                f"the length of SPIR-V array type {result} is id {operands[1]}, which is not an integer constant"
            )
        count = length.value if isinstance(length.value, int) else None
        if length.divides_by_zero:
            self._unsettle(result, f"the length of SPIR-V array type {result} divides by zero", length.id)
        if count is not None and count < 1:
            sentence = f"SPIR-V array type {result} has length {count}, expected at least 1"
            if not length.varies:
                raise InvalidArgumentError(sentence)
            self._unsettle(result, sentence, length.id)
            count = None
        size, align = None, element.natural_align
        if count is not None and element.natural_size is not None:
            size = _bounded(_round_up(element.natural_size, align) * count)
        return Type(
            result, TypeKind.ARRAY, None, count, element.id, (), size, align, element.is_opaque, length=length.id
        )

    def _struct_type(self, result: int, operands: tuple[int, ...]) -> Type:
        size: int | None = 0
        align = 1
        is_opaque = False
        for member_id in operands:
            member = self._part(member_id)
            is_opaque = is_opaque or member.is_opaque
            if member.natural_size is None:
                size = None
                continue
            align = max(align, member.natural_align)
            if size is not None:
                size = _bounded(_round_up(size, member.natural_align) + member.natural_size)
        size = None if size is None else _round_up(size, align)
        return Type(result, TypeKind.STRUCT, None, None, 0, operands, size, align, is_opaque)
