"""``pumice build``: compiles sources of kernels to SPIR-V, ahead of their use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...spirv.sources.language import TARGET_ENVIRONMENTS
from ..options import source_options


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="OUT.spv",
    help="The module to write, or for several files a folder; without it FILE.spv in the working folder.",
)
@click.option(
    "--reflect",
    type=click.Path(path_type=Path),
    metavar="OUT.json",
    help="Also write what the module declares, as `pumice info --json` prints it; for several files a folder.",
)
@source_options()
@click.option("--entry", metavar="NAME", help="Of HLSL and Slang: the function that is the entry point.")
@click.option(
    "--target-env",
    type=click.Choice(TARGET_ENVIRONMENTS),
    default="vulkan1.2",
    show_default=True,
    help="The version of Vulkan or of SPIR-V to compile for.",
)
@click.option("--optimize", "-O", is_flag=True, help="Optimize with spirv-opt.")
@click.option("--debug", "-g", is_flag=True, help="Keep names of files and line numbers in the module.")
def build(
    files: tuple[Path, ...],
    output: Path | None,
    reflect: Path | None,
    entry: str | None,
    target_env: str,
    optimize: bool,
    debug: bool,
    **sources: Any,
) -> None:
    """Compile each FILE, a kernel in GLSL, HLSL, Slang, WGSL or SPIR-V assembly, to a SPIR-V module.

    Errors have the place in the source. All of the modules are written, or none.
    """
    from ...spirv.reflection.reflect import reflect as reflect_module
    from ...spirv.sources.compile import compile_source
    from ...spirv.sources.language import Language, described_languages, language_of
    from ..errors import usage_error
    from ..input_files import FileKind, file_kind
    from ..options import parse_sources
    from ..output_files import store_all
    from ..tables import json_text

    modules: dict[Path, bytes] = {}
    reflections: dict[Path, bytes] = {}
    taken: set[Path] = set()
    for file in files:
        kind = file_kind(file, sources["language"])
        if kind is not FileKind.SOURCE:
            raise usage_error(f"{file} is a {kind.value}; expected a source: {described_languages()}")
        options = parse_sources(file, kind, **sources)
        code_path = _place(output, files, file, ".spv", "--output")
        reflection_path = None if reflect is None else _place(reflect, files, file, ".json", "--reflect")
        for path in filter(None, (code_path, reflection_path)):
            if path in taken or path.resolve() == file.resolve():
                raise usage_error(f"{file}: {path} is written twice, or is a source; build the files one by one")
            taken.add(path)
        modules[code_path] = code = compile_source(
            file,
            options.language or language_of(file) or Language.GLSL,
            entry_point=entry,
            defines=options.defines,
            include_dirs=options.include_dirs,
            target_env=target_env,
            optimize=optimize,
            debug=debug,
        )
        if reflection_path is not None:
            reflections[reflection_path] = json_text(reflect_module(code).to_json()).encode()
    store_all({**modules, **reflections}, where="--output")


def _place(chosen: Path | None, files: tuple[Path, ...], file: Path, suffix: str, option: str) -> Path:
    """Returns the path for the result of a file."""
    from ..errors import usage_error

    if chosen is None or chosen.is_dir():
        return (chosen or Path()) / f"{file.stem}{suffix}"
    if len(files) > 1:
        raise usage_error(f"{option}: expected a folder for {len(files)} files, got {chosen}")
    return chosen
