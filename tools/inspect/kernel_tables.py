"""What kernels and executables declare, as tables and as JSON."""

from __future__ import annotations

from ...formats.element_type import ElementType
from ...formats.vke1 import ExecutableDef
from ...spirv.reflection_types import Binding, BlockMember, EntryPoint, ScalarType, ShaderModuleReflection
from ..streams import put
from ..tables import heading, print_facts, print_table

# -- SPIR-V ------------------------------------------------------------------------------------------


def show_module(reflection: ShaderModuleReflection) -> None:
    """What a SPIR-V module declares."""
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
    if reflection.specialization_constants:
        put()
        heading("specialization constants")
        print_table(
            ("id", "name", "type", "default"),
            [
                (str(c.constant_id), c.name or "-", _scalar(c.scalar), str(c.default).lower())
                for c in reflection.specialization_constants
            ],
        )


def _show_entry(entry: EntryPoint) -> None:
    sizes = [
        f"{size} (constant {constant_id})" if constant_id is not None else str(size)
        for size, constant_id in zip(entry.local_size, entry.local_size_spec_ids, strict=True)
    ]
    shared = entry.workgroup_memory_bytes
    block = entry.push_constants
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
            [_binding_row(binding) for binding in entry.bindings],
        )
    print_facts([("push constants", f"{block.size} bytes" if block else "none")])
    if block:
        print_table(("offset", "size", "name", "type"), _member_rows(block.members, 0, ""))


def _binding_row(binding: Binding) -> tuple[str, ...]:
    access = {(True, True): "read, write", (True, False): "read", (False, True): "write"}
    element = binding.element
    count = {1: "", 0: "[]"}.get(binding.count, f"[{binding.count}]")
    if element is None:
        elements = "-"
    else:
        kind = _typed(element.scalar, element.components, element.columns) if not element.struct else "struct"
        kind += "".join(f"[{n}]" for n in element.inner_shape)
        kind += {"runtime": "[]", "fixed": f"[{element.length}]", "none": ""}[element.array]
        elements = kind
    return (
        str(binding.set),
        str(binding.binding),
        binding.name or "-",
        binding.descriptor_type_name + count,
        access.get((binding.readable, binding.writable), "none"),
        elements,
        str(element.stride) if element is not None else "-",
        str(binding.fixed_size),
    )


def _member_rows(members: tuple[BlockMember, ...], start: int, prefix: str) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for index, member in enumerate(members):
        name = prefix + (member.name or f"member{index}")
        kind = _typed(member.scalar, member.components, member.columns) if member.scalar else "struct"
        kind = "x".join([*map(str, member.array_shape), kind])
        rows.append((str(start + member.offset), str(member.size), name, kind))
        rows += _member_rows(member.members, start + member.offset, name + ".")
    return rows


def _typed(scalar: ScalarType, components: int, columns: int) -> str:
    """``f32``, ``3xf32`` for a vector, ``3x4xf32`` for a matrix of 3 rows and 4 columns."""
    sizes = ([components] if components > 1 else []) + ([columns] if columns > 1 else [])
    return "x".join([*map(str, sizes), _scalar(scalar)])


def _scalar(scalar: ScalarType) -> str:
    """The name in the text form of values, where it has one."""
    if scalar.kind == "bool":
        return "bool"
    if scalar.dtype is None:
        return scalar.encoding or f"{scalar.kind}{scalar.bits}"
    return ElementType.from_dtype(scalar.dtype).short_name


# -- executables -------------------------------------------------------------------------------------


def executable_json(executable: ExecutableDef, modules: list[ShaderModuleReflection]) -> dict[str, object]:
    """An executable's pipelines, shader modules and source files; ``modules`` are the reflected shader modules."""
    return {
        "pipelines": [
            {
                "ordinal": ordinal,
                "name": pipeline.debug_info.name if pipeline.debug_info else "",
                "entry_point": pipeline.entry_point,
                "shader_module": pipeline.shader_module,
                "dispatch_abi": pipeline.dispatch_abi.name,
                "subgroup_size": pipeline.subgroup_size,
                "local_size": list(modules[pipeline.shader_module].entry_point(pipeline.entry_point).local_size),
                "bindings": binding_count(executable, ordinal),
                "push_constant_bytes": push_constant_bytes(executable, ordinal),
            }
            for ordinal, pipeline in enumerate(executable.pipelines)
        ],
        "shader_modules": [module.to_json() for module in modules],
        "source_files": [{"path": source.path, "size": len(source.content)} for source in executable.source_files],
    }


def show_executable(executable: ExecutableDef, modules: list[ShaderModuleReflection]) -> None:
    """What a Vulkan executable holds; ``modules`` are the reflected shader modules."""
    heading("Vulkan executable (VKE1)")
    print_facts(
        [
            ("pipelines", str(len(executable.pipelines))),
            ("shader modules", str(len(modules))),
            ("source files", ", ".join(source.path for source in executable.source_files) or "none"),
        ]
    )
    print_table(
        ("ordinal", "entry point", "module", "ABI", "local size", "subgroup", "bindings", "push constants"),
        [
            (
                str(ordinal),
                pipeline.entry_point,
                str(pipeline.shader_module),
                pipeline.dispatch_abi.name.lower(),
                " x ".join(map(str, modules[pipeline.shader_module].entry_point(pipeline.entry_point).local_size)),
                str(pipeline.subgroup_size or "any"),
                str(binding_count(executable, ordinal)),
                f"{push_constant_bytes(executable, ordinal)} bytes",
            )
            for ordinal, pipeline in enumerate(executable.pipelines)
        ],
    )
    for index, module in enumerate(modules):
        put()
        heading(f"shader module {index}")
        show_module(module)


def binding_count(executable: ExecutableDef, ordinal: int) -> int:
    """How many buffers a dispatch of the pipeline takes."""
    pipeline = executable.pipelines[ordinal]
    if pipeline.bda_layout is not None:
        return pipeline.bda_layout.binding_count
    layouts = executable.pipeline_layouts[pipeline.pipeline_layout].set_layouts
    return sum(b.count for layout in layouts for b in executable.descriptor_set_layouts[layout].bindings)


def push_constant_bytes(executable: ExecutableDef, ordinal: int) -> int:
    """Size of a pipeline's push constants."""
    ranges = executable.pipeline_layouts[executable.pipelines[ordinal].pipeline_layout].push_constant_ranges
    return max((r.offset + r.size for r in ranges), default=0)
