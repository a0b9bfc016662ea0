"""Memory layout of SPIR-V blocks from their Offset, ArrayStride and MatrixStride decorations.

Nothing is inferred from std140 or std430 rules: Vulkan requires explicit layouts of all blocks (Vulkan specification,
"Offset and Stride Assignment").
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, UnimplementedError
from ..binary.grammar import Decoration, StorageClass
from .module import Module
from .reflection_types import BlockMember, BufferBlock, ElementLayout, ScalarType
from .type_table import Type, TypeKind

_MAX_SIZE: Final = 1 << 63
_MAX_DIMENSIONS: Final = 32
_MAX_COLUMNS: Final = 4
# Slang keeps an array in a structure of its own, and did so with matrices whose layout is not SPIR-V's own.
_WRAPPED_ARRAY: Final = "_Array_"
_WRAPPED_MATRIX: Final = re.compile(r"_MatrixStorage_\w+?[234]x[234]_(Row|Col)Major")
# Nested structures name each member once but show it many times; these limits keep a forged module small.
_MAX_DEPTH: Final = 64
_MAX_MEMBERS: Final = 1 << 16


class _Dimensions(NamedTuple):
    """The array dimensions around a type.

    Attributes:
        arrays: the length or 0, and the array type, of each dimension, outermost first.
        base: the type within.
        wrapper: the id of the innermost structure that exists only to hold an array; 0 if there is none.
    """

    arrays: list[tuple[int, Type]]
    base: Type
    wrapper: int


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """The layout of a structure.

    Attributes:
        members: the members in declaration order.
        size: the number of bytes up to the end of the last member; a run-time sized array counts as empty.
        element: the element of the block's array; see `Binding.element`.
        scalars: all scalar types within.
        depth: the number of levels of nested structures, its own included.
        total: the number of members, nested ones included.
    """

    members: tuple[BlockMember, ...]
    size: int
    element: ElementLayout | None
    scalars: frozenset[ScalarType]
    depth: int
    total: int


def _element(members: list[BlockMember], scalars: frozenset[ScalarType]) -> ElementLayout | None:
    """Returns the elements of the last member's array, or of the only member; see `Binding.element`."""
    if len(scalars) != 1 or (len(members) > 1 and not members[-1].array_shape):
        return None
    last, shape = members[-1], members[-1].array_shape
    return ElementLayout(
        scalar=next(iter(scalars)),
        components=last.components,
        columns=last.columns,
        stride=last.array_strides[0] if shape else last.size,
        array="none" if not shape else "fixed" if shape[0] else "runtime",
        length=(shape[0] or None) if shape else None,
        struct=last.members,
        inner_shape=shape[1:],
    )


def _required(value: int | None, decoration: int, noun: str) -> int:
    if value is None:
        raise InvalidArgumentError(
            f"{noun} has no {Decoration.name(decoration)} decoration, but blocks must be explicitly laid out; "
            "compile the shader for Vulkan"
        )
    return value


class BlockLayouts:
    """The layouts of a module's structures, each computed once."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._order = {type_id: index for index, type_id in enumerate(module.types)}
        self._layouts: dict[int, BlockLayout] = {}
        self._pointees: dict[int, str] = {}

    def layout(self, struct_id: int) -> BlockLayout:
        """Returns the layout of a structure.

        Raises:
            InvalidArgumentError: a member is not laid out, or its type cannot be in a block.
            UnimplementedError: there are too many levels or members.
        """
        layout = self._layouts.get(struct_id)
        if layout is not None:
            return layout
        needed = {struct_id}
        pending = [struct_id]
        while pending:
            for member in self._module.type(pending.pop()).members:
                base = self._dimensions(member).base
                if base.kind is TypeKind.STRUCT and base.id not in needed and base.id not in self._layouts:
                    needed.add(base.id)
                    pending.append(base.id)
        # Members are defined before their structure, so this order needs no recursion.
        for needed_id in sorted(needed, key=self._order.__getitem__):
            self._layouts[needed_id] = self._lay_out(self._module.type(needed_id))
        return self._layouts[struct_id]

    def _dimensions(self, type_id: int) -> _Dimensions:
        dimensions: list[tuple[int, Type]] = []
        wrapper = 0
        of = self._module.type(type_id)
        while True:
            if of.kind is TypeKind.RUNTIME_ARRAY:
                length = 0
            elif of.kind is TypeKind.ARRAY and of.count is None:
                self._module.unsettle(
                    of.id,
                    f"the length of SPIR-V array type {of.id} is a specialization constant expression that is not "
                    "evaluated here; use an integer expression, or freeze it (spirv-opt --freeze-spec-const)",
                    of.length,
                )
                length = 1
            elif of.kind is TypeKind.ARRAY:
                length = of.count or 0
            elif self._is_wrapped_array(of):
                wrapper, of = of.id, self._module.type(of.members[0])
                continue
            else:
                return _Dimensions(dimensions, of, wrapper)
            dimensions.append((length, of))
            if len(dimensions) > _MAX_DIMENSIONS:
                raise UnimplementedError(f"a SPIR-V array in a block has over {_MAX_DIMENSIONS} dimensions")
            of = self._module.type(of.element)

    def _is_wrapped_array(self, of: Type) -> bool:
        return (
            len(of.members) == 1
            and self._module.names.get(of.id, "").startswith(_WRAPPED_ARRAY)
            and self._module.type(of.members[0]).kind is TypeKind.ARRAY
            and self._module.member_decoration(of.id, 0, Decoration.Offset) == 0
        )

    def _lay_out(self, of: Type) -> BlockLayout:
        members: list[BlockMember] = []
        scalars = inside = frozenset[ScalarType]()
        depth = total = size = 0
        for index, type_id in enumerate(of.members):
            member = self._member(of, index, type_id)
            members.append(member)
            size = max(size, member.offset + member.size)
            total += 1
            if member.scalar is not None:
                inside = frozenset({member.scalar})
            else:
                inner = self._layouts[self._dimensions(type_id).base.id]
                inside = inner.scalars
                depth = max(depth, inner.depth)
                total += inner.total
            scalars |= inside
        if depth + 1 > _MAX_DEPTH or total > _MAX_MEMBERS:
            raise UnimplementedError(
                f"SPIR-V structure {of.id} nests {depth + 1} levels with {total} members in all; "
                f"at most {_MAX_DEPTH} levels and {_MAX_MEMBERS} members are supported"
            )
        if self._is_nameless_wrapper(of, members):
            inner = self._layouts[of.members[0]]
            return BlockLayout(inner.members, size, inner.element, scalars, depth + 1, total)
        return BlockLayout(tuple(members), size, _element(members, inside), scalars, depth + 1, total)

    def _is_nameless_wrapper(self, of: Type, members: list[BlockMember]) -> bool:
        """Whether a structure has one nameless member, a structure with names: naga's block around a variable."""
        if len(members) != 1 or members[0].name or members[0].offset or members[0].array_shape:
            return False
        return of.members[0] in self._layouts and any(member.name for member in members[0].members)

    def _member(self, of: Type, index: int, type_id: int) -> BlockMember:
        module = self._module
        subject = f"member {index} of SPIR-V structure {of.id}"
        offset = _required(module.member_decoration(of.id, index, Decoration.Offset), Decoration.Offset, subject)
        dimensions, base, wrapper = self._dimensions(type_id)
        if any(not length for length, _ in dimensions[1:]):
            raise InvalidArgumentError(f"{subject} has a run-time sized array within an array")
        shape = tuple(length for length, _ in dimensions)
        strides = tuple(
            _required(module.decoration(array.id, Decoration.ArrayStride), Decoration.ArrayStride, f"array {array.id}")
            for _, array in dimensions
        )
        scalar, components, columns, size = base.scalar, 1, 1, base.natural_size
        matrix_stride: int | None = None
        row_major = False
        members: tuple[BlockMember, ...] = ()
        pointee = ""
        match base.kind:
            case TypeKind.VECTOR:
                components = base.count or 1
            case TypeKind.MATRIX:
                components, columns = module.type(base.element).count or 1, base.count or 1
                holder = (wrapper, 0) if wrapper else (of.id, index)
                stride = module.member_decoration(*holder, Decoration.MatrixStride)
                matrix_stride = _required(stride, Decoration.MatrixStride, subject)
                row_major = module.member_decoration(*holder, Decoration.RowMajor) is not None
                size = matrix_stride * (components if row_major else columns)
                if module.has_matrices_of_rows:
                    components, columns, row_major = columns, components, not row_major
            case TypeKind.STRUCT if wrapped := self._wrapped_matrix(base):
                far, near, matrix_stride, row_major = wrapped
                scalar, size = near.scalar, far * matrix_stride
                components, columns = (far, near.count or 1) if row_major else (near.count or 1, far)
            case TypeKind.STRUCT:
                inner = self._layouts[base.id]
                members, size = inner.members, inner.size
            case TypeKind.POINTER:
                scalar, pointee = ScalarType("uint", 64), self._pointee(base)
            case TypeKind.SCALAR:
                pass
            case _:
                raise InvalidArgumentError(
                    f"{subject} is of a type ({base.kind.name.lower()}) that cannot be in a block"
                )
        if shape:
            size = shape[0] * strides[0]
        if size is None or offset + size >= _MAX_SIZE:
            raise InvalidArgumentError(f"{subject} is larger than any buffer; the module is damaged")
        return BlockMember(
            name=module.member_names.get((of.id, index), ""),
            offset=offset,
            size=size,
            scalar=scalar,
            components=components,
            columns=columns,
            array_length=shape[0] if shape else None,
            array_stride=strides[0] if strides else None,
            matrix_stride=matrix_stride,
            row_major=row_major,
            members=members,
            array_shape=shape,
            array_strides=strides,
            pointee=pointee,
        )

    def _wrapped_matrix(self, of: Type) -> tuple[int, Type, int, bool] | None:
        """Returns the matrix that Slang keeps in a structure, as an array of its rows or columns: their number, the
        vector type, the stride, and whether they are rows.
        """
        name = _WRAPPED_MATRIX.match(self._module.names.get(of.id, ""))
        array = self._module.type(of.members[0]) if name and len(of.members) == 1 else None
        if name is None or array is None or array.kind is not TypeKind.ARRAY or array.count is None:
            return None
        vector = self._module.type(array.element)
        stride = self._module.decoration(array.id, Decoration.ArrayStride)
        if vector.kind is not TypeKind.VECTOR or stride is None or array.count > _MAX_COLUMNS:
            return None
        return array.count, vector, stride, name[1] == "Row"

    # -- what pointers point to ----------------------------------------------------------------------

    def pointees(self, spend: Callable[[int], None]) -> tuple[BufferBlock, ...]:
        """Returns the target blocks of pointers in the code and in the blocks laid out so far.

        A structure without a valid layout is left out, since only its layout depends on it. ``spend`` is called with
        the member count of each block, and may raise to end the work.
        """
        module = self._module
        for of in module.types.values():
            physical = of.kind is TypeKind.POINTER and of.storage_class == StorageClass.PhysicalStorageBuffer
            if physical and module.decoration(of.element, Decoration.Block) is not None:
                self._pointee(of)
        blocks: list[BufferBlock] = []
        done = 0
        while done < len(self._pointees):  # a layout may add more pointees
            for type_id, name in list(self._pointees.items())[done:]:
                done += 1
                try:
                    layout = self.layout(type_id)
                except (InvalidArgumentError, UnimplementedError):
                    continue
                spend(layout.total)
                structure = module.names.get(type_id, "")
                blocks.append(BufferBlock(name, structure, layout.element, layout.size, layout.members))
        return tuple(blocks)

    def _pointee(self, pointer: Type) -> str:
        """Returns the unique name of a pointer's target structure; the type's name for a plain type."""
        of = self._module.types.get(pointer.element)
        if of is None:
            return ""
        if of.kind is not TypeKind.STRUCT:
            return "" if of.scalar is None else f"{of.scalar.kind}{of.scalar.bits}"
        if of.id not in self._pointees:
            name = self._module.names.get(of.id) or f"struct{of.id}"
            taken = name in self._pointees.values()
            self._pointees[of.id] = f"{name}_{of.id}" if taken else name
        return self._pointees[of.id]
