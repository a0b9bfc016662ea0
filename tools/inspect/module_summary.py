"""The contents of a module file as JSON values, for ``pumice dump --json`` and its tables.

Needs no device and no Vulkan loader. Modules that are damaged, or of an unknown bytecode version, are summarised as far
as they can be read; ``problem`` describes the fault.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from ...formats.vke1_reader import parse_executable
from ...hal_reference.program import Body
from ...hal_reference.program_format import MAGIC, decode
from ...spirv.reflection.reflect import reflect
from ...status import PumiceError
from ...vm.bytecode.archive import ModuleArchive
from ...vm.bytecode.declaration import declaration_of
from ...vm.bytecode.isa import version_text
from ...vm.bytecode.module_def import Feature, ModuleDef
from ...vm.bytecode.reader import read_module
from ...vm.bytecode.verifier import verify_module
from ..errors import describe
from ..input_files import is_module
from .kernel_tables import executable_json

Summary: TypeAlias = dict[str, Any]
"""JSON values; docs/cli.md lists the keys."""

ABI_KEYS: Final = ("convention", "type", "converted")
"""The keys of an export's calling convention in pumice's compiler: its name, and the types before and after."""

ABI: Final = frozenset(f"pumice.abi.{key}" for key in ABI_KEYS)
"""The attributes of exports that hold the calling convention."""

_MAX_TEXT: Final = 256
_MAX_NESTED: Final = 4


def summarize_file(data: bytes, name: str) -> Summary:
    """Returns everything known about a module file's bytes."""
    with ModuleArchive.from_bytes(data, name) as archive:
        return summarize(read_module(archive), len(archive.data))


def summarize(definition: ModuleDef, file_bytes: int, *, depth: int = 0) -> Summary:
    """Returns the summary of a module in a file of ``file_bytes`` bytes, nested in ``depth`` others."""
    rodata = [_rodata(ordinal, data, depth) for ordinal, data in enumerate(definition.rodata)]
    return {
        "name": definition.name,
        "version": definition.version,
        "bytecode_version": version_text(definition.bytecode_version),
        "features": _features(definition.requirements),
        "problem": _problem(definition),
        "attributes": dict(definition.attributes),
        "types": list(definition.types),
        "dependencies": [dataclasses.asdict(dependency) for dependency in definition.dependencies],
        "imports": [
            {
                "name": imported.name,
                "calling_convention": imported.signature.calling_convention,
                "required": imported.required,
            }
            for imported in definition.imports
        ],
        "exports": [_export(definition, export.name, export.ordinal) for export in definition.exports],
        "functions": [
            {
                "ordinal": ordinal,
                "name": definition.function_name(ordinal),
                "calling_convention": _convention(definition, ordinal),
                "bytes": function.length,
                "blocks": function.block_count,
                "i32_registers": function.i32_register_count,
                "ref_registers": function.ref_register_count,
                "features": _features(function.requirements),
            }
            for ordinal, function in enumerate(definition.functions)
        ],
        "global_bytes": definition.global_bytes,
        "global_refs": definition.global_refs,
        "rwdata": list(definition.rwdata_sizes),
        "rodata": rodata,
        "has_debug_information": definition.debug is not None,
        "totals": {
            "file": file_bytes,
            "bytecode": len(definition.bytecode),
            "rodata": sum(constant["bytes"] for constant in rodata),
            "rodata_by_kind": _by_kind(rodata),
        },
    }


def _features(requirements: int) -> list[str]:
    return [str(feature.name).lower() for feature in Feature if requirements & feature]


def _problem(definition: ModuleDef) -> str | None:
    try:
        verify_module(definition)
    except PumiceError as error:
        return describe(error)
    return None


def _convention(definition: ModuleDef, ordinal: int) -> str:
    return definition.signatures[ordinal].calling_convention if ordinal < len(definition.signatures) else ""


def _export(definition: ModuleDef, name: str, ordinal: int) -> Summary:
    attributes: dict[str, str] = {}
    declaration = None
    if ordinal < len(definition.signatures):
        signature = definition.signatures[ordinal]
        attributes = dict(signature.attributes)
        declared = declaration_of(signature)
        declaration = None if declared is None else declared.format()
    return {
        "name": name,
        "ordinal": ordinal,
        "calling_convention": _convention(definition, ordinal),
        "declaration": declaration,
        "abi": {key: attributes.get(f"pumice.abi.{key}") for key in ABI_KEYS} if attributes.keys() >= ABI else None,
        "attributes": attributes,
    }


def _operations(body: Body) -> int:
    return sum(1 + sum(map(_operations, node.bodies)) for node in body.nodes)


# -- constants ---------------------------------------------------------------------------------------


def _rodata(ordinal: int, data: memoryview, depth: int) -> Summary:
    """Returns the summary of one constant: its kind and its contents."""
    entry: Summary = {"ordinal": ordinal, "bytes": len(data)}
    head = bytes(data[:12])
    if head[:4] == b"VKE1":
        entry["kind"] = "vulkan executable"
        try:
            entry["executable"] = _executable(data)
        except PumiceError as error:
            entry["problem"] = describe(error)
    elif head[:4] == MAGIC:
        entry["kind"] = "reference executable"
        try:
            entry["functions"] = [
                {"name": function.name, "operations": _operations(function.body)} for function in decode(data)
            ]
        except PumiceError as error:
            entry["problem"] = describe(error)
    elif is_module(head):
        entry["kind"] = "module"
        try:
            archive = ModuleArchive.from_bytes(data, f"rodata[{ordinal}]")
            # Each constant lies within the enclosing one, so the file limits the depth; the stack is not that deep.
            entry["module"] = (
                summarize(read_module(archive), len(data), depth=depth + 1) if depth < _MAX_NESTED else None
            )
        except PumiceError as error:
            entry["problem"] = describe(error)
    elif (text := _text(data)) is not None:
        entry |= {"kind": "text", "text": text}
    else:
        entry["kind"] = "data"
    return entry


def _executable(data: memoryview) -> Summary:
    executable = parse_executable(data)
    modules = [reflect(code) for code in executable.shader_modules]
    summary = executable_json(executable, modules)
    for described, code in zip(summary["shader_modules"], executable.shader_modules, strict=True):
        described["bytes"] = len(code)
    return summary


def _text(data: memoryview) -> str | None:
    if not 0 < len(data) <= _MAX_TEXT:
        return None
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def _by_kind(rodata: Sequence[Summary]) -> dict[str, Summary]:
    totals: dict[str, Summary] = {}
    for constant in rodata:
        total = totals.setdefault(constant["kind"], {"count": 0, "bytes": 0})
        total["count"] += 1
        total["bytes"] += constant["bytes"]
    return totals
