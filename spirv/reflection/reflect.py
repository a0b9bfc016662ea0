"""From a parsed SPIR-V module to the interfaces of its entry points: bindings, push constants, workgroup sizes."""

from __future__ import annotations

import dataclasses
import enum
from typing import Final

from ...status import InvalidArgumentError, UnimplementedError, shown
from ..binary.grammar import ENUMERATIONS, BuiltIn, Decoration, ExecutionModel, StorageClass
from .access import READ, WRITE, AccessAnalysis
from .constants import ConstantValue
from .declarations import declared_bindings, declared_push_constants
from .layout import BlockLayouts
from .module import Module, Variable
from .ownership import Ownership, OwnershipAnalysis
from .reflection_types import (
    Binding,
    EntryPoint,
    ImageType,
    PushConstantBlock,
    ScalarType,
    ShaderModuleReflection,
    SpecializationConstant,
)
from .type_table import Type, TypeKind

_STAGE_CLASSES: Final = (StorageClass.Input, StorageClass.Output)


class _Kind(enum.IntEnum):
    """VkDescriptorType of the Vulkan specification, "Descriptor Types"."""

    SAMPLER = 0
    COMBINED_IMAGE_SAMPLER = 1
    SAMPLED_IMAGE = 2
    STORAGE_IMAGE = 3
    UNIFORM_TEXEL_BUFFER = 4
    STORAGE_TEXEL_BUFFER = 5
    UNIFORM_BUFFER = 6
    STORAGE_BUFFER = 7
    INPUT_ATTACHMENT = 10
    ACCELERATION_STRUCTURE = 1000150000
    TENSOR = 1000460000


_WRITABLE: Final = frozenset({_Kind.STORAGE_IMAGE, _Kind.STORAGE_TEXEL_BUFFER, _Kind.STORAGE_BUFFER, _Kind.TENSOR})
# A combined image sampler may share its binding with views of either half.
_COMBINABLE: Final = frozenset({_Kind.SAMPLER, _Kind.COMBINED_IMAGE_SAMPLER, _Kind.SAMPLED_IMAGE})
_RESOURCE_CLASSES: Final = frozenset({StorageClass.UniformConstant, StorageClass.Uniform, StorageClass.StorageBuffer})
_MAX_COUNT: Final = 0xFFFFFFFF


def reflect(code: bytes | bytearray | memoryview) -> ShaderModuleReflection:
    """Reflects a SPIR-V module: entry points with their bindings, push constants and workgroup sizes.

    Checks only what reflection reads, which is less than spirv-val does: a module that passes may still be invalid.
    Lengths and sizes that depend on specialization constants are those of the module's defaults; ``unsettled`` names
    those that are not valid sizes at the defaults.

    Args:
        code: a binary SPIR-V module of version 1.0 to 1.6, little-endian.

    Raises:
        InvalidArgumentError: the code is not SPIR-V, is damaged, or breaks a rule that reflection depends on.
        IncompatibleError: the SPIR-V version is not known.
        UnimplementedError: the module has a construct that is not evaluated, such as a variable without a type.
        ResourceExhaustedError: the module has more entry points on more code than any real module.
    """
    if not isinstance(code, bytes | bytearray | memoryview):
        raise InvalidArgumentError(f"SPIR-V code is bytes, got {type(code).__name__}; read the file in binary mode")
    return _Reflector(Module(bytes(code))).reflection()


class _Reflector:
    """Builds the reflection of one module; used once."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._access = AccessAnalysis(module)
        self._ownership = OwnershipAnalysis(module)
        self._layouts = BlockLayouts(module)
        self._on_every_member: dict[tuple[int, int], bool] = {}

    def reflection(self) -> ShaderModuleReflection:
        module = self._module
        capability = ENUMERATIONS["Capability"]
        ids = (i for i in module.constants if module.decoration(i, Decoration.BuiltIn) == BuiltIn.WorkgroupSize)
        workgroup_size = next(ids, None)
        entry_points = tuple(
            self._entry_point(model, function, name, workgroup_size) for model, function, name in module.entry_points
        )
        # Some compilers import an extension's instructions and do not declare it.
        sets = [name for name in module.instruction_sets.values() if name.startswith("SPV_")]
        return ShaderModuleReflection(
            version=module.binary.version,
            generator=module.binary.generator,
            capabilities=tuple(capability.name(number) for number in module.capabilities),
            extensions=tuple(dict.fromkeys([*module.extensions, *sets])),
            addressing_model=ENUMERATIONS["AddressingModel"].name(module.addressing_model),
            memory_model=ENUMERATIONS["MemoryModel"].name(module.memory_model),
            entry_points=entry_points,
            specialization_constants=self._specialization_constants(),
            pointees=self._layouts.pointees(self._access.spend),
            unsettled=tuple(module.unsettled.values()),
            declared=declared_bindings(module),
            declared_push_constants=declared_push_constants(module),
        )

    def _specialization_constants(self) -> tuple[SpecializationConstant, ...]:
        # Several constants may share an id, which sets them all: glslang makes one for local_size_x_id and another for
        # the constant_id of the source. The first named constant represents them.
        module = self._module
        declared: dict[int, list[tuple[str, ScalarType, int | float | bool]]] = {}
        names: dict[int, list[str]] = {}
        for constant in module.constants.values():
            spec_id = module.decoration(constant.id, Decoration.SpecId)
            value = constant.value
            if not constant.is_spec or spec_id is None or constant.scalar is None:
                continue
            if value is not None and not isinstance(value, tuple):
                name = module.names.get(constant.id, "")
                declared.setdefault(spec_id, []).append((name, constant.scalar, value))
                names.setdefault(spec_id, []).extend([name, *module.more_names.get(constant.id, ())])
        constants = []
        for spec_id in sorted(declared):
            name, scalar, default = next((item for item in declared[spec_id] if item[0]), declared[spec_id][0])
            constants.append(
                SpecializationConstant(
                    constant_id=spec_id,
                    name=name,
                    scalar=scalar,
                    default=default,
                    names=tuple(dict.fromkeys(item for item in names[spec_id] if item)),
                    scalars=tuple(dict.fromkeys(item[1] for item in declared[spec_id])),
                    defaults=tuple({(type(item[2]), repr(item[2])): item[2] for item in declared[spec_id]}.values()),
                )
            )
        return tuple(constants)

    def _local_size(
        self, model: int, function: int, workgroup_size: int | None
    ) -> tuple[tuple[int, int, int], tuple[int | None, int | None, int | None]]:
        """Returns sizes and the specialization ids that set them. WorkgroupSize overrides LocalSizeId and LocalSize."""
        module = self._module
        ids: tuple[int, ...] = ()
        declared: tuple[ConstantValue, ...] = ()
        if workgroup_size is not None:
            constant = module.constants[workgroup_size]
            declared = constant.value if isinstance(constant.value, tuple) else ()
            parts = [module.constants.get(constituent) for constituent in constant.constituents]
            if all(part is not None and part.scalar is not None for part in parts):  # not an operation on vectors
                ids = constant.constituents
        elif function in module.local_size_ids:
            ids = module.local_size_ids[function]
        elif function in module.local_sizes:
            declared = module.local_sizes[function]
        elif model != ExecutionModel.GLCompute:
            return (1, 1, 1), (None, None, None)
        if ids:
            declared = tuple(module.constants[i].value if i in module.constants else None for i in ids)
        sizes = [size if type(size) is int and 0 < size <= _MAX_COUNT else 0 for size in declared]
        for index, size in enumerate(sizes):
            if not size and len(sizes) == len(ids) == 3 and ids[index] in module.constants:
                varying = module.constants[ids[index]]
                if varying.varies:
                    value = "not evaluated here" if varying.value is None else varying.value
                    subject = f"the workgroup size of SPIR-V entry point {function} is {value} in {'xyz'[index]}"
                    module.unsettle(varying.id, subject, varying.id)
                    continue
            if not size:
                sizes.clear()
                break
        if len(sizes) != 3:
            raise InvalidArgumentError(
                f"the workgroup size of the SPIR-V entry point {function} is three positive integers, got "
                f"{declared or 'none'}; declare it with layout(local_size_x = …) in"
            )
        x, y, z = sizes
        spec_x, spec_y, spec_z = (
            module.decoration(i, Decoration.SpecId) if i in module.constants and module.constants[i].is_spec else None
            for i in ids or (0, 0, 0)
        )
        return (x, y, z), (spec_x, spec_y, spec_z)

    def _entry_point(self, model: int, function: int, name: str, workgroup_size: int | None) -> EntryPoint:
        used = self._access.entry(function)
        variables = [self._module.variables[variable] for variable in used]
        bindings: dict[tuple[int, int], Binding] = {}
        push_constants: list[PushConstantBlock] = []
        workgroup: list[Variable] = []
        local_size, spec_ids = self._local_size(model, function, workgroup_size)
        owned = self._ownership.entry(self._access.reached(function), is_alone=local_size == (1, 1, 1))
        for variable in variables:
            if variable.storage_class in _RESOURCE_CLASSES:
                binding = self._binding(variable, used[variable.id], owned)
                if binding is not None:
                    key = binding.set, binding.binding
                    bindings[key] = self._merged(bindings[key], binding) if key in bindings else binding
            elif variable.storage_class == StorageClass.PushConstant:
                block = self._block(variable, self._module.type(variable.pointee))
                layout = self._layouts.layout(block.id)
                push_constants.append(PushConstantBlock(layout.size, layout.members))
            elif variable.storage_class == StorageClass.Workgroup:
                workgroup.append(variable)
            elif model == ExecutionModel.GLCompute and variable.storage_class in _STAGE_CLASSES:
                self._check_built_in(variable, name)
        if len(push_constants) > 1:
            raise InvalidArgumentError(
                f"entry point {shown(name)} uses {len(push_constants)} push constant blocks; Vulkan allows one "
                "(VUID-StandaloneSpirv-OpEntryPoint-06674)"
            )
        return EntryPoint(
            name=name,
            execution_model=ExecutionModel.name(model),
            local_size=local_size,
            local_size_spec_ids=spec_ids,
            bindings=tuple(bindings[key] for key in sorted(bindings)),
            push_constants=push_constants[0] if push_constants else None,
            workgroup_memory_bytes=self._workgroup_memory(workgroup),
        )

    def _check_built_in(self, variable: Variable, name: str) -> None:
        # A rule of the specification ("Shader Interfaces") that not all versions of spirv-val check; drivers crash.
        is_output = variable.storage_class == StorageClass.Output
        if is_output or self._module.decoration(variable.id, Decoration.BuiltIn) is None:
            subject = "an output" if is_output else "an input that is not a built-in"
            raise InvalidArgumentError(
                f"entry point {shown(name)} has {subject}, SPIR-V variable {variable.id}; "
                "compute shaders have built-in inputs only"
            )

    def _workgroup_memory(self, variables: list[Variable]) -> int | None:
        total = overlapping = 0
        for variable in variables:
            of = self._module.types.get(variable.pointee)
            if of is None:
                return None
            if of.kind is TypeKind.STRUCT and self._module.decoration(of.id, Decoration.Block) is not None:
                overlapping = max(overlapping, self._layouts.layout(of.id).size)
            elif of.natural_size is None:
                return None
            else:
                total = -(-total // of.natural_align) * of.natural_align + of.natural_size
        return total + overlapping

    def _block(self, variable: Variable, of: Type) -> Type:
        if of.kind is not TypeKind.STRUCT:
            raise InvalidArgumentError(
                f"SPIR-V variable {variable.id} in storage class {variable.storage_class} holds a "
                f"{of.kind.name.lower()}, expected a block (structure); compile the shader for Vulkan"
            )
        return of

    def _descriptor(self, variable: Variable) -> tuple[int, Type]:
        count = 1
        if not variable.pointee:
            raise UnimplementedError(
                f"SPIR-V variable {variable.id} is an untyped pointer without a data type, "
                "which reflection does not support"
            )
        of = self._module.type(variable.pointee)
        while of.kind in (TypeKind.ARRAY, TypeKind.RUNTIME_ARRAY):
            if of.kind is TypeKind.ARRAY and of.count is None:
                self._module.unsettle(
                    of.id,
                    f"the descriptor count of SPIR-V variable {variable.id} is a specialization constant expression "
                    "that is not evaluated here; use an integer expression",
                    of.length,
                )
            else:
                count *= of.count or 0
            if count > _MAX_COUNT:
                raise InvalidArgumentError(f"SPIR-V variable {variable.id} has over {_MAX_COUNT} descriptors")
            self._access.spend(1)
            of = self._module.type(of.element)
        return count, of

    def _descriptor_type(self, variable: Variable, of: Type) -> _Kind:
        match of.kind:
            case TypeKind.SAMPLER:
                return _Kind.SAMPLER
            case TypeKind.SAMPLED_IMAGE:
                image = self._image(of)
                return _Kind.UNIFORM_TEXEL_BUFFER if image.dim == "buffer" else _Kind.COMBINED_IMAGE_SAMPLER
            case TypeKind.IMAGE:
                image = self._image(of)
                if image.dim == "subpassdata":
                    return _Kind.INPUT_ATTACHMENT
                if image.dim == "buffer":
                    return _Kind.STORAGE_TEXEL_BUFFER if image.storage else _Kind.UNIFORM_TEXEL_BUFFER
                return _Kind.STORAGE_IMAGE if image.storage else _Kind.SAMPLED_IMAGE
            case TypeKind.ACCELERATION_STRUCTURE:
                return _Kind.ACCELERATION_STRUCTURE
            case TypeKind.TENSOR:
                return _Kind.TENSOR
        block = self._block(variable, of)
        if variable.storage_class == StorageClass.StorageBuffer:
            return _Kind.STORAGE_BUFFER
        if variable.storage_class == StorageClass.Uniform:
            old_style = self._module.decoration(block.id, Decoration.BufferBlock) is not None
            return _Kind.STORAGE_BUFFER if old_style else _Kind.UNIFORM_BUFFER
        raise InvalidArgumentError(
            f"SPIR-V variable {variable.id} ({shown(self._module.names.get(variable.id, ''))}) holds a structure with "
            "samplers or images, which Vulkan does not allow: declare these outside structures"
        )

    def _image(self, of: Type) -> ImageType:
        image = (self._module.type(of.element) if of.kind is TypeKind.SAMPLED_IMAGE else of).image
        if image is None:
            raise InvalidArgumentError(f"SPIR-V type {of.id} is a sampled image of id {of.element}, which is no image")
        return image

    def _forbidden(self, variable: Variable, of: Type, decoration: int) -> bool:
        """Whether NonReadable or NonWritable is on the variable or on every member of its block."""
        if self._module.decoration(variable.id, decoration) is not None:
            return True
        key = of.id, decoration
        if key not in self._on_every_member:
            self._on_every_member[key] = bool(of.members) and all(
                self._module.member_decoration(of.id, index, decoration) is not None for index in range(len(of.members))
            )
        return self._on_every_member[key]

    def _binding(self, variable: Variable, access: int, owned: Ownership) -> Binding | None:
        module = self._module
        if module.decoration(variable.id, Decoration.BuiltIn) is not None:
            return None
        number = module.decoration(variable.id, Decoration.Binding)
        if number is None:
            raise InvalidArgumentError(
                f"SPIR-V variable {variable.id} ({shown(module.names.get(variable.id, ''))}) has no Binding "
                "decoration; give it one: layout(set = …, binding = …)"
            )
        count, of = self._descriptor(variable)
        descriptor_type = self._descriptor_type(variable, of)
        readable = bool(access & READ) and not self._forbidden(variable, of, Decoration.NonReadable)
        writable = bool(access & WRITE) and not self._forbidden(variable, of, Decoration.NonWritable)
        layout = self._layouts.layout(of.id) if of.kind is TypeKind.STRUCT else None
        if layout is not None:
            self._access.spend(layout.total)
        return Binding(
            set=module.decoration(variable.id, Decoration.DescriptorSet) or 0,
            binding=number,
            name=module.names.get(variable.id, "") or module.names.get(of.id, ""),
            descriptor_type=int(descriptor_type),
            descriptor_type_name=descriptor_type.name.lower(),
            count=count,
            readable=readable,
            writable=writable and descriptor_type in _WRITABLE,
            element=None if layout is None else layout.element,
            fixed_size=0 if layout is None else layout.size,
            members=() if layout is None else layout.members,
            image=self._image(of) if of.kind in (TypeKind.IMAGE, TypeKind.SAMPLED_IMAGE) else None,
            block="" if layout is None else module.names.get(of.id, ""),
            shared_output=variable.id in owned.shared_outputs,
            spread_input=variable.id in owned.spread_inputs,
        )

    def _merged(self, first: Binding, second: Binding) -> Binding:
        """Merges two variables on one binding to one descriptor."""
        descriptor_type = _Kind(first.descriptor_type)
        if descriptor_type != second.descriptor_type:
            if not {descriptor_type, second.descriptor_type} <= _COMBINABLE:
                raise InvalidArgumentError(
                    f"set {first.set}, binding {first.binding} is used both as {first.descriptor_type_name} and as "
                    f"{second.descriptor_type_name}; give the variables different bindings"
                )
            descriptor_type = _Kind.COMBINED_IMAGE_SAMPLER
        self._access.spend(len(first.aliases))
        images = dict.fromkeys(filter(None, (first.image, *first.image_aliases, second.image)))
        return dataclasses.replace(
            first,
            descriptor_type=int(descriptor_type),
            descriptor_type_name=descriptor_type.name.lower(),
            count=0 if 0 in (first.count, second.count) else max(first.count, second.count),
            readable=first.readable or second.readable,
            writable=first.writable or second.writable,
            element=first.element if first.element == second.element else None,
            fixed_size=max(first.fixed_size, second.fixed_size),
            aliases=(*first.blocks, *second.blocks) if first.members and second.members else (),
            image=next(iter(images), None),
            image_aliases=tuple(images)[1:],
            shared_output=(first.shared_output or second.shared_output)
            and all(binding.shared_output or not binding.writable for binding in (first, second)),
            spread_input=first.spread_input or second.spread_input,
        )
