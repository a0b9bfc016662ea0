"""``pumice info``: the declarations of a kernel file, without a device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options import source_options


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@source_options()
@click.option("--entry", metavar="NAME", help="Of HLSL and Slang: the function that is the entry point.")
@click.option("--json", "as_json", is_flag=True, help="All of it as JSON.")
def info(file: Path, entry: str | None, as_json: bool, **sources: Any) -> None:
    """Show what FILE declares: a kernel in SPIR-V (.spv) or as source (GLSL: .comp, .glsl; HLSL: .hlsl; Slang: .slang;
    WGSL: .wgsl; SPIR-V assembly: .spvasm), a Vulkan executable (VKE1), a compiled program (.vmfb), or one that is
    compiled first (.mlir).

    Needs no device; a source needs its compiler.
    """
    from ...formats.vke1_reader import parse_executable
    from ...hal_vulkan import reflect
    from ...runtime.kernels.shader_source import load_shader
    from ..errors import usage_error
    from ..input_files import FileKind, file_kind, read_file
    from ..options import parse_sources
    from ..tables import print_json
    from .kernel_tables import executable_json, show_executable, show_module
    from .module_summary import summarize_file

    kind = file_kind(file, sources["language"])
    if entry is not None and kind is not FileKind.SOURCE:
        raise usage_error(f"--entry is for shader sources; {file} is a {kind.value}")
    options = parse_sources(file, kind, entry_point=entry, **sources)
    if kind in (FileKind.MODULE, FileKind.PROGRAM):
        from ..programs import compiled
        from .module_tables import show_summary

        summary = summarize_file(compiled(file) if kind is FileKind.PROGRAM else read_file(file), str(file))
        if as_json:
            print_json(summary)
        else:
            show_summary(summary)
        return
    if kind is FileKind.EXECUTABLE:
        executable = parse_executable(read_file(file))
        modules = [reflect(code) for code in executable.shader_modules]
        if as_json:
            print_json(executable_json(executable, modules))
        else:
            show_executable(executable, modules)
        return
    code, _ = load_shader(file, options)
    reflection = reflect(code)
    if as_json:
        print_json(reflection.to_json())
    else:
        show_module(reflection)
