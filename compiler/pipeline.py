"""Compilation of programs from any stage to a later one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from ..base.lazy_dataclass import dataclass
from ..status import InvalidArgumentError
from ..vm.assembly.assembler import assemble
from ..vm.bytecode.verifier import verify_module
from ..vm.bytecode.writer import write_module
from .abi.calling_convention import CallingConvention
from .kernels.scalars.target import Target
from .lowering import locating_errors, module_of, passes_between, run_passes
from .origin import Origin
from .stages import (
    STAGES,
    GraphFile,
    ModuleFile,
    Program,
    is_assembly,
    is_graph_file,
    other_kind,
    program_of,
    read_program,
    stage_of,
)

_NO_ORIGIN: Final = Origin()

Reached: TypeAlias = Callable[[str, Program | GraphFile | ModuleFile], None]


@dataclass(frozen=True, slots=True)
class Compilation:
    """The result of a compilation.

    Attributes:
        program: the program at the last stage.
        module: the module file, if the last stage is the module.
    """

    program: Program | GraphFile | ModuleFile
    module: bytes = b""


def compile_data(
    data: bytes,
    file_name: str,
    target: Target,
    origin: Origin = _NO_ORIGIN,
    until: str = "module",
    reached: Reached | None = None,
    convention: CallingConvention | None = None,
) -> Compilation:
    """Compiles the contents of a file: a program at any stage, as text, or a GraphDef.

    Args:
        data: the contents.
        file_name: the file's name, for errors.
        target: the device that kernels are made for.
        origin: the properties that the file does not contain.
        until: the last stage, of ``STAGES``.
        reached: a function that is called at each stage with its name and the verified program, which it must not
            change.
        convention: the calling convention of the functions that the module exports; None for the default, or for the
            convention of a program past ``hlo``.

    Raises: as for ``compile``.
    """
    kind = other_kind(data)
    if kind is not None:
        raise InvalidArgumentError(f"{file_name}: expected a program to compile: StableHLO or a GraphDef, got {kind}")
    if origin.stage == "graphdef" or (origin.stage is None and is_graph_file(data, file_name)):
        # Imported here, so that other programs compile sooner.
        from .frontends.graphdef.importer import import_graph

        graph = GraphFile(data, file_name)
        if reached is not None:
            reached("graphdef", graph)
        if until == "graphdef":
            return Compilation(graph)
        program = program_of(*import_graph(data, file_name, origin.feeds, origin.fetches))
        return compile_program(program, "hlo", target, until, reached, convention)
    if origin.feeds or origin.fetches:
        raise InvalidArgumentError(f"{file_name}: feeds and fetches are for a GraphDef; this is an MLIR program")
    text = data.decode("utf-8", "surrogateescape")
    return compile_text(text, file_name, target, until, origin.stage, reached, convention)


def compile_text(
    text: str,
    file_name: str,
    target: Target,
    until: str = "module",
    from_: str | None = None,
    reached: Reached | None = None,
    convention: CallingConvention | None = None,
) -> Compilation:
    """Compiles the text of a program at any stage past ``graphdef``.

    Args:
        text: the program's text.
        from_: the program's stage; by default inferred from its operations.
        file_name, target, until, reached, convention: the same as for ``compile_data``.

    Raises:
        CompileError: the program is wrong, or part of it is not supported.
        InvalidArgumentError: the program is past the last stage, there is no such stage, or VM assembly is wrong.
    """
    if from_ == "module" or (from_ is None and is_assembly(text)):
        if until != "module":
            raise InvalidArgumentError(f"expected a program before the stage {until}, got one at module")
        if convention is not None:
            raise InvalidArgumentError(f"{file_name}: expected a program to give a calling convention to, got a module")
        definition = assemble(text, file_name=file_name)
        verify_module(definition)
        return _finished(write_module(definition), reached)
    program = read_program(text, file_name)
    return compile_program(program, stage_of(program) if from_ is None else from_, target, until, reached, convention)


def compile_program(
    program: Program,
    stage: str,
    target: Target,
    until: str,
    reached: Reached | None,
    convention: CallingConvention | None = None,
) -> Compilation:
    """Compiles a program at a stage; arguments and errors are those of ``compile_text``."""
    allowed = [name for name in STAGES[: STAGES.index(until) + 1] if name != "module"]
    if stage not in allowed:
        raise InvalidArgumentError(f"expected a program at the stage {' or '.join(allowed)}, got one at {stage}")
    run_passes(program, passes_between(stage, allowed[-1], target, convention), reached)
    if until != "module":
        return Compilation(program)
    with locating_errors(program):
        module = module_of(program)
    return _finished(write_module(module), reached)


def _finished(module: bytes, reached: Reached | None) -> Compilation:
    file = ModuleFile(module)
    if reached is not None:
        reached("module", file)
    return Compilation(file, module)
