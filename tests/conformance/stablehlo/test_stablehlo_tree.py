"""StableHLO's own programs, run by the definitions of the reference device, and printed and read again.

They are read from the tree that ``PUMICE_STABLEHLO_TREE`` names, and skipped without one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from conformance.stablehlo import tree as stablehlo_tree
from conformance.stablehlo.dynamic import DynamicProgram
from support.compiler.operation_table import SPECIFICATION
from support.compiler.regions import EMULATED, NATIVE
from support.compiler.stages import check_stages
from support.source_trees import named_tree, opened_tree

import pumice
from pumice.compiler.dialects.syntax.text import parse, to_text
from pumice.compiler.ir.operation import Operation
from pumice.compiler.ir.source import CompileError
from pumice.compiler.kernels.kernel import Kernel
from pumice.compiler.kernels.scalars.target import Target
from pumice.runtime.modules.check.report import Outcome

pytestmark = pytest.mark.skipif(
    named_tree("PUMICE_STABLEHLO_TREE") is None, reason="PUMICE_STABLEHLO_TREE names no tree of StableHLO"
)


@pytest.fixture(scope="module")
def tree() -> Iterator[Path]:
    named = named_tree("PUMICE_STABLEHLO_TREE")
    assert named is not None
    with opened_tree(
        named, (stablehlo_tree.DATA_FOLDER, stablehlo_tree.INTERPRET_FOLDER, stablehlo_tree.MATH_FOLDER)
    ) as folder:
        yield folder


def test_the_page_has_every_operation_of_the_specification() -> None:
    named = named_tree("PUMICE_STABLEHLO_TREE")
    assert named is not None
    with opened_tree(named, ("docs/spec.md",)) as folder:
        text = (folder / "docs" / "spec.md").read_text(encoding="utf-8")
    operations = text[text.index("\n## Ops\n") :].split("\n## ")[1]
    assert list(SPECIFICATION) == re.findall(r"^### ([a-z]\w*)$", operations, re.MULTILINE)


def test_every_program_prints_as_text_that_reads_the_same(tree: Path) -> None:
    """In the custom syntax and in the generic one."""
    count = 0
    for path in stablehlo_tree.sources(tree, stablehlo_tree.DATA_FOLDER):
        operations = parse(path.read_text(encoding="utf-8"), path.name)
        text = to_text(operations)
        assert to_text(parse(text)) == text, path
        assert to_text(parse(to_text(operations, generic=True))) == text, path
        count += 1
    assert count >= 2_800


def test_every_stage_of_a_sample_reads_the_same_and_makes_the_same_module(tree: Path) -> None:
    texts = {
        path.name: path.read_text(encoding="utf-8") for path in stablehlo_tree.sources(tree, stablehlo_tree.DATA_FOLDER)
    }
    static = [name for name, text in texts.items() if "?" not in text and "!quant" not in text]
    for name in static[::47]:
        check_stages(texts[name], name)
    assert len(static) >= 2_000


# What these expect was computed in single precision: the definitions, in double precision, are further off than the
# checks allow.
_COARSE = {
    "cosh_float32_20_20_chlo.mlir",
    "fft_complex64_14_15_16_17.mlir",
    "fft_float32_14_15_16_17.mlir",
    "triangular_solve_float32_2_8_8_float32_2_10_8.mlir",
}


def _run_all(tree: Path, run: Callable[[Mapping[str, Operation], list[str], str, str], object]) -> tuple[int, set[str]]:
    """Runs all programs of static shapes; returns how many give what they expect, and the files of the others."""
    passed, failed = 0, set()
    for path in stablehlo_tree.sources(tree, stablehlo_tree.DATA_FOLDER):
        if path.parent.name in ("dynamic", "quantized"):
            continue
        text = path.read_text(encoding="utf-8")
        for _, functions, entries in stablehlo_tree.programs(text, path.name):
            try:
                run(functions, entries, text, path.name)
                passed += 1
            except (stablehlo_tree.WrongResultError, CompileError) as error:
                print(f"{path.name}: {error}")
                failed.add(path.name)
    print(f"{passed} passed, {len(failed)} failed")
    return passed, failed


def test_programs_of_static_shapes_give_what_they_expect(tree: Path) -> None:
    passed, failed = _run_all(tree, lambda functions, entries, *_: stablehlo_tree.run_on_reference(functions, entries))
    assert failed == _COARSE
    assert passed >= 2_320


def test_the_interpreters_tests_give_what_they_expect(tree: Path) -> None:
    """Those that fail on purpose fail here too."""
    passed, failed, refused = 0, [], Counter[str]()
    for path in stablehlo_tree.sources(tree, stablehlo_tree.INTERPRET_FOLDER):
        for part in path.read_text(encoding="utf-8").split("// -----"):
            try:
                for _, functions, entries in stablehlo_tree.programs(part, path.name):
                    stablehlo_tree.run_on_reference(functions, entries)
                passed += 1
            except stablehlo_tree.WrongResultError as error:
                failed.append(f"{path.name}: {error}")
            except (CompileError, KeyError, ValueError) as error:
                refused[f"{path.name}: {type(error).__name__}"] += 1
    print(f"\n{passed} passed, {len(failed)} failed: {failed}; refused: {refused}")
    assert passed >= 440


def test_programs_give_what_they_expect_as_the_compiler_sequences_them(tree: Path) -> None:
    """Through verification, dispatch regions, executables and one arena, with executables in NumPy."""
    sizes = Counter[str]()

    def run(*program: Any) -> None:
        plan = stablehlo_tree.run_scheduled(*program).plan
        sizes.update({"arena": plan.size, "lower bound": plan.lower_bound, "without sharing": plan.total})

    passed, failed = _run_all(tree, run)
    print(f"bytes of all programs: {dict(sizes)}")
    assert failed == _COARSE
    assert passed >= 2_320 and sizes["arena"] <= 1.1 * sizes["lower bound"]


# As sums of products they are up to 20 units off where terms cancel.
_COARSE_AS_PRODUCTS = {"fft_complex128_14_15_16_17.mlir", "fft_float64_14_15_16_17.mlir"}


@pytest.mark.vulkan
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fused", [True, False], ids=["regions", "operations"])
@pytest.mark.parametrize("target", [EMULATED, NATIVE], ids=["emulated", "native"])
def test_programs_give_what_they_expect_on_a_device(tree: Path, target: Target, fused: bool) -> None:
    """As kernels of dispatch regions, with all stages before; or of single operations, where what those stages replace
    runs by its definition."""
    kernels: dict[object, Kernel] = {}
    with pumice.open_device("vulkan") as device:
        passed, failed = _run_all(
            tree,
            lambda functions, entries, *_: stablehlo_tree.run_on_vulkan(
                functions, entries, device, target, kernels, fused
            ),
        )
    print(f"{len(kernels)} kernels")
    assert failed == _COARSE | (_COARSE_AS_PRODUCTS if fused else set())
    assert passed >= 2_318


@pytest.mark.vulkan
def test_the_interpreters_tests_give_the_same_on_a_device(tree: Path) -> None:
    """Those that the definitions pass."""
    passed, failed = 0, []
    kernels: dict[object, Kernel] = {}
    with pumice.open_device("vulkan") as device:
        for path in stablehlo_tree.sources(tree, stablehlo_tree.INTERPRET_FOLDER):
            for part in path.read_text(encoding="utf-8").split("// -----"):
                try:
                    found = list(stablehlo_tree.programs(part, path.name))
                    for _, functions, entries in found:
                        stablehlo_tree.run_on_reference(functions, entries)
                except (CompileError, KeyError, ValueError, stablehlo_tree.WrongResultError):
                    continue
                try:
                    for _, functions, entries in found:
                        stablehlo_tree.run_on_vulkan(functions, entries, device, EMULATED, kernels)
                    passed += 1
                except (stablehlo_tree.WrongResultError, CompileError) as error:
                    failed.append(f"{path.name}: {error}")
    assert not failed
    assert passed >= 440


# What keeps programs out of modules, by what the compiler says of them.
_CAUSES = (
    ("quantized types", r"uniform_(?:de)?quantize|!quant"),
    ("programs of several processes", r"interpreter\.run_parallel"),
    ("the interpreter's own operations", r"interpreter\.(?:print|probe)|tolerance = "),
    ("element types that buffer views lack", r"elements that buffer views have"),
)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ["reference", pytest.param("vulkan", marks=pytest.mark.vulkan)])
def test_modules_give_what_they_expect_in_sessions(tree: Path, name: str) -> None:
    """Compiled for the device, loaded and called; the inputs are arguments, so that the compiler folds nothing away."""
    totals, passed, causes, wrong = Counter[str](), Counter[str](), Counter[str](), []
    with pumice.open_device(name) as device:
        runner = stablehlo_tree.SessionRunner(device)
        for path in [
            *stablehlo_tree.sources(tree, stablehlo_tree.DATA_FOLDER),
            *stablehlo_tree.sources(tree, stablehlo_tree.INTERPRET_FOLDER),
        ]:
            folder = str(path.parent.relative_to(tree))
            if path.parent.name == "dynamic":
                continue
            totals[folder] += 1
            text = path.read_text(encoding="utf-8")
            try:
                for _, functions, entries in stablehlo_tree.programs(text, path.name):
                    runner.run(functions, entries)
                passed[folder] += 1
            except stablehlo_tree.WrongResultError as error:
                wrong.append(f"{path.name}: {error}")
            except (CompileError, ValueError) as error:
                cause = next((cause for cause, pattern in _CAUSES if re.search(pattern, str(error))), str(error))
                causes[f"{folder}: {cause}"] += 1
    print(f"\n{name}:", *(f"{folder} {passed[folder]} of {totals[folder]}" for folder in totals), sep="\n  ")
    print(*(f"  refused: {count} of {cause}" for cause, count in causes.items()), sep="\n")
    # A check of it has a tolerance of its own, which this harness does not read; modules do, in the test below.
    assert {line.partition(":")[0] for line in wrong} <= _COARSE | _COARSE_AS_PRODUCTS | {"check.mlir"}, wrong
    assert passed[stablehlo_tree.DATA_FOLDER] >= 2_319
    assert passed[stablehlo_tree.INTERPRET_FOLDER] >= 82


# Two strides for one dimension, which the specification rules out.
_WRONG_STRIDES = {
    "conv_general_dilated_1d_stride_2_even_dynamic.mlir",
    "conv_general_dilated_1d_stride_2_odd_dynamic.mlir",
}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["reference", pytest.param("vulkan", marks=pytest.mark.vulkan)])
def test_programs_for_any_batch_give_what_those_of_fixed_shapes_do(tree: Path, name: str) -> None:
    """Compiled once, and called with several batches; the program of fixed shapes goes by the definitions."""
    passed, refused, wrong = 0, {}, []
    kind = "reference" if name == "reference" else "vulkan"
    with pumice.open_device(name) as device:
        for path in stablehlo_tree.sources(tree, f"{stablehlo_tree.DATA_FOLDER}/dynamic"):
            text = path.read_text(encoding="utf-8")
            try:
                module = pumice.compile(text, targets=(kind,), file_name=path.name)
            except CompileError as error:
                refused[path.name] = str(error)
                continue
            found = DynamicProgram(text, path.name).wrong(device, module)
            if found:
                wrong.append(f"{path.name}: {found}")
            else:
                passed += 1
    print(f"\n{name}: {passed} passed, {len(wrong)} wrong, {len(refused)} refused")
    assert not wrong
    assert refused.keys() == _WRONG_STRIDES, refused
    assert passed >= 386


_ANSWER = re.compile(r"%\w+ = stablehlo\.custom_call @check\.eq\((%\w+), (%\w+)\) : \(([^()]*)\) -> tensor<i1>")
_EXPECTED = r"\g<0>\n    stablehlo.custom_call @check.expect_almost_eq(\2, \1) {has_side_effect = true} : (\3) -> ()"

# Several devices, and probes that write files.
_NOT_ONE_DEVICE = ("interpreter.run_parallel", "interpreter.probe")


@pytest.mark.vulkan
@pytest.mark.parametrize(
    ("folder", "least"),
    [
        (stablehlo_tree.INTERPRET_FOLDER, 471),
        (stablehlo_tree.MATH_FOLDER, 47),
        (f"{stablehlo_tree.DATA_FOLDER}/quantized", 211),
    ],
    ids=["interpret", "math", "quantized"],
)
def test_modules_hold_what_their_programs_expect(tree: Path, folder: str, least: int) -> None:
    """From the text to a module on a device, with the checks that the program states."""
    passed, failed, apart = 0, [], 0
    with pumice.open_device("vulkan") as device:
        for path in stablehlo_tree.sources(tree, folder):
            for number, part in enumerate(path.read_text(encoding="utf-8").split("// -----")):
                if "check." not in part:
                    continue
                if any(name in part for name in _NOT_ONE_DEVICE):
                    apart += 1
                    continue
                name = f"{path.name}:{number}"
                try:
                    # Quantized programs say by a custom call whether they are right, and drop the answer.
                    stated = _ANSWER.sub(_EXPECTED, part)
                    results = stablehlo_tree.modules_results(stated, path.name, device)
                except CompileError as error:
                    failed.append(f"{name}: {error}")
                    continue
                wrong = [result for result in results if result.outcome is not Outcome.PASSED]
                if wrong or not sum(result.expectation_count for result in results):
                    failed.append(f"{name}: {wrong}")
                else:
                    passed += 1
    print(f"\n{passed} passed, {len(failed)} failed, {apart} for several devices or with probes: {failed}")
    assert not failed
    assert passed >= least
