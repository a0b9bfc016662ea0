"""Modules name the source lines of their instructions: in errors, in profiles, in their own text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import pumice
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text
from pumice.tools.cli import main
from pumice.vm.assembly.assembler import assemble
from pumice.vm.assembly.disassembler import disassemble_module
from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.reader import read_module
from pumice.vm.bytecode.verifier import verify_module
from pumice.vm.bytecode.writer import write_module

TEXT = """func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %n, %v = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %1 = stablehlo.compare NE, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.subtract %zero, %i : tensor<i32>
    %3 = stablehlo.add %2, %i : tensor<i32>
    %4 = stablehlo.add %v, %v : tensor<4xf32> loc("twice"("model.py":70:3))
    stablehlo.return %3, %4 : tensor<i32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def compiled() -> bytes:
    return compile_text(TEXT, "program.mlir", Target()).module


@pytest.mark.vulkan
def test_errors_and_profiles_name_lines(compiled: bytes) -> None:
    with pumice.open_device() as device, pumice.Session(device=device) as session:
        session.load(compiled)
        function = session.lookup("module.main")
        wrong = function.bind(np.ones(4, np.float32), np.int32(1))[::-1]
        with pytest.raises(pumice.InvalidArgumentError, match=r"program\.mlir:1:1"):
            function.call_direct(wrong)
        with session.profile() as profile:
            session.call("module.main", np.ones(4, np.float32), np.int32(5))
    found = {entry.location for entry in profile.exports}
    assert {"program.mlir:5", "program.mlir:9", "model.py:70"} <= found


CHECKS = """func.func @checks() {
  %x = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = stablehlo.add %x, %x : tensor<2xf32>
  %1 = stablehlo.constant dense<[2.0, 4.5]> : tensor<2xf32>
  stablehlo.custom_call @check.expect_eq(%0, %0) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%0, %1) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  return
}
"""


@pytest.mark.vulkan
def test_an_expectation_that_fails_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "checks.mlir"
    path.write_text(CHECKS)
    result = CliRunner().invoke(main, ["run-checks", str(path)])
    assert result.exit_code == 1
    assert f"  at {path}:6:3\n" in result.stdout


def test_instructions_have_places_that_the_text_keeps(compiled: bytes) -> None:
    definition = read_module(ModuleArchive.from_bytes(compiled))
    assert definition.debug is not None
    places = {definition.debug.describe(number) for number in range(len(definition.debug.locations))}
    assert {"program.mlir:1:1", "program.mlir:3:10", "program.mlir:5:10", "model.py:70:3"} <= places
    text = disassemble_module(verify_module(definition), exact=True)
    assert write_module(assemble(text)) == compiled
    assert "  // model.py:70:3" in disassemble_module(verify_module(definition), places=True)


@pytest.mark.parametrize("place", ['("a":1', "(known)", '("a":1:2) 3', '("a":-1:2)'])
def test_a_place_has_one_form(place: str) -> None:
    with pytest.raises(pumice.InvalidArgumentError, match=r"<text>:3:"):
        assemble(f"vm.module @m\nvm.func @f() -> () {{\nloc{place}\n  vm.return\n}}")


CALLED = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @outer(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":7:3)
  return %0 : tensor<4xf32>
}
func.func private @outer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32> loc("model.py":3:1)
  %1 = call @inner(%0) : (tensor<4xf32>) -> tensor<4xf32> loc("jit")
  return %1 : tensor<4xf32>
}
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.cosine %x : tensor<4xf32> loc("cos")
  return %0 : tensor<4xf32>
}
"""


def test_what_says_no_place_has_that_of_the_call_of_its_function() -> None:
    with pytest.raises(pumice.PumiceError, match=r"program\.mlir:11:8: .*\(from model\.py:7\)"):
        compile_text(CALLED.replace("stablehlo.cosine", "stablehlo.not"), "program.mlir", Target())
    printed = compile_text(CALLED, "program.mlir", Target(), "hlo").program.text()
    (alias,) = re.findall(r'(#\w+) = loc\("model\.py":7:3\)', printed)
    for operation in ("call @outer", "call @inner", "stablehlo.cosine"):
        assert re.search(rf"{operation}.* loc\({alias}\)", printed), printed
