"""A program of any kind, taken from its stage to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ..status import InvalidArgumentError
from ..vm.assembly.assembler import assemble
from ..vm.bytecode.verifier import verify_module
from ..vm.bytecode.writer import write_module
from .abi.calling_convention import CallingConvention
from .abi.entry_points import give_abis, hold_abis
from .conversion.convert import convert_functions
from .conversion.places import place_called
from .conversion.user_types import erase_user_types
from .ir.source import CompileError
from .ir.types import FunctionType
from .kernels.scalars.target import Target
from .lowering import LOWERINGS, module_of
from .origin import Origin
from .passes.verification.stages import verify_stage
from .passes.verification.verify import verify
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
    """What a program became.

    Attributes:
        program: at the last stage.
        module: the module file, if the last stage is that.
    """

    program: Program | GraphFile | ModuleFile
    module: bytes = b""


def compile_data(
    data: bytes,
    file_name: str,
    target: Target,
    origin: Origin = _NO_ORIGIN,
    until: str = "module",
    reached: Reached = lambda stage, program: None,
    convention: CallingConvention | None = None,
) -> Compilation:
    """Compiles what a file holds: a program at any stage, as text, or a GraphDef.

    Args:
        data: its bytes.
        file_name: as errors name it.
        target: the device that kernels are made for.
        origin: what the file does not say of itself.
        until: the last stage, of ``STAGES``.
        reached: called with each stage that is text, and the program, which is only read.
        convention: of the functions that the module exports; None for the default, or what a program past ``hlo`` has.

    Raises: as for ``compile``.
    """
    found = other_kind(data)
    if found is not None:
        raise InvalidArgumentError(f"{file_name}: expected a program to compile: StableHLO or a GraphDef, got {found}")
    is_graph = origin.stage == "graphdef" or (origin.stage is None and is_graph_file(data, file_name))
    if is_graph:
        return compile_graph(data, file_name, target, origin.feeds, origin.fetches, until, reached, convention)
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
    reached: Reached = lambda stage, program: None,
    convention: CallingConvention | None = None,
) -> Compilation:
    """Compiles a program at any stage.

    Args:
        text: of the program.
        file_name: as errors name it.
        target: the device that kernels are made for.
        until: the last stage, of ``STAGES``.
        from_: the stage that the program is at; by default its operations tell.
        reached: called with each stage that is a program, and the program, which is only read.
        convention: as for ``compile_data``.

    Raises:
        CompileError: the program is wrong, or something in it is not supported.
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


def compile_graph(
    data: bytes,
    file_name: str,
    target: Target,
    feeds: Sequence[str] = (),
    fetches: Sequence[str] = (),
    until: str = "module",
    reached: Reached = lambda stage, program: None,
    convention: CallingConvention | None = None,
) -> Compilation:
    """Compiles a TensorFlow GraphDef, text or binary; ``import_graph`` says what feeds and fetches are.

    Raises:
        CompileError: the graph is wrong, or something in it is not supported.
        UnavailableError: the extra ``graphdef`` is not installed.
    """
    # Other programs are compiled sooner without it.
    from .frontends.graphdef.importer import import_graph

    graph = GraphFile(data, file_name)
    reached("graphdef", graph)
    if until == "graphdef":
        return Compilation(graph)
    program = program_of(*import_graph(data, file_name, feeds, fetches))
    return compile_program(program, "hlo", target, until, reached, convention)


def compile_program(
    program: Program,
    stage: str,
    target: Target,
    until: str,
    reached: Reached,
    convention: CallingConvention | None = None,
) -> Compilation:
    """Compiles a program at a stage; arguments and errors are those of ``compile_text``."""
    allowed = [each for each in STAGES[: STAGES.index(until) + 1] if each != "module"]
    if stage not in allowed:
        raise InvalidArgumentError(f"expected a program at the stage {' or '.join(allowed)}, got one at {stage}")
    if stage == "hlo":
        written = {
            name: type
            for name, function in program.functions.items()
            if isinstance(type := function.attributes.get("function_type"), FunctionType)
        }
        for function in program.functions.values():
            erase_user_types(function, program.source)
        place_called(program.functions)
        program.operations = convert_functions(program.operations, program.source)
        verify(program.functions, program.source)
        give_abis(program.functions, written, convention, program.source)
    else:
        verify_stage(stage, program.functions, program.executables, program.source)
        hold_abis(program.functions, convention, program.source)
    try:
        for each in STAGES[STAGES.index(stage) : STAGES.index(until) + 1]:
            if each == "module":
                return _finished(write_module(module_of(program)), reached)
            if each != stage:
                LOWERINGS[each](program, target)
            reached(each, program)
    except CompileError as error:
        raise program.source.located(error) from None
    return Compilation(program)


def _finished(module: bytes, reached: Reached) -> Compilation:
    made = ModuleFile(module)
    reached("module", made)
    return Compilation(made, module)
