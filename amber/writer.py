"""Scripts as AmberScript text. The text reads back as the same script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from ..status import UnimplementedError
from .script import (
    BUFFER_KINDS,
    REQUIREMENT_WORDS,
    WHOLE,
    Binding,
    Buffer,
    Command,
    Copy,
    ExpectBuffer,
    ExpectTexels,
    ExpectValues,
    Pipeline,
    Repeat,
    Run,
    Sampler,
    Script,
    Shader,
    Subgroups,
    Tolerance,
    Write,
)
from .types import Number, Struct, layout_of
from .values import column_of, text_of

_VALUES_A_LINE: Final = 16
_INDENT: Final = "  "


def format_script(script: Script, comments: Iterable[str] = ()) -> str:
    """Returns the AmberScript text of a script.

    Args:
        script: the script; VkScript is written as AmberScript.
        comments: the lines for the head of the text.

    Raises:
        UnimplementedError: it has something that AmberScript cannot express: contents that are written between runs,
            or several entry points of one pipeline.
    """
    return "\n".join(_lines(script, comments)) + "\n"


def _lines(script: Script, comments: Iterable[str]) -> Iterator[str]:
    yield "#!amber"
    yield from (f"# {line}".rstrip() for line in comments)
    yield ""
    for requirement in script.requirements:
        yield f"{REQUIREMENT_WORDS[requirement.kind]} {requirement.name}"
    if script.timeout is not None:
        yield f"SET ENGINE_DATA fence_timeout_ms {round(script.timeout * 1000)}"
    for name, text in script.virtual_files.items():
        yield f"VIRTUAL_FILE {_name(name)}"
        yield text.rstrip("\n")
        yield "END"
    for struct in {name: struct for b in script.buffers.values() for name, struct in _structs(b.type)}.values():
        yield from _struct(struct)
    for shader in script.shaders.values():
        yield from _shader(shader, script.target_env)
    for buffer in script.buffers.values():
        yield from _buffer(buffer)
    for sampler in script.samplers.values():
        yield _sampler(sampler)
    for pipeline in script.pipelines.values():
        yield from _pipeline(pipeline)
    yield ""
    yield from _commands(script.commands)


def _name(text: str) -> str:
    return f'"{text}"' if not text or any(c.isspace() or c == "#" for c in text) else text


# -- declarations ------------------------------------------------------------------------------------


def _structs(type: object) -> Iterator[tuple[str, Struct]]:
    """Yields the structures that a type is made of, the innermost first."""
    if isinstance(type, Struct):
        for member in type.members:
            yield from _structs(member.type)
        yield type.name, type


def _struct(struct: Struct) -> Iterator[str]:
    yield ""
    yield f"STRUCT {struct.name}" + (f" STRIDE {struct.stride}" if struct.stride is not None else "")
    for member in struct.members:
        line = f"{_INDENT}{member.type} {member.name}"
        for option in ("offset", "array_stride", "matrix_stride"):
            if (value := getattr(member, option)) is not None:
                line += f" {option.upper()} {value}"
        yield line
    yield "END"


def _shader(shader: Shader, target_env: str) -> Iterator[str]:
    target = shader.target_env or (target_env if target_env != "spv1.0" else "")
    head = f"SHADER {shader.kind} {_name(shader.name)} {shader.format}" + (f" TARGET_ENV {target}" if target else "")
    yield ""
    if isinstance(shader.source, bytes):
        yield f"{head} FILE {_name(shader.file)}"
        return
    yield head
    yield shader.source.rstrip("\n")
    yield "END"


def _buffer(buffer: Buffer) -> Iterator[str]:
    layout = buffer.layout
    type = str(buffer.type)
    extent = buffer.extent
    yield ""
    if extent is not None:
        head = f"IMAGE {buffer.name} {'DATA_TYPE' if isinstance(buffer.type, Number) else 'FORMAT'} {type}"
        if extent.mip_levels > 1:
            head += f" MIP_LEVELS {extent.mip_levels}"
        if extent.samples > 1:
            head += f" SAMPLES {extent.samples}"
        head += f" DIM_{extent.dimensions}D WIDTH {extent.width}"
        head += f" HEIGHT {extent.height}" if extent.dimensions > 1 else ""
        head += f" DEPTH {extent.depth}" if extent.dimensions > 2 else ""
        elements = extent.texels
    else:
        standard = f" {buffer.standard}" if buffer.standard != "STD430" else ""
        head = f"BUFFER {buffer.name} DATA_TYPE {type}{standard}"
        elements = len(buffer.data) // layout.size
    data = np.frombuffer(buffer.data, np.uint8)
    fill = _fill(buffer, data, elements)
    if fill is not None:
        yield f"{head}{f' SIZE {elements}' if extent is None else ''} FILL {fill}"
        return
    yield f"{head} DATA"
    columns = [column_of(data, layout, i).tolist() for i in range(len(layout.segments))]
    texts = [text_of(value) for row in zip(*columns, strict=True) for value in row]
    width = max(len(columns), _VALUES_A_LINE // len(columns) * len(columns))
    for start in range(0, len(texts), width):
        yield _INDENT + " ".join(texts[start : start + width])
    yield "END"


def _fill(buffer: Buffer, data: np.ndarray, elements: int) -> str | None:
    """Returns the one value that fills a buffer, or ``None`` where there are several."""
    if not elements:
        return "0"
    layout = layout_of(buffer.type, buffer.standard)
    columns = [column_of(data, layout, i) for i in range(len(layout.segments))]
    first = columns[0][:1].tobytes()
    if any(column.dtype != columns[0].dtype or column.tobytes() != first * elements for column in columns):
        return None
    return text_of(columns[0][0].item())


def _sampler(sampler: Sampler) -> str:
    parts = [f"SAMPLER {sampler.name}"]
    for option in ("mag_filter", "min_filter", "address_mode_u", "address_mode_v", "address_mode_w", "border_color"):
        parts.append(f"{option.upper()} {getattr(sampler, option)}")
    if sampler.normalized:
        parts += [f"MIN_LOD {sampler.min_lod!r}", f"MAX_LOD {sampler.max_lod!r}"]
    else:
        parts.append("UNNORMALIZED_COORDS")
    if sampler.compare:
        parts += ["COMPARE on", f"COMPARE_OP {sampler.compare_op}"]
    return " \\\n  ".join(parts)


# -- pipelines ---------------------------------------------------------------------------------------


def _pipeline(pipeline: Pipeline) -> Iterator[str]:
    yield ""
    yield f"PIPELINE compute {pipeline.name}"
    attach = f"{_INDENT}ATTACH {_name(pipeline.shader)}"
    # Multi shaders want their type; it does no harm to the others.
    if pipeline.entry_point:
        attach += f" TYPE compute ENTRY_POINT {pipeline.entry_point}"
    for constant, value in pipeline.specialization.items():
        attach += f" \\\n{_INDENT}  SPECIALIZE {constant} AS {value.type} {text_of(value.value)}"
    yield attach
    if pipeline.optimizations:
        yield f"{_INDENT}SHADER_OPTIMIZATION {_name(pipeline.shader)}"
        yield from (f"{_INDENT * 2}{option}" for option in pipeline.optimizations)
        yield f"{_INDENT}END"
    if pipeline.subgroups != Subgroups():
        yield from _subgroups(pipeline)
    if pipeline.push_constants:
        yield f"{_INDENT}BIND BUFFER {pipeline.push_constants} AS push_constant"
    for binding in pipeline.bindings.values():
        yield _INDENT + _binding(binding)
    yield "END"


def _subgroups(pipeline: Pipeline) -> Iterator[str]:
    yield f"{_INDENT}SUBGROUP {_name(pipeline.shader)}"
    if pipeline.subgroups.full:
        yield f"{_INDENT * 2}FULLY_POPULATED on"
    if pipeline.subgroups.varying:
        yield f"{_INDENT * 2}VARYING_SIZE on"
    if pipeline.subgroups.size is not None:
        yield f"{_INDENT * 2}REQUIRED_SIZE {pipeline.subgroups.size}"
    yield f"{_INDENT}END"


def _binding(binding: Binding) -> str:
    keyword = "SAMPLER" if binding.kind == "sampler" else "BUFFER"
    parts = [f"BIND {keyword}{'_ARRAY' if len(binding.resources) > 1 else ''}", *binding.resources]
    if binding.kind != "sampler":
        parts.append(f"AS {binding.kind}")
    if binding.samplers:
        parts.append(f"SAMPLER {binding.samplers[0]}")
    parts.append(f"DESCRIPTOR_SET {binding.set} BINDING {binding.binding}")
    if binding.base_mip_level:
        parts.append(f"BASE_MIP_LEVEL {binding.base_mip_level}")
    if binding.kind in BUFFER_KINDS:
        if binding.kind.endswith("_dynamic"):
            parts += ["OFFSET", *map(str, binding.offsets)]
        if any(binding.descriptor_offsets):
            parts += ["DESCRIPTOR_OFFSET", *map(str, binding.descriptor_offsets)]
        if any(length != WHOLE for length in binding.ranges):
            parts += ["DESCRIPTOR_RANGE", *map(str, binding.ranges)]
    return " ".join(parts)


# -- commands ----------------------------------------------------------------------------------------


def _commands(commands: Iterable[Command], indent: str = "") -> Iterator[str]:
    for command in commands:
        match command:
            case Run():
                if command.entry_point:
                    raise UnimplementedError("AmberScript has no entry point at RUN; make a pipeline for each")
                timed = "TIMED_EXECUTION " if command.timed else ""
                yield f"{indent}RUN {timed}{command.pipeline} " + " ".join(map(str, command.groups))
            case Write():
                raise UnimplementedError("AmberScript cannot write to a buffer between runs; give its first contents")
            case Copy():
                yield f"{indent}COPY {command.source} TO {command.target}"
            case Repeat():
                yield f"{indent}REPEAT {command.count}"
                yield from _commands(command.commands, indent + _INDENT)
                yield f"{indent}END"
            case ExpectValues():
                tolerances = _tolerances(command.tolerances)
                values = " ".join(map(text_of, command.values))
                head = f"{indent}EXPECT {command.buffer} IDX {command.offset}"
                yield f"{head}{tolerances} {command.comparator} {values}"
            case ExpectTexels():
                comparator = "EQ_RGBA" if len(command.color) == 4 else "EQ_RGB"
                yield (
                    f"{indent}EXPECT {command.buffer} IDX {command.x} {command.y} SIZE {command.width} "
                    f"{command.height} {comparator} {' '.join(map(str, command.color))}"
                    f"{_tolerances(command.tolerances)}"
                )
            case ExpectBuffer():
                tolerance = "" if command.comparator == "EQ_BUFFER" else f" TOLERANCE {command.tolerance!r}"
                yield f"{indent}EXPECT {command.buffer} {command.comparator} {command.other}{tolerance}"


def _tolerances(tolerances: tuple[Tolerance, ...]) -> str:
    if not tolerances:
        return ""
    return " TOLERANCE " + " ".join(
        f"{tolerance.value!r}{'%' if tolerance.percent else ''}" for tolerance in tolerances
    )
