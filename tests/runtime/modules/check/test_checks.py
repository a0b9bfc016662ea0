"""Running check functions: outcomes, isolation, time limits and reports, of VM assembly and of the peer's modules."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from pumice.hal_vulkan import Device, ElementType
from pumice.runtime.modules.check.checks import run_checks
from pumice.runtime.modules.check.module import CheckRecorder
from pumice.runtime.modules.check.report import (
    CheckFailure,
    CheckReport,
    CheckResult,
    ElementDifference,
    FileReport,
    Outcome,
)
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.writer import write_module
from pumice.vm.native.module import NativeModule

Assemble = Callable[..., Path]

HEADER = """
vm.module @{name} version 0
vm.import optional @check.expect_true cconv "0i_v"
vm.import optional @check.expect_false cconv "0i_v"
"""
MIXED = """
vm.global.i32 private mutable @counter = 0 : i32
vm.export @passes
vm.func @passes() -> () {
^bb0:
  %i0 = vm.const.i32 1
  vm.call @check.expect_true(%i0)
  %i1 = vm.const.i32.zero
  vm.call @check.expect_false(%i1)
  vm.return
}
vm.export @fails_twice
vm.func @fails_twice() -> () {
^bb0:
  %i0 = vm.const.i32 7
  vm.call @check.expect_false(%i0)
  vm.call @check.expect_true(%i0)
  %i1 = vm.const.i32.zero
  vm.call @check.expect_true(%i1)
  vm.return
}
vm.export @breaks
vm.func @breaks() -> () {
^bb0:
  %i0 = vm.const.i32.zero
  vm.call @check.expect_true(%i0)
  %i1 = vm.const.i32 9
  vm.fail %i1, "broken on purpose"
}
vm.export @takes_arguments
vm.func @takes_arguments(%i0: i32) -> () {
^bb0:
  vm.return
}
vm.export @odd$async
vm.func @odd$async() -> () {
^bb0:
  %i1 = vm.const.i32 9
  vm.fail %i1, "the compiler's own"
}
"""
COUNTER = """
vm.global.i32 private mutable @counter = 0 : i32
vm.export @__init
vm.func @__init() -> () {
^bb0:
  %i0 = vm.const.i32 41
  vm.global.store.i32 %i0, @counter
  vm.return
}
""" + "".join(
    f"""
vm.export @{name}
vm.func @{name}() -> () {{
^bb0:
  %i0 = vm.global.load.i32 @counter
  %i1 = vm.const.i32 1
  %i0 = vm.add.i32 %i0, %i1
  vm.global.store.i32 %i0, @counter
  %i1 = vm.const.i32 42
  %i0 = vm.cmp.eq.i32 %i0, %i1
  vm.call @check.expect_true(%i0)
  vm.return
}}
"""
    for name in ("first", "second")
)
ENDLESS = """
vm.export @{name}
vm.func @{name}() -> () {{
^bb0:
  %i0 = vm.const.i32.zero
  vm.br ^bb1()
^bb1:
  vm.call @check.expect_false(%i0)
  vm.br ^bb1()
}}
"""


@pytest.fixture
def assembled(tmp_path: Path) -> Assemble:
    """Makes a module file of functions in VM assembly."""

    def make(text: str, name: str = "m", file: str = "m.vmfb") -> Path:
        path = tmp_path / file
        path.write_bytes(write_module(assemble(HEADER.format(name=name) + text)))
        return path

    return make


def outcomes(report: CheckReport) -> dict[str, Outcome]:
    return {result.name: result.outcome for file in report.files for result in file.results}


def counts(report: CheckReport) -> tuple[int, int, int, int]:
    passed, failed, errors, skipped = map(
        report.count, (Outcome.PASSED, Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED)
    )
    assert len(report.results) == passed + failed + errors + skipped
    return passed, failed, errors, skipped


# -- what becomes of functions -------------------------------------------------------------------------


@pytest.mark.vulkan
def test_outcomes(device: Device, assembled: Assemble) -> None:
    seen: list[tuple[str, str]] = []
    path = assembled(MIXED)
    report = run_checks(path, device=device, on_result=lambda where, result: seen.append((where, result.name)))
    assert outcomes(report) == {
        "passes": Outcome.PASSED,
        "fails_twice": Outcome.FAILED,
        "breaks": Outcome.ERROR,
        "takes_arguments": Outcome.SKIPPED,
    }
    assert seen == [(str(path), name) for name in outcomes(report)]
    assert counts(report) == (1, 1, 1, 1)
    assert report.device == device.profile.name
    assert sum(result.expectation_count for result in report.results) == 6
    (file,) = report.files
    assert (file.path, file.module_name) == (str(path), "m")
    passes, fails, breaks, takes = file.results
    assert (passes.expectation_count, passes.failure_count, passes.summary) == (2, 0, "")
    assert (fails.expectation_count, fails.failure_count, fails.error) == (3, 2, None)
    assert [one.summary for one in fails.failures] == ["expected 0, got 7", "expected a number other than 0, got 0"]
    assert all(one.location is not None and "m.fails_twice pc" in one.location for one in fails.failures)
    # What failed before the program broke is not lost.
    assert (breaks.expectation_count, breaks.failure_count, breaks.error_type) == (1, 1, "FailedPreconditionError")
    assert "broken on purpose" in (breaks.error or "") and "m.breaks pc" in (breaks.error or "")
    assert "calling convention 0i_v" in takes.summary
    assert 0 < passes.duration <= file.duration <= report.duration


@pytest.mark.vulkan
def test_functions_do_not_see_each_others_globals(device: Device, assembled: Assemble) -> None:
    path = assembled(COUNTER)
    report = run_checks(path, path, device=device)
    assert counts(report) == (4, 0, 0, 0)
    assert report.count(Outcome.PASSED) == len(report.results)


@pytest.mark.vulkan
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["passes"], ["passes"]),
        (["m.*s"], ["passes", "breaks", "takes_arguments"]),
        (["fails*", "takes*"], ["fails_twice", "takes_arguments"]),
        (["Passes"], []),
    ],
)
def test_filters(device: Device, assembled: Assemble, filters: list[str], expected: list[str]) -> None:
    report = run_checks(assembled(MIXED), device=device, filters=filters)
    assert list(outcomes(report)) == expected
    assert report.deselected == 4 - len(expected)


@pytest.mark.vulkan
@pytest.mark.parametrize("name", ["spins", "__init"])
def test_time_limits(device: Device, assembled: Assemble, name: str) -> None:
    report = run_checks(assembled(ENDLESS.format(name=name) + MIXED), device=device, timeout=0.2, filters=["[sp]*"])
    results = {result.name: result for result in report.files[0].results}
    slow = results["spins" if name == "spins" else "passes"]
    assert (slow.outcome, slow.error_type) == (Outcome.ERROR, "DeadlineExceededError")
    assert 0.2 <= slow.duration < 30
    if name == "spins":
        assert results["passes"].outcome is Outcome.PASSED


@pytest.mark.vulkan
def test_files_that_do_not_load_are_errors(device: Device, assembled: Assemble, tmp_path: Path) -> None:
    (tmp_path / "text.vmfb").write_text("no module at all, but long enough to be read")
    paths = [tmp_path / "absent.vmfb", tmp_path / "text.vmfb", assembled(COUNTER)]
    report = run_checks(*paths, device=device)
    assert counts(report) == (2, 0, 2, 0)
    absent, text, good = report.files
    assert [one.results[0].name for one in (absent, text)] == ["(load)", "(load)"]
    assert [one.results[0].error_type for one in (absent, text)] == ["NotFoundError", "InvalidArgumentError"]
    assert [one.outcome for one in good.results] == [Outcome.PASSED] * 2


@pytest.mark.vulkan
def test_other_native_modules(device: Device, assembled: Assemble) -> None:
    imported = 'vm.import @mine.answer cconv "0v_i"\n'
    uses = """
vm.export @uses
vm.func @uses() -> () {
^bb0:
  %i0 = vm.call @mine.answer()
  vm.call @check.expect_true(%i0)
  vm.return
}
"""
    path = assembled(imported + uses)
    mine = NativeModule("mine")
    answers: list[int | Exception] = [1, 0, ZeroDivisionError("in the test's own module")]

    @mine.function("answer", "0v_i")
    def answer() -> int:
        value = answers.pop(0)
        if isinstance(value, Exception):
            raise value
        return value

    outcome = [run_checks(path, device=device, modules=[mine]).files[0].results[0] for _ in range(3)]
    assert [one.outcome for one in outcome] == [Outcome.PASSED, Outcome.FAILED, Outcome.ERROR]
    assert outcome[2].error_type == "ZeroDivisionError"
    assert "Traceback" in (outcome[2].error or "") and "in the test's own module" in outcome[2].summary
    (missing,) = run_checks(path, device=device).files[0].results
    assert (missing.outcome, missing.error_type) == (Outcome.ERROR, "NotFoundError")


# -- reports -------------------------------------------------------------------------------------------

DIFFERENCE = ElementDifference((2,), "3.0", "4.5", 1.5, 0.5)
FAILURE = CheckFailure("expect_almost_eq", "1 of 4 differ", "a.mlir:3:5", "4xf32=1", "4xf32=2", 1, (DIFFERENCE,))
REPORT = CheckReport(
    (
        FileReport("a.vmfb", "a", (CheckResult("good", Outcome.PASSED, 0.25, 2),), 0.5),
        FileReport(
            "b.vmfb",
            "b",
            (
                CheckResult("bad", Outcome.FAILED, 0.5, 3, 2, (FAILURE,)),
                CheckResult("wörse\0\x1b", Outcome.ERROR, 0.5, 0, error="X: <&\ud800>\nline", error_type="XError"),
                CheckResult("not run", Outcome.SKIPPED, error="takes arguments"),
            ),
            1.0,
        ),
    ),
    "device",
    1.5,
)


def test_junit_xml() -> None:
    text = REPORT.to_junit_xml()
    text.encode("utf-8")
    root = ET.fromstring(text)
    assert root.tag == "testsuites"
    suites = root.findall("testsuite")
    for element, report in zip([root, *suites], [REPORT, *REPORT.files], strict=True):
        wanted = {
            "tests": len(report.results),
            "failures": sum(one.outcome is Outcome.FAILED for one in report.results),
            "errors": sum(one.outcome is Outcome.ERROR for one in report.results),
            "skipped": sum(one.outcome is Outcome.SKIPPED for one in report.results),
        }
        assert {name: int(element.attrib[name]) for name in wanted} == wanted
        assert float(element.attrib["time"]) == report.duration
    assert [suite.attrib["name"] for suite in suites] == ["a.vmfb", "b.vmfb"]
    good, bad, worse, skipped = root.iter("testcase")
    assert (good.attrib["classname"], good.attrib["name"], list(good)) == ("a", "good", [])
    (failure,) = bad
    assert (failure.tag, failure.attrib["type"]) == ("failure", "expect_almost_eq")
    assert FAILURE.format() in (failure.text or "")
    (error,) = worse
    assert worse.attrib["name"] == "wörse\\x00\\x1b"
    assert (error.tag, error.attrib) == ("error", {"type": "XError", "message": "X: <&\\ud800>"})
    assert error.text == "X: <&\\ud800>\nline"
    assert [one.tag for one in skipped] == ["skipped"]


def test_text() -> None:
    text = REPORT.format()
    assert FAILURE.format() in text
    assert "a.mlir:3:5" in text and "[2]: 3.0 and 4.5, difference 1.5, tolerance 0.5" in text
    assert "FAILED b.vmfb::bad - 2 expectations failed; the first: expect_almost_eq: 1 of 4 differ" in text
    assert "and 1 more expectation(s) failed" in text
    last = text.splitlines()[-1]
    assert "1 failed, 1 passed, 1 skipped, 1 error, 5 expectations in 1.50 s" in last
    nothing = CheckReport((), "device", 0.0)
    assert "no check functions" in nothing.format()


# -- programs that IREE's compiler made ----------------------------------------------------------------

MLIR_TYPES = {
    ElementType.INT_8: "i8",
    ElementType.INT_16: "i16",
    ElementType.INT_32: "i32",
    ElementType.INT_64: "i64",
    ElementType.FLOAT_16: "f16",
    ElementType.BFLOAT_16: "bf16",
    ElementType.FLOAT_32: "f32",
    ElementType.FLOAT_64: "f64",
    ElementType.FLOAT_8_E5M2: "f8E5M2",
    ElementType.FLOAT_8_E4M3_FN: "f8E4M3FN",
}


def programs() -> str:
    """Two functions a type: one whose expectations hold, one where the third of four elements differs."""
    text = ""
    for element_type, mlir in MLIR_TYPES.items():
        name = element_type.name.lower()
        tensor = f"tensor<4x{mlir}>"
        for suffix, third in (("same", 3), ("differs", 4)):
            numbers = [str(number) + ("" if element_type.is_integer else ".0") for number in (1, 2, third, 5)]
            expectations = f"  check.expect_eq(%a, %b) : {tensor}\n"
            if element_type.is_float:
                expectations += f"  check.expect_almost_eq(%a, %b, atol 5.0e-01, rtol 0.0) : {tensor}\n"
            else:
                expectations += f"  check.expect_all_true(%b) : {tensor}\n"
            first = f"[{', '.join(numbers)}]"
            second = first.replace(numbers[2], numbers[2].replace(str(third), "3"), 1)
            text += (
                f"func.func @{name}_{suffix}() {{\n"
                f"  %a = util.unfoldable_constant dense<{first}> : {tensor}\n"
                f"  %b = util.unfoldable_constant dense<{second}> : {tensor}\n{expectations}  return\n}}\n"
            )
    return text


def compiled(source: str, path: Path, *flags: str) -> Path:
    compiler = pytest.importorskip("iree.compiler.tools", reason="needs the peer extra")
    compiler.compile_str(
        source, output_file=str(path), extra_args=["--iree-hal-target-device=vulkan", *flags], input_type="none"
    )
    return path


@pytest.mark.peer
@pytest.mark.vulkan
def test_compiled_programs_of_every_type(any_device: Device, tmp_path: Path) -> None:
    flags = ("--iree-input-demote-f64-to-f32=false", "--iree-input-demote-i64-to-i32=false")
    report = run_checks(compiled(programs(), tmp_path / "types.vmfb", *flags), device=any_device)
    results = {result.name: result for result in report.files[0].results}
    assert not report.count(Outcome.ERROR), report.format()
    assert len(results) == 2 * len(MLIR_TYPES)
    for element_type in MLIR_TYPES:
        name = element_type.name.lower()
        same, differs = results[f"{name}_same"], results[f"{name}_differs"]
        assert (same.outcome, same.expectation_count) == (Outcome.PASSED, 2), same.details()
        assert (differs.outcome, differs.expectation_count) == (Outcome.FAILED, 2)
        assert differs.failure_count == (2 if element_type.is_float else 1), differs.details()
        for failure in differs.failures:
            assert [one.index for one in failure.differences] == [(2,)]


@pytest.mark.peer
@pytest.mark.vulkan
def test_a_compiled_program_says_where(device: Device, tmp_path: Path) -> None:
    source = """func.func @f() {
  %a = util.unfoldable_constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = util.unfoldable_constant dense<[[1.0, 2.5], [3.0, -0.0]]> : tensor<2x2xf32>
  %c = arith.mulf %a, %b : tensor<2x2xf32>
  check.expect_almost_eq_const(%c, dense<[[1.0, 4.0], [9.0, 0.0]]> : tensor<2x2xf32>, atol 5.0e-01, rtol 0.0)
      : tensor<2x2xf32>
  return
}
"""
    report = run_checks(compiled(source, tmp_path / "where.vmfb"), device=device)
    ((failure,),) = [result.failures for result in report.files[0].results]
    assert failure.differing == 1
    assert (failure.lhs, failure.rhs) == ("2x2xf32=[1 5][9 -0]", "2x2xf32=[1 4][9 0]")
    assert failure.differences == (ElementDifference((0, 1), "5.0", "4.0", 1.0, 0.5),)
    assert failure.location is not None and ("f pc " in failure.location or ":5:3" in failure.location)


@pytest.mark.peer
@pytest.mark.vulkan
def test_a_recorder_decides_how_much_is_kept(device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """func.func @f() {
  %a = util.unfoldable_constant dense<1> : tensor<300xi32>
  %b = util.unfoldable_constant dense<2> : tensor<300xi32>
  check.expect_eq(%a, %b) : tensor<300xi32>
  check.expect_eq(%a, %b) : tensor<300xi32>
  return
}
"""
    for name, value in (("max_failures", 1), ("max_differences", 3), ("max_elements", 5)):
        monkeypatch.setattr(CheckRecorder, name, value)
    report = run_checks(compiled(source, tmp_path / "kept.vmfb"), device=device)
    (result,) = report.files[0].results
    assert (result.failure_count, len(result.failures)) == (2, 1)
    (failure,) = result.failures
    assert (failure.lhs, failure.differing, len(failure.differences)) == ("300xi32=1 1 1 1 1...", 300, 3)


@pytest.mark.vulkan
def test_results_of_functions_without_arguments_are_dropped(device: Device, assembled: Assemble) -> None:
    text = """
vm.export @gives
vm.func @gives() -> (i32) {
^bb0:
  %i0 = vm.const.i32 5
  vm.return %i0
}
"""
    report = run_checks(assembled(text), device=device)
    assert outcomes(report) == {"gives": Outcome.PASSED}
    assert report.results[0].expectation_count == 0
