"""From a program's text to a module, stage by stage."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final, TypeAlias

from ..files import CachedFile, reading_errors
from ..status import InvalidArgumentError
from ..vm.assembly.assembler import assemble
from ..vm.bytecode.module_def import ModuleDef
from ..vm.bytecode.verifier import verify_module
from ..vm.bytecode.writer import write_module
from .codegen.target import Target
from .conversion.convert import convert_functions
from .ir.attributes import IntegerAttr, SymbolRef
from .ir.operation import Operation, Region, block_of
from .ir.source import CompileError, SourceText
from .ir.types import I32, I64
from .module.emit import emit_module
from .passes.canonical.canonicalize import canonicalize, inlined
from .passes.canonical.trip_counts import count_trips
from .passes.decomposition.decompose import decompose
from .passes.decomposition.scatters import sort_scatters
from .passes.decomposition.split import split_loops
from .passes.dispatch.outline import entry_of, outline
from .passes.dispatch.regions import form_regions
from .passes.dynamic.resolve import resolve
from .passes.formulas.expand import expand_chlo
from .passes.sequencing.ll_seq import schedule_of, sequence_of
from .passes.sequencing.schedule import schedule
from .passes.verification.stages import verify_stage
from .passes.verification.verify import verify, verify_boundary
from .stages import (
    STAGES,
    GraphFile,
    ModuleFile,
    Program,
    is_assembly,
    is_graph_file,
    program_of,
    read_program,
    stage_of,
)
from .targets import reference, vulkan
from .targets.variant import Variant

Reached: TypeAlias = Callable[[str, Program | GraphFile | ModuleFile], None]


def compile(
    source: str | bytes | PathLike[str],
    *,
    targets: Sequence[str] = ("vulkan",),
    file_name: str = "<text>",
    from_: str | None = None,
    feeds: Sequence[str] = (),
    fetches: Sequence[str] = (),
) -> bytes:
    """Compiles a tensor program.

    Args:
        source: a StableHLO program as text, as ``jax.jit(f).lower(…).as_text()`` gives it, or a program at a later
            stage; a TensorFlow GraphDef, as text or binary; or the path of a file.
        targets: kinds of devices that the module is for: ``"vulkan"``, ``"reference"``, or
            ``"vulkan:shaderInt64"``, devices with that feature. A module for several has executables for each and
            chooses by the device when it is loaded.
        file_name: as errors name the text; a path names itself.
        from_: the stage that the program is at, of ``STAGES``; by default its content tells.
        feeds: of a GraphDef: arguments as ``NAME[:N][=SHAPE]``; by default its placeholders.
        fetches: of a GraphDef: results as ``NAME[:N]``; by default what no node takes.

    Returns:
        A module file that ``Session.load`` takes. Its public functions are exported; they take and give tensors.

    Raises:
        CompileError: the program is wrong, or something in it is not supported; the message has its place and line.
        InvalidArgumentError: there is no such stage or target, or only a GraphDef has feeds and fetches.
        NotFoundError: there is no such file.
        UnavailableError: a GraphDef needs the extra ``graphdef``, which is not installed.
    """
    origin = Origin(from_, tuple(feeds), tuple(fetches))
    target = Target(kinds=(targets,) if isinstance(targets, str) else tuple(targets))
    if isinstance(source, str | bytes):
        data = source.encode("utf-8", "surrogateescape") if isinstance(source, str) else source
        return compile_data(data, file_name, target, origin).module
    return compile_file(Path(source), origin, target)


@dataclass(frozen=True, slots=True)
class Origin:
    """What a file does not say of itself.

    Attributes:
        stage: that it is at, of ``STAGES``; None if its content tells.
        feeds: of a GraphDef, as ``import_graph`` has them.
        fetches: of a GraphDef.
    """

    stage: str | None = None
    feeds: tuple[str, ...] = ()
    fetches: tuple[str, ...] = ()


def compile_file(path: Path, origin: Origin = Origin(), target: Target | None = None) -> bytes:
    """The module of a program's file, compiled once for each content and release of pumice.

    Raises: as for ``compile``.
    """
    target = target or Target()
    with reading_errors(path):
        data = path.read_bytes()
    entry = CachedFile("modules", (_fingerprint(), str(path), origin, target, data))
    found = entry.load()
    if found is None:
        found = compile_data(data, str(path), target, origin).module
        entry.store(found)
    return found


@functools.cache
def _fingerprint() -> str:
    """What changes when the compiler does: names, sizes and times of its files."""
    root = Path(__file__).parent
    folders = [root, *(root.parent / name for name in ("spirv", "formats", "hal_reference", "vm/assembly"))]
    files = sorted(file for folder in folders for file in folder.rglob("*.py"))
    stats = [(str(file.relative_to(root.parent)), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(repr(stats).encode()).hexdigest()


def compile_data(
    data: bytes,
    file_name: str,
    target: Target,
    origin: Origin = Origin(),
    until: str = "module",
    reached: Reached = lambda stage, program: None,
) -> Compilation:
    """Compiles what a file holds: a program at any stage, as text, or a GraphDef.

    Args:
        data: its bytes.
        file_name: as errors name it.
        target: the device that kernels are made for.
        origin: what the file does not say of itself.
        until: the last stage, of ``STAGES``.
        reached: called with each stage that is text, and the program, which is only read.

    Raises: as for ``compile``.
    """
    is_graph = origin.stage == "graphdef" or (origin.stage is None and is_graph_file(data, file_name))
    if is_graph:
        return compile_graph(data, file_name, target, origin.feeds, origin.fetches, until, reached)
    if origin.feeds or origin.fetches:
        raise InvalidArgumentError(f"{file_name}: feeds and fetches are those of a GraphDef; it is none")
    return compile_text(data.decode("utf-8", "surrogateescape"), file_name, target, until, origin.stage, reached)


def compile_text(
    text: str,
    file_name: str,
    target: Target,
    until: str = "module",
    from_: str | None = None,
    reached: Reached = lambda stage, program: None,
) -> Compilation:
    """Compiles a program at any stage.

    Args:
        text: of the program.
        file_name: as errors name it.
        target: the device that kernels are made for.
        until: the last stage, of ``STAGES``.
        from_: the stage that the program is at; by default its operations tell.
        reached: called with each stage that is a program, and the program, which is only read.

    Raises:
        CompileError: the program is wrong, or something in it is not supported.
        InvalidArgumentError: the program is past the last stage, there is no such stage, or VM assembly is wrong.
    """
    if from_ == "module" or (from_ is None and is_assembly(text)):
        if until != "module":
            raise InvalidArgumentError(f"expected a program before the stage {until}, got one at module")
        definition = assemble(text, file_name=file_name)
        verify_module(definition)
        return _finished(write_module(definition), reached)
    program = read_program(text, file_name)
    return compile_program(program, stage_of(program) if from_ is None else from_, target, until, reached)


def compile_graph(
    data: bytes,
    file_name: str,
    target: Target,
    feeds: Sequence[str] = (),
    fetches: Sequence[str] = (),
    until: str = "module",
    reached: Reached = lambda stage, program: None,
) -> Compilation:
    """Compiles a TensorFlow GraphDef, text or binary; ``import_graph`` says what feeds and fetches are.

    Raises:
        CompileError: the graph is wrong, or something in it is not supported.
        UnavailableError: the extra ``graphdef`` is not installed.
    """
    # Other programs are compiled sooner without it.
    from .graphdef.importer import import_graph

    graph = GraphFile(data, file_name)
    reached("graphdef", graph)
    if until == "graphdef":
        return Compilation(graph)
    program = program_of(*import_graph(data, file_name, feeds, fetches))
    return compile_program(program, "hlo", target, until, reached)


def compile_program(program: Program, stage: str, target: Target, until: str, reached: Reached) -> Compilation:
    """Compiles a program at a stage; arguments and errors are those of ``compile_text``."""
    allowed = [each for each in STAGES[: STAGES.index(until) + 1] if each != "module"]
    if stage not in allowed:
        raise InvalidArgumentError(f"expected a program at the stage {' or '.join(allowed)}, got one at {stage}")
    if stage == "hlo":
        program.operations = convert_functions(program.operations, program.source)
        verify(program.functions, program.source)
    else:
        verify_stage(stage, program.functions, program.executables, program.source)
    try:
        for each in STAGES[STAGES.index(stage) : STAGES.index(until) + 1]:
            if each == "module":
                return _finished(write_module(_module(program)), reached)
            if each != stage:
                _LOWERINGS[each](program, target)
            reached(each, program)
    except CompileError as error:
        raise program.source.located(error) from None
    return Compilation(program)


def _finished(module: bytes, reached: Reached) -> Compilation:
    made = ModuleFile(module)
    reached("module", made)
    return Compilation(made, module)


@dataclass(frozen=True, slots=True)
class Compilation:
    """What a program became.

    Attributes:
        program: at the last stage.
        module: the module file, if the last stage is that.
    """

    program: Program | GraphFile | ModuleFile
    module: bytes = b""


def _canonical(program: Program, target: Target) -> None:
    """Calls are written out, and what no kernel computes is decomposed; only exported functions are left."""
    functions = program.functions
    exported = [each for each in functions.values() if _is_exported(each)]
    for function in exported:
        verify_boundary(function, program.source)
    inline = [inlined(each, functions, program.source) for each in exported]
    program.operations = [resolve(each, functions, program.source) for each in inline]
    if not program.operations:
        raise program.source.error(0, "the program has no public function with a body")
    for function in program.operations:
        expand_chlo(function.regions[0].block)
        canonicalize(function.regions[0].block)
        sort_scatters(function.regions[0].block)
        decompose(function.regions[0].block)
        split_loops(function.regions[0].block)
        canonicalize(function.regions[0].block)
        count_trips(function.regions[0].block)


def _is_exported(function: Operation) -> bool:
    return bool(function.regions) and function.attributes.get("sym_visibility") != "private"


def _regions(program: Program, target: Target) -> None:
    for function in program.operations:
        form_regions(function.regions[0].block)


def _hl_seq(program: Program, target: Target) -> None:
    executables: list[Operation] = []
    sequences: list[Operation] = []
    for function in program.operations:
        *outlined, sequence = outline(function)
        executables += outlined
        sequences.append(sequence)
    program.operations = [*executables, *sequences]


def _ll_seq(program: Program, target: Target) -> None:
    """Sequences are scheduled, and what is known of dispatches goes to the executables."""
    functions = program.functions.values()
    schedules = [schedule(each) for each in functions]
    sequences = [
        sequence_of(each, plan, ordinal) for ordinal, (each, plan) in enumerate(zip(functions, schedules, strict=True))
    ]
    workloads = {
        operation.attributes["entry"].name: operation.attributes["workload"]
        for sequence in sequences
        for operation in sequence.walk()
        if "workload" in operation.attributes and isinstance(operation.attributes["entry"], SymbolRef)
    }
    every = [*program.executables, *(executable for plan in schedules for executable in plan.executables)]
    dispatched = [executable for executable in every if entry_of(executable)[0] in workloads]
    for ordinal, executable in enumerate(dispatched):
        executable.attributes["ordinal"] = IntegerAttr(ordinal, I64)
        entry, function = entry_of(executable)
        if entry in workloads:
            function.attributes["iree.executable.workload"] = workloads[entry]
        function.attributes["iree.ordinal"] = IntegerAttr(0, I32)
    program.operations = [*dispatched, *sequences]


def _targets(program: Program, target: Target) -> None:
    """Each executable is lowered for each kind of device."""
    for executable in program.executables:
        _, function = entry_of(executable)
        (unspecified,) = executable.regions[0].block.operations
        variants = []
        for kind, features, made_for in target.variants():
            if kind == "vulkan":
                kernel = vulkan.vulkan_kernel(function, made_for)
                variants.append(vulkan.vulkan_variant(kernel, function.location, features))
            else:
                variants.append(reference.reference_variant(unspecified.regions[0], function.location))
        executable.regions = [Region([block_of(variants)])]


def _module(program: Program) -> ModuleDef:
    variants = {}
    for executable in program.executables:
        made = [
            _VARIANTS[each.attributes["target"]](each, program.source)
            for each in executable.regions[0].block.operations
        ]
        variants[f"{executable.attributes['sym_name']}::@{made[0].kernel.entry_point}"] = made
    planned = [(function, schedule_of(function)) for function in program.functions.values()]
    return emit_module(program.name, planned, variants, program.source)


_VARIANTS: Final[Mapping[object, Callable[[Operation, SourceText], Variant]]] = {
    vulkan.TARGET: vulkan.vulkan_executable,
    reference.TARGET: reference.reference_executable,
}
"""What makes an executable of a target's operation, by how that names the target."""

_LOWERINGS: Final[Mapping[str, Callable[[Program, Target], None]]] = {
    "hlo": lambda program, target: None,
    "canonical": _canonical,
    "regions": _regions,
    "hl_seq": _hl_seq,
    "ll_seq": _ll_seq,
    "targets": _targets,
}
"""What takes a program from the stage before to each, in place."""
