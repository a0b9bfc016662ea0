"""Modules of each calling convention give the same as the default's, on every device and on the peer's runtime."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from support.codegen.module_cases import STORED, ModuleCase
from support.codegen.module_ways import by_session
from support.compiler.modules import BOTH, peer_shows
from support.compiler.stages import check_stages
from support.devices.features import require_types

import pumice
from pumice.compiler.abi.calling_convention import default_convention, named_convention, results_to_outs_convention
from pumice.compiler.abi.function_abi import Abi
from pumice.compiler.abi.type_converter import TypeConverter, parse_type
from pumice.formats.element_type import ElementType
from pumice.runtime.modules.check.module import CheckRecorder, check_module
from pumice.status import InvalidArgumentError
from pumice.tools.cli import main

CONVENTIONS = ("values,buffers", "values,buffers,outs")
"""Together they cover every way to pass an argument, a result and an out-parameter."""

CASES = [case for case in STORED if case.name not in ("orders", "indexing", "windows", "nested_loops", "calls")]
"""Without those that take seconds to compile."""

NUMBERS = """
func.func @main(%a: tensor<i1>, %b: tensor<i8>, %c: tensor<ui8>, %d: tensor<i16>, %e: tensor<ui32>, %f: tensor<i64>,
                %g: tensor<ui64>, %h: tensor<f16>, %i: tensor<bf16>, %j: tensor<f32>, %k: tensor<f64>, %l: tensor<i4>)
    -> (tensor<i1>, tensor<i8>, tensor<ui8>, tensor<i16>, tensor<ui32>, tensor<i64>, tensor<ui64>, tensor<f16>,
        tensor<bf16>, tensor<f32>, tensor<f64>, tensor<i4>) {
  %0 = stablehlo.not %a : tensor<i1>
  %1 = stablehlo.add %b, %b : tensor<i8>
  %2 = stablehlo.add %c, %c : tensor<ui8>
  %3 = stablehlo.add %d, %d : tensor<i16>
  %4 = stablehlo.add %e, %e : tensor<ui32>
  %5 = stablehlo.add %f, %f : tensor<i64>
  %6 = stablehlo.add %g, %g : tensor<ui64>
  %7 = stablehlo.add %h, %h : tensor<f16>
  %8 = stablehlo.add %i, %i : tensor<bf16>
  %9 = stablehlo.add %j, %j : tensor<f32>
  %10 = stablehlo.add %k, %k : tensor<f64>
  %11 = stablehlo.add %l, %l : tensor<i4>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11
    : tensor<i1>, tensor<i8>, tensor<ui8>, tensor<i16>, tensor<ui32>, tensor<i64>, tensor<ui64>, tensor<f16>,
      tensor<bf16>, tensor<f32>, tensor<f64>, tensor<i4>
}
"""
LENGTH = """
func.func @main(%n: tensor<i32>, %x: tensor<f32>) -> tensor<?x2xf32> {
  %0 = stablehlo.constant dense<2> : tensor<1xi32>
  %1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.concatenate %1, %0, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %3 = stablehlo.dynamic_broadcast_in_dim %x, %2, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x2xf32>
  return %3 : tensor<?x2xf32>
}
"""
ARRAY = """
func.func @main(%x: !my.array<"4, wide">, %k: !my.number) -> (!my.array<"4, wide">, !my.number) {
  %0 = builtin.unrealized_conversion_cast %x : !my.array<"4, wide"> to tensor<4xf32>
  %1 = builtin.unrealized_conversion_cast %k : !my.number to tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %3 = stablehlo.multiply %0, %2 : tensor<4xf32>
  %4 = builtin.unrealized_conversion_cast %3 : tensor<4xf32> to !my.array<"4, wide">
  return %4, %k : !my.array<"4, wide">, !my.number
}
"""
CHECKED = """
func.func @main(%x: tensor<2xf32>, %k: tensor<f32>) -> tensor<2xf32> {
  %0 = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f32>) -> tensor<2xf32>
  %c = stablehlo.constant dense<3.0> : tensor<f32>
  check.expect_eq(%x, %0) : tensor<2xf32>
  check.expect_eq(%k, %c) : tensor<f32>
  return %0 : tensor<2xf32>
}
"""
STEP = """
func.func @step(%x: tensor<4xf32>, %rate: tensor<f32>) -> (tensor<4xf32>, tensor<f32>) {
  %0 = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.multiply %x, %0 : tensor<4xf32>
  %2 = stablehlo.add %rate, %rate : tensor<f32>
  return %1, %2 : tensor<4xf32>, tensor<f32>
}
"""


def loaded(session: pumice.Session, module: bytes, function: str = "main") -> pumice.SessionFunction:
    return session.lookup(f"{session.load(module).name}.{function}")


@pytest.mark.sample(6)
@pytest.mark.vulkan
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_convention_gives_the_same(case: ModuleCase) -> None:
    name = case.file_name or "x.mlir"
    modules = {
        names: pumice.compile(case.text(), targets=BOTH, file_name=name, calling_convention=names)
        for names in ("default", *CONVENTIONS)
    }
    for uri in ("vulkan", "reference"):
        with pumice.open_device(uri) as device:
            require_types(device, case.text())
            expected = by_session(case, modules["default"], device)
            for names in CONVENTIONS:
                found = by_session(case, modules[names], device, expected if "outs" in names else None)
                for one, other in zip(chain(*found), chain(*expected), strict=True):
                    assert one.shape == other.shape
                    np.testing.assert_array_equal(one.astype(other.dtype), other)


VALUES = [True, -100, 200, -(1 << 14), 1 << 30, -(1 << 40), 1 << 62, 0.25, -1.5, 3.25, 0.1, 3]
DOUBLED = [False, 56, 144, -(1 << 15), 1 << 31, -(1 << 41), 1 << 63, 0.5, -3.0, 6.5, 0.2, 6]


def test_every_type_of_number_is_a_python_number(session: pumice.Session) -> None:
    require_types(session.device, NUMBERS)
    double = loaded(session, pumice.compile(NUMBERS, targets=BOTH, calling_convention="values"))
    assert str(double.signature).endswith("bf16, output9: f32, output10: f64, output11: i4)")
    found = double(*VALUES)
    assert list(found) == DOUBLED and [type(one) for one in found] == [bool, *[int] * 6, *[float] * 4, int]
    for wrong, says in ((256, "expected an int from -128 to 255"), (0.5, "expected an int"), ("x", "expected an int")):
        with pytest.raises(InvalidArgumentError, match=says):
            double(VALUES[0], wrong, *VALUES[2:])


def test_numbers_of_calls_that_overlap_are_their_own(session: pumice.Session) -> None:
    step = loaded(session, pumice.compile(STEP, targets=BOTH, calling_convention="outs,values"), "step")
    x = session.device.asarray(np.ones(4, np.float32))
    calls = [step.submit(x, float(number)) for number in range(20)]
    for number, call in enumerate(calls):
        scaled, doubled = call.result(30)
        np.testing.assert_array_equal(scaled.numpy(), np.full(4, number, np.float32))
        assert doubled.numpy() == 2 * number


def test_a_number_that_is_a_length_is_not_read_back(session: pumice.Session) -> None:
    module = pumice.compile(LENGTH, targets=BOTH, calling_convention="values")
    fill = loaded(session, module)
    for count in (3, 1, 0, 5):
        np.testing.assert_array_equal(fill(count, 2.5).numpy(), np.full((count, 2), 2.5, np.float32))
    with pytest.raises(InvalidArgumentError, match="argument 0: expected a length as its value, which is 0 or more"):
        fill(-1, 2.5)
    assert "queue.copy" not in dumped(module) and "queue.copy" in dumped(pumice.compile(LENGTH))


def dumped(module: bytes, *options: str) -> str:
    result = CliRunner().invoke(main, ["dump", *options, "-"], input=module)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("names", ["values", "buffers"])
def test_checks_of_a_program_see_what_was_passed(session: pumice.Session, names: str) -> None:
    recorder = CheckRecorder()
    session.append_module(check_module(recorder))
    checked = loaded(session, pumice.compile(CHECKED, targets=BOTH, calling_convention=names))
    three = np.full(2, 3, np.float32)
    np.testing.assert_array_equal(checked(three, np.array(3, np.float32)).numpy(), three)
    assert not recorder.take().failures
    checked(three, np.array(2, np.float32))
    assert len(recorder.take().failures) == 2


def test_bare_buffers(session: pumice.Session) -> None:
    step = loaded(session, pumice.compile(STEP, targets=BOTH, calling_convention="buffers"), "step")
    declared = (*step.signature.arguments, *step.signature.results)
    assert [each.type_text for each in declared] == ["!hal.buffer"] * 4
    x, rate = (session.device.asarray(np.asarray(one, np.float32)) for one in ([1, 2, 3, 4], 0.5))
    views = [each.buffer_view(ElementType.FLOAT_32) for each in (x, rate)]
    for arguments in ((x, rate), ([1, 2, 3, 4], 0.5), views, [view.buffer for view in views]):
        scaled, doubled = step(*arguments)
        np.testing.assert_array_equal(scaled.numpy(), [0.5, 1, 1.5, 2])
        assert doubled.numpy() == 1
    # The session knows the tensor, and the module the size.
    with pytest.raises(InvalidArgumentError, match=r"expected shape \(4,\)"):
        step(np.ones(3, np.float32), rate)
    with pytest.raises(InvalidArgumentError, match="expected dtype float32"):
        step(np.ones(4, np.int32), rate)
    with pytest.raises(pumice.PumiceError, match="argument 0.*16"):
        step(views[0].buffer.subspan(0, 12), rate)


USERS: list[tuple[Abi, str]] = [(Abi.VIEW, "tensor<4xf32>"), (Abi.BUFFER, "!hal.buffer")]


@pytest.mark.parametrize(("way", "declared"), USERS)
@pytest.mark.parametrize("outs", [False, True])
def test_types_of_ones_own(session: pumice.Session, way: Abi, declared: str, outs: bool) -> None:
    types = TypeConverter().register("!my.array", argument=way, result=way)
    types.register("!my.number", argument=Abi.VALUE, result=Abi.VALUE)
    if outs:
        types.add(lambda type: parse_type("memref<f32>") if str(type) == "!my.number" else None, roles=["out"])
    convention = results_to_outs_convention(types) if outs else default_convention(types)
    module = pumice.compile(ARRAY, targets=BOTH, calling_convention=convention)
    scale = loaded(session, module)
    assert [str(each.declared).partition(": ")[2] for each in scale.signature.arguments][:2] == [declared, "f32"]
    scaled, number = scale(np.arange(4, dtype=np.float32), 0.5)
    np.testing.assert_array_equal(scaled.numpy(), [0, 0.5, 1, 1.5])
    assert (number.numpy() if outs else number) == 0.5
    exports = {one["name"]: one["abi"] for one in json.loads(dumped(module, "--json"))["exports"]}
    array = '!my.array<"4, wide">'
    assert exports["main"] == {
        "convention": "outs" if outs else "default",
        "type": f"({array}, !my.number) -> ({array}, !my.number)",
        "converted": f"(!rt.kernel_context, {array}, !my.number, {array}, memref<f32>) -> ()"
        if outs
        else f"(!rt.kernel_context, {array}, !my.number) -> ({array}, !my.number)",
    }
    assert exports["main$async"] is None


def test_dump_and_info_show_the_types_before_and_after(tmp_path: Path) -> None:
    path = tmp_path / "step.vmfb"
    path.write_bytes(pumice.compile(STEP, calling_convention="values"))
    for command in ("dump", "info"):
        result = CliRunner().invoke(main, [command, str(path)])
        (row,) = [line.split("   ") for line in result.stdout.splitlines() if "kernel_context" in line]
        assert [cell.strip() for cell in row if cell.strip()] == [
            "step",
            "values",
            "(tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)",
            "(!rt.kernel_context, memref<4xf32>, f32) -> (memref<4xf32>, f32)",
        ]


@pytest.mark.parametrize("names", ["outs", "values", "buffers", "outs,values", "buffers,outs"])
def test_the_command_line_gives_storages_and_prints_results(names: str, tmp_path: Path) -> None:
    path = tmp_path / "step.vmfb"
    path.write_bytes(pumice.compile(STEP, targets=BOTH, calling_convention=names))
    inputs = ["--input=1,2,3,4", f"--input={'0.5' if 'values' in names else 'f32=0.5'}"]
    command = ["run", str(path), "--device=reference", "--function=step", *inputs]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.stderr
    shown = result.stdout
    assert "\n4xf32=0.5 1 1.5 2\n" in shown and shown.endswith("f32=1\n")
    expected = ["--expected_output=4xf32=0.5 1 1.5 2", "--expected_output=f32=1"]
    assert "[SUCCESS]" in CliRunner().invoke(main, [*command, *expected]).stdout
    if "outs" in names:
        # If the caller passes storages, the function returns nothing.
        assert CliRunner().invoke(main, [*command, "--input=&4xf32=7", "--input=&f32"]).stdout == "EXEC @step\n"


@pytest.mark.parametrize("names", ["outs,values", "values,buffers"])
def test_stages_keep_the_convention(names: str) -> None:
    assert "ll_seq" in check_stages(STEP, convention=named_convention(names))


@pytest.mark.peer
@pytest.mark.vulkan
@pytest.mark.features("shaderFloat64")
def test_the_peers_runtime_runs_them(tmp_path: Path) -> None:
    inputs = ["4xf32=1 2 3 4", "f32=0.5"]
    for names, given in (
        ("default", inputs),
        ("values", ["4xf32=1 2 3 4", "0.5"]),
        ("buffers", [f"&{each}" for each in inputs]),
    ):
        shown = peer_shows(tmp_path, pumice.compile(STEP, calling_convention=names), given, "step")
        assert ("4xf32=0.5 1 1.5 2" in shown) == (names != "buffers")
        assert ("f32=1\n" in shown) == (names != "buffers")
    # Halves cross as their bits.
    given = [*map(str, VALUES)]
    given[0], given[7:9] = "1", [f"{0x3400}", f"{0xBFC0}"]
    shown = peer_shows(tmp_path, pumice.compile(NUMBERS, calling_convention="values"), given)
    numbers = [float(line.partition("=")[2]) for line in shown.splitlines() if "]:" in line]
    signed = [0, 56, 144, -(1 << 15), -(1 << 31), -(1 << 41), -(1 << 63), 0x3800, 0xC040, 6.5, 0.2, 6]
    assert numbers == signed


def test_the_command_line_refuses_what_is_no_convention(tmp_path: Path) -> None:
    program, module = tmp_path / "x.mlir", tmp_path / "x.vmfb"
    program.write_text(ARRAY)

    def refused(*options: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["compile", str(program), "-o", str(module), *options])
        assert not module.exists() and "Traceback" not in result.stderr
        return result.exit_code, result.stderr

    known = "expected one of the calling conventions default, outs, values, buffers"
    for name in ("fast", "", "outs values", "outs,"):
        status, said = refused("--calling-convention", name)
        assert status == 2 and said.startswith(f"error: --calling-convention: {known}, got ")
    for name in ("default", "outs"):
        status, said = refused("--calling-convention", name)
        place, line, caret = said.rstrip("\n").split("\n")
        assert status == 1 and f'{program}:2:17: @main: argument 0, !my.array<"4, wide">, has no ABI' in place
        assert line.strip() == ARRAY.split("\n")[1] and caret.index("^") == len("  func.func @main(")
    stage = CliRunner().invoke(
        main, ["compile", "-", "--compile-to", "ll_seq", "--calling-convention", "outs"], input=STEP
    )
    program.write_text(stage.stdout)
    status, said = refused("--calling-convention", "values")
    assert status == 1 and "expects the calling convention outs, which it was compiled with, got values" in said
    module.touch()
    assert CliRunner().invoke(main, ["compile", str(program), "-o", str(module)]).exit_code == 0
    assert "iree.abi.output" in dumped(module.read_bytes(), "--json")
