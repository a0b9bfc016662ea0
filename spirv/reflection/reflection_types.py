"""The results of reflection, made by `spirv.reflect`: plain frozen data, safe to share between threads."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, ClassVar, Final, Literal

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, NotFoundError, shown

# The names that glslang gives to the block of GLSL's variables, and Slang, dxc and glslang to that of HLSL's.
_LOOSE_BLOCKS: Final = ("gl_DefaultUniformBlock", "globalParams", "$Globals", "$Global")
ScalarKind = Literal["float", "int", "uint", "bool"]
JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


@functools.cache
def _encoded_floats() -> dict[str, np.dtype]:
    import ml_dtypes  # imported here so that programs start sooner

    return {
        "bfloat16": np.dtype(ml_dtypes.bfloat16),
        "float8_e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
        "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    }


@dataclass(frozen=True, slots=True)
class _Plain:
    def to_json(self) -> dict[str, JsonValue]:
        """Returns the fields by name, everything nested; infinities and NaN are their names."""
        return {field.name: _to_json(getattr(self, field.name)) for field in dataclasses.fields(self)}


def _to_json(value: Any) -> JsonValue:
    if isinstance(value, _Plain):
        return value.to_json()
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True, slots=True)
class ScalarType(_Plain):
    """A scalar of a shader.

    Attributes:
        kind: ``"float"``, ``"int"`` (signed), ``"uint"`` or ``"bool"``.
        bits: the width in bits; 32 for ``bool``, which has no defined bit pattern in SPIR-V. A physical storage buffer
            address is shown as a 64-bit ``uint``.
        encoding: ``""`` for IEEE 754 floats and all other kinds, else ``"bfloat16"``, ``"float8_e4m3"``,
            ``"float8_e5m2"`` or ``"encoding <number>"`` (SPIR-V's FP Encoding operand).
    """

    kind: ScalarKind
    bits: int
    encoding: str = ""

    @property
    def dtype(self) -> np.dtype | None:
        """The NumPy dtype of the scalar, or ``None`` for ``bool`` and formats NumPy has no dtype for."""
        if self.encoding:
            return _encoded_floats().get(self.encoding)
        if self.kind == "bool" or self.bits not in ((16, 32, 64) if self.kind == "float" else (8, 16, 32, 64)):
            return None
        return np.dtype(f"{self.kind}{self.bits}")


@dataclass(frozen=True, slots=True)
class BlockMember(_Plain):
    """One member of a block, or of a structure within one.

    Attributes:
        name: the name in the source, ``""`` where the module has no debug names.
        offset: the number of bytes from the start of the structure that holds the member.
        size: the size in bytes, arrays and matrices as stride times count; 0 for a run-time sized array.
        scalar: the scalar type, or ``None`` for a structure.
        components: the vector size (rows of a matrix); 1 for scalars and structures.
        columns: the number of columns of a matrix, else 1. SPIR-V's columns are the rows of matrices in HLSL and
            Slang, which index by row.
        array_length: the length of the (outermost) array, 0 if run-time sized, ``None`` if no array.
        array_stride: the number of bytes between elements of the (outermost) array, else ``None``.
        matrix_stride: the number of bytes between columns (rows if ``row_major``), else ``None``.
        row_major: whether a matrix is stored row by row.
        members: the members of a structure (or of the elements of an array of structures).
        array_shape: the length of every dimension of an array of arrays, outermost first; ``()`` if no array.
        array_strides: the stride in bytes of each of those dimensions.
        pointee: for a pointer, the name of its target in ``ShaderModuleReflection.pointees``; else ``""``.
    """

    name: str
    offset: int
    size: int
    scalar: ScalarType | None
    components: int = 1
    columns: int = 1
    array_length: int | None = None
    array_stride: int | None = None
    matrix_stride: int | None = None
    row_major: bool = False
    members: tuple[BlockMember, ...] = ()
    array_shape: tuple[int, ...] = ()
    array_strides: tuple[int, ...] = ()
    pointee: str = ""


@dataclass(frozen=True, slots=True)
class ElementLayout(_Plain):
    """The elements of a block's last member, if it may be an array.

    Attributes:
        scalar: the scalar type of an element; for a structure, the one type that all its members share.
        components: the vector size (rows of a matrix); 1 for scalars and structures.
        columns: the number of columns of a matrix, else 1.
        stride: the number of bytes from one element to the next; the element's size if there is no array.
        array: the kind of array: ``"runtime"``, ``"fixed"``, or ``"none"`` where the block's only member is not an
            array.
        length: the number of elements in a ``"fixed"`` array, else ``None``.
        struct: the members, where elements are structures.
        inner_shape: the inner dimensions of an array of arrays, outermost first.
    """

    scalar: ScalarType
    components: int
    columns: int
    stride: int
    array: Literal["runtime", "fixed", "none"]
    length: int | None
    struct: tuple[BlockMember, ...] = ()
    inner_shape: tuple[int, ...] = ()

    @property
    def dtype(self) -> np.dtype | None:
        """NumPy dtype of one component; ``None`` for structures, ``bool`` and formats NumPy has no dtype for."""
        return None if self.struct else self.scalar.dtype

    def to_json(self) -> dict[str, JsonValue]:
        """Returns the fields by name, and ``dtype`` as its name or ``None``."""
        dtype = self.dtype
        return {**_Plain.to_json(self), "dtype": None if dtype is None else dtype.name}


ImageDim = Literal["1d", "2d", "3d", "cube", "buffer", "rect", "subpassdata", "tileimagedataext"]


@dataclass(frozen=True, slots=True)
class ImageType(_Plain):
    """The image, or texel buffer, of a binding: SPIR-V's ``OpTypeImage``.

    Attributes:
        dim: the kind of dimensions: ``"1d"``, ``"2d"``, ``"3d"``, ``"cube"``, ``"buffer"`` (texel buffers) or
            ``"rect"``.
        arrayed: whether it has layers.
        multisampled: whether its texels have several samples.
        depth: whether it is declared as a depth image, which is sampled with a comparison.
        sampled: the scalar type of reads and writes.
        storage: whether it is read and written without a sampler.
        format: the texel format of storage images by SPIR-V's name in lower case (``"rgba8"``, ``"r32f"``,
            ``"rgba8snorm"``); ``"unknown"`` where any format is allowed.
    """

    dim: ImageDim
    arrayed: bool
    multisampled: bool
    depth: bool
    sampled: ScalarType
    storage: bool
    format: str


@dataclass(frozen=True, slots=True)
class BufferBlock(_Plain):
    """The layout of a block in memory, for a variable on a binding or the target of a pointer.

    Attributes:
        name: the variable's name, else the structure's, else ``""``; of a pointee it is unique in the module.
        structure: the name of the structure, or ``""``.
        element, fixed_size, members: the same as in ``Binding``.
    """

    name: str
    structure: str
    element: ElementLayout | None
    fixed_size: int
    members: tuple[BlockMember, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of an argument for it: those of the variable and of the structure.

        Code refers to a block without a variable by its members, so a single member's name is one too.
        """
        alone = self.name == self.structure and len(self.members) == 1
        return tuple(filter(None, (self.name, self.structure, self.members[0].name if alone else "")))


@dataclass(frozen=True, slots=True)
class Binding(_Plain):
    """One descriptor binding that an entry point statically uses.

    Several variables on one binding (aliases of different element types) make one ``Binding``: access is what
    any of them does, ``fixed_size`` the largest, the members those of the first, and ``element`` is ``None``
    where they differ; ``aliases`` has each of them.

    Attributes:
        set: the descriptor set's number.
        binding: the number within the set.
        name: the variable's name, else its block's, else ``""``.
        descriptor_type: the ``VkDescriptorType`` value.
        descriptor_type_name: the descriptor type's name without prefix, in lower case (``"storage_buffer"``).
        count: the number of descriptors in the binding: 1, an array's length, or 0 for a run-time sized array.
        readable: whether the shader may read it. ``False`` only if declared so or no instruction can.
        writable: whether the shader may write it. ``False`` only if declared so or no instruction can.
        element: the elements of the block's (last) array; ``None`` for images, samplers and blocks with neither an
            array at their end nor a single member, and for structures of mixed scalar types.
        fixed_size: the number of bytes before the run-time array, or of the whole block up to the end of its last
            member.
        members: the block's members.
        image: the type of images, combined image samplers and texel buffers; ``None`` for buffers and samplers.
        image_aliases: the image types of further variables on the binding, where they differ from ``image``.
        block: the name of the block's structure, ``""`` for images and samplers.
        aliases: the blocks of all variables on the binding, the first included, where there are several.
        shared_output: whether the shader writes it, but nowhere at a place that follows from the invocation's number:
            as the sum of a reduction, or the bins of a histogram.
        spread_input: whether the shader reads it at places that follow from the invocation's or workgroup's number.
    """

    set: int
    binding: int
    name: str
    descriptor_type: int
    descriptor_type_name: str
    count: int
    readable: bool
    writable: bool
    element: ElementLayout | None
    fixed_size: int
    members: tuple[BlockMember, ...]
    image: ImageType | None = None
    image_aliases: tuple[ImageType, ...] = ()
    block: str = ""
    aliases: tuple[BufferBlock, ...] = ()
    shared_output: bool = False
    spread_input: bool = False

    @property
    def blocks(self) -> tuple[BufferBlock, ...]:
        """The layout as each variable on the binding declares it: one, except for aliases."""
        return self.aliases or (BufferBlock(self.name, self.block, self.element, self.fixed_size, self.members),)


@dataclass(frozen=True, slots=True)
class Declaration(_Plain):
    """A binding that a module declares, whether an entry point uses it or not.

    Attributes:
        set: the descriptor set's number.
        binding: the number within the set.
        count: the number of descriptors: 1, an array's length, or 0 for a run-time sized array.
        names: the names of its variables and of their blocks.
    """

    set: int
    binding: int
    count: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PushConstantBlock(_Plain):
    """The push constants of an entry point.

    Attributes:
        size: the number of bytes from 0 up to the end of the last member.
        members: the members, in declaration order.
    """

    noun: ClassVar[str] = "push constant"
    """The noun for a member in messages."""

    size: int
    members: tuple[BlockMember, ...]


class UniformValues(PushConstantBlock):
    """The uniforms outside blocks, which calls give as they give push constants."""

    noun: ClassVar[str] = "uniform"


@dataclass(frozen=True, slots=True)
class SpecializationConstant(_Plain):
    """The constants that one id of pipeline creation sets.

    Attributes:
        constant_id: the ``SpecId``, ``VkSpecializationMapEntry::constantID``.
        name: the name in the source, or ``""``.
        scalar: the constant's type. In specialization data a ``bool`` takes 4 bytes (``VkBool32``).
        default: the value in the module, exact.
        names: the names of all constants with this id.
        scalars: the types of these constants, in the module's order.
        defaults: the distinct defaults of these constants, in the module's order. Without a value each constant keeps
            its own.
    """

    constant_id: int
    name: str
    scalar: ScalarType
    default: int | float | bool
    names: tuple[str, ...] = ()
    scalars: tuple[ScalarType, ...] = ()
    defaults: tuple[int | float | bool, ...] = ()

    def __str__(self) -> str:
        return f"{self.constant_id} ({', '.join(self.names) or 'unnamed'})"


@dataclass(frozen=True, slots=True)
class EntryPoint(_Plain):
    """One entry point and the declarations that its call graph statically uses.

    Attributes:
        name: the name, as ``VkPipelineShaderStageCreateInfo::pName`` expects it.
        execution_model: the execution model by its SPIR-V name, ``"GLCompute"`` for compute.
        local_size: the number of invocations in a workgroup in x, y, z, specialization constants at their defaults;
            ``(1, 1, 1)`` for execution models without workgroups. 0 if it is not settled.
        local_size_spec_ids: the specialization constant that sets each size, or ``None`` for a fixed size.
        bindings: the bindings by set, then by binding.
        push_constants: the push constant block, or ``None``.
        workgroup_memory_bytes: the bytes of workgroup (shared) memory, specialization constants at their defaults, laid
            out with std430's sizes and alignments and 4-byte booleans; explicitly laid out blocks overlap. The driver
            may need a little more or less. ``None`` if a size is unknown.
    """

    name: str
    execution_model: str
    local_size: tuple[int, int, int]
    local_size_spec_ids: tuple[int | None, int | None, int | None]
    bindings: tuple[Binding, ...]
    push_constants: PushConstantBlock | None
    workgroup_memory_bytes: int | None

    @property
    def loose_uniforms(self) -> Binding | None:
        """The uniform block of variables outside blocks, as ``uniform float dt;`` in OpenGL's GLSL.

        ``None`` without such variables, and where there are push constants, which have the names in a call then.
        """
        if self.push_constants is not None:
            return None
        return next((b for b in self.bindings if b.name in _LOOSE_BLOCKS and b.count == 1), None)

    @property
    def constants(self) -> PushConstantBlock | None:
        """The values that a call gives by their own names: the push constants, or else the loose uniforms."""
        loose = self.loose_uniforms
        return self.push_constants if loose is None else UniformValues(-(-loose.fixed_size // 16) * 16, loose.members)


@dataclass(frozen=True, slots=True)
class ShaderModuleReflection(_Plain):
    """The declarations of a SPIR-V module.

    Attributes:
        version: the SPIR-V version, ``(major, minor)``.
        generator: the header's generator word: tool in the upper 16 bits, tool's version in the lower.
        capabilities: the declared capabilities by SPIR-V name, ``"Capability(<number>)"`` if not known here.
        extensions: the declared SPIR-V extensions, and those whose instruction sets are imported.
        addressing_model: the addressing model; ``"Logical"`` or ``"PhysicalStorageBuffer64"`` in Vulkan.
        memory_model: the memory model; ``"GLSL450"`` or ``"Vulkan"`` in Vulkan.
        entry_points: the entry points, in the module's order.
        specialization_constants: the specialization constants by constant id.
        pointees: the targets of physical storage buffer pointers in blocks, in other pointees and in the code.
        unsettled: the array lengths and workgroup sizes that do not hold at the module's defaults (0, or an expression
            that is not evaluated), one sentence each; they count as 1, sizes of workgroups as 0. A pipeline needs
            values of specialization constants that settle them.
        declared: the bindings that the module declares, used or not, by set, then by binding.
        declared_push_constants: the names of the members of all its push constant blocks, used or not.
    """

    version: tuple[int, int]
    generator: int
    capabilities: tuple[str, ...]
    extensions: tuple[str, ...]
    addressing_model: str
    memory_model: str
    entry_points: tuple[EntryPoint, ...]
    specialization_constants: tuple[SpecializationConstant, ...]
    pointees: tuple[BufferBlock, ...] = ()
    unsettled: tuple[str, ...] = ()
    declared: tuple[Declaration, ...] = ()
    declared_push_constants: tuple[str, ...] = ()

    def entry_point(self, name: str | None = None) -> EntryPoint:
        """Returns the entry point of that name, preferring ``GLCompute``; without a name the only ``GLCompute`` one.

        Args:
            name: the name, or ``None`` if the module has one compute entry point.

        Raises:
            NotFoundError: there is no entry point of that name, or no ``GLCompute`` entry point at all.
            InvalidArgumentError: ``name`` is ``None`` and there are several entry points.
        """
        compute = [entry for entry in self.entry_points if entry.execution_model == "GLCompute"]
        existing = ", ".join(f"{shown(entry.name)} ({entry.execution_model})" for entry in self.entry_points) or "none"
        if name is not None:
            for entry in (*compute, *self.entry_points):
                if entry.name == name:
                    return entry
            raise NotFoundError(f"the SPIR-V module has no entry point {shown(name)}; it has: {existing}")
        if not compute:
            raise NotFoundError(f"expected a GLCompute entry point in the SPIR-V module; it has: {existing}")
        if len(compute) > 1:
            raise InvalidArgumentError(
                f"the SPIR-V module has {len(compute)} GLCompute entry points; name one of: "
                + ", ".join(repr(entry.name) for entry in compute)
            )
        return compute[0]
