"""The passes from a program to kernels and schedules, their execution, and the module made of the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, TypeAlias

from ..base.lazy_dataclass import dataclass
from ..vm.bytecode.module_def import ModuleDef
from .abi.calling_convention import CallingConvention
from .abi.entry_points import check_abis, give_abis
from .conversion.convert import convert_functions
from .conversion.preparation import erase_user_types, place_called
from .ir.attributes import IntegerAttr
from .ir.copying import copy_region
from .ir.operation import Operation, Region, block_of
from .ir.source import CompileError, SourceText
from .ir.types import I32, I64, FunctionType
from .kernels.kernel import Variant
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
from .passes.sequencing.schedule import schedule
from .passes.sequencing.steps import Dispatch, walk
from .passes.verification.stages import verify_stage
from .passes.verification.verify import verify, verify_boundary
from .stages import Program
from .targets import reference, vulkan

Reached: TypeAlias = Callable[[str, Program], None]


@dataclass(frozen=True, slots=True)
class Pass:
    """One step of a program on its way to a module.

    Attributes:
        name: the pass's name, such as ``split-loops``.
        run: the function that changes a program in place; it takes the program and the options.
        options: all inputs of the pass besides the program.
        stage: the stage of ``STAGES`` that the pass completes; None for an intermediate pass.
    """

    name: str
    run: Callable[..., None]
    options: tuple[object, ...] = ()
    stage: str | None = None


def on_bodies(run: Callable[..., object]) -> Callable[..., None]:
    """Makes a pass function from a function of a body."""

    def run_on_bodies(program: Program, *options: object) -> None:
        for function in program.functions.values():
            run(function.regions[0].block, *options)

    return run_on_bodies


def run_passes(program: Program, passes: Sequence[Pass], reached: Reached | None) -> None:
    """Runs passes on a program, in place.

    Args:
        program: the program, at the stage before the first pass.
        passes: the passes, in order.
        reached: a function that is called at each stage with its name and the program, which it must not change. The
            program is verified first. Without ``reached`` it is not verified, which saves an eighth of the time.

    Raises:
        CompileError: part of the program is wrong or not supported; the message has the location.
    """
    for step in passes:
        with locating_errors(program):
            step.run(program, *step.options)
            if step.stage is not None and reached is not None:
                if step.stage != "hlo":
                    verify_stage(step.stage, program.written, program.source)
                reached(step.stage, program)


@contextmanager
def locating_errors(program: Program) -> Iterator[None]:
    """Adds the location to errors inside that have only an offset."""
    try:
        yield
    except CompileError as error:
        raise program.source.located(error) from None


def passes_between(stage: str, until: str, target: Target, convention: CallingConvention | None) -> Sequence[Pass]:
    """Returns the passes from a program's stage to a later one.

    Args:
        stage: the first stage, from ``hlo`` to ``targets``.
        until: the last stage, from ``hlo`` to ``targets``.
        target: the device that kernels are made for.
        convention: the calling convention of the functions that the module exports; None for the default, or for the
            convention of a program past ``hlo``.
    """
    passes = _lowering(target, convention)
    stages = [step.stage for step in passes]
    last = stages.index(until)
    if stage == "hlo":
        return passes[: last + 1]
    check = Pass("verify", _verify, (stage, convention), stage=stage)
    return [check, *passes[stages.index(stage) + 1 : last + 1]]


def _lowering(target: Target, convention: CallingConvention | None) -> Sequence[Pass]:
    """Returns all passes in order."""
    return [
        Pass("convert", _convert, (convention,), stage="hlo"),
        Pass("inline", _inline),
        Pass("resolve-sizes", _resolve_sizes),
        Pass("forget-stages", on_bodies(forget_stages)),
        Pass("expand-chlo", on_bodies(expand_chlo)),
        Pass("canonicalize", on_bodies(canonicalize)),
        Pass("replace-scatters", on_bodies(replace_scatters), (target,)),
        Pass("decompose", on_bodies(decompose), (target,)),
        Pass("shorten-scans", on_bodies(shorten_scans), (target,)),
        Pass("split-loops", on_bodies(split_loops), (target,)),
        Pass("canonicalize", on_bodies(canonicalize)),
        Pass("count-trips", on_bodies(count_trips), stage="canonical"),
        Pass("form-regions", on_bodies(form_regions), stage="regions"),
        Pass("outline", _outline, stage="hl_seq"),
        Pass("schedule", _schedule, stage="ll_seq"),
        Pass("lower-executables", _lower_executables, (target,), stage="targets"),
    ]


def _verify(program: Program, stage: str, convention: CallingConvention | None) -> None:
    program.schedules = verify_stage(stage, program.operations, program.source)
    check_abis(program.functions, convention, program.source)


def _convert(program: Program, convention: CallingConvention | None) -> None:
    """Converts other dialects and types to StableHLO over tensors; assigns exported functions their ABI."""
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


def _is_exported(function: Operation) -> bool:
    return bool(function.regions) and function.attributes.get("sym_visibility") != "private"


def _inline(program: Program) -> None:
    """Inlines all calls in exported functions."""
    functions, source = program.functions, program.source
    for function in filter(_is_exported, functions.values()):
        verify_boundary(function, source)
    program.operations = [
        inlined(function, functions, source) if _is_exported(function) else function for function in functions.values()
    ]


def _resolve_sizes(program: Program) -> None:
    """Expresses lengths in terms of the arguments' lengths; drops functions that are not exported."""
    functions = program.functions
    exported = filter(_is_exported, functions.values())
    program.operations = [resolve(function, functions, program.source) for function in exported]
    if not program.operations:
        raise program.source.error(0, "the program has no public function with a body")


def _outline(program: Program) -> None:
    executables: list[Operation] = []
    sequences: list[Operation] = []
    for function in program.operations:
        *outlined, sequence = outline(function)
        executables += outlined
        sequences.append(sequence)
    program.operations = [*executables, *sequences]


def _schedule(program: Program) -> None:
    """Schedules functions; numbers the executables that they dispatch, and records their workloads."""
    functions = program.functions
    program.schedules = {name: schedule(function) for name, function in functions.items()}
    for ordinal, function in enumerate(functions.values()):
        function.attributes["iree.ordinal"] = IntegerAttr(ordinal, I32)
    plans = program.schedules.values()
    steps = [step for plan in plans for step in walk(plan.steps)]
    workloads = {step.entry: step.workload for step in steps if isinstance(step, Dispatch)}
    executables = [*program.executables, *(executable for plan in plans for executable in plan.executables)]
    dispatched = [executable for executable in executables if entry_of(executable)[0] in workloads]
    for ordinal, executable in enumerate(dispatched):
        executable.attributes["ordinal"] = IntegerAttr(ordinal, I64)
        entry, function = entry_of(executable)
        function.attributes["iree.executable.workload"] = workloads[entry]
        function.attributes["iree.ordinal"] = IntegerAttr(0, I32)
    program.operations = [*dispatched, *functions.values()]


def _lower_executables(program: Program, target: Target) -> None:
    """Lowers each executable for each kind of device."""
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
    """Returns an executable, and its strategy, for calls beyond the loop limit of this executable's kernel."""
    _, function = entry_of(executable)
    made_for = [facts for kind, _, facts in target.variants() if kind == "vulkan"]
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
    """Makes the module of a program at the stage ``targets``."""
    variants = {}
    for executable in program.executables:
        made = [
            _VARIANTS[operation.attributes["target"]](operation, program.source)
            for operation in executable.regions[0].block.operations
        ]
        variants[f"{executable.attributes['sym_name']}::@{made[0].kernel.entry_point}"] = made
    planned = [(function, program.schedules[name]) for name, function in program.functions.items()]
    return emit_module(program.name, planned, variants, program.source)


_VARIANTS: Final[Mapping[object, Callable[[Operation, SourceText], Variant]]] = {
    vulkan.TARGET: vulkan.vulkan_executable,
    reference.TARGET: reference.reference_executable,
}
"""Functions that make an executable from a target's operation, by the target's attribute."""
