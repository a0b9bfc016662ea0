"""The declarations of kernels and executables, as tables and as JSON."""

from __future__ import annotations

from typing import Any, Final

from ...formats.element_type import ElementType
from ...formats.image_format import ImageFormat
from ...formats.vke1 import ExecutableDef, PipelineDef
from ...spirv.reflection.block_dtype import only_array, tail
from ...spirv.reflection.reflection_types import (
    Binding,
    BlockMember,
    BufferBlock,
    EntryPoint,
    ImageType,
    ScalarType,
    ShaderModuleReflection,
)
from ..streams import put
from ..tables import heading, print_facts, print_table

_MEMBERS: Final = ("offset", "size", "name", "type")
_BUFFERS: Final = (6, 7)  # VkDescriptorType: uniform and storage buffers

# -- SPIR-V ------------------------------------------------------------------------------------------


def show_module(reflection: ShaderModuleReflection) -> None:
    """Prints the declarations of a SPIR-V module."""
    heading(f"SPIR-V {reflection.version[0]}.{reflection.version[1]} module")
    print_facts(
        [
            ("capabilities", ", ".join(reflection.capabilities) or "none"),
            ("extensions", ", ".join(reflection.extensions) or "none"),
            ("addressing", reflection.addressing_model),
            ("memory model", reflection.memory_model),
        ]
    )
    for entry in reflection.entry_points:
        put()
        heading(f"entry point {entry.name} ({entry.execution_model})")
        _show_entry(entry)
    for block in reflection.pointees:
        put()
        heading(f"pointers to {block.name}")
        print_table(_MEMBERS, _member_rows(block.members, 0, ""))
    if reflection.specialization_constants:
        put()
        heading("specialization constants")
        print_table(
            ("id", "name", "type", "default"),
            [
                (
                    str(c.constant_id),
                    ", ".join(c.names) or "-",
                    ", ".join(map(_scalar, c.scalars)),
                    ", ".join(str(default).lower() for default in c.defaults),
                )
                for c in reflection.specialization_constants
            ],
        )
    if reflection.unsettled:
        put()
        heading("needs values of specialization constants")
        for sentence in reflection.unsettled:
            put(sentence)


def _show_entry(entry: EntryPoint) -> None:
    sizes = [
        f"{size} (constant {constant_id})" if constant_id is not None else str(size)
        for size, constant_id in zip(entry.local_size, entry.local_size_spec_ids, strict=True)
    ]
    shared = entry.workgroup_memory_bytes
    block = entry.constants
    print_facts(
        [
            ("local size", " x ".join(sizes)),
            ("shared memory", "unknown" if shared is None else f"{shared} bytes"),
            ("bindings", "" if entry.bindings else "none"),
        ]
    )
    if entry.bindings:
        print_table(
            ("set", "binding", "name", "type", "access", "elements", "stride", "fixed size"),
            [_binding_row(binding, block) for binding in entry.bindings for block in binding.blocks],
        )
    for binding in entry.bindings:
        for shown in binding.blocks:
            if len(shown.members) > 1 or any(member.members for member in shown.members):
                print_facts([(f"members of {shown.name or f'binding {binding.set}.{binding.binding}'}", "")])
                print_table(_MEMBERS, _member_rows(shown.members, 0, ""))
    print_facts([("push constants" if block is None else f"{block.noun}s", f"{block.size} bytes" if block else "none")])
    if block:
        print_table(_MEMBERS, _member_rows(block.members, 0, ""))


def _binding_row(binding: Binding, block: BufferBlock) -> tuple[str, ...]:
    """Returns a binding's row, as declared by one of its variables."""
    access = {(True, True): "read, write", (True, False): "read", (False, True): "write"}
    element, array = block.element, only_array(block.members) or tail(block.members)
    stride = "-"
    count = {1: "", 0: "[]"}.get(binding.count, f"[{binding.count}]")
    elements = _image(binding.image) if binding.image is not None else "-"
    if element is not None:
        elements = _typed(element.scalar, element.components, element.columns) if not element.struct else "struct"
        elements += "".join(f"[{n}]" for n in element.inner_shape)
        elements += {"runtime": "[]", "fixed": f"[{element.length}]", "none": ""}[element.array]
        stride = str(element.stride)
    elif array is not None:
        elements = _member_type(array) + "".join(f"[{n or ''}]" for n in array.array_shape)
        stride = str(array.array_stride)
    elif block.members:
        elements = "block"
    return (
        str(binding.set),
        str(binding.binding),
        block.name or "-",
        binding.descriptor_type_name + count,
        access.get((binding.readable, binding.writable), "none"),
        elements,
        stride,
        str(block.fixed_size) if binding.descriptor_type in _BUFFERS else "-",
    )


def _image(image: ImageType) -> str:
    """Returns ``2d rgba8unorm``, ``cube array f32``, ``2d multisampled f32``, ``2d f32 compared``."""
    words = ["" if image.dim == "buffer" else image.dim, "array" if image.arrayed else ""]
    words.append("multisampled" if image.multisampled else "")
    known = image.storage and image.format != "unknown"
    words.append(ImageFormat.parse(image.format).name if known else _scalar(image.sampled))
    words.append("compared" if image.depth else "")
    return " ".join(filter(None, words))


def _member_rows(members: tuple[BlockMember, ...], start: int, prefix: str) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for index, member in enumerate(members):
        name = prefix + (member.name or f"member{index}")
        kind = "x".join([*(str(n) for n in member.array_shape if n), _member_type(member)])
        kind += "[]" if member.array_length == 0 else ""
        rows.append((str(start + member.offset), str(member.size), name, kind))
        rows += _member_rows(member.members, start + member.offset, name + ".")
    return rows


def _member_type(member: BlockMember) -> str:
    """Returns the type of a member, or of its elements; pointers in C notation."""
    if member.pointee:
        return f"{member.pointee}*"
    return _typed(member.scalar, member.components, member.columns) if member.scalar else "struct"


def _typed(scalar: ScalarType, components: int, columns: int) -> str:
    """Returns ``f32``, ``3xf32`` for a vector, ``3x4xf32`` for a matrix of 3 rows and 4 columns."""
    sizes = ([components] if components > 1 else []) + ([columns] if columns > 1 else [])
    return "x".join([*map(str, sizes), _scalar(scalar)])


def _scalar(scalar: ScalarType) -> str:
    """Returns the name in the text form of values, if it has one."""
    if scalar.kind == "bool":
        return "bool"
    if scalar.dtype is None:
        return scalar.encoding or f"{scalar.kind}{scalar.bits}"
    return ElementType.from_dtype(scalar.dtype).short_name


# -- executables -------------------------------------------------------------------------------------


def executable_json(executable: ExecutableDef, modules: list[ShaderModuleReflection]) -> dict[str, Any]:
    """Returns an executable's pipelines, reflected shader ``modules`` and source files."""
    return {
        "pipelines": [
            _pipeline_json(ordinal, pipeline, executable, modules[pipeline.shader_module])
            for ordinal, pipeline in enumerate(executable.pipelines)
        ],
        "shader_modules": [module.to_json() for module in modules],
        "source_files": [{"path": source.path, "size": len(source.content)} for source in executable.source_files],
    }


def _pipeline_json(
    ordinal: int, pipeline: PipelineDef, executable: ExecutableDef, module: ShaderModuleReflection
) -> dict[str, object]:
    layout = executable.pipeline_layouts[pipeline.pipeline_layout]
    if pipeline.bda_layout is not None:
        bindings = pipeline.bda_layout.binding_count
    else:
        sets = [executable.descriptor_set_layouts[index] for index in layout.set_layouts]
        bindings = sum(binding.count for set_layout in sets for binding in set_layout.bindings)
    debug = pipeline.debug_info
    return {
        "ordinal": ordinal,
        "source": f"{debug.location.filename}:{debug.location.line}" if debug and debug.location else "",
        "name": debug.name if debug else "",
        "entry_point": pipeline.entry_point,
        "shader_module": pipeline.shader_module,
        "dispatch_abi": pipeline.dispatch_abi.name,
        "subgroup_size": pipeline.subgroup_size,
        "local_size": list(module.entry_point(pipeline.entry_point).local_size),
        "bindings": bindings,
        "push_constant_bytes": max(
            (push_range.offset + push_range.size for push_range in layout.push_constant_ranges), default=0
        ),
    }


def show_executable(executable: ExecutableDef, modules: list[ShaderModuleReflection]) -> None:
    """Prints the contents of a Vulkan executable; ``modules`` are the reflected shader modules."""
    pipelines = executable_json(executable, modules)["pipelines"]
    heading("Vulkan executable (VKE1)")
    print_facts(
        [
            ("pipelines", str(len(pipelines))),
            ("shader modules", str(len(modules))),
            ("source files", ", ".join(source.path for source in executable.source_files) or "none"),
        ]
    )
    print_table(
        ("ordinal", "entry point", "module", "ABI", "local size", "subgroup", "bindings", "push constants"),
        [
            (
                str(pipeline["ordinal"]),
                pipeline["entry_point"],
                str(pipeline["shader_module"]),
                pipeline["dispatch_abi"].lower(),
                " x ".join(map(str, pipeline["local_size"])),
                str(pipeline["subgroup_size"] or "any"),
                str(pipeline["bindings"]),
                f"{pipeline['push_constant_bytes']} bytes",
            )
            for pipeline in pipelines
        ],
    )
    for index, module in enumerate(modules):
        put()
        heading(f"shader module {index}")
        show_module(module)
