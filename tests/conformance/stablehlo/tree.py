"""The StableHLO project's own tests, read from a checkout or a git directory that the user names; none of it is kept.

``PUMICE_STABLEHLO_TREE`` names the tree. A program checks its own results: by operations of the ``check`` dialect, or
by custom calls of the same names, with the tolerances of ``stablehlo/tests/CheckOps.cpp``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from support.compiler.regions import run_kernel
from support.compiler.schedules import ScheduleRunner

import pumice
from pumice.compiler.analysis.reference_program import ProgramWriter, plain
from pumice.compiler.dialects.syntax.text import parse, to_text
from pumice.compiler.ir.attributes import Attribute, FloatAttr, SymbolRef
from pumice.compiler.ir.copying import copy_operations
from pumice.compiler.ir.operation import Block, Operation, Region, Value
from pumice.compiler.ir.source import CompileError, SourceText
from pumice.compiler.ir.types import FunctionType
from pumice.compiler.kernels.kernel import Kernel
from pumice.compiler.kernels.region import KernelRegion
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.passes.canonical.canonicalize import canonicalize, inlined
from pumice.compiler.passes.canonical.trip_counts import count_trips
from pumice.compiler.passes.decomposition.decompose import decompose
from pumice.compiler.passes.decomposition.scatters import replace_scatters
from pumice.compiler.passes.decomposition.split import split_loops
from pumice.compiler.passes.dispatch.outline import outline
from pumice.compiler.passes.dispatch.regions import form_regions
from pumice.compiler.passes.dynamic.resolve import resolve
from pumice.compiler.passes.formulas.expand import expand_chlo
from pumice.compiler.passes.sequencing.schedule import schedule
from pumice.compiler.passes.sequencing.steps import Schedule
from pumice.compiler.passes.verification.verify import verify
from pumice.compiler.pipeline import compile_program, compile_text
from pumice.compiler.stages import Program, program_of
from pumice.compiler.strategies.choice import compile_region
from pumice.hal.buffer_view import BufferView
from pumice.hal_reference.elementwise import is_float, total_order
from pumice.hal_reference.operations import DEFINITIONS
from pumice.hal_reference.program import Array, Definition, Evaluator, Node
from pumice.runtime.modules.check.checks import run_checks
from pumice.runtime.modules.check.report import CheckResult, Outcome
from pumice.vm.execution.bytecode_module import BytecodeModule

DATA_FOLDER: Final = "stablehlo/testdata"
INTERPRET_FOLDER: Final = "stablehlo/tests/interpret"
MATH_FOLDER: Final = "stablehlo/tests/math"
_TOLERANCE: Final = 1e-3
_MAX_ULPS: Final = 3


class WrongResultError(AssertionError):
    """A program's result is not the one it expects."""


CHECKS: Final = ("expect_eq", "expect_eq_const", "expect_almost_eq", "expect_almost_eq_const", "expect_close")


def expect(name: str, actual: Array, expected: Array) -> None:
    """One check.

    Raises:
        WrongResultError: it fails.
    """
    if name.startswith("check.expect_eq"):
        wrong = ~((actual == expected) | ((actual != actual) & (expected != expected)))
    elif name.startswith("check.expect_almost_eq"):
        wide = np.complex128 if actual.dtype.kind == "c" else np.float64
        wrong = ~np.isclose(actual.astype(wide), expected.astype(wide), _TOLERANCE, _TOLERANCE, equal_nan=True)
    else:
        wrong = ulps(actual, expected) > _MAX_ULPS
    if np.any(wrong):
        at = tuple(int(index[0]) for index in np.nonzero(np.atleast_1d(wrong)))
        got, wanted = np.atleast_1d(actual)[at], np.atleast_1d(expected)[at]
        raise WrongResultError(f"{name}: expected {wanted} at {list(at)}, got {got}")


def ulps(actual: Array, expected: Array) -> Array:
    """Returns how many values of the type lie between two, element by element; infinitely many where
    only one is a NaN.
    """
    if actual.dtype.kind == "c":
        parts = zip((actual.real, actual.imag), (expected.real, expected.imag), strict=True)
        return np.maximum(*(ulps(left, right) for left, right in parts))
    if not is_float(actual.dtype):
        return np.where(actual == expected, 0.0, np.inf)
    nans = np.isnan(actual), np.isnan(expected)
    apart = np.abs(total_order(actual).astype(object) - total_order(expected).astype(object)).astype(np.float64)
    return np.where(nans[0] & nans[1], 0, np.where(nans[0] | nans[1], np.inf, apart))


def _check(_: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    name = node.attributes.get("call_target_name", node.name)
    actual, *others = operands
    if name == "check.expect_all_true":
        # What the canonical form makes of checks with a tolerance.
        expect("check.expect_eq", actual, np.ones(actual.shape, np.bool_))
        return []
    expect(name, actual, node.attributes["value"] if "value" in node.attributes else others[0])
    return []


DEFINED: Final[Mapping[str, Definition]] = {
    **DEFINITIONS,
    **{f"check.{name}": _check for name in CHECKS},
    "custom_call": _check,
}


def programs(text: str, path: str) -> Iterator[tuple[str, Mapping[str, Operation], list[str]]]:
    """The programs of a file, which lines of dashes part: a name, the functions, and which of them to run."""
    for index, part in enumerate(text.split("// -----")):
        operations = parse(part, path)
        if len(operations) == 1 and operations[0].name == "builtin.module":
            operations = operations[0].regions[0].block.operations
        functions = {str(op.attributes["sym_name"]): op for op in operations if op.name == "func.func"}
        for function in functions.values():
            for region in function.regions:
                expand_chlo(region.blocks[0])
        entries = [
            name
            for name, function in functions.items()
            if function.regions
            and not function.regions[0].blocks[0].arguments
            and function.attributes.get("sym_visibility") != "private"
        ]
        yield f"{path}:{index}", functions, ["main"] if "main" in functions else entries


def run_on_reference(functions: Mapping[str, Operation], entries: Sequence[str]) -> None:
    """Runs functions by the definitions of the reference device.

    Raises:
        WrongResultError: a check fails.
    """
    with np.errstate(all="ignore"):
        for name in entries:
            Evaluator(DEFINED).run(ProgramWriter(functions).function(name), [])


ON_HOST: Final = frozenset(
    {"cholesky", "custom_call", "fft", "rng", "rng_bit_generator", "sort", "triangular_solve"}
    | {"after_all", "create_token"}
    | {f"check.{name}" for name in CHECKS}
)
"""Operations that another stage replaces before code is generated, and checks: they run by their definitions."""


class VulkanEvaluator:
    """Evaluates blocks on a device, each operation as a region of its own; control flow goes by the host.

    Args:
        device: the device.
        target: what kernels are compiled for.
        kernels: those compiled before, by the text of their regions.
    """

    def __init__(self, device: pumice.Device, target: Target, kernels: dict[object, Kernel]) -> None:
        self._device = device
        self._target = target
        self._kernels = kernels
        self._values: dict[Value, Array] = {}

    def run(self, block: Block, arguments: Sequence[Array]) -> list[Array]:
        """Evaluates a block for arrays."""
        self._values.update(zip(block.arguments, arguments, strict=True))
        for operation in block.operations[:-1]:
            given = self._given(operation, [self._values[value] for value in operation.operands])
            self._values.update(zip(operation.results, given, strict=True))
        return [self._values[value] for value in block.terminator.operands]

    def _given(self, operation: Operation, operands: list[Array]) -> Sequence[Array]:
        name = operation.name.removeprefix("stablehlo.")
        blocks = [region.block for region in operation.regions]
        if name == "while":
            while self.run(blocks[0], operands)[0]:
                operands = self.run(blocks[1], operands)
            return operands
        if name == "if":
            return self.run(blocks[0 if operands[0] else 1], [])
        if name == "case":
            index = int(operands[0])
            return self.run(blocks[index if 0 <= index < len(blocks) else -1], [])
        if name == "iree.dispatch_region":
            (block,) = blocks
            given = operands[len(operands) - len(block.arguments) :]
            names = {inner.name.removeprefix("stablehlo.") for outer in block.operations for inner in outer.walk()}
            if names.isdisjoint(ON_HOST):
                return self._kernel_given(block, given)
            return Evaluator(DEFINED).run(ProgramWriter({}).block(block), given)
        alone = Block([value.type for value in operation.operands])
        types = [value.type for value in operation.results]
        inner = alone.append(Operation(operation.name, alone.arguments, types, operation.attributes, operation.regions))
        alone.append(Operation("func.return", inner.results))
        if name in ON_HOST or name.endswith("constant"):
            return Evaluator(DEFINED).run(ProgramWriter({}).block(alone), operands)
        return self._kernel_given(alone, operands)

    def _kernel_given(self, block: Block, operands: Sequence[Array]) -> Sequence[Array]:
        key = text_of(block), self._target
        if key not in self._kernels:
            self._kernels[key] = compile_region(KernelRegion(block, "main", self._target))
        return run_kernel(self._device, self._kernels[key], block, operands, self._target)


def text_of(block: Block) -> str:
    """Returns a block as the body of a function."""
    types = FunctionType([value.type for value in block.arguments], [])
    attributes: dict[str, Attribute] = {"sym_name": "main", "function_type": types}
    return to_text([Operation("func.func", (), (), attributes, [Region([block])])])


def run_on_vulkan(
    functions: Mapping[str, Operation],
    entries: Sequence[str],
    device: pumice.Device,
    target: Target,
    kernels: dict[object, Kernel],
    fused: bool = False,
) -> None:
    """Runs functions on a device, each operation as a kernel, or each dispatch region.

    Raises:
        WrongResultError: a check fails.
        CompileError: an operation is refused.
    """
    with np.errstate(all="ignore"):
        for name in entries:
            source = SourceText("", "")
            function = inlined(functions[name], functions, source)
            block = resolve(function, functions, source).regions[0].block
            if fused:
                canonicalize(block)
                replace_scatters(block, target)
                decompose(block, target)
                split_loops(block, target)
                canonicalize(block)
                form_regions(block)
            VulkanEvaluator(device, target, kernels).run(block, [])


def run_scheduled(functions: Mapping[str, Operation], entries: Sequence[str], text: str, path: str) -> Schedule:
    """Runs functions as the compiler sequences them: verified, canonical, in dispatch regions, scheduled in an arena.

    Gives the last schedule; there has to be one entry at least.

    Raises:
        WrongResultError: a check fails.
    """
    source = SourceText(text, path)
    verify(functions, source)
    for name in entries:
        function = resolve(inlined(functions[name], functions, source), functions, source)
        canonicalize(function.regions[0].block)
        count_trips(function.regions[0].block)
        form_regions(function.regions[0].block)
        *executables, sequence = outline(function)
        found = schedule(sequence)
        with np.errstate(all="ignore"):
            ScheduleRunner(found, executables, _check_arrays).run([])
    return found


def _check_arrays(operation: Operation, arrays: Sequence[Array]) -> None:
    """A check in the forms that the host has."""
    name = str(operation.attributes["call_target_name"])
    actual, *others = arrays
    atol, rtol = operation.attributes.get("atol"), operation.attributes.get("rtol")
    if name == "check.expect_all_true":
        if not actual.all():
            raise WrongResultError(f"{name}: {np.count_nonzero(~actual)} of {actual.size} are false")
    elif isinstance(atol, FloatAttr) and isinstance(rtol, FloatAttr):
        wide = np.complex128 if actual.dtype.kind == "c" else np.float64
        near = np.isclose(actual.astype(wide), others[0].astype(wide), rtol.value, atol.value, equal_nan=True)
        if not near.all():
            raise WrongResultError(f"{name}: {np.count_nonzero(~near)} of {near.size} are further off")
    else:
        expect(name, actual, others[0])


def modules_results(text: str, path: str, device: pumice.Device) -> list[CheckResult]:
    """Runs the functions of a program without arguments as modules do, with what they expect checked by the host.

    Raises:
        CompileError: the program is refused.
    """
    data = compile_text(text, path, Target()).module
    report = run_checks(path, device=device.hal, open_module=lambda name: BytecodeModule.from_bytes(data, name))
    return [result for file in report.files for result in file.results if result.outcome is not Outcome.SKIPPED]


def sources(tree: Path, folder: str) -> Iterator[Path]:
    """The programs below a folder of the tree, in order."""
    yield from sorted((tree / folder).rglob("*.mlir"))


class SessionRunner:
    """Compiles programs to modules and calls them through sessions on a device.

    What a program makes its inputs of, functions without arguments and constants of a main function, becomes arguments:
    else the compiler would fold the whole program. What it checks becomes its results.
    """

    def __init__(self, device: pumice.Device) -> None:
        self._device = device
        kind = "reference" if device.uri == "reference" else "vulkan"
        self._target = Target(kinds=(kind,))

    def run(self, functions: Mapping[str, Operation], entries: Sequence[str]) -> None:
        """Runs functions and checks what they give.

        Raises:
            WrongResultError: a check fails.
            PumiceError: the compiler or the device refuses the program.
        """
        for name in entries:
            try:
                case = Case(functions, entries, name, lifts_constants=True)
                module = self._compiled(case)
            except CompileError:  # a constant has to be one, such as a shape
                case = Case(functions, entries, name, lifts_constants=False)
                module = self._compiled(case)
            with pumice.Session(self._device) as session:
                session.load(module)
                results = session.call("module.main", *case.given)
                several = results if isinstance(results, tuple) else () if results is None else (results,)
                arrays = [self._array(each) for each in several]
            for check, actual, wanted in case.checks:
                expect(check, arrays[actual], arrays[wanted] if isinstance(wanted, int) else wanted)

    def _compiled(self, case: Case) -> bytes:
        return compile_program(case.program(), "hlo", self._target, "module", None).module

    def _array(self, value: object) -> Array:
        if isinstance(value, pumice.DeviceArray):
            return value.numpy()
        assert isinstance(value, BufferView)
        host = np.empty(value.byte_length, np.uint8)
        self._device.download(value.buffer.subspan(0, host.nbytes), host)
        return value.element_type.unpack(host.tobytes(), value.shape)


class Case:
    """A main function with arguments for its inputs and results for what it checks.

    Args:
        functions: of the program.
        entries: those of them that run.
        name: that of the entry which the main function is made of.
        lifts_constants: whether its constants become arguments too.

    Attributes:
        given: values of its arguments.
        checks: for each its name, the result, and the result or the array that it has to be.
    """

    def __init__(
        self, functions: Mapping[str, Operation], entries: Sequence[str], name: str, *, lifts_constants: bool
    ) -> None:
        function = functions[name]
        self._others = [other for key, other in functions.items() if key not in entries]
        operations = function.regions[0].block.operations[:-1]
        known: dict[Value, Array] = {}
        checks, kept = [], []
        for operation in operations:
            callee = operation.attributes.get("callee")
            if operation.name == "func.call" and not operation.operands and isinstance(callee, SymbolRef):
                with np.errstate(all="ignore"):
                    arrays = Evaluator(DEFINED).run(ProgramWriter(functions).function(callee.name), [])
                known.update(zip(operation.results, arrays, strict=True))
            elif operation.name.endswith(".constant") and lifts_constants:
                known[operation.result] = plain(operation.attributes["value"])
            elif str(operation.attributes.get("call_target_name", operation.name)).startswith("check."):
                checks.append(operation)
            else:
                kept.append(operation)
        used = {value for each in kept for inner in each.walk() for value in inner.operands}
        wanted: list[Value] = []
        self.checks: list[tuple[str, int, int | Array]] = []
        for check in checks:
            actual, *others = check.operands
            wanted.append(actual)
            expected: int | Array
            if "value" in check.attributes:
                expected = plain(check.attributes["value"])
            elif others[0] in known:
                expected = known[others[0]]
            else:
                wanted.append(others[0])
                expected = len(wanted) - 1
            place = len(wanted) - 1 - (not isinstance(expected, np.ndarray))
            name = str(check.attributes.get("call_target_name", check.name))
            self.checks.append((name, place, expected))
        inputs = [value for value in known if value in used or value in wanted]
        self.given = [known[value] for value in inputs]
        block = Block([value.type for value in inputs])
        values: dict[Value, Value] = dict(zip(inputs, block.arguments, strict=True))
        copy_operations(kept, block, values)
        block.append(Operation("func.return", [values[value] for value in wanted]))
        type = FunctionType([value.type for value in inputs], [value.type for value in wanted])
        attributes: dict[str, Attribute] = {"sym_name": "main", "function_type": type}
        self._main = Operation("func.func", (), (), attributes, [Region([block])], location=function.location)

    def program(self) -> Program:
        """Returns a program with the main function, which a compilation may change."""
        private = [
            Operation(each.name, (), (), {**each.attributes, "sym_visibility": "private"}, each.regions)
            for each in self._others
        ]
        return program_of([self._main, *private], SourceText("", "x.mlir"))
