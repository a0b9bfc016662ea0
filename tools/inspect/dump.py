"""``pumice dump``: the contents of a compiled program, without a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ...status import shorten
from ..options import complete_files, complete_functions
from ..streams import put

if TYPE_CHECKING:
    from ...vm.bytecode.archive import ModuleArchive
    from ...vm.bytecode.module_def import ModuleDef
    from ...vm.execution.bytecode_module import BytecodeModule


@click.command()
@click.argument("file", shell_complete=complete_files)
@click.option("--json", "as_json", is_flag=True, help="All of it as JSON.")
@click.option("--disassemble", is_flag=True, help="The bytecode, as VM assembly.")
@click.option("--python", "as_python", is_flag=True, help="The Python code that runs the bytecode.")
@click.option("--spirv", is_flag=True, help="The shaders, as SPIR-V assembly; this needs spirv-dis.")
@click.option(
    "--function",
    metavar="NAME|@ORDINAL",
    shell_complete=complete_functions,
    help="With --disassemble and --python: only this function, an export or an internal one by number.",
)
def dump(file: str, as_json: bool, disassemble: bool, as_python: bool, spirv: bool, function: str | None) -> None:
    """Show what FILE holds: a compiled program (.vmfb), or one that is compiled first (.mlir, .pb, .pbtxt); - is stdin.

    That is its functions with their signatures, what it imports, and its constants, among them its shaders with their
    bindings. Needs no device.
    """
    from ...vm.bytecode.reader import read_module
    from ..errors import usage_error
    from ..programs import open_archive

    modes = {"--json": as_json, "--disassemble": disassemble, "--python": as_python, "--spirv": spirv}
    chosen = [name for name, is_chosen in modes.items() if is_chosen]
    if len(chosen) > 1:
        raise usage_error(f"expected one of {', '.join(chosen)}")
    if function is not None and not (disassemble or as_python):
        raise usage_error("--function goes with --disassemble or --python")
    with open_archive(file) as archive:
        definition = read_module(archive)
        if disassemble:
            _disassemble(definition, function)
        elif as_python:
            _show_python(definition, archive, function)
        elif spirv:
            _show_spirv(definition)
        else:
            from ..tables import print_json
            from .module_summary import summarize
            from .module_tables import show_summary

            summary = summarize(definition, len(archive.data))
            if as_json:
                print_json(summary)
            else:
                show_summary(summary)


def _ordinals(definition: ModuleDef, function: str | None) -> list[int]:
    from ...base.terminal import printable
    from ..errors import usage_error

    if function is None:
        return list(range(len(definition.functions)))
    name = function.removeprefix(f"{definition.name}.")
    for export in definition.exports:
        if export.name in (function, name):
            return [export.ordinal]
    number = function.removeprefix("@")
    if number.isascii() and number.isdecimal() and len(number) < 10:
        if int(number) < len(definition.functions):
            return [int(number)]
        raise usage_error(
            f"--function {function}: expected a number below {len(definition.functions)}, which is how many there are"
        )
    names = ", ".join(printable(export.name) for export in definition.exports) or "none"
    raise usage_error(
        f"--function {shorten(function)}: no such function; exported are: {shorten(names)}; others go by number, as @3"
    )


def _disassemble(definition: ModuleDef, function: str | None) -> None:
    from ...base.terminal import printable
    from ...vm.assembly.disassembler import disassemble_function, disassemble_module
    from ...vm.bytecode.verifier import verify_module

    ordinals = _ordinals(definition, function)
    verified = verify_module(definition)
    if function is None:
        text = disassemble_module(verified, offsets=True, rodata=False, places=True)
    else:
        text = "".join(disassemble_function(verified, ordinal, offsets=True, places=True) for ordinal in ordinals)
    put(printable(text, keep="\n"), end="")


def _show_python(definition: ModuleDef, archive: ModuleArchive, function: str | None) -> None:
    from ...base.terminal import printable
    from ...runtime.modules.hal.module import hal_module
    from ...vm.execution.bytecode_module import BytecodeModule
    from ...vm.execution.linker import non_suspending_imports

    ordinals = _ordinals(definition, function)
    module: BytecodeModule = BytecodeModule(definition, archive)
    non_suspending = non_suspending_imports(module, [hal_module()])
    for index, ordinal in enumerate(ordinals):
        convention = module.signatures[ordinal].text
        if index:
            put()
        put(f"# {printable(definition.name)}.{printable(module.function_name(ordinal))} {convention}")
        put(printable(module.translation(ordinal, non_suspending).source_text().rstrip("\n"), keep="\n"))


def _show_spirv(definition: ModuleDef) -> None:
    from ...base.terminal import printable
    from ...formats.vke1_reader import parse_executable
    from ...spirv.checks.tools import disassemble
    from ..streams import note

    shown = 0
    for ordinal, data in enumerate(definition.rodata):
        if bytes(data[:4]) != b"VKE1":
            continue
        executable = parse_executable(data)
        for index, code in enumerate(executable.shader_modules):
            entries = ", ".join(
                pipeline.entry_point for pipeline in executable.pipelines if pipeline.shader_module == index
            )
            if shown:
                put()
            put(f"; rodata[{ordinal}] shader module {index}: {printable(entries)}")
            put(printable(disassemble(bytes(code)).rstrip("\n"), keep="\n"))
            shown += 1
    if not shown:
        note("the module has no Vulkan executables")
