"""From each stage of a program to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ..vm.bytecode.module_def import ModuleDef
from .ir.attributes import IntegerAttr, SymbolRef
from .ir.copying import copy_region
from .ir.operation import Operation, Region, block_of
from .ir.source import SourceText
from .ir.types import I32, I64
from .kernels.scalars.target import Target
from .kernels.strategy import Strategy
from .module.emit import emit_module
from .passes.canonical.canonicalize import canonicalize, inlined
from .passes.canonical.trip_counts import count_trips
from .passes.decomposition.decompose import decompose
from .passes.decomposition.scans import shorten_scans
from .passes.decomposition.scatters import replace_scatters
from .passes.decomposition.sorts import forget_stages
from .passes.decomposition.split import split_loops
from .passes.dispatch.outline import entry_of, executable_of, outline
from .passes.dispatch.regions import form_regions
from .passes.dynamic.resolve import resolve
from .passes.formulas.expand import expand_chlo
from .passes.sequencing.ll_seq import schedule_of, sequence_of
from .passes.sequencing.schedule import schedule
from .passes.verification.verify import verify_boundary
from .stages import Program
from .targets import reference, vulkan
from .targets.variant import Variant


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
        forget_stages(function)
        expand_chlo(function.regions[0].block)
        canonicalize(function.regions[0].block)
        replace_scatters(function.regions[0].block, target)
        decompose(function.regions[0].block, target)
        shorten_scans(function.regions[0].block, target)
        split_loops(function.regions[0].block, target)
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
    executables = []
    for executable in program.executables:
        longer, strategy = _longer(executable, target)
        _lower(executable, target, None if longer is None else entry_of(longer)[0])
        executables.append(executable)
        if longer is not None:
            _lower(longer, target, strategy=strategy)
            executables.append(longer)
    program.operations = [*executables, *program.functions.values()]


def _longer(executable: Operation, target: Target) -> tuple[Operation, Strategy] | tuple[None, None]:
    """Returns an executable for calls in which the loops of this one's kernel are too long, and its strategy."""
    _, function = entry_of(executable)
    made_for = [each for kind, _, each in target.variants() if kind == "vulkan"]
    strategy = vulkan.longer_strategy(function, made_for[0]) if made_for else None
    if strategy is None:
        return None, None
    attributes = {**function.attributes, "sym_name": f"{function.attributes['sym_name']}_long"}
    body = copy_region(function.regions[0], {})
    longer = Operation(function.name, (), (), attributes, [body], location=function.location)
    return executable_of(longer, f"{executable.attributes['sym_name']}_long"), strategy


def _lower(executable: Operation, target: Target, longer: str | None = None, strategy: Strategy | None = None) -> None:
    _, function = entry_of(executable)
    (unspecified,) = executable.regions[0].block.operations
    variants = []
    for kind, features, made_for in target.variants():
        if kind == "vulkan":
            kernel = replace(vulkan.vulkan_kernel(function, made_for, strategy), longer=longer)
            variants.append(vulkan.vulkan_variant(kernel, function.location, features))
        else:
            variants.append(reference.reference_variant(unspecified.regions[0], function.location))
    executable.regions = [Region([block_of(variants)])]


def module_of(program: Program) -> ModuleDef:
    """The module of a program at the stage ``targets``."""
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

LOWERINGS: Final[Mapping[str, Callable[[Program, Target], None]]] = {
    "hlo": lambda program, target: None,
    "canonical": _canonical,
    "regions": _regions,
    "hl_seq": _hl_seq,
    "ll_seq": _ll_seq,
    "targets": _targets,
}
"""What takes a program from the stage before to each, in place."""
