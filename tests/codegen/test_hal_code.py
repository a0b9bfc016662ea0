"""HAL code: what is written, and that it does what the virtual machine does. More programs: ``test_four_ways.py``."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.codegen import hal_code
from support.codegen.hal_code import hal_program

import pumice
from pumice.hal.buffer_view import BufferView
from pumice.hal_reference.device import Device as ReferenceDevice
from pumice.hal_vulkan.device import Device
from pumice.status import (
    ClosedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PumiceError,
    UnimplementedError,
)
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.module_def import ExportDef
from pumice.vm.bytecode.writer import write_module

MUL = """
func.func @simple_mul(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
LOOP = """
func.func @collatz(%x: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%n = %x, %count = %c0) : tensor<i32>, tensor<i32>
   cond {
     %p = stablehlo.compare GT, %n, %c1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
     stablehlo.return %p : tensor<i1>
   } do {
     %c2 = stablehlo.constant dense<2> : tensor<i32>
     %c3 = stablehlo.constant dense<3> : tensor<i32>
     %half = stablehlo.divide %n, %c2 : tensor<i32>
     %m = stablehlo.multiply %n, %c3 : tensor<i32>
     %up = stablehlo.add %m, %c1 : tensor<i32>
     %rest = stablehlo.remainder %n, %c2 : tensor<i32>
     %odd = stablehlo.compare EQ, %rest, %c1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
     %next = stablehlo.select %odd, %up, %half : tensor<i1>, tensor<i32>
     %more = stablehlo.add %count, %c1 : tensor<i32>
     stablehlo.return %next, %more : tensor<i32>, tensor<i32>
   }
  return %r#0, %r#1 : tensor<i32>, tensor<i32>
}
"""
X = np.array([1, 2, 3, 4], np.float32)
Y = np.array([5, 6, 7, 8], np.float32)


def compiled(text: str = MUL, *targets: str) -> bytes:
    return pumice.compile(text, file_name="program.mlir", targets=targets or ("vulkan",))


def messages(error: PumiceError) -> tuple[object, str]:
    return error.code, error.message


# -- the source --------------------------------------------------------------------------------------


def test_the_source_is_the_same_each_time() -> None:
    assert hal_code.hal_code(compiled()).source == hal_code.hal_code(compiled()).source


@pytest.mark.parametrize("text", [MUL, LOOP])
def test_the_source_is_formatted_and_typed(text: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(hal_code.hal_code(compiled(text, "vulkan", "reference")).source, encoding="utf-8")
    for command in (
        ["ruff", "check", "--isolated", "--line-length=120", "--select=E,F,I,UP,B,SIM"],
        ["ruff", "format", "--isolated", "--line-length=120", "--check"],
    ):
        done = subprocess.run([sys.executable, "-m", *command, path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert max(map(len, path.read_text(encoding="utf-8").splitlines())) <= 120
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            assert node.returns is not None
            assert all(one.annotation is not None for one in node.args.args if one.arg != "self")


def test_names_are_those_of_the_program() -> None:
    source = hal_code.hal_code(compiled()).source
    assert "def simple_mul(self, input0: BufferView, input1: BufferView, *, out: BufferView | None = None)" in source
    assert "_simple_mul_rgn_dispatch_0_commands" in source
    assert "# program.mlir:3:8" in source
    assert "input0: f32 of shape (4,)." in source


def test_loops_are_loops() -> None:
    source = hal_code.hal_code(compiled(LOOP)).source
    assert "while i" in source and "target" not in source


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.vulkan
def test_it_runs_without_the_virtual_machine(beside: bool, tmp_path: Path, driver: object) -> None:
    written = hal_code.hal_code(compiled(), data="program.data" if beside else None)
    (tmp_path / "program.py").write_text(written.source, encoding="utf-8")
    assert (written.data is not None) == beside
    if written.data is not None:
        (tmp_path / "program.data").write_bytes(written.data)
    script = (
        "import sys, numpy as np\n"
        "from pumice.hal_vulkan import Device\n"
        "import program\n"
        "with Device() as device, program.Program.create(device) as mul:\n"
        "    x = mul.to_device(np.array([1, 2, 3, 4], np.float32))\n"
        "    print(mul.to_host(mul.simple_mul(x, x)).tolist())\n"
        "for name in ('vm', 'runtime', 'compiler', 'codegen'):\n"
        "    assert not [one for one in sys.modules if one.startswith('pumice.' + name)], name\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[1.0, 4.0, 9.0, 16.0]"


# -- calls -------------------------------------------------------------------------------------------


@pytest.mark.vulkan
def test_semaphores_order_asynchronous_calls(device: Device) -> None:
    with (
        hal_program(compiled(), device) as program,
        device.create_semaphore() as ready,
        device.create_semaphore() as done,
    ):
        x, y = program.to_device(X), program.to_device(Y)
        first, second = program.to_device(np.zeros_like(X)), program.to_device(np.zeros_like(X))
        program.simple_mul_async(x, y, first, wait=[(ready, 2)], signal=[(done, 1)])
        program.simple_mul_async(first, y, second, wait=[(done, 1)], signal=[(done, 4)])
        with pytest.raises(DeadlineExceededError):
            done.wait(1, 0.02)
        assert not program.to_host(first).any()
        ready.signal(2)
        done.wait(4, 30)
        assert np.array_equal(program.to_host(second), X * Y * Y)


@pytest.mark.vulkan
def test_it_runs_where_kernels_have_memory_of_their_own(any_device: Device) -> None:
    with hal_program(compiled(LOOP), any_device) as program:
        end, count = hal_code.call(program, "collatz", [np.array(27, np.int32)])
        assert (int(end), int(count)) == (1, 111)


@pytest.mark.vulkan
def test_calls_leave_nothing(device: Device) -> None:
    with hal_program(compiled(LOOP), device) as program:
        argument, results = program.to_device(np.array(6, np.int32)), []
        for _ in range(20):
            program.collatz(argument)
        before = pumice.live_objects()
        for _ in range(60):
            results = program.collatz(argument)
        # How many calls' command pools are in use at once depends on the machine.
        assert all(count <= before.get(kind, 0) + 4 for kind, count in pumice.live_objects().items())
        assert int(program.to_host(results[1])) == 8


# -- errors ------------------------------------------------------------------------------------------


def wrong_views(program: Any) -> list[tuple[object, ...]]:
    view = program.to_device(X)
    return [
        (program.to_device(X[:3]), view),
        (view, program.to_device(X.reshape(2, 2))),
        (view, program.to_device(X.astype(np.float16))),
        (view, program.to_device(X.view(np.int32))),
        (view, None),
        (X, view),
    ]


@pytest.mark.vulkan
def test_errors_are_those_of_the_virtual_machine(device: Device) -> None:
    module = compiled()
    with pumice.open_device() as opened, pumice.Session(opened) as session:
        name = session.load(module).name
        with hal_program(module, opened.hal) as program:
            for views in wrong_views(program):
                with pytest.raises(InvalidArgumentError) as expected:
                    session.lookup(f"{name}.simple_mul").call_direct(views)
                with pytest.raises(InvalidArgumentError) as got:
                    program.simple_mul(*views)
                assert messages(got.value) == messages(expected.value)


FAILING = """
vm.module @failing version 0
vm.type !hal.device
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.device.queue.alloca cconv "0rIrrIiiII_r"
vm.export @run
vm.func @run(%i0: i32) -> (i32) {
^bb0:
  %i1 = vm.const.i32.zero
  %i2:3 = vm.const.i64.zero
  %i4:5 = vm.const.i64 256
  %i6 = vm.const.i32 48
  %i7 = vm.const.i32 3075
  %r0 = vm.call @hal.devices.get(%i1)
  %r1 = vm.call @hal.fence.create(%r0, %i2:3)
  %r2 = vm.const.ref.zero
  %r3 = vm.call @hal.device.queue.alloca(%r0, %i2:3, %r2, %r1, %i2:3, %i6, %i7, %i4:5, %i2:3)
  vm.cond_br %i0, ^bb1(), ^bb2()
^bb1:
  vm.fail %i0, "it was asked to"
^bb2:
  vm.return %i1
}
"""


@pytest.mark.vulkan
def test_a_failure_in_the_middle_leaves_nothing(device: Device) -> None:
    with hal_program(write_module(assemble(FAILING)), device) as program:
        before = pumice.live_objects()
        assert program.run(0) == 0
        with pytest.raises(FailedPreconditionError, match="^FAILED_PRECONDITION: it was asked to$"):
            program.run(9)
        assert pumice.live_objects().get("buffer", 0) <= before.get("buffer", 0) + 1  # one is kept for the next call


@pytest.mark.vulkan
def test_a_closed_program_says_so(device: Device) -> None:
    program = hal_program(compiled(), device)
    view = program.to_device(X)
    result = program.simple_mul(view, view)
    program.close()
    program.close()
    with pytest.raises(ClosedError, match="this program \\(Program\\) was closed"):
        program.simple_mul(view, view)
    assert isinstance(result, BufferView) and np.array_equal(result.read(), X * X)


def test_a_device_without_the_format_is_refused() -> None:
    with ReferenceDevice() as reference, pytest.raises(NotFoundError, match="vulkan-spirv-fb"):
        hal_program(compiled(), reference)


ALIAS = """
vm.module @final version 0
vm.export @one
vm.func @one(%i0: i32) -> (i32) {
^bb0:
  vm.return %i0
}
"""


def test_names_of_classes_and_of_functions_with_two() -> None:
    module = assemble(ALIAS)
    module = replace(module, exports=(*module.exports, ExportDef("other", module.exports[0].ordinal)))
    with ReferenceDevice() as reference, hal_program(write_module(module), reference) as program:
        assert type(program).__name__ == "FinalProgram"
        assert program.one(3) == program.other(3) == 3


CUSTOM = """
vm.module @custom version 0
vm.import @other.double cconv "0i_i"
vm.export @run
vm.func @run(%i0: i32) -> (i32) {
^bb0:
  %i1 = vm.call @other.double(%i0)
  vm.return %i1
}
"""


@pytest.mark.parametrize("text", ["\n", "\r", "\f\n", '"""', "\\\n", '"" ""', "\u2028", "\x85", "# coding: utf-7\n"])
def test_texts_of_a_module_are_no_code(text: str) -> None:
    """Names of source files stand in comments; those of modules and arguments in docstrings."""
    placeholder = "s" * 60
    module = pumice.compile(MUL, file_name=placeholder, targets=("reference",))
    payload = f"{text}raise SystemExit{text}".encode()
    evil = module.replace(placeholder.encode(), payload + b"s" * (60 - len(payload)))
    assert evil != module
    evil = evil.replace(b"%a: tensor<4xf32>", (b"%a: " + payload)[:17].ljust(17))
    source = hal_code.hal_code(evil, f"{text}raise SystemExit.vmfb").source
    names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    assert "SystemExit" in source and "SystemExit" not in names


def test_calls_of_other_modules_are_refused() -> None:
    with pytest.raises(UnimplementedError, match="function run of module custom calls other.double.*module other"):
        hal_code.hal_code(write_module(assemble(CUSTOM)))


@pytest.mark.vulkan
def test_storages_share_no_memory_that_is_read_later(device: Device) -> None:
    """Arguments may be overwritten by what reads and writes the same elements, not by a product of matrices."""
    text = """
    func.func @main(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
      %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
        : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %1 = stablehlo.add %y, %y : tensor<2x2xf32>
      return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32>
    }
    """
    array = np.array([[1, 2], [3, 4]], np.float32)
    with hal_program(pumice.compile(text), device) as program:
        x, y, other = (program.to_device(array) for _ in range(3))
        with pytest.raises(InvalidArgumentError, match="out for result 0 shares memory with argument 0, which"):
            program.main(x, y, out=(x, other))  # type: ignore[attr-defined]
        with pytest.raises(InvalidArgumentError, match="out for result 1 shares memory with that for another result"):
            program.main(x, y, out=(other, other))  # type: ignore[attr-defined]
        np.testing.assert_array_equal(program.to_host(other), array)
        assert program.main(x, y, out=(other, y)) == (other, y)  # type: ignore[attr-defined]
        np.testing.assert_array_equal(program.to_host(other), array @ array)
        np.testing.assert_array_equal(program.to_host(y), array + array)
        with pytest.raises(InvalidArgumentError, match="out takes a tuple of 2 buffer views.* got BufferView$"):
            program.main(x, y, out=other)  # type: ignore[attr-defined]
        with pytest.raises(InvalidArgumentError, match="out takes a tuple of 2 buffer views.* got tuple of 1$"):
            program.main(x, y, out=(other,))  # type: ignore[attr-defined]


@pytest.mark.vulkan
def test_what_is_given_in_place_of_others_is_told(device: Device) -> None:
    module = compiled()
    with pumice.open_device() as opened, pytest.raises(InvalidArgumentError, match="is its attribute hal$"):
        hal_program(module, opened)  # type: ignore[arg-type]
    with hal_program(module, device) as program, device.create_semaphore() as semaphore:
        x, y = (program.to_device(X) for _ in range(2))
        with pytest.raises(InvalidArgumentError, match="expected a BufferView, got ndarray"):
            program.to_host(X)  # type: ignore[arg-type]
        for wrong in (semaphore, [semaphore], [(1, semaphore)], 3):
            with pytest.raises(InvalidArgumentError, match="expected .semaphore, payload. pairs, or a fence, got"):
                program.simple_mul_async(x, x, y, wait=wrong)  # type: ignore[attr-defined]


@pytest.mark.vulkan
@pytest.mark.parametrize("name", ["class", "create", "device", "to_host", "out"])
def test_names_that_are_taken_have_both_forms(name: str, device: Device) -> None:
    text = f"""
    func.func @{name}(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {{
      %0 = stablehlo.add %x, %x : tensor<3x4xf32>
      return %0 : tensor<3x4xf32>
    }}
    """
    array = np.ones((3, 4), np.float32)
    with hal_program(pumice.compile(text), device) as program:
        x, y = program.to_device(array), program.to_device(array)
        assert getattr(program, f"{name}_")(x, out=y) is y
        np.testing.assert_array_equal(program.to_host(y), array + array)
        assert callable(getattr(program, f"{name}__async"))
